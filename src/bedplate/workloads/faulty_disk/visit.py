"""The runs of a disk that fails: one recording for each fault, and what is left of it."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias

from bedplate import registry
from bedplate.cuts.blame import WrittenPlace
from bedplate.cuts.faults import (
    CLEAR_LINE,
    CONTROLS,
    DEFAULT_FAULTS,
    RANGES_MOST,
    TRIES_FILE,
    ByteRange,
    DiskFault,
    Fault,
    FaultEffect,
    FaultOperation,
    FaultOrder,
    FaultRecord,
    FaultVerdict,
    FullFilesystem,
    NoFault,
    Place,
    Rot,
    Seen,
    detected_by,
    fault_named,
    moved_line,
    verdict_of,
)
from bedplate.cuts.log import Acknowledgements, read_log
from bedplate.cuts.points import within_bound
from bedplate.cuts.records import ENOSPC, IMAGE_BYTES, CutPoint, Placement, PointOutcome, PointRecord, Profile
from bedplate.errors import BedplateError, CommandFailed, CommandNotStarted, KilledFromOutside
from bedplate.filesystem.after_cut import complaints_of, leaves_journal_to_repair
from bedplate.filesystem.blocks import SUPERBLOCK, Layout, PoolAtRest, RestingBlocks
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.command import Commands
from bedplate.host.files import folders_below
from bedplate.host.kernel_log import KernelLog
from bedplate.host.pages import extents_of
from bedplate.host.recorder import Recorder
from bedplate.model import codec
from bedplate.model.cell import RunSpec
from bedplate.model.engines import ENGINE
from bedplate.model.filesystem import TRAITS
from bedplate.model.free_space import AgedCopy
from bedplate.model.plan import model_of
from bedplate.model.reason import reasons_of
from bedplate.model.visit import TimedItem
from bedplate.units import MIB, format_size
from bedplate.visit.cuts import WRITER_NOT_ENDED, Checkpoints, CutWriter, FaultEngine
from bedplate.visit.declaration import UntornWrites
from bedplate.visit.recording import Recording, ToolFailed, VisitContext, Workload
from bedplate.visit.server import CONNECTION_LOST
from bedplate.workloads.faulty_disk.model import DURATION_S, FAULTS_LEVEL, TRIES, WORKLOAD
from bedplate.workloads.power_cut.bench import PowerBench, RecordedSetup, ReplayJob, subject_of
from bedplate.workloads.power_cut.log import OwnDiskWorkload, interruption_behind
from bedplate.workloads.power_cut.visit import measured_span

if TYPE_CHECKING:
    FinderAtRest: TypeAlias = Callable[[Sequence[Path], Commands, Sequence[int]], RestingBlocks]

# Their FIEMAP gives addresses of the file system's own, or none; of Btrfs' the chunk tree says where they lie, and of ZFS its debugger,
# on a disk at rest (`filesystem/blocks.py`).
_OWN_ADDRESSES = ("btrfs", "zfs", "bcachefs")

# A block that is written goes to a new place, which nobody knows before.
_COPIES_ON_WRITE = (*_OWN_ADDRESSES, "nilfs2")

_EVERYWHERE = "**/*"

_SECTOR = 512

_GONE = (errno.ENOENT, errno.ENAMETOOLONG)

_NO_MAP = (errno.EOPNOTSUPP, errno.ENOTTY)

# Offset and length of the first copy, by the kernel's sources (include/uapi, include/linux, fs/*/): the part that a mount reads, as rot
# in the rest of its block shows nothing.
_SUPERBLOCKS: Mapping[str, ByteRange] = {
    **dict.fromkeys(("ext2", "ext3", "ext4"), ByteRange(1024, 1024)),
    # Behind their first sector are a name (f2fs) and what is reserved (nilfs2).
    **dict.fromkeys(("f2fs", "nilfs2"), ByteRange(1024, _SECTOR)),
    "xfs": ByteRange(0, _SECTOR),
    "btrfs": ByteRange(64 * 1024, 4096),
    "jfs": ByteRange(32 * 1024, _SECTOR),
}

# What a debugger finds of a file system that is not mounted.
_AT_REST: Mapping[Place, Callable[[PoolAtRest, Sequence[int]], RestingBlocks]] = {
    Place.LOG: lambda disk, numbers: disk.files(numbers),
    Place.DATA: lambda disk, numbers: disk.files(numbers),
    Place.INODE: lambda disk, numbers: disk.inodes(numbers),
    Place.SUPERBLOCK: lambda disk, _: disk.superblock(),
}

# Where a layout has them. Inodes of ext are in its metadata too.
_AREAS: Mapping[Place, WrittenPlace] = {
    Place.JOURNAL: WrittenPlace.JOURNAL,
    Place.METADATA: WrittenPlace.METADATA,
}


def _copied(filesystem: str) -> str:
    return f"{filesystem} writes each block to a new place, which nobody knows before"


class PlaceUnknown(Exception):
    """A place cannot be found on the disk: then nothing is hit, and there is no result."""


def wants_layout(place: Place, filesystem: str) -> bool:
    """Whether a place is found by what the file system's own tools say of the disk."""
    if place in _AREAS or place is Place.INODE:
        return True
    return filesystem in _OWN_ADDRESSES and place in (Place.LOG, Place.DATA)


@dataclass(frozen=True)
class DiskMap:
    """Whose the blocks of a recorded disk are: the engine's files by their maps, the file system's own by its tools, as `layout`.

    `journal_bytes` is the size of an external journal's device, None without one.
    """

    engine: FaultEngine
    data_directory: Path
    filesystem: str
    layout: Layout = field(default_factory=Layout)
    journal_bytes: int | None = None

    def is_on_journal(self, place: Place) -> bool:
        """Whether a place is the device of an external journal, and no part of the disk."""
        return place is Place.JOURNAL and self.journal_bytes is not None

    def ranges(self, place: Place, *, is_written: bool = False) -> tuple[ByteRange, ...]:
        """The blocks of a place as they are now, none for anywhere; PlaceUnknown where they cannot be found, with the reason.

        `is_written` asks for where the next writes go.
        """
        if place is Place.ANYWHERE:
            return ()
        if place is Place.SUPERBLOCK:
            if self.filesystem not in _SUPERBLOCKS:
                raise PlaceUnknown(f"where {self.filesystem} has its superblock is not known here")
            return (_SUPERBLOCKS[self.filesystem],)
        if place is Place.JOURNAL and self.journal_bytes is not None:
            return (ByteRange(0, self.journal_bytes),)
        if place in _AREAS:
            return self._own_areas(place, is_written=is_written)
        if place is Place.INODE:
            return self._inodes()
        return self._files(place, is_written=is_written)

    def strangers(self, hit: ByteRange, place: Place) -> tuple[Path, ...]:
        """Files of the engine that have a part of what was hit and are of another place: blocks are given away while clients write."""
        others = {Place.LOG: Place.DATA, Place.DATA: Place.LOG}
        if place not in others:
            return ()
        paths, mine = self.files(others[place]), self.files(place)
        return tuple(
            path
            for path in paths
            if path not in mine and any(_meet(hit, each) for each in self._extents([path]))
        )

    def files(self, place: Place) -> tuple[Path, ...]:
        """The files of a place."""
        patterns = self.engine.log_files if place is Place.LOG else self.engine.data_files
        found = (path for pattern in patterns for path in self._matching(pattern))
        return tuple(path for path in found if path.is_file() and not path.is_symlink())

    def _matching(self, pattern: str) -> Sequence[Path]:
        """A stranger's folders may lie thousands deep, which a glob follows by calling itself."""
        if pattern != _EVERYWHERE:
            return sorted(self.data_directory.glob(pattern))
        below = folders_below(self.data_directory)
        return sorted(Path(entry.path) for _, entries in below for entry in entries)

    def numbers(self, place: Place) -> tuple[int, ...]:
        """The inode numbers of a place's files, by which they are found at rest; none of what is no file's. PlaceUnknown without a file."""
        if place in (Place.SUPERBLOCK, Place.METADATA):
            return ()
        if place is Place.INODE:
            return tuple(sorted(self._engine_inodes()))
        patterns = self._patterns(place)
        found = self._inode_numbers(place)
        if not found:
            raise PlaceUnknown(f"there is no file of {', '.join(patterns)} yet")
        return tuple(sorted(found))

    def _inode_numbers(self, *places: Place) -> set[int]:
        return {path.stat().st_ino for place in places for path in self.files(place)}

    def _patterns(self, place: Place) -> tuple[str, ...]:
        patterns = self.engine.log_files if place is Place.LOG else self.engine.data_files
        if not patterns:
            raise PlaceUnknown("the engine has no log of its own")
        return patterns

    def _files(self, place: Place, *, is_written: bool) -> tuple[ByteRange, ...]:
        patterns = self._patterns(place)
        if is_written and self.filesystem in _COPIES_ON_WRITE:
            raise PlaceUnknown(_copied(self.filesystem))
        if self.filesystem in _OWN_ADDRESSES and not self.layout.chunks:
            raise PlaceUnknown(
                f"{self.filesystem} does not say where on the disk a file is, as long as it is mounted"
            )
        found = self._extents(self.files(place))
        if not found:
            raise PlaceUnknown(f"no file of {', '.join(patterns)} has a block of the disk yet")
        return found

    def _own_areas(self, place: Place, *, is_written: bool) -> tuple[ByteRange, ...]:
        own = (area for area in self.layout.areas if area.place is _AREAS[place])
        # Superblocks are a place of their own.
        areas = [area for area in own if not area.words.endswith(SUPERBLOCK)]
        if not areas:
            if place is Place.JOURNAL and not TRAITS[self.filesystem].journals:
                raise PlaceUnknown(f"{self.filesystem} has no journal")
            if is_written and place is Place.METADATA and self.filesystem in _COPIES_ON_WRITE:
                raise PlaceUnknown(_copied(self.filesystem))
            raise PlaceUnknown(
                f"where {self.filesystem} has its {place.value} on this disk is not known here"
            )
        return joined([ByteRange(area.first, area.end - area.first) for area in areas])

    def _inodes(self) -> tuple[ByteRange, ...]:
        inodes = self.layout.inodes
        if inodes is None:
            raise PlaceUnknown(f"where {self.filesystem} has an inode is not known here")
        found = [
            ByteRange(at, inodes.size)
            for number in self._engine_inodes()
            if (at := inodes.place(number)) is not None
        ]
        return tuple(sorted(found))

    def _engine_inodes(self) -> set[int]:
        found = self._inode_numbers(Place.DATA, Place.LOG)
        if not found:
            raise PlaceUnknown("the engine has no file yet")
        return found

    def _extents(self, paths: Sequence[Path]) -> tuple[ByteRange, ...]:
        """As they are: to write them back first would write what the fault is to hit. PlaceUnknown where the file system maps no file."""
        found: list[ByteRange] = []
        for path in paths:
            try:
                mapped = extents_of(path, written_back=False)
            except OSError as error:
                # An engine deletes files while it works.
                if error.errno in _GONE:
                    continue
                if error.errno in _NO_MAP:
                    raise PlaceUnknown(
                        f"the kernel does not say where a file of {self.filesystem} lies on the disk (FIEMAP, FIBMAP), so "
                        "nothing was made to fail"
                    ) from error
                raise
            for each in mapped:
                if each.at is not None:
                    found += starmap(ByteRange, self.layout.on_device(each.at, each.length))
        return joined(found)


def finder_at_rest(filesystem: str, place: Place) -> FinderAtRest | None:
    """What finds a place on the images of a file system that is not mounted, of files by their inode numbers.

    None where what is mounted says it.
    """
    adapter = filesystem_for(filesystem)
    if place is Place.METADATA and (metadata := adapter.metadata_at_rest) is not None:
        return lambda images, commands, _: metadata(images, commands).metadata()
    at_rest, found = adapter.at_rest, _AT_REST.get(place)
    if at_rest is None or found is None:
        return None
    return lambda images, commands, numbers: found(at_rest(images, commands), numbers)


def ranges_at_rest(resting_blocks: RestingBlocks) -> tuple[ByteRange, ...]:
    """The blocks of a place; PlaceUnknown with the reason where none can be named."""
    if not resting_blocks.ranges:
        said = "; ".join(resting_blocks.left_out) or "its files hold nothing"
        raise PlaceUnknown(f"no block of the disk can be named: {said}")
    return joined(resting_blocks.ranges)


def _meet(extent: ByteRange, hit: ByteRange) -> bool:
    return extent.start < hit.start + hit.length and hit.start < extent.start + extent.length


def joined(ranges: Sequence[ByteRange]) -> tuple[ByteRange, ...]:
    """Those that touch as one, in the order of the disk."""
    found: list[ByteRange] = []
    for each in sorted(ranges):
        if found and each.start <= found[-1].start + found[-1].length:
            end = max(found[-1].start + found[-1].length, each.start + each.length)
            found[-1] = ByteRange(found[-1].start, end - found[-1].start)
        else:
            found.append(each)
    return tuple(found)


_PIECE_BYTES = 4096

_WRITTEN_BYTES = MIB

# Room that was given back.
_ROOM_COMES_BACK_S, _FULL_ASK_EVERY_S = 10.0, 0.5

_IS_NOT_ALLOCATED = (errno.EOPNOTSUPP, errno.ENOSYS)


class BallastTooLong(Exception):
    """What would have to be written has no room in the recorder's log: then nothing is filled, and there is no result."""


class Filler:
    """One file, open to write, that grows from 0; `writable_bytes` is what may be written, where it has to be."""

    def __init__(self, file: int, *, writable_bytes: Callable[[], int]) -> None:
        self._file, self._writable_bytes = file, writable_bytes
        self._end, self._random, self._was_refused = 0, b"", False

    @property
    def writes(self) -> bool:
        """Whether it is written, as the file system allocates nothing ahead."""
        return bool(self._random)

    @property
    def leaves_nothing(self) -> bool:
        """Whether others find no room: a small piece was refused, or less than one is left to those who are not root.

        What is kept for root (5 % of ext2 to ext4) is taken last, and engines do not run as root.
        """
        room = os.fstatvfs(self._file)
        return self._was_refused or room.f_bavail * room.f_frsize < _WRITTEN_BYTES

    def fill(self, is_over: Callable[[], bool]) -> bool:
        """Take what is free now; whether nothing was left before `is_over`. BallastTooLong before anything was written."""
        if not self.writes:
            filled = self._in_pieces(self._free_bytes(), self._allocate, is_over)
            if filled is not None:
                return filled
            self._begin_to_write()
        return bool(self._in_pieces(_WRITTEN_BYTES, self._write, is_over))

    def _in_pieces(
        self, length: int, take: Callable[[int], int | None], is_over: Callable[[], bool]
    ) -> bool | None:
        """Ever smaller ones, until the smallest finds no room; None where pieces cannot be taken in this way."""
        length = max(_PIECE_BYTES, length)
        while length >= _PIECE_BYTES:
            if is_over():
                return False
            try:
                taken = take(length)
            except InterruptedError:
                continue
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                # Much may be left where a large piece finds no room.
                self._was_refused |= length <= _WRITTEN_BYTES
                length //= 2
                continue
            if taken is None:
                return None
            self._end += taken
        return True

    def _allocate(self, length: int) -> int | None:
        """By the call itself. None where there is none, or where the file does not have the blocks."""
        try:
            allocate(self._file, self._end, length)
        except OSError as error:
            if error.errno in _IS_NOT_ALLOCATED:
                return None
            raise
        # A call that found too little may have left blocks, so all are counted; half, as nothing says that a count is exact.
        if 2 * _SECTOR * os.fstat(self._file).st_blocks >= self._end + length:
            return length
        os.ftruncate(self._file, self._end)
        return None

    def _begin_to_write(self) -> None:
        """Before the first byte: a log that is full ends the recording, and not the file system."""
        free, room = self._free_bytes(), self._writable_bytes()
        if free > room:
            raise BallastTooLong(
                f"the file system allocates nothing ahead (fallocate), so {format_size(free)} would have to be written, and the "
                f"recorder's log has room for {format_size(max(0, room))}; make `image_size` smaller, or the tmpfs of the log larger"
            )
        self._random = os.urandom(_WRITTEN_BYTES)

    def _write(self, length: int) -> int:
        return os.pwrite(self._file, self._random[:length], self._end)

    def _free_bytes(self) -> int:
        room = os.fstatvfs(self._file)
        return room.f_bfree * room.f_frsize


def allocate(file: int, start: int, length: int) -> None:
    """fallocate(2) and no emulation of it; OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(file, 0, ctypes.c_int64(start), ctypes.c_int64(length)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def takes_a_write(place: Path) -> bool:
    """Whether the file system makes a file and syncs it, or has no room for one.

    By that file alone: syncfs(2) would give the error that the disk had. Room that was given back may come a moment later. One that says
    that it has room, and gives none, takes no write.
    """
    probe, never, until = place / "probe", threading.Event(), time.monotonic() + _ROOM_COMES_BACK_S
    while True:
        try:
            with probe.open("wb") as file:
                file.write(b"probe")
                file.flush()
                os.fsync(file.fileno())
            probe.unlink()
        except OSError as error:
            if error.errno != errno.ENOSPC:
                return False
            if time.monotonic() > until:
                return not _has_room(place)
            never.wait(_FULL_ASK_EVERY_S)
        else:
            return True


def _has_room(place: Path) -> bool:
    try:
        room = os.statvfs(place)
    except OSError:
        return False
    return room.f_bavail * room.f_frsize >= MIB


# Of the duration, between which the moment is drawn at which something fails, and marks of clients: there is something to lose by then,
# and time enough to meet it. On a busy machine a library has not made its database at that moment; the first marks say where the clients began.
_MOMENT_SHARES = (0.25, 0.55)

_MARKS_LEAST = 12

_LOOK_EVERY_S = 0.05

_PROVOKE_EVERY_S = 0.5

# What clients do after the hit may mend it, so that they soon end; of a disk that fails for good more is seen later.
_GRACE_ONCE_S = 0.3

_GRACE_ON_S = 1.5

_FULL_FOR_S = 1.0

_ANSWER_LIMIT_S, _END_LIMIT_S = 10.0, 120.0

# Beside what ages a file system, which has the plain name (`filesystem/aged_image.py`).
BALLAST = "ballast-of-the-fault"


@dataclass
class FaultSetup(RecordedSetup):
    """A recorded file system whose clients end once they have seen enough, `is_over`."""

    is_over: Callable[[], bool] = field(default=lambda: False)
    is_paced: bool = True
    """whether what the log gains is dealt out to the clients; ballast that is written is none of theirs"""
    is_quiet: bool = False
    """whether the fault is one that the disk says nothing of"""

    def pace(self, duration_s: float) -> Callable[[], float]:
        """At the recording's as long as `is_paced`."""
        pause_s = super().pace(duration_s)
        return lambda: pause_s() if self.is_paced else 0.0

    def is_log_nearly_full(self) -> bool:
        """Or whatever else ends the clients."""
        return self.is_over() or super().is_log_nearly_full()

    def settle(self) -> None:
        """An error behind a hit is the disk's: syncfs(2) gives it to whoever asks first, and that is not the engine.

        A disk that is quiet gives none.
        """
        try:
            super().settle()
        except CommandFailed as error:
            is_of_disk = error.status is not None and not isinstance(error, CommandNotStarted)
            if self.is_quiet or not is_of_disk or not self.recorder.status().fault_hits:
                raise


class _TooManyPieces(PlaceUnknown):
    """A place that no order can name as a whole."""

    def __init__(self, fault: DiskFault, pieces: int) -> None:
        super().__init__(
            f"{fault.words}: {fault.place.value} is in {pieces:,} pieces of the disk, and an order takes {RANGES_MOST:,}; a younger file system "
            "or a shorter `duration` has fewer"
        )


class FaultBeside:
    """Entered while clients write: orders the fault at its moment, and takes it back where they end."""

    def __init__(
        self,
        fault_setup: FaultSetup,
        fault: Fault,
        disk_map: DiskMap,
        *,
        seed: int,
        duration_s: float,
        checkpoints: AbstractContextManager[Checkpoints] | None,
    ) -> None:
        self._setup, self._fault, self._disk = fault_setup, fault, disk_map
        self._moment_s = drawn_moment_s(seed, duration_s)
        self._checkpoints = checkpoints
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="the fault", daemon=True)
        self._current: Checkpoints | None = None
        self._filled = self._is_abandoned = False
        # Whether the file system had to be told that the disk works again: clients that wait for it cannot even be ended.
        self.was_resumed = False
        self._hit_s: float | None = None
        self.unplaced: str | None = None
        # What the engine said, and what went wrong here before anything was hit.
        self.complaints: list[BedplateError] = []
        self.problem: str | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._hold()
        self._stop.set()
        # What waits for the disk can end then.
        self._clear()
        self._thread.join(_ANSWER_LIMIT_S)
        # What its server does not answer must not keep the run, and is no complaint of the engine's.
        if self._thread.is_alive() and self._current is not None:
            self._is_abandoned = True
            self._current.abandon()
        self._thread.join(_END_LIMIT_S)
        # It may have been about to order.
        self._clear()

    def _clear(self) -> None:
        if isinstance(self._fault, DiskFault) and not self._fault.stays:
            self._setup.recorder.order_fault(CLEAR_LINE)

    def _hold(self) -> None:
        """A disk that fails for good goes on failing while an engine that stopped tries to recover."""
        if isinstance(self._fault, DiskFault) and not self._fault.hits and self.hits:
            while not self.is_over():
                self._stop.wait(_LOOK_EVERY_S)

    @property
    def hits(self) -> int:
        """How often it was met so far."""
        if isinstance(self._fault, FullFilesystem):
            return int(self._filled)
        return self._setup.recorder.status().fault_hits if isinstance(self._fault, DiskFault) else 0

    @property
    def first_hit(self) -> ByteRange | None:
        """Where it was met first; None of none, and of what has no place."""
        return self._setup.recorder.status().first_hit if isinstance(self._fault, DiskFault) else None

    def is_over(self) -> bool:
        """Whether clients have seen enough of it."""
        if self._hit_s is None:
            if not self.hits:
                return False
            self._hit_s = time.monotonic()
        return time.monotonic() - self._hit_s > self._grace_s

    @property
    def _grace_s(self) -> float:
        if isinstance(self._fault, DiskFault):
            return _GRACE_ONCE_S if self._fault.hits else _GRACE_ON_S
        return 2 * _FULL_FOR_S

    def _work(self) -> None:
        try:
            if not self._has_something_to_lose():
                return
            if isinstance(self._fault, DiskFault):
                self._fail(self._fault)
            elif isinstance(self._fault, FullFilesystem):
                self._fill()
        except (BedplateError, OSError) as error:
            # Behind a hit a file system may answer nothing any more; before it nothing has failed but us.
            if not self.hits and not self._stop.is_set():
                self.problem = f"{self._fault.words}: it could not be ordered: {error}"

    def _has_something_to_lose(self) -> bool:
        """Wait for the moment; whether it came before the clients ended."""
        left_s = self._moment_s
        while not self._stop.wait(left_s):
            if self._setup.mark_count() >= _MARKS_LEAST:
                return True
            left_s = _LOOK_EVERY_S
        self.unplaced = "too little was acknowledged before the clients ended; make `duration` longer"
        return False

    def _fail(self, fault: DiskFault) -> None:
        with contextlib.ExitStack() as stack:
            # Connected before anything fails: a session needs files too.
            if fault.place is Place.DATA and self._checkpoints is not None:
                self._current = stack.enter_context(self._checkpoints)
            if fault.operation is FaultOperation.READ:
                self._setup.settle()
            is_ordered, provoked_s = False, 0.0
            while not self._stop.is_set():
                if self.is_over() and self._setup.resume(self._clear):
                    self.was_resumed = True
                    return
                is_ordered = self._order(fault, is_ordered=is_ordered)
                if fault.operation is FaultOperation.READ:
                    self._forget()
                if time.monotonic() - provoked_s > _PROVOKE_EVERY_S:
                    if not self._provoke(fault):
                        return
                    provoked_s = time.monotonic()
                self._stop.wait(_LOOK_EVERY_S)

    def _provoke(self, fault: DiskFault) -> bool:
        """False once the engine has not written a checkpoint; what it says instead is its own complaint, once the disk has failed.

        What the file system keeps for itself it writes at a sync of all it has.
        """
        if fault.place in (Place.JOURNAL, Place.METADATA):
            self._setup.settle()
        if self._current is None:
            return True
        try:
            self._current.checkpoint()
        except BedplateError as error:
            if not self.hits:
                raise
            if not self._is_abandoned:
                self.complaints.append(error)
            return False
        return True

    def _order(self, fault: DiskFault, *, is_ordered: bool) -> bool:
        """Once; then again where files are somewhere else by now."""
        if is_ordered and fault.place is Place.ANYWHERE:
            return True
        try:
            ranges = self._ranges(fault)
        except _TooManyPieces as error:
            self.unplaced = str(error)
            # An order for where they were before would be met at some of the places alone.
            if is_ordered and not self.hits:
                self._clear()
                return False
            return is_ordered
        except PlaceUnknown as error:
            self.unplaced = str(error)
            return is_ordered
        self.unplaced = None
        order = FaultOrder(
            fault.operation,
            fault.effect,
            fault.hits,
            ranges=ranges,
            on_journal=self._disk.is_on_journal(fault.place),
        )
        self._setup.recorder.order_fault(moved_line(ranges) if is_ordered else order.line())
        return True

    def _ranges(self, fault: DiskFault) -> tuple[ByteRange, ...]:
        """All of them, as a part would be another fault."""
        found = self._disk.ranges(fault.place, is_written=fault.operation is FaultOperation.WRITE)
        if len(found) > RANGES_MOST:
            raise _TooManyPieces(fault, len(found))
        return found

    def _forget(self) -> None:
        """What is clean of the data in the page cache, of these files alone: else nothing is read from the disk."""
        for path in self._disk.files(Place.DATA):
            try:
                file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                # Engines delete files while they work.
                continue
            try:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(file)

    def _fill(self) -> None:
        """For as long as it is said, whatever clients do then: room that the engine gives back meanwhile is taken too."""
        ballast = self._setup.data_directory.parent / BALLAST
        file, never = (
            os.open(ballast, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600),
            threading.Event(),
        )
        filler = Filler(file, writable_bytes=self._begin_to_write)
        try:
            if not filler.fill(self._stop.is_set):
                # Clients that found no room end before the last small piece is taken.
                if filler.leaves_nothing:
                    self._filled = True
                    return
                self.unplaced = "the clients ended before the file system was full; make `duration` longer, or `image_size` smaller"
                return
            self._filled, until_s = True, time.monotonic() + _FULL_FOR_S
            while time.monotonic() < until_s:
                never.wait(_LOOK_EVERY_S)
                filler.fill(lambda: time.monotonic() >= until_s)
        except BallastTooLong as error:
            self.unplaced = str(error)
        finally:
            os.close(file)
            ballast.unlink()

    def _begin_to_write(self) -> int:
        """What may be written of ballast, which counts no more as the clients' from now on."""
        self._setup.is_paced = False
        return self._setup.log_for_clients_bytes() - self._setup.log.stat().st_size


def drawn_moment_s(seed: int, duration_s: float) -> float:
    """When something fails, after the clients began; tries with other seeds meet other moments."""
    return duration_s * random.Random(f"moment of {seed}").uniform(*_MOMENT_SHARES)  # noqa: S311 -- chance, not secrecy


# What the recorder takes as one write.
_SECTOR_BYTES = 512

_BLOCK_BYTES, _READ_BYTES = 4096, 2**20


def rot_away(device: Path, rot: Rot, ranges: Sequence[ByteRange], seed: int) -> ByteRange:
    """Change what one drawn place holds, as much of it as the place has; where. What becomes unreadable is drawn alone.

    Of what the file system keeps most was never written: there a block that holds something is drawn.
    """
    draw = random.Random(f"rot of {seed}")  # noqa: S311 -- chance, not secrecy
    if rot.place in (Place.JOURNAL, Place.METADATA):
        ranges = written_in(device, ranges) or ranges
    chosen = draw.choices(ranges, [each.length for each in ranges])[0]
    length = min(rot.length or _SECTOR_BYTES, chosen.length)
    at = chosen.start + draw.randrange(chosen.length // length) * length
    if rot.is_unreadable:
        # A disk loses whole blocks, and says so to whoever reads one.
        return ByteRange(at // _BLOCK_BYTES * _BLOCK_BYTES, _BLOCK_BYTES)
    bit = draw.randrange(8 * length)
    first = at // _SECTOR_BYTES * _SECTOR_BYTES
    disk = os.open(device, os.O_RDWR | os.O_CLOEXEC)
    try:
        # Whole sectors, of which a place smaller than one changes alone.
        found = bytearray(os.pread(disk, -(-(at + length - first) // _SECTOR_BYTES) * _SECTOR_BYTES, first))
        if rot.length:
            found[at - first : at - first + length] = draw.randbytes(length)
        else:
            found[at - first + bit // 8] ^= 1 << bit % 8
        os.pwrite(disk, found, first)
    finally:
        os.close(disk)
    return ByteRange(at, length) if rot.length else ByteRange(at + bit // 8, 1)


def written_in(disk: Path, ranges: Sequence[ByteRange]) -> list[ByteRange]:
    """The blocks of these ranges that hold anything but zeros."""
    found, empty = [], bytes(_BLOCK_BYTES)
    file = os.open(disk, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for each in ranges:
            for start in range(each.start, each.start + each.length, _READ_BYTES):
                data = os.pread(file, min(_READ_BYTES, each.start + each.length - start), start)
                found += [
                    ByteRange(start + at, min(_BLOCK_BYTES, len(data) - at))
                    for at in range(0, len(data), _BLOCK_BYTES)
                    if not empty.startswith(data[at : at + _BLOCK_BYTES])
                ]
    finally:
        os.close(file)
    return found


_WINDOW_BYTES = 8 * MIB

# A server that recovers by itself does so in seconds; one that cannot is ended.
_COMES_BACK_S = 30.0

_ASK_EVERY_S = 0.5

# For what settings let a server keep in memory: seconds in use, an hour at the most.
_LOG_WAITS_S = 60.0

_SAID_MOST, _SAID_LENGTH = 6, 300

_NO_REPLAY = "the repair on this machine does not replay the journal, with or without a fault"

_WAITED = "the file system let every request wait, until somebody says that the disk works again"


@dataclass
class _Course:
    """What was seen while it was mounted."""

    hits: int = 0
    trouble: str | None = None
    # Whether that is that the clients did not end.
    hung: bool = False
    writable: bool = True
    came_back: bool | None = None
    no_result: str | None = None
    first_hit: ByteRange | None = None
    journal_bytes: int | None = None
    engine_said: tuple[str, ...] = ()
    kernel_said: tuple[str, ...] | None = ()
    counted: tuple[str, ...] = ()
    was_resumed: bool = False
    bound_ms: float | None = None
    bound_transactions: int | None = None
    ranges: tuple[ByteRange, ...] = ()
    # Of the files whose blocks are found once nothing is mounted, none for what is no file's; None where the place is known by then.
    numbers: tuple[int, ...] | None = None
    position: int | None = None
    # Whether a repair belongs to each cut there, with or without a fault.
    repair_is_usual: bool = False
    # Whether the server was ended before it had to have written what its settings let wait.
    ended_early: bool = False
    aged: AgedCopy | None = None

    def hear(self, refused: BedplateError) -> None:
        """What the engine said instead of a checkpoint: that it is gone ends more than a client, all else is a complaint."""
        if CONNECTION_LOST in _codes(refused) or "connection" in refused.said:
            self.trouble = self.trouble or f"a checkpoint: {refused}"
        else:
            self.engine_said = (*self.engine_said, str(refused))


class FaultTrial:
    """One fault of a run; `number` and `seed` are the try's."""

    def __init__(
        self,
        context: VisitContext,
        bench: PowerBench,
        fault_engine: FaultEngine,
        subject_engine: str,
        *,
        clients: int,
        duration_s: float,
        image_bytes: int,
    ) -> None:
        self._context, self._bench, self._engine, self._name = context, bench, fault_engine, subject_engine
        self._clients, self._duration_s, self._image_bytes = clients, duration_s, image_bytes
        self.version: str | None = None

    def record(self, fault: Fault, number: int, seed: int, logs: Path) -> FaultRecord:
        """What came of it; BedplateError where that has nothing to do with the fault."""
        course = _Course()

        def at_rest(recorder: Recorder) -> None:
            if isinstance(fault, Rot) and course.numbers is not None:
                self._find_at_rest(recorder, fault, course)
            if isinstance(fault, Rot) and course.ranges and not course.hits:
                course.first_hit, course.hits = (
                    rot_away(_device(recorder, fault), fault, course.ranges, seed),
                    1,
                )

        def unmounted(devices: Sequence[str]) -> None:
            course.kernel_said = complaints_of(kernel, *devices)

        log = None
        recorded = partial(self._bench.recorded, self._image_bytes, self._duration_s)
        try:
            with KernelLog() as kernel, recorded(unmounted=unmounted, at_rest=at_rest) as made:
                kernel.forget()
                log = made.log
                self._write(FaultSetup(**vars(made)), fault, course, seed=seed, logs=logs / f"try-{number}")
            on_journal = _is_on_journal(fault, course)
            left, after_ms = self._look_at_end(log, course, _unreadable(fault, course), on_journal=on_journal)
        finally:
            self._give_back(log, logs / f"try-{number}.server.log")
        return _record(fault, number, seed, course, left, after_ms=after_ms, engine=self._name)

    def _write(self, fault_setup: FaultSetup, fault: Fault, trial: _Course, *, seed: int, logs: Path) -> None:
        """From an empty directory to where the engine is ended; the file system is still mounted."""
        writer = self._engine.cuts.writer(self._context, fault_setup, clients=self._clients)
        fault_setup.age.fill_up()
        trial.bound_ms, trial.bound_transactions = writer.bound_ms, writer.bound_transactions
        trial.journal_bytes, trial.aged = fault_setup.journal_bytes, fault_setup.age.aged
        disk = self._map(fault_setup, fault)
        if isinstance(fault, DiskFault) and fault.place is Place.METADATA:
            # XFS writes it back at a time of its own.
            fault_setup.await_own_writeback(self._duration_s)
        beside = FaultBeside(
            fault_setup,
            fault,
            disk,
            seed=seed,
            duration_s=self._duration_s,
            checkpoints=writer.checkpoints(),
        )
        fault_setup.is_over, fault_setup.is_quiet = beside.is_over, fault.is_quiet
        try:
            driven = writer.drive(logs, duration_s=self._duration_s, seed=seed, companion=beside)
            self.version = driven.version
        except BedplateError as error:
            _require_of_disk(error, is_hit=beside.hits > 0)
            trial.trouble, trial.hung = str(error), _codes(error) == {WRITER_NOT_ENDED}
        if beside.problem is not None:
            raise BedplateError(beside.problem)
        trial.hits, trial.no_result, trial.first_hit = beside.hits, beside.unplaced, beside.first_hit
        for complaint in beside.complaints:
            trial.hear(complaint)
        self._look_at_place(fault, trial, disk)
        if _is_quiet_in_log(fault):
            _await_log(writer, trial)
        else:
            _let_come_back(writer, trial, is_hit=beside.hits > 0)
        if writer.was_killed:
            raise KilledFromOutside("a process of the server")
        self._read_log(trial)
        _require_untorn(fault_setup.untorn, fault)
        trial.writable = takes_a_write(fault_setup.data_directory.parent) and not beside.was_resumed
        trial.was_resumed = beside.was_resumed
        trial.counted = fault_setup.complaints()
        is_quiet_in_journal = fault.is_quiet and _place_of(fault) is Place.JOURNAL
        if isinstance(fault, Rot):
            self._find_what_rots(fault_setup, fault, trial, seed)
        elif is_quiet_in_journal:
            # What settings leave in the page cache would be missing without any fault.
            fault_setup.settle()
        if is_quiet_in_journal:
            # An unmount makes it needless.
            trial.position = fault_setup.recorder.status().entries

    def _read_log(self, trial: _Course) -> None:
        """What the server said of the disk in its log alone, as a background process does that no client waits for."""
        try:
            text = self._server_log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return
        trial.engine_said += tuple(
            line for line in self._engine.said_of_disk(text) if line not in trial.engine_said
        )

    @property
    def _server_log(self) -> Path:
        return self._context.log_directory / "server.log"

    def _map(self, fault_setup: FaultSetup, fault: Fault) -> DiskMap:
        """Of the disk as it is now, by the file system's tools where the fault's place takes them."""
        filesystem = self._bench.cell.filesystem.type
        found = DiskMap(
            self._engine, fault_setup.data_directory, filesystem, journal_bytes=fault_setup.journal_bytes
        )
        place = _place_of(fault)
        return replace(found, layout=fault_setup.layout()) if wants_layout(place, filesystem) else found

    def _find_what_rots(self, fault_setup: FaultSetup, rot: Rot, trial: _Course, seed: int) -> None:
        fault_setup.settle()
        disk = self._map(fault_setup, rot)
        try:
            if finder_at_rest(disk.filesystem, rot.place) is not None:
                trial.numbers = disk.numbers(rot.place)
                return
            trial.ranges = disk.ranges(rot.place)
        except PlaceUnknown as error:
            trial.no_result = str(error)
            return
        if rot.place is Place.JOURNAL:
            trial.first_hit, trial.hits = (
                rot_away(_device(fault_setup.recorder, rot), rot, trial.ranges, seed),
                1,
            )

    def _find_at_rest(self, recorder: Recorder, rot: Rot, trial: _Course) -> None:
        finder = finder_at_rest(self._bench.cell.filesystem.type, rot.place)
        if finder is None or trial.numbers is None:
            return
        images = [recorder.disk, *filter(None, [recorder.journal])]
        try:
            trial.ranges = ranges_at_rest(finder(images, self._bench.commands, trial.numbers))
        except PlaceUnknown as error:
            trial.no_result = str(error)

    def _look_at_place(self, fault: Fault, trial: _Course, disk_map: DiskMap) -> None:
        if not isinstance(fault, DiskFault) or trial.first_hit is None:
            return
        try:
            found = disk_map.strangers(trial.first_hit, fault.place)
        except OSError:
            # A file system that was shut down says nothing of its files.
            return
        if found:
            names = ", ".join(str(path.relative_to(disk_map.data_directory)) for path in found)
            trial.hits, trial.no_result = 0, f"what was hit is a part of {names}"

    def _look_at_end(
        self, path: Path, trial: _Course, unreadable: tuple[ByteRange, ...], *, on_journal: bool
    ) -> tuple[PointRecord, float]:
        """What the disk holds in the end, mounted anew and asked; and the time from the last acknowledgement to that end, in ms."""
        with read_log(path) as log:
            begin, _ = measured_span(log)
            end = len(log) if trial.position is None else trial.position
            after_ms = Acknowledgements(log).before(end).after_last_ms
            point = CutPoint(0, end, Profile.ORDERED, Placement.UNIFORM, seed=0)
        job = ReplayJob(
            # What rots at rest is met by whoever reads it then.
            listens=True,
            filesystem=self._bench.cell.filesystem,
            subject=subject_of(self._context, self._name, self._engine.cuts),
            points=(point,),
            image_bytes=self._image_bytes,
            window_bytes=_WINDOW_BYTES,
            measured_from=begin,
            journal_bytes=trial.journal_bytes,
            unreadable=unreadable,
            unreadable_on_journal=on_journal,
        )
        replayed = partial(self._bench.replayed, path, report=lambda _: None, log_folder=path.parent)
        (record,) = replayed(job)
        trial.repair_is_usual = trial.position is not None and leaves_journal_to_repair(job.filesystem.type)
        if trial.repair_is_usual and trial.hits and record.replay_failed:
            # Many builds of jfsutils replay no journal, whatever is in it.
            (whole,) = replayed(replace(job, points=(replace(point, position=begin),), unreadable=()))
            if whole.replay_failed:
                trial.hits, trial.no_result = 0, _NO_REPLAY
        return record, after_ms

    def _give_back(self, log: Path | None, server_log: Path) -> None:
        if log is not None:
            shutil.rmtree(log.parent)
        if self._server_log.exists():
            shutil.move(self._server_log, server_log)


def _record(
    fault: Fault,
    number: int,
    seed: int,
    trial: _Course,
    final_record: PointRecord,
    *,
    after_ms: float,
    engine: str = "",
) -> FaultRecord:
    seen = Seen.WENT_ON if trial.trouble is None else Seen.HUNG if trial.hung else Seen.STOPPED
    is_usual = trial.repair_is_usual and not final_record.replay_failed
    is_repaired = final_record.fsck_s is not None and not final_record.unclean and not is_usual
    is_whole = _is_unread(fault, trial, final_record) or (
        is_usual and final_record.outcome is PointOutcome.NEEDS_FSCK
    )
    outcome = PointOutcome.OK if is_whole else final_record.outcome
    kernel_said, said_anew = (*(trial.kernel_said or ()), *trial.counted), final_record.kernel_said or ()
    waited = (_WAITED,) if trial.was_resumed else ()
    said = (*filter(None, [trial.trouble]), *waited, *trial.engine_said, *kernel_said)
    detected = detected_by(
        outcome,
        seen,
        writable=trial.writable,
        kernel_spoke=bool(kernel_said or said_anew),
        engine_spoke=bool(trial.engine_said or final_record.engine_said),
        is_repaired=is_repaired,
    )
    is_hit = trial.hits > 0 or isinstance(fault, NoFault)
    verdict = verdict_of(
        outcome,
        seen,
        is_hit=is_hit and final_record.acknowledged > 0,
        writable=trial.writable,
        is_repaired=is_repaired,
        is_bounded=within_bound(
            final_record,
            trial.bound_ms,
            trial.bound_transactions,
            # An engine that hung had that time too.
            after_ms=0.0 if trial.hung else after_ms,
        ),
        is_unseen=fault.is_quiet and not detected,
        is_said=bool(final_record.engine_said),
        ended_early=trial.ended_early,
    )
    return FaultRecord(
        number=number,
        fault=fault.name,
        seed=seed,
        hits=trial.hits,
        seen=seen,
        writable=trial.writable,
        came_back=trial.came_back,
        verdict=verdict,
        detected=detected,
        acknowledged=final_record.acknowledged,
        lost_transactions=final_record.lost_transactions,
        left=outcome,
        hit_at=trial.first_hit.start if trial.first_hit else None,
        hit_bytes=trial.first_hit.length if trial.first_hit else None,
        hit_journal=trial.first_hit is not None and _is_on_journal(fault, trial),
        kernel_heard=trial.kernel_said is not None and final_record.kernel_said is not None,
        said=tuple(_shortened(text) for text in said[:_SAID_MOST]),
        found=(
            *final_record.problems,
            *final_record.engine_said,
            *(_shortened(text) for text in said_anew[:_SAID_MOST]),
        ),
        false_failures=_false_failures(engine, final_record, has_stopped=seen is Seen.STOPPED),
        no_result=None if verdict.is_result else _no_result(trial, verdict, is_hit=is_hit),
        aged=trial.aged,
    )


def _false_failures(engine: str, final_record: PointRecord, *, has_stopped: bool) -> int | None:
    """None of a server. A library has one writer, whose only transaction under way is the one that returned the error."""
    if not engine or registry.engine_part_or_none(engine, "server") is not None:
        return None
    is_library = bool(registry.engine_part(engine, "power_cut").drivers)
    of_library = final_record.unacknowledged if has_stopped else 0
    return of_library if is_library else final_record.false_failures


def _is_unread(fault: Fault, trial: _Course, final_record: PointRecord) -> bool:
    """Whether rot of a file was met by the check alone, as nobody had read it.

    The check of what is found at rest (ZFS' scrub) reads the data too, and has no copy to mend them by. No other type's check does.
    """
    is_of_files = isinstance(fault, Rot) and bool(trial.numbers)
    is_damage_alone = (
        final_record.outcome is PointOutcome.SILENT
        and final_record.unclean is True
        and final_record.fsck_s is None
    )
    return is_of_files and is_damage_alone and not final_record.lost_transactions


def _no_result(trial: _Course, verdict: FaultVerdict, *, is_hit: bool) -> str:
    if verdict is FaultVerdict.NO_TRACE:
        return "what the disk lost or changed was written again, never read, or replaced by a copy in silence"
    if is_hit:
        return "no transaction was acknowledged, so that none could be missing"
    return trial.no_result or "nothing met the fault"


def _require_of_disk(error: BedplateError, *, is_hit: bool) -> None:
    """Raise what the disk has not done: what no fault stopped has failed by itself, or was ended by somebody."""
    interruption = interruption_behind(error)
    if interruption is not None:
        raise interruption from error
    if isinstance(error, ToolFailed) and error.status == -signal.SIGKILL:
        raise KilledFromOutside("the writer") from error
    if isinstance(error, KilledFromOutside) or not is_hit:
        raise error


def _codes(error: BedplateError) -> set[str]:
    return {reason.code for reason in reasons_of(error)}


def _require_untorn(untorn: UntornWrites | None, fault: Fault) -> None:
    """Raise where pages that were to be written untorn were not: then it is a fault of another server than the plan's.

    A disk or file system without room refuses pages too, and that is the fault itself.
    """
    refusal = None if untorn is None else untorn.refusal()
    if refusal is None or untorn is None:
        return
    is_without_room = isinstance(fault, FullFilesystem) or (
        isinstance(fault, DiskFault) and fault.effect is FaultEffect.ENOSPC
    )
    if not (is_without_room and set(untorn.counted().refused) == {ENOSPC}):
        raise BedplateError(refusal)


def _place_of(fault: Fault) -> Place:
    return fault.place if isinstance(fault, DiskFault | Rot) else Place.ANYWHERE


def _is_on_journal(fault: Fault, trial: _Course) -> bool:
    """Whether the device that fails is that of an external journal."""
    return _place_of(fault) is Place.JOURNAL and trial.journal_bytes is not None


def _device(recorder: Recorder, rot: Rot) -> Path:
    """The device on which a place rots."""
    return (recorder.journal if rot.place is Place.JOURNAL else None) or recorder.disk


def _unreadable(fault: Fault, trial: _Course) -> tuple[ByteRange, ...]:
    """What of the disk can be read no more once the engine is ended."""
    is_lost = isinstance(fault, Rot) and fault.is_unreadable
    return (trial.first_hit,) if is_lost and trial.first_hit else ()


def _is_quiet_in_log(fault: Fault) -> bool:
    """Whether a checkpoint would make needless what the disk did to the log in silence."""
    return fault.is_quiet and _place_of(fault) is Place.LOG


def _await_log(writer: CutWriter, trial: _Course) -> None:
    """Until a server has written what its settings let wait in memory: that is missing without any fault."""
    if trial.bound_ms is None or trial.trouble is not None or writer.checkpoints() is None:
        return
    wait_s = trial.bound_ms / 1000
    trial.ended_early = wait_s > _LOG_WAITS_S
    threading.Event().wait(min(wait_s, _LOG_WAITS_S))


def _let_come_back(writer: CutWriter, trial: _Course, *, is_hit: bool) -> None:
    """A server has to answer and to checkpoint; what it says instead to whom it served to the end is its complaint."""
    trial.came_back, refused = _comes_back(writer)
    if refused is None or trial.trouble is not None:
        return
    _require_of_disk(refused, is_hit=is_hit)
    trial.hear(refused)


def _comes_back(writer: CutWriter) -> tuple[bool | None, BedplateError | None]:
    """Whether a server answers and checkpoints, None of a library, which has no session; and its first refusal."""
    never, until, refused = threading.Event(), time.monotonic() + _COMES_BACK_S, None
    while time.monotonic() < until:
        checkpoints = writer.checkpoints()
        if checkpoints is None:
            return None, None
        try:
            with checkpoints as session:
                session.checkpoint()
        except BedplateError as error:
            refused = refused or error
            never.wait(_ASK_EVERY_S)
        else:
            return True, refused
    return False, refused


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SAID_LENGTH else f"{line[: _SAID_LENGTH - 1]}…"


FAULTS_PHASE = "faults"


class FaultyDisk(OwnDiskWorkload):
    """`type = "faulty_disk"` in a plan."""

    name = WORKLOAD
    # Raised whenever a change of how faults are made or judged makes old and new verdicts incomparable.
    protocol = "faulty_disk 7"

    def make(self, recording: Recording) -> None:
        """Every fault of the run."""
        _try_all(recording)


def tries_of(spec: RunSpec) -> tuple[tuple[Fault, int], ...]:
    """The controls, then each fault as often as it is tried; with what is added to the seed."""
    names = [name for name in (spec.levels.text(FAULTS_LEVEL) or ",".join(DEFAULT_FAULTS)).split(",") if name]
    tries = spec.levels.integer(TRIES) or 1
    return (
        *((control, 0) for control in CONTROLS.values()),
        *((fault_named(name), number) for number in range(tries) for name in names),
    )


def _try_all(recording: Recording) -> None:
    context, spec = recording.context, recording.spec
    trial = _trial(context)
    seed = spec.levels.integer("seed")
    seed = context.seed if seed is None else seed
    wanted = tries_of(spec)
    started = time.monotonic()
    with (
        recording.timed_phase(FAULTS_PHASE),
        (recording.directory / TRIES_FILE).open("w", encoding="utf-8") as file,
    ):
        for number, (fault, more) in enumerate(wanted):
            recording.tell(FAULTS_PHASE, fault.words, position=number, of=len(wanted))
            record = trial.record(fault, number, seed + more, recording.directory / "logs")
            file.write(codec.dumps(record, indent=None) + "\n")
            file.flush()
            recording.tell(FAULTS_PHASE, _words(record), position=number + 1, of=len(wanted))
    if trial.version is not None:
        context.tool_versions["engine on a faulty disk"] = trial.version
    recording.add(
        TimedItem(FAULTS_PHASE, FAULTS_PHASE, time.monotonic() - started, facts={"faults": len(wanted)})
    )


def _trial(context: VisitContext) -> FaultTrial:
    levels = context.dataset.levels
    name = model_of(WORKLOAD).engine_of(levels)
    engine: FaultEngine = registry.engine_part(name, WORKLOAD)
    bench = PowerBench(
        context.request,
        context.account,
        context.commands,
        context.ledger,
        context.log_directory,
        context.place,
    )
    return FaultTrial(
        context,
        bench,
        engine,
        levels.text(ENGINE) or name,
        clients=levels.integer("clients") or 2,
        duration_s=levels.number("duration_s") or DURATION_S,
        image_bytes=levels.integer("image_bytes") or IMAGE_BYTES,
    )


def _words(fault_record: FaultRecord) -> str:
    return f"{fault_record.fault}: {fault_record.verdict.value}"


RUN: Workload = FaultyDisk()
