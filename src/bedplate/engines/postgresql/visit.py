"""PostgreSQL's server, as a visit asks for it, and as the workloads that speak SQL do."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from bedplate.engines.postgresql import settings
from bedplate.engines.postgresql.own_data import adopt, before_any_session, copy_data
from bedplate.engines.postgresql.settings import (
    checkpoint_completion_target,
    checkpoint_timeout_s,
    configuration_lines,
    in_force,
)
from bedplate.engines.postgresql.versions import major_of
from bedplate.errors import BedplateError, OutputNotUnderstood
from bedplate.host.command import Account, Completed
from bedplate.host.files import plain_text
from bedplate.host.ledger import Holding
from bedplate.host.shut_in import Restriction
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, RunSpec
from bedplate.model.durability import declared
from bedplate.model.engines import POSTGRESQL
from bedplate.model.levels import Levels
from bedplate.model.visit import EngineBuild, ReadBack
from bedplate.probe.sampler import Probe
from bedplate.units import MIB, format_duration
from bedplate.visit.declaration import DurabilityInForce, EngineDurability
from bedplate.visit.recording import VisitContext
from bedplate.visit.server import (
    PGSQL,
    EngineServer,
    InForce,
    KeptServerData,
    PipedSession,
    Server,
    ServerSite,
    SqlEndpoint,
    SqlEngine,
    SqlSizes,
)

if TYPE_CHECKING:
    from bedplate.model.plan import Plan


class Session(PipedSession):
    r"""Its statements may be several, with `\\;` between them: one message to the server."""

    field: ClassVar[str] = "\x1f"
    null: ClassVar[str] = "\x1a"
    end: ClassVar[str] = "\x1e bedplate end of answer \x1e"
    # A server that ended while nobody asked leaves no error in the words: psql says that the connection is closed, and goes on.
    failed: ClassVar[str | None] = "\x1a bedplate: the statement failed \x1a"
    ask_for_end: ClassVar[str] = f"\\if :ERROR\n\\echo '{failed}'\n\\endif\n\\echo '{end}'"
    errors: ClassVar[tuple[str, ...]] = ("ERROR:", "FATAL:", "PANIC:", "psql:")

    def __init__(self, connection: Connection, readable: tuple[Path, ...] = ()) -> None:
        argv = [
            str(connection.program("psql")),
            "--no-psqlrc",
            "--quiet",
            "--no-align",
            "--tuples-only",
            f"--field-separator={self.field}",
            f"--pset=null={self.null}",
            *connection.options(),
        ]
        options = " ".join(f"-c {name}={value}" for name, value in connection.session_settings.items())
        restriction = connection.restriction(readable=readable)
        super().__init__(argv, restriction, {"PGOPTIONS": options} if options else None)


_CONTROL_DATA = re.compile(r"^([^:]+):\s+(.*)$", re.MULTILINE)


def read_back(
    cluster: Cluster, session: Session, cluster_levels: ClusterLevels, build_levels: BuildLevels
) -> tuple[ReadBack, ...]:
    """Block sizes, checksums and every asked setting, as the running server and its files have them."""
    output = cluster.run("pg_controldata", str(cluster.data_directory), timeout_s=60).stdout
    control = dict(_CONTROL_DATA.findall(output))
    try:
        block_size = int(control["Database block size"])
        wal_block_size = int(control["WAL block size"])
        checksums = int(control["Data page checksum version"]) != 0
        segment_bytes = int(control["Bytes per WAL segment"])
    except (KeyError, ValueError) as error:
        raise OutputNotUnderstood("pg_controldata", expected=f"a line for {error}", found=output) from error
    shown = int(session.value("SHOW block_size"))
    shown_wal = int(session.value("SHOW wal_block_size"))
    rows = session.rows(
        "SELECT name, setting, unit, vartype, current_setting(name), pending_restart FROM pg_settings"
    )
    asked = _asked_settings(cluster, session, cluster_levels, build_levels)
    wanted_checksums = cluster_levels.data_checksums
    return (
        _equal("database block size", build_levels.block_size_bytes, block_size, "pg_controldata"),
        _equal("database block size", build_levels.block_size_bytes, shown, "SHOW block_size"),
        _equal("WAL block size", build_levels.wal_block_size_bytes, wal_block_size, "pg_controldata"),
        _equal("WAL block size", build_levels.wal_block_size_bytes, shown_wal, "SHOW wal_block_size"),
        ReadBack(
            "data checksums",
            wanted_checksums,
            checksums,
            "pg_controldata",
            matches=None if wanted_checksums is None else wanted_checksums == checksums,
        ),
        ReadBack(
            "WAL segment size",
            cluster_levels.wal_segment_bytes,
            segment_bytes,
            "pg_controldata",
            matches=None
            if cluster_levels.wal_segment_bytes is None
            else cluster_levels.wal_segment_bytes == segment_bytes,
        ),
        *huge_pages_shown(rows, asked),
        *settings.compare_settings(asked, rows),
        *_reported_anyway(rows, asked),
    )


def huge_pages_shown(rows: list[list[str | None]], settings: Mapping[str, str]) -> Iterator[ReadBack]:
    """`huge_pages = try` and a small pool leave a server without them, and say so in `huge_pages_status` alone (since 17)."""
    shown = {str(row[0]): row[4] for row in rows}
    wanted = settings.get("huge_pages", "").lower()
    if wanted in ("on", "off") and "huge_pages_status" in shown:
        found = shown["huge_pages_status"]
        yield ReadBack("huge pages", wanted, found, "SHOW huge_pages_status", matches=wanted == found)


def _asked_settings(
    cluster: Cluster, session: Session, cluster_levels: ClusterLevels, build_levels: BuildLevels
) -> dict[str, str]:
    """Every setting that the plan asks for, in the order in which one wins over another."""
    asked: dict[str, str] = {}
    if cluster_levels.scaled_block_settings:
        asked |= settings.scaled_block_settings(cluster_levels, build_levels)
    if cluster_levels.configuration is not None:
        text = (cluster.data_directory / "postgresql.conf").read_text(encoding="utf-8")
        rows = session.rows("SELECT name, setting, sourceline FROM pg_file_settings ORDER BY seqno")
        asked |= settings.settings_of_own_file(text, rows)
    asked |= {name: str(value) for name, value in cluster_levels.settings.items()}
    if cluster_levels.scaled_page_costs:
        asked |= settings.scaled_page_costs(cluster_levels, build_levels)
    return asked


def effective_settings(session: Session) -> dict[str, str]:
    """Every setting of the server by name, as it shows it."""
    rows = session.rows("SELECT name, current_setting(name) FROM pg_settings")
    return {str(row[0]): str(row[1]) for row in rows}


def _equal(name: str, expected: int, effective: int, source: str) -> ReadBack:
    return ReadBack(name, expected, effective, source, matches=expected == effective)


# What decides a result and is worth reading even where nobody asked for it.
_WORTH_READING = (
    "shared_buffers",
    "checkpoint_timeout",
    "checkpoint_completion_target",
    "max_wal_size",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_sync_method",
    "wal_compression",
    "wal_init_zero",
    "wal_recycle",
    "seq_page_cost",
    "random_page_cost",
    "max_parallel_workers_per_gather",
    "jit",
    "io_method",
    "huge_pages_status",
    "autovacuum",
    "jit",
    *settings.BLOCK_SETTINGS,
)


def _reported_anyway(rows: list[list[str | None]], settings: dict[str, str]) -> tuple[ReadBack, ...]:
    shown = {str(row[0]): row[4] for row in rows}
    return tuple(
        ReadBack(f"setting {name}", None, shown[name], "pg_settings", matches=None)
        for name in _WORTH_READING
        if name in shown and name not in settings
    )


DATABASE = "bedplate"

# The role of the workload's client. pg_checkpoint came with PostgreSQL 15.
CLIENT = "bedplate_client"

# What a script may want to compare, and only a superuser could set: nothing that starts or reads anything.
_CLIENT_SETS = (
    "commit_delay",
    "deadlock_timeout",
    "track_io_timing",
    "wal_compression",
    "wal_init_zero",
    "wal_recycle",
)

# Of a server whose data come from elsewhere: its log, which a study keeps, holds checkpoints and its own end, and no words about
# rows. On the command line, where it wins over every file.
FOREIGN: Mapping[str, str] = {
    "log_error_verbosity": "terse",
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_autovacuum_min_duration": "-1",
    "listen_addresses": "",
    # A subscription of a copied cluster would look for its publisher.
    "max_logical_replication_workers": "0",
}

# Whoever owns a database sets search_path, and may put functions before those of the system.
_OF_THE_SYSTEM: Mapping[str, str] = {"search_path": "pg_catalog"}

# What a database or a role would have loaded into a session.
_NO_LIBRARIES: Mapping[str, str] = {
    "session_preload_libraries": "",
    "local_preload_libraries": "",
    "dynamic_library_path": "$libdir",
}

# A cluster has it, whatever databases it has besides; the workload's can be renamed from there.
_ANY_DATABASE = "template1"

_CONFIGURATION, _RIGHTS, _NAMES = "postgresql.conf", "pg_hba.conf", "pg_ident.conf"

# What a server obeys in its data directory, wherever its configuration is: settings, and an order to restore or to stand by.
OBEYED = (
    *("postgresql.auto.conf", "postmaster.pid", "postmaster.opts"),
    *("recovery.signal", "standby.signal", "promote", "backup_label", "tablespace_map"),
)

# Of a server on a copy that is thrown away. By itself it syncs each of some thousand files before it recovers, and has processes of its own read
# each page; both wait for the device some five thousand times. Nothing of what it finds hangs on them: what cannot be synced is a line of
# its log either way, and a page is checked by whoever reads it. On the command line, where it wins over every file.
_THROWN_AWAY = ("-c", "recovery_init_sync_method=syncfs")
_THROWN_AWAY_SINCE_18 = ("-c", "io_method=sync")

# A level of io_method (PostgreSQL 18); the server has no io_uring where its configuration does not name it.
_IO_URING = "io_uring"

# A base backup may bring hours of WAL.
_RECOVERY_LIMIT_S = 3600.0

_READY_EVERY_S = 0.01

# As the postmaster tells of any process of its own (LogChildExit, src/backend/postmaster/postmaster.c).
_CRASHED = "was terminated by signal "

_KILLED = f"{_CRASHED}{int(signal.SIGKILL)}"


def configuration_files(cluster_levels: ClusterLevels, socket_directory: str) -> Mapping[str, str]:
    """The files of a server on an image, by their names, and the settings in them: io_uring is left to none that may be a stranger's."""
    text = settings.configuration_text(cluster_levels, BuildLevels(), socket_directory)
    lines = text.split("\n")
    own = "\n".join(
        [
            *(
                lines[number]
                for number, name, value in configuration_lines(text)
                if (name, value.lower()) != ("io_method", _IO_URING)
            ),
            "max_logical_replication_workers = 0",
            "",
        ]
    )
    return {_CONFIGURATION: own, _RIGHTS: "local all all trust\n", _NAMES: ""}


def configuration_options(folder: Path | str) -> tuple[str, ...]:
    """The options of a server that reads these files, in a folder."""
    named = {"config_file": _CONFIGURATION, "hba_file": _RIGHTS, "ident_file": _NAMES}
    return tuple(word for setting, name in named.items() for word in ("-c", f"{setting}={folder}/{name}"))


@dataclass(frozen=True)
class Connection:
    """How a client reaches the server: `options()` fit psql and pgbench alike.

    What a plan's author wrote (an own script) runs by `of_client`, as a role that owns the
    database and is no superuser: it starts no program, reads no file and changes no server.
    """

    build: EngineBuild
    socket_directory: Path
    account: Account
    database: str = DATABASE
    role: str | None = None
    # Settings of a session that win over those in the database, where others wrote what is in it.
    session_settings: Mapping[str, str] = field(default_factory=dict)

    def program(self, name: str) -> Path:
        """A program of the same build as the server."""
        return Path(self.build.prefix) / "bin" / name

    def options(self) -> tuple[str, ...]:
        """Connection options; the database's name stands last."""
        role = self.role or self.account.name
        return ("-h", str(self.socket_directory), "-p", "5432", "-U", role, self.database)

    def restriction(self, *, writable: tuple[Path, ...] = (), readable: tuple[Path, ...] = ()) -> Restriction:
        """What a client of the server's build is left: the server's socket, and these."""
        programs = Path(self.build.prefix)
        return Restriction(self.account, writable, (programs, *readable), (self.socket_directory,))

    @property
    def of_client(self) -> Connection:
        """The same as the workload's client has it, with no more rights than it needs."""
        return replace(self, role=CLIENT, session_settings={})


class Cluster(Server):
    """One data directory and its server, which recovers from a crash of one of its processes, and takes every session down then."""

    stops_by = signal.SIGINT
    # It lets the postmaster end its children; they do not die with it otherwise.
    ends_by = signal.SIGQUIT
    stop_limit_s = 300.0
    crash_words = _CRASHED

    def __init__(self, site: ServerSite) -> None:
        """Neither made nor started; BedplateError where no build is named."""
        if site.build is None:
            raise BedplateError("a PostgreSQL needs a build of it, and the request or the job names none")
        super().__init__(site, site.build.prefix, self._settle_after)
        self.build = site.build
        self.connection = Connection(site.build, site.socket_directory, site.account)
        self._ledger = site.ledger
        self._has_foreign_data = self._may_use_io_uring = False
        self._own_options: tuple[str, ...] = ()
        if site.thrown_away:
            since_18 = major_of(site.build.version) >= 18
            self._own_options = (*_THROWN_AWAY, *(_THROWN_AWAY_SINCE_18 if since_18 else ()))
        self._initial_configuration_bytes = 0
        self._configured_in: Path | None = None
        # Since when segments of shared memory may be left, as a file's time.
        self._segments_since_s: int | None = None

    def initialise(self, cell: Cell, *, options: tuple[str, ...] = ()) -> None:
        """Run initdb, with more `options` if need be, and write the configuration."""
        levels = cell.cluster
        # The folder that it writes to is there before it begins.
        self.data_directory.mkdir(mode=0o700, exist_ok=True)
        os.chown(self.data_directory, self.account.uid, self.account.gid)
        # It runs servers of its own, which die without a word when they are killed.
        self._note_shared_memory()
        checksums = {None: (), True: ("--data-checksums",), False: ("--no-data-checksums",)}
        # Before 18 there is no --no-data-checksums, and none is the default.
        has_no_option = major_of(self.build.version) < 18
        segment = levels.wal_segment_bytes
        wanted = () if levels.data_checksums is False and has_no_option else checksums[levels.data_checksums]
        self.run(
            *(
                "initdb",
                f"--pgdata={self.data_directory}",
                f"--username={self.account.name}",
                "--auth=trust",
                # A thousand fsyncs of template files say nothing of the database; one sync follows.
                "--no-sync",
                "--encoding=UTF8",
                "--locale=C",
                *wanted,
                *options,
                # Last: what the plan asks for wins over what a workload would choose.
                *(() if segment is None else (f"--wal-segsize={segment // MIB}",)),
            ),
            timeout_s=900,
        )
        self._settle_shared_memory()
        self.configure(cell)

    def configure(self, cell: Cell) -> None:
        """Append the cell's configuration to initdb's, where later lines win."""
        socket_directory = str(self.connection.socket_directory)
        text = settings.configuration_text(cell.cluster, cell.build, socket_directory)
        with (self.data_directory / _CONFIGURATION).open("a", encoding="utf-8") as file:
            self._initial_configuration_bytes = file.tell()
            file.write(text)
        self._may_use_io_uring = _IO_URING in text

    def configure_apart(self, cluster_levels: ClusterLevels) -> None:
        """Start from now on with a configuration beside the log, and obey nothing of what lies with the data, which may be a stranger's.

        OSError where what is obeyed there cannot be removed.
        """
        folder = self._configured_in = self.log.parent / "configuration"
        folder.mkdir(mode=0o755, exist_ok=True)
        for name, text in configuration_files(cluster_levels, str(self.connection.socket_directory)).items():
            (folder / name).write_text(text, encoding="utf-8")
        self.connection = replace(self.connection, session_settings=_NO_LIBRARIES)
        for name in OBEYED:
            (self.data_directory / name).unlink(missing_ok=True)

    def unconfigure(self) -> None:
        """Take away what `configure` appended."""
        os.truncate(self.data_directory / _CONFIGURATION, self._initial_configuration_bytes)

    def start(self, *, timeout_s: float = 300.0, options: tuple[str, ...] = ()) -> None:
        """Start the server and wait until it accepts connections; `options` win over its configuration."""
        # Noted first, so given back last: of a server that is dead by then.
        self._note_shared_memory()
        self._start_process(*options)
        self.wait_until_ready(timeout_s, every_s=_READY_EVERY_S)

    def run(
        self,
        program: str,
        *arguments: str,
        timeout_s: float,
        check: bool = True,
        most_bytes: int | None = None,
        readable: tuple[Path, ...] = (),
    ) -> Completed:
        """A program of the server's own build, by its account, which is left the data and these files; `most_bytes` as `Commands.run` has it."""
        argv = [str(self.connection.program(program)), *arguments]
        return self._commands.run(
            argv,
            confinement=self.connection.restriction(writable=(self.data_directory,), readable=readable),
            timeout_s=timeout_s,
            check=check,
            most_bytes=most_bytes,
        )

    def in_force(self, cell: Cell) -> InForce:
        """Every setting as it shows it, and what was asked held against it and the files."""
        with self.session() as session:
            compared = read_back(self, session, cell.cluster, cell.build)
            settings = effective_settings(session)
        version = settings.get("server_version", self.build.version)
        return InForce(settings, compared, {"postgresql": version})

    @property
    def was_killed(self) -> bool:
        """Whether SIGKILL ended the server or one of its processes, before anybody here asked it to end."""
        return super().was_killed or self._server.has_logged(_KILLED)

    def create_database(self) -> None:
        """An empty database for the workload, and the role that owns it."""
        with Session(Connection(self.build, self.connection.socket_directory, self.account, "postgres")) as s:
            s.execute(f"CREATE ROLE {CLIENT} LOGIN IN ROLE pg_monitor, pg_checkpoint")
            s.execute(f"GRANT SET ON PARAMETER {', '.join(_CLIENT_SETS)} TO {CLIENT}")
            s.execute(f"CREATE DATABASE {DATABASE} OWNER {CLIENT}")

    def take_over(self, data: Path, *, database: str | None = None) -> int:
        """Stop, put a copy of a stopped server's data in the place of its own, and start on them; the bytes copied.

        What is in them was made elsewhere and runs here. The configuration stays. Of a cluster that nobody here made, `database` is the one that becomes the
        workload's (`engines/postgresql/own_data.py`); ServerFailed or SessionFailed with the server's words where it cannot.
        """
        self.stop()
        self._has_foreign_data = True
        self.connection = replace(self.connection, session_settings=_OF_THE_SYSTEM)
        copied = copy_data(data, self.data_directory, self.account)
        # This file system only, as after initdb.
        self._commands.run(["sync", "--file-system", str(self.data_directory)], timeout_s=3600)
        if database is None:
            self.start()
            return copied
        self._note_shared_memory()
        self._start_process(
            _ANY_DATABASE, mode_options=("--single",), commands=before_any_session(self.account.name)
        )
        self._server.demand_end(_RECOVERY_LIMIT_S)
        self.start(timeout_s=_RECOVERY_LIMIT_S)
        with Session(replace(self.connection, database=_ANY_DATABASE)) as session:
            adopt(session, database=database, as_database=DATABASE, client=CLIENT)
            session.execute(f"GRANT SET ON PARAMETER {', '.join(_CLIENT_SETS)} TO {CLIENT}")
        return copied

    def session(self, *, readable: tuple[Path, ...] = ()) -> Session:
        """A new session, whose client may read these files; the caller closes it."""
        return Session(self.connection, readable)

    def client_session(self) -> Session:
        """A new session with the rights, and the settings, of the workload's client."""
        return Session(self.connection.of_client)

    def _start_process(self, *options: str, mode_options: tuple[str, ...] = (), commands: str = "") -> None:
        foreign = FOREIGN if self._has_foreign_data else {}
        words = (word for name, value in foreign.items() for word in ("-c", f"{name}={value}"))
        place = self._configured_in
        self._server.start(
            (
                str(self.connection.program("postgres")),
                *mode_options,
                *("-D", str(self.data_directory)),
                *words,
                *(() if place is None else configuration_options(place)),
                *options,
                *self._own_options,
            ),
            writable=(self.data_directory, self.connection.socket_directory),
            readable=() if place is None else (place,),
            io_uring=self._may_use_io_uring,
            commands=commands,
        )

    def _settle_after(self, in_order: bool) -> None:  # noqa: FBT001 -- what the process tells
        """With a server that ended by itself its shared memory is gone; the ledger looks for what a kill left."""
        if in_order:
            self._settle_shared_memory()

    def _note_shared_memory(self) -> None:
        if self._segments_since_s is None:
            # Whole seconds, and one before: the clock of files is coarser than that of programs.
            self._segments_since_s = int(time.time()) - 1
        detail = f"{self.account.uid} {self._segments_since_s}"
        self._ledger.note(Holding("shared_memory", str(self.data_directory), detail))

    def _settle_shared_memory(self) -> None:
        self._segments_since_s = None
        self._ledger.settled(Holding("shared_memory", str(self.data_directory)))

    def is_ready(self) -> bool:
        """By line 8 of postmaster.pid, the server's own status (src/include/utils/pidfile.h)."""
        try:
            lines = plain_text(self.data_directory / "postmaster.pid").splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and lines[7].strip() == "ready" and lines[0] == str(self._server.own_pid)


def cluster_of(context: VisitContext) -> Cluster:
    """The visit's server, for workloads of PostgreSQL; the plan gives them no visit without it."""
    if context.server is None:
        raise BedplateError(f"{context.dataset.workload} needs a server, and this visit has none")
    return cast("Cluster", context.server)


SERVER = EngineServer("initdb", ("bin/postgres", "bin/initdb", "bin/pgbench", "bin/psql"), Cluster)

_DATABASE = """
SELECT 'blks_hit', blks_hit FROM pg_stat_database WHERE datname = current_database()
UNION ALL SELECT 'blks_read', blks_read FROM pg_stat_database WHERE datname = current_database()
UNION ALL SELECT 'xact_commit', xact_commit FROM pg_stat_database WHERE datname = current_database()
UNION ALL SELECT 'rows_written', tup_inserted + tup_updated + tup_deleted
    FROM pg_stat_database WHERE datname = current_database()
UNION ALL SELECT 'transaction_ids', pg_snapshot_xmax(pg_current_snapshot())::text::numeric
UNION ALL SELECT 'temp_bytes', temp_bytes FROM pg_stat_database WHERE datname = current_database()
UNION ALL SELECT 'wal_bytes', pg_current_wal_insert_lsn() - '0/0'
UNION ALL SELECT 'wal_full_page_images', wal_fpi FROM pg_stat_wal
"""

# Up to 16 one view has it all, backends' writes included.
_WRITERS_UNTIL_16 = """
UNION ALL SELECT 'checkpoints_timed', checkpoints_timed FROM pg_stat_bgwriter
UNION ALL SELECT 'checkpoints_requested', checkpoints_req FROM pg_stat_bgwriter
UNION ALL SELECT 'buffers_checkpointer', buffers_checkpoint FROM pg_stat_bgwriter
UNION ALL SELECT 'buffers_background_writer', buffers_clean FROM pg_stat_bgwriter
UNION ALL SELECT 'buffers_backend', buffers_backend FROM pg_stat_bgwriter
UNION ALL SELECT 'buffers_allocated', buffers_alloc FROM pg_stat_bgwriter
UNION ALL SELECT 'maxwritten_clean', maxwritten_clean FROM pg_stat_bgwriter
"""

_WRITERS_SINCE_17 = """
UNION ALL SELECT 'checkpoints_timed', num_timed FROM pg_stat_checkpointer
UNION ALL SELECT 'checkpoints_requested', num_requested FROM pg_stat_checkpointer
UNION ALL SELECT 'buffers_checkpointer', buffers_written FROM pg_stat_checkpointer
UNION ALL SELECT 'buffers_background_writer', buffers_clean FROM pg_stat_bgwriter
UNION ALL SELECT 'buffers_allocated', buffers_alloc FROM pg_stat_bgwriter
UNION ALL SELECT 'maxwritten_clean', maxwritten_clean FROM pg_stat_bgwriter
"""

# Since 16 pg_stat_io tells who wrote. In 16 and 17 its operations are of op_bytes each; since 18 one
# operation may cover many blocks and the bytes are counted themselves.
_BACKENDS = "backend_type NOT IN ('checkpointer', 'background writer') AND object = 'relation'"

_IO_17 = f"""
UNION ALL SELECT 'read_bytes', coalesce(sum(reads * op_bytes), 0) FROM pg_stat_io WHERE object = 'relation'
UNION ALL SELECT 'buffers_backend', coalesce(sum(writes), 0) FROM pg_stat_io WHERE {_BACKENDS}
"""  # noqa: S608 -- constants only

_IO_SINCE_18 = f"""
UNION ALL SELECT 'read_bytes', coalesce(sum(read_bytes), 0) FROM pg_stat_io WHERE object = 'relation'
UNION ALL SELECT 'buffers_backend',
    coalesce(sum(write_bytes), 0) / current_setting('block_size')::int FROM pg_stat_io WHERE {_BACKENDS}
"""  # noqa: S608 -- constants only

# Calls of fsync and fdatasync on the WAL: methods that write with O_SYNC need none, and count none.
_WAL_SYNCS_UNTIL_17 = "UNION ALL SELECT 'wal_syncs', wal_sync FROM pg_stat_wal\n"

_WAL_SYNCS_SINCE_18 = """UNION ALL SELECT 'wal_syncs', coalesce(sum(fsyncs), 0) FROM pg_stat_io
    WHERE object = 'wal' AND context = 'normal'
"""

_NAME = "bedplate_probe"


def statement_for(version: str) -> str:
    """The statement that reads every counter which this version has."""
    major = major_of(version)
    if major >= 18:
        return _DATABASE + _WRITERS_SINCE_17 + _IO_SINCE_18 + _WAL_SYNCS_SINCE_18
    if major == 17:
        return _DATABASE + _WRITERS_SINCE_17 + _IO_17 + _WAL_SYNCS_UNTIL_17
    if major == 16:
        # 16 still counts backends' writes in pg_stat_bgwriter; pg_stat_io adds the bytes read.
        return (
            _DATABASE
            + _WRITERS_UNTIL_16
            + _IO_17.split("UNION ALL SELECT 'buffers_backend'", maxsplit=1)[0]
            + _WAL_SYNCS_UNTIL_17
        )
    return _DATABASE + _WRITERS_UNTIL_16 + _WAL_SYNCS_UNTIL_17


class PostgresqlProbe:
    """Cumulative statistics of the server. One probe for a session: its statement is prepared there."""

    name = "PostgreSQL statistics"
    skew = "one prepared statement on one connection a second; its blocks count as hits of shared buffers"

    def __init__(self, session: Session, version: str) -> None:
        self._session = session
        self._statement = statement_for(version)
        self._prepared = False
        # The sampler's thread and the run's own readings before and after share the session.
        self._lock = threading.Lock()

    def read(self) -> Mapping[str, float]:
        """`postgresql.<counter>`, cumulative."""
        with self._lock:
            if not self._prepared:
                # Parsing a statement over that many views costs the server more than running it.
                self._session.execute(f"PREPARE {_NAME} AS {self._statement}", timeout_s=30)
                self._prepared = True
            rows = self._session.rows(f"EXECUTE {_NAME}", timeout_s=30)
        return {f"postgresql.{name}": float(value) for name, value in rows if value is not None}


class _PostgresqlForSql:
    """A cluster, as workloads of several servers have it."""

    def __init__(self, server: Server) -> None:
        cluster = self._cluster = cast("Cluster", server)
        self.endpoint = SqlEndpoint(PGSQL, cluster.connection.socket_directory, CLIENT, DATABASE)

    def session(self) -> Session:
        return self._cluster.session()

    def settle(self, session: PipedSession) -> None:
        """Hint bits and statistics, which autovacuum would make within the first minutes."""
        session.execute("VACUUM ANALYZE")

    def checkpoint(self, session: PipedSession) -> None:
        session.execute("CHECKPOINT")

    def probe(self, session: PipedSession) -> Probe:
        return PostgresqlProbe(cast("Session", session), self._cluster.build.version)

    def sizes(self, session: PipedSession) -> SqlSizes:
        return SqlSizes(
            int(session.value("SELECT pg_database_size(current_database())")),
            int(session.value("SELECT coalesce(sum(size), 0)::bigint FROM pg_ls_waldir()")),
            self._cluster.build.block_size_bytes,
            tuple(self._cluster.data_directory.glob("base/*/*")),
        )


SQL: SqlEngine = _PostgresqlForSql

# After its last write a checkpoint still syncs the files, and it may begin a moment late.
_SYNC_SLACK_S = 3.0

_SYNC_SLACK_SHARE = 0.05


def needed_duration_s(cluster: ClusterLevels, warmup_s: float | None) -> float:
    """How long must be measured to hold one complete timed checkpoint.

    A CHECKPOINT comes right before the warm-up; from it, a timed one starts every
    `checkpoint_timeout` and is spread over `checkpoint_completion_target` of it. The first that
    starts after the warm-up counts. `warmup_s` None: of unknown length, so the worst case.
    """
    timeout = checkpoint_timeout_s(cluster)
    lasts = timeout * checkpoint_completion_target(cluster) + max(_SYNC_SLACK_S, _SYNC_SLACK_SHARE * timeout)
    if warmup_s is None or timeout <= 0:
        return timeout + lasts
    starts = max(1, ceil(warmup_s / timeout)) * timeout
    return starts - warmup_s + lasts


def too_short(plan: Plan, spec: RunSpec, warmup_s: float | None) -> Iterator[str]:
    """A sentence for each cluster of the plan in which a run may hold none; `warmup_s` as above."""
    duration_s = spec.levels.number("duration_s") or 0.0
    clusters = (cluster for setup in plan.engines if setup.engine == POSTGRESQL for cluster in setup.clusters)
    for cluster in clusters:
        needed_s = needed_duration_s(cluster, warmup_s)
        if duration_s < needed_s:
            yield (
                f"run {spec.name}: {format_duration(duration_s)} may not hold a complete timed checkpoint "
                f"(checkpoint_timeout {format_duration(checkpoint_timeout_s(cluster))}, completion target "
                f"{checkpoint_completion_target(cluster):g}), and the run will be suspect; "
                f"duration = {ceil(needed_s)} is enough, or a shorter checkpoint_timeout"
            )


# PostgreSQL's own defaults (guc_tables.c); what is reserved is for superusers, and a client is none.
_MOST = ("max_connections", 100)

_RESERVED = (("superuser_reserved_connections", 3), ("reserved_connections", 0))

# The session that watches a run.
_OWN = 1


def too_many_clients(plan: Plan, spec: RunSpec, clients: int) -> Iterator[str]:
    """A sentence for each cluster of the plan that refuses some of a run's clients."""
    for cluster in (
        cluster for setup in plan.engines if setup.engine == POSTGRESQL for cluster in setup.clusters
    ):
        most = _number(cluster, *_MOST)
        needed = clients + _OWN + sum(_number(cluster, name, usual) for name, usual in _RESERVED)
        if needed > most:
            yield (
                f"run {spec.name}: {clients} clients need max_connections = {needed}, as some are reserved, and it is {most}: the server refuses "
                f"some, and the run fails; set it in [postgresql.settings]"
            )


def _number(cluster: ClusterLevels, name: str, usual: int) -> int:
    asked = in_force(cluster, name)
    # What is no number the server refuses, which is said elsewhere.
    return int(asked) if asked is not None and asked.strip().isdecimal() else usual


# The rules are those of `model/durability.py`.
DURABILITY: EngineDurability = DurabilityInForce(declared)

# They say how memory is used, what a plan costs, when a commit waits and when the writers of the background wake. None of them
# decides what a load leaves on disk: not how much WAL there is, what is in a page, nor how a table is split into files.
# Not here for that reason: all of checkpoints and of the WAL's size, `full_page_writes`, `wal_compression`, `wal_level`, `fsync`,
# `maintenance_work_mem` (temporary files of the index builds), and whatever is not known.
_LEAVES_THE_FILES = frozenset(
    (
        *(
            "shared_buffers",
            "effective_cache_size",
            "work_mem",
            "hash_mem_multiplier",
            "temp_buffers",
            "wal_buffers",
            "huge_pages",
        ),
        *(
            "random_page_cost",
            "seq_page_cost",
            "cpu_tuple_cost",
            "cpu_index_tuple_cost",
            "cpu_operator_cost",
            "jit",
        ),
        *("synchronous_commit", "commit_delay", "commit_siblings", "wal_writer_delay"),
        *("bgwriter_delay", "bgwriter_lru_maxpages", "bgwriter_lru_multiplier"),
        *(
            "effective_io_concurrency",
            "io_workers",
            "max_connections",
            "plan_cache_mode",
            "deadlock_timeout",
            "track_io_timing",
        ),
    )
)


class PostgresqlKeptData:
    """A cluster of the cell's build, with its database and the workload's role."""

    def deciding(self, cluster: ClusterLevels) -> ClusterLevels:
        """Every setting but those that are known to leave the files alone; of an own postgresql.conf its whole text."""
        settings = {name: value for name, value in cluster.settings.items() if name not in _LEAVES_THE_FILES}
        return replace(cluster, settings=Levels(settings), scaled_page_costs=False)

    def take_configuration_out(self, server: Server) -> None:
        """Leave initdb's configuration behind."""
        cast("Cluster", server).unconfigure()

    def configure(self, server: Server, cell: Cell) -> None:
        """Append the cell's configuration to initdb's."""
        cast("Cluster", server).configure(cell)


KEPT_DATA: KeptServerData = PostgresqlKeptData()
