"""bonnie++ and fio as they are installed, run with the argument lists and read by the parsers."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.tools.patience import AT_MOST_S

from bedplate.host.command import environment
from bedplate.model.levels import Levels, Scalar
from bedplate.units import MIB
from bedplate.workloads.bonnie import figures as bonnie_output
from bedplate.workloads.bonnie import visit as bonnie_command
from bedplate.workloads.bonnie.visit import BonnieJob, BonnieProgress
from bedplate.workloads.fio import output as fio_output
from bedplate.workloads.fio import visit as fio_command
from bedplate.workloads.fio.jobs import FIO_OPTIONS, READY_FIO_JOBS
from bedplate.workloads.fio.visit import FioJob

pytestmark = [pytest.mark.host, pytest.mark.second_lane]


CASES: tuple[Mapping[str, Scalar], ...] = (
    {"sync_file_range": "wait_before,write:32", "random_distribution": "zipf:1.2", "fallocate": "posix"},
    {"norandommap": True, "random_generator": "lfsr", "nrfiles": 4, "file_service_type": "roundrobin"},
    {"thread": True, "numjobs": 2, "loops": 2, "refill_buffers": True, "buffer_compress_percentage": 50},
    {"sync": "dsync", "number_ios": 20, "thinktime": 100, "thinktime_blocks": 4, "rate": "50 MB"},
    {"rate_iops": 2000, "rate_process": "poisson", "fsync": 8, "fsync_on_close": True, "randseed": 5},
    {"io_size": 65536, "io_submit_mode": "offload", "dedupe_percentage": 30, "scramble_buffers": False},
    {"runtime": 0.4, "ramp_time": 0.2, "file_append": False, "zero_buffers": True, "invalidate": False},
    {"percentage_random": 50, "randrepeat": False, "fadvise_hint": False, "buffer_compress_chunk": 512},
    {"ioengine": "libaio", "iodepth": 8, "iodepth_batch": 4, "iodepth_batch_complete_min": 1},
    {"ioengine": "posixaio", "iodepth": 8, "iodepth_batch_complete_max": 4, "rw": "randrw", "rwmixread": 40},
    {"end_fsync": True, "overwrite": True, "unlink": False, "time_based": True, "runtime": 0.3},
    {"fdatasync": 4, "rw": "write", "ioengine": "mmap"},
)


def run(argv: list[str]) -> subprocess.CompletedProcess[bytes]:
    if shutil.which(argv[0], path=environment()["PATH"]) is None:
        pytest.skip(f"needs {argv[0]}: the package of the same name")
    try:
        return subprocess.run(
            argv, capture_output=True, env=environment(), timeout=AT_MOST_S / 10, check=False
        )
    except subprocess.TimeoutExpired:
        # fio's own: with `io_submit_mode=offload` it now and then waits for a thread that has ended (1 of 120 runs tried).
        return subprocess.run(argv, capture_output=True, env=environment(), timeout=AT_MOST_S, check=False)


def fio(directory: Path, options: Mapping[str, Scalar], log: Path | None = None) -> fio_output.FioResult:
    job = FioJob("job", Levels({"bs": 4096, "size": MIB, **options}))
    ended = run(job.argv(directory, log_prefix=log, program=fio_command.FIO_PROGRAM))
    return fio_output.parse_fio_result(ended.stdout.decode(), ended.stderr.decode())


def test_bonnie_goes_through_the_stages_that_the_job_names(tmp_path: Path) -> None:
    job = BonnieJob(file_size_bytes=4 * MIB, seed=7, per_character_bytes=MIB, seeks=100, files=1024)
    # As root it wants to be told so.
    ended = run([*job.argv(tmp_path, bonnie_command.PROGRAM), "-u", "root"])
    found = bonnie_output.parse_result(ended.stdout.decode(), ended.stderr.decode())
    assert list(job.stages()) == [stage for stage in BonnieProgress().feed(ended.stderr) if stage]
    assert (7, 4 * MIB, 100, 5, 1024) == (
        found.seed,
        found.file_size_bytes,
        found.seeks,
        found.seekers,
        found.files,
    )
    assert all(stage.latency_ms_max is not None for stage in found.stages)
    assert [] == list(tmp_path.iterdir())


def test_bonnie_without_its_file_has_the_small_files_alone(tmp_path: Path) -> None:
    job = BonnieJob(file_size_bytes=0, seed=7, files=1024)
    ended = run([*job.argv(tmp_path), "-u", "root"])
    found = bonnie_output.parse_result(ended.stdout.decode(), ended.stderr.decode())
    assert list(job.stages()) == [stage for stage in BonnieProgress().feed(ended.stderr) if stage]
    assert (None, 1024) == (found.file_size_bytes, found.files)
    run_stages = [
        stage.stage for stage in found.stages if str(stage.rate_reason) != "the stage was not asked for"
    ]
    assert list(job.stages()) == run_stages


@pytest.mark.parametrize("name", READY_FIO_JOBS)
def test_fio_takes_every_ready_job(tmp_path: Path, name: str) -> None:
    found = fio(tmp_path, READY_FIO_JOBS[name].options).jobs[0]
    assert (0, MIB) == (found.error, found.size_bytes)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("options", CASES)
def test_fio_takes_the_options_that_a_plan_may_give(tmp_path: Path, options: dict[str, Scalar]) -> None:
    result = fio(tmp_path, {"rw": "randwrite", **options})
    assert 0 == result.jobs[0].error
    assert result.jobs[0].write is not None
    # A remark would say that fio changed or ignored something.
    assert () == result.remarks


def test_every_option_that_a_plan_may_give_was_given_to_fio() -> None:
    tried = {name for options in CASES for name in options} | {"rw", "bs", "size"}
    # Whether direct I/O works is the file system's to say; steady state has a test of its own.
    elsewhere = {"direct", "steadystate", "steadystate_duration", "steadystate_ramp_time"}
    assert set() == set(FIO_OPTIONS) - tried - elsewhere


def test_the_logs_of_fio_lie_where_they_were_asked_for(tmp_path: Path) -> None:
    directory, record = tmp_path / "a:b c$d", tmp_path / "record"
    directory.mkdir()
    record.mkdir()
    fio(directory, {"rw": "randwrite", "runtime": 1.5, "numjobs": 2}, record / "fio")
    names = {path.name for path in record.iterdir()}
    assert {"fio_bw.log", "fio_iops.log", "fio_lat.log", "fio_slat.log", "fio_clat.log"} == names
    # Time, value, direction (1 is writing), block size, offset.
    assert {"1"} == {line.split(", ")[2] for line in (record / "fio_bw.log").read_text().splitlines()}
    assert [] == list(directory.iterdir())


def test_fio_ends_when_its_steady_state_is_attained(tmp_path: Path) -> None:
    found = fio(
        tmp_path,
        {
            "rw": "randread",
            "runtime": 30,
            "steadystate": "iops:100%",
            "steadystate_duration": 2,
            "steadystate_ramp_time": 1,
            "rate_iops": 500,
        },
    ).jobs[0]
    assert found.steady_state is not None
    assert found.steady_state.attained
    assert found.runtime_s < 15
