"""Which figures of a run speak of the whole of it, and which of one of its phases or items."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.model.figure import Figure

# The phase of the figures of a whole run.
WHOLE = "measure"
# Made once for a visit, under the names of the phases in which it was prepared.
VISIT_FIGURES = ("mkfs_s", "cluster_s", "load_s")


def whole_figures(figures: Sequence[Figure]) -> Mapping[str, Figure]:
    """The figures of the whole run, by the name of the metric; of two of the same the first."""
    return {figure.metric: figure for figure in reversed(figures) if _is_whole(figure)}


def part_figures(figures: Sequence[Figure]) -> Mapping[tuple[str, str, str], Figure]:
    """The others, by (phase, item, metric), in the order in which they stand."""
    found: dict[tuple[str, str, str], Figure] = {}
    for figure in figures:
        if not _is_whole(figure):
            found.setdefault((figure.phase, figure.item, figure.metric), figure)
    return found


def _is_whole(figure: Figure) -> bool:
    return not figure.item and (figure.phase == WHOLE or figure.metric in VISIT_FIGURES)
