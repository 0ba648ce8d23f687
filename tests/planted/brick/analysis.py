from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bedplate.analysis.overview import Overview
from bedplate.analysis.run_heads import RunHead, WorkloadView
from bedplate.model.cell import RunSpec


class BrickView(WorkloadView):
    heads: ClassVar[Mapping[str, RunHead]] = {
        "lay": RunHead("operations_per_s", "bricks/s", "device_written_mib", "MiB written", beneath=True)
    }
    headlines: ClassVar[tuple[str, ...]] = ("operations_per_s",)

    def writes(self, found: Overview, run: tuple[str, str], spec: RunSpec) -> bool:
        return True

    def document(self, found: Overview, runs: Sequence[tuple[str, str]]) -> Mapping[str, Any]:
        return {"walls": len(found.cells)} if runs else {}


ANALYSIS = BrickView()
