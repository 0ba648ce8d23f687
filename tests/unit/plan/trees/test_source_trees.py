"""Commits and patches as levels of a plan: what they are called, what is refused, what a study keeps of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.sources.histories import commit, git, repository

from bedplate.errors import PlanError
from bedplate.host.git import GitRevisions
from bedplate.host.requirement import find_tool
from bedplate.model.cell import Cell
from bedplate.model.plan import Plan
from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan

pytestmark = pytest.mark.skipif(not all(map(find_tool, ("git",))), reason="histories are git's")

PATCH = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n"


def configure(version: str) -> dict[str, str]:
    return {"configure.ac": f"AC_INIT([PostgreSQL], [{version}], [pgsql-bugs@example.org])\n"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    found = repository(tmp_path / "src" / "post <gres>")
    commit(found, "Start", {**configure("18.6"), "a.txt": "one\n"})
    git(found, "tag", "REL_18_6")
    commit(found, "Open the next version", {**configure("19devel"), "a.txt": "one\n"})
    commit(found, "Speed up <b>everything</b>", {"c.txt": "x"})
    return found


def load(directory: Path, keys: str, *, kept: Mapping[str, str] | None = None, looks: bool = True) -> Plan:
    text = f'[[filesystem]]\ntype = "ext4"\n[postgresql]\n{keys}\n'
    revisions = GitRevisions() if looks else None
    return load_plan(text, source="p.toml", directory=directory, revisions=revisions, kept_sources=kept)


def source(commits: str, tree: str = "src/post <gres>") -> str:
    return f"source = {{ tree = {json.dumps(tree)}, commit = {commits} }}"


def cells(plan: Plan) -> list[Cell]:
    return [planned.cell for planned in expand(plan, None).cells]


def test_each_commit_is_a_cell_by_its_digits_and_subject(tree: Path, tmp_path: Path) -> None:
    plan = load(tmp_path, source('{ vary = ["master~1", "master"] }'))
    old, new = cells(plan)
    digits = git(tree, "rev-list", "--reverse", "--abbrev-commit", "--abbrev=12", "-2", "master").split()
    assert [f"{digits[0]} Open the next version", f"{digits[1]} Speed up <b>everything</b>"] == [
        old.build.source_commit,
        new.build.source_commit,
    ]
    assert old.id != new.id
    # Its version follows from the commit, so that it is no factor beside it.
    assert "19devel" == old.build.version
    assert "build.version" not in old.levels
    kept = plan.sources.trees[str(old.levels["build.source_commit"])]
    assert git(tree, "rev-parse", "master~1").strip() == kept.commit.hash
    assert ("src/post <gres>", str(tree), "master~1") == (kept.tree, kept.path, kept.revision)
    assert f"REL_18_6-1-g{digits[0]}" == kept.commit.describe


def test_a_release_without_patches_is_the_cell_that_it_was(tmp_path: Path) -> None:
    (plain,) = cells(load(tmp_path, 'version = "18"'))
    (same,) = cells(load(tmp_path, "patches = []"))
    assert plain.id == same.id
    assert {"build.patches", "build.source_commit"}.isdisjoint(plain.levels)


def test_patches_vary_in_lists_and_keep_their_order(tree: Path, tmp_path: Path) -> None:
    for name in ("v1.patch", "it's, two.patch"):
        (tmp_path / name).write_text(PATCH.replace("two", name))
    plan = load(tmp_path, 'patches = { vary = [[], ["v1.patch", "it\'s, two.patch"]] }')
    bare, patched = cells(plan)
    assert () == bare.build.patches
    names = [level.rpartition(" ")[0] for level in patched.build.patches]
    assert ["v1.patch", "it's, two.patch"] == names
    assert "v1.patch" in plan.sources.patches[patched.build.patches[0]]
    assert "18" == patched.build.version
    both = load(
        tmp_path, f'{source(chr(34) + "master" + chr(34))}\npatches = {{ vary = [[], ["v1.patch"]] }}'
    )
    assert 2 == len(cells(both))


def test_a_study_keeps_its_commits_and_patches_where_a_branch_moves(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "v1.patch").write_text(PATCH)
    keys = f'{source(chr(34) + "master" + chr(34))}\npatches = ["v1.patch"]'
    first = load(tmp_path, keys)
    study = tmp_path / "study/plan"
    for name, text in first.files.items():
        (study / name).parent.mkdir(parents=True, exist_ok=True)
        (study / name).write_text(text)
    commit(tree, "Later", {"later": ""})
    moved = load(tmp_path, keys)
    assert first.digest != moved.digest
    going_on = load(tmp_path, keys, kept=first.files)
    assert first.digest == going_on.digest
    assert first.sources == going_on.sources
    # Where nobody can look: the study on another machine.
    assert first.digest == load(study, keys, looks=False).digest
    # A patch that is gone is the study's; one that was changed is another plan.
    (tmp_path / "v1.patch").unlink()
    assert first.digest == load(tmp_path, keys, kept=first.files).digest
    (tmp_path / "v1.patch").write_text(PATCH.replace("two", "three"))
    assert first.digest != load(tmp_path, keys, kept=first.files).digest


def test_the_work_tree_is_its_commit_with_what_is_not_committed(tree: Path, tmp_path: Path) -> None:
    vary = source('{ vary = ["master", "working tree"] }')
    with pytest.raises(PlanError, match=r"are one and the same: .*there is nothing that is not committed"):
        load(tmp_path, vary)
    (tree / "a.txt").write_text("changed\n")
    (tree / "stray.c").write_text("")
    plan = load(tmp_path, vary)
    committed, working = cells(plan)
    assert working.build.source_commit is not None
    digits = str(committed.build.source_commit)[:12]
    assert working.build.source_commit.startswith(f"{digits}+")
    assert "working tree on Speed up" in working.build.source_commit
    assert "+changed" in str(plan.sources.trees[working.build.source_commit].changes)
    assert any("1 file that git does not know are left out" in warning for warning in plan.warnings)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ('source = "~/src"', 'allowed is a table such as { tree = "~/src/x", commit = "master" }'),
        ('source = { tree = "x", branch = "y" }', "it has the unknown key 'branch'; commit is missing"),
        ("source = { tree = 3, commit = [4] }", "tree is a path"),
        (source('{ vary = ["master", "master"] }'), "the level 'master' is listed twice"),
        (source('{ vary = ["master", "HEAD"] }'), "'master' and 'HEAD' are one and the same"),
        (source('"master"', tree="src"), "is no git repository that can be read"),
        (source('"master"', tree="nowhere"), "there is no such folder"),
        (
            f'version = "18"\n{source(chr(34) + "master" + chr(34))}',
            "version is the commit's where there is a source",
        ),
        ('patches = "v1.patch"', "allowed is a list of files"),
        ('patches = ["missing.patch"]', "there is no such file"),
        ('patches = ["/etc/passwd"]', "the file has no diff in it"),
        ('patches = ["src"]', "there is no such file"),
    ],
)
def test_what_can_be_no_level_is_refused_in_the_plan(
    tree: Path, tmp_path: Path, keys: str, said: str
) -> None:
    with pytest.raises(PlanError) as found:
        load(tmp_path, keys)
    assert said in str(found.value)
    assert "root:" not in str(found.value)


def test_every_wrong_commit_is_named_at_once(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(PlanError) as found:
        load(tmp_path, source(json.dumps({}) and '{ vary = ["mastre", "master~99", "' + "x" * 5000 + '"] }'))
    said = str(found.value)
    assert "did you mean master" in said
    assert "its history does not go back so far" in said
    assert "names no commit" in said
    assert len(said) < 2500


def test_a_tree_that_is_no_postgresql_or_too_old_is_refused(tmp_path: Path) -> None:
    other = repository(tmp_path / "other")
    commit(other, "First", {"README": ""})
    with pytest.raises(PlanError, match="it is no PostgreSQL"):
        load(tmp_path, source('"master"', tree="other"))
    commit(other, "Old", configure("9.6.24"))
    with pytest.raises(PlanError, match=r"it is PostgreSQL 9\.6\.24; bedplate runs 15 and later"):
        load(tmp_path, source('"master"', tree="other"))
