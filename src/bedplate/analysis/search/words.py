"""The cells of a search in words that terminal, page and export share."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from bedplate.analysis.wording import number

if TYPE_CHECKING:
    from bedplate.analysis.search.searched import Predicted, Searched, SearchedCell


def shown_first(found: Searched) -> tuple[SearchedCell, ...]:
    """The cells that may win or were visited: those of the last proof, then the best chance first.

    A cell that was never visited is known so little that its chance can exceed that of the proved ones.
    """
    shown = [cell for cell in found.cells if cell.closed is None or cell.visits]
    return tuple(sorted(shown, key=lambda cell: (cell.proved is None, -cell.best, -cell.near, -cell.visits)))


def predicted_words(predicted: Predicted | None) -> tuple[str, str]:
    """`1,290` and `1,250–1,330`; two empty texts before the first believed figure."""
    if predicted is None:
        return "", ""
    scatter = (predicted.high - predicted.low) / 2 or None
    value, low, high = (number(each, scatter) for each in (predicted.value, predicted.low, predicted.high))
    return value, f"{low}–{high}"


def accepted_words(found: Searched) -> str:
    """How many runs in doubt are believed, as their doubts were accepted; empty where none is."""
    added = found.counted.marks[len(found.overview.marks) :]
    return " ".join(added)


def doubted_words(found: Searched) -> tuple[str, ...]:
    """How many completed runs are not believed, then each doubt once with how many runs have it and one's words; empty where all are."""
    if not found.doubted:
        return ()
    doubts = [reason for m in found.doubted for reason in m.reasons]
    counts = Counter(reason.code for reason in doubts)
    one_of = {reason.code: reason.sentence for reason in reversed(doubts)}
    of = f"of {len(found.runs)} run{'s' if len(found.runs) > 1 else ''}"
    return (
        f"{len(found.doubted)} {of}, which are not believed: the model has no figure of them",
        *(f"{count} {of}, such as: {one_of[code]}" for code, count in counts.most_common()),
    )


def left_out_words(found: Searched) -> tuple[str, ...]:
    """Why cells are not visited, each reason once with how many cells it holds for."""
    reasons = Counter(cell.closed.sentence for cell in found.cells if cell.closed is not None)
    return tuple(
        f"{count} cell{'s' if count > 1 else ''} left out: {sentence}."
        for sentence, count in reasons.most_common()
    )
