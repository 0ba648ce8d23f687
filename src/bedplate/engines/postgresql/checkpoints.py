"""How long a run that writes has to be measured, so that it holds a complete timed checkpoint."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.configuring.settings import (
    checkpoint_completion_target,
    checkpoint_timeout_s,
)
from bedplate.model.engines import POSTGRESQL
from bedplate.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.model.cell import ClusterLevels, RunSpec
    from bedplate.model.plan import Plan

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


def too_short(plan: Plan, run: RunSpec, warmup_s: float | None) -> Iterator[str]:
    """A sentence for each cluster of the plan in which a run may hold none; `warmup_s` as above."""
    duration_s = run.levels.number("duration_s") or 0.0
    clusters = (cluster for setup in plan.engines if setup.engine == POSTGRESQL for cluster in setup.clusters)
    for cluster in clusters:
        needed_s = needed_duration_s(cluster, warmup_s)
        if duration_s < needed_s:
            yield (
                f"run {run.name}: {format_duration(duration_s)} may not hold a complete timed checkpoint "
                f"(checkpoint_timeout {format_duration(checkpoint_timeout_s(cluster))}, completion target "
                f"{checkpoint_completion_target(cluster):g}), and the run will be suspect; "
                f"duration = {ceil(needed_s)} is enough, or a shorter checkpoint_timeout"
            )
