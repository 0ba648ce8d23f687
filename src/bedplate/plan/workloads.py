"""The `[[workload]]` tables of a plan to its workloads: their datasets, and the runs on each."""

from __future__ import annotations

from collections.abc import Iterable

from bedplate.model.plan import DEFAULTS_VERSION, PlannedWorkload
from bedplate.plan.chosen_cells import Departures
from bedplate.plan.workload_table import WorkloadTable


def workloads(
    tables: Iterable[WorkloadTable], seed: int, reasons: list[str], *, defaults: int = DEFAULTS_VERSION
) -> tuple[PlannedWorkload, ...]:
    """All of them, in the order of the plan; what speaks against one is added to `reasons`."""
    found: list[PlannedWorkload] = []
    tables = tuple(tables)
    for index, table in enumerate(tables):
        reasons += (f"workload[{index}]{reason}" for reason in table.against(tables))
        try:
            workload = table.planned(seed, defaults)
        except ValueError as error:
            reasons.append(f"workload[{index}].{table.runs_key}: {error}")
            continue
        for earlier, other in enumerate(found):
            # Workloads that name their cells are held against each other where those are known.
            named = bool(table.cells_named() and tables[earlier].cells_named())
            if workload.type != other.type or not _loaded(workload) & _loaded(other):
                continue
            if not named or workload.runs != other.runs:
                reasons.append(
                    f"workload[{index}]{table.dataset_key}: loads the same dataset as workload[{earlier}]; "
                    f"{table.loaded_twice}"
                )
        found.append(workload)
    return tuple(found)


def cells_named(tables: Iterable[WorkloadTable]) -> dict[int, tuple[Departures, ...]]:
    """What workloads say of the cells that they run in, by their place in the plan."""
    return {index: cells for index, table in enumerate(tables) if (cells := table.cells_named())}


def _loaded(workload: PlannedWorkload) -> set[object]:
    return {*workload.scales, *workload.datasets}
