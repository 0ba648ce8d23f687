"""What is volatile at a cut, and what of it is kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.tools.written_log import DISCARD, FLUSH, FUA, MARK, Written, written_log

from bedplate.cuts.log import CrashState, Piece, read_log, window
from bedplate.cuts.records import CutPoint, Placement, Profile


def sectors(device: int, sector: int, count: int, flags: int = 0) -> Written:
    return Written(device, sector, b"x" * 512 * count, flags)


def window_of(
    tmp_path: Path,
    entries: Sequence[Written],
    profile: Profile = Profile.LOST,
    *,
    position: int | None = None,
    window_bytes: int = 10**6,
    measured_from: int = 0,
    control: bool = False,
    seed: int = 1,
) -> CrashState:
    with read_log(written_log(tmp_path / "log", entries)) as log:
        point = CutPoint(
            0, len(log) if position is None else position, profile, Placement.UNIFORM, seed, control
        )
        return window(log, point, window_bytes, measured_from=measured_from)


TWO_FLUSHES = [
    sectors(0, 0, 1),
    Written(flags=FLUSH),
    sectors(0, 1, 2),
    sectors(0, 3, 3),
    Written(flags=FLUSH),
    sectors(0, 6, 4),
]


def test_what_came_after_the_last_flush_is_volatile(tmp_path: Path) -> None:
    cut = window_of(tmp_path, TWO_FLUSHES)
    assert (4, 1, 2048, 0) == (
        cut.flush_position,
        cut.volatile_writes,
        cut.volatile_bytes,
        cut.kept_writes,
    )
    assert 5 == cut.durable_until[0]


def test_a_flush_at_the_cut_itself_was_not_issued(tmp_path: Path) -> None:
    cut = window_of(tmp_path, TWO_FLUSHES, position=4)
    assert (1, 2, 2560) == (cut.flush_position, cut.volatile_writes, cut.volatile_bytes)


def test_after_a_flush_nothing_is_volatile(tmp_path: Path) -> None:
    cut = window_of(tmp_path, TWO_FLUSHES, position=5)
    assert (4, 0, (5, 5)) == (cut.flush_position, cut.volatile_writes, cut.durable_until)


def test_a_control_ignores_flushes_and_fua(tmp_path: Path) -> None:
    entries = [*TWO_FLUSHES, sectors(0, 20, 1, FUA)]
    cut = window_of(tmp_path, entries, control=True)
    assert (None, 5, ()) == (cut.flush_position, cut.volatile_writes, cut.kept)


def test_fua_goes_past_the_cache(tmp_path: Path) -> None:
    cut = window_of(tmp_path, [*TWO_FLUSHES, sectors(0, 20, 1, FUA)])
    assert (Piece(6, 0, 512),) == cut.kept
    assert (2, 1) == (cut.volatile_writes, cut.kept_writes)


def test_a_flush_with_data_flushes_before_them(tmp_path: Path) -> None:
    cut = window_of(tmp_path, [sectors(0, 0, 1), sectors(0, 1, 2, FLUSH)])
    assert (1, 1, 1024) == (cut.flush_position, cut.volatile_writes, cut.volatile_bytes)


@pytest.mark.parametrize(
    ("window_bytes", "writes", "flush"),
    [(10**6, 2, 0), (2560, 2, 0), (2559, 1, None), (1536, 1, None), (1535, 0, None), (0, 0, None)],
)
def test_a_cache_holds_whole_writes_up_to_its_size(
    window_bytes: int, writes: int, flush: int | None, tmp_path: Path
) -> None:
    entries = [Written(flags=FLUSH), sectors(0, 1, 2), sectors(0, 3, 3)]
    cut = window_of(tmp_path, entries, window_bytes=window_bytes)
    assert (writes, flush) == (cut.volatile_writes, cut.flush_position)


def test_what_came_before_the_clients_is_on_the_medium(tmp_path: Path) -> None:
    cut = window_of(tmp_path, [sectors(0, 0, 1), sectors(0, 1, 2), sectors(0, 3, 3)], measured_from=2)
    assert (1, 1536, None) == (cut.volatile_writes, cut.volatile_bytes, cut.flush_position)


def test_a_flush_before_the_clients_began_bounds_nothing(tmp_path: Path) -> None:
    assert window_of(tmp_path, TWO_FLUSHES[:4], measured_from=2).flush_position is None


def test_each_device_has_its_own_flushes_and_its_own_cache(tmp_path: Path) -> None:
    entries = [
        sectors(0, 0, 1),
        sectors(1, 0, 2),
        sectors(1, 2, 2),
        Written(1, flags=FLUSH),
        sectors(0, 1, 1),
        sectors(1, 4, 2),
    ]
    cut = window_of(tmp_path, entries)
    assert ((None, 3), 3, 2048) == (cut.flush_positions, cut.volatile_writes, cut.volatile_bytes)
    bounded = window_of(tmp_path, entries, window_bytes=1024)
    assert (3, (0, 5)) == (bounded.volatile_writes, bounded.durable_until)


# The write of sector 1 was issued before the flush, and complete behind it.
LATE = [sectors(0, 0, 1), Written(flags=FLUSH), Written(sector=1, data=b"x" * 512, late=2), sectors(0, 2, 1)]


@pytest.mark.parametrize(
    ("position", "lost", "kept_in_order"),
    [
        # Before it was issued; on its way, before the flush and behind it; complete, and of the flush's window all the same.
        (0, 0, []),
        (1, 2, [0]),
        (2, 1, []),
        (3, 1, [2]),
        (4, 2, [2, 3]),
    ],
)
def test_a_flush_covers_what_was_complete_before_it(
    position: int, lost: int, kept_in_order: list[int], tmp_path: Path
) -> None:
    assert lost == window_of(tmp_path, LATE, position=position).volatile_writes
    kept = window_of(tmp_path, LATE, Profile.ORDERED, position=position).kept
    assert kept_in_order == [piece.entry for piece in kept]


def test_a_write_on_its_way_is_kept_or_not_as_any_other(tmp_path: Path) -> None:
    found = {
        tuple(piece.entry for piece in window_of(tmp_path, LATE, Profile.WHOLE, position=2, seed=seed).kept)
        for seed in range(20)
    }
    assert {(), (2,)} == found


def test_a_protected_cache_may_lack_what_it_had_not_answered(tmp_path: Path) -> None:
    """And nothing else: what was complete before the cut is there whatever the seed is."""
    entries = [*LATE, Written(sector=9, data=b"x" * 512, late=3)]
    found = {
        tuple(
            piece.entry for piece in window_of(tmp_path, entries, Profile.ORDERED, position=2, seed=seed).kept
        )
        for seed in range(40)
    }
    assert {(), (2,), (4,), (2, 4)} == found
    assert (0,) not in found
    behind = {window_of(tmp_path, LATE, Profile.ORDERED, position=4, seed=seed).kept for seed in range(20)}
    assert 1 == len(behind)


@pytest.mark.parametrize(
    "profile", [Profile.SUBSET_4K, Profile.SUBSET_512, Profile.WHOLE, Profile.UNTORN_16K]
)
def test_a_discard_in_the_cache_is_done_or_not_and_never_torn(profile: Profile, tmp_path: Path) -> None:
    entries = [sectors(0, 0, 1), Written(flags=DISCARD, discarded_sectors=999), sectors(0, 3, 1)]
    cuts = [window_of(tmp_path, entries, profile, seed=seed) for seed in range(60)]
    assert {(2, 1)} == {(cut.volatile_writes, cut.volatile_discards) for cut in cuts}
    of_discard = {tuple(piece for piece in cut.kept if piece.entry == 1) for cut in cuts}
    assert {(), (Piece(1, 0, 999 * 512),)} == of_discard
    assert () == window_of(tmp_path, entries, Profile.LOST).kept
    flushed = [*entries, Written(flags=FLUSH)]
    assert 0 == window_of(tmp_path, flushed, profile).volatile_discards


def test_discards_and_marks_are_no_writes(tmp_path: Path) -> None:
    entries = [
        sectors(0, 0, 1),
        Written(flags=DISCARD, discarded_sectors=9),
        Written(flags=MARK, text=b"A 0 1 1"),
    ]
    cut = window_of(tmp_path, entries, Profile.ORDERED)
    assert (1, 512, 1) == (cut.volatile_writes, cut.volatile_bytes, cut.kept_writes)
    assert (Piece(0, 0, 512), Piece(1, 0, 9 * 512)) == cut.kept


def test_torn_at_the_blocks_of_the_device(tmp_path: Path) -> None:
    # Sectors 5 to 21: three blocks of 4 KiB, the first of 3 sectors, the last of 6.
    edges = {0, 3 * 512, 11 * 512, 17 * 512}
    seen = set()
    for seed in range(40):
        for piece in window_of(tmp_path, [sectors(0, 5, 17)], Profile.SUBSET_4K, seed=seed).kept:
            assert {piece.start, piece.start + piece.length} <= edges
            seen |= {piece.start, piece.start + piece.length}
    assert edges == seen


def test_whole_writes_are_kept_or_not(tmp_path: Path) -> None:
    entries = [sectors(0, 20 * k, 17) for k in range(64)]
    cut = window_of(tmp_path, entries, Profile.WHOLE)
    assert {(0, 17 * 512)} == {(piece.start, piece.length) for piece in cut.kept}
    assert cut.kept_writes == len(cut.kept)
    # 64 fair coins: outside of this in fewer than one of ten million draws.
    assert 12 <= len(cut.kept) <= 52


@pytest.mark.parametrize(
    ("profile", "sector", "count", "is_whole"),
    [
        (Profile.UNTORN_16K, 32, 32, True),
        (Profile.UNTORN_16K, 16, 16, True),
        (Profile.UNTORN_16K, 8, 8, True),
        # Longer than the unit, not aligned to itself, no power of two.
        (Profile.UNTORN_8K, 32, 32, False),
        (Profile.UNTORN_16K, 16, 32, False),
        (Profile.UNTORN_16K, 8, 16, False),
        (Profile.UNTORN_16K, 0, 24, False),
    ],
)
def test_a_unit_keeps_a_write_whole_that_it_covers_and_no_other(
    profile: Profile, sector: int, count: int, tmp_path: Path, *, is_whole: bool
) -> None:
    entries = [sectors(0, sector, count)]
    lengths = {
        sum(piece.length for piece in window_of(tmp_path, entries, profile, seed=seed).kept)
        for seed in range(200)
    }
    assert {0, 512 * count} <= lengths
    assert is_whole == (lengths == {0, 512 * count})
    assert all(length % 4096 == 0 for length in lengths)


def test_a_granule_tears_at_its_own_multiples_alone(tmp_path: Path) -> None:
    # 24 kB from 8 kB on: the last 8 kB of one granule, and a whole one.
    found = {
        window_of(tmp_path, [sectors(0, 16, 48)], Profile.SUBSET_16K, seed=seed).kept for seed in range(40)
    }
    assert {(), (Piece(0, 0, 8192),), (Piece(0, 8192, 16384),), (Piece(0, 0, 24576),)} == found
