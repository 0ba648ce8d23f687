"""LMDB under power cuts: how its environment is opened then."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping

from bedplate.engines.lmdb.model import ASYNCHRONOUS, MODEL, NOMETASYNC, settings_in_force
from bedplate.engines.lmdb.visit import LIBLMDB
from bedplate.model.cell import SOURCE
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

DRIVER = Driver("power_cut", (LIBLMDB,), "lmdb", (SOURCE,))


def _effective_settings(settings: Levels) -> Levels:
    """A plan that leaves it to the tests means the library's own default here."""
    return settings_in_force(settings).updated(sync=MODEL.commit_mode(settings))


def bound_transactions(settings: Levels) -> int | None:
    """What lmdb.h calls the bound of MDB_NOMETASYNC: the last transaction; None for any other mode."""
    return 1 if MODEL.commit_mode(settings) == NOMETASYNC else None


POWER_CUT = NativeCuts(
    DRIVER,
    "LMDB",
    _effective_settings,
    lambda settings: MODEL.commit_mode(settings) in ASYNCHRONOUS,
    bound_transactions,
)

FAULTY_DISK = FaultEngine(POWER_CUT, log_files=(), data_files=("data.mdb",))

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
        data: bytes,
        file_names: Mapping[str, str],  # noqa: ARG002 -- as above
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
        if offset % size or len(data) < _HEADER.size:
            return words
        number, _, flags = _HEADER.unpack_from(data)
        kind = next((kind for bit, kind in _KINDS.items() if flags & bit), None)
        if number != page or kind is None:
            return words
        if flags & _META and len(data) >= _TRANSACTION_AT + 8:
            (transaction,) = struct.unpack_from("<Q", data, _TRANSACTION_AT)
            return f"{words}, {kind} of transaction {transaction}"
        return f"{words}, {kind}"


PAGE_NAMES: PageNames = LmdbPageNames()


# A damaged map ends mdb_dump by an error, by a signal, or never.
REPRODUCTION: Reproduction = LibraryReproduction(
    "mdb_dump (Debian: lmdb-utils)",
    'need mdb_dump "Debian: lmdb-utils"; need python3 "Debian: python3"',
    'timeout 300 mdb_dump -a "$data" > /dev/null 2> "$own/said" ||',
    '    bad "mdb_dump ends with $?: $(head -n 1 "$own/said")"',
    "for table in entries accounts; do",
    '    timeout 300 mdb_dump -s $table "$data" 2> "$own/said" | sed -n "s/^ //p" | paste -d " " - - > "$own/$table"',
    "done",
)
