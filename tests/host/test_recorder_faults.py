"""The recorder's disk as it fails by order: each effect, its count and its place, and what a loop device makes of it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.tools.recorder_lab import SIZES, RecorderLab, recorder_driver, recorder_lab, replayed

from bedplate.cuts.faults import (
    CLEAR_LINE,
    RANGES_MOST,
    ByteRange,
    FaultEffect,
    FaultOperation,
    FaultOrder,
    moved_line,
)
from bedplate.cuts.log import FLUSH, JOURNAL, read_log
from bedplate.host.recorder import Recorder
from bedplate.units import MIB

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

WRITE, READ, FLUSH_OF = FaultOperation.WRITE, FaultOperation.READ, FaultOperation.FLUSH
BLOCK = 4096


@pytest.fixture(scope="module")
def driver() -> Path:
    return recorder_driver()


@pytest.fixture
def place(driver: Path) -> Iterator[RecorderLab]:
    with recorder_lab(driver) as found:
        yield found


@contextmanager
def opened(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_RDWR)
    try:
        yield file
    finally:
        os.close(file)


def order(recorder: Recorder, fault: FaultOrder) -> None:
    recorder.order_fault(fault.line())


def error_of_write(file: int, at: int, letter: bytes = b"x") -> int:
    try:
        assert BLOCK == os.pwrite(file, letter * BLOCK, at)
    except OSError as error:
        return error.errno or -1
    return 0


def error_of_read(file: int, at: int) -> int:
    try:
        os.pread(file, 512, at)
    except OSError as error:
        return error.errno or -1
    return 0


@pytest.mark.parametrize(("effect", "answer"), [("eio", errno.EIO), ("enospc", errno.ENOSPC)])
def test_a_write_fails_once_at_its_place_and_leaves_no_trace(
    place: RecorderLab, effect: str, answer: int
) -> None:
    with place.start() as recorder, opened(recorder.disk) as file:
        order(recorder, FaultOrder(WRITE, FaultEffect(effect), hits=1, ranges=(ByteRange(8 * BLOCK, BLOCK),)))
        found = [error_of_write(file, at * BLOCK) for at in (7, 9, 8, 8)]
        assert [0, 0, answer, 0] == found
        assert (1, ByteRange(8 * BLOCK, BLOCK)) == (recorder.status().fault_hits, recorder.status().first_hit)
    with read_log(recorder.log) as log:
        assert [at * BLOCK for at in (7, 9, 8)] == [log.entry(index).offset for index in range(len(log))]


def test_a_write_that_only_touches_the_place_is_hit(place: RecorderLab) -> None:
    with place.start() as recorder, opened(recorder.disk) as file:
        order(recorder, FaultOrder(WRITE, ranges=(ByteRange(BLOCK - 512, 512), ByteRange(2 * BLOCK, 512))))
        assert [errno.EIO, 0, errno.EIO] == [error_of_write(file, at * BLOCK) for at in range(3)]


def test_so_many_pass_first_and_from_then_on_all_fail_until_it_is_cleared(place: RecorderLab) -> None:
    with place.start() as recorder, opened(recorder.disk) as file:
        assert recorder.status().first_hit is None
        order(recorder, FaultOrder(WRITE, skip=2))
        assert [0, 0, errno.EIO, errno.EIO] == [error_of_write(file, 0) for _ in range(4)]
        recorder.order_fault(CLEAR_LINE)
        assert 0 == error_of_write(file, 0)
        assert 2 == recorder.status().fault_hits


def test_a_lost_write_is_answered_as_done_and_is_neither_on_the_disk_nor_in_the_log(
    place: RecorderLab,
) -> None:
    with place.start() as recorder, opened(recorder.disk) as file:
        assert 0 == error_of_write(file, 0, b"a")
        order(recorder, FaultOrder(WRITE, FaultEffect.LOST, hits=1))
        assert 0 == error_of_write(file, 0, b"b")
        assert b"a" == os.pread(file, 1, 0)
    with read_log(recorder.log) as log:
        assert 1 == len(log)


@pytest.mark.parametrize(
    ("at", "there"),
    [(0, MIB), (SIZES.disk_bytes - BLOCK, SIZES.disk_bytes - BLOCK - MIB)],
    ids=["ahead", "behind, at the end"],
)
def test_a_misdirected_write_is_a_mebibyte_off_and_the_log_says_where(
    place: RecorderLab, at: int, there: int
) -> None:
    with place.start() as recorder, opened(recorder.disk) as file:
        order(recorder, FaultOrder(WRITE, FaultEffect.MISDIRECTED, hits=1))
        assert 0 == error_of_write(file, at)
        assert (b"\0", b"x") == (os.pread(file, 1, at), os.pread(file, 1, there))
        found = recorder.disk.read_bytes()
    with read_log(recorder.log) as log:
        assert replayed(log, 0, SIZES.disk_bytes) == found


def test_reads_and_flushes_fail_alone(place: RecorderLab) -> None:
    with place.start() as recorder, opened(recorder.disk) as file:
        order(recorder, FaultOrder(READ, hits=1, ranges=(ByteRange(0, 512),)))
        assert 0 == error_of_write(file, 0)
        os.fsync(file)
        with pytest.raises(OSError, match="Input/output"):
            os.pread(file, 512, 0)
        assert b"x" == os.pread(file, 1, 0)
        # A flush has no place.
        order(recorder, FaultOrder(FLUSH_OF, hits=1, ranges=(ByteRange(32 * MIB, 512),)))
        with pytest.raises(OSError, match="Input/output"):
            os.fsync(file)
        os.fsync(file)
        assert 2 == recorder.status().fault_hits
        # It stays where the first hit was.
        first = recorder.status().first_hit
        assert first is not None
        assert 0 == first.start
    with read_log(recorder.log) as log:
        assert 2 == sum(bool(flag & FLUSH) for flag in log.flags)


def test_what_is_unreadable_can_be_read_once_it_was_written(place: RecorderLab) -> None:
    with place.start() as recorder, opened(recorder.disk) as file:
        ranges = (ByteRange(BLOCK, BLOCK), ByteRange(4 * BLOCK, 2 * BLOCK))
        order(recorder, FaultOrder(READ, FaultEffect.UNREADABLE, ranges=ranges))

        def unreadable() -> list[int]:
            return [at for at in range(8) if error_of_read(file, at * BLOCK) == errno.EIO]

        assert [1, 4, 5] == unreadable() == unreadable()
        # Of a block that is longer than what was written the rest stays as it is.
        os.pwrite(file, b"x" * BLOCK, 4 * BLOCK)
        assert [1, 5] == unreadable()
        os.pwrite(file, b"x" * 8 * BLOCK, 0)
        assert [] == unreadable()
        assert 8 == recorder.status().fault_hits
        assert b"x" * BLOCK == os.pread(file, BLOCK, 5 * BLOCK)


def test_an_order_is_to_the_disk_or_to_the_journal(place: RecorderLab) -> None:
    with place.start() as recorder:
        assert recorder.journal is not None
        with opened(recorder.journal) as journal, opened(recorder.disk) as disk:
            order(recorder, FaultOrder(WRITE))
            assert [0, errno.EIO] == [error_of_write(file, 0) for file in (journal, disk)]
            order(recorder, FaultOrder(WRITE, ranges=(ByteRange(BLOCK, 1),), on_journal=True))
            assert [0, 0] == [error_of_write(file, 0) for file in (journal, disk)]
            assert [errno.EIO, 0] == [error_of_write(file, BLOCK) for file in (journal, disk)]
            recorder.order_fault(moved_line([ByteRange(0, 1)]))
            assert [errno.EIO, 0] == [error_of_write(file, 0) for file in (journal, disk)]
            order(recorder, FaultOrder(FLUSH_OF, on_journal=True))
            os.fsync(disk)
            with pytest.raises(OSError, match="Input/output error"):
                os.fsync(journal)
            recorder.order_fault(CLEAR_LINE)
            assert [0, 0] == [error_of_write(file, 0) for file in (journal, disk)]
        assert 4 == recorder.status().fault_hits
    with read_log(recorder.log) as log:
        assert JOURNAL == log.entry(0).device


def test_an_order_that_is_moved_keeps_its_count(place: RecorderLab) -> None:
    with place.start() as recorder, opened(recorder.disk) as file:
        order(recorder, FaultOrder(WRITE, hits=2, ranges=(ByteRange(0, 512),)))
        assert errno.EIO == error_of_write(file, 0)
        recorder.order_fault(moved_line([ByteRange(BLOCK, 512)]))
        assert [0, errno.EIO, 0] == [error_of_write(file, at * BLOCK) for at in (0, 1, 1)]


def test_the_most_ranges_go_in_one_order(place: RecorderLab) -> None:
    ranges = tuple(ByteRange((1 << 45) + number, 1 << 44) for number in range(RANGES_MOST - 1))
    with place.start() as recorder, opened(recorder.disk) as file:
        order(recorder, FaultOrder(WRITE, ranges=(*ranges, ByteRange(BLOCK, 1))))
        assert [0, errno.EIO] == [error_of_write(file, at * BLOCK) for at in range(2)]


@pytest.mark.parametrize(
    "words",
    [
        *("", "write", "write eio", "write eio 1", "erase eio 1 0", "write torn 1 0", "write eio -1 0"),
        *("write eio 1 0 5", "write eio 1 0 5+0", "write eio 1 0 5+", "write eio 1 0 18446744073709551615+1"),
        *(
            "flush lost 1 0",
            "write unreadable 0 0 1+1",
            "read unreadable 0 0",
            "read enospc 1 0",
            "clear all",
            "ranges",
            "write eio 1 0\nclear",
            "write eio 1x 0",
            "journal",
            "journal clear",
            "journal journal write eio 1 0",
        ),
    ],
)
def test_what_is_no_order_is_refused_and_the_one_before_stays(place: RecorderLab, words: str) -> None:
    with place.start() as recorder, opened(recorder.disk) as file:
        order(recorder, FaultOrder(WRITE))
        if words:
            with pytest.raises(OSError, match="Invalid argument"):
                recorder.order_fault(words)
        assert errno.EIO == error_of_write(file, 0)
