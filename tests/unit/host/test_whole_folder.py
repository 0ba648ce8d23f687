from __future__ import annotations

import os
from pathlib import Path

import pytest

from bedplate.host.files import put_in_place


def tree(folder: Path) -> Path:
    (folder / "a/b").mkdir(parents=True)
    (folder / "file").write_text("1")
    (folder / "a/b/file").write_text("2")
    (folder / "a/link").symlink_to("/no/such")
    return folder


def test_everything_is_on_disk_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = tree(tmp_path / "fresh")
    synced: list[tuple[str, bool]] = []

    def fsync(file: int) -> None:
        name = str(Path(f"/proc/self/fd/{file}").readlink()).removeprefix(f"{tmp_path}")
        synced.append((name, fresh.exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    put_in_place(fresh, tmp_path / "place")
    before = {name for name, was_fresh in synced if was_fresh}
    assert before == {"/fresh", "/fresh/a", "/fresh/a/b", "/fresh/file", "/fresh/a/b/file"}
    assert synced[-1] == ("", False)
    assert (tmp_path / "place/a/b/file").read_text() == "2"


def test_what_was_there_is_replaced_and_no_file_stays_open(tmp_path: Path) -> None:
    (tmp_path / "place/half").mkdir(parents=True)
    before = len(list(Path("/proc/self/fd").iterdir()))
    put_in_place(tree(tmp_path / "fresh"), tmp_path / "place")
    assert before == len(list(Path("/proc/self/fd").iterdir()))
    assert sorted(path.name for path in (tmp_path / "place").iterdir()) == ["a", "file"]
    assert not (tmp_path / "fresh").exists()


def test_a_power_cut_before_the_end_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(file: int) -> None:
        raise OSError(5, f"no disk for {file}")

    (tmp_path / "place").mkdir()
    (tmp_path / "place/old").touch()
    monkeypatch.setattr(os, "fsync", cut)
    with pytest.raises(OSError, match="no disk"):
        put_in_place(tree(tmp_path / "fresh"), tmp_path / "place")
    assert (tmp_path / "place/old").exists()
