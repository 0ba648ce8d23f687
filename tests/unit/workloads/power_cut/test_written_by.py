"""Who asked for each write of a log, however the kernel split and joined what was asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.tools.written_log import FLUSH, MARK, Written, written_log

from bedplate.cuts.blame import WritingProcess
from bedplate.cuts.log import read_log
from bedplate.host.block_requests import BlockRequest, CallsNotCounted
from bedplate.host.process import ProcessTitle
from bedplate.workloads.power_cut.tearing import askers, note_writers

DISK, JOURNAL = 7 << 20 | 3, 7 << 20 | 4
ANN, BEN, KERNEL, GONE = 11, 12, 13, 14
TITLES = {
    ANN: ProcessTitle(ANN, "server: checkpointer", is_kernel=False),
    # A thread of another one.
    BEN: ProcessTitle(10, "server", is_kernel=False),
    KERNEL: ProcessTitle(KERNEL, "jbd2/loop0-8", is_kernel=True),
    GONE: None,
}


def wrote(sector: int, sectors: int, ms: int, device: int = 0) -> Written:
    return Written(device=device, sector=sector, data=b"w" * 512 * sectors, time_ns=ms * 10**6)


def asked(ms: float, thread: int, sector: int, sectors: int, device: int = DISK) -> BlockRequest:
    return BlockRequest(
        int(ms * 10**6), device, "WS", sector, sectors, is_done=False, thread=thread, name="x"
    )


def found(path: Path, entries: list[Written], requests: list[BlockRequest]) -> dict[int, tuple[int, ...]]:
    with read_log(written_log(path / "log", entries)) as log:
        return {entry: tuple(each.thread for each in who) for entry, who in askers(log, 0, requests)}


def test_a_write_is_of_whoever_asked_last_before_it(tmp_path: Path) -> None:
    entries = [wrote(8, 8, 2), wrote(8, 8, 4), wrote(8, 8, 6)]
    requests = [asked(1, ANN, 8, 8), asked(3, BEN, 8, 8), asked(5, ANN, 8, 8)]
    assert {0: (ANN,), 1: (BEN,), 2: (ANN,)} == found(tmp_path, entries, requests)


def test_requests_that_were_joined_have_all_their_askers_and_one_that_was_split_has_its_own(
    tmp_path: Path,
) -> None:
    entries = [wrote(8, 16, 3), wrote(32, 8, 6), wrote(40, 8, 7)]
    requests = [asked(1, ANN, 8, 8), asked(2, BEN, 16, 8), asked(5, BEN, 32, 16)]
    assert {0: (ANN, BEN), 1: (BEN,), 2: (BEN,)} == found(tmp_path, entries, requests)


def test_sectors_of_one_block_are_told_apart(tmp_path: Path) -> None:
    # As a journal of 512-byte sectors writes: the second was asked for before the first was written.
    entries = [wrote(8, 3, 3), wrote(11, 1, 4), wrote(9, 1, 5)]
    requests = [asked(1, ANN, 8, 3), asked(2, BEN, 11, 1)]
    # Who asked for sector 9 alone was not seen: the block is another's by now, and nobody is named by guess.
    assert {0: (ANN,), 1: (BEN,)} == found(tmp_path, entries, requests)


def test_a_write_that_nobody_was_seen_to_ask_for_is_nobodys(tmp_path: Path) -> None:
    entries = [wrote(8, 8, 1), wrote(8, 16, 4), Written(flags=FLUSH, time_ns=5 * 10**6)]
    requests = [
        asked(2, ANN, 8, 8),
        BlockRequest(3 * 10**6, DISK, "FWS", 0, 0, is_done=False, thread=BEN),
        BlockRequest(3 * 10**6, DISK, "WS", 16, 8, is_done=True),
    ]
    assert {} == found(tmp_path, entries, requests)


def trace(requests: list[BlockRequest]) -> Any:
    return cast("Any", SimpleNamespace(requests=tuple(requests), titles=TITLES, devices=(DISK, JOURNAL)))


def test_the_log_keeps_who_wrote_and_is_the_same_log_otherwise(tmp_path: Path) -> None:
    entries = [
        Written(flags=MARK, text=b"begin", time_ns=10**6),
        wrote(8, 16, 4),
        wrote(8, 8, 5, device=1),
        wrote(64, 8, 7),
        wrote(640, 8, 8),
        Written(flags=FLUSH, time_ns=9 * 10**6),
    ]
    requests = [
        asked(2, ANN, 8, 8),
        asked(3, BEN, 16, 8),
        asked(4, KERNEL, 8, 8, JOURNAL),
        asked(6, GONE, 64, 8),
    ]
    path = written_log(tmp_path / "log", entries)
    with read_log(path) as log:
        before = [(log.entry(index), bytes(log.data(index))) for index in range(1, len(log))]
        assert [None] * 5 == [log.writers(index) for index in range(1, len(log))]
    assert 3 == note_writers(path, trace(requests))
    with read_log(path) as log:
        assert before == [(log.entry(index), bytes(log.data(index))) for index in range(1, len(log))]
        assert [
            (
                WritingProcess(ANN, "server: checkpointer", is_kernel=False),
                WritingProcess(10, "server", is_kernel=False),
            ),
            (WritingProcess(KERNEL, "jbd2/loop0-8", is_kernel=True),),
            (WritingProcess(GONE, "x", is_kernel=None),),
            None,
            None,
        ] == [log.writers(index) for index in range(1, len(log))]


def test_names_are_cut_to_their_room_and_print_in_one_line(tmp_path: Path) -> None:
    path = written_log(tmp_path / "log", [wrote(8, 8, 4), wrote(16, 8, 5)])
    titled = trace([asked(2, ANN, 8, 8), asked(3, BEN, 16, 8)])
    titled.titles = {
        ANN: ProcessTitle(ANN, "s: " + "ä" * 90, is_kernel=False),
        BEN: ProcessTitle(BEN, "s: \x1b[2Ja\nb", is_kernel=False),
    }
    assert 2 == note_writers(path, titled)
    with read_log(path) as log:
        (long,), (strange,) = log.writers(0) or (), log.writers(1) or ()
    assert "s: " + "ä" * 28 == long.name
    assert "s: ?[2Ja?b" == strange.name


def test_as_many_askers_as_an_entry_has_room_for_are_kept(tmp_path: Path) -> None:
    path = written_log(tmp_path / "log", [wrote(8, 48, 40)])
    many = trace([asked(number, 100 + number, 8 + 8 * number, 8) for number in range(6)])
    assert 1 == note_writers(path, many)
    with read_log(path) as log:
        assert [100, 101, 102, 103] == [each.pid for each in log.writers(0) or ()]
        assert b"w" * 48 * 512 == bytes(log.data(0))


def test_a_trace_with_a_gap_notes_nothing(tmp_path: Path) -> None:
    class Gap:
        devices, titles = (DISK,), TITLES

        @property
        def requests(self) -> tuple[BlockRequest, ...]:
            raise CallsNotCounted("3 requests were lost")

    path = written_log(tmp_path / "log", [wrote(8, 8, 4)])
    before = path.read_bytes()
    with pytest.raises(CallsNotCounted):
        note_writers(path, cast("Any", Gap()))
    assert before == path.read_bytes()


def test_processes_that_a_container_does_not_see_are_told_apart_by_their_names(tmp_path: Path) -> None:
    requests = [replace(asked(1, 0, 8, 8), name="kworker/0"), replace(asked(2, 0, 16, 8), name="kworker/1")]
    path = written_log(tmp_path / "log", [wrote(8, 16, 3)])
    trace = SimpleNamespace(requests=tuple(requests), titles={0: None}, devices=(DISK,))
    assert note_writers(path, cast("Any", trace)) == 1
    with read_log(path) as log:
        assert log.writers(0) == (WritingProcess(0, "kworker/0", None), WritingProcess(0, "kworker/1", None))
