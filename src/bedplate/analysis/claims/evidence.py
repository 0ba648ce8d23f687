"""What a study has to say to a check of a claim: matched cells, and their figures by repetition.

Cells are matched as `bedplate compare` does. A factor that one side alone has, and that no filter names, is held at its usual
level, as in `bedplate effects`: a mean over barriers on and off is no file system. Pairs that are not comparable, or are the same in force, are left out
and counted, as are runs that are suspect or of unknown validity, and figures that were stopped at a limit.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from bedplate.analysis.cell_filter import Selection, factor_named, select
from bedplate.analysis.comparison.compared import asked_of
from bedplate.analysis.comparison.matching import is_named, matched
from bedplate.analysis.factors import TYPE, level_text, short_name, typed
from bedplate.analysis.parts import VISIT_FIGURES
from bedplate.analysis.wording import words_on_device
from bedplate.errors import PlanError
from bedplate.model.visit import Outcome, Validity
from bedplate.statistics.design import complete_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from bedplate.analysis.cell_filter import Candidate
    from bedplate.analysis.claims.file import Check
    from bedplate.analysis.comparison.compared import ComparedMetric
    from bedplate.analysis.comparison.matching import Pair
    from bedplate.analysis.comparison.surroundings import Surroundings
    from bedplate.analysis.overview import Measurement, Overview
    from bedplate.model.levels import Scalar
    from bedplate.statistics.estimation import FloatArray

# Figures by repetition, on the scale of the arithmetic.
Row = dict[int, float]


class NothingMeasuredError(Exception):
    """The study does not have what a check asks for; its words say what is missing."""


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
        """The figure of a cell in each repetition that counts; none where one was stopped at a limit, as the others are the quick ones."""
        rows: Row = {}
        is_stopped = False
        for m in self.found.of(cell.cell, self.asked.run):
            value = self._figure(m)
            if value is not None:
                rows[m.repetition] = value
            is_stopped |= self._is_stopped(m)
        return {} if is_stopped else rows

    def _is_stopped(self, m: Measurement) -> bool:
        names = (self.check.metric,) if self.check.per is None else (self.check.metric, self.check.per)
        counts = m.outcome is Outcome.COMPLETED and m.validity.is_trusted
        return counts and any(m.is_stopped(name, self.asked.phase, self.asked.item) for name in names)

    def _figure(self, m: Measurement) -> float | None:
        names = (self.check.metric,) if self.check.per is None else (self.check.metric, self.check.per)
        figures = [m.figure(name, self.asked.phase, self.asked.item) for name in names]
        if m.outcome is not Outcome.COMPLETED or any(each is None for each in figures):
            return None
        place = (m.cell, self.asked.run, m.repetition)
        is_new = place not in self.tally.seen
        self.tally.seen.add(place)
        if not m.validity.is_trusted:
            what = "suspect runs" if m.validity is Validity.SUSPECT else "runs of unknown validity"
            self.tally.left_out[what] += is_new
            return None
        if self._is_stopped(m):
            self.tally.left_out["runs that were stopped at a limit"] += is_new
            return None
        values = [each.value for each in figures if each is not None and each.value is not None]
        if len(values) < len(names) or not all(map(math.isfinite, values)):
            return None
        if not self.check.is_ratio:
            return values[0]
        if min(values) <= 0:
            self.tally.left_out["figures of 0, which have no logarithm,"] += is_new
            return None
        return math.log(values[0]) - (math.log(values[1]) if len(values) > 1 else 0.0)

    def pairs(self, baseline: Selection, contender: Selection) -> tuple[Pair, ...]:
        """Matched pairs that may be compared and have figures on both sides."""
        kept = []
        for pair in self._alike(matched(baseline, contender).pairs, baseline.names | contender.names):
            sides = (pair.baseline, pair.contender)
            if not all(self.row(side) for side in sides):
                continue
            facts = [self.found.cells[side.cell] for side in sides]
            if pair.contender.cell in facts[0].identical_to:
                self.tally.leave_pair_out("pairs that are effectively the same")
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
        found = [(pair, tuple(_one_sided(pair, named))) for pair in pairs]
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
        first, second = self.row(pair.baseline), self.row(pair.contender)
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
    if check.metric in VISIT_FIGURES:
        # Made once for a visit, and told with each of its runs.
        of_run = of_run[:1]
    made = [CheckEvidence(found, check, asked, tuple(cells), surroundings, tally) for asked in of_run]
    if check.where is None:
        return tuple(made)
    return tuple(one.among(one.select(check.where).cells) for one in made)


def _is_meant(found: Overview, asked: ComparedMetric, word: str) -> bool:
    """Who names a run means that one, though it may be called as the workload that others are of too."""
    if word in {name for _, name in found.runs}:
        return word == asked.run[1]
    spec = found.spec(asked.run)
    return spec is not None and word in (spec.workload, spec.levels.text("script"))


def _parts(found: Overview, asked: ComparedMetric, check: Check) -> Iterable[tuple[str, str]]:
    """The parts that are called so, by their item or, where they have none, by their phase."""
    keys = {
        (key.phase, key.item)
        for cell in found.cells
        for key in found.summaries_of(cell, asked.run)
        if key.metric == check.metric
    }
    return sorted((phase, item) for phase, item in keys if (item or phase) in check.items)


def mean_rows(rows: Sequence[Row]) -> FloatArray:
    """The mean of some rows in every repetition that is kept, shape (repetitions,); empty where none is."""
    repetitions, kept = complete_part(rows)
    return (
        np.array([[rows[at][r] for r in repetitions] for at in kept], dtype=np.float64)
        .reshape(len(kept), len(repetitions))
        .mean(axis=0)
        if kept
        else np.zeros(0)
    )


def by_contender(evidence: CheckEvidence, pairs: Iterable[Pair]) -> Mapping[str, Row]:
    """The difference of each contender from its baselines, by the id of its cell."""
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    for pair in pairs:
        rows[pair.contender.cell].append(evidence.difference(pair))
    return {
        cell: {r: sum(row[r] for row in found) / len(found) for r in set.intersection(*map(set, found))}
        for cell, found in rows.items()
    }


def _one_sided(pair: Pair, named: frozenset[str]) -> Iterator[tuple[Candidate, str]]:
    """The factors that one cell of a pair alone has, and no filter names."""
    for cell, other in ((pair.baseline, pair.contender), (pair.contender, pair.baseline)):
        for name in cell.levels.keys() - other.levels.keys():
            if not is_named(name, named):
                yield cell, name


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
