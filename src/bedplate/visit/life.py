"""The life of a visit, from preflight to clean-up: the order of the steps, and undoing them.

Every step that takes something of the machine leaves its undoing on a stack, so that whatever
happens, everything is given back in reverse. What even that cannot undo (SIGKILL) stands in the
ledger, and the next start gives it back.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate import __version__
from bedplate.errors import BedplateError, MachineUnfit, VisitFailed
from bedplate.host.command import Commands
from bedplate.host.devices.block_tree import BlockTree
from bedplate.host.interruption import held
from bedplate.host.kernel_log import KernelLog, messages_of_ours
from bedplate.host.ledger import Ledger
from bedplate.host.room import full_places
from bedplate.model.reason import reasons_of
from bedplate.model.visit import FORMAT_VERSION, Outcome, VisitRecord, VisitRequest
from bedplate.visit.findings import Findings, Steps
from bedplate.visit.preflight import unmet_by_the_cell, unmet_needs
from bedplate.visit.setup import VisitSetup
from bedplate.visit.workload import workload_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bedplate.model.levels import Scalar
    from bedplate.model.reason import Reason


def live(
    request: VisitRequest,
    directory: Path,
    *,
    executor: str,
    emit: Callable[[Mapping[str, Scalar]], None],
) -> VisitRecord:
    """Live through one visit and return its record; raises only what must not be recorded.

    That is a signal, and MachineUnfit: what no other visit would find otherwise.
    """
    (directory / "logs").mkdir(exist_ok=True)
    (directory / "runs").mkdir(exist_ok=True)
    commands = Commands()
    steps = Steps(emit)
    findings = Findings()
    started_wall_s, started = time.time(), time.monotonic()
    kernel_log, io_before = KernelLog(), BlockTree().io_counts()
    failed_step: str | None = None
    reasons: tuple[Reason, ...] = ()
    try:
        _live(request, directory, commands=commands, steps=steps, findings=findings, emit=emit)
    except VisitFailed as error:
        _demand_room(directory, Path(request.state_directory), error)
        failed_step, reasons = error.step, reasons_of(error)
    messages = kernel_log.messages()
    kernel_log.close()
    _write_logs(directory, commands, messages)
    failed = failed_step is not None or bool(findings.run_problems)
    return VisitRecord(
        format_version=FORMAT_VERSION,
        key=request.key,
        cell=request.cell,
        dataset=request.dataset,
        outcome=Outcome.FAILED if failed else Outcome.COMPLETED,
        reasons=(*reasons, *findings.run_problems),
        failed_step=failed_step or ("runs" if findings.run_problems else None),
        started_wall_s=started_wall_s,
        seconds=time.monotonic() - started,
        boot_id=Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        executor=executor,
        comparisons=tuple(findings.comparisons),
        effective_digest=findings.effective_digest,
        flush_counts=findings.flush_counts,
        durability=findings.durability,
        device_facts=findings.device_facts,
        sizes=findings.sizes,
        free_space=tuple(findings.free_space),
        timings=tuple(steps.timings),
        versions={
            "bedplate": __version__,
            "kernel": os.uname().release,
            **findings.versions,
            **findings.tool_versions,
        },
        kernel_messages=_charged(messages or (), findings, io_before, request, directory),
        filesystem_check=findings.filesystem_check,
        filesystem_check_outcome=findings.filesystem_check_outcome,
        commands=tuple(commands.record),
        runs=tuple(findings.runs),
        build_digest=None if request.build is None else request.build.digest,
        provenance={
            **request.provenance,
            "executor": executor,
            "kernel": os.uname().release,
            "build": request.cell.build.engine if request.build is None else request.build.digest,
            "protocol": workload_for(request.dataset.workload).protocol,
            **_tools(findings),
        },
    )


def _demand_room(directory: Path, state: Path, failure: VisitFailed) -> None:
    """MachineUnfit if bedplate's own disks are full: then the visit failed for that, whatever it says."""
    full = full_places(directory, state)
    if full:
        raise MachineUnfit(*full, *(f"{failure.step}: {reason}" for reason in failure.reasons)) from failure


def _live(
    request: VisitRequest,
    directory: Path,
    *,
    commands: Commands,
    steps: Steps,
    findings: Findings,
    emit: Callable[[Mapping[str, Scalar]], None],
) -> None:
    with steps.step("preflight"):
        needs = unmet_needs(request, commands)
        of_cell = unmet_by_the_cell(request)
        if needs:
            raise MachineUnfit(*needs, *of_cell)
        if of_cell:
            raise VisitFailed("preflight", *of_cell)
    state = Path(request.state_directory)
    owner = f"{os.getpid()}-{request.key.cell[-8:]}-{request.key.repetition}.{request.key.attempt}"
    ledger: Ledger | None = None
    setup: VisitSetup | None = None
    problems: tuple[str, ...] = ()
    try:
        with held():
            ledger = Ledger.open(state, owner)
        setup = VisitSetup(
            request,
            directory,
            commands=commands,
            ledger=ledger,
            steps=steps,
            findings=findings,
            emit=emit,
        )
        setup.measure()
    finally:
        # Also on a signal; one that comes only now waits. First in order, then whatever the ledger still lists. It tries
        # again what could not be given back here, and has the last word on why.
        with held():
            if setup is not None:
                with contextlib.suppress(BedplateError, OSError):
                    setup.leave()
            if ledger is not None:
                problems = ledger.release(commands)
                ledger.close()
            # An abandoned visit has no record to say so.
            print(*problems, sep="\n", end="\n" if problems else "", file=sys.stderr)
    if problems:
        raise VisitFailed("clean-up", *problems)


def _tools(findings: Findings) -> Mapping[str, str]:
    """What did the work, for the record of what may be compared; nothing where no run came so far."""
    words = ", ".join(f"{name} {version}" for name, version in sorted(findings.tool_versions.items()))
    return {"tools": words} if words else {}


def _charged(
    messages: tuple[str, ...],
    findings: Findings,
    io_before: Mapping[str, int],
    request: VisitRequest,
    directory: Path,
) -> tuple[str, ...]:
    """The kernel's messages that this visit has to answer for."""
    tree = BlockTree()
    counts = tree.io_counts()
    places = (
        directory,
        Path(request.state_directory),
        Path(request.scratch_device.image_directory or directory),
    )
    # Its own devices, and the disks below its files and below the running system.
    ours = {tree.whole(name) for name in (*findings.device_names, *tree.under(*places), *tree.under_root())}
    used = {name for name, count in counts.items() if count > io_before.get(name, 0)}
    return messages_of_ours(
        messages, findings.device_names, devices=tree.names(), others_in_use=bool(used - ours)
    )


def _write_logs(directory: Path, commands: Commands, messages: tuple[str, ...] | None) -> None:
    logs = directory / "logs"
    (logs / "commands.txt").write_text(
        "".join(" ".join(argv) + "\n" for argv in commands.record), encoding="utf-8"
    )
    said = "(the kernel log may not be read)\n" if messages is None else "".join(f"{m}\n" for m in messages)
    (logs / "kernel.log").write_text(said, encoding="utf-8")
