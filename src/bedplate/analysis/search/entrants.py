"""The cells of a search as its model takes them: by number, with levels, expected seconds, and what closes each."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from bedplate.analysis.factors import factor_levels
from bedplate.analysis.wording import durability_class
from bedplate.model.cell import BuildLevels, digest
from bedplate.model.device_cache import PROTECTED
from bedplate.model.reason import Reason, because
from bedplate.model.search import ANY, NOT_ASKED, SURVIVING, WANTED
from bedplate.model.visit import Outcome
from bedplate.statistics.search.space import SearchSpace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.analysis.overview import Overview
    from bedplate.model.cell import Cell
    from bedplate.model.search import SearchRecord
    from bedplate.model.visit import VisitRecord


@dataclass(frozen=True)
class Entrants:
    """`cells` are the ids of the candidates by their number, `numbers` the other way.

    `same_as` has the number of the cell whose visits a cell shares, as both are the same in force. `closed` says by number
    why a cell is not visited any more, or never. `overhead_s` is what the visits took beside those of the candidates: canaries, power
    cuts, builds.
    """

    cells: tuple[str, ...]
    numbers: Mapping[str, int]
    space: SearchSpace
    same_as: Mapping[int, int]
    closed: Mapping[int, Reason]
    overhead_s: float

    def number(self, cell: str) -> int:
        """The number by which a cell's visits count."""
        own = self.numbers[cell]
        return self.same_as.get(own, own)


def first_space(record: SearchRecord, cells: Mapping[str, Cell]) -> SearchSpace:
    """Before the first visit; ValueError below two cells."""
    levels = factor_levels((cells[each.cell], None) for each in record.candidates)
    seconds = tuple(each.seconds + record.builds.get(each.build, 0.0) for each in record.candidates)
    return SearchSpace(levels, seconds)


def entrants(found: Overview, record: SearchRecord) -> Entrants:
    """What the study's visits say of the candidates by now."""
    cells = tuple(each.cell for each in record.candidates)
    numbers = {cell: number for number, cell in enumerate(cells)}
    visits = [visit.record for visit in found.study.visits]
    same_as = _same_as(found, numbers)
    closed = {**_closed(found, record, numbers), **_merged(found, cells, same_as)}
    seconds, builds_s = _seconds(record, visits)
    space = replace(
        first_space(record, found.study.schedule.cells), seconds=seconds, closed=frozenset(closed)
    )
    # What came when the study was extended is no part of the search's budget, and its canaries are like any other's.
    others = [] if record.extended is not None else visits
    overhead_s = builds_s + sum(
        _taken(each) for each in others if each.key.canary or each.key.dataset == record.cut_dataset
    )
    return Entrants(cells, numbers, space, same_as, closed, overhead_s)


def _taken(record: VisitRecord) -> float:
    return record.whole_seconds or record.seconds


def _same_as(found: Overview, numbers: Mapping[str, int]) -> dict[int, int]:
    """Of cells that are the same in force the first one of the plan, by the numbers of the others."""
    same: dict[int, int] = {}
    for cell, number in numbers.items():
        others = found.cells[cell].identical_to if cell in found.cells else ()
        first = min((numbers[other] for other in others if other in numbers), default=number)
        if first < number:
            same[number] = first
    return same


def _merged(found: Overview, cells: tuple[str, ...], same_as: Mapping[int, int]) -> dict[int, Reason]:
    return {
        number: because(
            "identical-in-force",
            f"it is effectively the same as {found.cells[cells[first]].label.full}, whose visits count for both",
            cell=cells[first],
        )
        for number, first in same_as.items()
    }


def _closed(found: Overview, record: SearchRecord, numbers: Mapping[str, int]) -> dict[int, Reason]:
    """Cells of another class than was asked for: their own visits say so, or those of a cell that differs in its build alone."""
    if record.durable == ANY:
        return {}
    every = found.study.schedule.cells
    classes: dict[str, str] = {}
    for cell in numbers:
        facts = found.cells.get(cell)
        # Of a cell whose visits all failed nothing is known yet.
        if facts is not None and facts.durability is not None and facts.declared is not None:
            cache = PROTECTED if record.durable == SURVIVING else facts.cache
            classes[cell] = durability_class(facts.durability, cache)
    wanted = WANTED[record.durable]
    refused = {_but_build(every[cell]): cell for cell, own in classes.items() if own not in wanted}
    closed: dict[int, Reason] = {}
    for cell, number in numbers.items():
        if cell in classes:
            other = cell if classes[cell] not in wanted else None
        else:
            other = refused.get(_but_build(every[cell]))
        if other is not None:
            whose = (
                ""
                if other == cell
                else f", as {found.cells[other].label.full} is, which differs in its build alone"
            )
            basis = found.cells[other].durability
            words = f"{classes[other]} after a power cut{' (measured)' if basis and basis.basis == 'measured' else ''}{whose}"
            closed[number] = because(NOT_ASKED, words, durability=classes[other])
    return closed


def _but_build(cell: Cell) -> str:
    """What decides the flushes of a cell: all but the build of its engine."""
    return digest(replace(cell, build=BuildLevels.unbuilt(cell.build.engine)))


def _seconds(record: SearchRecord, visits: list[VisitRecord]) -> tuple[tuple[float, ...], float]:
    """What a visit of each candidate is expected to take, and what builds took that visits needed.

    By its own visits where there are some; else as reckoned, as wrong as it was of the others. A build is made for its first visit.
    """
    own: defaultdict[str, list[float]] = defaultdict(list)
    begun: set[str] = set()
    for each in visits:
        if each.key.dataset == record.dataset and not each.key.canary:
            begun.add(each.key.cell)
            if each.outcome is Outcome.COMPLETED and _taken(each) > 0:
                own[each.key.cell].append(_taken(each))
    means = {cell: fmean(taken) for cell, taken in own.items()}
    reckoned = sum(each.seconds for each in record.candidates if each.cell in means)
    correction = (
        sum(means[each.cell] for each in record.candidates if each.cell in means) / reckoned
        if reckoned
        else 1.0
    )
    made = {each.build for each in record.candidates if each.cell in begun}
    seconds = tuple(
        means.get(each.cell, each.seconds * correction)
        + (record.builds.get(each.build, 0.0) if each.build not in made else 0.0)
        for each in record.candidates
    )
    return seconds, sum(record.builds.get(build, 0.0) for build in made)
