"""SQLite under power cuts: its PRAGMAs, and what it calls lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.sqlite.durability import bound_transactions
from bedplate.engines.sqlite.library import LIBSQLITE3
from bedplate.engines.sqlite.model import MODEL
from bedplate.engines.sqlite.settings import OFF
from bedplate.visit.native_cuts import NativeCuts
from bedplate.visit.workload import Driver

if TYPE_CHECKING:
    from bedplate.model.levels import Levels


def _told(settings: Levels) -> Levels:
    """A plan that leaves it to the tests means `full`, SQLite's own default."""
    return settings.updated(synchronous=MODEL.commit_mode(settings))


POWER_CUT = NativeCuts(
    Driver("power_cut", (LIBSQLITE3,), "sqlite"),
    "SQLite",
    _told,
    lambda settings: MODEL.commit_mode(settings) == OFF,
    bound_transactions,
)
