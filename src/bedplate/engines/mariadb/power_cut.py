"""MariaDB under power cuts: its clients and its oracle as the workload asks for them."""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bedplate.engines.mariadb import oracle, recorded
from bedplate.engines.mariadb.server import DATABASE, TEMPORARY, MariadbInstance
from bedplate.engines.mariadb.unpacked import CLIENT, SERVER, Programs
from bedplate.visit.cut_clients import CutClients, drive_recorded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from bedplate.engines.mariadb.session import MariadbSession
    from bedplate.host.command import Account
    from bedplate.model.levels import Scalar
    from bedplate.visit.cut_engine import CutEngine, CutWriter, Driven, OracleAnswer, Recorded, Subject
    from bedplate.visit.engine_server import ServerSite
    from bedplate.visit.workload import Driver, VisitContext


class MariadbCuts:
    """A server of the cell's packages, CHECK TABLE and innochecksum."""

    rows = recorded.ACCOUNTS
    oracle = recorded.ORACLE
    drivers: tuple[Driver, ...] = ()

    def writer(self, context: VisitContext, recorded: Recorded, *, clients: int) -> CutWriter:
        """A new data directory with the accounts in it, checkpointed and synced."""
        return _MariadbWriter(context, recorded, clients)

    def examine(self, site: ServerSite, subject: Subject, promised: Mapping[int, int]) -> OracleAnswer:
        """A server on the image, which listens beside it."""
        server = MariadbInstance(site)
        server.take_settings(recorded.recorded_settings(subject.settings))
        return oracle.examine(server, promised, rows=subject.rows)

    def by_hand(self, subject: Subject, data: Path, account: Account, as_account: str) -> Iterator[str]:  # noqa: ARG002 -- root of the server is asked
        """A server in the background, its client, and its end."""
        programs = Programs(subject.build)
        libraries = "".join(f"{name}={shlex.quote(value)} " for name, value in programs.environment.items())
        settings = recorded.recorded_settings(subject.settings)
        asked = " ".join(shlex.quote(f"--{name}={value}") for name, value in settings.items())
        places = shlex.join(
            (
                f"--basedir={programs.prefix}",
                f"--datadir={data}",
                f"--tmpdir={data / TEMPORARY}",
                "--socket=/tmp/bedplate.sock",
                "--skip-networking",
            )
        )
        yield f"export {libraries.strip()}" if libraries else ":"
        yield f"{as_account} {shlex.quote(programs.path(SERVER))} --no-defaults {places} {asked} &"
        client = shlex.quote(programs.path(CLIENT))
        yield f"{as_account} {client} --no-defaults --socket=/tmp/bedplate.sock --user=root {DATABASE}"
        yield "kill $!; wait"


class _MariadbWriter:
    """A started server and its clients."""

    bound_transactions: int | None = None

    def __init__(self, context: VisitContext, setup: Recorded, clients: int) -> None:
        self._setup = setup
        self._clients = clients
        self._server = MariadbInstance(setup.server_site())
        setup.undo.callback(self._server.kill)
        recorded.prepare(self._server, context.request.cell, clients=clients)
        settings = recorded.settings_of(self._server)
        self.facts: Mapping[str, Scalar] = settings
        self.bound_ms = recorded.bound_ms(settings)
        setup.settle()

    def checkpoints(self) -> AbstractContextManager[_SharpCheckpoints] | None:
        return _sharp_checkpoints(self._server)

    def drive(
        self,
        output: Path,  # noqa: ARG002 -- its clients are threads
        *,
        duration_s: float,
        seed: int,
        beside: AbstractContextManager[object],
    ) -> Driven:
        clients = CutClients(
            self._server.session,
            recorded.transaction,
            recorded.ACCOUNTS,
            f"mariadb {self._server.programs.version}",
        )
        return drive_recorded(
            clients, self._setup, clients=self._clients, duration_s=duration_s, seed=seed, beside=beside
        )


class _SharpCheckpoints:
    """InnoDB's own are fuzzy and come when its log fills; these write every dirty page at once."""

    def __init__(self, session: MariadbSession) -> None:
        self._session = session
        self.abandon = session.abandon

    def checkpoint(self) -> None:
        self._session.execute("SET GLOBAL innodb_log_checkpoint_now = ON")


@contextmanager
def _sharp_checkpoints(server: MariadbInstance) -> Iterator[_SharpCheckpoints]:
    with server.session() as session:
        yield _SharpCheckpoints(session)


POWER_CUT: CutEngine = MariadbCuts()
