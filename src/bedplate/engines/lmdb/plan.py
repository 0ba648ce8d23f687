"""`[lmdb]` in a plan: how LMDB's environment is opened."""

from __future__ import annotations

from itertools import product
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import Field

from bedplate.engines.lmdb.settings import PREALLOCATIONS, SYNC_MODES
from bedplate.model.cell import BuildLevels, ClusterLevels
from bedplate.model.engine import BY_TEST
from bedplate.model.engines import LMDB
from bedplate.model.levels import Levels
from bedplate.model.plan import EngineSetup
from bedplate.plan import values
from bedplate.plan.engine_table import EngineTable, asked
from bedplate.plan.fields import Factor, Flag, within

# What a plan may ask for.
_SYNC = (BY_TEST, *SYNC_MODES)
SyncMode: TypeAlias = Annotated[str, within(values.one_of, _SYNC)]
Preallocation: TypeAlias = Annotated[str, within(values.one_of, PREALLOCATIONS)]


class LmdbTable(EngineTable):
    """`[lmdb]`: how LMDB's environment is opened."""

    sync: Factor[SyncMode] = Field(default=(), description=f"one of {', '.join(_SYNC)}")
    """cluster | `full`; `nometasync`, `nosync`, `mapasync`: the library's flags of these names, for every test that writes;
    `by-test`: as published, `full` for the tests named sync and `nosync` for the rest | `by-test` | `{ vary = ["full", "nosync"]
    }`"""
    writemap: Factor[Flag] = Field(default=(), description="true or false: write through the memory map")
    """cluster | `true`: write through the memory map. `mapasync` without it is pruned, as it would change nothing | `false` |
    `true`"""
    readahead: Factor[Flag] = Field(
        default=(), description="true or false: the kernel's read-ahead of the map"
    )
    """cluster | `false`: ask the kernel not to read ahead in the map | `true` | `{ vary = [true, false] }`"""
    preallocation: Factor[Preallocation] = Field(
        default=(), description=f"one of {', '.join(PREALLOCATIONS)}"
    )
    """cluster | `none`, `ftruncate`, `fallocate`, `written`: what is done with the file, up to the size of the map, before a fill |
    `none` | `"fallocate"`"""

    level_names: ClassVar[dict[str, str]] = {"lmdb": "cluster.settings."}

    def build_factors(self) -> tuple[tuple[Any, ...], ...]:
        """None: the library is the system's."""
        return ()

    def cluster_factors(self) -> tuple[tuple[Any, ...], ...]:
        """In the order of the keys."""
        return tuple(asked(getattr(self, name)) for name in type(self).model_fields)

    def setup(self) -> EngineSetup:
        """Every combination of what was asked for; what was not is the library's, or the benchmark's own way."""
        names = tuple(type(self).model_fields)
        clusters = tuple(
            ClusterLevels(
                settings=Levels(
                    {name: level for name, level in zip(names, levels, strict=True) if level is not None}
                )
            )
            for levels in product(*self.cluster_factors())
        )
        return EngineSetup(LMDB, (BuildLevels.unbuilt(LMDB),), clusters)


PLAN = LmdbTable
