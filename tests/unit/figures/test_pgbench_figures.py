from __future__ import annotations

import resource
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.support.runs.raw_pgbench_run import WALL, Raw, encoded, rows_of, transactions, values_of, write_raw

from bedplate.figures.run import make_figures
from bedplate.model import codec
from bedplate.model.cell import DeviceLevels
from bedplate.model.course import COURSE_COLUMNS, LATENCY_COLUMNS
from bedplate.model.figure import RunFigures, Status
from bedplate.model.levels import Levels
from bedplate.model.metrics import METRIC_GROUPS
from bedplate.model.reason import is_given, sentences
from bedplate.model.visit import Outcome, RunRecord, Sample, Validity
from bedplate.workloads.pgbench.model import RunScript, levels_of

_OF_PGBENCH = (
    "Transactions",
    "Latency",
    "Caches",
    "Device and memory",
    "Server",
    "Processors and pressure",
    "Preparation and sizes",
)
_NOT_OF_EACH = ("journal_device", "latency_without_lag", "schedule_lag", "extents_per_mib")


def test_a_sound_run_is_valid_and_has_every_figure(tmp_path: Path) -> None:
    figures = make_figures(*write_raw(tmp_path, Raw()))
    assert (Validity.VALID, ()) == (figures.validity, figures.validity_reasons)
    # Neither under a rate limit nor with a journal device, and nobody has looked where its files are.
    groups = [METRIC_GROUPS[name] for name in _OF_PGBENCH]
    own = {metric.name for group in groups for metric in group if not metric.name.startswith(_NOT_OF_EACH)}
    assert own == set(rows_of(figures))
    assert 10.0 == figures.warmup_s
    assert figures.duration_s == pytest.approx(60.0, abs=1e-6)


def test_figures_are_what_the_counters_and_the_log_say(tmp_path: Path) -> None:
    found = values_of(make_figures(*write_raw(tmp_path, Raw())))
    expected = {
        "tps": 1000.0,
        "transactions": 60_000,
        "transactions_failed": 0,
        "latency_ms_p50": 4.0,
        "latency_ms_p99_9": 50.0,
        "latency_ms_max": 50.0,
        "fast_transaction_share": 0.99,
        "shared_buffers_hit_ratio": 0.9,
        "page_cache_hit_ratio": 0.9,
        "device_reads_per_transaction": 0.1,
        # As the kernel counts them: most of the flushes came with data, and no field says which did not.
        "device_writes_per_transaction": 0.9,
        "device_flushes_per_transaction": 0.4,
        "device_read_kib_per_transaction": 0.8,
        "device_written_kib_per_transaction": 8.0,
        "device_busy_share": 0.5,
        "device_queue_depth_mean": 2.0,
        "dirty_mib_mean": 32.0,
        "checkpoints_timed": 1,
        "checkpoints_complete": 1,
        "buffers_checkpointer_mib": 60.0,
        "wal_kib_per_transaction": 1.024,
        "client_cpu_share": 0.2,
        "client_sleeps_per_transaction": 0.9,
        "context_switches_per_transaction": 4.0,
        "watching_cpu_share": 0.01,
        "machine_cpu_share": 0.5,
        "others_cpu_share": 0.045,
        "steal_share": 0.0,
        "pressure_io_some_share": 0.25,
        "mkfs_s": 0.5,
        "cluster_s": 3.0,
        "load_s": 9.0,
        "database_mib": 100.0,
        "tps_in_checkpoint": 1000.0,
    }
    # The readings before and after lie a moment (pgbench's start) further apart than the transactions.
    assert {name: pytest.approx(value, rel=1e-3) for name, value in expected.items()} == {
        name: found[name] for name in expected
    }


def test_the_pieces_of_the_data_files_are_for_each_mib_of_them(tmp_path: Path) -> None:
    mapped = Raw(facts={"data_extents": 750, "data_bytes": 100 * 2**20})
    assert 7.5 == values_of(make_figures(*write_raw(tmp_path / "mapped", mapped)))["extents_per_mib"]
    assert "extents_per_mib" not in rows_of(make_figures(*write_raw(tmp_path / "unmapped", Raw())))


def test_a_counter_that_is_not_there_is_absent_with_its_name(tmp_path: Path) -> None:
    row = rows_of(make_figures(*write_raw(tmp_path, Raw())))["buffers_backend"]
    assert (None, Status.ABSENT) == (row.value, row.status)
    assert "postgresql.buffers_backend" in str(row.reason)


@pytest.mark.parametrize(("late_s", "validity"), [(2.9, Validity.VALID), (3.1, Validity.SUSPECT)])
def test_an_emulated_device_is_late_by_what_its_requests_should_take(
    tmp_path: Path, late_s: float, validity: Validity
) -> None:
    visit, run = write_raw(tmp_path, Raw())
    record = codec.read(RunRecord, run / "record.json")
    assert record.before is not None
    assert record.after is not None
    before, after = (
        replace(found, values={**found.values, "emulated.due_s": due_s, "emulated.late_s": late})
        for found, due_s, late in ((record.before, 7.0, 1.0), (record.after, 67.0, 1.0 + late_s))
    )
    codec.write(run / "record.json", replace(record, before=before, after=after))
    figures = make_figures(visit, run)
    assert validity is figures.validity
    assert (validity is Validity.SUSPECT) == (
        "emulated-device-late" in {r.code for r in figures.validity_reasons}
    )


def test_before_16_the_bytes_read_are_blocks_times_their_size(tmp_path: Path) -> None:
    visit, run = write_raw(tmp_path, Raw())
    record = codec.read(RunRecord, run / "record.json")
    assert record.before is not None
    assert record.after is not None

    def older(found: Sample) -> Sample:
        return replace(found, values={k: v for k, v in found.values.items() if k != "postgresql.read_bytes"})

    codec.write(run / "record.json", replace(record, before=older(record.before), after=older(record.after)))
    assert values_of(make_figures(visit, run))["page_cache_hit_ratio"] == pytest.approx(0.9)


def test_a_journal_of_its_own_counts_as_writes_but_not_as_reads(tmp_path: Path) -> None:
    journal = {
        "reads": 50.0,
        "read_sectors": 1.0,
        "writes": 300.0,
        "written_sectors": 1600.0,
        "flushes": 100.0,
    }
    raw = Raw(counters=lambda at: {f"journal_device.{k}": v * (at + 10) for k, v in journal.items()})
    found = values_of(make_figures(*write_raw(tmp_path, raw)))
    assert found["device_writes_per_transaction"] == pytest.approx(1.2, rel=1e-3)
    assert found["device_flushes_per_transaction"] == pytest.approx(0.5, rel=1e-3)
    assert found["device_reads_per_transaction"] == pytest.approx(0.1, rel=1e-3)
    assert found["journal_device_writes_per_transaction"] == pytest.approx(0.3, rel=1e-3)
    assert found["journal_device_flushes_per_transaction"] == pytest.approx(0.1, rel=1e-3)
    assert found["journal_device_written_kib_per_transaction"] == pytest.approx(0.8, rel=1e-3)
    # This counter was not there: absent, and not zero.
    assert "journal_device_busy_share" not in found


def test_flushes_of_a_journal_device_that_does_not_count_them_are_not_none(tmp_path: Path) -> None:
    journal = {"writes": 300.0, "written_sectors": 1600.0}
    raw = Raw(counters=lambda at: {f"journal_device.{k}": v * (at + 10) for k, v in journal.items()})
    found = values_of(make_figures(*write_raw(tmp_path, raw)))
    assert found["journal_device_written_kib_per_transaction"] == pytest.approx(0.8, rel=1e-3)
    assert [name for name in found if "flushes" in name] == []
    # Writes are counted by a field of their own.
    assert found["device_writes_per_transaction"] == pytest.approx(1.2, rel=1e-3)


def test_a_flush_that_came_with_a_write_is_not_taken_off_the_writes(tmp_path: Path) -> None:
    # XFS, as measured: each fsync of an append completes 2 writes with data, the second between two flushes.
    counters = {"device.writes": 2000.0, "device.flushes": 2000.0, "device.written_sectors": 18_000.0}
    raw = Raw(counters=lambda at: {name: each * (at + 10) for name, each in counters.items()})
    visit, run = write_raw(tmp_path, raw)
    found = values_of(make_figures(visit, run))
    assert found["device_writes_per_transaction"] == pytest.approx(2.0, rel=1e-3)
    assert found["device_flushes_per_transaction"] == pytest.approx(2.0, rel=1e-3)
    course = pl.read_parquet(run / "course.parquet").filter(pl.col("phase") == "measure")
    assert course["device_writes_per_s"].median() == pytest.approx(2000.0, rel=1e-3)


def test_without_a_journal_device_nothing_is_said_of_one(tmp_path: Path) -> None:
    found = values_of(make_figures(*write_raw(tmp_path, Raw())))
    assert [name for name in found if name.startswith("journal_device")] == []


def test_the_course_has_a_row_for_each_second_and_nothing_of_the_warm_up_in_measure(tmp_path: Path) -> None:
    _, run = write_raw(tmp_path, Raw())
    make_figures(tmp_path, run)
    course = pl.read_parquet(run / "course.parquet")
    assert list(COURSE_COLUMNS) == course.columns
    assert list(range(-10, 61)) == course["second"].to_list()
    assert 10 == course.filter(pl.col("phase") == "warmup").height
    whole = course.filter((pl.col("second") > 0) & (pl.col("second") < 60))
    assert {1000.0} == set(whole["tps"].to_list())
    assert whole["device_reads_per_s"].to_list() == pytest.approx([100.0] * 59)
    assert whole["cpu_busy_share"].to_list() == pytest.approx([0.5] * 59)
    assert whole["page_cache_hit_ratio"].to_list() == pytest.approx([0.9] * 59)
    assert whole["memory_available_mib"].to_list() == pytest.approx([700.0] * 59)
    assert whole["memory_cached_mib"].to_list() == pytest.approx([900.0] * 59)
    assert whole["buffers_backend_per_s"].null_count() == whole.height


def test_an_edge_second_is_a_rate_over_what_it_covers_or_unknown(tmp_path: Path) -> None:
    _, run = write_raw(tmp_path, Raw())
    make_figures(tmp_path, run)
    course = pl.read_parquet(run / "course.parquet")
    first, last = (course.row(by_predicate=pl.col("second") == at, named=True) for at in (0, 60))
    assert first["tps"] == pytest.approx(1000, rel=0.02)
    assert last["tps"] is None


def test_latencies_keep_every_transaction_of_both_phases(tmp_path: Path) -> None:
    raw = Raw()
    _, run = write_raw(tmp_path, raw)
    make_figures(tmp_path, run)
    latencies = pl.read_parquet(run / "latency.parquet")
    assert list(LATENCY_COLUMNS) == latencies.columns
    counted = dict(latencies.group_by("phase").agg(pl.col("count").sum()).iter_rows())
    expected = [sum(sum(seconds.values()) for seconds in phase.values()) for phase in transactions(raw)]
    assert {"warmup": expected[0], "measure": expected[1]} == counted
    slow = latencies.filter((pl.col("latency_us_low") <= 50_000) & (pl.col("latency_us_high") > 50_000))
    assert slow.filter(pl.col("phase") == "measure")["count"].sum() > 0


def test_raw_bulk_is_deleted_and_a_second_call_gives_the_same(tmp_path: Path) -> None:
    visit, run = write_raw(tmp_path, Raw())
    first = make_figures(visit, run)
    expected = {"record.json", "run.json", "course.parquet", "latency.parquet", "logs"}
    assert expected == {path.name for path in run.iterdir()}
    assert first == make_figures(visit, run)


@pytest.mark.parametrize("kept", ["course.jsonl", "measure.bin"])
def test_a_kill_before_the_bulk_was_deleted_is_made_good(tmp_path: Path, kept: str) -> None:
    visit, run = write_raw(tmp_path, Raw())
    first = make_figures(visit, run)
    (run / kept).write_bytes(b"left")
    assert first == make_figures(visit, run)
    assert not (run / kept).exists()


def test_a_kill_before_run_json_starts_over(tmp_path: Path) -> None:
    visit, run = write_raw(tmp_path, Raw())
    (run / "course.parquet").write_bytes(b"PAR1 half of")
    make_figures(visit, run)
    assert 71 == pl.read_parquet(run / "course.parquet").height


def test_bulk_is_kept_while_tables_are_not_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    visit, run = write_raw(tmp_path, Raw())

    def full(*_args: object, **_more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(OSError, match="No space left"):
        make_figures(visit, run)
    assert {"course.jsonl", "warmup.bin", "measure.bin"} <= {path.name for path in run.iterdir()}
    assert not (run / "run.json").exists()


SUSPECT: dict[str, tuple[Raw, str]] = {
    "no complete checkpoint": (Raw(checkpoints=(("time", 40.0, None),)), "no timed checkpoint lies wholly"),
    "client saturated": (Raw(facts={"measure_client_cpu_s": 100.0}), "used 83.3 % of its 2 threads"),
    "fits in the cache": (
        Raw(facts={"scale_asked": "4x memory"}, device=DeviceLevels(memory_bytes=2**31)),
        "fits into the memory of 2 GiB",
    ),
    "kernel warning": (Raw(kernel_messages=("EXT4-fs error (device loop0): bad",)), "1 warning during"),
    "server broke": (
        Raw(more_log=f"{WALL + 9:.3f} 7 postmaster LOG:  process (PID 9) was terminated by signal 9\n"),
        "first CRASH",
    ),
    "counts differ": (Raw(pgbench_extra=1), "60000 transactions, pgbench counted 60001"),
    "log incomplete": (Raw(whole=False), "not read to its end"),
    "failed transactions": (Raw(failed=7), "7 transactions failed beside 60000"),
    "too short": (Raw(facts={"duration_s_asked": 61.0}), "60.0 s were measured, 61 s were requested"),
    "steal": (Raw(counters=lambda at: {"cpu.steal_s": 0.2 * (at + 10)}), "a hypervisor took 9.1 %"),
}


@pytest.mark.parametrize("name", SUSPECT)
def test_a_run_is_suspect_with_the_reason(tmp_path: Path, name: str) -> None:
    raw, words = SUSPECT[name]
    figures = make_figures(*write_raw(tmp_path, raw))
    assert Validity.SUSPECT is figures.validity
    assert 1 == len(figures.validity_reasons), figures.validity_reasons
    assert words in figures.validity_reasons[0].sentence


def test_a_climb_while_the_cache_fills_is_suspect(tmp_path: Path) -> None:
    raw = Raw(script="read-only", checkpoints=(), tps=lambda second: 1000 + 20 * (second + 10))
    figures = make_figures(*write_raw(tmp_path, raw))
    assert Validity.SUSPECT is figures.validity
    assert "the cache was filling" in figures.validity_reasons[0].sentence


def test_a_run_that_only_reads_at_two_speeds_is_suspect(tmp_path: Path) -> None:
    def flips(second: int) -> int:
        return 700 if second < 31 else 1100

    def made(name: str, script: str, **more: Any) -> RunFigures:
        (tmp_path / name).mkdir()
        return make_figures(*write_raw(tmp_path / name, Raw(script=script, tps=flips, **more)))

    reading = made("reading", "read-only", checkpoints=(), counters=lambda _: {"device.reads": 0.0})
    assert Validity.SUSPECT is reading.validity
    assert "tps was 700 until 30 s and 1100 from then on" in reading.validity_reasons[0].sentence
    # What writes speeds up and slows down with its checkpoints.
    assert not is_given("two-speeds", made("writing", "read-write").validity_reasons)


@pytest.mark.parametrize(
    ("idle_s", "facts", "is_marked"),
    [
        # Two processors for 70 s: 4 clients of 2 threads, one processor idle for a third of the time.
        (0.4, {}, True),
        (0.05, {}, False),
        (0.4, {"jobs": 4}, False),
        (0.4, {"rate_tps": 500.0}, False),
        (0.4, {"cpu_count": 64}, False),
    ],
)
def test_a_run_that_only_reads_and_leaves_processors_idle_is_suspect_where_threads_serve_several_clients(
    tmp_path: Path, idle_s: float, facts: dict[str, Any], is_marked: bool
) -> None:
    still = {"device.reads": 0.0}

    def counters(at: float) -> dict[str, float]:
        return {**still, "cpu.idle_s": idle_s * (at + 10), "cpu.iowait_s": 0.0, "cpu.user_s": 1.0 * (at + 10)}

    raw = Raw(
        script="read-only", checkpoints=(), counters=counters, facts={"clients": 4, "cpu_count": 2, **facts}
    )
    figures = make_figures(*write_raw(tmp_path, raw))
    assert is_marked == any(
        "processors' time was idle" in reason.sentence for reason in figures.validity_reasons
    )


def test_an_own_script_that_writes_no_wal_needs_no_checkpoint(tmp_path: Path) -> None:
    raw = Raw(script="own", checkpoints=(), counters=lambda at: {"postgresql.wal_bytes": 2.0 * (at + 10)})
    assert Validity.VALID is make_figures(*write_raw(tmp_path, raw)).validity


def test_an_own_script_that_writes_some_needs_one(tmp_path: Path) -> None:
    figures = make_figures(*write_raw(tmp_path, Raw(script="own", checkpoints=())))
    assert Validity.SUSPECT is figures.validity
    assert "no timed checkpoint" in figures.validity_reasons[0].sentence


@pytest.mark.parametrize("name", ["measure.bin", "warmup.bin", "course.jsonl", "logs/pgbench.out"])
def test_a_damaged_input_leaves_the_run_unknown_and_the_rest_measured(tmp_path: Path, name: str) -> None:
    visit, run = write_raw(tmp_path, Raw())
    (run / name).write_bytes(b"nothing like it\n")
    figures = make_figures(visit, run)
    assert Validity.UNKNOWN is figures.validity
    assert ("tps" in values_of(figures)) == (name != "measure.bin")
    assert "shared_buffers_hit_ratio" in values_of(figures)


def test_a_course_that_is_missing_makes_the_run_suspect(tmp_path: Path) -> None:
    visit, run = write_raw(tmp_path, Raw())
    (run / "course.jsonl").unlink()
    figures = make_figures(visit, run)
    assert Validity.SUSPECT is figures.validity
    assert "course.jsonl" in figures.validity_reasons[-1].sentence
    assert "tps" in values_of(figures)


def test_without_a_server_log_checkpoints_are_unknown_and_not_zero(tmp_path: Path) -> None:
    visit, run = write_raw(tmp_path, Raw())
    (visit / "logs/server.log").unlink()
    figures = make_figures(visit, run)
    assert Validity.UNKNOWN is figures.validity
    assert "checkpoints_timed" not in values_of(figures)
    assert "tps_outside" not in values_of(figures)


def test_a_failed_run_has_its_reasons_and_course_but_no_figures(tmp_path: Path) -> None:
    visit, run = write_raw(tmp_path, Raw(outcome=Outcome.FAILED))
    figures = make_figures(visit, run)
    assert (Outcome.FAILED, ("the server died",), ()) == (
        figures.outcome,
        sentences(figures.reasons),
        figures.figures,
    )
    assert Validity.UNKNOWN is figures.validity
    assert 71 == pl.read_parquet(run / "course.parquet").height


def test_a_run_that_never_measured_has_no_course(tmp_path: Path) -> None:
    visit, run = write_raw(tmp_path, Raw(outcome=Outcome.NOT_RUN))
    record = codec.read(RunRecord, run / "record.json")
    codec.write(run / "record.json", replace(record, phases=(), before=None, after=None))
    figures = make_figures(visit, run)
    assert (Outcome.NOT_RUN, None, ()) == (figures.outcome, figures.duration_s, figures.figures)
    assert not (run / "course.parquet").exists()


def test_a_second_in_which_nothing_ended_is_zero_and_not_unknown(tmp_path: Path) -> None:
    raw = Raw(tps=lambda second: 0 if second == 30 else 1000)
    _, run = write_raw(tmp_path, raw)
    make_figures(tmp_path, run)
    row = pl.read_parquet(run / "course.parquet").row(by_predicate=pl.col("second") == 30, named=True)
    assert (0.0, None) == (row["tps"], row["latency_ms_p50"])


def test_a_long_fast_run_takes_little_memory(tmp_path: Path) -> None:
    visit, run = write_raw(tmp_path, Raw(measure_s=600, warmup_s=300, checkpoints=(("time", 5.0, 32.0),)))
    # 50 000 tps whose latencies fill hundreds of buckets each second, as a real log's do.
    chance = np.random.default_rng(1)
    drawn: list[dict[int, int]] = []
    for _ in range(60):
        found, counts = np.unique((chance.lognormal(6.5, 0.7, 50_000)).astype(int) + 1, return_counts=True)
        drawn.append(dict(zip(found.tolist(), counts.tolist(), strict=True)))
    second = {at: drawn[at % 60] for at in range(int(WALL), int(WALL) + 600)}
    (run / "measure.bin").write_bytes(encoded(second))
    (run / "warmup.bin").write_bytes(
        encoded({at - 300: latencies for at, latencies in list(second.items())[:300]})
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    make_figures(visit, run)
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown_mib < 600


@pytest.mark.parametrize(
    ("kept", "validity", "words"),
    [
        (slice(None), Validity.VALID, ()),
        (slice(0), Validity.UNKNOWN, ("no sample was taken in 60 of 60 s of the run",)),
        # The warm-up takes ten seconds, and there is a sample each second.
        (slice(35), Validity.UNKNOWN, ("no sample was taken in 36 of 60 s of the run",)),
        (slice(-6), Validity.VALID, ()),
    ],
)
def test_samples_that_do_not_cover_the_run_leave_its_validity_unknown(
    kept: slice, validity: Validity, words: tuple[str, ...], tmp_path: Path
) -> None:
    visit, run = write_raw(tmp_path, Raw())
    course = run / "course.jsonl"
    course.write_text("".join(course.read_text().splitlines(keepends=True)[kept]))
    figures = make_figures(visit, run)
    assert (validity, words) == (figures.validity, sentences(figures.validity_reasons))


def test_a_run_of_several_scripts_has_rows_of_each_beside_its_own(tmp_path: Path) -> None:
    visit, run = write_raw(tmp_path, Raw())
    record = codec.read(RunRecord, run / "record.json")
    several = RunScript("reads", "SELECT 1;", 3), RunScript("read-write")
    levels = Levels({"clients": 4, "jobs": 2, **levels_of(several, {})})
    codec.write(run / "record.json", replace(record, spec=replace(record.spec, levels=levels)))
    figures = make_figures(visit, run)
    assert (Validity.VALID, ()) == (figures.validity, figures.validity_reasons)
    rows = {(row.item, row.metric): row.value for row in figures.figures if row.phase == "scripts"}
    # All lines of the made up log are of the first.
    assert (60_000, 0) == (rows["reads", "transactions"], rows["read-write", "transactions"])
    assert {"tps", "transactions", "transactions_failed", "latency_ms_mean", "latency_ms_p99_9"} <= {
        metric for _, metric in rows
    }
