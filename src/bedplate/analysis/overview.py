"""One study as the report and the terminal see it: its cells, every run that was due, the summaries."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from bedplate import registry
from bedplate.analysis.fleet import fleet_marks, incomplete_nodes, node_of
from bedplate.analysis.labels import CellLabel, effective_block_bytes, label_cells, study_marks
from bedplate.analysis.run_heads import run_head, view_of
from bedplate.cuts.records import UNIT_PROFILES, VOLATILE_PROFILES
from bedplate.cuts.runs import CutRun, cut_runs, durability_by_cuts
from bedplate.model.cell import RunSpec
from bedplate.model.course import first_of
from bedplate.model.device_cache import least_sector_bytes, sector_bytes_of, volatile_cache_of
from bedplate.model.durability import UNKNOWN, promised, worse
from bedplate.model.figure import Better, Figure, RunFigures, Status
from bedplate.model.metrics import CUT, METRICS
from bedplate.model.plan import ScheduledVisit
from bedplate.model.reason import Reason, because, sentences
from bedplate.model.visit import Durability, Outcome, Validity, VisitRecord
from bedplate.statistics.comparison import differences
from bedplate.statistics.drift import OUTLIER_LEVEL, Dips, Drift, Outlier, Visited, dips, drift, outliers
from bedplate.statistics.heat_map import effective_cells
from bedplate.statistics.summary import Observation, Summaries, Summary, SummaryKey, summarise
from bedplate.study.checksums import MODE_METRICS, in_other_modes
from bedplate.study.stored import Place, SetAside, StoredVisit, Study, place_of, read_study, scheduled_place

if TYPE_CHECKING:
    from bedplate.statistics.tpch_scores import QueryRun, Score, Scores

# In the order in which they are shown.
COUNTED = (
    ("data", "appending"),
    ("data", "overwriting"),
    ("journal", "appending"),
    ("journal", "overwriting"),
)


@dataclass(frozen=True)
class FlushRate:
    """Flushes per fsync of one device under one pattern; `smallest` and `largest` are of single visits."""

    device: str
    pattern: str
    calls: int
    flushes: int
    smallest: float
    largest: float

    @property
    def per_call(self) -> float:
        """Of all visits together."""
        return self.flushes / self.calls

    @property
    def text(self) -> str:
        """`1`, `0.98`, or `0–1` where visits disagree in what two digits show."""
        ends = (_short(self.smallest), _short(self.largest))
        return _short(self.per_call) if ends[0] == ends[1] else "–".join(ends)


def flush_rates(records: Iterable[VisitRecord]) -> tuple[FlushRate, ...]:
    """The rates of a cell from its visits; one that counted nothing says nothing."""
    counts = [count for record in records for count in record.flush_counts if count.calls]
    found = []
    for device, pattern in COUNTED:
        here = [count for count in counts if (count.device, count.pattern) == (device, pattern)]
        if here:
            rates = [count.flushes / count.calls for count in here]
            found.append(
                FlushRate(
                    device,
                    pattern,
                    calls=sum(count.calls for count in here),
                    flushes=sum(count.flushes for count in here),
                    smallest=min(rates),
                    largest=max(rates),
                )
            )
    return tuple(found)


def rate_text(rates: Iterable[FlushRate], device: str, pattern: str) -> str:
    """The rate as it is shown; `–` where none was counted, which is not zero."""
    return next((rate.text for rate in rates if (rate.device, rate.pattern) == (device, pattern)), "–")


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


_NOT_YET = because("not-run-yet", "not run yet")

_NO_RECORD = because("no-record", "the visit has no record of this run")


def without_figures(
    stored: StoredVisit | None, spec: RunSpec, aside: SetAside | None
) -> tuple[Outcome, tuple[Reason, ...]]:
    """A run that began and left no figures has failed; one that its visit never came to did not run."""
    if aside is not None:
        return Outcome.NOT_RUN, tuple(because("set-aside", f"not used: {reason}") for reason in aside.reasons)
    if stored is None:
        return Outcome.NOT_RUN, (_NOT_YET,)
    if stored.record.outcome is Outcome.COMPLETED:
        return Outcome.NOT_RUN, (_NO_RECORD,)
    return Outcome.FAILED if stored.has_begun(spec) else Outcome.NOT_RUN, stored.record.reasons


_NONE_COMPLETED = because(
    "no-visit-completed", "no visit of the cell completed, and only completed visits have a class"
)


@dataclass(frozen=True)
class Promise:
    """`declared` by flushes and settings, and the class as it stands, measured where power was cut; None before a visit."""

    declared: Durability | None = None
    durability: Durability | None = None


def latest_records(visits: Iterable[StoredVisit]) -> dict[str, list[VisitRecord]]:
    """The records of the last attempts by cell, without canaries."""
    latest: dict[tuple[str, str, int], VisitRecord] = {}
    for record in sorted((visit.record for visit in visits), key=lambda record: record.key.attempt):
        key = record.key
        if not key.canary:
            latest[key.cell, key.dataset, key.repetition] = record
    found: dict[str, list[VisitRecord]] = {}
    for record in latest.values():
        found.setdefault(record.key.cell, []).append(record)
    return found


def promise(records: Sequence[VisitRecord], cuts: Sequence[CutRun]) -> Promise:
    """What the latest visits of a cell promise together."""
    told = [each for record in records if (each := promised(record)) is not None]
    if not told:
        nothing = Durability(UNKNOWN, UNKNOWN, "declared", (_NONE_COMPLETED,))
        any_failed = any(record.outcome is Outcome.FAILED for record in records)
        return Promise(None, durability_by_cuts(nothing if any_failed else None, cuts))
    declared = told[0]
    for each in told[1:]:
        declared = worse(declared, each)
    has_errors = any(record.found_errors for record in records)
    return Promise(declared, declared if has_errors else durability_by_cuts(declared, cuts))


def marked_by_mode(measurements: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """The same, with runs that only read suspect where they slept and sped otherwise than the median of their kind."""
    paced = [
        (
            (m.cell, m.dataset, m.run, m.canary),
            {name: value for name in MODE_METRICS if (value := m.value(name)) is not None}
            if m.outcome is Outcome.COMPLETED
            else {},
        )
        for m in measurements
    ]
    reasons = in_other_modes(paced)
    return tuple(
        replace(m, validity=Validity.SUSPECT, reasons=(*m.reasons, reasons[place])) if place in reasons else m
        for place, m in enumerate(measurements)
    )


# The phase of the figures of a whole run.
WHOLE = "measure"

# Made once for a visit, under the names of the phases in which it was prepared.
VISIT_FIGURES = ("mkfs_s", "cluster_s", "load_s")


def whole_figures(figures: Sequence[Figure]) -> Mapping[str, Figure]:
    """The figures of the whole run, by the name of the metric; of two of the same the first."""
    return {figure.metric: figure for figure in reversed(figures) if _is_whole(figure)}


def part_figures(figures: Sequence[Figure]) -> Mapping[tuple[str, str, str], Figure]:
    """The others, by (phase, item, metric), in the order in which they stand."""
    found: dict[tuple[str, str, str], Figure] = {}
    for figure in figures:
        if not _is_whole(figure):
            found.setdefault((figure.phase, figure.item, figure.metric), figure)
    return found


def _is_whole(figure: Figure) -> bool:
    return not figure.item and (figure.phase == WHOLE or figure.metric in VISIT_FIGURES)


BAD_SHARE, BAD_CUTS = "power_cut_bad_share", "power_cuts_bad"

# Those that a run of a study is cut with: the plan's, and of a device with a unit the one in place of those that tear.
_VOLATILE = (*VOLATILE_PROFILES, *UNIT_PROFILES.values())

# A figure is written with all its digits.
_ROUNDING = 1e-9


def counted_share(
    measurement: Measurement, metric: str, phase: str = WHOLE, item: str = ""
) -> tuple[int, int] | None:
    """(bad, cuts) behind a share of bad cuts; None for any other figure, and where figures contradict each other.

    The share of a whole run is that of its drawn cuts with a volatile cache, which its profiles count.
    """
    if metric != BAD_SHARE:
        return None
    share, bad = (measurement.value(name, phase, item) for name in (metric, BAD_CUTS))
    if share is None or bad is None:
        return None
    parts = [(CUT, profile.value) for profile in _VOLATILE] if phase == WHOLE else [(phase, item)]
    cuts = sum(measurement.value("power_cuts", *part) or 0.0 for part in parts)
    if not 0 <= bad <= cuts or cuts < 1 or abs(bad - share * cuts) > _ROUNDING * cuts:
        return None
    return round(bad), round(cuts)


STOPPED_WHEN_TOLD = (
    "the study of pairs ended when it could tell, so the number of its repetitions is no accident. The interval of the answer holds at every "
    "look; those of tables and of `compare` are of one look and too narrow"
)


def paired_marks(study: Study) -> tuple[str, ...]:
    """One sentence of a study of pairs; none of any other."""
    return () if study.paired is None else (STOPPED_WHEN_TOLD,)


CHOSEN = (
    "a search chose which cells to visit and how often, so they are not sampled alike. The mean of a few visits to a cell that was chosen "
    "for them is too good. The model's figures and the proof are beside the means"
)

_EXTENDED = (
    "a search chose the cells of the first {blocks} blocks, and all cells were visited up to {repetitions} repetitions: what goes beyond them is of "
    "chosen cells"
)

NO_EFFECTS_OF_A_SEARCH = (
    (
        "a search chose the cells of this study, so that their means cannot say what a factor does: cells were visited because others like them "
        "were fast"
    ),
    (
        "the model says it of the figure that was searched for: `bedplate show STUDY --effects` without --workload, --metric and --cells; `bedplate run STUDY --repetitions N` makes a "
        "factorial of the study"
    ),
)

NO_ADVICE_OF_A_SEARCH = (
    "the answer of a search is of all its cells in the run that was searched, and there is none before its first figure",
    "leave --cells, --workload and --durability out; `bedplate run STUDY --repetitions N` makes a factorial of the study, of which there is advice",
)

DOUBTS_OF_A_SEARCH = "a search counts the runs whose doubts were accepted when it ran; `bedplate search` with one more --accept goes on and counts them"


def is_chosen(study: Study) -> bool:
    """Whether a search chose the cells, and nothing has made a factorial of it since."""
    return study.search is not None and study.search.extended is None


def is_chosen_visit(study: Study, repetition: int, *, canary: bool) -> bool:
    """Whether a search decided that a visit of this repetition was made."""
    record = study.search
    if record is None or canary or repetition > len(record.blocks):
        return False
    return record.extended is None or repetition > record.extended


def search_marks(study: Study) -> tuple[str, ...]:
    """One sentence of a search, or of a factorial that was one; none of any other study."""
    record = study.search
    if record is None:
        return ()
    if record.extended is None:
        return (CHOSEN,)
    return (_EXTENDED.format(blocks=len(record.blocks), repetitions=record.extended),)


# What stands for a run whose figures are all of its parts.
_PART_HEADS = ("test_operations_per_s", "throughput_mib_per_s", "operations_per_s")


def default_metric(found: Overview, run: tuple[str, str], having: Collection[str]) -> str | None:
    """The first figure of the run, or of its parts, that is among `having`; None where none is."""
    return next((name for name in (run_head(found, run).first, *_PART_HEADS) if name in having), None)


Run = tuple[str, str]

# Shared by all series of a study, each of which is looked at for a trend and for a step.
_LEVEL = 0.05

_OUTLIERS_SHOWN = 3

# docs/METHOD.md, “Drift, outliers, dips”, has the figures.
_OF_DIPS = (
    "Where some runs dip, intervals of 95 % hold the truth less often than that, and few repetitions may show no dip at all. More "
    "repetitions show how often runs dip, and their time series show when."
)


@dataclass(frozen=True)
class StudySeries:
    """One run's figure over the visits of a study, or the canary's. `name` stands in sentences.

    A change is reported where the p-value of a trend or of a step is at most `level`. `cells` has the name of a cell for each
    group of `outliers` and `dips`.
    """

    run: Run
    name: str
    is_canary: bool
    drift: Drift
    outliers: tuple[Outlier, ...]
    level: float
    cells: Mapping[str, str]
    dips: tuple[Dips, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether time mattered beyond chance."""
        parts = (self.drift.trend, self.drift.step)
        return any(part is not None and part.p_value <= self.level for part in parts)


@dataclass(frozen=True)
class StudyHealth:
    """What a study says of itself over time, and of its runs.

    `completed` counts runs, `suspect` those of them that a rule speaks against, `unknown` those without the evidence
    that it takes; `visits` those that were made. `drawn`: the order of the visits was drawn by bedplate. In one of somebody's own
    the repetitions of a cell follow each other, so that a trend within cells says nothing of the whole.
    """

    series: tuple[StudySeries, ...]
    completed: int
    suspect: int
    visits: int
    unknown: int = 0
    drawn: bool = True

    def sentences(self, runs: Iterable[Run] | None = None) -> tuple[str, ...]:
        """What is to be told beside the figures of these runs, of all where none are named; empty where all is well."""
        named = None if runs is None else set(runs)
        chosen = [one for one in self.series if named is None or one.is_canary or one.run in named]
        found = [self._changed(one) for one in chosen if one.changed and self.drawn]
        if found:
            canaries = [one.drift.values for one in chosen if one.is_canary]
            of_canary = (
                []
                if any(one.is_canary and one.changed for one in chosen)
                else ["There was no canary, so that nothing shows whether the machine or the cells changed"]
                if not canaries
                else [f"The canary, visited {canaries[0]} times, did not change"]
                if canaries[0] > 1
                else ["The canary was visited too rarely to show whether the machine changed"]
            )
            found.append(
                ". ".join(
                    (
                        *of_canary,
                        "Cells are compared within each repetition, so that none gains by it, but intervals are wider.",
                    )
                )
            )
        found += [words for one in chosen if (words := _outlier_words(one)) is not None]
        dipping = [words for one in chosen if (words := _dip_words(one)) is not None]
        if dipping:
            found += [*dipping, _OF_DIPS]
        if self.suspect:
            verb = "is suspect and is" if self.suspect == 1 else "are suspect and are"
            found.append(f"{self.suspect} of {self.completed} completed runs {verb} in no verdict.")
        if self.unknown:
            valid = "it is" if self.unknown == 1 else "they are"
            found.append(
                f"Of {self.unknown} of {self.completed} completed runs evidence is missing, so that nobody knows whether {valid} valid: "
                f"{valid} in no verdict."
            )
        return tuple(found)

    @property
    def canary_changes(self) -> tuple[str, ...]:
        """How the canary changed with time: the machine did, whatever the cells are like."""
        changed = (one for one in self.series if one.is_canary and one.changed)
        return tuple(map(self._changed, changed)) if self.drawn else ()

    def _changed(self, one: StudySeries) -> str:
        """A step looks like a trend too, and a trend like a step: both are told where both are beyond chance."""
        words = []
        trend, step = one.drift.trend, one.drift.step
        if step is not None and step.p_value <= one.level:
            words.append(
                f"{step.ratio:.2f} times from visit {step.position:.0f} of {self.visits} on if it was sudden"
            )
        if trend is not None and trend.p_value <= one.level:
            bounds = "" if trend.low is None or trend.high is None else f" ({trend.low:.2f}–{trend.high:.2f})"
            words.append(f"{trend.ratio:.2f} times{bounds} from the first visit to the last if gradual")
        return f"{one.name} changed with time, within cells: {', '.join(words)}."


def study_health(found: Overview) -> StudyHealth:
    """Look at every run's own figure, and at the canary's."""
    places = _places(found.measurements)
    series: list[tuple[Run, bool, str, list[tuple[Visited, str]]]] = []
    for canary in (False, True):
        runs = dict.fromkeys((m.dataset, m.run) for m in found.measurements if m.canary is canary)
        for run in runs:
            measured = [m for m in found.measurements if (m.canary, m.dataset, m.run) == (canary, *run)]
            metric = default_metric(found, run, frozenset().union(*(m.metrics for m in measured)))
            if metric is not None:
                series.append((run, canary, metric, list(_visited(found, measured, metric, places))))
    level = _LEVEL / (2 * max(1, len(series)))
    completed = [m for m in found.measurements if not m.canary and m.outcome is Outcome.COMPLETED]
    return StudyHealth(
        series=tuple(
            _series(run, metric, visited, canary=canary, level=level)
            for run, canary, metric, visited in series
        ),
        completed=len(completed),
        suspect=sum(m.validity is Validity.SUSPECT for m in completed),
        unknown=sum(m.validity is Validity.UNKNOWN for m in completed),
        visits=len(places),
        drawn=not found.study.facts.is_imported,
    )


def _series(
    run: Run, metric: str, named: Sequence[tuple[Visited, str]], *, canary: bool, level: float
) -> StudySeries:
    visited = [each for each, _ in named]
    name = f"The canary's {metric}" if canary else f"{metric} of {run[1]}"
    # The slower side; what has no better side has no dips.
    power = {Better.HIGHER: 1, Better.LOWER: -1, Better.NEITHER: 0}[METRICS[metric].better]
    dipped = dips((each.group, each.value**power) for each in visited if power)
    return StudySeries(
        run=run,
        name=name,
        is_canary=canary,
        drift=drift(visited),
        outliers=outliers(visited),
        level=level,
        cells={each.group: cell for each, cell in named},
        dips=dipped,
    )


def _visited(
    found: Overview, measured: Iterable[Measurement], metric: str, places: Mapping[tuple[object, ...], int]
) -> Iterable[tuple[Visited, str]]:
    """With the name of its cell, one value for each run: that of the whole, or the geometric mean over its parts, which share their visit."""
    for m in measured:
        # What the canary says of the machine, a doubt about the canary's run does not take away.
        if m.outcome is not Outcome.COMPLETED or (not m.validity.is_trusted and not m.canary):
            continue
        whole = m.value(metric)
        values = {"": whole} if whole is not None else _parts(m, metric)
        usable = {part: value for part, value in values.items() if 0 < value < math.inf}
        if usable and _visit(m) in places:
            value = math.exp(fmean(map(math.log, usable.values())))
            cell = found.cells.get(m.cell)
            name = cell.label.full if cell else m.cell
            # Means over other parts are other figures.
            # On another node it is another figure too: what a node is like is no drift.
            node = (m.where.node if m.where else None) or ""
            group = "\n".join((name, node, *sorted(usable)))
            yield Visited(group, places[_visit(m)], value), name


def _parts(m: Measurement, metric: str) -> dict[str, float]:
    return {
        f"{phase} {item}": value
        for phase, item, name in m.parts
        if name == metric and (value := m.value(metric, phase, item)) is not None
    }


def _places(measurements: Iterable[Measurement]) -> dict[tuple[object, ...], int]:
    """The number of each visit in the order in which they were made, from 1: a retry comes after what it was made after."""
    started: dict[tuple[object, ...], tuple[float, int]] = {}
    for m in measurements:
        if m.started_wall_s is not None:
            first = started.get(_visit(m), (math.inf, m.order))
            started[_visit(m)] = min(first, (m.started_wall_s, m.order))
    return {
        visit: place for place, visit in enumerate(sorted(started, key=lambda visit: started[visit]), start=1)
    }


def _visit(m: Measurement) -> tuple[object, ...]:
    return m.cell, m.dataset, m.repetition, m.attempt, m.canary


def _dip_words(one: StudySeries) -> str | None:
    """The cells of which some runs are far slower than the others, the worst first."""
    if not one.dips:
        return None
    dipping = [
        f"{one.cells[each.group]} in {each.dipped} of {each.n} runs ({each.ratio:.2f} times the speed of its others)"
        for each in sorted(one.dips, key=lambda each: each.ratio)
    ]
    return f"Dips in {one.name}: {first_of(dipping, _OUTLIERS_SHOWN, '; ')}."


def _outlier_words(one: StudySeries) -> str | None:
    """None where chance alone gives as many, and no single one is beyond chance among all cells."""
    groups = max(1, one.drift.groups)
    chance = groups * OUTLIER_LEVEL
    told = one.outliers
    if len(told) <= chance + 2 * math.sqrt(chance):
        told = tuple(each for each in told if each.p_value <= _LEVEL / groups)
    if not told:
        return None
    lying = [
        f"{one.cells[outlier.group]} at visit {outlier.position:.0f} ({outlier.ratio:.2f} times its others)"
        for outlier in sorted(told, key=lambda each: -abs(math.log(each.ratio)))
    ]
    shown = first_of(lying, _OUTLIERS_SHOWN, "; ")
    return (
        f"Outliers in {one.name}: {shown}. Chance alone gives about {chance:.2g} in {groups} cells; none "
        "is left out for it."
    )


if TYPE_CHECKING:
    RunSpecs: TypeAlias = Mapping[tuple[str, str], RunSpec]

# Made over all cells together, not over the repetitions of one.
SCORES = ("time", "score", "m_time", "m_score")


@dataclass(frozen=True)
class ScoreView:
    """The scores of one power run over all cells of a study.

    `plans` are the hashes that a query had in a cell, each once, in the order of the repetitions.
    `repetitions` counts the runs behind a cell's scores, `query_runs` are what these are made of.
    """

    dataset: str
    run: str
    scores: Scores
    plans: Mapping[str, Mapping[str, tuple[str, ...]]]
    repetitions: Mapping[str, int]
    query_runs: tuple[QueryRun, ...] = ()


@dataclass(frozen=True)
class Scoring:
    """What a workload does that scores its runs over all cells. Both get measurements of any run, and which are its own.

    `views` gets those without canaries; `completed` adds the figures that no run can know alone.
    """

    views: Callable[[Sequence[Measurement], Sequence[str], RunSpecs], Sequence[ScoreView]]
    completed: Callable[[Iterable[Measurement], RunSpecs], Iterable[Measurement]]


def score_views(plain: Sequence[Measurement], cells: Sequence[str], specs: RunSpecs) -> tuple[ScoreView, ...]:
    """The views of every workload that scores its runs; `plain` are the measurements without canaries."""
    return tuple(view for scoring, own in _scored(specs) for view in scoring.views(plain, cells, own))


def completed_by_others(measurements: Iterable[Measurement], specs: RunSpecs) -> Iterable[Measurement]:
    """The measurements, with the figures that no run can know alone."""
    for scoring, own in _scored(specs):
        measurements = scoring.completed(measurements, own)
    return measurements


def _scored(specs: RunSpecs) -> list[tuple[Scoring, RunSpecs]]:
    return [
        (scoring, {run: spec for run, spec in specs.items() if spec.workload == kind})
        for kind in dict.fromkeys(spec.workload for spec in specs.values())
        if (scoring := view_of(kind).scoring) is not None
    ]


def score_summaries(view: ScoreView) -> dict[SummaryKey, Summary]:
    """The scores as summaries of the run, so that they are drawn and listed as every other metric is."""
    found = {}
    for cell in view.scores.cells:
        for metric in SCORES:
            score: Score = getattr(cell, metric)
            count = view.repetitions[cell.cell]
            known = score.value is not None
            found[SummaryKey(cell.cell, view.dataset, view.run, metric)] = Summary(
                n=count if known else 0,
                basis=cell.basis if known else None,
                centre=score.value,
                low=score.low,
                high=score.high,
                absent=0 if known else count,
            )
    return found


def score_reasons(view: ScoreView) -> dict[SummaryKey, str]:
    """Why a cell has no score, by the key of the summary that lacks it."""
    found = {
        SummaryKey(cell, view.dataset, view.run, metric): reason
        for cell, reason in view.scores.left_out.items()
        for metric in SCORES
    }
    for cell in view.scores.cells:
        for metric in SCORES:
            score: Score = getattr(cell, metric)
            if score.reasons:
                found[SummaryKey(cell.cell, view.dataset, view.run, metric)] = "; ".join(score.reasons)
    return found


def summaries_of_runs(
    plain: Sequence[Measurement],
    specs: Mapping[tuple[str, str], RunSpec],
    cells: Mapping[str, CellFacts],
    views: Sequence[ScoreView],
) -> Summaries:
    """Of all figures of the runs, and of scores over cells. Cells whose visits are not comparable have no interval."""
    scores = {key: summary for view in views for key, summary in score_summaries(view).items()}
    groups: dict[tuple[str, str, str], list[Measurement]] = {}
    for m in plain:
        groups.setdefault((m.cell, m.dataset, m.run), []).append(m)

    def make(key: SummaryKey) -> Summary:
        found = scores.get(key)
        if found is None:
            runs = groups[key.cell, key.dataset, key.run]
            observations = (m.observation(key.metric, key.phase, key.item) for m in runs)
            found = summarise(observations, METRICS[key.metric].scale)
        return replace(found, low=None, high=None) if cells[key.cell].incomparable else found

    return Summaries((*_keys(plain, specs, groups), *scores), make)


def _keys(
    plain: Sequence[Measurement],
    specs: Mapping[tuple[str, str], RunSpec],
    groups: Iterable[tuple[str, str, str]],
) -> Iterator[SummaryKey]:
    """Every figure that any run of the same kind has is due in all of them, so that it may be missed.

    Kinds, since a load has no figure of a query: it does not lack it.
    """
    kinds = {run: _kind(run, specs) for run in {(m.dataset, m.run) for m in plain}}
    whole: dict[object, set[str]] = {}
    parts: dict[tuple[str, str], dict[tuple[str, str, str], None]] = {}
    for m in plain:
        run = (m.dataset, m.run)
        whole.setdefault(kinds[run], set()).update(m.by_metric)
        parts.setdefault(run, {}).update(dict.fromkeys(m.parts))
    due = {kind: [name for name in METRICS if name in names] for kind, names in whole.items()}
    for cell, dataset, name_of_run in groups:
        place = (dataset, name_of_run)
        yield from (SummaryKey(cell, *place, name) for name in due[kinds[place]])
        yield from (SummaryKey(cell, *place, name, phase, item) for phase, item, name in parts[place])


def _kind(run: tuple[str, str], specs: Mapping[tuple[str, str], RunSpec]) -> tuple[str, str | None] | None:
    spec = specs.get(run)
    if spec is None:
        return None
    return (spec.workload, view_of(spec.workload).alike(spec))


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
    """Where a visit was lived."""

    executor: str
    """who ran the visit: `local`, `qemu`, `slurm`; `imported` where others made it; empty before it"""
    kernel: str | None
    """release of the kernel that the visit ran under"""
    accelerator: str | None
    """`kvm` or `tcg` in a guest, else empty"""
    emulated: bool
    """true where the processors were emulated (QEMU's TCG): the speed is the emulator's. In every table that names a cell"""
    boot_id: str
    """which boot of the kernel; visits of one boot of a guest share it"""
    node: str | None = None
    """the node of a fleet that ran the visit; empty before it, and without a fleet"""


@dataclass(frozen=True)
class Measurement:
    """One run that was due, with what became of it; `figures` is None where there are none.

    `directory` holds its course and latencies.
    `by_metric` are the figures of the whole run by the name of the metric, `parts` those of its phases and
    items by (phase, item, metric), where it has several. `unreached`: its visit failed before the run
    began, so that the run did not fail and yet will not come. `where` is None before its visit.
    """

    cell: str
    """identity of the cell: a readable name and a hash of what was requested"""
    dataset: str
    """identity of what was loaded"""
    run: str
    """name of the run, e.g. `read-only`"""
    repetition: int
    """from 1; a canary's count is its own"""
    attempt: int | None
    """which attempt at the visit; empty where there was none"""
    order: int
    """place of the visit in the schedule, from 0"""
    canary: bool
    """true for the visits that come back to show drift"""
    outcome: Outcome
    """`completed`; `failed`, if it began and went wrong; `not_run`, if its visit failed before it or has not come yet"""
    validity: Validity
    """`valid`, `suspect` or `unknown`, with what became of its visit after the run"""
    reasons: tuple[Reason, ...]
    """why it failed, did not run, is suspect, or of unknown validity; the failure of its visit after it too; joined by `; `"""
    started_wall_s: float | None = None
    """start of the measured window (of the visit, where there is no window), seconds since 1970 UTC"""
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
            run.shown_class is None for run in self.cuts
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
