"""The LMDB driver's document: golden ones of real runs, damaged ones, and histograms of any shape.

`every-test.json` and the others of tests/golden/microbenchmark come from liblmdb 0.9.24 on small ext4 images; the full
disk was one of 64 MiB.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.errors import OutputNotUnderstood
from bedplate.workloads.microbenchmark.figures import (
    BenchDocument,
    BenchLatency,
    bucket_bounds_ns,
    parse_document,
)
from bedplate.workloads.microbenchmark.model import progress_of

SUB_BUCKETS = 128


@pytest.fixture(scope="module")
def golden(repository: Path) -> Path:
    return repository / "tests/golden/microbenchmark"


def document(golden: Path, name: str) -> BenchDocument:
    return parse_document((golden / f"{name}.json").read_text())


def damaged(golden: Path, path: tuple[str | int, ...], value: Any) -> str:
    """The document of every test, with one place of it changed; a value of `...` takes it out."""
    whole = json.loads((golden / "every-test.json").read_text())
    place = whole
    for step in path[:-1]:
        place = place[step]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return json.dumps(whole)


def test_reads_every_test_in_the_order_asked_for(golden: Path) -> None:
    found = document(golden, "every-test")
    assert ("0.9.24", None, None) == (found.library.version, found.failure, found.interrupted)
    assert found.options.tests == tuple(test.test for test in found.tests)
    counts = {test.test: test.operations for test in found.tests}
    assert counts == {
        **dict.fromkeys(("fillrandsync", "fillseqsync"), 100),
        **dict.fromkeys(("fillrandom", "fillrandbatch", "fillseq", "fillseqbatch", "overwrite"), 3000),
        **dict.fromkeys(("readrandom", "readseq", "readreverse"), 3000),
        "readwhilewriting": 6000,
        **dict.fromkeys(("fillrand100K", "readrand100K", "fillseq100K", "readseq100K"), 3),
    }
    assert {"full"} == {test.settings["sync"] for test in found.tests if test.test.endswith("sync")}
    assert not [
        test for test in found.tests if test.test.startswith(("readr", "readseq")) and "sync" in test.settings
    ]


def test_a_document_of_the_first_version_is_read_as_one_of_today(golden: Path) -> None:
    assert document(golden, "writemap-written") == document(golden, "of-version-1")
    broken = (golden / "of-version-1.json").read_text().replace('"writemap": true', '"writemap_": true')
    with pytest.raises(OutputNotUnderstood, match="version 1"):
        parse_document(broken)


def test_which_tests_are_timed_and_how_often(golden: Path) -> None:
    timed = {test.test: test.latency for test in document(golden, "every-test").tests}
    assert {"readseq", "readreverse", "readseq100K"} == {name for name, found in timed.items() if not found}
    every = {(name, found.of, found.every, found.count) for name, found in timed.items() if found}
    assert {
        ("fillrandsync", "transaction", 1, 100),
        ("fillseqbatch", "transaction", 1, 3),
        ("overwrite", "transaction", 1, 3000),
        ("readrandom", "read", 16, math.ceil(3000 / 16)),
    } <= every


def test_threads_and_writer_are_told_apart(golden: Path) -> None:
    (test,) = (t for t in document(golden, "every-test").tests if t.test == "readwhilewriting")
    assert test.threads is not None
    assert test.writer is not None
    assert [3000, 3000] == [side.operations for side in test.threads]
    assert test.writer.operations > 0
    assert test.writer.found is None


def test_what_was_flushed_prepared_and_stored(golden: Path) -> None:
    (test,) = document(golden, "writemap-written").tests
    assert (4194304, True) == (test.data_size_bytes, (test.data_allocated_bytes or 0) >= 4194304)
    assert (test.prepare_ns or 0) > 0
    assert test.flush_ns is None
    assert all(
        (found.flush_ns is None) != ("sync" in found.settings)
        for found in document(golden, "every-test").tests
    )
    assert (None, None) == tuple(
        getattr(document(golden, "null-engine").tests[0], name)
        for name in ("data_size_bytes", "data_allocated_bytes")
    )


def test_rates_follow_from_counts_and_times(golden: Path) -> None:
    test = document(golden, "every-test").tests[1]
    seconds = test.elapsed_ns / 1e9
    assert 3000 * 116 == test.bytes
    assert pytest.approx(3000 / seconds) == test.operations_per_s
    assert pytest.approx(seconds * 1e6 / 3000) == test.us_per_operation
    assert pytest.approx(3000 * 116 / 2**20 / seconds) == test.mib_per_s
    assert pytest.approx((test.cpu_user_us + test.cpu_system_us) / 3000) == test.cpu_us_per_operation


@pytest.mark.parametrize(
    ("name", "text", "where"),
    [
        ("map-full", "MDB_MAP_FULL: Environment mapsize limit reached", (-30792, "fillseqbatch", "put")),
        ("disk-full", "No space left on device", (28, "fillseq", "commit")),
        ("disk-full-short-write", "Input/output error", (5, "fillseqbatch", "commit")),
        ("disk-full-writemap", "No space left on device: a", (28, "fillseqbatch", "write through the map")),
        ("value-too-large", "MDB_BAD_VALSIZE: Unsupported size", (-30781, "fillseq", "put")),
    ],
)
def test_failures_keep_the_librarys_own_text(
    golden: Path, name: str, text: str, where: tuple[int, str, str]
) -> None:
    failure = document(golden, name).failure
    assert failure is not None
    assert where == (failure.code, failure.test, failure.step)
    assert failure.error.startswith(text)
    assert ("disk-full" in name) == (failure.free_bytes == 0)


def test_an_interrupted_test_is_there_and_not_complete(golden: Path) -> None:
    found = document(golden, "interrupted")
    assert ("SIGTERM", None) == (found.interrupted, found.failure)
    assert [("fillrandsync", False)] == [(test.test, test.complete) for test in found.tests]


def test_progress_counts_up_until_the_end(golden: Path) -> None:
    lines = (golden / "progress.txt").read_bytes().splitlines()
    told = [found.operations for line in lines if (found := progress_of(line, 0.0)) is not None]
    operations = [each for each in told if each is not None]
    assert 3 == len(operations) == len(told)
    assert sorted(operations) == operations
    assert operations[-1] <= document(golden, "interrupted").tests[0].operations


@pytest.mark.parametrize("line", [b"", b"{}", b"3", b'{"operations": null}', b"mdb_env_open failed"])
def test_other_lines_are_no_progress(line: bytes) -> None:
    assert progress_of(line, 0.0) is None


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("format_version",), 3, "format_version"),
        (("extra",), 1, "extra"),
        (("tests", 0, "operations"), ..., "operations"),
        (("tests", 0, "operations"), "100", "operations"),
        (("tests", 0, "operations"), -1, "operations"),
        (("tests", 0, "operations"), True, "operations"),
        (("tests", 0, "operations"), 99, "100 latencies of 99"),
        (("tests", 0, "complete"), False, "cut off, without a reason"),
        (("tests", 14), ..., "14 of 15 tests"),
        (("tests", 3), ..., "are not the first"),
        (("tests", 7, "found"), 3001, "found 3001 in 3000"),
        (("tests", 10, "threads"), None, "belong together"),
        (("tests", 10, "threads", 0), ..., "do not add up"),
        (("tests", 0, "latency", "count"), 101, "do not add up to the count of 101"),
        (("tests", 0, "latency", "buckets", 0, 0), 10**6, "do not ascend"),
        (("tests", 0, "latency", "buckets", 0, 0), 0, "does not lie in bucket 0"),
        (("tests", 0, "latency", "buckets", 0, 1), 0, "greater than or equal to 1"),
        (("tests", 0, "latency", "min_ns"), None, "is missing"),
        (("tests", 0, "latency", "sum_ns"), 1, "between the least and the greatest"),
        (("options", "sync"), "sometimes", "sync"),
    ],
)
def test_a_damaged_document_is_refused_with_its_place(
    golden: Path, path: tuple[str | int, ...], value: Any, said: str
) -> None:
    with pytest.raises(OutputNotUnderstood, match=said):
        parse_document(damaged(golden, path, value))


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_a_document_that_was_cut_anywhere_is_refused(data: st.DataObject) -> None:
    text = (Path(__file__).parents[2] / "golden/microbenchmark/null-engine.json").read_text().rstrip()
    cut = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(OutputNotUnderstood):
        parse_document(text[:cut])


def bucket_of(value: int) -> int:
    """The driver's own rule, written a second time."""
    if value < 2 * SUB_BUCKETS:
        return value
    octave = value.bit_length() - 9
    return 2 * SUB_BUCKETS + octave * SUB_BUCKETS + (value >> (octave + 1)) - SUB_BUCKETS


def latency_of(values: list[int]) -> BenchLatency:
    counts = Counter(map(bucket_of, values))
    return BenchLatency(
        of="read",
        every=16,
        count=len(values),
        sum_ns=sum(values),
        min_ns=min(values, default=None),
        max_ns=max(values, default=None),
        sub_buckets=SUB_BUCKETS,
        buckets=tuple(sorted(counts.items())),
    )


@given(st.integers(0, 2**48 - 1))
@settings(deadline=None)
def test_a_bucket_holds_its_value_and_is_narrow(value: int) -> None:
    lower, after = bucket_bounds_ns(bucket_of(value), SUB_BUCKETS)
    assert lower <= value < after
    assert after - lower <= max(1, lower / SUB_BUCKETS)
    assert lower == 0 or bucket_of(lower - 1) == bucket_of(value) - 1
    assert bucket_of(after) == bucket_of(value) + 1


@given(
    st.lists(st.integers(0, 2**45) | st.integers(0, 600), min_size=1, max_size=60),
    st.floats(0.001, 1) | st.sampled_from([0.5, 0.95, 0.99, 1.0]),
)
@settings(deadline=None)
def test_a_percentile_is_the_value_of_its_rank_but_for_the_buckets_width(
    values: list[int], quantile: float
) -> None:
    latency = latency_of(values)
    exact = sorted(values)[max(1, math.ceil(quantile * len(values) - 1e-9)) - 1]
    found = latency.percentile_ns(quantile)
    assert found is not None
    assert abs(found - exact) <= exact / (2 * SUB_BUCKETS)
    assert min(values) <= found <= max(values)
    assert latency.mean_ns == sum(values) / len(values)


def test_nothing_timed_gives_nothing() -> None:
    latency = latency_of([])
    assert (None, None) == (latency.mean_ns, latency.percentile_ns(0.5))


@pytest.mark.parametrize("quantile", [0.0, -0.5, 1.5, math.nan])
def test_a_quantile_outside_its_range_is_refused(quantile: float) -> None:
    with pytest.raises(ValueError, match="quantile"):
        latency_of([1]).percentile_ns(quantile)
