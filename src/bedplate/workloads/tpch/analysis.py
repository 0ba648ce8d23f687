"""What a study says of the runs of TPC-H."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from bedplate.analysis.workload_view import RunHead, WorkloadView
from bedplate.model.tpch import LOAD, POWER, THROUGHPUT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.analysis.overview import Overview
    from bedplate.model.cell import RunSpec

_HEADS = {
    LOAD: RunHead("load_total_s", "total s", "database_mib", "MiB of database", beneath=True),
    POWER: RunHead("queries_total_s", "queries s", "queries_completed", "queries completed", beneath=True),
    THROUGHPUT: RunHead("streams_s", "streams s", "queries_completed", "queries completed", beneath=True),
}


class TpchRunsView(WorkloadView):
    """A load, passes over the queries, streams of them."""

    heads: ClassVar[Mapping[str, RunHead]] = _HEADS
    headlines: ClassVar[tuple[str, ...]] = ("queries_total_s", "streams_s", "load_total_s")

    def writes(self, found: Overview, run: tuple[str, str], spec: RunSpec) -> bool:  # noqa: ARG002 -- its kind says it
        """The answer is ordered by the queries, which read."""
        return False


ANALYSIS = TpchRunsView()
