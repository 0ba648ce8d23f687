"""One study as the report and the terminal see it: its cells, every run that was due, the summaries."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from bedplate import registry
from bedplate.analysis.counted_share import counted_share
from bedplate.analysis.figure_summaries import summaries_of_runs
from bedplate.analysis.fleet import fleet_marks, incomplete_nodes, node_of
from bedplate.analysis.flush_rates import FlushRate, flush_rates
from bedplate.analysis.health import StudyHealth, study_health
from bedplate.analysis.labels import effective_block_bytes, label_cells, study_marks
from bedplate.analysis.modes import marked_by_mode
from bedplate.analysis.paired.marks import paired_marks
from bedplate.analysis.parts import WHOLE, part_figures, whole_figures
from bedplate.analysis.power_cut_view import CutRun, cut_runs
from bedplate.analysis.promise import latest_records, promise
from bedplate.analysis.scores import ScoreView, completed_by_others, score_reasons, score_views
from bedplate.analysis.search.marks import search_marks
from bedplate.analysis.unmeasured import without_figures
from bedplate.analysis.workload_view import view_of
from bedplate.model.device_cache import least_sector_bytes, sector_bytes_of, volatile_cache_of
from bedplate.model.figure import Status
from bedplate.model.reason import because, sentences
from bedplate.model.visit import Outcome, Validity
from bedplate.statistics.comparable import differences
from bedplate.statistics.identical import effective_cells
from bedplate.statistics.summary import Observation, Summary, SummaryKey
from bedplate.study.stored import place_of, read_study, scheduled_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from bedplate.analysis.labels import CellLabel
    from bedplate.model.cell import RunSpec
    from bedplate.model.figure import Figure, RunFigures
    from bedplate.model.plan import ScheduledVisit
    from bedplate.model.reason import Reason
    from bedplate.model.visit import Durability, VisitRecord
    from bedplate.study.stored import Place, SetAside, StoredVisit, Study

Derived = TypeVar("Derived")
NOT_COMPARABLE = "not-comparable"
# What room `plan` calls the run of a canary visit.
CANARY_RUN = "canary"


class Trouble(Enum):
    """In a word, what is to be said of a run that is not simply valid."""

    FAILED = "failed"
    SUSPECT = "suspect"
    UNKNOWN = "unknown"
    NOT_RUN = "not run"


_OF_VALIDITY = {Validity.SUSPECT: Trouble.SUSPECT, Validity.UNKNOWN: Trouble.UNKNOWN}


@dataclass(frozen=True)
class Whereabouts:
    """Where a visit was lived; `accelerator` is None where the machine itself was measured, `node` without a fleet."""

    executor: str
    kernel: str | None
    accelerator: str | None
    emulated: bool
    boot_id: str
    node: str | None = None


@dataclass(frozen=True)
class Measurement:
    """One run that was due, with what became of it; `figures` is None where there are none.

    `order` is the place of its visit in the schedule. `directory` holds its course and latencies.
    `by_metric` are the figures of the whole run by the name of the metric, `parts` those of its phases and
    items by (phase, item, metric), where it has several. `unreached`: its visit failed before the run
    began, so that the run did not fail and yet will not come. `where` is None before its visit.
    """

    cell: str
    dataset: str
    run: str
    repetition: int
    attempt: int | None
    order: int
    canary: bool
    outcome: Outcome
    validity: Validity
    reasons: tuple[Reason, ...]
    started_wall_s: float | None = None
    figures: RunFigures | None = None
    directory: Path | None = None
    by_metric: Mapping[str, Figure] = field(default_factory=dict)
    unreached: bool = False
    where: Whereabouts | None = None
    parts: Mapping[tuple[str, str, str], Figure] = field(default_factory=dict)

    @property
    def trouble(self) -> Trouble | None:
        """None where all is well; a run that a failed visit never reached is told as that visit's failure."""
        if self.outcome is Outcome.FAILED or self.unreached:
            return Trouble.FAILED
        if self.outcome is Outcome.NOT_RUN:
            return Trouble.NOT_RUN
        return _OF_VALIDITY.get(self.validity)

    @property
    def metrics(self) -> frozenset[str]:
        """The names of all its figures, those of its parts too."""
        return frozenset((*self.by_metric, *(name for *_, name in self.parts)))

    def figure(self, metric: str, phase: str = WHOLE, item: str = "") -> Figure | None:
        """The figure of the whole run, or of one of its parts; None where there is none."""
        if (phase, item) == (WHOLE, ""):
            return self.by_metric.get(metric)
        return self.parts.get((phase, item, metric))

    def value(self, metric: str, phase: str = WHOLE, item: str = "") -> float | None:
        """The measured value; None where it is absent or censored."""
        found = self.figure(metric, phase, item)
        return found.value if found and found.status is Status.MEASURED else None

    def is_stopped(self, metric: str, phase: str = WHOLE, item: str = "") -> bool:
        """Whether nothing is known of this figure but a limit at which the run was stopped."""
        found = self.figure(metric, phase, item)
        return found is not None and found.status is Status.CENSORED

    def observation(self, metric: str, phase: str = WHOLE, item: str = "") -> Observation:
        """The same as the statistics take it."""
        found = self.figure(metric, phase, item)
        status = found.status if found else Status.ABSENT
        limit = found.limit if found else None
        of = counted_share(self, metric, phase, item)
        return Observation(self.value(metric, phase, item), status, self.outcome, self.validity, limit, of)


@dataclass(frozen=True)
class CellFacts:
    """A cell with what its visits found out about it; `identical_to` are ids of other cells.

    `incomparable` says in what surroundings its visits differ that no factor explains. `flushes` are
    those of all its visits that counted some. `durability` is measured where power was cut and the verdict was not refused,
    else declared; `declared` is what flushes and settings promise in either case. `cuts` are its runs of power cuts.
    `sector_bytes` are the physical sectors of the study's device, the smallest of several; None where nothing tells.
    """

    id: str
    label: CellLabel
    durability: Durability | None
    identical_to: tuple[str, ...]
    changing: bool
    emulated: bool = False
    incomparable: tuple[str, ...] = ()
    flushes: tuple[FlushRate, ...] = ()
    incomplete: tuple[str, ...] = ()
    declared: Durability | None = None
    cuts: tuple[CutRun, ...] = ()
    sector_bytes: int | None = None

    @property
    def cache(self) -> str:
        """The volatile cache with its device's sectors, by whose class it is coloured."""
        return volatile_cache_of(self.sector_bytes)

    @property
    def verdict_refused(self) -> bool:
        """Whether its power was cut and all that can be said is what was declared, as what the cuts showed cannot be believed."""
        return any(run.verdict.refused for run in self.cuts) and all(
            run.measured is None for run in self.cuts
        )

    @property
    def notes(self) -> tuple[Reason, ...]:
        """What stands beside the cell's figures, apart from the emulation of its device."""
        found = []
        if self.changing:
            found.append(because("effective-changed", "what was effective changed between its visits"))
        if self.incomparable:
            words = f"its visits are not comparable, so there is no interval ({'; '.join(self.incomparable)})"
            found.append(because(NOT_COMPARABLE, words))
        if self.incomplete:
            words = f"incomplete on {', '.join(self.incomplete)}; nothing is filled up from another node"
            found.append(because("incomplete-on-nodes", words))
        if self.emulated:
            found.append(because("emulated", "emulated processors: the speed is the emulator's"))
        return tuple(found)

    @property
    def notes_of_pairs(self) -> tuple[str, ...]:
        """The same beside a pair, which says of its own why it cannot be compared."""
        return sentences(note for note in self.notes if note.code != NOT_COMPARABLE)


@dataclass(frozen=True)
class Overview:
    """Everything that tables and pages show of one study; `cells` keep the order of the schedule.

    `runs` are pairs of dataset and run name. `marks` are sentences that stand beside every figure, `pruned` the
    cells that cannot exist, with their reasons. `scores` are those over all cells, one view for each
    scored run of each dataset. `selection` says which cells of the study these are; None where they are all.
    """

    study: Study
    cells: Mapping[str, CellFacts]
    runs: tuple[tuple[str, str], ...]
    measurements: tuple[Measurement, ...]
    summaries: Mapping[SummaryKey, Summary]
    marks: tuple[str, ...]
    pruned: tuple[tuple[CellLabel, tuple[str, ...]], ...]
    scores: tuple[ScoreView, ...] = ()
    selection: str | None = None
    _made: dict[Callable[[Overview], Any], Any] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def once(self, make: Callable[[Overview], Derived]) -> Derived:
        """What a function makes of the study, worked out when it is first asked for; a narrowed study has its own."""
        if make not in self._made:
            self._made[make] = make(self)
        return cast("Derived", self._made[make])

    def summary(
        self, cell: str, run: tuple[str, str], metric: str, phase: str = WHOLE, item: str = ""
    ) -> Summary:
        """The summary of a metric; one of nothing where it never came up."""
        return self.summaries.get(SummaryKey(cell, run[0], run[1], metric, phase, item), Summary(0))

    def summaries_of(self, cell: str, run: tuple[str, str]) -> tuple[SummaryKey, ...]:
        """The keys of everything that is summarised of one run of a cell."""
        return self._keys_by_run.get((cell, *run), ())

    @cached_property
    def _keys_by_run(self) -> Mapping[tuple[str, str, str], tuple[SummaryKey, ...]]:
        found: dict[tuple[str, str, str], list[SummaryKey]] = {}
        for key in self.summaries:
            found.setdefault((key.cell, key.dataset, key.run), []).append(key)
        return {run: tuple(keys) for run, keys in found.items()}

    def dataset_words(self, dataset: str) -> str:
        """What a dataset is called; its id where another has the same words, or the schedule does not know it."""
        known = self.study.schedule.datasets
        same = [one for one in known.values() if dataset in known and one.words == known[dataset].words]
        return known[dataset].words if len(same) == 1 else dataset

    def spec(self, run: tuple[str, str]) -> RunSpec | None:
        """What the schedule says of a run; None for one that it does not know."""
        return _specs(self.study).get(run)

    def of(self, cell: str, run: tuple[str, str]) -> tuple[Measurement, ...]:
        """The repetitions of one run of a cell, without canaries."""
        return self._by_run.get((cell, *run), ())

    @cached_property
    def _by_run(self) -> Mapping[tuple[str, str, str], tuple[Measurement, ...]]:
        found: dict[tuple[str, str, str], list[Measurement]] = {}
        for m in self.measurements:
            if not m.canary:
                found.setdefault((m.cell, m.dataset, m.run), []).append(m)
        return {key: tuple(measurements) for key, measurements in found.items()}

    def absence(self, key: SummaryKey) -> str | None:
        """Why a cell has no value of a metric, as its runs say; None where they do not."""
        for m in self.of(key.cell, (key.dataset, key.run)):
            found = m.figure(key.metric, key.phase, key.item)
            if found is not None and found.reason is not None:
                return found.reason.sentence
        return self._score_reasons.get(key)

    @cached_property
    def _score_reasons(self) -> Mapping[SummaryKey, str]:
        return {key: reason for view in self.scores for key, reason in score_reasons(view).items()}

    @cached_property
    def repetitions(self) -> int:
        """The largest number of values that any cell has for a run's first figure; 0 before the first run."""
        headlines = {name for workload in registry.WORKLOADS for name in view_of(workload).headlines}
        first = [key for key in self.summaries if key.metric in headlines]
        return max((self.summaries[key].n for key in first or self.summaries), default=0)

    @cached_property
    def health(self) -> StudyHealth:
        """What the study says of itself over time."""
        return study_health(self)


def overview(directory: Path) -> Overview:
    """Read a study and summarise it. StudyError if its own files are damaged."""
    return overview_of(read_study(directory))


def overview_of(study: Study) -> Overview:
    """Summarise a study that was read."""
    specs = _specs(study)
    measurements = tuple(completed_by_others(marked_by_mode(tuple(_measurements(study))), specs))
    plain = [m for m in measurements if not m.canary]
    runs = tuple(dict.fromkeys((m.dataset, m.run) for m in plain))
    records = [visit.record for visit in study.visits]
    cells, pruned = _cells(study)
    views = score_views(plain, tuple(cells), specs)
    return Overview(
        study=study,
        cells=cells,
        runs=runs,
        measurements=measurements,
        summaries=summaries_of_runs(plain, specs, cells, views),
        marks=(
            *search_marks(study),
            *paired_marks(study),
            *study_marks(study.schedule.cells.values(), records),
            *fleet_marks(study),
            *study.marks,
        ),
        pruned=pruned,
        scores=views,
    )


def _specs(study: Study) -> dict[tuple[str, str], RunSpec]:
    """What every run of a dataset is, by dataset and name."""
    return {(dataset, spec.name): spec for dataset, runs in study.schedule.runs.items() for spec in runs}


def _cells(
    study: Study,
) -> tuple[dict[str, CellFacts], tuple[tuple[CellLabel, tuple[str, ...]], ...]]:
    """The cells that were due, and the pruned ones; canaries are neither."""
    plain = [visit.record for visit in study.visits if not visit.record.key.canary]
    blocks = {
        record.key.cell: size for record in plain if (size := effective_block_bytes(record)) is not None
    }
    scheduled = {visit.cell_id for visit in study.schedule.visits if not visit.canary}
    due = {cell_id: cell for cell_id, cell in study.schedule.cells.items() if cell_id in scheduled}
    labels = label_cells([*due.values(), *(item.cell for item in study.schedule.pruned)], blocks)
    changing = effective_cells((record.key.cell, record.effective_digest) for record in plain).changing
    effective = effective_cells((record.key.cell, _configuration(record)) for record in plain)
    incomplete = incomplete_nodes(study)
    visits: dict[str, list[VisitRecord]] = {}
    for record in plain:
        visits.setdefault(record.key.cell, []).append(record)
    cuts = cut_runs(study.visits)
    latest = latest_records(study.visits)
    promises = {cell: promise(latest.get(cell, ()), cuts.get(cell, ())) for cell in due}
    sectors = least_sector_bytes(sector_bytes_of(each.device_facts) for each in plain if each.device_facts)
    cells = {
        cell_id: CellFacts(
            id=cell_id,
            label=labels[cell_id],
            durability=promises[cell_id].durability,
            identical_to=effective.others(cell_id),
            changing=cell_id in changing,
            emulated=any(record.emulated for record in visits.get(cell_id, ())),
            incomparable=_differences(visits.get(cell_id, ())),
            flushes=flush_rates(visits.get(cell_id, ())),
            incomplete=incomplete.get(cell_id, ()),
            declared=promises[cell_id].declared,
            cuts=cuts.get(cell_id, ()),
            sector_bytes=sectors,
        )
        for cell_id in due
    }
    return cells, tuple((labels[item.cell.id], sentences(item.reasons)) for item in study.schedule.pruned)


def _configuration(record: VisitRecord) -> str | None:
    """What was in force with what it was in force under: equal options of two kernels are two results.

    Two kernels that somebody built may say the same release.
    """
    if record.effective_digest is None:
        return None
    kernel = (record.provenance.get("kernel"), record.provenance.get("kernel_digest"))
    under = (record.executor, record.accelerator, *kernel)
    return " ".join(map(str, (record.effective_digest, *under)))


def _differences(records: Sequence[VisitRecord]) -> tuple[str, ...]:
    """In what surroundings visits of one workload differ on one node; those of two need not be alike."""
    alike = dict.fromkeys((record.dataset.workload, node_of(record)) for record in records)
    return tuple(
        dict.fromkeys(
            words
            for kind in alike
            for words in differences(
                _provenance(record)
                for record in records
                if (record.dataset.workload, node_of(record)) == kind
            )
        )
    )


def _provenance(record: VisitRecord) -> Mapping[str, str]:
    return {"executor": record.executor, **record.provenance}


def _measurements(study: Study) -> Iterator[Measurement]:
    latest: dict[Place, StoredVisit] = {}
    for visit in sorted(study.visits, key=lambda visit: visit.record.key.attempt):
        latest[place_of(visit.record)] = visit
    aside = {each.place: each for each in study.set_aside}
    due = _due(study)
    for scheduled in study.schedule.visits:
        place = scheduled_place(scheduled)
        stored = latest.get(place)
        not_used = None if stored is not None else aside.get(place)
        yield from _of_visit(scheduled, stored, due.get(scheduled.dataset_id, ()), not_used)


def _due(study: Study) -> dict[str, tuple[RunSpec, ...]]:
    """The runs that every plain visit makes, by dataset.

    The schedule keeps the canary's run with the others of its dataset. It is due in canary visits only,
    unless a plan gave the same name to a run of its own, which plain visits then have made.
    """
    made = {
        (visit.record.key.dataset, run.run)
        for visit in study.visits
        if not visit.record.key.canary
        for run in visit.runs
    }
    canaries = {visit.dataset_id for visit in study.schedule.visits if visit.canary}
    return {
        dataset: tuple(
            spec
            for spec in specs
            if spec.name != CANARY_RUN or dataset not in canaries or (dataset, spec.name) in made
        )
        for dataset, specs in study.schedule.runs.items()
    }


def _of_visit(
    scheduled: ScheduledVisit,
    stored: StoredVisit | None,
    due: tuple[RunSpec, ...],
    aside: SetAside | None,
) -> Iterator[Measurement]:
    found = _runs_of(stored) if stored else {}
    specs = {} if scheduled.canary else {spec.name: spec for spec in due}
    for name in dict.fromkeys((*specs, *found)):
        run, directory = found.get(name, (None, None))
        outcome, reasons = (run.outcome, run.reasons) if run else without_figures(stored, specs[name], aside)
        yield Measurement(
            cell=scheduled.cell_id,
            dataset=scheduled.dataset_id,
            run=name,
            repetition=scheduled.repetition,
            attempt=stored.record.key.attempt if stored else None,
            order=scheduled.index,
            canary=scheduled.canary,
            outcome=outcome,
            validity=run.validity if run else Validity.UNKNOWN,
            reasons=reasons + (run.validity_reasons if run else ()),
            started_wall_s=(run.measure_start_wall_s if run else None)
            or (stored.record.started_wall_s if stored else None),
            figures=run,
            directory=directory,
            by_metric=whole_figures(run.figures) if run else {},
            parts=part_figures(run.figures) if run else {},
            # What was set aside is told as a failure too: `--retry-failed` does it again.
            unreached=outcome is Outcome.NOT_RUN
            and (aside is not None or (stored is not None and stored.record.outcome is Outcome.FAILED)),
            where=_whereabouts(stored.record) if stored else None,
        )


def _whereabouts(record: VisitRecord) -> Whereabouts:
    return Whereabouts(
        executor=record.executor,
        kernel=record.provenance.get("kernel"),
        accelerator=record.accelerator,
        emulated=record.emulated,
        boot_id=record.boot_id,
        node=node_of(record),
    )


def _runs_of(stored: StoredVisit) -> dict[str, tuple[RunFigures, Path]]:
    """Runs by name, with their folders."""
    return {run.run: (run, folder) for run, folder in zip(stored.runs, stored.run_directories, strict=True)}
