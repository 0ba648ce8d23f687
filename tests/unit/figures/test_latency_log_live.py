from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from bedplate.figures.courses import LatencyLog, read_latency_log, summary

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAST = 1_762_132_851


def line(second: int, time_us: int) -> bytes:
    return f"3 17 {time_us} 0 {second} 42\n".encode()


def append(path: Path, data: bytes) -> None:
    with path.open("ab", buffering=0) as file:
        file.write(data)


@contextmanager
def following(reader: Path, folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [str(reader), "--prefix", str(folder / "P"), "--output", str(folder / "record"), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def finish(process: subprocess.Popen[str], folder: Path) -> LatencyLog:
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    return read_latency_log(folder / "record")


def end_of_input(process: subprocess.Popen[str]) -> None:
    """Unlike a signal, this cannot come before the reader is ready for it."""
    assert process.stdin is not None
    process.stdin.close()
    process.stdin = None


def next_line(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    return [int(word) for word in process.stdout.readline().split()]


def test_follows_several_growing_files_with_lines_split_across_writes(
    log_reader: Path, tmp_path: Path
) -> None:
    chance = random.Random(7)
    expected: Counter[int] = Counter()
    shown: Counter[int] = Counter()
    with following(log_reader, tmp_path) as process:
        for number in range(3):
            rows = [(PAST + chance.randrange(9), chance.randrange(99_999)) for _ in range(4000)]
            expected.update(second for second, _ in rows)
            data = b"".join(line(*row) for row in rows)
            path = tmp_path / f"P.4711{f'.{number}' if number else ''}"
            while data:
                size = chance.randrange(1, 9000)
                append(path, data[:size])
                data = data[size:]
            second, transactions, _, _ = next_line(process)  # it was read while it grew
            shown[second] += transactions
        (tmp_path / "P.4711.x").write_bytes(line(PAST, 1))
        (tmp_path / "P.4711.1.2").write_bytes(line(PAST, 1))
        (tmp_path / "Q.4711").write_bytes(line(PAST, 1))
        assert process.stdout is not None
        end_of_input(process)
        for text in process.stdout:
            second, transactions, _, _ = map(int, text.split())
            shown[second] += transactions
        log = finish(process, tmp_path)
    assert expected == shown
    assert dict(expected) == dict(log.seconds.select("second", "transactions").iter_rows())
    assert log.trailer is not None
    assert (
        log.trailer.files,
        log.trailer.lines,
        log.trailer.malformed_lines,
        log.trailer.truncated_lines,
    ) == (3, 12_000, 0, 0)


def test_a_second_is_shown_when_every_file_is_past_it(log_reader: Path, tmp_path: Path) -> None:
    later = int(time.time()) + 1000  # so that patience never ends
    one, two = tmp_path / "P.1", tmp_path / "P.1.1"
    one.write_bytes(line(later, 10) + line(later + 1, 99))
    two.write_bytes(line(later, 30))
    with following(log_reader, tmp_path) as process:
        append(two, line(later, 50) + line(later + 2, 99))
        assert [later, 3, 90, 50] == next_line(process)
        process.terminate()
        log = finish(process, tmp_path)
    assert log.seconds["transactions"].to_list() == [3, 1, 1]


def test_a_late_line_adds_to_a_second_that_was_shown(log_reader: Path, tmp_path: Path) -> None:
    with following(log_reader, tmp_path) as process:
        append(tmp_path / "P.1", line(PAST, 10))
        assert next_line(process) == [PAST, 1, 10, 10]
        append(tmp_path / "P.1", line(PAST, 5) + line(PAST, 7))
        assert next_line(process) == [PAST, 2, 12, 7]
        process.send_signal(signal.SIGINT)
        log = finish(process, tmp_path)
    assert log.seconds.height == 1
    whole = summary(log)
    assert whole is not None
    assert (whole.transactions, whole.latency_us_min, whole.latency_us_max) == (3, 5, 10)


def test_a_byte_on_standard_input_ends_it_after_all_that_is_there(log_reader: Path, tmp_path: Path) -> None:
    (tmp_path / "P.1").write_bytes(line(PAST, 10) * 50_000 + line(PAST, 10)[:-1])
    with following(log_reader, tmp_path) as process:
        assert process.stdin is not None
        process.stdin.write("x")
        process.stdin.flush()
        log = finish(process, tmp_path)
    assert log.trailer is not None
    assert (log.trailer.lines, log.trailer.truncated_lines) == (50_000, 1)


def test_punch_gives_the_space_back_and_keeps_the_size(log_reader: Path, tmp_path: Path) -> None:
    path = tmp_path / "P.1"
    path.touch()
    with following(log_reader, tmp_path, "--punch") as process:
        for second in range(PAST, PAST + 3):
            append(path, line(second, 10) * 200_000)
            shown = 0
            while shown < 200_000:
                shown += next_line(process)[1]
        status = path.stat()
        process.terminate()
        log = finish(process, tmp_path)
    if status.st_blocks * 512 >= status.st_size:
        pytest.fail(f"{status.st_blocks * 512} of {status.st_size} bytes are still allocated")
    assert 3 * 200_000 * len(line(PAST, 10)) == status.st_size
    assert status.st_blocks * 512 < 2 * 1024 * 1024
    assert log.seconds["transactions"].to_list() == [200_000] * 3


def test_a_killed_reader_leaves_an_incomplete_record_of_what_was_closed(
    log_reader: Path, tmp_path: Path
) -> None:
    with following(log_reader, tmp_path) as process:
        append(tmp_path / "P.1", line(PAST, 10))
        next_line(process)
        append(tmp_path / "P.1", line(PAST + 1, 10))
        next_line(process)  # the first one was flushed before the second was read
        process.kill()
        process.wait(timeout=30)
    log = read_latency_log(tmp_path / "record")
    assert not log.complete
    assert log.seconds["second"][0] == PAST


def test_no_log_at_all_is_a_complete_and_empty_record(log_reader: Path, tmp_path: Path) -> None:
    with following(log_reader, tmp_path) as process:
        end_of_input(process)
        log = finish(process, tmp_path)
    assert log.trailer is not None
    assert (log.trailer.files, log.trailer.lines) == (0, 0)


def test_nobody_reading_the_live_lines_does_not_stop_it(log_reader: Path, tmp_path: Path) -> None:
    with following(log_reader, tmp_path) as process:
        assert process.stdout is not None
        process.stdout.close()
        append(tmp_path / "P.1", b"".join(line(PAST + after, 10) for after in range(3000)))
        end_of_input(process)
        status = process.wait(timeout=30)
    assert status == 0
    assert read_latency_log(tmp_path / "record").seconds.height == 3000


@pytest.mark.parametrize("words", [(), ("--punch",)])
def test_a_pipe_in_place_of_a_log_is_refused(
    log_reader: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    os.mkfifo(tmp_path / "P.1")
    with following(log_reader, tmp_path, *words) as process:
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "is not a regular file" in errors
