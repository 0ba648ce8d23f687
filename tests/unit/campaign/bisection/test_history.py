"""git's own search over real histories: linear, with merges, with commits that are skipped; the user's tree stays as it was."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest
from tests.support.sources.histories import commit, git, repository

from bedplate.campaign.bisection import BAD, GOOD, SKIP, BisectHistory, ends_of
from bedplate.errors import PlanError


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return repository(tmp_path / "tree")


def linear(tree: Path, count: int) -> list[str]:
    return [commit(tree, f"commit {number}", {"file": str(number)}) for number in range(count)]


def search(
    history: BisectHistory, bad: Collection[str], skipped: Collection[str] = ()
) -> tuple[object, list[str]]:
    """Ask until git has an answer; what it is, and what was asked for."""
    verdicts: list[tuple[str, str]] = []
    while (step := history.next(verdicts)).commit is not None:
        name = step.commit
        verdicts.append((name, SKIP if name in skipped else BAD if name in bad else GOOD))
    return step.first_bad or step.any_of, [name for name, _ in verdicts]


@pytest.mark.parametrize("first_bad", range(1, 9))
def test_each_commit_of_a_history_is_found_in_three_questions(
    tree: Path, tmp_path: Path, first_bad: int
) -> None:
    commits = linear(tree, 9)
    ends = ends_of(tree, commits[0], "master")
    assert 8 == ends.commits
    found, asked = search(BisectHistory(ends), set(commits[first_bad:]))
    assert commits[first_bad] == found
    assert len(asked) <= 3


def test_a_commit_of_a_merged_branch_is_found(tree: Path, tmp_path: Path) -> None:
    commits = linear(tree, 3)
    git(tree, "checkout", "--quiet", "-b", "side")
    side = [commit(tree, f"side {n}", {f"side{n}": "x"}) for n in range(3)]
    git(tree, "checkout", "--quiet", "master")
    commits += [commit(tree, f"main {n}", {f"main{n}": "x"}) for n in range(3)]
    git(tree, "merge", "--quiet", "--no-ff", "-m", "merge side", "side")
    merge = git(tree, "rev-parse", "HEAD").strip()
    after = commit(tree, "after", {"after": "x"})
    ends = ends_of(tree, commits[0], "master")
    history = BisectHistory(ends)
    found, _ = search(history, {*side[1:], merge, after})
    assert side[1] == found
    assert (side[0],) == history.parents(side[1])
    # A merge that is bad while both of its parents are good.
    assert merge == search(history, {merge, after})[0]
    assert 2 == len(history.parents(merge))


def test_where_only_skipped_commits_are_left_all_are_named(tree: Path, tmp_path: Path) -> None:
    commits = linear(tree, 9)
    ends = ends_of(tree, commits[0], commits[8])
    found, _ = search(BisectHistory(ends), set(commits[5:]), {commits[4], commits[5]})
    assert isinstance(found, tuple)
    assert {commits[4], commits[5], commits[6]} == set(found)


def test_the_same_verdicts_give_the_same_question(tree: Path) -> None:
    commits = linear(tree, 9)
    history = BisectHistory(ends_of(tree, commits[0], commits[8]))
    first = history.next([])
    assert first.commit is not None
    second = history.next([(first.commit, GOOD)])
    assert second == history.next([(first.commit, GOOD)])
    assert first == history.next([])


def test_the_users_tree_is_not_touched(tree: Path, tmp_path: Path) -> None:
    commits = linear(tree, 9)
    (tree / "file").write_text("not committed")

    def state() -> object:
        return {str(path): path.read_bytes() for path in sorted(tree.rglob("*")) if path.is_file()}

    before = state()
    search(BisectHistory(ends_of(tree, commits[0], "master")), set(commits[3:]))
    assert before == state()


def test_a_bare_repository_will_do(tree: Path, tmp_path: Path) -> None:
    commits = linear(tree, 5)
    git(tmp_path, "clone", "--quiet", "--bare", str(tree), "bare.git")
    ends = ends_of(tmp_path / "bare.git", commits[0], "master")
    assert commits[2] == search(BisectHistory(ends), set(commits[2:]))[0]


def test_ends_that_cannot_be_bisected_are_refused_with_the_way_out(tree: Path) -> None:
    commits = linear(tree, 3)
    git(tree, "checkout", "--quiet", "-b", "other", commits[0])
    elsewhere = commit(tree, "elsewhere", {"other": "x"})
    with pytest.raises(PlanError, match="are the same commit"):
        ends_of(tree, "master", commits[2])
    with pytest.raises(PlanError, match="name the good commit first"):
        ends_of(tree, "master", commits[0])
    with pytest.raises(PlanError, match=f"begin at what they have in common: {commits[0][:12]}"):
        ends_of(tree, elsewhere, "master")
    with pytest.raises(PlanError, match="has no commit"):
        ends_of(tree, "no-such-name", "master")
