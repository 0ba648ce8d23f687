"""What a log of a recording is replayed with: whose data it has, and where it is cut."""

from __future__ import annotations

import ctypes
import json
import math
import mmap
import os
import random
import selectors
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, Self, TypeVar

from bedplate import registry
from bedplate.cuts.blame import Found
from bedplate.cuts.choice import (
    Recut,
    building_order,
    every_cut,
    recovery_length,
    recovery_points,
    second_cut,
    second_positions,
)
from bedplate.cuts.faults import ByteRange
from bedplate.cuts.log import (
    DEVICE_NAMES,
    DISCARD,
    DISK,
    JOURNAL,
    Acknowledged,
    CrashState,
    Log,
    read_log,
    window,
)
from bedplate.cuts.records import (
    DRAWN,
    JOURNAL_KEPT,
    RAM_JOURNAL,
    UNIT_PROFILES,
    USUAL_SECTOR_BYTES,
    CutPoint,
    Placement,
    PointOutcome,
    PointRecord,
    Profile,
    RecoveredPages,
    WeakerCut,
    late_us,
    sector_bytes,
)
from bedplate.errors import BedplateError, CommandFailed, KilledFromOutside, RequirementMissing
from bedplate.filesystem.adapter import Site
from bedplate.filesystem.after_cut import stands_beside_twins
from bedplate.filesystem.blocks import Layout
from bedplate.filesystem.mounted import MountedDisk
from bedplate.filesystem.refusals import write_back_wanted
from bedplate.host.block_requests import (
    CallCounter,
    CallTrace,
    RequestTrace,
    call_counter,
    call_trace,
    device_number,
    request_trace,
)
from bedplate.host.block_tree import attached_to
from bedplate.host.command import Account, Commands, Completed, started_apart
from bedplate.host.files import file_lock, folders_below
from bedplate.host.interruption import defer_interruptions
from bedplate.host.ledger import Holding, Holdings, Ledger, NoLedger
from bedplate.host.process import start_time
from bedplate.host.recorder import DRIVER as RECORDER_DRIVER
from bedplate.host.recorder import Recorder, RecorderSizes
from bedplate.host.scratch_device import (
    AttachedDevice,
    create_blank,
    fill_from,
    is_zeros,
    overwrite_image,
    passing_loop,
    write_all,
    zero,
)
from bedplate.host.tunables import have_write_back, tuned
from bedplate.model import codec
from bedplate.model.cell import JOURNAL_IN_RAM, UNTORN_OFF, Cell, FilesystemLevels
from bedplate.model.levels import Levels
from bedplate.model.visit import EMULATED, VisitRequest
from bedplate.units import GIB, KIB, MIB
from bedplate.visit.cuts import Checkpoints, CutEngine, OracleAnswer, Subject
from bedplate.visit.declaration import UntornWrites, untorn_writes
from bedplate.visit.recording import VisitContext
from bedplate.visit.server import ServerSite
from bedplate.workloads.power_cut.log import (
    RECOVERY_BYTES,
    LogPacking,
    RecordedAge,
    Room,
    free_bytes,
    log_limit_bytes,
    make_filesystem,
)

if TYPE_CHECKING:
    import subprocess

    from bedplate.workloads.power_cut.tearing import PagePlaces

# Enough for a person; a page of errors says no more.
_PROBLEMS_KEPT = 8

# Of these the file system's: the first says why it did not mount, the last which repair it was that let it.
_MOUNTING_KEPT, _REPAIRING_KEPT = 2, 3

_PROBLEM_LENGTH = 400


@dataclass(frozen=True)
class Recovered:
    """How a file system came back. `mounted` is false where neither a mount nor its repair helped.

    `repaired` says that it mounted only after a repair; `unclean` that its check found errors once the oracle had been
    asked and it was unmounted again, None where it was not checked. `replay_failed` says that a repair went on without the
    journal, which it could not replay. `refused` is why the first mount failed that did, None if none did. `kernel_said` is what the
    file system complained of in the kernel's log, None where nobody listened. `counted` is what it said of errors to who asked it.
    `pages` is how a server's pages came to it, and `places` where they lay in the end, None where nobody looked.
    Times in seconds.
    """

    mounted: bool
    repaired: bool = False
    unclean: bool | None = None
    replay_failed: bool = False
    mount_s: float | None = None
    fsck_s: float | None = None
    refused: str | None = None
    problems: tuple[str, ...] = ()
    kernel_said: tuple[str, ...] | None = None
    counted: tuple[str, ...] = ()
    pages: RecoveredPages | None = None
    places: PagePlaces | None = None


def why_again(recovered: Recovered, answer: OracleAnswer | None) -> str | None:
    """Why an image is built again and looked at once more: what may be the machine's fault as well as the image's. None without a reason."""
    if recovered.refused is not None:
        return recovered.refused
    return answer.detected[0] if answer is not None and answer.out_of_time else None


def looked_again(first: str | None, second: str | None, record: PointRecord) -> PointRecord:
    """The record of a second look, at an image that was built again, beside what ended the first one.

    What is wrong with an image is wrong with a copy of it. Where the second look needed no third, it was something else.
    """
    if first is None or second is not None:
        return record
    return replace(record, failed_once=_shortened(first))


def judge(
    point: CutPoint,
    window: CrashState,
    acknowledged: Acknowledged,
    recovered: Recovered,
    answer: OracleAnswer | None,
) -> PointRecord:
    """One point's record; `answer` is None where there was no file system to ask an engine on."""
    present = None if answer is None else answer.present
    missing = None if present is None else acknowledged.missing(present)
    found = () if answer is None else (*answer.detected, *answer.silent)
    lost = (
        ()
        if missing is None or not missing.transactions
        else (_lost_words(missing.transactions, acknowledged),)
    )
    return PointRecord(
        point=point,
        outcome=_outcome(recovered, answer, is_lost=bool(lost)),
        flush_position=window.flush_position,
        volatile_writes=window.volatile_writes,
        volatile_discards=window.volatile_discards,
        volatile_bytes=window.volatile_bytes,
        kept_writes=window.kept_writes,
        acknowledged=acknowledged.transactions,
        lost_transactions=0 if missing is None else missing.transactions,
        lost_ms=None if missing is None else missing.first_ms,
        unacknowledged=sum(
            last > acknowledged.highest.get(client, 0) for client, last in (present or {}).items()
        ),
        false_failures=sum(
            (present or {}).get(client, 0) >= number for client, number in acknowledged.failed.items()
        ),
        consistent=not found if found or present is not None else None,
        mount_s=recovered.mount_s,
        fsck_s=recovered.fsck_s,
        engine_start_s=None if answer is None else answer.start_s,
        oracle_s=None if answer is None else answer.oracle_s,
        unclean=recovered.unclean,
        replay_failed=recovered.replay_failed,
        kernel_said=recovered.kernel_said,
        engine_said=() if answer is None else tuple(map(_shortened, answer.disk_errors)),
        pages=recovered.pages,
        problems=tuple(map(_shortened, _problems(recovered.problems, (*found, *lost)))),
    )


# Of devices from the one that asks least: `model.device_cache.CACHES`, and in one of them what tears nothing first.
_WEAKER = (Profile.ORDERED, Profile.LOST, Profile.SUBSET_4K)

# What a profile asks no more than: a cut that is bad with one of those is no fault of what this one does besides.
_WEAKER_THAN: Mapping[Profile, Sequence[Profile]] = {
    Profile.ORDERED: (),
    Profile.LOST: _WEAKER[:1],
    Profile.WHOLE: _WEAKER[:2],
    Profile.SUBSET_4K: _WEAKER[:2],
    Profile.UNTORN_8K: _WEAKER[:2],
    Profile.UNTORN_16K: _WEAKER[:2],
    Profile.SUBSET_8K: _WEAKER[:2],
    Profile.SUBSET_16K: _WEAKER[:2],
    Profile.SUBSET_512: _WEAKER,
}


def with_weaker(record: PointRecord, replay: Callable[[CutPoint], PointRecord]) -> PointRecord:
    """A bad cut with what came of the same position where a device asks less, the first that is bad too; any other record as it is.

    So a cut is laid to the tearing of sectors only if it is good without that.
    """
    if not record.outcome.is_bad or record.point.control or record.point.placement is Placement.WHOLE:
        return record
    for profile in _WEAKER_THAN[record.point.profile]:
        other = replay(replace(record.point, profile=profile, state=None))
        if other.outcome.is_bad:
            weaker = WeakerCut(profile, other.outcome, other.lost_transactions, other.lost_ms, other.problems)
            return replace(record, weaker=weaker)
    return record


def _problems(of_filesystem: Sequence[str], of_engine: Sequence[str]) -> Sequence[str]:
    """What the file system and its repair said comes first: what an engine misses then is what they took."""
    kept = of_filesystem
    if len(kept) > _MOUNTING_KEPT + _REPAIRING_KEPT:
        kept = (*kept[:_MOUNTING_KEPT], *kept[-_REPAIRING_KEPT:])
    return (*kept, *of_engine)[:_PROBLEMS_KEPT]


def _outcome(recovered: Recovered, answer: OracleAnswer | None, *, is_lost: bool) -> PointOutcome:
    """The gravest of what was found."""
    if answer is None or not recovered.mounted:
        return PointOutcome.FILE_SYSTEM_LOST
    # An engine that complains and is wrong besides has been caught; one that only is wrong has not.
    if answer.detected:
        return PointOutcome.DETECTED
    if answer.silent:
        return PointOutcome.SILENT
    if is_lost:
        return PointOutcome.LOST
    if recovered.repaired or recovered.unclean:
        return PointOutcome.NEEDS_FSCK
    return PointOutcome.OK


def _lost_words(transactions: int, acknowledged: Acknowledged) -> str:
    return f"{transactions:,} of {acknowledged.transactions:,} acknowledged transactions are missing"


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _PROBLEM_LENGTH else f"{line[: _PROBLEM_LENGTH - 1]}…"


# A write of zeros this long leaves a hole, which needs no copying; mkfs and new WAL segments write many.
_HOLE_BYTES = 4096


@dataclass(frozen=True)
class Built:
    """The images of one cut, `disk` and where there is one `journal`, and the window that they came from."""

    window: CrashState
    images: tuple[Path, ...]

    @property
    def disk(self) -> Path:
        """The image of the data device."""
        return self.images[DISK]

    @property
    def journal(self) -> Path | None:
        """The image of the external journal, None without one."""
        return self.images[DISK + 1] if len(self.images) > 1 else None


class ImageBuilder:
    """Builds the images of a log's points, fastest in the order of `positions.building_order`.

    `directory` holds the durable images, best in memory. `sizes` are those of the devices in bytes, the disk first.
    The devices in `lost_devices` stand in memory and are blank after each cut. `base` are images of what the devices held before the
    log, which must stay as they are; without any they were blank. Not for several threads.
    """

    def __init__(
        self,
        log: Log,
        directory: Path,
        sizes: Sequence[int],
        *,
        window_bytes: int,
        measured_from: int = 0,
        lost_devices: Collection[int] = (),
        base: Sequence[Path] = (),
    ) -> None:
        used = [bool(history.changes) for history in log.histories]
        if not 1 <= len(sizes) <= len(DEVICE_NAMES) or any(used[len(sizes) :]):
            raise BedplateError(
                f"the write log {log.path} is of {max(1, sum(used))} devices, and {len(sizes)} sizes were given"
            )
        self._log = log
        self._paths = tuple(directory / f"durable-{name}" for name in DEVICE_NAMES[: len(sizes)])
        self._sizes = tuple(sizes)
        self._window_bytes = window_bytes
        self._measured_from = measured_from
        self._lost = frozenset(lost_devices)
        self._base = tuple(base)
        # How many changes of each device's history are in its durable image.
        self._applied = [0] * len(sizes)
        self._open: list[int] = []
        self._mapped: list[mmap.mmap] = []
        try:
            for device, (path, size) in enumerate(zip(self._paths, self._sizes, strict=True)):
                self._open.append(create_blank(path, size))
                self._mapped.append(mmap.mmap(self._open[device], size, prot=mmap.PROT_READ))
                self._lay_base(device)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop the durable images; those that were built stay."""
        while self._mapped:
            self._mapped.pop().close()
        while self._open:
            os.close(self._open.pop())
        for path in self._paths:
            path.unlink(missing_ok=True)

    def build(self, point: CutPoint, directory: Path) -> Built:
        """The images of one point in `directory`, under the devices' names, in place of former ones there.

        BedplateError if the log writes beyond a device's size; ValueError if it has no such position.
        """
        cut = window(self._log, point, self._window_bytes, measured_from=self._measured_from)
        with ExitStack() as opened:
            targets, paths = [], []
            for device, size in enumerate(self._sizes):
                path = directory / DEVICE_NAMES[device]
                is_lost = device in self._lost
                targets.append(create_blank(path, size) if is_lost else _former(path, size))
                opened.callback(os.close, targets[-1])
                paths.append(path)
                if not is_lost:
                    self._advance(device, cut.durable_until[device])
                    overwrite_image(self._open[device], self._mapped[device], targets[-1])
            for piece in cut.kept:
                if self._log.devices[piece.entry] not in self._lost:
                    self._apply(targets, piece.entry, piece.start, piece.length)
        return Built(cut, tuple(paths))

    def _advance(self, device: int, until: int) -> None:
        """Bring a durable image to just before entry `until`; from the beginning if it is further already."""
        changes, applied = self._log.histories[device].changes, self._applied[device]
        if applied and changes[applied - 1] >= until:
            os.ftruncate(self._open[device], 0)
            os.ftruncate(self._open[device], self._sizes[device])
            self._lay_base(device)
            applied = 0
        while applied < len(changes) and changes[applied] < until:
            self._apply(self._open, changes[applied], 0, self._log.lengths[changes[applied]])
            applied += 1
            self._applied[device] = applied
        self._applied[device] = applied

    def _lay_base(self, device: int) -> None:
        if self._base:
            fill_from(self._base[device], self._open[device])

    def _apply(self, files: Sequence[int], index: int, start: int, length: int) -> None:
        """Do to an image what a part of one entry did to its device."""
        device, offset = self._log.devices[index], self._log.offsets[index] + start
        if offset + length > self._sizes[device]:
            raise BedplateError(
                f"entry {index} of the write log {self._log.path} reaches to byte {offset + length} of "
                f"the {DEVICE_NAMES[device]}, which has {self._sizes[device]}; give the size that was recorded"
            )
        if self._log.flags[index] & DISCARD:
            zero(files[device], offset, length)
            return
        data = self._log.data(index, start, length)
        if length >= _HOLE_BYTES and is_zeros(data):
            zero(files[device], offset, length)
        else:
            write_all(files[device], data, offset)


def _former(path: Path, size_bytes: int) -> int:
    """The image there, to be written over; a blank one where there is none of that size, or a device still holds it."""
    if path.is_file() and path.stat().st_size == size_bytes and not attached_to(path):
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    return create_blank(path, size_bytes)


def rebuild(
    log: Log,
    point: CutPoint,
    directory: Path,
    sizes: Sequence[int],
    *,
    window_bytes: int,
    measured_from: int = 0,
    lost_devices: Collection[int] = (),
    base: Sequence[Path] = (),
) -> Built:
    """The images of one point from the log alone, bit for bit those of any builder."""
    with ImageBuilder(
        log,
        directory,
        sizes,
        window_bytes=window_bytes,
        measured_from=measured_from,
        lost_devices=lost_devices,
        base=base,
    ) as builder:
        return builder.build(point, directory)


# Where the engine's files are on a file system that was recorded, and then in every image of it.
DATA_DIRECTORY = "data"

# In the run's folder: the ReplayJob, from which any point can be built and asked again.
JOB_FILE = "job.json"


@dataclass(frozen=True)
class ReplayJob:
    """Everything that decides what comes of the points of one log, but the log itself.

    `filesystem` are the levels that were recorded. Sizes in bytes; `journal_bytes` is None without an external
    journal, and `loses_journal` says that it stood in memory and is gone after each cut. `recuts` are the recoveries to be cut again,
    whose own points are known once they are recorded; while they are, writes are answered up to `late_us` late, as when the log was.
    The devices have sectors of `sector_bytes`. Where it `listens`, the records have what the file system says of each image.
    What is `unreadable` of the disk, or of an external journal's device, gives an error to whoever reads it, until it is written.
    The server of a recovery that is recorded writes its pages by the cell's level `untorn_writes`. They have `page_bytes` where they are
    looked at, else None.
    """

    filesystem: FilesystemLevels
    subject: Subject
    points: tuple[CutPoint, ...]
    image_bytes: int
    window_bytes: int
    measured_from: int
    journal_bytes: int | None = None
    loses_journal: bool = False
    recuts: tuple[Recut, ...] = ()
    late_us: int = 0
    sector_bytes: int = USUAL_SECTOR_BYTES
    listens: bool = False
    unreadable: tuple[ByteRange, ...] = ()
    unreadable_on_journal: bool = False
    untorn_writes: str = UNTORN_OFF
    page_bytes: int | None = None

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """Those that are drawn in turns, as the plan has them: of controls, and of cuts that were sought or enumerated, none."""
        drawn = (point for point in self.points if not point.control and point.placement in DRAWN)
        return tuple(dict.fromkeys(point.profile for point in drawn))

    @property
    def most_records(self) -> int:
        """How many there are if each recovery is cut again: of each point, each cut in recovery, and each recovery as a whole."""
        return len(self.points) + sum(recut.cuts + 1 + recut.exhaustive for recut in self.recuts)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Of the disk and, where there is one, of the journal."""
        return (self.image_bytes, *(() if self.journal_bytes is None else (self.journal_bytes,)))

    def uncut(self, settled: int) -> ReplayJob:
        """The same of a positive control: the log up to the entry `settled`, after which the power stayed, as a journal in memory did."""
        point = CutPoint(0, settled, Profile.ORDERED, Placement.UNIFORM, seed=0)
        return replace(self, points=(point,), recuts=(), loses_journal=False)


def cut_engine(name: str) -> CutEngine:
    """What an engine has for power cuts; PlanError lists the known ones."""
    engine: CutEngine = registry.engine_part(name, "power_cut")
    return engine


def subject_of(context: VisitContext, name: str, cut_engine: CutEngine) -> Subject:
    """The data that a visit records, of the engine of that name."""
    return Subject(
        engine=name,
        rows=cut_engine.rows,
        settings=context.engine_settings,
        drivers=Levels(context.native_drivers),
        build=context.request.build,
        oracle=cut_engine.oracle,
        emulated=context.request.provenance.get("accelerator") == EMULATED,
        account=context.account,
        configuration=context.request.cell.cluster.configuration,
    )


_LOG_BYTES_MOST = GIB

# Of what is free: a log may be as large as the images, of which there are three at a time, and others work beside.
_SHARE_OF_ROOM = 8

# Of one cut: the image that it left, the copy that is recorded or durable, and that of a cut in recovery.
_IMAGES_AT_ONCE = 3

_LOG = "log"


class Examiner(Protocol):
    """What a worker has for its images, and their room."""

    room: Room

    def recover(
        self, devices: Sequence[AttachedDevice], promised: Mapping[int, int], settled: Callable[[], object]
    ) -> tuple[Recovered, OracleAnswer | None]:
        """Mount and ask as of any image; `settled` is called once all is written back, before the unmount."""

    def replay(self, point: CutPoint, builder: ImageBuilder, promised: Acknowledged) -> PointRecord:
        """Build an image and say what came of it."""


@dataclass(frozen=True)
class _Recovery:
    """A recovery that was recorded: its log, what came of it, and what ended a first look at the same image, None without one."""

    log: Log
    recovered: Recovered
    answer: OracleAnswer | None
    first_look: str | None


class SecondCuts:
    """Cuts recoveries again in `directory`, one after the other; the log of one with a bad cut is packed into the folder for logs."""

    def __init__(
        self, job: ReplayJob, directory: Path, examiner: Examiner, *, commands: Commands, workers: int
    ) -> None:
        self._job = job
        self._folder = directory / "recovery"
        self._examiner = examiner
        self._commands = commands
        self._workers = workers

    def cut(
        self, recut: Recut, built: Built, promised: Acknowledged, *, recorder: Path, log_folder: Path
    ) -> Iterator[PointRecord]:
        """What came of each cut in the recovery from `built`, and of the whole recovery; of that alone where it is bad.

        Of a short one also behind each write, and behind second cuts, as far as the recovery's share of such cuts goes.
        """
        with self._recorded(built, promised, recorder=recorder) as recovery:
            *drawn, whole = recovery_points(
                recovery.log, recut, profiles=self._job.profiles, window_bytes=self._job.window_bytes
            )
            every = every_cut(
                recovery.log,
                whole,
                number=whole.number + 1,
                most=recut.exhaustive,
                window_bytes=self._job.window_bytes,
            )
            records = self._judge_all(recovery, (*drawn, *every), whole, built, promised)
            yield from records
            is_bad = any(record.outcome.is_bad for record in records)
            if every and len(records) > 1:
                # After a bad cut another one shows nothing that was not there before it.
                good = {
                    each.point.position
                    for each in records
                    if each.point.placement is Placement.EVERY
                    and each.point.profile is Profile.ORDERED
                    and not each.outcome.is_bad
                }
                free = range(every[-1].number + 1, whole.number + 1 + recut.exhaustive)
                behind = self._behind(
                    recovery.log,
                    whole,
                    good=good,
                    free=free,
                    built=built,
                    promised=promised,
                    recorder=recorder,
                    log_folder=log_folder,
                )
                for record in behind:
                    yield record
                    is_bad |= record.outcome.is_bad
            if is_bad:
                self._keep(whole, log_folder)

    def _behind(
        self,
        log: Log,
        whole_cut: CutPoint,
        *,
        good: Collection[int],
        free: range,
        built: Built,
        promised: Acknowledged,
        recorder: Path,
        log_folder: Path,
    ) -> Iterator[PointRecord]:
        """What came of third cuts, behind each write of recoveries from second cuts at these positions, as long as numbers are free for them."""
        folder = self._folder / "behind"
        for position in second_positions(log):
            if position not in good or not free:
                continue
            second_end = replace(whole_cut, second=position)
            folder.mkdir()
            try:
                second = second_image(self._job, log, second_end, built, folder)
                behind = SecondCuts(
                    self._job, folder, self._examiner, commands=self._commands, workers=self._workers
                )
                with behind._recorded(second, promised, recorder=recorder) as recovery:
                    second_end = replace(second_end, position=len(recovery.log), number=free.start)
                    points = every_cut(
                        recovery.log,
                        second_end,
                        number=free.start + 1,
                        most=len(free) - 1,
                        window_bytes=self._job.window_bytes,
                    )
                    if not points and recovery_length(recovery.log) > 1:
                        return
                    free = free[len(points) + 1 :]
                    records = behind._judge_all(recovery, points, second_end, second, promised)
                    yield from records
                    if any(record.outcome.is_bad for record in records):
                        behind._keep(second_end, log_folder)
            finally:
                shutil.rmtree(folder)

    @contextmanager
    def _recorded(self, built: Built, promised: Acknowledged, *, recorder: Path) -> Iterator[_Recovery]:
        """The recovery from `built`, as long as its log is looked at."""
        self._examiner.room.demand(built.images * _IMAGES_AT_ONCE)
        self._folder.mkdir()
        try:
            recovered, answer = self._record(recorder, built, promised)
            reason = why_again(recovered, answer)
            if reason is not None:
                # As of any cut: what is the image's fault comes again.
                shutil.rmtree(self._folder)
                self._folder.mkdir()
                recovered, answer = self._record(recorder, built, promised)
            with read_log(self._folder / _LOG) as log:
                yield _Recovery(log, _with_page_writes(recovered, log, self._job.profiles), answer, reason)
        finally:
            shutil.rmtree(self._folder)

    def _judge_all(
        self,
        recovery: _Recovery,
        points: Sequence[CutPoint],
        whole_cut: CutPoint,
        built: Built,
        promised: Acknowledged,
    ) -> list[PointRecord]:
        """What came of the cuts of a recovery and of the whole of it; of that alone where it is bad."""
        log, recovered = recovery.log, recovery.recovered
        cut = window(log, whole_cut, self._job.window_bytes)
        record = judge(whole_cut, cut, promised, recovered, recovery.answer)
        again = why_again(recovered, recovery.answer)
        record = replace(
            looked_again(recovery.first_look, again, record), recovery_writes=recovery_length(log)
        )
        if record.outcome.is_bad:
            return [record]
        # The whole is judged by its image as each cut is; how it was written is known of the recording alone.
        return [
            replace(each, pages=recovered.pages, recovery_writes=record.recovery_writes)
            if each.point == whole_cut
            else each
            for each in self.replayed(log, (*points, whole_cut), built, promised)
        ]

    def _keep(self, whole_cut: CutPoint, log_folder: Path) -> None:
        with LogPacking(self._folder / _LOG, log_folder / whole_cut.recovery_log_files[-1]) as packing:
            packing.finish()

    def replayed(
        self, log: Log, points: Sequence[CutPoint], built: Built, promised: Acknowledged
    ) -> list[PointRecord]:
        """What came of cuts of a recovery that was recorded on the images of `built`, which stay."""
        self._folder.mkdir(exist_ok=True)
        builder = ImageBuilder(
            log,
            self._folder,
            self._job.sizes,
            window_bytes=self._job.window_bytes,
            lost_devices=(JOURNAL,) if self._job.loses_journal else (),
            base=built.images,
        )
        with builder:
            return [
                with_weaker(
                    self._examiner.replay(point, builder, promised),
                    lambda weaker: self._examiner.replay(weaker, builder, promised),
                )
                for point in building_order(points)
            ]

    def _record(
        self, driver: Path, built: Built, promised: Acknowledged
    ) -> tuple[Recovered, OracleAnswer | None]:
        with below_recorder(
            self._job, built, driver, self._folder, commands=self._commands, workers=self._workers
        ) as (recorder, devices):
            for device in devices:
                have_write_back(device)
            return self._examiner.recover(devices, promised.highest, recorder.seal)


def _with_page_writes(recovered: Recovered, log: Log, profiles: Sequence[Profile]) -> Recovered:
    """With what reached the disk of the pages, where it is said to write a unit whole."""
    units = [each for each in profiles if each in UNIT_PROFILES.values()]
    if recovered.pages is None or recovered.places is None or not units:
        return recovered
    writes, uncovered = recovered.places.writes(log, range(len(log)), units[0])
    return replace(recovered, pages=replace(recovered.pages, writes=writes, uncovered_writes=uncovered))


def second_image(job: ReplayJob, log: Log, third: CutPoint, built: Built, folder: Path) -> Built:
    """The images, in `folder`, of the second cut of a third one, in the recovery that `log` has and that was recorded on those of `built`."""
    return rebuild(
        log,
        second_cut(third),
        folder,
        job.sizes,
        window_bytes=job.window_bytes,
        lost_devices=(JOURNAL,) if job.loses_journal else (),
        base=built.images,
    )


@contextmanager
def below_recorder(
    job: ReplayJob, built: Built, driver: Path, folder: Path, *, commands: Commands, workers: int
) -> Iterator[tuple[Recorder, list[AttachedDevice]]]:
    """A recorder in the empty `folder` whose disks hold what these images do, and a loop device above each."""
    room = os.statvfs(folder)
    share = room.f_bavail * room.f_frsize // (_SHARE_OF_ROOM * workers)
    sizes = RecorderSizes(job.image_bytes, min(_LOG_BYTES_MOST, share), job.journal_bytes)
    with Recorder.start(
        driver, folder, sizes, ledger=NoLedger(), commands=commands, late_us=job.late_us
    ) as recorder:
        for image, store in zip(built.images, recorder.stores, strict=True):
            _fill(store, image)
        with ExitStack() as stack:
            yield (
                recorder,
                [stack.enter_context(passing_loop(disk, job.sector_bytes)) for disk in recorder.disks],
            )


def _fill(store: Path, image: Path) -> None:
    target = os.open(store, os.O_RDWR | os.O_CLOEXEC)
    try:
        fill_from(image, target)
    finally:
        os.close(target)


# The mark in the log where pressure begins, and the part of the recording that has none.
PRESSURE = "pressure"

CALM_SHARE = 0.6

# What the clients may add to a log that can hold more: as much as is cut and replayed in the time of a visit.
ROOM_BYTES = 512 * MIB

_STEP_S = 0.02
_PUSH_EVERY_S = 1.0
_PRESS_EVERY_S = 0.03
_FOLDERS = 4
_FILES_MOST = 64
_SIZES = (0, KIB, 4 * KIB, 20 * KIB, 150 * KIB)

# A neighbour that fills the disk would end the engine.
_LEFT_BYTES = 32 * MIB

# fcntl.h: SYNC_FILE_RANGE_WRITE, which begins to write and waits for nothing.
_BEGIN_TO_WRITE = 2

_END_LIMIT_S = 60.0

# How often XFS writes its metadata back, in hundredths of a second (Documentation/admin-guide/xfs.rst).
_XFS_PERIOD = Path("/proc/sys/fs/xfs/xfssyncd_centisecs")

_PERIOD_S_MOST = 60.0

# From the mount to the first client: 1 to 2 s on idle cores, and time is left.
_PREPARED_S = 2.5


@dataclass(frozen=True)
class Pace:
    """Of a log that had `first_bytes` at the monotonic time `began_s`: `room_bytes` for all of `duration_s`."""

    log: Path
    first_bytes: int
    room_bytes: int
    began_s: float
    duration_s: float

    @classmethod
    def begin(cls, log: Path, most_bytes: int, duration_s: float) -> Pace:
        """From now on; in a log that may become so large."""
        first_bytes = log.stat().st_size
        room_bytes = max(1, min(ROOM_BYTES, most_bytes - first_bytes))
        return cls(log, first_bytes, room_bytes, time.monotonic(), duration_s)

    def pause_s(self) -> float:
        """How long to wait before the next transaction; 0 while this second's part of the log has room."""
        elapsed_s = time.monotonic() - self.began_s
        seconds = int(elapsed_s) + 1
        dealt_bytes = self.room_bytes * seconds / max(1, math.ceil(self.duration_s))
        if self.log.stat().st_size - self.first_bytes < dealt_bytes:
            return 0.0
        return seconds - elapsed_s


class Pressure:
    """From `with` to its end, but for the first `calm_s`: the neighbour in `folder`, the engine's files in `files`, on `disk`.

    The log is marked as it begins. A neighbour that cannot go on ends by itself: `trouble` says why. `checkpoints`
    are the engine's, if it has any. `pressed`: what the engine has dirty is written back all the while.
    """

    def __init__(
        self,
        folder: Path,
        files: Path,
        disk: Path,
        *,
        calm_s: float,
        seed: int,
        mark_file: Path,
        checkpoints: AbstractContextManager[Checkpoints] | None = None,
        pressed: bool = False,
    ) -> None:
        self.trouble: str | None = None
        self._folder = folder
        self._files = files
        self._disk = disk
        self._calm_s = calm_s
        self._mark_file = mark_file
        self._checkpoints = checkpoints
        self._draw = random.Random(f"neighbour {seed}")  # noqa: S311 -- chance, not secrecy
        self._is_over = threading.Event()
        self._crew = [
            threading.Thread(target=self._guarded, args=(work,), daemon=True)
            for work in (self._work, *((self._checkpoint,) if checkpoints is not None else ()))
        ]
        if pressed:
            self._crew.append(threading.Thread(target=self._press, daemon=True))
        self._checkpointer: Checkpoints | None = None
        self._undo = ExitStack()
        self._made: list[Path] = []
        self._libc = ctypes.CDLL(None, use_errno=True)

    def __enter__(self) -> Self:
        try:
            if self._checkpoints is not None:
                self._checkpointer = self._undo.enter_context(self._checkpoints)
            for thread in self._crew:
                thread.start()
            return self  # noqa: TRY300 -- behind the `try` nobody would end it
        except BaseException as error:
            # A thread that goes on keeps the recorded file system busy.
            self.__exit__(type(error))
            raise

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._is_over.set()
        if kind is not None and self._checkpointer is not None:
            self._checkpointer.abandon()
        for thread in self._crew:
            if thread.ident is not None:
                thread.join(_END_LIMIT_S)
        self._undo.close()

    def _guarded(self, task: Callable[[], None]) -> None:
        try:
            if not self._is_over.wait(self._calm_s):
                task()
        except (BedplateError, OSError) as error:
            if not self._is_over.is_set():
                self.trouble = f"the pressure on the recorded file system ended early: {error}"

    def _press(self) -> None:
        while not self._is_over.wait(_PRESS_EVERY_S):
            self._write_back(self._files, since_s=0.0)

    def _checkpoint(self) -> None:
        assert self._checkpointer is not None  # noqa: S101 -- entered before this thread began
        while not self._is_over.wait(_PUSH_EVERY_S):
            self._checkpointer.checkpoint()

    def _work(self) -> None:
        # Not by way of the stand, whose marks are for the thread that signals interrupt.
        self._mark_file.write_text(PRESSURE)
        self._folder.mkdir()
        for number in range(_FOLDERS):
            (self._folder / str(number)).mkdir()
        number, pushed_s = 0, time.monotonic()
        while not self._is_over.wait(_STEP_S):
            number += 1
            self._step(number)
            if time.monotonic() - pushed_s >= _PUSH_EVERY_S:
                self._push(time.time() - 2 * _PUSH_EVERY_S)
                pushed_s = time.monotonic()

    def _step(self, number: int) -> None:
        """A new file, another name or another length for one that is there, or one less."""
        draw = self._draw
        deed = draw.random()
        if not self._made or (deed < 0.5 and len(self._made) < _FILES_MOST):
            path = self._a_name(number)
            if _free_bytes(self._folder) > _LEFT_BYTES:
                path.write_bytes(draw.randbytes(draw.choice(_SIZES)))
                self._made.append(path)
            return
        at = draw.randrange(len(self._made))
        if deed < 0.7:
            self._made[at] = self._made[at].rename(self._a_name(number))
        elif deed < 0.8:
            os.truncate(self._made[at], draw.choice(_SIZES))
        else:
            self._made.pop(at).unlink()

    def _a_name(self, number: int) -> Path:
        return self._folder / str(self._draw.randrange(_FOLDERS)) / f"{number:08}-of-a-neighbour"

    def _push(self, since_s: float) -> None:
        """What the engine or the neighbour has changed since then, in the order of the folders and not in theirs; and metadata."""
        for top in (self._files, self._folder):
            self._write_back(top, since_s)
        with suppress(OSError):
            self._begin_to_write(self._disk)

    def _write_back(self, top: Path, since_s: float) -> None:
        for _, entries in folders_below(top):
            for entry in entries:
                # A file may go, and some file systems refuse: it is only asked for.
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime >= since_s:
                        self._begin_to_write(Path(entry.path))

    def _begin_to_write(self, path: Path) -> None:
        # A pipe of the engine's would else be waited for.
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            self._libc.sync_file_range(file, ctypes.c_int64(0), ctypes.c_int64(0), _BEGIN_TO_WRITE)
        finally:
            os.close(file)


def _free_bytes(folder: Path) -> int:
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize


@dataclass(frozen=True)
class OwnWriteback:
    """When a file system writes its metadata back by itself: `first_s` after its mount, and then every `period_s`.

    The mount begins at the monotonic time `mounted_s`.
    """

    mounted_s: float
    first_s: float
    period_s: float

    def pause_s(self, elapsed_s: float, duration_s: float) -> float:
        """How long to wait, `elapsed_s` after the mount, so that one of these times falls into a recording.

        It comes in the last part, unless it does so without waiting.
        """
        missed = max(0, math.ceil((elapsed_s + duration_s / 10 - self.first_s) / self.period_s))
        next_s = self.first_s + self.period_s * missed
        if next_s <= elapsed_s + duration_s * 0.9:
            return 0.0
        return next_s - elapsed_s - duration_s * 0.75


@contextmanager
def own_writeback(
    type: str,  # noqa: A002 - the plan's word
    duration_s: float,
    *,
    ledger: Ledger,
    setting: Path = _XFS_PERIOD,
) -> Iterator[OwnWriteback | None]:
    """Mount a file system within it whose recording of `duration_s` is about to be prepared. None of a type that has no such time.

    XFS pushes all its metadata to the disk at a fixed time after the mount, and else hardly ever in seconds. It reads the
    setting when it is mounted, so for that moment it is such that the first time falls into the recording, which else would
    wait for it. Another XFS that reads it in that moment writes back earlier, once. The file is its own lock: of two that
    set it, the second would take the value of the first for the machine's. Where nobody may set it (a container), the
    recording waits.
    """
    try:
        period_s = int(setting.read_text()) / 100
    except (OSError, ValueError):
        period_s = math.inf
    if type != "xfs" or period_s > _PERIOD_S_MOST:
        yield None
        return
    first_s = min(period_s, _PREPARED_S + 0.75 * duration_s)
    with ExitStack() as undo:
        if first_s < period_s:
            try:
                undo.enter_context(file_lock(setting, of_system=True))
                undo.enter_context(tuned(ledger, {setting: str(round(100 * first_s))}))
            except (OSError, BedplateError):
                first_s = period_s
        yield OwnWriteback(time.monotonic(), first_s, period_s)


# Where the plan names a device for the journal, its recorded twin need not be as large.
_JOURNAL_BYTES = 128 * MIB

# So far the clients may fill it; what the engine and the kernel still hold of theirs comes on top.
_SHARE_FOR_CLIENTS = 0.8

_SHARE_DEALT_OUT = 0.7
_SYNC_LIMIT_S = 600.0
_WORKERS_MOST = 4
_QUOTED = 2000

# The programs of workers: what comes of each point of a job, and why one of them is bad.
REPLAYS = "bedplate.workloads.power_cut.worker"

INQUESTS = "bedplate.workloads.power_cut.inquest_worker"
_Record = TypeVar("_Record")


@dataclass
class RecordedSetup:
    """A file system on devices that log, mounted for the engine."""

    data_directory: Path
    mark_file: Path
    log: Path
    memory: Path
    neighbour: Path
    disk: Path
    own_writeback: OwnWriteback | None
    log_limit_bytes: int
    journal_bytes: int | None
    loses_journal: bool
    recorder: Recorder
    request: VisitRequest
    account: Account
    commands: Commands
    ledger: Ledger
    socket_directory: Path
    tracefs: Path
    undo: ExitStack
    room_bytes: int = ROOM_BYTES
    untorn: UntornWrites | None = None
    age: RecordedAge = field(default_factory=RecordedAge)
    layout: Callable[[], Layout] = Layout
    resume: Callable[[Callable[[], object]], bool] = lambda _: False
    complaints: Callable[[], tuple[str, ...]] = tuple
    journal: Path | None = None

    def server_site(self) -> ServerSite:
        """For a server of the cell's build; its folder of sockets goes with the setup. What its pages are written by is `untorn` from now on."""
        self.socket_directory.mkdir(mode=0o700)
        shutil.chown(self.socket_directory, self.account.uid, self.account.gid)
        self.undo.callback(shutil.rmtree, self.socket_directory, ignore_errors=True)
        request, counts = self.request, self.memory / "untorn-writes"
        self.untorn = untorn_writes(request.cell, request.native_drivers, counts, self.account)
        site = ServerSite(
            build=self.request.build,
            data_directory=self.data_directory,
            socket_directory=self.socket_directory,
            log=self.memory / "server.log",
            account=self.account,
            commands=self.commands,
            ledger=self.ledger,
        )
        return self.untorn.below(site) if self.untorn else site

    def pace(self, duration_s: float) -> Callable[[], float]:
        """By the log's size, from now on."""
        return Pace.begin(self.log, self.log_for_clients_bytes(), duration_s).pause_s

    def mark(self, text: str) -> None:
        """Through the recorder; an interruption between its open and its close would leave the recorder busy."""
        with defer_interruptions():
            self.recorder.write_mark(text)

    def mark_count(self) -> int:
        """By the recorder's own word; RecorderFailed if it has died."""
        return self.recorder.status().marks

    def settle(self) -> None:
        """This file system only."""
        self.commands.run(["sync", "--file-system", str(self.data_directory)], timeout_s=_SYNC_LIMIT_S)

    def log_for_clients_bytes(self) -> int:
        """Below the size at which they are told to end."""
        return int(_SHARE_DEALT_OUT * self.log_limit_bytes)

    def await_own_writeback(self, duration_s: float) -> None:
        """Until what the file system writes back by itself falls into a recording of so long."""
        if (own := self.own_writeback) is not None:
            threading.Event().wait(own.pause_s(time.monotonic() - own.mounted_s, duration_s))

    def foreign_syncs(self) -> CallCounter:
        """Between preparation and end nobody here calls sync(2)."""
        return call_counter(self.tracefs, ledger=self.ledger, commands=self.commands)

    def block_requests(self, *, with_done: bool) -> RequestTrace:
        """Who asks the recorded devices for what; CallsNotCounted where the kernel does not tell."""
        devices = [device_number(path) for path in (self.disk, self.journal) if path is not None]
        return request_trace(
            devices, self.tracefs, ledger=self.ledger, commands=self.commands, with_done=with_done
        )

    def name_calls(self) -> CallTrace:
        """Which names and sizes the engine changes, and when; CallsNotCounted where the kernel does not tell."""
        place = self.data_directory.parent
        return call_trace(place, self.tracefs, ledger=self.ledger, commands=self.commands)

    def is_log_nearly_full(self) -> bool:
        """By its file, which no request of the recorder's has to wait for."""
        return self.log.stat().st_size >= _SHARE_FOR_CLIENTS * self.log_limit_bytes

    def seal(self) -> None:
        """End the log here."""
        self.recorder.seal()


@dataclass(frozen=True)
class PowerBench:
    """Records and replays in a visit: `memory` is the visit's folder on tmpfs, `place` its folder of the ledger."""

    request: VisitRequest
    account: Account
    commands: Commands
    ledger: Ledger
    memory: Path
    place: Path

    @property
    def cell(self) -> Cell:
        """The cell under test."""
        return self.request.cell

    @contextmanager
    def recorded(
        self,
        image_bytes: int,
        duration_s: float,
        *,
        unmounted: Callable[[Sequence[str]], object] = lambda _: None,
        at_rest: Callable[[Recorder], object] = lambda _: None,
    ) -> Iterator[RecordedSetup]:
        """From mkfs to a mounted file system with a folder for the engine; all given back afterwards.

        `unmounted` is called with the names of its devices when it is unmounted again, and they are still attached. `at_rest` is called when they
        are detached, while the recorder still logs.
        """
        levels, dataset = self.request.cell.filesystem, self.request.dataset.levels
        sizes = RecorderSizes(image_bytes, log_limit_bytes(self.memory), self._journal_bytes(levels))
        folder, mount_point = self.memory / "recording", self.place / "recorded"
        folder.mkdir()
        mount_point.mkdir()
        with ExitStack() as undo:
            undo.callback(mount_point.rmdir)
            recorder = undo.enter_context(self._recorder(folder, sizes))
            undo.callback(at_rest, recorder)
            attach = partial(
                recorder.attach, write_back=write_back_wanted(levels), sector_bytes=sector_bytes(dataset)
            )
            disk = attach(recorder.disk)
            undo.callback(recorder.detach, disk)
            journal = None if recorder.journal is None else attach(recorder.journal)
            if journal is not None:
                undo.callback(recorder.detach, journal)
            undo.callback(unmounted, [each.name for each in (disk, journal) if each is not None])
            site = Site(levels, disk, mount_point, self.commands, journal)
            aged = make_filesystem(site, ledger=self.ledger)
            mounted = undo.enter_context(MountedDisk(site, self.ledger))
            filesystem = mounted.filesystem
            with own_writeback(levels.type, duration_s, ledger=self.ledger) as own:
                mounted.mount_as_asked()
            age = RecordedAge.begin(site, aged)
            data_directory = mount_point / DATA_DIRECTORY
            data_directory.mkdir(mode=0o700)
            shutil.chown(data_directory, self.account.uid, self.account.gid)
            yield RecordedSetup(
                data_directory,
                recorder.mark,
                recorder.log,
                self.memory,
                mount_point / "neighbour",
                Path(disk.path),
                own,
                sizes.log_limit_bytes,
                sizes.journal_bytes,
                levels.journal_device == JOURNAL_IN_RAM and dataset.get(RAM_JOURNAL) != JOURNAL_KEPT,
                recorder,
                self.request,
                self.account,
                self.commands,
                self.ledger,
                self.place / "recorded-socket",
                self.place / "tracefs",
                undo,
                age=age,
                layout=partial(filesystem.layout, site),
                resume=partial(filesystem.resume, site),
                complaints=partial(filesystem.complaints, site),
                journal=Path(journal.path) if journal else None,
            )

    def replayed(
        self, log: Path, job: ReplayJob, report: Callable[[str], None], *, log_folder: Path
    ) -> Iterator[PointRecord]:
        """What came of each point, and of the recoveries that are cut again, from as many workers as keep the processors busy.

        The logs of recoveries that are wanted are packed into `log_folder`.
        """
        more = (
            ("--recorder", str(self._driver()), "--kept", str(log_folder))
            if job.recuts or job.unreadable
            else ()
        )
        return replayed(log, job, report, memory=self.memory, ledger=self.ledger, worker_options=more)

    def _recorder(self, folder: Path, sizes: RecorderSizes) -> Recorder:
        late = late_us(self.request.dataset.levels)
        return Recorder.start(
            self._driver(), folder, sizes, ledger=self.ledger, commands=self.commands, late_us=late
        )

    def _driver(self) -> Path:
        path = self.request.native_drivers.get(RECORDER_DRIVER)
        if path is None:
            raise RequirementMissing(
                f"the request names no driver {RECORDER_DRIVER}; `bedplate doctor PLAN --install` builds it"
            )
        return Path(path)

    def _journal_bytes(self, levels: FilesystemLevels) -> int | None:
        if levels.journal != "external":
            return None
        device = self.request.journal_device
        return _JOURNAL_BYTES if device is None or device.image_bytes is None else device.image_bytes


def replayed(
    log: Path,
    job: ReplayJob,
    report: Callable[[str], None],
    *,
    memory: Path,
    ledger: Holdings,
    worker_options: Sequence[str] = (),
) -> Iterator[PointRecord]:
    """What came of each point of a job, from as many workers as keep the processors busy; `worker_options` are further options of each."""
    workers = worker_count(job, log_bytes=log.stat().st_size, room_bytes=free_bytes(memory))
    with Workers(log, job, workers, memory=memory, ledger=ledger, worker_options=worker_options) as running:
        yield from running.records(report)


def judge_alone(
    log: Path,
    job: ReplayJob,
    point: CutPoint,
    *,
    memory: Path,
    ledger: Holdings,
    recoveries: Sequence[Path] = (),
) -> PointRecord:
    """What came of one point; `recoveries` are the logs up to that of the recovery that it cuts, none for a cut of the recording itself."""
    more = recovery_options(recoveries)
    with Workers(log, _alone(job, point), 1, memory=memory, ledger=ledger, worker_options=more) as running:
        (record,) = running.records(lambda _: None)
    return record


def image_of(
    log: Path, job: ReplayJob, point: CutPoint, *, memory: Path, keep: Path, recoveries: Sequence[Path] = ()
) -> Built:
    """One point's image in `keep`, as the cut left it; nothing is mounted. `recoveries` as for `judge_alone`."""
    with ExitStack() as opened, tempfile.TemporaryDirectory(dir=memory) as folder:
        return rebuilt(
            opened.enter_context(read_log(log)), _alone(job, point), Path(folder), keep, recoveries
        )


def _alone(job: ReplayJob, point: CutPoint) -> ReplayJob:
    """The job of one point, behind the one whose recovery it cuts."""
    first = tuple(each for each in job.points if each.number == point.recovery_of)
    return replace(job, points=(*first, point), recuts=())


def inquire(
    log: Path,
    job: ReplayJob,
    point: CutPoint,
    *,
    most: int,
    memory: Path,
    ledger: Holdings,
    recording_file: Path,
    recoveries: Sequence[Path] = (),
) -> Found:
    """Why a point is bad, by `most` replays at most; the facts of its `recording_file` bound losses, `recoveries` as for `judge_alone`."""
    # A worker stands elsewhere.
    more = ["--most", str(most), "--recording", str(recording_file.absolute())]
    more += recovery_options(recoveries)
    alone = _alone(job, point)
    with Workers(
        log, alone, 1, memory=memory, ledger=ledger, worker_options=more, program=INQUESTS
    ) as running:
        (found,) = running.printed(Found, lambda _: None)
    return found


def recovery_options(recoveries: Iterable[Path]) -> list[str]:
    """As options of a worker: the logs of recoveries, each of which was recorded on a cut of the one before."""
    return [word for path in recoveries for word in ("--recovery", str(path))]


def rebuilt(log: Log, job: ReplayJob, folder: Path, keep: Path, recoveries: Sequence[Path]) -> Built:
    """The image in `keep` of the job's last point; of a cut in recovery on that of the first one, which is built in `folder`."""
    point = job.points[-1]
    build = partial(
        rebuild, window_bytes=job.window_bytes, lost_devices=(JOURNAL,) if job.loses_journal else ()
    )
    if not recoveries:
        return build(log, point, keep, job.sizes, measured_from=job.measured_from)
    base = build(log, job.points[0], folder, job.sizes, measured_from=job.measured_from)
    with ExitStack() as opened:
        logs = [opened.enter_context(read_log(path)) for path in recoveries]
        base = on_second(job, logs, point, base, folder)
        return build(logs[-1], point, keep, job.sizes, base=base.images)


def on_second(
    job: ReplayJob, recovery_logs: Sequence[Log], point: CutPoint, built: Built, folder: Path
) -> Built:
    """What the recovery that a point cuts began with: images of the first cut, or in `folder` of the second one of a third.

    `recovery_logs` are those of `recovery_options`.
    """
    if point.second is None:
        return built
    place = folder / "second"
    place.mkdir(exist_ok=True)
    return second_image(job, recovery_logs[0], point, built, place)


def worker_count(job: ReplayJob, *, log_bytes: int, room_bytes: int, processors: int | None = None) -> int:
    """One for each processor, and one for two more; a few at most. One where two images cannot be mounted at a time.

    A worker spends half of its time waiting for mounts, unmounts and a server that starts or stops, so more of them keep the
    processors busy. They need memory: of each an image and a copy of it, both at most as large as the log, must have room.
    """
    if not stands_beside_twins(job.filesystem):
        return 1
    processors = processors or os.cpu_count() or 1
    each_bytes = 2 * log_bytes + RECOVERY_BYTES
    more = (processors + 1) // 2
    wanted = processors + min(more, max(0, room_bytes // each_bytes - processors))
    return max(1, min(wanted, _WORKERS_MOST, len(job.points)))


class Workers:
    """The workers of one job from `with` to its end; leaving the block kills those that still work.

    Begin it in the thread that outlives it: the kernel ends them with that thread. `worker_options` are further options of each.
    """

    def __init__(
        self,
        log: Path,
        job: ReplayJob,
        count: int,
        *,
        memory: Path,
        ledger: Holdings,
        worker_options: Sequence[str] = (),
        program: str = REPLAYS,
    ) -> None:
        self._program = program
        self._log = log
        self._job = job
        self._count = count
        self._memory = memory
        self._ledger = ledger
        self._more = tuple(worker_options)
        self._undo = ExitStack()
        self._running: list[tuple[subprocess.Popen[bytes], Path]] = []

    def __enter__(self) -> Self:
        try:
            self._begin()
            return self  # noqa: TRY300 -- behind the `try` nobody would end them
        except BaseException:
            self._undo.close()
            raise

    def _begin(self) -> None:
        undo, job_file = self._undo, self._memory / "job.json"
        undo.callback(job_file.unlink, missing_ok=True)
        codec.write(job_file, self._job)
        for share in range(self._count):
            folder = self._memory / f"replay-{share}"
            undo.callback(shutil.rmtree, folder, ignore_errors=True)
            folder.mkdir()
            with (self._memory / f"replay-{share}.err").open("wb") as errors, defer_interruptions():
                process = started_apart(self._command_line(job_file, folder, share), errors)
                undo.callback(self._end, process)
                self._ledger.note(Holding("process", str(process.pid), start_time(process.pid) or ""))
            self._running.append((process, Path(errors.name)))

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def records(self, report: Callable[[str], None]) -> Iterator[PointRecord]:
        """Each record as it comes; BedplateError with a worker's words if one does not end well."""
        return self.printed(PointRecord, report)

    def printed(self, kind: type[_Record], report: Callable[[str], None]) -> Iterator[_Record]:
        """The same of a program that prints others."""
        with selectors.DefaultSelector() as selector:
            for process, errors in self._running:
                assert process.stdout is not None  # noqa: S101 -- Popen was given a pipe
                selector.register(process.stdout, selectors.EVENT_READ, [process, errors, b""])
            while selector.get_map():
                for key, _ in selector.select():
                    process, errors, rest = key.data
                    stream: BinaryIO = process.stdout
                    piece = os.read(stream.fileno(), 65536)
                    if not piece:
                        selector.unregister(stream)
                        _require_success(process, errors, report)
                        continue
                    *lines, key.data[2] = (rest + piece).split(b"\n")
                    yield from (codec.from_json(kind, json.loads(line)) for line in lines)

    def _command_line(self, job_file: Path, folder: Path, share: int) -> tuple[str, ...]:
        return (
            # A visit that is killed takes them along; and the first process of a namespace, all others in it.
            *("setpriv", "--pdeathsig", "KILL"),
            *("unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc"),
            *(sys.executable, "-S", "-m", self._program),
            *(str(job_file), str(self._log), str(folder)),
            *("--share", str(share), "--of", str(self._count)),
            *self._more,
        )

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        self._ledger.settled(Holding("process", str(process.pid)))


def _require_success(process: subprocess.Popen[bytes], errors: Path, report: Callable[[str], None]) -> None:
    status = process.wait()
    said = errors.read_text(encoding="utf-8", errors="replace").strip()
    if said:
        report(said)
    if status != 0:
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        raise BedplateError(f"a worker that replays cuts {how}: {said[-_QUOTED:] or '(it printed nothing)'}")


class CutCommands(Commands):
    """Commands of which none may be killed but by its own time limit; KilledFromOutside for any other."""

    def run(self, argv: Sequence[str], **limits: Any) -> Completed:
        """As `Commands.run`."""
        try:
            done = super().run(argv, **limits)
        except CommandFailed as error:
            if error.status == -signal.SIGKILL:
                raise KilledFromOutside(argv[0]) from error
            raise
        if done.status == -signal.SIGKILL:
            raise KilledFromOutside(argv[0])
        return done
