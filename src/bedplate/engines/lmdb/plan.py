"""`[lmdb]` in a plan: how LMDB's environment is opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from pydantic import ValidationInfo

from bedplate.engines.lmdb.model import PREALLOCATIONS, SYNC_MODES
from bedplate.engines.lmdb.prepare import place_in_tree
from bedplate.model.cell import BY_TEST, Cell, SourceTree
from bedplate.model.engines import LMDB
from bedplate.plan import values
from bedplate.plan.fields import Factor, Flag, within
from bedplate.plan.table import SettingsTable
from bedplate.plan.trees import SOURCE, source_trees

if TYPE_CHECKING:
    from bedplate.plan.rules import CellContext, Rule

# What a plan may ask for.
_SYNC = (BY_TEST, *SYNC_MODES)


def _source(value: Any, info: ValidationInfo) -> tuple[SourceTree, ...]:
    return source_trees(value, info.context or {}, place_in_tree)


Source: TypeAlias = Annotated[tuple[SourceTree, ...], within(_source, form=SOURCE)]


class LmdbTable(SettingsTable):
    """`[lmdb]`: how LMDB's environment is opened."""

    sync: Factor[Annotated[str, within(values.one_of, _SYNC)]] = ()
    """cluster | `full`; `nometasync`, `nosync`, `mapasync`: the library's flags of these names, for every test that writes;
    `by-test`: as published, `full` for the tests named sync and `nosync` for the rest | `by-test` | `{ vary = ["full", "nosync"]
    }`"""
    writemap: Factor[Flag] = ()
    """cluster | `true`: write through the memory map. `mapasync` without it is pruned, as it would change nothing | `false` |
    `true`"""
    readahead: Factor[Flag] = ()
    """cluster | `false`: ask the kernel not to read ahead in the map | `true` | `{ vary = [true, false] }`"""
    preallocation: Factor[Annotated[str, within(values.one_of, PREALLOCATIONS)]] = ()
    """cluster | `none`, `ftruncate`, `fallocate`, `written`: what is done with the file, up to the size of the map, before a fill |
    `none` | `"fallocate"`"""

    source: Source = ()
    """cluster | a tree with LMDB's source, at its top or in `libraries/liblmdb`: `tree` is a work tree or a bare repository, `commit` a branch, a tag, a
    hash or `"working tree"`, and may vary ([source trees](#source-trees-and-patches)) | the distribution's library | `{ tree = "~/src/lmdb", commit =
    { vary = ["LMDB_0.9.31", "mdb.master"] } }`"""

    level_names: ClassVar[dict[str, str]] = {"lmdb": "cluster.settings."}
    engine: ClassVar[str] = LMDB


PLAN = LmdbTable


def lmdb_flags(cell: Cell, around: CellContext) -> Iterator[str]:  # noqa: ARG001 -- a rule is a rule
    """MDB_MAPASYNC speaks of msync, and so of nothing without MDB_WRITEMAP (lmdb.h)."""
    settings = cell.cluster.settings
    if cell.build.engine == LMDB and settings.get("sync") == "mapasync" and not settings.get("writemap"):
        yield "sync = mapasync changes nothing without writemap = true"


RULES: Mapping[str, Rule] = {"flag-without-effect": lmdb_flags}
