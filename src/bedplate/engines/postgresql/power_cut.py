"""PostgreSQL under power cuts: its clients and its oracle as the workload asks for them."""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bedplate.engines.postgresql import oracle, recorded
from bedplate.engines.postgresql.cluster import Cluster
from bedplate.visit.cut_clients import CutClients, drive_recorded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from bedplate.engines.postgresql.session import Session
    from bedplate.host.command import Account
    from bedplate.model.levels import Scalar
    from bedplate.visit.cut_engine import CutEngine, CutWriter, Driven, OracleAnswer, Recorded, Subject
    from bedplate.visit.engine_server import ServerSite
    from bedplate.visit.workload import Driver, VisitContext


class PostgresqlCuts:
    """A server of the cell's build, and amcheck."""

    rows = recorded.ACCOUNTS
    oracle = recorded.ORACLE
    drivers: tuple[Driver, ...] = ()

    def writer(self, context: VisitContext, recorded: Recorded, *, clients: int) -> CutWriter:
        """A new cluster with the accounts in it, checkpointed and synced."""
        return _Writer(context, recorded, clients)

    def examine(self, site: ServerSite, subject: Subject, promised: Mapping[int, int]) -> OracleAnswer:
        """A server on the image, which listens beside it."""
        options = ("-c", f"unix_socket_directories={site.socket_directory}")
        return oracle.examine(
            Cluster(site), promised, rows=subject.rows, oracle=subject.oracle, start_options=options
        )

    def by_hand(self, subject: Subject, data: Path, account: Account, as_account: str) -> Iterator[str]:
        """A server in the background, psql, and its end."""
        programs = "" if subject.build is None else f"{subject.build.prefix}/bin/"
        pid_file = shlex.quote(str(data / "postmaster.pid"))
        yield f"rm -f {pid_file}   # a process before the cut, which may be another's number now"
        server = shlex.quote(f"{programs}postgres")
        settings = "-c unix_socket_directories=/tmp -c dynamic_shared_memory_type=mmap"
        yield f"{as_account} {server} -D {shlex.quote(str(data))} {settings} &"
        yield f"{as_account} {shlex.quote(f'{programs}psql')} -h /tmp -U {account.name} bedplate"
        yield "kill -INT $!; wait"


class _Writer:
    """A started cluster and its clients."""

    bound_transactions: int | None = None

    def __init__(self, context: VisitContext, setup: Recorded, clients: int) -> None:
        self._setup = setup
        self._clients = clients
        self._cluster = Cluster(setup.server_site())
        setup.undo.callback(self._cluster.kill)
        recorded.prepare(self._cluster, context.request.cell, clients=clients)
        settings = recorded.settings_of(self._cluster)
        self.facts: Mapping[str, Scalar] = settings
        self.bound_ms = recorded.bound_ms(settings)
        setup.settle()

    def checkpoints(self) -> AbstractContextManager[_Checkpoints] | None:
        return _checkpoints(self._cluster)

    def drive(
        self,
        output: Path,  # noqa: ARG002 -- its clients are threads
        *,
        duration_s: float,
        seed: int,
        beside: AbstractContextManager[object],
    ) -> Driven:
        clients = CutClients(
            self._cluster.session,
            recorded.transaction,
            recorded.ACCOUNTS,
            f"postgresql {self._cluster.build.version}",
        )
        return drive_recorded(
            clients, self._setup, clients=self._clients, duration_s=duration_s, seed=seed, beside=beside
        )


class _Checkpoints:
    def __init__(self, session: Session) -> None:
        self._session = session
        self.abandon = session.abandon

    def checkpoint(self) -> None:
        self._session.execute("CHECKPOINT")


@contextmanager
def _checkpoints(cluster: Cluster) -> Iterator[_Checkpoints]:
    with cluster.session() as session:
        yield _Checkpoints(session)


POWER_CUT: CutEngine = PostgresqlCuts()
