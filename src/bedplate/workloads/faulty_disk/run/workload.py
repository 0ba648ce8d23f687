"""A disk that fails as a workload: each fault on a disk of its own, one after the other, behind two controls.

faults      every fault tried: file system, engine, clients, the fault, the oracle; a line of faults.jsonl each, as it comes
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bedplate import registry
from bedplate.model import codec
from bedplate.model.power_cut import ENGINE, IMAGE_BYTES
from bedplate.model.visit import TimedItem
from bedplate.model.workload import model_of
from bedplate.workloads.faulty_disk.faults import CONTROLS, DEFAULT_FAULTS, WORKLOAD, fault_named
from bedplate.workloads.faulty_disk.model import DURATION_S, FAULTS_LEVEL, TRIES
from bedplate.workloads.faulty_disk.records import TRIES_FILE
from bedplate.workloads.faulty_disk.run.trial import FaultTrial
from bedplate.workloads.power_cut.run.own_disk import OwnDiskWorkload
from bedplate.workloads.power_cut.run.power_bench import PowerBench

if TYPE_CHECKING:
    from bedplate.model.cell import RunSpec
    from bedplate.visit.fault_engine import FaultEngine
    from bedplate.visit.recording import Recording
    from bedplate.visit.workload import VisitContext
    from bedplate.workloads.faulty_disk.faults import Fault
    from bedplate.workloads.faulty_disk.records import FaultRecord

FAULTS_PHASE = "faults"


class FaultyDisk(OwnDiskWorkload):
    """`type = "faulty_disk"` in a plan."""

    name = WORKLOAD
    # Raised whenever a change of how faults are made or judged makes old and new verdicts incomparable.
    protocol = "faulty_disk 7"

    def make(self, recording: Recording) -> None:
        """Every fault of the run."""
        _try_all(recording)


def due(spec: RunSpec) -> tuple[tuple[Fault, int], ...]:
    """The controls, then each fault as often as it is tried; with what is added to the seed."""
    names = [name for name in (spec.levels.text(FAULTS_LEVEL) or ",".join(DEFAULT_FAULTS)).split(",") if name]
    tries = spec.levels.integer(TRIES) or 1
    return (
        *((control, 0) for control in CONTROLS.values()),
        *((fault_named(name), number) for number in range(tries) for name in names),
    )


def _try_all(recording: Recording) -> None:
    context, spec = recording.context, recording.spec
    trial = _trial(context)
    seed = spec.levels.integer("seed")
    seed = context.seed if seed is None else seed
    wanted = due(spec)
    started = time.monotonic()
    with (
        recording.timed_phase(FAULTS_PHASE),
        (recording.directory / TRIES_FILE).open("w", encoding="utf-8") as file,
    ):
        for number, (fault, more) in enumerate(wanted):
            recording.tell(FAULTS_PHASE, fault.words, done=number, of=len(wanted))
            record = trial.record(fault, number, seed + more, recording.directory / "logs")
            file.write(codec.dumps(record, indent=None) + "\n")
            file.flush()
            recording.tell(FAULTS_PHASE, _words(record), done=number + 1, of=len(wanted))
    if trial.version is not None:
        context.tool_versions["engine on a faulty disk"] = trial.version
    recording.add(
        TimedItem(FAULTS_PHASE, FAULTS_PHASE, time.monotonic() - started, facts={"faults": len(wanted)})
    )


def _trial(context: VisitContext) -> FaultTrial:
    levels = context.dataset.levels
    name = model_of(WORKLOAD).engine_of(levels)
    engine: FaultEngine = registry.engine_part(name, WORKLOAD)
    bench = PowerBench(
        context.request,
        context.account,
        context.commands,
        context.ledger,
        context.log_directory,
        context.place,
    )
    return FaultTrial(
        context,
        bench,
        engine,
        levels.text(ENGINE) or name,
        clients=levels.integer("clients") or 2,
        duration_s=levels.number("duration_s") or DURATION_S,
        image_bytes=levels.integer("image_bytes") or IMAGE_BYTES,
    )


def _words(record: FaultRecord) -> str:
    return f"{record.fault}: {record.verdict.value}"
