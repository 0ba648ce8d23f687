"""How LMDB's environment is opened, by the names of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.engine import BY_TEST
from bedplate.model.levels import Levels
from bedplate.model.source_commit import SOURCE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.model.levels import Scalar

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


def settings_in_force(asked: Levels) -> Levels:
    """Every setting of the environment, asked for or not; which library opens it is none."""
    return Levels({**_DEFAULTS, **{name: level for name, level in asked.items() if name != SOURCE}})
