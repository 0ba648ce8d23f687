"""Which cell is compared with which: those that differ in nothing but what the two filters name."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from bedplate.analysis.cell_filter import STUDY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.analysis.cell_filter import Candidate, Selection
    from bedplate.model.levels import Scalar

    # The levels that two cells must have in common.
    Key: TypeAlias = tuple[tuple[str, type, Scalar] | None, ...]


@dataclass(frozen=True)
class Pair:
    """A contender and the baseline that it is held against."""

    baseline: Candidate
    contender: Candidate

    @property
    def is_within_a_study(self) -> bool:
        """Whether both were measured in the same repetitions."""
        return self.baseline.study == self.contender.study


@dataclass(frozen=True)
class Matched:
    """Pairs in the order of the contenders, and what is to be known of how they came about.

    `alone` are selected cells that no other one matches. `one_sided` are factors that only one side has, so that
    cells differ in them although no filter names them. `hindering` are factors that alone keep cells apart, told
    where there is no pair.
    """

    pairs: tuple[Pair, ...]
    alone: tuple[Candidate, ...]
    one_sided: tuple[str, ...]
    hindering: tuple[str, ...] = ()


def matched(baseline: Selection, contender: Selection) -> Matched:
    """Pair the cells of two filters.

    What a filter names, in either, may differ between the two; so may what only one side can have (ext4's `data`
    beside XFS). Two studies are paired where a filter names `study`, or where a cell has no partner in its own. A
    cell is not compared with itself, and no two cells twice. Within a study only its own factors count: what a cell
    of another one was asked for keeps no two of its cells apart.
    """
    named = baseline.names | contender.names
    sides = (baseline.cells, contender.cells)
    shared = [name for name in sorted(_names(sides[0]) & _names(sides[1])) if not _is_free(name, named)]
    within = {
        study: _shared_within(sides, study, named) for study in {cell.study for cell in contender.cells}
    }
    partners: defaultdict[tuple[int | None, Key], list[Candidate]] = defaultdict(list)
    for cell in baseline.cells:
        partners[None, _key(cell.levels, shared)].append(cell)
        partners[cell.study, _key(cell.own_levels, within.get(cell.study, ()))].append(cell)
    pairs: dict[frozenset[tuple[int, str]], Pair] = {}
    for cell in contender.cells:
        key = _key(cell.own_levels, within[cell.study])
        own = [other for other in partners[cell.study, key] if _place(other) != _place(cell)]
        away = [other for other in partners[None, _key(cell.levels, shared)] if other.study != cell.study]
        for other in own if own and STUDY not in named else (*own, *away):
            pairs.setdefault(frozenset({_place(other), _place(cell)}), Pair(other, cell))
    paired = {place for places in pairs for place in places}
    every = {_place(cell): cell for cell in (*baseline.cells, *contender.cells)}
    return Matched(
        pairs=tuple(pairs.values()),
        alone=tuple(cell for place, cell in every.items() if place not in paired),
        one_sided=_one_sided(list(pairs.values()), sides, named),
        hindering=() if pairs else tuple(_hindering(sides, shared)),
    )


def is_named(name: str, named: frozenset[str]) -> bool:
    """Whether a filter names a factor; a throttle that is named differs in its limits too."""
    return name in named or any(name.startswith(f"{other}.") for other in named)


def _is_free(name: str, named: frozenset[str]) -> bool:
    return name == STUDY or is_named(name, named)


def _names(cells: Sequence[Candidate], study: int | None = None) -> set[str]:
    """The factors of some cells; of those of one study, its own."""
    if study is None:
        return {name for cell in cells for name in cell.levels}
    return {name for cell in cells if cell.study == study for name in cell.own_levels}


def _shared_within(sides: Sequence[Sequence[Candidate]], study: int, named: frozenset[str]) -> list[str]:
    names = [_names(side, study) for side in sides]
    return [name for name in sorted(names[0] & names[1]) if not _is_free(name, named)]


def _one_sided(
    pairs: Sequence[Pair], sides: Sequence[Sequence[Candidate]], named: frozenset[str]
) -> tuple[str, ...]:
    found: set[str] = set()
    for study in {pair.contender.study if pair.is_within_a_study else None for pair in pairs}:
        only = _names(sides[0], study) ^ _names(sides[1], study)
        for pair in pairs:
            if (pair.contender.study if pair.is_within_a_study else None) == study:
                both = (pair.baseline, pair.contender)
                first, second = (cell.levels if study is None else cell.own_levels for cell in both)
                found |= (first.keys() ^ second.keys()) & only
    return tuple(sorted(name for name in found if not is_named(name, named)))


def _place(cell: Candidate) -> tuple[int, str]:
    return cell.study, cell.cell


def _key(levels: Mapping[str, Scalar], shared: Sequence[str]) -> Key:
    """A factor that the cell has not is no level: `True` and 1 are two, whatever Python says."""
    return tuple(_level(levels, name) for name in shared)


def _level(levels: Mapping[str, Scalar], name: str) -> tuple[str, type, Scalar] | None:
    return (name, type(levels[name]), levels[name]) if name in levels else None


def _hindering(sides: Sequence[Sequence[Candidate]], shared: Sequence[str]) -> list[str]:
    """Factors of which the two sides have no level in common."""
    first, second = sides
    return [
        name
        for name in shared
        if not {_level(cell.levels, name) for cell in first} & {_level(cell.levels, name) for cell in second}
    ]
