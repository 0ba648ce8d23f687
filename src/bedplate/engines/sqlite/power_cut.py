"""SQLite under power cuts: its PRAGMAs, and what it calls lost."""

from __future__ import annotations

from bedplate.engines.sqlite.amalgamation import LIBRARY_SETTINGS, told_of_library
from bedplate.engines.sqlite.durability import bound_transactions
from bedplate.engines.sqlite.library import LIBSQLITE3
from bedplate.engines.sqlite.model import MODEL
from bedplate.engines.sqlite.settings import BEGIN, BUSY_TIMEOUT, OFF
from bedplate.model.levels import Levels
from bedplate.visit.native_cuts import NativeCuts
from bedplate.visit.workload import Driver


def _told(settings: Levels) -> Levels:
    """A plan that leaves it to the tests means `full`, SQLite's own default. One connection waits for no other's lock."""
    told = {
        name: level for name, level in told_of_library(settings).items() if name not in (BEGIN, BUSY_TIMEOUT)
    }
    return Levels(told, synchronous=MODEL.commit_mode(settings))


POWER_CUT = NativeCuts(
    Driver("power_cut", (LIBSQLITE3,), "sqlite", LIBRARY_SETTINGS),
    "SQLite",
    _told,
    lambda settings: MODEL.commit_mode(settings) == OFF,
    bound_transactions,
)
