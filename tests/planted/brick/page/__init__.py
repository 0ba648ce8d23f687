from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bedplate.analysis.overview import Overview
from bedplate.analysis.run_heads import runs_of
from bedplate.page.static import WorkloadPage


def document(overviews: Sequence[Overview], runs: Sequence[tuple[str, str]]) -> Mapping[str, Any]:
    walls = [
        [cell.label.full, found.summary(cell.id, run, "operations_per_s").centre]
        for found in overviews
        for run in runs_of(found, "brick")
        for cell in found.cells.values()
    ]
    return {"walls": walls}


PAGE = WorkloadPage(
    Path(__file__).parent,
    {"courses": ("walls", "Walls")},
    lambda overviews: any(runs_of(found, "brick") for found in overviews),
    document,
    lambda overviews: {"walls": sum(len(found.cells) for found in overviews)},
    templates={"bricks_in": "{bricks} bricks a second in {cell}"},
)
