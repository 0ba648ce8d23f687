"""The server of a visit: made, started, read back; its end stands on the visit's stack of undoing."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, Self, TypeAlias

from bedplate import registry
from bedplate.errors import BedplateError, VisitFailed
from bedplate.host import ledger
from bedplate.host.cgroups import Group, drop_page_cache
from bedplate.host.command import Account, Commands, restricted_environment
from bedplate.host.interruption import defer_interruptions
from bedplate.host.ledger import Holding, Holdings
from bedplate.host.pages import CachedFile, read_into_cache
from bedplate.host.process import inner_pid
from bedplate.host.shut_in import Restriction
from bedplate.model.cell import Cell
from bedplate.model.filesystem import KeptData
from bedplate.model.reason import (
    FILE_SYSTEM_SILENT,
    SCRATCH_DEVICE_FULL,
    Reason,
    because,
    distinct,
    is_given,
    reasons_of,
)
from bedplate.model.visit import EngineBuild, ReadBack, VisitRequest
from bedplate.units import MIB

if TYPE_CHECKING:
    from bedplate.probe.sampler import Probe
    from bedplate.visit.declaration import UntornWrites
    from bedplate.visit.life import Findings, Steps
    from bedplate.visit.recording import VisitContext


class ServerFailed(BedplateError):
    """The server did not start, or died."""

    code = "server-failed"


@dataclass(frozen=True)
class ServerSite:
    """What a server runs on: the data on the scratch device, the rest not. `enter_group` runs in it before its program.

    `environment` is of every process of the server, beside what its engine gives it. It writes to its own folders, and to what is `writable`;
    of folders that are hidden from it `readable` are left (`host/shut_in.py`). A `thrown_away` copy is looked at once: nobody asks how its
    pages were read and flushed.
    """

    build: EngineBuild | None
    data_directory: Path
    socket_directory: Path
    log: Path
    account: Account
    commands: Commands
    ledger: Holdings
    enter_group: Callable[[], None] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    thrown_away: bool = False


@dataclass(frozen=True)
class InForce:
    """What a running server says of itself: its settings as it shows them, what was asked beside what is, versions."""

    settings: Mapping[str, str] = field(default_factory=dict)
    comparisons: Sequence[ReadBack] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class EngineServer:
    """The role itself. `making` is what the step is called that makes the data directory, `programs` are paths below the build's prefix.

    `at` is a server there, neither made nor started.
    """

    making: str
    programs: tuple[str, ...]
    at: Callable[[ServerSite], Server]


def server_of(engine: str) -> EngineServer | None:
    """That of an engine, None where it has none; PlanError lists the known engines."""
    server: EngineServer | None = registry.engine_part_or_none(engine, "server")
    return server


class KeptServerData(KeptData, Protocol):
    """The role `kept_data` of an engine with a server."""

    def take_configuration_out(self, server: Server) -> None:
        """Before it is kept: what this cell configured leaves the data directory, whose server was stopped."""

    def configure(self, server: Server, cell: Cell) -> None:
        """After it was restored: the data directory gets the configuration of a cell."""


def kept_server_data(engine: str) -> KeptServerData:
    """That of an engine; the plan restores nothing of one without."""
    found: KeptServerData = registry.engine_part(engine, "kept_data")
    return found


READ_STEP = "read in"

# File systems refuse to give out their last few megabytes.
_FULL_BELOW_BYTES = 16 * MIB

_FULL = because(
    SCRATCH_DEVICE_FULL,
    "the scratch device is full: no space left; a smaller scale, a smaller max_wal_size or a larger "
    "image_size gives it room",
)


@dataclass(frozen=True)
class StartedServer:
    """A server that accepts connections, None without one, and what it says of itself."""

    server: Server | None = None
    in_force: InForce = field(default_factory=InForce)


def start_server(
    request: VisitRequest,
    site: ServerSite,
    *,
    undo: contextlib.ExitStack,
    steps: Steps,
    findings: Findings,
    kept_data: KeptServerData | None = None,
) -> StartedServer:
    """From nothing to a database for the workload, if the engine has a server; VisitFailed where a setting is not in force.

    With `kept_data` data the directory has its database already, and gets a configuration alone.
    """
    cell = request.cell
    engine = server_of(cell.build.engine)
    if engine is None:
        return StartedServer()
    site.socket_directory.mkdir(mode=0o700)
    shutil.chown(site.socket_directory, site.account.uid, site.account.gid)
    with steps.step(engine.making if kept_data is None else "configure"):
        server = engine.at(site)
        if kept_data is None:
            server.initialise(cell)
        else:
            kept_data.configure(server, cell)
        # This file system only: a sync of the whole machine would wait for other people's disks.
        site.commands.run(["sync", "--file-system", str(site.data_directory)], timeout_s=600)
    if cell.device.memory_bytes is not None:
        # Pages belong to the group that first touched them; it was made outside.
        drop_page_cache()
    with steps.step("server start"):
        undo.callback(server.kill)
        server.start()
        if kept_data is None:
            server.create_database()
    with steps.step("server read back"):
        in_force = server.in_force(cell)
        findings.comparisons += in_force.comparisons
    verify_server(in_force.comparisons)
    findings.versions.update(in_force.versions)
    return StartedServer(server, in_force)


def end_server(server: Server | None, findings: Findings, untorn: UntornWrites | None) -> None:
    """Stop it in order, or at once where it can no longer end so; what its end tells becomes a problem of the runs."""
    if server is None:
        return
    if is_given(SCRATCH_DEVICE_FULL, findings.run_problems) or server.has_crashed:
        # Without room a server can neither make its closing checkpoint nor end the recovery after a
        # crash, and a fast shutdown within that recovery was seen to wait for ever (PostgreSQL 18).
        server.kill()
        if not findings.run_problems:
            words = f"a process of the server crashed during the visit, and was started again: {server.last_words()}"
            findings.run_problems.append(because("server-process-crashed", words))
    else:
        server.stop()
    refusal = None if untorn is None else untorn.refusal()
    if refusal is not None:
        findings.run_problems.append(refusal)


def end_to_be_kept(server: Server | None, kept_data: KeptServerData | None) -> None:
    """Stop it in order, and leave nothing of its configuration with its data. ValueError of an engine whose data nobody keeps."""
    if server is None or kept_data is None:
        raise ValueError("there is no server to be kept")
    server.stop()
    kept_data.take_configuration_out(server)


def read_in(directory: Path, cached_files: tuple[CachedFile, ...], group: Group) -> None:
    """Put what a load had left of the database's files into the page cache, as the server's group. VisitFailed where they cannot be read."""
    try:
        read_into_cache(directory, cached_files, group.enter)
    except OSError as error:
        words = f"what a load leaves in the page cache could not be read from {directory}: {error}"
        raise VisitFailed(READ_STEP, because("not-read-in", words)) from error


def verify_server(comparisons: Sequence[ReadBack]) -> None:
    """VisitFailed with a reason for each setting that is not in force."""
    wrong = [item for item in comparisons if item.matches is False]
    if wrong:
        raise VisitFailed(
            "server read back",
            *(
                f"{item.name}: asked {item.asked}, effective is {item.effective} ({item.source})"
                for item in wrong
            ),
        )


def why_the_server_is_gone(context: VisitContext) -> tuple[Reason, ...]:
    """The server's last words, and the full file system behind many of them; empty if all is well."""
    found: list[Reason] = []
    server = context.server
    if server is not None:
        if server.lacks_room:
            found.append(_FULL)
        try:
            server.check_alive()
        except ServerFailed as error:
            found.extend(reasons_of(error))
    return distinct((*found, *lacking_room(context.mount_point, _FULL)))


def lacking_room(mount_point: Path, full: Reason) -> tuple[Reason, ...]:
    """`full` where a file system has no room left; that it does not answer, where it does not."""
    try:
        space = os.statvfs(mount_point)
    except OSError as error:
        words = f"the file system at {mount_point} does not answer: {error.strerror}"
        return (because(FILE_SYSTEM_SILENT, words),)
    return (full,) if space.f_bavail * space.f_frsize < _FULL_BELOW_BYTES else ()


_LINES_QUOTED, _LINE_CHARACTERS, _BYTES_QUOTED = 6, 400, 1 << 16
_GENTLE_END_S = 10.0


class ServerProcess:
    """Started, ended, watched; what it says goes to the site's log.

    Its program lies below `prefix`. `ended` is called once it is gone, with whether it left by itself and in order.
    """

    def __init__(
        self, site: ServerSite, prefix: str, on_end: Callable[[bool], None] = lambda _: None
    ) -> None:
        self._site = site
        self._ended = on_end
        self._programs = Path(prefix)
        self._holding = Holding("server", str(site.data_directory), prefix)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id; ServerFailed where there is none."""
        if self._process is None:
            raise ServerFailed("the server was not started")
        return self._process.pid

    @property
    def own_pid(self) -> int:
        """The process id as the server itself knows it; ServerFailed where there is none."""
        return inner_pid(self.pid)

    @property
    def status(self) -> int | None:
        """Its exit status, None while it runs or where there is none."""
        return None if self._process is None else self._process.poll()

    def start(
        self,
        argv: Sequence[str],
        more_environment: Mapping[str, str] | None = None,
        *,
        writable: Sequence[Path] = (),
        readable: Sequence[Path] = (),
        io_uring: bool = False,
        commands: str = "",
    ) -> None:
        """Start it; whether it then takes connections is the engine's to find out.

        All but `writable` and what the site says is read-only to it, and it has no `io_uring` but where its settings ask for that. `commands`
        are for one that reads them, and ends behind the last.
        """
        site = self._site
        restriction = Restriction(
            site.account,
            (*writable, *site.writable),
            (self._programs, *readable, *site.readable),
            io_uring=io_uring,
        )
        site.ledger.note(self._holding)
        with site.log.open("ab") as log, defer_interruptions(), restriction.child() as become:

            def become_server() -> None:
                if site.enter_group is not None:
                    site.enter_group()
                become()

            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE if commands else subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=restricted_environment({**site.environment, **(more_environment or {})}),
                start_new_session=True,
                # subprocess runs preexec_fn after it has dropped privileges; the group can only be
                # entered before, so both are done here, in that order.
                preexec_fn=become_server,  # noqa: PLW1509 -- no threads exist yet in a visit
            )
        site.commands.record.append(tuple(argv))
        if self._process.stdin is not None:
            # They fit a pipe; one that died at once says why in its log.
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(commands.encode())
                self._process.stdin.flush()
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()

    def demand_end(self, timeout_s: float) -> None:
        """Wait for the end of one that ends by itself; ServerFailed if it does not in time, or ends otherwise than in order."""
        assert self._process is not None  # noqa: S101 -- called after start only
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerFailed(
                f"the server did not end within {timeout_s:g} s: {self.last_words()}"
            ) from None
        self._settle(in_order=status == 0)
        if status != 0:
            raise ServerFailed(f"the server ended with status {status}: {self.last_words()}")

    def demand_start(self, wait_s: float) -> None:
        """Wait so long for its end; ServerFailed with its last words if that comes."""
        assert self._process is not None  # noqa: S101 -- called after start only
        try:
            status = self._process.wait(wait_s)
        except subprocess.TimeoutExpired:
            return
        raise ServerFailed(f"the server did not start (status {status}): {self.last_words()}")

    def stop(self, gently: signal.Signals, *, timeout_s: float) -> int | None:
        """End it by a signal that lets it close, and its status; None without a server.

        One that does not end is killed, and ServerFailed.
        """
        process = self._process
        if process is None:
            return None
        if process.poll() is None:
            process.send_signal(gently)
            try:
                process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                self._settle(in_order=False)
                raise ServerFailed(f"the server did not stop within {timeout_s:g} s and was killed") from None
        self._settle(in_order=process.returncode == 0)
        return process.returncode

    def kill(self, initial_signal: signal.Signals = signal.SIGKILL) -> None:
        """End it at once; `initial_signal` is a signal that ends its children with it, where it has some."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(initial_signal)
            try:
                process.wait(_GENTLE_END_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self._settle(in_order=False)

    def check_alive(self) -> None:
        """ServerFailed with the log's last lines if it is gone."""
        if self._process is None or self._process.poll() is not None:
            raise ServerFailed(f"the server died (status {self.status}): {self.last_words()}")

    def last_words(self, line_count: int = _LINES_QUOTED) -> str:
        """The last lines of its log."""
        try:
            with self._site.log.open("rb") as log:
                # What others wrote may have filled it.
                log.seek(max(0, log.seek(0, os.SEEK_END) - _BYTES_QUOTED))
                text = log.read(_BYTES_QUOTED).decode(errors="replace")
        except OSError:
            return "(its log cannot be read)"
        said = [line for line in text.splitlines() if line.strip()]
        return " | ".join(said[-line_count:])[-line_count * _LINE_CHARACTERS :] or "(its log is empty)"

    def has_logged(self, text: str) -> bool:
        """Whether its log has a text."""
        try:
            with self._site.log.open(encoding="utf-8", errors="replace") as log:
                return any(text in line for line in iter(lambda: log.readline(_BYTES_QUOTED), ""))
        except OSError:
            return False

    @property
    def lacks_room(self) -> bool:
        """Whether its log ends with a full disk."""
        return "No space left on device" in self.last_words(line_count=40)

    def _settle(self, *, in_order: bool) -> None:
        self._process = None
        if not in_order:
            # Its other processes have sessions of their own, and hold on to what they map and have open.
            ledger.end_server(self._holding)
        self._site.ledger.settled(self._holding)
        self._ended(in_order)


class Server:
    """A data directory, and one process over it that says in its log what happens. Whatever ends it must leave nothing that the ledger does not know.

    `stops_by` lets it close in order, within `stop_limit_s`; `ends_by` ends it and its children at once. `crash_words` are in the log where
    a signal ended one of its processes.
    """

    stops_by: ClassVar[signal.Signals]
    ends_by: ClassVar[signal.Signals] = signal.SIGKILL
    stop_limit_s: ClassVar[float]
    crash_words: ClassVar[str]

    def __init__(
        self, site: ServerSite, programs: str, on_end: Callable[[bool], None] = lambda _: None
    ) -> None:
        """Neither made nor started; its programs are below a folder."""
        self.data_directory = site.data_directory
        self.log = site.log
        self.account = site.account
        self._commands = site.commands
        self._server = ServerProcess(site, programs, on_end)

    def initialise(self, cell: Cell) -> None:
        """Make the data directory and its configuration; not yet synced."""
        raise NotImplementedError

    def start(self) -> None:
        """Start it and wait until it takes connections; ServerFailed with its words if it does not."""
        raise NotImplementedError

    def create_database(self) -> None:
        """An empty database for the workload, and the role that owns it."""
        raise NotImplementedError

    def in_force(self, cell: Cell) -> InForce:
        """Asked of the running server and of its files."""
        raise NotImplementedError

    def stop(self, *, timeout_s: float | None = None) -> int | None:
        """An orderly shutdown, which writes what is dirty, and its status; None without a server.

        One that does not end is killed, and ServerFailed.
        """
        return self._server.stop(
            self.stops_by, timeout_s=self.stop_limit_s if timeout_s is None else timeout_s
        )

    def kill(self) -> None:
        """End it at once, for a visit that is being abandoned; safe at any moment, and twice."""
        self._server.kill(self.ends_by)

    def check_alive(self) -> None:
        """ServerFailed with the log's last lines if it is gone."""
        self._server.check_alive()

    @property
    def was_killed(self) -> bool:
        """Whether SIGKILL ended the server, before anybody here asked it to end."""
        return self._server.status == -signal.SIGKILL

    @property
    def has_crashed(self) -> bool:
        """Whether a signal ended one of its processes: it then recovers, and has taken every session down."""
        return self._server.has_logged(self.crash_words)

    @property
    def lacks_room(self) -> bool:
        """Whether its log ends with a full disk."""
        return self._server.lacks_room

    def last_words(self) -> str:
        """The last lines of its log."""
        return self._server.last_words()

    def wait_until_ready(self, timeout_s: float, *, every_s: float) -> None:
        """Until it takes connections; ServerFailed where it ends before, or takes none in time."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            self._server.demand_start(every_s)
            if self.is_ready():
                return
        raise ServerFailed(f"the server was not ready in time: {self.last_words()}")

    def is_ready(self) -> bool:
        """Whether it takes connections by now."""
        raise NotImplementedError


MYSQL, PGSQL = "mysql", "pgsql"


@dataclass(frozen=True)
class SqlEndpoint:
    """How a client reaches the workload's database, as an account that owns it and has no right beyond it.

    `protocol` is `mysql` or `pgsql`; of the first `socket` is the socket's path, of the second the folder that it is in.
    """

    protocol: str
    socket: Path
    user: str
    database: str


@dataclass(frozen=True)
class SqlSizes:
    """What the server's database and its log take, in bytes, its page size, and the files that its data are in."""

    database_bytes: int
    log_bytes: int
    block_size_bytes: int
    files: tuple[Path, ...] = ()


class SqlServer(Protocol):
    """One running server, seen by such a workload."""

    endpoint: SqlEndpoint

    def session(self) -> PipedSession:
        """A new session with all rights; the caller closes it."""

    def settle(self, session: PipedSession) -> None:
        """After a load: what the server would do by itself some time later."""

    def checkpoint(self, session: PipedSession) -> None:
        """Write everything that is dirty, and wait."""

    def probe(self, session: PipedSession) -> Probe:
        """Its counters, over a session that stays open."""

    def sizes(self, session: PipedSession) -> SqlSizes:
        """As they are now."""


# The role itself: a server of this engine's, as its role `server` made it.
SqlEngine: TypeAlias = Callable[[Server], SqlServer]


def sql_server_of(context: VisitContext) -> SqlServer:
    """That of a visit; BedplateError where it has none. The plan gives such workloads no visit without one."""
    engine = context.request.cell.build.engine
    if context.server is None:
        raise BedplateError(f"{context.dataset.workload} needs a server, and this visit has none")
    found: SqlEngine = registry.engine_part(engine, "sql")
    return found(context.server)


_STATEMENT_SHOWN = 120

CONNECTION_LOST = "connection-lost"
NO_ANSWER_IN_TIME = "no-answer-in-time"


class SessionFailed(BedplateError):
    """The server refused a statement, or went away; `said` is what server and client said."""

    code = "session-failed"

    def __init__(self, *reasons: str | Reason, message: str = "") -> None:
        super().__init__(*reasons)
        self.said = message


class PipedSession:
    """Statements in, rows of text out; NULL comes as None. Not for use by two threads at once.

    What the client prints: `field` is between two cells of a row, `null` stands for NULL, `end` is the line behind an answer, for
    which `ask_for_end` asks. A line that begins with one of `errors` is the server's complaint, or the client's; where the last line
    before the end is `failed`, the statement was not answered, whatever stands before it.
    """

    field: ClassVar[str]
    null: ClassVar[str]
    end: ClassVar[str]
    ask_for_end: ClassVar[str]
    errors: ClassVar[tuple[str, ...]]
    failed: ClassVar[str | None] = None

    def __init__(
        self, argv: Sequence[str], restriction: Restriction, more_environment: Mapping[str, str] | None = None
    ) -> None:
        self._rest = b""
        self._has_killed = False
        # Why this session was ended from here, for whoever asks it again.
        self._ended: Reason | None = None
        self.has_lost_connection = False
        process: subprocess.Popen[bytes] | None = None
        try:
            with defer_interruptions():
                process = self._process = _started(argv, restriction, more_environment)
        except BaseException:
            # Whoever asked gets no session that could be closed.
            if process is not None:
                process.kill()
                process.wait()
            raise

    @property
    def pid(self) -> int:
        """The process id of the client, whose CPU belongs to the cost of watching."""
        return self._process.pid

    @property
    def was_killed(self) -> bool:
        """Whether SIGKILL ended the client, and not this session."""
        return not self._has_killed and self._process.poll() == -signal.SIGKILL

    def rows(self, statement: str, *, timeout_s: float = 60.0) -> list[list[str | None]]:
        """Run one statement and return its rows; SessionFailed quotes the server's error."""
        lines = self._ask(statement, timeout_s)
        has_failed = self.failed is not None and lines[-1:] == [self.failed]
        if has_failed:
            lines.pop()
        errors = [line for line in lines if line.startswith(self.errors)]
        if errors or has_failed:
            said = "; ".join(errors or lines)
            self.has_lost_connection |= "connection" in said
            raise SessionFailed(f"{_shorten(statement)}: {said}", message=said)
        return [[None if cell == self.null else cell for cell in line.split(self.field)] for line in lines]

    def value(self, statement: str, *, timeout_s: float = 60.0) -> str:
        """The single value of a statement's single row."""
        rows = self.rows(statement, timeout_s=timeout_s)
        if len(rows) != 1 or len(rows[0]) != 1 or rows[0][0] is None:
            raise SessionFailed(f"{_shorten(statement)}: expected one value, found {rows!r:.200}")
        return rows[0][0]

    def execute(self, statement: str, *, timeout_s: float = 3600.0) -> None:
        """Run a statement for its effect."""
        self.rows(statement, timeout_s=timeout_s)

    def abandon(self) -> None:
        """End the client at once, also while it waits for an answer; whoever waits gets SessionFailed."""
        self._has_killed = True
        self._process.kill()

    def close(self) -> None:
        """End the connection; a client that does not end is killed."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            # The client may have gone first, which is what was wanted.
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.abandon()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @staticmethod
    def has_gone(message: bytes) -> bool:  # noqa: ARG004 -- of clients that end by themselves
        """Whether a client that goes on after errors has said that its connection is gone."""
        return False

    def _ask(self, statement: str, timeout_s: float) -> list[str]:
        assert self._process.stdin is not None  # noqa: S101 -- Popen was given pipes
        if self._ended:
            raise SessionFailed(self._ended)
        text = f"{statement.rstrip().rstrip(';')};\n{self.ask_for_end}\n"
        try:
            self._process.stdin.write(text.encode())
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            said = "; ".join(self._remaining())
            self.has_lost_connection = True
            gone = because(CONNECTION_LOST, f"the connection to the server is gone: {said or error}")
            raise SessionFailed(gone, message=said) from error
        return self._read_answer(statement, time.monotonic() + timeout_s)

    def _read_answer(self, statement: str, deadline: float) -> list[str]:
        assert self._process.stdout is not None  # noqa: S101 -- Popen was given pipes
        end = self.end.encode() + b"\n"
        while end not in self._rest:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self.abandon()
                words = f"{_shorten(statement)}: the server gave no answer in time; the session was ended"
                self._ended = because(NO_ANSWER_IN_TIME, words)
                raise SessionFailed(self._ended)
            chunk = os.read(self._process.stdout.fileno(), 65536)
            if not chunk or self.has_gone(self._rest + chunk):
                said = (self._rest + chunk).decode(errors="replace").strip()
                self._rest = b""
                words = f"the server closed the connection: {said or 'no message'}"
                self.has_lost_connection = True
                raise SessionFailed(because(CONNECTION_LOST, words), message=said)
            self._rest += chunk
        answer, self._rest = self._rest.split(end, 1)
        return answer.decode(errors="replace").splitlines()

    def _remaining(self) -> Sequence[str]:
        if self._process.stdout is None or self._process.poll() is None:
            return ()
        return self._process.stdout.read().decode(errors="replace").split("\n")


def _started(
    argv: Sequence[str], restriction: Restriction, more_environment: Mapping[str, str] | None
) -> subprocess.Popen[bytes]:
    with restriction.child() as become:
        return subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=restricted_environment(more_environment),
            cwd="/",
            start_new_session=True,
            preexec_fn=become,  # noqa: PLW1509 -- it takes no lock
        )


def _shorten(statement: str) -> str:
    """The beginning of a statement, for an error."""
    text = statement.strip()
    return text if len(text) <= _STATEMENT_SHOWN else f"{text[:_STATEMENT_SHOWN]}…"
