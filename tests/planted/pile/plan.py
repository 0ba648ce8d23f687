from __future__ import annotations

from typing import Annotated, ClassVar, TypeAlias

from pydantic import Field

from bedplate.plan import values
from bedplate.plan.fields import Factor, Flag, within
from bedplate.plan.table import EngineTable, Factors, of_settings
from bedplate.units import KIB

Stone: TypeAlias = Annotated[int, within(values.size, KIB, 64 * KIB)]


class PileTable(EngineTable):
    mortar: Factor[Flag] = Field(default=(), description="true or false")
    stone: Factor[Stone] = Field(default=(KIB,), description='a size, such as "4 kB"')

    level_names: ClassVar[dict[str, str]] = {"pile": "cluster.settings."}

    engine: ClassVar[str] = "pile"

    def cluster_factors(self) -> Factors:
        return of_settings({"mortar": self.mortar or (False,), "stone_bytes": self.stone})


PLAN = PileTable
