"""What a study's comparisons leave standing: for each run, within each class of durability, on several figures.

Each figure of each contest is a family of verdicts, and all hold together (`statistics/objectives.py`). Only figures of
whole runs take part.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, islice
from typing import TYPE_CHECKING

import numpy as np

from bedplate.analysis.comparison.compared import candidates_of
from bedplate.analysis.comparison.surroundings import surroundings_between, surroundings_of
from bedplate.analysis.default_metric import default_metric
from bedplate.analysis.run_heads import cells_due, has_speed, is_meant
from bedplate.analysis.wording import device_sectors, durability_class
from bedplate.errors import PlanError
from bedplate.model.device_cache import CACHE_WORDS, PROTECTED, sectors_told, volatile_cache_of
from bedplate.model.durability import BOUNDED_LOSS, CLASSES, DURABLE
from bedplate.model.figure import Better, Metric, Scale, Status
from bedplate.model.metrics import METRICS
from bedplate.model.visit import Outcome
from bedplate.near_names import unknown_run
from bedplate.statistics.all_pairs import all_pairs
from bedplate.statistics.comparable import differences
from bedplate.statistics.comparison import Verdict, compare, judged_apart
from bedplate.statistics.estimation import REPETITIONS_MIN
from bedplate.statistics.objectives import Confidence, confidences
from bedplate.statistics.pareto import front
from bedplate.statistics.summary import TRUSTED, Observation, summarise
from bedplate.units import format_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bedplate.analysis.overview import Measurement, Overview
    from bedplate.statistics.all_pairs import Pairs
    from bedplate.statistics.comparison import Comparison
    from bedplate.statistics.estimation import BoolArray, FloatArray
    from bedplate.statistics.pareto import Front
    from bedplate.statistics.summary import Summary

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
class Contest:
    """The cells of one class of durability in one run.

    `cells` take part, in the order of the schedule; of cells that are the same in force one does, `same_as` names
    the others. `left_out` says of a cell of the class why it takes no part. `better` and `same` are the
    verdicts as `statistics.pareto.front` takes them, by objective and pair of `cells`; `confidences` are those of the
    objectives. `judged` counts comparisons with an interval. `elsewhere` are pairs in surroundings that no factor
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

    @property
    def verdicts(self) -> int:
        """How many comparisons tell."""
        return int(self.better.sum()) + int(self.same.sum()) // 2

    @cached_property
    def front(self) -> Front:
        """Who leads, and who stands behind whom."""
        return front(self.better, self.same)

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
) -> Advised:
    """Compare all cells within their class of durability. PlanError for a run or a class that there is not.

    `workloads` are names or types of runs, none for all. Without `durability` the classes that keep a database whole
    take part.
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
    return Advised(
        overview=found,
        cache=cache,
        contests=tuple(draft.judged(tuple(islice(judged, len(draft.pairs)))) for draft in drafted),
        classes=classes,
        without=tuple(run for run in runs if not objectives_of(found, run) and has_speed(found, run)),
        sectors=_sectors_told(found) if asked == VOLATILE else "",
    )


def _tells_sectors(found: Overview) -> bool:
    return any(facts.durability.tells_sectors for facts in found.cells.values() if facts.durability)


def _cache_words(found: Overview, cache: str) -> str:
    """With its sectors only where some cell is told apart by them."""
    return CACHE_WORDS[cache] if cache == PROTECTED or _tells_sectors(found) else "volatile cache"


def _sectors_told(found: Overview) -> str:
    """Why it is the class with these sectors; nothing where no cell is told apart by them."""
    return f"{sectors_told(device_sectors(found))}; --cache names another" if _tells_sectors(found) else ""


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
    heads = {"tps": "tps", "latency_ms_p99": "p99", "tps_cv": "cv of tps"}
    names = [first, *(name for name in ("latency_ms_p99", "tps_cv") if name in having and name != first)]
    objectives = [Objective(METRICS[name], heads.get(name, name), (name,)) for name in names]
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
    """Of each group of cells that are the same in force the one with most values, if it has enough of them."""
    counts = {cell: len(_usable(_observations(found, cell, run, first))) for cell in cells}
    taking: list[str] = []
    same_as: dict[str, tuple[str, ...]] = {}
    left_out: dict[str, str] = {}
    seen: set[str] = set()
    for cell in cells:
        if cell in seen:
            continue
        group = [cell, *(other for other in found.cells[cell].identical_to if other in counts)]
        seen.update(group)
        best = max(group, key=lambda each: (not _stopped(found, each, run, first), counts[each]))
        stopped = _stopped(found, best, run, first)
        if counts[best] >= REPETITIONS_MIN and not stopped:
            taking.append(best)
            same_as[best] = tuple(other for other in group if other != best)
        else:
            runs = f"{format_count(counts[best], 'trusted run')} with {first.metric.name}"
            needs = f", a verdict needs {REPETITIONS_MIN}" if counts[best] < REPETITIONS_MIN else ""
            limits = f"; {stopped} stopped at a limit, which `bedplate compare` judges" if stopped else ""
            left_out |= dict.fromkeys(group, f"{runs}{needs}{limits}")
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
