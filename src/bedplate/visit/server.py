"""The server of a visit: made, started, read back; its end stands on the visit's stack of undoing."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.cluster import Cluster, effective_settings, read_back
from bedplate.errors import VisitFailed
from bedplate.host.cgroup import drop_page_cache

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bedplate.host.cgroup import Group
    from bedplate.host.command import Account, Commands
    from bedplate.host.ledger import Ledger
    from bedplate.model.visit import EngineBuild, ReadBack, VisitRequest
    from bedplate.visit.findings import Findings, Steps


@dataclass(frozen=True)
class ServerPlaces:
    """Where the server's files are: the data on the scratch device, the rest not."""

    data_directory: Path
    socket_directory: Path
    log: Path


@dataclass(frozen=True)
class StartedServer:
    """A server that accepts connections, and all its settings as it shows them."""

    cluster: Cluster
    settings: Mapping[str, str]


def start_server(
    request: VisitRequest,
    build: EngineBuild,
    *,
    places: ServerPlaces,
    account: Account,
    commands: Commands,
    ledger: Ledger,
    group: Group,
    undo: contextlib.ExitStack,
    steps: Steps,
    findings: Findings,
) -> StartedServer:
    """From initdb to a database for the workload; VisitFailed where a setting is not in force."""
    places.socket_directory.mkdir(mode=0o700)
    shutil.chown(places.socket_directory, account.uid, account.gid)
    cluster = Cluster(
        build=build,
        data_directory=places.data_directory,
        socket_directory=places.socket_directory,
        log=places.log,
        account=account,
        commands=commands,
        ledger=ledger,
        enter_group=group.enter,
    )
    with steps.step("initdb"):
        cluster.initialise(request.cell.cluster, request.cell.build)
        # This file system only: a sync of the whole machine would wait for other people's disks.
        commands.run(["sync", "--file-system", str(places.data_directory)], timeout_s=600)
    if request.cell.device.memory_bytes is not None:
        # Pages belong to the group that first touched them; initdb ran outside.
        drop_page_cache()
    with steps.step("server start"):
        undo.callback(cluster.kill)
        cluster.start()
        cluster.create_database()
    with steps.step("server read back"), cluster.session() as session:
        compared = read_back(cluster, session, request.cell.cluster, request.cell.build)
        findings.comparisons += compared
        settings = effective_settings(session)
    verify_server(compared)
    findings.versions["postgresql"] = settings.get("server_version", build.version)
    return StartedServer(cluster, settings)


def verify_server(comparisons: Sequence[ReadBack]) -> None:
    """VisitFailed with a reason for each setting that is not in force."""
    wrong = [item for item in comparisons if item.matches is False]
    if wrong:
        raise VisitFailed(
            "server read back",
            *(
                f"{item.name}: asked {item.asked}, in force is {item.effective} ({item.source})"
                for item in wrong
            ),
        )
