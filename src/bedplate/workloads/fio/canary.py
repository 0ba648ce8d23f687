"""fio's canary: an overwritten file whose writes are synced one by one."""

from __future__ import annotations

from bedplate.model.cell import Dataset, RunSpec
from bedplate.model.levels import Levels
from bedplate.model.plan import Load
from bedplate.workloads.fio.words import WORKLOAD

CANARY = Load(
    Dataset(WORKLOAD, Levels()),
    (
        RunSpec(
            "canary",
            WORKLOAD,
            Levels(rw="write", bs="8 kB", size="64 MB", fdatasync=1, overwrite=True, runtime="8 s"),
        ),
    ),
)
