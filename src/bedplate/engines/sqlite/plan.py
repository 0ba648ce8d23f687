"""`[sqlite]` in a plan: the PRAGMAs of each connection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from pydantic import ValidationInfo, model_validator

from bedplate.engines.sqlite.model import (
    AUTO_VACUUMS,
    BEGINS,
    EXTRA,
    JOURNAL_MODES,
    LOCKING_MODES,
    LONGEST_BUSY_MS,
    PAGE_SIZES,
    SYNCHRONOUS,
    WAL,
    amalgamation,
)
from bedplate.engines.sqlite.prepare import version_in_tree
from bedplate.model.cell import BY_TEST, Cell, SourceTree
from bedplate.model.engines import SQLITE
from bedplate.model.levels import Scalar
from bedplate.plan import values
from bedplate.plan.fields import Factor, within
from bedplate.plan.table import SettingsTable
from bedplate.plan.trees import SOURCE, source_trees
from bedplate.units import KIB, TIB

if TYPE_CHECKING:
    from bedplate.plan.rules import CellContext, Rule

_SYNCHRONOUS = (BY_TEST, *SYNCHRONOUS)

PageSize: TypeAlias = Annotated[int, within(values.power_of_two, PAGE_SIZES)]
Checkpoint: TypeAlias = Annotated[int, within(values.whole_number, 0, 10**9)]
MapSize: TypeAlias = Annotated[int, within(values.size, 0, TIB)]
Begin: TypeAlias = Annotated[str, within(values.one_of, BEGINS)]


def _amalgamation(value: Any, info: ValidationInfo) -> str | None:
    return amalgamation(value, info.context or {})


def _source(value: Any, info: ValidationInfo) -> tuple[SourceTree, ...]:
    return source_trees(value, info.context or {}, version_in_tree)


Source: TypeAlias = Annotated[tuple[SourceTree, ...], within(_source, form=SOURCE)]


class SqliteTable(SettingsTable):
    """`[sqlite]`: PRAGMAs, each by its name; what is left out is the library's own."""

    page_size: Factor[PageSize] = ()
    """cluster | `512 B` to `64 kB`, a power of two; chosen when the file is made | SQLite's own (4 kB) | `{ vary = ["4 kB", "16 kB"] }`"""
    journal_mode: Factor[Annotated[str, within(values.one_of, JOURNAL_MODES)]] = ()
    """cluster | `delete`, `truncate`, `persist`, `wal`, `memory`, `off` | SQLite's own (`delete`) | `{ vary = ["delete", "wal"] }`"""
    synchronous: Factor[Annotated[str, within(values.one_of, _SYNCHRONOUS)]] = ()
    """cluster | `off`, `normal`, `full`, `extra`; `by-test`: in the microbenchmark, as published, `full` for the tests named sync and
    `tpcb`, `off` for the rest; else `full` | `by-test` | `{ vary = ["full", "extra"] }`"""
    wal_autocheckpoint: Factor[Checkpoint] = ()
    """cluster | pages of the log before a checkpoint, 0 for never; only with `wal` | SQLite's own (1000) | `200`"""
    cache_size: Factor[Annotated[int, within(values.size, KIB, TIB)]] = ()
    """cluster | size of a connection's page cache, in whole kB | SQLite's own (2 MB) | `"64 MB"`"""
    mmap_size: Factor[MapSize] = ()
    """cluster | how much of the file is read by a memory map, 0 for none; SQLite itself takes at most 2 GB | SQLite's own (none) |
    `{ vary = [0, "1 GB"] }`"""
    locking_mode: Factor[Annotated[str, within(values.one_of, LOCKING_MODES)]] = ()
    """cluster | `normal`, `exclusive`: one connection keeps the file, so there are no `readwhilewriting` and no `tpcb` | `normal` | `"exclusive"`"""
    auto_vacuum: Factor[Annotated[str, within(values.one_of, AUTO_VACUUMS)]] = ()
    """cluster | `none`, `full`, `incremental`; chosen when the file is made | SQLite's own (`none`) | `"full"`"""

    busy_timeout: Factor[Annotated[int, within(values.whole_number, 0, LONGEST_BUSY_MS)]] = ()
    """cluster | milliseconds for which a connection of the microbenchmark waits for another's lock; then SQLite answers SQLITE_BUSY,
    and `tpcb` begins the transaction again, while any other test fails | 600000 | `{ vary = [0, 5000] }`"""
    begin: Factor[Begin] = ()
    """cluster | how a transaction of the microbenchmark that writes begins: `immediate` gets the lock first, `deferred` at its first
    write, when what it has read may be old | `immediate` | `{ vary = ["immediate", "deferred"] }`"""

    amalgamation: Factor[Annotated[str | None, within(_amalgamation, form=values.TEXT)]] = ()
    """cluster | a folder or zip with sqlite3.c and sqlite3.h, relative to the plan or from the root; `system`: the distribution's library |
    `"system"` | `{ vary = ["system", "sqlite-amalgamation.zip"] }`"""

    source: Source = ()
    """cluster | a tree of SQLite's, whose `sqlite3.c` is generated: `tree` is a work tree or a bare repository, `commit` a branch, a tag, a hash or
    `"working tree"`, and may vary ([source trees](#source-trees-and-patches)); not beside `amalgamation` | the distribution's library | `{ tree =
    "~/src/sqlite", commit = { vary = ["version-3.50.0", "master"] } }`"""

    @model_validator(mode="after")
    def _is_one_library(self) -> SqliteTable:
        if self.source and self.amalgamation:
            raise ValueError("amalgamation and source both say which library it is; take one of them out")
        return self

    level_names: ClassVar[dict[str, str]] = {"sqlite": "cluster.settings."}
    engine: ClassVar[str] = SQLITE

    @staticmethod
    def level(section: str, level: Scalar) -> Scalar:  # noqa: ARG004 -- it has one
        """Sizes in bytes, words as they are."""
        try:
            return values.size(0, TIB, level)
        except ValueError:
            return level


PLAN = SqliteTable


def pragmas_without_effect(cell: Cell, around: CellContext) -> Iterator[str]:  # noqa: ARG001 -- a rule is a rule
    """EXTRA speaks of a rollback journal, and a checkpoint of a WAL (sqlite.org/pragma.html)."""
    settings = cell.cluster.settings
    if cell.build.engine != SQLITE:
        return
    is_wal = settings.get("journal_mode") == WAL
    if is_wal and settings.get("synchronous") == EXTRA:
        yield "synchronous = extra changes nothing against full with journal_mode = wal"
    if not is_wal and settings.get("wal_autocheckpoint") is not None:
        yield "wal_autocheckpoint changes nothing without journal_mode = wal"


RULES: Mapping[str, Rule] = {"pragma-without-effect": pragmas_without_effect}
