"""Patches as people send them: what is one, and how it is applied to a folder that is no repository."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.host.git.repository import git_argv

if TYPE_CHECKING:
    from bedplate.host.command import Account, Commands

_TIME_LIMIT_S = 300.0
_A_PATCH = re.compile(
    r"^(?:diff --git |--- (?:a/|/dev/null|\S)[^\n]*\n\+\+\+ |GIT binary patch$)", re.MULTILINE
)
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

    git refuses one that names a file outside of the folder, or behind a symbolic link. `account` is who git runs as: it owns the
    folder's files, and the folder above `folder`, where its texts are put.
    """
    with tempfile.TemporaryDirectory(prefix=".patch-", dir=folder.parent) as temporary:
        place = Path(temporary)
        place.chmod(0o711)
        work = place / "texts"
        work.mkdir()
        source = work / "patch"
        source.write_text(text, encoding="utf-8")
        _give(work, account)
        _give(source, account)
        for patch in _plain(source, work, commands, account) if _MAIL.match(text) else (source,):
            _git(folder, commands, account, "apply", "--whitespace=nowarn", str(patch))


def _plain(source: Path, work: Path, commands: Commands, account: Account | None) -> list[Path]:
    """The diffs of the mails in a file, decoded, in their order."""
    parts = work / "mails"
    parts.mkdir()
    _give(parts, account)
    _git(work, commands, account, "mailsplit", "-b", f"-o{parts}", str(source))
    found = []
    for mail in sorted(parts.iterdir()):
        message, patch = work / f"{mail.name}.message", work / f"{mail.name}.patch"
        _git(work, commands, account, "mailinfo", str(message), str(patch), stdin=mail)
        found.append(patch)
    return found


def _give(path: Path, account: Account | None) -> None:
    if account is not None:
        os.chown(path, account.uid, account.gid)


def _git(
    folder: Path, commands: Commands, account: Account | None, *words: str, stdin: Path | None = None
) -> None:
    commands.run(
        git_argv(folder, *words),
        timeout_s=_TIME_LIMIT_S,
        account=account,
        stdin=None if stdin is None else stdin.read_text(encoding="utf-8", errors="replace"),
    )
