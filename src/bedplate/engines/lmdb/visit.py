"""LMDB under the microbenchmark: the options of its driver, and what its errors call for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.engines.lmdb.model import FULL, MAPASYNC, MODEL, NOMETASYNC, SYNC_MODES, settings_in_force
from bedplate.host.native_driver import Library
from bedplate.model.cell import SOURCE
from bedplate.model.durability import BOUNDED_LOSS, UNSAFE, FilesystemPromise, lowered_to
from bedplate.model.durability import declared as declared_by_filesystem
from bedplate.model.levels import Levels
from bedplate.model.reason import Reason, because
from bedplate.model.visit import Durability, ReadBack
from bedplate.visit.declaration import EngineDurability, of_each_test
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


@dataclass(frozen=True)
class LmdbFlags:
    """How an environment was open while it was written; `sync` is one of `SYNC_MODES`."""

    sync: str
    writemap: bool

    def __post_init__(self) -> None:
        if self.sync not in SYNC_MODES:
            raise ValueError(f"sync = {self.sync!r} is no mode of LMDB; known are {', '.join(SYNC_MODES)}")


def declared(filesystem: FilesystemPromise, flags: LmdbFlags) -> Durability:
    """The class that the file system and LMDB's flags declare together."""
    found = declared_by_filesystem(filesystem)
    lowered = _by_flags(flags, keeps_write_order=filesystem.keeps_write_order)
    if lowered is None:
        return found
    best, reason = lowered
    return lowered_to(found, best, best, reason)


def _by_flags(flags: LmdbFlags, *, keeps_write_order: bool) -> tuple[str, Reason] | None:
    """What the flags allow at best, and why; None where they take nothing away."""
    if flags.sync == FULL or (flags.sync == MAPASYNC and not flags.writemap):
        return None
    if flags.sync == NOMETASYNC:
        return BOUNDED_LOSS, _NOMETASYNC
    if flags.writemap:
        words = (
            f"sync = {flags.sync} with writemap: the kernel writes the map's pages back in any order, and a "
            f"cut between them may leave a damaged database"
        )
        return UNSAFE, because("map-written-in-any-order", words, sync=flags.sync)
    if keeps_write_order:
        return BOUNDED_LOSS, _NOSYNC_IN_ORDER
    return UNSAFE, _NOSYNC


class LmdbDurability(EngineDurability):
    """Of an environment whose tests may commit in two ways."""

    def opened(self, settings: Levels) -> Sequence[ReadBack]:
        """How the environment is opened; each run holds what the driver says it was told against it."""
        return [
            ReadBack(f"lmdb.{name}", settings.get(name), value, "the LMDB driver's options", matches=None)
            for name, value in settings_in_force(settings).items()
        ]

    def declare(
        self,
        settings: Levels,
        server_settings: Mapping[str, str],  # noqa: ARG002 -- there is no server
        filesystem: FilesystemPromise,
    ) -> Durability:
        """By the mode; of `by-test` that of the synchronous tests, with that of the others."""
        writemap = settings_in_force(settings).flag("writemap") is True

        def of(mode: str) -> Durability:
            return declared(filesystem, LmdbFlags(mode, writemap))

        return of_each_test(MODEL, settings, of)


DURABILITY: EngineDurability = LmdbDurability()
