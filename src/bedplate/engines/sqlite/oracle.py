"""SQLite under power cuts: its PRAGMAs, and what it calls lost."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from bedplate.engines.sqlite.model import (
    BEGIN,
    BUSY_TIMEOUT,
    LIBRARY_SETTINGS,
    MODEL,
    OFF,
    PAGE_SIZE,
    PAGE_SIZES,
    told_of_library,
)
from bedplate.engines.sqlite.visit import LIBSQLITE3, bound_transactions
from bedplate.model.levels import Levels
from bedplate.visit.cuts import (
    FaultEngine,
    LibraryReproduction,
    NativeCuts,
    PageNames,
    Reproduction,
    Subject,
)
from bedplate.visit.recording import Driver


def _effective_settings(settings: Levels) -> Levels:
    """A plan that leaves it to the tests means `full`, SQLite's own default. One connection waits for no other's lock."""
    told = {
        name: level for name, level in told_of_library(settings).items() if name not in (BEGIN, BUSY_TIMEOUT)
    }
    return Levels(told, synchronous=MODEL.commit_mode(settings))


POWER_CUT = NativeCuts(
    Driver("power_cut", (LIBSQLITE3,), "sqlite", LIBRARY_SETTINGS),
    "SQLite",
    _effective_settings,
    lambda settings: MODEL.commit_mode(settings) == OFF,
    bound_transactions,
)

FAULTY_DISK = FaultEngine(POWER_CUT, log_files=("test.db-wal", "test.db-journal"), data_files=("test.db",))

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
        data: bytes,
        file_names: Mapping[str, str],  # noqa: ARG002 -- as above
        subject: Subject,
    ) -> str:
        """Journals are known by their names, which SQLite derives from the database's."""
        asked = subject.settings.integer(PAGE_SIZE)
        page_bytes = asked if asked in PAGE_SIZES else _USUAL_BYTES
        if path.endswith("-journal"):
            is_header = data.startswith(_JOURNAL_MAGIC)
            return "rollback journal, its header" if is_header else "rollback journal"
        if path.endswith("-wal"):
            if offset == 0 and data[:4] and struct.unpack_from(">I", data.ljust(4, b"\0"))[0] in _WAL_MAGICS:
                return "WAL, its header"
            frame = max(0, offset - _WAL_HEADER_BYTES) // (page_bytes + 24)
            return f"WAL, frame {frame + 1}"
        if path.endswith("-shm"):
            return "index of the WAL"
        page = offset // page_bytes + 1
        if data.startswith(_FIRST):
            return "page 1, the database's header"
        kind = _KINDS.get(data[0]) if data and offset % page_bytes == 0 else None
        return f"page {page}" if kind is None else f"page {page}, {kind}"


PAGE_NAMES: PageNames = SqlitePageNames()

# `-safe`: no extension is loaded, no other file or program is opened, whatever the database or a file of the user's asks for.
# Not `-readonly`: opening has to roll a hot journal back, as any program's opening does.
_SHELL = "sqlite3 -safe -init /dev/null -batch -noheader -separator ' '"


# Opening the database rolls a hot journal back, as any program's opening does.
REPRODUCTION: Reproduction = LibraryReproduction(
    "sqlite3 from 3.37 on (Debian: sqlite3)",
    'need sqlite3 "Debian: sqlite3"; need python3 "Debian: python3"',
    f"{_SHELL} :memory: 'SELECT 1' > /dev/null 2>&1 ||",
    '    cannot "sqlite3 has no option -safe: 3.37 or later is needed"',
    f'ask() {{ timeout 300 {_SHELL} "$data/test.db" "$1"; }}',
    'ask "PRAGMA integrity_check(3)" > "$own/said" 2>&1 || bad "sqlite3 ends with $?: $(head -n 1 "$own/said")"',
    'grep -qx ok "$own/said" || bad "integrity_check: $(head -n 1 "$own/said")"',
    "for table in entries accounts; do",
    '    ask "SELECT hex(key), hex(value) FROM $table" > "$own/$table" 2> "$own/said"',
    "done",
)
