"""A PostgreSQL cluster on the scratch file system: made, started, read back, stopped.

The server listens on a private Unix socket only.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.builds.version import major_of
from bedplate.engines.postgresql.configuring import configuration
from bedplate.engines.postgresql.configuring.read_back import effective_settings, read_back
from bedplate.engines.postgresql.configuring.server_settings import configuration_lines
from bedplate.engines.postgresql.own_data.adopted import adopt, before_any_session
from bedplate.engines.postgresql.own_data.foreign_data import copy_data
from bedplate.engines.postgresql.session import Session
from bedplate.errors import BedplateError
from bedplate.host.ledger import Holding
from bedplate.host.plain_file import plain_text
from bedplate.host.shut_in.restriction import Restriction
from bedplate.model.cell import BuildLevels
from bedplate.units import MIB
from bedplate.visit.engine_server import InForce, ServerFailed
from bedplate.visit.server_process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.host.command import Account, Completed
    from bedplate.model.cell import Cell, ClusterLevels
    from bedplate.model.visit import EngineBuild
    from bedplate.visit.engine_server import ServerSite

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
# A level of io_method (PostgreSQL 18); the server has no io_uring where its configuration does not name it.
_IO_URING = "io_uring"
# A base backup may bring hours of WAL.
_RECOVERY_LIMIT_S = 3600.0
# As the postmaster tells of any process of its own (LogChildExit, src/backend/postmaster/postmaster.c).
_CRASHED = "was terminated by signal "
_KILLED = f"{_CRASHED}{int(signal.SIGKILL)}"


def configuration_files(levels: ClusterLevels, socket_directory: str) -> Mapping[str, str]:
    """The files of a server on an image, by their names, and the settings in them: io_uring is left to none that may be a stranger's."""
    text = configuration.configuration_text(levels, BuildLevels(), socket_directory)
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


class Cluster:
    """One data directory and its server."""

    def __init__(self, site: ServerSite) -> None:
        """Neither made nor started; BedplateError where no build is named."""
        if site.build is None:
            raise BedplateError("a PostgreSQL needs a build of it, and the request or the job names none")
        self.build = site.build
        self.data_directory = site.data_directory
        self.log = site.log
        self.account = site.account
        self.connection = Connection(site.build, site.socket_directory, site.account)
        self._commands = site.commands
        self._ledger = site.ledger
        self._server = ServerProcess(site, site.build.prefix, self._settle_after)
        self._has_foreign_data = self._may_use_io_uring = False
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
        text = configuration.configuration_text(cell.cluster, cell.build, socket_directory)
        with (self.data_directory / _CONFIGURATION).open("a", encoding="utf-8") as file:
            self._initial_configuration_bytes = file.tell()
            file.write(text)
        self._may_use_io_uring = _IO_URING in text

    def configure_apart(self, levels: ClusterLevels) -> None:
        """Start from now on with a configuration beside the log, and obey nothing of what lies with the data, which may be a stranger's.

        OSError where what is obeyed there cannot be removed.
        """
        folder = self._configured_in = self.log.parent / "configuration"
        folder.mkdir(mode=0o755, exist_ok=True)
        for name, text in configuration_files(levels, str(self.connection.socket_directory)).items():
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
        self._wait_until_ready(time.monotonic() + timeout_s)

    def stop(self, *, timeout_s: float = 300.0) -> int | None:
        """A fast shutdown with its checkpoint, and its status; None without a server.

        One that does not end is killed, and ServerFailed.
        """
        return self._server.stop(signal.SIGINT, timeout_s=timeout_s)

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

    def kill(self) -> None:
        """End the server at once, for a visit that is being abandoned."""
        # SIGQUIT lets the postmaster end its children; they do not die with it otherwise.
        self._server.kill(signal.SIGQUIT)

    def check_alive(self) -> None:
        """ServerFailed with the log's last lines if the server is gone."""
        self._server.check_alive()

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
        return self._server.status == -signal.SIGKILL or self._server.has_logged(_KILLED)

    @property
    def has_crashed(self) -> bool:
        """Whether a signal ended one of the server's processes: it then recovers, and takes every session down."""
        return self._server.has_logged(_CRASHED)

    @property
    def lacks_room(self) -> bool:
        """Whether its log ends with a full disk."""
        return self._server.lacks_room

    def last_words(self) -> str:
        """The last lines of the server's log."""
        return self._server.last_words()

    def create_database(self) -> None:
        """An empty database for the workload, and the role that owns it."""
        with Session(Connection(self.build, self.connection.socket_directory, self.account, "postgres")) as s:
            s.execute(f"CREATE ROLE {CLIENT} LOGIN IN ROLE pg_monitor, pg_checkpoint")
            s.execute(f"GRANT SET ON PARAMETER {', '.join(_CLIENT_SETS)} TO {CLIENT}")
            s.execute(f"CREATE DATABASE {DATABASE} OWNER {CLIENT}")

    def take_over(self, data: Path, *, database: str | None = None) -> int:
        """Stop, put a copy of a stopped server's data in the place of its own, and start on them; the bytes copied.

        What is in them was made elsewhere and runs here. The configuration stays. Of a cluster that nobody here made, `database` is the one that becomes the
        workload's (`own_data/adopted.py`); ServerFailed or SessionFailed with the server's words where it cannot.
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
        self._start_process(_ANY_DATABASE, how=("--single",), commands=before_any_session(self.account.name))
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

    def _start_process(self, *options: str, how: tuple[str, ...] = (), commands: str = "") -> None:
        foreign = FOREIGN if self._has_foreign_data else {}
        words = (word for name, value in foreign.items() for word in ("-c", f"{name}={value}"))
        place = self._configured_in
        self._server.start(
            (
                str(self.connection.program("postgres")),
                *how,
                *("-D", str(self.data_directory)),
                *words,
                *(() if place is None else configuration_options(place)),
                *options,
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

    def _wait_until_ready(self, deadline: float) -> None:
        status_file = self.data_directory / "postmaster.pid"
        while time.monotonic() < deadline:
            self._server.demand_start(0.01)
            try:
                lines = plain_text(status_file).splitlines()
            except OSError:
                continue
            # Line 8 of postmaster.pid is the server's own status (src/include/utils/pidfile.h).
            if len(lines) >= 8 and lines[7].strip() == "ready" and lines[0] == str(self._server.own_pid):
                return
        raise ServerFailed(f"the server was not ready in time: {self.last_words()}")
