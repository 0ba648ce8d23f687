"""What records say of LMDB."""

from __future__ import annotations

from collections.abc import Mapping

from bedplate.model.cell import BY_TEST, SOURCE, EngineModel
from bedplate.model.levels import Levels, Scalar

FULL = "full"
NOMETASYNC = "nometasync"
NOSYNC = "nosync"
MAPASYNC = "mapasync"
SYNC_MODES = (FULL, NOMETASYNC, NOSYNC, MAPASYNC)

# What commits a test that is called synchronous cannot do.
ASYNCHRONOUS = (NOSYNC, MAPASYNC)

PREALLOCATIONS = ("none", "ftruncate", "fallocate", "written")

# How the environment is opened where a plan says nothing.
_DEFAULTS: Mapping[str, Scalar] = {
    "sync": BY_TEST,
    "writemap": False,
    "readahead": True,
    "preallocation": "none",
}


def settings_in_force(settings: Levels) -> Levels:
    """Every setting of the environment, asked for or not; which library opens it is none."""
    return Levels({**_DEFAULTS, **{name: level for name, level in settings.items() if name != SOURCE}})


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
