"""MariaDB under power cuts: its clients and its oracle as the workload asks for them."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from bedplate.engines.mariadb import recorded
from bedplate.engines.mariadb.model import PAGE_SIZE
from bedplate.engines.mariadb.oracle import examine
from bedplate.engines.mariadb.server import DATABASE, TEMPORARY, MariadbInstance
from bedplate.engines.mariadb.settings import setting_name, setting_value
from bedplate.engines.mariadb.unpacked import CLIENT, SERVER, Programs
from bedplate.visit.cut_clients import CutClients, ServerWriter
from bedplate.visit.cut_engine import unplanned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from bedplate.host.command import Account
    from bedplate.visit.cut_engine import CutEngine, CutWriter, OracleAnswer, Recorded, Subject
    from bedplate.visit.engine_server import ServerSite
    from bedplate.visit.workload import Driver, VisitContext


class MariadbCuts:
    """A server of the cell's packages, CHECK TABLE and innochecksum."""

    rows = recorded.ACCOUNTS
    oracle = recorded.ORACLE
    may_link = False
    drivers: tuple[Driver, ...] = ()

    def writer(self, context: VisitContext, setup: Recorded, *, clients: int) -> CutWriter:
        """A new data directory with the accounts in it, checkpointed and synced."""
        server = MariadbInstance(setup.server_site())
        setup.undo.callback(server.kill)
        recorded.prepare(server, context.request.cell, clients=clients)
        settings = recorded.settings_of(server)
        own = CutClients(
            server.session,
            recorded.transaction,
            recorded.ACCOUNTS,
            # InnoDB's own are fuzzy and come when its log fills.
            checkpoint="SET GLOBAL innodb_log_checkpoint_now = ON",
            version=f"mariadb {server.programs.version}",
        )
        return ServerWriter(
            own,
            setup,
            clients=clients,
            facts=settings,
            bound_ms=recorded.bound_ms(settings),
            was_killed=lambda: server.was_killed,
        )

    def examine(self, site: ServerSite, subject: Subject, promised: Mapping[int, int]) -> OracleAnswer:
        """A server on the image, which listens beside it."""
        server = MariadbInstance(site)
        server.take_settings(recorded.recorded_settings(subject.settings))
        return examine(server, promised, rows=subject.rows)

    def refused_settings(self, subject: Subject) -> Sequence[str]:
        """By the rules of a plan, in which the page size is no setting."""
        settings = subject.settings
        own = {name: each for name, each in settings.items() if name != PAGE_SIZE}
        page = settings.get(PAGE_SIZE)
        no_size = () if page is None or isinstance(page, int) else (f"page size {page!r}: allowed are bytes",)
        return (*no_size, *unplanned(own, setting_name, setting_value))

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
                "--skip-slave-start",
            )
        )
        yield f"export {libraries.strip()}" if libraries else ":"
        yield f"{as_account} {shlex.quote(programs.path(SERVER))} --no-defaults {places} {asked} &"
        client = shlex.quote(programs.path(CLIENT))
        yield f"{as_account} {client} --no-defaults --socket=/tmp/bedplate.sock --user=root {DATABASE}"
        yield "kill $!; wait"


POWER_CUT: CutEngine = MariadbCuts()
