"""What a log says of writes that go past the cache, where the kernel was seen to ask for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.tools.written_log import FLUSH, FUA, Written, written_log

from bedplate.cuts.log import read_log, window
from bedplate.cuts.records import CutPoint, Placement, Profile
from bedplate.host.block_requests import BlockRequest
from bedplate.workloads.power_cut.tearing import WrittenThrough, write_down, written_through

DISK, JOURNAL = 7 << 20 | 3, 7 << 20 | 4


def wrote(sector: int, ms: int, device: int = 0) -> Written:
    return Written(device=device, sector=sector, data=b"w" * 512, time_ns=ms * 10**6)


def flushed(ms: int, device: int = 0) -> Written:
    return Written(device=device, flags=FLUSH, time_ns=ms * 10**6)


def asked(
    ms: float, flags: str, sector: int = 0, sectors: int = 0, *, done: bool = False, device: int = DISK
) -> BlockRequest:
    return BlockRequest(int(ms * 10**6), device, flags, sector, sectors, done)


def found(path: Path, entries: Sequence[Written], requests: Sequence[BlockRequest]) -> WrittenThrough:
    with read_log(written_log(path / "log", entries)) as log:
        return written_through(log, requests, (DISK, JOURNAL))


# A commit of a journal: what came before it is flushed, its record goes through, and the kernel flushes once more.
COMMIT = [wrote(1, 1), flushed(3), wrote(9, 4), flushed(5)]
ASKED = [asked(2, "FWFS", 9, 1), asked(5.5, "WS", 9, 0, done=True)]


def test_a_flush_that_was_sent_for_want_of_fua_is_none(tmp_path: Path) -> None:
    assert WrittenThrough(frozenset({2}), frozenset({3})) == found(tmp_path, COMMIT, ASKED)


@pytest.mark.parametrize(("began", "ended"), [(4.5, 5.2), (3.5, 9.0), (4.9, 5.1)])
def test_a_flush_that_a_sync_waits_for_as_well_stays(tmp_path: Path, began: float, ended: float) -> None:
    requests = [
        ASKED[0],
        asked(began, "FWS"),
        asked(ended, "WS", done=True),
        ASKED[1],
        asked(9.5, "FWS"),
        asked(9.6, "WS", done=True),
    ]
    requests.sort(key=lambda each: each.time_ns)
    assert WrittenThrough(frozenset({2}), frozenset()) == found(tmp_path, COMMIT, requests)


def test_a_flush_before_the_next_write_stays_though_one_behind_the_last_goes_too(tmp_path: Path) -> None:
    entries = [*COMMIT, wrote(1, 6), flushed(8), wrote(10, 9), flushed(10)]
    requests = [*ASKED, asked(7, "FWFS", 10, 1), asked(10.5, "WS", 10, 0, done=True)]
    assert WrittenThrough(frozenset({2, 6}), frozenset({3, 7})) == found(tmp_path, entries, requests)
    # Asked for before the flush of the last one came: nobody can tell whom that was for.
    early = [ASKED[0], asked(4.5, "FWFS", 10, 1), ASKED[1], asked(10.5, "WS", 10, 0, done=True)]
    assert WrittenThrough(frozenset({2, 6}), frozenset({7})) == found(tmp_path, entries, early)


def test_where_it_is_not_certain_a_flush_stays(tmp_path: Path) -> None:
    # A sync whose end was not seen; a write that is not in the log; nothing that was looked at.
    assert not found(tmp_path, COMMIT, [*ASKED, asked(4.9, "FWS")]).needless
    assert not found(tmp_path, COMMIT, [asked(2, "FWFS", 700, 1), ASKED[1]]).needless
    assert WrittenThrough(frozenset(), frozenset()) == found(tmp_path, COMMIT, [])
    # Flushes outside of the time in which requests were looked at.
    assert not found(tmp_path, COMMIT, [ASKED[0], asked(4.9, "WS", 9, 0, done=True)]).needless


def test_a_flush_itself_is_nobody_who_waits(tmp_path: Path) -> None:
    own = [asked(2.5, "FF", done=True), asked(5.2, "FF", done=True)]
    requests = sorted([*ASKED, *own], key=lambda each: each.time_ns)
    assert WrittenThrough(frozenset({2}), frozenset({3})) == found(tmp_path, COMMIT, requests)


def test_a_write_of_the_first_sector_is_not_taken_for_the_end_of_a_sync(tmp_path: Path) -> None:
    """It is done at 4.6 ms, and the sync, which its words do not tell it from, at 5.2 ms."""
    entries = [wrote(0, 1), flushed(3), wrote(9, 4), flushed(5)]
    requests = [
        asked(0.5, "WFS", 0, 1),
        asked(2, "FWFS", 9, 1),
        asked(4.5, "FWS"),
        asked(4.6, "WS", done=True),
        asked(5.2, "WS", done=True),
        asked(5.5, "WS", 9, 0, done=True),
    ]
    assert not found(tmp_path, entries, requests).needless
    # Later syncs are as any others.
    later = [wrote(11, 20), flushed(21), wrote(12, 23), flushed(24)]
    more = [
        asked(20.5, "FWS"),
        asked(21.5, "WS", done=True),
        asked(22, "WFS", 12, 1),
        asked(24.5, "WS", 12, 0, done=True),
    ]
    more = [*more, asked(30, "FWS"), asked(31, "WS", done=True)]
    assert frozenset({7}) == found(tmp_path, [*entries, *later], [*requests, *more]).needless


def test_each_device_has_requests_of_its_own(tmp_path: Path) -> None:
    entries = [replace(each, device=1) for each in COMMIT]
    assert WrittenThrough(frozenset(), frozenset()) == found(tmp_path, entries, ASKED)
    of_journal = [replace(each, device=JOURNAL) for each in ASKED]
    assert WrittenThrough(frozenset({2}), frozenset({3})) == found(tmp_path, entries, of_journal)


def test_the_log_is_then_that_of_a_device_with_fua(tmp_path: Path) -> None:
    path = written_log(tmp_path / "log", COMMIT)
    with read_log(path) as log:
        through = written_through(log, ASKED, (DISK,))
    write_down(path, through)
    with read_log(path) as log:
        assert [0, FLUSH, FUA, 0] == list(log.flags)
        assert [1] == list(log.histories[0].flushes)
        # What is written behind the first flush is at risk but for the record itself.
        cut = window(log, CutPoint(0, 4, Profile.LOST, Placement.UNIFORM, 1), 10**6)
        assert (1, {2}) == (cut.volatile_writes, {piece.entry for piece in cut.kept})
    # A write beside the record was covered by that flush, and is not any more.
    beside = written_log(tmp_path / "beside", [*COMMIT[:3], wrote(5, 4), COMMIT[3]])
    with read_log(beside) as log:
        assert 0 == window(log, CutPoint(0, 5, Profile.LOST, Placement.UNIFORM, 1), 10**6).volatile_writes
        through = written_through(log, ASKED, (DISK,))
    write_down(beside, through)
    with read_log(beside) as log:
        cut = window(log, CutPoint(0, 5, Profile.LOST, Placement.UNIFORM, 1), 10**6)
        assert (2, {2}) == (cut.volatile_writes, {piece.entry for piece in cut.kept})


def test_syncs_are_told_from_flushes_and_from_writes() -> None:
    assert asked(1, "FWS").is_sync
    assert asked(1, "WS", done=True).is_sync
    others = (asked(1, "FWFS", 9, 1), asked(1, "FF", done=True), asked(1, "FF"), asked(1, "WS"))
    assert not any(each.is_sync for each in others)


def test_letters_of_requests_are_understood() -> None:
    letters = {
        "FWFS": (True, True),
        "WFS": (False, True),
        "FWS": (True, False),
        "WS": (False, False),
        "WFSM": (False, True),
    }
    assert letters == {
        flags: (asked(1, flags).flushes_before, asked(1, flags).goes_through) for flags in letters
    }
