"""The figures of a sysbench run."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from bedplate.figures.latency import percentiles_us
from bedplate.figures.transaction_run import TransactionFigures, TransactionRun
from bedplate.model.metrics import figure
from bedplate.model.reason import because
from bedplate.workloads.sysbench.model import READ_ONLY
from bedplate.workloads.sysbench.output import SysbenchSummary, parse_summary
from bedplate.workloads.sysbench.validity import HELD_AGAINST, VALIDITY, SysbenchEvidence

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import polars as pl

    from bedplate.figures.protocol import FigureMaker
    from bedplate.model.figure import Figure
    from bedplate.model.reason import Reason
    from bedplate.model.visit import Validity

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
