"""LMDB from a tree of somebody's own: its two files, compiled once for each commit and linked into drivers."""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.engines.lmdb.visit import LIBLMDB
from bedplate.errors import BuildFailed, PlanError, RequirementMissing
from bedplate.host.command import Commands
from bedplate.host.files import bytes_below, cache_directory, plain_bytes
from bedplate.host.git import write_tree
from bedplate.host.native_driver import Library, compiled_library
from bedplate.host.shut_in import builder_account
from bedplate.model.cell import SOURCE, SourceTree, commit_digits
from bedplate.model.engines import LMDB, DataDirectory, KnownFiles
from bedplate.units import MIB

if TYPE_CHECKING:
    from bedplate.campaign.preparation import OwnLibrary

# The fact of a tree that says in which of its folders the source is, empty for its top.
PLACE = "place"

# LMDB's own repository, and OpenLDAP's; a copy in a tree of its own.
_PLACES = ("libraries/liblmdb", "")

_FILE_BYTES_MOST = 16 * MIB
_FILES = ("mdb.c", "midl.c", "midl.h", "lmdb.h")


def place_in_tree(read_file: Callable[[str], str | None]) -> Mapping[str, str]:
    """Where a commit has LMDB's source; PlanError where it has none."""
    for place in _PLACES:
        if read_file(f"{place}/mdb.c".lstrip("/")) is not None:
            return {PLACE: place}
    raise PlanError("it is no LMDB: it has mdb.c neither in libraries/liblmdb nor at its top")


class LmdbTree:
    """By the commit of a cell."""

    settings: tuple[str, ...] = (SOURCE,)

    def ensure(self, level: str, path: str | None, source_tree: SourceTree | None = None) -> Library:  # noqa: ARG002 -- of archives
        """Compiled now where the cache lacks it."""

        def files() -> Mapping[str, bytes]:
            if source_tree is None:
                raise RequirementMissing(f"the plan does not say where commit {level} is")
            engines = cache_directory() / "engines"
            with tempfile.TemporaryDirectory(prefix=".tree-", dir=engines) as temporary:
                place = Path(temporary)
                place.chmod(0o711)
                write_tree(place / "source", source_tree, account=builder_account(), commands=Commands())
                try:
                    return {
                        name: bytes_below(
                            place / "source", str(Path(source_tree.facts[PLACE], name)), _FILE_BYTES_MOST
                        )
                        for name in _FILES
                    }
                except OSError as error:
                    raise BuildFailed(
                        f"LMDB of {level}: {error.filename} cannot be read: {error.strerror}"
                    ) from None

        return compiled_library(
            LIBLMDB,
            name=f"lmdb-{commit_digits(level)}",
            read_files=files,
            linker_words=("-lpthread",),
            cache_directory=cache_directory() / "engines",
            commands=Commands(),
        )


OWN_LIBRARY: OwnLibrary = LmdbTree()

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
        return _data_directory(path, "", (f"{path}: no right to read it",))
    except OSError:
        return None
    if len(head) < _MAGIC_AT + 8:
        return None
    magic, version = struct.unpack_from("=II", head, _MAGIC_AT)
    return _data_directory(path, str(version), ()) if magic == _MAGIC else None


def _data_directory(path: Path, version: str, unread: tuple[str, ...]) -> DataDirectory:
    words = "with which flags the environment is opened (MDB_NOSYNC, …) only the program knows that opens it"
    return DataDirectory(
        engine=LMDB,
        version=version,
        places={"data": str(path.parent)},
        unread=(*unread, words),
        knows_settings=False,
    )


DATA_DIRECTORY = KnownFiles(recognise)
