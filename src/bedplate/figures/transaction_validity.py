"""Whether a completed run of transactions may be believed: the rules that every client of this kind shares.

A server that logs its checkpoints is asked for one; of one whose checkpoints are fuzzy the log's age is asked instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bedplate.figures.checkpoint_windows import complete_timed
from bedplate.figures.evidence import RunEvidence
from bedplate.figures.rule import Rule, Spoken, spoken
from bedplate.figures.steadiness import SPEEDS_SHARE_MIN, STRETCH_S_MIN, trend_share
from bedplate.figures.validity import (
    CACHES_DROPPED,
    CHECKPOINTS_UNKNOWN,
    CLOCK_STEPPED,
    COURSE_INCOMPLETE,
    COURSE_MISSING,
    DEVICE_LATE,
    INPUT_UNREADABLE,
    KERNEL_WARNING,
    OTHERS_AT_WORK,
    SERVER_BROKE,
    THROTTLED_MACHINE,
)
from bedplate.model.visit import Validity
from bedplate.units import percent

if TYPE_CHECKING:
    from bedplate.figures.server_counters import FuzzyLog
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
