"""The power-cut recorder as it is started and ended: disks in memory, every write to which is logged.

The recorder (drivers/power_cut_recorder.c, where the log's format stands) is a file system in user space, and a
loop device goes above each of its disks. Whatever is done to them is in its log, in one order, from the first write
of mkfs on.
"""

from __future__ import annotations

import json
import math
import os
import select
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bedplate.cuts.faults import ByteRange
from bedplate.errors import BedplateError, OutputNotUnderstood, RequirementMissing, VerifyFailed
from bedplate.host import ledger, process
from bedplate.host.command import Commands, environment
from bedplate.host.interruption import defer_interruptions
from bedplate.host.ledger import Holding, KnownHoldings, Ledger
from bedplate.host.mount import type_below, unmount
from bedplate.host.scratch_device import AttachedDevice, attach_loop, detach_loop
from bedplate.host.tunables import queue_settings, restore, set_tunable
from bedplate.model.devices import Disk, Latency, Law
from bedplate.model.visit import ReadBack
from bedplate.units import KERNEL_SECTOR_BYTES, KIB, MIB, format_size

DRIVER = "power_cut_recorder"
FUSE = Path("/dev/fuse")

_MEMORY = Path("/proc/meminfo")

# What the recorder calls itself in the table of mounts.
_SOURCE = "bedplate-recorder"

_READY = b'{"ready": true}'
_START_LIMIT_S = 30.0
_END_LIMIT_S = 30.0
_LINES_QUOTED = 6


class RecorderFailed(BedplateError):
    """The recorder did not start, died, or could not log everything; what it logged before is whole."""

    code = "recorder-failed"


@dataclass(frozen=True)
class RecorderSizes:
    """Sizes in bytes: the disk, an external journal if there is one, and what the log may grow to; 0: nothing is logged."""

    disk_bytes: int
    log_limit_bytes: int
    journal_bytes: int | None = None


@dataclass(frozen=True)
class RecordedDevice:
    """What one disk was asked for so far; `name` is `disk` or `journal`."""

    name: str
    bytes: int
    writes: int
    write_bytes: int
    flushes: int
    discards: int
    reads: int
    read_bytes: int


@dataclass(frozen=True)
class RecorderStatus:
    """What was logged so far. `failure` says why nothing more was; `is_sealed` that nothing more will be.

    `fault_hits` are requests that an order to fail hit, `first_hit` where the first of them was; None of none and of a flush.
    `memory_locked` and `io_flusher` are the kernel's answers to mlockall(2) and PR_SET_IO_FLUSHER.
    `served` are requests that were answered at a moment of their own, `late` those that were answered later than it by more than
    a twentieth of what they should take; `due_ns` is what all should take together, `late_ns` how far behind all were, `late_ns_max` the latest.
    `is_real_time` says whether the kernel schedules it before others.
    """

    entries: int
    log_bytes: int
    marks: int
    is_sealed: bool
    fault_hits: int
    first_hit: ByteRange | None
    memory_locked: bool
    io_flusher: bool
    library: str
    devices: tuple[RecordedDevice, ...]
    failure: str | None
    served: int = 0
    late: int = 0
    due_ns: int = 0
    late_ns: int = 0
    late_ns_max: int = 0
    is_real_time: bool = False


def recorder_reasons() -> tuple[str, ...]:
    """Why no recorder can run here; empty when one can. Touches nothing."""
    if not FUSE.is_char_device():
        return (f"{FUSE} is not there, through which the power-cut recorder works; run `modprobe fuse`",)
    if not os.access(FUSE, os.R_OK | os.W_OK):
        return (f"{FUSE} cannot be opened, through which the power-cut recorder works; be root",)
    return ()


def parse_status(text: str) -> RecorderStatus:
    """The recorder's document; OutputNotUnderstood quotes what is none."""
    try:
        found = json.loads(text)
        failure, hit = found["failure"], ByteRange(int(found["fault_at"]), int(found["fault_bytes"]))
        return RecorderStatus(
            entries=int(found["entries"]),
            log_bytes=int(found["log_bytes"]),
            marks=int(found["marks"]),
            is_sealed=found["sealed"] is True,
            fault_hits=int(found["fault_hits"]),
            first_hit=hit if hit.length else None,
            memory_locked=found["memory_locked"] is True,
            io_flusher=found["io_flusher"] is True,
            library=str(found["library"]),
            devices=tuple(_device(device) for device in found["devices"]),
            failure=None if failure is None else str(failure),
            served=int(found["served"]),
            late=int(found["late"]),
            due_ns=int(found["due_ns"]),
            late_ns=int(found["late_ns"]),
            late_ns_max=int(found["late_ns_max"]),
            is_real_time=found["real_time"] is True,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise OutputNotUnderstood("the power-cut recorder", expected="its document", found=text) from error


class Recorder:
    """One recorder that runs. `disk`, `journal` (None without one) and `mark` are its files.

    A client writes one line to `mark`, at most 468 bytes, in one write(2), for what it was promised. `log` is what
    `cuts/log.py` reads, whole once the recorder is sealed or stopped. Everything stands in
    the ledger. Begin it in the thread that outlives it: the kernel ends it with that thread.
    """

    def __init__(
        self,
        folder: Path,
        running: subprocess.Popen[bytes],
        *,
        has_journal: bool,
        ledger: KnownHoldings,
        commands: Commands,
    ) -> None:
        self._target = _target(folder)
        self.log = folder / "log"
        self.disk = self._target / "disk"
        self.journal = self._target / "journal" if has_journal else None
        self.mark = self._target / "mark"
        self._folder = folder
        self._running = running
        self._ledger = ledger
        self._commands = commands
        self._ended: RecorderStatus | None = None

    @classmethod
    def start(
        cls,
        driver: Path,
        folder: Path,
        sizes: RecorderSizes,
        *,
        ledger: KnownHoldings,
        commands: Commands,
        late_us: int = 0,
        service: tuple[str, ...] = (),
    ) -> Recorder:
        """Start it in `folder`, which is empty and on a tmpfs, and wait until its files are there.

        Each write is answered up to `late_us` microseconds after it came, in any order; 0: at once, in the order in which
        they come. `service` are words of its command line that make it a device with latency.
        RequirementMissing with every reason where it cannot run or has no room for its log; RecorderFailed
        with its own words where it did not start.
        """
        reasons = (*recorder_reasons(), *room_reasons(folder, sizes))
        if reasons:
            raise RequirementMissing(*reasons)
        target = _target(folder)
        target.mkdir(mode=0o755)
        argv = (*_command_line(driver, folder, sizes, late_us), *service)
        ledger.note(Holding("mount", str(target), _SOURCE))
        commands.record.append(argv)
        recorder: Recorder | None = None
        try:
            with defer_interruptions():
                running = _popen(argv, folder)
                has_journal = sizes.journal_bytes is not None
                recorder = cls(folder, running, has_journal=has_journal, ledger=ledger, commands=commands)
                ledger.note(Holding("process", str(running.pid), process.start_time(running.pid) or ""))
            recorder._wait_until_ready()
            return recorder  # noqa: TRY300 -- behind the `try` nobody would end it
        except BaseException:
            if recorder is None:
                ledger.settled(Holding("mount", str(target)))
            else:
                recorder.abandon()
            raise

    @property
    def disks(self) -> tuple[Path, ...]:
        """`disk`, and `journal` where there is one."""
        return (self.disk,) if self.journal is None else (self.disk, self.journal)

    @property
    def stores(self) -> tuple[Path, ...]:
        """What these hold: blank files, which may be given contents before anything is attached. The log has none of that."""
        return tuple(self._folder / "store" / disk.name for disk in self.disks)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._running.pid

    @property
    def status_file(self) -> Path:
        """Its counters so far, as one document of JSON."""
        return self._target / "status"

    def status(self) -> RecorderStatus:
        """What was logged so far: `entries` is the position of the next one. RecorderFailed if it has died."""
        try:
            return parse_status(self.status_file.read_text(encoding="utf-8", errors="replace"))
        except OSError as error:
            raise RecorderFailed(
                f"the power-cut recorder does not answer ({error.strerror}): {self._quoted_errors()}"
            ) from error

    def write_mark(self, text: str) -> None:
        """One mark, behind everything that was answered before."""
        mark = os.open(self.mark, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(mark, text.encode())
        finally:
            os.close(mark)

    def order_fault(self, line: str) -> None:
        """From now on its disk fails as ordered (`cuts/faults.py`), or no more."""
        fault = os.open(self._target / "fault", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fault, line.encode())
        finally:
            os.close(fault)

    def attach(
        self, image: Path, *, write_back: bool = True, sector_bytes: int = KERNEL_SECTOR_BYTES
    ) -> AttachedDevice:
        """A loop device over `disk` or `journal` with sectors of that size, its write cache set and read back.

        VerifyFailed where the kernel does not take it: without flushes a log says nothing of them.
        """
        device = attach_loop(
            image, ledger=self._ledger, commands=self._commands, in_memory=True, sector_bytes=sector_bytes
        )
        try:
            queue_settings(
                device, read_ahead_kb=None, scheduler=None, write_back=write_back, ledger=self._ledger
            )
        except BaseException:
            self.detach(device)
            raise
        return device

    def detach(self, device: AttachedDevice) -> None:
        """Give its queue and the loop device back; nothing may be mounted on it. Safe to repeat."""
        key = Holding("write_cache", device.queue_name).key
        for holding in self._ledger.holdings():
            if holding.key == key:
                outcome = ledger.restore_write_cache(holding.name, holding.detail)
                if outcome.problem is not None:
                    raise VerifyFailed(outcome.problem)
                self._ledger.settled(holding)
        detach_loop(device, ledger=self._ledger, commands=self._commands)

    def seal(self) -> RecorderStatus:
        """End the log; the disks go on. RecorderFailed if the log lacks anything."""
        try:
            (self._target / "seal").write_bytes(b"seal\n")
        except OSError as error:
            raise RecorderFailed(
                f"the log of the power-cut recorder cannot be ended ({error.strerror}): {self._quoted_errors()}"
            ) from error
        return _require_sound(self.status())

    def stop(self) -> RecorderStatus:
        """Unmount it and let it end; what the disks held is deleted, the log stays. Safe to repeat.

        RecorderFailed if the log lacks anything, when all is given back. DeviceInUse if a loop device is left above it.
        """
        if self._ended is None:
            unmount(self._target, commands=self._commands)
            said = self._last_words()
            self._settle()
            if not said.strip():
                raise RecorderFailed(
                    f"the power-cut recorder ended with status {self._running.returncode} and no document: {self._quoted_errors()}"
                )
            self._ended = parse_status(said.decode(errors="replace"))
        return _require_sound(self._ended)

    def abandon(self) -> None:
        """Kill it and give everything back, whatever it did; for a recording that failed. Safe to repeat."""
        self._running.kill()
        self._running.wait()
        unmount(self._target, commands=self._commands)
        self._settle()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.stop()
        else:
            self.abandon()

    def _wait_until_ready(self) -> None:
        assert self._running.stdout is not None  # noqa: S101 -- Popen was given a pipe
        words, deadline = b"", time.monotonic() + _START_LIMIT_S
        while b"\n" not in words:
            ready, _, _ = select.select([self._running.stdout], [], [], max(0.0, deadline - time.monotonic()))
            piece = os.read(self._running.stdout.fileno(), 4096) if ready else b""
            if not piece:
                raise RecorderFailed(f"the power-cut recorder did not start: {self._quoted_errors()}")
            words += piece
        if words.strip() != _READY:
            raise OutputNotUnderstood(
                "the power-cut recorder", expected=_READY.decode(), found=words.decode(errors="replace")
            )

    def _last_words(self) -> bytes:
        """What it prints at its end, which has come: nothing reaches it any more.

        The kernel says so only once no other namespace has a copy of the mount, which any unshare(2) of anybody's
        makes; so it is told.
        """
        self._running.terminate()
        try:
            said, _ = self._running.communicate(timeout=_END_LIMIT_S)
        except subprocess.TimeoutExpired as error:
            self.abandon()
            raise RecorderFailed(
                f"the power-cut recorder did not end within {_END_LIMIT_S:g} s after it was unmounted"
            ) from error
        return said

    def _settle(self) -> None:
        if self._running.stdout is not None:
            self._running.stdout.close()
        self._ledger.settled(Holding("process", str(self._running.pid)))
        self._ledger.settled(Holding("mount", str(self._target)))
        store = self._folder / "store"
        for path in (store / "disk", store / "journal"):
            path.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            store.rmdir()

    def _quoted_errors(self) -> str:
        text = (self._folder / "errors").read_text(encoding="utf-8", errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return " | ".join(lines[:_LINES_QUOTED]) or "(it printed nothing)"


def _target(folder: Path) -> Path:
    return folder / "recorder"


def _command_line(driver: Path, folder: Path, sizes: RecorderSizes, late_us: int) -> tuple[str, ...]:
    late = ("--late-us", str(late_us)) if late_us else ()
    journal = () if sizes.journal_bytes is None else ("--journal-bytes", str(sizes.journal_bytes))
    return (
        str(driver),
        *("--directory", str(folder)),
        *("--mount", str(_target(folder))),
        *("--disk-bytes", str(sizes.disk_bytes)),
        *journal,
        *(("--log-limit-bytes", str(sizes.log_limit_bytes)) if sizes.log_limit_bytes else ()),
        *late,
        *("--parent", str(os.getpid())),
    )


def _popen(argv: tuple[str, ...], folder: Path) -> subprocess.Popen[bytes]:
    try:
        with (folder / "errors").open("wb") as errors:
            return subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd="/",
                env=environment(),
                # An interruption from the keyboard is for the visit, which has to unmount first.
                start_new_session=True,
            )
    except OSError as error:
        raise RecorderFailed(f"{argv[0]} cannot be started: {error.strerror}") from error


def room_reasons(folder: Path, sizes: RecorderSizes) -> tuple[str, ...]:
    """Why a folder has no place for a recording; empty where it has."""
    kind = type_below(folder)
    if kind not in {"tmpfs", "ramfs"}:
        where = f"the power-cut recorder's log would lie in {folder}, which is on {kind or 'an unknown file system'}"
        return (f"{where}; name a directory on a tmpfs, such as /dev/shm",)
    room = os.statvfs(folder)
    if sizes.log_limit_bytes:
        # What the disks hold takes room too, but never more than what was logged of them.
        needed_bytes = 2 * sizes.log_limit_bytes
        needs = f"a log of {format_size(sizes.log_limit_bytes)} and what the disks hold need {format_size(needed_bytes)}"
        way_out = "record less"
    else:
        needed_bytes = sizes.disk_bytes + (sizes.journal_bytes or 0)
        needs = f"an emulated device, whose data is in memory, needs {format_size(needed_bytes)}"
        way_out = "use a smaller image_size"
    reasons = []
    free_bytes = room.f_bavail * room.f_frsize
    if kind == "tmpfs" and free_bytes < needed_bytes:
        has = f"{folder} has {format_size(free_bytes)} free"
        reasons.append(f"{has}; {needs}: {way_out}, or make the tmpfs larger")
    available_bytes = _available_bytes()
    if available_bytes is not None and available_bytes < needed_bytes:
        has = f"the machine has {format_size(available_bytes)} of memory available"
        reasons.append(f"{has}; {needs}: {way_out}, or end what else takes memory")
    return tuple(reasons)


def _available_bytes() -> int | None:
    """What can be had without swapping (proc_meminfo(5)); a tmpfs may be larger than that."""
    for line in _MEMORY.read_text(encoding="utf-8").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * KIB
    return None


def _require_sound(recorder_status: RecorderStatus) -> RecorderStatus:
    if recorder_status.failure is not None:
        raise RecorderFailed(recorder_status.failure)
    return recorder_status


def _device(document: Mapping[str, object]) -> RecordedDevice:
    numbers = {
        name: int(str(document[name]))
        for name in ("bytes", "writes", "write_bytes", "flushes", "discards", "reads", "read_bytes")
    }
    return RecordedDevice(str(document["name"]), **numbers)


READ, WRITE, FLUSH = KINDS = ("read", "write", "flush")

_PROBED_BYTES = 64 * MIB
_PROBE_S = "1"
_PROBE_LIMIT_S = 30.0
_PROBED_DEPTH = 32

# Of what the way takes; the rest is for what others need of the processors meanwhile.
_BUSY_SHARE_MAX = 0.7

# The way of a busy moment is no property of the machine: a study must not end for it.
_TRIES = 3

# This share of requests may be shorter than the way here, and is then as long as the way.
_BELOW_THE_WAY = 0.1

# As much as the kernel hands to a file system in user space at once: a larger request would be two, each with its own time.
_LARGEST_REQUEST_KB = 1024


@dataclass(frozen=True)
class WayThere:
    """What the way to a device in user space and back takes on this machine, half of the time; and how many a second it takes at depth 32."""

    read_ns: float
    write_ns: float
    flush_ns: float
    reads_per_s: float
    writes_per_s: float

    def of(self, kind: str) -> float:
        """Of a read, a write or a flush, in ns."""
        return {READ: self.read_ns, WRITE: self.write_ns, FLUSH: self.flush_ns}[kind]

    @property
    def options(self) -> tuple[str, ...]:
        """What the device subtracts."""
        return tuple(word for kind in KINDS for word in (f"--{kind}-path-ns", f"{self.of(kind):.0f}"))

    @property
    def facts(self) -> dict[str, float]:
        """For the record, in microseconds and per second."""
        return {
            **{f"latency_way_us_{kind}": round(self.of(kind) / 1000, 1) for kind in KINDS},
            "latency_way_reads_per_s": round(self.reads_per_s),
            "latency_way_writes_per_s": round(self.writes_per_s),
        }


@dataclass(frozen=True)
class Probed:
    """One probe of a device: `ns_p50` and `ns_p99` from the asking to the answer of one request of 4 KiB."""

    count: int
    seconds: float
    ns_p50: float
    ns_p99: float

    @property
    def per_s(self) -> float:
        """Requests a second."""
        return self.count / self.seconds


def probe_device(driver: Path, device: str, kind: str, depth: int, commands: Commands) -> Probed:
    """One second of reads, writes (of its first 64 MiB) or flushes at this depth; needs root."""
    argv = [str(driver), "--probe", device, "--kind", kind, "--depth", str(depth), "--seconds", _PROBE_S]
    text = commands.run(argv, timeout_s=_PROBE_LIMIT_S).stdout
    try:
        found = json.loads(text)
        return Probed(
            int(found["count"]), float(found["seconds"]), float(found["ns_p50"]), float(found["ns_p99"])
        )
    except (ValueError, KeyError, TypeError) as error:
        raise OutputNotUnderstood("the probe of a device", expected="its document", found=text) from error


def way_there(driver: Path, folder: Path, *, ledger: Ledger, commands: Commands) -> WayThere:
    """Measured in some five seconds on a small device that adds nothing; `folder` is empty, on a tmpfs, and empty again afterwards."""
    sizes = RecorderSizes(disk_bytes=_PROBED_BYTES, log_limit_bytes=0)
    with ExitStack() as undo:
        recorder = undo.enter_context(
            Recorder.start(
                driver, folder, sizes, ledger=ledger, commands=commands, service=_NOTHING_ADDED.options
            )
        )
        device = _attached(recorder, undo)

        def probed(kind: str, depth: int) -> Probed:
            return probe_device(driver, device.path, kind, depth, commands)

        # Written first: a read of what was never written would be of no page.
        writes = probed(WRITE, _PROBED_DEPTH)
        return WayThere(
            read_ns=probed(READ, 1).ns_p50,
            write_ns=probed(WRITE, 1).ns_p50,
            flush_ns=probed(FLUSH, 1).ns_p50,
            reads_per_s=probed(READ, _PROBED_DEPTH).per_s,
            writes_per_s=writes.per_s,
        )


_NOTHING_ADDED = Latency("path", "0ms", "0ms", "0ms", queue_depth=64)


def refusals(latency: Latency, way: WayThere, *, share_max: float = _BUSY_SHARE_MAX) -> tuple[str, ...]:
    """Why this machine cannot be such a device; empty where it can. `share_max` of what goes through it may take."""
    if latency.is_path_alone:
        return ()
    if latency.disk is not None:
        return _disk_refusals(latency.name, latency.disk, way)
    reasons = []
    for kind in KINDS:
        words = getattr(latency, kind)
        short_ns = Law.parse(words).quantile_ns(_BELOW_THE_WAY)
        if short_ns < way.of(kind):
            reasons.append(
                f"latency {latency.name}: {kind} = {words!r} asks for answers within {short_ns / 1000:.0f} us, and the way through user "
                f"space takes {way.of(kind) / 1000:.0f} us here; ask for longer times, or measure on a real device"
            )
    for kind, most in ((READ, way.reads_per_s), (WRITE, way.writes_per_s)):
        wanted = latency.most_per_s(kind)
        if wanted > most * share_max:
            shown = "any number" if math.isinf(wanted) else f"{wanted:,.0f}"
            reasons.append(
                f"latency {latency.name}: at queue_depth = {latency.queue_depth} it would answer {shown} {kind}s a second, and user space "
                f"takes {most:,.0f} here, of which {most * share_max:,.0f} leave room to the database. Ask for a smaller "
                "queue_depth, longer times, or a limit with iops"
            )
    return tuple(reasons)


def _disk_refusals(name: str, model: Disk, way: WayThere) -> tuple[str, ...]:
    """What comes from a cache may be as long as the way; where the heads move faster than that, nothing is left of the model."""
    least_ns, way_ns = model.seek_track_ms * 1e6 / model.speed, max(way.read_ns, way.write_ns)
    if least_ns >= way_ns:
        return ()
    most = max(1, int(model.seek_track_ms * 1e6 / way_ns))
    reason = (
        f"latency {name}: at speed = {model.speed} its shortest seek takes {least_ns / 1000:.0f} us, and the way through user space takes "
        f"{way_ns / 1000:.0f} us here; speed = {most} is the most"
    )
    return (reason,)


def fitting_way(
    latencies: Iterable[Latency], measure: Callable[[], WayThere], *, share_max: float = _BUSY_SHARE_MAX
) -> WayThere:
    """The way there, measured anew where it refuses one of these; RequirementMissing with every reason where it does so three times."""
    wanted, reasons = tuple(latencies), tuple[str, ...]()
    for _ in range(_TRIES):
        way = measure()
        reasons = tuple(
            reason for latency in wanted for reason in refusals(latency, way, share_max=share_max)
        )
        if not reasons:
            return way
    raise RequirementMissing(*reasons)


class LatencyDevice:
    """One that runs, attached. `folder` is on a tmpfs and empty; everything stands in the ledger."""

    def __init__(self, recorder: Recorder, latency: Latency, device: AttachedDevice, undo: ExitStack) -> None:
        self._recorder = recorder
        self._latency = latency
        self._undo = undo
        self.device = device

    @classmethod
    def start(
        cls,
        driver: Path,
        folder: Path,
        latency: Latency,
        size_bytes: int,
        way: WayThere,
        *,
        seed: int,
        ledger: Ledger,
        commands: Commands,
    ) -> LatencyDevice:
        """A blank one. RequirementMissing where this machine cannot be it, or lacks the memory."""
        # Asked with room before the first visit; a moment's neighbour is no reason to end a study. What is late then is counted.
        if reasons := refusals(latency, way, share_max=1.0):
            raise RequirementMissing(*reasons)
        service = (*latency.options, *(() if latency.is_path_alone else way.options), "--seed", str(seed))
        sizes = RecorderSizes(disk_bytes=size_bytes, log_limit_bytes=0)
        with ExitStack() as undo:
            recorder = undo.enter_context(
                Recorder.start(driver, folder, sizes, ledger=ledger, commands=commands, service=service)
            )
            device = _attached(recorder, undo)
            largest = device.queue / "max_sectors_kb"
            if int(largest.read_text()) > _LARGEST_REQUEST_KB:
                tuned = set_tunable(largest, str(_LARGEST_REQUEST_KB), ledger=ledger)
                undo.callback(restore, tuned, ledger=ledger)
            return cls(recorder, latency, device, undo.pop_all())

    @property
    def pid(self) -> int:
        """The process behind it, whose memory is the device's."""
        return self._recorder.pid

    @property
    def read_back(self) -> ReadBack:
        """What was asked, and what the running device was started with."""
        words = (Path("/proc") / str(self.pid) / "cmdline").read_text(encoding="utf-8").split("\0")
        asked = self._latency.options
        found = [words[words.index(name) + 1] if name in words else "" for name in asked[::2]]
        effective = " ".join(word for pair in zip(asked[::2], found, strict=True) for word in pair)
        wanted = " ".join(asked)
        return ReadBack("device.latency", wanted, effective, f"/proc/{self.pid}/cmdline", wanted == effective)

    @property
    def status_file(self) -> Path:
        """Where its counters are read."""
        return self._recorder.status_file

    def stop(self) -> None:
        """Detach and end it; what it held is gone. Safe to repeat."""
        self._undo.close()


def _attached(recorder: Recorder, undo: ExitStack) -> AttachedDevice:
    device = recorder.attach(recorder.disk)
    undo.callback(recorder.detach, device)
    if (device.queue.parent / "loop/dio").read_text().strip() != "1":
        raise VerifyFailed(
            f"{device.path} over {recorder.disk} does not do direct I/O, so it would hand over one request at a time; a newer kernel does"
        )
    return device
