"""The files of a commit in a folder: as git keeps them, and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.support.sources.histories import commit, git, repository

from bedplate.errors import BedplateError, PlanError
from bedplate.host import git as export_module
from bedplate.host.git import export, forget, refresh, resolve
from bedplate.host.requirement import find_tool

pytestmark = pytest.mark.skipif(not all(map(find_tool, ("git",))), reason="histories are git's")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    found = repository(tmp_path / "src")
    (found / "link").symlink_to("sub/b.txt")
    commit(
        found, "First", {"a b.txt": "one\n", "sub/b.txt": "bee\n", "configure": "#!/bin/sh\n", "empty": ""}
    )
    git(found, "update-index", "--chmod=+x", "configure")
    git(found, "commit", "--quiet", "-m", "May run")
    return found


def _tree_object(tree: Path, *entries: str) -> str:
    """The commit of a tree that git's own commands would not make."""
    name = git(tree, "mktree", stdin="".join(f"{entry}\n" for entry in entries)).strip()
    return git(tree, "commit-tree", name, "-m", "planted").strip()


def test_an_export_has_each_file_its_mode_and_its_links(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(tree, resolve(tree, "master").hash, out)
    assert {"a b.txt", "sub", "sub/b.txt", "configure", "empty", "link"} == {
        str(path.relative_to(out)) for path in out.rglob("*")
    }
    assert (out / "a b.txt").read_text() == "one\n"
    assert 0o755 == (out / "configure").stat().st_mode & 0o777
    assert 0o644 == (out / "empty").stat().st_mode & 0o777
    assert (out / "link").read_text() == "bee\n"


def test_an_export_leaves_attributes_and_the_work_tree_aside(tree: Path, tmp_path: Path) -> None:
    commit(tree, "Attributes", {".gitattributes": "* export-ignore text eol=crlf ident\n", "id": "$Id$\n"})
    (tree / "id").write_text("not committed")
    export(tree, resolve(tree, "master").hash, tmp_path / "out")
    assert (tmp_path / "out/id").read_bytes() == b"$Id$\n"


def test_bytes_that_are_no_text_come_out_as_they_are(tree: Path, tmp_path: Path) -> None:
    content = bytes(range(256)) * 9000
    (tree / "binary").write_bytes(content)
    commit(tree, "Binary", {})
    export(tree, resolve(tree, "master").hash, tmp_path / "out")
    assert content == (tmp_path / "out/binary").read_bytes()


@pytest.mark.parametrize("target", ["/etc/passwd", "../../etc/passwd", "sub/../../x"])
def test_a_symbolic_link_out_of_the_tree_is_refused(tree: Path, tmp_path: Path, target: str) -> None:
    (tree / "out").symlink_to(target)
    commit(tree, "Link", {})
    with pytest.raises(PlanError, match="the symbolic link 'out' leads out of the tree"):
        export(tree, resolve(tree, "master").hash, tmp_path / "out")


def test_paths_that_lead_out_are_refused_all_at_once(tree: Path, tmp_path: Path) -> None:
    blob = git(tree, "hash-object", "-w", "--stdin", stdin="x").strip()
    inner = git(tree, "mktree", stdin=f"100644 blob {blob}\tpasswd\n").strip()
    planted = _tree_object(tree, f"040000 tree {inner}\t..", f"040000 tree {inner}\t.GIT")
    with pytest.raises(PlanError) as found:
        export(tree, planted, tmp_path / "out")
    assert 2 == len(found.value.reasons)
    assert not (tmp_path / "passwd").exists()
    assert not (tmp_path / "out").exists()


def test_nothing_is_written_through_a_link_that_a_folder_of_its_name_follows(
    tree: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    link = git(tree, "hash-object", "-w", "--stdin", stdin="sub").strip()
    blob = git(tree, "hash-object", "-w", "--stdin", stdin="x").strip()
    inner = git(tree, "mktree", stdin=f"100644 blob {blob}\tfile\n").strip()
    planted = _tree_object(tree, f"120000 blob {link}\ta", f"040000 tree {inner}\ta")
    with pytest.raises(FileExistsError):
        export(tree, planted, tmp_path / "out")


def test_an_object_that_is_missing_is_named(tree: Path, tmp_path: Path) -> None:
    head = resolve(tree, "master").hash
    blob = git(tree, "rev-parse", "master:sub/b.txt").strip()
    (tree / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(BedplateError, match=f"the object {blob} cannot be read"):
        export(tree, head, tmp_path / "out")


def test_a_submodule_is_an_empty_folder(tree: Path, tmp_path: Path) -> None:
    head = resolve(tree, "master").hash
    planted = _tree_object(tree, f"160000 commit {head}\tmodule")
    export(tree, planted, tmp_path / "out")
    assert [] == list((tmp_path / "out/module").iterdir())


def _times(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): path.lstat().st_mtime_ns
        for path in folder.rglob("*")
        if not path.is_dir()
    }


def _same(folder: Path, tree: Path, revision: str, tmp_path: Path) -> bool:
    """Whether a folder is what an export of the commit would be."""
    fresh = tmp_path / f"fresh-{len(list(tmp_path.iterdir()))}"
    export(tree, resolve(tree, revision).hash, fresh)
    found, expected = (
        {
            str(path.relative_to(top)): (
                path.lstat().st_mode,
                path.readlink() if path.is_symlink() else path.read_bytes(),
            )
            for path in top.rglob("*")
            if path.is_symlink() or not path.is_dir()
        }
        for top in (folder, fresh)
    )
    return found == expected


def test_a_refresh_writes_what_differs_and_nothing_else(tree: Path, tmp_path: Path) -> None:
    out, manifest = tmp_path / "out", tmp_path / "manifest"
    first = resolve(tree, "master").hash
    refresh(tree, first, out, manifest)
    assert _same(out, tree, first, tmp_path)
    for path in out.rglob("*"):
        if path.is_file() and not path.is_symlink():
            os.utime(path, ns=(1, 1))
    before = _times(out)
    (tree / "configure").chmod(0o755)
    (tree / "empty").unlink()
    (tree / "sub/b.txt").unlink()
    (tree / "sub").rmdir()
    second = commit(
        tree, "Change", {"a b.txt": "two\n", "sub": "a file in place of a folder\n", "new/c": "see\n"}
    )
    assert refresh(tree, second, out, manifest) == ("a b.txt", "empty", "new/c", "sub", "sub/b.txt")
    assert _same(out, tree, second, tmp_path)
    assert {"configure", "link"} == {path for path, time in _times(out).items() if before.get(path) == time}
    assert refresh(tree, second, out, manifest) == ()
    refresh(tree, first, out, manifest)
    assert _same(out, tree, first, tmp_path)


@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_refresh_that_was_interrupted_is_mended_by_the_next(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    out, manifest = tmp_path / "out", tmp_path / "manifest"
    first = resolve(tree, "master").hash
    second = commit(tree, "Change", {"a b.txt": "two\n", "new/c": "see\n", "new/d": "dee\n"})
    refresh(tree, first, out, manifest)
    real, left = export_module._write, [written]

    def interrupted(path: Path, contents: Any, *, mode: int) -> None:
        if not left[0]:
            raise OSError("the disk is full")
        left[0] -= 1
        real(path, contents, mode=mode)

    with monkeypatch.context() as patched:
        patched.setattr(export_module, "_write", interrupted)
        with pytest.raises(OSError, match="full"):
            refresh(tree, second, out, manifest)
    refresh(tree, first, out, manifest)
    assert _same(out, tree, first, tmp_path)
    refresh(tree, second, out, manifest)
    assert _same(out, tree, second, tmp_path)


def _names(paths: Iterable[Path]) -> set[str]:
    return {path.name for path in paths}


def test_what_somebody_else_changed_is_written_again_and_what_they_added_is_taken_away(
    tree: Path, tmp_path: Path
) -> None:
    out, manifest = tmp_path / "out", tmp_path / "manifest"
    head = resolve(tree, "master").hash
    refresh(tree, head, out, manifest)
    (out / "empty").write_text("patched")
    (out / "added").write_text("patched")
    forget(manifest, ["empty", "added"])
    refresh(tree, head, out, manifest)
    assert _same(out, tree, head, tmp_path)
    assert "added" not in _names(out.iterdir())


def test_a_folder_that_was_lost_is_written_whole(tree: Path, tmp_path: Path) -> None:
    out, manifest = tmp_path / "out", tmp_path / "manifest"
    head = resolve(tree, "master").hash
    refresh(tree, head, out, manifest)
    out.rename(tmp_path / "elsewhere")
    refresh(tree, head, out, manifest)
    assert _same(out, tree, head, tmp_path)


@pytest.mark.parametrize("name", ["master", "--help", "-z", ""])
def test_what_is_no_hash_is_not_handed_to_git(tree: Path, tmp_path: Path, name: str) -> None:
    # A study's note says which commit it was, and the study may be a stranger's.
    with pytest.raises(PlanError, match="is no hash of a commit"):
        export(tree, name, tmp_path / "out")
