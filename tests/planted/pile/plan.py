from __future__ import annotations

from itertools import product
from typing import Any, ClassVar

from pydantic import Field

from bedplate.model.cell import BuildLevels, ClusterLevels
from bedplate.model.levels import Levels
from bedplate.model.plan import EngineSetup
from bedplate.plan.engine_table import EngineTable, asked
from bedplate.plan.fields import Factor, Flag


class PileTable(EngineTable):
    mortar: Factor[Flag] = Field(default=(), description="true or false")

    level_names: ClassVar[dict[str, str]] = {"pile": "cluster.settings."}

    def build_factors(self) -> tuple[tuple[Any, ...], ...]:
        return ()

    def cluster_factors(self) -> tuple[tuple[Any, ...], ...]:
        return (asked(self.mortar),)

    def setup(self) -> EngineSetup:
        clusters = tuple(
            ClusterLevels(settings=Levels({} if mortar is None else {"mortar": mortar}))
            for (mortar,) in product(*self.cluster_factors())
        )
        return EngineSetup("pile", (BuildLevels.without_postgresql("pile"),), clusters)


PLAN = PileTable
