"""The canary: a short visit that is the same at every time of a study, to show drift of the machine.

It asks for little, so that little besides the machine can change it: the file system's defaults, no
throttle and no memory limit, a build that the study makes anyway, and no checkpoint within its run.
About 20 s with its preparation (a 1 GiB image, a database of 75 MB). What it runs is
the role `canary` of a workload, which not all have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bedplate import registry
from bedplate.errors import PlanError
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
)
from bedplate.model.levels import Levels
from bedplate.model.plan import Load, Plan, PlannedCell
from bedplate.model.workload import model_of

_DEFAULT_BLOCK_BYTES = 8192
_PREFERRED_FILESYSTEM = "ext4"


def canary_filesystem(plan: Plan, kept: Sequence[Cell]) -> str | None:
    """The type that the canary runs on: the plan's, else ext4 where a cell has it, else the first's."""
    if plan.canary.filesystem is not None:
        return plan.canary.filesystem
    types = dict.fromkeys(cell.filesystem.type for cell in kept)
    return _PREFERRED_FILESYSTEM if _PREFERRED_FILESYSTEM in types else next(iter(types), None)


def canary_kernel(kept: Sequence[Cell], kind: str | None) -> KernelLevels:
    """The kernel of a canary in a guest: that of the first cell of its type, so that none is fetched for it."""
    return next((cell.kernel for cell in kept if cell.filesystem.type == kind), KernelLevels())


def canary(plan: Plan, kept: Sequence[Cell], *, in_guests: bool = False) -> PlannedCell | None:
    """The canary of a plan whose `kept` cells will run; None where it is off or nothing runs.

    Without guests it asks for no kernel: a canary that made the machine boot would cost too much. It needs
    nothing that the plan does not need anyway: a server where there is one, else the first workload's tool.
    """
    kind = canary_filesystem(plan, kept)
    if not plan.canary.enabled or kind is None or not kept:
        return None
    builds = [cell.build for cell in kept]
    settings: Mapping[str, ClusterLevels] = registry.engine_parts("canary")
    build = _build([build for build in builds if build.engine in settings] or builds)
    cell = Cell(
        DeviceLevels(),
        canary_kernel(kept, kind) if in_guests else KernelLevels(),
        FilesystemLevels(kind),
        build,
        settings.get(build.engine, ClusterLevels()),
    )
    return PlannedCell(cell, (_load(plan, cell.build.engine),))


def _load(plan: Plan, engine: str) -> Load:
    """That of the plan's first workload on the engine that has one, else of any on it, with the tool that is needed anyway."""
    known: Mapping[str, Load] = registry.parts("canary")
    own = [registry.type_today(item.type) for item in plan.workloads if plan.runs_on(item, engine)]
    of_engine = [
        name
        for name in known
        if engine == model_of(name).engine_of(Levels()) or engine in registry.engines_with(name)
    ]
    for name in (*own, *of_engine):
        if name in known:
            return known[name]
    raise PlanError(
        f"canary: no workload on the engine {engine} has one; write enabled = false in [canary] to go without"
    )


def _build(builds: Sequence[BuildLevels]) -> BuildLevels:
    """One that the study needs anyway; of those the most usual."""
    for build in builds:
        if build.block_size_bytes == build.wal_block_size_bytes == _DEFAULT_BLOCK_BYTES:
            return build
    return builds[0]
