"""What studies of pairs and searches say in place of which cell to take.

Of pairs the change was asked about. Of a search the best of chosen means would be too good: its answer is the model's and its proof's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.analysis.headline.placing import DISPENSABLE, HeadlineLine
from bedplate.analysis.headline.set_up import set_up
from bedplate.analysis.paired.looked import looked
from bedplate.analysis.paired.sentences import answer_lines as answer_of_pairs
from bedplate.analysis.search.answer import answer_lines
from bedplate.analysis.search.marks import is_chosen
from bedplate.analysis.search.searched import search_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.analysis.overview import Overview
    from bedplate.analysis.search.searched import Searched

_NO_SEARCH = "The answer of a search is of all its cells; these are some of them, or no figure is there yet."
# The page's column of heads is narrow.
_HEADS = {"mattered": "matters"}
# What makes a cell stands below its name, further in.
_BELOW_A_CELL = "    "
# What is not here may go where there is room for few lines.
_RANKS = {"Search": 1, "Refuted": 1, "Gain": 1, "Proof": 2, "Doubted": 2, "Outside": 3, "Matters": 3}


def instead_lines(found: Overview) -> tuple[HeadlineLine, ...]:
    """Its answer; empty of any other study, and of some cells of a study of pairs."""
    if is_chosen(found.study):
        search = search_of(found)
        return (HeadlineLine("Search", _NO_SEARCH, 0),) if search is None else tuple(_of_search(search))
    pairs = looked(found)
    if pairs is None:
        return ()
    first, *rest = answer_of_pairs(pairs)
    return (HeadlineLine("Change", first, 0), *(HeadlineLine("", line.strip(), 1) for line in rest))


def _of_search(found: Searched) -> Iterator[HeadlineLine]:
    """The lines of `advise`, each behind its head."""
    first, *rest = answer_lines(found)
    yield HeadlineLine("Search", first, 0)
    commands = _commands(found)
    head = "Search"
    for line in rest:
        own, blanks, text = line.strip().partition("  ")
        if line.startswith(_BELOW_A_CELL) or not blanks:
            own, text = head, line.strip()
        own = _HEADS.get(own, own).capitalize()
        rank = _RANKS.get(own, DISPENSABLE)
        text = text.strip()
        yield HeadlineLine("" if own == head else own, text, rank, copied=text in commands)
        head = own


def _commands(found: Searched) -> frozenset[str]:
    """Those that make the cells that it names."""
    cells = () if found.end is None else map(found.id_of, found.end.cells)
    return frozenset(
        command
        for cell in cells
        if cell in found.overview.cells
        for command in set_up(found.overview, cell).commands
    )
