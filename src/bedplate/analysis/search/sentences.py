"""What a search says of itself, in sentences that terminal and log share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bedplate.statistics.search.course import Ending, SearchEnd
from bedplate.units import format_count, format_duration, percent

if TYPE_CHECKING:
    from bedplate.analysis.search.searched import Searched


def time_words(found: Searched) -> str:
    """`1 h 20 min of 4 h`; of all nodes together where there are several."""
    nodes = found.record.at_once
    each = f" on {nodes} nodes" if nodes > 1 else ""
    return f"{format_duration(found.spent_s)} of {format_duration(found.budget_s)}{each}"


def progress_words(found: Searched) -> str:
    """Where it is, in one line."""
    end, of = found.end, run_words(found)
    doubted = (
        f"{len(found.doubted)} of {format_count(len(found.runs), 'run')} not believed; "
        if found.doubted
        else ""
    )
    if end is not None:
        return f"search: {end.ending}{of}; {doubted}{time_words(found)}"
    best = found.lead
    if best is None:
        return f"search: no figure yet{of}; {doubted}{time_words(found)}"
    return (
        f"search: {name(found, best.leader)} leads{of}, within {percent(found.question.margin)} of the best with a chance of "
        f"{chance_words(best.chance)}; {doubted}{time_words(found)}"
    )


def run_words(found: Searched) -> str:
    """` in read-write`, where several runs are searched for."""
    return f" in {found.run[1]}" if len(found.record.runs) > 1 else ""


def progress_lines(found: Searched) -> tuple[str, ...]:
    """Where it is, each line behind its name."""
    proofs = max((block.proof for block in found.record.blocks), default=0)
    blocks = len(found.record.blocks)
    under_way = f", {format_count(found.pending, 'visit')} of them left" if found.pending else ""
    left_s = max(found.budget_s - found.spent_s, 0.0)
    lines = [
        progress_words(found).replace("search: ", "search       ", 1),
        f"blocks       {blocks}{f', in proof {proofs}' if proofs and found.end is None else ''}{under_way}",
    ]
    if found.end is None:
        lines.append(f"left         {format_duration(left_s)} of its budget at most")
    return tuple(lines)


def progress_document(found: Searched) -> dict[str, Any]:
    """The same for a program."""
    end, best = found.end, found.lead
    return {
        "best": found.record.best,
        "runs": list(found.record.runs),
        "run": found.run[1],
        "budget_s": found.budget_s,
        "spent_s": found.spent_s,
        "blocks": len(found.record.blocks),
        "proof": max((block.proof for block in found.record.blocks), default=0),
        "pending": found.pending,
        "leader": None if best is None else found.id_of(best.leader),
        "chance": None if best is None else best.chance,
        "ending": None if end is None else str(end.ending),
        "cells": [] if end is None else [found.id_of(number) for number in end.cells],
    }


def name(found: Searched, number: int) -> str:
    """What a cell is called."""
    return found.labels[found.id_of(number)].full


def bounded_words(found: Searched) -> str:
    """The figures in which a named cell may not be worse: `latency_ms_p99 or load_s`."""
    return " or ".join(each.metric for each in found.record.not_worse)


def chance_words(chance: float) -> str:
    """A chance of draws, of which none is certain: `99 %`, `over 99 %`."""
    if chance >= 0.995:
        return "over 99 %"
    return "below 1 %" if chance <= 0.005 else percent(chance)


def end_words(found: Searched, end: SearchEnd) -> str:
    """How it ended, in a sentence. Never a bare winner."""
    margin = percent(found.question.margin)
    if found.failed_alike:
        return f"Not known: {'; '.join(found.failed_alike)}."
    if not end.cells:
        nothing = "none of its runs is believed" if found.doubted else "no cell could be measured"
        return f"Not known: {nothing}."
    first = name(found, end.cells[0])
    if end.ending is Ending.THIS:
        return f"This one: {first}. No rival of its proof may be better by more than {margin}."
    if end.ending is Ending.ONE_OF:
        doubtful = () if end.proof is None else end.proof.doubtful
        if not doubtful:
            return f"One of these {len(end.cells)}, which cannot be told apart within {margin}."
        return (
            f"One of these {len(end.cells)}, which cannot be told apart within {margin}. Of {len(doubtful)} of them the proof leaves open whether "
            f"they are worse in {bounded_words(found)} than was allowed."
        )
    if end.proof is not None and end.proof.unsure and end.proof.leader == end.cells[0]:
        worse = " and ".join(found.record.not_worse[at].metric for at in end.proof.unsure)
        return f"Not known: {first} leads, and its proof leaves open whether it is worse in {worse} than was allowed."
    proof = (
        "its last proof leaves too much open" if end.proof is not None else "there was no time for a proof"
    )
    unseen = "" if any(each.cell == end.cells[0] for each in found.tried) else ", which was never visited,"
    return (
        f"Not known: the budget ended, and {proof}. The best guess is {first}{unseen or ','} within {margin} of the best with a chance of "
        f"{chance_words(end.chance)} by the model."
    )
