"""bonnie++'s canary: a small file, and a few files beside it."""

from __future__ import annotations

from bedplate.model.cell import Dataset, RunSpec
from bedplate.model.levels import Levels
from bedplate.model.plan import Load
from bedplate.units import MIB
from bedplate.workloads.bonnie.model import WORKLOAD

CANARY = Load(
    Dataset(WORKLOAD, Levels(file_bytes=256 * MIB)),
    (
        RunSpec(
            "canary",
            WORKLOAD,
            Levels(direct=False, chunk_bytes=8192, per_character_bytes=0, files=1024),
        ),
    ),
)
