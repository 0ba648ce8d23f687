"""bonnie++: one run of it is one run of ours, each of its stages a phase.

Before each run the file system is mounted anew, so that every run begins alike; within a run a stage finds
what the stages before it left, and only a file that is larger than the memory keeps the cache from answering.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from bedplate.errors import BedplateError
from bedplate.host.requirement import Need
from bedplate.host.shut_in import Restriction
from bedplate.model.cell import RunSpec
from bedplate.model.visit import RunRecord
from bedplate.units import GIB, KIB, MIB, format_size
from bedplate.visit.recording import (
    SYNC_PHASE,
    RawRecording,
    ToolFailed,
    ToolProcess,
    VisitContext,
    Workload,
    time_limit_s,
)

PROGRAM = "bonnie++"

# bonnie++ counts the files of its create stages in units of 1024, and holds their names in memory:
# 37 bytes each, at most 1 GiB (TestDirOps).
_FILES_UNIT = 1024

_FILE_NAME_BYTES = 37
_FILES_MAX = (GIB // _FILE_NAME_BYTES) // _FILES_UNIT * _FILES_UNIT
_INT_MAX = 2**31 - 1
_SEEKS_MAX = 10**8

# As bonnie++ has it by default. Over one, its CPU figure of the seeks is wrong (`output.py`).
_SEEKERS = 5

# The kernel may refuse less than the device's logical block, and 4096 is the largest in use.
_DIRECT_CHUNK_MIN = 4096


class BonnieStage(StrEnum):
    """The stages in their order, by the names that bonnie++'s CSV gives them."""

    PUTC = "putc"
    PUT_BLOCK = "put_block"
    REWRITE = "rewrite"
    GETC = "getc"
    GET_BLOCK = "get_block"
    SEEKS = "seeks"
    SEQ_CREATE = "seq_create"
    SEQ_STAT = "seq_stat"
    SEQ_DEL = "seq_del"
    RAN_CREATE = "ran_create"
    RAN_STAT = "ran_stat"
    RAN_DEL = "ran_del"


# What bonnie++ prints on its standard error as a stage begins, and as it ends; between stages it does other things:
# before the seeks it sleeps for seconds. Each of the seekers says that it is done, so that the end of the seeks is
# the beginning of what follows.
_SAID: dict[bytes, BonnieStage] = {
    b"Writing a byte at a time...": BonnieStage.PUTC,
    b"Writing intelligently...": BonnieStage.PUT_BLOCK,
    b"Rewriting...": BonnieStage.REWRITE,
    b"Reading a byte at a time...": BonnieStage.GETC,
    b"Reading intelligently...": BonnieStage.GET_BLOCK,
    b"start 'em...": BonnieStage.SEEKS,
    b"Create files in sequential order...": BonnieStage.SEQ_CREATE,
    b"Stat files in sequential order...": BonnieStage.SEQ_STAT,
    b"Delete files in sequential order...": BonnieStage.SEQ_DEL,
    b"Create files in random order...": BonnieStage.RAN_CREATE,
    b"Stat files in random order...": BonnieStage.RAN_STAT,
    b"Delete files in random order...": BonnieStage.RAN_DEL,
}

_DONE = b"done"
_ANY_SAID = re.compile(b"|".join(re.escape(words) for words in (*_SAID, _DONE)))
_LONGEST_SAID = max(map(len, _SAID))


@dataclass(frozen=True)
class BonnieJob:
    """One run of bonnie++; ValueError names the level, what was found, and what is allowed.

    `file_size_bytes` of 0 leaves the file stages out, `files` of 0 the create, stat and delete
    stages, `per_character_bytes` of 0 the two stages that move single bytes. `direct` opens the file
    with O_DIRECT for the block writes; bonnie++ rewrites, reads and seeks through the page cache
    all the same. Its small files are empty, and lie in one directory.
    """

    file_size_bytes: int
    seed: int
    chunk_size_bytes: int = 8 * KIB
    per_character_bytes: int = 0
    seeks: int = 8192
    direct: bool = False
    files: int = 0

    def __post_init__(self) -> None:
        reasons = _file_reasons(self)
        if not 0 <= self.files <= _FILES_MAX or self.files % _FILES_UNIT:
            reasons.append(
                f"files = {self.files}: bonnie++ takes multiples of {_FILES_UNIT}, at most {_FILES_MAX} (their "
                "names stay in memory)"
            )
        if not self.file_size_bytes and not self.files:
            reasons.append("bonnie++ has nothing to do: give it a file_size or files")
        if not 0 <= self.seed < 2**32:
            reasons.append(f"seed = {self.seed}: bonnie++ takes 0 to {2**32 - 1}")
        if reasons:
            raise ValueError("; ".join(reasons))

    def argv(self, directory: Path, program: str = PROGRAM) -> list[str]:
        """The argument list; standard output is then one CSV line, standard error the progress.

        `-x 1` prints the CSV alone and keeps the progress, which `-q` would switch off. A fixed
        `-m` keeps the machine's name out of the record, and commas out of the line.
        """
        return [
            program,
            *("-d", str(directory)),
            *("-m", "bedplate"),
            *("-x", "1"),
            *("-z", str(self.seed)),
            # It shall not refuse a file that the memory may hold: what a cache answered makes a run suspect.
            *("-r", "0"),
            *("-s", self._file_words()),
            # The size must be joined to its letter: it is an optional argument.
            f"-f{self.per_character_bytes // MIB}",
            *("-n", f"{self.files // _FILES_UNIT}:0:0:1" if self.files else "0"),
            *(["-D"] if self.direct else []),
        ]

    def stages(self) -> tuple[BonnieStage, ...]:
        """The stages that this job goes through, in order."""
        byte_stages = {BonnieStage.PUTC, BonnieStage.GETC}
        all_stages = tuple(BonnieStage)
        of_file = all_stages[:6] if self.file_size_bytes else ()
        of_small_files = all_stages[6:] if self.files else ()
        return tuple(
            stage
            for stage in (*of_file, *of_small_files)
            if self.per_character_bytes or stage not in byte_stages
        )

    def _file_words(self) -> str:
        if not self.file_size_bytes:
            return "0"
        return f"{self.file_size_bytes // MIB}:{self.chunk_size_bytes}:{self.seeks}:{_SEEKERS}"


def _file_reasons(job: BonnieJob) -> list[str]:
    chunk, size, bytewise = job.chunk_size_bytes, job.file_size_bytes, job.per_character_bytes
    reasons = []
    if not 256 <= chunk <= MIB or chunk & (chunk - 1):
        # What follows divides by it.
        return [f"chunk_size = {chunk}: bonnie++ takes a power of two from 256 bytes to 1 MiB"]
    if size < 0 or size % MIB:
        reasons.append(f"file_size = {size}: bonnie++ takes whole MiB")
    # bonnie++ counts chunks and KiB in an int, and overflows in silence.
    elif size // chunk > _INT_MAX or size // KIB > _INT_MAX:
        reasons.append(
            f"file_size = {format_size(size)} is more than bonnie++ can count in chunks of {chunk}"
        )
    if bytewise < 0 or bytewise % MIB or bytewise > max(size, 0):
        reasons.append(f"per_character = {bytewise}: bonnie++ takes whole MiB, at most the file_size")
    if job.direct and bytewise:
        reasons.append(
            "direct: the per-character stage writes single bytes, which O_DIRECT refuses; set per_character = 0"
        )
    if job.direct and chunk < _DIRECT_CHUNK_MIN:
        reasons.append(f"direct: chunk_size = {chunk} may be refused; use at least {_DIRECT_CHUNK_MIN}")
    if not 1 <= job.seeks <= _SEEKS_MAX:
        reasons.append(f"seeks = {job.seeks}: bonnie++ takes 1 to {_SEEKS_MAX}")
    return reasons


class BonnieProgress:
    """Follows bonnie++'s standard error, in whatever pieces it arrives."""

    def __init__(self) -> None:
        self._tail = b""
        self._stage: BonnieStage | None = None

    def feed(self, piece: bytes) -> list[BonnieStage | None]:
        """The stages that have begun since the last call, in order; None where the one under way has ended."""
        text = self._tail + piece
        steps: list[BonnieStage | None] = []
        end = 0
        for found in _ANY_SAID.finditer(text):
            end = found.end()
            if found[0] != _DONE:
                self._stage = _SAID[found[0]]
                steps.append(self._stage)
            elif self._stage not in (None, BonnieStage.SEEKS):
                self._stage = None
                steps.append(None)
        # Words may be cut anywhere: what could still be a beginning is kept, what was counted is not.
        self._tail = text[max(end, len(text) - _LONGEST_SAID + 1) :]
        return steps


# bonnie++'s own 8192 are over within the half second below which it states no rate, wherever there is no hard disk.
_SEEKS = 32_768

_SEEK_LIMIT_S = 0.1
_FILE_LIMIT_S = 0.5

# Written, rewritten (read and written) and read.
_TIMES_MOVED = 4

_BETWEEN = "between stages"


class Bonnie(Workload):
    """`type = "bonnie"` in a plan: bonnie++ makes its file, and that is measured: nothing is loaded."""

    name = "bonnie"
    protocol = "bonnie 1"
    needs: tuple[Need, ...] = (Need(PROGRAM, "bonnie++", "measures files without a database"),)

    def run(self, spec: RunSpec, context: VisitContext, directory: Path) -> RunRecord:
        """All stages."""
        recording = RawRecording(spec, context, directory)
        return recording.run_steps(lambda: _run(recording))


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
            recording.facts["tool_cpu_s"] = tool.outcome.cpu_s
            if tool.outcome.problem is not None:
                raise ToolFailed(tool.outcome.problem, tool.outcome)
            _, version, *_ = [*tool.output.read_text(errors="replace").split(","), "", ""]
            recording.context.tool_versions[PROGRAM] = version
            recording.tell(SYNC_PHASE, "", position=len(job.stages()) + 1, of=len(job.stages()) + 1)
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
                recording.tell(stage.value, "", position=len(begun), of=len(job.stages()) + 1)
                phase.enter_context(recording.timed_phase(stage.value))
    if tool.outcome.problem is None and tuple(begun) != job.stages():
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
