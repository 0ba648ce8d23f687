"""MariaDB for workloads that run on several servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from bedplate.engines.mariadb.counters import MariadbProbe
from bedplate.engines.mariadb.server import CLIENT_USER, DATABASE
from bedplate.visit.sql_server import MYSQL, SqlEndpoint, SqlSizes

if TYPE_CHECKING:
    from bedplate.engines.mariadb.server import MariadbInstance
    from bedplate.engines.mariadb.session import MariadbSession
    from bedplate.probe.protocol import Probe
    from bedplate.visit.engine_server import Server
    from bedplate.visit.piped_session import PipedSession
    from bedplate.visit.sql_server import SqlEngine, SqlServer

_LOG_FILES = "ib_logfile*"


class _MariadbForSql:
    """A server with its data directory."""

    def __init__(self, server: MariadbInstance) -> None:
        self._server = server
        self.endpoint = SqlEndpoint(MYSQL, server.socket, CLIENT_USER, DATABASE)

    def session(self) -> MariadbSession:
        return self._server.session()

    def settle(self, session: PipedSession) -> None:
        """What a load deleted or replaced is purged in the background; a load only adds."""

    def checkpoint(self, session: PipedSession) -> None:
        """InnoDB's own are fuzzy; this one writes every dirty page."""
        session.execute("SET GLOBAL innodb_log_checkpoint_now = ON")

    def probe(self, session: PipedSession) -> Probe:
        return MariadbProbe(cast("MariadbSession", session))

    def sizes(self, session: PipedSession) -> SqlSizes:
        """Tablespaces by their files: the server's own tables of sizes are estimates."""
        data = self._server.data_directory
        files = tuple((data / DATABASE).glob("*.ibd"))
        return SqlSizes(
            sum(path.stat().st_size for path in files),
            sum(path.stat().st_size for path in data.glob(_LOG_FILES)),
            int(session.value("SELECT @@innodb_page_size")),
            files,
        )


class MariadbSql:
    """The role."""

    def of(self, server: Server) -> SqlServer:
        """A server of this engine's."""
        return _MariadbForSql(cast("MariadbInstance", server))


SQL: SqlEngine = MariadbSql()
