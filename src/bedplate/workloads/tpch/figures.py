"""The figures of a TPC-H run: of its load, of one pass over the queries, or of several streams at once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import cached_property
from pathlib import Path
from statistics import fmean

from bedplate.figures.counters import Deltas, gauge_figures, machine_figures, part_figures
from bedplate.figures.facts import (
    deltas_of,
    free_space_figures,
    integer,
    no_fact,
    number,
    size_figures,
    step_figure,
)
from bedplate.figures.phased import PhasedFigures, PhasedRun, no_phase, phase_deltas, phase_seconds
from bedplate.figures.run import FigureMaker, Made
from bedplate.figures.samples import RunEvidence, RunInputs, shared_evidence, values_between
from bedplate.figures.server_log import Complaint
from bedplate.figures.transactions import checkpoint_windows, complaints_between
from bedplate.figures.validity import CHECKPOINTS_UNKNOWN, OF_EVERY_TIMED_RUN, SERVER_BROKE, not_completed
from bedplate.model.cell import Dataset
from bedplate.model.course import COURSE_FILE, filled
from bedplate.model.figure import STOPPED_AT, Figure, RunFigures, Window
from bedplate.model.metrics import censored, figure
from bedplate.model.plan import COLD
from bedplate.model.reason import Reason, because, distinct, joined
from bedplate.model.rules import Rule, RunRules
from bedplate.model.visit import Outcome, RunRecord, Sample, TimedItem, VisitRecord
from bedplate.units import KERNEL_SECTOR_BYTES, format_size, percent
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


def _missing_queries(record: RunRecord, phase: str, template: str) -> Iterator[str]:
    items = [item for item in record.items if item.phase == phase]
    found = Counter(item.item for item in items)
    yield from _not_once({template.format(query): found[str(query)] for query in QUERY_NUMBERS})
    for item in items:
        if item.limit_s is None and not _time_s(item):
            yield f"{template.format(item.item)} has no time"


def _not_once(times: Mapping[str, int]) -> Iterator[str]:
    for name, count in times.items():
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


def _of_the_clause(metric: str, score: TpchFigure, *, pass_: int = 1) -> Figure:
    why = None if score.value is not None else joined(score.reasons)
    return figure(metric, score.value, pass_=pass_, reason=why)


# A pass reads nearly every table. Compression by the file system may divide that by three, hardly by ten.
COLD_READ_SHARE_MIN = 0.1

_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class TpchEvidence(RunEvidence):
    """Of a run of TPC-H.

    `cold` says that the pass was to be cold, `made_cold` that it was made so. `read_bytes` came from the data
    device over the whole run. `stopped` counts the queries that were stopped at their limit. `missing` names
    phases, queries and streams that the record lacks or has twice.
    """

    cold: bool
    made_cold: bool
    read_bytes: float | None
    database_bytes: int | None
    stopped: int
    missing: tuple[str, ...]


def _not_cold(evidence: TpchEvidence) -> str | None:
    if not evidence.cold:
        return None
    if not evidence.made_cold:
        return "the record does not say that server and file system were started anew before this cold pass"
    read, database = evidence.read_bytes, evidence.database_bytes
    if read is None or database is None:
        return None
    # Queries that were stopped may have been stopped before they read.
    least = 0.0 if evidence.stopped else COLD_READ_SHARE_MIN * database
    if read > least:
        return None
    return (
        f"a cold pass read {format_size(int(read))} from the device, of a database of {format_size(database)}: "
        "it was in a cache"
    )


def _parts_missing(evidence: TpchEvidence) -> str | None:
    if not evidence.missing:
        return None
    more = len(evidence.missing) - _SHOWN
    return "; ".join(evidence.missing[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")


VALIDITY: RunRules[TpchEvidence] = RunRules(
    "TPC-H",
    (
        Rule(
            "not cold",
            f"a cold pass reads less than {percent(COLD_READ_SHARE_MIN)} of the database's size from the device, or nothing "
            "at all where queries were stopped, or its record does not say that it was made cold",
            "shared buffers, page cache, ARC or the host may have kept it; the limit is a convention of bedplate",
            _not_cold,
        ),
        Rule(
            "parts missing",
            "a phase, a query or a stream is not in the record, or is there twice",
            "TPC-H, clause 5.3: all 22 queries, each once in a stream",
            _parts_missing,
        ),
        *OF_EVERY_TIMED_RUN,
        SERVER_BROKE,
        CHECKPOINTS_UNKNOWN,
    ),
)

_DEVICE_READS = "device.read_sectors"


class TpchFigures(PhasedFigures):
    """Makes the figures of runs whose workload is `tpch`."""

    def of_phases(self, inputs: RunInputs, run_directory: Path) -> Made:  # noqa: ARG002 -- all is in the record
        """With the checkpoints, of one that failed too."""
        measured = _Measured(inputs)
        return Made(measured.all_figures(), {COURSE_FILE: measured.course(measured.block_size_bytes)})


class _Measured(PhasedRun):
    """One run of which something was measured."""

    def all_figures(self) -> RunFigures:
        if self.inputs.record.outcome is Outcome.COMPLETED:
            verdict = VALIDITY.judge(self._evidence())
            return self.run_figures(self._figures(), verdict, self._checkpoints or ())
        return self.run_figures((), not_completed(self.inputs), self._checkpoints or ())

    def _figures(self) -> Iterator[Figure]:
        record, visit = self.inputs.record, self.inputs.visit
        kind = record.spec.levels.text("kind")
        if kind == LOAD:
            yield from load_figures(record, visit)
        elif kind == POWER:
            yield from power_figures(record, visit.dataset, pass_=self._pass)
        elif kind == THROUGHPUT:
            yield from throughput_figures(record, visit.dataset)
        # Without the two readings every counter is missing, and every figure says so.
        deltas = deltas_of(record) or Deltas({}, {}, 0.0)
        yield from part_figures(deltas, pass_=self._pass)
        yield from machine_figures(deltas, self.block_size_bytes, pass_=self._pass)
        samples = values_between(self.inputs.samples, self.first.start_monotonic_s, self.last.end_monotonic_s)
        yield from gauge_figures(samples, pass_=self._pass)

    def _evidence(self) -> TpchEvidence:
        inputs, record = self.inputs, self.inputs.record
        return TpchEvidence(
            **shared_evidence(
                inputs, self.window.duration_s, windows=self._checkpoints, complaints=self._complaints()
            ),
            cold=record.spec.levels.text("pass") == COLD,
            made_cold=record.facts.get("made_cold") is True,
            read_bytes=_read_bytes(record.before, record.after),
            database_bytes=integer(record, "database_bytes"),
            stopped=sum(item.limit_s is not None for item in record.items),
            missing=missing_parts(record),
        )

    def _complaints(self) -> tuple[Complaint, ...]:
        if self.inputs.server_log is None:
            return ()
        return complaints_between(self.inputs.server_log, self.window.start_wall_s, self.window.end_wall_s)

    @cached_property
    def _checkpoints(self) -> tuple[Window, ...] | None:
        log = self.inputs.server_log
        if log is None:
            return None
        return checkpoint_windows(log, self.window.start_wall_s, 0.0, self.window.duration_s)

    @property
    def _pass(self) -> int:
        return self.inputs.record.spec.levels.integer("pass_number") or 1

    @property
    def block_size_bytes(self) -> int:
        found = integer(self.inputs.record, "block_size_bytes")
        return found if found is not None else self.inputs.visit.cell.build.block_size_bytes


def _read_bytes(before: Sample | None, after: Sample | None) -> float | None:
    """What the data device gave over the run; None where its counter was not read at both ends."""
    if before is None or after is None:
        return None
    ends = before.values.get(_DEVICE_READS), after.values.get(_DEVICE_READS)
    if ends[0] is None or ends[1] is None:
        return None
    return max(0.0, ends[1] - ends[0]) * KERNEL_SECTOR_BYTES


FIGURES: FigureMaker = TpchFigures()
