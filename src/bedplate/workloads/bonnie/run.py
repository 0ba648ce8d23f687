"""bonnie++: one run of it is one run of ours, each of its stages a phase.

Before each run the file system is mounted anew, so that every run begins alike; within a run a stage finds
what the stages before it left, and only a file that is larger than the memory keeps the cache from answering.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError
from bedplate.host.requirement import Need
from bedplate.host.shut_in.restriction import Restriction
from bedplate.visit.tool_process import ToolFailed, ToolProcess
from bedplate.visit.tool_recording import SYNC_PHASE, RawRecording, time_limit_s
from bedplate.workloads.bonnie.command import PROGRAM, BonnieJob, BonnieProgress

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.model.cell import Dataset, RunSpec
    from bedplate.model.visit import RunRecord
    from bedplate.visit.workload import Driver, VisitContext, Workload
    from bedplate.workloads.bonnie.command import BonnieStage

# bonnie++'s own 8192 are over within the half second below which it states no rate, wherever there is no hard disk.
_SEEKS = 32_768
_SEEK_LIMIT_S = 0.1
_FILE_LIMIT_S = 0.5
# Written, rewritten (read and written) and read.
_TIMES_MOVED = 4
_BETWEEN = "between stages"


class Bonnie:
    """`type = "bonnie"` in a plan."""

    name = "bonnie"
    # Raised whenever a change of how it is measured makes old and new figures incomparable.
    protocol = "bonnie 1"
    needs: tuple[Need, ...] = (Need(PROGRAM, "bonnie++", "measures files without a database"),)
    drivers: tuple[Driver, ...] = ()

    def load(self, dataset: Dataset, context: VisitContext) -> None:
        """Nothing: bonnie++ makes its file, and that is measured."""

    def run(self, spec: RunSpec, context: VisitContext, directory: Path) -> RunRecord:
        """All stages."""
        recording = RawRecording(spec, context, directory)
        return recording.made(lambda: _run(recording))


def _run(recording: RawRecording) -> None:
    job = _job_of(recording)
    recording.context.make_cold()
    recording.facts.update(made_cold=True, file_bytes=job.file_size_bytes, files=job.files, seeks=job.seeks)
    with recording.place() as place:
        tool = ToolProcess(
            job.argv(place),
            recording.context,
            output=recording.directory / "logs" / "bonnie",
            directory=place,
            confinement=Restriction(recording.context.account, (place,)),
        )
        recording.commands.append(tool.argv)
        first, *_ = job.stages()
        with tool, recording.watched(first_phase=first.value):
            _follow(tool, job, recording)
            recording.facts["tool_cpu_s"] = tool.ended.cpu_s
            if tool.ended.problem is not None:
                raise ToolFailed(tool.ended.problem, tool.ended)
            _, version, *_ = [*tool.output.read_text(errors="replace").split(","), "", ""]
            recording.context.tool_versions[PROGRAM] = version
            recording.tell(SYNC_PHASE, "", done=len(job.stages()) + 1, of=len(job.stages()) + 1)
            recording.sync(place, of_bytes=job.file_size_bytes)


def _follow(tool: ToolProcess, job: BonnieJob, recording: RawRecording) -> None:
    """One phase after another, as bonnie++ says that it has come to them."""
    progress = BonnieProgress()
    begun: list[BonnieStage] = []
    limit_s = time_limit_s(
        job.file_size_bytes, times=_TIMES_MOVED, more_s=_SEEK_LIMIT_S * job.seeks + _FILE_LIMIT_S * job.files
    )
    with ExitStack() as phase:
        for piece in tool.pieces(limit_s=limit_s):
            for stage in progress.feed(piece):
                phase.close()
                if stage is None:
                    recording.between_phases(_BETWEEN)
                    continue
                begun.append(stage)
                recording.tell(stage.value, "", done=len(begun), of=len(job.stages()) + 1)
                phase.enter_context(recording.timed_phase(stage.value))
    if tool.ended.problem is None and tuple(begun) != job.stages():
        raise BedplateError(
            f"{PROGRAM} went through {', '.join(begun) or 'no stage'}, and its job asks for {', '.join(job.stages())}"
        )


def _job_of(recording: RawRecording) -> BonnieJob:
    levels = recording.spec.levels
    file_bytes = recording.context.dataset.levels.integer("file_bytes")
    try:
        return BonnieJob(
            file_size_bytes=file_bytes or 0,
            seed=recording.context.seed % 2**32,
            chunk_size_bytes=levels.integer("chunk_bytes") or 8192,
            per_character_bytes=levels.integer("per_character_bytes") or 0,
            seeks=_SEEKS,
            direct=levels.flag("direct") or False,
            files=levels.integer("files") or 0,
        )
    except ValueError as error:
        raise BedplateError(f"run {recording.spec.name}: {error}") from error


RUN: Workload = Bonnie()
