"""What is asked of an engine whose power is cut: a writer that is recorded, and an oracle for what a cut leaves.

The role stands in the engine's file `power_cut`. What the writer leaves must add up: an oracle has to know from it alone
which transactions of which client are there, and that nothing else is.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bedplate.errors import (
    BedplateError,
    CommandFailed,
    CommandNotStarted,
    KilledFromOutside,
    OutputNotUnderstood,
)
from bedplate.host.command import Account, Commands
from bedplate.host.shut_in import Restriction
from bedplate.model.levels import Levels, Scalar, as_in_a_plan
from bedplate.model.visit import EngineBuild
from bedplate.visit.recording import Driver, ToolFailed, ToolProcess, VisitContext
from bedplate.visit.server import PipedSession, ServerSite, SessionFailed

# Marks of the log: where the clients began, and where they ended. START stands before a writer of others, which says itself when it
# begins, and SETTLED where all that it left is on the disk.
BEGIN, END = "begin", "end"

START, SETTLED = "start", "settled"

# The code of a writer's error that did not end in time, which a busy machine does as well.
WRITER_NOT_ENDED = "writer-not-ended"


@dataclass(frozen=True)
class Subject:
    """Whose data stand on the recorded file system, and what its oracle has to know of them.

    `rows` are the accounts of a server, or the entries of a key-value store, that were there before the clients began.
    `drivers` are paths of the programs that the visit has, by name, `settings` the engine's, and `configuration` the text of an own file with
    more of them: what lies with the data as such is not obeyed, as it may be a stranger's. `oracle` is the kind of what the clients left to
    be asked for (`CutEngine.oracle`); recordings without it are of the first. `emulated` says that its processors are QEMU's programs,
    which take many times as long for everything. `account` owns the data, and PostgreSQL's role has its name; None in older recordings, of which
    it is taken to be this machine's.
    """

    engine: str
    rows: int
    settings: Levels
    drivers: Levels
    build: EngineBuild | None = None
    oracle: int = 1
    emulated: bool = False
    account: Account | None = None
    configuration: str | None = None


@dataclass(frozen=True)
class Driven:
    """What clients were promised while they were recorded, in how many seconds, and by which engine's version.

    `acknowledged` is None where the log's marks are to be counted. `ended_early` says that they were told to end because the
    log had no more room. `demands_all` is of a log with SETTLED: what is there must be whole, and where it is true nothing
    acknowledged may be missing.
    """

    acknowledged: int | None
    seconds: float
    version: str
    ended_early: bool = False
    demands_all: bool = False


@dataclass(frozen=True)
class OracleAnswer:
    """What the oracle was told by an engine on its recovered data.

    `present` is the last transaction of each client that is there; None where nothing could be asked. `detected`
    are the engine's own complaints, `silent` what it works on with and only the oracle finds. `out_of_time` says that it
    gave no answer, which a machine that stood still does as well as damage. `disk_errors` are what its log said of the disk while it
    worked on.
    """

    present: Mapping[int, int] | None
    detected: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    start_s: float | None = None
    oracle_s: float | None = None
    out_of_time: bool = False
    disk_errors: tuple[str, ...] = ()


class Recorded(Protocol):
    """The recorded file system, as a writer has it. A client opens `mark_file` itself and writes a line for each promise.

    `room_bytes` is what clients may add to a log that can hold more.
    """

    data_directory: Path
    mark_file: Path
    log: Path
    room_bytes: int
    undo: ExitStack

    def server_site(self) -> ServerSite:
        """Where a server of the cell stands on it."""

    def mark(self, text: str) -> None:
        """Put a mark of the recording's own into the log."""

    def mark_count(self) -> int:
        """How many marks the log has."""

    def settle(self) -> None:
        """Write back what is dirty, and wait."""

    def pace(self, duration_s: float) -> Callable[[], float]:
        """From now on: how long a client waits before its next transaction, so that the log lasts."""

    def log_for_clients_bytes(self) -> int:
        """How large the log may become by them."""

    def is_log_nearly_full(self) -> bool:
        """Whether they have to end."""


class Checkpoints(Protocol):
    """Somebody beside the clients who makes the engine checkpoint."""

    def checkpoint(self) -> None:
        """Now, and wait for it."""

    def abandon(self) -> None:
        """From another thread: end what it waits for."""


class CutWriter(Protocol):
    """An engine on the recorded file system whose clients can begin.

    `bound_ms` and `bound_transactions` are what its settings call bounded, None where they promise nothing.
    """

    facts: Mapping[str, Scalar]
    bound_ms: float | None
    bound_transactions: int | None

    @property
    def was_killed(self) -> bool:
        """Whether SIGKILL ended a process of its server, before anybody here ended that; never of an engine without one."""

    def checkpoints(self) -> AbstractContextManager[Checkpoints] | None:
        """While clients write; None of an engine that has none."""

    def drive(
        self, output: Path, *, duration_s: float, seed: int, companion: AbstractContextManager[object]
    ) -> Driven:
        """The clients, between the marks; `companion` is entered while they write, `output` begins the names of what they say.

        They end before their time where the log is nearly full. The engine is not stopped.
        """


class CutEngine(Protocol):
    """The role itself. `rows` and `oracle` are those of new recordings, `drivers` what writer and oracle are compiled of.

    `may_link` says that its data may have symbolic links; of others the kernel follows none on an image.
    """

    rows: int
    oracle: int
    may_link: bool

    @property
    def drivers(self) -> tuple[Driver, ...]:
        """Each once."""

    def writer(self, context: VisitContext, setup: Recorded, *, clients: int) -> CutWriter:
        """From an empty directory to where clients can begin; what it started stands on `setup.undo`."""

    def examine(self, site: ServerSite, subject: Subject, promised: Mapping[int, int]) -> OracleAnswer:
        """Start the engine on what a cut left, and compare with the last acknowledged transaction of each client.

        OSError for what the file system answers; BedplateError where the engine could not be asked at all.
        """

    def refused_settings(self, subject: Subject) -> Sequence[str]:
        """Why settings of a stored recording are none that a plan may have.

        The study may be a stranger's: `examine` and `by_hand` would start a server with them. None of an engine whose programs are
        started without any.
        """

    def by_hand(self, subject: Subject, data: Path, account: Account, as_account: str) -> Iterator[str]:
        """Shell lines for root that look into the same data; `as_account` begins a command of `account`."""


def unplanned(
    settings: Mapping[str, Scalar], name_rule: Callable[[str], object], value_rule: Callable[[object], object]
) -> tuple[str, ...]:
    """Why each setting of a stored recording is none that a plan may have; a rule raises ValueError for what it refuses."""
    reasons = []
    for name, value in settings.items():
        try:
            name_rule(name)
            value_rule(value)
        except ValueError as error:
            reasons.append(f"setting {name!r}: {error}")
    return tuple(reasons)


_ENOUGH_EVERY_S = 0.05
_ABANDON_LIMIT_S = 300.0


@dataclass(frozen=True)
class CutClients:
    """What the clients of one server do: `transaction` is its SQL, of a client, its sequence and an account from 1 to `accounts`.

    Each of its parts is sent once the one before was taken: a client that goes on after an error would commit what is left of it.

    `checkpoint` is the statement that writes every dirty page at once.
    """

    session: Callable[[], PipedSession]
    transaction: Callable[[int, int, int], tuple[str, ...]]
    accounts: int
    checkpoint: str
    version: str


def drive(
    server: CutClients,
    mark_file: Path,
    *,
    clients: int,
    duration_s: float,
    seed: int,
    pause_s: Callable[[], float] = lambda: 0.0,
    enough: Callable[[], bool] = lambda: False,
) -> Driven:
    """The clients, each in a thread and a session of its own; BedplateError with the clients' troubles.

    Before each transaction a client waits as long as `pause_s` says. Once `enough`, which is asked all the while, says so, each ends after the transaction that it is at.
    """
    ended_early = False
    crew = [
        _Client(server, mark_file, number, duration_s, seed, pause_s=pause_s) for number in range(clients)
    ]
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
    if any(client.was_killed for client in crew):
        raise KilledFromOutside("a client of the server")
    troubles = [client.trouble for client in crew if client.trouble is not None]
    if troubles:
        raise BedplateError(*troubles)
    return Driven(
        sum(client.sequence for client in crew),
        seconds,
        server.version,
        ended_early=ended_early,
    )


class ServerWriter:
    """A started server and its clients, between the marks of a recording: the `CutWriter` of every server of SQL.

    `facts` are its settings as it shows them, `bound_ms` what they bound a loss by. What `counters` count while clients write
    joins the facts. `was_killed` says whether SIGKILL ended a process of the server.
    """

    bound_transactions: int | None = None

    def __init__(
        self,
        server: CutClients,
        setup: Recorded,
        *,
        clients: int,
        facts: Mapping[str, Scalar],
        bound_ms: float | None,
        was_killed: Callable[[], bool],
        counters: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        self._counters = counters
        self._was_killed = was_killed
        self.facts = facts
        self.bound_ms = bound_ms
        self._server = server
        self._setup = setup
        self._clients = clients
        setup.settle()

    @property
    def was_killed(self) -> bool:
        """By its own word."""
        return self._was_killed()

    def checkpoints(self) -> AbstractContextManager[Checkpoints] | None:
        """In a session of their own."""
        return _checkpoints(self._server)

    def drive(
        self,
        output: Path,  # noqa: ARG002 -- its clients are threads
        *,
        duration_s: float,
        seed: int,
        companion: AbstractContextManager[object],
    ) -> Driven:
        """At the recording's pace."""
        before = self._counters()
        self._setup.mark(BEGIN)
        pause_s = self._setup.pace(duration_s)
        with companion:
            driven = drive(
                self._server,
                self._setup.mark_file,
                clients=self._clients,
                duration_s=duration_s,
                seed=seed,
                pause_s=pause_s,
                enough=self._setup.is_log_nearly_full,
            )
        self._setup.mark(END)
        counted = {name: count - before[name] for name, count in self._counters().items()}
        self.facts = {**self.facts, **counted}
        return driven


class _Checkpoints:
    def __init__(self, session: PipedSession, statement: str) -> None:
        self._session = session
        self._statement = statement
        self.abandon = session.abandon

    def checkpoint(self) -> None:
        self._session.execute(self._statement)


@contextmanager
def _checkpoints(server: CutClients) -> Iterator[_Checkpoints]:
    with server.session() as session:
        yield _Checkpoints(session, server.checkpoint)


class _Client(threading.Thread):
    """One client: a transaction, its mark, the next one."""

    def __init__(
        self,
        server: CutClients,
        mark_file: Path,
        number: int,
        duration_s: float,
        seed: int,
        *,
        pause_s: Callable[[], float],
    ) -> None:
        super().__init__(name=f"client {number}", daemon=True)
        self.sequence = 0
        self.trouble: str | None = None
        self.was_killed = False
        self._number = number
        self._mark_file = mark_file
        self._duration_s = duration_s
        self._pause_s = pause_s
        self._draw = random.Random(f"client {number} of {seed}")  # noqa: S311 -- chance, not secrecy
        self._is_over = threading.Event()
        self._server = server
        self._session = server.session()

    def end(self) -> None:
        """After the transaction that it is at."""
        self._is_over.set()

    def abandon(self) -> None:
        """End it at once, and wait until it has."""
        self._is_over.set()
        self._session.abandon()
        if self.ident is not None:
            self.join(_ABANDON_LIMIT_S)

    def run(self) -> None:
        try:
            with self._session as session:
                # Connected before the clock runs.
                session.execute("SELECT 1")
                self._work(session)
        except (BedplateError, OSError) as error:
            self.was_killed = self._session.was_killed
            self.trouble = f"client {self._number}, transaction {self.sequence + 1}: {error}"

    def _work(self, session: PipedSession) -> None:
        until = time.monotonic() + self._duration_s
        mark = os.open(self._mark_file, os.O_WRONLY | os.O_CLOEXEC)
        try:
            while (left_s := until - time.monotonic()) > 0 and not self._is_over.is_set():
                if (pause_s := self._pause_s()) > 0:
                    self._is_over.wait(min(pause_s, left_s))
                    continue
                sequence = self.sequence + 1
                account = self._draw.randint(1, self._server.accounts)
                for statement in self._server.transaction(self._number, sequence, account):
                    session.execute(statement)
                os.write(mark, b"A %d %d %d\n" % (self._number, sequence, time.monotonic_ns() // 1000))
                self.sequence = sequence
        finally:
            os.close(mark)


ANSWER_LIMIT_S = 300.0


def notes(
    session: PipedSession, promised: Mapping[int, int], detected: list[str], silent: list[str]
) -> dict[int, int] | None:
    """The last note of each client; a gap, a note twice or one that was never made is silent corruption."""
    try:
        found = session.rows(
            "SELECT client, count(*), count(DISTINCT sequence), min(sequence), max(sequence) FROM note GROUP BY client",
            timeout_s=ANSWER_LIMIT_S,
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


def balances(rows: int, *, there: int, distinct: int, total: int, wrong: int, torn: int) -> Iterator[str]:
    """What the accounts say, of which `rows` were made: those that are there, their sum, and those that do not add up."""
    if (there, distinct) != (rows, rows):
        yield f"{rows} accounts were made, {there} are there, {distinct} different"
    if wrong:
        yield f"{wrong} accounts' balances are not the number of their notes; all balances are {total}"
    if torn:
        yield f"{torn} accounts have a filler that does not follow from their number and balance"


ACCOUNTS = 10_000

# The kind of what the writer leaves for the check.
ORACLE = 1

# The kernel writes back after seconds what nobody waits for; a recording is as short as that.
_PRESSURE_MS = 30

_CHECK_LIMIT_S = 300.0
_PREPARATION_LIMIT_S = 600.0

# What a check counts that nobody but it would find.
_SILENT = {
    "balances_wrong": "accounts are not the sum of their entries",
    "values_wrong": "keys or values are not whole, or none of ours",
    "order_wrong": "keys are not behind the one before",
    "counts_wrong": "tables hold more or fewer entries than they say",
    "pages_unaccounted": "pages are neither used nor free, or both",
}


def examine(
    place: Path, driver: str, promised: Mapping[int, int], *, account: Account, commands: Commands
) -> OracleAnswer:
    """Walk the database in `place` and compare it with what was promised.

    A reader that does not end has met damage; CommandNotStarted, or OSError, for one that never began.
    """
    started = time.monotonic()
    try:
        done = commands.run(
            [driver, "check", f"--directory={place}"],
            timeout_s=_CHECK_LIMIT_S,
            check=False,
            confinement=Restriction(account, (place,), (Path(driver),)),
        )
    except CommandNotStarted:
        raise
    except CommandFailed as error:
        return OracleAnswer(
            None,
            detected=(f"the reader: {error.reasons[0]}",),
            oracle_s=time.monotonic() - started,
            out_of_time=True,
        )
    oracle_s = time.monotonic() - started
    if done.status < 0:
        said = f": {done.stderr.strip()}" if done.stderr.strip() else ""
        words = f"the reader was ended by {signal.Signals(-done.status).name}{said}"
        return OracleAnswer(None, detected=(words,), oracle_s=oracle_s)
    document = _last_document(done.stdout)
    if document is None:
        raise OutputNotUnderstood("the check", expected="its document", found=done.output)
    return judge_document(document, promised, oracle_s=oracle_s)


def judge_document(
    document: Mapping[str, Any], promised: Mapping[int, int], *, oracle_s: float | None
) -> OracleAnswer:
    """What a check's document comes to; OutputNotUnderstood if something is missing in it."""
    try:
        if (failure := document["failure"]) is not None:
            return OracleAnswer(
                None, detected=(f"{failure['error']} ({failure['step']})",), oracle_s=oracle_s
            )
        silent = [f"{document[name]} {words}" for name, words in _SILENT.items() if document[name]]
        if document["accounts"] != ACCOUNTS:
            silent.append(f"{ACCOUNTS} accounts were made, {document['accounts']} are there")
        present = {}
        for client in document["clients"]:
            number, last = int(client["client"]), int(client["last"])
            present[number] = last
            if client["gaps"] or client["entries"] != last:
                silent.append(
                    f"client {number} has {client['entries']} entries up to {last}: some are missing between"
                )
            if last > promised.get(number, 0) + 1:
                silent.append(
                    f"client {number} has transaction {last}, but {promised.get(number, 0)} was the last acknowledged"
                )
    except (KeyError, TypeError, ValueError) as error:
        raise OutputNotUnderstood(
            "the check", expected=f"a document with {error}", found=json.dumps(dict(document))
        ) from error
    # A program of an earlier version has none.
    complaints = tuple(map(str, document.get("complaints", ())))
    return OracleAnswer(present, detected=complaints, silent=tuple(silent), oracle_s=oracle_s)


def _last_document(text: str) -> dict[str, Any] | None:
    """The last line that is a JSON object, None without one."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                found = json.loads(line)
            except ValueError:
                return None
            return found if "failure" in found else None
    return None


@dataclass(frozen=True)
class NativeCuts:
    """The program's two modes, of one engine, which a person calls `label`.

    By the settings of a cell: what the program is told (`told`), whether nothing waits, so that the kernel is pressed to write
    (`is_pressed`), and how many transactions at most the settings call lost (`bound`; None where they say nothing).
    """

    driver: Driver
    label: str
    told: Callable[[Levels], Levels]
    is_pressed: Callable[[Levels], bool]
    bound: Callable[[Levels], int | None]

    rows = ACCOUNTS
    oracle = ORACLE
    may_link = False

    @property
    def drivers(self) -> tuple[Driver, ...]:
        """The one that is compiled."""
        return (self.driver,)

    def facts_of(self, settings: Levels) -> dict[str, Scalar]:
        """How the database is opened."""
        pressed = {"pressure_ms": _PRESSURE_MS} if self.is_pressed(settings) else {}
        return {**self.told(settings), **pressed}

    def writer(self, context: VisitContext, setup: Recorded, *, clients: int) -> CutWriter:
        """Nothing beforehand: the database is made in the recording."""
        return _Writer(self, context, setup, clients)

    def examine(self, site: ServerSite, subject: Subject, promised: Mapping[int, int]) -> OracleAnswer:
        """By the check."""
        driver = str(subject.drivers[self.driver.name_for(subject.settings)])
        return examine(site.data_directory, driver, promised, account=site.account, commands=site.commands)

    def refused_settings(self, subject: Subject) -> Sequence[str]:  # noqa: ARG002 -- of engines that start a server with them
        """None: the check opens what it finds."""
        return ()

    def by_hand(
        self,
        subject: Subject,
        data: Path,
        account: Account,  # noqa: ARG002 -- of engines with a session of somebody's
        as_account: str,
    ) -> Iterator[str]:
        """The check once more."""
        driver = shlex.quote(str(subject.drivers[self.driver.name_for(subject.settings)]))
        yield f"{as_account} {driver} check --directory={shlex.quote(str(data))}"


class _Writer:
    """One process, which opens the database itself."""

    bound_ms: float | None = None
    was_killed = False

    def __init__(self, native_cuts: NativeCuts, context: VisitContext, setup: Recorded, clients: int) -> None:
        self._engine, self._context, self._setup, self._clients = native_cuts, context, setup, clients
        settings = context.engine_settings
        self.facts: Mapping[str, Scalar] = native_cuts.facts_of(settings)
        self.bound_transactions = native_cuts.bound(settings)

    def checkpoints(self) -> AbstractContextManager[Checkpoints] | None:
        return None

    def drive(
        self, output: Path, *, duration_s: float, seed: int, companion: AbstractContextManager[object]
    ) -> Driven:
        """From an empty directory; BedplateError in the library's own words."""
        engine, context, setup = self._engine, self._context, self._setup
        settings = context.engine_settings
        driver = context.native_drivers[engine.driver.name_for(settings)]
        argv = (
            *(driver, "write"),
            *(f"--directory={setup.data_directory}", f"--mark={setup.mark_file}"),
            *(f"--clients={self._clients}", f"--accounts={ACCOUNTS}"),
            *(f"--duration-s={max(1, round(duration_s))}", f"--seed={seed}"),
            *(f"--set={name}={as_in_a_plan(level)}" for name, level in engine.told(settings).items()),
            *((f"--pressure-ms={_PRESSURE_MS}",) if engine.is_pressed(settings) else ()),
            *(f"--log={setup.log}", f"--log-bytes={setup.room_bytes}"),
            f"--log-most={setup.log_for_clients_bytes()}",
        )
        restriction = Restriction(
            context.account, (setup.data_directory, setup.mark_file), (Path(driver), setup.log)
        )
        with (
            ToolProcess(
                argv, context, output=output, directory=context.log_directory, confinement=restriction
            ) as tool,
            companion,
        ):
            ended = tool.wait(limit_s=duration_s + _PREPARATION_LIMIT_S, enough=setup.is_log_nearly_full)
        document = _last_document(output.with_suffix(".out").read_text(encoding="utf-8", errors="replace"))
        if document is not None and document["failure"] is not None:
            raise BedplateError(
                f"the {engine.label} writer: {document['failure']['error']} ({document['failure']['step']})"
            )
        if ended.problem is not None:
            raise ToolFailed(ended.problem, ended)
        if document is None:
            raise OutputNotUnderstood(engine.driver.name, expected="its document", found=output.name)
        return Driven(
            int(document["transactions"]),
            int(document["elapsed_ns"]) / 1e9,
            str(document["library"]),
            ended_early=ended.asked_to_end,
        )


@dataclass(frozen=True)
class FaultEngine:
    """The role itself. The files are patterns below the data directory; an engine without a log has none of `log_files`.

    `said_of_disk` finds in what a server logs the lines that say that the disk failed; a library logs nothing.
    """

    cuts: CutEngine
    log_files: tuple[str, ...]
    data_files: tuple[str, ...]
    said_of_disk: Callable[[str], tuple[str, ...]] = lambda _: ()

    @property
    def drivers(self) -> tuple[Driver, ...]:
        """What writer and oracle are compiled of."""
        return self.cuts.drivers


class BenchEngine(Protocol):
    """The role itself. `drivers` is one: the loops with this engine; `library` is what its version stands under in a record.

    `files` are those of a database in its directory, which go before a new one is made. `remedies` are, by what the library says of
    a failure, its code and what gives a way out.
    """

    drivers: tuple[Driver, ...]
    library: str
    files: tuple[str, ...]
    remedies: Mapping[str, tuple[str, str]]

    def opened(self, settings: Levels, dataset: Levels, *, synchronous: bool | None, fresh: bool) -> Levels:
        """What a test is told of the engine's settings, all of them, by the cell's and the dataset's.

        `synchronous` says what the test is called, None where it writes nothing; `fresh` whether it makes the database. What
        the driver's document says the engine answered must be the same.
        """


class PageNames(Protocol):
    """Known from the file's name and from what was written, and from what the engine itself calls its files."""

    def file_names(self, site: ServerSite, subject: Subject) -> Mapping[str, str]:  # noqa: ARG002 -- of a server's relations
        """What the engine calls its files on recovered data, by their paths below the data directory; of those that say it themselves none."""
        return {}

    def name(
        self, path: str, offset: int, data: bytes, file_names: Mapping[str, str], subject: Subject
    ) -> str | None:
        """Of `data`, which went to `offset` of the file at `path` below the data directory; None where there is no name.

        The settings of the `subject` say how large its pages are.
        """


class Reproduction(Protocol):
    """Of one engine. `needs` are the programs that its lines start, with their packages, for a reader."""

    needs: Sequence[str]

    def places(self, subject: Subject) -> Mapping[str, str]:  # noqa: ARG002 -- of engines that are found by one
        """Variables that name where the engine's programs are, which the lines may read, and their values on this machine.

        Whoever starts the script sets them; unset, the lines take what the search path has.
        """
        return {}

    def files(self, subject: Subject) -> Mapping[str, Path]:  # noqa: ARG002 -- of engines that need some
        """What the lines need besides, by the path in the bundle's folder `engine`."""
        return {}

    def lines(self, subject: Subject, account: Account) -> Sequence[str]:
        """The check, in the words of a POSIX shell; `account` made the files that were recorded."""


# Of the writer of native engines (drivers/power_cut.c): what its entries and accounts must be, from two files of hexadecimal lines.
ENTRIES_CHECK = Path(__file__).with_name("entries_check.py")


class LibraryReproduction(Reproduction):
    """Of a library: a program of its own writes the rows of both tables as hexadecimal lines, by the `dump`, and the check reads them."""

    def __init__(self, program: str, *dump: str) -> None:
        self.needs = (program, "python3, for a check of 80 lines that knows what was written")
        self._dump = dump

    def files(self, subject: Subject) -> Mapping[str, Path]:  # noqa: ARG002 -- the same for all
        """The check of what the writer wrote."""
        return {ENTRIES_CHECK.name: ENTRIES_CHECK}

    def lines(self, subject: Subject, account: Account) -> Sequence[str]:  # noqa: ARG002 -- of a server
        """The dump, then the rows of both tables."""
        return (
            *self._dump,
            'python3 /tmp/engine/entries_check.py "$own/entries" "$own/accounts" || cannot "python3 failed"',
        )
