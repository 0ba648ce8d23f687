"""A MariaDB server on the scratch file system: made, started, read back, stopped.

It listens on a private Unix socket only, reads no option file, and loads no plugin of the machine's.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, cast

from bedplate.engines.mariadb.model import MODEL, PAGE_SIZE, USUAL_PAGE_BYTES, WAITING, same_value
from bedplate.engines.mariadb.prepare import CHECK_PAGES, CLIENT, INSTALL, Programs
from bedplate.engines.mariadb.prepare import SERVER as MARIADBD
from bedplate.errors import CommandFailed
from bedplate.host.command import Account, Completed
from bedplate.host.shut_in import Restriction
from bedplate.model.cell import Cell
from bedplate.model.durability import BOUNDED_LOSS, UNKNOWN, UNSAFE, FilesystemPromise, declared, lowered_to
from bedplate.model.levels import Scalar
from bedplate.model.reason import INNODB_DOUBLEWRITE_OFF, Reason, because
from bedplate.model.visit import Durability, ReadBack
from bedplate.probe.sampler import Probe
from bedplate.visit.declaration import DurabilityInForce, EngineDurability
from bedplate.visit.server import (
    MYSQL,
    EngineServer,
    InForce,
    PipedSession,
    Server,
    ServerFailed,
    ServerSite,
    SqlEndpoint,
    SqlEngine,
    SqlSizes,
)

# Codes of the client's library for a server that cannot be reached, or is gone (errmsg.h).
_LOST = re.compile(rb"^ERROR (?:2002|2003|2006|2013|2026|2055|1927|1053)\b", re.MULTILINE)


class MariadbSession(PipedSession):
    """Its statements may be several, with `;` between them: the answers follow each other.

    The client goes on after an error.
    """

    field: ClassVar[str] = "\t"
    null: ClassVar[str] = "NULL"
    end: ClassVar[str] = "@ bedplate end of answer @"
    ask_for_end: ClassVar[str] = f"SELECT '{end}';"
    errors: ClassVar[tuple[str, ...]] = ("ERROR ",)

    def __init__(self, programs: Programs, socket: Path, account: Account, *, database: str = "") -> None:
        argv = [
            programs.path(CLIENT),
            "--no-defaults",
            "--batch",
            "--skip-column-names",
            "--unbuffered",
            "--force",
            "--skip-reconnect",
            f"--socket={socket}",
            "--user=root",
            f"--database={database}",
        ]
        restriction = Restriction(account, readable=(programs.root,), sockets=(socket.parent,))
        super().__init__(argv, restriction, programs.environment)

    @staticmethod
    def has_gone(message: bytes) -> bool:
        """By the error's code: the line that asks for the end fails as well, and no answer comes."""
        return _LOST.search(message) is not None


_VARIABLES = "SHOW GLOBAL VARIABLES"
_PROC = Path("/proc")
_DATA_FILE = "ibdata1"
_FLAGS = re.compile(r"^flags:\s+([0-7]+)$", re.MULTILINE)

# A page of each kind is changed, and a checkpoint writes them: what is written twice is counted then.
_MAKES_DIRTY = (
    "CREATE TABLE bedplate_read_back (id INT PRIMARY KEY) ENGINE=InnoDB",
    "INSERT INTO bedplate_read_back VALUES (1)",
    "SET GLOBAL innodb_log_checkpoint_now = ON",
    "DROP TABLE bedplate_read_back",
)

_WRITTEN, _TWICE = "Innodb_buffer_pool_pages_flushed", "Innodb_dblwr_pages_written"

# What decides a result and is worth reading even where nobody asked for it.
_WORTH_READING = (
    "innodb_buffer_pool_size",
    "innodb_log_file_size",
    "innodb_log_buffer_size",
    "innodb_log_file_buffering",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_log_at_timeout",
    "innodb_flush_method",
    "innodb_flush_neighbors",
    "innodb_doublewrite",
    "innodb_use_atomic_writes",
    "innodb_use_native_aio",
    "innodb_checksum_algorithm",
    "innodb_io_capacity",
    "innodb_io_capacity_max",
    "innodb_max_dirty_pages_pct",
    "log_bin",
    "sync_binlog",
    "performance_schema",
)


def read_back(session: MariadbSession, settings: Mapping[str, Scalar], pid: int) -> tuple[ReadBack, ...]:
    """Every asked setting, what decides a result, how data files are open, and double writes."""
    shown = effective_settings(session)
    found = [_setting(name, str(value), shown.get(name)) for name, value in sorted(settings.items())]
    found += [
        ReadBack(f"setting {name}", None, shown[name], _VARIABLES, matches=None)
        for name in (PAGE_SIZE, *_WORTH_READING)
        if name in shown and name not in settings
    ]
    method = shown.get("innodb_flush_method", "")
    direct = opened_directly(pid)
    # Where the file system takes no O_DIRECT, InnoDB goes on without it.
    wanted = "innodb_flush_method" in settings and direct is not None
    found.append(
        ReadBack(
            f"{_DATA_FILE} open with O_DIRECT",
            method if wanted else None,
            direct,
            "/proc/PID/fdinfo",
            matches=(direct is method.upper().startswith("O_DIRECT")) if wanted else None,
        )
    )
    return (*found, double_writes(session, shown))


def effective_settings(session: MariadbSession) -> dict[str, str]:
    """Every variable of the server by name, as it shows it."""
    return {str(name): str(value or "") for name, value in session.rows(_VARIABLES)}


def status(session: MariadbSession, *names: str) -> dict[str, float]:
    """Counters of the server by name."""
    listed = ", ".join(f"'{name}'" for name in names)
    rows = session.rows(f"SHOW GLOBAL STATUS WHERE Variable_name IN ({listed})")
    return {str(name): float(value) for name, value in rows if value is not None}


def double_writes(session: MariadbSession, variables: Mapping[str, str]) -> ReadBack:
    """Whether pages are written twice, by the server's own count.

    With `innodb_use_atomic_writes` the server leaves them out by itself where the device claims that it writes a page whole:
    then they are said, and not judged.
    """
    for statement in _MAKES_DIRTY:
        session.execute(statement)
    counted = status(session, _WRITTEN, _TWICE)
    pages, twice = counted.get(_WRITTEN, 0.0), counted.get(_TWICE, 0.0)
    asked = variables.get("innodb_doublewrite", "ON")
    source = f"{_TWICE}, {_WRITTEN}"
    if pages == 0:
        return ReadBack("double writes", asked, None, source, matches=None)
    is_off = asked.upper() == "OFF"
    by_device = variables.get("innodb_use_atomic_writes", "").upper() == "ON"
    matches = (twice == 0) if is_off else True if twice > 0 else None if by_device else False
    return ReadBack("double writes", asked, "ON" if twice > 0 else "OFF", source, matches=matches)


def opened_directly(pid: int, proc: Path = _PROC) -> bool | None:
    """Whether a process has InnoDB's system tablespace open with O_DIRECT; None where that cannot be seen."""
    try:
        for link in (proc / str(pid) / "fd").iterdir():
            if link.readlink().name == _DATA_FILE:
                flags = _FLAGS.search((proc / str(pid) / "fdinfo" / link.name).read_text())
                return None if flags is None else bool(int(flags[1], 8) & os.O_DIRECT)
    except OSError:
        return None
    return None


def _setting(name: str, level: str, effective: str | None) -> ReadBack:
    matches = effective is not None and same_value(level, effective)
    return ReadBack(f"setting {name}", level, effective, _VARIABLES, matches=matches)


DATABASE = "bedplate"

# Owns the database, and has no right beyond it: it reads no file, loads nothing and sets nothing of the server's.
CLIENT_USER = "bedplate_client"

_SOCKET_NAME = "mariadb.sock"

TEMPORARY = "bedplate_tmp"

_READY_EVERY_S = 0.02

# What a cold start would load again by itself, and what a plan may set otherwise.
_USUAL = {"innodb_buffer_pool_load_at_startup": "OFF", "innodb_buffer_pool_dump_at_shutdown": "OFF"}

NATIVE_AIO, _OFF = "innodb_use_native_aio", ("OFF", "0", "FALSE")

# A thousand syncs of tables that the next step syncs at once say nothing of the database.
_UNSYNCED = ("--innodb-flush-method=nosync", "--innodb-flush-log-at-trx-commit=0")


class MariadbInstance(Server):
    """One data directory and its server, which has no children, and which nothing starts again after a crash."""

    stops_by = signal.SIGTERM
    stop_limit_s = 600.0
    crash_words = " got signal "

    def __init__(self, site: ServerSite) -> None:
        """Neither made nor started; BedplateError where no build is named."""
        self.programs = Programs(site.build)
        super().__init__(site, self.programs.prefix)
        self.socket = site.socket_directory / _SOCKET_NAME
        self._settings: Mapping[str, Scalar] = {}

    def initialise(self, cell: Cell, *, settings: Mapping[str, Scalar] | None = None) -> None:
        """Make the system tables with InnoDB's page size; `start` takes the cell's settings, or others in their place."""
        self.take_settings(cell.cluster.settings if settings is None else settings)
        temporary = self.data_directory / TEMPORARY
        temporary.mkdir(mode=0o700)
        shutil.chown(temporary, self.account.uid, self.account.gid)
        argv = [
            self.programs.path(INSTALL),
            "--no-defaults",
            *self._places(),
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
            *self._options(),
            *_UNSYNCED,
        ]
        try:
            self._commands.run(
                argv,
                confinement=self._restriction(),
                timeout_s=900,
                extra_environment=self.programs.environment,
            )
        except CommandFailed as error:
            # Its own words stand among pages of advice.
            said = [line.partition("[ERROR] ")[2] for line in error.output.splitlines() if "[ERROR]" in line]
            raise (
                ServerFailed(f"MariaDB {self.programs.version} refuses: {said[0]}") if said else error
            ) from error

    def take_settings(self, settings: Mapping[str, Scalar]) -> None:
        """Those of a cell, for a data directory that is there already."""
        self._settings = {**_USUAL, PAGE_SIZE: USUAL_PAGE_BYTES, **settings}

    @property
    def page_bytes(self) -> int:
        """The page size that its settings name."""
        return int(self._settings[PAGE_SIZE])

    def start(self, *, timeout_s: float = 300.0, options: tuple[str, ...] = ()) -> None:
        """Start the server and wait until it takes connections; `options` win over the cell's settings."""
        self._server.start(
            [
                self.programs.path(MARIADBD),
                "--no-defaults",
                *self._places(),
                f"--socket={self.socket}",
                f"--pid-file={self.socket.with_suffix('.pid')}",
                f"--ignore-db-dirs={TEMPORARY}",
                # An empty folder: nothing can be read from or written to files by a statement.
                f"--secure-file-priv={self.data_directory / TEMPORARY}",
                "--skip-networking",
                "--skip-name-resolve",
                "--local-infile=OFF",
                *self._options(),
                *options,
            ],
            self.programs.environment,
            writable=(self.data_directory, self.socket.parent),
            readable=(self.programs.root,),
            # Its own default is asynchronous I/O, which is io_uring where it was built so.
            io_uring=str(self._settings.get(NATIVE_AIO, "ON")).upper() not in _OFF,
        )
        self.wait_until_ready(timeout_s, every_s=_READY_EVERY_S)

    def create_database(self) -> None:
        """An empty database for the workload, and the account that owns it."""
        with self.session(database="") as session:
            session.execute(f"CREATE DATABASE {DATABASE}")
            session.execute(f"CREATE USER {CLIENT_USER}@localhost")
            session.execute(f"GRANT ALL ON {DATABASE}.* TO {CLIENT_USER}@localhost")

    def in_force(self, cell: Cell) -> InForce:
        """Every variable as it shows it, and what was asked held against it, its open files and its counters."""
        with self.session() as session:
            compared = read_back(session, cell.cluster.settings, self._server.pid)
            settings = effective_settings(session)
        return InForce(settings, compared, {"mariadb": settings.get("version", self.programs.version)})

    def run(self, program: str, *arguments: str, timeout_s: float) -> Completed:
        """A program of the server's own packages, by the server's account, however it ends."""
        return self._commands.run(
            [self.programs.path(program), *arguments],
            confinement=self._restriction(),
            timeout_s=timeout_s,
            check=False,
            extra_environment=self.programs.environment,
        )

    @property
    def lacks_room(self) -> bool:
        """Whether its log ends with a full disk, which InnoDB says in words of its own."""
        return super().lacks_room or any(
            words in self.last_words() for words in ("Disk is full", "errno: 28")
        )

    def is_ready(self) -> bool:
        """Whether it says its version to who connects, as it does once its recovery is done."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(1.0)
            try:
                connection.connect(str(self.socket))
                return bool(connection.recv(1))
            except OSError:
                return False

    def session(self, *, database: str = DATABASE) -> MariadbSession:
        """A new session with all rights; the caller closes it."""
        return MariadbSession(self.programs, self.socket, self.account, database=database)

    def _restriction(self) -> Restriction:
        """Of its programs that work on its data without it."""
        return Restriction(self.account, (self.data_directory,), (self.programs.root,))

    def _places(self) -> tuple[str, ...]:
        return (
            f"--basedir={self.programs.prefix}",
            f"--datadir={self.data_directory}",
            f"--tmpdir={self.data_directory / TEMPORARY}",
        )

    def _options(self) -> tuple[str, ...]:
        return tuple(f"--{name}={value}" for name, value in self._settings.items())


SERVER = EngineServer(MODEL.making, (MARIADBD, CLIENT, INSTALL, CHECK_PAGES), MariadbInstance)

# Of `SHOW GLOBAL STATUS`; the first two are gauges, the others grow.
COUNTERS = (
    "Innodb_checkpoint_age",
    "Innodb_checkpoint_max_age",
    "Innodb_buffer_pool_reads",
    "Innodb_buffer_pool_read_requests",
    "Innodb_buffer_pool_pages_flushed",
    "Innodb_buffer_pool_pages_lru_flushed",
    "Innodb_buffer_pool_wait_free",
    "Innodb_lsn_current",
    "Innodb_data_fsyncs",
    "Innodb_dblwr_pages_written",
    "Innodb_row_lock_waits",
    "Innodb_row_lock_time",
    "Innodb_deadlocks",
    "Innodb_log_waits",
)


class MariadbProbe:
    """Cumulative statistics of the server. The sizes of a page and of the log stand beside them."""

    name = "MariaDB statistics"
    skew = "one statement on one connection a second; it counts what is in memory, and reads no table"

    def __init__(self, session: MariadbSession) -> None:
        self._session = session
        # The sampler's thread and the run's own readings before and after share the session.
        self._lock = threading.Lock()
        (row,) = session.rows("SELECT @@innodb_page_size, @@innodb_log_file_size")
        self._sizes = dict(
            zip(("page_size_bytes", "log_file_size_bytes"), map(float, map(str, row)), strict=True)
        )

    def read(self) -> Mapping[str, float]:
        """`mariadb.<counter>`, cumulative."""
        with self._lock:
            found = status(self._session, *COUNTERS)
        counted = {name.lower().removeprefix("innodb_"): value for name, value in found.items()}
        return {f"mariadb.{name}": value for name, value in {**counted, **self._sizes}.items()}


_LOG_FILES = "ib_logfile*"


class _MariadbForSql:
    """A server with its data directory, as workloads of several servers have it."""

    def __init__(self, server: Server) -> None:
        self._server = cast("MariadbInstance", server)
        self.endpoint = SqlEndpoint(MYSQL, self._server.socket, CLIENT_USER, DATABASE)

    def session(self) -> MariadbSession:
        return self._server.session()

    def settle(self, session: PipedSession) -> None:
        """What a load deleted or replaced is purged in the background; a load only adds."""

    def checkpoint(self, session: PipedSession) -> None:
        """InnoDB's own are fuzzy; this one writes every dirty page."""
        session.execute("SET GLOBAL innodb_log_checkpoint_now = ON")

    def probe(self, session: PipedSession) -> Probe:
        return MariadbProbe(cast("MariadbSession", session))

    def sizes(self, session: PipedSession) -> SqlSizes:
        """Tablespaces by their files: the server's own tables of sizes are estimates."""
        data = self._server.data_directory
        files = tuple((data / DATABASE).glob("*.ibd"))
        return SqlSizes(
            sum(path.stat().st_size for path in files),
            sum(path.stat().st_size for path in data.glob(_LOG_FILES)),
            int(session.value("SELECT @@innodb_page_size")),
            files,
        )


SQL: SqlEngine = _MariadbForSql

_NEVER_SYNCED = ("nosync",)
_DATA_UNSYNCED = ("o_direct_no_fsync", "littlesync", "all_o_direct_no_fsync")

# What a server shows where it syncs log and data; empty where it has no such setting.
_SYNCED = ("", "fsync", "o_dsync", "o_direct")

_WRITTEN_TWICE = ("ON", "OFF", "FAST")


def _durability(filesystem: FilesystemPromise, server_settings: Mapping[str, str]) -> Durability:
    """What the settings leave of what the file system promises."""
    found = declared(filesystem)
    for volatile, protected, reason in _lowered(server_settings):
        found = lowered_to(found, volatile, protected, reason)
    return found


def _lowered(variables: Mapping[str, str]) -> Iterator[tuple[str, str, Reason]]:
    """Both classes at best, with a volatile and with a protected cache, and why."""
    method = variables.get("innodb_flush_method", "").lower()
    if method in _NEVER_SYNCED:
        words = (
            f"innodb_flush_method = {method}: the operating system may lose what the server believes written"
        )
        yield UNSAFE, UNSAFE, because("innodb-never-syncs", words)
    twice = variables.get("innodb_doublewrite", "ON").upper()
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
    waits = variables.get("innodb_flush_log_at_trx_commit", "1")
    if waits not in WAITING:
        words = f"innodb_flush_log_at_trx_commit = {waits}: the last commits may be lost, what stays is whole"
        yield BOUNDED_LOSS, BOUNDED_LOSS, because("innodb-log-flushed-later", words)


def _not_known(name: str, value: str) -> Reason:
    words = f"{name} = {value}: bedplate has no rule for this value; power cuts show what it keeps"
    return because("innodb-setting-not-known", words)


DURABILITY: EngineDurability = DurabilityInForce(_durability)
