"""What `--fail-if` may ask: one grammar for every command that takes it, and whether a condition holds.

Of both sides a condition is a word and a share, `slower 5%`, with a metric before it where not each run's own is meant. Of the contender, or of a
cell by itself, it is a figure or a count with a bound, or what a power cut leaves. docs/COMMANDS.md has the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from bedplate.analysis.comparison import Compared, ComparisonAnswer, observed
from bedplate.analysis.run_heads import is_meant
from bedplate.analysis.wording import durability_class
from bedplate.errors import EXIT_CANNOT_TELL, PlanError
from bedplate.model.device_cache import CACHES
from bedplate.model.durability import CLASSES, UNKNOWN, UNSAFE
from bedplate.model.figure import Better, Metric, Scale
from bedplate.model.metrics import METRICS, SHORT_NAMES, metric_today
from bedplate.model.visit import Outcome
from bedplate.near_names import did_you_mean, quoted
from bedplate.statistics.comparison import (
    CONFIDENCE,
    MARGIN,
    Comparison,
    EstimateKind,
    at_confidence,
    is_speed,
)
from bedplate.statistics.estimation import REPETITIONS_MIN, Estimate, of_differences
from bedplate.statistics.paired_sequence import FIRST_LOOK, joint

if TYPE_CHECKING:
    from bedplate.analysis.overview import CellFacts, Overview
    from bedplate.cuts.runs import CutRun
    from bedplate.statistics.estimation import FloatArray

EXIT_HOLDS = 1

_PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%")

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")

_BOUND = re.compile(r"([^<>]+?) ?([<>]) ?(.*)")

_FLUSHES = re.compile(r"flushes per (appending|overwriting) fsync(?: on the (data|journal) device)?")

_WORDS = ("slower", "faster", "worse", "better", "lower", "higher")

_AGAINST = {"slower": "worse", "faster": "better"}

BAD, PROMISED = "bad", "worse than promised"


class Truth(Enum):
    """What is known of a condition."""

    HOLDS = "holds"
    FAILS = "does not hold"
    CANNOT_TELL = "cannot tell"


class ConditionSubject(Enum):
    """What a condition is about."""

    SIDES = "both sides"
    FIGURE = "a figure"
    FLUSHES = "flushes per fsync"
    CLASS = "what is promised of a power cut"
    CUTS = "power cuts"


# One condition of each kind, for who wrote another; README, help and documents show the same.
EXAMPLES = {
    "slower 10%": ConditionSubject.SIDES,
    "latency_ms_p99 worse 10%": ConditionSubject.SIDES,
    "tps < 1000": ConditionSubject.FIGURE,
    "flushes per appending fsync < 1": ConditionSubject.FLUSHES,
    UNSAFE: ConditionSubject.CLASS,
    BAD: ConditionSubject.CUTS,
    PROMISED: ConditionSubject.CUTS,
}

# What cannot be asked of cells whose power is cut, and why.
_NOT_OF_CUTS: Mapping[ConditionSubject, tuple[str, ...]] = {
    ConditionSubject.SIDES: ("it compares two sides, and a cell whose power is cut has none beside it",),
    ConditionSubject.FIGURE: ("it bounds a figure, and cuts of the power are no repetitions of one",),
}


@dataclass(frozen=True)
class Condition:
    """A condition as it was written, and what it is about.

    `word` and `share` (0.05 for 5 %) are of both sides, `bound` of a figure or of flushes, above it where `above`. `word` is also `BAD` or
    `PROMISED` of power cuts.
    """

    text: str
    subject: ConditionSubject
    word: str = ""
    share: float = 0.0
    metric: str = ""
    pattern: str = ""
    device: str = "data"
    bound: float = 0.0
    above: bool = False

    @property
    def needs_pairs(self) -> bool:
        """Whether it takes several repetitions; counts and verdicts need one."""
        return self.subject in (ConditionSubject.SIDES, ConditionSubject.FIGURE)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metric that sides are compared in; empty where none is named."""
        return (self.metric,) if self.subject is ConditionSubject.SIDES and self.metric else ()

    @property
    def first_blocks(self) -> int:
        """Blocks of pairs before the first look."""
        return FIRST_LOOK if self.needs_pairs else 1

    def lines_of(self, lines: Iterable[Compared]) -> list[Compared]:
        """Those that it is about: of its metric, or all where it names none."""
        return [line for line in lines if not self.metric or line.asked.metric == self.metric]

    def goes_up(self, metric: Metric) -> bool:
        """Whether the contender's figure is above that of the baseline where this holds. PlanError where it does not fit the metric."""
        if metric.scale is Scale.COUNT and self.share:
            raise PlanError(f"{metric.name} is a count, of which no share is taken; write {self.word} 0%")
        if self.word in {"higher", "lower"}:
            return self.word == "higher"
        if self.word in _AGAINST and not is_speed(metric):
            raise PlanError(
                f"{metric.name} is no speed, so nothing is {self.word}; write {_AGAINST[self.word]}, higher or lower"
            )
        if metric.better is Better.NEITHER:
            raise PlanError(
                f"of {metric.name} {metric.better.words}; write higher or lower in place of {self.word}"
            )
        return (self.word in {"better", "faster"}) == (metric.better is Better.HIGHER)

    def refuse_unfit(self, metrics: Iterable[str]) -> None:
        """PlanError where sides are compared in a metric that it does not fit; before anything is measured for it."""
        if self.subject is ConditionSubject.SIDES:
            for name in (self.metric,) if self.metric else metrics:
                if name in METRICS:
                    self.goes_up(METRICS[name])


def parse_share(text: str) -> float:
    """0.05 from `5%` or `5 %`; PlanError for anything else."""
    percent = _PERCENT.fullmatch(" ".join(text.split()))
    if percent is None:
        raise PlanError(f"{quoted(text)} is no share; write a number and a percent sign: 5%")
    return float(percent[1]) / 100


def parse_condition(text: str, *, margin: float = MARGIN, of_cuts: bool = False) -> Condition:
    """The condition that somebody wrote; `margin` is the share where none is written. PlanError in one sentence, with what would do.

    `of_cuts`: power is cut of cells by themselves, so that nothing else can be asked. There `worse` by itself is `worse than promised`,
    elsewhere it is the contender's figure that is worse.
    """
    words = " ".join(text.split())
    try:
        condition = _parsed(text, PROMISED if of_cuts and words == "worse" else words, margin)
        reasons = _NOT_OF_CUTS.get(condition.subject, ()) if of_cuts else ()
    except PlanError as error:
        reasons = error.reasons
    if reasons:
        examples = ", ".join(
            repr(example)
            for example, subject in EXAMPLES.items()
            if not of_cuts or subject not in _NOT_OF_CUTS
        )
        raise PlanError(f"condition {quoted(text)}: {'; '.join(reasons)}; these would do: {examples}")
    return condition


def _parsed(text: str, words: str, margin: float) -> Condition:
    if words == UNSAFE:
        return Condition(text, ConditionSubject.CLASS, words)
    if words in (BAD, PROMISED):
        return Condition(text, ConditionSubject.CUTS, words)
    if parts := _BOUND.fullmatch(words):
        return _bounded(text, parts[1], parts[3], above=parts[2] == ">")
    first, _, rest = words.partition(" ")
    if first not in _WORDS and (rest.partition(" ")[0] in _WORDS or metric_today(first) in METRICS):
        metric = _metric(first)
        word, _, share = rest.partition(" ")
    else:
        metric, word, share = "", first, rest
    if metric and not word:
        raise PlanError(f"nothing is said of {metric}; write a word and a share behind it, or a bound")
    if word not in _WORDS:
        meant = did_you_mean(word, (*_WORDS, UNSAFE, BAD))
        raise PlanError(f"{quoted(word)} is not understood{f'; {meant}' if meant else ''}")
    condition = Condition(
        text, ConditionSubject.SIDES, word, parse_share(share) if share else margin, metric=metric
    )
    condition.refuse_unfit(())
    return condition


def _bounded(text: str, name: str, number: str, *, above: bool) -> Condition:
    if _NUMBER.fullmatch(number) is None:
        raise PlanError(f"a bound is a number without a unit, found {quoted(number)}")
    bound = float(number)
    if flushes := _FLUSHES.fullmatch(name):
        return Condition(
            text,
            ConditionSubject.FLUSHES,
            pattern=flushes[1],
            device=flushes[2] or "data",
            bound=bound,
            above=above,
        )
    if name.startswith("flushes"):
        raise PlanError(
            "flushes are those per appending or overwriting fsync, of the data device or “on the journal device”"
        )
    return Condition(text, ConditionSubject.FIGURE, metric=_metric(name), bound=bound, above=above)


def _metric(name: str) -> str:
    """By its name of today; PlanError where there is none."""
    metric = metric_today(name)
    if metric not in METRICS:
        meant = did_you_mean(name, (*METRICS, *SHORT_NAMES), otherwise="docs/METRICS.md has them")
        raise PlanError(f"no metric is {quoted(name)}; {meant}")
    return metric


def any_of(truths: Iterable[Truth]) -> Truth:
    """Of several, one that holds is enough; else each must be known, and of none nothing is."""
    every = set(truths) or {Truth.CANNOT_TELL}
    return next(each for each in (Truth.HOLDS, Truth.CANNOT_TELL, Truth.FAILS) if each in every)


def exit_status(truths: Iterable[Truth]) -> int:
    """1 where the condition holds anywhere, else 125 where it cannot be told somewhere, else 0."""
    return {Truth.HOLDS: EXIT_HOLDS, Truth.CANNOT_TELL: EXIT_CANNOT_TELL, Truth.FAILS: 0}[any_of(truths)]


def answer_truths(condition: Condition, comparisons: ComparisonAnswer) -> list[Truth]:
    """Whether it holds, of each comparison that it is about; of each contender where it is about one side."""
    if condition.subject is ConditionSubject.SIDES:
        return [truth(condition, line) for line in condition.lines_of(comparisons.compared)]
    contenders = dict.fromkeys(
        (pair.contender.study, pair.contender.cell) for pair in comparisons.matched.pairs
    )
    return [
        cell_truth(
            condition,
            comparisons.overviews[study],
            cell,
            workload=comparisons.question.workload,
            confidence=joint(1 - CONFIDENCE, len(contenders)),
        )
        for study, cell in contenders
    ]


def truth(condition: Condition, line: Compared) -> Truth:
    """Whether a condition on both sides holds of one comparison. PlanError where it does not fit the metric."""
    comparison = line.comparison
    goes_up = condition.goes_up(comparison.metric)
    if line.identical:
        # What is the same in force is not slower, whatever its runs say.
        return Truth.FAILS
    return (
        Truth.CANNOT_TELL
        if comparison.basis is None
        else _of_interval(comparison, condition.share, goes_up=goes_up)
    )


def _of_interval(comparison: Comparison, share: float, *, goes_up: bool) -> Truth:
    if comparison.kind is EstimateKind.RATIO:
        bound = 1 + share if goes_up else 1 / (1 + share)
    else:
        bound = share if goes_up else -share
    difference = comparison
    if (comparison.difference_confidence or 0.0) > comparison.confidence:
        difference = at_confidence(comparison, comparison.difference_confidence or 0.0)
    least = difference.low if goes_up else _negative(difference.high)
    most = comparison.high if goes_up else _negative(comparison.low)
    bound = bound if goes_up else -bound
    if least is not None and least > bound:
        return Truth.HOLDS
    return Truth.FAILS if most is not None and most <= bound else Truth.CANNOT_TELL


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


def cell_truth(
    condition: Condition,
    overview: Overview,
    cell: str,
    *,
    workload: str | None = None,
    confidence: float = CONFIDENCE,
    estimate: Callable[[FloatArray], Estimate] = of_differences,
    repetitions: int = REPETITIONS_MIN,
) -> Truth:
    """Whether a condition on one side holds of a cell. `estimate` has the interval of a figure's mean, from so many `repetitions` on."""
    facts = overview.cells.get(cell)
    if facts is None:
        return Truth.CANNOT_TELL
    if condition.subject is ConditionSubject.FIGURE:
        runs = figures_of(condition, overview, cell, workload)
        each = joint(1 - confidence, len(runs))
        return any_of(
            _bound_truth(condition, values, estimate, each)
            if len(values) >= repetitions
            else Truth.CANNOT_TELL
            for values in runs
        )
    if condition.subject is ConditionSubject.CUTS:
        return cut_truth(condition.word, facts.cuts)
    if condition.subject is ConditionSubject.CLASS:
        return _class_truth(facts)
    rates = [r for r in facts.flushes if (r.device, r.pattern) == (condition.device, condition.pattern)]
    return any_of(
        _as_truth(r.per_call > condition.bound if condition.above else r.per_call < condition.bound)
        for r in rates
    )


def figures_of(
    condition: Condition, overview: Overview, cell: str, workload: str | None
) -> tuple[Sequence[float], ...]:
    """The trusted figures of a cell by repetition, of each run that has some."""
    runs = []
    for run in overview.runs:
        if not is_meant(overview, run, workload):
            continue
        values = [
            one.value
            for _, one in sorted(observed(overview, cell, run, condition.metric).items())
            if one.value is not None and one.outcome is Outcome.COMPLETED and one.validity.is_trusted
        ]
        if values:
            runs.append(values)
    return tuple(runs)


def beyond(condition: Condition, values: Collection[float]) -> FloatArray:
    """How far each figure lies beyond the bound, in logarithms where these have any; below zero where it does not."""
    figures = np.array(values, dtype=np.float64)
    is_ratio = bool(condition.bound > 0 and (figures > 0).all())
    distance = np.log(figures / condition.bound) if is_ratio else figures - condition.bound
    return np.asarray(distance if condition.above else -distance)


def _bound_truth(
    condition: Condition,
    values: Sequence[float],
    estimate: Callable[[FloatArray], Estimate],
    confidence: float,
) -> Truth:
    least, most = (float(end) for end in estimate(beyond(condition, values)).interval(confidence))
    return Truth.HOLDS if least > 0 else Truth.FAILS if most <= 0 else Truth.CANNOT_TELL


def _class_truth(facts: CellFacts) -> Truth:
    """What is promised alone tells nothing good where power was cut and the verdict was refused."""
    word = durability_class(facts.durability, facts.cache)
    if word == UNSAFE:
        return Truth.HOLDS
    return Truth.CANNOT_TELL if word == UNKNOWN or facts.verdict_refused else Truth.FAILS


def cut_truth(word: str, runs: Iterable[CutRun]) -> Truth:
    """Of a cell's recordings: `BAD`, a cut took or damaged something; `PROMISED`, more than was promised.

    It cannot be told of a cell without a verdict, and `PROMISED` not where nothing was promised. Where cuts in recovery do not
    count, as a recovery that nothing cut left damage, a bad one may be among them: then it holds, or cannot be told.
    """
    return any_of(_cut_truth(word, run) for run in runs)


def _cut_truth(word: str, run: CutRun) -> Truth:
    if run.verdict.refused:
        return Truth.CANNOT_TELL
    recoveries = run.verdict.recoveries
    otherwise = Truth.CANNOT_TELL if recoveries is not None and recoveries.refused else Truth.FAILS
    if word == BAD:
        is_bad = run.verdict.without_cut is not None or run.verdict.all_cuts.bad > 0
        return Truth.HOLDS if is_bad else otherwise
    # What a visit promised that failed afterwards, with a bad cut behind it already.
    declared, measured = run.declared or run.declared_first, run.shown_class
    if declared is None or measured is None:
        return Truth.CANNOT_TELL
    pairs = [(declared.class_with(cache), measured.class_with(cache)) for cache in CACHES]
    known = [pair for pair in pairs if UNKNOWN not in pair]
    if any(CLASSES.index(measured) > CLASSES.index(said) for said, measured in known):
        return Truth.HOLDS
    return Truth.CANNOT_TELL if len(known) < len(pairs) else otherwise


def _as_truth(holds: bool) -> Truth:  # noqa: FBT001 -- what is asked
    return Truth.HOLDS if holds else Truth.FAILS
