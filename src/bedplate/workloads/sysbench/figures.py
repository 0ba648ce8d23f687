"""The figures of a sysbench run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import polars as pl

from bedplate.errors import OutputNotUnderstood
from bedplate.figures.courses import percentiles_us
from bedplate.figures.facts import Rule, RunRules, Spoken, spoken
from bedplate.figures.run import FigureMaker
from bedplate.figures.transaction_run import (
    LOG_NOT_TURNED_OVER,
    OF_RECORD,
    OF_SPEED,
    WITHOUT_CHECKPOINT,
    TransactionEvidence,
    TransactionFigures,
    TransactionRun,
)
from bedplate.model.figure import Figure
from bedplate.model.metrics import figure
from bedplate.model.reason import Reason, because
from bedplate.model.visit import Validity
from bedplate.units import percent
from bedplate.workloads.sysbench.model import READ_ONLY

_TOOL = "sysbench"

_TRANSACTIONS = re.compile(r"^ +transactions: +(\d+) +\(", re.MULTILINE)

_EVENTS = re.compile(r"^ +total number of events: +(\d+)$", re.MULTILINE)

_SECONDS = re.compile(r"^ +total time: +(\d+(?:\.\d+)?)s$", re.MULTILINE)

_IGNORED = re.compile(r"^ +ignored errors: +(\d+) +\(", re.MULTILINE)

_RECONNECTS = re.compile(r"^ +reconnects: +(\d+) +\(", re.MULTILINE)

_BUCKET = re.compile(r"^ *(\d+\.\d+) \|[* ]* (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class SysbenchSummary:
    """sysbench's own figures. `transactions` are events: a script begins a transaction again after a deadlock.

    `ignored_errors` are the attempts that were rolled back so, `reconnects` the connections that were lost and made again.
    `buckets` are the histogram's, as latency in ms and count, in ascending order. Nothing is said of connecting.
    """

    transactions: int
    duration_s: float
    ignored_errors: int
    reconnects: int
    buckets: tuple[tuple[float, int], ...] = ()
    initial_connection_ms: float | None = None

    @property
    def ignored_error_share(self) -> float | None:
        """Of all attempts; None without any."""
        attempts = self.ignored_errors + self.transactions
        return self.ignored_errors / attempts if attempts else None

    def percentile_ms(self, quantile: float) -> float | None:
        """By the histogram, good to 2 %; None without one."""
        wanted = quantile * sum(count for _, count in self.buckets)
        seen = 0
        for value_ms, count in self.buckets:
            seen += count
            if seen >= wanted:
                return value_ms
        return None


def parse_summary(text: str) -> SysbenchSummary:
    """From the standard output of a run; OutputNotUnderstood where it has no end that is known."""
    events, seconds = _EVENTS.search(text), _SECONDS.search(text)
    ignored, reconnects = _IGNORED.search(text), _RECONNECTS.search(text)
    if (
        events is None
        or seconds is None
        or ignored is None
        or reconnects is None
        or _TRANSACTIONS.search(text) is None
    ):
        raise OutputNotUnderstood(
            _TOOL,
            expected="lines `transactions: N (…)`, `ignored errors: N (…)`, `reconnects: N (…)`, `total time: Xs` and `total number of events: N`",
            found=text[-2000:] or "(it printed nothing)",
        )
    return SysbenchSummary(
        transactions=int(events[1]),
        duration_s=float(seconds[1]),
        ignored_errors=int(ignored[1]),
        reconnects=int(reconnects[1]),
        buckets=tuple((float(value), int(count)) for value, count in _BUCKET.findall(text)),
    )


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

_FAILED = "transactions_failed"

_BEGUN_AGAIN = because(
    "begun-again",
    "sysbench begins a transaction again after an error that it ignores: ignored_errors counts them",
)

_NO_SUMMARY = because("no-summary", "sysbench printed no summary that could be read")

_NO_ATTEMPT = because("no-transaction", "no transaction was begun")


def _summary(logs: Path) -> SysbenchSummary:
    return parse_summary((logs / "sysbench.out").read_text(encoding="utf-8", errors="replace"))


class _SysbenchMeasured(TransactionRun):
    threads_fact: ClassVar[str] = "threads"

    def _figures(self) -> Iterator[Figure]:
        """With what its log of transactions cannot have: attempts that were rolled back, and begun again."""
        for own in super()._figures():
            yield figure(_FAILED, None, reason=_BEGUN_AGAIN) if own.metric == _FAILED else own
        summary = self.inputs.summary if isinstance(self.inputs.summary, SysbenchSummary) else None
        counts = {
            "ignored_errors": None if summary is None else summary.ignored_errors,
            "ignored_error_share": None if summary is None else summary.ignored_error_share,
            "reconnects": None if summary is None else summary.reconnects,
        }
        for metric, value in counts.items():
            yield figure(metric, value, reason=_NO_SUMMARY if summary is None else _NO_ATTEMPT)

    def read_only(self) -> bool:
        return self.inputs.record.facts.get("script") == READ_ONLY

    def verdict(self, course: pl.DataFrame) -> tuple[Validity, tuple[Reason, ...]]:
        log = self.inputs.measure_log
        summary = self.inputs.summary if isinstance(self.inputs.summary, SysbenchSummary) else None
        by_log = None if log is None else percentiles_us(log, (HELD_AGAINST,))
        evidence = SysbenchEvidence(
            **self.shared_evidence(course),
            client="sysbench",
            percentile_ms_by_log=None if by_log is None else by_log[0] / 1000,
            percentile_ms_by_client=None if summary is None else summary.percentile_ms(HELD_AGAINST),
            ignored_errors=None if summary is None else summary.ignored_errors,
            reconnects=None if summary is None else summary.reconnects,
        )
        return VALIDITY.judge(evidence)


FIGURES: FigureMaker = TransactionFigures(_SysbenchMeasured, _summary)
