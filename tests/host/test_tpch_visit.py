"""TPC-H visits for real, at a scale factor of a few megabytes: what is recorded, and what goes wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.tools.patience import AT_MOST_S

from bedplate.host.command import Commands
from bedplate.host.files import cache_directory
from bedplate.model import codec
from bedplate.model.cell import Dataset, FilesystemLevels, RunSpec
from bedplate.model.levels import Levels
from bedplate.model.plan import COLD, WARM
from bedplate.model.reason import sentences
from bedplate.model.visit import Outcome, RunRecord, ScratchDevice, VisitRecord, VisitRequest
from bedplate.units import MIB
from bedplate.workloads.tpch.model import (
    LOAD,
    LOAD_PHASES,
    POWER,
    QUERIES,
    QUERY_NUMBERS,
    THROUGHPUT,
    WORKLOAD,
    query_phase,
    stream_phase,
)
from bedplate.workloads.tpch.prepare import ensure_tpch_data
from bedplate.workloads.tpch.queries import (
    TABLES,
    foreign_keys,
    indexes,
    primary_keys,
    query_order,
    row_count,
)
from bedplate.workloads.tpch.query_plan import ANALYZE_TARGET, PLANS_FILE, QueryPlans, plan_hash

if TYPE_CHECKING:
    Bench = Any

pytestmark = pytest.mark.host

SCALE_FACTOR = 0.01
ROWS = {name: row_count(table, SCALE_FACTOR) for name, table in TABLES.items()} | {"lineitem": 60175}


@pytest.fixture(scope="session")
def csv_files() -> Path:
    """The data, from the cache where it is warm."""
    return ensure_tpch_data(SCALE_FACTOR, cache_directory=cache_directory(), commands=Commands()).directory


def asked(kind: str, name: str = "", **levels: Any) -> RunSpec:
    return RunSpec(name or kind, WORKLOAD, Levels({"kind": kind, "parameters": "validation", **levels}))


LOADING = RunSpec(LOAD, WORKLOAD, Levels(kind=LOAD))
COLD_PASS = asked(POWER, COLD, **{"pass": COLD, "pass_number": 1})
WARM_PASS = asked(POWER, WARM, **{"pass": WARM, "pass_number": 2})
STREAMS = asked(THROUGHPUT, streams=2)


def request(
    bench: Bench,
    csv_files: Path,
    *runs: RunSpec,
    filesystem: FilesystemLevels | None = None,
    expected_answers: dict[str, str] | None = None,
    **changes: Any,
) -> VisitRequest:
    asked_for = bench.request(filesystem, runs=runs, **changes)
    assert isinstance(asked_for, VisitRequest)
    return replace(
        asked_for,
        dataset=Dataset(WORKLOAD, Levels(scale_factor=SCALE_FACTOR)),
        inputs={WORKLOAD: str(csv_files)},
        expected_answers=expected_answers or {},
    )


def records(bench: Bench, visit: VisitRecord) -> list[RunRecord]:
    return [codec.read(RunRecord, bench.directory / "runs" / name / "record.json") for name in visit.runs]


def answers(record: RunRecord) -> dict[str, str]:
    return {
        str(item.facts["answer_key"]): str(item.facts["answer"])
        for item in record.items
        if "answer" in item.facts
    }


def course_phases(bench: Bench, visit: VisitRecord, number: int) -> list[str]:
    text = (bench.directory / "runs" / visit.runs[number] / "course.jsonl").read_text()
    return [json.loads(line)["phase"] for line in text.splitlines()]


def test_a_visit_loads_asks_cold_and_warm_and_in_streams(bench: Bench, csv_files: Path) -> None:
    events: list[dict[str, Any]] = []
    visit = bench.live(
        request(bench, csv_files, LOADING, COLD_PASS, WARM_PASS, STREAMS),
        lambda line: events.append(json.loads(line)),
    )
    assert (Outcome.COMPLETED, ()) == (visit.outcome, visit.reasons)
    assert "tpch 1" == visit.provenance["protocol"]
    assert [] == bench.left_behind()
    load, cold, warm, throughput = records(bench, visit)
    check_load(load)
    for number, record in enumerate((cold, warm), start=1):
        check_pass(bench, visit, number, record)
    assert cold.facts["made_cold"] is True
    assert "made_cold" not in warm.facts
    check_cold_reads_the_device(load, cold, warm)
    check_throughput(throughput)
    plans = codec.read(QueryPlans, bench.directory / "runs" / visit.runs[3] / PLANS_FILE)
    assert {(item.phase, item.item): item.facts["plan"] for item in throughput.items} == {
        (plan.phase, plan.item): plan.hash for plan in plans.plans
    }
    assert answers(cold) == answers(warm) == answers(throughput)
    assert LOAD_PHASES[0] == course_phases(bench, visit, 0)[0]
    assert query_phase(query_order(0)[0]) == course_phases(bench, visit, 1)[0]
    assert {THROUGHPUT} == set(course_phases(bench, visit, 3))
    check_events(events)


def check_load(record: RunRecord) -> None:
    assert LOAD_PHASES == tuple(phase.name for phase in record.phases)
    assert LOAD_PHASES == tuple(counters.phase for counters in record.phase_counters)
    check_clocks(record)
    assert ROWS == {item.item: item.facts["rows"] for item in record.items if item.phase == "load"}
    for phase, statements in (
        ("primary keys", primary_keys()),
        ("foreign keys", foreign_keys()),
        ("indexes", indexes()),
    ):
        found = [item.item for item in record.items if item.phase == phase]
        assert [statement.name for statement in statements] == found
    assert all(item.seconds is not None and item.seconds > 0 for item in record.items)
    facts = record.facts
    assert (SCALE_FACTOR, 8192) == (facts["scale_factor"], facts["block_size_bytes"])
    # 11 MB of CSV, and indexes: never less.
    assert isinstance(facts["database_bytes"], int)
    assert facts["database_bytes"] > 15 * MIB
    assert facts["wal_bytes_on_disk"]
    assert facts["memory_bytes"]
    assert facts["cpu_count"]
    assert record.before is not None
    assert record.after is not None
    flushed = record.after.values["device.flushes"] - record.before.values["device.flushes"]
    written = record.after.values["device.written_sectors"] - record.before.values["device.written_sectors"]
    assert flushed > 0
    assert written * 512 > 15 * MIB


def check_clocks(record: RunRecord) -> None:
    """Phases follow one another, each within its counters, all within the run's own."""
    ends = [moment for phase in record.phases for moment in (phase.start_monotonic_s, phase.end_monotonic_s)]
    assert sorted(ends) == ends
    for phase, counters in zip(record.phases, record.phase_counters, strict=True):
        assert phase.name == counters.phase
        assert counters.before.monotonic_s <= phase.start_monotonic_s
        assert counters.after.monotonic_s >= phase.end_monotonic_s
    assert record.before is not None
    assert record.after is not None
    assert record.before.monotonic_s <= ends[0]
    assert record.after.monotonic_s >= ends[-1]


def check_pass(bench: Bench, visit: VisitRecord, number: int, record: RunRecord) -> None:
    order = query_order(0)
    assert tuple(map(query_phase, order)) == tuple(phase.name for phase in record.phases)
    assert [(QUERIES, str(query)) for query in order] == [(item.phase, item.item) for item in record.items]
    check_clocks(record)
    for item, phase in zip(record.items, record.phases, strict=True):
        assert item.seconds is not None
        assert 0 < item.seconds <= phase.end_monotonic_s - phase.start_monotonic_s
        assert item.limit_s is None
        assert {"rows", "answer", "answer_key", "plan"} == set(item.facts)
    folder = bench.directory / "runs" / visit.runs[number]
    plans = codec.read(QueryPlans, folder / PLANS_FILE)
    assert {item.item: item.facts["plan"] for item in record.items} == {
        plan.item: plan.hash for plan in plans.plans
    }
    assert all(plan_hash(plan.explained) == plan.hash for plan in plans.plans)
    assert ("16MB", "100") == (
        plans.settings["shared_buffers"],
        plans.settings["default_statistics_target"],
    )
    assert plans.settings["server_version"].startswith("18")
    assert ("1000", "8MB") == (plans.settings[ANALYZE_TARGET], plans.settings["min_parallel_table_scan_size"])
    assert not [name for name in plans.settings if name.startswith("enable_")], "all are PostgreSQL's own"
    assert {"jit", "work_mem", "random_page_cost", "max_parallel_workers_per_gather"} <= set(plans.settings)
    # The first run of a question keeps what was answered.
    kept = {path.name for path in (folder / "logs").glob("answer-*.csv")}
    assert kept == ({f"answer-{query:02d}.csv" for query in QUERY_NUMBERS} if number == 1 else set())


def read_bytes(record: RunRecord) -> float:
    assert record.before is not None
    assert record.after is not None
    return 512 * (record.after.values["device.read_sectors"] - record.before.values["device.read_sectors"])


def check_cold_reads_the_device(load: RunRecord, cold: RunRecord, warm: RunRecord) -> None:
    assert read_bytes(cold) > 0.5 * float(load.facts["database_bytes"])
    assert cold.before is not None
    assert warm.after is not None
    # A test of another lane may drop the caches of the whole machine in the middle of a pass, and the next one reads what that one missed.
    if warm.after.values["memory.cache_drops"] == cold.before.values["memory.cache_drops"]:
        assert read_bytes(warm) < 0.1 * read_bytes(cold)
    blocks = [
        counters.after.values["postgresql.blks_read"] - counters.before.values["postgresql.blks_read"]
        for counters in cold.phase_counters
    ]
    # Each query's own counters have arrived when it has ended, be it ever so short.
    assert min(blocks[:3]) > 0
    assert cold.before is not None
    assert "postgresql.temp_bytes" in cold.before.values


def check_throughput(record: RunRecord) -> None:
    assert [THROUGHPUT] == [phase.name for phase in record.phases]
    for stream in (1, 2):
        found = [item.item for item in record.items if item.phase == stream_phase(stream)]
        assert list(map(str, query_order(stream))) == found
    assert 44 == len(record.items)
    seconds = [item.seconds or 0 for item in record.items]
    assert 2 == record.facts["streams"]
    assert isinstance(record.facts["streams_s"], float)
    assert max(seconds) < record.facts["streams_s"] < sum(seconds)
    phase = record.phases[0]
    assert record.facts["streams_s"] <= phase.end_monotonic_s - phase.start_monotonic_s


def check_events(events: list[dict[str, Any]]) -> None:
    told = [event for event in events if event["event"] == "item"]
    for run, of in ((COLD, 22), (WARM, 22), (THROUGHPUT, 44)):
        assert [(place, of) for place in range(1, of + 1)] == [
            (event["done"], event["of"]) for event in told if event["run"] == run
        ]
    loading = [event for event in told if event["run"] == LOAD]
    assert loading[0]["done"] == 0
    assert loading[-1]["done"] == loading[-1]["of"] == len(loading) - 1
    assert (LOAD_PHASES[-1], "") == (loading[-1]["phase"], loading[-1]["item"])


JOURNAL = ScratchDevice(image_bytes=64 * MIB)


@pytest.mark.parametrize(
    ("filesystem", "changes"),
    [
        (FilesystemLevels("xfs"), {}),
        (FilesystemLevels("btrfs", features=Levels(nodatacow=True)), {}),
        (FilesystemLevels("ext4", journal="external", journal_device="ram"), {"journal_device": JOURNAL}),
    ],
    ids=["xfs", "btrfs", "ext4-external-journal"],
)
def test_a_pass_is_cold_on_other_file_systems_too(
    bench: Bench, csv_files: Path, filesystem: FilesystemLevels, changes: dict[str, Any]
) -> None:
    visit = bench.live(request(bench, csv_files, LOADING, COLD_PASS, filesystem=filesystem, **changes))
    assert (Outcome.COMPLETED, ()) == (visit.outcome, visit.reasons)
    assert "clean" == visit.filesystem_check
    load, cold = records(bench, visit)
    assert cold.facts["made_cold"] is True
    assert read_bytes(cold) > 0.5 * float(load.facts["database_bytes"])
    assert [] == bench.left_behind()


def test_a_query_over_its_timeout_is_a_result(bench: Bench, csv_files: Path) -> None:
    limit_s = 0.004
    runs = (
        asked(POWER, WARM, **{"pass": WARM, "pass_number": 1, "query_timeout_s": limit_s}),
        asked(THROUGHPUT, streams=2, query_timeout_s=limit_s),
    )
    visit = bench.live(request(bench, csv_files, LOADING, *runs))
    assert (Outcome.COMPLETED, ()) == (visit.outcome, visit.reasons)
    _, power, throughput = records(bench, visit)
    for record in (power, throughput):
        stopped = [item for item in record.items if item.seconds is None]
        # Query 1 adds up 60,000 rows in some fifty milliseconds.
        assert "1" in {item.item for item in stopped}
        assert {limit_s} == {item.limit_s for item in stopped}
        assert not any({"rows", "answer", "answer_key"} & set(item.facts) for item in stopped)
    # It has a plan nonetheless.
    assert all("plan" in item.facts for item in power.items)
    assert [] == bench.left_behind()


def test_an_answer_that_is_not_the_expected_one_fails_its_run_and_is_kept(
    bench: Bench, csv_files: Path
) -> None:
    key = "TPC-H, scale factor 0.01, validation parameters, query 5"
    visit = bench.live(
        request(bench, csv_files, LOADING, WARM_PASS, expected_answers={key: "0" * 64}),
    )
    _, power = records(bench, visit)
    assert Outcome.FAILED == visit.outcome == power.outcome
    (reason,) = sentences(power.reasons)
    assert reason.startswith("query 5: its answer differs")
    assert "5 rows" in reason
    assert "expected digest 000000000000…" in reason
    answer = bench.directory / "runs" / visit.runs[1] / "logs" / "answer-05.csv"
    assert str(answer).endswith(reason.rpartition(" in ")[2])
    # Five nations of Asia, the largest revenue first.
    names, revenues = zip(*(line.split(",") for line in answer.read_text().splitlines()), strict=True)
    assert {"VIETNAM", "CHINA", "JAPAN", "INDONESIA", "INDIA"} == {name.strip() for name in names}
    assert sorted(map(float, revenues), reverse=True) == list(map(float, revenues))
    # Everything was measured, and the others are right.
    assert 22 == len(power.items)
    assert {key} < set(answers(power))


def test_without_its_data_nothing_is_asked(bench: Bench, csv_files: Path) -> None:
    damaged = bench.base / "damaged"
    shutil.copytree(csv_files, damaged)
    (damaged / "orders.csv").unlink()
    (damaged / "region.csv").unlink()
    visit = bench.live(request(bench, damaged, LOADING, WARM_PASS))
    load, power = records(bench, visit)
    assert [Outcome.FAILED, Outcome.NOT_RUN] == [load.outcome, power.outcome]
    assert ["region.csv", "orders.csv"] == [Path(reason.sentence.split()[0]).name for reason in load.reasons]
    assert [] == bench.left_behind()


def test_a_full_device_is_named(bench: Bench, csv_files: Path) -> None:
    visit = bench.live(request(bench, csv_files, LOADING, WARM_PASS, image_bytes=64 * MIB))
    load, power = records(bench, visit)
    assert [Outcome.FAILED, Outcome.NOT_RUN] == [load.outcome, power.outcome]
    assert any("No space left" in reason.sentence for reason in load.reasons), load.reasons
    assert any("scratch device is full" in reason.sentence for reason in load.reasons), load.reasons
    # A fast shutdown was seen to wait five minutes here for a recovery that had no room.
    assert max(timing.seconds for timing in visit.timings if timing.step == "stop") < 290
    assert [] == bench.left_behind()


def test_a_server_that_dies_under_a_query_is_named(bench: Bench, csv_files: Path) -> None:
    killed: list[int] = []

    def kill_at_the_third_query(line: str) -> None:
        event = json.loads(line)
        if (event["event"], event.get("run"), event.get("done")) == ("item", WARM, 3):
            killed.append(bench.postmaster())
            os.kill(killed[0], signal.SIGKILL)

    visit = bench.live(request(bench, csv_files, LOADING, WARM_PASS, STREAMS), kill_at_the_third_query)
    assert 1 == len(killed)
    load, power, throughput = records(bench, visit)
    assert [Outcome.COMPLETED, Outcome.FAILED, Outcome.NOT_RUN] == [
        load.outcome,
        power.outcome,
        throughput.outcome,
    ]
    assert any("server died" in reason.sentence for reason in power.reasons), power.reasons
    assert 2 <= len(power.items) <= 22
    assert len(power.phase_counters) <= len(power.phases)
    assert [] == bench.left_behind()


def test_an_interruption_after_a_cold_pass_gives_everything_back_at_once(
    bench: Bench, csv_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = counted_unmounts(tmp_path, monkeypatch)
    visit = bench.start(request(bench, csv_files, LOADING, COLD_PASS, STREAMS))
    assert visit.stdout is not None
    has_signalled = False
    for line in visit.stdout:
        event = json.loads(line)
        if not has_signalled and (event["event"], event.get("run")) == ("item", THROUGHPUT):
            visit.send_signal(signal.SIGTERM)
            has_signalled = True
    assert has_signalled
    assert 130 == visit.wait(AT_MOST_S)
    # A file system that is unmounted before its server has ended is busy for half a minute, and is tried all the while.
    tries = said.read_text().splitlines()
    assert tries
    assert sum("busy" in words for words in tries) < 10, tries
    assert [] == bench.left_behind()


def counted_unmounts(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What every umount(8) says from here on, a line each."""
    folder, said = place / "bin", place / "unmounts"
    folder.mkdir()
    program = folder / "umount"
    program.write_text(
        f'#!/bin/sh\nwords=$({shutil.which("umount")} "$@" 2>&1)\nstatus=$?\n'
        f'echo "$* $words" >> {said}\n[ -z "$words" ] || echo "$words" >&2\nexit $status\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return said
