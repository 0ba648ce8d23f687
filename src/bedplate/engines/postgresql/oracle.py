"""The oracle of PostgreSQL: what a cut left is started, asked, stopped, and its pages' checksums are looked at.

First it is asked as any application asks, by its tables and by its indexes; then come checks that nobody runs by himself.
What the engine itself complains of is *detected*, what only the oracle sees is *silent*.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.recorded import ORACLE, START_OPTIONS, filler
from bedplate.errors import KilledFromOutside
from bedplate.model.reason import reasons_of
from bedplate.visit.cut_accounts import ANSWER_LIMIT_S, balances, notes
from bedplate.visit.cut_engine import OracleAnswer
from bedplate.visit.engine_server import ServerFailed
from bedplate.visit.piped_session import CONNECTION_LOST, NO_ANSWER_IN_TIME, SessionFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from bedplate.engines.postgresql.cluster import Cluster
    from bedplate.engines.postgresql.session import Session

_TABLES = ("account", "note")
# Each index: its table, and a sum of its columns, which it can answer without the table.
_INDEXES = {
    "account_pkey": ("account", "id::bigint"),
    "note_pkey": ("note", "1000003 * client::bigint + sequence"),
    "note_account": ("note", "account::bigint"),
}
# One message for all of them: on a busy machine each takes longer to travel than to be answered.
_COUNTED = " UNION ALL ".join(  # names of ours
    f"SELECT '{index}' AS index, count(*), coalesce(sum({columns}), 0) FROM {table}"  # noqa: S608
    for index, (table, columns) in _INDEXES.items()
)
# By the tables' pages alone, and by the indexes alone.
_WAYS = (
    "SET enable_indexscan = off\\; SET enable_indexonlyscan = off\\; SET enable_bitmapscan = off",
    "RESET ALL\\; SET enable_seqscan = off\\; SET enable_bitmapscan = off",
)
# Of a server that never starts, or never answers, an operator would say that it is broken. Recovery takes seconds, minutes
# at most in an emulated guest on a starved machine, which must not pass for damage.
_START_LIMIT_S = 600.0
_STOP_LIMIT_S = 600.0
_CHECKSUMS_LIMIT_S = 300.0
_LOOK_EVERY_S = 0.05
# psql prints a warning among the rows of an answer. With `ignore_checksum_failure` there are some.
_ERRORS_ALONE = ("-c", "client_min_messages=error")
# Until the server has told in its log how a process of it ended.
_TOLD_LIMIT_S = 2.0
_ENDED = re.compile(r"\(PID \d+\) (?:was terminated|exited)")
_UNREADABLE = re.compile(
    r"invalid page|page verification failed|could not (?:read|open|access)|XX001", re.IGNORECASE
)
_GRAVE = re.compile(r"\b(?:PANIC|FATAL|ERROR): .*")
# How a message of any level ends that has the error of a call on the disk: `%m` of the server is the C library's own text, in the messages
# of the locale C that every configuration has. Btrfs and ext4 answer EIO for a checksum too; XFS and ext4 EBADMSG and EUCLEAN; ZFS EBADE.
_OF_DISK = tuple(f": {os.strerror(code)}" for code in (errno.EIO, errno.EBADMSG, errno.EUCLEAN, errno.EBADE))
_OF_ROOM = f": {os.strerror(errno.ENOSPC)}"
_LEVEL = re.compile(r"\b(?:PANIC|FATAL|ERROR|WARNING|LOG): .*")
_BAD_CHECKSUM = re.compile(r'checksum verification failed in file "([^"]+)", block \d+')
# Maps of a table whose damaged pages the server takes for empty ones (ReadBufferExtended with RBM_ZERO_ON_ERROR in
# freespace.c and visibilitymap.c), and which it writes without full-page images: their checksums tell of no loss.
_MAPS = ("_fsm", "_vm")


def examine(
    cluster: Cluster,
    promised: Mapping[int, int],
    *,
    rows: int,
    oracle: int = ORACLE,
) -> OracleAnswer:
    """Start the server on what a cut left, ask the oracle, stop the server, and check every page where there are checksums.

    `promised` is the last acknowledged transaction of each client, `rows` how many accounts there must be, `oracle` the kind
    that the recording was made for. KilledFromOutside where SIGKILL ended the server, psql or the check: what they did not
    answer then is no finding.
    """
    cluster.log.unlink(missing_ok=True)
    started = time.monotonic()
    try:
        try:
            cluster.start(timeout_s=_START_LIMIT_S, options=(*START_OPTIONS, *_ERRORS_ALONE))
        except ServerFailed as error:
            if cluster.was_killed:
                raise KilledFromOutside("the server") from error
            said = grave_words(_text_of(cluster.log)) or error.reasons
            return OracleAnswer(None, detected=(f"the server does not start: {'; '.join(said)}",))
        start_s = time.monotonic() - started
        started = time.monotonic()
        with cluster.session() as session:
            answer = ask(session, promised, rows=rows, oracle=oracle)
            detected: list[str] = list(answer.detected)
            has_checksums = _ask(session, "SHOW data_checksums", detected, detected) == [["on"]]
        answer = replace(answer, detected=tuple(dict.fromkeys(detected)))
        _require_nothing_killed(cluster, session, answer)
        # What was caught already need not be caught again, and a server that is damaged may not be able to stop.
        if has_checksums and not answer.detected:
            answer = replace(answer, detected=tuple(_checksum_failures(cluster)))
        return replace(
            answer,
            start_s=start_s,
            oracle_s=time.monotonic() - started,
            disk_errors=disk_errors(_text_of(cluster.log)),
        )
    finally:
        cluster.kill()


def _require_nothing_killed(cluster: Cluster, session: Session, answer: OracleAnswer) -> None:
    """KilledFromOutside if that is why something was not answered.

    A client knows that its server's process is gone before the server does, which says of what in its log.
    """
    if session.was_killed:
        raise KilledFromOutside("psql")
    if not answer.detected:
        return
    until, never = time.monotonic() + _TOLD_LIMIT_S, threading.Event()
    while session.has_lost_connection and time.monotonic() < until:
        if cluster.was_killed or _ENDED.search(_text_of(cluster.log)):
            break
        never.wait(_LOOK_EVERY_S)
    if cluster.was_killed:
        raise KilledFromOutside("a process of the server")


def _checksum_failures(cluster: Cluster) -> Iterator[str]:
    """Every page that the server would refuse to read; nothing else has read them all. The server is stopped for it."""
    try:
        status = cluster.stop(timeout_s=_STOP_LIMIT_S)
    except ServerFailed as error:
        yield from error.reasons
        return
    if cluster.was_killed or status == -signal.SIGKILL:
        raise KilledFromOutside("the server")
    done = cluster.run(
        "pg_checksums", "--check", str(cluster.data_directory), timeout_s=_CHECKSUMS_LIMIT_S, check=False
    )
    if done.status == 0:
        return
    complaints = [line for line in done.stderr.splitlines() if ": error: " in line]
    bad = [match for line in complaints if (match := _BAD_CHECKSUM.search(line))]
    grave = [match[0] for match in bad if not re.sub(r"[.]\d+$", "", match[1]).endswith(_MAPS)]
    if grave:
        yield f"pg_checksums: {len(grave)} pages fail, among them: {grave[0]}"
    if len(bad) < len(complaints) or not complaints:
        others = [line for line in complaints if not _BAD_CHECKSUM.search(line)]
        yield "; ".join((*(others[:1] or done.output.splitlines()[-1:]), *grave_words(_text_of(cluster.log))))


def ask(session: Session, promised: Mapping[int, int], *, rows: int, oracle: int = ORACLE) -> OracleAnswer:
    """The oracle's questions: first such as any application asks, then the checks that nobody runs by himself."""
    detected: list[str] = []
    silent: list[str] = []
    present = notes(session, promised, detected, silent)
    _balances(session, rows, oracle, detected, silent)
    _both_ways(session, detected, silent)
    for check in (*map(_index_check, _INDEXES), *map(_heap_check, _TABLES)):
        for found in _ask(session, check, detected, silent):
            silent.append(f"verify_heapam: {' '.join(str(cell) for cell in found)}")
            break
    return OracleAnswer(present, tuple(dict.fromkeys(detected)), tuple(dict.fromkeys(silent)))


def _balances(session: Session, rows: int, oracle: int, detected: list[str], silent: list[str]) -> None:
    """Half a transaction shows here: a note without its account's change, or the reverse; and a row of two versions."""
    try:
        found = session.rows(  # names and whole numbers of ours
            "SELECT count(*), coalesce(sum(balance), 0), "  # noqa: S608
            "count(*) FILTER (WHERE account.balance IS DISTINCT FROM coalesce(noted.count, 0)), "
            "count(*) FILTER (WHERE account.id IS NULL), count(DISTINCT account.id), "
            "count(*) FILTER (WHERE account.id IS NOT NULL AND account.filler IS DISTINCT FROM "
            f"{filler('account.id', 'account.balance', oracle)}) "
            "FROM account FULL JOIN (SELECT account, count(*) FROM note GROUP BY account) AS noted "
            "ON noted.account = account.id",
            timeout_s=ANSWER_LIMIT_S,
        )
    except SessionFailed as error:
        detected.extend(error.reasons)
        return
    count, total, wrong, nameless, distinct, torn = (int(cell or 0) for cell in found[0])
    silent += balances(rows, there=count - nameless, distinct=distinct, total=total, wrong=wrong, torn=torn)


def _both_ways(session: Session, detected: list[str], silent: list[str]) -> None:
    """By an index an application is told what the visibility map lets it tell, without a look at the table."""
    # By their names: a server that asks the indexes in parallel answers in the order in which they are done.
    pages, indexes = (
        {str(row[0]): row[1:] for row in _ask(session, f"{way}\\; {_COUNTED}", detected, silent)}
        for way in _WAYS
    )
    for index, (table, columns) in _INDEXES.items():
        if index in pages and index in indexes and pages[index] != indexes[index]:
            (rows, total), (indexed, indexed_total) = pages[index], indexes[index]
            silent.append(
                f"{table} has {rows} rows by its pages and {indexed} by {index}; the sums of {columns} are {total} and "
                f"{indexed_total}"
            )


def _index_check(index: str) -> str:
    """Down from the root too, which takes a lock that nobody minds here."""
    return f"SELECT WHERE bt_index_parent_check('{index}', true, true) IS NULL"


def _heap_check(table: str) -> str:
    return f"SELECT blkno, offnum, msg FROM verify_heapam('{table}')"  # noqa: S608 -- a name of ours


def by_hand_checks() -> Iterator[tuple[str, str]]:
    """The checks that nobody runs by himself, each with a word for a shell: what they say, or nothing where all is well."""
    for index, (table, _) in _INDEXES.items():
        yield index, _index_check(index)
        yield f"{table}-by-{index}", _disagreement(index)
    yield from ((table, _heap_check(table)) for table in _TABLES)


def _disagreement(index: str) -> str:
    """A row where a table's pages and an index of it tell another count or another sum."""
    table, columns = _INDEXES[index]
    counted = f"SELECT count(*), coalesce(sum({columns}), 0) FROM {table}"  # noqa: S608 -- names of ours
    ways = [way.replace("\\;", ";") for way in _WAYS]
    return f"{ways[0]}; CREATE TEMP TABLE seen AS {counted}; {ways[1]}; {counted} EXCEPT SELECT * FROM seen"  # noqa: S608 -- as above


def _ask(session: Session, check: str, detected: list[str], silent: list[str]) -> list[list[str | None]]:
    """A check's rows. What it cannot read the engine has refused to read; all else only the check found."""
    try:
        return session.rows(check, timeout_s=ANSWER_LIMIT_S)
    except SessionFailed as error:
        (detected if _is_own_complaint(error) else silent).extend(error.reasons)
        return []


def _is_own_complaint(error: SessionFailed) -> bool:
    """Whether anybody would have noticed: a page that cannot be read, a server that is gone or does not answer."""
    codes = {reason.code for reason in reasons_of(error)}
    if codes & {CONNECTION_LOST, NO_ANSWER_IN_TIME}:
        return True
    return _UNREADABLE.search(error.said) is not None or "connection" in error.said


def grave_words(text: str, most: int = 3) -> tuple[str, ...]:
    """The last lines of a server's log that say what is wrong."""
    found = [match[0] for line in text.splitlines() if (match := _GRAVE.search(line))]
    # At its end it only says that it ends.
    telling = [line for line in found if "the database system is" not in line]
    return tuple(dict.fromkeys(telling))[-most:]


def disk_errors(text: str) -> tuple[str, ...]:
    """The first lines of a server's log that say that the disk failed, of whatever level: it may go on without what it could not read."""
    return _lines_ending(text, _OF_DISK)


def write_errors(text: str) -> tuple[str, ...]:
    """The same of a disk to which it writes, which may have no room too."""
    return _lines_ending(text, (*_OF_DISK, _OF_ROOM))


def _lines_ending(text: str, endings: tuple[str, ...], most: int = 3) -> tuple[str, ...]:
    lines = (line.rstrip() for line in text.splitlines())
    found = [match[0] for line in lines if line.endswith(endings) and (match := _LEVEL.search(line))]
    return tuple(dict.fromkeys(found))[:most]


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
