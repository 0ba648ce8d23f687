"""The local executor: `bedplate run-visit` as a child process on this machine.

A process of its own, with nothing but the standard library, so that the visit is the same one that
runs in a guest, and so that its CPU time is the honest cost of watching.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import EXIT_DONE, EXIT_REQUIREMENT_MISSING, BedplateError, MachineUnfit
from bedplate.executors.protocol import Executor, Start, StartOutcome
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.command import Commands, started_apart
from bedplate.host.files import full_places
from bedplate.host.interruption import defer_interruptions
from bedplate.host.ledger import release_orphans
from bedplate.host.requirement import Need
from bedplate.model import codec
from bedplate.model.levels import Scalar
from bedplate.model.machine import Machine
from bedplate.model.plan import Plan
from bedplate.model.reason import Reason
from bedplate.model.visit import FORMAT_VERSION, Outcome, VisitRecord, VisitRequest
from bedplate.plan.rules import LOCAL
from bedplate.visit.recording import workload_for

if TYPE_CHECKING:
    from bedplate.study.records import StudyFacts


def lost_record(
    request: VisitRequest, reasons: tuple[Reason, ...], executor: str, seconds: float
) -> VisitRecord:
    """The record of a visit that left none: what is known is why."""
    return VisitRecord(
        format_version=FORMAT_VERSION,
        key=request.key,
        cell=request.cell,
        dataset=request.dataset,
        outcome=Outcome.FAILED,
        reasons=reasons,
        failed_step="visit process",
        started_wall_s=time.time() - seconds,
        seconds=seconds,
        boot_id=Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        executor=executor,
        build_digest=None if request.build is None else request.build.digest,
        provenance=request.provenance,
    )


def filesystem_needs(types: Iterable[str]) -> tuple[Need, ...]:
    """What these types of file systems need, each type once."""
    return tuple(need for kind in dict.fromkeys(types) for need in filesystem_for(kind).needs)


def workload_needs(types: Iterable[str]) -> tuple[Need, ...]:
    """What these types of workloads need, each once."""
    return tuple(dict.fromkeys(need for kind in dict.fromkeys(types) for need in workload_for(kind).needs))


def other_hardware(facts: StudyFacts, machine: Machine) -> str | None:
    """Why this is not the machine of the study; None where it is."""
    if facts.machine_identity == machine.identity:
        return None
    return (
        "was begun on another machine (machine.json says which); figures of two machines are never one study: "
        "name another --study"
    )


# A visit that was asked to end stops its server and unmounts; a full cache on a slow disk takes long.
_LEAVING_LIMIT_S = 300.0

_ALWAYS = (
    Need("mount", "mount", "mounts the file systems"),
    Need("losetup", "mount", "puts an image file behind a block device"),
    Need("blkid", "util-linux", "recognises what is on a scratch device"),
)


class LocalExecutor(Executor):
    """This machine under its running kernel."""

    name = LOCAL
    runs_here = True

    def needs(self, filesystems: Iterable[str], workloads: Iterable[str]) -> tuple[Need, ...]:
        """What every visit needs, and what these types do."""
        return (*_ALWAYS, *filesystem_needs(filesystems), *workload_needs(workloads))

    def another_machine(self, plan: Plan, facts: StudyFacts, machine: Machine) -> str | None:
        """Another kernel is one more machine, unless the plan varies the kernel."""
        other = other_hardware(facts, machine)
        if (
            other is not None
            or facts.kernel_release == machine.kernel_release
            or any(levels.release is not None for levels in plan.kernels)
        ):
            return other
        return (
            f"was begun under kernel {facts.kernel_release}, this is {machine.kernel_release}, and the plan does not "
            "vary the kernel; boot the former, or name another --study"
        )

    def run(self, start: Start) -> StartOutcome:
        """One visit after the other, up to one of another kernel."""
        return start.one_by_one(LocalRunner())


class LocalRunner:
    """Needs root, as the visit formats and mounts; `name` is who says that it lives the visits."""

    def __init__(self, name: str = LOCAL) -> None:
        self.name = name

    def run_visit(
        self,
        request: VisitRequest,
        directory: Path,
        on_event: Callable[[Mapping[str, Scalar]], None],
        *,
        boot: int | None = None,  # noqa: ARG002 -- this machine is booted by its owner
    ) -> None:
        """Start the visit, pass its events on, wait for its end.

        MachineUnfit where no visit could run here, also since something that an earlier one left cannot be given back.
        """
        state = Path(request.state_directory)
        _free(state)
        request_file = directory / "request.json"
        codec.write(request_file, request)
        logs = directory / "logs"
        logs.mkdir(exist_ok=True)
        errors = logs / "run-visit.err"
        words = [
            *(sys.executable, "-S", "-m", "bedplate.visit.command"),
            *("--executor", self.name),
            *("--parent", str(os.getpid()), "--", str(request_file), str(directory)),
        ]
        visit: subprocess.Popen[bytes] | None = None
        try:
            with errors.open("wb") as stderr, defer_interruptions():
                visit = started_apart(words, stderr)
            _follow(visit, on_event)
            status = visit.wait()
        except BaseException:
            # A second Ctrl-C must not leave the visit alone with what it holds.
            with defer_interruptions():
                if visit is not None and visit.poll() is None:
                    visit.terminate()
                try:
                    on_event({"event": "step", "step": "leave"})
                finally:
                    if visit is not None:
                        _end(visit, state)
            raise
        said = errors.read_text(encoding="utf-8", errors="replace").strip()
        if status != EXIT_DONE or not (directory / "visit.json").exists():
            # Before anybody completes the folder: a server that outlived its visit still writes to it.
            _free(state)
            if status == EXIT_REQUIREMENT_MISSING:
                raise MachineUnfit(
                    *(said.splitlines() or full_places(directory, state) or ("it did not say why",))
                )
            how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
            raise BedplateError(
                f"the visit {how} and left no record: {said[-2000:] or '(it printed nothing)'}"
            )
        if not said:
            errors.unlink()

    def close(self) -> None:
        """Nothing outlives a visit here."""


def _follow(visit: subprocess.Popen[bytes], on_event: Callable[[Mapping[str, Scalar]], None]) -> None:
    assert visit.stdout is not None  # noqa: S101 -- Popen was given a pipe
    for line in visit.stdout:
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            continue  # a line cut short by the visit's death says nothing
        if isinstance(event, dict):
            on_event(event)


def _free(state: Path) -> None:
    """Give back what a visit left that ended without doing so itself; MachineUnfit if that cannot be done."""
    # Half of it would be left behind, though the start says that it was ended.
    with defer_interruptions():
        report = release_orphans(state, Commands())
    if report.problems:
        raise MachineUnfit(*report.problems, "see `bedplate release`")


def _end(visit: subprocess.Popen[bytes], state: Path) -> None:
    """Wait for a visit that was asked to end: nothing may be left mounted behind our back."""
    try:
        visit.communicate(timeout=_LEAVING_LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(visit.pid, signal.SIGKILL)
        visit.wait()
    # Also of one that ended in order: the signal may have met it in its own giving back.
    release_orphans(state, Commands())
