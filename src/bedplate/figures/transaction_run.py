"""A run of transactions: its raw record, its window, and the figures that every client of this kind has.

The client logs its transactions, `drivers/pgbench_log.c` condenses them, and a summary of the client's own stands beside:
the figures come from the log, and are held against the summary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import polars as pl

from bedplate.figures.counters import (
    Deltas,
    Divisors,
    FuzzyLog,
    ServerCounters,
    counter_figures,
    gauge_figures,
    server_counters_of,
)
from bedplate.figures.courses import LatencyLog, Stretch, make_course, make_latencies, read_latency_log
from bedplate.figures.facts import (
    deltas_of,
    free_space_figures,
    idle_cpu_share_of,
    integer,
    number,
    size_figures,
    step_figure,
)
from bedplate.figures.run import Made, run_figures
from bedplate.figures.samples import (
    COURSE,
    Attempts,
    MeasuredWindow,
    RunEvidence,
    RunInputs,
    phase_named,
    read_inputs,
    shared_evidence,
    values_between,
)
from bedplate.figures.server_log import Complaint, server_log_of
from bedplate.figures.transactions import (
    SPEEDS_SHARE_MIN,
    STRETCH_S_MIN,
    TwoSpeeds,
    checkpoint_figures,
    checkpoint_windows,
    complaints_between,
    complete_timed,
    outcome_count,
    steadiness_figures,
    tps_of_seconds,
    transaction_count,
    transaction_figures,
    trend_share,
    two_speeds,
)
from bedplate.figures.validity import (
    CACHES_DROPPED,
    CHECKPOINTS_UNKNOWN,
    CLOCK_STEPPED,
    COURSE_INCOMPLETE,
    COURSE_MISSING,
    DEVICE_LATE,
    KERNEL_WARNING,
    OTHERS_AT_WORK,
    SERVER_BROKE,
    THROTTLED_MACHINE,
    not_completed,
    unmeasured,
)
from bedplate.model.course import COURSE_FILE, LATENCY_FILE
from bedplate.model.figure import Figure, RunFigures, Window
from bedplate.model.metrics import figure
from bedplate.model.reason import Reason
from bedplate.model.rules import INPUT_UNREADABLE, Rule, Spoken, spoken
from bedplate.model.visit import Outcome, Phase, RunRecord, Validity
from bedplate.units import percent

WARMUP_LOG = "warmup.bin"
MEASURE_LOG = "measure.bin"

# Raw and bulky: everything in them is in the figures and the Parquet files.
BULKY = (COURSE, WARMUP_LOG, MEASURE_LOG)

_DEFAULT_BLOCK_BYTES = 8192


class ClientSummary(Protocol):
    """What a client itself says of its run when it ends; `duration_s` begins when its connections stand."""

    @property
    def transactions(self) -> int:
        """Transactions that it counted."""

    @property
    def duration_s(self) -> float | None:
        """Seconds in which transactions ran; None where it does not say."""

    @property
    def initial_connection_ms(self) -> float | None:
        """What connecting took before; None where that is not known."""


@dataclass(frozen=True, kw_only=True)
class TransactionInputs(RunInputs):
    """Everything that its figures are made from."""

    warmup_log: LatencyLog | None
    measure_log: LatencyLog | None
    summary: ClientSummary | None


class TransactionFigures:
    """Makes the figures of runs as the `run_type` of their workload; `parse` reads the summary in a folder of the client's outputs."""

    bulky: tuple[str, ...] = BULKY

    def __init__(self, run_type: type[TransactionRun], parse: Callable[[Path], ClientSummary]) -> None:
        self._measured, self._parse = run_type, parse

    def make(self, visit_directory: Path, run_directory: Path, record: RunRecord) -> Made:
        """Read the raw record of a run and make everything of it."""
        inputs = read_inputs(visit_directory, run_directory, record)
        attempts = Attempts(inputs.problems)
        phases = {phase.name for phase in record.phases}

        def log(phase: str, name: str) -> LatencyLog | None:
            return attempts.read(lambda: read_latency_log(run_directory / name)) if phase in phases else None

        own = {
            "warmup_log": log("warmup", WARMUP_LOG),
            "measure_log": log("measure", MEASURE_LOG),
            "summary": attempts.read(lambda: self._parse(run_directory / "logs"))
            if "measure" in phases
            else None,
        }
        all_of_it = TransactionInputs(**{**vars(inputs), **own, "problems": tuple(attempts.problems)})
        return self._measured.figures_of(all_of_it)


def measured_window(phase: Phase, summary: ClientSummary | None) -> MeasuredWindow:
    """The window in which transactions ran.

    The phase also holds the client's start, its connecting, and the reading of the log's tail. The client
    knows better how long it ran after its connections stood. That is taken where it
    fits into the phase, else the whole phase. The length is of the monotonic clock either way, so
    that a stepped wall clock cannot stretch it.
    """
    length_s = phase.end_monotonic_s - phase.start_monotonic_s
    ran_s = summary.duration_s if summary is not None else None
    if ran_s is None or not 0 < ran_s <= length_s:
        return MeasuredWindow(phase.start_wall_s, phase.start_wall_s + length_s)
    connecting_ms = (summary.initial_connection_ms or 0.0) if summary is not None else 0.0
    start_s = phase.start_wall_s + min(connecting_ms / 1000, length_s - ran_s)
    return MeasuredWindow(start_s, start_s + ran_s)


@dataclass(frozen=True)
class TransactionRun:
    """One run that was measured, its inputs placed on one clock. `threads_fact` names how many threads the client has."""

    inputs: TransactionInputs
    phase: Phase
    warmup: Phase | None
    window: MeasuredWindow
    windows: tuple[Window, ...] | None

    threads_fact: ClassVar[str]

    @classmethod
    def figures_of(cls, inputs: TransactionInputs) -> Made:
        """Everything of a run; of one that did not come so far the reasons."""
        measure = phase_named(inputs.record.phases, "measure")
        if measure is None:
            warmup_s = _length_s(phase_named(inputs.record.phases, "warmup"))
            return Made(unmeasured(inputs, warmup_s=warmup_s), {})
        return cls._of(inputs, measure)._make()

    def read_only(self) -> bool:
        """Whether the run only read."""
        raise NotImplementedError

    def part_figures(self) -> Iterator[Figure]:
        """Those of parts of the run; none where it has none."""
        return iter(())

    def verdict(self, course: pl.DataFrame) -> tuple[Validity, tuple[Reason, ...]]:
        """Whether it may be believed, by the rules of its workload."""
        raise NotImplementedError

    @classmethod
    def _of(cls, inputs: TransactionInputs, phase: Phase) -> Self:
        warmup = phase_named(inputs.record.phases, "warmup")
        window = measured_window(phase, inputs.summary)
        # Without a server there are no checkpoints; one whose log cannot be read may have had some.
        windows: tuple[Window, ...] | None = None if server_log_of(inputs.visit.cell.build.engine) else ()
        if inputs.server_log is not None:
            from_s = 0.0 if warmup is None else warmup.start_wall_s - window.start_wall_s
            windows = checkpoint_windows(inputs.server_log, window.start_wall_s, from_s, window.duration_s)
        return cls(inputs, phase, warmup, window, windows)

    def _make(self) -> Made:
        course = make_course(
            self._stretches(),
            self.window,
            self.phase,
            self.inputs.samples,
            self._block_size_bytes or _DEFAULT_BLOCK_BYTES,
        )
        latencies = make_latencies(self._stretches(), self.window)
        return Made(self._run_figures(course), {COURSE_FILE: course, LATENCY_FILE: latencies})

    def _run_figures(self, course: pl.DataFrame) -> RunFigures:
        record = self.inputs.record
        if record.outcome is Outcome.COMPLETED:
            verdict, figures = self.verdict(course), tuple(self._figures())
        else:
            verdict, figures = not_completed(self.inputs), ()
        return run_figures(
            record,
            verdict,
            figures,
            start_wall_s=self.window.start_wall_s,
            duration_s=self.window.duration_s,
            warmup_s=_length_s(self.warmup),
            windows=self.windows or (),
        )

    def _figures(self) -> Iterator[Figure]:
        log = self.inputs.measure_log
        yield from transaction_figures(
            log, self.window, read_only=self._only_reads, rate_limited="rate_tps" in self.inputs.record.facts
        )
        yield from self.part_figures()
        yield from steadiness_figures(log, self.window, self.windows, self._warmup_tps())
        if self._server is None:
            # Others' checkpoints are fuzzy, and cannot be counted.
            yield from checkpoint_figures(self.windows, self.window.duration_s)
        # Without the two readings every counter is missing, and every figure says so.
        deltas = deltas_of(self.inputs.record) or Deltas({}, {}, 0.0)
        yield from counter_figures(deltas, self._divisors(), self._server)
        yield from gauge_figures(self._measured_samples)
        for metric, phase in (("mkfs_s", "prepare"), ("cluster_s", "prepare"), ("load_s", "load")):
            yield step_figure(self.inputs.visit, metric, phase=phase)
        yield figure("duration_s", self.window.duration_s)
        yield from size_figures(self.inputs.record)
        yield from free_space_figures(self.inputs.visit.free_space)

    def shared_evidence(self, course: pl.DataFrame) -> dict[str, Any]:
        """The fields of TransactionEvidence by name."""
        inputs, log, summary = self.inputs, self.inputs.measure_log, self.inputs.summary
        reads_per_s, reads_trend = _reads(course)
        return {
            **shared_evidence(
                inputs, self.window.duration_s, windows=self.windows, complaints=self._complaints()
            ),
            "read_only": self._only_reads,
            "canary": inputs.visit.key.canary,
            "asked_duration_s": number(inputs.record, "duration_s_asked"),
            "client_cpu_s": number(inputs.record, "measure_client_cpu_s"),
            "client_threads": self._threads,
            "cpu_count": integer(inputs.record, "cpu_count") or self._threads,
            "tps_trend": None if log is None else trend_share(tps_of_seconds(log, self.window)),
            "reads_per_transaction_trend": reads_trend,
            "device_reads_per_s": reads_per_s,
            "log_complete": None if log is None else log.complete,
            "log_damage": self._log_damage(),
            "transactions_in_log": None if log is None else transaction_count(log),
            "transactions_by_client": None if summary is None else summary.transactions,
            "transactions_failed": None if log is None else outcome_count(log),
            "transactions_outside_window": self._outside_window(),
            "phase_s": self.phase.end_monotonic_s - self.phase.start_monotonic_s,
            "client_s": _client_s(summary),
            "clients": integer(inputs.record, "clients"),
            "rate_limited": "rate_tps" in inputs.record.facts,
            "idle_cpu_share": idle_cpu_share_of(inputs.record),
            "fuzzy": None
            if self._server is None
            else self._server.fuzzy(deltas_of(inputs.record), self._measured_samples),
            "two_speeds": None if log is None else two_speeds(tps_of_seconds(log, self.window)),
        }

    def _complaints(self) -> tuple[Complaint, ...]:
        if self.inputs.server_log is None:
            return ()
        start_s = (self.warmup or self.phase).start_wall_s
        return complaints_between(self.inputs.server_log, start_s, self.phase.end_wall_s)

    def _outside_window(self) -> int | None:
        log = self.inputs.measure_log
        if log is None:
            return None
        # The second in which the phase began and the one in which it ended belong to it.
        inside = log.select(first_second=int(self.phase.start_wall_s), last_second=int(self.phase.end_wall_s))
        return transaction_count(log) - transaction_count(inside)

    def _log_damage(self) -> str | None:
        log = self.inputs.measure_log
        if log is None or log.trailer is None:
            return None
        wrong = log.trailer.malformed_lines + log.trailer.truncated_lines
        if not wrong:
            return None
        return f"{wrong} lines of the transaction log were not understood, the first: {log.trailer.first_malformed!r}"

    def _stretches(self) -> tuple[Stretch, ...]:
        found = [Stretch("measure", self.window, self.inputs.measure_log)]
        if self.warmup is not None:
            window = MeasuredWindow(
                self.warmup.start_wall_s, self.warmup.start_wall_s + (_length_s(self.warmup) or 0.0)
            )
            found.insert(0, Stretch("warmup", window, self.inputs.warmup_log))
        return tuple(found)

    def _warmup_tps(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        stretch = self._stretches()[0]
        if stretch.phase != "warmup" or stretch.log is None:
            return np.zeros(0)
        return tps_of_seconds(stretch.log, stretch.window)

    def _divisors(self) -> Divisors:
        log = self.inputs.measure_log
        return Divisors(
            transactions=None if log is None else transaction_count(log),
            duration_s=self.window.duration_s,
            client_cpu_s=number(self.inputs.record, "measure_client_cpu_s"),
            client_threads=self._threads,
            block_size_bytes=self._block_size_bytes,
            client_sleeps=number(self.inputs.record, "measure_client_sleeps"),
        )

    @cached_property
    def _server(self) -> ServerCounters | None:
        return server_counters_of(self.inputs.visit.cell.build.engine)

    @cached_property
    def _measured_samples(self) -> tuple[Mapping[str, float], ...]:
        """The samples of the measured window."""
        return values_between(self.inputs.samples, self.phase.start_monotonic_s, self.phase.end_monotonic_s)

    @cached_property
    def _only_reads(self) -> bool:
        return self.read_only()

    @property
    def _threads(self) -> int:
        return integer(self.inputs.record, self.threads_fact) or 1

    @property
    def _block_size_bytes(self) -> int | None:
        return integer(self.inputs.record, "block_size_bytes")


def _reads(course: pl.DataFrame) -> tuple[float | None, float | None]:
    """Device reads a second, and the trend of reads per transaction, over the measured seconds."""
    measured = course.filter(course["phase"] == "measure")
    reads = measured["device_reads_per_s"].to_numpy().astype(np.float64)
    tps = measured["tps"].to_numpy().astype(np.float64)
    if np.isnan(reads).all():
        return None, None
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(tps > 0, reads / tps, np.nan)
    return float(np.nanmean(reads)), trend_share(each)


def _client_s(summary: ClientSummary | None) -> float | None:
    if summary is None or summary.duration_s is None:
        return None
    return summary.duration_s + (summary.initial_connection_ms or 0.0) / 1000


def _length_s(phase: Phase | None) -> float | None:
    return None if phase is None else phase.end_monotonic_s - phase.start_monotonic_s


CLIENT_CPU_SHARE_MAX = 0.8
CLIMB_SHARE_MAX = 0.10
READS_FALL_SHARE_MIN = 0.10
DEVICE_READS_PER_S_MIN = 1.0
SHORT_SHARE_MAX = 0.01
IDLE_SHARE_MAX = 0.10
TIME_DIFFERENCE_MAX_S = 1.0
TIME_DIFFERENCE_SHARE_MAX = 0.01
AGE_GROWTH_SHARE_MAX = 0.10


@dataclass(frozen=True, kw_only=True)
class TransactionEvidence(RunEvidence):
    """Of a run of a client that logs its transactions; `client` is what that is called.

    `reads_per_transaction_trend` and `tps_trend` are growth over the window as a share of the mean. `log_damage` names lines that
    the log's reader did not understand. `phase_s` is the phase on the monotonic clock, `client_s` how long
    the client says that it connected and ran. `fuzzy` is None of a server that logs its checkpoints.
    """

    read_only: bool
    canary: bool
    asked_duration_s: float | None
    client_cpu_s: float | None
    client_threads: int
    cpu_count: int
    tps_trend: float | None
    reads_per_transaction_trend: float | None
    device_reads_per_s: float | None
    log_complete: bool | None
    log_damage: str | None
    transactions_in_log: int | None
    transactions_by_client: int | None
    transactions_failed: int | None
    transactions_outside_window: int | None
    phase_s: float
    client_s: float | None
    two_speeds: TwoSpeeds | None = None
    clients: int | None = None
    rate_limited: bool = False
    idle_cpu_share: float | None = None
    fuzzy: FuzzyLog | None = None
    client: str = "the client"


def _without_checkpoint(evidence: TransactionEvidence) -> str | None:
    # A canary is short on purpose: it is compared with itself only.
    windows = evidence.windows
    if (
        evidence.read_only
        or evidence.fuzzy is not None
        or evidence.canary
        or windows is None
        or complete_timed(windows, evidence.duration_s)
    ):
        return None
    touching = _touching(evidence)
    return (
        f"no timed checkpoint lies wholly within the {evidence.duration_s:.0f} s measured "
        f"({len(touching)} in part): a longer duration or a shorter checkpoint_timeout gives it one"
    )


def age_growth_share(fuzzy: FuzzyLog) -> float | None:
    """How much the checkpoint age grew over the window (Theil–Sen), as a share of its limit; None below ten samples."""
    ages = np.array(fuzzy.ages, dtype=np.float64)
    if not fuzzy.age_limit or not len(ages):
        return None
    mean = float(ages.mean())
    # An age that stays at nothing does not grow.
    share = 0.0 if mean <= 0 else trend_share(ages)
    return None if share is None else share * mean / fuzzy.age_limit


def _log_not_turned_over(evidence: TransactionEvidence) -> Spoken | None:
    found = evidence.fuzzy
    if found is None or evidence.read_only or evidence.canary:
        return None
    turned, growth = found.turned_over, age_growth_share(found)
    if (turned is not None and turned >= 1) or (growth is not None and abs(growth) <= AGE_GROWTH_SHARE_MAX):
        return None
    fell = growth is not None and growth < 0
    moved = f"{'fell' if fell else 'grew'} by {'an unknown share' if growth is None else f'{percent(abs(growth))} of its limit'}"
    written = "an unknown part" if turned is None else f"{turned:.2f} times the size"
    pages = (
        "pages that were changed before were written in it"
        if fell
        else "pages that it changed were left for later"
    )
    words = (
        f"the checkpoint age {moved} over the window, in which {written} of the log was written: {pages}. "
        "A longer duration, a longer warm-up or a smaller log shows what its own pages cost"
    )
    known = {"age_growth_share": growth, "turned_over": turned}
    return spoken(words, **{name: value for name, value in known.items() if value is not None})


def _checkpoint_in_read_only(evidence: TransactionEvidence) -> str | None:
    touching = _touching(evidence)
    if not evidence.read_only or not touching:
        return None
    first = touching[0]
    return (
        f"{len(touching)} checkpoint{'s' * (len(touching) > 1)} ran during a read-only run, the first "
        f"{first.kind} at {first.start_s:.1f} s: what it wrote was not this run's work"
    )


def _client_saturated(evidence: TransactionEvidence) -> Spoken | None:
    if evidence.client_cpu_s is None or evidence.duration_s <= 0:
        return None
    # Threads beyond the processors cannot use more than there is.
    threads = max(1, min(evidence.client_threads, evidence.cpu_count))
    share = evidence.client_cpu_s / (evidence.duration_s * threads)
    if share <= CLIENT_CPU_SHARE_MAX:
        return None
    return spoken(
        f"the client used {percent(share, digits=1)} of its {threads} thread{'s' * (threads > 1)} (limit "
        f"{percent(CLIENT_CPU_SHARE_MAX)}): the client was measured, not the database; more jobs may help",
        share=share,
        limit=CLIENT_CPU_SHARE_MAX,
    )


def _still_climbing(evidence: TransactionEvidence) -> Spoken | None:
    tps, reads = evidence.tps_trend, evidence.reads_per_transaction_trend
    if tps is None or reads is None or (evidence.device_reads_per_s or 0.0) < DEVICE_READS_PER_S_MIN:
        return None
    if tps <= CLIMB_SHARE_MAX or reads >= -READS_FALL_SHARE_MIN:
        return None
    return spoken(
        f"tps still climbed over the window, by {percent(tps)} of its mean, while device reads per transaction fell, by "
        f"{percent(-reads)} of theirs: the cache was filling; a longer warm-up is needed",
        tps_trend=tps,
        reads_trend=reads,
    )


def _two_speeds(evidence: TransactionEvidence) -> Spoken | None:
    found = evidence.two_speeds
    # What reads from the device has a rule of its own, and what writes has its checkpoints.
    reads = (evidence.device_reads_per_s or 0.0) >= DEVICE_READS_PER_S_MIN
    if found is None or not evidence.read_only or reads:
        return None
    return spoken(
        f"tps was {found.first_tps:.0f} until {found.at_s} s and {found.second_tps:.0f} from then on: two speeds, of which "
        "the scheduler chose one after the other, or a neighbour",
        first_tps=found.first_tps,
        second_tps=found.second_tps,
        at_s=found.at_s,
    )


def _processors_idle(evidence: TransactionEvidence) -> Spoken | None:
    idle, clients = evidence.idle_cpu_share, evidence.clients
    waits = evidence.rate_limited or (evidence.device_reads_per_s or 0.0) >= DEVICE_READS_PER_S_MIN
    if idle is None or idle <= IDLE_SHARE_MAX or clients is None or not evidence.read_only or waits:
        return None
    if clients <= evidence.client_threads or clients < evidence.cpu_count:
        return None
    return spoken(
        f"{percent(idle, digits=1)} of the processors' time was idle (limit {percent(IDLE_SHARE_MAX)}) though {clients} clients waited for nothing "
        f"but processors: the scheduler kept {evidence.client_threads} threads and their sessions together; a thread for "
        "each client (jobs) spreads them",
        share=idle,
        limit=IDLE_SHARE_MAX,
    )


def _log_incomplete(evidence: TransactionEvidence) -> str | None:
    if evidence.log_complete is False:
        return "the transaction log was not read to its end: transactions are missing"
    return evidence.log_damage


def _transactions_failed(evidence: TransactionEvidence) -> Spoken | None:
    failed, count = evidence.transactions_failed, evidence.transactions_in_log
    if not failed:
        return None
    beside = "an unknown number of" if count is None else count
    return spoken(f"{failed} transactions failed beside {beside} processed", failed=failed)


def _counts_differ(evidence: TransactionEvidence) -> Spoken | None:
    ours, theirs = evidence.transactions_in_log, evidence.transactions_by_client
    if ours is None or theirs is None or ours == theirs:
        return None
    words = f"the log has {ours} transactions, {evidence.client} counted {theirs}"
    return spoken(words, log=ours, client=theirs)


def _times_differ(evidence: TransactionEvidence) -> str | None:
    ours, theirs = evidence.phase_s, evidence.client_s
    if theirs is None or 0 <= ours - theirs <= TIME_DIFFERENCE_MAX_S + TIME_DIFFERENCE_SHARE_MAX * theirs:
        return None
    return (
        f"{evidence.client} says that it ran for {theirs:.2f} s, the clock beside it says {ours:.2f} s: one of its "
        "counts, its tps or a clock is wrong"
    )


def _outside_window(evidence: TransactionEvidence) -> str | None:
    # Where a step was seen already, it is told once.
    if not evidence.transactions_outside_window or evidence.clock_step_s is not None:
        return None
    return (
        f"{evidence.transactions_outside_window} transactions of the log lie outside the measured window: "
        "the wall clock was stepped"
    )


def _too_short(evidence: TransactionEvidence) -> Spoken | None:
    # A client's clock starts before it connects, so many clients shorten the window.
    asked, ran_s = evidence.asked_duration_s, evidence.client_s or evidence.duration_s
    if asked is None or ran_s >= asked * (1 - SHORT_SHARE_MAX):
        return None
    return spoken(f"{ran_s:.1f} s were measured, {asked:g} s were requested", seconds=ran_s, asked_s=asked)


def _log_unknown(evidence: TransactionEvidence) -> str | None:
    return (
        f"there is no transaction log to hold {evidence.client} against"
        if evidence.transactions_in_log is None
        else None
    )


def _touching(evidence: TransactionEvidence) -> tuple[Window, ...]:
    return tuple(
        window
        for window in evidence.windows or ()
        if window.start_s < evidence.duration_s and (window.end_s is None or window.end_s > 0)
    )


WITHOUT_CHECKPOINT: Rule[TransactionEvidence] = Rule(
    "read-write without a checkpoint",
    "no timed checkpoint begins and ends within the measured window of a run that writes, of a server that logs its checkpoints (canaries apart)",
    "a shorter run shows the good time between two checkpoints; a saw-tooth of 8000 to 3000 tps within one cycle (Percona 2020)",
    _without_checkpoint,
)

_CHECKPOINT_IN_READ_ONLY: Rule[TransactionEvidence] = Rule(
    "checkpoint in a read-only run",
    "any checkpoint overlaps the measured window",
    "a checkpoint writes what runs before it left: a read-only run contains none",
    _checkpoint_in_read_only,
)

_CLIENT_SATURATED: Rule[TransactionEvidence] = Rule(
    "client saturated",
    f"CPU of the client above {percent(CLIENT_CPU_SHARE_MAX)} of its threads (at most one per processor)",
    "a client without a processor to spare measures itself; “Good Practices” of the PostgreSQL manual",
    _client_saturated,
)

_STILL_FILLING: Rule[TransactionEvidence] = Rule(
    "cache still filling",
    f"tps grows by more than {percent(CLIMB_SHARE_MAX)} over the window (Theil–Sen) while device reads per "
    f"transaction fall by more than {percent(READS_FALL_SHARE_MIN)}, above {DEVICE_READS_PER_S_MIN:g} read a second",
    "measured: on a disk of 150 IOPS, 90 s of warm-up made 32 kB blocks look twice as fast as 1 kB",
    _still_climbing,
)

_TWO_SPEEDS: Rule[TransactionEvidence] = Rule(
    "two speeds",
    f"a run only reads, and not from the device. Its seconds fall into two stretches of {STRETCH_S_MIN} s or "
    f"more whose median tps differ by more than {percent(SPEEDS_SHARE_MIN)} and by more than four of their deviations",
    "measured: threads that serve two sessions each run at 70,000 or at 110,000 tps, as the scheduler places them",
    _two_speeds,
)

_PROCESSORS_IDLE: Rule[TransactionEvidence] = Rule(
    "processors idle",
    f"processors idle for more than {percent(IDLE_SHARE_MAX)} in a run that only reads, and not from the device, without a rate "
    "limit, with more clients than threads and no fewer than processors",
    "measured: 4 clients of 2 threads on 2 processors leave one of them idle for up to half of the time, or not at all",
    _processors_idle,
)

_LOG_INCOMPLETE: Rule[TransactionEvidence] = Rule(
    "transaction log incomplete",
    "the log's reader did not come to its end, or did not understand a line",
    "drivers/pgbench_log.c",
    _log_incomplete,
)

_FAILED: Rule[TransactionEvidence] = Rule(
    "failed transactions",
    "one or more",
    "a transaction that failed did less than one that did not",
    _transactions_failed,
)

_COUNTS_DIFFER: Rule[TransactionEvidence] = Rule(
    "counts differ",
    "transactions in the log ≠ transactions by the client",
    "both count the same",
    _counts_differ,
)

_TIMES_DIFFER: Rule[TransactionEvidence] = Rule(
    "times differ",
    "connecting time + transactions / tps, as the client says them, exceed the phase on the monotonic "
    f"clock, or fall short of it by more than {TIME_DIFFERENCE_MAX_S:g} s + {percent(TIME_DIFFERENCE_SHARE_MAX)}",
    "with equal counts this means equal tps; the rest is the client's start and end",
    _times_differ,
)

_OUTSIDE: Rule[TransactionEvidence] = Rule(
    "transactions outside the window",
    "transactions of the log lie outside the measured window, and no step of the clock was seen",
    "the log's seconds are of the wall clock, the window's length is of the monotonic one",
    _outside_window,
)

_TOO_SHORT: Rule[TransactionEvidence] = Rule(
    "window too short",
    f"connecting and measuring together more than {percent(SHORT_SHARE_MAX)} shorter than asked",
    "the plan's duration",
    _too_short,
)

_NO_LOG: Rule[TransactionEvidence] = Rule(
    "no transaction log",
    "there is none, or it cannot be read",
    "absent is not zero: what is not known is neither good nor bad",
    _log_unknown,
    Validity.UNKNOWN,
)

LOG_NOT_TURNED_OVER: Rule[TransactionEvidence] = Rule(
    "log not turned over",
    f"a run writes, on a server with fuzzy checkpoints. The checkpoint age grows or falls by more than {percent(AGE_GROWTH_SHARE_MAX)} "
    "of its limit over the window (Theil–Sen), and less than the size of the log was written (canaries apart)",
    "InnoDB puts off writing pages until its log has no room: what a window leaves is not in its figures, and what it finds is",
    _log_not_turned_over,
)

# Of how fast the run was; then of its record.
OF_SPEED = (_CHECKPOINT_IN_READ_ONLY, _CLIENT_SATURATED, _STILL_FILLING, _TWO_SPEEDS, _PROCESSORS_IDLE)

OF_RECORD = (
    KERNEL_WARNING,
    SERVER_BROKE,
    _LOG_INCOMPLETE,
    _FAILED,
    _COUNTS_DIFFER,
    _TIMES_DIFFER,
    CLOCK_STEPPED,
    _OUTSIDE,
    THROTTLED_MACHINE,
    OTHERS_AT_WORK,
    CACHES_DROPPED,
    DEVICE_LATE,
    _TOO_SHORT,
    INPUT_UNREADABLE,
    COURSE_INCOMPLETE,
    COURSE_MISSING,
    CHECKPOINTS_UNKNOWN,
    _NO_LOG,
)
