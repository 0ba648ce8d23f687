"""bonnie++'s canary: a small file, and a few files beside it."""

from __future__ import annotations

from bedplate.model.cell import Dataset, RunSpec
from bedplate.model.levels import Levels
from bedplate.model.plan import Load
from bedplate.model.raw import BONNIE
from bedplate.units import MIB

CANARY = Load(
    Dataset(BONNIE, Levels(file_bytes=256 * MIB)),
    (
        RunSpec(
            "canary",
            BONNIE,
            Levels(direct=False, chunk_bytes=8192, per_character_bytes=0, files=1024),
        ),
    ),
)
