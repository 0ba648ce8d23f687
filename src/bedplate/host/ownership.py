"""Under sudo: what was made for a person belongs to that person, who can then read and delete it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from bedplate.errors import StudyError
from bedplate.model.reason import sudo_caller


def first_made(path: Path) -> Path:
    """What is the caller's when `path` is made: the topmost directory above it that is not there, or itself.

    Where it is there, also the directories above it that a killed start made.
    """
    path = path.absolute()
    missing = [place for place in (path, *path.parents) if not os.path.lexists(place)]
    return missing[-1] if missing else _made_by_killed_start(path)


def make_for_caller(directory: Path) -> None:
    """Make a directory and those above it, each given to the caller at once: a kill leaves none that is root's.

    StudyError where that is not possible.
    """
    directory = directory.absolute()
    caller = sudo_caller()
    for place in reversed((directory, *directory.parents)):
        if not os.path.lexists(place):
            try:
                place.mkdir()
            except OSError as error:
                raise StudyError(f"{directory} cannot be made: {error.strerror}") from error
            if caller is not None:
                os.chown(place, *caller, follow_symlinks=False)


def _made_by_killed_start(path: Path) -> Path:
    """What is to be given where `path` is there already: it, or the topmost of the directories made for it alone.

    Those are root's, hold nothing else, and are in a directory of the caller's: a start under sudo made them and was
    killed before it could give them away.
    """
    path = path.absolute()
    caller = sudo_caller()
    topmost = path
    for above in path.parents:
        status = os.lstat(above)
        if caller is None or stat.S_ISLNK(status.st_mode):
            break
        if status.st_uid == caller[0]:
            return topmost
        if status.st_uid != 0 or len(os.listdir(above)) != 1:  # noqa: PTH208 -- two names would do
            break
        topmost = above
    return path


def give_to_caller(path: Path) -> None:
    """Give `path` and all below it to the user who called sudo; nothing happens without sudo.

    Links are given themselves and never followed, and a file with several names stays as it is: another
    name may stand where this user has no business.
    """
    caller = sudo_caller()
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
