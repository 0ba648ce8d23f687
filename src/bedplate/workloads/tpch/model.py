"""What records say of the datasets and runs of TPC-H."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.engines import POSTGRESQL
from bedplate.model.tpch import LOAD
from bedplate.model.workload import RecordWords, WorkloadModel

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
    words=RecordWords(
        dataset="`scale_factor`",
        run="`kind` (`load`, `power`, `throughput`), `pass` (`cold`, `warm`), `pass_number`, `streams`, `parameters` "
        "(`validation`, `drawn`), `parameter_seed`, `query_timeout_s`",
        phases="`load`, `primary keys`, `foreign keys`, `indexes`, `analyze`, `checkpoint`; `query 1` to `query 22`, whose "
        "figures are of phase `queries`; `throughput`, whose figures are of `stream 1` and so on",
        items="a query (`14`), a table, a key or an index that was loaded",
        facts="`scale_factor`, `database_bytes`, `wal_bytes_on_disk`, `made_cold`, `streams`, `streams_s`, …",
        files="`plans.json`: the plans of its queries",
    ),
)
