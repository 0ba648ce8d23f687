"""Counts the flushes that fsync sends to a device: the proof of `barrier`, whatever the options say.

The counter is the field "flush I/Os" of the disk's `stat` (Documentation/block/stat.rst, since Linux
5.5): flush requests that the device completed. It belongs to whole disks only (partitions keep
theirs at zero, block/blk-flush.c), and a device that passes bios on (device mapper, md) counts at the
disks below it. Counters survive the detaching of a loop device, so only differences mean anything.
"""

from __future__ import annotations

import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.host.whole_folder import sync_directory
from bedplate.model.filesystem import flushed_by_nothing
from bedplate.model.visit import FlushCount

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from bedplate.host.devices.device import AttachedDevice
    from bedplate.model.cell import FilesystemLevels

APPENDING = "appending"
OVERWRITING = "overwriting"
LOGGING = "logging"
WRITE_BYTES = 8192

# Documentation/block/stat.rst counts from one: 16 is "flush I/Os", 17 "flush ticks".
_FLUSH_FIELD = 16
_FILE_NAME = ".bedplate-flush-count"


@dataclass(frozen=True)
class FsyncMeasure:
    """Flushes by device and pattern, and the plain cost of a call.

    `counts` is empty where this kernel does not count flushes. `call_us_median` is by pattern.
    """

    counts: tuple[FlushCount, ...]
    call_us_median: Mapping[str, float]


def measure_fsyncs(
    target: Path, data: AttachedDevice, journal: AttachedDevice | None = None, *, calls: int = 50
) -> FsyncMeasure:
    """Count over `calls` appends of 8 KiB with fsync, as many overwrites with fsync, and with fdatasync.

    As PostgreSQL does: its files grow; at a checkpoint they are overwritten, and synced long after the
    time of their last change has moved on; its WAL is overwritten with fdatasync. What mounting and
    creating left behind is synced first. The file is removed in any case.

    A journal on the disk of the data (another partition of it) has its flushes counted there, once: they
    empty the one cache of both.
    """
    devices = {"data": data}
    if journal is not None and not {*disks_below(journal.queue_name)} <= {*disks_below(data.queue_name)}:
        devices["journal"] = journal
    path = target / _FILE_NAME
    payload = os.urandom(WRITE_BYTES)  # not zeros: a file system may store those without a write
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    counts: list[FlushCount] = []
    medians: dict[str, float] = {}
    try:
        # One unmeasured append, so that the first commit after the mount is not counted.
        os.pwrite(file, payload, 0)
        os.fsync(file)
        sync_directory(target)
        for pattern, sync, first in (
            (APPENDING, os.fsync, 1),
            (OVERWRITING, _sync_changed, 0),
            (LOGGING, os.fdatasync, 0),
        ):
            before = {name: flushes_completed(device.queue_name) for name, device in devices.items()}
            durations_us = [
                _timed(file, payload, (first + call) * WRITE_BYTES, sync) for call in range(calls)
            ]
            for name, device in devices.items():
                after, start = flushes_completed(device.queue_name), before[name]
                if after is not None and start is not None:
                    counts.append(FlushCount(name, pattern, calls, after - start))
            medians[pattern] = statistics.median(durations_us)
    finally:
        os.close(file)
        path.unlink()
    return FsyncMeasure(tuple(counts), medians)


def judge(counts: Iterable[FlushCount], barrier: bool | None) -> tuple[str, ...]:  # noqa: FBT001
    """Reasons why the counted flushes are not what `barrier` asks for; none if it was not asked for.

    `barrier = true` needs at least one flush per appending fsync over both devices. `barrier = false`
    needs none at all, in either pattern: what mounting itself may flush (a guest's kernel was seen to
    count one) happens before counting starts.
    """
    found = tuple(counts)
    if barrier is None:
        return ()
    if not any(count.pattern == APPENDING for count in found):
        return ("this kernel does not count flushes (the disk's stat has no field 16): barrier is unproved",)
    if barrier:
        appending = [count for count in found if count.pattern == APPENDING]
        calls, flushes = max(count.calls for count in appending), sum(count.flushes for count in appending)
        if flushes >= calls:
            return ()
        found_out = f"barrier = true, but {calls} appending fsyncs flushed {flushes} times"
        return (f"{found_out}; is the device's write_cache 'write through'? Then the kernel sends none",)
    return tuple(
        f"barrier = false, but {count.calls} {count.pattern} fsyncs flushed "
        f"the {count.device} device {count.flushes} times"
        for count in found
        if count.flushes > 0
    )


def write_back_wanted(levels: FilesystemLevels) -> bool:
    """False if `barrier = false` must be had by the device's switch: set `write through` before mkfs."""
    return not flushed_by_nothing(levels)


def parse_flushes(stat: str) -> int | None:
    """The flush requests completed in a disk's `stat`; None on a kernel that does not count them."""
    fields = stat.split()
    return int(fields[_FLUSH_FIELD - 1]) if len(fields) > _FLUSH_FIELD else None


def flushes_completed(queue_name: str, *, sys_block: Path = Path("/sys/block")) -> int | None:
    """Flushes completed by the disk, or by the disks below it; None if one of them does not count."""
    total = 0
    for disk in disks_below(queue_name, sys_block=sys_block):
        flushes = parse_flushes((sys_block / disk / "stat").read_text(encoding="ascii"))
        if flushes is None:
            return None
        total += flushes
    return total


def disks_below(queue_name: str, *, sys_block: Path = Path("/sys/block")) -> tuple[str, ...]:
    """The whole disks that a block device finally stands on: itself, unless it has slaves."""
    slaves = sorted((sys_block / queue_name / "slaves").glob("*"))
    found: list[str] = []
    for slave in slaves:
        # A slave may be a partition; its folder stands inside its disk's.
        place = slave.resolve()
        disk = place.parent.name if (place / "partition").exists() else place.name
        found += disks_below(disk, sys_block=sys_block)
    return tuple(dict.fromkeys(found)) if slaves else (queue_name,)


def _timed(file: int, payload: bytes, offset: int, sync: Callable[[int], None]) -> float:
    os.pwrite(file, payload, offset)
    started = time.perf_counter_ns()
    sync(file)
    return (time.perf_counter_ns() - started) / 1000


def _sync_changed(file: int) -> None:
    """Fsync of a file whose time of change is another one than at the last fsync.

    The kernel's clock for that ticks every few milliseconds, and an fsync may be faster: then there
    would be no change of the inode to write, as there always is at a checkpoint.
    """
    status = os.fstat(file)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000_000))
    os.fsync(file)
