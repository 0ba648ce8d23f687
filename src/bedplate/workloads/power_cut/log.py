"""The recorder's log: every write, flush and discard of the devices, and the marks of the clients, in one order.

The format is that of the kernel's dm-log-writes (drivers/md/dm-log-writes.c), which xfstests and QEMU's
blklogwrites share. A superblock fills the first sector: `<QQQI` magic, version, number of entries, sector size. Each
entry has a header of one sector, `<QQQQ` sector, number of sectors, flags, length of its own data; the sectors that
were written follow it, none after a flush, a discard or a mark. The text of a mark stands in its header after the
struct.

The recorder adds `<QI` to a header, where other writers leave zeros: the monotonic time in nanoseconds and the device,
after the struct, or at the end of the sector in a mark. A time of zero is none at all. Where it is no mark, `<I` follows: how
many entries were logged between the moment at which the request was issued and the one at which it was complete, when it
was logged. So entries stand in the order of completion, and one with 0, as in every log of others, was complete at once.
Behind that the visit notes who asked for a write, up to four times `<IB59s`: process, kind (1 program, 2 thread of the kernel, 3 it
was gone before that was looked up), name. No name is none at all: it was not seen. Behind these, up to 23 times `<BII`: which names
and sizes the engine changed since the entry before, each by its number in `host.block_requests.CALL_KINDS`, and how many nanoseconds before
this one, and the thread that did it.
"""

from __future__ import annotations

import lzma
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from bedplate.cuts.records import LOG_FILE, RECORDING_FILE, RecordingFacts
from bedplate.errors import BedplateError, StudyError, VisitFailed
from bedplate.filesystem.adapter import Site
from bedplate.filesystem.aged_image import Ballast, free_space_of, restore_aged
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.command import Commands
from bedplate.host.files import state_directory
from bedplate.host.interruption import defer_interruptions
from bedplate.host.ledger import Holding, Ledger
from bedplate.host.native_driver import LIBFUSE3
from bedplate.host.recorder import DRIVER as RECORDER
from bedplate.host.requirement import Need
from bedplate.host.scratch_device import MEMORY_DIRECTORY
from bedplate.model import codec
from bedplate.model.cell import RunSpec
from bedplate.model.filesystem import AGED, FILL, age_of, fill_of
from bedplate.model.free_space import AFTER_LOAD, ENDED, MADE, AgedCopy, FreeSpace
from bedplate.model.reason import reasons_of
from bedplate.model.visit import RunRecord
from bedplate.units import GIB, MIB, format_size
from bedplate.visit.recording import Driver, Recording, VisitContext, Workload

# What the recovery of file system and engine writes beside what the cut left: some WAL, a log, a checkpoint.
RECOVERY_BYTES = 64 * MIB

# A recording's log takes a share of the free memory: what the disks hold and the images of the workers take the others.
LOG_BYTES_MOST = 2 * GIB

_SHARE_OF_MEMORY = 4

# With less the disks cannot even be formatted, which looks like disks that break.
_LOG_BYTES_LEAST = 32 * MIB

# What must be left of it when a point has been judged.
_ROOM_LEFT_BYTES = RECOVERY_BYTES // 4


class NoRoomForImages(BedplateError):
    """The memory for images ran out, or nearly: nothing that was seen on them may be judged."""

    code = "memory-for-images-short"


@dataclass(frozen=True)
class Room:
    """The free room of `directory`, in which so many workers hold an image each."""

    directory: Path
    workers: int

    def demand(self, images: Iterable[Path]) -> None:
        """Before these images are examined: for what recovery adds to them, and for as much of every other worker."""
        own_bytes = allocated_bytes(images)
        self._require(self._others_bytes(own_bytes) + RECOVERY_BYTES, "a cut is not examined without")

    def demand_still(self, images: Iterable[Path]) -> None:
        """After a bad point, whose images are still there; others may just have given theirs back."""
        own_bytes = allocated_bytes(images)
        self._require(
            self._others_bytes(own_bytes) + _ROOM_LEFT_BYTES,
            "a cut that was found bad is not believed without",
        )

    def _others_bytes(self, own_bytes: int) -> int:
        return (self.workers - 1) * (own_bytes + RECOVERY_BYTES)

    def _require(self, needed_bytes: int, situation: str) -> None:
        free = free_bytes(self.directory)
        if free < needed_bytes:
            raise NoRoomForImages(
                f"{self.directory} has {format_size(free)} free, and {situation} {format_size(needed_bytes)}: "
                "make that tmpfs larger, or record less (duration, image_size)"
            )


def log_limit_bytes(memory: Path) -> int:
    """How large a recording's log in `memory` may be. NoRoomForImages where no recording can be made there."""
    free = free_bytes(memory)
    if free < _SHARE_OF_MEMORY * _LOG_BYTES_LEAST:
        raise NoRoomForImages(
            f"{memory} has {format_size(free)} free, and a recording needs "
            f"{format_size(_SHARE_OF_MEMORY * _LOG_BYTES_LEAST)}: make that tmpfs larger "
            "(/dev/shm of a container: --shm-size=4g)"
        )
    return min(LOG_BYTES_MOST, free // _SHARE_OF_MEMORY)


def free_bytes(directory: Path) -> int:
    """What may still be written to the file system of a folder."""
    room = os.statvfs(directory)
    return room.f_bavail * room.f_frsize


def allocated_bytes(images: Iterable[Path]) -> int:
    """What sparse files take."""
    return sum(512 * path.stat().st_blocks for path in images)


_WINDOW_BYTES = 16 * MIB
_PIECE_BYTES = 4 * MIB
_LOOK_EVERY_S = 0.05


@dataclass(frozen=True)
class UnpackedLog:
    """The log of a run in memory, and a ledger for what is done with it."""

    log: Path
    memory: Path
    ledger: Ledger


class LogPacking:
    """Packs a log (xz) in a thread of its own from `with` on, beside whatever uses the processors meanwhile.

    Where the packed log reaches `limit_bytes`, the thread waits until it is `wanted` whatever its size. `finish` leaves the
    whole of it at `target`, or nothing; so does the end of the block without it.
    """

    def __init__(self, log: Path, target: Path, *, limit_bytes: int | None = None) -> None:
        self._log = log
        self._target = target
        self._part = target.with_name(f".{target.name}.part")
        self._limit_bytes = limit_bytes
        # Set once no limit holds any more, or nothing is to be packed any further.
        self._decided = threading.Event()
        self._is_over = False
        self._is_whole = False
        self._trouble: BaseException | None = None
        self._thread = threading.Thread(target=self._guarded, name="packing", daemon=True)

    def __enter__(self) -> Self:
        if self._limit_bytes is None:
            self._decided.set()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._decided.set()
        self._thread.join()
        self._part.unlink(missing_ok=True)

    def want(self) -> None:
        """From now on whatever its size."""
        self._decided.set()

    def finish(self) -> bool:
        """Wait until it is packed; False where it would be larger than its limit. OSError where it cannot be written."""
        while self._thread.is_alive() and not self._is_held_back():
            self._thread.join(_LOOK_EVERY_S)
        if self._trouble is not None:
            raise self._trouble
        if not self._is_whole:
            return False
        self._part.replace(self._target)
        return True

    def _is_held_back(self) -> bool:
        return not self._decided.is_set() and self._is_too_large()

    def _is_too_large(self) -> bool:
        return (
            self._limit_bytes is not None
            and self._part.exists()
            and self._part.stat().st_size > self._limit_bytes
        )

    def _guarded(self) -> None:
        try:
            self._pack()
        except BaseException as error:  # noqa: BLE001 -- of a thread; whoever waits for it raises it
            self._trouble = error

    def _pack(self) -> None:
        # Some interpreters are built without it, and most runs need it not.

        fastest = {
            "id": lzma.FILTER_LZMA2,
            "mode": lzma.MODE_FAST,
            "mf": lzma.MF_HC3,
            "nice_len": 64,
            "depth": 2,
            "dict_size": _WINDOW_BYTES,
        }
        with self._log.open("rb") as source, lzma.open(self._part, "wb", filters=[fastest]) as packed:
            while not self._is_over and (piece := source.read(_PIECE_BYTES)):
                packed.write(piece)
                if self._is_too_large():
                    self._decided.wait()
        # The end of the stream, which is written when it is closed, may be what is too much.
        if self._is_too_large():
            self._decided.wait()
        self._is_whole = not self._is_over


def unpack_log(log_folder: Path, target: Path, most_bytes: int) -> None:
    """The log as it was; StudyError if the packed one is damaged, or comes to more than a log may have."""
    left_bytes = most_bytes
    try:
        with codec.opened(log_folder) as file, lzma.open(file) as packed, target.open("wb") as log:
            while piece := packed.read(_PIECE_BYTES):
                left_bytes -= len(piece)
                if left_bytes < 0:
                    raise StudyError(
                        f"{log_folder} is not unpacked: it comes to more than {most_bytes:,} bytes, which is what its recording.json says, the "
                        f"most that a recording has ({LOG_BYTES_MOST:,}), or three quarters of what is free in {MEMORY_DIRECTORY}"
                    )
                log.write(piece)
    except (lzma.LZMAError, EOFError) as error:
        raise StudyError(f"{log_folder} is damaged: {error}") from error


def most_unpacked_bytes(folder: Path) -> int:
    """How large the log of a run may be: what was recorded, and what there is room for beside the images of its cuts."""
    recording = codec.read(RecordingFacts, folder / RECORDING_FILE)
    recorded = () if recording.log_bytes is None else (recording.log_bytes,)
    return min(LOG_BYTES_MOST, free_bytes(MEMORY_DIRECTORY) * 3 // 4, *recorded)


@contextmanager
def unpacked(folder: Path) -> Iterator[UnpackedLog]:
    """The log of a run, unpacked for the time of the block."""
    memory = MEMORY_DIRECTORY / f"bedplate-{os.getpid()}-{os.urandom(4).hex()}"
    with Ledger.open(state_directory(), f"{os.getpid()}-replay") as ledger:
        try:
            ledger.note(Holding("log_directory", str(memory)))
            memory.mkdir(mode=0o755)
            unpack_log(folder / LOG_FILE, memory / "log", most_unpacked_bytes(folder))
            yield UnpackedLog(memory / "log", memory, ledger)
        finally:
            with defer_interruptions():
                ledger.release(Commands())


# What an engine's new data and its log take at the most; where it is less, the rest is filled behind them.
_ENGINE_BYTES = 256 * MIB


def make_filesystem(site: Site, *, ledger: Ledger) -> AgedCopy | None:
    """New or aged, as the levels ask; which aged one."""
    if age_of(site.levels) is None:
        filesystem_for(site.levels.type).mkfs(site)
        return None
    made = restore_aged(site, ledger=ledger)
    return AgedCopy(made.key, made.identity, made.settled)


@dataclass
class RecordedAge:
    """Of one disk; without a `site` the plan asks for nothing, and nothing is looked at."""

    site: Site | None = None
    ballast: Ballast | None = None
    seen: list[FreeSpace] = field(default_factory=list)
    aged: AgedCopy | None = None

    @classmethod
    def begin(cls, site: Site, aged: AgedCopy | None) -> Self:
        """Before the engine's data; VerifyFailed where they have no room."""
        if {AGED, FILL}.isdisjoint(site.levels.features):
            return cls()
        share = fill_of(site.levels)
        age = cls(site, None if share is None else Ballast(site.target, share), aged=aged)
        if age.ballast is not None:
            age.ballast.before_load(_ENGINE_BYTES)
        age._look(MADE)
        return age

    def fill_up(self) -> None:
        """With the engine's data; VerifyFailed where it is not as full as was asked."""
        if self.ballast is not None:
            self.ballast.after_load()
        self._look(AFTER_LOAD)

    def end(self) -> tuple[FreeSpace, ...]:
        """After the clients: what was seen at each moment."""
        self._look(ENDED)
        return tuple(self.seen)

    def _look(self, moment: str) -> None:
        if self.site is not None:
            self.seen.append(free_space_of(self.site.levels.type, self.site.target, moment))


class OwnDiskWorkload(Workload):
    """A workload on the recorder's disk: each recording has an engine of its own, whose loading belongs to it.

    A verdict is made from its files on the host, and not in the visit.
    """

    needs: tuple[Need, ...] = (
        Need("unshare", "util-linux", "gives what looks at a recorded disk its own mounts"),
        Need("setpriv", "util-linux", "ends what looks at a recorded disk with its visit"),
    )
    drivers: tuple[Driver, ...] = (Driver(RECORDER, (LIBFUSE3,)),)

    def run(self, spec: RunSpec, context: VisitContext, directory: Path) -> RunRecord:
        """One run. What fails in it is its reason, and an interruption ends the visit."""
        recording = Recording(spec, context, directory)
        try:
            self.make(recording)
        except VisitFailed:
            raise
        except BedplateError as error:
            interruption = interruption_behind(error)
            if interruption is not None:
                raise interruption from error
            recording.reasons.extend(reasons_of(error))
        return recording.record()

    def make(self, recording: Recording) -> None:
        """Makes what the run is of."""
        raise NotImplementedError


def interruption_behind(error: BaseException) -> BaseException | None:
    """What asked the visit to end, where an error on the way out took its place; None where nothing did.

    Giving a disk back is more than a few steps, and one of them may fail: the visit has to end all the same.
    """
    behind = error.__context__
    while behind is not None and isinstance(behind, Exception):
        behind = behind.__context__
    return behind
