"""What a study says of sysbench's runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.analysis.run_heads import TransactionView
from bedplate.model.cell import RunSpec
from bedplate.workloads.sysbench.model import READ_ONLY

if TYPE_CHECKING:
    from bedplate.analysis.overview import Overview


class SysbenchView(TransactionView):
    """Transactions."""

    def writes(self, overview: Overview, run: tuple[str, str], spec: RunSpec) -> bool:  # noqa: ARG002 -- its script says it
        """All scripts but one."""
        return spec.levels.text("script") != READ_ONLY


ANALYSIS = SysbenchView()
