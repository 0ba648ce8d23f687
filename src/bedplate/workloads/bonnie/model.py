"""What records say of bonnie++'s datasets and runs."""

from __future__ import annotations

from bedplate.model.engines import NO_ENGINE
from bedplate.model.workload import WorkloadModel

WORKLOAD = "bonnie"

MODEL = WorkloadModel(
    NO_ENGINE,
    {"bonnie++": "-v"},
    plan_keys={
        "file_bytes": "file_size",
        "direct": "direct",
        "chunk_bytes": "chunk_size",
        "per_character_bytes": "per_character",
        "files": "files",
    },
)
