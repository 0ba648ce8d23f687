"""Parts of SQLite's files by name (sqlite.org/fileformat2.html): pages of the database, frames of the WAL, the rollback journal."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from bedplate.engines.sqlite.settings import PAGE_SIZE, PAGE_SIZES
from bedplate.visit.page_names import PageNames

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.visit.cut_engine import Subject

_USUAL_BYTES = 4096
_WAL_HEADER_BYTES, _FRAME_HEADER = 32, struct.Struct(">II")
_WAL_MAGICS = (0x377F0682, 0x377F0683)
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_KINDS = {2: "interior of an index", 5: "interior of a table", 10: "leaf of an index", 13: "leaf of a table"}
_FIRST = b"SQLite format 3\0"


class SqlitePageNames(PageNames):
    """By the page size of the cell, else the one that SQLite takes by itself."""

    def name(
        self,
        path: str,
        offset: int,
        written: bytes,
        called: Mapping[str, str],  # noqa: ARG002 -- as above
        subject: Subject,
    ) -> str:
        """Journals are known by their names, which SQLite derives from the database's."""
        asked = subject.settings.integer(PAGE_SIZE)
        page_bytes = asked if asked in PAGE_SIZES else _USUAL_BYTES
        if path.endswith("-journal"):
            is_header = written.startswith(_JOURNAL_MAGIC)
            return "rollback journal, its header" if is_header else "rollback journal"
        if path.endswith("-wal"):
            if (
                offset == 0
                and written[:4]
                and struct.unpack_from(">I", written.ljust(4, b"\0"))[0] in _WAL_MAGICS
            ):
                return "WAL, its header"
            frame = max(0, offset - _WAL_HEADER_BYTES) // (page_bytes + 24)
            return f"WAL, frame {frame + 1}"
        if path.endswith("-shm"):
            return "index of the WAL"
        page = offset // page_bytes + 1
        if written.startswith(_FIRST):
            return "page 1, the database's header"
        kind = _KINDS.get(written[0]) if written and offset % page_bytes == 0 else None
        return f"page {page}" if kind is None else f"page {page}, {kind}"


PAGE_NAMES: PageNames = SqlitePageNames()
