"""What records say of the datasets and runs of LMDB's microbenchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.engines import LMDB
from bedplate.model.lmdb import WRITE
from bedplate.model.workload import WorkloadModel

if TYPE_CHECKING:
    from bedplate.model.cell import RunSpec


class MicrobenchmarkModel(WorkloadModel):
    """The runs after it read what one run made."""

    def fills(self, spec: RunSpec) -> bool:
        """What writes makes the databases."""
        return spec.levels.text("kind") == WRITE


MODEL = MicrobenchmarkModel(
    LMDB,
    plan_keys={
        "entries": "entries",
        "value_bytes": "value_size",
        "batch": "batch",
        "tests": "tests",
        "threads": "threads",
        "map_bytes": "map_size",
    },
)
