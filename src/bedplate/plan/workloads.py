"""The `[[workload]]` tables of a plan to its workloads: their datasets, and the runs on each."""

from __future__ import annotations

from collections.abc import Iterable

from bedplate.model.levels import Levels
from bedplate.model.plan import Workload
from bedplate.plan import runs
from bedplate.plan.tpch_runs import tpch_run_count, tpch_runs
from bedplate.plan.workload_tables import AnyWorkload, PgbenchTable


def run_count(table: AnyWorkload) -> int:
    """How many runs a visit of this workload makes, without making them."""
    if isinstance(table, PgbenchTable):
        return sum(map(runs.run_count, table.run))
    return tpch_run_count(table)


def dataset_count(table: AnyWorkload) -> int:
    """How many datasets a workload loads, each in a visit of its own."""
    return len(table.scale if isinstance(table, PgbenchTable) else table.scale_factor)


def workloads(tables: Iterable[AnyWorkload], seed: int, reasons: list[str]) -> tuple[Workload, ...]:
    """All of them, in the order of the plan; what speaks against one is added to `reasons`."""
    found: list[Workload] = []
    for index, table in enumerate(tables):
        try:
            workload = _workload(table, seed)
        except ValueError as error:
            reasons.append(f"workload[{index}].run: {error}")
            continue
        for earlier, other in enumerate(found):
            if workload.type == other.type and _loaded(workload) & _loaded(other):
                key = "scale" if isinstance(table, PgbenchTable) else "scale_factor"
                reasons.append(
                    f"workload[{index}].{key}: loads the same dataset as workload[{earlier}]; "
                    "put its runs there, so that it is loaded once"
                )
        found.append(workload)
    return tuple(found)


def _workload(table: AnyWorkload, seed: int) -> Workload:
    if isinstance(table, PgbenchTable):
        return Workload(table.type, table.scale, runs.run_specs(table.run, table.type))
    datasets = tuple(Levels(scale_factor=scale_factor) for scale_factor in table.scale_factor)
    return Workload(table.type, (), tpch_runs(table, seed), datasets)


def _loaded(workload: Workload) -> set[object]:
    return {*workload.scales, *workload.datasets}
