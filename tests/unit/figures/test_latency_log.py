from __future__ import annotations

import math
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bedplate.errors import OutputNotUnderstood
from bedplate.figures.courses import (
    LatencyKind,
    LatencyLog,
    bucket_bounds_us,
    course,
    percentiles_us,
    read_latency_log,
    share_below,
    summary,
)
from bedplate.figures.samples import MeasuredWindow
from bedplate.figures.transactions import script_figures

START = 1_762_132_851
OUTCOMES = ("skipped", "failed", "serialization", "deadlock")


def read_once(reader: Path, folder: Path, *texts: str | bytes, words: tuple[str, ...] = ()) -> LatencyLog:
    logs = []
    for number, text in enumerate(texts):
        log = folder / f"log.{number}"
        log.write_bytes(text.encode() if isinstance(text, str) else text)
        logs.append(str(log))
    output = folder / "record"
    completed = subprocess.run(
        [str(reader), "--once", "--output", str(output), *words, *logs],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (completed.returncode, completed.stdout) == (0, ""), completed.stderr
    return read_latency_log(output)


def transaction(second: int, time: object, *, script: int = 0, more: str = "") -> str:
    return f"3 17 {time} {script} {second} 42{more}\n"


lines = st.lists(
    st.tuples(
        st.integers(0, 5).map(lambda after: START + after),
        st.one_of(st.integers(0, 5000), st.integers(0, 2**40 - 1), st.sampled_from(OUTCOMES)),
        st.integers(0, 3) | st.just(127),
        st.floats(0, 1),
        st.integers(0, 4),
        st.integers(0, 10**12),
    ),
    max_size=60,
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=lines,
    lag=st.booleans(),
    retries=st.booleans(),
    files=st.integers(1, 3),
    chunk_bytes=st.integers(1, 400),
    threads=st.integers(1, 3),
)
def test_counts_what_a_plain_reference_counts(
    *,
    log_reader: Path,
    rows: list[tuple[int, int | str, int, float, int, int]],
    lag: bool,
    retries: bool,
    files: int,
    chunk_bytes: int,
    threads: int,
) -> None:
    texts = [""] * files
    expected: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    outcomes: dict[str, int] = defaultdict(int)
    for number, (second, time, script, share, retry, client) in enumerate(rows):
        lag_us = int(share * time) if isinstance(time, int) else 0
        more = (f" {lag_us}" if lag else "") + (f" {retry}" if retries else "")
        texts[number % files] += f"{client} {number} {time} {script} {second} {number}{more}\n"
        if retries and time != "skipped":
            outcomes["retried"] += retry > 0
            outcomes["retries"] += retry
        if isinstance(time, str):
            outcomes[time] += 1
            continue
        expected[second, script, LatencyKind.LATENCY].append(time)
        if lag:
            expected[second, script, LatencyKind.LATENCY_WITHOUT_LAG].append(time - lag_us)
            expected[second, script, LatencyKind.SCHEDULE_LAG].append(lag_us)
    words = (("--schedule-lag",) if lag else ()) + (("--retries",) if retries else ())
    words += ("--chunk-bytes", str(chunk_bytes), "--threads", str(threads))
    with tempfile.TemporaryDirectory() as folder:
        log = read_once(log_reader, Path(folder), *texts, words=words)
    assert log.trailer is not None
    assert (len(rows), 0, 0) == (
        log.trailer.lines,
        log.trailer.malformed_lines,
        log.trailer.truncated_lines,
    )
    verify_counts(log, expected)
    names = {"serialization": "serialization_failures", "deadlock": "deadlock_failures"}
    for name in (*OUTCOMES, "retried", "retries"):
        assert outcomes[name] == log.seconds[names.get(name, name)].sum(), name


def verify_counts(log: LatencyLog, expected: dict[tuple[int, int, int], list[int]]) -> None:
    rows = {(row["second"], row["script"], row["series"]): row for row in log.seconds.to_dicts()}
    assert {key for key, row in rows.items() if row["transactions"]} == set(expected)
    buckets: dict[tuple[int, int, int], list[tuple[int, int]]] = defaultdict(list)
    for row in log.histogram.to_dicts():
        buckets[row["second"], row["script"], row["series"]].append((row["bucket"], row["count"]))
    for key, values in expected.items():
        row = rows[key]
        squares = row["us2_low"] + (row["us2_middle"] << 32) + (row["us2_high"] << 64)
        assert (len(values), sum(values), sum(value * value for value in values)) == (
            row["transactions"],
            row["us_sum"],
            squares,
        )
        assert (min(values), max(values)) == (row["us_min"], row["us_max"])
        lower, after = bucket_bounds_us(np.array([bucket for bucket, _ in buckets[key]]))
        held = [sum(low <= value < high for value in values) for low, high in zip(lower, after, strict=True)]
        assert held == [count for _, count in buckets[key]]
        assert len(values) == sum(held)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(st.integers(0, 2**40 - 1) | st.integers(0, 20_000), min_size=1, max_size=200),
    quantile=st.floats(0.001, 1),
)
def test_percentiles_and_moments_are_those_of_the_sorted_latencies(
    log_reader: Path, values: list[int], quantile: float
) -> None:
    text = "".join(transaction(START + number % 3, value) for number, value in enumerate(values))
    with tempfile.TemporaryDirectory() as folder:
        log = read_once(log_reader, Path(folder), text)
    exact = sorted(values)[max(1, math.ceil(round(quantile * len(values), 9))) - 1]
    found = percentiles_us(log, [quantile])
    assert found is not None
    assert found[0] == pytest.approx(exact, rel=0.0005, abs=0)
    whole = summary(log)
    assert whole is not None
    mean = math.fsum(values) / len(values)
    assert (min(values), max(values)) == (whole.latency_us_min, whole.latency_us_max)
    assert whole.latency_us_mean == pytest.approx(mean, rel=1e-12)
    assert whole.latency_us_stddev == pytest.approx(float(np.std(values)), rel=1e-6, abs=1e-3)
    for threshold in (1000, 9000):
        assert sum(value < threshold for value in values) / len(values) == share_below(log, threshold)


def test_the_course_has_a_row_for_a_second_without_transactions(log_reader: Path, tmp_path: Path) -> None:
    text = transaction(START, 100) + transaction(START, 300, script=1) + transaction(START + 2, "skipped")
    rows = course(read_once(log_reader, tmp_path, text + transaction(START + 3, 7))).to_dicts()
    assert [row["second"] for row in rows] == [START, START + 1, START + 2, START + 3]
    assert [row["transactions"] for row in rows] == [2, 0, 0, 1]
    assert [row["skipped"] for row in rows] == [0, 0, 1, 0]
    assert [row["latency_us_mean"] for row in rows] == [200.0, None, None, 7.0]
    assert [row["latency_us_p50"] for row in rows] == [100.0, None, None, 7.0]
    assert [row["latency_us_max"] for row in rows] == [300, None, None, 7]


def test_a_selection_has_only_its_seconds_and_script(log_reader: Path, tmp_path: Path) -> None:
    text = "".join(transaction(START + after, after, script=after % 2) for after in range(10))
    log = read_once(log_reader, tmp_path, text)
    chosen = summary(log.select(first_second=START + 2, last_second=START + 7, index=1))
    assert chosen is not None
    assert (chosen.transactions, chosen.latency_us_min, chosen.latency_us_max) == (3, 3, 7)
    assert (
        course(log.select(index=5), first_second=START, last_second=START + 1)["transactions"].to_list()
        == [0] * 2
    )


def test_an_empty_log_has_no_figures_rather_than_zeros(log_reader: Path, tmp_path: Path) -> None:
    log = read_once(log_reader, tmp_path, "")
    assert log.complete
    assert summary(log) is None
    assert percentiles_us(log, (0.5,)) is None
    assert share_below(log, 1000) is None
    assert course(log).is_empty()


def test_a_threshold_inside_a_bucket_is_refused_with_the_bounds_beside_it(
    log_reader: Path, tmp_path: Path
) -> None:
    log = read_once(log_reader, tmp_path, transaction(START, 100))
    with pytest.raises(ValueError, match=r"9001 µs is not a bound .* \[9000, 9008\]"):
        share_below(log, 9001)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b" ",
        b"3 17 100 0 1762132851",
        b"3 17 100 0 1762132851 42 7",
        b"3 17 100 0 1762132851 42 ",
        b"3  17 100 0 1762132851 42",
        b"3 17 100 0 1762132851 42\r",
        b"3 17 -1 0 1762132851 42",
        b"3 17 1.5 0 1762132851 42",
        b"3 17 skipped_ 0 1762132851 42",
        b"3 17 nonsense 0 1762132851 42",
        b"3 17 1099511627776 0 1762132851 42",
        b"3 17 100 128 1762132851 42",
        b"3 17 100 0 1762132851 1000000",
        b"3 17 100 0 99999999999999999999999 42",
        b"99999999999999999999999 17 100 0 1762132851 42",
        b"3 17 100 0 \0\0\0\0\0\0\0\0\0\0\0 42",
        b"\0" * 300,
        b"3 17 100 0 1762132851x42",
        b"x" * 600_000,
    ],
)
def test_a_malformed_line_is_counted_and_quoted_and_its_neighbours_stand(
    log_reader: Path, tmp_path: Path, line: bytes
) -> None:
    good = transaction(START, 100).encode()
    log = read_once(log_reader, tmp_path, good + line + b"\n" + good)
    assert log.trailer is not None
    assert (log.trailer.lines, log.trailer.transactions, log.trailer.malformed_lines) == (3, 2, 1)
    quote = log.trailer.first_malformed
    assert quote is not None
    assert f"byte {len(good)}: " in quote
    printable = "".join(chr(byte) if 32 <= byte <= 126 else "?" for byte in line)
    assert quote.partition(": ")[2] in printable
    assert printable.startswith(quote.partition(": ")[2][:100])


def test_the_first_malformed_line_is_quoted_whatever_thread_saw_it(log_reader: Path, tmp_path: Path) -> None:
    text = transaction(START, 5) + "first\n" + transaction(START, 5) * 500 + "second\n"
    log = read_once(log_reader, tmp_path, text, words=("--chunk-bytes", "64", "--threads", "3"))
    assert log.trailer is not None
    assert log.trailer.malformed_lines == 2
    assert (log.trailer.first_malformed or "").endswith(": first")


def test_a_last_line_without_its_newline_is_counted_as_cut_and_not_read(
    log_reader: Path, tmp_path: Path
) -> None:
    log = read_once(log_reader, tmp_path, transaction(START, 5) + transaction(START, 100)[:-1])
    assert log.trailer is not None
    assert (
        log.trailer.lines,
        log.trailer.transactions,
        log.trailer.malformed_lines,
        log.trailer.truncated_lines,
    ) == (1, 1, 0, 1)


def test_a_lag_beyond_the_latency_is_malformed(log_reader: Path, tmp_path: Path) -> None:
    text = transaction(START, 10, more=" 10") + transaction(START, 10, more=" 11")
    log = read_once(log_reader, tmp_path, text, words=("--schedule-lag",))
    assert log.trailer is not None
    assert (log.trailer.transactions, log.trailer.malformed_lines) == (1, 1)
    without = summary(log, series=LatencyKind.LATENCY_WITHOUT_LAG)
    assert without is not None
    assert without.latency_us_max == 0


def test_seconds_that_share_a_place_in_the_ring_do_not_mix(log_reader: Path, tmp_path: Path) -> None:
    text = "".join(transaction(START + 4096 * (number % 3), number) for number in range(30))
    log = read_once(log_reader, tmp_path, text)
    assert log.seconds["transactions"].to_list() == [10, 10, 10]
    assert sum(range(0, 30, 3)) == log.seconds["us_sum"][0]


def test_a_record_that_lost_its_end_is_incomplete_at_every_length(log_reader: Path, tmp_path: Path) -> None:
    text = "".join(transaction(START + after, 100 + after) for after in range(4))
    whole = read_once(log_reader, tmp_path, text)
    assert whole.complete
    data = (tmp_path / "record").read_bytes()
    cut = tmp_path / "cut"
    transactions = set()
    for length in range(32, len(data)):
        cut.write_bytes(data[:length])
        log = read_latency_log(cut)
        assert not log.complete
        transactions.add(int(log.seconds["transactions"].sum()))
    assert {0, 1, 2, 3, 4} == transactions


@pytest.mark.parametrize(("at", "value"), [(0, 0), (8, 99), (17, 0), (32, 0), (40, 255), (-1, 0)])
def test_a_damaged_record_is_refused_or_incomplete(
    log_reader: Path, tmp_path: Path, at: int, value: int
) -> None:
    read_once(log_reader, tmp_path, transaction(START, 100))
    path = tmp_path / "record"
    data = bytearray(path.read_bytes())
    data[at] = value
    path.write_bytes(data)
    if at == 40:  # another second is not damage that can be seen
        assert read_latency_log(path).seconds["second"][0] == START // 256 * 256 + 255
        return
    with pytest.raises(OutputNotUnderstood):
        read_latency_log(path)


def test_totals_that_disagree_are_refused(log_reader: Path, tmp_path: Path) -> None:
    read_once(log_reader, tmp_path, transaction(START, 100) * 3)
    path = tmp_path / "record"
    data = path.read_bytes()
    path.write_bytes(data.replace((3).to_bytes(8, "little") + (300).to_bytes(8, "little"), b"\2" + bytes(15)))
    with pytest.raises(OutputNotUnderstood, match="transactions"):
        read_latency_log(path)


def test_a_full_disk_ends_the_reader_with_a_clear_message(log_reader: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(transaction(START, 100))
    completed = subprocess.run(
        [str(log_reader), "--once", "--output", "/dev/full", str(log)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert completed.returncode == 1
    assert "cannot write /dev/full: No space left on device; free space" in completed.stderr


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--output", "x"),
        ("--once", "--output", "x"),
        ("--output", "x", "--prefix", "p", "log"),
        ("--what",),
    ],
)
def test_a_wrong_call_exits_2_and_writes_nothing(
    log_reader: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    completed = subprocess.run(
        [str(log_reader), *words], check=False, capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert completed.returncode == 2
    assert "--output FILE" in completed.stderr
    assert list(tmp_path.iterdir()) == []


def test_each_of_several_scripts_has_figures_of_its_own(log_reader: Path, tmp_path: Path) -> None:
    text = "".join(
        transaction(START + second, 1000 + 3000 * (number % 4 == 0), script=int(number % 4 == 0))
        for second in range(10)
        for number in range(8)
    ) + transaction(START, "failed", script=1)
    log = read_once(log_reader, tmp_path, text)
    window = MeasuredWindow(START, START + 10)
    rows = {
        (row.item, row.metric): row.value
        for row in script_figures(log, window, ("reads", "writes", "never"), "scripts")
    }
    assert (6.0, 2.0, 0.0) == tuple(rows[name, "tps"] for name in ("reads", "writes", "never"))
    assert (1.0, 4.0, None) == tuple(rows[name, "latency_ms_p99"] for name in ("reads", "writes", "never"))
    assert (0, 1) == (rows["reads", "transactions_failed"], rows["writes", "transactions_failed"])
