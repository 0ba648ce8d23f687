"""What a run of a client says of the server's files."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from bedplate.host.pages import FileExtent
from bedplate.units import MIB
from bedplate.visit import recording

if TYPE_CHECKING:
    from pathlib import Path


def mapped(path: Path, *, written_back: bool) -> tuple[FileExtent, ...]:
    """Every file in two pieces, one of which has no place yet."""
    assert not written_back
    half = path.stat().st_size // 2
    return (FileExtent(0, half, 4096), FileExtent(half, half, None))


def test_the_pieces_of_larger_files_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "extents_of", mapped)
    sizes = {"catalogue": MIB - 1, "table": MIB, "index": 3 * MIB}
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(bytes(size))
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "index")
    files = [*sorted(tmp_path.iterdir()), tmp_path / "dropped meanwhile"]
    assert {"data_extents": 4, "data_bytes": 4 * MIB} == recording.pieces_of(files)


def test_without_a_map_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unmapped(path: Path, *, written_back: bool) -> tuple[FileExtent, ...]:
        raise OSError(errno.EOPNOTSUPP, "no map", str(path))

    monkeypatch.setattr(recording, "extents_of", unmapped)
    (tmp_path / "table").write_bytes(bytes(MIB))
    assert {} == recording.pieces_of([tmp_path / "table"])
    assert {} == recording.pieces_of([])
