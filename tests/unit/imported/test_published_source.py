"""What is read of somebody's files: in bounds, no link followed, and every fault a sentence that names the file."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import pytest

from bedplate.errors import PlanError
from bedplate.imported.published import MOST_LEVELS, PublishedSource, SourceUnreadable, shown


def test_links_and_pipes_are_left_out_and_named(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("s")
    inner = tmp_path / "source"
    inner.mkdir()
    (inner / "a.txt").write_text("a")
    (inner / "b.txt").symlink_to(outside / "secret.txt")
    (inner / "c").symlink_to(outside)
    os.mkfifo(inner / "d.txt")
    source = PublishedSource(inner)
    assert (PurePosixPath("a.txt"),) == source.files
    assert ["b.txt", "c", "d.txt"] == sorted(str(each).split(" ")[0] for each in source.problems)
    for name in ("b.txt", "d.txt"):
        with pytest.raises(SourceUnreadable, match=name):
            source.read_bytes(PurePosixPath(name))


def test_a_file_without_an_end_or_of_another_text_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 101)
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    source = PublishedSource(tmp_path)
    assert b"x" * 101 == source.read_bytes(PurePosixPath("large"), most=101)
    with pytest.raises(SourceUnreadable, match="large has more than 100 bytes"):
        source.read_bytes(PurePosixPath("large"), most=100)
    with pytest.raises(SourceUnreadable, match="latin cannot be read: it is no UTF-8: byte 3 is 0xe9"):
        source.read_text(PurePosixPath("latin"))


def test_a_folder_is_looked_at_to_a_depth(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*("d" for _ in range(MOST_LEVELS + 1)))
    deep.mkdir(parents=True)
    (deep / "f").write_text("x")
    (deep.parent.parent / "g").write_text("x")
    source = PublishedSource(tmp_path)
    assert ["g"] == [file.name for file in source.files]
    assert ["source-entry-left-out"] == [each.code for each in source.problems]


@pytest.mark.parametrize("what", ["nothing", "pipe", "loop"])
def test_what_is_no_source_is_refused(tmp_path: Path, what: str) -> None:
    path = tmp_path / "source"
    if what == "pipe":
        os.mkfifo(path)
    if what == "loop":
        path.symlink_to(path)
    with pytest.raises(PlanError, match="source"):
        PublishedSource(path)


def test_a_file_alone_is_a_source_with_the_folders_above_it(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "run.log").write_text("x")
    source = PublishedSource(tmp_path / "set" / "run.log")
    (file,) = source.files
    assert (tmp_path.name, "set") == source.above(file, 2)


def test_a_path_is_shown_without_what_a_terminal_obeys() -> None:
    assert "a\ufffd\ufffdb" == shown(os.fsdecode(b"a\x1b\xffb"))
