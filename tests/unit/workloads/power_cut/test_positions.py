"""Where a log is cut: half anywhere, half where much waits for a flush, and controls where a lie must show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.tools.written_log import FLUSH, MARK, Written, written_log

from bedplate.cuts.choice import building_order, choose_points
from bedplate.cuts.log import Acknowledgements, read_log, window
from bedplate.cuts.records import DEFAULT_PROFILES, VOLATILE_PROFILES, CutPoint, Placement, Profile
from bedplate.errors import BedplateError

DRAWN = (Placement.UNIFORM, Placement.WEIGHTED)


def a_write(sector: int) -> Written:
    return Written(sector=sector, data=b"w" * 512)


FLUSHED = Written(flags=FLUSH)


def mark(client: int, sequence: int) -> Written:
    return Written(flags=MARK, text=f"A {client} {sequence} {sequence}".encode())


def transactions(count: int, clients: int = 2) -> list[Written]:
    """Each a write, a flush, a mark."""
    return [
        entry
        for number in range(count)
        for entry in (a_write(number), FLUSHED, mark(number % clients, number // clients))
    ]


def chosen(
    tmp_path: Path,
    entries: Sequence[Written],
    *,
    points: int = 40,
    profiles: Sequence[Profile] = DEFAULT_PROFILES,
    seed: int = 1,
    measured_from: int = 0,
    measured_until: int | None = None,
    window_bytes: int = 10**6,
    controls: int = 0,
) -> tuple[CutPoint, ...]:
    with read_log(written_log(tmp_path / "log", entries)) as log:
        return choose_points(
            log,
            points=points,
            profiles=profiles,
            seed=seed,
            measured_from=measured_from,
            measured_until=measured_until,
            window_bytes=window_bytes,
            controls=controls,
        )


@settings(deadline=None)
@given(
    count=st.integers(1, 60),
    points=st.integers(0, 60),
    controls=st.integers(0, 6),
    profiles=st.lists(st.sampled_from(Profile), min_size=1, max_size=5, unique=True),
    seed=st.integers(0, 2**63),
    data=st.data(),
)
def test_points_lie_within_the_measurement_and_are_spread_evenly(
    *,
    count: int,
    points: int,
    controls: int,
    profiles: list[Profile],
    seed: int,
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    entries = transactions(count)
    first = data.draw(st.integers(0, len(entries) - 1))
    until = data.draw(st.integers(first + 1, len(entries)))

    def choose() -> tuple[CutPoint, ...]:
        return chosen(
            tmp_path_factory.mktemp("log"),
            entries,
            points=points,
            profiles=profiles,
            seed=seed,
            measured_from=first,
            measured_until=until,
            controls=controls,
        )

    found = choose()
    assert choose() == found
    assert list(range(points + controls)) == [point.number for point in found]
    assert all(first < point.position <= until for point in found)
    assert [False] * points + [True] * controls == [point.control for point in found]
    for_each = Counter(point.profile for point in found[:points])
    assert max(for_each.values(), default=0) - min(for_each[profile] for profile in profiles) <= 1


def test_half_of_each_profiles_points_are_weighted(tmp_path: Path) -> None:
    found = chosen(tmp_path, [*transactions(50), a_write(1)], points=200)
    assert {(profile, placement): 25 for profile in DEFAULT_PROFILES for placement in DRAWN} == Counter(
        (point.profile, point.placement) for point in found
    )
    sixty = chosen(tmp_path, [*transactions(50), a_write(1)], points=60)
    assert {Placement.UNIFORM: 30, Placement.WEIGHTED: 30} == Counter(point.placement for point in sixty)


def test_weighted_points_lie_where_writes_wait(tmp_path: Path) -> None:
    # 990 entries at which nothing waits or one write does, and one burst of 9 writes before its flush.
    burst = [a_write(100 + k) for k in range(9)]
    entries = [*[FLUSHED] * 500, *burst, *[FLUSHED] * 491]
    found = chosen(tmp_path, entries, points=400)
    waiting = range(501, 510)
    weighted = [point.position for point in found if point.placement is Placement.WEIGHTED]
    assert all(position in waiting for position in weighted)
    # Position 509 has nine times the weight of 501.
    counts = Counter(weighted)
    assert counts[509] > 3 * counts[501]


def test_uniform_points_of_a_volatile_cache_lie_wherever_anything_waits_and_those_in_order_anywhere(
    tmp_path: Path,
) -> None:
    burst = [a_write(100 + k) for k in range(9)]
    entries = [*[FLUSHED] * 500, *burst, *[FLUSHED] * 491]
    found = chosen(tmp_path, entries, points=400)
    waiting = range(501, 510)
    uniform = [point for point in found if point.placement is Placement.UNIFORM]
    volatile = Counter(point.position for point in uniform if point.profile is not Profile.ORDERED)
    # Nothing waits elsewhere: a cut there would be one in order.
    assert set(waiting) == set(volatile)
    assert volatile[509] < 3 * volatile[501]
    assert 10 > sum(point.position in waiting for point in uniform if point.profile is Profile.ORDERED)


def test_where_nothing_ever_waits_all_are_uniform(tmp_path: Path) -> None:
    found = chosen(tmp_path, [FLUSHED] * 20)
    assert {Placement.UNIFORM} == {point.placement for point in found}


def test_another_seed_is_another_choice(tmp_path: Path) -> None:
    one, two = (chosen(tmp_path, transactions(50), seed=seed) for seed in (1, 2))
    assert [point.position for point in one] != [point.position for point in two]
    assert len(one) == len({point.seed for point in one})
    assert all(0 <= point.seed < 2**53 for point in one)


@pytest.mark.parametrize("window_bytes", [5 * 512, 10**6])
@pytest.mark.parametrize("clients", [1, 2, 3])
def test_a_lying_device_loses_a_promise_at_every_control(
    window_bytes: int, clients: int, tmp_path: Path
) -> None:
    entries = transactions(200, clients)
    found = chosen(tmp_path, entries, points=0, controls=6, window_bytes=window_bytes)
    assert [Profile.LOST, Profile.SUBSET_4K] * 3 == [point.profile for point in found]
    with read_log(tmp_path / "log") as log:
        for point in found:
            lost = range(window(log, point, window_bytes).durable_until[0], point.position)
            promised = Acknowledgements(log).before(point.position)
            # A transaction's write stands before its mark; on the medium are those before the window.
            there = Acknowledgements(log).before(lost.start + 1).highest
            assert 0 < promised.missing(there).transactions


def test_a_control_waits_until_a_client_was_promised_a_second_transaction(tmp_path: Path) -> None:
    # Nothing is promised for 90 % of the log; with three clients the fourth mark decides.
    entries = [*[a_write(k) for k in range(360)], *transactions(13, 3)]
    found = chosen(tmp_path, entries, points=0, controls=40)
    assert all(point.position >= 360 + 4 * 3 for point in found)


def test_controls_without_marks_are_still_chosen(tmp_path: Path) -> None:
    found = chosen(tmp_path, [a_write(k) for k in range(5)], points=0, controls=2)
    assert all(1 <= point.position <= 5 for point in found)


def test_a_recording_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BedplateError, match="the clients began at entry 6 and measuring ended at entry 6"):
        chosen(tmp_path, transactions(2), measured_from=6)
    with pytest.raises(ValueError, match="needs a profile"):
        chosen(tmp_path, transactions(2), profiles=())


def test_builders_never_go_back_but_once(tmp_path: Path) -> None:
    found = chosen(tmp_path, transactions(60), profiles=VOLATILE_PROFILES, controls=6, window_bytes=4 * 512)
    order = building_order(found)
    assert set(found) == set(order)
    with read_log(tmp_path / "log") as log:
        starts = [window(log, point, 4 * 512).durable_until[0] for point in order]
    ordinary = starts[:-6]
    assert (sorted(ordinary), sorted(starts[-6:])) == (ordinary, starts[-6:])
