"""The figures of single runs that verdicts need and that stand nowhere else on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bedplate.analysis.counted_share import counted_share
from bedplate.analysis.rounding import rounded
from bedplate.model.figure import Status
from bedplate.page.courses import packed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.analysis.overview import Overview
    from bedplate.analysis.part_summaries import PagePart
    from bedplate.model.figure import Figure

_FIGURE_DIGITS = 6


def observations_document(
    overviews: Sequence[Overview], metrics: Sequence[str], parts: Sequence[PagePart]
) -> dict[str, Any]:
    """The figures of single runs that stand nowhere else on the page: limits of whole runs, and all of parts.

    `limits` are [measurement, metric, limit] of what was stopped there; `within` is packed: for each part and metric
    the measurements, their values, null where there is none, and their limits, null where none was met. `counted` are
    [measurement, metric, part, k, n] of shares that are k of n.
    """
    measurements = [m for found in overviews for m in found.measurements]
    metric_of = {name: index for index, name in enumerate(metrics)}
    part_of = {(part.phase, part.item): index for index, part in enumerate(parts)}
    limits: list[list[float]] = []
    counted: list[list[int]] = []
    columns: dict[tuple[int, int], list[list[Any]]] = {}
    for number, m in enumerate(measurements):
        for name, figure in m.by_metric.items():
            limit = _limit(figure)
            if limit is not None and name in metric_of:
                limits.append([number, metric_of[name], limit])
            if (of := counted_share(m, name)) is not None and name in metric_of:
                counted.append([number, metric_of[name], 0, *of])
        for (phase, item, name), figure in m.parts.items():
            if name in metric_of and (phase, item) in part_of and figure.status is not Status.ABSENT:
                rows = columns.setdefault((part_of[phase, item], metric_of[name]), [[], [], []])
                rows[0].append(number)
                rows[1].append(rounded(m.value(name, phase, item), _FIGURE_DIGITS))
                rows[2].append(_limit(figure))
                if (of := counted_share(m, name, phase, item)) is not None:
                    counted.append([number, metric_of[name], part_of[phase, item], *of])
    within = [[part, metric, *rows] for (part, metric), rows in columns.items()]
    return {"limits": limits, "within": packed(within) if within else None, "counted": counted}


def _limit(figure: Figure) -> float | None:
    return rounded(figure.limit, _FIGURE_DIGITS) if figure.status is Status.CENSORED else None
