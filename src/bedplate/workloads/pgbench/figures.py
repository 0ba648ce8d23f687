"""The figures of a pgbench run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import polars as pl

from bedplate.errors import OutputNotUnderstood
from bedplate.figures.counters import Absent
from bedplate.figures.facts import deltas_of, integer
from bedplate.figures.run import FigureMaker
from bedplate.figures.transaction_run import (
    OF_RECORD,
    OF_SPEED,
    WITHOUT_CHECKPOINT,
    TransactionEvidence,
    TransactionFigures,
    TransactionRun,
)
from bedplate.figures.transactions import script_figures, transaction_count
from bedplate.model.figure import Figure
from bedplate.model.reason import Reason
from bedplate.model.rules import Rule, RunRules
from bedplate.model.visit import Validity
from bedplate.units import format_size
from bedplate.workloads.pgbench.model import PHASE, RunScript, scripts_of, writes

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


@dataclass(frozen=True, kw_only=True)
class PgbenchEvidence(TransactionEvidence):
    """Of a run of pgbench. `asked_times_memory` is the plan's scale as a multiple of the memory."""

    database_bytes: int | None
    memory_bytes: int | None
    asked_times_memory: float | None


def _fits_in_cache(evidence: PgbenchEvidence) -> str | None:
    asked, database, memory = evidence.asked_times_memory, evidence.database_bytes, evidence.memory_bytes
    if asked is None or asked < 1 or database is None or memory is None or database > memory:
        return None
    return (
        f"the database has {format_size(database)} and fits into the memory of {format_size(memory)}, "
        f"though the plan asks for {asked:g} times the memory"
    )


VALIDITY: RunRules[PgbenchEvidence] = RunRules(
    "pgbench",
    (
        WITHOUT_CHECKPOINT,
        *OF_SPEED,
        Rule(
            "database fits in the cache",
            "the database is not larger than the memory though the plan's scale is `Nx memory` with N of 1 or more",
            "Tarasov et al., HotOS 2011: results around the size of the cache are fragile",
            _fits_in_cache,
        ),
        *OF_RECORD,
    ),
)

# The header of a WAL record (XLogRecord, access/xlogrecord.h): who commits a change writes more than one.
WAL_RECORD_BYTES_MIN = 24

_TIMES_MEMORY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*x\s*memory\s*")


def _summary(logs: Path) -> PgbenchSummary:
    output, errors = (
        (logs / name).read_text(encoding="utf-8", errors="replace") for name in ("pgbench.out", "pgbench.err")
    )
    return parse_summary(output, errors)


class _PgbenchRun(TransactionRun):
    threads_fact: ClassVar[str] = "jobs"

    def verdict(self, course: pl.DataFrame) -> tuple[Validity, tuple[Reason, ...]]:
        record = self.inputs.record
        memory = self.inputs.visit.cell.device.memory_bytes
        evidence = PgbenchEvidence(
            **self.shared_evidence(course),
            client="pgbench",
            database_bytes=integer(record, "database_bytes"),
            memory_bytes=memory if memory is not None else integer(record, "memory_bytes"),
            asked_times_memory=_times_memory(record.facts.get("scale_asked")),
        )
        return VALIDITY.judge(evidence)

    def part_figures(self) -> Iterator[Figure]:
        """Those of each script where there are several."""
        if len(self._scripts) > 1:
            names = [script.name for script in self._scripts]
            yield from script_figures(self.inputs.measure_log, self.window, names, PHASE)

    def read_only(self) -> bool:
        """By the names of its scripts, or own ones by what they did to the WAL."""
        writing = writes(self._scripts)
        if writing is not None:
            return not writing
        log, deltas = self.inputs.measure_log, deltas_of(self.inputs.record)
        if log is None or deltas is None:
            return False
        try:
            grown_bytes = deltas.growth("postgresql.wal_bytes")
        except Absent:
            return False
        return grown_bytes < WAL_RECORD_BYTES_MIN * transaction_count(log)

    @property
    def _scripts(self) -> tuple[RunScript, ...]:
        return scripts_of(self.inputs.record.spec.levels)


def _times_memory(scale_asked: object) -> float | None:
    """4.0 of `4x memory`; None for a scale in units."""
    found = _TIMES_MEMORY.fullmatch(scale_asked) if isinstance(scale_asked, str) else None
    return float(found[1]) if found else None


FIGURES: FigureMaker = TransactionFigures(_PgbenchRun, _summary)
