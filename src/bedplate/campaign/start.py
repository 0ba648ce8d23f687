"""One start of a study, as its executor gets it: what is due, and what all its visits share."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.campaign.planning import PlannedStudy, runs_here
from bedplate.campaign.preparation import (
    MadeAnyway,
    drivers_of_plan,
    own_library_of,
    preparations,
    prepare_builds,
    prepare_inputs,
    prepare_programs,
)
from bedplate.errors import BedplateError, BuildFailed, MachineUnfit, RequirementMissing, StudyError
from bedplate.executors.local import lost_record
from bedplate.executors.protocol import AfterRepetition, Executor, StartOutcome, VisitRunner
from bedplate.figures.run import make_figures
from bedplate.host.command import Commands
from bedplate.host.files import state_directory
from bedplate.host.interruption import defer_interruptions
from bedplate.host.ledger import Ledger
from bedplate.host.process import wait_until, writers_below
from bedplate.host.recorder import DRIVER, WayThere, fitting_way, way_there
from bedplate.host.scratch_device import MEMORY_DIRECTORY
from bedplate.model import codec
from bedplate.model.cell import BuildLevels, Cell, Dataset, database_block_levels, digest, engine_model
from bedplate.model.devices import DeviceIdentity
from bedplate.model.figure import RunFigures
from bedplate.model.filesystem import fill_of
from bedplate.model.levels import Scalar, as_in_a_plan
from bedplate.model.metrics import CUT, EXHAUSTIVE, RECUT, SOUGHT
from bedplate.model.plan import Expansion, Load, Plan, ScheduledVisit
from bedplate.model.reason import Reason, because, reasons_of
from bedplate.model.visit import (
    FORMAT_VERSION,
    RECORD_FILE,
    AlikeFailures,
    EngineBuild,
    Outcome,
    RunRecord,
    ScratchDevice,
    Validity,
    VisitKey,
    VisitRecord,
    VisitRequest,
)
from bedplate.plan.estimate import device_bytes_needed, visit_seconds
from bedplate.plan.rules import LOCAL
from bedplate.study.checksums import VisitFiles
from bedplate.study.records import node_devices
from bedplate.study.stored import visit_directories
from bedplate.units import format_count, format_duration, format_size

if TYPE_CHECKING:
    from bedplate.campaign.display import Display
    from bedplate.campaign.running import Consent
    from bedplate.study.store import Attempt, StudyStore

# Facts of a timed item (`queries.py` of TPC-H): what was asked, and the digest of what came.
_ASKED = "answer_key"

_ANSWER = "answer"


class KnownAnswers:
    """Digests of answers by what was asked, from completed runs only; the first one found stays."""

    def __init__(self) -> None:
        self._digests: dict[str, str] = {}
        self._sources: dict[str, str] = {}

    @classmethod
    def of_study(cls, visits_folder: Path) -> KnownAnswers:
        """Those of all visits below a study's `visits_folder`; a damaged visit teaches nothing."""
        found = cls()
        for directory in visit_directories(visits_folder):
            with contextlib.suppress(StudyError):
                files = VisitFiles(directory)
                for name in () if files.damage else files.names(RECORD_FILE):
                    found._learn(files.record(RunRecord, name), directory / name)
        return found

    @property
    def digests(self) -> Mapping[str, str]:
        """All of them."""
        return dict(self._digests)

    @property
    def sources(self) -> Mapping[str, str]:
        """Which run of which visit found each of them, in words."""
        return dict(self._sources)

    def learn(self, paths: Iterable[Path]) -> None:
        """Add the answers of runs that completed."""
        for path in paths:
            with contextlib.suppress(StudyError):
                self._learn(codec.read(RunRecord, path), path)

    def _learn(self, record: RunRecord, path: Path) -> None:
        if record.outcome is not Outcome.COMPLETED:
            return
        for item in record.items:
            asked, answer = item.facts.get(_ASKED), item.facts.get(_ANSWER)
            if isinstance(asked, str) and isinstance(answer, str) and asked not in self._digests:
                self._digests[asked] = answer
                self._sources[asked] = _source(path, record.spec.name)


def _source(path: Path, run: str) -> str:
    """The run of a record below `visits`: <cell>/<dataset>/<repetition>.<attempt>/runs/<run>/record.json."""
    repetition, _, attempt = path.parents[2].name.partition(".")
    again = f", attempt {attempt}" if attempt not in {"", "1"} else ""
    return f"run {run} of {path.parents[4].name}, repetition {repetition}{again}"


# The time that a run without transactions is about.
_TIMES = ("load_total_s", "streams_s", "queries_total_s", "tests_s", "stages_total_s")

# In a summary of one line.
_SHOWN_REASON_CHARACTERS = 1000

# A process that was killed is gone at once, unless its disk keeps it.
_WRITERS_LIMIT_S = 10.0

_WHOLE_SECONDS_FROM = 10
_WHOLE_MIB_FROM = 100


@dataclass(frozen=True)
class SharedInputs:
    """What all visits of a start share; `inputs` are paths of what was made for a dataset beforehand.

    `devices` are those that the study has recorded, by their names; `node_devices` those of a fleet's nodes, by node.
    """

    plan: Plan
    expansion: Expansion
    builds: Mapping[BuildLevels, EngineBuild]
    native_drivers: Mapping[str, str]
    erase: tuple[str, ...]
    erase_foreign: bool
    inputs: Mapping[Dataset, Mapping[str, str]] = field(default_factory=dict)
    devices: Mapping[str, DeviceIdentity] = field(default_factory=dict)
    node_devices: Mapping[str, Mapping[str, DeviceIdentity]] = field(default_factory=dict)

    def allow_erasing(self, scratch: ScratchDevice, *, node: str | None = None) -> ScratchDevice:
        """The device as its visits get it: with what may be erased, and what it is."""
        allowed = replace(scratch, erase=self.erase, erase_foreign=self.erase_foreign)
        return allowed.recorded_in(self.devices if node is None else self.node_devices.get(node, {}))


class VisitRequests:
    """Makes the requests of one start of a study."""

    def __init__(self, store: StudyStore, shared: SharedInputs, known_answers: KnownAnswers) -> None:
        self._store = store
        self._shared = shared
        self._answers = known_answers

    def request(self, visit: ScheduledVisit, attempt: int, cell: Cell, load: Load) -> VisitRequest:
        """What is asked of one attempt at a visit, on its node where it has one."""
        shared = self._shared
        fleet = shared.plan.fleet
        scratch = shared.plan.scratch_device_for(canary=visit.canary)
        if fleet is not None and visit.node is not None and visit.node in fleet.devices:
            scratch = replace(scratch, device=fleet.devices[visit.node])
        scratch = shared.allow_erasing(scratch, node=visit.node)
        journal = shared.plan.journal_device_for(cell.filesystem)
        if (
            journal is not None
            and journal.device is not None
            and fleet is not None
            and visit.node is not None
        ):
            journal = replace(journal, device=fleet.journal_devices.get(visit.node, journal.device))
        if scratch.image_directory is not None:
            # The plan's own link is followed here; the visit follows none.
            scratch = replace(scratch, image_directory=os.path.realpath(scratch.image_directory))
        # On a node an image stands on a disk of the node's own, where its part of the executor puts it.
        if scratch.is_image and scratch.image_directory is None and visit.node is None:
            scratch = replace(scratch, image_directory=str(self._store.scratch_directory))
        dataset_by = shared.plan.dataset_by_of(canary=visit.canary)
        return VisitRequest(
            format_version=FORMAT_VERSION,
            key=VisitKey(visit.cell_id, visit.dataset_id, visit.repetition, attempt, canary=visit.canary),
            cell=cell,
            dataset=load.dataset,
            runs=load.runs,
            scratch_device=scratch,
            journal_device=None if journal is None else shared.allow_erasing(journal, node=visit.node),
            build=shared.builds.get(cell.build),
            native_drivers=shared.native_drivers,
            inputs=shared.inputs.get(load.dataset, {}),
            expected_answers=self._answers.digests,
            answer_sources=self._answers.sources,
            needed_bytes=None if fill_of(cell.filesystem) is None else device_bytes_needed(cell, load),
            dataset_by=dataset_by,
            state_directory=str(state_directory()),
            # The same load for every cell of a repetition, another one in the next.
            seed=int(digest([shared.plan.seed, visit.repetition, visit.dataset_id], length=7), 16),
            provenance={
                "machine": self._store.facts.machine_identity,
                "plan": shared.plan.digest,
                "dataset": dataset_by,
                **({} if visit.node is None else {"node": visit.node}),
            },
        )


def keep(
    attempt: Attempt, record: VisitRecord, *, seconds_before: float
) -> tuple[VisitRecord, list[RunFigures]]:
    """Make the figures of a visit that has ended and write its final record; OSError where that fails.

    Where figures cannot be made the visit has failed, and says why. `seconds_before` is how long it took until
    now, with its hand-over. RequirementMissing where a process of the visit still writes in its directory: the
    files of a finished visit never change.
    """
    started = time.monotonic()
    _require_no_writer(attempt.directory)
    figures, problems = _make_figures(attempt.directory, record)
    if problems:
        record = replace(
            record,
            outcome=Outcome.FAILED,
            reasons=(*record.reasons, *problems),
            failed_step=record.failed_step or "figures",
        )
    # A job of a fleet may have left it in the format of an earlier version.
    record = replace(
        record,
        format_version=FORMAT_VERSION,
        whole_seconds=seconds_before + time.monotonic() - started,
        sealed=True,
    )
    codec.write(attempt.directory / "visit.json", record)
    return record, figures


def _require_no_writer(directory: Path) -> None:
    writers: tuple[str, ...] = ()

    def all_gone() -> bool:
        nonlocal writers
        writers = writers_below(directory)
        return not writers

    if not wait_until(all_gone, deadline_s=_WRITERS_LIMIT_S):
        raise RequirementMissing(
            *writers,
            "the visit has ended, and is not in the study while this goes on; end that process (`bedplate release` "
            "ends those of a killed visit), and give the same command again",
        )


def _make_figures(directory: Path, record: VisitRecord) -> tuple[list[RunFigures], list[Reason]]:
    """The figures of every run that left a record, and why some could not be made."""
    figures: list[RunFigures] = []
    problems: list[Reason] = []
    for name in record.runs:
        run = directory / "runs" / name
        if not (run / "record.json").exists():
            continue  # the visit ended within it, and says why
        try:
            figures.append(make_figures(directory, run))
        except OSError:
            raise
        except BedplateError as error:
            problems += [reason.about(name) for reason in reasons_of(error)]
        except Exception as error:  # noqa: BLE001 -- the raw record stays, and a bug must not cost the study
            words = f"{name}: its figures could not be made, please report: {error!r}"
            problems.append(because("figures-not-made", words))
    return figures, problems


def summary(record: VisitRecord, run_figures: Sequence[RunFigures]) -> str:
    """What a person wants to see of a visit that has just ended."""
    if record.outcome is not Outcome.COMPLETED:
        text = "; ".join(map(str, record.reasons))
        if len(text) <= _SHOWN_REASON_CHARACTERS:
            return text
        # Whole words, and where the rest is.
        return f"{text[:_SHOWN_REASON_CHARACTERS].rpartition(' ')[0]} … (`bedplate show STUDY --status` has all of it)"
    # A doubt is told of a run without a speed too.
    told = [(run, words) for run in run_figures if (words := _speed(run)) or _doubt(run)]
    parts = []
    for index, (run, words) in enumerate(told):
        count = _queries(run)
        # `cold 93 s, warm 80 s (22 of 22)`: said once of passes that are alike.
        again = index + 1 < len(told) and _queries(told[index + 1][0]) == count
        parts.append(" ".join(filter(None, (run.run, words, "" if again else count, _doubt(run)))))
    # A reader of the log shall not take it for the speed of anything real.
    return ", ".join(parts) + (" (emulated processors)" if parts and record.emulated else "")


def _doubt(run: RunFigures) -> str:
    """`(suspect)` and the like; empty where a run is valid."""
    return "" if run.validity is Validity.VALID else f"({run.validity.value})"


def _speed(run: RunFigures) -> str | None:
    """What a run is about, as `24,310 tps`, `1,301 MiB/s` or `93 s`; `> 93 s` where a part was stopped; None without any."""
    whole = {row.metric: row for row in run.figures if row.phase == "measure" and not row.item}
    tps = whole.get("tps")
    if tps is not None and tps.value is not None:
        return f"{tps.value:,.0f} tps"
    throughput = whole.get("throughput_mib_per_s")
    if throughput is not None and throughput.value is not None:
        return f"{throughput.value:,.{0 if throughput.value >= _WHOLE_MIB_FROM else 1}f} MiB/s"
    for row in (whole[metric] for metric in _TIMES if metric in whole):
        seconds = row.limit if row.value is None else row.value
        if seconds is not None:
            words = format_duration(seconds) if seconds >= _WHOLE_SECONDS_FROM else f"{seconds:.1f} s"
            return f"> {words}" if row.value is None else words
    return _cuts(run)


def _cuts(run: RunFigures) -> str | None:
    """How many power cuts were bad, as `3 of 160 cuts bad, 0 of 40 in recovery`; None of a run without any."""
    told = []
    for phase, words in (
        (CUT, "cuts bad"),
        (SOUGHT, "sought"),
        (RECUT, "in recovery"),
        (EXHAUSTIVE, "at every write of recoveries"),
    ):
        cuts, bad = (
            sum(row.value or 0 for row in run.figures if (row.phase, row.metric) == (phase, metric))
            for metric in ("power_cuts", "power_cuts_bad")
        )
        told += [f"{bad:,.0f} of {cuts:,.0f} {words}"] if cuts else []
    return ", ".join(told) or None


def _queries(run: RunFigures) -> str:
    """How many queries ended within their limit, as `(22 of 22)`; nothing of a run without queries."""
    completed = next((row.value for row in run.figures if row.metric == "queries_completed"), None)
    asked = sum(row.metric == "query_s" and bool(row.item) for row in run.figures)
    return "" if completed is None else f"({completed:.0f} of {asked})"


_WORDS = {"kernel.release": "kernel"}

# The variant names the file system, the rest is named apart.
_IN_VARIANT = "filesystem."

_SIZES = {
    "filesystem.block_size_bytes": "fs block",
    **dict.fromkeys(database_block_levels(), "db block"),
    "build.wal_block_size_bytes": "WAL block",
    "device.memory_bytes": "memory",
}


class Labels:
    """Names of the visits of one expansion."""

    def __init__(self, expansion: Expansion) -> None:
        engines = dict.fromkeys(planned.cell.build.engine for planned in expansion.cells)
        # What one engine is told says nothing of another's cells.
        self._varied = {
            engine: _varied([p.cell for p in expansion.cells if p.cell.build.engine == engine])
            for engine in engines
        }
        self._engines = {engine: engine_model(engine).label for engine in engines} if len(engines) > 1 else {}
        self._several_loads = len({load.dataset for planned in expansion.cells for load in planned.loads}) > 1

    def of(self, cell: Cell, load: Load, visit: ScheduledVisit) -> str:
        """`ext4 nobarrier · db block 4 kB · repetition 2`; the engine too where there are several."""
        if visit.canary:
            return f"canary {visit.repetition}"
        engine, levels = cell.build.engine, _all_levels(cell)
        named = [self._engines[engine]] if self._engines else []
        parts = [cell.variant, *named, *(_level(name, levels.get(name)) for name in self._varied[engine])]
        if self._several_loads:
            parts.append(load.dataset.words)
        return " · ".join([*parts, f"repetition {visit.repetition}"])


def _varied(cells: list[Cell]) -> tuple[str, ...]:
    levels = [_all_levels(cell) for cell in cells]
    names = dict.fromkeys(name for found in levels for name in found)
    return tuple(
        name
        for name in names
        # A throttle is called by its name, not by its limits, and a device with latency not by its times.
        if (name in _SIZES or not name.startswith((_IN_VARIANT, "device.throttle.", "device.latency.")))
        and len({found.get(name) for found in levels}) > 1
    )


def _all_levels(cell: Cell) -> dict[str, Scalar]:
    """Asked levels, and the block sizes of the build, which are left out of `levels` where they are 8 kB."""
    build = cell.build
    if not build.is_built:
        return dict(cell.levels)
    return {
        **cell.levels,
        "build.version": build.version,
        "build.block_size_bytes": build.block_size_bytes,
        "build.wal_block_size_bytes": build.wal_block_size_bytes,
    }


def _level(name: str, value: Scalar | None) -> str:
    short = _SIZES.get(name) or _WORDS.get(name) or name.rpartition(".")[2]
    if value is None:
        return f"default {short}"
    return f"{short} {format_size(int(value)) if name in _SIZES else as_in_a_plan(value)}"


class StudyRun:
    """One start of a study; `run` returns when every visit that was due is in the store."""

    def __init__(
        self, store: StudyStore, shared: SharedInputs, runner: VisitRunner, display: Display
    ) -> None:
        self._store = store
        self._shared = shared
        self._runner = runner
        self._display = display
        self._labels = Labels(shared.expansion)
        self._answers = KnownAnswers.of_study(store.layout.visits)
        self._requests = VisitRequests(store, shared, self._answers)
        # Estimated seconds are wrong on every machine, but wrong by much the same factor.
        self._estimated_s = 0.0
        self._taken_s = 0.0

    def run(
        self, due_visits: Sequence[ScheduledVisit], after_repetition: AfterRepetition | None = None
    ) -> StartOutcome:
        """Live through the visits that are due, in order; on this machine up to one of another kernel."""
        completed = failed = 0
        started = time.monotonic()
        needs_kernel = stopped_after = None
        taken_before = self._taken_s
        alike = AlikeFailures()
        left_behind: tuple[str, ...] = ()
        try:
            for number, visit in enumerate(due_visits):
                needs_kernel = self._missing_kernel(visit)
                if needs_kernel is not None:
                    break
                record = self._visit(visit, number=number + 1, of=len(due_visits), rest=due_visits[number:])
                completed += record.outcome is Outcome.COMPLETED
                failed += record.outcome is not Outcome.COMPLETED
                alike.add(record)
                left_behind = alike.verdict(
                    (self._cell(later), later.dataset_id, later.node) for later in due_visits[number + 1 :]
                )
                if left_behind:
                    break
                if after_repetition is not None and _is_last(visit, due_visits[number + 1 :]):
                    seconds, taken_before = self._taken_s - taken_before, self._taken_s
                    if not after_repetition(visit.repetition, seconds):
                        stopped_after = visit.repetition
                        break
        finally:
            # A guest, its disks and its folder: half of that given back is left behind.
            with defer_interruptions():
                self._runner.close()
        return StartOutcome(
            completed,
            failed,
            time.monotonic() - started,
            needs_kernel,
            left_behind,
            stopped_after=stopped_after,
        )

    def _missing_kernel(self, visit: ScheduledVisit) -> str | None:
        """The kernel that must run here before this visit; None where it does, or guests bring theirs."""
        if self._runner.name != LOCAL:
            return None
        cell, _ = self._shared.expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)
        return None if runs_here(cell.kernel) else cell.kernel.release

    def _visit(
        self, visit: ScheduledVisit, *, number: int, of: int, rest: Sequence[ScheduledVisit]
    ) -> VisitRecord:
        cell, load = self._shared.expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)
        label = self._labels.of(cell, load, visit)
        self._display.visit_begins(label, number=number, of=of, seconds_left=self._seconds_left(rest))
        started = time.monotonic()
        try:
            record, figures = self._live(visit, cell, load)
        except (OSError, MachineUnfit) as error:
            where = self._store.layout.directory
            if isinstance(error, MachineUnfit):
                reasons = error.reasons
            else:
                reasons = (f"{error.filename or where}: {error.strerror or error}",)
            raise MachineUnfit(
                *reasons,
                f"the visit under way is not in {where}, everything before it is. Mend that, and give the same command "
                "again",
            ) from error
        seconds = time.monotonic() - started
        self._taken_s += seconds
        self._estimated_s += self._estimate(visit)
        self._display.visit_ends(record.outcome.value, seconds, summary(record, figures))
        return record

    def _cell(self, visit: ScheduledVisit) -> Cell:
        return self._shared.expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)[0]

    def _live(self, visit: ScheduledVisit, cell: Cell, load: Load) -> tuple[VisitRecord, list[RunFigures]]:
        """The visit as it stands in the store; OSError where the study cannot be written, MachineUnfit."""
        started = time.monotonic()
        with self._store.attempt(visit) as attempt:
            request = self._requests.request(visit, attempt.number, cell, load)
            file = attempt.directory / "visit.json"
            try:
                self._runner.run_visit(request, attempt.directory, self._display.event, boot=visit.boot)
                record = codec.read(VisitRecord, file)
            except MachineUnfit:
                raise
            except BedplateError as error:
                record = lost_record(
                    request, reasons_of(error), self._runner.name, time.monotonic() - started
                )
                codec.write(file, record)
            record, figures = keep(attempt, record, seconds_before=time.monotonic() - started)
            self._answers.learn(sorted(attempt.directory.glob("runs/*/record.json")))
            attempt.finish()
        return record, figures

    def _estimate(self, visit: ScheduledVisit) -> float:
        cell, load = self._shared.expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)
        return visit_seconds(self._shared.plan, cell, load, canary=visit.canary, executor=self._runner.name)

    def _seconds_left(self, rest: Sequence[ScheduledVisit]) -> float:
        correction = self._taken_s / self._estimated_s if self._estimated_s else 1.0
        return correction * sum(self._estimate(visit) for visit in rest)


def _is_last(visit: ScheduledVisit, rest: Sequence[ScheduledVisit]) -> bool:
    """Whether a repetition is over with this visit, and another one is due; canaries are of none."""
    later = next((one for one in rest if not one.canary), None)
    return not visit.canary and later is not None and later.repetition > visit.repetition


def refuse_latencies(cells: Iterable[Cell], drivers: Mapping[str, str]) -> None:
    """RequirementMissing with every reason; the way to such a device is measured in some seconds, three times before it refuses. Needs root."""
    wanted = dict.fromkeys(cell.device.latency for cell in cells if cell.device.latency is not None)
    if all(latency.is_path_alone for latency in wanted):
        return
    fitting_way(wanted, lambda: _way(Path(drivers[DRIVER])))


def _way(driver: Path) -> WayThere:
    with (
        Ledger.open(state_directory(), f"{os.getpid()}-latency") as ledger,
        tempfile.TemporaryDirectory(prefix="bedplate-latency-", dir=MEMORY_DIRECTORY) as folder,
    ):
        return way_there(driver, Path(folder), ledger=ledger, commands=Commands())


@dataclass(frozen=True)
class StudyStart:
    """The visits that are due, in order; `listener` shows them. `not_built` are sentences about those that were left out."""

    store: StudyStore
    shared: SharedInputs
    listener: Display
    visits: Sequence[ScheduledVisit]
    not_built: tuple[str, ...] = ()
    after_repetition: AfterRepetition | None = None

    @classmethod
    def prepared(
        cls,
        study_plan: PlannedStudy,
        store: StudyStore,
        due_visits: Sequence[ScheduledVisit],
        consent: Consent,
        display: Display,
        *,
        cells: Sequence[Cell] | None = None,
    ) -> StudyStart:
        """With builds, drivers and data, each made now where the cache lacks it; `cells` are those that are due, None for all."""
        cells = study_plan.cells if cells is None else cells
        builds = prepare_builds(cells, display, sources=study_plan.plan.sources)
        drivers = drivers_of_plan(study_plan.plan, study_plan.workloads)
        refuse_latencies(cells, drivers.made)
        shared = SharedInputs(
            plan=study_plan.plan,
            expansion=study_plan.expansion,
            builds=builds.made,
            native_drivers={
                **drivers.made,
                **prepare_programs(study_plan.plan.engines),
            },
            inputs=prepare_inputs(
                study_plan.datasets, display, MadeAnyway(builds.made, cells, study_plan.plan.archives)
            ),
            erase=consent.erase,
            erase_foreign=consent.erase_foreign,
            devices=store.facts.devices,
            node_devices=node_devices(store.layout, study_plan.plan),
        )
        start = cls(store, shared, display, due_visits).without_builds(builds.failed)
        return start.without_libraries(drivers.failed)

    @property
    def plan(self) -> Plan:
        """What is measured."""
        return self.shared.plan

    @property
    def expansion(self) -> Expansion:
        """The cells that the due visits are of."""
        return self.shared.expansion

    def allow_erasing(self, scratch: ScratchDevice) -> ScratchDevice:
        """A device as visits get it: with what may be erased."""
        return self.shared.allow_erasing(scratch)

    def label(self, visit: ScheduledVisit) -> str:
        """What a visit is called where its study is the context."""
        cell, load = self._cell_and_load(visit)
        return self._labels.of(cell, load, visit)

    def request(self, visit: ScheduledVisit, attempt: int) -> VisitRequest:
        """What is asked of one attempt at a visit, on its node where it has one."""
        cell, load = self._cell_and_load(visit)
        return self._requests.request(visit, attempt, cell, load)

    def keep(
        self, attempt: Attempt, record: VisitRecord, *, seconds_before: float
    ) -> tuple[VisitRecord, str]:
        """Make the figures of a visit that has ended and put it into the study; its final record, and a line of it."""
        record, figures = keep(attempt, record, seconds_before=seconds_before)
        self._answers.learn(sorted(attempt.directory.glob("runs/*/record.json")))
        attempt.finish()
        return record, summary(record, figures)

    def without(self, cell_ids: Collection[str], subject: str, reasons: Sequence[str]) -> StudyStart:
        """The same start, without the due visits of these cells, by their ids: `subject` was not built, for these reasons.

        A side alone is no pair, so that of a study of pairs nothing is left.
        """
        left = tuple(visit for visit in self.visits if visit.cell_id not in cell_ids)
        count = len(self.visits) - len(left)
        if not count:
            return self
        if self.store.paired is not None:
            left = ()
        sentence = f"{format_count(count, 'visit')} of {subject} did not run, as it was not built: {reasons[0] if reasons else 'no reason is known'}"
        return replace(self, visits=left, not_built=(*self.not_built, sentence, *reasons[1:]))

    def without_builds(self, failed: Mapping[BuildLevels, BuildFailed]) -> StudyStart:
        """The same start, without the due visits of builds that could not be made."""
        start = self
        for levels, error in failed.items():
            cells = {visit.cell_id for visit in self.visits if self._cell_and_load(visit)[0].build == levels}
            start = start.without(cells, preparations()[levels.engine].words(levels), error.reasons)
        return start

    def without_libraries(self, failed: Mapping[str, BuildFailed]) -> StudyStart:
        """The same start, without the due visits of libraries that could not be made, by their level in cells."""
        start = self
        for level, error in failed.items():
            cells = {visit.cell_id for visit in self.visits if self._library(visit) == level}
            start = start.without(cells, f"the library {level}", error.reasons)
        return start

    def _library(self, visit: ScheduledVisit) -> str | None:
        cell = self._cell_and_load(visit)[0]
        return own_library_of(cell.build.engine, cell.cluster.settings)

    def has_ended(self, record: VisitRecord) -> None:
        """Count a visit among those that decide whether the rest would fail alike."""
        self._alike.add(record)

    def hopeless(self, rest: Iterable[ScheduledVisit]) -> tuple[str, ...]:
        """Sentences if no visit of these is worth its time; empty if one is, or none is left."""
        return self._alike.verdict(
            (self._cell_and_load(visit)[0], visit.dataset_id, visit.node) for visit in rest
        )

    def _cell_and_load(self, visit: ScheduledVisit) -> tuple[Cell, Load]:
        return self.expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)

    @cached_property
    def _labels(self) -> Labels:
        return Labels(self.expansion)

    @cached_property
    def _answers(self) -> KnownAnswers:
        return KnownAnswers.of_study(self.store.layout.visits)

    @cached_property
    def _requests(self) -> VisitRequests:
        return VisitRequests(self.store, self.shared, self._answers)

    @cached_property
    def _alike(self) -> AlikeFailures:
        return AlikeFailures()

    def by(self, executor: Executor) -> StartOutcome:
        """Have the due visits run; nothing is begun where none is left."""
        outcome = executor.run(self) if self.visits else StartOutcome(0, 0, 0.0)
        # An executor that builds too has added to them.
        return replace(outcome, not_built=outcome.not_built or self.not_built)

    def one_by_one(self, runner: VisitRunner) -> StartOutcome:
        """Run the due visits in order, and keep each as soon as it is done; closes the runner."""
        outcome = StudyRun(self.store, self.shared, runner, self.listener).run(
            self.visits, self.after_repetition
        )
        return replace(outcome, not_built=self.not_built)
