"""The declared durability class of SQLite: what its PRAGMAs leave of what the file system promises.

Rules, each with its source; "pragma" is sqlite.org/pragma.html, "synchronous" and "journal_mode" there:
- `synchronous = full`: "ensure that all content is safely written to the disk surface prior to continuing", so that "an
  operating system crash or power failure will not corrupt the database". In WAL mode, and where a rollback journal is
  truncated or overwritten, the commit itself is synced too.
- `synchronous = extra`: "the directory containing a rollback journal is synced after that journal is unlinked to commit a
  transaction in DELETE mode", for "additional durability if the commit is followed closely by a power loss". So `full` with
  `journal_mode = delete`, which are both SQLite's own defaults, may lose the last transaction.
- With `locking_mode = exclusive` a journal is overwritten in place of deleted (`pager_end_transaction` in pager.c).
- `synchronous = normal`: "a transaction committed in WAL mode with synchronous=NORMAL might roll back following a power loss";
  checkpoints bound it. With a rollback journal SQLite "will still sync at the most critical moments, but less
  often than in FULL mode".
- `synchronous = off`: "the database might become corrupted if the operating system crashes or the computer loses power".
- `journal_mode = memory` and `off`: "the database file will very likely go corrupt" if a transaction is interrupted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.sqlite.model import MODEL
from bedplate.engines.sqlite.settings import DELETE, EXCLUSIVE, FULL, MEMORY, NO_JOURNAL, NORMAL, OFF, WAL
from bedplate.model.durability import BOUNDED_LOSS, UNSAFE, declared, lowered_to
from bedplate.model.engine import BY_TEST
from bedplate.model.reason import Reason, because
from bedplate.model.visit import Durability, ReadBack
from bedplate.visit.declaration import EngineDurability, of_each_test

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.model.durability import FilesystemPromise
    from bedplate.model.levels import Levels

# SQLITE_DEFAULT_WAL_AUTOCHECKPOINT.
_CHECKPOINT_PAGES = 1000


def lowered(synchronous: str, settings: Levels, *, keeps_write_order: bool) -> tuple[str, Reason] | None:
    """The best class that the PRAGMAs allow, and why; None where they take nothing away."""
    journal = settings.text("journal_mode") or DELETE
    if journal in (MEMORY, NO_JOURNAL):
        words = f"journal_mode = {journal}: a cut within a transaction leaves half of it, and nothing to undo it by"
        return UNSAFE, because("sqlite-no-journal", words, journal_mode=journal)
    if synchronous == OFF and keeps_write_order:
        words = "synchronous = off: the last transactions may be lost; the file system keeps the order of writes, so what stays is whole"
        return BOUNDED_LOSS, because("sqlite-off-in-order", words)
    if synchronous == OFF:
        words = "synchronous = off: nothing waits for the medium, so a cut may leave a damaged database"
        return UNSAFE, because("sqlite-off", words)
    if synchronous == NORMAL and journal == WAL:
        words = "synchronous = normal with WAL: transactions since the last checkpoint may be lost, what stays is whole"
        return BOUNDED_LOSS, because("sqlite-normal-wal", words)
    if synchronous == NORMAL:
        words = "synchronous = normal: the last transaction may be lost, what stays is whole"
        return BOUNDED_LOSS, because("sqlite-normal", words)
    if synchronous == FULL and journal == DELETE and settings.text("locking_mode") != EXCLUSIVE:
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


class SqliteDurability(EngineDurability):
    """Of connections whose tests may commit in two ways."""

    def opened(self, settings: Levels) -> Sequence[ReadBack]:
        """What is set; each test is held against what its connection answers."""
        asked = {"synchronous": BY_TEST, **settings}
        return [
            ReadBack(f"sqlite.{name}", settings.get(name), value, "the PRAGMAs of each test", matches=None)
            for name, value in sorted(asked.items())
        ]

    def declare(
        self,
        settings: Levels,
        server_settings: Mapping[str, str],  # noqa: ARG002 -- there is no server
        filesystem: FilesystemPromise,
    ) -> Durability:
        """By the PRAGMAs; of `by-test` that of the synchronous tests, with that of the others."""
        of_filesystem = declared(filesystem)

        def of(mode: str) -> Durability:
            found = lowered(mode, settings, keeps_write_order=filesystem.keeps_write_order)
            if found is None:
                return of_filesystem
            best, reason = found
            return lowered_to(of_filesystem, best, best, reason)

        return of_each_test(MODEL, settings, of)


DURABILITY: EngineDurability = SqliteDurability()
