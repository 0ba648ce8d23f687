"""Devices that are emulated: what they take, as words of a plan and as numbers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from statistics import NormalDist

from bedplate.units import format_size

_NONE = "none"


@dataclass(frozen=True)
class DeviceIdentity:
    """A device that a study erases, as the kernel knew it when the study began; null for what it did not say."""

    size_bytes: int
    """its size"""
    model: str | None = None
    """vendor and model of the disk"""
    wwid: str | None = None
    """the disk's name that no other disk in the world has"""
    serial: str | None = None
    """the disk's serial number"""
    partition: int | None = None
    """number of the partition; null for a whole device"""
    partition_start: int | None = None
    """where the partition begins, in units of 512 bytes"""
    partition_uuid: str | None = None
    """UUID of the partition in its table"""
    volume_uuid: str | None = None
    """UUID of a mapped device or an array"""
    file_inode: int | None = None
    """inode of the file behind a loop device"""
    file_device: int | None = None
    """`st_dev` of that file; compared within one boot"""
    disk_sequence: int | None = None
    """the kernel's count of disks (`diskseq`); compared within one boot, where nothing else tells a disk from its like"""
    boot_id: str | None = None
    """the boot in which this was read"""

    @property
    def is_of_one_disk(self) -> bool:
        """Whether it tells its disk from every other one of the same size and model."""
        return any(value is not None for value in (self.wwid, self.serial, self.volume_uuid, self.file_inode))

    def differences(self, current: DeviceIdentity) -> tuple[str, ...]:
        """What was found beside what is recorded here, a phrase each; empty where it may be the same device."""
        pairs: list[tuple[str, object, object]] = [
            ("model", self.model, current.model),
            ("wwid", self.wwid, current.wwid),
            ("serial", self.serial, current.serial),
            ("partition", self.partition, current.partition),
            ("partition start", self.partition_start, current.partition_start),
            ("inode of its file", self.file_inode, current.file_inode),
        ]
        # Only newer kernels, and udev, tell these: a study may vary the kernel.
        if self.volume_uuid is not None:
            pairs.append(("volume UUID", self.volume_uuid, current.volume_uuid))
        if self.partition_uuid is not None and not (current.partition_uuid is None and self.is_of_one_disk):
            pairs.append(("partition UUID", self.partition_uuid, current.partition_uuid))
        if self.boot_id is not None and self.boot_id == current.boot_id:
            pairs.append(("file system of its file", self.file_device, current.file_device))
            if not self.is_of_one_disk:
                pairs.append(("disk sequence number", self.disk_sequence, current.disk_sequence))
        told = [
            f"{name} {_NONE if now is None else now} (recorded: {_NONE if before is None else before})"
            for name, before, now in pairs
            if before != now
        ]
        if self.size_bytes != current.size_bytes:
            told.append(f"size {_size(current.size_bytes)} (recorded: {_size(self.size_bytes)})")
        return tuple(told)


def _size(size_bytes: int) -> str:
    """To the byte: two disks of one nominal size differ in the last digits."""
    return f"{format_size(size_bytes)}, {size_bytes} bytes"


CONSTANT, UNIFORM, EXPONENTIAL, LOGNORMAL = "constant", "uniform", "exponential", "lognormal"
LAWS = (CONSTANT, UNIFORM, EXPONENTIAL, LOGNORMAL)

# As many as the kernel hands over at once to a file system in user space (max_background in files.c).
MOST_PLACES = 64

USUAL_PLACES = 32
LONGEST_NS = 60 * 10**9
MOST_FACTOR = 10.0

_NS = {"us": 1e3, "ms": 1e6, "s": 1e9}
_TIME = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) ?(us|ms|s)", re.ASCII)
_WORDS = re.compile(rf"(?:({'|'.join(LAWS)}) )?(.+)", re.ASCII)
_PAIR = re.compile(r"(\d+(?:\.\d+)? ?(?:us|ms|s)) (.+)", re.ASCII)
_STALL = re.compile(r"(.+) every (.+)", re.ASCII)

_ALLOWED = (
    'allowed is a time ("2ms"), "uniform 1ms 3ms", "exponential 2ms" with its mean, or "lognormal 0.5ms 1.3" with its median and '
    "the factor of its spread"
)


def _time_ns(text: str) -> float:
    found = _TIME.fullmatch(text.strip())
    if found is None or float(found[1]) * _NS[found[2]] > LONGEST_NS:
        raise ValueError(f"{text.strip()!r:.40} is no time; write a number with us, ms or s, 60s at most")
    return float(found[1]) * _NS[found[2]]


def _time_text(ns: float) -> str:
    return f"{ns / 1e6:g}ms" if ns < 1e9 else f"{ns / 1e9:g}s"


@dataclass(frozen=True)
class Law:
    """A distribution of times. `second_ns` is the end of a uniform one, `factor` the spread of a lognormal one."""

    shape: str
    first_ns: float
    second_ns: float = 0.0
    factor: float = 1.0

    @classmethod
    def parse(cls, text: str) -> Law:
        """The words of a plan; ValueError says what is allowed."""
        found = _WORDS.fullmatch(" ".join(text.split()))
        if found is None:
            raise ValueError(_ALLOWED)
        shape, rest = found[1] or CONSTANT, found[2]
        if shape in (CONSTANT, EXPONENTIAL):
            return cls(shape, _time_ns(rest))
        pair = _PAIR.fullmatch(rest)
        if pair is None:
            raise ValueError(_ALLOWED)
        first = _time_ns(pair[1])
        if shape == UNIFORM:
            second = _time_ns(pair[2])
            if second < first:
                raise ValueError("uniform takes the shortest time and then the longest")
            return cls(shape, first, second_ns=second)
        try:
            factor = float(pair[2])
        except ValueError:
            raise ValueError(_ALLOWED) from None
        if not 1 <= factor <= MOST_FACTOR or first <= 0:
            raise ValueError(
                f"lognormal takes a median above 0 and a factor from 1 to {MOST_FACTOR:g}: two thirds of all times lie between "
                "median / factor and median x factor"
            )
        return cls(shape, first, factor=factor)

    @property
    def words(self) -> str:
        """As a plan has it: `2ms`, `uniform 1ms 3ms`, `lognormal 0.5ms 1.3`."""
        if self.shape == CONSTANT:
            return _time_text(self.first_ns)
        second = {UNIFORM: f" {_time_text(self.second_ns)}", LOGNORMAL: f" {self.factor:g}"}.get(
            self.shape, ""
        )
        return f"{self.shape} {_time_text(self.first_ns)}{second}"

    @property
    def option(self) -> str:
        """As the device takes it: `lognormal:500000:1.3`."""
        second = {UNIFORM: f":{self.second_ns:.0f}", LOGNORMAL: f":{self.factor:g}"}.get(self.shape, "")
        return f"{self.shape}:{self.first_ns:.0f}{second}"

    @property
    def mean_ns(self) -> float:
        """The mean."""
        if self.shape == UNIFORM:
            return (self.first_ns + self.second_ns) / 2
        if self.shape == LOGNORMAL:
            return self.first_ns * math.exp(math.log(self.factor) ** 2 / 2)
        return self.first_ns

    def quantile_ns(self, share: float) -> float:
        """The time that this share of all does not exceed; the share is above 0 and below 1."""
        if self.shape == UNIFORM:
            return self.first_ns + share * (self.second_ns - self.first_ns)
        if self.shape == EXPONENTIAL:
            return -self.first_ns * math.log(1 - share)
        if self.shape == LOGNORMAL:
            return self.first_ns * float(self.factor ** NormalDist().inv_cdf(share))
        return self.first_ns


@dataclass(frozen=True)
class Stall:
    """Nothing is done for `stall_ns` at the end of each `period_ns`."""

    stall_ns: float
    period_ns: float

    @classmethod
    def parse(cls, text: str) -> Stall:
        """`200ms every 30s`; ValueError says what is allowed."""
        found = _STALL.fullmatch(" ".join(text.split()))
        if found is None:
            raise ValueError('allowed is "200ms every 30s"')
        stall, period = _time_ns(found[1]), _time_ns(found[2])
        if not 0 < stall < period:
            raise ValueError("a stall is shorter than the time from one to the next")
        return cls(stall, period)

    @property
    def words(self) -> str:
        """As a plan has it."""
        return f"{_time_text(self.stall_ns)} every {_time_text(self.period_ns)}"


MODELLED = "modelled"

_READ = "read"


@dataclass(frozen=True)
class Disk:
    """A disk with a spindle, as the device computes it; its times are those of the disk, which `speed` divides."""

    rpm: int = 7200
    """turns a minute"""
    seek_track_ms: float = 0.8
    """seek to the next track"""
    seek_average_ms: float = 8.5
    """seek between two random tracks, on average"""
    seek_full_ms: float = 16.0
    """seek over all tracks"""
    write_settle_ms: float = 1.0
    """what a seek before a write takes more"""
    overhead_ms: float = 0.1
    """what the controller takes for each request"""
    outer_bytes_per_s: int = 130_000_000
    """sustained rate at the first address"""
    inner_bytes_per_s: int = 65_000_000
    """sustained rate at the last address"""
    cache_bytes: int = 32 * 1024 * 1024
    """volatile write cache; 0: a write is answered when it is on the medium"""
    read_ahead_bytes: int = 1024 * 1024
    """what is read behind a read while nothing else is wanted"""
    capacity_bytes: int | None = None
    """of the disk whose outer part the image is; null: the image is all of it"""
    speed: int = 1
    """every time is divided by it"""

    @property
    def reason(self) -> str | None:
        """Why there is no such disk; None where there may be one."""
        average, full = (seek - self.seek_track_ms for seek in (self.seek_average_ms, self.seek_full_ms))
        if not full / 3 <= average <= full * 8 / 15:
            # Between a seek at one speed and one that always accelerates.
            return (
                f"seek_average is {self.seek_average_ms:g}ms; between seek_track and seek_full it has to be from "
                f"{self.seek_track_ms + full / 3:.3g}ms to {self.seek_track_ms + full * 8 / 15:.3g}ms, as no arm moves otherwise"
            )
        if self.inner_bytes_per_s > self.outer_bytes_per_s:
            return "inner is more than outer, and a disk is faster outside"
        return None

    @property
    def turn_ms(self) -> float:
        """One turn."""
        return 60e3 / self.rpm

    def words(self, queue_depth: int) -> str:
        """As the device takes it."""
        numbers = {
            "rpm": self.rpm,
            "track_ns": self.seek_track_ms * 1e6,
            "average_ns": self.seek_average_ms * 1e6,
            "full_ns": self.seek_full_ms * 1e6,
            "settle_ns": self.write_settle_ms * 1e6,
            "outer": self.outer_bytes_per_s,
            "inner": self.inner_bytes_per_s,
            "overhead_ns": self.overhead_ms * 1e6,
            "cache": self.cache_bytes,
            "ahead": self.read_ahead_bytes,
            "capacity": self.capacity_bytes or 0,
            "depth": queue_depth,
            "speed": self.speed,
        }
        return ",".join(f"{name}={number:.0f}" for name, number in numbers.items())

    def mean_ns(self, kind: str, size_bytes: int) -> float:
        """Of one request that waits for no other: of a random read, or a write, which a cache takes in as fast as the medium takes it."""
        rate = (self.outer_bytes_per_s + self.inner_bytes_per_s) / 2
        ns = self.overhead_ms * 1e6 + size_bytes / rate * 1e9
        if kind == _READ or self.cache_bytes == 0:
            ns += (self.seek_average_ms + self.turn_ms / 2) * 1e6
            ns += 0.0 if kind == _READ else self.write_settle_ms * 1e6
        return ns / self.speed


@dataclass(frozen=True)
class Latency:
    """An emulated device with latency: each request takes a time that is drawn, or that the model of a disk says.

    Always labelled as emulated or modelled, and what it holds is in memory.
    """

    name: str
    """the plan's word for it"""
    read: str
    """what a read takes: `lognormal 0.5ms 1.3`; `modelled`, as all three are then, where `disk` says it"""
    write: str
    """what a write takes"""
    flush: str
    """what a flush takes, once all before it is answered"""
    queue_depth: int = USUAL_PLACES
    """so many requests are served at once, the others wait"""
    sequential: str | None = None
    """what a read or write takes that goes on where another ended; null: as any other"""
    iops: int | None = None
    """limit of reads and writes together"""
    bytes_per_s: int | None = None
    """limit of reads and writes together"""
    stall: str | None = None
    """`200ms every 30s`; null: never"""
    disk: Disk | None = None
    """the model of a disk; null: times are drawn"""

    @classmethod
    def of_disk(cls, name: str, model: Disk, queue_depth: int = USUAL_PLACES) -> Latency:
        """A modelled disk."""
        return cls(name, MODELLED, MODELLED, MODELLED, queue_depth, disk=model)

    @property
    def label(self) -> str:
        """Its name, and that it is a model where it is one."""
        return self.name if self.disk is None else f"{self.name} ({MODELLED})"

    def mean_ns(self, kind: str, size_bytes: int) -> float:
        """What a `read` or a `write` of so much takes on average, where it does not go on where another ended."""
        if self.disk is not None:
            return self.disk.mean_ns(kind, size_bytes)
        return Law.parse(getattr(self, kind)).mean_ns

    @property
    def is_path_alone(self) -> bool:
        """Whether it adds nothing: what is left is the way through user space."""
        if self.disk is not None:
            return False
        return all(Law.parse(words) == Law(CONSTANT, 0.0) for words in (self.read, self.write, self.flush))

    @property
    def options(self) -> tuple[str, ...]:
        """The device's command line."""
        if self.disk is not None:
            return ("--model", self.disk.words(self.queue_depth))
        found = [
            *("--read", Law.parse(self.read).option),
            *("--write", Law.parse(self.write).option),
            *("--flush", Law.parse(self.flush).option),
            *("--depth", str(self.queue_depth)),
        ]
        if self.sequential is not None:
            found += ["--sequential", Law.parse(self.sequential).option]
        if self.iops is not None:
            found += ["--requests-per-s", str(self.iops)]
        if self.bytes_per_s is not None:
            found += ["--bytes-per-s", str(self.bytes_per_s)]
        if self.stall is not None:
            stall = Stall.parse(self.stall)
            found += ["--stall-ns", f"{stall.stall_ns:.0f}", "--period-ns", f"{stall.period_ns:.0f}"]
        return tuple(found)

    def most_per_s(self, kind: str) -> float:
        """How many reads or writes a second it could answer at its full depth; infinite where they take no time. Of drawn times."""
        laws = [Law.parse(getattr(self, kind))]
        if self.sequential is not None:
            laws.append(Law.parse(self.sequential))
        least_ns = min(law.mean_ns for law in laws)
        served = math.inf if least_ns == 0 else self.queue_depth * 1e9 / least_ns
        return served if self.iops is None else min(served, self.iops)


@dataclass(frozen=True)
class AtDepth:
    """What requests of 4 KiB took at one depth, `read`, `write` or `flush`; `per_s` are those of all places together."""

    kind: str
    depth: int
    p50_us: float
    p99_us: float
    per_s: float
