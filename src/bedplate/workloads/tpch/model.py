"""What records say of the datasets and runs of TPC-H."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.engines import POSTGRESQL
from bedplate.model.tpch import LOAD
from bedplate.model.workload import WorkloadModel

if TYPE_CHECKING:
    from bedplate.model.cell import RunSpec


class TpchModel(WorkloadModel):
    """The runs after it read what one run made."""

    def fills(self, spec: RunSpec) -> bool:
        """The load."""
        return spec.levels.text("kind") == LOAD


MODEL = TpchModel(
    POSTGRESQL,
    plan_keys={
        "scale_factor": "scale_factor",
        "query_timeout_s": "query_timeout",
        "streams": "streams",
        "parameters": "parameters",
    },
)
