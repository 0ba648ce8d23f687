"""Eight commits on a branch of a kernel's tree, of which one makes ext4 with an external journal flush the data device.

    python tests/support/sources/planted_kernels.py ~/src/linux [--planted 5] [--lost 5]

Linux 6.15 has that change as commit aac45075f6d7, "jbd2: add a missing data flush during file and fs synchronization"; the series 6.12 lacks it. Here it
is one line of our own, for a tree of 6.12. The other commits change a comment in one file of ext4 each, so that a step of a bisect compiles one file. The
work tree must be clean; the branch is `planted`, and the work tree is on it afterwards. With `--lost` eight more commits follow on the branch
`lost`, of which that one takes the flush away again.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from pathlib import Path

BRANCH, LOST_BRANCH = "planted", "lost"
COMMITS = 8
_PLACE = re.compile(
    r"(\n\tcommit_trans = journal->j_committing_transaction;\n"
    r"\tif \(!commit_trans \|\| commit_trans->t_tid != tid\) \{\n)(\t\tret = 1;\n)"
)
_LINES = (
    "\t\tif (journal->j_running_transaction)\n\t\t\tjournal->j_running_transaction->t_need_data_flush = 1;\n"
)
_FILES = ("balloc", "bitmap", "dir", "fsync", "hash", "ialloc", "symlink", "truncate.h")


def plant(tree: Path, number: int) -> list[str]:
    """Make the commits, `number` (from 1) with the flush; their hashes in order. ValueError where the tree is another one."""
    journal = tree / "fs/jbd2/journal.c"
    text = journal.read_text(encoding="utf-8")
    planted, count = _PLACE.subn(rf"\g<1>{_LINES}\g<2>", text)
    if count != 1:
        raise ValueError(f"{journal} is not that of Linux 6.12, or has the flush already")
    if _git(tree, "status", "--porcelain", "--untracked-files=no").strip():
        raise ValueError(f"{tree} has changes that are not committed")
    subject = "jbd2: let a commit flush the file system's device for fsync"
    return _history(tree, BRANCH, number, planted, subject)


def lose(tree: Path, number: int) -> list[str]:
    """Make eight commits behind the planted ones, `number` without the flush; their hashes in order. ValueError without the planted ones."""
    journal = tree / "fs/jbd2/journal.c"
    text = journal.read_text(encoding="utf-8")
    if _LINES not in text:
        raise ValueError(f"{journal} has no planted flush that could be lost")
    subject = "jbd2: leave out a flush that the commit does anyway"
    return _history(tree, LOST_BRANCH, number, text.replace(_LINES, ""), subject)


def _history(tree: Path, branch: str, number: int, changed: str, subject: str) -> list[str]:
    """Eight commits, of which `number` changes the journal and the others a comment in a file of ext4 each."""
    _git(tree, "checkout", "--quiet", "-B", branch)
    hashes = []
    for index, name in enumerate(_FILES[:COMMITS], start=1):
        if index == number:
            (tree / "fs/jbd2/journal.c").write_text(changed, encoding="utf-8")
            said = subject
        else:
            file = tree / "fs/ext4" / (name if "." in name else f"{name}.c")
            file.write_text(f"{file.read_text(encoding='utf-8')}\n/* step {index} */\n", encoding="utf-8")
            said = f"ext4: say more about {file.stem}"
        _git(tree, "commit", "--quiet", "--all", "-m", said)
        hashes.append(_git(tree, "rev-parse", "HEAD").strip())
    return hashes


def _git(tree: Path, *words: str) -> str:
    who = ("-c", "user.name=A. Hacker", "-c", "user.email=hacker@example.org")
    return subprocess.run(
        ["git", "-C", str(tree), *who, *words], check=True, capture_output=True, text=True
    ).stdout


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Plant eight commits in a kernel's tree.")
    parser.add_argument("tree", type=Path)
    parser.add_argument("--planted", type=int, default=5, choices=range(1, COMMITS + 1))
    parser.add_argument("--lost", type=int, choices=range(1, COMMITS + 1))
    asked = parser.parse_args()
    made = plant(asked.tree, asked.planted)
    print("\n".join(made if asked.lost is None else (*made, *lose(asked.tree, asked.lost))))
