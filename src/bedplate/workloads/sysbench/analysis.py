"""What a study says of sysbench's runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from bedplate.analysis.run_heads import TRANSACTIONS
from bedplate.analysis.workload_view import RunHead, WorkloadView
from bedplate.workloads.sysbench.model import READ_ONLY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.analysis.overview import Overview
    from bedplate.model.cell import RunSpec


class SysbenchView(WorkloadView):
    """Transactions."""

    makes_transactions: ClassVar[bool] = True
    heads: ClassVar[Mapping[str, RunHead]] = {"": TRANSACTIONS}
    headlines: ClassVar[tuple[str, ...]] = ("tps",)

    def writes(self, found: Overview, run: tuple[str, str], spec: RunSpec) -> bool:  # noqa: ARG002 -- its script says it
        """All scripts but one."""
        return spec.levels.text("script") != READ_ONLY


ANALYSIS = SysbenchView()
