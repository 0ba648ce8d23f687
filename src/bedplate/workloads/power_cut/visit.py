"""Power cuts: a recorded run is cut at many points, and what a medium would hold there is asked what it still knows.

`log` reads what the recorder wrote, `positions` chooses where to cut, `window` draws what of the unflushed
writes is kept, `image` builds what the medium holds, `acknowledged` says what a client had been promised by then.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from bedplate.cuts.choice import Recut, Waiting, choose_points, choose_recuts, enumerate_states, with_unit
from bedplate.cuts.log import (
    DISCARD,
    DISK,
    FLUSH,
    JOURNAL,
    Acknowledgements,
    Log,
    is_torn,
    read_log,
    require_protocol,
)
from bedplate.cuts.records import (
    CONTROLS,
    DEFAULT_PROFILES,
    DEVICE_UNIT,
    DURATION_S,
    EXHAUSTIVE,
    HAS_FUA,
    IMAGE_BYTES,
    KEEP_BAD,
    KEEP_SMALL,
    LOG_FILE,
    PLACED,
    PLACED_POINTS,
    POINTS_DEFAULT,
    POINTS_FILE,
    PRESSED,
    RECORDING_FILE,
    RECUT,
    SMALL_LOG_BYTES,
    SOUGHT_POINTS,
    STATES,
    UNIT_PROFILES,
    WORKLOAD,
    CutPoint,
    Placement,
    PointOutcome,
    PointRecord,
    Profile,
    RecordingFacts,
    late_us,
    sector_bytes,
)
from bedplate.errors import BedplateError
from bedplate.filesystem.blocks import metadata_of
from bedplate.filesystem.refusals import write_back_wanted
from bedplate.host.block_requests import CallsNotCounted, CallTrace, RequestTrace
from bedplate.model import codec
from bedplate.model.cell import UNTORN_OFF
from bedplate.model.device_cache import WHOLE_BLOCK_BYTES
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import model_of
from bedplate.model.visit import TimedItem
from bedplate.units import MIB
from bedplate.visit.cuts import BEGIN, END, SETTLED, START, CutWriter, Driven
from bedplate.visit.recording import Recording, Workload
from bedplate.workloads.power_cut.bench import (
    CALM_SHARE,
    JOB_FILE,
    PRESSURE,
    PowerBench,
    Pressure,
    RecordedSetup,
    ReplayJob,
    cut_engine,
    subject_of,
)
from bedplate.workloads.power_cut.log import LogPacking, OwnDiskWorkload
from bedplate.workloads.power_cut.tearing import (
    PageWatch,
    as_with_fua,
    flushes_in_flight,
    log_files,
    note_calls,
    note_writers,
    order_spans,
    waiting_metadata,
)

RECORDING = "recording"

POINTS = "points"


class PowerCut(OwnDiskWorkload):
    """`type = "power_cut"` in a plan."""

    name = WORKLOAD
    # Raised whenever a change of how points are made or judged makes old and new verdicts incomparable.
    protocol = "power_cut 2"

    def make(self, recording: Recording) -> None:
        """One recording and its points."""
        _Cuts(recording).run()


class _Cuts:
    """The recording and the points of one run."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._context = recording.context
        levels, dataset = recording.spec.levels, recording.context.dataset.levels
        self._engine_name = model_of(WORKLOAD).engine_of(dataset)
        self._engine = cut_engine(self._engine_name)
        self._writer: CutWriter | None = None
        self._image_bytes = dataset.integer("image_bytes") or IMAGE_BYTES
        self._clients = dataset.integer("clients") or 2
        self._pressed = dataset.flag(PRESSED) is True
        self._duration_s = dataset.number("duration_s") or DURATION_S
        self._points = levels.integer("points") or POINTS_DEFAULT
        self._keep_logs = levels.text("keep_logs") or KEEP_SMALL
        sought = levels.integer("sought")
        self._sought = SOUGHT_POINTS if sought is None else sought
        placed = levels.integer(PLACED)
        self._placed = PLACED_POINTS if placed is None else placed
        self._states = levels.integer(STATES) or 0
        self._recut = levels.integer(RECUT) or 0
        self._exhaustive = levels.integer(EXHAUSTIVE) or 0
        self._window_bytes = levels.integer("cache_bytes") or 8 * MIB
        seed = levels.integer("seed")
        self._seed = self._context.seed if seed is None else seed
        names = [name for name in (levels.text("profiles") or "").split(",") if name]
        self._unit = UNIT_PROFILES.get(levels.integer(DEVICE_UNIT) or 0)
        self._profiles = with_unit(tuple(map(Profile, names)) or DEFAULT_PROFILES, self._unit)
        # What came from outside while it was recorded, and what was done to it besides.
        self._foreign_syncs: int | None = None
        self._about: dict[str, Scalar] = {}
        self._whole_log: PointOutcome | None = None
        self._without_cut: tuple[str, ...] = ()
        self._pages: PageWatch | None = None
        self._requests: RequestTrace | None = None
        self._calls: CallTrace | None = None
        self._has_fua = dataset.flag(HAS_FUA) is True

    @property
    def _bench(self) -> PowerBench:
        context = self._context
        return PowerBench(
            context.request,
            context.account,
            context.commands,
            context.ledger,
            context.log_directory,
            context.place,
        )

    def run(self) -> None:
        recording = self._recording
        recording.tell(RECORDING, "the file system and the engine", position=0, of=1)
        with self._bench.recorded(self._image_bytes, self._duration_s) as setup:
            with recording.timed_phase(RECORDING):
                driven = self._record(setup)
                self._require_something(driven)
            setup.seal()
            through = as_with_fua(setup.log, self._requests) if self._requests and self._has_fua else None
            writers = self._writers(setup.log)
            self._note_calls(setup.log)
            journal_bytes, loses_journal = setup.journal_bytes, setup.loses_journal
        self._context.tool_versions["engine of power cuts"] = driven.version
        try:
            with read_log(setup.log) as log:
                begin, end = measured_span(log)
                log_end = len(log)
                settled = self._settled(log, end)
                if driven.acknowledged is None:
                    driven = self._counted(driven, log)
                waiting = self._waiting(log, begin, end)
                order = self._order(log, begin, end)
                enumerated = enumerate_states(
                    log,
                    states=self._states,
                    seed=self._seed,
                    measured_from=begin,
                    until=end,
                    window_bytes=self._window_bytes,
                )
                job = self._job(
                    log,
                    begin,
                    end,
                    journal_bytes=journal_bytes,
                    waiting=waiting,
                    commit_spans=order,
                    enumerated=enumerated.points,
                    loses_journal=loses_journal,
                )
                if settled is not None:
                    self._judge_whole(setup.log, job, settled, demands_all=driven.demands_all)
                long_writes, uncovered = self._long_writes(log, range(begin, end))
                facts = replace(
                    self._facts(log, begin, end, driven, job),
                    waiting=_by_kind(waiting),
                    placed=sum(point.placement is Placement.ORDER for point in job.points),
                    order=_by_kind(
                        replace(span, kinds=tuple(kind for kind in span.kinds if kind.count(",") < 2))
                        for span in order
                    ),
                    states=len(enumerated.points) if self._states else None,
                    small_states=enumerated.small_states if self._states else None,
                    long_writes=long_writes,
                    uncovered_writes=uncovered,
                    through_writes=through,
                    writers=writers,
                )
            codec.write(recording.directory / RECORDING_FILE, facts)
            codec.write(recording.directory / JOB_FILE, job)
            with self._packing(setup.log) as packing:
                with recording.timed_phase(POINTS):
                    # Where so much is missing without a cut, cuts would show the same.
                    judged = replace(job, points=(), recuts=()) if facts.without_cut else job
                    bad = self._replay(setup.log, judged, packing)
                    if self._whole_log is None and any(
                        record.point.profile is Profile.ORDERED for record in bad
                    ):
                        # Either the recorder dropped what was written, or the engine loses it: the whole log tells them apart.
                        outcome = self._whole_log_record(setup.log, job, log_end).outcome
                        if not outcome.is_bad:
                            facts = replace(facts, whole_log=outcome)
                            codec.write(recording.directory / RECORDING_FILE, facts)
                if bad or facts.without_cut:
                    packing.want()
                if bad or facts.without_cut or self._keep_logs != KEEP_BAD:
                    recording.tell(POINTS, "the log is packed", position=len(job.points), of=len(job.points))
                    packing.finish()
        finally:
            shutil.rmtree(setup.log.parent)

    def _record(self, setup: RecordedSetup) -> Driven:
        """The engine's files from nothing, and the clients on them; the engine is not stopped."""
        context, recording = self._context, self._recording
        writer = self._writer = self._engine.writer(context, setup, clients=self._clients)
        setup.age.fill_up()
        recording.tell(RECORDING, "the clients", position=1, of=1)
        setup.await_own_writeback(self._duration_s)
        pressure = self._pressure(setup, writer)
        cell, wanted, logs = context.request.cell, self._unit is not None, log_files(self._engine_name)
        self._pages = PageWatch(setup.data_directory, cell, setup.untorn, is_wanted=wanted, logs=logs)
        with self._watched(setup), self._pages, self._traced(setup), self._call_watch(setup):
            driven = writer.drive(
                recording.directory / "logs" / f"power_cut_{self._engine_name}",
                duration_s=self._duration_s,
                seed=self._seed,
                companion=pressure,
            )
        self._free_space, self._aged = setup.age.end(), setup.age.aged
        if pressure.trouble is not None:
            self._about["pressure"] = pressure.trouble
        return driven

    def _pressure(self, setup: RecordedSetup, writer: CutWriter) -> Pressure:
        return Pressure(
            setup.neighbour,
            setup.data_directory,
            setup.disk,
            calm_s=CALM_SHARE * self._duration_s,
            seed=self._seed,
            mark_file=setup.mark_file,
            checkpoints=writer.checkpoints(),
            pressed=self._pressed,
        )

    @contextmanager
    def _watched(self, setup: RecordedSetup) -> Iterator[None]:
        """Count what commits the recorded file system and is not of this recording."""
        try:
            counter = setup.foreign_syncs()
            counter.__enter__()
        except CallsNotCounted as error:
            self._about["foreign_syncs"] = f"not counted: {error}"
            yield
            return
        try:
            yield
            self._foreign_syncs = counter.count
        finally:
            counter.__exit__()

    @contextmanager
    def _call_watch(self, setup: RecordedSetup) -> Iterator[None]:
        """Keep which names and sizes the engine changes, where cuts are to be placed by that."""
        with ExitStack() as undo:
            if self._placed:
                try:
                    self._calls = undo.enter_context(setup.name_calls())
                except CallsNotCounted as error:
                    self._about["calls"] = f"not seen: {error}"
            yield

    @contextmanager
    def _traced(self, setup: RecordedSetup) -> Iterator[None]:
        """Keep who asks the recorded devices for what. Of one with FUA a recording without that is none."""
        with ExitStack() as undo:
            try:
                self._requests = undo.enter_context(setup.block_requests(with_done=self._has_fua))
            except CallsNotCounted as error:
                if self._has_fua:
                    raise
                self._about["writers"] = f"not seen: {error}"
            yield

    def _writers(self, log: Path) -> int | None:
        """Note in the log who wrote; None where it was not seen."""
        if self._requests is None:
            return None
        try:
            return note_writers(log, self._requests)
        except CallsNotCounted as error:
            self._about["writers"] = f"not seen: {error}"
            return None

    def _note_calls(self, log: Path) -> None:
        """In the log, so that one that was kept can be cut at the same places again."""
        if self._calls is None:
            return
        try:
            note_calls(log, self._calls.calls)
        except CallsNotCounted as error:
            self._about["calls"] = f"not seen: {error}"

    def _counted(self, driven: Driven, log: Log) -> Driven:
        """With the acknowledgements that the log has; BedplateError where there is none."""
        counted = replace(driven, acknowledged=len(Acknowledgements(log).positions))
        self._require_something(counted)
        if not counted.acknowledged:
            raise BedplateError(
                "the writer acknowledged nothing: it prints `ack CLIENT NUMBER` behind each commit (docs/ENGINES.md); "
                "a slow one needs more time (duration)"
            )
        return counted

    def _settled(self, log: Log, end: int) -> int | None:
        """Of a writer of others: how many entries there are once all that it left is on the disk; its lines are read then, too."""
        settled = log.find_mark(SETTLED.encode(), end)
        if settled is None:
            return None
        own = {mark.encode() for mark in (START, BEGIN, PRESSURE, END, SETTLED)}
        require_protocol(log, clients=self._clients, own_marks=own)
        return settled

    def _whole_log_record(self, log: Path, job: ReplayJob, settled: int) -> PointRecord:
        """A positive control: what is found where nothing was cut."""
        self._recording.tell(POINTS, "the whole log, which nothing cut", position=0, of=len(job.points))
        (record,) = self._bench.replayed(
            log, job.uncut(settled), lambda _: None, log_folder=self._recording.directory
        )
        return record

    def _judge_whole(self, log: Path, job: ReplayJob, settled: int, *, demands_all: bool) -> None:
        """Before a cut is judged: an oracle that finds something where nothing was cut is wrong itself, or the engine is."""
        record = self._whole_log_record(log, job, settled)
        self._whole_log = record.outcome
        if not record.outcome.is_bad or (record.outcome is PointOutcome.LOST and not demands_all):
            return
        problems = record.problems or (record.outcome.value,)
        if record.outcome is PointOutcome.DETECTED and record.oracle_s is None:
            raise BedplateError(
                f"nothing was cut, the writer was only ended, and all is on the disk; {'; '.join(problems)}. A checker that gives no answer "
                "there gives none worth reading behind a cut; none was judged"
            )
        self._without_cut = problems

    def _packing(self, log: Path) -> LogPacking:
        """The log of a run with a bad cut whatever its size; of a good one if it is wanted, or small."""
        limit_bytes = {KEEP_SMALL: SMALL_LOG_BYTES, KEEP_BAD: 0}.get(self._keep_logs)
        return LogPacking(log, self._recording.directory / LOG_FILE, limit_bytes=limit_bytes)

    def _require_something(self, driven: Driven) -> None:
        """A recording that ended early is a shorter one, and is told; one without a transaction is none."""
        if not driven.ended_early or driven.acknowledged is None:
            return
        if not driven.acknowledged:
            raise BedplateError(
                "the log was nearly full before the first transaction was acknowledged; make its tmpfs larger, or "
                "record a smaller disk (image_size)"
            )
        words = f"ended after {driven.seconds:.1f} s of {self._duration_s:g} s, as the log was nearly full"
        self._recording.tell(RECORDING, words, position=1, of=1)

    def _waiting(self, log: Log, begin: int, end: int) -> tuple[Waiting, ...]:
        """Where a cut is sought; nothing is looked for where nothing is to be cut."""
        if not self._sought:
            return ()
        metadata = metadata_of(self._bench.cell.filesystem)
        torn = waiting_metadata(
            log, metadata, measured_from=begin, until=end, window_bytes=self._window_bytes
        )
        return (*torn, *flushes_in_flight(log, measured_from=begin, until=end))

    def _order(self, log: Log, begin: int, end: int) -> tuple[Waiting, ...]:
        """Where cuts are placed; nothing is looked for where nothing is to be cut."""
        if not self._placed:
            return ()
        return order_spans(log, self._bench.cell.filesystem, measured_from=begin, until=end)

    def _job(
        self,
        log: Log,
        begin: int,
        end: int,
        *,
        journal_bytes: int | None,
        waiting: Sequence[Waiting],
        commit_spans: Sequence[Waiting],
        enumerated: Sequence[CutPoint],
        loses_journal: bool,
    ) -> ReplayJob:
        points = choose_points(
            log,
            points=self._points,
            profiles=self._profiles,
            seed=self._seed,
            measured_from=begin,
            measured_until=end,
            window_bytes=self._window_bytes,
            controls=CONTROLS,
            waiting=waiting,
            sought=self._sought,
            commit_spans=commit_spans,
            placed=self._placed,
            enumerated=enumerated,
        )
        cell = self._bench.cell
        are_pages_asked = cell.cluster.untorn_writes != UNTORN_OFF or self._unit is not None
        return ReplayJob(
            filesystem=cell.filesystem,
            subject=subject_of(self._context, self._engine_name, self._engine),
            points=points,
            image_bytes=self._image_bytes,
            window_bytes=self._window_bytes,
            measured_from=begin,
            journal_bytes=journal_bytes,
            loses_journal=loses_journal,
            recuts=self._recuts(log, points, begin),
            late_us=late_us(self._context.dataset.levels),
            sector_bytes=sector_bytes(self._context.dataset.levels),
            untorn_writes=cell.cluster.untorn_writes,
            page_bytes=cell.database_block_bytes if are_pages_asked else None,
        )

    def _recuts(self, log: Log, points: Sequence[CutPoint], begin: int) -> tuple[Recut, ...]:
        """None of a cell whose device is to be flushed by nothing: a recovery would be recorded with the flushes that it lacks."""
        if not (self._recut or self._exhaustive) or not write_back_wanted(self._bench.cell.filesystem):
            return ()
        return choose_recuts(
            log,
            points,
            count=self._recut,
            seed=self._seed,
            measured_from=begin,
            window_bytes=self._window_bytes,
            exhaustive=self._exhaustive,
        )

    def _facts(self, log: Log, begin: int, end: int, driven: Driven, job: ReplayJob) -> RecordingFacts:
        measured, writer = range(begin, end), self._writer
        assert writer is not None  # noqa: S101 -- it was recorded
        assert driven.acknowledged is not None  # noqa: S101 -- it was counted
        flushes = [
            sum(1 for index in measured if log.flags[index] & FLUSH and log.devices[index] == device)
            for device in (DISK, JOURNAL)
        ]
        writes = [index for index in measured if log.is_write(index)]
        sought = sum(point.placement is Placement.SOUGHT for point in job.points)
        return RecordingFacts(
            entries=len(measured),
            measured_from=begin,
            writes=len(writes),
            flushes=flushes[DISK],
            discards=sum(1 for index in measured if log.flags[index] & DISCARD),
            write_bytes=sum(log.lengths[index] for index in writes),
            acknowledged=driven.acknowledged,
            clients=self._clients,
            seconds=driven.seconds,
            window_bytes=job.window_bytes,
            image_bytes=job.image_bytes,
            journal_flushes=None if job.journal_bytes is None else flushes[JOURNAL],
            loses_journal=job.loses_journal,
            bound_ms=writer.bound_ms,
            bound_transactions=writer.bound_transactions,
            foreign_syncs=self._foreign_syncs,
            pressure_from=log.find_mark(PRESSURE.encode(), begin),
            facts={**Levels(writer.facts), **_said_of(driven), **self._about, "kernel": os.uname().release},
            whole_log=self._whole_log,
            without_cut=self._without_cut,
            all_flushes=sum(
                1 for index in range(len(log)) if log.flags[index] & FLUSH and log.devices[index] == DISK
            ),
            pages=self._pages.facts_of(log, measured, self._unit) if self._pages else None,
            free_space=self._free_space,
            aged=self._aged,
            sought=sought,
            sought_left_out=self._sought - sought,
            recoveries=tuple(recut.first for recut in job.recuts),
            log_bytes=log.path.stat().st_size,
        )

    def _long_writes(self, log: Log, span: range) -> tuple[int | None, int | None]:
        """How many writes are longer than a block, and how many of them the device's unit does not keep whole; None without one."""
        if self._unit is None:
            return None, None
        long = [index for index in span if log.is_write(index) and log.lengths[index] > WHOLE_BLOCK_BYTES]
        return len(long), sum(is_torn(log, self._unit, index) for index in long)

    def _replay(self, log: Path, job: ReplayJob, packing: LogPacking) -> list[PointRecord]:
        """Write down every point; those that are bad and should not be, whose log is wanted."""
        recording, bad = self._recording, []
        started = time.monotonic()
        told: list[str] = []
        with (recording.directory / POINTS_FILE).open("w", encoding="utf-8") as file:
            records: Iterator[PointRecord] = iter(())
            if job.points:
                records = self._bench.replayed(log, job, told.append, log_folder=recording.directory)
            for done, record in enumerate(records, start=1):
                file.write(codec.dumps(record, indent=None) + "\n")
                file.flush()
                if record.outcome.is_bad and not record.point.control:
                    bad.append(record)
                    packing.want()
                recording.tell(POINTS, _words(record), position=done, of=job.most_records)
        if told:
            (recording.directory / "logs" / "workers").write_text("\n".join(told) + "\n", encoding="utf-8")
        recording.add(
            TimedItem(POINTS, POINTS, time.monotonic() - started, facts={"points": len(job.points)})
        )
        return bad


def measured_span(log: Log) -> tuple[int, int]:
    """From the entry at which the clients began to the one at which they had ended; BedplateError where no mark says so."""
    start = log.find_mark(START.encode())
    begin = log.find_mark(BEGIN.encode(), start or 0)
    if begin is None:
        begin = start
    if begin is None:
        raise BedplateError(f"the write log {log.path} has no mark of where the clients began")
    end = log.find_mark(END.encode(), begin)
    return begin, len(log) if end is None else end


def _by_kind(waiting: Iterable[Waiting]) -> dict[str, int]:
    """How many spans have metadata of each kind."""
    return dict(sorted(Counter(kind for span in waiting for kind in span.kinds).items()))


def _said_of(driven: Driven) -> dict[str, Scalar]:
    """`ended_early` only where it is so: the seconds beside it are those that were recorded, not asked for."""
    early: dict[str, Scalar] = {"ended_early": "the log was nearly full"} if driven.ended_early else {}
    return {"engine_version": driven.version, **early}


def _words(record: PointRecord) -> str:
    point = record.point
    control = ", a control" if point.control else ""
    again = f" of the {point.recovery_words}" if point.recovery_words else ""
    return f"{point.profile.value} at {point.position}{again}{control}: {record.outcome.value}"


RUN: Workload = PowerCut()
