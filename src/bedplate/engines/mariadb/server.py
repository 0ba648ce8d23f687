"""A MariaDB server on the scratch file system: made, started, read back, stopped.

It listens on a private Unix socket only, reads no option file, and loads no plugin of the machine's.
"""

from __future__ import annotations

import shutil
import signal
import socket
import time
from typing import TYPE_CHECKING

from bedplate.engines.mariadb.model import MODEL, PAGE_SIZE, USUAL_PAGE_BYTES
from bedplate.engines.mariadb.read_back import effective_settings, read_back
from bedplate.engines.mariadb.session import MariadbSession
from bedplate.engines.mariadb.unpacked import CHECK_PAGES, CLIENT, INSTALL, Programs
from bedplate.engines.mariadb.unpacked import SERVER as MARIADBD
from bedplate.errors import CommandFailed
from bedplate.host.shut_in.restriction import Restriction
from bedplate.visit.engine_server import InForce, ServerFailed
from bedplate.visit.server_process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bedplate.host.command import Account, Completed
    from bedplate.model.cell import Cell
    from bedplate.model.levels import Scalar
    from bedplate.visit.engine_server import EngineServer, Server, ServerSite

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


class MariadbInstance:
    """One data directory and its server."""

    def __init__(self, site: ServerSite) -> None:
        """Neither made nor started; BedplateError where no build is named."""
        self.programs = Programs(site.build)
        self.data_directory = site.data_directory
        self.log = site.log
        self.account: Account = site.account
        self.socket = site.socket_directory / _SOCKET_NAME
        self._commands = site.commands
        self._server = ServerProcess(site, self.programs.prefix)
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
            *self._asked(),
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
                *self._asked(),
                *options,
            ],
            self.programs.environment,
            writable=(self.data_directory, self.socket.parent),
            readable=(self.programs.root,),
            # Its own default is asynchronous I/O, which is io_uring where it was built so.
            io_uring=str(self._settings.get(NATIVE_AIO, "ON")).upper() not in _OFF,
        )
        self._wait_until_ready(time.monotonic() + timeout_s)

    def stop(self, *, timeout_s: float = 600.0) -> int | None:
        """An orderly shutdown, which writes every dirty page, and its status; None without a server.

        One that does not end is killed, and ServerFailed.
        """
        return self._server.stop(signal.SIGTERM, timeout_s=timeout_s)

    def kill(self) -> None:
        """End it at once: it has no children."""
        self._server.kill()

    def check_alive(self) -> None:
        """ServerFailed with the log's last lines if it is gone."""
        self._server.check_alive()

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
    def was_killed(self) -> bool:
        """Whether SIGKILL ended the server, before anybody here asked it to end."""
        return self._server.status == -signal.SIGKILL

    @property
    def has_crashed(self) -> bool:
        """Whether a signal ended the server; nothing starts it again."""
        return self._server.has_logged(" got signal ")

    @property
    def lacks_room(self) -> bool:
        """Whether its log ends with a full disk."""
        return (
            self._server.lacks_room or "Disk is full" in self.last_words() or "errno: 28" in self.last_words()
        )

    def last_words(self) -> str:
        """The last lines of its log."""
        return self._server.last_words()

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

    def _asked(self) -> tuple[str, ...]:
        return tuple(f"--{name}={value}" for name, value in self._settings.items())

    def _wait_until_ready(self, deadline: float) -> None:
        while time.monotonic() < deadline:
            self._server.demand_start(_READY_EVERY_S)
            if _greets(self.socket):
                return
        raise ServerFailed(f"the server was not ready in time: {self.last_words()}")


def _greets(path: Path) -> bool:
    """Whether a server says its version to who connects, as it does once its recovery is done."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(1.0)
        try:
            connection.connect(str(path))
            return bool(connection.recv(1))
        except OSError:
            return False


class MariadbServer:
    """A server of the distribution's packages."""

    making = MODEL.making
    programs: tuple[str, ...] = (MARIADBD, CLIENT, INSTALL, CHECK_PAGES)

    def at(self, site: ServerSite) -> Server:
        """A server there."""
        return MariadbInstance(site)


SERVER: EngineServer = MariadbServer()
