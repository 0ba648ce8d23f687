"""One fault on a disk of its own: file system and engine made anew, clients, the fault, the end, and what is left.

The recorder's log has what the disk held in the end, so that the image is judged as that of a cut behind everything.
"""

from __future__ import annotations

import shutil
import signal
import threading
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, KilledFromOutside
from bedplate.filesystem.after_cut import complaints_of, leaves_journal_to_repair
from bedplate.host.kernel_log import KernelLog
from bedplate.model.fault_order import FaultEffect
from bedplate.model.page_writes import ENOSPC
from bedplate.model.power_cut import CutPoint, Placement, PointOutcome, Profile
from bedplate.model.reason import reasons_of
from bedplate.units import MIB
from bedplate.visit.cut_engine import WRITER_NOT_ENDED
from bedplate.visit.piped_session import CONNECTION_LOST
from bedplate.visit.tool_process import ToolFailed
from bedplate.workloads.faulty_disk.faults import DiskFault, FullFilesystem, NoFault, Place, Rot
from bedplate.workloads.faulty_disk.judging import detected_by, verdict_of, within_bound
from bedplate.workloads.faulty_disk.records import FaultRecord, FaultVerdict, Seen
from bedplate.workloads.faulty_disk.run.beside import FaultBeside, FaultSetup
from bedplate.workloads.faulty_disk.run.full import takes_a_write
from bedplate.workloads.faulty_disk.run.places import (
    DiskMap,
    PlaceUnknown,
    finder_at_rest,
    ranges_at_rest,
    wants_layout,
)
from bedplate.workloads.faulty_disk.run.rot import rot_away
from bedplate.workloads.power_cut.run.acknowledged import Acknowledgements
from bedplate.workloads.power_cut.run.bench import ReplayJob, subject_of
from bedplate.workloads.power_cut.run.log import read_log
from bedplate.workloads.power_cut.run.own_disk import interruption_behind
from bedplate.workloads.power_cut.run.workload import measured_span

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bedplate.host.recorder import Recorder
    from bedplate.model.fault_order import ByteRange
    from bedplate.model.free_space import AgedCopy
    from bedplate.model.power_cut import PointRecord
    from bedplate.visit.cut_engine import CutWriter
    from bedplate.visit.fault_engine import FaultEngine
    from bedplate.visit.untorn_writes import UntornWrites
    from bedplate.visit.workload import VisitContext
    from bedplate.workloads.faulty_disk.faults import Fault
    from bedplate.workloads.power_cut.run.power_bench import PowerBench

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
        engine: FaultEngine,
        subject_engine: str,
        *,
        clients: int,
        duration_s: float,
        image_bytes: int,
    ) -> None:
        self._context, self._bench, self._engine, self._name = context, bench, engine, subject_engine
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
            left, after_ms = self._left(log, course, _unreadable(fault, course), on_journal=on_journal)
        finally:
            self._give_back(log, logs / f"try-{number}.server.log")
        return _record(fault, number, seed, course, left, after_ms=after_ms)

    def _write(self, setup: FaultSetup, fault: Fault, course: _Course, *, seed: int, logs: Path) -> None:
        """From an empty directory to where the engine is ended; the file system is still mounted."""
        writer = self._engine.cuts.writer(self._context, setup, clients=self._clients)
        setup.age.fill_up()
        course.bound_ms, course.bound_transactions = writer.bound_ms, writer.bound_transactions
        course.journal_bytes, course.aged = setup.journal_bytes, setup.age.aged
        disk = self._map(setup, fault)
        if isinstance(fault, DiskFault) and fault.place is Place.METADATA:
            # XFS writes it back at a time of its own.
            setup.await_own_writeback(self._duration_s)
        beside = FaultBeside(
            setup,
            fault,
            disk,
            seed=seed,
            duration_s=self._duration_s,
            checkpoints=writer.checkpoints(),
        )
        setup.is_over, setup.is_quiet = beside.is_over, fault.is_quiet
        try:
            driven = writer.drive(logs, duration_s=self._duration_s, seed=seed, beside=beside)
            self.version = driven.version
        except BedplateError as error:
            _require_of_disk(error, is_hit=beside.hits > 0)
            course.trouble, course.hung = str(error), _codes(error) == {WRITER_NOT_ENDED}
        if beside.problem is not None:
            raise BedplateError(beside.problem)
        course.hits, course.no_result, course.first_hit = beside.hits, beside.unplaced, beside.first_hit
        for complaint in beside.complaints:
            course.hear(complaint)
        self._look_at_place(fault, course, disk)
        if _is_quiet_in_log(fault):
            _await_log(writer, course)
        else:
            _let_come_back(writer, course, is_hit=beside.hits > 0)
        if writer.was_killed:
            raise KilledFromOutside("a process of the server")
        self._read_log(course)
        _require_untorn(setup.untorn, fault)
        course.writable = takes_a_write(setup.data_directory.parent) and not beside.was_resumed
        course.was_resumed = beside.was_resumed
        course.counted = setup.complaints()
        is_quiet_in_journal = fault.is_quiet and _place_of(fault) is Place.JOURNAL
        if isinstance(fault, Rot):
            self._find_what_rots(setup, fault, course, seed)
        elif is_quiet_in_journal:
            # What settings leave in the page cache would be missing without any fault.
            setup.settle()
        if is_quiet_in_journal:
            # An unmount makes it needless.
            course.position = setup.recorder.status().entries

    def _read_log(self, course: _Course) -> None:
        """What the server said of the disk in its log alone, as a background process does that no client waits for."""
        try:
            text = self._server_log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return
        course.engine_said += tuple(
            line for line in self._engine.said_of_disk(text) if line not in course.engine_said
        )

    @property
    def _server_log(self) -> Path:
        return self._context.log_directory / "server.log"

    def _map(self, setup: FaultSetup, fault: Fault) -> DiskMap:
        """Of the disk as it is now, by the file system's tools where the fault's place takes them."""
        filesystem = self._bench.cell.filesystem.type
        found = DiskMap(self._engine, setup.data_directory, filesystem, journal_bytes=setup.journal_bytes)
        place = _place_of(fault)
        return replace(found, layout=setup.layout()) if wants_layout(place, filesystem) else found

    def _find_what_rots(self, setup: FaultSetup, rot: Rot, course: _Course, seed: int) -> None:
        setup.settle()
        disk = self._map(setup, rot)
        try:
            if finder_at_rest(disk.filesystem, rot.place) is not None:
                course.numbers = disk.numbers(rot.place)
                return
            course.ranges = disk.ranges(rot.place)
        except PlaceUnknown as error:
            course.no_result = str(error)
            return
        if rot.place is Place.JOURNAL:
            course.first_hit, course.hits = (
                rot_away(_device(setup.recorder, rot), rot, course.ranges, seed),
                1,
            )

    def _find_at_rest(self, recorder: Recorder, rot: Rot, course: _Course) -> None:
        finder = finder_at_rest(self._bench.cell.filesystem.type, rot.place)
        if finder is None or course.numbers is None:
            return
        images = [recorder.disk, *filter(None, [recorder.journal])]
        try:
            course.ranges = ranges_at_rest(finder(images, self._bench.commands, course.numbers))
        except PlaceUnknown as error:
            course.no_result = str(error)

    def _look_at_place(self, fault: Fault, course: _Course, disk: DiskMap) -> None:
        if not isinstance(fault, DiskFault) or course.first_hit is None:
            return
        try:
            found = disk.strangers(course.first_hit, fault.place)
        except OSError:
            # A file system that was shut down says nothing of its files.
            return
        if found:
            names = ", ".join(str(path.relative_to(disk.data_directory)) for path in found)
            course.hits, course.no_result = 0, f"what was hit is a part of {names}"

    def _left(
        self, path: Path, course: _Course, unreadable: tuple[ByteRange, ...], *, on_journal: bool
    ) -> tuple[PointRecord, float]:
        """What the disk holds in the end, mounted anew and asked; and the time from the last acknowledgement to that end, in ms."""
        with read_log(path) as log:
            begin, _ = measured_span(log)
            end = len(log) if course.position is None else course.position
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
            journal_bytes=course.journal_bytes,
            unreadable=unreadable,
            unreadable_on_journal=on_journal,
        )
        replayed = partial(self._bench.replayed, path, told=lambda _: None, kept=path.parent)
        (record,) = replayed(job)
        course.repair_is_usual = course.position is not None and leaves_journal_to_repair(job.filesystem.type)
        if course.repair_is_usual and course.hits and record.replay_failed:
            # Many builds of jfsutils replay no journal, whatever is in it.
            (whole,) = replayed(replace(job, points=(replace(point, position=begin),), unreadable=()))
            if whole.replay_failed:
                course.hits, course.no_result = 0, _NO_REPLAY
        return record, after_ms

    def _give_back(self, log: Path | None, server_log: Path) -> None:
        if log is not None:
            shutil.rmtree(log.parent)
        if self._server_log.exists():
            shutil.move(self._server_log, server_log)


def _record(
    fault: Fault, number: int, seed: int, course: _Course, left: PointRecord, *, after_ms: float
) -> FaultRecord:
    seen = Seen.WENT_ON if course.trouble is None else Seen.HUNG if course.hung else Seen.STOPPED
    is_usual = course.repair_is_usual and not left.replay_failed
    is_repaired = left.fsck_s is not None and not left.unclean and not is_usual
    is_whole = _is_unread(fault, course, left) or (is_usual and left.outcome is PointOutcome.NEEDS_FSCK)
    outcome = PointOutcome.OK if is_whole else left.outcome
    kernel_said, said_anew = (*(course.kernel_said or ()), *course.counted), left.kernel_said or ()
    waited = (_WAITED,) if course.was_resumed else ()
    said = (*filter(None, [course.trouble]), *waited, *course.engine_said, *kernel_said)
    detected = detected_by(
        outcome,
        seen,
        writable=course.writable,
        kernel_spoke=bool(kernel_said or said_anew),
        engine_spoke=bool(course.engine_said or left.engine_said),
        is_repaired=is_repaired,
    )
    is_hit = course.hits > 0 or isinstance(fault, NoFault)
    verdict = verdict_of(
        outcome,
        seen,
        is_hit=is_hit and left.acknowledged > 0,
        writable=course.writable,
        is_repaired=is_repaired,
        is_bounded=within_bound(
            left,
            course.bound_ms,
            course.bound_transactions,
            # An engine that hung had that time too.
            after_ms=0.0 if course.hung else after_ms,
        ),
        is_unseen=fault.is_quiet and not detected,
        is_said=bool(left.engine_said),
        ended_early=course.ended_early,
    )
    return FaultRecord(
        number=number,
        fault=fault.name,
        seed=seed,
        hits=course.hits,
        seen=seen,
        writable=course.writable,
        came_back=course.came_back,
        verdict=verdict,
        detected=detected,
        acknowledged=left.acknowledged,
        lost_transactions=left.lost_transactions,
        left=outcome,
        hit_at=course.first_hit.start if course.first_hit else None,
        hit_bytes=course.first_hit.length if course.first_hit else None,
        hit_journal=course.first_hit is not None and _is_on_journal(fault, course),
        kernel_heard=course.kernel_said is not None and left.kernel_said is not None,
        said=tuple(_shortened(text) for text in said[:_SAID_MOST]),
        found=(*left.problems, *left.engine_said, *(_shortened(text) for text in said_anew[:_SAID_MOST])),
        no_result=None if verdict.is_result else _no_result(course, verdict, is_hit=is_hit),
        aged=course.aged,
    )


def _is_unread(fault: Fault, course: _Course, left: PointRecord) -> bool:
    """Whether rot of a file was met by the check alone, as nobody had read it.

    The check of what is found at rest (ZFS' scrub) reads the data too, and has no copy to mend them by. No other type's check does.
    """
    is_of_files = isinstance(fault, Rot) and bool(course.numbers)
    is_damage_alone = left.outcome is PointOutcome.SILENT and left.unclean is True and left.fsck_s is None
    return is_of_files and is_damage_alone and not left.lost_transactions


def _no_result(course: _Course, verdict: FaultVerdict, *, is_hit: bool) -> str:
    if verdict is FaultVerdict.NO_TRACE:
        return "what the disk lost or changed was written again, never read, or replaced by a copy in silence"
    if is_hit:
        return "no transaction was acknowledged, so that none could be missing"
    return course.no_result or "nothing met the fault"


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


def _is_on_journal(fault: Fault, course: _Course) -> bool:
    """Whether the device that fails is that of an external journal."""
    return _place_of(fault) is Place.JOURNAL and course.journal_bytes is not None


def _device(recorder: Recorder, rot: Rot) -> Path:
    """The device on which a place rots."""
    return (recorder.journal if rot.place is Place.JOURNAL else None) or recorder.disk


def _unreadable(fault: Fault, course: _Course) -> tuple[ByteRange, ...]:
    """What of the disk can be read no more once the engine is ended."""
    is_lost = isinstance(fault, Rot) and fault.is_unreadable
    return (course.first_hit,) if is_lost and course.first_hit else ()


def _is_quiet_in_log(fault: Fault) -> bool:
    """Whether a checkpoint would make needless what the disk did to the log in silence."""
    return fault.is_quiet and _place_of(fault) is Place.LOG


def _await_log(writer: CutWriter, course: _Course) -> None:
    """Until a server has written what its settings let wait in memory: that is missing without any fault."""
    if course.bound_ms is None or course.trouble is not None or writer.checkpoints() is None:
        return
    wait_s = course.bound_ms / 1000
    course.ended_early = wait_s > _LOG_WAITS_S
    threading.Event().wait(min(wait_s, _LOG_WAITS_S))


def _let_come_back(writer: CutWriter, course: _Course, *, is_hit: bool) -> None:
    """A server has to answer and to checkpoint; what it says instead to whom it served to the end is its complaint."""
    course.came_back, refused = _comes_back(writer)
    if refused is None or course.trouble is not None:
        return
    _require_of_disk(refused, is_hit=is_hit)
    course.hear(refused)


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
