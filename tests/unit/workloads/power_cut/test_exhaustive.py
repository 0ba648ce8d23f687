"""A short recovery is cut behind each of its writes, and each write that waits is kept alone: none is left out, and none is there twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.tools.written_log import DISCARD, FLUSH, MARK, Written, written_log

from bedplate.cuts.choice import choose_points, choose_recuts, every_cut, second_cut, second_positions
from bedplate.cuts.log import read_log, window
from bedplate.cuts.records import EXHAUSTIVE_EACH, SHORT_RECOVERY_WRITES, CutPoint, Placement, Profile

WINDOW = 10**6
FLUSHED, MARKED = Written(flags=FLUSH), Written(flags=MARK, text=b"A 0 1 1")
DISCARDED = Written(flags=DISCARD, discarded_sectors=8)


def a_write(sector: int) -> Written:
    return Written(sector=sector, data=b"w" * 512)


def every(path: Path, entries: Sequence[Written], *, most: int = 1000) -> tuple[CutPoint, ...]:
    with read_log(written_log(path / "log", entries)) as log:
        whole = CutPoint(6, len(log), Profile.ORDERED, Placement.WHOLE, 0, recovery_of=2)
        return every_cut(log, whole, number=7, most=most, window_bytes=WINDOW)


# Two writes between two flushes, then three, of which the last is a discard; a mark changes nothing.
ENTRIES = (FLUSHED, a_write(0), MARKED, a_write(1), FLUSHED, a_write(2), a_write(3), DISCARDED, FLUSHED)


def test_it_is_cut_behind_each_write_but_the_last_which_is_the_whole(tmp_path: Path) -> None:
    found = every(tmp_path, ENTRIES)
    in_order = [point for point in found if point.profile is Profile.ORDERED]
    assert [2, 4, 6, 7] == [point.position for point in in_order]
    assert {(Placement.EVERY, 2)} == {(point.placement, point.recovery_of) for point in found}
    assert list(range(7, 7 + len(found))) == [point.number for point in found]


def test_each_write_behind_another_since_a_flush_is_kept_alone(tmp_path: Path) -> None:
    found = every(tmp_path, ENTRIES)
    with read_log(tmp_path / "log") as log:
        kept = [
            [piece.entry for piece in window(log, point, WINDOW).kept]
            for point in found
            if point.profile is Profile.WHOLE
        ]
    assert [[3], [6], [7]] == kept


def test_no_image_of_a_recovery_is_built_twice(tmp_path: Path) -> None:
    found = every(tmp_path, ENTRIES)
    with read_log(tmp_path / "log") as log:
        states = []
        for point in found:
            state = window(log, point, WINDOW)
            durable = [index for index in log.histories[0].changes if index < state.durable_until[0]]
            states.append((*durable, *(piece.entry for piece in state.kept)))
    assert len(states) == len(set(states))


def test_it_is_cut_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    assert 7 == len(every(tmp_path, ENTRIES, most=7))
    # Where the single writes would be too many, those in order are there all the same.
    assert {Profile.ORDERED} == {point.profile for point in every(tmp_path, ENTRIES, most=6)}
    assert 4 == len(every(tmp_path, ENTRIES, most=4))
    assert () == every(tmp_path, ENTRIES, most=3)


@pytest.mark.parametrize(("more", "are_there"), [(0, True), (1, False)])
def test_a_long_one_is_not(tmp_path: Path, more: int, are_there: bool) -> None:
    entries = [a_write(number) for number in range(SHORT_RECOVERY_WRITES + more)]
    assert are_there is bool(every(tmp_path, entries))


def test_the_second_of_a_third_cut_is_in_order_and_first_where_most_came_before_a_flush(
    tmp_path: Path,
) -> None:
    every(tmp_path, ENTRIES)
    with read_log(tmp_path / "log") as log:
        assert [7, 4, 6, 2] == list(second_positions(log))
    third = CutPoint(40, 3, Profile.WHOLE, Placement.EVERY, 0, recovery_of=2, second=7)
    assert (7, Profile.ORDERED, 2, None) == (
        (found := second_cut(third)).position,
        found.profile,
        found.recovery_of,
        found.second,
    )
    with pytest.raises(ValueError, match="no third"):
        second_cut(replace(third, second=None))


@pytest.mark.parametrize(
    ("cuts", "exhaustive", "shares"),
    [
        (0, 60, [(0, 60)]),
        (20, 60, [(7, 60), (7, 0), (6, 0)]),
        (0, 2 * EXHAUSTIVE_EACH, [(0, EXHAUSTIVE_EACH)] * 2),
        (8, 2 * EXHAUSTIVE_EACH, [(4, EXHAUSTIVE_EACH)] * 2),
    ],
)
def test_the_first_recoveries_share_such_cuts(
    tmp_path: Path, cuts: int, exhaustive: int, shares: list[tuple[int, int]]
) -> None:
    entries = [entry for sector in range(60) for entry in (a_write(sector), FLUSHED)]
    with read_log(written_log(tmp_path / "log", entries)) as log:
        points = choose_points(
            log,
            points=40,
            profiles=(Profile.LOST, Profile.ORDERED),
            seed=1,
            measured_from=0,
            window_bytes=WINDOW,
            controls=2,
        )
        found = choose_recuts(
            log, points, count=cuts, seed=1, measured_from=0, window_bytes=WINDOW, exhaustive=exhaustive
        )
    assert shares == [(recut.cuts, recut.exhaustive) for recut in found]
    numbers = [
        number
        for recut in found
        for number in range(recut.number, recut.number + recut.cuts + 1 + recut.exhaustive)
    ]
    assert list(range(42, 42 + len(numbers))) == numbers
