"""What records say of sysbench's datasets and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.engines import MARIADB
from bedplate.model.workload import WorkloadModel

if TYPE_CHECKING:
    from bedplate.model.levels import Levels

ENGINE = "engine"
READ_ONLY = "oltp_read_only"
SCRIPTS = (READ_ONLY, "oltp_read_write", "oltp_update_index", "oltp_write_only")


class SysbenchModel(WorkloadModel):
    """Its dataset says which server it is for."""

    def engine_of(self, dataset: Levels) -> str:
        """As the dataset says."""
        return dataset.text(ENGINE) or super().engine_of(dataset)


MODEL = SysbenchModel(
    MARIADB,
    plan_keys={
        ENGINE: "engine",
        "tables": "tables",
        "table_size": "table_size",
        "script": "run.script",
        "threads": "run.threads",
        "warmup_s": "run.warmup",
        "duration_s": "run.duration",
        "rate_tps": "run.rate",
    },
)
