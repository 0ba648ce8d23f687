"""The figures of a run of the microbenchmark: tests that write, or one pass of tests that read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic import dataclasses as pydantic_dataclasses

from bedplate.errors import BedplateError, OutputNotUnderstood
from bedplate.figures.counters import Deltas, part_figures_without_server
from bedplate.figures.courses import nearest_rank
from bedplate.figures.facts import deltas_of, free_space_figures, step_figure, text
from bedplate.figures.phased import PhasedFigures, PhasedRun, device_bytes, phase_deltas
from bedplate.figures.run import FigureMaker, Made
from bedplate.figures.samples import RunInputs, shared_evidence
from bedplate.figures.validity import OF_EVERY_TIMED_RUN, READ_SHARE_MIN, Moved, ToolEvidence, below
from bedplate.model.cell import engine_model
from bedplate.model.course import COURSE_FILE
from bedplate.model.figure import Figure, RunFigures, Status
from bedplate.model.metrics import figure
from bedplate.model.reason import Reason, because
from bedplate.model.rules import Rule, RunRules
from bedplate.model.visit import RunRecord
from bedplate.units import MIB, format_size, percent
from bedplate.workloads.microbenchmark.model import (
    COLD,
    DOCUMENTS,
    FORMER_DOCUMENTS,
    LEFT_OUT,
    PROGRESS,
    TESTS,
    read_progress,
    tests_of,
)

_TOOL = "the driver of the microbenchmark"
_STRICT = ConfigDict(strict=True, extra="forbid")

Count = Annotated[int, Field(ge=0)]

Settings = dict[str, str | int | bool]

Bucket = tuple[Count, Annotated[int, Field(ge=1)]]


@pydantic_dataclasses.dataclass(frozen=True, kw_only=True, config=_STRICT)
class BenchLatency:
    """Latencies in nanoseconds, of every `every`-th operation; `of` says what one is.

    A "transaction" of a batch test is the whole batch. `buckets` are (bucket, count), ascending, no zero
    counts; up to 2 x `sub_buckets` a bucket is one nanosecond, from there on each octave has `sub_buckets`
    of them. `min_ns` and `max_ns` are None where nothing was timed.
    """

    of: Literal["transaction", "read"]
    every: Annotated[int, Field(ge=1)]
    count: Count
    sum_ns: Count
    min_ns: Count | None
    max_ns: Count | None
    sub_buckets: Annotated[int, Field(ge=1)]
    buckets: tuple[Bucket, ...]

    @model_validator(mode="after")
    def _verify(self) -> BenchLatency:
        if any(first[0] >= second[0] for first, second in pairwise(self.buckets)):
            raise ValueError("the buckets do not ascend")
        if sum(count for _, count in self.buckets) != self.count:
            raise ValueError(f"the buckets do not add up to the count of {self.count}")
        if self.min_ns is None or self.max_ns is None:
            if self.count or self.min_ns != self.max_ns:
                raise ValueError("min_ns or max_ns is missing")
            return self
        if not self.count or not self.count * self.min_ns <= self.sum_ns <= self.count * self.max_ns:
            raise ValueError("the sum does not lie between the least and the greatest")
        for bucket, value in ((self.buckets[0][0], self.min_ns), (self.buckets[-1][0], self.max_ns)):
            lower, after = bucket_bounds_ns(bucket, self.sub_buckets)
            # The driver's last bucket takes everything above its range, which no disk has reached.
            if not lower <= value < after:
                raise ValueError(f"{value} ns does not lie in bucket {bucket}")
        return self

    @property
    def mean_ns(self) -> float | None:
        """The exact mean; None where nothing was timed."""
        return self.sum_ns / self.count if self.count else None

    def percentile_ns(self, quantile: float) -> float | None:
        """The nearest-rank percentile for a quantile of (0, 1]; None where nothing was timed.

        It is the middle of a bucket, within least and greatest: at most 0.4 % off with 128 sub-buckets.
        """
        if not 0 < quantile <= 1:
            raise ValueError(f"a quantile lies in (0, 1], found {quantile}")
        if self.min_ns is None or self.max_ns is None:
            return None
        rank = nearest_rank(quantile, self.count)
        running = accumulate(count for _, count in self.buckets)
        at = next(at for at, total in enumerate(running) if total >= rank)
        lower, after = bucket_bounds_ns(self.buckets[at][0], self.sub_buckets)
        return min(max((lower + after - 1) / 2, self.min_ns), self.max_ns)


@pydantic_dataclasses.dataclass(frozen=True, kw_only=True, config=_STRICT)
class BenchSide:
    """One loop: a whole test, one reader or the writer of readwhilewriting, one process of tpcb.

    `bytes` are those of keys and values. `found` counts random reads that met an entry, None for other
    tests; `busy` counts attempts that met a lock, None for tests that cannot. CPU times are the process's for a whole test, else the thread's.
    """

    operations: Count
    found: Count | None
    elapsed_ns: Count
    bytes: Count
    cpu_user_us: Count
    cpu_system_us: Count
    latency: BenchLatency | None
    busy: Count | None = None

    @model_validator(mode="after")
    def _verify_counts(self) -> BenchSide:
        if self.found is not None and self.found > self.operations:
            raise ValueError(f"found {self.found} in {self.operations} reads")
        if self.latency is not None and self.latency.count > self.operations:
            raise ValueError(f"{self.latency.count} latencies of {self.operations} operations")
        return self

    @property
    def operations_per_s(self) -> float | None:
        """None where no time passed, or nothing was done."""
        return self.operations * 1e9 / self.elapsed_ns if self.operations and self.elapsed_ns else None

    @property
    def us_per_operation(self) -> float | None:
        """Microseconds from one operation to the next; None without any."""
        return self.elapsed_ns / 1e3 / self.operations if self.operations else None

    @property
    def cpu_us_per_operation(self) -> float | None:
        """CPU time, user and system, of one operation in microseconds; None without any."""
        return (self.cpu_user_us + self.cpu_system_us) / self.operations if self.operations else None

    @property
    def busy_share(self) -> float | None:
        """Attempts that met a lock, of all; None where none was made, or none could meet one."""
        if self.busy is None or not self.busy + self.operations:
            return None
        return self.busy / (self.busy + self.operations)

    @property
    def mib_per_s(self) -> float | None:
        """Keys and values in 2^20 bytes per second; None where no time passed, or nothing was moved."""
        return self.bytes / MIB * 1e9 / self.elapsed_ns if self.bytes and self.elapsed_ns else None


@pydantic_dataclasses.dataclass(frozen=True, kw_only=True, config=_STRICT)
class BenchTest(BenchSide):
    """One test; the side that it also is holds its whole.

    `settings` are what the engine answered at its end. `prepare_ns` (making, opening and preallocating the
    database) is None for tests that take no fresh one, `flush_ns` where no flush was asked for; the sizes are
    None with the engine that does nothing. In readwhilewriting the operations are the readers', and
    `threads` and `writer` tell them apart; in tpcb `threads` are its processes; else both are None. One that is not `complete` was cut off.
    """

    test: str
    settings: Settings
    fresh: bool
    complete: bool
    prepare_ns: Count | None
    flush_ns: Count | None
    minor_faults: Count
    major_faults: Count
    data_size_bytes: Count | None
    data_allocated_bytes: Count | None
    threads: tuple[BenchSide, ...] | None
    writer: BenchSide | None

    @model_validator(mode="after")
    def _verify_threads(self) -> BenchTest:
        # Processes that meet at locks have no writer beside them.
        if self.busy is None and (self.threads is None) != (self.writer is None):
            raise ValueError("threads and writer belong together")
        if self.threads is not None and sum(side.operations for side in self.threads) != self.operations:
            raise ValueError(f"the threads' operations do not add up to {self.operations}")
        return self


@pydantic_dataclasses.dataclass(frozen=True, kw_only=True, config=_STRICT)
class BenchLibrary:
    """The library that ran, and the header that the driver was compiled with."""

    version: str
    text: str
    header: str


@pydantic_dataclasses.dataclass(frozen=True, kw_only=True, config=_STRICT)
class BenchOptions:
    """What the driver was asked for, defaults filled in; None is "no such limit"."""

    entries: Count
    sync_entries: Count
    reads: Count
    key_bytes: Count
    value_bytes: Count
    batch: Count
    keys: Literal["random", "shuffled"]
    touch: Literal["none", "first", "pages"]
    threads: Count
    duration_s: Count | None
    write_rate: Count | None
    flush_after: bool
    existing: bool
    seed: Count
    tests: tuple[str, ...]


@pydantic_dataclasses.dataclass(frozen=True, kw_only=True, config=_STRICT)
class BenchFailure:
    """Why it failed: `error` is the library's or the system's own text.

    `code` is the library's, an errno, or minus a signal's number. `operations` of `test` were done;
    `free_bytes` were left on the file system then. The library calls a write that a full disk cut short an
    "Input/output error".
    """

    error: str
    code: int
    test: str | None
    step: str
    operations: Count
    free_bytes: Count | None


@pydantic_dataclasses.dataclass(frozen=True, kw_only=True, config=_STRICT)
class BenchDocument:
    """All that one start of the driver said; `interrupted` names the signal that ended it."""

    format_version: Literal[2]
    program: Literal["bedplate-microbenchmark"]
    engine: str
    library: BenchLibrary
    clock_read_ns: Count
    options: BenchOptions
    tests: tuple[BenchTest, ...]
    failure: BenchFailure | None
    interrupted: str | None

    @model_validator(mode="after")
    def _verify_order(self) -> BenchDocument:
        ran, asked = tuple(test.test for test in self.tests), self.options.tests
        if ran != asked[: len(ran)]:
            raise ValueError(f"the tests {', '.join(ran)} are not the first of those asked for")
        if self.failure is None and self.interrupted is None:
            if len(ran) != len(asked):
                raise ValueError(f"{len(ran)} of {len(asked)} tests, without a reason")
            if not all(test.complete for test in self.tests):
                raise ValueError("a test was cut off, without a reason")
        return self


# What a document of version 1, which knew LMDB alone, says beside the options of every engine.
_LMDB_OPTIONS = ("writemap", "readahead", "preallocation", "map_bytes")

_DOCUMENT = TypeAdapter(BenchDocument)


def bucket_bounds_ns(bucket: int, sub_buckets: int) -> tuple[int, int]:
    """The first value of a bucket, and the first value after it, in ns."""
    exact = 2 * sub_buckets
    if bucket < exact:
        return bucket, bucket + 1
    octave, place = divmod(bucket - exact, sub_buckets)
    return (sub_buckets + place) << (octave + 1), (sub_buckets + place + 1) << (octave + 1)


def parse_document(text: str) -> BenchDocument:
    """The driver's standard output; OutputNotUnderstood where it is not one whole, sound document."""
    try:
        if '"format_version": 1,' in text:
            text = json.dumps(_of_version_1(json.loads(text)))
        return _DOCUMENT.validate_json(text)
    except ValidationError as error:
        raise _not_understood(error, text) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise OutputNotUnderstood(_TOOL, expected="a document of format version 1", found=text) from error


def _of_version_1(document: dict[str, Any]) -> dict[str, Any]:
    """The same in version 2: settings stand with each test, and the program has no engine's name."""
    options = dict(document["options"])
    settings = {name: options.pop(name) for name in _LMDB_OPTIONS}
    del options["sync"]
    tests = []
    for test in document["tests"]:
        rest = {name: value for name, value in test.items() if name != "sync"}
        mode = {} if test["sync"] is None else {"sync": test["sync"]}
        tests.append({**rest, "settings": {**settings, **mode}})
    program = document["program"].replace("lmdb-bench", "microbenchmark")
    return {**document, "format_version": 2, "program": program, "options": options, "tests": tests}


def _not_understood(error: ValidationError, text: str) -> OutputNotUnderstood:
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"]) or "the whole"
    expected = f"a document of format version 2 ({place}: {first['msg']})"
    return OutputNotUnderstood(_TOOL, expected=expected, found=text or "(it printed nothing)")


_SPEED = "test_operations_per_s"

_PERCENTILES = {
    "test_latency_us_p50": 0.5,
    "test_latency_us_p95": 0.95,
    "test_latency_us_p99": 0.99,
    "test_latency_us_p99_9": 0.999,
}

_NOTHING_DONE = because("nothing-done", "the test did nothing, or took no time")
_NOTHING_WRITTEN = because("nothing-written", "the writer wrote nothing")
_NOTHING_LOOKED_FOR = because("nothing-looked-for", "nothing was looked for")
_NOTHING_TIMED = because("nothing-timed", "nothing was timed")
_NO_SIZE = because("no-size-told", "the driver says no size of the file")
_NO_FLUSHES = because("flushes-unknown", "the device's flushes were not counted at both ends of the test")
_NO_DOCUMENT = because("no-document", "the driver's document of this test is not there")


def read_documents(
    record: RunRecord, run_directory: Path
) -> tuple[Mapping[str, BenchDocument], tuple[str, ...]]:
    """The driver's documents by test, and why one cannot be read; what was never begun has none."""
    found: dict[str, BenchDocument] = {}
    problems: list[str] = []
    former = run_directory / FORMER_DOCUMENTS
    folder = former if former.is_dir() else run_directory / DOCUMENTS
    for test in tests_done(record):
        path = folder / f"{test}.json"
        try:
            found[test] = parse_document(path.read_text(encoding="utf-8"))
        except BedplateError as error:
            problems += [f"{test}: {reason}" for reason in error.reasons]
        except OSError as error:
            problems.append(f"{path} cannot be read: {error.strerror}")
    return found, tuple(problems)


def tests_done(record: RunRecord) -> tuple[str, ...]:
    """The tests that the record has, in their order."""
    return tuple(dict.fromkeys(item.item for item in record.items if item.phase == TESTS))


def left_out(record: RunRecord) -> tuple[str, ...]:
    """The tests that the settings of the cell do not have."""
    return tuple(name for name in (text(record, LEFT_OUT) or "").split(",") if name)


def missing_tests(record: RunRecord, documents: Mapping[str, BenchDocument]) -> tuple[str, ...]:
    """What a completed run must have and the record lacks, has twice or cut off, in words."""
    names = [item.item for item in record.items if item.phase == TESTS]
    reasons = []
    for test in tests_of(record.spec):
        if test in left_out(record):
            continue
        if names.count(test) != 1:
            reasons.append(
                f"{test} is in the record {names.count(test)} times"
                if test in names
                else f"{test} is not in the record"
            )
        elif test in documents and not (documents[test].tests and documents[test].tests[0].complete):
            reasons.append(f"{test} was cut off")
    return tuple(reasons)


def run_tests_figures(
    record: RunRecord, documents: Mapping[str, BenchDocument], *, setting: str, mode: str, pass_: int
) -> Iterator[Figure]:
    """Every test of the run: its speed, latencies, CPU, space, and what the device did within it.

    The counters hold the driver's start, its preparation and its flush too; the speed does not.
    """
    for test in tests_of(record.spec):
        if test in left_out(record):
            words = f"it commits synchronously, and {setting} = {mode} does not"
            reason = because("test-left-out", words, setting=setting, mode=mode)
            yield figure(_SPEED, None, phase=TESTS, item=test, pass_=pass_, reason=reason)
            continue
        document = documents.get(test)
        if document is None or not document.tests:
            yield figure(_SPEED, None, phase=TESTS, item=test, pass_=pass_, reason=_NO_DOCUMENT)
        else:
            for metric, value, why in _rows(document.tests[0]):
                yield figure(metric, value, phase=TESTS, item=test, pass_=pass_, reason=why)
        counted = tuple(
            part_figures_without_server(phase_deltas(record, test), phase=TESTS, item=test, pass_=pass_)
        )
        if document is not None and document.tests and (commits := _commits(document.tests[0])):
            flushes = next((one.value for one in counted if one.metric == "device_flushes"), None)
            value = None if flushes is None else flushes / commits
            metric = "test_flushes_per_commit"
            yield figure(metric, value, phase=TESTS, item=test, pass_=pass_, reason=_NO_FLUSHES)
        yield from counted


def _commits(test: BenchTest) -> int:
    """How many transactions the test wrote; 0 of one that reads."""
    writes = test.latency is not None and test.latency.of == "transaction"
    return test.latency.count if writes and test.latency is not None else 0


def _rows(test: BenchTest) -> Iterator[tuple[str, float | None, Reason | None]]:
    yield _SPEED, test.operations_per_s, _NOTHING_DONE
    yield "test_us_per_operation", test.us_per_operation, _NOTHING_DONE
    # Of a transaction on tables nobody says how many bytes it is.
    if test.busy is None:
        yield "test_mib_per_s", test.mib_per_s, _NOTHING_DONE
    yield "test_cpu_us_per_operation", test.cpu_us_per_operation, _NOTHING_DONE
    if test.latency is not None:
        yield from _latencies(test.latency)
    if test.writer is not None:
        yield "test_writer_operations_per_s", test.writer.operations_per_s, _NOTHING_WRITTEN
    if test.busy is not None:
        yield "test_busy_share", test.busy_share, _NOTHING_DONE
        yield "test_slowest_process_share", _slowest_share(test), _NOTHING_DONE
    if test.found is not None:
        share = test.found / test.operations if test.operations else None
        yield "test_found_share", share, _NOTHING_LOOKED_FOR
    if test.prepare_ns is not None:
        yield "test_prepare_s", test.prepare_ns / 1e9, None
    if test.flush_ns is not None:
        yield "test_flush_s", test.flush_ns / 1e9, None
    for metric, size_bytes in (
        ("test_size_mib", test.data_size_bytes),
        ("test_space_mib", test.data_allocated_bytes),
    ):
        yield metric, None if size_bytes is None else size_bytes / MIB, _NO_SIZE
    yield "test_major_faults", test.major_faults, None


def _slowest_share(test: BenchTest) -> float | None:
    parts = [side.operations for side in test.threads or ()]
    return min(parts) * len(parts) / sum(parts) if sum(parts) else None


def _latencies(latency: BenchLatency) -> Iterator[tuple[str, float | None, Reason | None]]:
    nothing = _NOTHING_TIMED
    yield "test_latency_us_mean", None if latency.mean_ns is None else latency.mean_ns / 1000, nothing
    for metric, quantile in _PERCENTILES.items():
        needed = round(1 / (1 - quantile))
        found = latency.percentile_ns(quantile) if latency.count >= needed else None
        words = f"{latency.count} were timed, and this percentile needs {needed}"
        reason = because("too-few-timed", words, count=latency.count, needed=needed)
        yield metric, None if found is None else found / 1000, reason
    yield "test_latency_us_max", None if latency.max_ns is None else latency.max_ns / 1000, nothing


_PAGE_BYTES = 4096

LATE_SHARE_MAX = 0.05
LATE_S_MAX = 1.0

# Tests of 100 kB values have a thousandth of the entries.
_LARGE = "100K"


@dataclass(frozen=True, kw_only=True)
class BenchEvidence(ToolEvidence):
    """Of a run of tests: `reads` are what its tests had to read at least.

    `missing` names those that the record lacks, has twice or cut off, `late` those that took longer than they were asked to.
    """

    cold: bool
    made_cold: bool
    missing: tuple[str, ...]
    late: tuple[str, ...] = ()


def must_read_bytes(test: BenchTest, bench_options: BenchOptions) -> float:
    """What a test that reads had to get from somewhere: the entries that it met, of a large one its first page.

    A random read may meet an entry again, so that there are no more than were written.
    """
    entries = bench_options.entries // 1000 if test.test.endswith(_LARGE) else bench_options.entries
    met = test.operations if test.found is None else test.found
    if not met:
        return 0.0
    return min(met, entries) * min(test.bytes / met, _PAGE_BYTES)


def _not_cold(evidence: BenchEvidence) -> str | None:
    if not evidence.cold:
        return None
    if not evidence.made_cold:
        return (
            "the record does not say that the file system was mounted anew before the tests of this cold pass"
        )
    found = [
        f"{read.what} read {format_size(given)} from the device, of at least {format_size(read.asked_bytes)}"
        for read, given in below(evidence.reads, READ_SHARE_MIN)
    ]
    return f"a cache answered in a cold pass: {'; '.join(found)}" if found else None


def longer_than_asked(test: BenchTest, bench_options: BenchOptions) -> str | None:
    """Of a test of processes at locks: what it took more than it was asked to; None where it ended in time."""
    if test.busy is None or bench_options.duration_s is None:
        return None
    took_s, limit_s = test.elapsed_ns / 1e9, bench_options.duration_s * (1 + LATE_SHARE_MAX) + LATE_S_MAX
    return (
        f"{test.test} took {took_s:.1f} s, and {bench_options.duration_s} s were requested"
        if took_s > limit_s
        else None
    )


def _late(evidence: BenchEvidence) -> str | None:
    if not evidence.late:
        return None
    return f"{'; '.join(evidence.late)}: a process waited for a lock while the others were done"


def _missing(evidence: BenchEvidence) -> str | None:
    return "; ".join(evidence.missing) or None


VALIDITY: RunRules[BenchEvidence] = RunRules(
    "Microbenchmark",
    (
        Rule(
            "cold test from a cache",
            f"a test of a cold pass reads less than {percent(READ_SHARE_MIN)} of what it must from the device, or its "
            "record does not say that it was made cold",
            "the entries that it met, of values above a page their first page; the limit is a convention of bedplate",
            _not_cold,
        ),
        Rule(
            "tests missing",
            "a test that was asked for is not in the record, is there twice, or was cut off",
            "drivers/microbenchmark.c",
            _missing,
        ),
        Rule(
            "longer than asked",
            f"tpcb took more than {percent(LATE_SHARE_MAX)} and {LATE_S_MAX:g} s longer than asked",
            "its rate is of the time until the last process is done, and one that waits for a lock alone makes it low",
            _late,
        ),
        *OF_EVERY_TIMED_RUN,
    ),
)

# They tell whether the run had the machine to itself, whatever its tests were.
_OF_THE_SURROUNDINGS = frozenset({"watching_cpu_share", "others_cpu_share", "steal_share"})


class BenchFigures(PhasedFigures):
    """Makes the figures of runs of the microbenchmark; the driver's documents stay, as they are small."""

    def of_completed(self, inputs: RunInputs, run_directory: Path) -> Made:
        """Of its tests."""
        measured = _Measured(inputs, *read_documents(inputs.record, run_directory))
        told = (run_directory / DOCUMENTS / PROGRESS.format(test=test) for test in tests_done(inputs.record))
        transactions = [each for path in told for each in read_progress(path)]
        return Made(measured.all_figures(), {COURSE_FILE: measured.course(None, transactions)})


@dataclass(frozen=True)
class _Measured(PhasedRun):
    """One run that came to its end; `problems` say which documents cannot be read."""

    documents: Mapping[str, BenchDocument]
    problems: tuple[str, ...]

    def all_figures(self) -> RunFigures:
        return self.run_figures(self._figures(), VALIDITY.judge(self._evidence()))

    def _figures(self) -> Iterator[Figure]:
        record, pass_ = self.inputs.record, self._pass
        cell = self.inputs.visit.cell
        model = engine_model(cell.build.engine)
        setting, mode = model.commit_setting, model.commit_mode(cell.cluster.settings)
        yield from run_tests_figures(record, self.documents, setting=setting, mode=mode, pass_=pass_)
        left = tuple(f"{test} was left out: {setting} = {mode}" for test in left_out(record))
        absent = (*missing_tests(record, self.documents), *left)
        seconds = [item.seconds or 0.0 for item in record.items if item.phase == TESTS]
        why = because("tests-missing", "; ".join(absent))
        yield figure("tests_s", None if absent else sum(seconds), pass_=pass_, reason=why)
        yield step_figure(self.inputs.visit, "mkfs_s")
        yield from free_space_figures(self.inputs.visit.free_space)
        # Without the two readings every counter is missing, and every figure says so.
        deltas = deltas_of(record) or Deltas({}, {}, 0.0)
        # What fewer tests wrote, flushed or computed would pass for less of what all of them do.
        for one in self.figures_without_server(deltas, self.first, self.last, pass_=pass_):
            covers_less = bool(left) and one.metric not in _OF_THE_SURROUNDINGS
            yield (
                replace(
                    one, value=None, status=Status.ABSENT, reason=because("tests-left-out", "; ".join(left))
                )
                if covers_less
                else one
            )

    def _evidence(self) -> BenchEvidence:
        record = self.inputs.record
        inputs = replace(self.inputs, problems=(*self.inputs.problems, *self.problems))
        return BenchEvidence(
            **shared_evidence(inputs, self.window.duration_s),
            cold=record.spec.levels.text("pass") == COLD,
            made_cold=record.facts.get("made_cold") is True,
            reads=tuple(self._reads()),
            missing=missing_tests(record, self.documents),
            late=tuple(self._late()),
        )

    def _late(self) -> Iterator[str]:
        for document in self.documents.values():
            for test in document.tests:
                if (words := longer_than_asked(test, document.options)) is not None:
                    yield words

    def _reads(self) -> Iterator[Moved]:
        for test in tests_done(self.inputs.record):
            document = self.documents.get(test)
            if document is not None and document.tests:
                must = must_read_bytes(document.tests[0], document.options)
                yield Moved(test, must, device_bytes(self.inputs.record, test, "read_sectors"))

    @property
    def _pass(self) -> int:
        return self.inputs.record.spec.levels.integer("pass_number") or 1


FIGURES: FigureMaker = BenchFigures()
