from __future__ import annotations

from itertools import product
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import Field

from bedplate.model.cell import BuildLevels, ClusterLevels
from bedplate.model.levels import Levels
from bedplate.model.plan import EngineSetup
from bedplate.plan import values
from bedplate.plan.fields import Factor, Flag, within
from bedplate.plan.table import EngineTable, levels_or_none
from bedplate.units import KIB

Stone: TypeAlias = Annotated[int, within(values.size, KIB, 64 * KIB)]


class PileTable(EngineTable):
    mortar: Factor[Flag] = Field(default=(), description="true or false")
    stone: Factor[Stone] = Field(default=(KIB,), description='a size, such as "4 kB"')

    level_names: ClassVar[dict[str, str]] = {"pile": "cluster.settings."}

    def build_factors(self) -> tuple[tuple[Any, ...], ...]:
        return ()

    def cluster_factors(self) -> tuple[tuple[Any, ...], ...]:
        return (levels_or_none(self.mortar), self.stone)

    def setup(self) -> EngineSetup:
        clusters = tuple(
            ClusterLevels(settings=Levels({"mortar": mortar is True, "stone_bytes": stone}))
            for mortar, stone in product(*self.cluster_factors())
        )
        return EngineSetup("pile", (BuildLevels.unbuilt("pile"),), clusters)


PLAN = PileTable
