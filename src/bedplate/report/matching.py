"""Which cell is compared with which: those that differ in nothing but what the two filters name."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from bedplate.report.selection import STUDY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.model.levels import Scalar
    from bedplate.report.selection import Candidate, Selection

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
    cell is not compared with itself, and no two cells twice.
    """
    named = baseline.names | contender.names
    sides = (baseline.cells, contender.cells)
    names = [{name for cell in side for name in cell.levels} for side in sides]
    shared = [name for name in sorted(names[0] & names[1]) if name != STUDY and not _is_named(name, named)]
    partners: defaultdict[Key, list[Candidate]] = defaultdict(list)
    for cell in baseline.cells:
        partners[_key(cell, shared)].append(cell)
    pairs: dict[frozenset[tuple[int, str]], Pair] = {}
    for cell in contender.cells:
        found = [other for other in partners[_key(cell, shared)] if _place(other) != _place(cell)]
        own = [other for other in found if other.study == cell.study]
        for other in own if own and STUDY not in named else found:
            pairs.setdefault(frozenset({_place(other), _place(cell)}), Pair(other, cell))
    paired = {place for places in pairs for place in places}
    every = {_place(cell): cell for cell in (*baseline.cells, *contender.cells)}
    return Matched(
        pairs=tuple(pairs.values()),
        alone=tuple(cell for place, cell in every.items() if place not in paired),
        one_sided=_one_sided(list(pairs.values()), names[0] ^ names[1], named),
        hindering=() if pairs else tuple(_hindering(sides, shared)),
    )


def _is_named(name: str, named: frozenset[str]) -> bool:
    """A throttle that is named differs in its limits too."""
    return name in named or any(name.startswith(f"{other}.") for other in named)


def _one_sided(pairs: Sequence[Pair], candidates: set[str], named: frozenset[str]) -> tuple[str, ...]:
    differing = {name for pair in pairs for name in {*pair.baseline.levels} ^ {*pair.contender.levels}}
    return tuple(sorted(name for name in differing & candidates if not _is_named(name, named)))


def _place(cell: Candidate) -> tuple[int, str]:
    return cell.study, cell.cell


def _key(cell: Candidate, shared: Sequence[str]) -> Key:
    """A factor that the cell has not is no level: `True` and 1 are two, whatever Python says."""
    return tuple(_level(cell.levels, name) for name in shared)


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
