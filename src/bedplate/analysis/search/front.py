"""Several runs of one search as a front: what the cell that one run names comes to in the others. Never a sum.

Figures are those of proofs alone: in the proof of a later run the cells that earlier ones named take part.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from bedplate.analysis.comparison.sentences import figure_words
from bedplate.analysis.search.sentences import name
from bedplate.statistics.comparison import Comparison, compare
from bedplate.statistics.summary import Observation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bedplate.analysis.search.searched import Searched


def front_lines(every: Sequence[Searched]) -> Iterator[str]:
    """Nothing of a search of one run."""
    if len(every) < 2:
        return
    named = [each.end.cells[0] for each in every if each.end and each.end.cells]
    cells = list(dict.fromkeys(named))
    if len(cells) == 1:
        yield f"  front        one cell: {name(every[0], cells[0])} is named for every run"
        return
    yield f"  front        {len(cells)} cells, each named for a run; which is better depends on what each run is worth to you"
    for first, second in combinations(cells, 2):
        for found in every:
            comparison = beside_each_other(every, found, first, second)
            yield f"  {found.run[1]}: {name(found, second)} beside {name(found, first)}: {figure_words(comparison)}"


def beside_each_other(every: Sequence[Searched], found: Searched, first: int, second: int) -> Comparison:
    """Two cells in one run, by the blocks of all proofs that have both."""
    proofs = {block.number for each in every for block in each.record.blocks if block.proof}
    runs: dict[int, dict[int, Observation]] = {first: {}, second: {}}
    for each in found.tried:
        if each.cell in runs and each.block in proofs and each.value is not None:
            runs[each.cell][each.block] = Observation(each.value)
    return compare(runs[first], runs[second], found.metric, margin=found.question.margin)
