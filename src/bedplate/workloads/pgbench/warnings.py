"""What a plan may ask of pgbench although its runs will be `suspect`, will fail, or will not mean what they seem to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.postgresql.checkpoints import too_short
from bedplate.engines.postgresql.connections import too_many_clients
from bedplate.plan.values import UNTIL_STEADY
from bedplate.workloads.pgbench.own_database import COPY, DUMP
from bedplate.workloads.pgbench.script_statements import seems_to_read_only
from bedplate.workloads.pgbench.scripts import READ_WRITE, scripts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bedplate.model.cell import RunSpec
    from bedplate.model.plan import Plan, PlannedWorkload
    from bedplate.plan.warnings import PlanWarnings


def of_plan(plan: Plan) -> Iterator[str]:
    """Sentences."""
    own = [workload for workload in plan.workloads if workload.type == "pgbench"]
    for workload in own:
        for run in workload.runs:
            yield from _of_run(plan, run)
            yield from too_many_clients(plan, run, run.levels.integer("clients") or 1)
    yield from _of_scales(own)
    sources = {
        key for workload in own for levels in workload.datasets for key in (DUMP, COPY) if key in levels
    }
    for key in sorted(sources):
        what = "the restored database" if key == DUMP else "the data directory"
        yield (
            f"workload.{key}: the study keeps no data of it, but the texts of the scripts; its page and exports go where you "
            f"send them. Every visit copies {what}, whose files are then as fragmented as fresh ones"
        )


def _of_run(plan: Plan, run: RunSpec) -> list[str]:
    if all(map(seems_to_read_only, scripts_of(run.levels))):
        return []
    steady = run.levels["warmup"] == UNTIL_STEADY
    return list(too_short(plan, run, None if steady else run.levels.number("warmup_s")))


def _of_scales(workloads: Iterable[PlannedWorkload]) -> list[str]:
    found = []
    for workload in workloads:
        smallest = min((scale.units for scale in workload.scales if scale.units is not None), default=None)
        for run in workload.runs:
            clients = run.levels.integer("clients") or 1
            names = [script.name for script in scripts_of(run.levels)]
            if smallest is not None and smallest < clients and READ_WRITE in names:
                found.append(
                    f"run {run.name}: {clients} clients on scale {smallest} wait for each other's rows "
                    "(one branch per unit of scale), more than for the device"
                )
    return found


WARNINGS: PlanWarnings = of_plan
