"""Patches as people send them: what is one, and how it is applied to a folder that is no repository."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import PlanError
from bedplate.host.git.export import leads_out
from bedplate.host.git.own_repository import Repository, plain_repository

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bedplate.host.command import Account, Commands

_TIME_LIMIT_S = 300.0
_A_PATCH = re.compile(
    r"^(?:diff --git |--- (?:a/|/dev/null|\S)[^\n]*\n\+\+\+ |GIT binary patch$)", re.MULTILINE
)
_A_LINK = re.compile(r"^(?:new(?: file)? mode 12|index .* 120000$)", re.MULTILINE)
# `git format-patch`, and a mail that was saved: the patch may be encoded, and there may be several.
_MAIL = re.compile(r"\A(?:From [^\n]*\n|(?:[A-Za-z-]+: [^\n]*\n)+\n)")
_ENCODED = re.compile(
    r"^Content-Transfer-Encoding: *(?:quoted-printable|base64)", re.MULTILINE | re.IGNORECASE
)


def is_patch(text: str) -> bool:
    """Whether a text has a unified diff, plain or encoded as a mail is."""
    return bool(_A_PATCH.search(text)) or bool(_MAIL.match(text) and _ENCODED.search(text))


def apply_patch(text: str, folder: Path, *, commands: Commands, account: Account | None = None) -> None:
    """Apply a patch to the files below `folder`, all of it or nothing; CommandFailed with git's own words.

    git refuses one that names a file outside of the folder, or behind a symbolic link. PlanError where the patch made a symbolic link
    that leads out of it, which is then applied. `account` is who git runs as: it owns the folder's files.
    """
    with _laid_out(text, folder, commands, account) as (repository, patches):
        for patch in patches:
            repository.run(
                *("apply", "--whitespace=nowarn", str(patch)),
                work_tree=folder,
                timeout_s=_TIME_LIMIT_S,
                commands=commands,
            )
    if _A_LINK.search(text) or _MAIL.match(text):
        _require_links_within(folder)


def paths_in_patch(
    text: str, folder: Path, *, commands: Commands, account: Account | None = None
) -> tuple[str, ...]:
    """The files below `folder` that a patch would change, make or take away; CommandFailed where it is none."""
    with _laid_out(text, folder, commands, account) as (repository, patches):
        words = ("apply", "--numstat", "-z", *map(str, patches))
        listed = repository.run(*words, work_tree=folder, commands=commands).stdout
    return tuple(entry.split("\t", 2)[2] for entry in listed.split("\0") if entry)


@contextlib.contextmanager
def _laid_out(
    text: str, folder: Path, commands: Commands, account: Account | None
) -> Iterator[tuple[Repository, Sequence[Path]]]:
    """The diffs of a text as files beside `folder`, and what git reads them with."""
    with tempfile.TemporaryDirectory(prefix=".patch-", dir=folder.parent) as temporary:
        place = Path(temporary)
        place.chmod(0o711)
        repository = plain_repository(folder, place / "own.git", account)
        work = place / "texts"
        work.mkdir()
        source = work / "patch"
        source.write_text(text, encoding="utf-8")
        _give(work, account)
        _give(source, account)
        yield repository, _plain(repository, source, work, commands) if _MAIL.match(text) else [source]


def _plain(repository: Repository, source: Path, work: Path, commands: Commands) -> list[Path]:
    """The diffs of the mails in a file, decoded, in their order."""
    parts = work / "mails"
    parts.mkdir()
    _give(parts, repository.account)
    repository.run("mailsplit", "-b", f"-o{parts}", str(source), commands=commands)
    found = []
    for mail in sorted(parts.iterdir()):
        message, patch = work / f"{mail.name}.message", work / f"{mail.name}.patch"
        text = mail.read_text(encoding="utf-8", errors="replace")
        repository.run("mailinfo", str(message), str(patch), stdin=text, commands=commands)
        found.append(patch)
    return found


def _require_links_within(folder: Path) -> None:
    for where, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(where, name)
            target = str(path.readlink()) if path.is_symlink() else "."
            if leads_out(place := str(path.relative_to(folder)), target):
                raise PlanError(
                    f"the patch makes {place!r} a symbolic link that leads out of the tree, to {target[:200]!r}"
                )


def _give(path: Path, account: Account | None) -> None:
    if account is not None:
        os.chown(path, account.uid, account.gid)
