"""What a study says of pgbench's runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from bedplate.analysis.run_heads import TransactionView
from bedplate.model.cell import RunSpec
from bedplate.study.checksums import WAL_KIB_OF_READING_MAX
from bedplate.workloads.pgbench.model import PHASE, scripts_of, writes

if TYPE_CHECKING:
    from bedplate.analysis.overview import Overview


class PgbenchView(TransactionView):
    """Transactions."""

    looked_at: ClassVar[tuple[str, str] | None] = (PHASE, "latency_ms_p99")

    def writes(self, overview: Overview, run: tuple[str, str], spec: RunSpec) -> bool:
        """Of scripts of the user's own: what they wrote to the WAL in any cell."""
        known = writes(scripts_of(spec.levels))
        if known is not None:
            return known
        wal_kib = (
            m.value("wal_kib_per_transaction") for cell in overview.cells for m in overview.of(cell, run)
        )
        return any(value is not None and value >= WAL_KIB_OF_READING_MAX for value in wal_kib)


ANALYSIS = PgbenchView()
