"""The server of an engine: the role `server` of its folder. An engine that a workload opens by itself has no such file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from bedplate import registry
from bedplate.errors import BedplateError
from bedplate.model.kept_dataset import KeptData

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from bedplate.host.command import Account, Commands
    from bedplate.host.ledger import Holdings
    from bedplate.model.cell import Cell
    from bedplate.model.visit import EngineBuild, ReadBack


class ServerFailed(BedplateError):
    """The server did not start, or died."""

    code = "server-failed"


@dataclass(frozen=True)
class ServerSite:
    """What a server runs on: the data on the scratch device, the rest not. `enter_group` runs in it before its program.

    `environment` is of every process of the server, beside what its engine gives it. It writes to its own folders, and to what is `writable`;
    of folders that are hidden from it `readable` are left (`host/shut_in/restriction.py`).
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


@dataclass(frozen=True)
class InForce:
    """What a running server says of itself: its settings as it shows them, what was asked beside what is, versions."""

    settings: Mapping[str, str] = field(default_factory=dict)
    comparisons: Sequence[ReadBack] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


class Server(Protocol):
    """One data directory and its server. Whatever ends it must leave nothing that the ledger does not know."""

    def initialise(self, cell: Cell) -> None:
        """Make the data directory and its configuration; not yet synced."""
        ...

    def start(self) -> None:
        """Start it and wait until it takes connections; ServerFailed with its words if it does not."""
        ...

    def create_database(self) -> None:
        """An empty database for the workload, and the role that owns it."""
        ...

    def in_force(self, cell: Cell) -> InForce:
        """Asked of the running server and of its files."""
        ...

    def check_alive(self) -> None:
        """ServerFailed with its last words if it is gone."""
        ...

    @property
    def has_crashed(self) -> bool:
        """Whether a process of it crashed: it then recovers, and has taken every session down."""
        ...

    @property
    def lacks_room(self) -> bool:
        """Whether its last words say that the disk is full."""
        ...

    def last_words(self) -> str:
        """The end of its log."""
        ...

    def stop(self) -> int | None:
        """End it with all that it closes with, and its status. One that does not end is killed, and ServerFailed."""
        ...

    def kill(self) -> None:
        """End it at once; safe at any moment, and twice."""
        ...


class EngineServer(Protocol):
    """The role itself. `making` is what the step is called that makes the data directory, `programs` are paths below the build's prefix."""

    making: str
    programs: tuple[str, ...]

    def at(self, site: ServerSite) -> Server:
        """A server there, neither made nor started."""
        ...


def server_of(engine: str) -> EngineServer | None:
    """That of an engine, None where it has none; PlanError lists the known engines."""
    server: EngineServer | None = registry.engine_part_or_none(engine, "server")
    return server


class KeptServerData(KeptData, Protocol):
    """The role `kept_data` of an engine with a server."""

    def take_configuration_out(self, server: Server) -> None:
        """Before it is kept: what this cell configured leaves the data directory, whose server was stopped."""
        ...

    def configure(self, server: Server, cell: Cell) -> None:
        """After it was restored: the data directory gets the configuration of a cell."""
        ...


def kept_server_data(engine: str) -> KeptServerData:
    """That of an engine; the plan restores nothing of one without."""
    found: KeptServerData = registry.engine_part(engine, "kept_data")
    return found
