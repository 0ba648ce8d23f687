"""Visits of the microbenchmark on LMDB for real, at a few thousand entries: what is recorded, and what goes wrong."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.tools.processes import processes_naming

from bedplate.campaign.preparation import prepare_drivers
from bedplate.engines.lmdb.visit import LIBLMDB, MICROBENCHMARK
from bedplate.figures.run import make_figures
from bedplate.figures.validity import CACHES_DROPPED, KERNEL_WARNING, OTHERS_AT_WORK, THROTTLED_MACHINE
from bedplate.host.command import Commands
from bedplate.host.native_driver import library_version
from bedplate.model import codec
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, Dataset, FilesystemLevels, RunSpec
from bedplate.model.levels import Levels
from bedplate.model.visit import Outcome, RunRecord, VisitRecord, VisitRequest
from bedplate.units import MIB
from bedplate.workloads.microbenchmark.figures import BenchDocument, parse_document
from bedplate.workloads.microbenchmark.model import DOCUMENTS, WORKLOAD
from bedplate.workloads.microbenchmark.plan import BENCH_TESTS, runs_of_tests

if TYPE_CHECKING:
    Bench = Any

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

ENTRIES = 20_000
(DRIVER,) = MICROBENCHMARK.drivers


@pytest.fixture(scope="session")
def driver() -> str:
    return prepare_drivers([WORKLOAD], ["lmdb"])[DRIVER.name]


def request(
    bench: Bench,
    driver: str,
    runs: tuple[RunSpec, ...],
    *,
    filesystem: FilesystemLevels | None = None,
    entries: int = ENTRIES,
    value_bytes: int = 100,
    settings: dict[str, Any] | None = None,
    **changes: Any,
) -> VisitRequest:
    asked: VisitRequest = bench.request(filesystem, runs=runs, **changes)
    cell = asked.cell
    return replace(
        asked,
        cell=Cell(
            cell.device,
            cell.kernel,
            cell.filesystem,
            BuildLevels.unbuilt("lmdb"),
            ClusterLevels(settings=Levels(settings or {})),
        ),
        build=None,
        dataset=Dataset("lmdb", Levels(entries=entries, value_bytes=value_bytes)),
        native_drivers={DRIVER.name: driver},
    )


def runs_of(*tests: str, reads: tuple[str, ...] = ("cold", "warm")) -> tuple[RunSpec, ...]:
    return runs_of_tests("lmdb", tests, reads, batch=1000, threads=2)


def records(bench: Bench, visit: VisitRecord) -> list[RunRecord]:
    return [codec.read(RunRecord, bench.directory / "runs" / name / "record.json") for name in visit.runs]


def documents(bench: Bench, visit: VisitRecord, number: int) -> dict[str, BenchDocument]:
    folder = bench.directory / "runs" / visit.runs[number] / DOCUMENTS
    return {path.stem: parse_document(path.read_text()) for path in folder.glob("*.json")}


def grown(record: RunRecord, phase: str, counter: str) -> float:
    (found,) = [counters for counters in record.phase_counters if counters.phase == phase]
    return found.after.values[counter] - found.before.values[counter]


@pytest.mark.parametrize("kind", ["ext4", "btrfs"])
def test_a_visit_writes_reads_cold_and_warm_and_tells_of_every_test(
    bench: Bench, driver: str, kind: str
) -> None:
    events: list[dict[str, Any]] = []
    visit = bench.live(
        request(bench, driver, runs_of(*BENCH_TESTS), filesystem=FilesystemLevels(kind)),
        lambda line: events.append(json.loads(line)),
    )
    assert (Outcome.COMPLETED, ()) == (visit.outcome, visit.reasons)
    assert [] == bench.left_behind()
    version = library_version(LIBLMDB, commands=Commands())
    assert ("lmdb 1", f"{MICROBENCHMARK.library} {version}") == (
        visit.provenance["protocol"],
        visit.provenance["tools"],
    )
    assert version == visit.versions[MICROBENCHMARK.library]
    assert visit.durability is not None
    assert ("durable", "durable") == (visit.durability.volatile_cache, visit.durability.protected_cache)
    told = {(event["run"], event["item"]) for event in events if event["event"] == "item"}
    found = records(bench, visit)
    undisturbed: set[str] = set()
    for number, record in enumerate(found):
        tests = str(record.spec.levels["tests"]).split(",")
        assert tests == [phase.name for phase in record.phases] == [item.item for item in record.items]
        assert set(tests) == set(documents(bench, visit, number))
        assert {(record.spec.name, test) for test in tests} <= told
        figures = make_figures(bench.directory, bench.directory / "runs" / visit.runs[number])
        # A machine that is busy otherwise takes time of its processors. Tests of other lanes drop its caches, and have the kernel warn of their disks.
        doubts = {reason.code for reason in figures.validity_reasons}
        assert doubts <= {
            THROTTLED_MACHINE.code,
            OTHERS_AT_WORK.code,
            CACHES_DROPPED.code,
            KERNEL_WARNING.code,
        }
        if CACHES_DROPPED.code not in doubts:
            undisturbed.add(record.spec.name)
        speeds = {row.item: row.value for row in figures.figures if row.metric == "test_operations_per_s"}
        assert set(tests) == set(speeds)
        assert all(speed is not None and speed > 0 for speed in speeds.values())
    write, cold, warm = found[:3]
    check_writes(write)
    for test in ("readrandom", "readseq", "readreverse"):
        # 20 000 values of 100 bytes, 2 MB, of which 63 % remain; the values are compressible to half.
        assert grown(cold, test, "device.read_sectors") * 512 > 0.6 * ENTRIES * 100
        if warm.spec.name in undisturbed:
            assert grown(warm, test, "device.read_sectors") * 512 < 0.1 * ENTRIES * 100
    assert cold.facts["made_cold"] is True
    assert "made_cold" not in warm.facts


def check_writes(record: RunRecord) -> None:
    # A thousandth of the entries, each with its own flush.
    assert grown(record, "fillseqsync", "device.flushes") >= ENTRIES / 1000
    assert grown(record, "fillseq", "device.written_sectors") * 512 > ENTRIES * 100
    assert grown(record, "fillseq", "server.cpu_s") > 0
    assert record.before is not None
    assert record.after is not None
    moments = [end for phase in record.phases for end in (phase.start_monotonic_s, phase.end_monotonic_s)]
    assert sorted(moments) == moments


def test_a_map_that_is_too_small_ends_the_test_in_the_librarys_words(bench: Bench, driver: str) -> None:
    asked = request(bench, driver, runs_of("fillseq", "readseq", "fillseq100K"))
    dataset = replace(asked.dataset, levels=asked.dataset.levels.updated(map_bytes=MIB))
    visit = bench.live(replace(asked, dataset=dataset))
    assert Outcome.FAILED is visit.outcome
    write, cold, warm, large = records(bench, visit)
    assert Outcome.FAILED is write.outcome
    assert write.reasons[0].sentence.startswith("fillseq: MDB_MAP_FULL: Environment mapsize limit reached (")
    assert "map_size" in write.reasons[0].sentence
    assert {Outcome.NOT_RUN} == {cold.outcome, warm.outcome}
    assert "(write) did not complete" in cold.reasons[0].sentence
    # Another fill needs nothing of the first.
    assert (Outcome.FAILED, True) == (
        large.outcome,
        large.reasons[0].sentence.startswith("fillseq100K: MDB_MAP_FULL"),
    )
    assert [] == bench.left_behind()


@pytest.mark.parametrize("writemap", [False, True])
def test_a_full_disk_says_that_it_is_full(bench: Bench, driver: str, writemap: bool) -> None:
    runs = runs_of("fillseqbatch", reads=())
    visit = bench.live(
        request(bench, driver, runs, entries=60_000, value_bytes=20_000, settings={"writemap": writemap})
    )
    assert Outcome.FAILED is visit.outcome
    (record,) = records(bench, visit)
    assert record.reasons[0].sentence.startswith("fillseqbatch: ")
    assert any("the scratch device is full" in reason.sentence for reason in record.reasons)
    assert [] == bench.left_behind()


def test_a_driver_that_is_killed_is_named_with_its_test(bench: Bench, driver: str) -> None:
    def kill(line: str) -> None:
        if '"fillrandom' in line and '"item"' in line:
            (pid,) = [
                process.pid
                for process in processes_naming(str(bench.base))
                if "--tests=fillrandom" in process.arguments
            ]
            os.kill(pid, signal.SIGKILL)

    events: list[str] = []

    def on_line(line: str) -> None:
        # The first word of its progress: it runs, and has not ended.
        if "done" in line and "fillrandom:" in line and not events:
            events.append(line)
            kill(line)

    visit = bench.live(request(bench, driver, runs_of("fillrandom"), entries=3_000_000), on_line)
    assert events
    assert Outcome.FAILED is visit.outcome
    (record,) = records(bench, visit)
    assert record.reasons[0].sentence.startswith("fillrandom: the driver was killed by SIGKILL")
    assert [] == bench.left_behind()


def test_without_synchronous_commits_the_synchronous_tests_are_left_out(bench: Bench, driver: str) -> None:
    runs = runs_of("fillrandsync", "fillseq", "readseq", reads=("warm",))
    visit = bench.live(
        request(bench, driver, runs, settings={"sync": "nosync", "preallocation": "fallocate"})
    )
    assert (Outcome.COMPLETED, ()) == (visit.outcome, visit.reasons)
    write, _ = records(bench, visit)
    assert (["fillseq"], "fillrandsync") == ([item.item for item in write.items], write.facts["left_out"])
    assert visit.durability is not None
    assert "unsafe" == visit.durability.volatile_cache
    settings = documents(bench, visit, 0)["fillseq"].tests[0].settings
    assert ("nosync", "fallocate", False) == tuple(
        settings[name] for name in ("sync", "preallocation", "writemap")
    )
    in_force = {item.name: item.effective for item in visit.comparisons if item.name.startswith("lmdb.")}
    assert ("nosync", "fallocate") == (in_force["lmdb.sync"], in_force["lmdb.preallocation"])


def of_sqlite(
    bench: Bench, runs: tuple[RunSpec, ...], drivers: dict[str, str], **settings: Any
) -> VisitRequest:
    asked = request(bench, "", runs, entries=100_000, settings=settings)
    cell = replace(asked.cell, build=BuildLevels.unbuilt("sqlite"))
    return replace(asked, cell=cell, dataset=Dataset(WORKLOAD, asked.dataset.levels), native_drivers=drivers)


def test_sqlite_runs_the_same_tests_and_its_pragmas_are_read_back(bench: Bench) -> None:
    runs = runs_of_tests(
        WORKLOAD, ("fillseqsync", "fillrandbatch", "readseq"), ("cold",), batch=1000, threads=2
    )
    drivers = prepare_drivers([WORKLOAD], ["sqlite"])
    processes = RunSpec("tpcb", WORKLOAD, Levels(kind="write", tests="tpcb", processes=2, duration_s=1.0))
    pragmas = {"journal_mode": "wal", "page_size": 8192, "begin": "immediate", "busy_timeout": 5000}
    visit = bench.live(of_sqlite(bench, (*runs, processes), dict(drivers), **pragmas))
    assert (Outcome.COMPLETED, ()) == (visit.outcome, visit.reasons)
    assert visit.durability is not None
    assert ("durable", ()) == (visit.durability.volatile_cache, visit.durability.by_runs)
    assert visit.durability.without_waiting is not None
    assert "unsafe" == visit.durability.without_waiting.volatile_cache
    found = documents(bench, visit, 0)
    assert {"sqlite"} == {document.engine for document in found.values()}
    for test, mode in (("fillseqsync", "full"), ("fillrandbatch", "off")):
        settings = found[test].tests[0].settings
        assert ("wal", 8192, mode) == (
            settings["journal_mode"],
            settings["page_size"],
            settings["synchronous"],
        )
    (of_processes,) = documents(bench, visit, 2)["tpcb"].tests
    assert ("full", 2) == (of_processes.settings["synchronous"], len(of_processes.threads or ()))
    assert of_processes.operations
    # A commit in WAL mode is one sync, which ext4 flushes for once or twice; the other tests wait for nothing.
    flushes = [grown(records(bench, visit)[0], test, "device.flushes") for test in found]
    assert 100 <= max(flushes) < 400
    assert min(flushes) < 50


@pytest.fixture
def seen_by_all() -> Iterator[Path]:
    """A folder that no program is kept from, as /tmp is."""
    with tempfile.TemporaryDirectory(prefix="bedplate-test-", dir="/opt") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_commits_that_reach_no_flush_leave_no_class_whatever_the_pragmas_say(
    bench: Bench, seen_by_all: Path
) -> None:
    """As a library that was built without syncs (SQLITE_NO_SYNC): it answers `synchronous = 2`, and syncs nothing."""
    (source, library, wrapper) = (seen_by_all / name for name in ("no_sync.c", "no_sync.so", "driver"))
    source.write_text(
        "int fsync(int file) { return file - file; } int fdatasync(int file) { return file - file; }"
    )
    Commands().run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)])
    ((name, driver),) = prepare_drivers([WORKLOAD], ["sqlite"]).items()
    wrapper.write_text(f'#!/bin/sh\nLD_PRELOAD={library} exec {driver} "$@"\n')
    wrapper.chmod(0o755)
    library.chmod(0o755)
    runs = runs_of_tests(WORKLOAD, ("fillseqsync",), (), batch=1000, threads=2)
    visit = bench.live(of_sqlite(bench, runs, {name: str(wrapper)}, journal_mode="wal", synchronous="full"))
    assert (Outcome.COMPLETED, ()) == (visit.outcome, visit.reasons)
    assert visit.durability is not None
    assert ("unknown", "unknown") == (visit.durability.volatile_cache, visit.durability.protected_cache)
    (reason,) = visit.durability.by_runs
    assert ("commits-not-waited-for", 100) == (reason.code, reason.values["transactions"])
    assert "run write, fillseqsync: " in str(reason)
