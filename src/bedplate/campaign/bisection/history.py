"""A history that git bisects in a repository of bedplate's own, which borrows the objects of the user's tree.

Nothing is written to the tree: no work tree, no ref, no note of git's. Each answer is worked out from the verdicts alone, by telling git all of
them anew: a start that was killed in the middle of one asks again.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, PlanError
from bedplate.host.git.repository import resolve, run_git
from bedplate.near_names import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bedplate.model.source_commit import SourceCommit

GOOD, BAD, SKIP = "good", "bad", "skip"
_REPOSITORY = "history.git"
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
    first, last = resolve(tree, good), resolve(tree, bad)
    if first.hash == last.hash:
        raise PlanError(
            f"{quoted(good)} and {quoted(bad)} are the same commit, {first.hash[:12]}; a bisection needs two"
        )
    if run_git(tree, "merge-base", "--is-ancestor", first.hash, last.hash, check=False).status != 0:
        base = run_git(tree, "merge-base", first.hash, last.hash, check=False).stdout.strip()
        if base == last.hash:
            raise PlanError(
                f"{quoted(good)} comes after {quoted(bad)}; name the good commit first: bisect … {bad} {good}"
            )
        way = f"begin at what they have in common: {base[:12]}" if base else "they have nothing in common"
        raise PlanError(f"{quoted(good)} is no ancestor of {quoted(bad)}; {way}")
    count = run_git(tree, "rev-list", "--count", f"{first.hash}..{last.hash}").stdout.strip()
    return Ends(tree, first, last, int(count))


class BisectHistory:
    """The repository in which git bisects; `place` is a folder of the bisection's own."""

    def __init__(self, place: Path, ends: Ends) -> None:
        self._ends = ends
        self._repository = place / _REPOSITORY

    def next(self, verdicts: Iterable[tuple[str, str]]) -> BisectStep:
        """What follows from the verdicts, each a commit and `GOOD`, `BAD` or `SKIP`, in the order in which they were found."""
        self._begin()
        found = self._bisect("start", "--no-checkout", self._ends.bad.hash, self._ends.good.hash)
        for commit, verdict in verdicts:
            if found.first_bad is not None or found.any_of:
                break
            found = self._bisect(verdict, commit)
        return found

    def parents(self, commit: str) -> tuple[str, ...]:
        """The hashes of a commit's parents."""
        return tuple(run_git(self._ends.tree, "rev-list", "--parents", "-n1", commit).stdout.split()[1:])

    def commit(self, name: str) -> SourceCommit:
        """A commit of the tree by its hash."""
        return resolve(self._ends.tree, name)

    def _begin(self) -> None:
        """A repository as if nothing had been asked: what a killed start left in the last one is of no use."""
        shutil.rmtree(self._repository, ignore_errors=True)
        self._repository.parent.mkdir(parents=True, exist_ok=True)
        objects = run_git(
            self._ends.tree, "rev-parse", "--path-format=absolute", "--git-path", "objects"
        ).stdout.strip()
        run_git(self._repository.parent, "init", "--quiet", "--bare", "--template=", self._repository.name)
        alternates = self._repository / "objects" / "info" / "alternates"
        alternates.parent.mkdir(parents=True, exist_ok=True)
        alternates.write_text(f"{objects}\n", encoding="utf-8")
        # A repository has to stand somewhere before it can be bisected.
        run_git(self._repository, "update-ref", _REF, self._ends.bad.hash)
        run_git(self._repository, "symbolic-ref", "HEAD", _REF)

    def _bisect(self, *words: str) -> BisectStep:
        done = run_git(self._repository, "bisect", *words, check=False, timeout_s=_TIME_LIMIT_S)
        found = _FIRST_BAD.search(done.stdout)
        if found is not None:
            return BisectStep(first_bad=found[1])
        if done.status == _ONLY_SKIPPED:
            return BisectStep(any_of=tuple(_HASH.findall(done.stdout)))
        if done.status != 0:
            raise BedplateError(
                f"git bisect {words[0]} ended with status {done.status} in {self._ends.tree}: {done.output[:500]}"
            )
        head = run_git(
            self._repository, "rev-parse", "--verify", "--quiet", "BISECT_HEAD", check=False
        ).stdout.strip()
        if not _HASH.fullmatch(head):
            raise BedplateError(
                f"git bisect {words[0]} named no commit in {self._ends.tree}: {done.output[:500]}"
            )
        return BisectStep(commit=head)
