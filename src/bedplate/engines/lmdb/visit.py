"""LMDB under the microbenchmark: the options of its driver, and what its errors call for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from bedplate.engines.lmdb.model import FULL, MAPASYNC, MODEL, NOMETASYNC, SYNC_MODES, settings_in_force
from bedplate.host.native_driver import Library
from bedplate.model.cell import SOURCE
from bedplate.model.durability import BOUNDED_LOSS, UNSAFE
from bedplate.model.levels import Levels
from bedplate.model.reason import Reason, because
from bedplate.visit.declaration import EngineDurability, LibraryDurability
from bedplate.visit.recording import Driver

if TYPE_CHECKING:
    from bedplate.visit.cuts import BenchEngine

LIBLMDB = Library(
    name="liblmdb",
    header="lmdb.h",
    package="liblmdb-dev",
    linker_words=("-llmdb",),
    version_macros=("MDB_VERSION_MAJOR", "MDB_VERSION_MINOR", "MDB_VERSION_PATCH"),
)


class LmdbBench:
    """Its environment is opened anew for each test."""

    drivers: tuple[Driver, ...] = (Driver("microbenchmark", (LIBLMDB,), "lmdb", (SOURCE,)),)
    library = "liblmdb"
    files: tuple[str, ...] = ("data.mdb", "lock.mdb")
    remedies: Mapping[str, tuple[str, str]] = MappingProxyType(
        {"MDB_MAP_FULL": ("map-full", "a larger map_size, or fewer entries, give it room")}
    )

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


MICROBENCHMARK: BenchEngine = LmdbBench()

_NOMETASYNC = because(
    "nometasync", "sync = nometasync: the last committed transaction may be undone, what stays is whole"
)

_NOSYNC_IN_ORDER = because(
    "nosync-in-order",
    "sync = nosync: the last transactions may be lost; the file system keeps the order of writes, so "
    "what stays is whole",
)

_NOSYNC = because(
    "nosync",
    "sync = nosync: nothing waits for the medium and the page cache keeps no order, so a cut may leave a "
    "damaged database",
)


def lowered(mode: str, settings: Levels, *, keeps_write_order: bool) -> tuple[str, Reason] | None:
    """The best class that the flags allow, and why; None where they take nothing away. ValueError for a mode that LMDB does not have."""
    if mode not in SYNC_MODES:
        raise ValueError(f"sync = {mode!r} is no mode of LMDB; known are {', '.join(SYNC_MODES)}")
    writemap = settings.flag("writemap") is True
    if mode == FULL or (mode == MAPASYNC and not writemap):
        return None
    if mode == NOMETASYNC:
        return BOUNDED_LOSS, _NOMETASYNC
    if writemap:
        words = (
            f"sync = {mode} with writemap: the kernel writes the map's pages back in any order, and a "
            f"cut between them may leave a damaged database"
        )
        return UNSAFE, because("map-written-in-any-order", words, sync=mode)
    if keeps_write_order:
        return BOUNDED_LOSS, _NOSYNC_IN_ORDER
    return UNSAFE, _NOSYNC


DURABILITY: EngineDurability = LibraryDurability(
    MODEL, "lmdb", settings_in_force, "the LMDB driver's options", lowered
)
