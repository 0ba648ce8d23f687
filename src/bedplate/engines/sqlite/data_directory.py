"""A database file, known by its header (sqlite.org/fileformat2.html): what is chosen when it is made, and whether it is in WAL mode.

How a connection opens it (`synchronous`, and the journal where that is not the WAL) is the program's that opens it, and stands nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.sqlite.settings import AUTO_VACUUMS, PAGE_SIZE, WAL
from bedplate.host.plain_file import plain_bytes
from bedplate.model.data_directory import DataDirectory, KnownFiles
from bedplate.model.engines import SQLITE

if TYPE_CHECKING:
    from pathlib import Path

_HEADER_BYTES = 100
_MAGIC = b"SQLite format 3\0"
# A size that two bytes do not hold.
_LARGEST_AS, _LARGEST = 1, 65536
_USUAL_PAGE_BYTES = 4096
_IN_WAL = bytes((2, 2))


def recognise(path: Path) -> DataDirectory | None:
    """The database whose file it is; None of anything else, a directory too."""
    try:
        head = plain_bytes(path, _HEADER_BYTES)
    except OSError:
        return None
    if len(head) < _HEADER_BYTES or not head.startswith(_MAGIC):
        return None
    page_bytes = _number(head, 16, 2)
    settings = {PAGE_SIZE: str(_LARGEST if page_bytes == _LARGEST_AS else page_bytes)}
    in_wal = head[18:20] == _IN_WAL
    if in_wal:
        settings["journal_mode"] = WAL
    # The largest root page is kept where there is a vacuum, and then whether it is incremental.
    if _number(head, 52):
        settings["auto_vacuum"] = AUTO_VACUUMS[2 if _number(head, 64) else 1]
    of_each = "synchronous and locking_mode" if in_wal else "synchronous, journal_mode and locking_mode"
    return DataDirectory(
        engine=SQLITE,
        version=_version(_number(head, 96)),
        settings=settings,
        said_by={
            name: "its header"
            for name, value in settings.items()
            if (name, value) != (PAGE_SIZE, str(_USUAL_PAGE_BYTES))
        },
        places={"data": str(path.parent)},
        unread=(f"{of_each} are each connection's own: only the program knows them that opens the file",),
        knows_settings=False,
        measured_by="microbenchmark",
    )


def _number(head: bytes, at: int, size: int = 4) -> int:
    return int.from_bytes(head[at : at + size])


def _version(number: int) -> str:
    """`3.40.1` of 3040001, the library that wrote last; empty before the first."""
    return f"{number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}" if number else ""


DATA_DIRECTORY = KnownFiles(recognise)
