"""The figures of a sysbench run."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from bedplate.figures.latency import percentiles_us
from bedplate.figures.transaction_run import TransactionFigures, TransactionRun
from bedplate.workloads.sysbench.model import READ_ONLY
from bedplate.workloads.sysbench.output import SysbenchSummary, parse_summary
from bedplate.workloads.sysbench.validity import HELD_AGAINST, VALIDITY, SysbenchEvidence

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from bedplate.figures.protocol import FigureMaker
    from bedplate.model.reason import Reason
    from bedplate.model.visit import Validity


def _summary(logs: Path) -> SysbenchSummary:
    return parse_summary((logs / "sysbench.out").read_text(encoding="utf-8", errors="replace"))


class _SysbenchMeasured(TransactionRun):
    threads_fact: ClassVar[str] = "threads"

    def read_only(self) -> bool:
        return self.inputs.record.facts.get("script") == READ_ONLY

    def verdict(self, course: pl.DataFrame) -> tuple[Validity, tuple[Reason, ...]]:
        log, summary = self.inputs.measure_log, self.inputs.summary
        by_log = None if log is None else percentiles_us(log, (HELD_AGAINST,))
        evidence = SysbenchEvidence(
            **self.shared_evidence(course),
            client="sysbench",
            percentile_ms_by_log=None if by_log is None else by_log[0] / 1000,
            percentile_ms_by_client=(
                summary.percentile_ms(HELD_AGAINST) if isinstance(summary, SysbenchSummary) else None
            ),
        )
        return VALIDITY.judge(evidence)


FIGURES: FigureMaker = TransactionFigures(_SysbenchMeasured, _summary)
