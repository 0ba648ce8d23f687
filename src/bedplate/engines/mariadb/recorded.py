"""MariaDB while it is recorded: its settings, its tables, and the SQL of a transaction.

The tables are those of `visit/cut_accounts.py`. Most bytes of an account are its filler, which says its number and its balance
again and again: a row of two versions does not add up either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.mariadb.model import PAGE_SIZE, USUAL_PAGE_BYTES, WAITING
from bedplate.units import KIB, MIB

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.engines.mariadb.server import MariadbInstance
    from bedplate.model.cell import Cell
    from bedplate.model.levels import Scalar

# Some 5 MB: as much as the buffer pool, so that dirty pages travel between two checkpoints.
ACCOUNTS = 10_000
# The kind of what the clients leave for the oracle.
ORACLE = 1
# What makes a run of seconds like one of hours, where the plan says nothing else: a small log, and pages that are written early.
_SMALL: Mapping[str, Scalar] = {
    "innodb_log_file_size": 8 * MIB,
    "innodb_log_buffer_size": 2 * MIB,
    "innodb_max_dirty_pages_pct": 5,
    "innodb_io_capacity": 1000,
    "innodb_purge_threads": 1,
    "aria_pagecache_buffer_size": MIB,
    "key_buffer_size": MIB,
}
# The least that InnoDB starts with, by its page size (InnoDB System Variables, "innodb_buffer_pool_size").
_POOL_BYTES, _POOL_OF_LARGE_PAGES_BYTES, _LARGE_PAGE_BYTES = 8 * MIB, 24 * MIB, 32 * KIB
# For the clients' sessions, and ours beside them.
_MORE_CONNECTIONS = 18
_SCHEMA = (
    "CREATE TABLE account (id INT PRIMARY KEY, balance INT NOT NULL, filler VARCHAR(480) NOT NULL) ENGINE=InnoDB",
    (
        "CREATE TABLE note (client INT, sequence INT, account INT NOT NULL, PRIMARY KEY (client, sequence), "
        "KEY note_account (account)) ENGINE=InnoDB"
    ),
    "INSERT INTO account SELECT seq, 0, {filler} FROM seq_1_to_{accounts}",
    "SET GLOBAL innodb_log_checkpoint_now = ON",
)
_DECISIVE = (
    PAGE_SIZE,
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_log_at_timeout",
    "innodb_flush_method",
    "innodb_doublewrite",
    "innodb_use_atomic_writes",
    "innodb_checksum_algorithm",
    "innodb_buffer_pool_size",
    "innodb_log_file_size",
)
# A flush begins so often, and takes as long as the device does.
_INTERVALS_LOST = 2


def recorded_settings(asked: Mapping[str, Scalar], *, clients: int = 0) -> dict[str, Scalar]:
    """The cell's settings, with small ones where the plan says nothing."""
    page = asked.get(PAGE_SIZE) or USUAL_PAGE_BYTES
    pool = _POOL_OF_LARGE_PAGES_BYTES if int(page) >= _LARGE_PAGE_BYTES else _POOL_BYTES
    own = {"innodb_buffer_pool_size": pool, "max_connections": clients + _MORE_CONNECTIONS}
    return {**_SMALL, **own, **asked}


def prepare(server: MariadbInstance, cell: Cell, *, clients: int) -> None:
    """From nothing to the accounts, checkpointed; the server runs, and takes so many clients at once."""
    server.initialise(cell, settings=recorded_settings(cell.cluster.settings, clients=clients))
    server.start()
    server.create_database()
    with server.session() as session:
        for statement in _SCHEMA:
            session.execute(statement.format(accounts=ACCOUNTS, filler=filler("seq", "0")))


def filler(account: str, balance: str) -> str:
    """The filler of an account as SQL, of the SQL of its number and its balance; of a constant length."""
    return f"REPEAT(CAST(100000000000 + 1000000 * {account} + {balance} AS CHAR), 30)"


def transaction(client: int, sequence: int, account: int) -> tuple[str, ...]:
    """One transaction. The balance is set last: a later assignment of an UPDATE sees an earlier one.

    An error takes back its own statement alone, so a client must not commit behind it.
    """
    work = (  # whole numbers, nothing of a user's
        f"BEGIN; INSERT INTO note VALUES ({client}, {sequence}, {account}); "  # noqa: S608
        f"UPDATE account SET filler = {filler('id', '(balance + 1)')}, balance = balance + 1 WHERE id = {account}"
    )
    return work, "COMMIT"


def settings_of(server: MariadbInstance) -> dict[str, str]:
    """The settings that decide what a cut may take, as the server shows them."""
    with server.session() as session:
        return {name: session.value(f"SELECT @@GLOBAL.{name}") for name in _DECISIVE}


def bound_ms(settings: Mapping[str, str]) -> float | None:
    """How long before a cut a commit may be that its settings may lose; None where they allow no loss.

    "Once per second", or `innodb_flush_log_at_timeout`, is when the flush begins.
    """
    if settings["innodb_flush_log_at_trx_commit"] in WAITING:
        return None
    return 1000.0 * _INTERVALS_LOST * float(settings["innodb_flush_log_at_timeout"])
