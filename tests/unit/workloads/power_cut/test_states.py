"""The states that windows between two flushes can leave: all of small ones, single parts and draws of larger ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.support.tools.written_log import FLUSH, FUA, Written, written_log

from bedplate.cuts.choice import Enumerated, choose_points, enumerate_states
from bedplate.cuts.log import Log, read_log, window
from bedplate.cuts.records import ChosenState, CutPoint, Placement, Profile

WINDOW_BYTES = 10**6
FLUSHED, JOURNAL_FLUSHED = Written(flags=FLUSH), Written(device=1, flags=FLUSH)


def writes(count: int, *, blocks: int = 1, sector: int = 0) -> list[Written]:
    return [Written(sector=sector + 8 * blocks * k, data=b"w" * 4096 * blocks) for k in range(count)]


def enumerated(
    log: Log, states: int, *, seed: int = 1, measured_from: int = 0, until: int | None = None
) -> Enumerated:
    return enumerate_states(
        log,
        states=states,
        seed=seed,
        measured_from=measured_from,
        until=len(log) if until is None else until,
        window_bytes=WINDOW_BYTES,
    )


def of(
    tmp_path: Path, entries: Sequence[Written], states: int, *, seed: int = 1, measured_from: int = 0
) -> Enumerated:
    with read_log(written_log(tmp_path / "log", entries)) as log:
        return enumerated(log, states, seed=seed, measured_from=measured_from)


def kept(log: Log, point: CutPoint) -> tuple[tuple[int, int, int], ...]:
    return window(log, point, WINDOW_BYTES).kept


def test_every_subset_of_a_small_window_is_a_state_at_its_end(tmp_path: Path) -> None:
    entries = [*writes(3), FLUSHED, *writes(2), FLUSHED]
    with read_log(written_log(tmp_path / "log", entries)) as log:
        found = enumerated(log, 100)
        assert {3: 8, 6: 4} == Counter(point.position for point in found.points)
        assert 12 == found.small_states
        first = [kept(log, point) for point in found.points if point.position == 3]
        assert 8 == len(set(first))
        assert {(), (0, 1, 2), (1,)} <= {tuple(entry for entry, _, _ in pieces) for pieces in first}
    assert {(Placement.ENUMERATED, Profile.WHOLE)} == {(p.placement, p.profile) for p in found.points}


def test_what_waits_twice_alike_is_cut_where_most_was_promised(tmp_path: Path) -> None:
    entries = [*writes(1), JOURNAL_FLUSHED, JOURNAL_FLUSHED, FLUSHED, FLUSHED]
    assert [3, 3] == [point.position for point in of(tmp_path, entries, 10).points]


def test_what_came_before_the_clients_is_no_window_and_the_end_is_one(tmp_path: Path) -> None:
    entries = [*writes(1), FLUSHED, *writes(1), FLUSHED, *writes(1)]
    assert {3: 2, 5: 2} == Counter(p.position for p in of(tmp_path, entries, 10, measured_from=2).points)


def test_more_states_than_the_budget_are_drawn_each_once(tmp_path: Path) -> None:
    entries = [*writes(10), FLUSHED, *writes(9), FLUSHED]
    found = of(tmp_path, entries, 200)
    assert (200, 1536) == (len(set(found.points)), found.small_states)
    assert found == of(tmp_path, entries, 200)
    assert found.points != of(tmp_path, entries, 200, seed=2).points


def test_of_a_larger_window_each_write_and_block_is_missing_and_alone_and_the_rest_is_drawn(
    tmp_path: Path,
) -> None:
    entries = [*writes(13, blocks=2), FLUSHED]
    with read_log(written_log(tmp_path / "log", entries)) as log:
        found = enumerated(log, 100)
        assert 0 == found.small_states
        single = [point for point in found.points if point.state is not None]
        assert {Profile.WHOLE: 26, Profile.SUBSET_4K: 52} == Counter(point.profile for point in single)
        alone = CutPoint(0, 13, Profile.WHOLE, Placement.ENUMERATED, 0, state=ChosenState((4,), kept=True))
        assert alone in single
        assert ((4, 0, 8192),) == kept(log, alone)
        missing = CutPoint(
            0, 13, Profile.SUBSET_4K, Placement.ENUMERATED, 0, state=ChosenState((9,), kept=False)
        )
        assert missing in single
        # Block 9 is the second half of the fifth write.
        assert (4, 0, 4096) in kept(log, missing)
        assert 13 == len(kept(log, missing))
    drawn = [point for point in found.points if point.state is None]
    assert (22, {Profile.SUBSET_4K}) == (len({p.seed for p in drawn}), {p.profile for p in drawn})


def test_small_windows_leave_larger_ones_half_of_the_budget(tmp_path: Path) -> None:
    entries = [*writes(12), FLUSHED, *writes(200), FLUSHED]
    positions = Counter(point.position for point in of(tmp_path, entries, 300).points)
    assert {12: 150, 213: 150} == positions
    few = Counter(point.position for point in of(tmp_path, entries, 1000).points)
    assert {12: 600, 213: 400} == few


def test_nothing_that_waits_and_nothing_that_is_asked_for_is_no_state(tmp_path: Path) -> None:
    assert Enumerated() == of(tmp_path, [FLUSHED], 10)
    assert Enumerated() == of(tmp_path, [*writes(2), FLUSHED], 0)


def test_states_stand_between_the_drawn_points_and_the_controls_and_change_no_other(tmp_path: Path) -> None:
    entries = [*writes(3), FLUSHED, *writes(3), FLUSHED]
    with read_log(written_log(tmp_path / "log", entries)) as log:

        def points(states: Sequence[CutPoint]) -> tuple[CutPoint, ...]:
            return choose_points(
                log,
                points=4,
                profiles=(Profile.LOST, Profile.ORDERED),
                seed=1,
                measured_from=0,
                window_bytes=WINDOW_BYTES,
                controls=2,
                enumerated=states,
            )

        found = points(enumerated(log, 100).points)
        assert list(range(22)) == [point.number for point in found]
        assert [Placement.ENUMERATED] * 16 == [point.placement for point in found[4:20]]
        plain = points(())
        assert found[:4] == plain[:4]
        assert [(p.position, p.seed) for p in found[20:]] == [(p.position, p.seed) for p in plain[4:]]


def through(sector: int) -> Written:
    return Written(sector=sector, data=b"t" * 4096, flags=FUA)


def test_what_goes_past_the_cache_is_no_part_of_a_state_and_ends_a_window(tmp_path: Path) -> None:
    entries = [*writes(2), through(800), *writes(1, sector=400), through(808), FLUSHED]
    with read_log(written_log(tmp_path / "log", entries)) as log:
        found = enumerated(log, 100)
        images = [(point.position, kept(log, point)) for point in found.points]
        # Two writes before the first of them, three before the second and at the flush: no state twice.
        assert (20, 20, 20) == (found.small_states, len(images), len(set(images)))
        assert {2: 4, 4: 8, 5: 8} == Counter(position for position, _ in images)
        assert all({2, 4} <= {entry for entry, _, _ in pieces} for at, pieces in images if at == 5)
        assert not any(2 in {entry for entry, _, _ in pieces} for at, pieces in images if at == 2)


def test_no_part_of_a_larger_window_is_one_that_went_past_the_cache(tmp_path: Path) -> None:
    entries = [through(8000), *writes(13, blocks=2), FLUSHED]
    with read_log(written_log(tmp_path / "log", entries)) as log:
        found = enumerated(log, 100)
        single = [point for point in found.points if point.state is not None]
        assert {Profile.WHOLE: 26, Profile.SUBSET_4K: 52} == Counter(point.profile for point in single)
        images = [kept(log, point) for point in single]
        # Both of a write's blocks are its two states with one of them missing, and those with one alone are others.
        assert len(images) == len(set(images))
        assert all(pieces[0] == (0, 0, 4096) for pieces in images)
