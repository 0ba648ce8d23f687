from __future__ import annotations

import pytest

from bedplate.host.pages.extents import FileExtent, page_layout
from bedplate.model.page_writes import PageLayout

KB = 1024


def layout(*extents: FileExtent, size_bytes: int = 32 * KB, page_bytes: int = 8 * KB) -> PageLayout:
    return page_layout([(size_bytes, extents)], page_bytes)


def test_pages_at_multiples_of_their_size_are_covered() -> None:
    assert PageLayout(1, 4, 1, 0, 0, 0) == layout(FileExtent(0, 32 * KB, 64 * KB))


def test_an_extent_that_begins_between_two_multiples_leaves_all_its_pages_unaligned() -> None:
    assert PageLayout(1, 4, 1, 4, 0, 0) == layout(FileExtent(0, 32 * KB, 4 * KB))


def test_a_page_in_two_places_is_divided_and_not_unaligned() -> None:
    found = layout(FileExtent(0, 12 * KB, 64 * KB), FileExtent(12 * KB, 20 * KB, 128 * KB + 4 * KB))
    assert (1, 0) == (found.divided, found.unaligned)


def test_two_extents_in_one_place_are_one_page() -> None:
    found = layout(FileExtent(0, 4 * KB, 64 * KB), FileExtent(4 * KB, 28 * KB, 68 * KB))
    assert (2, 0, 0) == (found.extents, found.divided, found.unaligned)


@pytest.mark.parametrize(
    "extents",
    [
        (FileExtent(0, 8 * KB, 0), FileExtent(16 * KB, 16 * KB, 16 * KB)),
        (FileExtent(0, 8 * KB, 0), FileExtent(8 * KB, 4 * KB, None), FileExtent(12 * KB, 20 * KB, 12 * KB)),
        (FileExtent(0, 24 * KB, 0),),
        (FileExtent(0, 28 * KB, 0),),
    ],
    ids=["a hole", "not yet written back", "short", "short by half a page"],
)
def test_a_page_that_is_not_wholly_mapped_has_no_place(extents: tuple[FileExtent, ...]) -> None:
    found = layout(*extents)
    assert (1, 1) == (found.unmapped, found.misplaced)


def test_a_rest_that_is_no_page_counts_nowhere() -> None:
    assert PageLayout(0, 0, 0, 0, 0, 0) == layout(FileExtent(0, 8 * KB, 4 * KB), size_bytes=8 * KB - 1)
    assert layout(FileExtent(0, 12 * KB, 0), size_bytes=12 * KB).pages == 1


def test_several_files_are_counted_together() -> None:
    one = (8 * KB, (FileExtent(0, 8 * KB, 4 * KB),))
    assert PageLayout(2, 2, 2, 2, 0, 0) == page_layout([one, one], 8 * KB)
