"""The server of a visit: made, started, read back; its end stands on the visit's stack of undoing."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bedplate.errors import VisitFailed
from bedplate.host.cgroups.group import drop_page_cache
from bedplate.host.pages.page_cache import read_into_cache
from bedplate.model.reason import (
    FILE_SYSTEM_SILENT,
    SCRATCH_DEVICE_FULL,
    because,
    distinct,
    is_given,
    reasons_of,
)
from bedplate.units import MIB
from bedplate.visit.engine_server import InForce, ServerFailed, server_of

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Sequence
    from pathlib import Path

    from bedplate.host.cgroups.group import Group
    from bedplate.host.pages.page_cache import CachedFile
    from bedplate.model.reason import Reason
    from bedplate.model.visit import ReadBack, VisitRequest
    from bedplate.visit.engine_server import KeptServerData, Server, ServerSite
    from bedplate.visit.findings import Findings, Steps
    from bedplate.visit.untorn_writes import UntornWrites
    from bedplate.visit.workload import VisitContext

READ_STEP = "read in"
# File systems refuse to give out their last few megabytes.
_FULL_BELOW_BYTES = 16 * MIB
_FULL = because(
    SCRATCH_DEVICE_FULL,
    "the scratch device is full: no space left; a smaller scale, a smaller max_wal_size or a larger "
    "image_size gives it room",
)


@dataclass(frozen=True)
class StartedServer:
    """A server that accepts connections, None without one, and what it says of itself."""

    server: Server | None = None
    in_force: InForce = field(default_factory=InForce)


def start_server(
    request: VisitRequest,
    site: ServerSite,
    *,
    undo: contextlib.ExitStack,
    steps: Steps,
    findings: Findings,
    kept: KeptServerData | None = None,
) -> StartedServer:
    """From nothing to a database for the workload, if the engine has a server; VisitFailed where a setting is not in force.

    With `kept` data the directory has its database already, and gets a configuration alone.
    """
    cell = request.cell
    engine = server_of(cell.build.engine)
    if engine is None:
        return StartedServer()
    site.socket_directory.mkdir(mode=0o700)
    shutil.chown(site.socket_directory, site.account.uid, site.account.gid)
    with steps.step(engine.making if kept is None else "configure"):
        server = engine.at(site)
        if kept is None:
            server.initialise(cell)
        else:
            kept.configure(server, cell)
        # This file system only: a sync of the whole machine would wait for other people's disks.
        site.commands.run(["sync", "--file-system", str(site.data_directory)], timeout_s=600)
    if cell.device.memory_bytes is not None:
        # Pages belong to the group that first touched them; it was made outside.
        drop_page_cache()
    with steps.step("server start"):
        undo.callback(server.kill)
        server.start()
        if kept is None:
            server.create_database()
    with steps.step("server read back"):
        in_force = server.in_force(cell)
        findings.comparisons += in_force.comparisons
    verify_server(in_force.comparisons)
    findings.versions.update(in_force.versions)
    return StartedServer(server, in_force)


def end_server(server: Server | None, findings: Findings, untorn: UntornWrites | None) -> None:
    """Stop it in order, or at once where it can no longer end so; what its end tells becomes a problem of the runs."""
    if server is None:
        return
    if is_given(SCRATCH_DEVICE_FULL, findings.run_problems) or server.has_crashed:
        # Without room a server can neither make its closing checkpoint nor end the recovery after a
        # crash, and a fast shutdown within that recovery was seen to wait for ever (PostgreSQL 18).
        server.kill()
        if not findings.run_problems:
            words = f"a process of the server crashed during the visit, and was started again: {server.last_words()}"
            findings.run_problems.append(because("server-process-crashed", words))
    else:
        server.stop()
    refusal = None if untorn is None else untorn.refusal()
    if refusal is not None:
        findings.run_problems.append(refusal)


def end_to_be_kept(server: Server | None, kept: KeptServerData | None) -> None:
    """Stop it in order, and leave nothing of its configuration with its data. ValueError of an engine whose data nobody keeps."""
    if server is None or kept is None:
        raise ValueError("there is no server to be kept")
    server.stop()
    kept.take_configuration_out(server)


def read_in(directory: Path, files: tuple[CachedFile, ...], group: Group) -> None:
    """Put what a load had left of the database's files into the page cache, as the server's group. VisitFailed where they cannot be read."""
    try:
        read_into_cache(directory, files, group.enter)
    except OSError as error:
        words = f"what a load leaves in the page cache could not be read from {directory}: {error}"
        raise VisitFailed(READ_STEP, because("not-read-in", words)) from error


def verify_server(comparisons: Sequence[ReadBack]) -> None:
    """VisitFailed with a reason for each setting that is not in force."""
    wrong = [item for item in comparisons if item.matches is False]
    if wrong:
        raise VisitFailed(
            "server read back",
            *(
                f"{item.name}: asked {item.asked}, effective is {item.effective} ({item.source})"
                for item in wrong
            ),
        )


def why_the_server_is_gone(context: VisitContext) -> tuple[Reason, ...]:
    """The server's last words, and the full file system behind many of them; empty if all is well."""
    found: list[Reason] = []
    server = context.server
    if server is not None:
        if server.lacks_room:
            found.append(_FULL)
        try:
            server.check_alive()
        except ServerFailed as error:
            found.extend(reasons_of(error))
    return distinct((*found, *lacking_room(context.mount_point, _FULL)))


def lacking_room(mount_point: Path, full: Reason) -> tuple[Reason, ...]:
    """`full` where a file system has no room left; that it does not answer, where it does not."""
    try:
        space = os.statvfs(mount_point)
    except OSError as error:
        words = f"the file system at {mount_point} does not answer: {error.strerror}"
        return (because(FILE_SYSTEM_SILENT, words),)
    return (full,) if space.f_bavail * space.f_frsize < _FULL_BELOW_BYTES else ()
