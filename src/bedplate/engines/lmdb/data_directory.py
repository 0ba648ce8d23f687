"""An environment's directory, known by its file: how it is opened is the program's that opens it, and stands nowhere."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

from bedplate.host.plain_file import plain_bytes
from bedplate.model.data_directory import DataDirectory, KnownFiles
from bedplate.model.engines import LMDB

if TYPE_CHECKING:
    from pathlib import Path

_FILE = "data.mdb"
# mdb.c: the header of a page (16 bytes on 64 bits), then MDB_meta with its magic and the version of the data.
_MAGIC_AT, _MAGIC = 16, 0xBEEFC0DE


def recognise(directory: Path) -> DataDirectory | None:
    """The environment in a directory, or whose file it is; None where there is none."""
    path = directory / _FILE if directory.is_dir() else directory
    try:
        head = plain_bytes(path, _MAGIC_AT + 8)
    except PermissionError:
        # In a directory that is closed nothing says whether there is such a file.
        if path.name != _FILE or not os.path.isfile(path):  # noqa: PTH113 -- Path.is_file raises there
            return None
        return _found(path, "", (f"{path}: no right to read it",))
    except OSError:
        return None
    if len(head) < _MAGIC_AT + 8:
        return None
    magic, version = struct.unpack_from("=II", head, _MAGIC_AT)
    return _found(path, str(version), ()) if magic == _MAGIC else None


def _found(path: Path, version: str, unread: tuple[str, ...]) -> DataDirectory:
    words = "with which flags the environment is opened (MDB_NOSYNC, …) only the program knows that opens it"
    return DataDirectory(
        engine=LMDB,
        version=version,
        places={"data": str(path.parent)},
        unread=(*unread, words),
        knows_settings=False,
    )


DATA_DIRECTORY = KnownFiles(recognise)
