"""Where the files and directories of a mounted file system lie on its device, by the kernel's maps of them."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.host.pages.extents import extents_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True)
class PlacedExtent:
    """`length` bytes of a file from `offset` on, which lie at `address`: of the device, or where the type has them, a logical one."""

    path: str
    offset: int
    address: int
    length: int
    is_folder: bool = False


def extents_below(root: Path) -> Iterator[PlacedExtent]:
    """Of every file and directory below a mount point, on the same file system; paths below it.

    What cannot be read, or has no map, as a directory of XFS, is left out.
    """
    device = root.stat().st_dev
    folders = [""]
    while folders:
        folder = folders.pop()
        yield from _of(root, folder, is_folder=True)
        try:
            entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if status.st_dev != device:
                continue
            if stat.S_ISDIR(status.st_mode):
                folders.append(path)
            elif stat.S_ISREG(status.st_mode):
                yield from _of(root, path, is_folder=False)


def _of(root: Path, path: str, *, is_folder: bool) -> Iterator[PlacedExtent]:
    try:
        found = extents_of(root / path)
    except OSError:
        return
    for extent in found:
        if extent.at is not None:
            yield PlacedExtent(path, extent.start, extent.at, extent.length, is_folder)
