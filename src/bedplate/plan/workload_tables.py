"""The tables of all types of workloads. Apart from what they derive from, so that each type's can be imported first."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from bedplate import registry
from bedplate.plan.table import PlanTable
from bedplate.plan.workload_table import WorkloadTable

if TYPE_CHECKING:
    from collections.abc import Mapping


def table_of(workload: str) -> type[WorkloadTable]:
    """The table of a type; PlanError lists the known ones."""
    table: type[WorkloadTable] = registry.part(workload, "plan")
    return table


def default_workloads() -> tuple[WorkloadTable, ...]:
    """What a plan without a workload gets: the first type with its defaults."""
    first = registry.first_workload()
    return (table_of(first).model_validate({"type": first}),)


def workload_tables() -> Mapping[tuple[str, ...], type[PlanTable]]:
    """Every table of every type, by the type and the keys of the tables in it."""
    found: dict[tuple[str, ...], type[PlanTable]] = {}
    for name in registry.WORKLOADS:
        table = table_of(name)
        found[(name,)] = table
        found |= {(name, key): inner for key, inner in table.inner_tables.items()}
    return found


if TYPE_CHECKING:
    AnyWorkload = WorkloadTable
else:
    # What is read is told apart by its type.
    AnyWorkload = Annotated[reduce(or_, map(table_of, registry.WORKLOADS)), Field(discriminator="type")]
