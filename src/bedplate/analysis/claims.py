"""Claims that others made, judged on studies (docs/CLAIMS.md)."""

from __future__ import annotations

import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import AfterValidator, Field, ValidationError, model_validator

from bedplate.analysis.cell_filter import Candidate, Selection, factor_named, select
from bedplate.analysis.comparison import (
    ComparedMetric,
    Pair,
    Surroundings,
    asked_of,
    candidates_of,
    matched,
    observed,
    one_sided,
    surroundings_between,
)
from bedplate.analysis.labels import TYPE, level_text, short_name, typed
from bedplate.analysis.overview import Overview
from bedplate.analysis.wording import ends_words, ratio_figure, words_on_device
from bedplate.errors import PlanError
from bedplate.model.course import filled
from bedplate.model.figure import Better, Scale, Status
from bedplate.model.levels import Scalar
from bedplate.model.limits import TEXT_LIMIT, read_at_most
from bedplate.model.metrics import METRICS, metric_today
from bedplate.model.visit import Validity
from bedplate.near_names import did_you_mean, of_near_paths
from bedplate.plan.load import MOST_REASONS, key_text
from bedplate.plan.table import PlanTable, at_least_one
from bedplate.plan.toml import parse_toml
from bedplate.plan.words import at_most, in_quotes
from bedplate.statistics.claims import (
    Doubt,
    Witness,
    all_of,
    best_is_among,
    opposite,
    spread_within,
    within,
)
from bedplate.statistics.comparison import TOO_FEW_IN_COMMON, EstimateKind, usable
from bedplate.statistics.contrast import Differences, LevelTable, complete_part
from bedplate.statistics.estimation import REPETITIONS_MIN
from bedplate.statistics.false_discovery import RATE, joint_confidence
from bedplate.statistics.summary import Observation
from bedplate.text_encoding import decode_text
from bedplate.units import format_count, parse_size, percent

if TYPE_CHECKING:
    from bedplate.statistics.estimation import Estimate

# Figures by repetition, on the scale of the arithmetic.
Row = dict[int, float]


class NothingMeasuredError(Exception):
    """The study does not have what a check asks for; its words say what is missing."""


SUSPECT = "suspect runs"

UNKNOWN = "runs of unknown validity"


@dataclass
class LeftOut:
    """What was left out on the way, and what is to be told beside a claim.

    `pairs` are among what is `left_out`: those that match and may not be judged. `promises` are pairs of durability classes
    that differ, `silent` levels at which nothing could be judged, `unlike` pairs of cells that were left out, by the factor
    at whose unusual level one of them is.
    """

    left_out: Counter[str] = field(default_factory=Counter)
    pairs: int = 0
    promises: set[tuple[str, str]] = field(default_factory=set)
    seen: set[tuple[str, tuple[str, str], int]] = field(default_factory=set)
    silent: dict[str, None] = field(default_factory=dict)
    unlike: defaultdict[str, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))

    def leave_pair_out(self, words: str) -> None:
        """One more pair that is not judged."""
        self.left_out[words] += 1
        self.pairs += 1

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences, without full stops."""
        found = [f"{words}: {count} left out" for words, count in self.left_out.items()]
        found += [
            f"pairs at an unusual {short_name(name)}, which one side alone has: {len(pairs)} left out"
            for name, pairs in self.unlike.items()
        ]
        if self.silent:
            found.append(f"nothing to judge at {', '.join(self.silent)}, which the finding leaves out")
        if self.promises:
            first, second = min(self.promises)
            more = len(self.promises) - 1
            rest = f", and {more} more" if more else ""
            found.append(
                f"what survives a power cut differs ({first} beside {second}{rest}): this is of speed alone, and ranks neither"
            )
        return tuple(found)


@dataclass(frozen=True)
class CheckEvidence:
    """The cells of one study that a check speaks of, in one run and part."""

    found: Overview
    check: Check
    asked: ComparedMetric
    cells: tuple[Candidate, ...]
    surroundings: Surroundings
    tally: LeftOut

    def among(self, cells: Sequence[Candidate]) -> CheckEvidence:
        """The same question, of these cells only."""
        return replace(self, cells=tuple(cells))

    def select(self, text: str) -> Selection:
        """The cells that a filter means; a level that the study has not is no error while it has another one."""
        try:
            return select(_known_levels(text, self.cells), self.cells)
        except PlanError as error:
            raise NothingMeasuredError("; ".join(error.reasons)) from None

    def factor(self, word: str) -> str:
        """The factor that a word means."""
        try:
            return factor_named(word, self.cells)
        except PlanError as error:
            raise NothingMeasuredError("; ".join(error.reasons)) from None

    def levels(self, factor: str) -> tuple[Scalar, ...]:
        """The levels of a factor that have a figure, numbers by their size."""
        known = dict.fromkeys(
            cell.levels[factor] for cell in self.cells if factor in cell.levels and self.row(cell)
        )
        if all(isinstance(level, int | float) for level in known):
            return tuple(sorted(known, key=float))
        return tuple(known)

    def at(self, factor: str, level: Scalar) -> Selection:
        """The cells with a level, as if a filter had named them by it."""
        cells = [
            cell
            for cell in self.cells
            if factor in cell.levels and typed(cell.levels[factor]) == typed(level)
        ]
        return Selection(level_text(factor, level), frozenset({factor}), tuple(cells))

    def row(self, cell: Candidate) -> Row:
        """The figure of a cell in each repetition that counts; none where one has no ratio, as the others are the good ones."""
        row, without_ratio = self._figures(cell)
        return {} if without_ratio else row

    def _figures(self, cell: Candidate) -> tuple[Row, frozenset[int]]:
        """By repetition, and the repetitions that count and were stopped at a limit or have no logarithm."""
        names = (self.check.metric,) if self.check.per is None else (self.check.metric, self.check.per)
        sides = [
            observed(self.found, cell.cell, self.asked.run, name, (self.asked.phase, self.asked.item))
            for name in names
        ]
        row: Row = {}
        without_ratio = set()
        for repetition in sorted(set.intersection(*map(set, sides))):
            figures = [side[repetition] for side in sides]
            values = [one.value for one in figures if one.value is not None]
            if (words := self._left_out(figures)) is not None:
                if words not in {SUSPECT, UNKNOWN}:
                    without_ratio.add(repetition)
                place = (cell.cell, self.asked.run, repetition)
                self.tally.left_out[words] += place not in self.tally.seen
                self.tally.seen.add(place)
            elif len(values) == len(figures):
                logs = list(map(math.log, values)) if self.check.is_ratio else values
                row[repetition] = logs[0] - sum(logs[1:])
        return row, frozenset(without_ratio)

    def _left_out(self, observations: Sequence[Observation]) -> str | None:
        """Why a repetition does not count; None where it does, or has no figure."""
        if not all(usable({0: one}, with_doubted=True) for one in observations):
            return None
        if not all(one.validity.is_trusted for one in observations):
            return SUSPECT if any(one.validity is Validity.SUSPECT for one in observations) else UNKNOWN
        if any(one.status is Status.CENSORED for one in observations):
            return "runs that were stopped at a limit"
        if self.check.is_ratio and any(one.value is not None and one.value <= 0 for one in observations):
            return "figures of 0, which have no logarithm,"
        return None

    def pairs(self, baseline: Selection, contender: Selection) -> tuple[Pair, ...]:
        """Matched pairs that may be compared and have figures on both sides."""
        kept = []
        for pair in self._alike(matched(baseline, contender).pairs, baseline.names | contender.names):
            sides = (pair.baseline, pair.contender)
            (first, not_first), (second, not_second) = map(self._figures, sides)
            if not first or not second:
                continue
            facts = [self.found.cells[side.cell] for side in sides]
            if pair.contender.cell in facts[0].identical_to:
                self.tally.leave_pair_out("pairs that are effectively the same")
            elif not_first & (second.keys() | not_second) or not_second & first.keys():
                self.tally.leave_pair_out("pairs with a run that has no ratio")
            elif reasons := self.surroundings.of_pair(pair, self.asked.run):
                self.tally.leave_pair_out(f"pairs that are not comparable ({reasons[0]})")
            else:
                kept.append(pair)
                words = [words_on_device(fact) for fact in facts]
                if words[0] != words[1]:
                    self.tally.promises.add((words[0], words[1]))
        return tuple(kept)

    def _alike(self, pairs: Sequence[Pair], named: frozenset[str]) -> Iterator[Pair]:
        """Those in which what one side alone has, at several levels, is at its usual one."""
        found = [(pair, tuple(one_sided(pair, named))) for pair in pairs]
        levels: defaultdict[tuple[Scalar | None, str], set[Scalar]] = defaultdict(set)
        for _, own in found:
            for cell, name in own:
                levels[cell.levels.get(TYPE), name].add(cell.levels[name])
        for pair, own in found:
            unusual = [
                name
                for cell, name in own
                if name not in cell.usual and len(levels[cell.levels.get(TYPE), name]) > 1
            ]
            for name in unusual:
                self.tally.unlike[name].add((pair.baseline.cell, pair.contender.cell))
            if not unusual:
                yield pair

    def difference(self, pair: Pair) -> Row:
        """Contender - baseline in each repetition that both have."""
        (first, _), (second, _) = self._figures(pair.baseline), self._figures(pair.contender)
        return {
            repetition: second[repetition] - first[repetition] for repetition in first if repetition in second
        }


def evidences(
    found: Overview, check: Check, cells: Sequence[Candidate], surroundings: Surroundings, tally: LeftOut
) -> tuple[CheckEvidence, ...]:
    """One for each run and part of the study that a check speaks of; NothingMeasuredError where there is none."""
    try:
        every = asked_of([found], None, (check.metric,))
    except PlanError:
        raise NothingMeasuredError(f"no run has a value of {check.metric}") from None
    of_run = [asked for asked in every if _is_meant(found, asked, check.run)]
    if not of_run:
        runs = ", ".join(dict.fromkeys(run[1] for run in found.runs))
        raise NothingMeasuredError(f"no run {check.run!r} has a {check.metric}; the study's runs are {runs}")
    if check.items:
        of_run = [
            replace(asked, phase=phase, item=item)
            for asked in dict.fromkeys(replace(asked, phase="measure", item="") for asked in of_run)
            for phase, item in _parts(found, asked, check)
        ]
    if not of_run:
        raise NothingMeasuredError(f"no run has a {check.metric} of {', '.join(check.items)}")
    made = [CheckEvidence(found, check, asked, tuple(cells), surroundings, tally) for asked in of_run]
    if check.where is None:
        return tuple(made)
    return tuple(one.among(one.select(check.where).cells) for one in made)


def _is_meant(found: Overview, asked: ComparedMetric, word: str) -> bool:
    """Who names a run means that one, though it may be called as the workload that others are of too."""
    # A visit's own figure stands with every run on its dataset.
    runs = [run for run in found.runs if run[0] == asked.run[0]] if asked.of_visit else [asked.run]
    if word in {name for _, name in found.runs}:
        return word in {name for _, name in runs}
    specs = (spec for run in runs if (spec := found.spec(run)) is not None)
    return any(word in (spec.workload, spec.levels.text("script")) for spec in specs)


def _parts(found: Overview, asked: ComparedMetric, check: Check) -> Iterable[tuple[str, str]]:
    """The parts that are called so, by their item or, where they have none, by their phase."""
    keys = {
        (key.phase, key.item)
        for cell in found.cells
        for key in found.summaries_of(cell, asked.run)
        if key.metric == check.metric
    }
    return sorted((phase, item) for phase, item in keys if (item or phase) in check.items)


def by_contender(evidence: CheckEvidence, pairs: Iterable[Pair]) -> Mapping[str, Row]:
    """The difference of each contender from its baselines, by the id of its cell."""
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    for pair in pairs:
        rows[pair.contender.cell].append(evidence.difference(pair))
    return {
        cell: {r: sum(row[r] for row in found) / len(found) for r in set.intersection(*map(set, found))}
        for cell, found in rows.items()
    }


def _known_levels(text: str, cells: Sequence[Candidate]) -> str:
    """The filter without the levels that no cell has, as long as one is left of each factor."""
    try:
        words = shlex.split(text)
    except ValueError:
        return text
    return " ".join(shlex.quote(_known(word, cells)) for word in words)


def _known(word: str, cells: Sequence[Candidate]) -> str:
    name, equals, levels = word.partition("=")
    if not equals or "," not in levels or _selects(word, cells):
        return word
    left = [level for level in levels.split(",") if _selects(f"{name}={level}", cells)]
    return f"{name}={','.join(left)}" if left else word


def _selects(word: str, cells: Sequence[Candidate]) -> bool:
    try:
        select(shlex.quote(word), cells)
    except PlanError:
        return False
    return True


MOST_SENTENCE = 500

PAIR = "pair"


def _metric(name: str) -> str:
    name = metric_today(name)
    if name not in METRICS:
        hint = did_you_mean(name, METRICS, otherwise="docs/METRICS.md lists them")
        raise ValueError(f"no metric is called so; {hint}")
    return name


def _line(text: str) -> str:
    if not text.strip() or not text.isprintable() or len(text) > MOST_SENTENCE:
        raise ValueError(f"allowed is one line of at most {MOST_SENTENCE} characters")
    return text


def _slug(text: str) -> str:
    if not text.replace("-", "").isalnum() or not text.isascii() or len(text) > 60:
        raise ValueError("allowed are letters, digits and -, at most 60")
    return text


Line = Annotated[str, AfterValidator(_line)]

MetricName = Annotated[str, AfterValidator(_metric)]

Bound = Annotated[float, Field(allow_inf_nan=False)]


class Check(PlanTable):
    """What every kind of check has: which figure, of which cells."""

    kind: str
    run: Line = Field(
        description="the name of a run, or where none is called so of its script or of a workload; several runs must all hold"
    )
    metric: MetricName = Field(description="a metric of docs/METRICS.md")
    per: MetricName | None = Field(default=None, description="a metric that it is divided by")
    items: tuple[Line, ...] = Field(
        default=(), description='a list of parts of the run (`["readseq"]`), each of which must hold'
    )
    where: Line | None = Field(default=None, description="a FILTER: only these cells")
    each: Line | None = Field(
        default=None,
        description='a factor, at each level of which the check must hold; `"pair"` for each pair of cells (ratio) or each cell (value); '
        "without it the mean over all is meant",
    )
    takes_pairs: ClassVar[bool] = True

    @property
    def scale(self) -> Scale:
        """Of the figure; decides whether bounds are ratios or differences."""
        return METRICS[self.metric].scale

    @property
    def is_ratio(self) -> bool:
        """Whether two figures are held against each other by their ratio, else by their difference."""
        return self.scale is Scale.RATIO

    @model_validator(mode="after")
    def _figure_fits(self) -> Check:
        if self.per is not None and not self.is_ratio:
            raise ValueError(f"per divides positive figures only, and {self.metric} is a {self.scale.value}")
        if self.per is not None and METRICS[self.per].scale is not Scale.RATIO:
            raise ValueError(f"per divides by positive figures only, and {self.per} is none")
        if self.each == PAIR and not self.takes_pairs:
            raise ValueError(f'each = "pair" is not for {self.kind}, which speaks of all levels at once')
        return self


class Bounded(Check):
    """A check with bounds; one of them at least."""

    at_least: Bound | None = Field(
        default=None,
        description="the lower bound: a ratio, else a difference in the unit; one of the two is needed",
    )
    at_most: Bound | None = Field(
        default=None, description="the upper bound: a ratio, else a difference in the unit"
    )
    always_a_ratio: ClassVar[bool] = False

    @model_validator(mode="after")
    def _bounds_fit(self) -> Bounded:
        found = [bound for bound in (self.at_least, self.at_most) if bound is not None]
        if not found:
            raise ValueError("at_least, at_most or both are needed")
        if len(found) == 2 and found[0] >= found[1]:
            raise ValueError(f"at_least {found[0]:g} is not below at_most {found[1]:g}")
        if (self.is_ratio or self.always_a_ratio) and min(found) <= 0:
            raise ValueError(f"a bound of a ratio is above 0 (1 is equality), found {min(found):g}")
        return self


class RatioCheck(Bounded):
    """Contender / baseline over cells that differ in nothing but what the filters name."""

    kind: Literal["ratio"]
    contender: Line = Field(description="a FILTER")
    baseline: Line | None = Field(default=None, description="a FILTER; without it every other cell")


class ValueCheck(Bounded):
    """The figure itself, or its quotient."""

    kind: Literal["value"]


class InteractionCheck(Bounded):
    """Contender / baseline in one part of the cells, beside the same ratio in another part."""

    kind: Literal["interaction"]
    contender: Line = Field(description="a FILTER")
    baseline: Line = Field(description="a FILTER")
    at: Line = Field(description="a FILTER: where the first of the two ratios is taken")
    against: Line = Field(description="a FILTER: where the second one is taken")
    takes_pairs: ClassVar[bool] = False


class SpreadCheck(Bounded):
    """How far the levels of a factor lie apart among the contender's cells, beside the baseline's."""

    kind: Literal["spread"]
    factor: Line = Field(description="a factor")
    contender: Line = Field(description="a FILTER: the cells whose spread is meant")
    baseline: Line = Field(description="a FILTER: the cells beside which it is judged")
    takes_pairs: ClassVar[bool] = False
    always_a_ratio: ClassVar[bool] = True


class OppositeCheck(Check):
    """Contender is better than baseline in one part of the cells, and worse in the other."""

    kind: Literal["opposite"]
    contender: Line = Field(description="a FILTER")
    baseline: Line = Field(description="a FILTER")
    at: Line = Field(description="a FILTER: one part of the cells")
    against: Line = Field(description="a FILTER: the other part")
    takes_pairs: ClassVar[bool] = False


class BestCheck(Check):
    """The level of a factor with the best figure: a named one, or that of another factor."""

    kind: Literal["best"]
    factor: Line = Field(description="a factor")
    best: Line | None = Field(default=None, description='a level, or several with commas: "2 kB"')
    like: Line | None = Field(
        default=None, description="in place of `best`: another factor, whose level it is"
    )
    about: float = Field(
        default=1.0,
        ge=1,
        le=1000,
        description="a factor from 1 by which a number may be off: with 2, “about 2 kB” is 1 to 4 kB",
    )
    takes_pairs: ClassVar[bool] = False

    @model_validator(mode="after")
    def _has_one_answer(self) -> BestCheck:
        if (self.best is None) == (self.like is None):
            raise ValueError("allowed is exactly one of best and like")
        if METRICS[self.metric].better is Better.NEITHER:
            raise ValueError(f"of {self.metric} {Better.NEITHER.words}")
        return self


class AlikeCheck(Check):
    """All levels of a factor lie within a margin of each other."""

    kind: Literal["alike"]
    factor: Line = Field(description="a factor")
    margin: float = Field(
        default=0.05,
        gt=0,
        le=10,
        description="a share above 0 (`0.05` is 5 %), for what is no ratio a difference",
    )
    takes_pairs: ClassVar[bool] = False


AnyCheck = RatioCheck | ValueCheck | InteractionCheck | SpreadCheck | OppositeCheck | BestCheck | AlikeCheck

CHECKS: Mapping[str, type[Check]] = {
    "ratio": RatioCheck,
    "value": ValueCheck,
    "interaction": InteractionCheck,
    "spread": SpreadCheck,
    "opposite": OppositeCheck,
    "best": BestCheck,
    "alike": AlikeCheck,
}


class Claim(PlanTable):
    """`[[claim]]`: a sentence, and the checks that must all hold for it."""

    id: Annotated[str, AfterValidator(_slug)] = Field(
        description="letters, digits and -, at most 60; unique in the file"
    )
    sentence: Line = Field(description="one line: the conclusion")
    note: Line | None = Field(default=None, description="one line: how the sentence was read")
    check: Annotated[
        tuple[Annotated[AnyCheck, Field(discriminator="kind")], ...], AfterValidator(at_least_one)
    ] = Field(description="one or more `[[claim.check]]` tables, which must all hold")


class ClaimFile(PlanTable):
    """A whole file of claims."""

    title: Line = Field(description="one line of text")
    claim: Annotated[tuple[Claim, ...], AfterValidator(at_least_one)] = Field(
        description="one or more [[claim]] tables"
    )

    @model_validator(mode="after")
    def _ids_differ(self) -> ClaimFile:
        twice = sorted(name for name, n in Counter(claim.id for claim in self.claim).items() if n > 1)
        if twice:
            raise ValueError(f"two claims have the id {', '.join(twice)}")
        return self


def load_claims(paths: Sequence[Path]) -> tuple[ClaimFile, ...]:
    """The claims of some files; PlanError has every reason of all of them, each with its file and key."""
    found, reasons = [], []
    for path in paths:
        try:
            found.append(parse_claims(decode_text(read_at_most(path, TEXT_LIMIT.most_bytes))))
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            reasons.append(f"{path}: cannot be read: {why}{of_near_paths(path, error)}")
        except PlanError as error:
            reasons += [f"{path}: {reason}" for reason in error.reasons]
    if reasons:
        raise PlanError(*reasons)
    return tuple(found)


def parse_claims(text: str) -> ClaimFile:
    """The claims in a TOML text; PlanError with all reasons at once."""
    values = parse_toml(text)
    try:
        return ClaimFile.model_validate(values)
    except ValidationError as error:
        found = [_sentence(finding, values) for finding in error.errors(include_url=False)]
        raise PlanError(*at_most(found, MOST_REASONS)) from None
    except RecursionError:
        raise PlanError("nested too deeply") from None


def _sentence(finding: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    # The kind by which a check was chosen is no key of the file.
    location = tuple(
        part
        for at, part in enumerate(finding["loc"])
        if not (at == 4 and part in CHECKS and _is_check(finding))
    )
    key = key_text(location, values).replace("the plan", "the file")
    kind = finding["type"]
    if kind in {"union_tag_not_found", "union_tag_invalid"}:
        return f"{key}.kind: expected one of {', '.join(CHECKS)}"
    if kind == "extra_forbidden":
        allowed = list(_table(finding["loc"]).model_fields)
        hint = did_you_mean(str(location[-1]), allowed, otherwise=f"allowed: {', '.join(allowed)}")
        return f"{key}: unknown key; {hint}"
    field = _table(finding["loc"]).model_fields.get(str(_last_name(location)))
    description = field.description if field is not None and field.description else "a table"
    if kind == "missing":
        return f"{key}: missing; expected {description}"
    found = finding["input"]
    what = "a table" if isinstance(found, dict | PlanTable) else in_quotes(found)
    if kind == "value_error":
        return (
            f"{key}: {finding['ctx']['error']}"
            if what == "a table"
            else f"{key}: found {what}; {finding['ctx']['error']}"
        )
    return f"{key}: found {what}; expected {description}"


def _is_check(finding: Mapping[str, Any]) -> bool:
    return len(finding["loc"]) > 4 and finding["loc"][2] == "check"


def _table(location: Sequence[str | int]) -> type[PlanTable]:
    """The table that the key of a finding stands in."""
    if len(location) > 4 and location[2] == "check":
        return CHECKS.get(str(location[4]), Check)
    return Claim if len(location) > 2 else ClaimFile


def _last_name(location: Sequence[str | int]) -> str | int:
    return next((part for part in reversed(location) if isinstance(part, str)), "")


class TooFewError(NothingMeasuredError):
    """There are figures, and not enough of them to judge: `words` is the contrast, `mean` its estimate."""

    def __init__(self, reason: str, words: str = "", mean: float | None = None, n: int = 0) -> None:
        super().__init__(reason)
        self.words = words
        self.mean = mean
        self.n = n


def check_doubt(evidence: CheckEvidence) -> Doubt:
    """How sure the check is on these cells; NothingMeasuredError, or TooFewError, says why that cannot be said."""
    groups = _groups(evidence)
    doubts, reasons, silent = [], [], []
    for name, group in groups:
        try:
            doubts.append(_JUDGES[group.check.kind](group, group.check, name))
        except NothingMeasuredError as error:
            reasons.append(error)
            silent.append(name)
    few = [error for error in reasons if isinstance(error, TooFewError)]
    if not doubts:
        raise few[0] if few else reasons[0]
    evidence.tally.silent.update(dict.fromkeys(silent))
    return _of_some(doubts) if few else all_of(doubts)


def bounds_of(check: Bounded) -> tuple[float | None, float | None]:
    """The bounds on the scale of the arithmetic."""
    found = [check.at_least, check.at_most]
    if check.is_ratio:
        return (
            None if found[0] is None else math.log(found[0]),
            None if found[1] is None else math.log(found[1]),
        )
    return found[0], found[1]


def _groups(evidence: CheckEvidence) -> list[tuple[str, CheckEvidence]]:
    """The cells at each level of the factor by which the check is made; all of them where there is none."""
    each = evidence.check.each
    if each is None or each == PAIR:
        return [("", evidence)]
    factor = evidence.factor(each)
    groups = [
        (level_text(factor, level), evidence.among(evidence.at(factor, level).cells))
        for level in evidence.levels(factor)
    ]
    if not groups:
        raise NothingMeasuredError(f"no cell with a figure has the factor {factor}")
    return groups


def _ratio(evidence: CheckEvidence, check: RatioCheck, group: str) -> Doubt:
    contender = evidence.select(check.contender)
    pairs = _pairs(evidence, _baseline(evidence, check.baseline, contender), contender)
    low, high = bounds_of(check)
    if check.each != PAIR:
        words = _named(group, f"{contender.text} beside {check.baseline or 'the others'}, {_counted(pairs)}")
        return within(words, _judgeable(words, [evidence.difference(pair) for pair in pairs]), low, high)
    return _each_pair(evidence, pairs, low, high)


def _each_pair(
    evidence: CheckEvidence, pairs: Sequence[Pair], low: float | None, high: float | None
) -> Doubt:
    doubts, few = [], []
    for pair in pairs:
        words = f"{pair.contender.labels[1]} beside {pair.baseline.labels[1]}"
        try:
            doubts.append(within(words, _judgeable(words, [evidence.difference(pair)]), low, high))
        except TooFewError as error:
            few.append(error)
            evidence.tally.leave_pair_out("pairs with too few repetitions in common")
    if not doubts:
        raise few[0]
    return _of_some(doubts) if few else all_of(doubts)


def _of_some(doubts: Sequence[Doubt]) -> Doubt:
    """That all of them hold, where others are not known: one may refute it, and together they cannot prove it."""
    return replace(all_of(doubts), p_holds=1.0)


def _baseline(evidence: CheckEvidence, text: str | None, contender: Selection) -> Selection:
    if text is not None:
        return evidence.select(text)
    own = {cell.cell for cell in contender.cells}
    others = tuple(cell for cell in evidence.cells if cell.cell not in own)
    return Selection("the others", contender.names, others)


def _value(evidence: CheckEvidence, check: ValueCheck, group: str) -> Doubt:
    low, high = bounds_of(check)
    rows = [(cell, row) for cell in evidence.cells if (row := evidence.row(cell))]
    if not rows:
        raise NothingMeasuredError(f"no cell of {check.where or 'the study'} has a {check.metric}")
    if check.each == PAIR:
        return all_of(
            [within(cell.labels[1], _judgeable(cell.labels[1], [row]), low, high) for cell, row in rows]
        )
    words = _named(group, f"{check.where or 'all'}, {len(rows)} cell{'s' if len(rows) > 1 else ''}")
    return within(words, _judgeable(words, [row for _, row in rows]), low, high)


def _interaction(evidence: CheckEvidence, check: InteractionCheck, group: str) -> Doubt:
    sides = [evidence.select(text) for text in (check.against, check.at)]
    found = [_within_side(evidence, side, check.baseline, check.contender) for side in sides]
    contenders = [
        Selection(side.text, side.names, tuple(cell for cell in evidence.cells if cell.cell in rows))
        for side, rows in zip(sides, found, strict=True)
    ]
    rows = [
        {repetition: at[repetition] - against[repetition] for repetition in at if repetition in against}
        for pair in matched(*contenders).pairs
        for at, against in [(found[1][pair.contender.cell], found[0][pair.baseline.cell])]
    ]
    words = _named(group, f"{check.contender} beside {check.baseline}, at {check.at} beside {check.against}")
    if not rows:
        raise NothingMeasuredError(f"no cells of {check.at!r} and {check.against!r} match")
    low, high = bounds_of(check)
    return within(words, _judgeable(words, rows), low, high)


def _opposite(evidence: CheckEvidence, check: OppositeCheck, group: str) -> Doubt:
    found = []
    for text in (check.at, check.against):
        words = _named(group, f"{check.contender} beside {check.baseline}, at {text}")
        rows = _within_side(evidence, evidence.select(text), check.baseline, check.contender)
        found.append((words, _judgeable(words, list(rows.values()))))
    return opposite(found[0], found[1])


def _within_side(
    evidence: CheckEvidence, side: Selection, baseline: str, contender: str
) -> Mapping[str, Row]:
    part = evidence.among(side.cells)
    return by_contender(part, _pairs(part, part.select(baseline), part.select(contender)))


def _spread(evidence: CheckEvidence, check: SpreadCheck, group: str) -> Doubt:
    factor = evidence.factor(check.factor)
    sides = _comparable(evidence, evidence.select(check.baseline), evidence.select(check.contender))
    cells = tuple(
        {
            cell.cell: cell
            for side in sides
            for cell in side.cells
            if factor in cell.levels and evidence.row(cell)
        }.values()
    )
    table = LevelTable.of([cell.levels for cell in cells])
    members = [
        np.array([row for row, cell in enumerate(cells) if cell in side.cells], dtype=np.intp)
        for side in sides
    ]
    columns, _ = table.shared(members, frozenset({factor}).union(*(side.names for side in sides)))
    strata = [
        [{cells[row].levels[factor]: evidence.row(cells[row]) for row in rows} for rows in groups]
        for groups in table.strata(members, columns)
    ]
    strata = [groups for groups in strata if all(len(of_levels) > 1 for of_levels in groups)]
    if not strata:
        raise NothingMeasuredError(
            f"no cells of {check.baseline!r} and {check.contender!r} match at two levels of {factor}"
        )
    levels = [
        level
        for level in evidence.levels(factor)
        if all(level in of_levels for groups in strata for of_levels in groups)
    ]
    words = _named(group, f"spread over {_listed(factor, levels)}, {check.contender} beside {check.baseline}")
    if len(levels) < 2:
        raise NothingMeasuredError(f"fewer than two levels of {factor} are there on both sides")
    rows = [groups[side][level] for side in (0, 1) for groups in strata for level in levels]
    repetitions, kept = complete_part(rows)
    if len(kept) < len(rows):
        repetitions = tuple(sorted(set.intersection(*map(set, rows))))
    if len(repetitions) < REPETITIONS_MIN:
        raise TooFewError(_too_few(len(repetitions)), words, n=len(repetitions))
    logs = np.array([[row[r] for r in repetitions] for row in rows])
    # Sides, strata, levels, repetitions: what each level is beside its stratum, over all strata.
    cube = logs.reshape(2, len(strata), len(levels), len(repetitions))
    effects = (cube - cube.mean(axis=2, keepdims=True)).mean(axis=1)
    # A spread is a ratio whatever the figure is.
    low, high = check.at_least, check.at_most
    return spread_within(words, effects[0].T, effects[1].T, low, high)


def _comparable(evidence: CheckEvidence, baseline: Selection, contender: Selection) -> list[Selection]:
    """The cells of both sides that have a partner which they may be held against."""
    pairs = _pairs(evidence, baseline, contender)
    kept = [{pair.baseline.cell for pair in pairs}, {pair.contender.cell for pair in pairs}]
    return [
        replace(side, cells=tuple(cell for cell in side.cells if cell.cell in own))
        for side, own in zip((baseline, contender), kept, strict=True)
    ]


def _best(evidence: CheckEvidence, check: BestCheck, group: str) -> Doubt:
    factor = evidence.factor(check.factor)
    levels = evidence.levels(factor)
    inside = [level for level in levels if _is_answer(evidence, check, factor, level)]
    outside = [level for level in levels if level not in inside]
    if not inside or not outside:
        there = _listed(factor, levels) or "none"
        wanted = check.best or f"that of {check.like}"
        raise NothingMeasuredError(
            f"the best {factor} is sought between {wanted} and others; measured: {there}"
        )
    names = {level: level_text(factor, level) for level in levels}
    sign = 1.0 if METRICS[check.metric].better is Better.HIGHER else -1.0
    better = {}
    for first in inside:
        for second in outside:
            witness, estimate = _levels_apart(evidence, factor, first, second, group)
            better[names[first], names[second]] = (witness, replace(estimate, mean=sign * estimate.mean))
    return best_is_among([names[level] for level in inside], [names[level] for level in outside], better)


def _is_answer(evidence: CheckEvidence, check: BestCheck, factor: str, level: Scalar) -> bool:
    if check.like is not None:
        other = evidence.factor(check.like)
        return any(_is_about(level, cell.levels.get(other), check.about) for cell in evidence.cells)
    words = [word.strip() for word in (check.best or "").split(",")]
    answers = [cell.levels[factor] for word in words for cell in _cells_at(evidence, factor, word)]
    answers += [size for word in words if (size := _size(factor, word)) is not None]
    return any(_is_about(level, answer, check.about) for answer in answers)


def _cells_at(evidence: CheckEvidence, factor: str, text: str) -> tuple[Candidate, ...]:
    try:
        return select(shlex.quote(f"{factor}={text}"), evidence.cells).cells
    except PlanError:
        return ()


def _size(factor: str, text: str) -> int | None:
    """A size that no cell has may be about one that some have."""
    try:
        return parse_size(text) if factor.endswith("_bytes") else None
    except ValueError:
        return None


def _is_about(level: Scalar, answer: Scalar | None, about: float) -> bool:
    if answer is not None and typed(level) == typed(answer):
        return True
    numbers = [
        each for each in (level, answer) if isinstance(each, int | float) and not isinstance(each, bool)
    ]
    return len(numbers) == 2 and min(numbers) > 0 and max(numbers) / min(numbers) <= about


def _alike(evidence: CheckEvidence, check: AlikeCheck, group: str) -> Doubt:
    factor = evidence.factor(check.factor)
    levels = evidence.levels(factor)
    if len(levels) < 2:
        raise NothingMeasuredError(f"measured is one level of {factor} or none; alike are two or more")
    margin = math.log1p(check.margin) if check.is_ratio else check.margin
    doubts = []
    for first, second in combinations(levels, 2):
        words, estimate = _apart(evidence, factor, second, first, group)
        doubts.append(within(words, estimate, -margin, margin))
    return all_of(doubts)


def _levels_apart(
    evidence: CheckEvidence, factor: str, first: Scalar, second: Scalar, group: str
) -> tuple[Witness, Estimate]:
    words, estimate = _apart(evidence, factor, first, second, group)
    return Witness(words, float(estimate.mean), estimate), estimate


def _apart(
    evidence: CheckEvidence, factor: str, first: Scalar, second: Scalar, group: str
) -> tuple[str, Estimate]:
    """The first level beside the second, over all cells that match."""
    pairs = _pairs(evidence, evidence.at(factor, second), evidence.at(factor, first))
    texts = (level_text(factor, first), level_text(factor, second))
    words = _named(group, f"{texts[0]} beside {texts[1]}, {_counted(pairs)}")
    return words, _judgeable(words, [evidence.difference(pair) for pair in pairs])


def _pairs(evidence: CheckEvidence, baseline: Selection, contender: Selection) -> tuple[Pair, ...]:
    found = evidence.pairs(baseline, contender)
    if found:
        return found
    left_out = "; ".join(f"{words}: {count}" for words, count in evidence.tally.left_out.items())
    if evidence.tally.pairs:
        raise TooFewError(f"none of the pairs may be judged ({left_out})")
    reason = f"no cells of {baseline.text!r} and {contender.text!r} with a {evidence.check.metric} match"
    raise NothingMeasuredError(f"{reason} ({left_out} left out)" if left_out else reason)


def _judgeable(words: str, rows: Sequence[Row]) -> Estimate:
    """The mean of rows by repetition, as `compare` pools pairs; TooFewError where a row or all together have too few."""
    rows = [row for row in rows if row]
    if not rows:
        raise TooFewError(_too_few(0), words)
    estimate = Differences.of([[row] for row in rows]).mean()
    if estimate.n < REPETITIONS_MIN:
        raise TooFewError(_too_few(estimate.n), words, float(estimate.mean), estimate.n)
    return estimate


def _too_few(n: int) -> str:
    return filled(TOO_FEW_IN_COMMON, n=n)


def _named(group: str, words: str) -> str:
    return f"{group}: {words}" if group else words


def _counted(pairs: Sequence[Pair]) -> str:
    return f"{len(pairs)} pair{'s' if len(pairs) != 1 else ''}"


def _listed(factor: str, levels: Sequence[Scalar]) -> str:
    return ", ".join(level_text(factor, level) for level in levels)


_JUDGES: Mapping[str, Callable[[CheckEvidence, Any, str], Doubt]] = {
    "ratio": _ratio,
    "value": _value,
    "interaction": _interaction,
    "spread": _spread,
    "opposite": _opposite,
    "best": _best,
    "alike": _alike,
}


class Finding(StrEnum):
    """What a study says of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    CANNOT_TELL = "cannot tell"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class JudgedClaim:
    """A claim in one study, counted from 0; None where no study measured it.

    `words` name the figure that the finding rests on: where it holds the part that is least sure, where it fails the
    part that refutes it. `estimate`, `low` and `high` are ratios where `is_ratio`, else differences or values in
    `unit`; a bound that is None is open. `confidence` is that of this interval: higher where it was looked for among
    many. `reasons` say why there is less than a finding, `notes` stand beside it.
    """

    claim: Claim
    study: int | None
    finding: Finding
    words: str = ""
    metric: str = ""
    is_ratio: bool = True
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    n: int = 0
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClaimsAnswer:
    """All claims of some files on some studies; `confidence` is that of one interval among all that were judged."""

    overviews: tuple[Overview, ...]
    files: tuple[ClaimFile, ...]
    judged: tuple[tuple[JudgedClaim, ...], ...]
    confidence: float
    told: int
    asked: int


@dataclass(frozen=True)
class _Weighed:
    """A claim in one study before all are judged together; `doubt` is None where nothing can be judged."""

    claim: Claim
    study: int
    doubt: Doubt | None
    checks: tuple[tuple[Check, Doubt], ...]
    lacking: tuple[str, ...]
    few: TooFewError | None
    few_check: Check | None
    notes: tuple[str, ...]


def judge_claims(overviews: Sequence[Overview], files: Sequence[ClaimFile]) -> ClaimsAnswer:
    """Judge every claim of the files in every study that has measured it."""
    cells = candidates_of(overviews)
    by_study = [tuple(cell for cell in cells if cell.study == number) for number in range(len(overviews))]
    weighed: list[list[list[_Weighed]]] = []
    for file in files:
        of_file = []
        for claim in file.claim:
            found = [
                _weigh(claim, number, overview, own)
                for number, (overview, own) in enumerate(zip(overviews, by_study, strict=True))
            ]
            measured = [each for each in found if each.doubt is not None or each.few is not None]
            of_file.append(measured or found)
        weighed.append(of_file)
    p_values = [
        each.doubt.p_value
        for of_file in weighed
        for found in of_file
        for each in found
        if each.doubt is not None
    ]
    confidence = float(joint_confidence(p_values)) if p_values else 1 - RATE
    judged = tuple(
        tuple(one for found in of_file for one in _judged(found, confidence)) for of_file in weighed
    )
    told = sum(one.finding in {Finding.HOLDS, Finding.FAILS} for of_file in judged for one in of_file)
    return ClaimsAnswer(tuple(overviews), tuple(files), judged, confidence, told, len(p_values))


def _weigh(claim: Claim, study: int, overview: Overview, cells: Sequence[Candidate]) -> _Weighed:
    tally = LeftOut()
    # Of one study: the levels of its cells name it nowhere, so that no filter pairs it with another.
    surroundings = surroundings_between([overview])
    own = [replace(cell, study=0) for cell in cells]
    checks: list[tuple[Check, Doubt]] = []
    lacking: list[str] = []
    few: tuple[Check, TooFewError] | None = None
    for check in claim.check:
        try:
            doubts = [check_doubt(each) for each in evidences(overview, check, own, surroundings, tally)]
            checks.append((check, all_of(doubts)))
        except TooFewError as error:
            few = few or (check, error)
        except NothingMeasuredError as error:
            lacking.append(str(error))
    return _Weighed(
        claim=claim,
        study=study,
        doubt=_together([doubt for _, doubt in checks], whole=len(checks) == len(claim.check)),
        checks=tuple(checks),
        lacking=tuple(dict.fromkeys(lacking)),
        few=few[1] if few else None,
        few_check=few[0] if few else None,
        notes=tally.notes,
    )


def _together(doubts: Sequence[Doubt], *, whole: bool) -> Doubt | None:
    """A claim of which a part was not measured may fail, and cannot hold."""
    if not doubts:
        return None
    return all_of(doubts) if whole else _of_some(doubts)


def _judged(found: Sequence[_Weighed], confidence: float) -> list[JudgedClaim]:
    """One for each study that measured something of the claim, else one that says what each of them lacks."""
    if all(each.doubt is None and each.few is None for each in found):
        reasons = tuple(dict.fromkeys(reason for each in found for reason in each.lacking))
        return [JudgedClaim(found[0].claim, None, Finding.NOT_MEASURED, reasons=reasons)]
    return [_judge(each, confidence) for each in found]


def _judge(found: _Weighed, confidence: float) -> JudgedClaim:
    doubt, rate = found.doubt, 1 - confidence
    if doubt is None:
        return _described(found)
    if doubt.p_fails <= rate:
        return _with_interval(found, Finding.FAILS, doubt.for_fails, rate)
    if doubt.p_holds <= rate:
        return _with_interval(found, Finding.HOLDS, doubt.for_holds, rate)
    finding = Finding.NOT_MEASURED if found.lacking else Finding.CANNOT_TELL
    return _with_interval(found, finding, doubt.for_holds, rate)


def _described(found: _Weighed) -> JudgedClaim:
    """With too few repetitions there is an estimate and nothing else."""
    few, check = found.few, found.few_check
    mean = few.mean if few is not None else None
    is_ratio = check is not None and _is_ratio(check)
    return JudgedClaim(
        claim=found.claim,
        study=found.study,
        finding=Finding.NOT_MEASURED if found.lacking else Finding.CANNOT_TELL,
        words=few.words if few is not None else "",
        metric="" if check is None else check.metric,
        is_ratio=is_ratio,
        estimate=_taken_back(mean, is_ratio=is_ratio),
        n=few.n if few is not None else 0,
        reasons=(*((str(few),) if few is not None else ()), *found.lacking),
        notes=found.notes,
    )


def _with_interval(found: _Weighed, finding: Finding, witness: Witness, rate: float) -> JudgedClaim:
    # `all_of` writes down anew among how many a witness was looked for; its estimate stays what it was.
    check = next(
        check
        for check, doubt in found.checks
        if any(witness.estimate is each.estimate for each in (doubt.for_holds, doubt.for_fails))
    )
    is_ratio = _is_ratio(check)
    confidence = 1 - rate / witness.tries
    low, high = map(float, witness.estimate.interval(confidence))
    reasons = found.lacking if finding in {Finding.NOT_MEASURED, Finding.CANNOT_TELL} else ()
    if found.few is not None and not reasons and finding is not Finding.FAILS:
        reasons = (str(found.few),)
    return JudgedClaim(
        claim=found.claim,
        study=found.study,
        finding=finding,
        words=witness.words,
        metric=check.metric if check.per is None else f"{check.metric} / {check.per}",
        is_ratio=is_ratio,
        estimate=_taken_back(witness.mean, is_ratio=is_ratio),
        low=_taken_back(low, is_ratio=is_ratio),
        high=_taken_back(high, is_ratio=is_ratio),
        confidence=confidence,
        n=witness.estimate.n,
        reasons=reasons,
        notes=found.notes,
    )


def _is_ratio(check: Check) -> bool:
    return check.is_ratio or isinstance(check, SpreadCheck)


def _taken_back(value: float | None, *, is_ratio: bool) -> float | None:
    """A logarithm as a ratio; None for what is open or not known."""
    if value is None or math.isnan(value) or math.isinf(value):
        return None
    if not is_ratio:
        return value
    return math.exp(value) if abs(value) < 700 else None


def bounds_words(check: Check) -> str:
    """The bounds of a check as a table has them: `0.85–0.95`, `≥ 1`; empty for a check without any."""
    if not isinstance(check, Bounded):
        return ""
    if check.at_least is not None and check.at_most is not None:
        return f"{check.at_least:g}–{check.at_most:g}"
    return f"≥ {check.at_least:g}" if check.at_least is not None else f"≤ {check.at_most:g}"


# What one claim came to, and several.
_ENDS = {
    Finding.HOLDS: ("holds", "hold"),
    Finding.FAILS: ("does not hold", "do not hold"),
    Finding.CANNOT_TELL: ("cannot be judged", "cannot be judged"),
    Finding.NOT_MEASURED: ("was not measured", "were not measured"),
}


def claim_sentences(found: ClaimsAnswer) -> tuple[str, ...]:
    """How many claims came to which end, and how sure the intervals are."""
    every = [one for judged in found.judged for one in judged]
    sentences = [findings_sentence(every)]
    if found.asked:
        in_part = sum(one.finding is Finding.NOT_MEASURED and one.confidence is not None for one in every)
        verb = "is" if in_part == 1 else "are"
        partly = (
            f" {in_part} of them {verb} measured in part: that may be refuted, and cannot hold."
            if in_part
            else ""
        )
        sentences.append(
            f"{found.told} of {format_count(found.asked, 'claim')} with an interval can be judged.{partly} Of findings that are given together, "
            f"{percent(RATE)} are wrong on average; for that every interval here has a confidence of "
            f"{100 * found.confidence:.4g} % or more."
        )
        sentences.append(
            "The figure beside a claim is the one that it rests on: of the part that is least sure, or that refutes it."
        )
    else:
        sentences.append("No claim here has an interval, so none can be judged.")
    return tuple(sentences)


def findings_sentence(judged: Sequence[JudgedClaim]) -> str:
    """`30 claims: 5 hold, 25 were not measured.`: how many of these came to which end."""
    counts = Counter(one.finding for one in judged)
    ends = ", ".join(
        format_count(n, one, several) for finding, (one, several) in _ENDS.items() if (n := counts[finding])
    )
    return f"{len(judged)} claim{'s' * (len(judged) != 1)}: {ends}."


def is_measured(judged: Sequence[JudgedClaim]) -> bool:
    """Whether a study measured any of these claims."""
    return any(one.finding is not Finding.NOT_MEASURED for one in judged)


def unmeasured_sentence(judged: Sequence[JudgedClaim]) -> str:
    """Of claims that no study measured, with the reason that most of them have."""
    reasons = Counter(one.reasons[0] for one in judged if one.reasons).most_common()
    more = f", and {format_count(len(reasons) - 1, 'reason')} more" if len(reasons) > 1 else ""
    why = f": {reasons[0][0]}{more}" if reasons else ""
    return f"none of {len(judged)} claim{'s' * (len(judged) != 1)} was measured here{why}."


def check_words(check: Check) -> str:
    """A check in one line: `tps of read-only: type=btrfs beside type=ext4, ≥ 1.05`."""
    known = {
        name: value
        for name, value in check
        if name not in {"kind", "run", "metric", "per", "at_least", "at_most"} and value not in (None, ())
    }
    keys = "; ".join(f"{name} {_value_words(value)}" for name, value in known.items())
    figure = check.metric if check.per is None else f"{check.metric} / {check.per}"
    return ", ".join(filter(None, (f"{check.kind} of {figure} in {check.run}", keys, bounds_words(check))))


def _value_words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def claim_bounds(one: JudgedClaim) -> str:
    """`0.91–0.97`, `-3 to …`, a bound that is open as dots; empty where both are."""
    kind = EstimateKind.RATIO if one.is_ratio else EstimateKind.DIFFERENCE
    return ends_words(
        kind, one.low, one.high, lambda end: claim_figure(one, end), "–" if one.is_ratio else " to "
    )


def claim_figure(one: JudgedClaim, value: float | None) -> str:
    """A ratio or a signed difference of a claim; a dash where it is not known."""
    if value is None:
        return "–"
    if not one.is_ratio:
        return f"{value:+.3g}"
    return ratio_figure(value)
