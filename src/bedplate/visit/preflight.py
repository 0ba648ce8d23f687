"""Everything that must hold before a visit touches the machine: all unmet needs at once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import RequirementMissing
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.account import server_account
from bedplate.host.cgroups.group import memory_limit_reasons
from bedplate.host.devices.journal_device import MEMORY_DIRECTORY, journal_refusal_reasons
from bedplate.host.devices.scratch_device import refusal_reasons
from bedplate.host.reachable import closed_folders, closed_sentences
from bedplate.host.recorder import DRIVER as RECORDER
from bedplate.host.recorder import recorder_reasons
from bedplate.host.requirement import look
from bedplate.model.visit import ReadBack
from bedplate.units import MIB, format_size
from bedplate.visit.engine_server import server_of
from bedplate.visit.workload import workload_for

if TYPE_CHECKING:
    from bedplate.host.command import Commands
    from bedplate.model.visit import VisitRequest
    from bedplate.visit.findings import Findings

# The server's processes, the clients and the kernel need this beside the shared buffers.
_MEMORY_FLOOR_BYTES = 256 * MIB


def unmet_needs(request: VisitRequest, commands: Commands) -> tuple[str, ...]:
    """One sentence for each thing that the machine lacks, whatever the cell; empty when the visit may begin."""
    reasons: list[str] = []
    if os.geteuid() != 0:
        reasons.append(
            "a visit formats and mounts, which needs root; start bedplate with sudo, as root, "
            'or in a guest (executor = "qemu")'
        )
    try:
        server_account()
    except RequirementMissing as error:
        reasons += error.reasons
    filesystem = filesystem_for(request.cell.filesystem.type)
    needs = (*filesystem.needs, *workload_for(request.dataset.workload).needs)
    reasons += [found.sentence for found in look(needs) if not found.found]
    reasons += _missing_files(request)
    reasons += closed_state(request)
    if RECORDER in request.native_drivers:
        reasons += recorder_reasons()
    # An emulated device stands in memory, and looks for room there when it starts.
    if request.cell.device.latency is None:
        reasons += refusal_reasons(
            request.scratch_device,
            commands,
            directory=Path(request.scratch_device.image_directory or request.state_directory),
        )
    reasons += _journal(request, commands)
    if not has_memory_of_a_guest(request):
        reasons += memory_limit_reasons(request.cell.device.memory_bytes)
    return tuple(reasons)


def has_memory_of_a_guest(request: VisitRequest) -> bool:
    """Whether this machine is a guest made as large as the cell's memory, which no limit adds to."""
    return request.provenance.get("memory") == "guest"


def closed_state(request: VisitRequest) -> list[str]:
    """What keeps a server from its own data, which is mounted below the state directory."""
    if server_of(request.cell.build.engine) is None:
        return []
    state = Path(request.state_directory)
    closed = closed_sentences(closed_folders(state), state)
    out = "set BEDPLATE_STATE to a folder that every account can reach, or open the folders with chmod o+x"
    return [*closed, out] if closed else []


def _missing_files(request: VisitRequest) -> list[str]:
    server, build = server_of(request.cell.build.engine), request.build
    programs = (
        [] if server is None or build is None else [Path(build.prefix, name) for name in server.programs]
    )
    wanted = [*programs, *(Path(path) for path in request.native_drivers.values())]
    return [
        f"{path} is not there; `bedplate setup` builds it, and the nodes of a cluster must see the same cache (BEDPLATE_CACHE)"
        for path in wanted
        if not os.access(path, os.X_OK)
    ]


def _journal(request: VisitRequest, commands: Commands) -> tuple[str, ...]:
    if request.cell.filesystem.journal != "external" or request.journal_device is None:
        return ()
    return journal_refusal_reasons(
        request.journal_device, request.scratch_device, commands, directory=MEMORY_DIRECTORY
    )


def unmet_by_the_cell(request: VisitRequest) -> tuple[str, ...]:
    """What this cell asks for and does not get here, while another may get all that it asks for."""
    reasons = []
    if request.cell.filesystem.journal == "external" and request.journal_device is None:
        reasons.append("journal = 'external', but the request names no device for the journal")
    limit = request.cell.device.memory_bytes
    if limit is None:
        return tuple(reasons)
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if limit > machine and not has_memory_of_a_guest(request):
        reasons.append(f"memory = {format_size(limit)}, but the machine has {format_size(machine)}")
    if limit < _MEMORY_FLOOR_BYTES:
        reasons.append(
            f"memory = {format_size(limit)} is less than the {format_size(_MEMORY_FLOOR_BYTES)} "
            "that a server needs beside its buffers"
        )
    return tuple(reasons)


def memory_limit(request: VisitRequest, findings: Findings) -> int | None:
    """The limit of the server's group; none in a guest that is as large as the cell's memory."""
    asked = request.cell.device.memory_bytes
    if asked is None or not has_memory_of_a_guest(request):
        return asked
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    findings.comparisons.append(
        # The kernel keeps a sliver for itself: about 40 MiB, and a fiftieth.
        ReadBack("device.memory_bytes", asked, there, "sysconf", 0.8 * asked <= there <= asked)
    )
    return None
