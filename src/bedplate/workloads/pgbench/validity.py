"""Whether a completed run of pgbench may be believed: one small rule for each way in which it may not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.figures.checkpoint_windows import complete_timed
from bedplate.figures.evidence import RunEvidence
from bedplate.figures.rule import Rule, RunRules, Spoken, spoken
from bedplate.figures.steadiness import SPEEDS_SHARE_MIN, STRETCH_S_MIN
from bedplate.figures.validity import (
    CHECKPOINTS_UNKNOWN,
    CLOCK_STEPPED,
    COURSE_INCOMPLETE,
    COURSE_MISSING,
    INPUT_UNREADABLE,
    KERNEL_WARNING,
    OTHERS_AT_WORK,
    SERVER_BROKE,
    THROTTLED_MACHINE,
)
from bedplate.model.visit import Validity
from bedplate.units import format_size

if TYPE_CHECKING:
    from bedplate.figures.steadiness import TwoSpeeds
    from bedplate.model.figure import Window

CLIENT_CPU_SHARE_MAX = 0.8
CLIMB_SHARE_MAX = 0.10
READS_FALL_SHARE_MIN = 0.10
DEVICE_READS_PER_S_MIN = 1.0
SHORT_SHARE_MAX = 0.01
IDLE_SHARE_MAX = 0.10
TIME_DIFFERENCE_MAX_S = 1.0
TIME_DIFFERENCE_SHARE_MAX = 0.01


@dataclass(frozen=True, kw_only=True)
class PgbenchEvidence(RunEvidence):
    """Of a run of pgbench.

    `reads_per_transaction_trend` and `tps_trend` are growth over the window as a share of the mean.
    `asked_times_memory` is the plan's scale as a multiple of the memory. `log_damage` names lines that the
    log's reader did not understand. `phase_s` is the phase on the monotonic clock, `pgbench_s` how long
    pgbench says that it connected and ran.
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
    database_bytes: int | None
    memory_bytes: int | None
    asked_times_memory: float | None
    log_complete: bool | None
    log_damage: str | None
    transactions_in_log: int | None
    transactions_by_pgbench: int | None
    transactions_failed: int | None
    transactions_outside_window: int | None
    phase_s: float
    pgbench_s: float | None
    two_speeds: TwoSpeeds | None = None
    clients: int | None = None
    rate_limited: bool = False
    idle_cpu_share: float | None = None


def _without_checkpoint(evidence: PgbenchEvidence) -> str | None:
    # A canary is short on purpose: it is compared with itself only.
    windows = evidence.windows
    if (
        evidence.read_only
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


def _checkpoint_in_read_only(evidence: PgbenchEvidence) -> str | None:
    touching = _touching(evidence)
    if not evidence.read_only or not touching:
        return None
    first = touching[0]
    return (
        f"{len(touching)} checkpoint{'s' * (len(touching) > 1)} ran during a read-only run, the first "
        f"{first.kind} at {first.start_s:.1f} s: what it wrote was not this run's work"
    )


def _client_saturated(evidence: PgbenchEvidence) -> Spoken | None:
    if evidence.client_cpu_s is None or evidence.duration_s <= 0:
        return None
    # Threads beyond the processors cannot use more than there is.
    threads = max(1, min(evidence.client_threads, evidence.cpu_count))
    share = evidence.client_cpu_s / (evidence.duration_s * threads)
    if share <= CLIENT_CPU_SHARE_MAX:
        return None
    return spoken(
        f"the client used {share:.0%} of its {threads} thread{'s' * (threads > 1)} (limit "
        f"{CLIENT_CPU_SHARE_MAX:.0%}): the client was measured, not the database; more jobs may help",
        share=share,
        limit=CLIENT_CPU_SHARE_MAX,
    )


def _still_climbing(evidence: PgbenchEvidence) -> Spoken | None:
    tps, reads = evidence.tps_trend, evidence.reads_per_transaction_trend
    if tps is None or reads is None or (evidence.device_reads_per_s or 0.0) < DEVICE_READS_PER_S_MIN:
        return None
    if tps <= CLIMB_SHARE_MAX or reads >= -READS_FALL_SHARE_MIN:
        return None
    return spoken(
        f"tps still climbed over the window, by {tps:.0%} of its mean, while device reads per transaction fell, by "
        f"{-reads:.0%} of theirs: the cache was filling; a longer warm-up is needed",
        tps_trend=tps,
        reads_trend=reads,
    )


def _two_speeds(evidence: PgbenchEvidence) -> Spoken | None:
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


def _processors_idle(evidence: PgbenchEvidence) -> Spoken | None:
    idle, clients = evidence.idle_cpu_share, evidence.clients
    waits = evidence.rate_limited or (evidence.device_reads_per_s or 0.0) >= DEVICE_READS_PER_S_MIN
    if idle is None or idle <= IDLE_SHARE_MAX or clients is None or not evidence.read_only or waits:
        return None
    if clients <= evidence.client_threads or clients < evidence.cpu_count:
        return None
    return spoken(
        f"{idle:.0%} of the processors' time was idle (limit {IDLE_SHARE_MAX:.0%}) though {clients} clients waited for nothing "
        f"but processors: the scheduler kept {evidence.client_threads} threads and their sessions together; a thread for "
        "each client (jobs) spreads them",
        share=idle,
        limit=IDLE_SHARE_MAX,
    )


def _fits_in_cache(evidence: PgbenchEvidence) -> str | None:
    asked, database, memory = evidence.asked_times_memory, evidence.database_bytes, evidence.memory_bytes
    if asked is None or asked < 1 or database is None or memory is None or database > memory:
        return None
    return (
        f"the database has {format_size(database)} and fits into the memory of {format_size(memory)}, "
        f"though the plan asks for {asked:g} times the memory"
    )


def _log_incomplete(evidence: PgbenchEvidence) -> str | None:
    if evidence.log_complete is False:
        return "the transaction log was not read to its end: transactions are missing"
    return evidence.log_damage


def _transactions_failed(evidence: PgbenchEvidence) -> Spoken | None:
    failed, count = evidence.transactions_failed, evidence.transactions_in_log
    if not failed:
        return None
    beside = "an unknown number of" if count is None else count
    return spoken(f"{failed} transactions failed beside {beside} processed", failed=failed)


def _counts_differ(evidence: PgbenchEvidence) -> Spoken | None:
    ours, theirs = evidence.transactions_in_log, evidence.transactions_by_pgbench
    if ours is None or theirs is None or ours == theirs:
        return None
    words = f"the log has {ours} transactions, pgbench counted {theirs}"
    return spoken(words, log=ours, pgbench=theirs)


def _times_differ(evidence: PgbenchEvidence) -> str | None:
    ours, theirs = evidence.phase_s, evidence.pgbench_s
    if theirs is None or 0 <= ours - theirs <= TIME_DIFFERENCE_MAX_S + TIME_DIFFERENCE_SHARE_MAX * theirs:
        return None
    return (
        f"pgbench says that it ran for {theirs:.2f} s, the clock beside it says {ours:.2f} s: one of its "
        "counts, its tps or a clock is wrong"
    )


def _outside_window(evidence: PgbenchEvidence) -> str | None:
    # Where a step was seen already, it is told once.
    if not evidence.transactions_outside_window or evidence.clock_step_s is not None:
        return None
    return (
        f"{evidence.transactions_outside_window} transactions of the log lie outside the measured window: "
        "the wall clock was stepped"
    )


def _too_short(evidence: PgbenchEvidence) -> Spoken | None:
    # pgbench's clock for --time starts before it connects, so many clients shorten the window.
    asked, ran_s = evidence.asked_duration_s, evidence.pgbench_s or evidence.duration_s
    if asked is None or ran_s >= asked * (1 - SHORT_SHARE_MAX):
        return None
    return spoken(f"{ran_s:.1f} s were measured, {asked:g} s were asked", seconds=ran_s, asked_s=asked)


def _log_unknown(evidence: PgbenchEvidence) -> str | None:
    return (
        "there is no transaction log to hold pgbench against"
        if evidence.transactions_in_log is None
        else None
    )


def _touching(evidence: PgbenchEvidence) -> tuple[Window, ...]:
    return tuple(
        window
        for window in evidence.windows or ()
        if window.start_s < evidence.duration_s and (window.end_s is None or window.end_s > 0)
    )


VALIDITY: RunRules[PgbenchEvidence] = RunRules(
    "pgbench",
    (
        Rule(
            "read-write without a checkpoint",
            "no timed checkpoint begins and ends within the measured window of a run that writes (canaries apart)",
            "DESIGN.md sections 4 and 5; a saw-tooth of 8000 to 3000 tps within one cycle (Percona 2020)",
            _without_checkpoint,
        ),
        Rule(
            "checkpoint in a read-only run",
            "any checkpoint overlaps the measured window",
            "DESIGN.md section 4",
            _checkpoint_in_read_only,
        ),
        Rule(
            "client saturated",
            f"CPU of pgbench above {CLIENT_CPU_SHARE_MAX:.0%} of its threads (at most one per processor)",
            "pgbench manual, “Good Practices”",
            _client_saturated,
        ),
        Rule(
            "cache still filling",
            f"tps grows by more than {CLIMB_SHARE_MAX:.0%} over the window (Theil–Sen) while device reads per "
            f"transaction fall by more than {READS_FALL_SHARE_MIN:.0%}, above {DEVICE_READS_PER_S_MIN:g} read a second",
            "measured: on a disk of 150 IOPS, 90 s of warm-up made 32 kB blocks look twice as fast as 1 kB",
            _still_climbing,
        ),
        Rule(
            "two speeds",
            f"the seconds of a run that only reads, and not from the device, fall into two stretches of {STRETCH_S_MIN} s or "
            f"more whose median tps differ by more than {SPEEDS_SHARE_MIN:.0%} and by more than four of their deviations",
            "measured: threads that serve two sessions each run at 70,000 or at 110,000 tps, as the scheduler places them",
            _two_speeds,
        ),
        Rule(
            "processors idle",
            f"processors idle for more than {IDLE_SHARE_MAX:.0%} in a run that only reads, and not from the device, without a rate "
            "limit, with more clients than threads and no fewer than processors",
            "measured: 4 clients of 2 threads on 2 processors leave one of them idle for up to half of the time, or not at all",
            _processors_idle,
        ),
        Rule(
            "database fits in the cache",
            "the database is not larger than the memory though the plan's scale is `Nx memory` with N of 1 or more",
            "Tarasov et al., HotOS 2011: results around the size of the cache are fragile",
            _fits_in_cache,
        ),
        KERNEL_WARNING,
        SERVER_BROKE,
        Rule(
            "transaction log incomplete",
            "the log's reader did not come to its end, or did not understand a line",
            "drivers/pgbench_log.c",
            _log_incomplete,
        ),
        Rule(
            "failed transactions",
            "one or more",
            "pgbench manual, “Failures and Serialization/Deadlock Retries”",
            _transactions_failed,
        ),
        Rule(
            "counts differ",
            "transactions in the log ≠ transactions by pgbench",
            "both count the same",
            _counts_differ,
        ),
        Rule(
            "times differ",
            "connecting time + transactions / tps, as pgbench says them, exceed the phase on the monotonic "
            f"clock, or fall short of it by more than {TIME_DIFFERENCE_MAX_S:g} s + {TIME_DIFFERENCE_SHARE_MAX:.0%}",
            "with equal counts this means equal tps; the rest is pgbench's start and end",
            _times_differ,
        ),
        CLOCK_STEPPED,
        Rule(
            "transactions outside the window",
            "transactions of the log lie outside the measured window, and no step of the clock was seen",
            "the log's seconds are of the wall clock, the window's length is of the monotonic one",
            _outside_window,
        ),
        THROTTLED_MACHINE,
        OTHERS_AT_WORK,
        Rule(
            "window too short",
            f"connecting and measuring together more than {SHORT_SHARE_MAX:.0%} shorter than asked",
            "the plan's duration",
            _too_short,
        ),
        INPUT_UNREADABLE,
        COURSE_INCOMPLETE,
        COURSE_MISSING,
        CHECKPOINTS_UNKNOWN,
        Rule(
            "no transaction log",
            "there is none, or it cannot be read",
            "absent is not zero (DESIGN.md section 5)",
            _log_unknown,
            Validity.UNKNOWN,
        ),
    ),
)
