"""The declared durability class of LMDB: what its flags leave of what the file system promises.

Rules, each with its source; "lmdb.h" is its description of `mdb_env_open`:
- Without flags a commit syncs the data and then the meta page that points to it, so it is as durable as
  the file system's own fsync. With `MDB_WRITEMAP` the same by msync (lmdb.h), which syncs the file too.
- `MDB_NOMETASYNC` "maintains database integrity, but a system crash may undo the last committed
  transaction": bounded loss.
- `MDB_NOSYNC`: "a system crash can corrupt the database"; only "if the filesystem preserves write order
  and the MDB_WRITEMAP flag is not used" does integrity hold, and the last transactions go. The page cache
  keeps no order between the pages of a file, so this needs a file system that keeps it by itself; a
  protected device cache does not help, as the pages never reached it in order.
- With `MDB_WRITEMAP` pages are written back in the kernel's own order, whatever the file system keeps.
- `MDB_MAPASYNC`: "as with MDB_NOSYNC, a system crash can then corrupt the database or lose the last
  transactions"; it speaks of msync alone, and so without `MDB_WRITEMAP` it changes nothing
  (`mdb_env_sync` in mdb.c of LMDB 0.9).
- `MDB_NORDAHEAD`, the size of the map and its preallocation do not touch what survives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.engines.lmdb.model import MODEL
from bedplate.engines.lmdb.settings import FULL, MAPASYNC, NOMETASYNC, SYNC_MODES, settings_in_force
from bedplate.model.durability import BOUNDED_LOSS, UNSAFE, FilesystemPromise, lowered_to
from bedplate.model.durability import declared as declared_by_filesystem
from bedplate.model.reason import Reason, because
from bedplate.model.visit import Durability, ReadBack
from bedplate.visit.declaration import EngineDurability, of_each_test

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.model.levels import Levels

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
