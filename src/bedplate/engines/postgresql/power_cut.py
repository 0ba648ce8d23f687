"""PostgreSQL under power cuts: its clients and its oracle as the workload asks for them."""

from __future__ import annotations

import shlex
from functools import partial
from typing import TYPE_CHECKING

from bedplate.engines.postgresql import oracle, recorded
from bedplate.engines.postgresql.cluster import Cluster
from bedplate.engines.postgresql.configuring.settings import refused_settings as refused_values
from bedplate.engines.postgresql.configuring.settings import setting_name, setting_value
from bedplate.visit.cut_clients import CutClients, ServerWriter
from bedplate.visit.cut_engine import unplanned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from bedplate.host.command import Account
    from bedplate.model.levels import Levels
    from bedplate.visit.cut_engine import CutEngine, CutWriter, OracleAnswer, Recorded, Subject
    from bedplate.visit.engine_server import ServerSite
    from bedplate.visit.workload import Driver, VisitContext


class PostgresqlCuts:
    """A server of the cell's build, and amcheck."""

    rows = recorded.ACCOUNTS
    oracle = recorded.ORACLE
    drivers: tuple[Driver, ...] = ()

    def writer(self, context: VisitContext, setup: Recorded, *, clients: int) -> CutWriter:
        """A new cluster with the accounts in it, checkpointed and synced."""
        server = Cluster(setup.server_site())
        setup.undo.callback(server.kill)
        recorded.prepare(server, context.request.cell, clients=clients)
        settings = recorded.settings_of(server)
        own = CutClients(
            server.session,
            lambda *which: (recorded.transaction(*which),),
            recorded.ACCOUNTS,
            checkpoint="CHECKPOINT",
            version=f"postgresql {server.build.version}",
        )
        return ServerWriter(
            own,
            setup,
            clients=clients,
            facts=settings,
            bound_ms=recorded.bound_ms(settings),
            was_killed=lambda: server.was_killed,
            counters=partial(recorded.counters_of, server),
        )

    def examine(self, site: ServerSite, subject: Subject, promised: Mapping[int, int]) -> OracleAnswer:
        """A server on the image, which listens beside it."""
        options = ("-c", f"unix_socket_directories={site.socket_directory}")
        return oracle.examine(
            Cluster(site), promised, rows=subject.rows, oracle=subject.oracle, start_options=options
        )

    def refused_settings(self, settings: Levels) -> Sequence[str]:
        """By the rules of a plan."""
        libraries = refused_values({name: (str(each),) for name, each in settings.items()})
        return (*unplanned(settings, setting_name, setting_value), *libraries)

    def by_hand(self, subject: Subject, data: Path, account: Account, as_account: str) -> Iterator[str]:
        """A server in the background, psql, and its end."""
        programs = "" if subject.build is None else f"{subject.build.prefix}/bin/"
        pid_file = shlex.quote(str(data / "postmaster.pid"))
        yield f"rm -f {pid_file}   # a process before the cut, which may be another's number now"
        server = shlex.quote(f"{programs}postgres")
        settings = "-c unix_socket_directories=/tmp -c dynamic_shared_memory_type=mmap"
        yield f"{as_account} {server} -D {shlex.quote(str(data))} {settings} &"
        yield f"{as_account} {shlex.quote(f'{programs}psql')} -h /tmp -U {shlex.quote(account.name)} bedplate"
        yield "kill -INT $!; wait"


POWER_CUT: CutEngine = PostgresqlCuts()
