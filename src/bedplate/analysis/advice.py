"""What the comparisons leave standing, and what to choose and to measure next."""

from __future__ import annotations

import math
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import combinations, islice
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from bedplate.analysis.comparison import candidates_of, surroundings_between, surroundings_of
from bedplate.analysis.overview import Measurement, Overview, Trouble, default_metric
from bedplate.analysis.run_heads import cells_due, has_speed, is_meant
from bedplate.analysis.wording import (
    block_words,
    device_sectors,
    durability_class,
)
from bedplate.errors import PlanError
from bedplate.installation import COMMAND
from bedplate.model.device_cache import CACHE_WORDS, PROTECTED, sectors_told, volatile_cache_of
from bedplate.model.durability import (
    BOUNDED_LOSS,
    CLASSES,
    DURABLE,
)
from bedplate.model.figure import Better, Metric, Scale, Status
from bedplate.model.metrics import METRICS
from bedplate.model.reason import sentences
from bedplate.model.visit import Outcome
from bedplate.near_names import unknown_run
from bedplate.statistics.comparison import (
    MARGIN,
    Comparison,
    Confidence,
    Pairs,
    Verdict,
    all_pairs,
    compare,
    confidences,
    differences,
    judged_apart,
)
from bedplate.statistics.estimation import REPETITIONS_MIN
from bedplate.statistics.search import lead_by_repetitions
from bedplate.statistics.summary import TRUSTED, Observation, Summary, summarise
from bedplate.study.layout import StudyLayout
from bedplate.units import format_count, format_duration

if TYPE_CHECKING:
    from bedplate.model.plan import NotWorse
    from bedplate.statistics.estimation import BoolArray, FloatArray

Run = tuple[str, str]

# A volatile cache with the sectors that the study's device has.
VOLATILE = "volatile"

# What is recommended where a call names no class: nobody wants advice among cells that lose data.
RECOMMENDED = (DURABLE, BOUNDED_LOSS)

_SPACE = Metric(
    "space_mib",
    "MiB",
    Scale.RATIO,
    Better.LOWER,
    "database and WAL directory after the run, as the server counts",
)

_WRITTEN = ("device_written_kib_per_transaction", "device_written_mib")

# Less than this is no work of the run's own: of a read-only run the ratio of two such figures says nothing.
_WRITTEN_MIN = 1.0

# Of a pair that no factor explains.
ELSEWHERE = "measured in other surroundings"


@dataclass(frozen=True)
class Objective:
    """One figure of a run that has a better direction. `parts` are the stored metrics that add up to it."""

    metric: Metric
    head: str
    parts: tuple[str, ...]

    def observation(self, m: Measurement) -> Observation:
        """The figure as the statistics take it; absent where a part is."""
        if len(self.parts) == 1:
            return m.observation(self.parts[0])
        values = [m.value(name) for name in self.parts]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return Observation(None, Status.ABSENT, m.outcome, m.validity)
        return Observation(sum(known), Status.MEASURED, m.outcome, m.validity)


@dataclass(frozen=True)
class ComparisonEvidence:
    """A comparison that a sentence rests on, of two cells by id."""

    baseline: str
    contender: str
    comparison: Comparison


class Standing(StrEnum):
    """Where a cell is beside the others of its class, in the figure that the run is about."""

    # No other is shown better.
    LEADING = "leading"
    # Nor is any here, but whether it is worse than it may be in another figure is not known.
    OPEN = "open"
    # Another is shown better, or it is shown worse in another figure than it may be.
    RULED_OUT = "ruled out"


@dataclass(frozen=True)
class Limit:
    """A cell beside the plan's first one in a figure in which it may be worse by a share at most."""

    objective: Objective
    share: float
    evidence: ComparisonEvidence

    @property
    def holds(self) -> bool | None:
        """Whether it is within the share; None where the interval reaches across."""
        comparison = self.evidence.comparison
        low, high = comparison.low or 0.0, math.inf if comparison.high is None else comparison.high
        if self.objective.metric.better is Better.LOWER:
            low, high = 1 / high if high < math.inf else 0.0, 1 / low if low else math.inf
        least = 1 / (1 + self.share)
        return True if low >= least else False if high < least else None


@dataclass(frozen=True)
class Contest:
    """The cells of one class of durability in one run.

    `cells` take part, in the order of the schedule; of cells that are the same in force one does, `same_as` names
    the others. `left_out` says of a cell of the class why it takes no part. `better` and `same` are the
    verdicts by objective and pair of `cells`, the first shown better than the second, or both the same within the margin; `confidences` are those of the
    objectives. The first objective ranks; of `limits` are those that are set to the others, by cell, where they do not hold or are not known to. `judged` counts comparisons with an interval. `elsewhere` are pairs in surroundings that no factor
    explains, which are not compared. `stopped` are cells that are left out as runs were stopped at a limit: the others are
    the quick ones, and no mean of them stands for the cell.
    """

    run: Run
    durability: str
    objectives: tuple[Objective, ...]
    cells: tuple[str, ...]
    same_as: Mapping[str, tuple[str, ...]]
    left_out: Mapping[str, str]
    better: BoolArray
    same: BoolArray
    elsewhere: frozenset[frozenset[str]]
    stopped: frozenset[str] = frozenset()
    confidences: tuple[Confidence, ...] = ()
    judged: int = 0
    limits: Mapping[str, Limit] = field(default_factory=dict)

    @property
    def verdicts(self) -> int:
        """How many comparisons tell."""
        return int(self.better.sum()) + int(self.same.sum()) // 2

    @cached_property
    def ahead(self) -> tuple[tuple[int, ...], ...]:
        """Of each cell the numbers of those that are shown better and worse in nothing than they may be."""
        allowed = [cell not in self.limits or self.limits[cell].holds is None for cell in self.cells]
        return tuple(
            tuple(int(other) for other in np.flatnonzero(self.better[0, :, own]) if allowed[other])
            for own in range(len(self.cells))
        )

    @cached_property
    def standings(self) -> tuple[Standing, ...]:
        """Of each cell."""
        limits = (self.limits[cell].holds if cell in self.limits else True for cell in self.cells)
        return tuple(
            Standing.RULED_OUT
            if ahead or holds is False
            else Standing.OPEN
            if holds is None
            else Standing.LEADING
            for ahead, holds in zip(self.ahead, limits, strict=True)
        )

    @property
    def incomparable(self) -> int:
        """How many pairs are not compared."""
        return len(self.elsewhere)

    @property
    def can_judge(self) -> bool:
        """Whether there were two cells with enough repetitions."""
        return len(self.cells) > 1


@dataclass(frozen=True)
class Advised:
    """All contests of a study, judged together. `classes` are those of all cells with the `cache` that is meant.

    `sectors` says why it is this volatile one, where cells are in another class with other sectors; empty else.
    `without` are runs that have no figure of the whole run.
    """

    overview: Overview
    cache: str
    contests: tuple[Contest, ...]
    classes: Mapping[str, str]
    runs: tuple[Run, ...]
    without: tuple[Run, ...] = ()
    sectors: str = ""
    _summaries: dict[tuple[Run, str, str], Summary] = field(default_factory=dict, repr=False, compare=False)

    @property
    def judged(self) -> int:
        """How many comparisons have an interval."""
        return sum(contest.judged for contest in self.contests)

    @property
    def verdicts(self) -> int:
        """How many of them tell."""
        return sum(contest.verdicts for contest in self.contests)

    @property
    def cache_words(self) -> str:
        """The cache as sentences name it."""
        return _cache_words(self.overview, self.cache)

    def comparison(self, contest: Contest, objective: Objective, baseline: str, contender: str) -> Comparison:
        """Two cells in one objective, with the confidence of this objective; without an interval where they may not be compared."""
        sides = [_observations(self.overview, cell, contest.run, objective) for cell in (baseline, contender)]
        own = contest.confidences[contest.objectives.index(objective)]
        found = compare(sides[0], sides[1], objective.metric)
        judged = judged_apart(found, difference=own.difference, sameness=own.sameness)
        if frozenset((baseline, contender)) not in contest.elsewhere:
            return judged
        return replace(
            judged, low=None, high=None, basis=None, verdict=Verdict.CANNOT_TELL, reasons=(ELSEWHERE,)
        )

    def summary(self, contest: Contest, objective: Objective, cell: str) -> Summary:
        """The repetitions of one cell in one objective, each cell by itself."""
        return self.summary_of(contest.run, objective, cell)

    def summary_of(self, run: Run, objective: Objective, cell: str) -> Summary:
        """The same of any cell, whatever its class."""
        # Sentences ask for the same cells many times, and a study has hundreds.
        key = (run, objective.metric.name, cell)
        if key not in self._summaries:
            found = _observations(self.overview, cell, run, objective)
            self._summaries[key] = summarise(found.values(), objective.metric.scale)
        return self._summaries[key]


def advised(
    found: Overview,
    *,
    workloads: Sequence[str] = (),
    durability: str | None = None,
    cache: str = VOLATILE,
    not_worse: Sequence[NotWorse] = (),
) -> Advised:
    """Compare all cells within their class of durability. PlanError for a run, a class or a figure that there is not.

    `workloads` are names or types of runs, none for all. Without `durability` the classes that keep a database whole
    take part. The first figure of a run ranks its cells; `not_worse` are figures in which one may be worse than the plan's first cell by a
    share at most, as a search has them.
    """
    if durability is not None and durability not in CLASSES:
        raise PlanError(f"durability {durability!r} is no class; there are {', '.join(CLASSES)}")
    asked, cache = cache, volatile_cache_of(device_sectors(found)) if cache == VOLATILE else cache
    classes = {cell: durability_class(facts.durability, cache) for cell, facts in found.cells.items()}
    if durability is not None and durability not in classes.values():
        there = [name for name in CLASSES if name in classes.values()]
        raise PlanError(
            f"no cell is {durability} with a {_cache_words(found, cache)}; there are {', '.join(there) or 'no cells'}"
        )
    named = RECOMMENDED if durability is None else (durability,)
    runs = _runs(found, workloads)
    drafted = [
        _drafted(found, run, name, objectives, cells)
        for run in runs
        if (objectives := objectives_of(found, run))
        for name in CLASSES
        if name in named
        and (cells := [cell.id for cell in cells_due(found, [run]) if classes[cell.id] == name])
    ]
    judged = iter(confidences([pairs for draft in drafted for pairs in draft.pairs]))
    advice = Advised(
        overview=found,
        cache=cache,
        contests=tuple(draft.judged(tuple(islice(judged, len(draft.pairs)))) for draft in drafted),
        classes=classes,
        runs=runs,
        without=tuple(run for run in runs if not objectives_of(found, run) and has_speed(found, run)),
        sectors=_sectors_told(found) if asked == VOLATILE else "",
    )
    return _limited(advice, not_worse) if not_worse else advice


def _limited(advice: Advised, not_worse: Sequence[NotWorse]) -> Advised:
    """With what the cells may not be worse in; PlanError for a figure that no run compares beside the one that ranks."""
    compared = {each.metric.name: each for contest in advice.contests for each in contest.objectives[1:]}
    problems = [
        f"--not-worse {asked.metric}: no run ranks its cells by another figure and has this one beside it; there are "
        f"{', '.join(compared) or 'none'}"
        for asked in not_worse
        if asked.metric not in compared
    ]
    problems += [
        f"--not-worse {asked.metric}: expected a share between 0 and 100 %, found {asked.share:.4g}"
        for asked in not_worse
        if not 0 < asked.share < 1
    ]
    if problems:
        raise PlanError(*problems)
    baseline = next(iter(advice.overview.study.schedule.cells))
    contests = []
    for contest in advice.contests:
        limits = [
            (cell, Limit(objective, asked.share, ComparisonEvidence(baseline, cell, comparison)))
            for asked in not_worse
            for objective in contest.objectives[1:]
            if objective.metric.name == asked.metric and contest.can_judge
            for cell in contest.cells
            if cell != baseline
            for comparison in [advice.comparison(contest, objective, baseline, cell)]
        ]
        # What is shown worse comes before what is not known.
        limits.sort(key=lambda pair: pair[1].holds is False)
        left = {cell: limit for cell, limit in limits if limit.holds is not True}
        contests.append(replace(contest, limits=left))
    return replace(advice, contests=tuple(contests))


def _tells_sectors(found: Overview) -> bool:
    return any(facts.durability.tells_sectors for facts in found.cells.values() if facts.durability)


def _cache_words(found: Overview, cache: str) -> str:
    """With its sectors only where some cell is told apart by them."""
    return CACHE_WORDS[cache] if cache == PROTECTED or _tells_sectors(found) else "volatile cache"


def _sectors_told(found: Overview) -> str:
    """Why it is the class with these sectors; nothing where no cell is told apart by them."""
    return f"{sectors_told(device_sectors(found))}; --cache names another" if _tells_sectors(found) else ""


# What sentences and heads of columns call a figure.
_HEADS = {
    "latency_ms_p99": "p99",
    "tps_cv": "cv of tps",
    "queries_total_s": "total time of queries",
    "tests_s": "total time of tests",
    "stages_total_s": "total time of stages",
    "load_total_s": "time to load",
    "streams_s": "time of streams",
    "throughput_mib_per_s": "throughput",
    "operations_per_s": "operations per second",
}


def objectives_of(found: Overview, run: Run) -> tuple[Objective, ...]:
    """What the run is about first, then whatever it has of p99, steadiness, space and writing; none without the first."""
    having = {
        name
        for cell in found.cells
        for m in found.of(cell, run)
        for name in m.by_metric
        if m.value(name) is not None
    }
    first = default_metric(found, run, having)
    # Power cuts are what cells are told apart by before any is advised, and no objective of their own.
    if first is None or not has_speed(found, run):
        return ()
    names = [first, *(name for name in ("latency_ms_p99", "tps_cv") if name in having and name != first)]
    objectives = [
        Objective(METRICS[name], _HEADS.get(name, name.replace("_", " ")), (name,)) for name in names
    ]
    space = tuple(name for name in ("database_mib", "wal_mib") if name in having)
    if "database_mib" in space:
        objectives.append(Objective(_SPACE, "space", space))
    written = next((name for name in _WRITTEN if name in having), None)
    if written and _largest_figure(found, run, written) >= _WRITTEN_MIN:
        objectives.append(Objective(METRICS[written], "written", (written,)))
    return tuple(objectives)


@dataclass(frozen=True)
class _Draft:
    """A contest before the confidence of its verdicts is known."""

    contest: Contest
    pairs: tuple[Pairs, ...]

    def judged(self, confidences: tuple[Confidence, ...]) -> Contest:
        better, same = [], []
        for objective, pairs, confidence in zip(
            self.contest.objectives, self.pairs, confidences, strict=True
        ):
            larger, alike = pairs.verdicts(confidence)
            better.append(larger if objective.metric.better is Better.HIGHER else larger.T)
            same.append(alike)
        return replace(
            self.contest,
            better=np.array(better),
            same=np.array(same),
            confidences=confidences,
            judged=sum(int(pairs.judged.sum()) for pairs in self.pairs),
        )


def _drafted(
    found: Overview, run: Run, durability: str, objectives: tuple[Objective, ...], cells: Sequence[str]
) -> _Draft:
    taking, same_as, left_out = _taking_part(found, run, objectives[0], cells)
    may_be_judged = comparable(found, taking, run)
    nothing = np.zeros((len(objectives), len(taking), len(taking)), dtype=np.bool_)
    contest = Contest(
        run=run,
        durability=durability,
        objectives=objectives,
        cells=tuple(taking),
        same_as=same_as,
        left_out=left_out,
        better=nothing,
        same=nothing,
        stopped=frozenset(cell for cell in left_out if _stopped(found, cell, run, objectives[0])),
        elsewhere=frozenset(
            frozenset(pair)
            for pair, may_be in zip(combinations(taking, 2), may_be_judged, strict=True)
            if not may_be
        ),
    )
    pairs = tuple(
        all_pairs(_values(found, taking, run, objective), objective.metric, comparable=may_be_judged)
        for objective in objectives
    )
    return _Draft(contest, pairs)


def _taking_part(
    found: Overview, run: Run, first: Objective, cells: Sequence[str]
) -> tuple[list[str], dict[str, tuple[str, ...]], dict[str, str]]:
    """Of each group of cells that are the same in force the one with most values, if it has enough of them, and each a logarithm where ratios are made."""
    values = {cell: [*_usable(_observations(found, cell, run, first)).values()] for cell in cells}
    counts = {cell: len(own) for cell, own in values.items()}
    is_ratio = first.metric.scale is Scale.RATIO
    zeros = {cell: sum(value <= 0 for value in own) if is_ratio else 0 for cell, own in values.items()}
    taking: list[str] = []
    same_as: dict[str, tuple[str, ...]] = {}
    left_out: dict[str, str] = {}
    seen: set[str] = set()
    for cell in cells:
        if cell in seen:
            continue
        group = [cell, *(other for other in found.cells[cell].identical_to if other in counts)]
        seen.update(group)
        best = max(
            group, key=lambda each: (not _stopped(found, each, run, first), not zeros[each], counts[each])
        )
        stopped = _stopped(found, best, run, first)
        if counts[best] >= REPETITIONS_MIN and not stopped and not zeros[best]:
            taking.append(best)
            same_as[best] = tuple(other for other in group if other != best)
        else:
            runs = format_count(counts[best], "trusted run")
            needs = f", a verdict needs {REPETITIONS_MIN}" if counts[best] < REPETITIONS_MIN else ""
            limits = f"; {stopped} stopped at a limit, which `bedplate compare` judges" if stopped else ""
            none = f"; {zeros[best]} with a figure of 0, which no ratio is made of" if zeros[best] else ""
            left_out |= dict.fromkeys(group, f"{runs}{needs}{limits}{none}")
    return taking, same_as, left_out


def _stopped(found: Overview, cell: str, run: Run, first: Objective) -> int:
    """How many trusted runs of a cell only know a limit that they were stopped at."""
    return sum(
        each.status is Status.CENSORED and each.outcome is Outcome.COMPLETED and each.validity.is_trusted
        for each in _observations(found, cell, run, first).values()
    )


def comparable(found: Overview, cells: Sequence[str], run: Run) -> BoolArray:
    """Of each pair, in the order of `numpy.triu_indices`, whether it may be judged."""
    first, second = np.triu_indices(len(cells), 1)
    plain = [
        visit.record
        for visit in found.study.visits
        if visit.record.key.cell in cells and visit.record.key.dataset == run[0]
    ]
    troubled = any(found.cells[cell].incomparable for cell in cells)
    if not troubled and not differences(surroundings_of(record) for record in plain):
        return np.ones(len(first), dtype=np.bool_)
    surroundings = surroundings_between([found])
    by_cell = {candidate.cell: candidate for candidate in candidates_of([found])}
    own = [by_cell[cell] for cell in cells]
    return np.array(
        [not surroundings.of_cells((own[i], own[j]), run) for i, j in zip(first, second, strict=True)],
        dtype=np.bool_,
    )


def _values(found: Overview, cells: Sequence[str], run: Run, objective: Objective) -> FloatArray:
    columns = {number: place for place, number in enumerate(_repetitions(found, cells, run))}
    values = np.full((len(cells), len(columns)), np.nan)
    for row, cell in enumerate(cells):
        for repetition, value in _usable(_observations(found, cell, run, objective)).items():
            values[row, columns[repetition]] = value
    return values


def _repetitions(found: Overview, cells: Iterable[str], run: Run) -> list[int]:
    return sorted({m.repetition for cell in cells for m in found.of(cell, run)})


def _observations(found: Overview, cell: str, run: Run, objective: Objective) -> dict[int, Observation]:
    return {m.repetition: objective.observation(m) for m in found.of(cell, run)}


def _usable(observations: Mapping[int, Observation]) -> dict[int, float]:
    """What takes part in a verdict: the measured values of trusted, completed runs."""
    alone = {repetition: summarise([observed], Scale.SHARE) for repetition, observed in observations.items()}
    return {
        repetition: summary.centre
        for repetition, summary in alone.items()
        if summary.centre is not None and summary.basis == TRUSTED
    }


def _largest_figure(found: Overview, run: Run, metric: str) -> float:
    """The largest figure of any cell."""
    figures = [found.summary(cell, run, metric).centre for cell in found.cells]
    return max((value for value in figures if value is not None), default=0.0)


def _runs(found: Overview, workloads: Sequence[str]) -> tuple[Run, ...]:
    unknown = [name for name in workloads if not any(is_meant(found, run, name) for run in found.runs)]
    if unknown:
        raise PlanError(*(unknown_run(name, (run[1] for run in found.runs)) for name in unknown))
    if not workloads:
        return found.runs
    return tuple(run for run in found.runs if any(is_meant(found, run, name) for name in workloads))


# Five find most differences above 10 % (docs/METHOD.md).
REPETITIONS_FOR_VERDICTS = 5

# A cell, a dataset, and whether it is a canary.
Visited = tuple[str, str, bool]

_ANY: Visited = ("", "", False)


def extend_command(found: Overview, repetitions: int) -> str:
    """Only the local executor needs root here. A device that is erased is named once more, as the command asks for it."""
    sudo = "sudo " if found.study.facts.executor == "local" else ""
    erase = "".join(f" --erase {shlex.quote(device)}" for device in _devices_erased(found))
    return f"{sudo}{COMMAND} run {study_directory(found)} --repetitions {repetitions}{erase}"


def more_for_verdicts(found: Overview, cells: Iterable[str], run: tuple[str, str]) -> int:
    """How many more repetitions bring two of these cells to five that nothing speaks against; 0 where they have them.

    Runs that failed or are due count, as other steps make them. In a fleet each node runs as many, where it does so far.
    """
    good = sorted(
        (
            sum(m.trouble not in (Trouble.SUSPECT, Trouble.UNKNOWN) for m in found.of(cell, run))
            for cell in cells
        ),
        reverse=True,
    )
    more = max(REPETITIONS_FOR_VERDICTS - min(good[:2], default=0), 0)
    nodes = max(len(found.study.nodes), 1)
    is_even = found.study.schedule.repetitions % nodes == 0
    return math.ceil(more / nodes) * nodes if is_even else more


def study_directory(found: Overview) -> str:
    """As a shell takes it."""
    return shlex.quote(str(found.study.directory))


def seconds_of_a_repetition(found: Overview) -> float | None:
    """The mean time of each visit that a repetition has, with its share of canaries; None where no visit has a time."""
    schedule = found.study.schedule
    due = {(visit.cell_id, visit.dataset_id, visit.canary) for visit in schedule.visits if not visit.canary}
    canaries = [(visit.cell_id, visit.dataset_id, True) for visit in schedule.visits if visit.canary]
    plain, beside = (seconds_of_visits(found, each) for each in (due, canaries))
    return None if plain is None or beside is None else plain + beside / schedule.repetitions


def seconds_of_visits(found: Overview, visits: Iterable[Visited]) -> float | None:
    """What such visits took with all that belongs to them; the mean of all that completed where none of them did.

    A fleet's nodes work at once. None where no visit has a time.
    """
    means = found.once(_mean_seconds)
    if not means:
        return None
    usual = means[_ANY]
    return sum(means.get(each, usual) for each in visits) / max(len(found.study.nodes), 1)


def about_words(seconds: float) -> str:
    """`45 s`, `12 min`, `2 h 10 min`: no more precise than such an estimate is."""
    if seconds < 90:
        return format_duration(seconds)
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else format_duration(60 * minutes)


def _mean_seconds(found: Overview) -> Mapping[Visited, float]:
    """By what was visited, and of all visits together; empty where none has a time."""
    times: defaultdict[Visited, list[float]] = defaultdict(list)
    for record in (visit.record for visit in found.study.visits):
        seconds = record.whole_seconds or record.seconds
        if record.outcome is Outcome.COMPLETED and seconds > 0:
            key = record.key
            times[key.cell, key.dataset, key.canary].append(seconds)
            times[_ANY].append(seconds)
    return {each: fmean(own) for each, own in times.items()}


def _devices_erased(found: Overview) -> tuple[str, ...]:
    """Those of the plan; none of one that only another version can read, which says so itself when it is extended."""
    from bedplate.plan.load import load_plan  # noqa: PLC0415 -- pydantic

    study = found.study
    with suppress(PlanError):
        files = StudyLayout(study.directory).plan_files
        return load_plan(study.plan_text, source="plan.toml", directory=files).devices_erased
    return ()


@dataclass(frozen=True)
class NextVisits:
    """The cell that is most likely within the margin of the best of `among` cells, and that chance.

    `rivals` have the chance to be better by more than the margin and the mean seconds of a visit, what tells most per second
    first. `seconds` is one visit of the leader and of each rival.
    """

    leader: str
    chance: float
    rivals: tuple[tuple[str, float, float], ...]
    seconds: float
    among: int

    @property
    def cells(self) -> tuple[str, ...]:
        """Those to visit, the leader first."""
        return (self.leader, *(cell for cell, _, _ in self.rivals))


def open_cells(found: Overview, contest: Contest) -> tuple[str, ...]:
    """The cells that may still be the best, in the order of the schedule; of cells that are effectively identical the first.

    Not those of which runs were stopped at a limit: a chance would take them for as fast as their quick runs.
    """
    ruled_out = {
        cell
        for cell, standing in zip(contest.cells, contest.standings, strict=True)
        if contest.can_judge and standing is Standing.RULED_OUT
    }
    kept: list[str] = []
    for cell in (*contest.cells, *contest.left_out):
        if cell not in (ruled_out | contest.stopped) and not set(found.cells[cell].identical_to) & set(kept):
            kept.append(cell)
    return tuple(kept)


def next_visits(found: Advised, contest: Contest) -> NextVisits | str:
    """The chances of the open cells that have enough repetitions; else why nothing is known, as the end of a sentence.

    From one repetition nobody knows how far runs scatter, and a chance from two is wrong too often (docs/METHOD.md).
    """
    overview, objective = found.overview, contest.objectives[0]
    metric = objective.metric
    cells = tuple(cell for cell in open_cells(overview, contest) if cell in contest.cells)
    if metric.scale is not Scale.RATIO or metric.better is Better.NEITHER:
        return f"chances are of ratios, and {metric.name} is compared otherwise"
    if len(cells) < 2:
        return f"a chance needs {REPETITIONS_MIN} trusted repetitions of two cells at least"
    if not comparable(overview, cells, contest.run).all():
        return "cells were measured in other surroundings, which may be why they differ"
    seconds = [seconds_of_visits(overview, [(cell, contest.run[0], False)]) for cell in cells]
    known = [each for each in seconds if each is not None]
    if len(known) < len(cells):
        return "no visit has a time"
    sign = 1 if metric.better is Better.HIGHER else -1
    logs = [
        sign * np.log([*_usable(_observations(overview, cell, contest.run, objective)).values()])
        for cell in cells
    ]
    best = lead_by_repetitions(logs, MARGIN)
    rivals = sorted(best.rivals, key=lambda cell: -best.ahead[cell] / known[cell])
    return NextVisits(
        leader=cells[best.leader],
        chance=best.chance,
        rivals=tuple((cells[each], float(best.ahead[each]), known[each]) for each in rivals),
        seconds=sum(known[each] for each in (best.leader, *rivals)),
        among=len(cells),
    )


# A chance below is not told: where runs scatter far, the cell that looks best is so by luck too often.
SURE = 0.95


def cell_words(found: Overview, cell: str) -> str:
    """A cell in a sentence: `ext4 barrier fs 4k db 8k`."""
    facts = found.cells[cell]
    return f"{facts.label.panel} {block_words(facts.label).replace(' · ', ' ')}"


def standing_cells(contest: Contest, standing: Standing) -> tuple[str, ...]:
    """The cells of one standing, in the order of the schedule."""
    return tuple(cell for cell, own in zip(contest.cells, contest.standings, strict=True) if own is standing)


def ranked_cells(found: Advised, contest: Contest, objective: Objective) -> list[str]:
    """Cells by their geometric mean or mean, the best first; those without a trusted value are left out."""
    sign = -1 if objective.metric.better is Better.HIGHER else 1
    centres = {cell: found.summary(contest, objective, cell).centre for cell in contest.cells}
    known = {cell: centre for cell, centre in centres.items() if centre is not None}
    return sorted(known, key=lambda cell: sign * known[cell])


@dataclass(frozen=True)
class RankedCell:
    """A cell of a class in one run, as every table of the class has it.

    `standing` is None of a cell that is not judged, and `why_not` says why. `evidence` has it relative to the cell that all rows are relative
    to, and is None of that one; `worse_than` is the cell that rules it out where that one does not. Of one that a `limit` is set to, and is
    not known to hold, it is of the figure of the limit.
    """

    cell: str
    standing: Standing | None
    why_not: str = ""
    evidence: ComparisonEvidence | None = None
    limit: Limit | None = None
    worse_than: str = ""


_STANDINGS = (Standing.LEADING, Standing.OPEN, Standing.RULED_OUT)


def ranking(found: Advised, contest: Contest, base: str | None = None) -> tuple[RankedCell, ...]:
    """Every cell of the class: by its standing and then the best first, behind them what is not judged, the best first too.

    All are relative to the `base`, which is the cell that an answer takes; without one to the first row.
    """
    rows: list[RankedCell] = []
    if contest.can_judge:
        ranked = ranked_cells(found, contest, contest.objectives[0])
        places = {
            cell: _STANDINGS.index(own) for cell, own in zip(contest.cells, contest.standings, strict=True)
        }
        order = sorted(ranked, key=places.__getitem__)
        rows = [_row(found, contest, cell, base or order[0]) for cell in order]
    judged = {row.cell for row in rows}
    rest = [cell for cell in (*contest.cells, *contest.left_out) if cell not in judged]
    sign = -1 if contest.objectives[0].metric.better is Better.HIGHER else 1
    centres = {cell: found.summary(contest, contest.objectives[0], cell).centre for cell in rest}
    rest.sort(key=lambda cell: math.inf if (centre := centres[cell]) is None else sign * centre)
    return (*rows, *(RankedCell(cell, None, contest.left_out.get(cell, "")) for cell in rest))


def _row(found: Advised, contest: Contest, cell: str, base: str) -> RankedCell:
    place = contest.cells.index(cell)
    standing, limit = contest.standings[place], contest.limits.get(cell)
    ahead = [contest.cells[number] for number in contest.ahead[place]]
    if limit is not None and not ahead:
        return RankedCell(cell, standing, evidence=limit.evidence, limit=limit)
    if cell == base:
        return RankedCell(cell, standing)
    comparison = found.comparison(contest, contest.objectives[0], base, cell)
    others = (
        []
        if base in ahead
        else [each for each in ranked_cells(found, contest, contest.objectives[0]) if each in ahead]
    )
    return RankedCell(
        cell,
        standing,
        evidence=ComparisonEvidence(base, cell, comparison),
        worse_than=next(iter(others), ""),
    )


_FIGURES = re.compile(r"\d[\d.,]*")


def without_figures(words: str) -> str:
    """A sentence so that those that differ in their figures alone are equal."""
    return _FIGURES.sub("0", words)


def failed_alike(runs: Sequence[Measurement]) -> str:
    """The sentence that every one of two or more runs failed with, figures apart; empty where one did not fail, or otherwise.

    Those that were not run say nothing: a start ends where its first visits fail alike.
    """
    made = [m for m in runs if m.trouble is not Trouble.NOT_RUN]
    if len(made) < 2 or any(m.trouble is not Trouble.FAILED for m in made):
        return ""
    sentences_of = [sentences(m.reasons) for m in made]
    shared = set.intersection(*({without_figures(words) for words in each} for each in sentences_of))
    return next((words for words in sentences_of[0] if without_figures(words) in shared), "")
