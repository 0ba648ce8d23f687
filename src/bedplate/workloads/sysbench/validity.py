"""Whether a completed run of sysbench may be believed: the rules of every such client, and one of its own."""

from __future__ import annotations

from dataclasses import dataclass

from bedplate.figures.rule import Rule, RunRules, Spoken, spoken
from bedplate.figures.transaction_validity import (
    LOG_NOT_TURNED_OVER,
    OF_RECORD,
    OF_SPEED,
    WITHOUT_CHECKPOINT,
    TransactionEvidence,
)
from bedplate.units import percent

HELD_AGAINST = 0.95
# Its buckets are 1.8 % wide, and it counts what lies around a transaction of the script as well.
_DIFFERENCE_SHARE_MAX = 0.05
_DIFFERENCE_MS_MAX = 0.05
IGNORED_SHARE_MAX = 0.01


@dataclass(frozen=True, kw_only=True)
class SysbenchEvidence(TransactionEvidence):
    """Of a run of sysbench: a percentile of the latency by the log, and by sysbench's histogram; what it counts of errors, None where it says nothing."""

    percentile_ms_by_log: float | None
    percentile_ms_by_client: float | None
    ignored_errors: int | None
    reconnects: int | None


def _latencies_differ(evidence: SysbenchEvidence) -> Spoken | None:
    ours, theirs = evidence.percentile_ms_by_log, evidence.percentile_ms_by_client
    # Under a rate sysbench counts the wait for a transaction's turn too.
    if ours is None or theirs is None or evidence.rate_limited:
        return None
    if abs(ours - theirs) <= max(_DIFFERENCE_MS_MAX, _DIFFERENCE_SHARE_MAX * theirs):
        return None
    return spoken(
        f"the 95th percentile of the latency is {ours:.3f} ms by the log, {theirs:.3f} ms by sysbench's histogram",
        log_ms=ours,
        histogram_ms=theirs,
    )


def _errors_ignored(evidence: SysbenchEvidence) -> Spoken | None:
    ignored, count = evidence.ignored_errors, evidence.transactions_by_client or 0
    share = ignored / (ignored + count) if ignored else 0.0
    if not ignored or share <= IGNORED_SHARE_MAX:
        return None
    return spoken(
        f"{ignored} attempts beside {count} transactions ended in an error that sysbench ignores, {percent(share, digits=1)} of all "
        f"(limit {percent(IGNORED_SHARE_MAX)}), and were begun again. Waiting for locks was measured; more rows (table_size) or fewer threads make it rare",
        ignored=ignored,
        share=share,
        limit=IGNORED_SHARE_MAX,
    )


def _connections_lost(evidence: SysbenchEvidence) -> Spoken | None:
    if not evidence.reconnects:
        return None
    return spoken(
        f"sysbench lost a connection and made it again, {evidence.reconnects} times",
        reconnects=evidence.reconnects,
    )


VALIDITY: RunRules[SysbenchEvidence] = RunRules(
    "sysbench",
    (
        WITHOUT_CHECKPOINT,
        LOG_NOT_TURNED_OVER,
        *OF_SPEED,
        *OF_RECORD,
        Rule(
            "ignored errors",
            f"more than {percent(IGNORED_SHARE_MAX)} of the attempts ended in an error that sysbench ignores (deadlock, serialization failure, "
            "duplicate key), and were begun again",
            "sysbench counts committed transactions alone, and the time of an attempt that was rolled back is in the latency of the next; the limit "
            "is a convention of bedplate",
            _errors_ignored,
        ),
        Rule(
            "connections lost",
            "sysbench counts a reconnect or more",
            "a server that closes connections did less than one that holds them",
            _connections_lost,
        ),
        Rule(
            "latencies differ",
            f"the 95th percentile by the log and by sysbench's histogram differ by more than {percent(_DIFFERENCE_SHARE_MAX)} and by more "
            f"than {_DIFFERENCE_MS_MAX:g} ms, without a rate",
            "sysbench's histogram is good to 2 %: its buckets are 1.8 % wide",
            _latencies_differ,
        ),
    ),
)
