"""What a TPC-H visit consists of, by the names that plans, records and figures share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

WORKLOAD = "tpch"

# Level `kind` of a run.
LOAD = "load"
POWER = "power"
THROUGHPUT = "throughput"

# Level `pass` of a power run: with everything dropped from every cache before it, or as it was left.
COLD = "cold"
WARM = "warm"

# Level `parameters`: the specification's validation parameters, or drawn from the plan's seed.
VALIDATION = "validation"
DRAWN = "drawn"

# The phases of the load run, in order. The last one writes what the others left dirty.
LOAD_PHASES = ("load", "primary keys", "foreign keys", "indexes", "analyze", "checkpoint")
# The one phase of a power run. Each query is a phase of the course and of the counters (`query_phase`).
QUERIES = "queries"

QUERY_NUMBERS = tuple(range(1, 23))


def query_phase(query: int) -> str:
    """The name of a query's phase in the course and among the counters of a power run."""
    return f"query {query}"


def stream_phase(stream: int) -> str:
    """The phase of one stream's items in a throughput run; streams count from 1 (clause 5.3.4)."""
    return f"stream {stream}"
