"""What is asked of an engine whose power is cut: a writer that is recorded, and an oracle for what a cut leaves.

The role stands in the engine's file `power_cut`. What the writer leaves must add up: an oracle has to know from it alone
which transactions of which client are there, and that nothing else is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bedplate.host.command import Account  # noqa: TC001 -- the codec asks for the types of a record's fields
from bedplate.model.levels import Levels  # noqa: TC001 -- the codec asks for the types of a record's fields
from bedplate.model.visit import EngineBuild  # noqa: TC001 -- the codec asks for the types of a record's fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager, ExitStack
    from pathlib import Path

    from bedplate.model.levels import Scalar
    from bedplate.visit.engine_server import ServerSite
    from bedplate.visit.workload import Driver, VisitContext

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
        ...

    def mark(self, text: str) -> None:
        """Put a mark of the recording's own into the log."""
        ...

    def mark_count(self) -> int:
        """How many marks the log has."""
        ...

    def settle(self) -> None:
        """Write back what is dirty, and wait."""
        ...

    def pace(self, duration_s: float) -> Callable[[], float]:
        """From now on: how long a client waits before its next transaction, so that the log lasts."""
        ...

    def log_for_clients_bytes(self) -> int:
        """How large the log may become by them."""
        ...

    def is_log_nearly_full(self) -> bool:
        """Whether they have to end."""
        ...


class Checkpoints(Protocol):
    """Somebody beside the clients who makes the engine checkpoint."""

    def checkpoint(self) -> None:
        """Now, and wait for it."""
        ...

    def abandon(self) -> None:
        """From another thread: end what it waits for."""
        ...


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
        ...

    def checkpoints(self) -> AbstractContextManager[Checkpoints] | None:
        """While clients write; None of an engine that has none."""
        ...

    def drive(
        self, output: Path, *, duration_s: float, seed: int, beside: AbstractContextManager[object]
    ) -> Driven:
        """The clients, between the marks; `beside` is entered while they write, `output` begins the names of what they say.

        They end before their time where the log is nearly full. The engine is not stopped.
        """
        ...


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
        ...

    def writer(self, context: VisitContext, setup: Recorded, *, clients: int) -> CutWriter:
        """From an empty directory to where clients can begin; what it started stands on `setup.undo`."""
        ...

    def examine(self, site: ServerSite, subject: Subject, promised: Mapping[int, int]) -> OracleAnswer:
        """Start the engine on what a cut left, and compare with the last acknowledged transaction of each client.

        OSError for what the file system answers; BedplateError where the engine could not be asked at all.
        """
        ...

    def refused_settings(self, subject: Subject) -> Sequence[str]:
        """Why settings of a stored recording are none that a plan may have.

        The study may be a stranger's: `examine` and `by_hand` would start a server with them. None of an engine whose programs are
        started without any.
        """
        ...

    def by_hand(self, subject: Subject, data: Path, account: Account, as_account: str) -> Iterator[str]:
        """Shell lines for root that look into the same data; `as_account` begins a command of `account`."""
        ...


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
