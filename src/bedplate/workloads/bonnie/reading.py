"""What a study says of the runs of bonnie++."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from bedplate.analysis.run_heads import MovedBytes, RunHead, WorkloadView
from bedplate.model.cell import RunSpec
from bedplate.workloads.bonnie.model import WORKLOAD

if TYPE_CHECKING:
    from bedplate.analysis.overview import Overview

_HEAD = RunHead("stages_total_s", "stages s", "tool_cpu_s", "CPU s of bonnie++", beneath=True)


class BonnieView(WorkloadView):
    """Stages on one file, and on many."""

    heads: ClassVar[Mapping[str, RunHead]] = {WORKLOAD: _HEAD}
    headlines: ClassVar[tuple[str, ...]] = ("stages_total_s",)

    def writes(self, overview: Overview, run: tuple[str, str], spec: RunSpec) -> bool:  # noqa: ARG002 -- its kind says it
        """Every run writes its file."""
        return True

    def moved_bytes(self, spec: RunSpec) -> MovedBytes | None:  # noqa: ARG002 -- its kind says it
        """A file is read and written; single bytes take a thousand times the CPU of blocks, and would leave nothing else to see."""
        return MovedBytes("bonnie++", ("put_block", "rewrite", "get_block"))

    def kind(self, spec: RunSpec) -> str | None:  # noqa: ARG002 -- all alike
        """The tool."""
        return WORKLOAD


ANALYSIS = BonnieView()
