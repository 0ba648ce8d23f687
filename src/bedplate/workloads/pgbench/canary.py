"""pgbench's canary: a run of seconds that holds no checkpoint."""

from __future__ import annotations

from bedplate.model.cell import Dataset, RunSpec
from bedplate.model.levels import Levels
from bedplate.model.plan import Load

CANARY = Load(
    Dataset("pgbench", Levels(scale=5)),
    (
        RunSpec(
            "canary",
            "pgbench",
            Levels(
                script="read-write",
                clients=2,
                jobs=2,
                warmup="fixed",
                warmup_s=2.0,
                duration_s=8.0,
                protocol="prepared",
            ),
        ),
    ),
)
