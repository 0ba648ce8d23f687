"""What a plan may ask of pgbench although its runs will be `suspect`, or will not mean what they seem to."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.settings import (
    checkpoint_completion_target,
    checkpoint_timeout_s,
)
from bedplate.plan.values import UNTIL_STEADY
from bedplate.units import format_duration
from bedplate.workloads.pgbench.dump import restored_bytes_of
from bedplate.workloads.pgbench.scripts import READ_WRITE, scripts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bedplate.model.cell import ClusterLevels, RunSpec
    from bedplate.model.plan import Plan, PlannedWorkload
    from bedplate.plan.warnings import PlanWarnings

# After its last write a checkpoint still syncs the files, and it may begin a moment late.
_SYNC_SLACK_S = 3.0
_SYNC_SLACK_SHARE = 0.05


def needed_duration_s(cluster: ClusterLevels, warmup_s: float | None) -> float:
    """How long must be measured to hold one complete timed checkpoint.

    A CHECKPOINT comes right before the warm-up; from it, a timed one starts every
    `checkpoint_timeout` and is spread over `checkpoint_completion_target` of it. The first that
    starts after the warm-up counts. `warmup_s` None: of unknown length, so the worst case.
    """
    timeout = checkpoint_timeout_s(cluster)
    lasts = timeout * checkpoint_completion_target(cluster) + max(_SYNC_SLACK_S, _SYNC_SLACK_SHARE * timeout)
    if warmup_s is None or timeout <= 0:
        return timeout + lasts
    starts = max(1, ceil(warmup_s / timeout)) * timeout
    return starts - warmup_s + lasts


def of_plan(plan: Plan) -> Iterator[str]:
    """Sentences."""
    own = [workload for workload in plan.workloads if workload.type == "pgbench"]
    for workload in own:
        for run in workload.runs:
            yield from _of_run(plan, run)
    yield from _of_scales(own)
    if any(restored_bytes_of(levels) for workload in own for levels in workload.datasets):
        yield (
            "workload.dump: the study keeps no data of it, but the texts of the scripts, and its page and exports go where you "
            "send them; every visit copies the restored database, which is as fragmented as a fresh copy"
        )


def _of_run(plan: Plan, run: RunSpec) -> list[str]:
    if all(script.seems_to_read_only for script in scripts_of(run.levels)):
        return []
    steady = run.levels["warmup"] == UNTIL_STEADY
    duration_s = run.levels.number("duration_s") or 0.0
    found = []
    for cluster in plan.clusters:
        needed_s = needed_duration_s(cluster, None if steady else run.levels.number("warmup_s"))
        if duration_s < needed_s:
            found.append(
                f"run {run.name}: {format_duration(duration_s)} may not hold a complete timed checkpoint "
                f"(checkpoint_timeout {format_duration(checkpoint_timeout_s(cluster))}, completion target "
                f"{checkpoint_completion_target(cluster):g}), and the run will be suspect; "
                f"duration = {ceil(needed_s)} is enough, or a shorter checkpoint_timeout"
            )
    return found


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
