from __future__ import annotations

from bedplate.model.free_space import CLASSES_KIB, FreeSpace, in_pieces
from bedplate.units import KIB, MIB


def test_half_of_the_free_space_is_weighed_by_bytes() -> None:
    found = in_pieces([4 * KIB] * 100 + [400 * KIB] * 2)
    assert (1200 * KIB, 102, 400 * KIB, 400 * KIB) == tuple(
        found[name] for name in ("free_bytes", "extents", "largest_bytes", "half_bytes")
    )


def test_each_class_holds_the_bytes_up_to_its_end() -> None:
    sizes = [16 * KIB, 17 * KIB, 128 * KIB, MIB, 300 * MIB]
    assert (16 * KIB, 17 * KIB, 128 * KIB, MIB, 0, 0, 300 * MIB) == in_pieces(sizes)["classes"]
    assert len(CLASSES_KIB) + 1 == len(in_pieces(sizes)["classes"])


def test_nothing_known_is_not_nothing_free() -> None:
    unknown = FreeSpace("made", 100, 40, 60, **in_pieces(None))
    full = FreeSpace("made", 100, 100, 0, **in_pieces([]))
    assert (None, None, None) == (unknown.free_bytes, unknown.extents, unknown.mean_bytes)
    assert (0, 0, 0, None) == (full.free_bytes, full.extents, full.largest_bytes, full.mean_bytes)


def test_the_fill_is_df_s() -> None:
    """ext4 keeps a twentieth for root: 90 of 100 used and 5 kept are full to 95 %."""
    assert FreeSpace("made", filesystem_bytes=100, used_bytes=90, available_bytes=5).fill == 90 / 95
