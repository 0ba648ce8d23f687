"""Source trees and patches in a plan: `source = { tree = "~/src/x", commit = "master~1" }`, `patches = ["v3-0001-y.patch"]`.

A commit is looked up once. A study keeps a note of it (`plan/sources/….json`), which is read in its place where the plan is the
study's own, or goes on with the study: a branch may have moved since. It keeps the text of each patch, and of changes that were
not committed.
"""

from __future__ import annotations

import hashlib
import os
import pwd
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bedplate.errors import BedplateError, StudyError
from bedplate.model import codec
from bedplate.model.source_commit import SOURCES, UNTRACKED, WORKING_TREE, SourceTree, patch_level
from bedplate.plan.fields import one_or_varied
from bedplate.plan.words import joined, shown
from bedplate.units import MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, MutableMapping

_KEYS = ("tree", "commit")
_LONGEST = 1000
_MOST_PATCHES = 100
_MOST_COMMITS = 100
_PATCH_BYTES_MOST = 8 * MIB
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
    reasons = [] if _is_name(tree) else ["tree is a path: a work tree or a bare repository"]
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


def patch_levels(value: Any, context: Mapping[str, Any]) -> tuple[str, ...]:
    """The levels of a list of patches, in the order in which they are applied; ValueError with all reasons."""
    if not isinstance(value, list) or len(value) > _MOST_PATCHES:
        raise ValueError(
            'allowed is a list of files, such as ["v3-0001-x.patch"]; vary takes a list of such lists'
        )
    levels: list[str] = []
    reasons: list[str] = []
    for name in value:
        try:
            levels.append(_patch(name, context))
        except ValueError as error:
            reasons.append(f"{shown(name)}: {error}")
    if reasons:
        raise ValueError(joined(reasons))
    return tuple(levels)


def left_out(tree: SourceTree) -> str | None:
    """A warning where files of a work tree are no part of what is built; None where all are."""
    count = tree.facts.get(UNTRACKED)
    return count and (
        f"{tree.tree}: {count} {'file' if count == '1' else 'files'} that git does not know are left out of the {WORKING_TREE}; "
        "`git add` them, or remove them"
    )


def at_home(path: str, directory: Path) -> Path:
    """A path of a plan: from the root, from the plan, or from the home of whoever called, under sudo too."""
    if path == "~" or path.startswith("~/"):
        return Path(_home(), path[2:])
    return directory / path


def _home() -> str:
    uid = os.environ.get("SUDO_UID", "")
    if os.geteuid() == 0 and uid.isdecimal():
        try:
            return pwd.getpwuid(int(uid)).pw_dir
        except (KeyError, OverflowError):
            pass
    return str(Path.home())


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable() and 0 < len(value) <= _LONGEST


def _note(*words: str) -> str:
    return f"{SOURCES}/{hashlib.sha256(chr(0).join(words).encode('utf-8', 'replace')).hexdigest()[:16]}"


def _source_tree(tree: str, revision: str, context: Mapping[str, Any], facts: FactsOf) -> SourceTree:
    note = f"{_note(tree, revision)}.json"
    text = _kept(note, context)
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


def _patch(name: Any, context: Mapping[str, Any]) -> str:
    if not _is_name(name):
        raise ValueError("allowed is the path of a patch")
    note = f"{_note(name)}.patch"
    text = _own(note, context)
    path = at_home(name, Path(context["directory"]))
    if text is None and not path.exists():
        # A patch that changed is another plan; one that is gone is the study's.
        text = (context.get("kept") or {}).get(note)
    if text is None:
        text = _read(path)
        # Nothing but a patch is copied into a study, which is then shared.
        revisions: Revisions | None = context.get("revisions")
        if revisions is None or not revisions.is_patch(text):
            raise ValueError(
                "the file has no diff in it; allowed is a patch of git format-patch, git diff or diff -u"
            )
    level = patch_level(Path(name).name, text)
    files: MutableMapping[str, str] = context["files"]
    files[note] = text
    context["patches"][level] = text
    return level


def _read(path: Path) -> str:
    try:
        if not path.is_file():
            raise ValueError(f"there is no such file ({path})")
        if path.stat().st_size > _PATCH_BYTES_MOST:
            raise ValueError(f"the file is larger than {format_size(_PATCH_BYTES_MOST)}")
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise ValueError(f"the file cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError("the file is not UTF-8 text") from None


def _kept(note: str, context: Mapping[str, Any]) -> str | None:
    """What the study keeps of it: the one that a plan goes on with, or the one whose own plan this is."""
    kept: Mapping[str, str] = context.get("kept") or {}
    return kept[note] if note in kept else _own(note, context)


def _own(note: str, context: Mapping[str, Any]) -> str | None:
    """The note that stands beside the plan of a study."""
    path = Path(context["directory"]) / note
    try:
        return path.read_bytes().decode("utf-8") if path.is_file() else None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the study's note of it ({note}) cannot be read: {error}") from None


if TYPE_CHECKING:
    from bedplate.model.source_commit import SourceCommit

    # A file of the commit by its path, None where it has none.
    ReadFile = Callable[[str], str | None]
    FactsOf = Callable[[ReadFile], Mapping[str, str]]
    Found = tuple[SourceCommit, Mapping[str, str], str | None]
