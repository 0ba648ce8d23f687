"""What a study says of the runs of TPC-H."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bedplate.analysis.overview import Overview, Scoring
from bedplate.analysis.run_heads import RunHead, WorkloadView
from bedplate.model.cell import RunSpec
from bedplate.workloads.tpch.model import LOAD, POWER, QUERIES, STREAM, THROUGHPUT, query_phase
from bedplate.workloads.tpch.scores import pass_views, tpch_document, with_composites

_HEADS = {
    LOAD: RunHead("load_total_s", "total s", "database_mib", "MiB of database", beneath=True),
    POWER: RunHead("queries_total_s", "queries s", "queries_completed", "queries completed", beneath=True),
    THROUGHPUT: RunHead("streams_s", "streams s", "queries_completed", "queries completed", beneath=True),
}


class TpchRunsView(WorkloadView):
    """A load, passes over the queries, streams of them."""

    heads: ClassVar[Mapping[str, RunHead]] = _HEADS
    headlines: ClassVar[tuple[str, ...]] = ("queries_total_s", "streams_s", "load_total_s")
    scoring: ClassVar[Scoring | None] = Scoring(pass_views, with_composites)

    def writes(self, overview: Overview, run: tuple[str, str], spec: RunSpec) -> bool:  # noqa: ARG002 -- its kind says it
        """The answer is ordered by the queries, which read."""
        return False

    def item_words(self, phase: str, item: str) -> str | None:
        """Queries are numbers."""
        if phase == QUERIES and item.isdecimal():
            return query_phase(int(item))
        return f"{phase}, query {item}" if phase.startswith(STREAM) or phase == THROUGHPUT else None

    def document(self, overview: Overview, runs: Sequence[tuple[str, str]]) -> Mapping[str, Any]:
        """The scores of their passes."""
        views = [tpch_document(view) for view in overview.scores if (view.dataset, view.run) in runs]
        return {"tpch": views} if views else {}


ANALYSIS = TpchRunsView()
