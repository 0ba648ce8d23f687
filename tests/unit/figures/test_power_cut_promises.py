"""What cuts may promise beyond what was declared, and which cuts have no share in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.studies.judged_cuts import CELL, DECLARED, changed, good, judged, made
from tests.support.studies.planted_reasons import planted
from tests.support.studies.synthetic_power_cuts import (
    POINTS,
    RECORDING,
    SPEC,
    RawCuts,
    controls,
    point,
    points_of,
)

from bedplate.cuts.points import CutCounts
from bedplate.cuts.records import ChosenState, Placement, PointOutcome, PointRecord, Profile
from bedplate.cuts.verdict import CUTS_FOR_MORE, measured_durability
from bedplate.model.cell import ClusterLevels
from bedplate.model.device_cache import CACHES, PROTECTED, VOLATILE_4K, VOLATILE_512
from bedplate.model.durability import DURABLE, UNSAFE
from bedplate.model.levels import Levels
from bedplate.model.reason import FULL_PAGE_WRITES_OFF, sentences
from bedplate.model.visit import Durability, FlushCount

TORN_DECLARED = Durability(
    "unsafe", "unknown", "declared", planted("full_page_writes = off: a page …", code=FULL_PAGE_WRITES_OFF)
)


def test_without_full_page_writes_only_weighted_cuts_that_tear_a_page_may_promise_more(
    tmp_path: Path,
) -> None:
    verdict = judged(tmp_path, good(durability=TORN_DECLARED))
    many = verdict
    for cache in CACHES:
        many = changed(many, cache, drawn=CutCounts({"ok": 500}))
    assert many.cuts(VOLATILE_4K).tearing == 0
    for tearing, stands in ((0, UNSAFE), (CUTS_FOR_MORE - 1, UNSAFE), (CUTS_FOR_MORE, DURABLE)):
        found = measured_durability(changed(many, VOLATILE_4K, tearing=tearing), TORN_DECLARED)
        assert found is not None
        # No cut in order tears anything, so that a protected cache is as little known as before.
        assert (found.volatile_cache, found.protected_cache) == (stands, "unknown")
        words = f"unsafe as declared, as {tearing} weighted cuts that tear a page are too few to promise more"
        assert any(words in reason.sentence for reason in found.reasons) is (stands == UNSAFE)
    # To promise less, any cut is enough; and where the setting is on, any counts.
    bad = changed(many, PROTECTED, drawn=CutCounts({"loss": 1}), shown=UNSAFE)
    found = measured_durability(bad, TORN_DECLARED)
    assert found is not None
    assert found.protected_cache == UNSAFE
    other = measured_durability(
        many, Durability("unsafe", "unknown", "declared", planted("64 flushes in 0 syncs"))
    )
    assert other is not None
    assert (other.volatile_cache, other.protected_cache) == (DURABLE, DURABLE)


@pytest.mark.parametrize(
    ("profile", "placement", "page_bytes", "volatile_writes", "control", "is_counted"),
    [
        (Profile.SUBSET_4K, Placement.WEIGHTED, 8192, 9, False, True),
        (Profile.SUBSET_512, Placement.WEIGHTED, 8192, 9, False, True),
        (Profile.SUBSET_512, Placement.WEIGHTED, 4096, 9, False, True),
        (Profile.SUBSET_4K, Placement.WEIGHTED, 4096, 9, False, False),
        (Profile.SUBSET_4K, Placement.UNIFORM, 8192, 9, False, False),
        (Profile.SUBSET_4K, Placement.WEIGHTED, 8192, 0, False, False),
        (Profile.WHOLE, Placement.WEIGHTED, 8192, 9, False, False),
        (Profile.LOST, Placement.WEIGHTED, 8192, 9, False, False),
        (Profile.ORDERED, Placement.WEIGHTED, 8192, 9, False, False),
        (Profile.SUBSET_4K, Placement.WEIGHTED, 8192, 9, True, False),
    ],
)
def test_a_cut_tears_pages_within_one_and_where_writes_waited(
    tmp_path: Path,
    profile: Profile,
    placement: Placement,
    page_bytes: int,
    volatile_writes: int,
    *,
    control: bool,
    is_counted: bool,
) -> None:
    plain = point(90, profile=profile, control=control)
    cut = replace(plain, point=replace(plain.point, placement=placement), volatile_writes=volatile_writes)
    cell = replace(CELL, build=replace(CELL.build, block_size_bytes=page_bytes))
    caches = judged(tmp_path, good(cell=cell, points=(cut,))).caches
    assert sum(found.tearing for found in caches.values()) == is_counted


def test_without_a_cut_in_order_there_is_no_verdict_where_a_protected_cache_was_declared_to_do(
    tmp_path: Path,
) -> None:
    points = (*(each for each in points_of({}) if each.point.profile is not Profile.ORDERED), *controls())
    spec = replace(SPEC, levels=Levels({**SPEC.levels, "points": 30}))
    refused = judged(tmp_path / "durable", good(points=points, spec=spec))
    assert any("no cut was made in order" in reason.sentence for reason in refused.refused)
    other = good(points=points, spec=spec, durability=Durability("unsafe", "unknown", "declared"))
    assert judged(tmp_path / "unknown", other).refused == ()


@pytest.mark.parametrize(
    ("per_sync", "flushes", "words"),
    [
        # Half of the syncs flushed: 8000 commits of 2 sessions should show 1000 flushes at the least, and 80 stray ones.
        ((32, 32), 6000, None),
        ((32, 32), 920, None),
        ((32, 32), 919, "where 0.5 of a sync in the visit flushed its device"),
        ((32, 32), 16081, "where 0.5 of a sync in the visit flushed its device at the most"),
        # One in 64, as a journal commits by itself: a flush for each commit is another device.
        ((1, 1), 6000, "where 0.016 of a sync in the visit flushed its device at the most"),
        ((1, 1), 0, None),
        ((0, 2), 1081, "at the most"),
        ((0, 2), 0, None),
        # What flushes now and then at one pattern and always at the other bounds nothing from above.
        ((64, 32), 40000, None),
        ((64, 32), 900, "where 0.5 of a sync"),
    ],
)
def test_flushes_between_none_and_one_per_sync_are_judged_too(
    tmp_path: Path, per_sync: tuple[int, int], flushes: int, words: str | None
) -> None:
    counts = tuple(
        FlushCount("data", pattern, 64, count)
        for pattern, count in zip(("appending", "overwriting"), per_sync, strict=True)
    )
    refused = judged(
        tmp_path, good(flush_counts=counts, recording=replace(RECORDING, flushes=flushes))
    ).refused
    assert (refused == ()) if words is None else (words in refused[0].sentence), refused


@pytest.mark.parametrize("name", ["fsync", "synchronous_commit", None])
def test_controls_of_what_never_waits_are_said_to_prove_less(tmp_path: Path, name: str | None) -> None:
    settings = Levels({name: "off"} if name else {})
    raw = good(cell=replace(CELL, cluster=ClusterLevels(settings=settings)))
    verdict = judged(tmp_path, raw)
    assert verdict.refused == ()
    found = measured_durability(verdict, DECLARED)
    assert found is not None
    assert any("prove less here" in reason.sentence for reason in found.reasons) is (name is not None)


def sought(number: int, outcome: PointOutcome, profile: Profile) -> PointRecord:
    """One cut where metadata waits."""
    made_at = point(POINTS + number, outcome, profile)
    return replace(made_at, point=replace(made_at.point, placement=Placement.SOUGHT))


def sought_of(outcomes: dict[Profile, PointOutcome], count: int = 6) -> tuple[PointRecord, ...]:
    """As many of each profile that tears."""
    profiles = (Profile.SUBSET_512, Profile.SUBSET_4K)
    return tuple(
        sought(2 * turn + place, outcomes.get(profile, PointOutcome.OK), profile)
        for turn in range(count)
        for place, profile in enumerate(profiles)
    )


def test_a_torn_directory_block_is_unsafe_with_small_sectors_alone_and_no_share(tmp_path: Path) -> None:
    torn = sought_of({Profile.SUBSET_512: PointOutcome.FILE_SYSTEM_LOST})
    recording = replace(RECORDING, sought=12, waiting={"directory block": 1})
    figures, verdict = made(tmp_path, good(points=(*points_of({}), *torn, *controls()), recording=recording))
    assert verdict is not None
    assert verdict.refused == ()
    small = verdict.cuts(VOLATILE_512)
    assert (small.drawn, small.sought) == (CutCounts({"ok": 10}), CutCounts({"file system lost": 6}))
    assert (verdict.cuts(VOLATILE_4K).sought, verdict.drawn_cuts.cuts) == (CutCounts({"ok": 6}), 40)
    found = measured_durability(verdict, DECLARED)
    assert found is not None
    assert (DURABLE, UNSAFE, DURABLE) == tuple(
        found.class_with(cache) for cache in (VOLATILE_4K, VOLATILE_512, PROTECTED)
    )
    assert (
        "volatile cache, 512-byte sectors: 0 of 10 bad; where metadata waits 6 of 6 bad: 6 file system lost"
        in sentences(found.reasons)
    )
    # Their number says nothing of how often, and stands in no share.
    by_name = {(item.metric, item.phase, item.item): item.value for item in figures.figures}
    assert (6, 6) == tuple(by_name[name, "sought", VOLATILE_512] for name in ("power_cuts", "power_cuts_bad"))
    assert ("power_cut_bad_share", "sought", VOLATILE_512) not in by_name
    assert by_name["power_cut_bad_share", "cache", VOLATILE_512] == 0
    assert by_name["power_cuts_bad", "measure", ""] == 0


def test_a_sought_cut_that_is_missing_refuses_the_verdict(tmp_path: Path) -> None:
    recording = replace(RECORDING, sought=13)
    points = (*points_of({}), *sought_of({}), *controls())
    (reason,) = judged(tmp_path, good(points=points, recording=recording)).refused
    assert "40 of 40 cuts and 12 of 13 that were sought or enumerated were judged" in reason.sentence


def test_a_sought_cut_is_none_of_those_that_may_promise_more(tmp_path: Path) -> None:
    declared = Durability("unsafe", "durable", "declared")
    points = (*points_of({}), *sought_of({}, count=100), *controls())
    found = measured_durability(judged(tmp_path, good(points=points, durability=declared)), declared)
    assert found is not None
    assert (found.volatile_cache, found.volatile_cache_512) == (UNSAFE, UNSAFE)


def enumerated(number: int, outcome: PointOutcome, *, waiting: int) -> PointRecord:
    """One state of a window of so many writes."""
    made_at = point(POINTS + number, outcome, Profile.WHOLE)
    at = replace(made_at.point, placement=Placement.ENUMERATED, state=ChosenState(parts=(number,), kept=True))
    return replace(made_at, point=at, volatile_writes=waiting)


def with_states(
    small: tuple[PointOutcome, ...], large: tuple[PointOutcome, ...], small_states: int
) -> RawCuts:
    states = (
        *(enumerated(number, outcome, waiting=12) for number, outcome in enumerate(small)),
        *(enumerated(len(small) + number, outcome, waiting=13) for number, outcome in enumerate(large)),
    )
    recording = replace(RECORDING, states=len(states), small_states=small_states)
    return good(points=(*points_of({}), *states, *controls()), recording=recording)


OK, DETECTED = PointOutcome.OK, PointOutcome.DETECTED


@pytest.mark.parametrize(
    ("small", "large", "small_states", "words"),
    [
        ((OK,) * 4, (OK,) * 3, 4, "all 4 states of windows up to 12 writes and 3 of larger ones: none bad"),
        ((OK,) * 4, (), 6050, "4 of 6,050 states of windows up to 12 writes: none bad"),
        ((), (OK, DETECTED), 0, "2 states of larger windows: 1 bad (1 corrupt, detected)"),
    ],
)
def test_states_that_were_tried_are_a_sentence_and_no_share(
    small: tuple[PointOutcome, ...],
    large: tuple[PointOutcome, ...],
    small_states: int,
    words: str,
    tmp_path: Path,
) -> None:
    verdict = judged(tmp_path, with_states(small, large, small_states))
    assert verdict.refused == ()
    assert verdict.states is not None
    assert words == verdict.states.words
    assert 40 == verdict.drawn_cuts.cuts


def test_a_state_that_is_bad_makes_its_cell_unsafe(tmp_path: Path) -> None:
    found = measured_durability(judged(tmp_path, with_states((OK, DETECTED), (), 4)), DECLARED)
    assert found is not None
    assert (UNSAFE, DURABLE) == (found.volatile_cache, found.protected_cache)
    assert any(
        "states tried one by one: 1 of 2 bad: 1 corrupt, detected" in words
        for words in sentences(found.reasons)
    )


def test_a_state_that_is_missing_refuses_the_verdict(tmp_path: Path) -> None:
    raw = with_states((OK,) * 4, (), 4)
    recording = replace(RECORDING, states=5, small_states=4)
    (reason,) = judged(tmp_path, replace(raw, recording=recording)).refused
    assert "4 of 5 that were sought or enumerated were judged" in reason.sentence
