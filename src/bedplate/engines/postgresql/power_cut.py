"""PostgreSQL under power cuts: its clients and its oracle as the workload asks for them."""

from __future__ import annotations

import shlex
from functools import partial
from typing import TYPE_CHECKING

from bedplate.engines.postgresql import recorded
from bedplate.engines.postgresql.cluster import OBEYED, Cluster, configuration_files, configuration_options
from bedplate.engines.postgresql.configuring.settings import (
    configuration_text,
    setting_name,
    setting_value,
)
from bedplate.engines.postgresql.configuring.settings import refused_settings as refused_values
from bedplate.engines.postgresql.oracle import examine
from bedplate.engines.postgresql.recorded import START_OPTIONS
from bedplate.visit.cut_clients import CutClients, ServerWriter
from bedplate.visit.cut_engine import unplanned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from bedplate.host.command import Account
    from bedplate.visit.cut_engine import CutEngine, CutWriter, OracleAnswer, Recorded, Subject
    from bedplate.visit.engine_server import ServerSite
    from bedplate.visit.workload import Driver, VisitContext


class PostgresqlCuts:
    """A server of the cell's build, and amcheck."""

    rows = recorded.ACCOUNTS
    oracle = recorded.ORACLE
    may_link = False
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
        cluster = Cluster(site)
        cluster.configure_apart(recorded.levels_of(subject))
        return examine(cluster, promised, rows=subject.rows, oracle=subject.oracle)

    def refused_settings(self, subject: Subject) -> Sequence[str]:
        """By the rules of a plan."""
        settings, text = subject.settings, subject.configuration
        libraries = refused_values({name: (str(each),) for name, each in settings.items()})
        return (*unplanned(settings, setting_name, setting_value), *libraries, *_refused_text(text or ""))

    def by_hand(self, subject: Subject, data: Path, account: Account, as_account: str) -> Iterator[str]:
        """A server in the background, psql, and its end."""
        programs = "" if subject.build is None else f"{subject.build.prefix}/bin/"
        folder = data.parent.parent / "configuration"
        own = shlex.quote(str(folder))
        yield f"(cd {shlex.quote(str(data))} && rm -f {shlex.join(OBEYED)})   # what a server obeys there; the image may be a stranger's"
        yield f"mkdir -p {own}"
        for name, text in configuration_files(recorded.levels_of(subject), "/tmp").items():  # noqa: S108 -- of whoever types it
            yield f"printf %s {shlex.quote(text)} > {own}/{name}"
        server = shlex.quote(f"{programs}postgres")
        settings = shlex.join((*START_OPTIONS, *configuration_options(folder)))
        yield f"{as_account} {server} -D {shlex.quote(str(data))} {settings} &"
        yield f"{as_account} {shlex.quote(f'{programs}psql')} -h /tmp -U {shlex.quote(account.name)} bedplate"
        yield "kill -INT $!; wait"


def _refused_text(text: str) -> Iterator[str]:
    try:
        configuration_text(text)
    except ValueError as error:
        yield f"configuration: {error}"


POWER_CUT: CutEngine = PostgresqlCuts()
