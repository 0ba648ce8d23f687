"""Commits as a plan asks for them, looked up by git."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bedplate.host.git.own_repository import borrow
from bedplate.host.git.patches import is_patch
from bedplate.host.git.repository import commit_in, text_of, working_changes
from bedplate.model.source_commit import UNTRACKED, WORKING_TREE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from bedplate.model.source_commit import SourceCommit


class GitRevisions:
    """Of repositories on this machine."""

    def find(
        self,
        path: Path,
        revision: str,
        facts: Callable[[Callable[[str], str | None]], Mapping[str, str]],
    ) -> tuple[SourceCommit, Mapping[str, str], str | None]:
        """The commit, what `facts` makes of its files, and the changes beside it where the work tree is asked for.

        PlanError says what is not there.
        """
        with borrow(path, with_index=revision == WORKING_TREE) as repository:
            if revision != WORKING_TREE:
                commit = commit_in(repository, revision)
                return commit, facts(partial(text_of, repository, commit.hash)), None
            found = working_changes(repository)
            known = dict(facts(partial(text_of, repository, found.commit.hash)))
        if found.untracked:
            known[UNTRACKED] = str(found.untracked)
        return found.commit, known, found.patch or None

    def is_patch(self, text: str) -> bool:
        """Whether a text has a patch that can be applied."""
        return is_patch(text)
