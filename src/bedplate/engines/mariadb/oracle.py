"""MariaDB under power cuts: its clients and its oracle as the workload asks for them."""

from __future__ import annotations

import re
import shlex
import signal
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bedplate.engines.mariadb.model import PAGE_SIZE, USUAL_PAGE_BYTES, WAITING, setting_name, setting_value
from bedplate.engines.mariadb.prepare import CHECK_PAGES, CLIENT, SERVER, Programs
from bedplate.engines.mariadb.visit import DATABASE, TEMPORARY, MariadbInstance, MariadbSession
from bedplate.errors import KilledFromOutside
from bedplate.host.command import Account
from bedplate.model.cell import Cell
from bedplate.model.levels import Scalar
from bedplate.units import KIB, MIB
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
from bedplate.visit.server import ServerFailed, ServerSite, SessionFailed

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


def recorded_settings(settings: Mapping[str, Scalar], *, clients: int = 0) -> dict[str, Scalar]:
    """The cell's settings, with small ones where the plan says nothing."""
    page = settings.get(PAGE_SIZE) or USUAL_PAGE_BYTES
    pool = _POOL_OF_LARGE_PAGES_BYTES if int(page) >= _LARGE_PAGE_BYTES else _POOL_BYTES
    own = {"innodb_buffer_pool_size": pool, "max_connections": clients + _MORE_CONNECTIONS}
    return {**_SMALL, **own, **settings}


def prepare(instance: MariadbInstance, cell: Cell, *, clients: int) -> None:
    """From nothing to the accounts, checkpointed; the server runs, and takes so many clients at once."""
    instance.initialise(cell, settings=recorded_settings(cell.cluster.settings, clients=clients))
    instance.start()
    instance.create_database()
    with instance.session() as session:
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


def settings_of(instance: MariadbInstance) -> dict[str, str]:
    """The settings that decide what a cut may take, as the server shows them."""
    with instance.session() as session:
        return {name: session.value(f"SELECT @@GLOBAL.{name}") for name in _DECISIVE}


def bound_ms(settings: Mapping[str, str]) -> float | None:
    """How long before a cut a commit may be that its settings may lose; None where they allow no loss.

    "Once per second", or `innodb_flush_log_at_timeout`, is when the flush begins.
    """
    if settings["innodb_flush_log_at_trx_commit"] in WAITING:
        return None
    return 1000.0 * _INTERVALS_LOST * float(settings["innodb_flush_log_at_timeout"])


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


def examine(instance: MariadbInstance, promised: Mapping[int, int], *, rows: int) -> OracleAnswer:
    """Start the server on what a cut left, ask the oracle, stop the server, and check every page.

    `promised` is the last acknowledged transaction of each client, `rows` how many accounts there must be. KilledFromOutside
    where SIGKILL ended the server or its client: what they did not answer then is no finding.
    """
    instance.log.unlink(missing_ok=True)
    started = time.monotonic()
    try:
        try:
            # A file in its data directory would make it a replica of whoever that names.
            instance.start(timeout_s=_START_LIMIT_S, options=("--skip-slave-start",))
        except ServerFailed as error:
            if instance.was_killed:
                raise KilledFromOutside("the server") from error
            said = complaints(instance) or error.reasons
            return OracleAnswer(None, detected=(f"the server does not start: {'; '.join(said)}",))
        start_s = time.monotonic() - started
        started = time.monotonic()
        with instance.session() as session:
            answer = ask(session, promised, rows=rows)
            if session.was_killed:
                raise KilledFromOutside("its client")
        if instance.was_killed:
            raise KilledFromOutside("the server")
        answer = _with(answer, complaints(instance))
        # What was caught already need not be caught again, and a server that is damaged may not be able to stop.
        if not answer.detected:
            answer = _with(answer, tuple(_checksum_failures(instance)))
        return replace(answer, start_s=start_s, oracle_s=time.monotonic() - started)
    finally:
        instance.kill()


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


def complaints(instance: MariadbInstance) -> tuple[str, ...]:
    """The first errors in the server's log: the later ones follow from them."""
    try:
        text = instance.log.read_text(encoding="utf-8", errors="replace")
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


def _checksum_failures(instance: MariadbInstance) -> Iterator[str]:
    """Every page that the server would refuse to read; nothing else has read them all. The server is stopped for it."""
    try:
        status = instance.stop(timeout_s=_STOP_LIMIT_S)
    except ServerFailed as error:
        yield from error.reasons
        return
    if status == -signal.SIGKILL:
        raise KilledFromOutside("the server")
    data = instance.data_directory
    files: list[tuple[Path, tuple[str, ...]]] = [(path, ()) for path in sorted(data.glob("*/*.ibd"))]
    for path, pages in (*((data / _SYSTEM, each) for each in page_ranges(instance.page_bytes)), *files):
        done = instance.run(CHECK_PAGES, *pages, str(path), timeout_s=_CHECKSUMS_LIMIT_S)
        if done.status != 0:
            yield f"innochecksum: {path.relative_to(data)}: {'; '.join(done.output.splitlines()[-2:])}"


def page_ranges(page_bytes: int) -> tuple[tuple[str, ...], ...]:
    """Options for the pages of the system tablespace without its second and third extent.

    These are the doublewrite buffer (buf_dblwr_t::create), which holds pages of other tablespaces, as old or as torn as they
    may be. An extent has 1 MiB, and no fewer than 64 pages (FSP_EXTENT_SIZE).
    """
    extent = max(_EXTENT_PAGES_LEAST, MIB // page_bytes)
    return (("--end-page", str(extent - 1)), ("--start-page", str(3 * extent)))


class MariadbCuts:
    """A server of the cell's packages, CHECK TABLE and innochecksum."""

    rows = ACCOUNTS
    oracle = ORACLE
    may_link = False
    drivers: tuple[Driver, ...] = ()

    def writer(self, context: VisitContext, setup: Recorded, *, clients: int) -> CutWriter:
        """A new data directory with the accounts in it, checkpointed and synced."""
        server = MariadbInstance(setup.server_site())
        setup.undo.callback(server.kill)
        prepare(server, context.request.cell, clients=clients)
        settings = settings_of(server)
        own = CutClients(
            server.session,
            transaction,
            ACCOUNTS,
            # InnoDB's own are fuzzy and come when its log fills.
            checkpoint="SET GLOBAL innodb_log_checkpoint_now = ON",
            version=f"mariadb {server.programs.version}",
        )
        return ServerWriter(
            own,
            setup,
            clients=clients,
            facts=settings,
            bound_ms=bound_ms(settings),
            was_killed=lambda: server.was_killed,
        )

    def examine(self, site: ServerSite, subject: Subject, promised: Mapping[int, int]) -> OracleAnswer:
        """A server on the image, which listens beside it."""
        server = MariadbInstance(site)
        server.take_settings(recorded_settings(subject.settings))
        return examine(server, promised, rows=subject.rows)

    def refused_settings(self, subject: Subject) -> Sequence[str]:
        """By the rules of a plan, in which the page size is no setting."""
        settings = subject.settings
        own = {name: each for name, each in settings.items() if name != PAGE_SIZE}
        page = settings.get(PAGE_SIZE)
        no_size = () if page is None or isinstance(page, int) else (f"page size {page!r}: allowed are bytes",)
        return (*no_size, *unplanned(own, setting_name, setting_value))

    def by_hand(self, subject: Subject, data: Path, account: Account, as_account: str) -> Iterator[str]:  # noqa: ARG002 -- root of the server is asked
        """A server in the background, its client, and its end."""
        programs = Programs(subject.build)
        libraries = "".join(f"{name}={shlex.quote(value)} " for name, value in programs.environment.items())
        settings = recorded_settings(subject.settings)
        asked = " ".join(shlex.quote(f"--{name}={value}") for name, value in settings.items())
        places = shlex.join(
            (
                f"--basedir={programs.prefix}",
                f"--datadir={data}",
                f"--tmpdir={data / TEMPORARY}",
                "--socket=/tmp/bedplate.sock",
                "--skip-networking",
                "--skip-slave-start",
            )
        )
        yield f"export {libraries.strip()}" if libraries else ":"
        yield f"{as_account} {shlex.quote(programs.path(SERVER))} --no-defaults {places} {asked} &"
        client = shlex.quote(programs.path(CLIENT))
        yield f"{as_account} {client} --no-defaults --socket=/tmp/bedplate.sock --user=root {DATABASE}"
        yield "kill $!; wait"


POWER_CUT: CutEngine = MariadbCuts()

# Not ibdata1: it has the doublewrite buffer, which every page goes to before its own place.
FAULTY_DISK = FaultEngine(
    POWER_CUT,
    log_files=("ib_logfile*",),
    data_files=(f"{DATABASE}/*.ibd",),
    said_of_disk=errors_in,
)

_HEADER = struct.Struct(">IIIIQ")
_PAGE_SIZES = (4096, 8192, 16384, 32768, 65536)


class MariadbPageNames(PageNames):
    """A page's number in its header tells the size of pages; parts behind a header have that of the cell."""

    def name(
        self,
        path: str,
        offset: int,
        data: bytes,
        file_names: Mapping[str, str],  # noqa: ARG002 -- as above
        subject: Subject,
    ) -> str | None:
        """A page of a tablespace, or of the log."""
        file = path.rpartition("/")[2]
        if file.startswith("ib_logfile"):
            return "InnoDB's log"
        if not (file.endswith(".ibd") or file.startswith(("ibdata", "undo"))):
            return None
        if len(data) >= _HEADER.size:
            _, number, _, _, sequence = _HEADER.unpack_from(data)
            if number and number * (size := offset // number) == offset and size in _PAGE_SIZES:
                return f"page {number}, log sequence number {sequence}"
        asked = subject.settings.integer(PAGE_SIZE)
        page_bytes = asked if asked in _PAGE_SIZES else USUAL_PAGE_BYTES
        return f"page {offset // page_bytes} of {page_bytes // KIB} kB"


PAGE_NAMES: PageNames = MariadbPageNames()

_PREFIX, _LIBRARIES = "MARIADB_PREFIX", "MARIADB_LIBRARIES"
_PACKAGES = "Debian: mariadb-server-core and mariadb-client-core"

_NOTES = (
    "SELECT CONCAT_WS(' ', client, MAX(sequence), COUNT(*) = MAX(sequence) AND MIN(sequence) = 1 AND "
    "COUNT(DISTINCT sequence) = COUNT(*)) FROM note GROUP BY client"
)


class MariadbReproduction(Reproduction):
    """The programs are those below MARIADB_PREFIX, or of /usr."""

    needs: Sequence[str] = (
        (
            f"mariadbd, mariadb and innochecksum of the release in `versions.txt` ({_PACKAGES}); {_PREFIX} names the folder above "
            f"their `bin` and `sbin` where it is not /usr, and {_LIBRARIES} a folder of libraries that they need besides"
        ),
    )

    def places(self, subject: Subject) -> Mapping[str, str]:
        """The unpacked packages that were recorded."""
        if subject.build is None:
            return {_PREFIX: "", _LIBRARIES: ""}
        programs = Programs(subject.build)
        return {_PREFIX: programs.prefix, _LIBRARIES: programs.environment.get("LD_LIBRARY_PATH", "")}

    def lines(self, subject: Subject, account: Account) -> Sequence[str]:  # noqa: ARG002 -- the server's root is asked
        """The server starts, which recovers, and is asked for what it has and whether it adds up; then every page is looked at."""
        settings = _settings(subject.settings)
        return (
            *_fitting(subject),
            *_started(settings),
            *_query_lines(subject),
            *_pages(int(settings[PAGE_SIZE])),
        )


def _settings(settings: Mapping[str, Scalar]) -> Mapping[str, Scalar]:
    """Those of the recording, which whoever read its job has held against the rules of a plan."""
    return {PAGE_SIZE: USUAL_PAGE_BYTES, **recorded_settings(settings)}


def _fitting(subject: Subject) -> Sequence[str]:
    """Another release would refuse healthy data: the log of a server that was not shut down is of one format."""
    lines = [
        f"prefix=${{{_PREFIX}:-/usr}}; PATH=$prefix/sbin:$prefix/bin:$PATH",
        f'[ -z "${{{_LIBRARIES}:-}}" ] || {{ LD_LIBRARY_PATH=${_LIBRARIES}; export LD_LIBRARY_PATH; }}',
        f'for tool in mariadbd mariadb innochecksum; do need $tool "{_PACKAGES}; {_PREFIX} names another folder"; done',
    ]
    if subject.build is not None:
        release = shlex.quote(".".join(subject.build.version.split(".")[:2]))
        lines += [
            "here=$(mariadbd --no-defaults --version 2> /dev/null | sed -n 's/.*Ver \\([0-9]*\\.[0-9]*\\).*/\\1/p')",
            f'[ "$here" = {release} ] || cannot "mariadbd "{release}" made the data, and "$here" is here; {_PREFIX} names another"',
        ]
    return lines


def _started(settings: Mapping[str, Scalar]) -> Sequence[str]:
    """By its log: a server that recovers takes no connection yet."""
    asked = shlex.join(f"--{name.replace('_', '-')}={value}" for name, value in settings.items())
    return (
        'mkdir "$own/tmp"',
        'mariadbd --no-defaults --basedir="$prefix" --datadir="$data" --tmpdir="$own/tmp" --secure-file-priv="$own/tmp" \\',
        f'    --socket="$own/sock" --pid-file="$own/pid" --ignore-db-dirs={TEMPORARY} --skip-networking --skip-slave-start --skip-name-resolve \\',
        f'    --local-infile=OFF {asked} > "$own/server" 2>&1 &',
        "server=$!",
        'complaint() { grep -F "[ERROR] " "$own/server" | head -n 1 | sed "s/.*\\[ERROR\\] //"; }',
        'until grep -qF "ready for connections" "$own/server"; do kill -0 $server 2> /dev/null || break; sleep 0.2; done',
        "if ! kill -0 $server 2> /dev/null; then",
        '    wait $server; bad "the server does not start, status $?: $(complaint)"; exit 0',
        "fi",
        f'ask() {{ mariadb --no-defaults --batch --skip-column-names --socket="$own/sock" --user=root {DATABASE} -e "$1" 2> "$own/said"; }}',
    )


def _query_lines(subject: Subject) -> Sequence[str]:
    """What an application sees, then what only a check sees. A statement that fails is the server's own complaint."""
    lines = [
        'none() { found=$(ask "$2") || { bad "$1: $(head -n 1 "$own/said")"; return; }; [ "${found:-0}" = 0 ] || bad "$1: $(echo "$found" | tr "\\n\\t" "  ")"; }',
        f'ask "{_NOTES}" > "$own/last" || bad "note: $(head -n 1 "$own/said")"',
        "while read -r client last whole; do",
        '    echo "present $client $last"; [ "$whole" = 1 ] || bad "client $client: some of the notes up to $last are missing between, or twice"',
        'done < "$own/last"',
        "found=$(ask 'SELECT COUNT(DISTINCT id) FROM account')",
        f'[ "$found" = {int(subject.rows)} ] || bad "{int(subject.rows)} accounts were made, and there are $found"',
    ]
    return (
        *lines,
        *(f"none {shlex.quote(words)} {shlex.quote(statement)}" for words, statement in by_hand_checks()),
        'found=$(ask "CHECK TABLE account, note EXTENDED" | grep -v "status.OK$")',
        '[ -z "$found" ] || bad "CHECK TABLE: $(echo "$found" | head -n 1 | tr "\\t" " ")"',
        'found=$(complaint); [ -z "$found" ] || bad "the server says: $found"',
    )


def _pages(page_bytes: int) -> Sequence[str]:
    """Nothing else reads them all; and the server must be able to stop."""
    lines = [
        'kill -TERM $server; wait $server || bad "the server ended with $?: $(complaint)"',
        'sums() { innochecksum "$@" > "$own/said" 2>&1 || bad "innochecksum $1: $(tail -n 1 "$own/said")"; }',
    ]
    own = (f'sums {shlex.join(options)} "$data/ibdata1"' for options in page_ranges(page_bytes))
    return (*lines, *own, 'for file in "$data"/*/*.ibd; do sums "$file"; done')


REPRODUCTION: Reproduction = MariadbReproduction()
