"""Where bedplate's own disks are full, they are named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bedplate.host import files


def space(free_blocks: int, *, files: int = 1000, free_files: int = 10) -> os.statvfs_result:
    return os.statvfs_result(
        (4096, 4096, 100_000, free_blocks, free_blocks, files, free_files, free_files, 0, 255)
    )


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (space(10_000), None),
        (space(3), "/study: No space left on device (12 KiB free); free some room there"),
        (space(10_000, free_files=0), "/study: No space left on device (no inode is free)"),
        # Btrfs counts no inodes.
        (space(10_000, files=0, free_files=0), None),
    ],
)
def test_a_disk_without_room_or_without_inodes_is_full(
    found: os.statvfs_result, words: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bedplate.host.files.os.statvfs", lambda _path: found)
    said = files.full_places(Path("/study"))
    assert (words is None) == (said == ())
    assert words is None or said[0].startswith(words)


def test_what_is_not_there_is_not_full(tmp_path: Path) -> None:
    assert () == files.full_places(tmp_path / "gone")


def test_a_program_that_removed_what_it_wrote_is_believed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    said = "cc1: fatal error: error writing to /tmp/x.s: No space left on device"
    (found,) = files.places_without_room(said, tmp_path, other, tmp_path)
    assert found.startswith(f"{tmp_path} or {other}: No space left on device")
    assert () == files.places_without_room("driver.c:1: error: expected identifier", tmp_path)
