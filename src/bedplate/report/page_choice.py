"""What a reader of a page chooses by, and what keeps two cells from being compared: factors and surroundings.

The page makes its verdicts itself, for any choice of cells. It needs what `compared` needs: by which factors
cells differ, in what surroundings they were measured, and the figures of every run that have no place elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bedplate.report.compared import candidates_of
from bedplate.report.factors import level_text, short_name
from bedplate.report.selection import STUDY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.model.levels import Scalar
    from bedplate.report.overview import Overview


def choice_document(overviews: Sequence[Overview]) -> tuple[list[dict[str, Any]], list[list[int]]]:
    """The factors in which some cells differ, and for each cell its level of each, -1 where it has none.

    A factor has its `name`, its `words` and the texts of its `levels`, each of them once.
    """
    candidates = candidates_of(overviews)
    names = dict.fromkeys(name for candidate in candidates for name in candidate.levels)
    factors: list[dict[str, Any]] = []
    places: list[list[int]] = [[] for _ in candidates]
    for name in sorted(names, key=lambda one: one != STUDY):
        found = [
            _typed(candidate.levels[name]) if name in candidate.levels else None for candidate in candidates
        ]
        if len(set(found)) < 2:
            continue
        levels = sorted({level for level in found if level is not None}, key=_rank)
        factors.append({"name": name, "words": short_name(name), "levels": _texts(name, levels)})
        for place, level in zip(places, found, strict=True):
            place.append(-1 if level is None else levels.index(level))
    return factors, places


def _typed(level: Scalar) -> tuple[str, Scalar]:
    """`True` and 1 are two levels, whatever Python says."""
    return type(level).__name__, level


def _rank(level: tuple[str, Scalar]) -> tuple[bool, float, str]:
    """Numbers by their size, before words by their letters."""
    _, value = level
    return (False, float(value), "") if isinstance(value, int | float) else (True, 0.0, value)


def _texts(name: str, levels: Sequence[tuple[str, Scalar]]) -> list[str]:
    texts = [level_text(name, level) for _, level in levels]
    return [
        text if texts.count(text) == 1 else f"{text} ({kind})"
        for text, (kind, _) in zip(texts, levels, strict=True)
    ]
