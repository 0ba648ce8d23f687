"""Commits by their names, out of real repositories: what they stand for, and what a stranger's repository cannot do."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from tests.support.sources.histories import commit, git, repository, text_of, working_changes

from bedplate.errors import PlanError, RequirementMissing
from bedplate.host import git as trees
from bedplate.host.git import resolve
from bedplate.host.requirement import find_tool

pytestmark = pytest.mark.skipif(not all(map(find_tool, ("git",))), reason="histories are git's")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    found = repository(tmp_path / "src")
    commit(found, "First", {"a.txt": "one\n"})
    git(found, "tag", "v1.0")
    commit(found, "Second\n\nWith a body", {"a.txt": "two\n", "sub/b.txt": "bee\n"})
    return found


def test_a_branch_a_tag_an_ancestor_and_a_hash_are_commits(tree: Path) -> None:
    second = resolve(tree, "master")
    assert ("Second", git(tree, "rev-parse", "HEAD").strip()) == (second.subject, second.hash)
    first = resolve(tree, "master~1")
    assert first == resolve(tree, "v1.0") == resolve(tree, first.hash[:9])
    assert ("First", "v1.0") == (first.subject, first.describe)
    assert second.describe == f"v1.0-1-g{second.hash[:12]}"
    assert f"{second.hash[:12]} Second" == second.level


def test_a_bare_repository_and_a_linked_work_tree_are_trees_too(tree: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(tree), "bare.git")
    git(tree, "worktree", "add", "--quiet", str(tmp_path / "linked"), "v1.0")
    assert resolve(tree, "master") == resolve(tmp_path / "bare.git", "master")
    assert resolve(tree, "v1.0") == resolve(tmp_path / "linked", "HEAD")


@pytest.mark.parametrize("name", ["a b", 'it\'s "quoted"', "<b>&amp;", "ünïcode", "-dash"])
def test_a_tree_may_stand_at_any_path(tree: Path, tmp_path: Path, name: str) -> None:
    moved = tmp_path / name
    shutil.move(tree, moved)
    assert resolve(moved, "master").subject == "Second"


def test_a_commit_that_is_not_there_is_refused_with_near_names(tree: Path) -> None:
    with pytest.raises(PlanError, match="has no commit 'mastre'; did you mean master"):
        resolve(tree, "mastre")
    with pytest.raises(PlanError, match="master is there, its history does not go back so far"):
        resolve(tree, "master~7")
    with pytest.raises(PlanError, match=r"has no commit 'zzz'; it has master, v1\.0"):
        resolve(tree, "zzz")


@pytest.mark.parametrize("revision", ["", "--help", "-n", "a\nb", "b" * 10_000, "x\x1b[2J"])
def test_what_can_be_no_name_is_refused_and_not_handed_to_git(tree: Path, revision: str) -> None:
    with pytest.raises(PlanError, match="names no commit; allowed is") as found:
        resolve(tree, revision)
    assert len(str(found.value)) < 500
    assert "\x1b" not in str(found.value)


def test_a_shallow_clone_says_that_it_is_one(tree: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{tree}", "shallow")
    assert resolve(tmp_path / "shallow", "master").subject == "Second"
    with pytest.raises(PlanError, match="it is a shallow clone"):
        resolve(tmp_path / "shallow", "master~1")


def test_no_repository_is_refused_even_inside_of_one(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path, said in (
        (tree / "sub", "is no git repository that can be read"),
        (tmp_path / "srcc", "there is no such folder; did you mean .*src?"),
        (tmp_path / "file", "is no folder"),
    ):
        with pytest.raises(PlanError, match=said):
            resolve(path, "master")


def test_a_file_of_a_commit_is_read_without_a_work_tree(tree: Path) -> None:
    assert text_of(tree, resolve(tree, "v1.0").hash, "a.txt") == "one\n"
    assert text_of(tree, resolve(tree, "v1.0").hash, "sub/b.txt") is None
    assert text_of(tree, resolve(tree, "master").hash, "sub") is None


def test_no_program_of_a_repositorys_configuration_runs(tree: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.write_text(f'#!/bin/sh\necho "$0 $@" >> "{tmp_path}/sprung"\ncat\n')
    trap.chmod(0o755)
    (tree / ".gitattributes").write_text("*.txt filter=trap diff=trap\n")
    commit(tree, "Third", {})
    for name in (
        "core.fsmonitor",
        "filter.trap.clean",
        "filter.trap.smudge",
        "diff.external",
        "diff.trap.textconv",
    ):
        git(tree, "config", name, str(trap))
    git(tree, "config", "filter.a=b.clean", str(trap))
    git(tree, "config", "log.showSignature", "true")
    git(tree, "config", "gpg.program", str(trap))
    hook = tree / ".git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    shutil.copy(trap, hook)
    (tree / "a.txt").write_text("changed\n")
    resolve(tree, "master~1")
    assert "+changed" in working_changes(tree).patch
    assert not (tmp_path / "sprung").exists()


def test_a_variable_of_a_caller_does_not_name_another_repository(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = repository(tmp_path / "other")
    commit(other, "Elsewhere", {"x": "y"})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.bare")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "x")
    assert resolve(tree, "master").subject == "Second"


def test_changes_that_are_not_committed_are_a_patch_and_stay_as_they_are(tree: Path) -> None:
    (tree / "a.txt").write_text("three\n")
    (tree / "staged.txt").write_text("new\n")
    git(tree, "add", "staged.txt")
    (tree / "unknown.txt").write_text("not added\n")
    index = (tree / ".git/index").read_bytes()
    before = {path: path.stat().st_mtime_ns for path in tree.rglob("*")}
    found = working_changes(tree)
    assert found.commit == resolve(tree, "HEAD")
    assert found.untracked == 1
    assert "+three" in found.patch
    assert "b/staged.txt" in found.patch
    assert "not added" not in found.patch
    assert index == (tree / ".git/index").read_bytes()
    assert before == {path: path.stat().st_mtime_ns for path in tree.rglob("*")}


def test_a_bare_repository_has_no_changes_to_measure(tree: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(tree), "bare.git")
    with pytest.raises(PlanError, match="has no work tree"):
        working_changes(tmp_path / "bare.git")


def test_a_subject_of_control_characters_and_markup_is_one_printable_line(tree: Path) -> None:
    commit(tree, "<script>\x1b[31m\n over two lines\n\nbody", {})
    found = resolve(tree, "master")
    assert found.subject == "<script>?[31m over two lines"
    commit(tree, "x" * 500, {})
    assert len(resolve(tree, "master").level) <= 12 + 1 + 60


@pytest.mark.skipif(os.geteuid() != 0, reason="another account's tree is made by root")
def test_root_reads_a_tree_of_another_account_as_that_account(tree: Path) -> None:
    # Not in tmp_path: its parents are closed to every account but root.
    with tempfile.TemporaryDirectory(prefix="bedplate-test-git-") as folder:
        Path(folder).chmod(0o711)
        moved = Path(folder, "src")
        shutil.move(tree, moved)
        for path in (moved, *moved.rglob("*")):
            os.chown(path, 12345, 12345, follow_symlinks=False)
        # What its owner may not read, root would.
        (moved / ".git/config").chmod(0o600)
        os.chown(moved / ".git/config", 0, 0)
        with pytest.raises(PlanError, match="is no git repository that can be read"):
            resolve(moved, "master")
        os.chown(moved / ".git/config", 12345, 12345)
        assert resolve(moved, "master").subject == "Second"


@pytest.mark.parametrize("absent", ["git", "prlimit", "setpriv"])
def test_a_program_that_is_missing_is_called_by_its_name(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absent: str
) -> None:
    if absent == "setpriv" and os.geteuid() != 0:
        pytest.skip("git runs as who calls")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in {"git", "prlimit", "setpriv"} - {absent}:
        (programs / name).symlink_to(str(find_tool(name)))
    monkeypatch.setattr(trees, "bare_environment", lambda: {"PATH": str(programs)})
    with pytest.raises(
        RequirementMissing, match=rf"under limits: {absent} \(package [a-z-]+\) is not installed"
    ):
        resolve(tree, "master")


def test_what_a_killed_process_left_is_removed_and_what_is_used_or_fresh_or_a_link_is_not(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    killed, used, fresh, link = (
        place / f"bedplate-git-{name}" for name in ("killed", "used", "fresh", "link")
    )
    for folder in (killed, used, fresh):
        (folder / "own.git").mkdir(parents=True)
    link.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    for folder in (killed, used, tmp_path / "elsewhere"):
        os.utime(folder, (0, 0))
    lock = os.open(used, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        resolve(tree, "master")
    finally:
        os.close(lock)
    assert {used, fresh, link} == set(place.iterdir())
    assert (tmp_path / "elsewhere").exists()
