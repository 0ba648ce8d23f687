"""The figures of a run of an own engine's writer: a transaction is one that it acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from bedplate.figures.transaction_run import TransactionFigures, TransactionRun
from bedplate.workloads.acks.output import AcksSummary, read_summary
from bedplate.workloads.acks.validity import VALIDITY, AcksEvidence

if TYPE_CHECKING:
    import polars as pl

    from bedplate.figures.protocol import FigureMaker
    from bedplate.model.reason import Reason
    from bedplate.model.visit import Validity


class _AcksMeasured(TransactionRun):
    threads_fact: ClassVar[str] = "clients"

    def read_only(self) -> bool:
        return False

    def verdict(self, course: pl.DataFrame) -> tuple[Validity, tuple[Reason, ...]]:
        summary = self.inputs.summary
        own = summary if isinstance(summary, AcksSummary) else None
        evidence = AcksEvidence(
            **self.shared_evidence(course),
            client="the reader of the pipe",
            together_share=own.together / own.transactions if own and own.transactions else None,
            quiet_s=own.quiet_s if own else None,
        )
        return VALIDITY.judge(evidence)


FIGURES: FigureMaker = TransactionFigures(_AcksMeasured, read_summary)
