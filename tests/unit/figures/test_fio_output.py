from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.errors import OutputNotUnderstood
from bedplate.units import MIB
from bedplate.workloads.fio.output import FioJobResult, FioResult, parse_fio_result

FOLDER = "tests/golden/fio"
WHOLE = (
    "fsync",
    "randread",
    "iouring",
    "libaio",
    "steady-state",
    "steady-state-missed",
    "steady-state-unjudged",
    "full-disk",
    "full-disk-layout",
    "capped",
    "end-fsync",
    "ready-checkpoint",
    "ready-wal-append",
)


def text(repository: Path, name: str) -> str:
    return (repository / FOLDER / name).read_text()


def result(repository: Path, name: str) -> FioResult:
    return parse_fio_result(text(repository, f"{name}.json"))


def job(repository: Path, name: str) -> FioJobResult:
    found = result(repository, name)
    assert 1 == len(found.jobs)
    return found.jobs[0]


def changed(repository: Path, name: str, *keys: str | int, value: Any) -> str:
    """A golden document with one value replaced, or left out where it is `...`."""
    document = json.loads(text(repository, f"{name}.json"))
    at = document
    for key in keys[:-1]:
        at = at[key]
    if value is ...:
        del at[keys[-1]]
    else:
        at[keys[-1]] = value
    return json.dumps(document)


def test_a_log_that_is_synced_at_each_write(repository: Path) -> None:
    found = job(repository, "fsync")
    assert ("wal-append", 0) == (found.name, found.error)
    assert found.read is None
    assert found.write is not None
    assert (8 * MIB, 1024, 0.075, 111848106.0) == (
        found.write.size_bytes,
        found.write.operations,
        found.write.runtime_s,
        found.write.bandwidth_bytes_per_s,
    )
    # fio syncs between two writes, so that there is one less; `total_ios` says 0.
    assert found.sync is not None
    assert 1023 == found.sync.operations
    assert (0.063232, 0.09984, 0.117248, 0.150528) == tuple(ms for _, ms in found.sync.percentiles)
    assert 0.117248 == found.sync.latency_ms(99)
    assert found.sync.latency_ms(42) is None


def test_latencies_of_completion_and_of_submission_too_stay_apart(repository: Path) -> None:
    found = job(repository, "iouring")
    for side in (found.read, found.write):
        assert side is not None
        assert side.clat is not None
        assert side.lat is not None
        assert side.clat.latency_ms_mean < side.lat.latency_ms_mean
        assert side.lat.operations == side.operations
        assert side.lat.latency_ms_mean <= side.lat.latency_ms_max


def test_percentiles_are_those_asked_for(repository: Path) -> None:
    found = job(repository, "randread")
    assert found.read is not None
    assert found.read.clat is not None
    assert [50.0, 95.0, 99.0, 99.9] == [percentile for percentile, _ in found.read.clat.percentiles]


def test_cpu_is_of_the_time_of_all_processes_together(repository: Path) -> None:
    found = job(repository, "randread")
    assert 6.0 == found.runtime_s
    assert found.read is not None
    assert 3.001 == found.read.runtime_s
    share = (found.user_cpu_percent + found.system_cpu_percent) / 100
    assert found.cpu_s == pytest.approx(6.0 * share)
    assert found.cpu_s_per_gib == pytest.approx(found.cpu_s / (found.size_bytes / 2**30))


def test_jobs_that_are_not_grouped_are_told_one_by_one(repository: Path) -> None:
    found = result(repository, "libaio")
    assert ["aio", "aio"] == [one.name for one in found.jobs]
    assert all(one.write is not None and one.read is None for one in found.jobs)


def test_steady_state_that_was_attained(repository: Path) -> None:
    found = job(repository, "steady-state")
    assert found.steady_state is not None
    assert ("iops:30.000000%", True) == (found.steady_state.asked, found.steady_state.attained)
    # It ended the job long before its runtime of 30 s.
    assert found.runtime_s < 10


@pytest.mark.parametrize("name", ["steady-state-missed", "steady-state-unjudged"])
def test_steady_state_that_was_missed(repository: Path, name: str) -> None:
    found = job(repository, name).steady_state
    assert found is not None
    assert not found.attained


def test_no_steady_state_was_asked_for(repository: Path) -> None:
    assert job(repository, "fsync").steady_state is None


def test_a_full_disk_is_a_problem_of_the_job_and_keeps_what_was_written(repository: Path) -> None:
    found = job(repository, "full-disk")
    assert 28 == found.error
    assert found.write is not None
    assert found.write.size_bytes > 0
    remark = "err=28/file:io_u.c:1876, func=io_u error, error=No space left on device"
    assert remark in result(repository, "full-disk").remarks[0]


def test_a_job_that_could_not_lay_out_its_file_moved_nothing(repository: Path) -> None:
    found = job(repository, "full-disk-layout")
    assert (28, None, None, None) == (found.error, found.read, found.write, found.cpu_s_per_gib)
    assert ("fio: ENOSPC on laying out file, stopping",) == result(repository, "full-disk-layout").remarks


def test_a_remark_before_the_document_is_kept(repository: Path) -> None:
    found = result(repository, "capped")
    assert 1 == len(found.remarks)
    assert "queue depth will be capped at 1" in found.remarks[0]


def test_the_sync_at_the_end_is_in_the_time_and_in_no_latency(repository: Path) -> None:
    found = job(repository, "end-fsync")
    assert found.sync is None
    assert found.write is not None
    assert found.write.clat is not None
    written_s = found.write.clat.latency_ms_mean * found.write.operations / 1000
    assert found.write.runtime_s > written_s


def test_the_ready_jobs_sync_as_they_say(repository: Path) -> None:
    append, checkpoint = job(repository, "ready-wal-append"), job(repository, "ready-checkpoint")
    assert append.write is not None
    assert append.sync is not None
    assert append.write.operations - 1 == append.sync.operations
    assert checkpoint.write is not None
    assert checkpoint.sync is not None
    # sync_file_range every 32 writes, none after the last.
    assert checkpoint.write.operations // 32 - 1 == checkpoint.sync.operations


@pytest.mark.parametrize(
    ("name", "words"), [("wrong-option", "unrecognized option"), ("no-directory", "not a directory")]
)
def test_a_call_that_fio_refused_quotes_it(repository: Path, name: str, words: str) -> None:
    with pytest.raises(OutputNotUnderstood, match=words):
        parse_fio_result(text(repository, f"{name}.out"), text(repository, f"{name}.err"))


@pytest.mark.parametrize("name", WHOLE)
def test_a_document_that_was_cut_is_refused(repository: Path, name: str) -> None:
    whole = text(repository, f"{name}.json").rstrip()
    begin = whole.index("{")
    for end in (begin, begin + 1, begin + (len(whole) - begin) // 2, len(whole) - 1):
        with pytest.raises(OutputNotUnderstood):
            parse_fio_result(whole[:end])


@pytest.mark.parametrize(
    ("keys", "value", "words"),
    [
        (("fio version",), "fio-2.16", "fio-3"),
        (("fio version",), 3, "a text at /fio version"),
        (("jobs",), [], "at least one job"),
        (("jobs",), {}, "a list at /jobs"),
        (("jobs", 0), 1, r"an object at /jobs\[0\]"),
        (("jobs", 0, "error"), ..., r"/jobs\[0\]/error"),
        (("jobs", 0, "error"), True, "a whole number"),
        (("jobs", 0, "error"), -1, "a whole number"),
        (("jobs", 0, "write", "bw_bytes"), "fast", "/write/bw_bytes"),
        (("jobs", 0, "write", "bw_bytes"), None, "/write/bw_bytes"),
        (("jobs", 0, "write", "iops"), -1.0, "/write/iops"),
        (("jobs", 0, "write", "iops"), float("nan"), "NaN"),
        (("jobs", 0, "write", "iops"), 10**400, "/write/iops"),
        (("jobs", 0, "write", "runtime"), float("inf"), "Infinity"),
        (("jobs", 0, "write", "clat_ns", "percentile"), {"most": 1}, "percentages"),
        (("jobs", 0, "write", "clat_ns", "N"), 1.5, "clat_ns/N"),
        (("jobs", 0, "sync"), ..., r"/jobs\[0\]/sync"),
        (("jobs", 0, "usr_cpu"), ..., "usr_cpu"),
        (("jobs", 0, "steadystate"), {"ss": "iops:5%"}, "steadystate/data|steadystate/attained"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_its_place(
    repository: Path, keys: tuple[str | int, ...], value: Any, words: str
) -> None:
    with pytest.raises(OutputNotUnderstood, match=words):
        parse_fio_result(changed(repository, "fsync", *keys, value=value))


def test_an_endless_literal_is_refused(repository: Path) -> None:
    endless = text(repository, "fsync.json").replace('"usr_cpu" : 2.702703', '"usr_cpu" : 1e999')
    with pytest.raises(OutputNotUnderstood, match="finite"):
        parse_fio_result(endless)


def test_a_deep_nest_is_refused(repository: Path) -> None:
    with pytest.raises(OutputNotUnderstood):
        parse_fio_result("{" + '"a":[' * 200_000)


@settings(deadline=None)
@given(st.text() | st.text().map(lambda words: "{" + words))
def test_any_text_is_refused(words: str) -> None:
    with pytest.raises(OutputNotUnderstood):
        parse_fio_result(words)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_PLACES = (
    ("fio version",),
    ("jobs",),
    ("jobs", 0, "error"),
    ("jobs", 0, "read"),
    ("jobs", 0, "write", "io_bytes"),
    ("jobs", 0, "write", "total_ios"),
    ("jobs", 0, "write", "clat_ns"),
    ("jobs", 0, "write", "lat_ns", "percentile"),
    ("jobs", 0, "sync", "lat_ns", "mean"),
    ("jobs", 0, "sys_cpu"),
    ("jobs", 0, "job_runtime"),
    ("jobs", 0, "steadystate"),
)


@settings(deadline=None)
@given(st.sampled_from(_PLACES), _JSON)
def test_one_changed_value_is_understood_or_refused(
    repository: Path, place: tuple[str | int, ...], value: Any
) -> None:
    try:
        found = parse_fio_result(changed(repository, "fsync", *place, value=value))
    except OutputNotUnderstood:
        return
    for one in found.jobs:
        assert one.cpu_s >= 0
        assert one.size_bytes >= 0
