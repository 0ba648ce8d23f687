"""`bedplate run-visit-on-node`: what a job does as root. One visit, the node's facts, or a clean-up.

Standard library only. Begun by the job's payload, through sudo where the job is not root. Before a visit it
takes the scratch device for itself and waits for whoever has it: the visit of a lost job may outlive its job
on a node, and two on one device would measure, and erase, each other. Then it gives back what a killed one
left. It ends with the payload, and when the payload's stop file appears.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from bedplate.errors import (
    EXIT_DONE,
    EXIT_INTERRUPTED,
    EXIT_REQUIREMENT_MISSING,
    EXIT_SOME_RUNS_FAILED,
    BedplateError,
    DeviceInUse,
    MachineUnfit,
    RequirementMissing,
    StudyError,
    VisitFailed,
)
from bedplate.executors.local import LocalRunner
from bedplate.executors.slurm.payload import STARTED
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.block_tree import BlockTree
from bedplate.host.command import Commands
from bedplate.host.facts import read_machine, tool_versions
from bedplate.host.files import state_directory, text_of
from bedplate.host.interruption import arrive
from bedplate.host.ledger import release_orphans
from bedplate.host.lock import IMAGE_FILES, study_lock, wait_for_last_visit
from bedplate.host.process import is_running, wait_until
from bedplate.host.requirement import look
from bedplate.host.scratch_device import (
    MEMORY_DIRECTORY,
    device_identity,
    journal_refusal_reasons,
    refusal_reasons,
)
from bedplate.model import codec
from bedplate.model.machine import NodeFacts
from bedplate.model.reason import sudo_caller
from bedplate.model.visit import ScratchDevice, VisitRequest
from bedplate.study.layout import Folder
from bedplate.visit.recording import workload_for

NAME = "slurm"

# An orphan may be in the middle of a long visit.
DEVICE_PATIENCE_S = 6 * 3600.0

_LOOK_S = 0.5
_FIRMWARE = ("device/firmware_rev", "device/rev")
_DMI = Path("/sys/class/dmi/id")


class JobOver(BaseException):
    """The job is over, or asked to end; what was taken is given back on the way out."""


@dataclass(frozen=True)
class FactsRequest:
    """What is to be found out about a node: whether these visits could run there."""

    node: str
    scratch_device: ScratchDevice
    local_directory: str
    filesystems: tuple[str, ...]
    workloads: tuple[str, ...]
    journals: tuple[ScratchDevice, ...] = ()


def main(arguments: list[str]) -> int:
    """Do one thing as root; the exit code is 0 when it was done, whatever became of the visit.

    1 when the visit's process left no record, 3 when no visit can run here: then there is nothing to be recorded.
    """
    os.umask(0o022)
    given = _parser().parse_args(arguments)
    _end_on_signals()
    _watch(given.payload, given.stop_file)
    directory: Path = given.paths[-1]
    try:
        with _job_users_folder(directory) as folder:
            folder.write(directory / STARTED, "")
            if given.release:
                _release(folder)
            elif given.facts is not None:
                facts = find_facts(codec.read(FactsRequest, given.facts))
                folder.write(directory / "facts.json", f"{codec.dumps(facts)}\n")
            else:
                _live(given.paths[0], directory, identity=given.identity)
    except VisitFailed as error:
        _say(*error.reasons)
        return EXIT_SOME_RUNS_FAILED
    except BedplateError as error:
        _say(*error.reasons)
        return EXIT_REQUIREMENT_MISSING
    except OSError as error:
        _say(f"{error.filename or directory}: {error.strerror or error}")
        return EXIT_REQUIREMENT_MISSING
    except JobOver:
        return EXIT_INTERRUPTED
    return EXIT_DONE


@contextlib.contextmanager
def _job_users_folder(directory: Path) -> Iterator[Folder]:
    """The folder that the job's user made for this, held; what root wrote in it is the user's in the end, who copies and removes it.

    StudyError where links are in it, or it belongs to somebody else than who called sudo: whoever owns it decides what its names lead to.
    """
    caller = sudo_caller()
    with Folder.of_study(directory, to_write=True) as folder:
        owner = os.fstat(folder.descriptor).st_uid
        if caller is not None and owner != caller[0]:
            raise StudyError(
                f"{directory} belongs to uid {owner}, and uid {caller[0]} called sudo: nothing was written there"
            )
        try:
            yield folder
        finally:
            for name in folder.leave_plain(directory) if owner != os.geteuid() else ():
                print(
                    f"{name} was removed: it was no plain file, or another name of somebody else's",
                    flush=True,
                )
            for image in directory.parent.glob("*.img"):
                # Of a visit that was killed; the ledger names it, and the next start removes it.
                print(f"{image} is left for the next visit to remove", flush=True)


def _say(*reasons: str) -> None:
    """For the job, a line each; a full disk may not take them."""
    with contextlib.suppress(OSError):
        print(*reasons, sep="\n", file=sys.stderr, flush=True)


def find_facts(request: FactsRequest) -> NodeFacts:
    """What this node is, and why no visit can run here."""
    machine = replace(read_machine(), tools=tool_versions())
    needs = [need for kind in request.filesystems for need in filesystem_for(kind).needs]
    needs += [need for name in request.workloads for need in workload_for(name).needs]
    problems = [found.sentence for found in look(dict.fromkeys(needs)) if not found.found]
    if not machine.is_root:
        problems.append("a visit formats and mounts, which needs root: see docs/FLEET.md for a rule of sudo")
    scratch, journals = _recorded(request.scratch_device), tuple(map(_recorded, request.journals))
    local = Path(request.local_directory)
    if not local.is_dir():
        problems.append(f"{local} is no directory; make it, or name another local_directory in [slurm]")
    elif machine.is_root:
        problems += refusal_reasons(scratch, Commands(), directory=local)
        for place in journals:
            problems += journal_refusal_reasons(place, scratch, Commands(), directory=MEMORY_DIRECTORY)
    disk = _disk(scratch.device)
    journal = next((found for place in journals if (found := _disk(place.device))), None)
    return NodeFacts(
        node=request.node,
        machine=machine,
        firmware=_firmware(),
        device_model=(text_of(disk / "device/model") or None) if disk else None,
        device_firmware=_first(disk, _FIRMWARE) if disk else None,
        journal_device_model=(text_of(journal / "device/model") or None) if journal else None,
        journal_device_firmware=_first(journal, _FIRMWARE) if journal else None,
        device_size_bytes=int(text_of(disk / "size") or 0) * 512 if disk else None,
        problems=tuple(f"{request.node}: {problem}" for problem in problems),
        device=scratch.recorded,
        journal_device=next((place.recorded for place in journals if place.recorded is not None), None),
    )


def _live(request_file: Path, directory: Path, *, identity: str | None) -> None:
    request = codec.read(VisitRequest, request_file)
    scratch = request.scratch_device
    if scratch.is_image:
        scratch = replace(scratch, image_directory=str(directory.parent))
    request = replace(request, scratch_device=scratch, state_directory=str(state_directory()))
    machine = read_machine()
    here = NodeFacts("", machine).identity
    if identity is not None and here != identity:
        raise RequirementMissing(
            "this node is not what it was when the study began (its processors, memory or kernel changed): "
            f"kernel {machine.kernel_release}, {machine.cpu_count} x {machine.cpu_model}; figures of two "
            "machines are never one study"
        )
    with devices_held(request, study=str(request_file.parent)):
        report = release_orphans(state_directory(), Commands())
        for done in report.released:
            print(f"left behind by a killed visit: {done}", flush=True)
        if report.problems:
            raise DeviceInUse(*report.problems)
        live_one(request, directory)


def live_one(request: VisitRequest, directory: Path) -> None:
    """One visit; VisitFailed where it left no record, MachineUnfit where none could."""
    try:
        LocalRunner(NAME).run_visit(request, directory, lambda _event: None)
    except MachineUnfit:
        raise
    except BedplateError as error:
        raise VisitFailed("visit process", *error.reasons) from error


@contextlib.contextmanager
def devices_held(request: VisitRequest, *, study: str) -> Iterator[None]:
    """The scratch device, and that of an external journal, for this visit alone; waits for whoever has one."""
    journal = request.journal_device
    names = [request.scratch_device.device or IMAGE_FILES]
    if journal is not None and journal.device is not None:
        names.append(journal.device)
    with contextlib.ExitStack() as stack:
        # In one order whatever they are used for, so that two visits cannot wait for each other.
        for name in sorted(names):
            stack.enter_context(_hold_device(name, study=study))
        yield


@contextlib.contextmanager
def _hold_device(name: str, *, study: str) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        refused: list[DeviceInUse] = []

        def take() -> bool:
            try:
                stack.enter_context(study_lock(state_directory(), name, study=study))
            except DeviceInUse as error:
                if not refused:
                    print(f"waiting: {error}", flush=True)
                refused.append(error)
                return False
            return True

        if not wait_until(take, deadline_s=DEVICE_PATIENCE_S):
            raise refused[-1]
        wait_for_last_visit(
            state_directory(),
            name,
            deadline_s=DEVICE_PATIENCE_S,
            on_wait=lambda holder: print(f"waiting for {holder}", flush=True),
        )
        yield


def _release(node_folder: Folder) -> None:
    report = release_orphans(state_directory(), Commands())
    node_folder.write(
        node_folder.directory / "released.txt", "".join(f"{line}\n" for line in report.released)
    )
    if report.problems:
        raise DeviceInUse(*report.problems)


def _watch(payload: str | None, stop_file: Path | None) -> None:
    """End this process in order when its payload has gone, or asks for it."""
    pid, _, started = (payload or "").partition(":")

    def look_after() -> None:
        never = threading.Event()
        while not never.wait(_LOOK_S):
            gone = payload is not None and not is_running(int(pid), started)
            if gone or (stop_file is not None and stop_file.exists()):
                os.kill(os.getpid(), signal.SIGTERM)
                return

    threading.Thread(target=look_after, daemon=True).start()


def _end_on_signals() -> None:
    def end(_number: int, _frame: FrameType | None) -> None:
        # A second one must not interrupt the giving back.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        arrive(JobOver())

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)


def _disk(device: str | None) -> Path | None:
    """The whole disk below a device, in sysfs; None for an image, or where the device is not there."""
    if device is None or not Path(device).exists():
        return None
    tree = BlockTree()
    name = tree.name_at(device)
    return None if name is None else Path("/sys/class/block") / tree.disk_of(name)


def _recorded(scratch: ScratchDevice) -> ScratchDevice:
    """The device with what it is: known before it is looked at, so that it is looked at no other."""
    if scratch.device is None or scratch.recorded is not None:
        return scratch
    return replace(scratch, recorded=device_identity(scratch.device))


def _firmware() -> str | None:
    words = [text_of(_DMI / name) for name in ("bios_vendor", "bios_version")]
    return " ".join(word for word in words if word) or None


def _first(place: Path, names: Sequence[str]) -> str | None:
    return next((text for name in names if (text := text_of(place / name))), None)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bedplate run-visit-on-node", description=__doc__)
    parser.add_argument("paths", type=Path, nargs="+", help="[REQUEST] DIRECTORY, which must exist")
    parser.add_argument("--payload", help="pid and start time of the job's process")
    parser.add_argument("--stop-file", type=Path, help="ends when this appears")
    parser.add_argument("--identity", help="what the node was when the study began")
    parser.add_argument("--facts", type=Path, help="find the node's facts for this request instead")
    parser.add_argument("--release", action="store_true", help="give back what killed visits left instead")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
