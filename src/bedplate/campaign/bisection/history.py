"""A history that git bisects in a repository of bedplate's own, which borrows the objects of the user's tree.

Nothing is written to the tree: no work tree, no ref, no note of git's. Each answer is worked out from the verdicts alone, by telling git all of
them anew: a start that was killed in the middle of one asks again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, PlanError
from bedplate.host.git.own_repository import Repository, borrow
from bedplate.host.git.repository import commit_in, resolve
from bedplate.near_names import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bedplate.model.source_commit import SourceCommit

GOOD, BAD, SKIP = "good", "bad", "skip"
_TIME_LIMIT_S = 600.0
# git-bisect(1): only commits that were skipped are left.
_ONLY_SKIPPED = 2
_FIRST_BAD = re.compile(r"^([0-9a-f]{40}(?:[0-9a-f]{24})?) is the first bad commit$", re.MULTILINE)
_HASH = re.compile(r"^[0-9a-f]{40}(?:[0-9a-f]{24})?$", re.MULTILINE)
_REF = "refs/heads/bisected"


@dataclass(frozen=True)
class Ends:
    """The two ends of a bisection, and how many commits lie behind the good one, the bad one among them."""

    tree: Path
    good: SourceCommit
    bad: SourceCommit
    commits: int


@dataclass(frozen=True)
class BisectStep:
    """What git asks next, or what it found.

    `commit` is the next one to be judged. `first_bad` is the commit that made it so; `any_of` are those that it may be where the rest
    of them was skipped.
    """

    commit: str | None = None
    first_bad: str | None = None
    any_of: tuple[str, ...] = ()


def ends_of(tree: Path, good: str, bad: str) -> Ends:
    """Both ends by their names; PlanError where they are one commit, or the good one is no ancestor of the bad one."""
    with borrow(tree) as repository:
        first, last = commit_in(repository, good), commit_in(repository, bad)
        if first.hash == last.hash:
            raise PlanError(
                f"{quoted(good)} and {quoted(bad)} are the same commit, {first.hash[:12]}; a bisection needs two"
            )
        is_ancestor = ("merge-base", "--is-ancestor", first.hash, last.hash)
        if repository.run(*is_ancestor, check=False).status != 0:
            base = repository.run("merge-base", first.hash, last.hash, check=False).stdout.strip()
            if base == last.hash:
                raise PlanError(
                    f"{quoted(good)} comes after {quoted(bad)}; name the good commit first: bisect … {bad} {good}"
                )
            way = f"begin at what they have in common: {base[:12]}" if base else "they have nothing in common"
            raise PlanError(f"{quoted(good)} is no ancestor of {quoted(bad)}; {way}")
        count = repository.text("rev-list", "--count", f"{first.hash}..{last.hash}").strip()
        return Ends(tree, first, last, int(count))


class BisectHistory:
    """What git answers about the commits between two ends."""

    def __init__(self, ends: Ends) -> None:
        self._ends = ends

    def next(self, verdicts: Iterable[tuple[str, str]]) -> BisectStep:
        """What follows from the verdicts, each a commit and `GOOD`, `BAD` or `SKIP`, in the order in which they were found."""
        with borrow(self._ends.tree) as repository:
            # A repository has to stand somewhere before it can be bisected.
            repository.run("update-ref", _REF, self._ends.bad.hash)
            repository.run("symbolic-ref", "HEAD", _REF)
            found = self._bisect(
                repository, "start", "--no-checkout", self._ends.bad.hash, self._ends.good.hash
            )
            for commit, verdict in verdicts:
                if found.first_bad is not None or found.any_of:
                    break
                found = self._bisect(repository, verdict, commit)
            return found

    def parents(self, commit: str) -> tuple[str, ...]:
        """The hashes of a commit's parents."""
        with borrow(self._ends.tree) as repository:
            return tuple(repository.text("rev-list", "--parents", "-n1", commit).split()[1:])

    def commit(self, name: str) -> SourceCommit:
        """A commit of the tree by its hash."""
        return resolve(self._ends.tree, name)

    def _bisect(self, repository: Repository, *words: str) -> BisectStep:
        done = repository.run("bisect", *words, check=False, timeout_s=_TIME_LIMIT_S)
        found = _FIRST_BAD.search(done.stdout)
        if found is not None:
            return BisectStep(first_bad=found[1])
        if done.status == _ONLY_SKIPPED:
            return BisectStep(any_of=tuple(_HASH.findall(done.stdout)))
        if done.status != 0:
            raise BedplateError(
                f"git bisect {words[0]} ended with status {done.status} in {self._ends.tree}: {done.output[:500]}"
            )
        head = repository.text("rev-parse", "--verify", "--quiet", "BISECT_HEAD", check=False).strip()
        if not _HASH.fullmatch(head):
            raise BedplateError(
                f"git bisect {words[0]} named no commit in {self._ends.tree}: {done.output[:500]}"
            )
        return BisectStep(commit=head)
