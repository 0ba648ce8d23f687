"""Free space from what the kernel answers: of Btrfs as extents and as bitmaps."""

from __future__ import annotations

import random
from pathlib import Path

from bedplate.filesystem.aged_image import free_space_of, in_bitmap, joined_pieces
from bedplate.model.filesystem import AGE_PROFILES, FILLS, TRAITS


def test_pieces_that_touch_are_one() -> None:
    assert (300, 50) == joined_pieces([(1000, 50), (100, 100), (0, 100), (200, 100)])
    assert () == joined_pieces([])


def test_a_bitmap_has_a_bit_for_each_sector() -> None:
    drawn = random.Random(1)
    bits = [drawn.random() < 0.5 for _ in range(2048)]
    data = bytearray(256)
    for at, bit in enumerate(bits):
        data[at // 8] |= bit << at % 8
    found = list(in_bitmap(1 << 30, bytes(data), 4096))
    free = [False] * 2048
    for start, length in found:
        assert 0 == length % 4096
        first = (start - (1 << 30)) // 4096
        for at in range(first, first + length // 4096):
            free[at] = True
    assert bits == free
    # Runs, not single sectors.
    assert len(found) < sum(bits)


def test_a_type_without_a_way_has_a_fill_and_no_pieces(tmp_path: Path) -> None:
    found = free_space_of("f2fs", tmp_path, "made")
    assert 0 < found.fill < 1
    assert (None, None) == (found.extents, found.free_bytes)


def test_the_types_that_age_are_those_whose_pieces_are_known() -> None:
    assert {"ext4", "xfs", "btrfs"} == {kind for kind, each in TRAITS.items() if "aged" in each.features}
    for profile in AGE_PROFILES.values():
        assert profile.left_share < profile.full_share
    assert all(0 < share < 1 for share in FILLS.values())
