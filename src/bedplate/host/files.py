"""What stands in a file: its text, where it is small and may be gone, and the checksum that records keep; and the folders of others."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def sha256_of(path: Path) -> str:
    """The checksum that package indexes promise, in lower-case hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_of(path: Path) -> str:
    """The text without blanks around it; empty where there is no such file, or it may not be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def folders_below(top: Path) -> Iterator[tuple[str, tuple[os.DirEntry[str], ...]]]:
    """`top` and each folder below it, with what is in it but folders; links are not followed.

    However deep: os.walk (before Python 3.12) and Path.rglob call themselves for each folder, and a program of others may make thousands,
    one in the other. A folder that is gone meanwhile, or has too long a path, is left out.
    """
    folders = [os.fspath(top)]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as found:
                entries = {entry: entry.is_dir(follow_symlinks=False) for entry in found}
        except OSError:
            continue
        yield folder, tuple(entry for entry, is_folder in entries.items() if not is_folder)
        folders += (entry.path for entry, is_folder in entries.items() if is_folder)
