"""What records say of the datasets and runs of TPC-H, and the names that plans, records and figures share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.engines import POSTGRESQL
from bedplate.model.workload import RecordWords, WorkloadModel

if TYPE_CHECKING:
    from bedplate.model.cell import RunSpec

WORKLOAD = "tpch"

# Level `kind` of a run.
LOAD = "load"
POWER = "power"
THROUGHPUT = "throughput"

# Level `parameters`: the specification's validation parameters, or drawn from the plan's seed.
VALIDATION = "validation"
DRAWN = "drawn"

# The phases of the load run, in order. The last one writes what the others left dirty.
LOAD_PHASES = ("load", "primary keys", "foreign keys", "indexes", "analyze", "checkpoint")
# The one phase of a power run. Each query is a phase of the course and of the counters (`query_phase`).
QUERIES = "queries"
STREAM = "stream "

QUERY_NUMBERS = tuple(range(1, 23))


class TpchModel(WorkloadModel):
    """The runs after it read what one run made."""

    def fills(self, spec: RunSpec) -> bool:
        """The load."""
        return spec.levels.text("kind") == LOAD


def query_phase(query: int) -> str:
    """The name of a query's phase in the course and among the counters of a power run."""
    return f"query {query}"


def stream_phase(stream: int) -> str:
    """The phase of one stream's items in a throughput run; streams count from 1 (clause 5.3.4)."""
    return f"{STREAM}{stream}"


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
