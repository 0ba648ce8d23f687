"""Parts of PostgreSQL's files by name: pages with their numbers and log sequence numbers, the WAL by its position.

Sources: storage.sgml and src/include/storage/bufpage.h for pages, src/include/access/xlog_internal.h for segments of the WAL.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.cluster import Cluster
from bedplate.engines.postgresql.recorded import START_OPTIONS, levels_of
from bedplate.errors import KilledFromOutside
from bedplate.units import one_line
from bedplate.visit.engine_server import ServerFailed
from bedplate.visit.piped_session import SessionFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.visit.cut_engine import Subject
    from bedplate.visit.engine_server import ServerSite
    from bedplate.visit.page_names import PageNames

_RELATION = re.compile(r"((?:base/\d+|global|pg_tblspc/[^/]+/[^/]+/\d+)/(\d+))(?:_(\w+))?(?:\.(\d+))?")
_START_LIMIT_S = 600.0
_WAL = "pg_wal"
# What names hang on: files of relations, and beside them how many bytes a segment of the WAL has.
_FILES_OF_RELATIONS = (
    "SELECT pg_relation_filepath(oid), relname::text FROM pg_class WHERE pg_relation_filepath(oid) IS NOT NULL "
    "UNION ALL SELECT 'pg_wal', setting FROM pg_settings WHERE name = 'wal_segment_size'"
)
_SEGMENT = re.compile(r"pg_wal/([0-9A-F]{8})([0-9A-F]{8})([0-9A-F]{8})")
_SEGMENT_SIZES = tuple(1 << step for step in range(20, 31))
# XLogPageHeaderData: magic, info, timeline, address of the page. The magic of each version is 0xD000 and more.
_WAL_HEADER = struct.Struct("<HHIQ")
_WAL_MAGICS = range(0xD000, 0xD200)
# A file of a relation is cut into such pieces (RELSEG_SIZE, 1 GB whatever the page).
_RELATION_SEGMENT_BYTES = 2**30
_HEADER = struct.Struct("<IIHHHHHH")
_SMALLEST_PAGE, _LARGEST_PAGE, _USUAL_BYTES = 1024, 32768, 8192
_FILES = {
    "pg_xact": "states of transactions",
    "pg_multixact": "multixacts",
    "pg_subtrans": "parents of subtransactions",
    "global/pg_control": "the control file",
    "pg_logical": "logical decoding",
}


class PostgresqlPageNames:
    """The page's size stands in each page's header; written parts behind a header have that of the build."""

    def called(self, site: ServerSite, subject: Subject) -> Mapping[str, str]:
        """Relations of the clients' database and the shared ones, as a server on the data says; none where it does not start, or says nothing."""
        cluster = Cluster(site)
        try:
            cluster.configure_apart(levels_of(subject))
            cluster.start(timeout_s=_START_LIMIT_S, options=START_OPTIONS)
            with cluster.session() as session:
                return {str(path): str(name) for path, name in session.rows(_FILES_OF_RELATIONS)}
        except (ServerFailed, SessionFailed, KilledFromOutside, OSError):
            # A name is told where there is one; what is wrong with the data is another's to find.
            return {}
        finally:
            cluster.kill()

    def name(
        self, path: str, offset: int, written: bytes, called: Mapping[str, str], subject: Subject
    ) -> str | None:
        """A page of a relation, a position of the WAL, or what a file is for."""
        if (found := _SEGMENT.fullmatch(path)) is not None:
            log, segment = int(found[2], 16), int(found[3], 16)
            begin = _begin_of(segment, called.get(_WAL), offset, written)
            return (
                f"WAL, byte {offset} of a segment" if begin is None else f"WAL at {log:X}/{begin + offset:X}"
            )
        if (found := _RELATION.fullmatch(path)) is not None:
            file, filenode, fork, piece = found.groups()
            relation = one_line(called.get(file, filenode))
            usual = _USUAL_BYTES if subject.build is None else subject.build.block_size_bytes
            size, lsn = _page(written, usual)
            at = offset + int(piece or 0) * _RELATION_SEGMENT_BYTES
            where = f"page {at // size}" if at % size == 0 else f"page {at // size}, byte {at % size} of it"
            what = f"relation {relation}" if fork is None else f"relation {relation} ({fork})"
            return f"{what}, {where}{f', LSN {lsn}' if lsn and at % size == 0 else ''}"
        return next(
            (words for name, words in _FILES.items() if path == name or path.startswith(f"{name}/")), None
        )


def _begin_of(segment: int, told: str | None, offset: int, written: bytes) -> int | None:
    """Where a segment of the WAL begins, as the server told its size, or a page of it says where it is itself; None where neither does."""
    for size in _SEGMENT_SIZES:
        if told == str(size):
            return segment * size
    if len(written) < _WAL_HEADER.size:
        return None
    magic, _, _, address = _WAL_HEADER.unpack_from(written)
    begins = (segment * size for size in _SEGMENT_SIZES if magic in _WAL_MAGICS)
    return next((begin for begin in begins if begin == (address - offset) & 0xFFFFFFFF), None)


def _page(written: bytes, usual: int) -> tuple[int, str | None]:
    """Size and log sequence number of the page that begins here; the usual size and None where none does."""
    if len(written) >= _HEADER.size + 4:
        high, low, _, _, lower, upper, special, size_and_version = _HEADER.unpack_from(written)
        size = size_and_version & 0xFF00
        is_page = lower <= upper <= special <= size
        if is_page and _SMALLEST_PAGE <= size <= _LARGEST_PAGE and size & (size - 1) == 0:
            return size, f"{high:X}/{low:X}"
    return usual, None


PAGE_NAMES: PageNames = PostgresqlPageNames()
