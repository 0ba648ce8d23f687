"""What pgbench itself says of a run: the summary that it prints at the end.

Known are the summaries of PostgreSQL 15 to 18 (`printResults` of src/bin/pgbench/pgbench.c). The
figures come from the transaction log; the summary is what they are held against.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bedplate.errors import OutputNotUnderstood

_TOOL = "pgbench"
_TRANSACTIONS = re.compile(r"^number of transactions actually processed: (\d+)(?:/\d+)?$", re.MULTILINE)
# Without --failures-detailed one line; with it, the kinds follow on lines of their own.
_FAILED = re.compile(r"^number of failed transactions: (\d+) \(", re.MULTILINE)
_SKIPPED = re.compile(r"^number of transactions skipped: (\d+) \(", re.MULTILINE)
_LATENCY_MEAN = re.compile(
    r"^latency average = (\d+(?:\.\d+)?) ms(?: \(including failures\))?$", re.MULTILINE
)
_LATENCY_STDDEV = re.compile(r"^latency stddev = (\d+(?:\.\d+)?) ms$", re.MULTILINE)
_LAG_MEAN = re.compile(
    r"^rate limit schedule lag: avg (\d+(?:\.\d+)?) \(max \d+(?:\.\d+)?\) ms$", re.MULTILINE
)
_INITIAL = re.compile(r"^initial connection time = (\d+(?:\.\d+)?) ms$", re.MULTILINE)
_TPS = re.compile(
    r"^tps = (\d+(?:\.\d+)?) \((?:without initial connection time|including reconnection times)\)$",
    re.MULTILINE,
)
_ABORTED = "Run was aborted; the above results are incomplete."


@dataclass(frozen=True)
class PgbenchSummary:
    """pgbench's own figures; None where this run or version prints none.

    `tps` counts processed transactions over the time since all connections stood.
    `latency_ms_mean` is there always, but without a per-transaction log pgbench derives it from the
    tps. `aborted` is set where a client gave up: the figures are then incomplete.
    """

    transactions: int
    failed: int | None
    skipped: int | None
    tps: float | None
    latency_ms_mean: float | None
    latency_ms_stddev: float | None
    schedule_lag_ms_mean: float | None
    initial_connection_ms: float | None
    aborted: bool

    @property
    def duration_s(self) -> float | None:
        """Seconds in which transactions ran: pgbench prints the quotient, not the divisor."""
        if self.tps is None or self.tps <= 0 or self.transactions == 0:
            return None
        return self.transactions / self.tps


def parse_summary(output: str, errors: str = "") -> PgbenchSummary:
    """The summary in pgbench's standard output; `errors` is its standard error.

    OutputNotUnderstood where there is no summary: pgbench did not come to its end, or is one that
    we do not know.
    """
    transactions = _first(_TRANSACTIONS, output)
    if transactions is None:
        raise OutputNotUnderstood(
            _TOOL,
            expected="a line `number of transactions actually processed: N`",
            found=output or errors or "(it printed nothing)",
        )
    count = int(transactions)
    tps = _number(_TPS, output)
    if tps is None and count > 0:
        raise OutputNotUnderstood(
            _TOOL, expected=f"a line `tps = X (…)` beside {count} transactions", found=output
        )
    return PgbenchSummary(
        transactions=count,
        failed=_count(_FAILED, output),
        skipped=_count(_SKIPPED, output),
        tps=tps,
        latency_ms_mean=_number(_LATENCY_MEAN, output),
        latency_ms_stddev=_number(_LATENCY_STDDEV, output),
        schedule_lag_ms_mean=_number(_LAG_MEAN, output),
        initial_connection_ms=_number(_INITIAL, output),
        aborted=_ABORTED in errors or _ABORTED in output,
    )


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    # With several scripts the totals come first and each script's figures after them, indented with
    # ` - `; the anchored patterns do not match those.
    found = pattern.findall(text)
    return found[0] if found else None


def _number(pattern: re.Pattern[str], text: str) -> float | None:
    found = _first(pattern, text)
    return None if found is None else float(found)


def _count(pattern: re.Pattern[str], text: str) -> int | None:
    found = _first(pattern, text)
    return None if found is None else int(found)
