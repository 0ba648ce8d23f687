from __future__ import annotations

import errno
import struct
from pathlib import Path

import pytest

from bedplate.cuts.records import PageLayout
from bedplate.host.pages import FileExtent, extents_of, page_layout

KB = 1024
# include/uapi/linux/fs.h
FIBMAP, FIGETBSZ = 1, 2


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
    "mapped",
    [
        (FileExtent(0, 8 * KB, 0), FileExtent(16 * KB, 16 * KB, 16 * KB)),
        (FileExtent(0, 8 * KB, 0), FileExtent(8 * KB, 4 * KB, None), FileExtent(12 * KB, 20 * KB, 12 * KB)),
        (FileExtent(0, 24 * KB, 0),),
        (FileExtent(0, 28 * KB, 0),),
    ],
    ids=["a hole", "not yet written back", "short", "short by half a page"],
)
def test_a_page_that_is_not_wholly_mapped_has_no_place(mapped: tuple[FileExtent, ...]) -> None:
    found = layout(*mapped)
    assert (1, 1) == (found.unmapped, found.misplaced)


def test_a_rest_that_is_no_page_counts_nowhere() -> None:
    assert PageLayout(0, 0, 0, 0, 0, 0) == layout(FileExtent(0, 8 * KB, 4 * KB), size_bytes=8 * KB - 1)
    assert layout(FileExtent(0, 12 * KB, 0), size_bytes=12 * KB).pages == 1


def test_several_files_are_counted_together() -> None:
    one = (8 * KB, (FileExtent(0, 8 * KB, 4 * KB),))
    assert PageLayout(2, 2, 2, 2, 0, 0) == page_layout([one, one], 8 * KB)


def blocks_only(monkeypatch: pytest.MonkeyPatch, places: list[int]) -> None:
    """A file system such as JFS: FIEMAP is not supported, FIBMAP is, in blocks of 4 KiB."""

    def answer(_file: int, request: int, argument: bytes | bytearray) -> bytes:
        if request == FIGETBSZ:
            return struct.pack("=i", 4 * KB)
        if request == FIBMAP:
            return struct.pack("=i", places[struct.unpack("=i", argument)[0]])
        raise OSError(errno.EOPNOTSUPP, "no map of extents")

    monkeypatch.setattr("fcntl.ioctl", answer)


def test_without_a_map_of_extents_that_of_single_blocks_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * (4 * 4 * KB + 1))
    blocks_only(monkeypatch, [100, 101, 0, 103, 50])
    found = extents_of(file, written_back=False)
    assert (
        FileExtent(0, 8 * KB, 400 * KB),
        FileExtent(12 * KB, 4 * KB, 412 * KB),
        FileExtent(16 * KB, 4 * KB, 200 * KB),
    ) == found


def test_a_sparse_file_of_any_length_is_not_asked_for_block_by_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    with file.open("wb") as opened:
        opened.truncate(1 << 40)
    blocks_only(monkeypatch, [])
    with pytest.raises(OSError, match="no map of extents"):
        extents_of(file, written_back=False)


def test_a_file_system_without_either_map_says_what_the_first_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(_file: int, request: int, _argument: bytes | bytearray) -> bytes:
        code = errno.EOPNOTSUPP if request not in (FIBMAP, FIGETBSZ) else errno.EINVAL
        raise OSError(code, "refused")

    monkeypatch.setattr("fcntl.ioctl", answer)
    file = tmp_path / "file"
    file.write_bytes(b"x")
    with pytest.raises(OSError, match="refused") as caught:
        extents_of(file)
    assert caught.value.errno == errno.EOPNOTSUPP
