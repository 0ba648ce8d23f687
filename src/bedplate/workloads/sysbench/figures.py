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
from bedplate.model.rules import Rule, RunRules, Spoken, spoken
from bedplate.model.visit import Validity
from bedplate.units import percent
from bedplate.workloads.sysbench.model import READ_ONLY

_TOOL = "sysbench"

# The lines that are read, each for its number.
_LINES = {
    "transactions": r"transactions: +(\d+) +\(",
    "ignored errors": r"ignored errors: +(\d+) +\(",
    "reconnects": r"reconnects: +(\d+) +\(",
    "time": r"total time: +(\d+(?:\.\d+)?)s$",
    "events": r"total number of events: +(\d+)$",
}

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
    numbers = {
        name: line[1]
        for name, pattern in _LINES.items()
        if (line := re.search(rf"^ +{pattern}", text, re.MULTILINE)) is not None
    }
    if len(numbers) < len(_LINES):
        raise OutputNotUnderstood(
            _TOOL,
            expected="lines `transactions: N (…)`, `ignored errors: N (…)`, `reconnects: N (…)`, `total time: Xs` and `total number of events: N`",
            found=text[-2000:] or "(it printed nothing)",
        )
    return SysbenchSummary(
        transactions=int(numbers["events"]),
        duration_s=float(numbers["time"]),
        ignored_errors=int(numbers["ignored errors"]),
        reconnects=int(numbers["reconnects"]),
        buckets=tuple((float(value), int(count)) for value, count in _BUCKET.findall(text)),
    )


HELD_AGAINST = 0.95

# Its buckets are 1.8 % wide, and it counts what lies around a transaction of the script as well.
_DIFFERENCE_SHARE_MAX = 0.05

_DIFFERENCE_MS_MAX = 0.05

IGNORED_SHARE_MAX = 0.01


@dataclass(frozen=True, kw_only=True)
class SysbenchEvidence(TransactionEvidence):
    """Of a run of sysbench: a percentile of the latency by the log, and what sysbench says of it, None where it says nothing."""

    percentile_ms_by_log: float | None
    summary: SysbenchSummary | None


def _latencies_differ(evidence: SysbenchEvidence) -> Spoken | None:
    ours = evidence.percentile_ms_by_log
    theirs = None if evidence.summary is None else evidence.summary.percentile_ms(HELD_AGAINST)
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
    summary = evidence.summary
    share = 0.0 if summary is None else summary.ignored_error_share or 0.0
    if summary is None or share <= IGNORED_SHARE_MAX:
        return None
    ignored, count = summary.ignored_errors, summary.transactions
    return spoken(
        f"{ignored} attempts beside {count} transactions ended in an error that sysbench ignores, {percent(share, digits=1)} of all "
        f"(limit {percent(IGNORED_SHARE_MAX)}), and were begun again. Waiting for locks was measured; more rows (table_size) or fewer threads make it rare",
        ignored=ignored,
        share=share,
        limit=IGNORED_SHARE_MAX,
    )


def _connections_lost(evidence: SysbenchEvidence) -> Spoken | None:
    reconnects = 0 if evidence.summary is None else evidence.summary.reconnects
    if not reconnects:
        return None
    words = f"sysbench lost a connection and made it again, {reconnects} times"
    return spoken(words, reconnects=reconnects)


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
            "sysbench counts only committed transactions, and the time of an attempt that was rolled back is in the latency of the next; the limit "
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
        for metric in ("ignored_errors", "ignored_error_share", "reconnects"):
            value = None if self._summary is None else getattr(self._summary, metric)
            yield figure(metric, value, reason=_NO_SUMMARY if self._summary is None else _NO_ATTEMPT)

    @property
    def _summary(self) -> SysbenchSummary | None:
        return self.inputs.summary if isinstance(self.inputs.summary, SysbenchSummary) else None

    def read_only(self) -> bool:
        return self.inputs.record.facts.get("script") == READ_ONLY

    def verdict(self, course: pl.DataFrame) -> tuple[Validity, tuple[Reason, ...]]:
        log = self.inputs.measure_log
        by_log = None if log is None else percentiles_us(log, (HELD_AGAINST,))
        evidence = SysbenchEvidence(
            **self.shared_evidence(course),
            client="sysbench",
            percentile_ms_by_log=None if by_log is None else by_log[0] / 1000,
            summary=self._summary,
        )
        return VALIDITY.judge(evidence)


FIGURES: FigureMaker = TransactionFigures(_SysbenchMeasured, _summary)
