from __future__ import annotations

from pathlib import Path

import pytest

from bedplate.model.levels import Levels, Scalar
from bedplate.units import MIB
from bedplate.workloads.fio.jobs import READY_FIO_JOBS
from bedplate.workloads.fio.visit import FioJob


def job(name: str = "scan", **options: Scalar) -> FioJob:
    return FioJob(name, Levels({"rw": "read", "bs": "8 kB", "size": "64 MB", **options}))


def test_the_argument_list_says_everything_that_decides_the_result() -> None:
    expected = [
        "fio",
        "--output-format=json",
        "--eta=never",
        "--name=scan",
        "--directory=/mnt/scratch",
        "--ioengine=psync",
        "--iodepth=1",
        "--numjobs=2",
        "--direct=0",
        "--invalidate=1",
        "--unlink=1",
        "--randrepeat=1",
        "--time_based=1",
        "--bs=8192",
        "--runtime=60000ms",
        "--rw=read",
        "--size=67108864",
        "--group_reporting=1",
        "--clat_percentiles=1",
        "--lat_percentiles=1",
        "--percentile_list=50:95:99:99.9",
    ]
    assert expected == job(numjobs=2, runtime=60).argv(Path("/mnt/scratch"))


def test_what_a_plan_says_stands_above_the_defaults() -> None:
    words = job(unlink=False, runtime=5, time_based=False, direct=True, ioengine="io_uring", iodepth=8).words
    assert ("0", "0", "1", "io_uring", "8") == (
        words["unlink"],
        words["time_based"],
        words["direct"],
        words["ioengine"],
        words["iodepth"],
    )
    assert "time_based" not in job().words


def test_each_process_has_files_of_its_own() -> None:
    assert 64 * MIB == job().total_size_bytes
    assert 256 * MIB == job(numjobs=4).total_size_bytes


def test_a_colon_in_the_folder_is_not_the_end_of_it() -> None:
    assert "--directory=/mnt/a\\:b c" in job().argv(Path("/mnt/a:b c"))


def test_logs_lie_outside_of_what_is_measured() -> None:
    argv = job().argv(Path("/mnt/scratch"), log_prefix=Path("/record/fio"))
    assert [
        "--write_bw_log=/record/fio",
        "--write_iops_log=/record/fio",
        "--write_lat_log=/record/fio",
        "--log_avg_msec=1000",
        "--per_job_logs=0",
    ] == argv[-5:]
    for wrong in ("/mnt/scratch/log", "log"):
        with pytest.raises(ValueError, match="outside"):
            job().argv(Path("/mnt/scratch"), log_prefix=Path(wrong))
    with pytest.raises(ValueError, match="absolute"):
        job().argv(Path("scratch"))


@pytest.mark.parametrize(
    "name", ["", "../x", "a/b", "a b", "-x", "a.b", "a:b", "$jobname", "a\n", "x" * 64, "é", "scan\n"]
)
def test_a_name_that_could_lead_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="begins the names of its files"):
        job(name)


def test_every_reason_is_given_at_once() -> None:
    with pytest.raises(ValueError, match=r"exec_prerun.*iodepth = 0.*begins the names") as refused:
        job("a b", exec_prerun="true", iodepth=0)
    assert 2 == str(refused.value).count("; fio")


def test_options_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(ValueError, match="writes nothing"):
        job(fdatasync=1)


@pytest.mark.parametrize("name", READY_FIO_JOBS)
def test_a_ready_job_needs_a_size_and_nothing_else(name: str) -> None:
    ready = READY_FIO_JOBS[name]
    with pytest.raises(ValueError, match="needs size"):
        FioJob(name, ready.options)
    assert FioJob(name, ready.options.updated(size="1 GB")).argv(Path("/mnt/scratch"))
    assert FioJob(name, ready.options.updated(size="1 GB", runtime=60, numjobs=4)).argv(Path("/mnt/scratch"))


@pytest.mark.parametrize("name", READY_FIO_JOBS)
def test_every_option_of_a_ready_job_has_its_reason(name: str) -> None:
    ready = READY_FIO_JOBS[name]
    assert set(ready.options) == set(ready.reasons)
    assert all(len(reason) > 10 for reason in (ready.stands_for, *ready.reasons.values()))


def test_the_two_logs_differ_in_whether_the_file_was_there() -> None:
    append, overwrite = (READY_FIO_JOBS[name].options for name in ("wal-append", "wal-overwrite"))
    assert (None, True) == (append.flag("overwrite"), overwrite.flag("overwrite"))
    assert 1 == append.integer("fdatasync") == overwrite.integer("fdatasync")
    # Blocks that were reserved before would take the allocation out of the commit.
    assert "none" == append.text("fallocate")


def test_a_checkpoint_syncs_once_at_its_end() -> None:
    options = READY_FIO_JOBS["checkpoint"].options
    assert options.flag("end_fsync")
    assert {"fsync", "fdatasync", "sync"}.isdisjoint(options)
