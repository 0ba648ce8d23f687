"""Folders that are whole or absent, also after a power cut: made in a work folder beside it, then put in its place."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.host.file_lock import file_lock_if_free

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORK = ".work-"


def work_folder(folder: Path) -> Path:
    """Where `folder` is made before it is put in its place."""
    return folder.with_name(f"{_WORK}{folder.name}")


def is_work_folder(path: Path) -> bool:
    """Whether a folder is one in which another is made."""
    return path.name.startswith(_WORK)


def lock_of(path: Path) -> Path:
    """The file that is locked while the folder at `path`, finished or in its work folder, is made."""
    return path.with_name(f".{path.name.removeprefix(_WORK)}.lock")


def sweep_work_folders(directory: Path, *, but: Path) -> None:
    """Remove those of starts that were killed: nobody holds their lock."""
    for left in directory.glob(f"{_WORK}*"):
        if left == but:
            continue
        with file_lock_if_free(lock_of(left)) as free:
            if free:
                shutil.rmtree(left, ignore_errors=True)


def put_in_place(fresh: Path, folder: Path) -> None:
    """Rename `fresh` to `folder` once all of it is on disk; what was there is removed first.

    Both are on one file system. File by file, not by sync(2): that would wait for every write of the
    machine, which is minutes while images are filled.
    """
    # All writing is begun before any of it is waited for, so that one journal commit serves many files.
    for file in _files(fresh):
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    for file in _files(fresh):
        os.fsync(file)
    for place, _, _ in os.walk(fresh):
        sync_directory(Path(place))
    if folder.exists():
        shutil.rmtree(folder)
    fresh.rename(folder)
    sync_directory(folder.parent)


def _files(top: Path) -> Iterator[int]:
    """A descriptor of each regular file, closed after its turn."""
    for place, _, names in os.walk(top):
        for path in (Path(place, name) for name in names):
            if path.is_symlink() or not path.is_file():
                continue
            file = os.open(path, os.O_RDONLY)
            try:
                yield file
            finally:
                os.close(file)


def sync_directory(path: Path) -> None:
    """Bring the names in it to the medium. Not os.sync: that would wait for every other file system of the machine."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
