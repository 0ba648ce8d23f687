"""Figures of the parts of a TPC-H run: phases and tables of the load, queries of a pass, streams.

A query that was stopped at its limit is censored: it took more than that, and how much more is not known.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from bedplate.figures.counters import part_figures
from bedplate.figures.facts import free_space_figures, no_fact, number, size_figures, step_figure
from bedplate.figures.phased import no_phase, phase_deltas, phase_seconds
from bedplate.model.metrics import censored, figure
from bedplate.model.reason import because, joined
from bedplate.workloads.tpch.model import (
    LOAD,
    LOAD_PHASES,
    POWER,
    QUERIES,
    QUERY_NUMBERS,
    THROUGHPUT,
    query_phase,
    stream_phase,
)
from bedplate.workloads.tpch.power_and_throughput import power, throughput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bedplate.model.cell import Dataset
    from bedplate.model.figure import Figure
    from bedplate.model.reason import Reason
    from bedplate.model.visit import RunRecord, TimedItem, VisitRecord
    from bedplate.workloads.tpch.power_and_throughput import TpchFigure

_WITHOUT_SCALE = because("no-scale-factor", "the dataset has no scale factor")
_NOT_ENDED = because("not-ended", "it did not end")
_STREAMS_UNKNOWN = because("streams-unknown", "how many streams there were is not known")


def load_figures(record: RunRecord, visit: VisitRecord) -> Iterator[Figure]:
    """Time and counters of every phase, the time of every table, key and index, and the sums."""
    seconds = phase_seconds(record)
    for phase in LOAD_PHASES:
        yield figure("phase_s", seconds.get(phase), phase=phase, reason=no_phase(phase))
        yield from part_figures(phase_deltas(record, phase), phase=phase)
    items = {(item.phase, item.item): item for item in reversed(record.items)}
    for (phase, name), item in reversed(items.items()):
        yield figure("table_load_s", item.seconds, phase=phase, item=name, reason=_NOT_ENDED)
    lacking = [phase for phase in LOAD_PHASES if phase not in seconds]
    yield figure(
        "load_total_s",
        None if lacking else sum(seconds[phase] for phase in LOAD_PHASES),
        reason=because("phase-missing", f"without {', '.join(lacking)} it is not the whole load"),
    )
    yield from size_figures(record)
    yield step_figure(visit, "mkfs_s")
    yield step_figure(visit, "cluster_s")
    yield from free_space_figures(visit.free_space)


def power_figures(record: RunRecord, dataset: Dataset, *, pass_: int) -> Iterator[Figure]:
    """Time and counters of every query in the order they ran, their sum, and TPC-H's power."""
    items = _queries(record, QUERIES)
    for query, item in items.items():
        yield _query_figure(item, pass_=pass_)
        deltas = phase_deltas(record, query_phase(query))
        yield from part_figures(deltas, phase=QUERIES, item=item.item, pass_=pass_)
    counted = {query: seconds for query, item in items.items() if (seconds := item.limit_s or _time_s(item))}
    lacking = [str(query) for query in QUERY_NUMBERS if query not in counted]
    if not lacking and any(item.limit_s is not None for item in items.values()):
        # What was stopped would have taken longer, and so would all of them together.
        yield censored("queries_total_s", sum(counted.values()), pass_=pass_)
    else:
        yield figure(
            "queries_total_s",
            None if lacking else sum(counted.values()),
            pass_=pass_,
            reason=because("no-time-of-query", f"no time of query {', '.join(lacking)}"),
        )
    times = {query: seconds for query, item in items.items() if (seconds := _time_s(item))}
    yield figure("queries_completed", len(times), pass_=pass_)
    scale_factor = _scale_factor(dataset)
    if scale_factor is None:
        yield figure("tpch_power", None, pass_=pass_, reason=_WITHOUT_SCALE)
    else:
        yield _of_the_clause("tpch_power", power(times, scale_factor, _stopped(items)), pass_=pass_)


def throughput_figures(record: RunRecord, dataset: Dataset) -> Iterator[Figure]:
    """Time of every query of every stream, of all streams together, and TPC-H's throughput."""
    streams = _streams(record)
    lacking: list[Reason] = []
    completed = 0
    for stream in streams:
        items = _queries(record, stream_phase(stream))
        for item in items.values():
            yield _query_figure(item)
        stopped = _stopped(items)
        ended = {query for query, item in items.items() if _time_s(item)}
        without = [query for query in QUERY_NUMBERS if query not in ended and query not in stopped]
        completed += len(ended)
        for limit_s in sorted(set(stopped.values())):
            queries = ", ".join(str(query) for query in sorted(stopped) if stopped[query] == limit_s)
            words = f"{stream_phase(stream)} was stopped at the limit of {limit_s:g} s in query {queries}"
            lacking.append(because("stopped-at-limit", words, limit_s=limit_s))
        if without:
            words = f"{stream_phase(stream)} has no time of query {', '.join(map(str, without))}"
            lacking.append(because("no-time-of-query", words))
    interval_s = number(record, "streams_s")
    without_interval = no_fact("streams_s")
    yield figure("streams_s", interval_s, reason=without_interval)
    yield figure("queries_completed", completed)
    scale_factor = _scale_factor(dataset)
    if interval_s is None or interval_s <= 0:
        lacking.append(without_interval)
    if not streams:
        lacking.append(_STREAMS_UNKNOWN)
    if scale_factor is None:
        lacking.append(_WITHOUT_SCALE)
    if lacking or interval_s is None or scale_factor is None:
        yield figure("tpch_throughput", None, reason=joined(lacking))
    else:
        yield _of_the_clause("tpch_throughput", throughput(len(streams), interval_s, scale_factor))


def missing_parts(record: RunRecord) -> tuple[str, ...]:
    """What a completed run must have and the record lacks, has twice or left open, in words."""
    kind = record.spec.levels.text("kind")
    if kind == LOAD:
        found = Counter(phase.name for phase in record.phases)
        return tuple(_not_once({f"the phase {phase!r}": found[phase] for phase in LOAD_PHASES}))
    if kind == POWER:
        return tuple(_missing_queries(record, QUERIES, "query {}"))
    if kind == THROUGHPUT:
        streams = _streams(record)
        if not streams:
            return ("the streams of the run are not in the record",)
        return tuple(
            reason
            for stream in streams
            for reason in _missing_queries(
                record, stream_phase(stream), f"query {{}} of {stream_phase(stream)}"
            )
        )
    return (f"the kind of the run is {kind!r}; known are {LOAD}, {POWER}, {THROUGHPUT}",)


def _missing_queries(record: RunRecord, phase: str, named: str) -> Iterator[str]:
    items = [item for item in record.items if item.phase == phase]
    found = Counter(item.item for item in items)
    yield from _not_once({named.format(query): found[str(query)] for query in QUERY_NUMBERS})
    for item in items:
        if item.limit_s is None and not _time_s(item):
            yield f"{named.format(item.item)} has no time"


def _not_once(found: Mapping[str, int]) -> Iterator[str]:
    for name, count in found.items():
        if count != 1:
            yield f"{name} is not in the record" if count == 0 else f"{name} is in the record {count} times"


def _query_figure(item: TimedItem, *, pass_: int = 1) -> Figure:
    if item.limit_s is not None:
        return censored("query_s", item.limit_s, phase=item.phase, item=item.item, pass_=pass_)
    return figure(
        "query_s",
        _time_s(item),
        phase=item.phase,
        item=item.item,
        pass_=pass_,
        reason=because("no-time", f"the record has no time of it, but {item.seconds}"),
    )


def _queries(record: RunRecord, phase: str) -> dict[int, TimedItem]:
    """The queries of a phase in the order they ended; of one that is there twice the first."""
    names = {str(query): query for query in QUERY_NUMBERS}
    found: dict[int, TimedItem] = {}
    for item in record.items:
        if item.phase == phase and item.item in names:
            found.setdefault(names[item.item], item)
    return found


def _stopped(items: Mapping[int, TimedItem]) -> dict[int, float]:
    """The limits of those that were stopped at one, in seconds."""
    return {query: item.limit_s for query, item in items.items() if item.limit_s is not None}


def _time_s(item: TimedItem) -> float | None:
    """How long it took; None where it did not end, and for what is no length of time."""
    if item.limit_s is not None or item.seconds is None or item.seconds <= 0:
        return None
    return item.seconds


def _streams(record: RunRecord) -> range:
    """The streams that the plan asks for, from 1."""
    return range(1, 1 + (record.spec.levels.integer("streams") or 0))


def _scale_factor(dataset: Dataset) -> float | None:
    found = dataset.levels.number("scale_factor")
    return found if found is not None and found > 0 else None


def _of_the_clause(metric: str, found: TpchFigure, *, pass_: int = 1) -> Figure:
    why = None if found.value is not None else joined(found.reasons)
    return figure(metric, found.value, pass_=pass_, reason=why)
