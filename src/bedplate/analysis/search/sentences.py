"""What a search says of itself, in sentences that terminal and log share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.statistics.search.course import Ending, SearchEnd
from bedplate.units import format_duration, percent

if TYPE_CHECKING:
    from bedplate.analysis.search.searched import Searched


def time_words(found: Searched) -> str:
    """`1 h 20 min of 4 h`; of all nodes together where there are several."""
    nodes = found.record.at_once
    each = f" on {nodes} nodes" if nodes > 1 else ""
    return f"{format_duration(found.spent_s)} of {format_duration(found.budget_s)}{each}"


def progress_words(found: Searched) -> str:
    """Where it is, in one line."""
    end = found.end
    if end is not None:
        return f"search: {end.ending}; {time_words(found)}"
    best = found.lead
    if best is None:
        return f"search: no figure yet; {time_words(found)}"
    return (
        f"search: {name(found, best.leader)} leads, within {percent(found.question.margin)} of the best with a chance of "
        f"{chance_words(best.chance)}; {time_words(found)}"
    )


def name(found: Searched, number: int) -> str:
    """What a cell is called."""
    return found.labels[found.id_of(number)].full


def chance_words(chance: float) -> str:
    """A chance of draws, of which none is certain: `99 %`, `over 99 %`."""
    if chance > 0.995:
        return "over 99 %"
    return "below 1 %" if chance < 0.005 else percent(chance)


def end_words(found: Searched, end: SearchEnd) -> str:
    """How it ended, in a sentence. Never a bare winner."""
    margin = percent(found.question.margin)
    if not end.cells:
        return "Not known: no cell could be measured."
    first = name(found, end.cells[0])
    if end.ending is Ending.THIS:
        return f"This one: {first}. No rival of its proof may be better by more than {margin}."
    if end.ending is Ending.ONE_OF:
        return f"One of these {len(end.cells)}, which cannot be told apart within {margin}."
    if end.proof is not None and end.proof.unsure:
        worse = " and ".join(found.record.not_worse[at].metric for at in end.proof.unsure)
        return f"Not known: {first} leads, and its proof leaves open whether it is worse in {worse} than was asked."
    return (
        f"Not known: the budget ended before a proof. The best guess is {first}, within {margin} of the best with a chance of "
        f"{chance_words(end.chance)} by the model."
    )
