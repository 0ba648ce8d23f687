"""TPC-H's own numbers, power, throughput and the composite, as clause 5.4 of the specification defines them.

They are not audited and no TPC-H results: bedplate runs no refresh functions, prices nothing, and takes
scale factors that the specification does not know. `NOT_AUDITED` stands wherever one of them is shown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from statistics import fmean
from typing import TYPE_CHECKING

from bedplate.model.figure import STOPPED_AT
from bedplate.model.reason import Reason, because, distinct
from bedplate.model.template import filled

if TYPE_CHECKING:
    from collections.abc import Mapping

NOT_AUDITED = because("not-audited", "not an audited TPC-H result, and not comparable with published ones")
WITHOUT_REFRESH = because("without-refresh-functions", "without the refresh functions RF1 and RF2")
_COARSE = because("coarse-times", "queries under 1 s count to the nearest 0.1 s, which is coarse for them")

_QUERIES = 22
_SECONDS_PER_HOUR = 3600
# Table 11, clause 5.3.4: from this scale factor on, at least so many streams.
_STREAMS_MIN: Mapping[int, int] = {
    1: 2,
    10: 3,
    30: 4,
    100: 5,
    300: 6,
    1000: 7,
    3000: 8,
    10_000: 9,
    30_000: 10,
    100_000: 11,
}


@dataclass(frozen=True)
class TpchFigure:
    """A number in queries per hour x scale factor, to one digit; absent with `reasons`.

    `notes` say what sets it apart from the specification's own; they are shown with it.
    """

    value: float | None
    notes: tuple[Reason, ...]
    reasons: tuple[Reason, ...] = ()


def power(
    queries_s: Mapping[int, float],
    scale_factor: float,
    stopped_s: Mapping[int, float] | None = None,
) -> TpchFigure:
    """Power@Size (clause 5.4.1): 3600 x scale factor / the geometric mean of the timing intervals.

    `queries_s` are the intervals of stream 0 in seconds. Without those of RF1 and RF2 the mean is over 22 intervals
    in place of 24, and a note says so. Intervals are rounded to 0.1 s first (5.3.7.5), and none counts for less than a
    thousandth of the longest (5.4.1.4). Absent where a query has no time, as one that was stopped has none:
    `stopped_s` are the limits of those. ValueError for a time or a scale factor that is not positive.
    """
    _positive("scale factor", scale_factor)
    for seconds in queries_s.values():
        _positive("timing interval", seconds)
    notes = [NOT_AUDITED, WITHOUT_REFRESH]
    missing = [query for query in range(1, _QUERIES + 1) if query not in queries_s]
    if missing:
        limits = stopped_s or {}
        return TpchFigure(
            None, tuple(notes), tuple(_without_time(query, limits.get(query)) for query in missing)
        )
    queries = {query: rounded_interval_s(queries_s[query]) for query in range(1, _QUERIES + 1)}
    least = max(queries.values()) / 1000
    raised = [query for query, seconds in queries.items() if seconds < least]
    if raised:
        named = ", ".join(map(str, raised))
        words = f"raised to a thousandth of the longest query: {named}"
        notes.append(because("raised-to-a-thousandth", words))
    if any(queries_s[query] < 1 for query in queries):
        notes.append(_COARSE)
    intervals = [max(seconds, least) for seconds in queries.values()]
    mean = math.exp(fmean(math.log(seconds) for seconds in intervals))
    return TpchFigure(_to_one_digit(_SECONDS_PER_HOUR * scale_factor / mean), tuple(notes))


def _without_time(query: int, limit_s: float | None) -> Reason:
    if limit_s is None:
        return because("no-time-of-query", f"query {query} has no time", query=query)
    words = f"query {query} was {filled(STOPPED_AT, limit=f'{limit_s:g} s')}"
    return because("stopped-at-limit", words, query=query, limit_s=limit_s)


def throughput(streams: int, interval_s: float, scale_factor: float) -> TpchFigure:
    """Throughput@Size (clause 5.4.2): streams x 22 x 3600 / the measurement interval x scale factor.

    `interval_s` reaches from the first query of the first stream to the last row of the last (5.3.6).
    ValueError for anything that is not positive.
    """
    _positive("number of streams", streams)
    _positive("measurement interval", interval_s)
    _positive("scale factor", scale_factor)
    notes = [NOT_AUDITED, WITHOUT_REFRESH]
    least = max((least for scale, least in _STREAMS_MIN.items() if scale <= scale_factor), default=2)
    if streams < least:
        words = f"{streams} streams; the specification asks for {least} at this scale factor"
        notes.append(because("too-few-streams", words, streams=streams, least=least))
    value = streams * _QUERIES * _SECONDS_PER_HOUR / interval_s * scale_factor
    return TpchFigure(_to_one_digit(value), tuple(notes))


def composite(power_figure: TpchFigure, throughput_figure: TpchFigure) -> TpchFigure:
    """QphH@Size (clause 5.4.3): the geometric mean of power and throughput, with the notes of both."""
    notes = distinct((*power_figure.notes, *throughput_figure.notes))
    if power_figure.value is None or throughput_figure.value is None:
        return TpchFigure(None, notes, (*power_figure.reasons, *throughput_figure.reasons))
    return TpchFigure(_to_one_digit(math.sqrt(power_figure.value * throughput_figure.value)), notes)


def rounded_interval_s(seconds: float) -> float:
    """To the nearest 0.1 s, halves up, and never 0 (clause 5.3.7.5): 23.75 is 23.8, 0.01 is 0.1."""
    return max(_to_one_digit(seconds), 0.1)


def _to_one_digit(value: float) -> float:
    # Through the shortest decimal form: 23.75 is a half, whatever its binary fraction is.
    return float(Decimal(repr(float(value))).quantize(Decimal("0.1"), rounding=ROUND_HALF_UP))


def _positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} is {value}; it must be positive")
