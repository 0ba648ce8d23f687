"""What this kernel and these tools refuse, found by trying it on a small image: needs root.

For `bedplate doctor` and for pruning. A block size or mount option that a kernel lacks cannot be
known from its version (distributions change both ways), but trying costs a fraction of a second.
"""

from __future__ import annotations

import os
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bedplate.errors import BedplateError, CommandFailed, PlanError
from bedplate.filesystem.adapter import Site
from bedplate.filesystem.mounted import MountedDisk
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.command import Commands
from bedplate.host.files import sync_directory
from bedplate.host.ledger import Holding, Holdings, Ledger, NoLedger
from bedplate.host.scratch_device import AttachedDevice, detach, losetup
from bedplate.model.cell import FilesystemLevels, digest
from bedplate.model.filesystem import contradictions, flushed_by_nothing, without_age
from bedplate.model.reason import Reason, because
from bedplate.model.visit import FlushCount
from bedplate.units import KERNEL_SECTOR_BYTES, MIB

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
    target: Path, data_device: AttachedDevice, journal: AttachedDevice | None = None, *, calls: int = 50
) -> FsyncMeasure:
    """Count over `calls` appends of 8 KiB with fsync, as many overwrites with fsync, and with fdatasync.

    As PostgreSQL does: its files grow; at a checkpoint they are overwritten, and synced long after the
    time of their last change has moved on; its WAL is overwritten with fdatasync. What mounting and
    creating left behind is synced first. The file is removed in any case.

    A journal on the disk of the data (another partition of it) has its flushes counted there, once: they
    empty the one cache of both.
    """
    devices = {"data": data_device}
    if journal is not None and not {*disks_below(journal.queue_name)} <= {
        *disks_below(data_device.queue_name)
    }:
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


MKFS_REFUSED = "mkfs-refused"
MKFS_WARNED = "mkfs-had-warned"
PASSING_TROUBLE = "passing-trouble"

# What says more of this moment than of the kernel.
_PASSING = re.compile(r"No space left|Input/output error|Cannot allocate|out of memory|quota", re.IGNORECASE)

# mkfs.xfs wants 64 MiB for a log of its own, mkreiserfs 33 MiB for its usual journal.
_JOURNAL_BYTES = 72 * MIB


def probe_refusals(
    levels: FilesystemLevels,
    *,
    commands: Commands,
    directory: Path | None = None,
    ledger: Ledger | None = None,
) -> tuple[Reason, ...]:
    """Why a file system with these levels cannot be had here; empty if it can.

    Makes a sparse image of some hundred MiB in `directory` (the system's temporary one by default),
    makes the file system, mounts it, reads back, and removes everything; what a SIGKILL leaves stands
    in `ledger`, if there is one. Only refusals are returned: PlanError is raised for unsafe options,
    CommandFailed where a tool is missing or no loop device can be had. One that says more of this
    moment than of the kernel (no space left) has the code `PASSING_TROUBLE`, one of mkfs itself `MKFS_REFUSED`.
    """
    filesystem = filesystem_for(levels.type)
    impossible = contradictions(levels)
    if impossible:
        return tuple(because("contradiction", words) for words in impossible)
    if not write_back_wanted(levels):
        # The device's switch does it, whatever the file system is.
        levels = replace(levels, barrier=None)
    levels = replace(levels, features=without_age(levels.features))
    with disk_on_sparse_image(
        levels,
        filesystem.probe_bytes,
        commands=commands,
        directory=directory or Path(tempfile.gettempdir()),
        ledger=ledger or NoLedger(),
    ) as disk:
        warnings: tuple[str, ...] = ()
        step = MKFS_REFUSED
        try:
            warnings = disk.make()
            step = "mount-refused"
            disk.mount_as_asked()
        except PlanError:
            raise
        except BedplateError as failure:
            if isinstance(failure, CommandFailed) and failure.status is None:
                raise  # missing or too slow: that says nothing about the levels
            code = PASSING_TROUBLE if _PASSING.search(failure.said) else step
            return (
                *(because(code, words) for words in failure.reasons),
                *(because(MKFS_WARNED, f"mkfs had warned: {line}") for line in warnings),
            )
    return ()


def probe_key(levels: FilesystemLevels, *, versions: Mapping[str, str]) -> str:
    """What the answer of `probe_refusals` depends on, as a name to keep it under.

    `versions` are the tools', from `Filesystem.versions`; the running kernel's build is added.
    """
    kernel = os.uname()
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    return digest(
        {
            "levels": levels,
            "versions": dict(versions),
            "kernel": [kernel.release, kernel.version, kernel.machine, page_bytes],
        }
    )


@contextmanager
def disk_on_sparse_image(
    levels: FilesystemLevels,
    size_bytes: int,
    *,
    commands: Commands,
    directory: Path,
    ledger: Holdings,
    sector_bytes: int = KERNEL_SECTOR_BYTES,
) -> Iterator[MountedDisk]:
    """A device of that size and sectors, a mount point, and a device for the journal if the levels ask for one; nothing to measure on."""
    with ExitStack() as undo:
        folder = directory / f"bedplate-probe-{os.getpid()}-{os.urandom(4).hex()}"
        target = folder / "mount"
        # In this order a release gives them back in the other one.
        for place in (folder, target):
            _hold(Holding("directory", str(place)), ledger, undo, partial(_removed, place))
            place.mkdir(mode=0o700)
        device = _small_device(
            folder / "image", size_bytes, commands, ledger, undo, sector_bytes=sector_bytes
        )
        journal = None
        if levels.journal == "external":
            journal = _small_device(folder / "journal", _JOURNAL_BYTES, commands, ledger, undo)
        yield undo.enter_context(MountedDisk(Site(levels, device, target, commands, journal), ledger))


def _small_device(
    image: Path,
    size_bytes: int,
    commands: Commands,
    ledger: Holdings,
    undo: ExitStack,
    *,
    sector_bytes: int = KERNEL_SECTOR_BYTES,
) -> AttachedDevice:
    """A sparse image on a loop device: neither direct I/O nor full allocation, as nothing is measured."""
    _hold(Holding("image", str(image)), ledger, undo, partial(_removed, image))
    _hold(Holding("loop", str(image)), ledger, undo, partial(_detached, image, commands))
    with image.open("xb") as file:
        file.truncate(size_bytes)
    own_sectors = () if sector_bytes == KERNEL_SECTOR_BYTES else ("--sector-size", str(sector_bytes))
    name = losetup(image, commands, *own_sectors)
    return AttachedDevice(f"/dev/{name}", name, name, size_bytes, image)


def _removed(path: Path) -> bool:
    """A folder that something is still mounted below stays, and says nothing: the unmount has."""
    with suppress(OSError):
        path.rmdir() if path.is_dir() else path.unlink()
    return not path.exists()


def _detached(image: Path, commands: Commands) -> bool:
    detach(image, commands)
    return True


def _hold(holding: Holding, ledger: Holdings, undo: ExitStack, give_back: Callable[[], bool]) -> None:
    """Before it is taken. What `give_back` does not say is gone, or is interrupted in, is left to the ledger's release."""

    def end() -> None:
        if give_back():
            ledger.settled(holding)

    undo.callback(end)
    ledger.note(holding)
