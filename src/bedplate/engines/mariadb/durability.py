"""The declared durability class of MariaDB's InnoDB tables: the counted flushes, and the settings as the server shows them.

Rules, each with its source (MariaDB manual, "InnoDB System Variables"):
- `innodb_flush_log_at_trx_commit = 1` (and 3): "the log buffer is written to the InnoDB redo log file and a flush to disk
  performed after each transaction". With 0 and 2 that comes once in `innodb_flush_log_at_timeout` (1 s): the last commits may
  be lost, what stays is whole. With 2 they survive a killed server, not a cut.
- `innodb_doublewrite = OFF`: a page that a cut tore cannot be repaired, as InnoDB's log holds changes of pages and no whole
  pages.
- `innodb_doublewrite = fast` of later versions writes twice and, as `O_DIRECT_NO_FSYNC`, leaves out syncs of data files (MDEV-33545).
- `innodb_flush_method = nosync` syncs nothing. `O_DIRECT_NO_FSYNC` and `littlesync` leave out syncs of data files: what a
  checkpoint holds for written may still stand in a volatile cache.
- Any other value of these two is of a version that these rules do not know: the class is unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.mariadb.model import WAITING
from bedplate.model.durability import BOUNDED_LOSS, UNKNOWN, UNSAFE, declared, lowered_to
from bedplate.model.reason import INNODB_DOUBLEWRITE_OFF, because
from bedplate.visit.declaration import EngineDurability

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bedplate.model.durability import FilesystemPromise
    from bedplate.model.levels import Levels
    from bedplate.model.reason import Reason
    from bedplate.model.visit import Durability

_NEVER_SYNCED = ("nosync",)
_DATA_UNSYNCED = ("o_direct_no_fsync", "littlesync", "all_o_direct_no_fsync")
# What a server shows where it syncs log and data; empty where it has no such setting.
_SYNCED = ("", "fsync", "o_dsync", "o_direct")
_WRITTEN_TWICE = ("ON", "OFF", "FAST")


class MariadbDurability(EngineDurability):
    """What the settings leave of what the file system promises."""

    def declare(
        self,
        settings: Levels,  # noqa: ARG002 -- what is in force counts
        server_settings: Mapping[str, str],
        filesystem: FilesystemPromise,
    ) -> Durability:
        """From what is in force."""
        found = declared(filesystem)
        for volatile, protected, reason in _lowered(server_settings):
            found = lowered_to(found, volatile, protected, reason)
        return found


def _lowered(shown: Mapping[str, str]) -> Iterator[tuple[str, str, Reason]]:
    """Both classes at best, with a volatile and with a protected cache, and why."""
    method = shown.get("innodb_flush_method", "").lower()
    if method in _NEVER_SYNCED:
        words = (
            f"innodb_flush_method = {method}: the operating system may lose what the server believes written"
        )
        yield UNSAFE, UNSAFE, because("innodb-never-syncs", words)
    twice = shown.get("innodb_doublewrite", "ON").upper()
    if method in _DATA_UNSYNCED or twice == "FAST":
        setting = "innodb_doublewrite = fast" if twice == "FAST" else f"innodb_flush_method = {method}"
        words = f"{setting}: data files are not synced, and a cache may lose pages that the log no longer has"
        yield UNSAFE, UNKNOWN, because("innodb-data-not-synced", words)
    if twice == "OFF":
        words = "innodb_doublewrite = OFF: a page torn by the cut cannot be repaired from the log"
        yield UNSAFE, UNKNOWN, because(INNODB_DOUBLEWRITE_OFF, words)
    if method not in (*_NEVER_SYNCED, *_DATA_UNSYNCED, *_SYNCED):
        yield UNKNOWN, UNKNOWN, _not_known("innodb_flush_method", method)
    if twice not in _WRITTEN_TWICE:
        yield UNKNOWN, UNKNOWN, _not_known("innodb_doublewrite", twice)
    waits = shown.get("innodb_flush_log_at_trx_commit", "1")
    if waits not in WAITING:
        words = f"innodb_flush_log_at_trx_commit = {waits}: the last commits may be lost, what stays is whole"
        yield BOUNDED_LOSS, BOUNDED_LOSS, because("innodb-log-flushed-later", words)


def _not_known(name: str, value: str) -> Reason:
    words = f"{name} = {value}: bedplate has no rule for this value; power cuts show what it keeps"
    return because("innodb-setting-not-known", words)


DURABILITY: EngineDurability = MariadbDurability()
