"""The runs of a TPC-H visit: the load, the passes over the queries, the streams at once."""

from __future__ import annotations

from collections import Counter

from bedplate.model.cell import RunSpec
from bedplate.model.levels import Levels, Scalar
from bedplate.model.tpch import DRAWN, LOAD, POWER, THROUGHPUT, WORKLOAD
from bedplate.plan.workload_tables import TpchTable


def tpch_run_count(table: TpchTable) -> int:
    """How many runs a visit makes."""
    return 1 + len(table.passes) + (table.streams > 0)


def tpch_runs(table: TpchTable, seed: int) -> tuple[RunSpec, ...]:
    """The runs in their order. A pass that comes again has its number behind its name: `warm-2`.

    Drawn parameters depend on the plan's seed alone: every cell and repetition asks the same.
    """
    asked: dict[str, Scalar] = {"parameters": table.parameters}
    if table.parameters == DRAWN:
        asked["parameter_seed"] = seed
    if table.query_timeout is not None:
        asked["query_timeout_s"] = table.query_timeout
    found = [RunSpec(LOAD, WORKLOAD, Levels(kind=LOAD))]
    seen: Counter[str] = Counter()
    for number, kind in enumerate(table.passes, start=1):
        seen[kind] += 1
        name = kind if seen[kind] == 1 else f"{kind}-{seen[kind]}"
        levels = Levels({**asked, "kind": POWER, "pass": kind, "pass_number": number})
        found.append(RunSpec(name, WORKLOAD, levels))
    if table.streams:
        levels = Levels({**asked, "kind": THROUGHPUT, "streams": table.streams})
        found.append(RunSpec(THROUGHPUT, WORKLOAD, levels))
    return tuple(found)
