"""Where metadata waits that a cut can tear, and the cuts that are made there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.support.tools.written_log import FLUSH, FUA, MARK, Written, written_log

from bedplate.cuts.choice import Waiting, choose_points
from bedplate.cuts.log import read_log
from bedplate.cuts.records import DEFAULT_PROFILES, CutPoint, Placement, Profile
from bedplate.filesystem.blocks import metadata_of
from bedplate.model.cell import FilesystemLevels
from bedplate.workloads.power_cut.tearing import flushes_in_flight, waiting_metadata

FLUSHED = Written(flags=FLUSH)
PLAIN = Written(sector=800, data=b"p" * 4096)
MARKED = Written(flags=MARK, text=b"A 0 1 1")


def directory(fill: bytes, *, sector: int = 8, sectors: int = 8, flags: int = 0) -> Written:
    """A directory block of XFS whose sectors are filled alike."""
    return Written(sector=sector, data=b"XDB3".ljust(4096, fill)[: sectors * 512], flags=flags)


def half_changed(sectors: int) -> Written:
    """As one filled with `a`, so many of its last sectors filled otherwise."""
    return Written(sector=8, data=b"XDB3".ljust(4096 - 512 * sectors, b"a").ljust(4096, b"z"))


def waiting(
    tmp_path: Path,
    entries: Sequence[Written],
    *,
    type_: str = "xfs",
    measured_from: int = 0,
    window_bytes: int = 10**6,
) -> tuple[Waiting, ...]:
    with read_log(written_log(tmp_path / "log", entries)) as log:
        return waiting_metadata(
            log,
            metadata_of(FilesystemLevels(type_)),
            measured_from=measured_from,
            until=len(log),
            window_bytes=window_bytes,
        )


def test_a_span_reaches_from_the_last_such_block_to_the_next_flush(tmp_path: Path) -> None:
    entries = [FLUSHED, directory(b"a"), PLAIN, directory(b"b", sector=16), MARKED, FLUSHED, PLAIN, FLUSHED]
    (span,) = waiting(tmp_path, entries)
    # A cut at entry 5 is before the flush that is the fifth.
    assert Waiting(4, 5, ("directory block",), 2) == span


def test_without_another_flush_it_reaches_to_the_end(tmp_path: Path) -> None:
    (span,) = waiting(tmp_path, [directory(b"a"), PLAIN])
    assert (1, 2) == (span.first, span.last)


def test_a_block_that_changes_in_one_sector_cannot_be_torn(tmp_path: Path) -> None:
    before = [directory(b"a"), FLUSHED]
    assert () == waiting(tmp_path, [*before, half_changed(0), FLUSHED], measured_from=2)
    assert () == waiting(tmp_path, [*before, half_changed(1), FLUSHED], measured_from=2)
    assert 1 == len(waiting(tmp_path, [*before, half_changed(2), FLUSHED], measured_from=2))


def test_what_stood_there_may_have_been_written_in_parts(tmp_path: Path) -> None:
    parts = [
        directory(b"a"),
        Written(sector=14, data=b"z" * 512),
        Written(sector=15, data=b"z" * 512),
        FLUSHED,
    ]
    assert () == waiting(tmp_path, [*parts, half_changed(2), FLUSHED], measured_from=4)


def test_what_goes_past_the_cache_and_what_came_before_the_clients_wait_nowhere(tmp_path: Path) -> None:
    assert () == waiting(tmp_path, [directory(b"a", flags=FUA), PLAIN])
    assert () == waiting(tmp_path, [directory(b"a"), PLAIN], measured_from=1)


def test_data_of_a_signed_file_system_is_no_metadata_and_of_another_what_is_written_over(
    tmp_path: Path,
) -> None:
    again = Written(sector=800, data=b"q" * 4096)
    assert () == waiting(tmp_path, [PLAIN, FLUSHED, again])
    (span,) = waiting(tmp_path, [PLAIN, FLUSHED, again], type_="f2fs")
    assert (3, ("block written over",)) == (span.first, span.kinds)


def test_a_small_cache_has_let_go_of_it_later(tmp_path: Path) -> None:
    entries = [directory(b"a"), PLAIN, PLAIN, PLAIN]
    (span,) = waiting(tmp_path, entries, window_bytes=2 * 4096)
    assert (1, 1) == (span.first, span.last)


def sought(
    spans: Sequence[Waiting],
    tmp_path: Path,
    *,
    count: int = 8,
    profiles: Sequence[Profile] = DEFAULT_PROFILES,
) -> list[CutPoint]:
    with read_log(written_log(tmp_path / "log", [PLAIN] * 50)) as log:
        points = choose_points(
            log,
            points=20,
            profiles=profiles,
            seed=3,
            measured_from=0,
            window_bytes=10**6,
            controls=2,
            waiting=spans,
            sought=count,
        )
    assert list(range(len(points))) == [point.number for point in points]
    return [point for point in points if point.placement is Placement.SOUGHT]


def test_each_position_is_cut_with_small_and_with_large_sectors(tmp_path: Path) -> None:
    found = sought([Waiting(7, 9, ("directory block",), 1)], tmp_path)
    assert [Profile.SUBSET_512, Profile.SUBSET_4K] * 4 == [point.profile for point in found]
    assert [point.position for point in found[::2]] == [point.position for point in found[1::2]]
    assert {7, 8, 9} >= {point.position for point in found}
    assert 8 == len({point.seed for point in found})


def test_a_device_with_a_unit_is_cut_at_each_position_as_it_would_leave_it(tmp_path: Path) -> None:
    profiles = (Profile.UNTORN_16K, Profile.LOST, Profile.ORDERED)
    found = sought([Waiting(7, 9, ("write in flight at a flush",), 1)], tmp_path, profiles=profiles)
    assert [Profile.UNTORN_16K] * 8 == [point.profile for point in found]
    assert [] == sought([Waiting(7, 9, ("superblock",), 1)], tmp_path, profiles=profiles[1:])


def test_the_rarest_kind_is_cut_as_often_as_the_commonest(tmp_path: Path) -> None:
    common = [Waiting(at, at, ("inodes",), 1) for at in range(10, 40)]
    found = sought([Waiting(5, 5, ("directory block",), 1), *common], tmp_path)
    assert [True, False] * 2 == [point.position == 5 for point in found[::2]]


def test_every_span_is_cut_before_one_is_cut_again(tmp_path: Path) -> None:
    spans = [Waiting(at, at, ("superblock",), 1) for at in range(10, 14)]
    found = sought(spans, tmp_path, count=16)
    assert {10, 11, 12, 13} == {point.position for point in found[:8]} == {p.position for p in found[8:]}


def test_where_nothing_waits_or_nothing_tears_nothing_is_sought(tmp_path: Path) -> None:
    span = Waiting(7, 9, ("directory block",), 1)
    assert [] == sought([], tmp_path)
    assert [] == sought([span], tmp_path, count=0)
    assert [] == sought([span], tmp_path, profiles=(Profile.LOST, Profile.ORDERED))
    only = sought([span], tmp_path, count=3, profiles=(Profile.SUBSET_4K, Profile.ORDERED))
    assert [Profile.SUBSET_4K] * 3 == [point.profile for point in only]


def test_the_other_points_of_a_seed_are_those_without_any_that_are_sought(tmp_path: Path) -> None:
    with read_log(written_log(tmp_path / "log", [PLAIN] * 50)) as log:

        def others(spans: Sequence[Waiting]) -> list[tuple[int, int]]:
            points = choose_points(
                log,
                points=20,
                profiles=DEFAULT_PROFILES,
                seed=3,
                measured_from=0,
                window_bytes=10**6,
                controls=4,
                waiting=spans,
                sought=6,
            )
            return [(p.position, p.seed) for p in points if p.placement is not Placement.SOUGHT]

        assert others([]) == others([Waiting(7, 9, ("directory block",), 1)])


def test_a_flush_that_met_writes_on_their_way_is_a_place_to_cut_behind(tmp_path: Path) -> None:
    flush, other = Written(flags=FLUSH), Written(device=1, flags=FLUSH)
    late = replace(PLAIN, late=3)
    with read_log(written_log(tmp_path / "log", [PLAIN, flush, other, PLAIN, late, flush, flush])) as log:
        # The write of entry 4 was issued before entry 1, the first flush, was.
        assert (Waiting(2, 5, ("write in flight at a flush",), 1),) == flushes_in_flight(
            log, measured_from=0, until=7
        )
        assert (Waiting(2, 4, ("write in flight at a flush",), 1),) == flushes_in_flight(
            log, measured_from=0, until=4
        )
        assert () == flushes_in_flight(log, measured_from=2, until=7)


def test_where_writes_are_complete_at_once_no_flush_meets_one(tmp_path: Path) -> None:
    with read_log(written_log(tmp_path / "log", [PLAIN, Written(flags=FLUSH), PLAIN])) as log:
        assert () == flushes_in_flight(log, measured_from=0, until=3)
