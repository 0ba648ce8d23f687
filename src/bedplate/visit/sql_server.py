"""A server that speaks SQL, as a workload needs it that runs on several: the role `sql` of an engine's folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bedplate import registry
from bedplate.errors import BedplateError

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.probe.protocol import Probe
    from bedplate.visit.engine_server import Server
    from bedplate.visit.piped_session import PipedSession
    from bedplate.visit.workload import VisitContext

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
        ...

    def settle(self, session: PipedSession) -> None:
        """After a load: what the server would do by itself some time later."""
        ...

    def checkpoint(self, session: PipedSession) -> None:
        """Write everything that is dirty, and wait."""
        ...

    def probe(self, session: PipedSession) -> Probe:
        """Its counters, over a session that stays open."""
        ...

    def sizes(self, session: PipedSession) -> SqlSizes:
        """As they are now."""
        ...


class SqlEngine(Protocol):
    """The role itself."""

    def of(self, server: Server) -> SqlServer:
        """A server of this engine's, as its role `server` made it."""
        ...


def sql_server_of(context: VisitContext) -> SqlServer:
    """That of a visit; BedplateError where it has none. The plan gives such workloads no visit without one."""
    engine = context.request.cell.build.engine
    if context.server is None:
        raise BedplateError(f"{context.dataset.workload} needs a server, and this visit has none")
    found: SqlEngine = registry.engine_part(engine, "sql")
    return found.of(context.server)
