"""PostgreSQL for workloads that run on several servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from bedplate.engines.postgresql.cluster import CLIENT, DATABASE
from bedplate.engines.postgresql.counters import PostgresqlProbe
from bedplate.visit.sql_server import PGSQL, SqlEndpoint, SqlSizes

if TYPE_CHECKING:
    from bedplate.engines.postgresql.cluster import Cluster
    from bedplate.engines.postgresql.session import Session
    from bedplate.probe.protocol import Probe
    from bedplate.visit.engine_server import Server
    from bedplate.visit.piped_session import PipedSession
    from bedplate.visit.sql_server import SqlEngine, SqlServer


class _PostgresqlForSql:
    """A cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
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


class PostgresqlSql:
    """The role."""

    def of(self, server: Server) -> SqlServer:
        """A cluster of this engine's."""
        return _PostgresqlForSql(cast("Cluster", server))


SQL: SqlEngine = PostgresqlSql()
