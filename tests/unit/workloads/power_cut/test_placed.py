"""Cuts that are placed where the order of an engine's changes shows: behind commits, and where blocks are written over."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.support.tools.written_log import FLUSH, FUA, MARK, Written, written_log

from bedplate.cuts.choice import Waiting, choose_points
from bedplate.cuts.log import CALL_KINDS, NameCall, read_log
from bedplate.cuts.records import DEFAULT_PROFILES, CutPoint, Placement, Profile
from bedplate.model.cell import FilesystemLevels
from bedplate.workloads.power_cut.tearing import COMMIT, note_calls, order_spans

MARKED = Written(flags=MARK, text=b"A 0 1 1")


def data(sector: int = 8000, fill: bytes = b"d", time_ns: int = 0) -> Written:
    return Written(sector=sector, data=fill * 4096, time_ns=time_ns)


def flush(time_ns: int = 0) -> Written:
    return Written(flags=FLUSH, time_ns=time_ns)


def journal(kind: int, *, sector: int = 64, flags: int = 0, time_ns: int = 0) -> Written:
    """A block of ext4's journal: 1 begins a commit, 2 ends it."""
    block = struct.pack(">III", 0xC03B3998, kind, 7).ljust(4096, b"\0")
    return Written(sector=sector, data=block, flags=flags, time_ns=time_ns)


def record(time_ns: int = 0) -> Written:
    return Written(sector=64, data=b"\xfe\xed\xba\xbe".ljust(512, b"\0"), time_ns=time_ns)


def spans_of(
    tmp_path: Path, entries: Sequence[Written], calls: Sequence[NameCall] = (), *, of_type: str = "ext4"
) -> tuple[Waiting, ...]:
    path = written_log(tmp_path / "log", entries)
    note_calls(path, calls)
    with read_log(path) as log:
        return order_spans(log, FilesystemLevels(of_type), measured_from=0, until=len(log))


def test_calls_stand_in_the_log_before_what_was_issued_behind_them(tmp_path: Path) -> None:
    path = written_log(tmp_path / "log", [data(time_ns=10), MARKED, flush(time_ns=30), data(time_ns=40)])
    note_calls(
        path, [NameCall(5, "create"), NameCall(20, "rename"), NameCall(25, "unlink"), NameCall(50, "link")]
    )
    with read_log(path) as log:
        kinds = [[(call.kind, call.time_ns) for call in log.calls(index)] for index in range(4)]
    assert [[("create", 5)], [], [("rename", 20), ("unlink", 25)], []] == kinds


def test_of_too_many_calls_the_last_are_kept(tmp_path: Path) -> None:
    path = written_log(tmp_path / "log", [data(time_ns=10)])
    note_calls(path, [NameCall(1, "create")] * 80 + [NameCall(2, "rename")])
    with read_log(path) as log:
        assert ["create"] * 22 + ["rename"] == [call.kind for call in log.calls(0)]
    assert len(CALL_KINDS) < 256


def test_a_commit_is_cut_from_the_flush_that_covers_it_to_the_next(tmp_path: Path) -> None:
    entries = [journal(1), flush(), journal(2), data(), flush(), data(), MARKED, flush(), data()]
    (span,) = spans_of(tmp_path, entries)
    assert Waiting(5, 7, (COMMIT,), 0, (0,)) == span


def test_one_that_goes_past_the_cache_is_there_at_once(tmp_path: Path) -> None:
    (span,) = spans_of(tmp_path, [journal(1), journal(2, flags=FUA), data(), flush(), data()])
    assert (2, 3) == (span.first, span.last)


def test_data_alone_is_no_commit_but_where_commits_are_not_known(tmp_path: Path) -> None:
    entries = [data(), flush(), data(8008), flush(), data(8016)]
    for of_type, number in (("ext4", 0), ("xfs", 0), ("btrfs", 0), ("f2fs", 2)):
        assert number == len(spans_of(tmp_path, entries, of_type=of_type)), of_type
    assert 1 == len(spans_of(tmp_path, [record(), flush(), data()], of_type="xfs"))
    superblock = Written(sector=128, data=b"s" * 4096)
    assert 1 == len(spans_of(tmp_path, [superblock, flush(), data()], of_type="btrfs"))


def test_a_pair_of_changes_is_cut_behind_the_commit_that_may_have_the_first_alone(tmp_path: Path) -> None:
    entries = [
        flush(10),
        journal(1, time_ns=30),
        journal(2, time_ns=31),
        flush(32),
        journal(1, time_ns=50),
        journal(2, time_ns=51),
        flush(52),
        data(time_ns=60),
    ]
    calls = [NameCall(20, "unlink"), NameCall(40, "rename"), NameCall(55, "create")]
    spans = spans_of(tmp_path, entries, calls)
    assert {
        4: {COMMIT, "unlink, then rename"},
        7: {COMMIT, "rename, then create", "unlink, rename, then create"},
    } == {span.first: set(span.kinds) for span in spans}


def test_a_commit_that_was_under_way_may_lack_what_was_changed_meanwhile(tmp_path: Path) -> None:
    entries = [
        flush(10),
        journal(1, time_ns=20),
        journal(2, time_ns=40),
        flush(42),
        journal(1, time_ns=50),
        journal(2, time_ns=51),
        flush(52),
        data(time_ns=60),
    ]
    calls = [NameCall(30, "unlink"), NameCall(45, "rename")]
    spans = spans_of(tmp_path, entries, calls)
    assert [4, 7] == sorted(span.first for span in spans if "unlink, then rename" in span.kinds)


def test_changes_of_two_threads_are_no_pair(tmp_path: Path) -> None:
    entries = [flush(10), journal(1, time_ns=30), journal(2, time_ns=31), flush(32), data(time_ns=60)]
    calls = [NameCall(20, "unlink", 1), NameCall(25, "create", 2), NameCall(40, "rename", 1)]
    (span,) = spans_of(tmp_path, entries, calls)
    assert {COMMIT, "unlink, then rename"} == set(span.kinds)


def test_where_the_second_change_came_latest_is_cut_first(tmp_path: Path) -> None:
    entries, calls = [flush(1)], []
    for number, late_ns in enumerate((-20, 5, -40)):
        begin_ns = 1000 * (number + 1)
        entries += [journal(1, time_ns=begin_ns), journal(2, time_ns=begin_ns + 100), flush(begin_ns + 110)]
        calls += [NameCall(begin_ns - 50, "unlink"), NameCall(begin_ns + late_ns, "link")]
    spans = spans_of(tmp_path, [*entries, data(time_ns=9000)], calls)
    pair = "unlink, then link"
    likely = {span.first: dict(zip(span.kinds, span.likely, strict=True))[pair] for span in spans}
    assert {4: -20, 7: 5, 10: -40} == likely
    only = [replace(span, kinds=(pair,), likely=(likely[span.first],)) for span in spans]
    (point,) = placed(tmp_path, only, count=1)
    assert (9, Profile.LOST) == (point.position, point.profile)


def test_blocks_written_over_are_told_apart_by_how_often(tmp_path: Path) -> None:
    often = [part for fill in (b"a", b"b", b"c", b"d", b"e") for part in (data(fill=fill), flush())]
    once = [data(9000), flush(), data(9000, b"z"), MARKED, flush(), data(9008)]
    spans = spans_of(tmp_path, [*often, *once])
    kinds = [span.kinds for span in spans]
    assert [("block written over, 4 times or more",)] * 4 + [
        ("block written over, 1 times or more",)
    ] == kinds
    assert (13, 14, 1) == (spans[-1].first, spans[-1].last, spans[-1].blocks)


def test_what_is_appended_behind_zeros_is_written_over_nothing(tmp_path: Path) -> None:
    zeros, half = data(fill=b"\0"), Written(sector=8000, data=(b"a" * 2048).ljust(4096, b"\0"))
    assert () == spans_of(tmp_path, [zeros, flush(), half, flush(), data(fill=b"a"), flush()])


def placed(
    tmp_path: Path,
    spans: Sequence[Waiting],
    *,
    count: int,
    profiles: Sequence[Profile] = DEFAULT_PROFILES,
    seed: int = 1,
) -> list[CutPoint]:
    with read_log(written_log(tmp_path / "log", [data()] * 200)) as log:
        points = choose_points(
            log,
            points=20,
            profiles=profiles,
            seed=seed,
            measured_from=0,
            window_bytes=10**6,
            controls=2,
            commit_spans=spans,
            placed=count,
        )
        plain = choose_points(
            log, points=20, profiles=profiles, seed=seed, measured_from=0, window_bytes=10**6, controls=2
        )
    assert plain[:20] == points[:20]
    assert [point.seed for point in plain[20:]] == [point.seed for point in points[-2:]]
    assert list(range(len(points))) == [point.number for point in points]
    found = list(points[20:-2])
    assert {Placement.ORDER} >= {point.placement for point in found}
    return found


def behind(first: int, *kinds: str) -> Waiting:
    return Waiting(first, first + 3, kinds, 0)


def test_where_nothing_can_be_placed_the_points_are_those_of_before(tmp_path: Path) -> None:
    assert [] == placed(tmp_path, (), count=10)


def test_the_rarest_kinds_are_cut_as_often_as_the_commonest(tmp_path: Path) -> None:
    spans = [*(behind(at, COMMIT) for at in range(1, 100, 4)), behind(101, COMMIT, "unlink, then rename")]
    found = placed(tmp_path, spans, count=4)
    rare = [(point.position, point.profile) for point in found if 101 <= point.position <= 104]
    assert {(104, Profile.LOST), (101, Profile.ORDERED)} <= set(rare)
    assert 4 == len(found)


def test_no_cut_is_made_twice_and_there_are_no_more_than_there_are(tmp_path: Path) -> None:
    found = placed(tmp_path, [behind(1, "a", "b"), behind(9, "b")], count=50)
    assert [(1, Profile.ORDERED), (4, Profile.LOST), (9, Profile.ORDERED), (12, Profile.LOST)] == sorted(
        ((point.position, point.profile) for point in found), key=lambda each: each[0]
    )


def test_what_came_before_two_changes_is_met_too_once_the_two_were(tmp_path: Path) -> None:
    spans = [
        *(behind(at, "truncate, then rename") for at in range(1, 100, 4)),
        behind(101, "truncate, then rename", "unlink, truncate, then rename"),
    ]
    found = placed(tmp_path, spans, count=2)
    assert {True, False} == {point.position > 100 for point in found}


def test_a_sixth_is_kept_for_blocks_that_are_written_over_and_torn(tmp_path: Path) -> None:
    spans = [
        *(behind(at, COMMIT) for at in range(1, 100, 4)),
        *(Waiting(at, at + 1, ("over",), 1) for at in range(101, 140, 2)),
    ]
    found = placed(tmp_path, spans, count=12)
    over = [point.profile for point in found if point.position > 100]
    assert {Profile.SUBSET_512, Profile.SUBSET_4K} == set(over)
    assert 2 == len(over)


def test_without_a_profile_for_a_span_there_is_no_cut_of_it(tmp_path: Path) -> None:
    spans = [behind(1, COMMIT), Waiting(50, 51, ("over",), 1)]
    found = placed(tmp_path, spans, count=9, profiles=(Profile.ORDERED,))
    assert [(1, Profile.ORDERED)] == [(point.position, point.profile) for point in found]
