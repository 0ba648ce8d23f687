"""What sysbench itself says of a run: its summary, and its histogram of latencies.

Known is the text of 1.0 (`report_cumulative` in src/sysbench.c, `sb_histogram_print` in src/sb_histogram.c). The figures come
from the transaction log; the summary is what they are held against. A bucket of the histogram is about 1.8 % wide (1,024 of
them from 1 us to 100 s), so a percentile from it is good to 2 %.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bedplate.errors import OutputNotUnderstood

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
