"""Reads a git repository: what a name stands for, the files of a commit, the changes that are not committed.

Nothing is written to it, and git does not learn of its configuration (`own_repository.py`): no hook, no filter, no file-system monitor, no
pager, no credential helper, no fetch of what is missing. Files come out of git's object store, and those of a work tree are compared
byte for byte, so attributes decide nothing either.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import PlanError
from bedplate.host.git.own_repository import TEXT_BYTES_MOST, Repository, borrow
from bedplate.host.git.tree_files import require_plain_rules
from bedplate.host.reading_as import read_as
from bedplate.model.source_commit import SourceCommit
from bedplate.near_names import did_you_mean, quoted
from bedplate.units import one_line

if TYPE_CHECKING:
    from pathlib import Path

_LONGEST_REVISION = 300
_NAMES_MOST = 20_000
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# Of a tree's reflogs, and of the branches that others follow, git is not told either.
_BY_THE_PAST = re.compile(r"@\{")


@dataclass(frozen=True)
class WorkingChanges:
    """What a work tree has that its HEAD has not: a patch, and how many files git does not know."""

    commit: SourceCommit
    patch: str
    untracked: int


def is_full_hash(name: str) -> bool:
    """Whether it is the whole hash of an object, and no other name or option."""
    return _HASH.fullmatch(name) is not None


def resolve(tree: Path, revision: str) -> SourceCommit:
    """The commit that a name stands for: a branch, a tag, `master~1`, a hash.

    PlanError says why there is none: no such folder, no repository, no such name with those that are near, a shallow clone.
    RequirementMissing without git.
    """
    with borrow(tree) as repository:
        return commit_in(repository, revision)


def commit_in(repository: Repository, revision: str) -> SourceCommit:
    """The same in a repository that is open."""
    if not revision.isprintable() or not 0 < len(revision) <= _LONGEST_REVISION or revision.startswith("-"):
        raise PlanError(
            f"{quoted(revision)} names no commit; allowed is what git takes for one: a branch, a tag, `master~1`, a hash"
        )
    if _BY_THE_PAST.search(revision):
        raise PlanError(
            f"{quoted(revision)} names a commit by the clone's past or settings, which bedplate does not read; "
            "name a branch, a tag or a hash (`git rev-parse` says which)"
        )
    found = repository.text("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", check=False)
    name = found.strip()
    if not is_full_hash(name):
        raise PlanError(_unknown(repository, revision))
    return SourceCommit(name, _subject(repository, name), _described(repository, name))


def text_of(repository: Repository, commit: str, path: str) -> str | None:
    """A file of a commit, by the commit's hash; None where it has none of that path."""
    name = f"{commit}:{path}"
    if repository.text("cat-file", "-t", name, check=False).strip() != "blob":
        return None
    if int(repository.text("cat-file", "-s", name)) > TEXT_BYTES_MOST:
        raise PlanError(f"{path} of {commit[:12]} in {repository.tree} is too large to be read")
    return repository.text("cat-file", "blob", name)


def working_changes(repository: Repository) -> WorkingChanges:
    """The changes of tracked files, staged or not, as a patch against HEAD; PlanError for a bare repository.

    The repository is one with an index (`borrow`).
    """
    tree, commit = repository.tree, commit_in(repository, "HEAD")
    if not repository.has_work_tree:
        raise PlanError(f"{tree} has no work tree of its own (a bare repository?); name a commit")
    read_as(repository.owner, lambda: require_plain_rules(tree))
    patch = repository.text(
        *("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--binary", "--full-index", "--no-renames"),
        *("--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=all", "HEAD", "--"),
        work_tree=tree,
    )
    if "\ufffd" in patch:
        raise PlanError(f"{tree} has changes that are not UTF-8 text; commit them, and name the commit")
    others = repository.text("ls-files", "--others", "--exclude-standard", "-z", work_tree=tree)
    return WorkingChanges(commit, patch, others.count("\0"))


def _unknown(repository: Repository, revision: str) -> str:
    said = f"{repository.tree} has no commit {quoted(revision)}"
    if repository.text("rev-parse", "--is-shallow-repository", check=False).strip() == "true":
        said += "; it is a shallow clone (`git fetch --unshallow` brings the rest)"
    names = repository.text(
        *("for-each-ref", f"--count={_NAMES_MOST}", "--format=%(refname:short)"),
        *("refs/heads", "refs/tags", "refs/remotes"),
        check=False,
    ).splitlines()
    asked = re.split(r"[~^@]", revision, maxsplit=1)[0]
    if asked != revision and asked in names:
        return f"{said}: {asked} is there, its history does not go back so far"
    listed = ", ".join(names[:5])
    hint = did_you_mean(
        asked, names, otherwise=f"it has {listed}" if listed else "it has no branch and no tag"
    )
    return f"{said}; {hint}"


def _subject(repository: Repository, commit: str) -> str:
    """By itself from the commit: git's own formatting obeys the repository's configuration."""
    _, _, message = repository.text("cat-file", "commit", commit).partition("\n\n")
    paragraph = message.lstrip("\n").partition("\n\n")[0]
    return one_line(" ".join(paragraph.split()))


def _described(repository: Repository, commit: str) -> str | None:
    return repository.text("describe", "--tags", "--abbrev=12", commit, check=False).strip() or None
