"""LMDB under the microbenchmark: the options of its driver, and what its errors call for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.lmdb.library import LIBLMDB
from bedplate.engines.lmdb.model import MODEL
from bedplate.engines.lmdb.settings import settings_in_force
from bedplate.model.levels import Levels
from bedplate.model.source_commit import SOURCE
from bedplate.visit.workload import Driver

if TYPE_CHECKING:
    from bedplate.visit.bench_engine import BenchEngine


class LmdbBench:
    """Its environment is opened anew for each test."""

    drivers: tuple[Driver, ...] = (Driver("microbenchmark", (LIBLMDB,), "lmdb", (SOURCE,)),)
    library = "liblmdb"
    files: tuple[str, ...] = ("data.mdb", "lock.mdb")

    def opened(self, settings: Levels, dataset: Levels, *, synchronous: bool | None, fresh: bool) -> Levels:
        """Flags, preallocation of what is made anew, and the size of the map where the dataset has one."""
        found = dict(settings_in_force(settings))
        if synchronous is None:
            del found["sync"]
        else:
            found["sync"] = MODEL.commit_mode(settings, synchronous=synchronous)
        if not fresh:
            del found["preallocation"]
        map_bytes = dataset.integer("map_bytes")
        return Levels(found if map_bytes is None else {**found, "map_bytes": map_bytes})

    def remedy(self, error: str) -> tuple[str, str] | None:
        """Of a map that is full."""
        if "MDB_MAP_FULL" in error:
            return "map-full", "a larger map_size, or fewer entries, give it room"
        return None


MICROBENCHMARK: BenchEngine = LmdbBench()
