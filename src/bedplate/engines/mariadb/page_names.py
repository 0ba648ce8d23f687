"""Parts of MariaDB's files by name: InnoDB's pages with their log sequence numbers, its log, its buffer for double writing.

Source: storage/innobase/include/fil0types.h (FIL_PAGE_OFFSET, FIL_PAGE_LSN).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from bedplate.engines.mariadb.model import PAGE_SIZE, USUAL_PAGE_BYTES
from bedplate.units import KIB
from bedplate.visit.page_names import PageNames

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.visit.cut_engine import Subject

_HEADER = struct.Struct(">IIIIQ")
_PAGE_SIZES = (4096, 8192, 16384, 32768, 65536)


class MariadbPageNames(PageNames):
    """A page's number in its header tells the size of pages; parts behind a header have that of the cell."""

    def name(
        self,
        path: str,
        offset: int,
        written: bytes,
        called: Mapping[str, str],  # noqa: ARG002 -- as above
        subject: Subject,
    ) -> str | None:
        """A page of a tablespace, or of the log."""
        file = path.rpartition("/")[2]
        if file.startswith("ib_logfile"):
            return "InnoDB's log"
        if not (file.endswith(".ibd") or file.startswith(("ibdata", "undo"))):
            return None
        if len(written) >= _HEADER.size:
            _, number, _, _, sequence = _HEADER.unpack_from(written)
            if number and number * (size := offset // number) == offset and size in _PAGE_SIZES:
                return f"page {number}, log sequence number {sequence}"
        asked = subject.settings.integer(PAGE_SIZE)
        page_bytes = asked if asked in _PAGE_SIZES else USUAL_PAGE_BYTES
        return f"page {offset // page_bytes} of {page_bytes // KIB} kB"


PAGE_NAMES: PageNames = MariadbPageNames()
