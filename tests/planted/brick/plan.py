from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from bedplate.model.cell import RunSpec
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import PlannedWorkload
from bedplate.plan.fields import Count, Factor
from bedplate.plan.table import WorkloadTable


class BrickTable(WorkloadTable):
    type: Literal["brick"] = Field(description="brick")
    bricks: Factor[Count] = Field(default=(100,), description="a whole number from 1")

    dataset_key: ClassVar[str] = ".bricks"
    runs_on: ClassVar[tuple[str, ...]] = ("pile",)

    def run_count(self) -> int:
        return 1

    def dataset_factors(self) -> Mapping[str, tuple[Scalar, ...]]:
        return {"bricks": self.bricks}

    def planned(self, seed: int, defaults: int) -> PlannedWorkload:
        spec = RunSpec("lay", "brick", Levels(kind="lay"))
        return PlannedWorkload("brick", (), (spec,), self.datasets())


PLAN = BrickTable
