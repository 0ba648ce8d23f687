"""The microbenchmark: each test is a process of its own and a phase of its run.

Before each test what the one before left unwritten is on the medium; before each test of a cold pass the
file system is mounted anew. So a test's device counters are its own.
"""

from __future__ import annotations

import json
import os
import signal
import time
import zlib
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from bedplate import registry
from bedplate.errors import BedplateError
from bedplate.host.shut_in import Restriction
from bedplate.model.cell import RunSpec, engine_model
from bedplate.model.levels import Levels, Scalar, as_in_a_plan
from bedplate.model.reason import SCRATCH_DEVICE_FULL, Reason, because
from bedplate.model.visit import RunRecord, TimedItem
from bedplate.probe.kernel import ProcessProbe
from bedplate.units import MIB, format_size
from bedplate.visit.declaration import WAITING_COMMITS, WAITING_FLUSHES, WAITING_TEST, flushes_between
from bedplate.visit.recording import Recording, ToolProcess, VisitContext, Workload
from bedplate.workloads.microbenchmark.model import (
    COLD,
    DOCUMENTS,
    LEFT_OUT,
    PROGRESS,
    TESTS,
    WORKLOAD,
    OperationsDone,
    demands_waiting,
    has_transactions,
    is_fill,
    is_synchronous,
    progress_of,
    tests_of,
    write_progress,
    writes,
)

if TYPE_CHECKING:
    from bedplate.visit.cuts import BenchEngine

Remedies: TypeAlias = Mapping[str, tuple[str, str]]

# File systems refuse to give out their last few megabytes.
_FULL_BELOW_BYTES = 16 * MIB


@dataclass(frozen=True)
class BenchCall:
    """One test, as the driver is asked for it.

    `entries` and `value_bytes` are the dataset's, `levels` the run's; `settings` are all that the engine has of a test
    (`BenchEngine.opened`), `engine` what a person calls it. `fresh` makes a new database, else the one that is there is read or overwritten.
    """

    test: str
    fresh: bool
    writes: bool
    entries: int
    value_bytes: int
    levels: Levels
    settings: Levels
    engine: str
    seed: int

    def argv(self, driver: str, directory: Path) -> tuple[str, ...]:
        """The argument list."""
        return (
            driver,
            f"--directory={directory}",
            f"--tests={self.test}",
            f"--entries={self.entries}",
            f"--value-bytes={self.value_bytes}",
            f"--batch={self.levels.integer('batch') or 1}",
            f"--threads={self.levels.integer('processes') or self.levels.integer('threads') or 1}",
            *(
                (f"--duration-s={duration_s:.0f}",)
                if (duration_s := self.levels.number("duration_s"))
                else ()
            ),
            *(f"--set={name}={as_in_a_plan(level)}" for name, level in self.settings.items()),
            *(() if self.fresh else ("--existing",)),
            # What a test leaves unwritten is part of its price, and no part of the next test's.
            *(("--flush-after",) if self.writes else ()),
            f"--seed={self.seed}",
        )

    def expected_options(self) -> Mapping[str, Scalar]:
        """What the document must say that the driver was told."""
        return {
            "entries": self.entries,
            "value_bytes": self.value_bytes,
            "existing": not self.fresh,
        }


@dataclass(frozen=True)
class BenchDone:
    """One test that was done: its time, how many operations, and the version of the library that did them.

    `commits` are its transactions, 0 of a test that reads.
    """

    seconds: float
    operations: int
    library: str
    commits: int


def read_done(path: Path, call: BenchCall, remedies: Remedies, *, status: int, message: str) -> BenchDone:
    """The one test of a document; BedplateError says why it was not done, in the library's own words.

    `remedies` are those of the engine (`BenchEngine`), `status` is how the driver ended, `message` its words on standard error where it left no document.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["failure"] is not None:
            raise BedplateError(*_failure_reasons(document["failure"], call.test, remedies))
        if document["interrupted"] is not None:
            raise BedplateError(f"{call.test}: the driver was ended by {document['interrupted']}")
        (test,) = document["tests"]
        _verify({**document["options"], **test["settings"]}, call)
        timed = test["latency"] or {"of": None}
        done = BenchDone(
            test["elapsed_ns"] / 1e9,
            test["operations"],
            str(document["library"]["version"]),
            int(timed["count"]) if timed["of"] == "transaction" else 0,
        )
    except OSError as error:
        raise BedplateError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        if status != 0:
            raise BedplateError(
                f"{call.test}: the driver {_end_words(status)}{message and f': {message}'}"
            ) from error
        raise BedplateError(f"{call.test}: the driver left no whole document ({path.name})") from error
    if status != 0:
        raise BedplateError(f"{call.test}: the driver {_end_words(status)} after its document")
    return done


def _end_words(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    number = -status
    hint = "; the kernel's log tells whether memory ran out" if number == signal.SIGKILL else ""
    return f"was killed by {signal.Signals(number).name}{hint}"


def _failure_reasons(failure: Mapping[str, Any], test: str, remedies: Remedies) -> list[Reason]:
    words = f"{test}: {failure['error']} ({failure['step']}, after {failure['operations']} operations)"
    code, way_out = next(
        (remedy for said, remedy in remedies.items() if said in failure["error"]), ("test-failed", "")
    )
    reasons = [because(code, f"{words}; {way_out}" if way_out else words, test=test)]
    free_bytes = failure["free_bytes"]
    if free_bytes is not None and free_bytes < _FULL_BELOW_BYTES and not way_out:
        words = (
            f"the scratch device is full: no space left but {format_size(free_bytes)}; fewer entries or a larger "
            "image_size give it room"
        )
        reasons.append(because(SCRATCH_DEVICE_FULL, words))
    return reasons


def _verify(options: Mapping[str, Any], call: BenchCall) -> None:
    """What the driver took, and what its engine answered when it was asked for its settings."""
    wrong = [
        f"{call.test}: {name} = {asked!r} was asked for, and {call.engine} took {options[name]!r}"
        for name, asked in {**call.expected_options(), **call.settings}.items()
        if options[name] != asked
    ]
    if wrong:
        raise BedplateError(*wrong)


# Bounded, not timed out by accident: a disk of 10 synchronous commits a second, and a day on top.
_LIMIT_S = 24 * 3600.0

_S_PER_ENTRY = 0.1
_SYNC_LIMIT_S = 3600.0
_LINES_QUOTED = 6


class Microbenchmark(Workload):
    """`type = "microbenchmark"` in a plan. Its engine's driver is the engine's own; the fills are tests themselves, so nothing is loaded."""

    name = WORKLOAD
    # Its first name stays.
    protocol = "lmdb 1"

    def run(self, spec: RunSpec, context: VisitContext, directory: Path) -> RunRecord:
        """The tests of one run, in their order, until one fails."""
        recording = Recording(spec, context, directory)
        return recording.run_steps(lambda: _Tests(recording).run())


class _Tests:
    """The tests of one run."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._context = recording.context
        self._documents = recording.directory / DOCUMENTS
        levels = recording.context.dataset.levels
        self._entries, self._value_bytes = levels.integer("entries"), levels.integer("value_bytes")
        self._engine_name = recording.context.request.cell.build.engine
        self._engine: BenchEngine = registry.engine_part(self._engine_name, WORKLOAD)
        self._is_cold = recording.spec.levels.text("pass") == COLD

    def run(self) -> None:
        asked = tests_of(self._recording.spec)
        model, settings = engine_model(self._engine_name), self._context.engine_settings
        left_out = [
            test
            for test in asked
            if demands_waiting(test) and not model.waits_in_test(settings, synchronous=True)
        ]
        if left_out:
            self._recording.facts[LEFT_OUT] = ",".join(left_out)
        tests = [test for test in asked if test not in left_out]
        if not tests:
            raise BedplateError(
                f"no test is left: {', '.join(asked)} commit synchronously, and {model.commit_setting} = "
                f"{model.commit_mode(settings)}"
            )
        self._documents.mkdir()
        watching = ProcessProbe("watching", lambda: (os.getpid(),))
        with self._recording.sampled([watching], first_phase=tests[0]):
            for number, test in enumerate(tests, start=1):
                self._recording.tell(TESTS, test, position=number, of=len(tests))
                self._prepare(test)
                self._run_test(test, number, len(tests))

    def _prepare(self, test: str) -> None:
        """Nothing is left to write, and for a fill nothing is there; before a cold test nothing is cached."""
        self._recording.between_phases("between tests")
        if is_fill(test):
            for name in self._engine.files:
                (self._context.data_directory / name).unlink(missing_ok=True)
        if self._is_cold:
            self._context.make_cold()
            self._recording.facts["made_cold"] = True
        else:
            place = str(self._context.data_directory)
            self._context.commands.run(["sync", "--file-system", place], timeout_s=_SYNC_LIMIT_S)

    def _run_test(self, test: str, number: int, of: int) -> None:
        call = self._call(test)
        (driver,) = self._engine.drivers
        path = self._context.native_drivers[driver.name_for(self._context.engine_settings)]
        argv = call.argv(path, self._context.data_directory)
        self._recording.commands.append(argv)
        output = self._recording.directory / "logs" / test
        with self._recording.timed_phase(test), ExitStack() as stack:
            with self._recording.alone():
                tool = stack.enter_context(
                    ToolProcess(
                        argv,
                        self._context,
                        output=output,
                        directory=self._context.log_directory,
                        # Its library may be somebody's own.
                        confinement=Restriction(
                            self._context.account, (self._context.data_directory,), (Path(path),)
                        ),
                    )
                )
            said = self._follow(tool, test, number, of)
        if has_transactions(test):
            write_progress(self._documents / PROGRESS.format(test=test), self._progress)
        document = self._documents / f"{test}.json"
        output.with_suffix(".out").replace(document)
        done = read_done(document, call, self._engine.remedies, status=tool.outcome.status, message=said)
        self._context.tool_versions[self._engine.library] = done.library
        self._recording.add(TimedItem(TESTS, test, done.seconds, facts={"operations": done.operations}))
        self._count_flushes(test, done.commits)

    def _count_flushes(self, test: str, commits: int) -> None:
        """Keep the test that waits for its commits and lacked the most flushes: the class is held against it."""
        waits = engine_model(self._engine_name).waits_in_test(
            self._context.engine_settings, synchronous=is_synchronous(test)
        )
        counters, facts = self._recording.last_counters, self._recording.facts
        flushes = flushes_between(counters.before, counters.after)
        if not commits or not waits or flushes is None:
            return
        if WAITING_TEST not in facts or commits - flushes > float(facts[WAITING_COMMITS]) - float(
            facts[WAITING_FLUSHES]
        ):
            facts.update({WAITING_TEST: test, WAITING_COMMITS: commits, WAITING_FLUSHES: flushes})

    def _call(self, test: str) -> BenchCall:
        if self._entries is None or self._value_bytes is None:
            raise BedplateError(
                "the dataset names no entries or no value_bytes, so there is nothing to write"
            )
        return BenchCall(
            test=test,
            fresh=is_fill(test),
            writes=writes(test),
            entries=self._entries,
            value_bytes=self._value_bytes,
            levels=self._recording.spec.levels,
            settings=self._engine.opened(
                self._context.engine_settings,
                self._context.dataset.levels,
                synchronous=is_synchronous(test) if writes(test) else None,
                fresh=is_fill(test),
            ),
            engine=engine_model(self._engine_name).label,
            # Another sequence of keys in each test, and the same one in every cell.
            seed=self._context.seed + zlib.crc32(test.encode()),
        )

    def _follow(self, tool: ToolProcess, test: str, number: int, of: int) -> str:
        """Pass on the progress of each second; what else the driver said, its last lines."""
        rest, others, told_s = b"", [], time.monotonic()
        self._progress: list[OperationsDone] = []
        for piece in tool.pieces(limit_s=_LIMIT_S + _S_PER_ENTRY * (self._entries or 0)):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                progress = progress_of(line, time.monotonic())
                if progress is None:
                    others.append(line.decode(errors="replace").strip())
                    continue
                self._progress.append(progress)
                if progress.monotonic_s - told_s >= 1:
                    told_s = progress.monotonic_s
                    self._recording.tell(
                        TESTS, f"{test}: {progress.operations:,} done", position=number, of=of
                    )
        return " | ".join([line for line in others if line][:_LINES_QUOTED])


RUN: Workload = Microbenchmark()
