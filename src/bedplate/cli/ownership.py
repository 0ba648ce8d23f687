"""Under sudo: what was made for a person belongs to that person, who can then read and delete it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def first_made(path: Path) -> Path:
    """What will be new when `path` is made: the topmost directory above it that is not there, or itself."""
    path = path.absolute()
    missing = [place for place in (path, *path.parents) if not os.path.lexists(place)]
    return missing[-1] if missing else path


def give_to_caller(path: Path) -> None:
    """Give `path` and all below it to the user who called sudo; nothing happens without sudo.

    Links are given themselves and never followed, and a file with several names stays as it is: another
    name may stand where this user has no business.
    """
    caller = _caller()
    if caller is None or not os.path.lexists(path):
        return
    os.chown(path, *caller, follow_symlinks=False)
    if path.is_symlink() or not path.is_dir():
        return
    for _, folders, files, folder in os.fwalk(path, follow_symlinks=False):
        for name in (*folders, *files):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if status.st_nlink == 1 or name in folders:
                os.chown(name, *caller, dir_fd=folder, follow_symlinks=False)


def _caller() -> tuple[int, int] | None:
    if os.geteuid() != 0:
        return None
    try:
        uid, gid = int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"])
    except (KeyError, ValueError):
        return None
    return (uid, gid) if uid > 0 and gid >= 0 else None
