"""What a study says of itself over time: drift in the order of its visits and on its canary, outliers, suspect runs.

Nothing is left out or corrected for it: it stands beside the figures (`statistics/drift.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from bedplate.analysis.default_metric import default_metric
from bedplate.model.figure import Better
from bedplate.model.metrics import METRICS
from bedplate.model.template import first_of
from bedplate.model.visit import Outcome, Validity
from bedplate.statistics.dips import Dips, dips
from bedplate.statistics.drift import OUTLIER_LEVEL, Drift, Outlier, Visited, drift, outliers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bedplate.analysis.overview import Measurement, Overview

Run = tuple[str, str]
# Shared by all series of a study, each of which is looked at for a trend and for a step.
_LEVEL = 0.05
_OUTLIERS_SHOWN = 3
# docs/method/statistics.md, “Dips”, has the figures.
_OF_DIPS = (
    "Where runs dip now and then, intervals that say 95 % hold the truth less often, and few repetitions may show no dip at "
    "all. More repetitions say how often it happens, and the courses of these runs when."
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
        if found and not any(one.is_canary and one.changed for one in chosen):
            canaries = [one.drift.values for one in chosen if one.is_canary]
            seen = (
                "No canary was there to show it"
                if not canaries
                else f"The canary's {canaries[0]} visits do not show it beyond chance"
                if canaries[0] > 1
                else "The canary was visited too rarely to show it"
            )
            found.append(f"{seen}.")
        if found:
            found.append("Repetitions are blocks, so this takes no side between cells; it widens intervals.")
        found += [words for one in chosen if (words := _outlier_words(one)) is not None]
        dipping = [words for one in chosen if (words := _dip_words(one)) is not None]
        if dipping:
            found += [*dipping, _OF_DIPS]
        if self.suspect:
            verb, shown = ("is", "it is") if self.suspect == 1 else ("are", "they are")
            found.append(
                f"{self.suspect} of {self.completed} completed runs {verb} suspect: marked wherever {shown} shown, and no part "
                "of a verdict."
            )
        if self.unknown:
            shown = "it is" if self.unknown == 1 else "they are"
            found.append(
                f"Of {self.unknown} of {self.completed} completed runs it is unknown whether {shown} valid, as evidence is "
                f"missing: marked wherever {shown} shown, and no part of a verdict."
            )
        return tuple(found)

    def _changed(self, one: StudySeries) -> str:
        """A step looks like a trend too, and a trend like a step: both are told where both are beyond chance."""
        words = []
        trend, step = one.drift.trend, one.drift.step
        if step is not None and step.p_value <= one.level:
            words.append(
                f"{step.ratio:.2f} times from visit {step.position:.0f} of {self.visits} on, as a step"
            )
        if trend is not None and trend.p_value <= one.level:
            bounds = "" if trend.low is None or trend.high is None else f" ({trend.low:.2f}–{trend.high:.2f})"
            words.append(f"{trend.ratio:.2f} times{bounds} from the beginning to the end, as a trend")
        return f"{one.name} changed with time, within cells: {'; '.join(words)}."


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
