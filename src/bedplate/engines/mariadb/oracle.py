"""The oracle of MariaDB: what a cut left is started, asked, stopped, and its pages' checksums are looked at.

First it is asked as any application asks, by its tables and by its indexes; then comes CHECK TABLE. What the engine itself
complains of, in an answer or in its log, is *detected*, what only the oracle sees is *silent*.
"""

from __future__ import annotations

import re
import signal
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.engines.mariadb.recorded import filler
from bedplate.engines.mariadb.unpacked import CHECK_PAGES
from bedplate.errors import KilledFromOutside
from bedplate.units import MIB
from bedplate.visit.cut_accounts import ANSWER_LIMIT_S, balances, notes
from bedplate.visit.cut_engine import OracleAnswer
from bedplate.visit.engine_server import ServerFailed
from bedplate.visit.piped_session import SessionFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from bedplate.engines.mariadb.server import MariadbInstance
    from bedplate.engines.mariadb.session import MariadbSession

# Of a server that never starts an operator would say that it is broken; recovery takes seconds.
_START_LIMIT_S = 600.0
_STOP_LIMIT_S = 600.0
_CHECKSUMS_LIMIT_S = 300.0
# InnoDB notes that the write of a page failed, and goes on.
_COMPLAINT = re.compile(r"\[ERROR\] (.*)|\[Note\] (InnoDB: IO Error: .*)")
_MOST_QUOTED = 3
_SYSTEM = "ibdata1"
_EXTENT_PAGES_LEAST = 64
_PRIMARY = "PRIMARY"
# Each index: its table, and a sum of its columns, which it can answer without the table.
_INDEXES = {
    ("account", _PRIMARY): "id",
    ("note", _PRIMARY): "1000003 * client + sequence",
    ("note", "note_account"): "account",
}
_BALANCES = (  # names of ours
    "SELECT count(account.id), count(DISTINCT account.id), coalesce(sum(balance), 0), "  # noqa: S608
    "coalesce(sum(balance <> coalesce(noted.count, 0)), 0), "
    f"coalesce(sum(account.filler <> {filler('account.id', 'account.balance')}), 0) "
    "FROM account LEFT JOIN (SELECT account, count(*) AS count FROM note GROUP BY account) AS noted ON noted.account = account.id"
)
_NAMELESS = (
    "SELECT count(*) FROM note LEFT JOIN account ON account.id = note.account WHERE account.id IS NULL"
)


def examine(server: MariadbInstance, promised: Mapping[int, int], *, rows: int) -> OracleAnswer:
    """Start the server on what a cut left, ask the oracle, stop the server, and check every page.

    `promised` is the last acknowledged transaction of each client, `rows` how many accounts there must be. KilledFromOutside
    where SIGKILL ended the server or its client: what they did not answer then is no finding.
    """
    server.log.unlink(missing_ok=True)
    started = time.monotonic()
    try:
        try:
            # A file in its data directory would make it a replica of whoever that names.
            server.start(timeout_s=_START_LIMIT_S, options=("--skip-slave-start",))
        except ServerFailed as error:
            if server.was_killed:
                raise KilledFromOutside("the server") from error
            said = complaints(server) or error.reasons
            return OracleAnswer(None, detected=(f"the server does not start: {'; '.join(said)}",))
        start_s = time.monotonic() - started
        started = time.monotonic()
        with server.session() as session:
            answer = ask(session, promised, rows=rows)
            if session.was_killed:
                raise KilledFromOutside("its client")
        if server.was_killed:
            raise KilledFromOutside("the server")
        answer = _with(answer, complaints(server))
        # What was caught already need not be caught again, and a server that is damaged may not be able to stop.
        if not answer.detected:
            answer = _with(answer, tuple(_checksum_failures(server)))
        return replace(answer, start_s=start_s, oracle_s=time.monotonic() - started)
    finally:
        server.kill()


def ask(session: MariadbSession, promised: Mapping[int, int], *, rows: int) -> OracleAnswer:
    """The oracle's questions."""
    detected: list[str] = []
    silent: list[str] = []
    present = notes(session, promised, detected, silent)
    found = _ask(session, _BALANCES, detected)
    if found:
        there, distinct, total, wrong, torn = (int(float(cell or 0)) for cell in found[0])
        nameless = _ask(session, _NAMELESS, detected)
        silent += balances(
            rows,
            there=there,
            distinct=distinct,
            total=total,
            wrong=wrong + int(nameless[0][0] or 0 if nameless else 0),
            torn=torn,
        )
    _both_ways(session, detected, silent)
    silent += _check_tables(session, detected)
    return OracleAnswer(present, tuple(dict.fromkeys(detected)), tuple(dict.fromkeys(silent)))


def by_hand_checks() -> Iterator[tuple[str, str]]:
    """The same questions for a person, each with what it means where it finds anything but 0."""
    noted = "(SELECT account, count(*) AS count FROM note GROUP BY account) AS noted"
    wrong = (  # names of ours
        f"SELECT count(*) FROM account LEFT JOIN {noted} ON noted.account = account.id "  # noqa: S608
        f"WHERE balance <> coalesce(noted.count, 0) OR filler <> {filler('account.id', 'account.balance')}"
    )
    yield "accounts that are not the sum of their notes, or not whole", wrong
    yield "notes of no account", _NAMELESS
    for table, index in _INDEXES:
        differs = (  # as above
            f"SELECT one.`rows` <> other.`rows` OR one.total <> other.total FROM ({_counted(table, _PRIMARY)}) AS one, "  # noqa: S608
            f"({_counted(table, index)}) AS other"
        )
        if index != _PRIMARY:
            yield f"{table} by its primary key and by {index} are not the same", differs


def complaints(server: MariadbInstance) -> tuple[str, ...]:
    """The first errors in the server's log: the later ones follow from them."""
    try:
        text = server.log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    return errors_in(text)


def errors_in(text: str) -> tuple[str, ...]:
    """The same of a log's text, with what InnoDB notes of the disk; that is not told apart from other errors."""
    found = (each for line in text.splitlines() if (each := _COMPLAINT.search(line)) is not None)
    return tuple(dict.fromkeys(each[1] or each[2] for each in found))[:_MOST_QUOTED]


def _with(answer: OracleAnswer, detected: tuple[str, ...]) -> OracleAnswer:
    return replace(answer, detected=tuple(dict.fromkeys((*answer.detected, *detected))))


def _counted(table: str, index: str) -> str:
    """How many rows an index has, a sum that every index of the table tells alike, and one that it can tell alone."""
    of_table = "id" if table == "account" else "account"
    return (  # names of ours
        f"SELECT count(*) AS `rows`, coalesce(sum({of_table}), 0) AS total, coalesce(sum({_INDEXES[table, index]}), 0) AS own "  # noqa: S608
        f"FROM {table} FORCE INDEX ({index})"
    )


def _both_ways(session: MariadbSession, detected: list[str], silent: list[str]) -> None:
    """Each table by each of its indexes: the primary key is the table."""
    seen: dict[str, list[str | None]] = {}
    for table, index in _INDEXES:
        found = _ask(session, _counted(table, index), detected)
        if not found:
            continue
        first = seen.setdefault(table, found[0])
        if found[0][:2] != first[:2]:
            silent.append(
                f"{table} has {first[0]} rows by its primary key and {found[0][0]} by {index}; the sums are {first[1]} and {found[0][1]}"
            )


def _check_tables(session: MariadbSession, detected: list[str]) -> Iterator[str]:
    """What CHECK TABLE … EXTENDED finds, of each table's pages and between its indexes."""
    for row in _ask(session, "CHECK TABLE account, note EXTENDED", detected):
        table, _, kind, words = (str(cell) for cell in row)
        if kind.lower() != "status" or words != "OK":
            yield f"CHECK TABLE {table}: {kind}: {words}"


def _ask(session: MariadbSession, statement: str, detected: list[str]) -> list[list[str | None]]:
    try:
        return session.rows(statement, timeout_s=ANSWER_LIMIT_S)
    except SessionFailed as error:
        detected.extend(error.reasons)
        return []


def _checksum_failures(server: MariadbInstance) -> Iterator[str]:
    """Every page that the server would refuse to read; nothing else has read them all. The server is stopped for it."""
    try:
        status = server.stop(timeout_s=_STOP_LIMIT_S)
    except ServerFailed as error:
        yield from error.reasons
        return
    if status == -signal.SIGKILL:
        raise KilledFromOutside("the server")
    data = server.data_directory
    files: list[tuple[Path, tuple[str, ...]]] = [(path, ()) for path in sorted(data.glob("*/*.ibd"))]
    for path, pages in (*((data / _SYSTEM, each) for each in page_ranges(server.page_bytes)), *files):
        done = server.run(CHECK_PAGES, *pages, str(path), timeout_s=_CHECKSUMS_LIMIT_S)
        if done.status != 0:
            yield f"innochecksum: {path.relative_to(data)}: {'; '.join(done.output.splitlines()[-2:])}"


def page_ranges(page_bytes: int) -> tuple[tuple[str, ...], ...]:
    """Options for the pages of the system tablespace without its second and third extent.

    These are the doublewrite buffer (buf_dblwr_t::create), which holds pages of other tablespaces, as old or as torn as they
    may be. An extent has 1 MiB, and no fewer than 64 pages (FSP_EXTENT_SIZE).
    """
    extent = max(_EXTENT_PAGES_LEAST, MIB // page_bytes)
    return (("--end-page", str(extent - 1)), ("--start-page", str(3 * extent)))
