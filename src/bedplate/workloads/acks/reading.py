"""What a study says of runs of an own engine's writer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.analysis.run_heads import TransactionView
from bedplate.model.cell import RunSpec

if TYPE_CHECKING:
    from bedplate.analysis.overview import Overview


class AcksView(TransactionView):
    """A transaction is one that was acknowledged."""

    def writes(self, overview: Overview, run: tuple[str, str], spec: RunSpec) -> bool:  # noqa: ARG002 -- all of them
        """What is acknowledged was written."""
        return True


ANALYSIS = AcksView()
