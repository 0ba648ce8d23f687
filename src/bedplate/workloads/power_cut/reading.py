"""What a study says of a run of power cuts: a verdict, and no speed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from bedplate.analysis.run_heads import RunHead, WorkloadView
from bedplate.cuts.records import WORKLOAD
from bedplate.model.cell import RunSpec

if TYPE_CHECKING:
    from bedplate.analysis.overview import Overview

_HEAD = RunHead("power_cuts_bad", "cuts bad", "power_cuts", "cuts", beneath=True)


class PowerCutView(WorkloadView):
    """Cuts of one recording."""

    heads: ClassVar[Mapping[str, RunHead]] = {WORKLOAD: _HEAD}
    headlines: ClassVar[tuple[str, ...]] = ("power_cuts",)

    def writes(self, overview: Overview, run: tuple[str, str], spec: RunSpec) -> bool:  # noqa: ARG002 -- its kind says it
        """What was recorded is what was written."""
        return True

    def kind(self, spec: RunSpec) -> str | None:  # noqa: ARG002 -- all alike
        """They have a kind of their own."""
        return WORKLOAD


ANALYSIS = PowerCutView()
