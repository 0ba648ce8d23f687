"""PostgreSQL while it is recorded: its settings, its tables, and what its clients do.

Each transaction of a client notes its number and raises the balance of one account by one. So whatever is there after
a cut must add up: a client's numbers have no gap, and an account's balance is the number of its notes. Most bytes of an
account are its filler, which says its number and its balance again and again: a row of two versions does not add up
either. `oracle.py` asks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.model.cell import ClusterLevels
from bedplate.model.page_writes import WAL_BYTES, WAL_PAGE_IMAGES
from bedplate.units import parse_duration_s

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.engines.postgresql.cluster import Cluster
    from bedplate.model.cell import Cell
    from bedplate.visit.cut_engine import Subject

# Some hundreds of pages, many times the buffers below: dirty pages travel between two checkpoints. Rather wide rows than
# many: what a torn page tears is a row then, and the oracle has a quarter as many to ask for.
ACCOUNTS = 10_000

# What the clients leave for the oracle. A recording names its kind, so that an old one is asked for what it has:
# 1, each account has the same filler; 2, the filler follows from the account's number and balance.
CONSTANT_FILLER = 1
ORACLE = 2

# What makes a run of seconds like one of hours, where the plan says nothing else: little memory, so that pages are
# written early, and checkpoints every second or so. Autovacuum would only blur what is compared.
_SMALL = {
    "shared_buffers": "1MB",
    "max_wal_size": "16MB",
    "min_wal_size": "8MB",
    "checkpoint_timeout": "30s",
    "autovacuum": "off",
    "jit": "off",
}
# For the clients' sessions, and ours beside them.
_MORE_CONNECTIONS = 18
INITDB_OPTIONS = ("--wal-segsize=4",)
# A server that is killed would leave its segments in /dev/shm; its data directory goes with the recording.
START_OPTIONS = ("-c", "dynamic_shared_memory_type=mmap")

_SCHEMA = (
    "CREATE EXTENSION amcheck",
    "CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL, filler text NOT NULL)",
    "CREATE TABLE note (client int, sequence int, account int NOT NULL, PRIMARY KEY (client, sequence))",
    "CREATE INDEX note_account ON note (account)",
    "INSERT INTO account SELECT id, 0, {filler} FROM generate_series(1, {accounts}) AS id",
    "VACUUM ANALYZE account",
    "CHECKPOINT",
)
_DECISIVE = (
    *(
        "fsync",
        "synchronous_commit",
        "full_page_writes",
        "data_checksums",
        "wal_sync_method",
        "wal_writer_delay",
    ),
    *("shared_buffers", "max_wal_size", "checkpoint_timeout", "block_size"),
)


def recorded_levels(levels: ClusterLevels, clients: int) -> ClusterLevels:
    """The cell's levels, with small settings where neither the plan nor its own postgresql.conf says anything."""
    small = {**_SMALL, "max_connections": str(clients + _MORE_CONNECTIONS)}
    lines = [f"{name} = '{value}'" for name, value in small.items() if name not in levels.settings]
    text = "\n".join([*lines, levels.configuration or ""])
    return replace(levels, configuration=text)


def levels_of(subject: Subject) -> ClusterLevels:
    """Those by which a server starts on an image, from what was recorded of them and checked (`refused_settings`)."""
    levels = ClusterLevels(settings=subject.settings, configuration=subject.configuration)
    return recorded_levels(levels, clients=0)


def prepare(cluster: Cluster, cell: Cell, *, clients: int) -> None:
    """From initdb to the accounts, checkpointed; the server runs, and takes so many clients at once."""
    recorded = replace(cell, cluster=recorded_levels(cell.cluster, clients))
    cluster.initialise(recorded, options=INITDB_OPTIONS)
    cluster.start(options=START_OPTIONS)
    cluster.create_database()
    with cluster.session() as session:
        for statement in _SCHEMA:
            session.execute(statement.format(accounts=ACCOUNTS, filler=filler("id", "0")))


def filler(account: str, balance: str, kind: int = ORACLE) -> str:
    """The filler of an account as SQL, of the SQL of its number and its balance.

    Of a constant length, so that a row keeps its size; a short text again and again, which a log packs well.
    """
    if kind == CONSTANT_FILLER:
        return "repeat('x', 84)"
    return f"repeat((100000000000 + 1000000 * ({account})::bigint + {balance})::text, 30)"


def bound_ms(settings: Mapping[str, str]) -> float | None:
    """How long before a cut a commit may be that its settings may lose ("Asynchronous Commit": 3 * wal_writer_delay).

    None where they allow no loss, and where they bound none. The delay as the server shows it.
    """
    if settings["fsync"] != "on" or settings["synchronous_commit"] != "off":
        return None
    return 3000.0 * parse_duration_s(settings["wal_writer_delay"])


def settings_of(cluster: Cluster) -> Mapping[str, str]:
    """The settings that decide what a cut may take, as the server shows them."""
    with cluster.session() as session:
        return {name: session.value(f"SHOW {name}") for name in _DECISIVE}


def counters_of(cluster: Cluster) -> Mapping[str, int]:
    """What the server has written to its WAL so far, and how many whole pages of it."""
    with cluster.session() as session:
        statement = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint, wal_fpi FROM pg_stat_wal"
        ((wal_bytes, images),) = session.rows(statement)
    return {WAL_BYTES: int(wal_bytes or 0), WAL_PAGE_IMAGES: int(images or 0)}


def transaction(client: int, sequence: int, account: int) -> str:
    """One transaction as psql sends it: a single message, so that the commit's answer is the client's promise."""
    return (  # whole numbers, nothing of a user's
        f"BEGIN\\; INSERT INTO note VALUES ({client}, {sequence}, {account})\\; "  # noqa: S608
        f"UPDATE account SET balance = balance + 1, filler = {filler('id', 'balance + 1')} "
        f"WHERE id = {account}\\; COMMIT"
    )
