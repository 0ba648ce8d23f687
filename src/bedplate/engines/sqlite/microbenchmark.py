"""SQLite under the microbenchmark: the options of its driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.sqlite.amalgamation import LIBRARY_SETTINGS, told_of_library
from bedplate.engines.sqlite.library import LIBSQLITE3
from bedplate.engines.sqlite.model import MODEL
from bedplate.model.levels import Levels
from bedplate.visit.workload import Driver

if TYPE_CHECKING:
    from bedplate.visit.bench_engine import BenchEngine

DATABASE = "test.db"


class SqliteBench:
    """Its file is opened anew for each test."""

    drivers: tuple[Driver, ...] = (Driver("microbenchmark", (LIBSQLITE3,), "sqlite", LIBRARY_SETTINGS),)
    library = "libsqlite3"
    files: tuple[str, ...] = tuple(f"{DATABASE}{suffix}" for suffix in ("", "-journal", "-wal", "-shm"))

    def opened(
        self,
        settings: Levels,
        dataset: Levels,  # noqa: ARG002 -- of engines that need to know how much comes
        *,
        synchronous: bool | None,
        fresh: bool,  # noqa: ARG002 -- what belongs to the file is read back from one that is there too
    ) -> Levels:
        """The PRAGMAs that the cell asks for; what it leaves out is the library's own."""
        found = dict(told_of_library(settings))
        found.pop(MODEL.commit_setting, None)
        if synchronous is not None:
            found[MODEL.commit_setting] = MODEL.commit_mode(settings, synchronous=synchronous)
        return Levels(found)

    def remedy(self, error: str) -> tuple[str, str] | None:  # noqa: ARG002 -- a full disk is seen by what is free
        """None: the library's words are enough."""
        return None


MICROBENCHMARK: BenchEngine = SqliteBench()
