"""Which recoveries are cut again, and where: between any two flushes alike, and behind everything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.support.tools.written_log import DISCARD, FLUSH, MARK, Written, written_log

from bedplate.cuts.choice import Recut, choose_points, choose_recuts, recovery_points
from bedplate.cuts.log import read_log
from bedplate.cuts.records import DEFAULT_PROFILES, RECUTS_EACH, CutPoint, Placement, Profile
from bedplate.model.cell import FilesystemLevels
from bedplate.model.levels import Levels
from bedplate.visit.cuts import Subject
from bedplate.workloads.power_cut.bench import ReplayJob

FLUSHED, MARKED = Written(flags=FLUSH), Written(flags=MARK, text=b"A 0 1 1")
DISCARDED = Written(flags=DISCARD, discarded_sectors=8)


def a_write(sector: int, device: int = 0) -> Written:
    return Written(device=device, sector=sector, data=b"w" * 512)


def chosen(path: Path, *, cuts: int, points: int = 40, seed: int = 1) -> tuple[Recut, ...]:
    """Of a log in which every second entry is a flush."""
    entries = [entry for sector in range(60) for entry in (a_write(sector), FLUSHED)]
    with read_log(written_log(path / "log", entries)) as log:
        made = choose_points(
            log,
            points=points,
            profiles=DEFAULT_PROFILES,
            seed=seed,
            measured_from=0,
            window_bytes=10**6,
            controls=2,
        )
        return choose_recuts(log, made, count=cuts, seed=seed, measured_from=0, window_bytes=10**6)


def again(
    path: Path, entries: Sequence[Written], *, cuts: int, profiles: Sequence[Profile] = DEFAULT_PROFILES
) -> tuple[CutPoint, ...]:
    with read_log(written_log(path / "log", entries)) as log:
        return recovery_points(log, Recut(3, 100, cuts, 5), profiles=profiles, window_bytes=10**6)


def test_a_write_that_was_issued_and_not_complete_waits_between_two_flushes(tmp_path: Path) -> None:
    """Behind the first flush nothing was complete before the second, and one write was on its way."""
    late = Written(sector=5, data=b"w" * 512, late=2)
    entries = [a_write(1), FLUSHED, MARKED, FLUSHED, late]
    positions = {
        point.position for seed in range(9) for point in again(tmp_path, entries, cuts=8 + seed)[:-1]
    }
    assert 3 in positions
    assert 2 not in positions


def test_cuts_are_spread_over_as_few_recoveries_as_they_need_and_numbered_behind_the_others(
    tmp_path: Path,
) -> None:
    found = chosen(tmp_path, cuts=20)
    assert [7, 7, 6] == [recut.cuts for recut in found]
    # 40 points and 2 controls; behind the cuts of each recovery stands the whole of it.
    assert [42, 50, 58] == [recut.number for recut in found]
    assert len({recut.first for recut in found}) == 3
    assert all(recut.first < 40 for recut in found)
    assert found == chosen(tmp_path, cuts=20)
    assert found != chosen(tmp_path, cuts=20, seed=2)
    assert () == chosen(tmp_path, cuts=0)


def test_cuts_at_which_a_write_waits_come_first_and_their_profiles_take_turns(tmp_path: Path) -> None:
    found = chosen(tmp_path, cuts=6 * RECUTS_EACH)
    kinds = [DEFAULT_PROFILES[recut.first % len(DEFAULT_PROFILES)] for recut in found]
    assert Profile.ORDERED not in kinds
    assert len(set(kinds[:3])) == len(set(kinds[3:])) == 3
    # Where more are wanted than there are points, each has its share.
    every = chosen(tmp_path, cuts=400, points=8)
    assert (8, 400) == (len(every), sum(recut.cuts for recut in every))


def test_every_span_with_something_waiting_is_cut_before_one_is_cut_again(tmp_path: Path) -> None:
    entries = [MARKED, a_write(0), a_write(1), FLUSHED, MARKED, FLUSHED, a_write(2), FLUSHED, DISCARDED]
    *found, whole = again(tmp_path, entries, cuts=6)
    spans = {2: 0, 3: 0, 7: 1, 9: 2}
    assert all(point.position in spans for point in found)
    for three in (found[:3], found[3:]):
        assert {0, 1, 2} == {spans[point.position] for point in three}
    assert [*DEFAULT_PROFILES, *DEFAULT_PROFILES[:2]] == [point.profile for point in found]
    assert {(Placement.SPAN, 3, False)} == {(p.placement, p.recovery_of, p.control) for p in found}
    assert list(range(100, 107)) == [point.number for point in (*found, whole)]
    assert (9, Profile.ORDERED, Placement.WHOLE, 3) == (
        whole.position,
        whole.profile,
        whole.placement,
        whole.recovery_of,
    )


def test_a_flush_of_one_device_leaves_what_waits_on_the_other(tmp_path: Path) -> None:
    entries = [a_write(0, device=1), FLUSHED, MARKED]
    positions = {point.position for point in again(tmp_path, entries, cuts=40)[:-1]}
    # The disk's flush divides what the journal holds all the while.
    assert {1, 2, 3} == positions


def test_a_recovery_that_wrote_nothing_is_asked_as_a_whole_alone(tmp_path: Path) -> None:
    (whole,) = again(tmp_path, [MARKED, FLUSHED], cuts=8)
    assert (2, Placement.WHOLE) == (whole.position, whole.placement)


def test_a_positive_control_has_the_journal_that_a_cut_would_take() -> None:
    job = ReplayJob(
        FilesystemLevels("xfs", journal="external"),
        Subject("own-engine", 1, Levels({}), Levels({})),
        (),
        image_bytes=1,
        window_bytes=1,
        measured_from=1,
        journal_bytes=1,
        loses_journal=True,
        recuts=(Recut(0, 1, 8, 1),),
    )
    found = job.uncut(7)
    assert (False, (), 1) == (found.loses_journal, found.recuts, found.journal_bytes)
    assert [(7, Profile.ORDERED)] == [(point.position, point.profile) for point in found.points]
