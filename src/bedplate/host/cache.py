"""Folders of the cache that are made once: one start makes one, and it is there whole or not at all, whoever is killed.

    <cache>/builds/NAME/         put there by a rename, once all of it is on disk
    <cache>/builds/.work-NAME/   where it is made; the next maker removes what a killed one left
    <cache>/builds/.NAME.lock    held by its maker, and by who removes it; it stays, empty

What decides the result is part of the name, so that a folder that is there never has to be made again.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bedplate.host.files import file_lock, file_lock_if_free, sync_directory

_Kept = TypeVar("_Kept")

_WORK = ".work-"
_DAY_S = 86_400.0


def make_once(
    folder: Path,
    find: Callable[[], _Kept | None],
    make: Callable[[Path], _Kept],
    *,
    on_wait: Callable[[], None] | None = None,
) -> _Kept:
    """What `find` says of `folder`; where that is None, what `make` made of it, of all starts that ask at once by one.

    `make` gets an empty work folder, and calls `put_in_place` at the end. `on_wait` is called once where another start makes it.
    """
    kept = find()
    if kept is None:
        with file_lock(lock_of(folder), on_wait=on_wait):
            kept = find()
            if kept is None:
                with work_place(folder) as work:
                    kept = make(work)
    return kept


def lock_of(path: Path) -> Path:
    """The file that is locked while the folder at `path`, finished or in its work folder, is made."""
    return path.with_name(f".{path.name.removeprefix(_WORK)}.lock")


@contextmanager
def work_place(folder: Path) -> Iterator[Path]:
    """An empty folder beside `folder` to make it in, gone afterwards. The caller holds its lock.

    Those of makers that were killed go first: nobody holds their lock.
    """
    work = folder.with_name(f"{_WORK}{folder.name}")
    for left in folder.parent.glob(f"{_WORK}*"):
        with file_lock_if_free(lock_of(left)) as is_free:
            if is_free:
                shutil.rmtree(left, ignore_errors=True)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(mode=0o755)
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def put_in_place(fresh: Path, path: Path) -> None:
    """Rename a folder or file `fresh` to `path` once all of it is on disk; a folder that was there is removed first.

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
    if path.is_dir():
        shutil.rmtree(path)
    fresh.rename(path)
    sync_directory(path.parent)


def _files(top: Path) -> Iterator[int]:
    """A descriptor of each regular file, closed after its turn."""
    below = (Path(place, name) for place, _, names in os.walk(top) for name in names)
    for path in below if top.is_dir() else (top,):
        if path.is_symlink() or not path.is_file():
            continue
        file = os.open(path, os.O_RDONLY)
        try:
            yield file
        finally:
            os.close(file)


@dataclass(frozen=True)
class Unused:
    """A folder of the cache that nothing uses any more, and why.

    `lock` is held by whoever makes such a folder, `mark` is the file that makes it count.
    """

    path: Path
    reason: str
    lock: Path
    mark: str


def unused_folders(directory: Path, mark: str, reason_of: Callable[[Path], str | None]) -> Iterator[Unused]:
    """Those that killed makers left, and those of which `reason_of` gives a reason; `mark` is the file that makes one count. Changes nothing."""
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        # A link is somebody's own business.
        if not path.is_dir() or path.is_symlink():
            continue
        half_made = path.name.startswith(_WORK)
        reason = "half made by a start that was ended" if half_made else reason_of(path)
        if reason is not None:
            yield Unused(path, reason, lock_of(path), mark)


def days_since(path: Path) -> float:
    """Days since a file was changed, or touched by whoever used what it stands for."""
    return (time.time() - path.stat().st_mtime) / _DAY_S
