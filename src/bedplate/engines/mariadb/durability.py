"""The declared durability class of MariaDB's InnoDB tables: the counted flushes, and the settings as the server shows them.

Rules, each with its source (MariaDB manual, "InnoDB System Variables"):
- `innodb_flush_log_at_trx_commit = 1` (and 3): "the log buffer is written to the InnoDB redo log file and a flush to disk
  performed after each transaction". With 0 and 2 that comes once in `innodb_flush_log_at_timeout` (1 s): the last commits may
  be lost, what stays is whole. With 2 they survive a killed server, not a cut.
- `innodb_doublewrite = OFF`: a page that a cut tore cannot be repaired, as InnoDB's log holds changes of pages and no whole
  pages.
- `innodb_flush_method = nosync` syncs nothing. `O_DIRECT_NO_FSYNC` and `littlesync` leave out syncs of data files: what a
  checkpoint holds for written may still stand in a volatile cache.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.engines.mariadb.model import WAITING
from bedplate.model.durability import BOUNDED_LOSS, UNKNOWN, UNSAFE, declared, worst
from bedplate.model.reason import because

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bedplate.model.levels import Levels
    from bedplate.model.reason import Reason
    from bedplate.model.visit import Durability, FlushCount, ReadBack
    from bedplate.visit.declaration import EngineDurability, Promises

_NEVER_SYNCED = ("nosync",)
_DATA_UNSYNCED = ("o_direct_no_fsync", "littlesync", "all_o_direct_no_fsync")


class MariadbDurability:
    """What the settings leave of what the file system promises."""

    def opened(self, settings: Levels) -> Sequence[ReadBack]:  # noqa: ARG002 -- the server shows them
        """Nothing: the server is asked."""
        return ()

    def declare(
        self,
        settings: Levels,  # noqa: ARG002 -- what is in force counts
        server_settings: Mapping[str, str],
        flush_counts: tuple[FlushCount, ...],
        promises: Promises,
        *,
        keeps_write_order: bool,  # noqa: ARG002 -- a server waits
    ) -> Durability:
        """From what is in force."""
        found = declared(flush_counts, {}, **promises)
        for volatile, protected, reason in _lowered(server_settings):
            found = replace(
                found,
                volatile_cache=_with(volatile, found.volatile_cache),
                protected_cache=_with(protected, found.protected_cache),
                reasons=(*found.reasons, reason),
            )
        return found


def _with(of_settings: str, of_filesystem: str) -> str:
    # Damage that a setting allows needs no count of flushes, so an unknown file system makes it no less sure.
    return UNSAFE if of_settings == UNSAFE else worst(of_filesystem, of_settings)


def _lowered(shown: Mapping[str, str]) -> Iterator[tuple[str, str, Reason]]:
    """Both classes at best, with a volatile and with a protected cache, and why."""
    method = shown.get("innodb_flush_method", "").lower()
    if method in _NEVER_SYNCED:
        words = (
            f"innodb_flush_method = {method}: the operating system may lose what the server believes written"
        )
        yield UNSAFE, UNSAFE, because("innodb-never-syncs", words)
    elif method in _DATA_UNSYNCED:
        words = f"innodb_flush_method = {method}: data files are not synced, and a cache may lose pages that the log no longer has"
        yield UNSAFE, UNKNOWN, because("innodb-data-not-synced", words)
    if shown.get("innodb_doublewrite", "ON").upper() == "OFF":
        words = "innodb_doublewrite = OFF: a page torn by the cut cannot be repaired from the log"
        yield UNSAFE, UNKNOWN, because("innodb-doublewrite-off", words)
    waits = shown.get("innodb_flush_log_at_trx_commit", "1")
    if waits not in WAITING:
        words = f"innodb_flush_log_at_trx_commit = {waits}: the last commits may be lost, what stays is whole"
        yield BOUNDED_LOSS, BOUNDED_LOSS, because("innodb-log-flushed-later", words)


DURABILITY: EngineDurability = MariadbDurability()
