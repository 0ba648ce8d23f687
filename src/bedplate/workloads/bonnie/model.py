"""What records say of bonnie++'s datasets and runs."""

from __future__ import annotations

from bedplate.model.engines import NO_ENGINE
from bedplate.model.workload import RecordWords, WorkloadModel

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
    words=RecordWords(
        dataset="`file_bytes`",
        run="`direct`, `chunk_bytes`, `per_character_bytes`, `files`",
        phases="its stages (`put_block`, …) and `sync`",
        facts="`file_bytes`, `made_cold`, `tool_cpu_s`",
    ),
)
