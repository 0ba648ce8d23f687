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


@dataclass(frozen=True, kw_only=True)
class SysbenchEvidence(TransactionEvidence):
    """Of a run of sysbench: a percentile of the latency by the log, and by sysbench's histogram."""

    percentile_ms_by_log: float | None
    percentile_ms_by_client: float | None


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


VALIDITY: RunRules[SysbenchEvidence] = RunRules(
    "sysbench",
    (
        WITHOUT_CHECKPOINT,
        LOG_NOT_TURNED_OVER,
        *OF_SPEED,
        *OF_RECORD,
        Rule(
            "latencies differ",
            f"the 95th percentile by the log and by sysbench's histogram differ by more than {percent(_DIFFERENCE_SHARE_MAX)} and by more "
            f"than {_DIFFERENCE_MS_MAX:g} ms, without a rate",
            "sysbench's histogram is good to 2 %: its buckets are 1.8 % wide",
            _latencies_differ,
        ),
    ),
)
