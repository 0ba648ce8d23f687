"""The figures of a job of fio, and of pg_test_fsync beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.runs.raw_sequential_run import GOLDEN, RANDREAD, TEST_FSYNC, WAL, RawSequential, fio_run

from bedplate.model.cell import RunSpec
from bedplate.model.figure import Figure, RunFigures, Status
from bedplate.model.levels import Levels
from bedplate.model.visit import Validity
from bedplate.units import MIB
from bedplate.workloads.fio.model import FIO_JOB, PG_TEST_FSYNC

ENOUGH = {"device.read_sectors": 2048.0 * 1024}


def rows(found: RunFigures) -> dict[tuple[str, str, str], Figure]:
    return {(row.phase, row.item, row.metric): row for row in found.figures}


def told(name: str) -> dict[str, object]:
    text = (GOLDEN / "fio" / name).read_text()
    job: dict[str, object] = json.loads(text[text.index("{") :])["jobs"][0]
    return job


def test_a_reading_job_has_throughput_operations_latency_and_cpu(tmp_path: Path) -> None:
    found = fio_run(RANDREAD, "fio/randread.json", lays_out=True).figures(tmp_path)
    assert (Validity.VALID, ()) == (found.validity, found.validity_reasons)
    by = rows(found)
    read = told("randread.json")["read"]
    assert isinstance(read, dict)
    assert pytest.approx(read["bw_bytes"] / MIB) == by["measure", "", "throughput_mib_per_s"].value
    assert pytest.approx(read["iops"]) == by["measure", "", "operations_per_s"].value
    assert (
        pytest.approx(read["lat_ns"]["percentile"]["99.900000"] / 1e6)
        == by["measure", "", "latency_ms_p99_9"].value
    )
    # 10.02 % of 6 s of two processes, in 3.001 s.
    assert pytest.approx(0.2003, rel=1e-3) == by["measure", "", "tool_cpu_share"].value
    assert pytest.approx(0.601 / (1146511360 / 2**30), rel=1e-3) == by["measure", "", "cpu_s_per_gib"].value
    # 0.55 CPU for 4 s.
    assert pytest.approx(2.2 / (1146511360 / 2**30)) == by["measure", "", "machine_cpu_s_per_gib"].value


def test_laying_out_and_the_sync_are_in_no_figure_of_the_job(tmp_path: Path) -> None:
    by = rows(fio_run(RANDREAD, "fio/randread.json", lays_out=True).figures(tmp_path))
    assert pytest.approx(4 * 1024) == by["measure", "", "device_read_mib"].value
    assert pytest.approx(1024) == by["lay out", "", "device_read_mib"].value
    assert pytest.approx(0.25) == by["sync", "", "phase_s"].value
    assert (FIO_JOB, "", "phase_s") not in by


def test_a_synchronous_job_has_the_latency_of_its_syncs_apart(tmp_path: Path) -> None:
    by = rows(fio_run(WAL, "fio/ready-wal-append.json").figures(tmp_path))
    sync = told("ready-wal-append.json")["sync"]
    assert isinstance(sync, dict)
    found = by[FIO_JOB, "sync", "latency_ms_p99"].value
    assert pytest.approx(sync["lat_ns"]["percentile"]["99.000000"] / 1e6) == found
    assert found != by["measure", "", "latency_ms_p99"].value


def test_a_job_that_reads_and_writes_has_latencies_of_each(tmp_path: Path) -> None:
    text = (GOLDEN / "fio/randread.json").read_text()
    document = json.loads(text)
    document["jobs"][0]["write"] = document["jobs"][0]["read"]
    run = fio_run(RANDREAD, "fio/randread.json", lays_out=True)
    run.write(tmp_path)
    output = tmp_path / "runs" / f"01-{RANDREAD.id}" / "logs" / "fio.out"
    output.write_text(json.dumps(document))
    from bedplate.figures.run import make_figures  # noqa: PLC0415

    by = rows(make_figures(tmp_path, output.parents[1]))
    mean = by["measure", "", "latency_ms_mean"]
    assert (Status.ABSENT, "reads and writes have latencies of their own") == (mean.status, str(mean.reason))
    each = [by[FIO_JOB, item, "operations_per_s"].value for item in ("read", "write")]
    assert [46636.121293, 46636.121293] == each
    assert pytest.approx(2 * 46636.121293) == by["measure", "", "operations_per_s"].value


def test_reads_that_the_cache_answered_are_suspect(tmp_path: Path) -> None:
    run = fio_run(RANDREAD, "fio/randread.json", growth={"device.read_sectors": 2048.0 * 20})
    found = run.figures(tmp_path)
    assert (Validity.SUSPECT, 1) == (found.validity, len(found.validity_reasons))
    assert (
        "the cache answered: the job read 1.07 GiB, and the device gave 80 MiB"
        in found.validity_reasons[0].sentence
    )


@pytest.mark.parametrize(("direct", "expected"), [(False, Validity.SUSPECT), (True, Validity.VALID)])
def test_writes_that_the_cache_took_are_suspect_unless_they_went_around_it(
    tmp_path: Path, expected: Validity, *, direct: bool
) -> None:
    spec = RunSpec("write", "fio", Levels(rw="write", bs="8 kB", size="16 MB", direct=direct))
    run = fio_run(spec, "fio/ready-wal-append.json", growth={"device.written_sectors": 2048.0})
    found = run.figures(tmp_path)
    assert expected is found.validity
    if not direct:
        assert (
            "the cache took the writes: the job wrote 16 MiB, of which the device had 4 MiB"
            in found.validity_reasons[0].sentence
        )


@pytest.mark.parametrize(
    ("golden", "attained", "validity"),
    [("steady-state.json", 1.0, Validity.VALID), ("steady-state-missed.json", 0.0, Validity.SUSPECT)],
)
def test_a_steady_state_is_told_and_its_lack_is_suspect(
    tmp_path: Path, golden: str, attained: float, validity: Validity
) -> None:
    found = fio_run(RANDREAD, f"fio/{golden}", lays_out=True).figures(tmp_path)
    assert (attained, validity) == (rows(found)["measure", "", "steady_state_attained"].value, found.validity)


def test_without_a_steady_state_asked_for_there_is_no_figure_of_it(tmp_path: Path) -> None:
    assert ("measure", "", "steady_state_attained") not in rows(
        fio_run(RANDREAD, "fio/randread.json").figures(tmp_path)
    )


def test_with_a_ramp_time_the_machines_cpu_is_not_divided_by_less_bytes(tmp_path: Path) -> None:
    spec = RunSpec("ramped", "fio", Levels({**RANDREAD.levels, "runtime": 3, "ramp_time": 2}))
    found = rows(fio_run(spec, "fio/randread.json").figures(tmp_path))["measure", "", "machine_cpu_s_per_gib"]
    assert (None, "the counters hold the ramp time too, and fio's bytes do not") == (
        found.value,
        str(found.reason),
    )


def test_output_that_is_no_json_leaves_the_counters_and_is_unknown(tmp_path: Path) -> None:
    found = fio_run(RANDREAD, "fio/wrong-option.out").figures(tmp_path)
    assert Validity.UNKNOWN is found.validity
    assert ("measure", "", "throughput_mib_per_s") not in rows(found)
    assert pytest.approx(4 * 1024) == rows(found)["measure", "", "device_read_mib"].value


def test_pg_test_fsync_has_a_rate_for_each_method(tmp_path: Path) -> None:
    run = RawSequential(
        spec=TEST_FSYNC,
        golden={f"{PG_TEST_FSYNC}.out": "pg_test_fsync/pg18-ext4.txt"},
        seconds={FIO_JOB: 32.0, "sync": 0.1},
        facts={},
    )
    found = run.figures(tmp_path)
    assert Validity.VALID is found.validity
    by = rows(found)
    whole = by["measure", "", "operations_per_s"]
    assert whole.value == by["one write", "fdatasync", "operations_per_s"].value
    missing = by["one write", "fsync_writethrough", "operations_per_s"]
    assert (Status.ABSENT, "PostgreSQL has no such method on this platform") == (
        missing.status,
        str(missing.reason),
    )


def test_a_job_that_stopped_at_an_error_is_suspect_and_says_which(tmp_path: Path) -> None:
    found = fio_run(WAL, "fio/full-disk.json").figures(tmp_path)
    assert Validity.SUSPECT is found.validity
    (reason,) = [each for each in found.validity_reasons if each.code == "job-stopped"]
    assert "No space left on device (errno 28)" in str(reason)
