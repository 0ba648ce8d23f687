"""Reads a git repository: what a name stands for, the files of a commit, the changes that are not committed.

Nothing is written to it, and no program of its configuration is run: no hook, no filter, no file-system monitor, no pager, no
credential helper, no fetch of what is missing. Files come out of git's object store, so attributes decide nothing either.
Where bedplate is root and the tree is somebody's, git runs as the owner of the tree.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import CommandFailed, CommandNotStarted, PlanError, RequirementMissing
from bedplate.host.command import Account, Commands
from bedplate.model.source_commit import SourceCommit
from bedplate.near_names import did_you_mean, of_near_paths, quoted
from bedplate.units import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.host.command import Completed

_TIME_LIMIT_S = 120.0
# Of one file that is read into memory, and of the changes in a work tree.
_TEXT_BYTES_MOST = 8 * 1024 * 1024
_LONGEST_REVISION = 300
_SAID_CHARACTERS = 500
_NAMES_MOST = 20_000
# A caller that is itself a hook, or run by `git bisect`, has these for another repository.
_UNWANTED = tuple(
    f"--unset={name}"
    for name in (
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"),
        *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_EXTERNAL_DIFF"),
        *("GIT_CONFIG_PARAMETERS", "GIT_REPLACE_REF_BASE", "GIT_TRACE"),
    )
)
_ENVIRONMENT = (
    *("GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0"),
    # No transport is called `none`: what a partial clone lacks is not fetched.
    *("GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1"),
    *("HOME=/nonexistent", "XDG_CONFIG_HOME=/nonexistent"),
)
_SETTINGS = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.pager=cat"),
    *("-c", "protocol.allow=never", "-c", "safe.directory=*"),
)
# env(1): the program was not found.
_ENV_FOUND_NONE = 127
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_FILTER_OF = re.compile(r"filter\.(.+)\.[a-z]+", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class WorkingChanges:
    """What a work tree has that its HEAD has not: a patch, and how many files git does not know."""

    commit: SourceCommit
    patch: str
    untracked: int


def git_argv(tree: Path, *words: str, settings: Mapping[str, str] | None = None) -> list[str]:
    """A call of git on the repository at `tree` alone: none above it is taken in its place. `settings` win over its own."""
    more = [
        word
        for number, (name, value) in enumerate((settings or {}).items())
        for word in (f"GIT_CONFIG_KEY_{number}={name}", f"GIT_CONFIG_VALUE_{number}={value}")
    ]
    environment = (*_ENVIRONMENT, f"GIT_CEILING_DIRECTORIES={tree.parent}")
    count = (f"GIT_CONFIG_COUNT={len(settings or {})}", *more)
    return ["env", *_UNWANTED, *environment, *count, "git", *_SETTINGS, "-C", str(tree), *words]


def owner_of(tree: Path) -> Account | None:
    """Who git runs as: the owner of the tree where bedplate is root and the owner is not; None for the caller."""
    if os.geteuid() != 0:
        return None
    status = tree.stat()
    return Account(str(status.st_uid), status.st_uid, status.st_gid) if status.st_uid else None


def resolve(tree: Path, revision: str) -> SourceCommit:
    """The commit that a name stands for: a branch, a tag, `master~1`, a hash.

    PlanError says why there is none: no such folder, no repository, no such name with those that are near, a shallow clone.
    RequirementMissing without git.
    """
    _require_repository(tree)
    if not revision.isprintable() or not 0 < len(revision) <= _LONGEST_REVISION or revision.startswith("-"):
        raise PlanError(
            f"{quoted(revision)} names no commit; allowed is what git takes for one: a branch, a tag, `master~1`, a hash"
        )
    found = _git(tree, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", check=False)
    name = found.strip()
    if not _HASH.fullmatch(name):
        raise PlanError(_unknown(tree, revision))
    return SourceCommit(name, _subject(tree, name), _described(tree, name))


def text_of(tree: Path, commit: str, path: str) -> str | None:
    """A file of a commit, by the commit's hash; None where it has none of that path."""
    name = f"{commit}:{path}"
    if _git(tree, "cat-file", "-t", name, check=False).strip() != "blob":
        return None
    if int(_git(tree, "cat-file", "-s", name)) > _TEXT_BYTES_MOST:
        raise PlanError(f"{path} of {commit[:12]} in {tree} is too large to be read")
    return _git(tree, "cat-file", "blob", name)


def working_changes(tree: Path) -> WorkingChanges:
    """The changes of tracked files, staged or not, as a patch against HEAD; PlanError for a bare repository."""
    commit = resolve(tree, "HEAD")
    top = _git(tree, "rev-parse", "--show-toplevel", check=False).strip()
    if not top or Path(top).resolve() != tree.resolve():
        raise PlanError(f"{tree} has no work tree of its own (a bare repository?); name a commit")
    patch = _git(
        tree,
        *("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--binary", "--full-index", "--no-renames"),
        *("--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=all", "HEAD", "--"),
        settings=_without_filters(tree),
    )
    if "\ufffd" in patch:
        raise PlanError(f"{tree} has changes that are not UTF-8 text; commit them, and name the commit")
    untracked = _git(tree, "ls-files", "--others", "--exclude-standard", "-z").count("\0")
    return WorkingChanges(commit, patch, untracked)


def _require_repository(tree: Path) -> None:
    try:
        if not tree.is_dir():
            raise PlanError(
                f"{tree} is no folder"
                if tree.exists()
                else f"{tree}: there is no such folder{of_near_paths(tree, FileNotFoundError())}"
            )
        found = _git(tree, "rev-parse", "--git-dir", check=False)
    except OSError as error:
        raise PlanError(f"{tree} cannot be read: {error.strerror}") from None
    if not found.strip():
        raise PlanError(
            f"{tree} is no git repository that can be read (git: {_why(tree)}); "
            "name the top folder of a work tree, or a bare repository"
        )


def _why(tree: Path) -> str:
    """What git itself says of a folder that it takes for no repository."""
    try:
        _git(tree, "rev-parse", "--git-dir")
    except CommandFailed as error:
        lines = [line for line in error.output.splitlines() if line.strip()]
        return lines[0].removeprefix("fatal: ")[:200] if lines else "it said nothing"
    return "it is one now"


def _unknown(tree: Path, revision: str) -> str:
    said = f"{tree} has no commit {quoted(revision)}"
    if _git(tree, "rev-parse", "--is-shallow-repository", check=False).strip() == "true":
        said += "; it is a shallow clone (`git fetch --unshallow` brings the rest)"
    names = _git(
        tree,
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


def _subject(tree: Path, commit: str) -> str:
    """By itself from the commit: git's own formatting obeys the repository's configuration."""
    _, _, message = _git(tree, "cat-file", "commit", commit).partition("\n\n")
    paragraph = message.lstrip("\n").partition("\n\n")[0]
    return one_line(" ".join(paragraph.split()))


def _described(tree: Path, commit: str) -> str | None:
    return _git(tree, "describe", "--tags", "--abbrev=12", commit, check=False).strip() or None


def _without_filters(tree: Path) -> Mapping[str, str]:
    """What keeps git from running the filters that the repository's configuration has."""
    names = _git(tree, "config", "--name-only", "-z", "--get-regexp", r"^filter\.", check=False)
    found = (_FILTER_OF.fullmatch(name) for name in names.split("\0"))
    settings = {"clean": "", "smudge": "", "process": "", "required": "false"}
    return {f"filter.{each[1]}.{key}": value for each in found if each for key, value in settings.items()}


def run_git(
    tree: Path,
    *words: str,
    check: bool = True,
    settings: Mapping[str, str] | None = None,
    timeout_s: float = _TIME_LIMIT_S,
) -> Completed:
    """A call of git as the owner of the tree. CommandFailed with its own words where it failed and may not, RequirementMissing without git."""
    try:
        done = Commands().run(
            git_argv(tree, *words, settings=settings),
            timeout_s=timeout_s,
            account=owner_of(tree),
            check=False,
            most_bytes=_TEXT_BYTES_MOST,
        )
    except CommandNotStarted as error:
        raise RequirementMissing(f"{tree} is read with git: {error.reasons[0]}") from error
    if done.status == _ENV_FOUND_NONE:
        raise RequirementMissing(f"{tree} is read with git, which is not installed (package git)")
    if check and done.status != 0:
        raise CommandFailed(
            f"git {words[0]} of {tree} ended with status {done.status}: {done.output[:_SAID_CHARACTERS]}",
            argv=done.argv,
            status=done.status,
            output=done.output,
        )
    return done


def _git(tree: Path, *words: str, check: bool = True, settings: Mapping[str, str] | None = None) -> str:
    """What git printed; with `check=False` nothing where it failed. Paths and messages may be in any encoding."""
    done = run_git(tree, *words, check=check, settings=settings)
    return done.stdout if done.status == 0 else ""
