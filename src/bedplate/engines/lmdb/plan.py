"""`[lmdb]` in a plan: how LMDB's environment is opened."""

from __future__ import annotations

from typing import Annotated, ClassVar, TypeAlias

from pydantic import Field

from bedplate.engines.lmdb.settings import PREALLOCATIONS, SYNC_MODES
from bedplate.model.engine import BY_TEST
from bedplate.model.engines import LMDB
from bedplate.plan import values
from bedplate.plan.engine_table import SettingsTable
from bedplate.plan.fields import Factor, Flag, within

# What a plan may ask for.
_SYNC = (BY_TEST, *SYNC_MODES)
SyncMode: TypeAlias = Annotated[str, within(values.one_of, _SYNC)]
Preallocation: TypeAlias = Annotated[str, within(values.one_of, PREALLOCATIONS)]


class LmdbTable(SettingsTable):
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
    engine: ClassVar[str] = LMDB


PLAN = LmdbTable
