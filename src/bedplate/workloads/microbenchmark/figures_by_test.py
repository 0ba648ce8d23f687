"""Figures of the tests, each from its document and from the counters at its ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.errors import BedplateError
from bedplate.figures.counters import part_figures_without_server
from bedplate.figures.facts import text
from bedplate.figures.phased import phase_deltas
from bedplate.model.metrics import figure
from bedplate.model.reason import because
from bedplate.units import MIB
from bedplate.workloads.microbenchmark.output import parse_document
from bedplate.workloads.microbenchmark.tests import (
    DOCUMENTS,
    FORMER_DOCUMENTS,
    LEFT_OUT,
    TESTS,
    tests_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from bedplate.model.figure import Figure
    from bedplate.model.reason import Reason
    from bedplate.model.visit import RunRecord
    from bedplate.workloads.microbenchmark.output import BenchDocument, BenchLatency, BenchTest

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
