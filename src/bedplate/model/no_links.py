"""Opening below a directory that was looked at: no link on the way is followed, whenever it was put there.

Whoever reads a study looks at all of it first (`study/folder.py`), and then asks for its files one after the other, by their paths. Its
owner may put a link in the place of a folder in between. So which directory was looked at is kept here, and what is below it
is opened name by name from there, whoever asks. Links above it are followed: the caller has named them.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from bedplate.errors import StudyError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Device and inode, by the path as it was named, and by the absolute one with its links and without.
_LOOKED_AT: dict[str, tuple[int, int]] = {}


def remember(directory: Path, descriptor: int) -> None:
    """From now on nothing below this directory is reached by a link; it was looked at by this descriptor."""
    status = os.fstat(descriptor)
    for name in (str(directory), str(directory.absolute()), str(directory.resolve())):
        _LOOKED_AT[name] = (status.st_dev, status.st_ino)


def open_without_links(path: Path, flags: int) -> int:
    """open(2) of a path; below a directory that was looked at neither it nor anything on the way may be a link.

    OSError as of open(2). StudyError where a link or a file stands in the place of a folder, or another directory in that of the
    one that was looked at.
    """
    flags |= os.O_CLOEXEC
    text = str(path)
    top = text
    while top not in _LOOKED_AT:
        if top in {"/", "."}:
            return os.open(text, flags)
        head, slash, _ = top.rpartition("/")
        top = head or slash or "."
    names = text[len(top) :].strip("/").split("/") if top != "." else text.split("/")
    if top == text:
        names = ["."]
    folder = os.open(top, _FOLDER)
    try:
        status = os.fstat(folder)
        if (status.st_dev, status.st_ino) != _LOOKED_AT[top]:
            raise StudyError(
                f"{top} is another directory than when all of it was looked at; call bedplate again"
            )
        for place, name in enumerate(names[:-1]):
            above = folder
            try:
                folder = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=above)
            except OSError as error:
                if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                    raise
                where = "/".join((top, *names[: place + 1]))
                raise StudyError(f"{where} is a link, or no folder: nothing is read through it") from error
            os.close(above)
        return os.open(names[-1], flags | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        error.filename = text
        raise
    finally:
        os.close(folder)


def is_there(path: Path) -> bool:
    """Whether anything has this name; a link is something, wherever it leads."""
    return _mode(path) is not None


def is_file(path: Path) -> bool:
    """Whether a plain file stands there; a link is none."""
    return stat.S_ISREG(_mode(path) or 0)


def _mode(path: Path) -> int | None:
    try:
        descriptor = open_without_links(path, os.O_PATH | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        return os.fstat(descriptor).st_mode
    finally:
        os.close(descriptor)


def entries_below(directory: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """All that is below a folder, each with its path from there; a folder comes before what is in it, and links are not followed.

    OSError where a folder cannot be listed. An entry is to be asked while it is at hand.
    """
    folders = [("", open_without_links(directory, _FOLDER | os.O_NOFOLLOW))]
    scans = [os.scandir(folders[0][1])]
    try:
        while folders:
            prefix, descriptor = folders[-1]
            if (entry := next(scans[-1], None)) is None:
                scans.pop().close()
                os.close(folders.pop()[1])
                continue
            yield prefix + entry.name, entry
            if entry.is_dir(follow_symlinks=False):
                below = os.open(entry.name, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
                folders.append((f"{prefix}{entry.name}/", below))
                scans.append(os.scandir(below))
    finally:
        for scan in scans:
            scan.close()
        for _, descriptor in folders:
            os.close(descriptor)


def names_in(directory: Path) -> dict[str, bool]:
    """The names in a folder, in order, and whether each is a folder too; none where there is no folder."""
    try:
        descriptor = open_without_links(directory, _FOLDER | os.O_NOFOLLOW)
    except FileNotFoundError:
        return {}
    except NotADirectoryError as error:
        if is_file(directory):
            return {}
        raise StudyError(f"{directory} is a link, or no folder: nothing is read through it") from error
    try:
        with os.scandir(descriptor) as entries:
            return dict(sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries))
    finally:
        os.close(descriptor)


def folders_below(directory: Path, *, levels: int = 1) -> Iterator[Path]:
    """The folders so many levels below one, by their paths in order."""
    for name, is_folder in names_in(directory).items():
        if is_folder and levels > 1:
            yield from folders_below(directory / name, levels=levels - 1)
        elif is_folder:
            yield directory / name
