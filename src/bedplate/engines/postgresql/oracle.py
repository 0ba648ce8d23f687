"""PostgreSQL under power cuts: its clients and its oracle as the workload asks for them."""

from __future__ import annotations

import errno
import os
import re
import shlex
import signal
import struct
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from bedplate.cuts.records import WAL_BYTES, WAL_PAGE_IMAGES
from bedplate.engines.postgresql.settings import own_configuration_text, setting_name, setting_value
from bedplate.engines.postgresql.settings import refused_settings as refused_values
from bedplate.engines.postgresql.versions import major_of
from bedplate.engines.postgresql.visit import (
    OBEYED,
    Cluster,
    Session,
    configuration_files,
    configuration_options,
)
from bedplate.errors import KilledFromOutside
from bedplate.host.command import Account
from bedplate.model.cell import Cell, ClusterLevels
from bedplate.model.reason import reasons_of
from bedplate.units import one_line, parse_duration_s
from bedplate.visit.cuts import (
    ANSWER_LIMIT_S,
    CutClients,
    CutEngine,
    CutWriter,
    FaultEngine,
    OracleAnswer,
    PageNames,
    Recorded,
    Reproduction,
    ServerWriter,
    Subject,
    balances,
    notes,
    unplanned,
)
from bedplate.visit.recording import Driver, VisitContext
from bedplate.visit.server import CONNECTION_LOST, NO_ANSWER_IN_TIME, ServerFailed, ServerSite, SessionFailed

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

# The databases that initdb makes, which no client asks for: every cut would copy, sync and check their thousand files.
_UNUSED = ("template0", "template1", "postgres")

_SCHEMA = (
    *(f"ALTER DATABASE {name} IS_TEMPLATE false" for name in _UNUSED),
    *(f"DROP DATABASE {name}" for name in _UNUSED),
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


def recorded_levels(cluster_levels: ClusterLevels, clients: int) -> ClusterLevels:
    """The cell's levels, with small settings where neither the plan nor its own postgresql.conf says anything."""
    small = {**_SMALL, "max_connections": str(clients + _MORE_CONNECTIONS)}
    lines = [f"{name} = '{value}'" for name, value in small.items() if name not in cluster_levels.settings]
    text = "\n".join([*lines, cluster_levels.configuration or ""])
    return replace(cluster_levels, configuration=text)


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


def filler(account: str, balance: str, oracle: int = ORACLE) -> str:
    """The filler of an account as SQL, of the SQL of its number and its balance.

    Of a constant length, so that a row keeps its size; a short text again and again, which a log packs well.
    """
    if oracle == CONSTANT_FILLER:
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


def _ask(session: Session, statement: str, detected: list[str], silent: list[str]) -> list[list[str | None]]:
    """A check's rows. What it cannot read the engine has refused to read; all else only the check found."""
    try:
        return session.rows(statement, timeout_s=ANSWER_LIMIT_S)
    except SessionFailed as error:
        (detected if _is_own_complaint(error) else silent).extend(error.reasons)
        return []


def _is_own_complaint(failure: SessionFailed) -> bool:
    """Whether anybody would have noticed: a page that cannot be read, a server that is gone or does not answer."""
    codes = {reason.code for reason in reasons_of(failure)}
    if codes & {CONNECTION_LOST, NO_ANSWER_IN_TIME}:
        return True
    return _UNREADABLE.search(failure.said) is not None or "connection" in failure.said


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


class PostgresqlCuts:
    """A server of the cell's build, and amcheck."""

    rows = ACCOUNTS
    oracle = ORACLE
    may_link = False
    drivers: tuple[Driver, ...] = ()

    def writer(self, context: VisitContext, setup: Recorded, *, clients: int) -> CutWriter:
        """A new cluster with the accounts in it, checkpointed and synced."""
        server = Cluster(setup.server_site())
        setup.undo.callback(server.kill)
        prepare(server, context.request.cell, clients=clients)
        settings = settings_of(server)
        own = CutClients(
            server.session,
            lambda *which: (transaction(*which),),
            ACCOUNTS,
            checkpoint="CHECKPOINT",
            version=f"postgresql {server.build.version}",
        )
        return ServerWriter(
            own,
            setup,
            clients=clients,
            facts=settings,
            bound_ms=bound_ms(settings),
            was_killed=lambda: server.was_killed,
            counters=partial(counters_of, server),
        )

    def examine(self, site: ServerSite, subject: Subject, promised: Mapping[int, int]) -> OracleAnswer:
        """A server on the image, which listens beside it."""
        cluster = Cluster(site)
        cluster.configure_apart(levels_of(subject))
        return examine(cluster, promised, rows=subject.rows, oracle=subject.oracle)

    def refused_settings(self, subject: Subject) -> Sequence[str]:
        """By the rules of a plan."""
        settings, text = subject.settings, subject.configuration
        libraries = refused_values({name: (str(each),) for name, each in settings.items()})
        return (*unplanned(settings, setting_name, setting_value), *libraries, *_refused_text(text or ""))

    def by_hand(self, subject: Subject, data: Path, account: Account, as_account: str) -> Iterator[str]:
        """A server in the background, psql, and its end."""
        programs = "" if subject.build is None else f"{subject.build.prefix}/bin/"
        folder = data.parent.parent / "configuration"
        own = shlex.quote(str(folder))
        yield f"(cd {shlex.quote(str(data))} && rm -f {shlex.join(OBEYED)})   # what a server obeys there; the image may be a stranger's"
        yield f"mkdir -p {own}"
        for name, text in configuration_files(levels_of(subject), "/tmp").items():  # noqa: S108 -- of whoever types it
            yield f"printf %s {shlex.quote(text)} > {own}/{name}"
        server = shlex.quote(f"{programs}postgres")
        settings = shlex.join((*START_OPTIONS, *configuration_options(folder)))
        yield f"{as_account} {server} -D {shlex.quote(str(data))} {settings} &"
        yield f"{as_account} {shlex.quote(f'{programs}psql')} -h /tmp -U {shlex.quote(account.name)} bedplate"
        yield "kill -INT $!; wait"


def _refused_text(text: str) -> Iterator[str]:
    try:
        own_configuration_text(text)
    except ValueError as error:
        yield f"configuration: {error}"


POWER_CUT: CutEngine = PostgresqlCuts()

FAULTY_DISK = FaultEngine(
    POWER_CUT, log_files=("pg_wal/*",), data_files=("base/*/*",), said_of_disk=write_errors
)

_RELATION = re.compile(r"((?:base/\d+|global|pg_tblspc/[^/]+/[^/]+/\d+)/(\d+))(?:_(\w+))?(?:\.(\d+))?")
_WAL = "pg_wal"

# What names hang on: files of relations, and beside them how many bytes a segment of the WAL has.
_FILES_OF_RELATIONS = (
    "SELECT pg_relation_filepath(oid), relname::text FROM pg_class WHERE pg_relation_filepath(oid) IS NOT NULL "
    "UNION ALL SELECT 'pg_wal', setting FROM pg_settings WHERE name = 'wal_segment_size'"
)

_SEGMENT = re.compile(r"pg_wal/([0-9A-F]{8})([0-9A-F]{8})([0-9A-F]{8})")
_SEGMENT_SIZES = tuple(1 << step for step in range(20, 31))

# XLogPageHeaderData: magic, info, timeline, address of the page. The magic of each version is 0xD000 and more.
_WAL_HEADER = struct.Struct("<HHIQ")

_WAL_MAGICS = range(0xD000, 0xD200)

# A file of a relation is cut into such pieces (RELSEG_SIZE, 1 GB whatever the page).
_RELATION_SEGMENT_BYTES = 2**30

_HEADER = struct.Struct("<IIHHHHHH")
_SMALLEST_PAGE, _LARGEST_PAGE, _USUAL_BYTES = 1024, 32768, 8192

_FILES = {
    "pg_xact": "states of transactions",
    "pg_multixact": "multixacts",
    "pg_subtrans": "parents of subtransactions",
    "global/pg_control": "the control file",
    "pg_logical": "logical decoding",
}


class PostgresqlPageNames:
    """The page's size stands in each page's header; written parts behind a header have that of the build."""

    def file_names(self, site: ServerSite, subject: Subject) -> Mapping[str, str]:
        """Relations of the clients' database and the shared ones, as a server on the data says; none where it does not start, or says nothing."""
        cluster = Cluster(site)
        try:
            cluster.configure_apart(levels_of(subject))
            cluster.start(timeout_s=_START_LIMIT_S, options=START_OPTIONS)
            with cluster.session() as session:
                return {str(path): str(name) for path, name in session.rows(_FILES_OF_RELATIONS)}
        except (ServerFailed, SessionFailed, KilledFromOutside, OSError):
            # A name is told where there is one; what is wrong with the data is another's to find.
            return {}
        finally:
            cluster.kill()

    def name(
        self, path: str, offset: int, data: bytes, file_names: Mapping[str, str], subject: Subject
    ) -> str | None:
        """A page of a relation, a position of the WAL, or what a file is for."""
        if (found := _SEGMENT.fullmatch(path)) is not None:
            log, segment = int(found[2], 16), int(found[3], 16)
            begin = _begin_of(segment, file_names.get(_WAL), offset, data)
            return (
                f"WAL, byte {offset} of a segment" if begin is None else f"WAL at {log:X}/{begin + offset:X}"
            )
        if (found := _RELATION.fullmatch(path)) is not None:
            file, filenode, fork, piece = found.groups()
            relation = one_line(file_names.get(file, filenode))
            usual = _USUAL_BYTES if subject.build is None else subject.build.block_size_bytes
            size, lsn = _page(data, usual)
            at = offset + int(piece or 0) * _RELATION_SEGMENT_BYTES
            where = f"page {at // size}" if at % size == 0 else f"page {at // size}, byte {at % size} of it"
            what = f"relation {relation}" if fork is None else f"relation {relation} ({fork})"
            return f"{what}, {where}{f', LSN {lsn}' if lsn and at % size == 0 else ''}"
        return next(
            (words for name, words in _FILES.items() if path == name or path.startswith(f"{name}/")), None
        )


def _begin_of(segment: int, segment_size: str | None, offset: int, data: bytes) -> int | None:
    """Where a segment of the WAL begins, as the server told its size, or a page of it says where it is itself; None where neither does."""
    for size in _SEGMENT_SIZES:
        if segment_size == str(size):
            return segment * size
    if len(data) < _WAL_HEADER.size:
        return None
    magic, _, _, address = _WAL_HEADER.unpack_from(data)
    begins = (segment * size for size in _SEGMENT_SIZES if magic in _WAL_MAGICS)
    return next((begin for begin in begins if begin == (address - offset) & 0xFFFFFFFF), None)


def _page(data: bytes, usual: int) -> tuple[int, str | None]:
    """Size and log sequence number of the page that begins here; the usual size and None where none does."""
    if len(data) >= _HEADER.size + 4:
        high, low, _, _, lower, upper, special, size_and_version = _HEADER.unpack_from(data)
        size = size_and_version & 0xFF00
        is_page = lower <= upper <= special <= size
        if is_page and _SMALLEST_PAGE <= size <= _LARGEST_PAGE and size & (size - 1) == 0:
            return size, f"{high:X}/{low:X}"
    return usual, None


PAGE_NAMES: PageNames = PostgresqlPageNames()

# As `check.sh` has it.
_OWN = "/tmp/own"  # noqa: S108 -- of a mount namespace of its own

_PORT_OPTIONS = (
    *("-c", f"unix_socket_directories={_OWN}", "-c", "listen_addresses=", "-c", "logging_collector=off"),
    *("-c", "archive_mode=off", *START_OPTIONS),
)

_NOTES = (
    "SELECT client || ' ' || max(sequence) || ' ' || (count(*) = max(sequence) AND min(sequence) = 1 AND "
    "count(DISTINCT sequence) = count(*))::int FROM note GROUP BY client"
)


class PostgresqlReproduction(Reproduction):
    """The programs are those of the folder PGBIN, or of PATH."""

    needs: Sequence[str] = (
        "postgres and psql of the major version and page size in `versions.txt`; PGBIN names their folder, which every account can read",
        "amcheck of the same PostgreSQL (Debian: in its server's package), and pg_checksums where pages have checksums",
    )

    def places(self, subject: Subject) -> Mapping[str, str]:
        """The folder of the build that is recorded."""
        return {"PGBIN": "" if subject.build is None else f"{subject.build.prefix}/bin"}

    def lines(self, subject: Subject, account: Account) -> Sequence[str]:
        """The server starts, which replays its WAL, and is asked for what it has and whether it adds up."""
        return (*_fitting(subject), *_started(subject, account), *_query_lines(subject), *_stopped())


def _fitting(subject: Subject) -> Sequence[str]:
    """Another major version or page size would refuse healthy data."""
    lines = [
        '[ -z "${PGBIN:-}" ] || PATH=$PGBIN:$PATH',
        'for tool in postgres psql pg_controldata; do need $tool "PGBIN names its folder"; done',
    ]
    build = subject.build
    if build is not None:
        major = shlex.quote(str(major_of(build.version)))
        block = shlex.quote(str(build.block_size_bytes))
        lines += [
            "here=$(postgres -V | sed 's/^[^0-9]*\\([0-9]*\\).*/\\1/')",
            f'[ "$here" = {major} ] || cannot "postgres "{major}" made the data, and "$here" is here; PGBIN names the folder of another"',
            'mkdir -m 700 "$own/empty"; : > "$own/empty/postgresql.conf"',
            'here=$(postgres -C block_size -D "$own/empty" 2> /dev/null)',
            f'[ "$here" = {block} ] || cannot "pages of the data have "{block}" bytes, those of postgres here "$here"; PGBIN names another"',
        ]
    return lines


def _started(subject: Subject, account: Account) -> Sequence[str]:
    files = configuration_files(levels_of(subject), _OWN)
    places = shlex.join(configuration_options(f"{_OWN}/configuration"))
    return (
        # Nothing of what lies with the data is obeyed: it may be a stranger's.
        f'(cd "$data" && rm -f {shlex.join(OBEYED)})',
        'mkdir "$own/configuration"',
        *(f'printf %s {shlex.quote(text)} > "$own/configuration/{name}"' for name, text in files.items()),
        f'postgres -D "$data" {places} {shlex.join(_PORT_OPTIONS)} > "$own/server" 2>&1 &',
        "server=$!",
        f'ask() {{ psql -X -q -A -t -h "$own" -U {shlex.quote(account.name)} -d bedplate -v ON_ERROR_STOP=1 -c "$1" 2> "$own/said"; }}',
        # Line 8 is the server's own status (src/include/utils/pidfile.h): one that is ready may still refuse a connection.
        'status() { sed -n "8s/ *$//p" "$data/postmaster.pid" 2> /dev/null; }',
        'until [ "$(status)" = ready ]; do kill -0 $server 2> /dev/null || break; sleep 0.2; done',
        "if ! kill -0 $server 2> /dev/null; then",
        '    bad "the server does not start: $(grep -E "PANIC|FATAL" "$own/server" | tail -n 1)"; exit 0',
        "fi",
        'ask "SELECT 1" > /dev/null || { bad "the server refuses a connection: $(head -n 1 "$own/said")"; exit 0; }',
    )


def _query_lines(subject: Subject) -> Sequence[str]:
    """What an application sees, then what only a check sees. A statement that fails is the server's own complaint."""
    wrong = (
        "SELECT count(*) FROM account FULL JOIN (SELECT account, count(*) FROM note GROUP BY account) AS noted "  # noqa: S608 -- names of ours
        "ON noted.account = account.id WHERE balance IS DISTINCT FROM coalesce(count, 0) OR account.id IS NULL "
        f"OR filler IS DISTINCT FROM {filler('account.id', 'account.balance', subject.oracle)}"
    )
    lines = [
        'none() { found=$(ask "$2") || { bad "$1: $(head -n 1 "$own/said")"; return; }; [ "${found:-0}" = 0 ] || bad "$1: $(echo "$found" | tr "\\n" " ")"; }',
        f'ask "{_NOTES}" > "$own/last" || bad "note: $(head -n 1 "$own/said")"',
        "while read -r client last whole; do",
        '    echo "present $client $last"; [ "$whole" = 1 ] || bad "client $client: some of the notes up to $last are missing between, or twice"',
        'done < "$own/last"',
        f'none "accounts that are not the sum of their notes, or not whole" {shlex.quote(wrong)}',
        "found=$(ask 'SELECT count(*) FROM account')",
        f'[ "$found" = {int(subject.rows)} ] ||',
        f'    bad "{int(subject.rows)} accounts were made, and there are $found"',
        "amcheck=$(ask \"SELECT count(*) FROM pg_available_extensions WHERE name = 'amcheck'\")",
        '[ "$amcheck" != 0 ] || cannot "amcheck of this PostgreSQL is not installed"',
    ]
    return (*lines, *(f"none {name} {shlex.quote(statement)}" for name, statement in by_hand_checks()))


def _stopped() -> Sequence[str]:
    return (
        "kill -INT $server; wait $server",
        'sums=$(pg_controldata "$data" | sed -n "s/^Data page checksum version: *//p")',
        'if [ "${sums:-0}" != 0 ]; then',
        '    need pg_checksums "PGBIN names its folder"',
        '    pg_checksums --check -D "$data" > /dev/null 2> "$own/said"',
        # Maps that the server takes for empty ones where they are damaged.
        "    found=$(grep 'verification failed' \"$own/said\" | grep -v '_\\(fsm\\|vm\\)[.0-9]*\"' | head -n 1)",
        '    [ -z "$found" ] || bad "pg_checksums: $found"',
        "fi",
    )


REPRODUCTION: Reproduction = PostgresqlReproduction()
