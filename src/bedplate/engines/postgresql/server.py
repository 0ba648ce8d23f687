"""PostgreSQL's server, as a visit asks for it, and as the workloads that speak SQL do."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from bedplate.engines.postgresql.cluster import Cluster
from bedplate.errors import BedplateError

if TYPE_CHECKING:
    from bedplate.visit.engine_server import EngineServer, Server, ServerSite
    from bedplate.visit.workload import VisitContext


class PostgresqlServer:
    """A cluster of the cell's build."""

    making = "initdb"
    programs: tuple[str, ...] = ("bin/postgres", "bin/initdb", "bin/pgbench", "bin/psql")

    def at(self, site: ServerSite) -> Server:
        """A cluster there."""
        return Cluster(site)


def cluster_of(context: VisitContext) -> Cluster:
    """The visit's server, for workloads of PostgreSQL; the plan gives them no visit without it."""
    if context.server is None:
        raise BedplateError(f"{context.dataset.workload} needs a server, and this visit has none")
    return cast("Cluster", context.server)


SERVER: EngineServer = PostgresqlServer()
