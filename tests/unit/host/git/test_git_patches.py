"""Patches as people send them, applied with git to a folder that is no repository."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from tests.support.sources.histories import commit, git, repository, working_changes

from bedplate.errors import CommandFailed
from bedplate.host.command import Commands
from bedplate.host.git import apply_patch, export, is_patch, resolve
from bedplate.host.requirement import find_tool

pytestmark = pytest.mark.skipif(not all(map(find_tool, ("git",))), reason="histories are git's")

PLAIN = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    found = repository(tmp_path / "src")
    commit(found, "First", {"a.txt": "one\n"})
    return found


@pytest.fixture
def folder(tree: Path, tmp_path: Path) -> Path:
    out = tmp_path / "work" / "source"
    out.parent.mkdir()
    export(tree, resolve(tree, "master").hash, out)
    return out


def _apply(text: str, folder: Path) -> None:
    apply_patch(text, folder, commands=Commands())


def test_a_plain_diff_and_a_formatted_one_apply(tree: Path, folder: Path) -> None:
    assert is_patch(PLAIN)
    _apply(PLAIN, folder)
    assert (folder / "a.txt").read_text() == "two\n"
    commit(tree, "Two", {"a.txt": "two\n"})
    commit(tree, "Three, wïth a name", {"a.txt": "three\n", "new/b.txt": "b\n"})
    text = git(tree, "format-patch", "--stdout", "-1")
    assert is_patch(text)
    _apply(text, folder)
    assert (folder / "a.txt").read_text() == "three\n"
    assert (folder / "new/b.txt").read_text() == "b\n"
    assert ["source"] == [path.name for path in folder.parent.iterdir()]


def test_a_mailbox_of_several_applies_in_its_order(tree: Path, folder: Path) -> None:
    commit(tree, "Two", {"a.txt": "two\n"})
    commit(tree, "Three", {"a.txt": "three\n"})
    _apply(git(tree, "format-patch", "--stdout", "-2"), folder)
    assert (folder / "a.txt").read_text() == "three\n"


def test_a_mail_whose_patch_is_encoded_applies(folder: Path) -> None:
    encoded = base64.encodebytes(f"Because.\n---\n{PLAIN}".encode()).decode()
    text = (
        "From: A. Hacker <hacker@example.org>\nSubject: [PATCH] two\nMIME-Version: 1.0\n"
        f"Content-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: base64\n\n{encoded}"
    )
    assert is_patch(text)
    _apply(text, folder)
    assert (folder / "a.txt").read_text() == "two\n"


def test_the_changes_of_a_work_tree_apply_to_its_commit_binary_ones_too(tree: Path, folder: Path) -> None:
    (tree / "a.txt").write_text("changed\n")
    (tree / "blob").write_bytes(bytes(range(256)))
    git(tree, "add", "blob")
    _apply(working_changes(tree).patch, folder)
    assert (folder / "a.txt").read_text() == "changed\n"
    assert (folder / "blob").read_bytes() == bytes(range(256))


def test_a_patch_that_does_not_apply_changes_nothing_and_says_where(folder: Path) -> None:
    text = f"--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+x\n{PLAIN.replace('-one', '-uno')}"
    with pytest.raises(CommandFailed, match=r"patch failed: a.txt:1"):
        _apply(text, folder)
    assert (folder / "a.txt").read_text() == "one\n"
    assert not (folder / "new.txt").exists()


@pytest.mark.parametrize(
    "path", ["../../etc/planted", "../planted", "/etc/planted", ".git/config", "link/planted"]
)
def test_a_patch_writes_nowhere_else(folder: Path, tmp_path: Path, path: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    text = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(CommandFailed):
        _apply(text, folder)
    assert before == sorted(tmp_path.rglob("*"))


@pytest.mark.parametrize(
    "text", ["", "root:x:0:0:root:/root:/bin/sh\n", "--- a list\n", "From: me\n\nno patch\n"]
)
def test_a_text_without_a_diff_is_no_patch(text: str) -> None:
    assert not is_patch(text)
