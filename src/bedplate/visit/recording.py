"""One run of several phases under way: their clocks and counters, its items, its course.

Collects what the record will say, whatever happens. A workload's own recording adds what only it knows.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import shutil
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol, Self

from bedplate import registry
from bedplate.errors import BedplateError, VisitFailed
from bedplate.host.command import Account, Commands, environment, restricted_environment
from bedplate.host.interruption import defer_interruptions
from bedplate.host.ledger import Ledger
from bedplate.host.pages import extents_of
from bedplate.host.requirement import Need
from bedplate.host.shut_in import Confinement, Restriction
from bedplate.model.cell import Dataset, RunSpec
from bedplate.model.levels import Levels, Scalar
from bedplate.model.reason import SCRATCH_DEVICE_FULL, Reason, because, distinct, reasons_of
from bedplate.model.visit import Outcome, Phase, PhaseCounters, RunRecord, Sample, TimedItem, VisitRequest
from bedplate.probe.kernel import ProcessProbe
from bedplate.probe.sampler import Probe, Sampler, read_all
from bedplate.units import MIB
from bedplate.visit.server import (
    PipedSession,
    Server,
    ServerFailed,
    SessionFailed,
    lacking_room,
    sql_server_of,
    why_the_server_is_gone,
)

if TYPE_CHECKING:
    from bedplate.host.native_driver import Library


class Recording:
    """What a run has recorded so far; `sampled` frames the measuring, `timed_phase` each part of it."""

    def __init__(self, spec: RunSpec, context: VisitContext, directory: Path) -> None:
        self.spec = spec
        self.context = context
        self.directory = directory
        self.reasons: list[Reason] = []
        self.facts: dict[str, Scalar] = {
            "memory_bytes": context.memory_bytes,
            "cpu_count": os.cpu_count() or 1,
        }
        self.commands: list[tuple[str, ...]] = []
        self._items: list[TimedItem] = []
        self._phases: list[Phase] = []
        self._warm_ups: list[Phase] = []
        self._counters: list[PhaseCounters] = []
        self._probes: list[Probe] = []
        self._on_sample: Callable[[Sample], None] | None = None
        self._sampler: Sampler | None = None
        # Several threads may tell of what they do.
        self._telling = threading.Lock()

    @contextlib.contextmanager
    def sampled(
        self,
        probes: Sequence[Probe],
        *,
        first_phase: str,
        on_sample: Callable[[Sample], None] | None = None,
    ) -> Iterator[None]:
        """The context's probes and these beside the run, once a second and at the ends of its phases."""
        self._probes = [*self.context.probes, *probes]
        self._on_sample = on_sample
        self._start_sampling(first_phase)
        try:
            yield
        finally:
            self._stop_sampling()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """No thread samples meanwhile: a child that runs Python before its program is forked in here."""
        sampler = self._stop_sampling()
        try:
            yield
        finally:
            if sampler is not None:
                self._start_sampling(sampler.phase)

    def _start_sampling(self, phase: str) -> None:
        course = self.directory / "course.jsonl"
        self._sampler = Sampler(self._probes, course, on_sample=self._on_sample)
        self._sampler.phase = phase
        self._sampler.start()

    def _stop_sampling(self) -> Sampler | None:
        sampler, self._sampler = self._sampler, None
        if sampler is not None:
            sampler.stop()
            if sampler.problem is not None:
                self.facts.setdefault("course_problem", sampler.problem)
        return sampler

    @contextlib.contextmanager
    def timed_phase(self, name: str, settle: Callable[[], None] = lambda: None) -> Iterator[None]:
        """One phase: its clocks, and the counters just before and after it; `settle` comes before the latter."""
        before = read_all(self._probes, phase=name)
        self._name_samples(name)
        start_monotonic_s, start_wall_s = time.monotonic(), time.time()
        try:
            yield
        finally:
            self._phases.append(Phase(name, start_monotonic_s, time.monotonic(), start_wall_s, time.time()))
        settle()
        self._counters.append(PhaseCounters(name, before, read_all(self._probes, phase=name)))

    @contextlib.contextmanager
    def warm_up(self) -> Iterator[None]:
        """A phase `warmup`: recorded, and in no figure, so that no counters frame it."""
        self._name_samples("warmup")
        start_monotonic_s, start_wall_s = time.monotonic(), time.time()
        try:
            yield
        finally:
            self._warm_ups.append(
                Phase("warmup", start_monotonic_s, time.monotonic(), start_wall_s, time.time())
            )

    @property
    def last_counters(self) -> PhaseCounters:
        """Of the phase that ended last."""
        return self._counters[-1]

    def between_phases(self, name: str) -> None:
        """What is sampled from here on belongs to no phase that is measured, but to `name`."""
        self._name_samples(name)

    def _name_samples(self, phase: str) -> None:
        if self._sampler is not None:
            self._sampler.phase = phase

    def add(self, item: TimedItem) -> None:
        """Something that was timed."""
        self._items.append(item)

    def add_facts(self, phase: str, name: str, **facts: Scalar) -> None:
        """More of what was found out about an item."""
        self._items = [
            replace(item, facts={**item.facts, **facts}) if (item.phase, item.item) == (phase, name) else item
            for item in self._items
        ]

    def tell(self, phase: str, item: str, *, position: int, of: int) -> None:
        """Say what happens now; `position` counts from 1 and includes it."""
        with self._telling:
            self.context.emit(
                {
                    "event": "item",
                    "run": self.spec.name,
                    "phase": phase,
                    "item": item,
                    "done": position,
                    "of": of,
                }
            )

    def run_steps(self, measure: Callable[[], None]) -> RunRecord:
        """The record of these steps: what stops them is its reason, and what ended the server with them.

        VisitFailed where the stand could not be made cold: nothing is left then to run on.
        """
        try:
            measure()
        except VisitFailed:
            raise
        except BedplateError as error:
            self.reasons += reasons_of(error)
            if isinstance(error, ServerFailed | SessionFailed):
                self.reasons += why_the_server_is_gone(self.context)
        return self.record()

    def record(self) -> RunRecord:
        """What is known now; `completed` only if nothing spoke against it."""
        whole = bool(self._counters) and len(self._counters) == len(self._phases)
        return RunRecord(
            spec=self.spec,
            outcome=Outcome.FAILED if self.reasons else Outcome.COMPLETED,
            reasons=distinct(self.reasons),
            phases=(*self._warm_ups, *self._phases),
            before=self._counters[0].before if self._counters else None,
            after=self._counters[-1].after if whole else None,
            facts=self.facts,
            commands=tuple(self.commands),
            phase_counters=tuple(self._counters),
            items=tuple(self._items),
        )


# What the kernel still holds when a tool has ended is written in a phase of its own: no figure of the tool hides it.
SYNC_PHASE = "sync"

# A disk that writes less than this is not slow but stuck.
_SLOWEST_BYTES_PER_S = 1 << 20

_LEAST_LIMIT_S = _REMOVAL_LIMIT_S = 900.0

_NO_SPACE = os.strerror(errno.ENOSPC)

_FULL = because(
    SCRATCH_DEVICE_FULL,
    "the scratch device is full: no space left; a smaller file_size or size, or a larger image_size gives it room",
)


class RawRecording(Recording):
    """What a run has recorded so far."""

    @contextlib.contextmanager
    def place(self) -> Iterator[Path]:
        """A directory of the tool's own on the scratch device, gone afterwards, whatever the tool left in it."""
        path = self.context.data_directory / "raw"
        try:
            path.mkdir(mode=0o700)
            shutil.chown(path, self.context.account.uid, self.context.account.gid)
        except OSError as error:
            # A file system that has seen an error may be read-only by now.
            raise BedplateError(f"{path} cannot be made: {error.strerror}") from error
        try:
            yield path
        except VisitFailed:
            raise
        except BedplateError as error:
            # Before it goes: what fills the device tells why the tool failed.
            raise BedplateError(*reasons_of(error), *self._why_no_room(error)) from error
        finally:
            # Not by shutil: it calls itself for each folder, and a program of others may make thousands, one in the other.
            argv = ["rm", "--recursive", "--force", "--one-file-system", str(path)]
            self.context.commands.run(argv, check=False, timeout_s=_REMOVAL_LIMIT_S)

    @contextlib.contextmanager
    def watched(self, *, first_phase: str) -> Iterator[None]:
        """Probes beside the tool; its CPU is that of the visit's group."""
        with self.sampled([ProcessProbe("watching", lambda: (os.getpid(),))], first_phase=first_phase):
            yield

    def sync(self, place: Path, *, of_bytes: int) -> None:
        """Write what is left, as a phase of its own; CommandFailed where the device refuses."""
        with self.timed_phase(SYNC_PHASE):
            self.context.commands.run(
                ["sync", "--file-system", str(place)], timeout_s=time_limit_s(of_bytes, times=1)
            )

    def _why_no_room(self, error: BedplateError) -> tuple[Reason, ...]:
        """One more reason where the scratch device has no room left; some tools delete their files as they give up."""
        refused = error.__cause__.errno if isinstance(error.__cause__, OSError) else None
        if _NO_SPACE in error.said or refused == errno.ENOSPC:
            return (_FULL,)
        return lacking_room(self.context.mount_point, _FULL)


def time_limit_s(moved_bytes: int, *, times: int, more_s: float = 0.0) -> float:
    """How long a tool may take: bounded, not timed out by accident."""
    return _LEAST_LIMIT_S + times * moved_bytes / _SLOWEST_BYTES_PER_S + more_s


WARMUP, MEASURE = "warmup", "measure"

# A catalogue's file is one piece, and there are hundreds of them.
_LARGER_BYTES = MIB


class ClientRecording(Recording):
    """What a run has recorded so far; `watched` frames both phases, `follow` is one process of the client."""

    def __init__(self, spec: RunSpec, context: VisitContext, directory: Path) -> None:
        super().__init__(spec, context, directory)
        self.server = sql_server_of(context)
        self._client_pids: list[int] = []
        self._watching_pids: list[int] = [os.getpid()]

    @contextlib.contextmanager
    def watched(
        self, session: PipedSession, *, on_sample: Callable[[Sample], None] | None = None
    ) -> Iterator[None]:
        """A checkpoint, then probes beside the run, which have the session to themselves; its sizes at the end."""
        self._watching_pids.append(session.pid)
        self.server.checkpoint(session)
        probes = [
            self.server.probe(session),
            ProcessProbe("client", lambda: tuple(self._client_pids)),
            ProcessProbe("watching", lambda: tuple(self._watching_pids)),
        ]
        with self.sampled(probes, first_phase=WARMUP, on_sample=on_sample):
            yield
        if self.context.server is not None:
            self.context.server.check_alive()
        sizes = self.server.sizes(session)
        self.facts |= {
            "database_bytes": sizes.database_bytes,
            "wal_bytes_on_disk": sizes.log_bytes,
            "block_size_bytes": sizes.block_size_bytes,
            **pieces_of(sizes.files),
        }

    def follow(
        self,
        phase: str,
        duration_s: float,
        client_of: Callable[[Path], LoggedClient],
        *,
        on_second: Callable[[LoggedClient, SecondSeen], None] | None = None,
    ) -> ClientEnded:
        """One process from its start to its end, good or bad; `client_of` gets how the names of its logs begin."""
        logs = self.context.log_directory / f"{phase}-{self.spec.id}"
        logs.mkdir()
        shutil.chown(logs, self.context.account.uid, self.context.account.gid)
        client = client_of(logs / "log")
        self.commands.append(tuple(client.argv))
        try:
            client.start()
            self._client_pids.append(client.pid)
            self._watching_pids.append(client.log_reader_pid)
            for seen in client.seconds():
                self.context.emit(seen.event(self.spec.name, phase, duration_s))
                if on_second is not None:
                    on_second(client, seen)
            ended = client.finish()
        finally:
            client.abandon()
            shutil.rmtree(logs, ignore_errors=True)
        self.facts[f"{phase}_client_cpu_s"] = ended.client_cpu_s
        self.facts[f"{phase}_client_sleeps"] = ended.sleeps
        return ended

    def demand(self, client_end: ClientEnded) -> None:
        """BedplateError with what the client said where it ended badly, and why the server is gone, if it is."""
        if client_end.problem is not None:
            raise BedplateError(client_end.problem, *why_the_server_is_gone(self.context))

    def record(self) -> RunRecord:
        """What is known now; the counters of its one measured phase are those of the run."""
        return replace(super().record(), phase_counters=())


def pieces_of(files: Iterable[Path]) -> Mapping[str, Scalar]:
    """In how many pieces the larger of them lie, and their bytes; nothing where the file system has no map of them."""
    pieces = size_bytes = 0
    for path in files:
        try:
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_size >= _LARGER_BYTES:
                # Mapped as they are: to write them back would be a part of the next run.
                pieces += len(extents_of(path, written_back=False))
                size_bytes += status.st_size
        except FileNotFoundError:
            continue
        except OSError:
            return {}
    return {"data_extents": pieces, "data_bytes": size_bytes} if size_bytes else {}


# The reader has at most the log's tail left when the client ends.
_READER_LIMIT_S = 120.0


@dataclass(frozen=True)
class SecondSeen:
    """What the reader knows of one second of the log, for display and for the steady warm-up."""

    second: int
    transactions: int
    latency_us_sum: int
    latency_us_max: int

    @classmethod
    def read(cls, line: bytes) -> SecondSeen:
        """From a line of the reader."""
        second, transactions, latency_us_sum, latency_us_max = (int(word) for word in line.split()[:4])
        return cls(second, transactions, latency_us_sum, latency_us_max)

    def event(self, run_name: str, phase: str, phase_s: float) -> Mapping[str, Scalar]:
        """What a display is told of it: the second of a phase that takes `phase_s`."""
        told: dict[str, Scalar] = {
            "event": "second",
            "run": run_name,
            "phase": phase,
            "phase_s": phase_s,
            "transactions": self.transactions,
        }
        if self.transactions:
            told["latency_ms_mean"] = self.latency_us_sum / self.transactions / 1000
        return told


@dataclass(frozen=True)
class ClientEnded:
    """How a client ended; `problem` is None when all is well.

    `said` is the end of what it printed on standard error, where it ended badly. `sleeps` counts how often its threads had nothing to do and waited (voluntary context switches, getrusage(2)).
    """

    status: int
    client_cpu_s: float
    problem: str | None
    sleeps: int = 0
    said: str = ""


class LoggedClient:
    """Start, follow the seconds, finish; `abandon` cleans up whatever is left at any moment."""

    def __init__(
        self,
        *,
        argv: Sequence[str],
        restriction: Restriction,
        log_reader: Sequence[str],
        log_prefix: Path,
        condensed: Path,
        output: Path,
        more_environment: Mapping[str, str] | None = None,
        kept_of_errors: Callable[[str], str] = str,
    ) -> None:
        """The client is left what its `restriction` says, and `kept_of_errors` makes of what the client prints on standard error what may be kept of it."""
        self.argv = list(argv)
        self._name = Path(argv[0]).name
        self._more_environment = more_environment
        self._restriction = restriction
        self._log_reader = tuple(log_reader)
        self._log_prefix = log_prefix
        self._condensed = condensed
        self._output = output
        self._kept_of_errors = kept_of_errors
        self._client: subprocess.Popen[bytes] | None = None
        self._reader: subprocess.Popen[bytes] | None = None
        self._client_cpu_s = 0.0
        self._sleeps = 0

    @property
    def pid(self) -> int:
        """The process id of the client."""
        return _started(self._client).pid

    @property
    def log_reader_pid(self) -> int:
        """The process id of the log's reader."""
        return _started(self._reader).pid

    def start(self) -> None:
        """Start the reader, then the client."""
        with defer_interruptions():
            self._start()

    def _start(self) -> None:
        self._reader = subprocess.Popen(
            [
                *self._log_reader,
                "--prefix",
                str(self._log_prefix),
                "--output",
                str(self._condensed),
                "--punch",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._condensed.with_suffix(".err").open("wb"),
            env=environment(),
            cwd="/",
            start_new_session=True,
        )
        try:
            with (
                self._output.with_suffix(".out").open("wb") as out,
                self._output.with_suffix(".err").open("wb") as err,
                self._restriction.child() as become,
            ):
                self._client = subprocess.Popen(
                    self.argv,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    env=restricted_environment(self._more_environment),
                    cwd=self._log_prefix.parent,
                    start_new_session=True,
                    preexec_fn=become,  # noqa: PLW1509 -- it takes no lock
                )
        except OSError as error:
            raise BedplateError(f"{self.argv[0]} cannot be started: {error.strerror}") from error

    def seconds(self) -> Iterator[SecondSeen]:
        """What the reader reports, second by second, until the client and then the reader have ended."""
        client, reader = _started(self._client), _started(self._reader)
        assert reader.stdout is not None  # noqa: S101 -- Popen was given pipes
        ended = os.pidfd_open(client.pid)
        lines = reader.stdout.fileno()
        waiting_for = [ended, lines]
        rest = b""
        try:
            while True:
                ready, _, _ = select.select(
                    waiting_for, [], [], None if ended in waiting_for else _READER_LIMIT_S
                )
                if not ready:
                    raise BedplateError(f"{self._log_reader[0]} did not end after {self._name} had")
                if ended in ready:
                    self._reap(client)
                    waiting_for.remove(ended)
                    self._tell_reader_to_end(reader)
                if lines in ready:
                    chunk = os.read(lines, 65536)
                    if not chunk:
                        break
                    *whole, rest = (rest + chunk).split(b"\n")
                    yield from (SecondSeen.read(line) for line in whole if line.strip())
            if ended in waiting_for:
                raise BedplateError(f"{self._log_reader[0]} ended before {self._name}: {self._reader_said()}")
        finally:
            os.close(ended)

    def stop_early(self, by: signal.Signals) -> None:
        """End a warm-up that has done its work, by a signal that lets each session finish its transaction and leave.

        A kill would leave the server complaining of lost connections.
        """
        client = _started(self._client)
        if client.returncode is None:
            client.send_signal(by)

    def finish(self) -> ClientEnded:
        """Wait for both, and say how the client ended."""
        client, reader = _started(self._client), _started(self._reader)
        try:
            reader_status = reader.wait(_READER_LIMIT_S)
        except subprocess.TimeoutExpired:
            raise BedplateError(f"{self._log_reader[0]} did not end") from None
        if reader_status != 0:
            raise BedplateError(f"the transaction log could not be read: {self._reader_said()}")
        status = client.returncode
        errors = self._output.with_suffix(".err")
        errors.write_text(
            self._kept_of_errors(errors.read_text(encoding="utf-8", errors="replace")), encoding="utf-8"
        )
        if status == 0:
            return ClientEnded(status, self._client_cpu_s, None, self._sleeps)
        said = self._client_said()
        problem = f"{self._name} ended with status {status}: {said}"
        return ClientEnded(status, self._client_cpu_s, problem, self._sleeps, said)

    def abandon(self) -> None:
        """Kill and reap whatever still runs; harmless after `finish`."""
        for process in (self._client, self._reader):
            if process is not None and process.returncode is None and process.poll() is None:
                process.kill()
                process.wait()
        if self._reader is not None:
            for stream in (self._reader.stdin, self._reader.stdout):
                if stream is not None and not stream.closed:
                    _close(stream)

    def _reap(self, process: subprocess.Popen[bytes]) -> None:
        # wait4 gives the CPU time that Popen.wait throws away.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self._client_cpu_s = usage.ru_utime + usage.ru_stime
        self._sleeps = usage.ru_nvcsw

    @staticmethod
    def _tell_reader_to_end(reader: subprocess.Popen[bytes]) -> None:
        if reader.stdin is not None:
            _close(reader.stdin)

    def _client_said(self) -> str:
        text = self._output.with_suffix(".err").read_text(encoding="utf-8", errors="replace")
        lines = [line for line in text.splitlines() if line.strip()]
        return " | ".join(lines[-5:]) or "(it printed nothing)"

    def _reader_said(self) -> str:
        text = self._condensed.with_suffix(".err").read_text(encoding="utf-8", errors="replace")
        return text.strip() or "(it printed nothing)"


def _close(stream: IO[bytes]) -> None:
    # The other side may have gone first.
    with contextlib.suppress(BrokenPipeError):
        stream.close()


def _started(process: subprocess.Popen[bytes] | None) -> subprocess.Popen[bytes]:
    if process is None:
        raise RuntimeError("the process has not been started")
    return process


_LINES_QUOTED, _CHARACTERS_QUOTED = 6, 2000

# How often a tool that may end early is held against what would end it.
_ENOUGH_EVERY_S = 0.05

# What a tool says on its standard error is kept so far, and its last words behind that: it might fill a disk.
_KEPT_BYTES, _LAST_BYTES = 1 << 20, 1 << 14


@dataclass(frozen=True)
class ToolEnded:
    """How the tool ended; `problem` is None when all is well, else a sentence with its own words, `said`.

    `cpu_s` is the CPU time of the tool and of every child that it waited for. `asked_to_end` says that it ended because
    it was told to.
    """

    status: int
    cpu_s: float
    problem: str | None
    said: str = ""
    asked_to_end: bool = False


class ToolFailed(BedplateError):
    """A tool ended with another status than 0, or by a signal."""

    code = "tool-failed"

    def __init__(self, problem: str, tool_end: ToolEnded) -> None:
        super().__init__(problem)
        self.said = tool_end.said
        self.status = tool_end.status


class ToolProcess:
    """Runs from `with` to its end: follow its words with `pieces`, then ask `ended`; leaving the block kills it.

    What it prints is kept in `<output>.out` and `<output>.err`. Begin it where no other thread runs: the child
    executes Python before it becomes the tool. By its `confinement` it drops its rights; one that has an `argv`, which is this, lets it see two
    folders. `name` is what a person calls it; `marks` is a file that its standard output goes to instead.
    """

    def __init__(
        self,
        argv: Sequence[str],
        context: VisitContext,
        *,
        output: Path,
        directory: Path,
        confinement: Confinement | Restriction,
        name: str | None = None,
        marks: Path | None = None,
    ) -> None:
        self.argv = tuple(argv)
        self._context = context
        self._output = output
        self._directory = directory
        self._name = name or self.argv[0]
        self._confinement = confinement
        self._marks = marks
        self._process: subprocess.Popen[bytes] | None = None
        self._ended: ToolEnded | None = None
        self._asked_to_end = False

    def __enter__(self) -> Self:
        try:
            with defer_interruptions():
                self._process = self._start()
            self._context.commands.record.append(self.argv)
            return self  # noqa: TRY300 -- behind the `try` nobody would end it
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        process = self._process
        if process is None:
            return
        if self._ended is None:
            # Its children too: a job of an I/O tool would go on writing.
            self.signal(signal.SIGKILL)
            process.wait()
        if process.stderr is not None:
            process.stderr.close()

    @property
    def output(self) -> Path:
        """The file of its standard output."""
        return self._output.with_suffix(".out")

    @property
    def errors(self) -> Path:
        """The file of its standard error."""
        return self._output.with_suffix(".err")

    def signal(self, number: int) -> None:
        """To the tool and the children that did not leave its group."""
        with suppress(ProcessLookupError):
            os.killpg(self._running.pid, number)

    @property
    def outcome(self) -> ToolEnded:
        """How it ended, after `pieces` has."""
        if self._ended is None:
            raise RuntimeError(f"{self.argv[0]} has not ended yet")
        return self._ended

    def pieces(self, *, limit_s: float, enough: Callable[[], bool] | None = None) -> Iterator[bytes]:
        """What comes on its standard error, as it comes, until it has ended; BedplateError after the limit.

        Once `enough`, which is asked all the while, says so, the tool is sent SIGTERM, and has to end in order.
        """
        process = self._running
        assert process.stderr is not None  # noqa: S101 -- Popen was given a pipe
        words = process.stderr.fileno()
        exit_ = os.pidfd_open(process.pid)
        waiting_for = [words, exit_]
        deadline = time.monotonic() + limit_s
        try:
            with self._kept_errors() as keep:
                while waiting_for:
                    patience_s = max(0.0, deadline - time.monotonic())
                    if enough is not None and not self._asked_to_end:
                        if enough():
                            # Popen's own would look first whether it has ended, and take its CPU time away.
                            with suppress(ProcessLookupError):
                                signal.pidfd_send_signal(exit_, signal.SIGTERM)
                            self._asked_to_end = True
                        patience_s = min(patience_s, _ENOUGH_EVERY_S)
                    ready, _, _ = select.select(waiting_for, [], [], patience_s)
                    if not ready and time.monotonic() < deadline:
                        continue
                    if not ready:
                        raise BedplateError(
                            f"{self._name} did not end within {limit_s:.0f} s and was killed: {self._last_lines()}"
                        )
                    if words in ready:
                        piece = os.read(words, 65536)
                        keep(piece)
                        if piece:
                            yield piece
                        else:
                            waiting_for.remove(words)
                    elif exit_ in ready:
                        self._reap(process)
                        waiting_for.remove(exit_)
        finally:
            os.close(exit_)
        if self._ended is None:
            self._reap(process)

    @contextmanager
    def _kept_errors(self) -> Iterator[Callable[[bytes], object]]:
        """Keeps what it says, and not without end."""
        room, last = _KEPT_BYTES, b""
        with self.errors.open("wb", buffering=0) as kept:

            def keep(piece: bytes) -> None:
                nonlocal room, last
                kept.write(piece[:room])
                last = (last + piece[room:])[-_LAST_BYTES:]
                room -= len(piece[:room])
                if last:
                    # In the place of those that were the last before.
                    kept.seek(_KEPT_BYTES)
                    kept.truncate()
                    kept.write(b"\n(not all of it was kept)\n" + last)

            yield keep

    def wait(self, *, limit_s: float, enough: Callable[[], bool] | None = None) -> ToolEnded:
        """Until it has ended, whatever it says meanwhile."""
        for _ in self.pieces(limit_s=limit_s, enough=enough):
            pass
        return self.outcome

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError(f"{self.argv[0]} has not been started")
        return self._process

    def _start(self) -> subprocess.Popen[bytes]:
        try:
            with (
                (self._marks or self.output).open("ab" if self._marks else "wb") as out,
                self._confinement.child() as become,
            ):

                def become_tool() -> None:
                    self._context.enter_group()
                    become()

                return subprocess.Popen(
                    self.argv,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.PIPE,
                    env=restricted_environment(),
                    cwd=self._directory,
                    start_new_session=True,
                    # subprocess runs preexec_fn after it has dropped privileges; the group can only be
                    # entered before, so both are done here, in that order.
                    preexec_fn=become_tool,  # noqa: PLW1509 -- begun where no other thread runs
                )
        except OSError as error:
            raise BedplateError(
                f"{self.argv[0]} cannot be started: {error.strerror}; is its package installed? "
                "`bedplate doctor` lists what is missing"
            ) from error

    def _reap(self, process: subprocess.Popen[bytes]) -> None:
        # wait4 gives the CPU time that Popen.wait throws away.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said = self._last_lines() if process.returncode else ""
        self._ended = ToolEnded(
            process.returncode,
            usage.ru_utime + usage.ru_stime,
            self._problem(process.returncode, said),
            said=said,
            asked_to_end=self._asked_to_end,
        )

    def _problem(self, status: int, message: str) -> str | None:
        if status == 0:
            return None
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return f"{self._name} {how}: {message}"

    def _last_lines(self) -> str:
        """Its last lines: on standard error if it said anything there, else what is no document."""
        for path in (self.errors, *(() if self._marks else (self.output,))):
            text = path.read_text(encoding="utf-8", errors="replace")
            before_json = text.partition("\n{")[0] if path == self.output else text
            lines = [line.strip() for line in before_json.splitlines() if line.strip() not in ("", "{")]
            if lines:
                return " | ".join(lines[-_LINES_QUOTED:])[-_CHARACTERS_QUOTED:]
        return "(it printed nothing)"


@dataclass(frozen=True)
class Driver:
    """A program of bedplate's own that a workload is driven with: `drivers/<program>.c` and its libraries.

    With a `variant` it is compiled with `drivers/<program>/<variant>` too: what one engine has of it. `library_settings` are those
    of an engine's settings that names another library than the distribution's. One that `is_preloaded` is a shared object.
    """

    program: str
    libraries: tuple[Library, ...] = ()
    variant: str = ""
    library_settings: tuple[str, ...] = ()
    is_preloaded: bool = False

    @property
    def name(self) -> str:
        """Under which a visit finds it."""
        return f"{self.program}_{self.variant}" if self.variant else self.program

    def name_with(self, library: str) -> str:
        """The same of one that is compiled with a library that cells name."""
        # Of a commit the digits alone: a subject is no name of a file.
        return f"{self.name}-{library.partition(' ')[0]}"

    def name_for(self, settings: Levels) -> str:
        """That of a cell, by its engine's settings."""
        library = next(filter(None, map(settings.text, self.library_settings)), None)
        return self.name if library is None else self.name_with(library)


@dataclass(frozen=True)
class VisitContext:
    """Everything that a workload stands on in one visit.

    `memory_bytes` is the limit of the server's group, else the machine's memory. `data_directory` lies on
    the scratch device and belongs to `account`. `enter_group` moves a child of ours into that group before
    it runs a program: one that does the I/O itself, where there is no server.
    `probes` are those of the machine and the device; a workload adds its engine's and its client's.
    `log_directory` is on tmpfs, owned by `account`: what a client writes while it is measured goes
    there and never to the scratch device. `inputs` are paths of what was made for the workloads before
    the visit. `engine_settings` are the cell's, for an engine that the workload itself opens; into
    `tool_versions` it puts the versions of the libraries and tools that do the work. `expected_answers` are digests of right answers by the question; a run adds its own, which
    later runs are held to. `answer_sources` say in which run of which visit an answer was found, where that is known. `make_cold` stops the server, mounts the file system anew and starts it again:
    nothing is cached afterwards, and every session is gone. A workload that makes file systems or servers of its own does so from the `request`, below
    `place`, and notes them in the `ledger`. `emit` tells the caller of the visit what happens now.
    """

    request: VisitRequest
    ledger: Ledger
    place: Path
    dataset: Dataset
    memory_bytes: int
    mount_point: Path
    data_directory: Path
    account: Account
    commands: Commands
    probes: Sequence[Probe]
    native_drivers: Mapping[str, str]
    log_directory: Path
    seed: int
    emit: Callable[[Mapping[str, Scalar]], None]
    server: Server | None
    engine_settings: Levels
    tool_versions: MutableMapping[str, str]
    enter_group: Callable[[], None]
    inputs: Mapping[str, str]
    expected_answers: MutableMapping[str, str]
    answer_sources: MutableMapping[str, str]
    make_cold: Callable[[], None]


class Workload:
    """Loads a dataset and measures runs on it; one file each, named in `bedplate/registry.py`.

    `protocol` names the version of how it measures, and is raised whenever a change makes old and new figures incomparable: runs of
    two versions are not compared. `needs` are programs of the system, `drivers` what is compiled beforehand for whatever engine (`drivers_of`).
    """

    name: str
    protocol: str
    needs: tuple[Need, ...] = ()
    drivers: tuple[Driver, ...] = ()

    def load(self, dataset: Dataset, context: VisitContext) -> None:
        """Load the dataset; the caller times it. Nothing where each run makes its own."""

    def run(self, spec: RunSpec, context: VisitContext, directory: Path) -> RunRecord:
        """Measure one run; a run that fails comes back as `failed` with reasons, not as an error."""
        raise NotImplementedError


def workload_for(name: str) -> Workload:
    """The workload of that name; PlanError lists the known ones."""
    workload: Workload = registry.part(name, "run")
    return workload


class WorkloadEngine(Protocol):
    """What an engine has for one type of workloads: a role that is called as the type is."""

    drivers: tuple[Driver, ...]


def drivers_of(workloads: Iterable[str], engines: Iterable[str]) -> tuple[Driver, ...]:
    """What is compiled for these types of workloads on these engines, each once."""
    found: dict[Driver, None] = {}
    engines = tuple(dict.fromkeys(engines))
    for name in workloads:
        found |= dict.fromkeys(workload_for(name).drivers)
        for engine in engines:
            own: WorkloadEngine | None = registry.engine_part_or_none(engine, registry.type_today(name))
            found |= dict.fromkeys(own.drivers if own is not None else ())
    return tuple(found)
