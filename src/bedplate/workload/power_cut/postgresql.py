"""PostgreSQL under power cuts: what its clients do while it is recorded, and the oracle that is asked after a cut.

Each transaction of a client notes its number and raises the balance of one account by one. So whatever is there after
a cut must add up: a client's numbers have no gap, and an account's balance is the number of its notes.
"""

from __future__ import annotations

import os
import random
import re
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.engine.postgresql.cluster import ServerFailed
from bedplate.engine.postgresql.session import SessionFailed
from bedplate.errors import BedplateError, KilledFromOutside
from bedplate.units import parse_duration_s
from bedplate.workload.power_cut.replaying import Answer, Driven

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from bedplate.engine.postgresql.cluster import Cluster
    from bedplate.engine.postgresql.session import Session
    from bedplate.model.cell import BuildLevels, ClusterLevels

# Some hundreds of pages, many times the buffers below: dirty pages travel between two checkpoints.
ACCOUNTS = 40_000

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

_SCHEMA = (
    "CREATE EXTENSION amcheck",
    "CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL, filler text NOT NULL)",
    "CREATE TABLE note (client int, sequence int, account int NOT NULL, PRIMARY KEY (client, sequence))",
    "CREATE INDEX note_account ON note (account)",
    "INSERT INTO account SELECT id, 0, repeat('x', 84) FROM generate_series(1, {accounts}) AS id",
    "VACUUM ANALYZE account",
    "CHECKPOINT",
)
_TABLES = ("account", "note")
_INDEXES = ("account_pkey", "note_pkey", "note_account")
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
# Of a server that never starts, or never answers, an operator would say that it is broken. Recovery takes seconds, minutes
# at most in an emulated guest on a starved machine, which must not pass for damage.
_START_LIMIT_S = 600.0
_ENOUGH_EVERY_S = 0.05
_ANSWER_LIMIT_S = 300.0
# psql prints a warning among the rows of an answer. With `ignore_checksum_failure` there are some.
_ERRORS_ALONE = ("-c", "client_min_messages=error")
# Until the server has told in its log how a process of it ended.
_TOLD_LIMIT_S = 2.0
_ENDED = re.compile(r"\(PID \d+\) (?:was terminated|exited)")
_UNREADABLE = re.compile(
    r"invalid page|page verification failed|could not (?:read|open|access)|XX001", re.IGNORECASE
)
_GRAVE = re.compile(r"\b(?:PANIC|FATAL|ERROR): .*")


def recorded_levels(levels: ClusterLevels, clients: int) -> ClusterLevels:
    """The cell's levels, with small settings where neither the plan nor its own postgresql.conf says anything."""
    small = {**_SMALL, "max_connections": str(clients + _MORE_CONNECTIONS)}
    lines = [f"{name} = '{value}'" for name, value in small.items() if name not in levels.settings]
    text = "\n".join([*lines, levels.configuration or ""])
    return replace(levels, configuration=text)


def prepare(cluster: Cluster, levels: ClusterLevels, build: BuildLevels, *, clients: int) -> None:
    """From initdb to the accounts, checkpointed; the server runs, and takes so many clients at once."""
    cluster.initialise(recorded_levels(levels, clients), build, options=INITDB_OPTIONS)
    cluster.start()
    cluster.create_database()
    with cluster.session() as session:
        for statement in _SCHEMA:
            session.execute(statement.format(accounts=ACCOUNTS))


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


def drive(
    cluster: Cluster,
    mark_file: Path,
    *,
    clients: int,
    duration_s: float,
    seed: int,
    enough: Callable[[], bool] = lambda: False,
) -> Driven:
    """The clients, each in a thread and a session of its own; BedplateError with the first client's trouble.

    Once `enough`, which is asked all the while, says so, each ends after the transaction that it is at.
    """
    ended_early = False
    crew = [_Client(cluster, mark_file, number, duration_s, seed) for number in range(clients)]
    started = time.monotonic()
    try:
        for client in crew:
            client.start()
        while working := [client for client in crew if client.is_alive()]:
            working[0].join(_ENOUGH_EVERY_S)
            if not ended_early and enough():
                ended_early = True
                for client in crew:
                    client.end()
    except BaseException:
        # Whoever is interrupted takes the recorder down next, and a client holds its `mark` open.
        for client in crew:
            client.abandon()
        raise
    seconds = time.monotonic() - started
    troubles = [client.trouble for client in crew if client.trouble is not None]
    if troubles:
        raise BedplateError(*troubles)
    return Driven(
        sum(client.sequence for client in crew),
        seconds,
        f"postgresql {cluster.build.version}",
        ended_early=ended_early,
    )


class _Client(threading.Thread):
    """One client: a transaction, its mark, the next one."""

    def __init__(self, cluster: Cluster, mark_file: Path, number: int, duration_s: float, seed: int) -> None:
        super().__init__(name=f"client {number}", daemon=True)
        self.sequence = 0
        self.trouble: str | None = None
        self._number = number
        self._mark_file = mark_file
        self._duration_s = duration_s
        self._draw = random.Random(f"client {number} of {seed}")  # noqa: S311 -- chance, not secrecy
        self._is_over = threading.Event()
        self._session = cluster.session()

    def end(self) -> None:
        """After the transaction that it is at."""
        self._is_over.set()

    def abandon(self) -> None:
        """End it at once, and wait until it has."""
        self._is_over.set()
        self._session.abandon()
        if self.ident is not None:
            self.join(_ANSWER_LIMIT_S)

    def run(self) -> None:
        try:
            with self._session as session:
                # Connected before the clock runs.
                session.execute("SELECT 1")
                self._work(session)
        except (BedplateError, OSError) as error:
            self.trouble = f"client {self._number}, transaction {self.sequence + 1}: {error}"

    def _work(self, session: Session) -> None:
        until = time.monotonic() + self._duration_s
        mark = os.open(self._mark_file, os.O_WRONLY | os.O_CLOEXEC)
        try:
            while time.monotonic() < until and not self._is_over.is_set():
                sequence = self.sequence + 1
                session.execute(transaction(self._number, sequence, self._draw.randint(1, ACCOUNTS)))
                os.write(mark, b"A %d %d %d\n" % (self._number, sequence, time.monotonic_ns() // 1000))
                self.sequence = sequence
        finally:
            os.close(mark)


def transaction(client: int, sequence: int, account: int) -> str:
    """One transaction as psql sends it: a single message, so that the commit's answer is the client's promise."""
    return (  # whole numbers, nothing of a user's
        f"BEGIN\\; INSERT INTO note VALUES ({client}, {sequence}, {account})\\; "  # noqa: S608
        f"UPDATE account SET balance = balance + 1 WHERE id = {account}\\; COMMIT"
    )


def examine(
    cluster: Cluster, promised: Mapping[int, int], *, rows: int, start_options: Sequence[str] = ()
) -> Answer:
    """Start the server on what a cut left, and ask the oracle; the server is stopped at once afterwards.

    `promised` is the last acknowledged transaction of each client, `rows` how many accounts there must be.
    KilledFromOutside where SIGKILL ended the server or psql: what they did not answer then is no finding.
    """
    # A reboot would make its process id meaningless; here it may be that of a stranger.
    (cluster.data_directory / "postmaster.pid").unlink(missing_ok=True)
    cluster.log.unlink(missing_ok=True)
    started = time.monotonic()
    try:
        try:
            cluster.start(timeout_s=_START_LIMIT_S, options=(*start_options, *_ERRORS_ALONE))
        except ServerFailed as error:
            if cluster.was_killed:
                raise KilledFromOutside("the server") from error
            said = grave_words(_text_of(cluster.log)) or error.reasons
            return Answer(None, detected=(f"the server does not start: {'; '.join(said)}",))
        start_s = time.monotonic() - started
        started = time.monotonic()
        with cluster.session() as session:
            answer = ask(session, promised, rows=rows)
        _require_nothing_killed(cluster, session, answer)
        return replace(answer, start_s=start_s, oracle_s=time.monotonic() - started)
    finally:
        cluster.kill()


def _require_nothing_killed(cluster: Cluster, session: Session, answer: Answer) -> None:
    """KilledFromOutside if that is why something was not answered.

    A client knows that its server's process is gone before the server does, which says of what in its log.
    """
    if session.was_killed:
        raise KilledFromOutside("psql")
    if not answer.detected:
        return
    until, never = time.monotonic() + _TOLD_LIMIT_S, threading.Event()
    while any("connection" in words for words in answer.detected) and time.monotonic() < until:
        if cluster.was_killed or _ENDED.search(_text_of(cluster.log)):
            break
        never.wait(_ENOUGH_EVERY_S)
    if cluster.was_killed:
        raise KilledFromOutside("a process of the server")


def ask(session: Session, promised: Mapping[int, int], *, rows: int) -> Answer:
    """The oracle's questions: first such as any application asks, then the checks that nobody runs by himself."""
    detected: list[str] = []
    silent: list[str] = []
    present = _notes(session, promised, detected, silent)
    _balances(session, rows, detected, silent)
    for check in (*map(_index_check, _INDEXES), *map(_heap_check, _TABLES)):
        for found in _ask(session, check, detected, silent):
            silent.append(f"verify_heapam: {' '.join(str(cell) for cell in found)}")
            break
    return Answer(present, tuple(dict.fromkeys(detected)), tuple(dict.fromkeys(silent)))


def _notes(
    session: Session, promised: Mapping[int, int], detected: list[str], silent: list[str]
) -> dict[int, int] | None:
    """The last note of each client; a gap, a note twice or one that was never made is silent corruption."""
    try:
        found = session.rows(
            "SELECT client, count(*), count(DISTINCT sequence), min(sequence), max(sequence) FROM note GROUP BY client",
            timeout_s=_ANSWER_LIMIT_S,
        )
    except SessionFailed as error:
        detected.extend(error.reasons)
        return None
    present = {}
    for row in found:
        client, count, distinct, first, last = (int(cell or 0) for cell in row)
        present[client] = last
        if (count, distinct, first) != (last, last, 1):
            silent.append(
                f"client {client} has {count} notes, {distinct} different, from {first} to {last}: some are missing "
                "between others, or there twice"
            )
        # The one under way may have been committed, and its answer not yet read; a later one was never begun.
        if last > promised.get(client, 0) + 1:
            silent.append(
                f"client {client} has transaction {last}, but {promised.get(client, 0)} was the last acknowledged"
            )
    return present


def _balances(session: Session, rows: int, detected: list[str], silent: list[str]) -> None:
    """Half a transaction shows here: a note without its account's change, or the reverse."""
    try:
        found = session.rows(
            "SELECT count(*), coalesce(sum(balance), 0), "
            "count(*) FILTER (WHERE account.balance IS DISTINCT FROM coalesce(noted.count, 0)), "
            "count(*) FILTER (WHERE account.id IS NULL), count(DISTINCT account.id) "
            "FROM account FULL JOIN (SELECT account, count(*) FROM note GROUP BY account) AS noted "
            "ON noted.account = account.id",
            timeout_s=_ANSWER_LIMIT_S,
        )
    except SessionFailed as error:
        detected.extend(error.reasons)
        return
    count, total, wrong, nameless, distinct = (int(cell or 0) for cell in found[0])
    if (count - nameless, distinct) != (rows, rows):
        silent.append(f"{rows} accounts were made, {count - nameless} are there, {distinct} different")
    if wrong:
        silent.append(
            f"{wrong} accounts' balances are not the number of their notes; all balances are {total}"
        )


def _index_check(index: str) -> str:
    return f"SELECT WHERE bt_index_check('{index}', true) IS NULL"


def _heap_check(table: str) -> str:
    return f"SELECT blkno, offnum, msg FROM verify_heapam('{table}')"  # noqa: S608 -- a name of ours


def _ask(session: Session, check: str, detected: list[str], silent: list[str]) -> list[list[str | None]]:
    """A check's rows. What it cannot read the engine has refused to read; all else only the check found."""
    try:
        return session.rows(check, timeout_s=_ANSWER_LIMIT_S)
    except SessionFailed as error:
        for reason in error.reasons:
            (detected if _is_own_complaint(reason) else silent).append(reason)
        return []


def _is_own_complaint(reason: str) -> bool:
    """Whether anybody would have noticed: a page that cannot be read, a server that is gone or does not answer."""
    return _UNREADABLE.search(reason) is not None or "connection" in reason or "no answer in time" in reason


def grave_words(text: str, most: int = 3) -> tuple[str, ...]:
    """The last lines of a server's log that say what is wrong."""
    found = [match[0] for line in text.splitlines() if (match := _GRAVE.search(line))]
    # At its end it only says that it ends.
    telling = [line for line in found if "the database system is" not in line]
    return tuple(dict.fromkeys(telling))[-most:]


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
