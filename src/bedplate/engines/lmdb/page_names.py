"""Parts of LMDB's file by name: its pages, and what their header says they are (mdb.c, MDB_page)."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

from bedplate.visit.page_names import PageNames

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.visit.cut_engine import Subject

_DATA, _LOCK = "data.mdb", "lock.mdb"
# Number, padding and flags; a meta page's transaction stands behind its two databases.
_HEADER = struct.Struct("<QHH")
_TRANSACTION_AT = 16 + 128
_KINDS = {0x01: "branch page", 0x02: "leaf page", 0x04: "overflow page", 0x08: "meta page"}
_META = 0x08


class LmdbPageNames(PageNames):
    """A page is as large as the machine's."""

    def name(
        self,
        path: str,
        offset: int,
        written: bytes,
        called: Mapping[str, str],  # noqa: ARG002 -- as above
        subject: Subject,  # noqa: ARG002 -- of those whose pages are chosen
    ) -> str | None:
        """A page of the map; the first two are metas, which point at all others."""
        if path.endswith(_LOCK):
            return "the lock file"
        if not path.endswith(_DATA):
            return None
        size = os.sysconf("SC_PAGE_SIZE")
        page = offset // size
        words = f"page {page}"
        if offset % size or len(written) < _HEADER.size:
            return words
        number, _, flags = _HEADER.unpack_from(written)
        kind = next((kind for bit, kind in _KINDS.items() if flags & bit), None)
        if number != page or kind is None:
            return words
        if flags & _META and len(written) >= _TRANSACTION_AT + 8:
            (transaction,) = struct.unpack_from("<Q", written, _TRANSACTION_AT)
            return f"{words}, {kind} of transaction {transaction}"
        return f"{words}, {kind}"


PAGE_NAMES: PageNames = LmdbPageNames()
