"""PRAGMAs by their names in a plan, and their words as SQLite spells them."""

from __future__ import annotations

OFF, NORMAL, FULL, EXTRA = SYNCHRONOUS = ("off", "normal", "full", "extra")
DELETE, TRUNCATE, PERSIST, MEMORY, WAL, NO_JOURNAL = JOURNAL_MODES = (
    *("delete", "truncate", "persist", "memory", "wal"),
    OFF,
)
LOCKING_MODES = ("normal", "exclusive")
EXCLUSIVE = LOCKING_MODES[1]
BEGIN = "begin"
BEGINS = ("immediate", "deferred")
BUSY_TIMEOUT = "busy_timeout"
LONGEST_BUSY_MS = 600_000
AUTO_VACUUMS = ("none", "full", "incremental")
PAGE_SIZE = "page_size"
PAGE_SIZES = tuple(512 << step for step in range(8))
