"""Scores over a selection of cells, from the times of TPC-H's queries in one pass.

A query's time in a cell is the median of its repetitions there. `time` is the sum over the queries,
`score` the sum of best time / time, the best taken across the selected cells: so a slow query weighs no
more than a quick one. `m_time` and `m_score` are the same over only those queries that finished in every
selected cell with one and the same plan: there the storage is compared and not the planner's choice.

A timeout knows only its limit: it counts as the limit in a time and as 0 in a score. A median is a timeout
where it hangs on one. A time that is missing is not zero: the cell that lacks it has no `time` and no
`score`, and the query is no part of the m-figures.

A cell that has no trusted run (suspect ones, or of unknown validity) is scored beside the others and decides nothing for them: as long as there are
trusted cells, the best times are theirs, and so is the choice of the queries that are kept. Its own score may so
pass the number of queries. It has m-figures where its kept queries finished with the plan of the trusted cells.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median, stdev

from scipy.special import stdtrit

from bedplate.model.course import filled
from bedplate.model.visit import Validity
from bedplate.statistics.summary import CONFIDENCE, REPETITIONS_FOR_INTERVAL, TRUSTED, basis_of

# Causes of a query's being no part of the m-figures, in the order in which they are told.
NO_TIME = "no time"

OVER_LIMIT = "over its limit"

PLAN_UNKNOWN = "plan not known"

PLANS_IN_A_CELL = "plans differ within a cell"

PLANS_ACROSS_CELLS = "plans differ between cells"

# What the page's script says too; the cells stand last, as it names few of them.
NO_TIME_IN = "no time in {cells}"

OVER_LIMIT_IN = "over its limit in {timeouts} of {n} runs in {cells}"

PLAN_UNKNOWN_IN = "its plan is not known in {cells}"

PLANS_IN = "{n} plans in {cells}"

PLANS_ACROSS = "{n} plans across the cells: {cells}"

NONE_KEPT = "no query finished in every cell with one and the same plan"

WITHOUT_TIME = "query {query} has no time"

NO_TIME_HERE = "no query has a time here"

UNTRUSTED = "the cell has no trusted run, unlike the others"

UNLIKE = "query {query}: {causes}"

# The median of normal values scatters by at most this much more than their mean (its limit for many values).
_MEDIAN_SCATTER = math.sqrt(math.pi / 2)


@dataclass(frozen=True)
class QueryRun:
    """One query in one repetition of one cell.

    `time_s` is None where it was not measured; `limit_s` is set where the query was stopped at its limit,
    and `time_s` is None then. `plan` is the hash of its plan, None where that is not known.
    """

    cell: str
    repetition: int
    query: str
    time_s: float | None
    limit_s: float | None = None
    plan: str | None = None
    validity: Validity = Validity.VALID

    def __post_init__(self) -> None:
        for name, value in (("time_s", self.time_s), ("limit_s", self.limit_s)):
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(
                    f"{name} of query {self.query} in {self.cell} is {value}; it must be positive"
                )
        if self.time_s is not None and self.limit_s is not None:
            raise ValueError(
                f"query {self.query} in {self.cell} has both a time and a limit; a timeout has no time"
            )


@dataclass(frozen=True)
class Score:
    """One figure of one cell. A `value` of None has `reasons`."""

    value: float | None
    """the score; empty where a query has no time"""
    ideal_share: float | None = None
    """how near it comes to a cell that is best in every query: ideal time / time, or score / number of queries; 1 is the ideal"""
    low: float | None = None
    """lower bound of the 95 % interval; empty below three complete repetitions"""
    high: float | None = None
    """its upper bound"""
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class CellScores:
    """The four figures of one cell; `timeouts` names the queries whose median is one.

    `times_s` are the medians that the figures are made of, in seconds; that of a timeout is its limit.
    """

    cell: str
    basis: str
    """`trusted`; `suspect` or `unknown` where the cell has no trusted run"""
    time: Score
    score: Score
    m_time: Score
    m_score: Score
    timeouts: tuple[str, ...] = ()
    times_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Scores:
    """The figures of a selection, each cell in the order in which it was selected.

    `queries` are those that any selected cell ran, `kept` those that the m-figures are made of, `dropped`
    the others, each with every reason, and `causes` the same without the names of cells. `left_out` are
    selected cells without a single time, with the reason. `only_suspect` are those that have no trusted run.
    """

    cells: tuple[CellScores, ...]
    queries: tuple[str, ...]
    kept: tuple[str, ...]
    dropped: Mapping[str, tuple[str, ...]]
    left_out: Mapping[str, str]
    causes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    only_suspect: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Cell:
    """The runs of a cell that count, by query and repetition."""

    name: str
    basis: str
    runs: Mapping[str, Mapping[int, QueryRun]]

    def times(self) -> dict[str, _Time]:
        """The median of every query that has one."""
        found = ((query, _median(list(runs.values()))) for query, runs in self.runs.items())
        return {query: time for query, time in found if time is not None}

    def repetitions(self, queries: Sequence[str]) -> list[dict[str, _Time]]:
        """The times of every repetition that has all the queries, in order."""
        numbers = sorted({number for runs in self.runs.values() for number in runs})
        complete = []
        for number in numbers:
            runs = {query: self.runs[query].get(number) for query in queries if query in self.runs}
            times = {query: time for query, run in runs.items() if run and (time := _median([run]))}
            if len(times) == len(queries):
                complete.append(times)
        return complete


@dataclass(frozen=True)
class _Time:
    seconds: float
    timeout: bool


def scores(runs: Iterable[QueryRun], selected: Sequence[str]) -> Scores:
    """All figures over the selected cells, from runs of one pass and one scale factor.

    Suspect runs count only in a cell that has no others (`basis`). ValueError where a query comes twice in
    a repetition of a cell: a figure of two passes mixed together would be neither's.
    """
    names = tuple(dict.fromkeys(selected))
    by_cell = _by_cell(runs, names)
    cells = [cell for name in names if (cell := by_cell.get(name)) is not None and cell.times()]
    present = {cell.name for cell in cells}
    queries = tuple(sorted({query for cell in cells for query in cell.runs}, key=_query_order))
    trusted = [cell for cell in cells if cell.basis == TRUSTED]
    deciding = trusted or cells
    # A query that no trusted cell has a time of is best where a suspect one has; it is dropped all the same.
    best = _best_times(cell.times() for cell in cells) | _best_times(cell.times() for cell in deciding)
    found = {query: reasons for query in queries if (reasons := _drop_reasons(query, deciding))}
    dropped = {query: tuple(text for _, text in reasons) for query, reasons in found.items()}
    kept = tuple(query for query in queries if query not in dropped)
    return Scores(
        cells=tuple(_cell_scores(cell, queries, kept, best, _unlike(cell, kept, trusted)) for cell in cells),
        queries=queries,
        kept=kept,
        dropped=dropped,
        left_out={name: NO_TIME_HERE for name in names if name not in present},
        causes={query: tuple(dict(reasons)) for query, reasons in found.items()},
        only_suspect=tuple(cell.name for cell in cells if cell.basis != TRUSTED),
    )


def interval_factor(repetitions: int) -> float | None:
    """What the scatter of logarithms is multiplied with for half an interval; None where there is none."""
    if repetitions < REPETITIONS_FOR_INTERVAL:
        return None
    quantile = float(stdtrit(repetitions - 1, 0.5 + CONFIDENCE / 2))
    return quantile * _MEDIAN_SCATTER / math.sqrt(repetitions)


def _by_cell(runs: Iterable[QueryRun], selected: Sequence[str]) -> dict[str, _Cell]:
    grouped: defaultdict[str, list[QueryRun]] = defaultdict(list)
    for run in runs:
        if run.cell in selected:
            grouped[run.cell].append(run)
    cells = {}
    for name, found in grouped.items():
        trusted = [run for run in found if run.validity.is_trusted]
        table: defaultdict[str, dict[int, QueryRun]] = defaultdict(dict)
        for run in trusted or found:
            if run.repetition in table[run.query]:
                raise ValueError(
                    f"query {run.query} comes twice in repetition {run.repetition} of {name}; give the runs of one pass"
                )
            table[run.query][run.repetition] = run
        cells[name] = _Cell(name, basis_of(run.validity for run in trusted or found), table)
    return cells


def _median(runs: Sequence[QueryRun]) -> _Time | None:
    """The median with timeouts above every time; a timeout where it hangs on one, None without any value."""
    finished = sorted(run.time_s for run in runs if run.time_s is not None)
    limits = [run.limit_s for run in runs if run.limit_s is not None]
    count = len(finished) + len(limits)
    if not count:
        return None
    # The upper of the middle ones: with an even number the median lies between two.
    if count // 2 < len(finished):
        ranked = finished + [math.inf] * len(limits)
        return _Time(median(ranked), timeout=False)
    return _Time(max(limits), timeout=True)


def _best_times(times: Iterable[Mapping[str, _Time]]) -> dict[str, _Time]:
    """The best of every query; where none finished it is the smallest limit, and still a timeout."""
    found: defaultdict[str, list[_Time]] = defaultdict(list)
    for cell in times:
        for query, time in cell.items():
            found[query].append(time)
    return {query: min(all_, key=lambda time: (time.timeout, time.seconds)) for query, all_ in found.items()}


def _drop_reasons(query: str, cells: Sequence[_Cell]) -> tuple[tuple[str, str], ...]:
    """Why a query is no part of the m-figures, as cause and sentence; empty where it is."""
    reasons = []
    cells_by_plan: defaultdict[str, list[str]] = defaultdict(list)
    for cell in cells:
        runs = list(cell.runs.get(query, {}).values())
        timeouts = sum(run.limit_s is not None for run in runs)
        known = {run.plan for run in runs if run.plan is not None}
        if not any(run.time_s is not None or run.limit_s is not None for run in runs):
            reasons.append((NO_TIME, filled(NO_TIME_IN, cells=cell.name)))
            continue
        if timeouts:
            words = filled(OVER_LIMIT_IN, timeouts=timeouts, n=len(runs), cells=cell.name)
            reasons.append((OVER_LIMIT, words))
        if any(run.time_s is not None and run.plan is None for run in runs):
            reasons.append((PLAN_UNKNOWN, filled(PLAN_UNKNOWN_IN, cells=cell.name)))
        if len(known) > 1:
            reasons.append((PLANS_IN_A_CELL, filled(PLANS_IN, n=len(known), cells=cell.name)))
        for plan in known:
            cells_by_plan[plan].append(cell.name)
    if len(cells_by_plan) > 1:
        groups = sorted(cells_by_plan.values(), key=len, reverse=True)
        named = " | ".join(", ".join(group) for group in groups)
        reasons.append((PLANS_ACROSS_CELLS, filled(PLANS_ACROSS, n=len(groups), cells=named)))
    return tuple(reasons)


def _unlike(cell: _Cell, kept: Sequence[str], trusted: Sequence[_Cell]) -> tuple[str, ...]:
    """What speaks against m-figures of a cell that had no say in what was kept; nothing of a trusted cell."""
    if cell.basis == TRUSTED or not trusted:
        return ()
    # All trusted cells agree on a query that was kept: one stands for them.
    found = {query: dict(_drop_reasons(query, (trusted[0], cell))) for query in kept}
    return tuple(
        filled(UNLIKE, query=query, causes=", ".join(causes)) for query, causes in found.items() if causes
    )


@dataclass(frozen=True)
class _Figure:
    """How a figure is made of times, and what its ideal is, given the best times."""

    of: Callable[[Mapping[str, _Time], Mapping[str, _Time]], float]
    share: Callable[[float, Mapping[str, _Time]], float]
    most: float = field(default=math.inf)


def _time_figure() -> _Figure:
    return _Figure(
        of=lambda times, _: sum(time.seconds for time in times.values()),
        share=lambda value, best: sum(time.seconds for time in best.values()) / value,
    )


def _score_figure(queries: int) -> _Figure:
    return _Figure(
        of=lambda times, best: sum(
            0.0 if time.timeout else best[query].seconds / time.seconds for query, time in times.items()
        ),
        share=lambda value, best: value / len(best),
        most=float(queries),
    )


def _cell_scores(
    cell: _Cell,
    queries: Sequence[str],
    kept: Sequence[str],
    best: Mapping[str, _Time],
    unlike: tuple[str, ...],
) -> CellScores:
    times = cell.times()
    none = Score(None, reasons=(UNTRUSTED, *unlike))
    return CellScores(
        cell=cell.name,
        basis=cell.basis,
        time=_score(cell, queries, best, _time_figure()),
        score=_score(cell, queries, best, _score_figure(len(queries))),
        m_time=none if unlike else _score(cell, kept, best, _time_figure()),
        m_score=none if unlike else _score(cell, kept, best, _score_figure(len(kept))),
        timeouts=tuple(query for query in queries if (time := times.get(query)) and time.timeout),
        times_s={query: times[query].seconds for query in queries if query in times},
    )


def _score(cell: _Cell, queries: Sequence[str], best: Mapping[str, _Time], figure: _Figure) -> Score:
    if not queries:
        return Score(None, reasons=(NONE_KEPT,))
    all_times = cell.times()
    missing = [query for query in queries if query not in all_times]
    if missing:
        return Score(None, reasons=tuple(filled(WITHOUT_TIME, query=query) for query in missing))
    times = {query: all_times[query] for query in queries}
    chosen = {query: best[query] for query in queries}
    value = figure.of(times, chosen)
    low, high = _interval(
        value, [figure.of(times, chosen) for times in cell.repetitions(queries)], figure.most
    )
    return Score(value, figure.share(value, chosen), low, high)


def _interval(
    value: float, repeated: Sequence[float], most: float
) -> tuple[float, float] | tuple[None, None]:
    """Student's t-interval on logarithms around a figure that is made of medians.

    A bootstrap of five repetitions draws from five values and covers too little, and a jackknife is not
    consistent for medians. So the figure is made once per complete repetition, against the same best times,
    and the scatter of its logarithm gives the standard error of a mean; that of a median is larger, by at
    most the square root of pi / 2, which is taken. The interval says how steady the cell is; that the best
    times scatter too shifts all cells alike and is not in it. None below three complete repetitions and
    where one of them is 0. A score's upper bound stops at the number of queries.
    """
    factor = interval_factor(len(repeated))
    if factor is None or min(repeated) <= 0 or value <= 0:
        return None, None
    logarithms = [math.log(figure) for figure in repeated]
    half = factor * stdev(logarithms, fmean(logarithms))
    try:
        return value * math.exp(-half), min(value * math.exp(half), max(most, value))
    except OverflowError:
        return None, None


def _query_order(query: str) -> tuple[int, str]:
    """Queries by their numbers, names after them."""
    return (int(query), "") if query.isdecimal() else (1 << 31, query)
