"""What records say of LMDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.lmdb.settings import ASYNCHRONOUS, FULL, NOSYNC
from bedplate.model.engine import EngineModel
from bedplate.model.source_commit import SOURCE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.model.levels import Levels


class LmdbModel(EngineModel):
    """Its mode of syncing says when a commit waits."""

    def waits(self, settings: Levels, in_force: Mapping[str, str]) -> bool:
        """By how the environment was opened."""
        return (in_force.get("lmdb.sync") or settings.text("sync")) not in ASYNCHRONOUS


MODEL = LmdbModel(
    "LMDB",
    {"cluster.settings.": "lmdb."},
    cuts_per_s=400 / 60,
    commit_setting="sync",
    commit_modes=(FULL, NOSYNC),
    library_settings=(SOURCE,),
)
