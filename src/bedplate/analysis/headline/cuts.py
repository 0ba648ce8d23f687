"""What the power cuts of a study say, by what separates cells that lose something from cells that do not.

Only recordings whose verdict stands speak. Corruption and the loss of acknowledged commits are two findings, and a cell can
have both. A level is named as what separates (`full_page_writes=off`) where it does so between two cells that differ in nothing
else, or in nothing but their type. It is no level that is usual, and a type only where nothing else separates. Of several such
levels the one that has most bad cells, less the sound ones, comes first, and each cell stands under one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from bedplate.analysis.comparison.compared import candidates_of
from bedplate.analysis.factors import DEFAULT, TYPE, level_text, short_name
from bedplate.analysis.headline.defaults import defaults_of
from bedplate.analysis.headline.names import cell_names
from bedplate.analysis.headline.page_copies import without_copies
from bedplate.analysis.power_cut_view import speaking
from bedplate.analysis.wording import durability_class
from bedplate.model.durability import DURABLE
from bedplate.model.power_cut_verdict import BOUNDED, LOSS, CutCounts
from bedplate.model.template import and_more

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bedplate.analysis.headline.page_copies import WithoutCopies
    from bedplate.analysis.overview import CellFacts, Overview
    from bedplate.model.levels import Scalar
    from bedplate.model.power_cut_verdict import CacheCuts

# A factor and its level in some cells; None in cells that do not have the factor.
Separating: TypeAlias = "tuple[str, Scalar | None]"
Levels: TypeAlias = "Mapping[str, Mapping[str, Scalar]]"
_NAMED = 3


@dataclass(frozen=True)
class CutCell:
    """A cell whose power was cut, with the kind of cache that is meant.

    `cuts` are those that chance placed, of which alone a share is a share, and those sought where metadata waits.
    `durability` is its class with that cache: where no cut was bad, what its settings promise. `within` is what it is called
    among the cells of its group: its name without what the group has in common.
    """

    cell: str
    cuts: CacheCuts
    durability: str
    within: str = ""

    @property
    def tally(self) -> CutCounts:
        """The cuts that chance placed."""
        return self.cuts.drawn

    @property
    def corrupt(self) -> int:
        """Cuts of either placement after which what was left was not whole."""
        return self.cuts.all.broken

    @property
    def lost(self) -> int:
        """Cuts of either placement that lost acknowledged commits and left the rest whole."""
        return self.cuts.all.of(LOSS)

    @property
    def bounded(self) -> int:
        """Those that lost no more than the engine's settings allow."""
        return self.cuts.all.of(BOUNDED)

    @property
    def is_sound(self) -> bool:
        """Whether no cut found anything."""
        return not self.cuts.all.bad


@dataclass(frozen=True)
class CutGroup:
    """Cells that share a level by which they are separated from sound ones.

    `name` has it in words (`full_page_writes=off`), empty where it is the type, which each name has, and for cells that nothing
    separates from a sound one.
    `bad` lost something, the worst first; `good` share the level and lost nothing. `otherwise` are the sound cells that differ
    from a bad one in this level alone, and `otherwise_name` their level, or their names where that level does not tell.
    """

    name: str
    bad: tuple[CutCell, ...]
    good: tuple[CutCell, ...] = ()
    otherwise: tuple[CutCell, ...] = ()
    otherwise_name: str = ""


@dataclass(frozen=True)
class CutsAnswer:
    """The power cuts of a study with one kind of cache (`cache`, of `model.device_cache`).

    `sound` are the cells of which no cut found anything bad, `groups` the others, those with corruption first. `refused` had
    cuts and no verdict, those of `of_others` tell of another device or journal, and those of `not_asked` were of other caches
    and found nothing. `copies` says where the engine may do without copies of its pages.
    """

    cache: str
    sound: tuple[CutCell, ...]
    groups: tuple[CutGroup, ...]
    refused: tuple[str, ...]
    of_others: tuple[str, ...]
    not_asked: tuple[str, ...]
    uncounted: tuple[str, ...]
    copies: tuple[WithoutCopies, ...]

    @property
    def safe(self) -> tuple[CutCell, ...]:
        """The sound cells that are durable."""
        return tuple(each for each in self.sound if each.durability == DURABLE)

    @property
    def promising_less(self) -> tuple[CutCell, ...]:
        """The sound cells whose settings promise less than the cuts found: no number of cuts makes them safe."""
        return tuple(each for each in self.sound if each.durability != DURABLE)


def cuts_answer(found: Overview, cache: str) -> CutsAnswer | None:
    """None where no power was cut."""
    cells = found.cells.values()
    if not any(facts.cuts for facts in cells):
        return None
    judged = [each for facts in cells if (each := _judged(facts, cache)) is not None]
    known = {each.cell for each in judged}
    sound = tuple(each for each in judged if each.is_sound)
    unknown = [facts for facts in cells if facts.cuts and facts.id not in known]
    refused = [facts.id for facts in unknown if any(run.verdict.refused for run in facts.cuts)]
    left = [facts for facts in unknown if facts.id not in refused]
    not_asked = [facts.id for facts in left if any(run.measured for run in facts.cuts)]
    return CutsAnswer(
        cache=cache,
        sound=sound,
        groups=_Separation(found, sound).groups([each for each in judged if not each.is_sound]),
        refused=tuple(refused),
        of_others=tuple(facts.id for facts in left if facts.id not in not_asked),
        not_asked=tuple(not_asked),
        uncounted=tuple(
            facts.id
            for facts in cells
            if any(run.verdict.recoveries and run.verdict.recoveries.refused for run in facts.cuts)
        ),
        copies=without_copies(found),
    )


def _judged(facts: CellFacts, cache: str) -> CutCell | None:
    """Of the recordings that give a class; None where none does, or none was cut with this cache and nothing else was bad."""
    runs = [run for run in facts.cuts if run.measured is not None]
    cuts = speaking(runs, cache)
    return CutCell(facts.id, cuts, durability_class(facts.durability, cache)) if cuts.all.cuts else None


@dataclass(frozen=True)
class _Separation:
    """Finds what separates cells from the sound ones of their study."""

    found: Overview
    sound: tuple[CutCell, ...]

    @cached_property
    def levels(self) -> Levels:
        return {one.cell: one.levels for one in candidates_of([self.found])}

    @cached_property
    def names(self) -> Mapping[str, str]:
        return cell_names(self.found)

    @cached_property
    def unusual(self) -> Mapping[str, tuple[str, ...]]:
        return defaults_of(self.found).departures

    def groups(self, bad: Sequence[CutCell]) -> tuple[CutGroup, ...]:
        """Every bad cell in one group; those with corruption first."""
        separators = self._separators(bad)
        left, groups = list(bad), []
        while left:
            covered = {
                each: [one for one in left if self._level(one, each[0]) == each[1]] for each in separators
            }
            best = max(covered, key=lambda each: self._weight(each, len(covered[each])), default=None)
            if best is not None and not covered[best]:
                del separators[best]
                continue
            own = left if best is None else covered[best]
            groups.append(CutGroup("", _worst_first(own)) if best is None else self._group(best, own, bad))
            left = [one for one in left if one not in own]
        return tuple(sorted(groups, key=lambda group: not any(each.corrupt for each in group.bad)))

    def _separators(self, bad: Sequence[CutCell]) -> dict[Separating, None]:
        separators: dict[Separating, None] = {}
        for one in bad:
            for other in self.sound:
                differing = self._differing(one, other)
                names = [name for name in differing if name != TYPE] or differing
                if len(names) == 1 and (names[0] == TYPE or names[0] in self.unusual[one.cell]):
                    separators[names[0], self._level(one, names[0])] = None
        return separators

    def _weight(self, separating: Separating, bad: int) -> tuple[bool, int, int]:
        good = sum(self._level(each, separating[0]) == separating[1] for each in self.sound)
        return separating[0] != TYPE, bad - good, bad

    def _differing(self, one: CutCell, other: CutCell) -> list[str]:
        """Factors that two cells have at two levels; between two types what one alone has goes with the type."""
        first, second = self.levels[one.cell], self.levels[other.cell]
        of_one_type = first.get(TYPE) == second.get(TYPE)
        names = first.keys() | second.keys() if of_one_type else first.keys() & second.keys()
        return [name for name in sorted(names) if first.get(name) != second.get(name)]

    def _level(self, one: CutCell, name: str) -> Scalar | None:
        return self.levels[one.cell].get(name)

    def _group(self, separating: Separating, bad: Sequence[CutCell], all_bad: Sequence[CutCell]) -> CutGroup:
        name, level = separating
        otherwise = [each for each in self.sound if any(self._differing(one, each) == [name] for one in bad)]
        others = {repr(self._level(each, name)): self._level(each, name) for each in otherwise}
        only = next(iter(others.values())) if len(others) == 1 else None
        return CutGroup(
            name="" if name == TYPE else _separating_words(name, level),
            bad=_worst_first(self._within(each, separating) for each in bad),
            good=tuple(
                self._within(each, separating) for each in self.sound if self._level(each, name) == level
            ),
            otherwise=tuple(otherwise),
            otherwise_name=self._otherwise(name, only, otherwise, all_bad),
        )

    def _otherwise(
        self, name: str, only: Scalar | None, sound: Sequence[CutCell], all_bad: Sequence[CutCell]
    ) -> str:
        """The level of the sound cells; their names where a cell with that level is bad elsewhere, as the level says too much then."""
        if not isinstance(only, str) or name == TYPE or only == DEFAULT:
            return "otherwise"
        if any(self._level(each, name) == only for each in all_bad):
            return ", ".join(self.names[each.cell] for each in sound[:_NAMED]) + and_more(len(sound), _NAMED)
        return only

    def _within(self, one: CutCell, separating: Separating) -> CutCell:
        """The cell with the name that it has where what separates stands before it."""
        name, level = separating
        if name == TYPE:
            return replace(one, within=self.names[one.cell])
        own = _separating_words(name, level)
        return replace(one, within=" ".join(word for word in self.names[one.cell].split() if word != own))


def _separating_words(name: str, level: Scalar | None) -> str:
    """As the label of a cell has it: `full_page_writes=off`, `nobarrier`, `nodatacow`; of a type its name."""
    words = DEFAULT if level is None else level_text(name, level)
    if name == TYPE:
        return words
    short = short_name(name)
    if isinstance(level, bool):
        return short if level else f"no{short}"
    return f"{short}={words}"


def _worst_first(cells: Iterable[CutCell]) -> tuple[CutCell, ...]:
    return tuple(sorted(cells, key=lambda each: (-each.corrupt, -each.lost, -each.bounded)))
