"""The figures of a pgbench run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from bedplate.figures.counters import Absent
from bedplate.figures.facts import deltas_of, integer
from bedplate.figures.transaction_run import TransactionFigures, TransactionRun
from bedplate.figures.transactions import script_figures, transaction_count
from bedplate.workloads.pgbench.output import PgbenchSummary, parse_summary
from bedplate.workloads.pgbench.scripts import PHASE, scripts_of, writes
from bedplate.workloads.pgbench.validity import VALIDITY, PgbenchEvidence

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import polars as pl

    from bedplate.figures.protocol import FigureMaker
    from bedplate.model.figure import Figure
    from bedplate.model.reason import Reason
    from bedplate.model.visit import Validity
    from bedplate.workloads.pgbench.scripts import RunScript

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
