"""What pgbench itself says of a run: the summary that it prints at the end.

Known are the summaries of PostgreSQL 15 to 18 (`printResults` of src/bin/pgbench/pgbench.c), and of former versions,
which others published: until 13 they have a second tps, which counts the time of connecting. The
figures come from the transaction log; the summary is what they are held against.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bedplate.errors import OutputNotUnderstood

_TOOL = "pgbench"
# No count has more digits, and a longer one is no number to Python, or an infinite one.
_TRANSACTIONS = re.compile(r"^number of transactions actually processed: (\d{1,15})(?:/\d+)?$", re.MULTILINE)
_INITIAL = re.compile(r"^initial connection time = (\d{1,15}(?:\.\d+)?) ms$", re.MULTILINE)
_TPS = re.compile(
    r"^tps = (\d{1,15}(?:\.\d+)?) \((?:without initial connection time|including reconnection times|excluding connections establishing)\)$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class PgbenchSummary:
    """pgbench's own figures; None where this run or version prints none.

    `tps` counts processed transactions over the time since all connections stood.
    """

    transactions: int
    tps: float | None
    initial_connection_ms: float | None

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
        tps=tps,
        initial_connection_ms=_number(_INITIAL, output),
    )


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    # With several scripts the totals come first and each script's figures after them, indented with
    # ` - `; the anchored patterns do not match those.
    found = pattern.findall(text)
    return found[0] if found else None


def _number(pattern: re.Pattern[str], text: str) -> float | None:
    found = _first(pattern, text)
    return None if found is None else float(found)
