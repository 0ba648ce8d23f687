"""The history of eight kernels, of which one begins to flush, has that one change and seven that change nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.sources.histories import commit, git, repository
from tests.support.sources.planted_kernels import COMMITS, lose, plant

JOURNAL = """\
{
\tcommit_trans = journal->j_committing_transaction;
\tif (!commit_trans || commit_trans->t_tid != tid) {
\t\tret = 1;
\t\tgoto out;
\t}
}
"""
EXT4 = {
    f"fs/ext4/{name}": "int x;\n"
    for name in (
        *("balloc.c", "bitmap.c", "dir.c", "fsync.c"),
        *("hash.c", "ialloc.c", "symlink.c", "truncate.h"),
    )
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    found = repository(tmp_path / "linux")
    commit(found, "Linux 6.12", {"fs/jbd2/journal.c": JOURNAL, **EXT4})
    return found


@pytest.mark.parametrize("number", [1, 5, 8])
def test_one_commit_of_eight_plants_the_flush(tree: Path, number: int) -> None:
    hashes = plant(tree, number)
    assert len(hashes) == COMMITS
    flushes = ["t_need_data_flush = 1" in git(tree, "show", f"{each}:fs/jbd2/journal.c") for each in hashes]
    assert flushes == [index >= number for index in range(1, COMMITS + 1)]
    files = [git(tree, "show", "--name-only", "--format=", each).split() for each in hashes]
    assert all(len(changed) == 1 for changed in files)


def test_one_of_eight_more_loses_it_again(tree: Path) -> None:
    with pytest.raises(ValueError, match="no planted flush"):
        lose(tree, 3)
    before = plant(tree, 5)
    after = lose(tree, 3)
    flushes = ["t_need_data_flush = 1" in git(tree, "show", f"{each}:fs/jbd2/journal.c") for each in after]
    assert flushes == [index < 3 for index in range(1, COMMITS + 1)]
    assert git(tree, "rev-parse", "planted").strip() == before[-1]
    assert git(tree, "rev-parse", "lost").strip() == after[-1]


def test_a_tree_that_has_the_flush_or_changes_is_left_alone(tree: Path) -> None:
    (tree / "fs/ext4/dir.c").write_text("mine")
    with pytest.raises(ValueError, match="changes that are not committed"):
        plant(tree, 5)
    (tree / "fs/jbd2/journal.c").write_text("another kernel")
    with pytest.raises(ValueError, match=r"not that of Linux 6\.12"):
        plant(tree, 5)
    assert git(tree, "branch", "--format=%(refname:short)").split() == ["master"]
