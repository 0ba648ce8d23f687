"""`source` of a plan: what a tree and its commits stand for.

A commit is looked up once. A study keeps a note of it (`plan/sources/….json`), which is read in its place where the plan is the
study's own, or goes on with the study: a branch may have moved since. It keeps the text of changes that were not committed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bedplate.errors import BedplateError, StudyError
from bedplate.model import codec
from bedplate.model.source_commit import UNTRACKED, WORKING_TREE, SourceTree
from bedplate.plan.fields import one_or_varied
from bedplate.plan.trees.notes import at_home, is_name, kept_note, note_name
from bedplate.plan.words import joined, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_KEYS = ("tree", "commit")
_MOST_COMMITS = 100
_EXAMPLE = '{ tree = "~/src/x", commit = "master" }'


class Revisions(Protocol):
    """Looks commits up: git, where a plan is read on the machine that has the trees."""

    def find(self, path: Path, revision: str, facts: FactsOf) -> Found:
        """The commit, what `facts` makes of it, and changes beside it where `WORKING_TREE` is asked for; PlanError, RequirementMissing."""
        ...

    def is_patch(self, text: str) -> bool:
        """Whether a text has a patch that can be applied."""
        ...


def source_trees(value: Any, context: Mapping[str, Any], facts: FactsOf) -> tuple[SourceTree, ...]:
    """The levels of a key `source`; ValueError with all reasons."""
    if not isinstance(value, dict):
        raise ValueError(f"allowed is a table such as {_EXAMPLE}")
    unknown = [key for key in value if key not in _KEYS]
    missing = [key for key in _KEYS if key not in value]
    if unknown or missing:
        raise ValueError(
            joined(
                [
                    *(f"it has the unknown key {shown(key)}" for key in unknown),
                    *(f"{key} is missing" for key in missing),
                    f"allowed is a table such as {_EXAMPLE}",
                ]
            )
        )
    tree = value["tree"]
    reasons = [] if is_name(tree) else ["tree is a path: a work tree or a bare repository"]
    try:
        revisions = one_or_varied(value["commit"])
    except ValueError as error:
        raise ValueError(joined([*reasons, f"commit: {error}"])) from None
    if len(revisions) > _MOST_COMMITS:
        reasons.append(f"{len(revisions)} commits; allowed are {_MOST_COMMITS}")
    reasons += [f"commit {shown(each)} is no text" for each in revisions if not isinstance(each, str)]
    if reasons:
        raise ValueError(joined(reasons))
    found: list[SourceTree] = []
    for revision in revisions:
        try:
            found.append(_source_tree(tree, revision, context, facts))
        except (BedplateError, ValueError) as error:
            reasons += error.reasons if isinstance(error, BedplateError) else [str(error)]
    reasons += _alike(found)
    if reasons:
        raise ValueError(joined(dict.fromkeys(reasons)))
    for each in found:
        context["trees"][each.level] = each
    return tuple(found)


def left_out(tree: SourceTree) -> str | None:
    """A warning where files of a work tree are no part of what is built; None where all are."""
    count = tree.facts.get(UNTRACKED)
    return count and (
        f"{tree.tree}: {count} {'file' if count == '1' else 'files'} that git does not know are left out of the {WORKING_TREE}; "
        "`git add` them, or remove them"
    )


def _source_tree(tree: str, revision: str, context: Mapping[str, Any], facts: FactsOf) -> SourceTree:
    note = f"{note_name(tree, revision)}.json"
    text = kept_note(note, context)
    if text is not None:
        try:
            found = codec.loads(SourceTree, text)
        except StudyError as error:
            raise ValueError(f"the study's note of it ({note}) is damaged: {error}") from None
    else:
        revisions: Revisions | None = context.get("revisions")
        if revisions is None:
            raise ValueError(f"the study has no note of it ({note}), and nobody looks commits up here")
        path = at_home(tree, Path(context["directory"])).absolute()
        commit, known, changes = revisions.find(path, revision, facts)
        found = SourceTree(tree, str(path), revision, commit, known, changes)
    context["files"][note] = codec.dumps(found) + "\n"
    return found


def _alike(found: Iterable[SourceTree]) -> list[str]:
    named: dict[str, list[str]] = {}
    for each in found:
        named.setdefault(each.level, []).append(shown(each.revision))
    return [
        f"{' and '.join(names)} are one and the same: {level}"
        + ("; there is nothing that is not committed" if shown(WORKING_TREE) in names else "")
        for level, names in named.items()
        if len(names) > 1
    ]


if TYPE_CHECKING:
    from bedplate.model.source_commit import SourceCommit

    # A file of the commit by its path, None where it has none.
    ReadFile = Callable[[str], str | None]
    FactsOf = Callable[[ReadFile], Mapping[str, str]]
    Found = tuple[SourceCommit, Mapping[str, str], str | None]
