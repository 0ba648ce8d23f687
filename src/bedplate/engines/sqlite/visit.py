"""SQLite under the microbenchmark: the options of its driver."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from bedplate.engines.sqlite.model import (
    DELETE,
    EXCLUSIVE,
    FULL,
    LIBRARY_SETTINGS,
    MEMORY,
    MODEL,
    NO_JOURNAL,
    NORMAL,
    OFF,
    WAL,
    told_of_library,
)
from bedplate.host.native_driver import Library
from bedplate.model.cell import BY_TEST
from bedplate.model.durability import BOUNDED_LOSS, UNSAFE
from bedplate.model.levels import Levels
from bedplate.model.reason import Reason, because
from bedplate.visit.declaration import EngineDurability, LibraryDurability
from bedplate.visit.recording import Driver

if TYPE_CHECKING:
    from bedplate.visit.cuts import BenchEngine

LIBSQLITE3 = Library(
    name="libsqlite3",
    header="sqlite3.h",
    package="libsqlite3-dev",
    linker_words=("-lsqlite3",),
    version_macros=("SQLITE_VERSION",),
)

DATABASE = "test.db"


class SqliteBench:
    """Its file is opened anew for each test."""

    drivers: tuple[Driver, ...] = (Driver("microbenchmark", (LIBSQLITE3,), "sqlite", LIBRARY_SETTINGS),)
    library = "libsqlite3"
    files: tuple[str, ...] = tuple(f"{DATABASE}{suffix}" for suffix in ("", "-journal", "-wal", "-shm"))
    # The library's words are enough, and a full disk is seen by what is free.
    remedies: Mapping[str, tuple[str, str]] = MappingProxyType({})

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


MICROBENCHMARK: BenchEngine = SqliteBench()

# SQLITE_DEFAULT_WAL_AUTOCHECKPOINT.
_CHECKPOINT_PAGES = 1000


def lowered(mode: str, settings: Levels, *, keeps_write_order: bool) -> tuple[str, Reason] | None:
    """The best class that the PRAGMAs allow, and why; None where they take nothing away."""
    journal = settings.text("journal_mode") or DELETE
    if journal in (MEMORY, NO_JOURNAL):
        words = f"journal_mode = {journal}: a cut within a transaction leaves half of it, and nothing to undo it by"
        return UNSAFE, because("sqlite-no-journal", words, journal_mode=journal)
    if mode == OFF and keeps_write_order:
        words = "synchronous = off: the last transactions may be lost; the file system keeps the order of writes, so what stays is whole"
        return BOUNDED_LOSS, because("sqlite-off-in-order", words)
    if mode == OFF:
        words = "synchronous = off: nothing waits for the medium, so a cut may leave a damaged database"
        return UNSAFE, because("sqlite-off", words)
    if mode == NORMAL and journal == WAL:
        words = "synchronous = normal with WAL: transactions since the last checkpoint may be lost, what stays is whole"
        return BOUNDED_LOSS, because("sqlite-normal-wal", words)
    if mode == NORMAL:
        words = "synchronous = normal: the last transaction may be lost, what stays is whole"
        return BOUNDED_LOSS, because("sqlite-normal", words)
    if mode == FULL and journal == DELETE and settings.text("locking_mode") != EXCLUSIVE:
        words = (
            "synchronous = full with journal_mode = delete: the deletion of the journal, which is the commit, is not synced, so "
            "the last transaction may be lost; extra syncs it"
        )
        return BOUNDED_LOSS, because("sqlite-journal-deleted", words)
    return None


def bound_transactions(settings: Levels) -> int | None:
    """How many transactions may be lost at most; None where nothing bounds it.

    Of a rollback journal the last one. Of a WAL those since its last checkpoint, before which it is synced: it comes once the
    log has `wal_autocheckpoint` pages, and a transaction writes one at least.
    """
    found = lowered(MODEL.commit_mode(settings), settings, keeps_write_order=False)
    code = None if found is None else found[1].code
    if code in ("sqlite-normal", "sqlite-journal-deleted"):
        return 1
    pages = settings.integer("wal_autocheckpoint")
    return (_CHECKPOINT_PAGES if pages is None else pages) or None if code == "sqlite-normal-wal" else None


DURABILITY: EngineDurability = LibraryDurability(
    MODEL,
    "sqlite",
    lambda settings: dict(sorted({"synchronous": BY_TEST, **settings}.items())),
    "the PRAGMAs of each test",
    lowered,
)
