"""LMDB under power cuts: how its environment is opened then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.lmdb.library import LIBLMDB
from bedplate.engines.lmdb.model import MODEL
from bedplate.engines.lmdb.settings import ASYNCHRONOUS, NOMETASYNC, settings_in_force
from bedplate.model.source_commit import SOURCE
from bedplate.visit.native_cuts import NativeCuts
from bedplate.visit.workload import Driver

if TYPE_CHECKING:
    from bedplate.model.levels import Levels

DRIVER = Driver("power_cut", (LIBLMDB,), "lmdb", (SOURCE,))


def _told(settings: Levels) -> Levels:
    """A plan that leaves it to the tests means the library's own default here."""
    return settings_in_force(settings).updated(sync=MODEL.commit_mode(settings))


def bound_transactions(settings: Levels) -> int | None:
    """What lmdb.h calls the bound of MDB_NOMETASYNC: the last transaction; None for any other mode."""
    return 1 if MODEL.commit_mode(settings) == NOMETASYNC else None


POWER_CUT = NativeCuts(
    DRIVER,
    "LMDB",
    _told,
    lambda settings: MODEL.commit_mode(settings) in ASYNCHRONOUS,
    bound_transactions,
)
