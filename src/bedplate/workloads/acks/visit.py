"""An own engine's writer as it is, without the recorder, on the file system of the cell: its lines are timed as they come.

The clock of a line is that of the reader at the other end of a pipe (`drivers/pgbench_log/acks.c`). The protocol has no clock, so
that the programs that are cut are the programs that are timed. Warm-up and measurement are parts of one process: its data are
made anew by each.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import IO, Self

from bedplate.engines.external.visit import (
    PATIENCE_S,
    PREPARATION_LIMIT_S,
    AuthorPrograms,
    does_not_end,
    printed_no_line,
)
from bedplate.errors import BedplateError, OutputNotUnderstood
from bedplate.host.command import environment
from bedplate.host.interruption import defer_interruptions
from bedplate.host.shut_in import Confinement
from bedplate.model.cell import RunSpec
from bedplate.model.durability import DURABLE
from bedplate.model.visit import RunRecord
from bedplate.probe.kernel import ProcessProbe
from bedplate.visit.declaration import WAITING_CLIENTS, WAITING_COMMITS, WAITING_FLUSHES, flushes_between
from bedplate.visit.recording import Driver, RawRecording, SecondSeen, ToolProcess, VisitContext, Workload
from bedplate.workloads.acks.model import SUMMARY_FILE, read_summary

# As the driver exits where the writer printed something else than it may; the line is on its standard error.
_REFUSED = 3

# What is left in the pipe when the writer has ended is read at once.
_LIMIT_S = 30.0

_EXPECTED = "`begin`, then `ack CLIENT NUMBER` with the clients from 0 and the numbers 1, 2, 3, … of each, a line for each commit"


class PipeReader:
    """Runs from `with` to its end, or is killed there. `marks` is where the writer's standard output goes.

    `errors` is where it puts its own words. BedplateError from any method says what the writer printed that it may not.
    """

    def __init__(self, argv: Sequence[str], *, errors: Path) -> None:
        self._argv = tuple(argv)
        self._errors = errors
        self._process: subprocess.Popen[bytes] | None = None
        self._write_end: int | None = None
        self._rest = b""
        self.cpu_s = 0.0

    def __enter__(self) -> Self:
        try:
            with defer_interruptions(), self._errors.open("wb") as errors:
                read_end, self._write_end = os.pipe()
                try:
                    self._process = self._started(read_end, errors)
                finally:
                    os.close(read_end)
            return self  # noqa: TRY300 -- behind the `try` nobody would end it
        except OSError as error:
            self._close_pipe()
            raise BedplateError(f"{self._argv[0]} cannot be started: {error.strerror}") from error
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        self._close_pipe()
        process = self._process
        if process is None:
            return
        if process.returncode is None:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                # The other side may have gone first.
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def _started(self, read_end: int, errors: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self._argv, "--acks", str(read_end)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment(),
            cwd="/",
            start_new_session=True,
            pass_fds=(read_end,),
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._running.pid

    @contextlib.contextmanager
    def feeding(self, tool: ToolProcess) -> Iterator[ToolProcess]:
        """The writer while it runs; from its start on the pipe is its own, so that its end is the pipe's."""
        with tool:
            self._close_pipe()
            yield tool

    @property
    def marks(self) -> Path:
        """The end of the pipe that a writer opens, until it has been started."""
        return Path(f"/proc/self/fd/{self._write_end}")

    def lines(self, *, wait_s: float = 0.0) -> list[bytes]:
        """What it said since it was asked last, or says within `wait_s`; nothing any more once it has ended."""
        stdout = self._running.stdout
        assert stdout is not None  # noqa: S101 -- Popen was given a pipe
        if self.has_ended or not select.select([stdout], [], [], wait_s)[0]:
            return []
        piece = os.read(stdout.fileno(), 65536)
        if not piece:
            self._reap()
        *whole, self._rest = (self._rest + piece).split(b"\n")
        return whole

    @property
    def has_ended(self) -> bool:
        """Whether it has, which it does behind its last words when the pipe has no writer any more."""
        return self._running.returncode is not None

    def measure(self) -> None:
        """Count from here on as measured."""
        stdin = self._running.stdin
        assert stdin is not None  # noqa: S101 -- Popen was given a pipe
        with contextlib.suppress(BrokenPipeError):
            os.write(stdin.fileno(), b"m")

    def end(self) -> None:
        """Count no more; what the writer still prints is read and forgotten."""
        stdin = self._running.stdin
        assert stdin is not None  # noqa: S101 -- Popen was given a pipe
        stdin.close()

    def finish(self) -> list[bytes]:
        """The rest of what it says, once the writer has ended."""
        said: list[bytes] = []
        until_s = time.monotonic() + _LIMIT_S
        while not self.has_ended:
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                raise BedplateError(f"{self._argv[0]} did not end after the writer had")
            said += self.lines(wait_s=left_s)
        return said

    def _reap(self) -> None:
        process = self._running
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_s = usage.ru_utime + usage.ru_stime
        if process.returncode == 0:
            return
        said = self._errors.read_text(encoding="utf-8", errors="replace").removesuffix("\n")
        if process.returncode == _REFUSED:
            raise OutputNotUnderstood("the writer", expected=_EXPECTED, found=said)
        raise BedplateError(f"{self._argv[0]} ended with status {process.returncode}: {said}")

    def _close_pipe(self) -> None:
        if self._write_end is not None:
            os.close(self._write_end)
            self._write_end = None

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the reader has not been started")
        return self._process


_READER = Driver("pgbench_log")
_SYNC_LIMIT_S = 3600.0

# The writer is told to go on for longer than it is measured, as it counts from another moment; SIGTERM ends it.
_SPARE_S = 5.0


class Acks(Workload):
    """`type = "acks"` in a plan: a writer makes its own data, so nothing is loaded."""

    name = "acks"
    protocol = "acks 1"
    drivers: tuple[Driver, ...] = (_READER,)

    def run(self, spec: RunSpec, context: VisitContext, directory: Path) -> RunRecord:
        """One writer from an empty directory to its end."""
        recording = RawRecording(spec, context, directory)

        def measure() -> None:
            with recording.place() as place:
                _Run(recording, place).measure()

        return recording.run_steps(measure)


class _Stage(Enum):
    PREPARING = "preparing"
    WARMUP = "warmup"
    MEASURE = "measure"
    ENDING = "ending"


class _Run:
    """One run under way: looks at the writer while it works, begins the parts of the run when it is time, and ends it."""

    def __init__(self, recording: RawRecording, place: Path) -> None:
        self._recording, self._place = recording, place
        levels = recording.spec.levels
        self._clients = levels.integer("clients") or 1
        self._warmup_s = levels.number("warmup_s") or 0.0
        self._duration_s = levels.number("duration_s") or 1.0
        self._programs = AuthorPrograms.of_visit(recording.context)
        self._name = self._programs.description.name
        self._logs = recording.directory / "logs"
        self._reader = PipeReader(self._reading(), errors=self._logs / "reader.err")
        self._stage, self._since_s = _Stage.PREPARING, 0.0
        self._has_begun = self._has_summary = False
        # Entered when the writer begins; and the part that is under way.
        self._sampling, self._part = ExitStack(), ExitStack()

    def measure(self) -> None:
        """BedplateError where the writer fails, acknowledges nothing, or prints what it may not."""
        recording, context = self._recording, self._recording.context
        recording.facts |= {"clients": self._clients, "duration_s_asked": self._duration_s}
        # What an earlier run left to write is not this one's.
        context.commands.run(["sync", "--file-system", str(self._place)], timeout_s=_SYNC_LIMIT_S)
        with self._reader:
            writing = self._writing()
            tool = ToolProcess(
                writing.argv,
                context,
                output=self._logs / "writer",
                directory=context.log_directory,
                name=f"the writer of {self._name}",
                confinement=writing,
                marks=self._reader.marks,
            )
            recording.commands.append(tool.argv)
            limit_s = PREPARATION_LIMIT_S + self._warmup_s + self._duration_s + 6 * PATIENCE_S
            with self._sampling, self._reader.feeding(tool), self._part:
                self._enter(_Stage.PREPARING)
                ended = tool.wait(limit_s=limit_s, enough=lambda: self._look(tool))
                # First of all what it printed: who prints what it may not loses its pipe, and fails by that.
                self._hear_the_rest()
                self._programs.require_success(
                    ended,
                    was_told=self._stage is _Stage.ENDING,
                    data=self._place,
                    room="the scratch device is full: a larger image_size gives it room, a shorter duration needs less",
                )
                self._require_measured()
        recording.facts |= {"reader_cpu_s": self._reader.cpu_s, "database_bytes": self._size_bytes()}
        context.tool_versions[self._name] = self._programs.version(tool.errors)
        acks = read_summary(self._logs).transactions
        if not acks:
            raise BedplateError(f"the writer of {self._name} acknowledged nothing in {self._duration_s:g} s")
        self._hold_promise(acks)

    def _hold_promise(self, acks: int) -> None:
        """What is durable waits: keep what there was to wait for."""
        promise = self._programs.description.promise(self._programs.settings)
        counters = self._recording.last_counters
        flushes = flushes_between(counters.before, counters.after)
        if promise is not None and promise.durability == DURABLE and flushes is not None:
            self._recording.facts |= {
                WAITING_COMMITS: acks,
                WAITING_FLUSHES: flushes,
                WAITING_CLIENTS: self._clients,
            }

    def _reading(self) -> tuple[str, ...]:
        directory = self._recording.directory
        driver = self._recording.context.native_drivers[_READER.name]
        warm_up = ("--warmup", str(directory / "warmup.bin")) if self._warmup_s else ()
        return (
            driver,
            *("--clients", str(self._clients)),
            *("--output", str(directory / "measure.bin")),
            *warm_up,
        )

    def _writing(self) -> Confinement:
        context = self._recording.context
        return self._programs.writer(
            self._place,
            context.account,
            clients=self._clients,
            seed=context.seed,
            duration_s=self._warmup_s + self._duration_s + _SPARE_S,
        )

    def _look(self, tool: ToolProcess) -> bool:
        """Never true: when it is time, the writer gets SIGTERM here. BedplateError where it does not end."""
        self._hear(self._reader.lines())
        for_s = time.monotonic() - self._since_s
        match self._stage:
            case _Stage.PREPARING if self._has_begun:
                self._begin()
            case _Stage.PREPARING if for_s > PREPARATION_LIMIT_S:
                raise printed_no_line(self._name)
            case _Stage.WARMUP if for_s >= self._warmup_s:
                self._part.close()
                self._begin_measurement()
            case _Stage.MEASURE if for_s >= self._duration_s:
                self._end_measurement()
                self._enter(_Stage.ENDING)
            case _Stage.ENDING if for_s > PATIENCE_S:
                raise does_not_end(self._name)
            case _Stage.ENDING:
                # Again and again: whoever was not the writer yet when it came has not heard it.
                tool.signal(signal.SIGTERM)
            case _:
                pass
        return False

    def _begin(self) -> None:
        pids = (os.getpid(), self._reader.pid)
        first = _Stage.WARMUP if self._warmup_s else _Stage.MEASURE
        watching = ProcessProbe("watching", lambda: pids)
        self._sampling.enter_context(self._recording.sampled([watching], first_phase=first.value))
        if self._warmup_s:
            self._part.enter_context(self._recording.warm_up())
            self._enter(_Stage.WARMUP)
        else:
            self._begin_measurement()

    def _begin_measurement(self) -> None:
        self._part.enter_context(self._recording.timed_phase(_Stage.MEASURE.value))
        self._reader.measure()
        self._enter(_Stage.MEASURE)

    def _end_measurement(self) -> None:
        self._reader.end()
        until_s = time.monotonic() + PATIENCE_S
        while not (self._has_summary or self._reader.has_ended) and time.monotonic() < until_s:
            self._hear(self._reader.lines(wait_s=PATIENCE_S))
        self._part.close()

    def _hear_the_rest(self) -> None:
        """The writer has ended, by itself or not."""
        if self._stage is _Stage.MEASURE:
            self._end_measurement()
        self._hear(self._reader.finish())

    def _require_measured(self) -> None:
        if self._stage in (_Stage.PREPARING, _Stage.WARMUP):
            when = "its measurement began" if self._has_begun else "it printed `begin`"
            raise BedplateError(f"the writer of {self._name} ended before {when}")

    def _hear(self, lines: list[bytes]) -> None:
        """What the reader says: that the writer began, a second, or what it counted."""
        for line in lines:
            word = line.partition(b" ")[0]
            if word == b"begin":
                self._has_begun = True
            elif word == b"end":
                (self._logs / SUMMARY_FILE).write_bytes(line + b"\n")
                self._has_summary = True
            elif word[:1].isdigit():
                recording, phase = self._recording, self._stage.value
                phase_s = self._warmup_s if self._stage is _Stage.WARMUP else self._duration_s
                recording.context.emit(SecondSeen.read(line).event(recording.spec.name, phase, phase_s))

    def _size_bytes(self) -> int:
        """What the writer left, by the sizes of its files."""
        size_bytes, folders = 0, [str(self._place)]
        try:
            while folders:
                with os.scandir(folders.pop()) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                        elif entry.is_file(follow_symlinks=False):
                            size_bytes += entry.stat(follow_symlinks=False).st_size
        except OSError as error:
            raise BedplateError(
                f"what the writer of {self._name} left cannot be measured: {error.strerror}"
            ) from error
        return size_bytes

    def _enter(self, stage: _Stage) -> None:
        self._stage, self._since_s = stage, time.monotonic()


RUN: Workload = Acks()
