"""The canary: a short visit that is the same at every time of a study, to show drift of the machine.

It asks for little, so that little besides the machine can change it: the file system's defaults, no
throttle and no memory limit, a build that the study makes anyway, and no checkpoint within its run.
About 20 s with its preparation (a 1 GiB image, pgbench at scale 5).
"""

from __future__ import annotations

from collections.abc import Sequence

from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    Dataset,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
    RunSpec,
)
from bedplate.model.engines import LMDB
from bedplate.model.levels import Levels
from bedplate.model.plan import Load, Plan, PlannedCell
from bedplate.units import MIB

SCALE = 5
_DEFAULT_BLOCK_BYTES = 8192
_PREFERRED_FILESYSTEM = "ext4"

_RUN = RunSpec(
    "canary",
    "pgbench",
    Levels(
        script="read-write",
        clients=2,
        jobs=2,
        warmup="fixed",
        warmup_s=2.0,
        duration_s=8.0,
        protocol="prepared",
    ),
)

# Where a plan has no PostgreSQL: as short, with the tool that it needs anyway.
_OTHER_LOADS = {
    "lmdb": Load(
        Dataset("lmdb", Levels(entries=200_000, value_bytes=100)),
        (
            RunSpec(
                "canary", "lmdb", Levels(kind="write", tests="fillrandsync,fillseq", batch=1000, threads=1)
            ),
        ),
    ),
    "bonnie": Load(
        Dataset("bonnie", Levels(file_bytes=256 * MIB)),
        (
            RunSpec(
                "canary",
                "bonnie",
                Levels(direct=False, chunk_bytes=8192, per_character_bytes=0, files=1024),
            ),
        ),
    ),
    "fio": Load(
        Dataset("fio", Levels()),
        (
            RunSpec(
                "canary",
                "fio",
                Levels(rw="write", bs="8 kB", size="64 MB", fdatasync=1, overwrite=True, runtime="8 s"),
            ),
        ),
    ),
}


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
    nothing that the plan does not need anyway: pgbench where there is PostgreSQL, else the first workload's tool.
    """
    kind = canary_filesystem(plan, kept)
    if not plan.canary.enabled or kind is None or not kept:
        return None
    builds = [cell.build for cell in kept]
    with_postgresql = [build for build in builds if build.has_postgresql]
    cell = Cell(
        DeviceLevels(),
        canary_kernel(kept, kind) if in_guests else KernelLevels(),
        FilesystemLevels(kind),
        _build(with_postgresql or builds),
        # 8 s hold no timed checkpoint at the default timeout anyway; say so, so that it stays so.
        ClusterLevels(settings=Levels(checkpoint_timeout="1h")) if with_postgresql else ClusterLevels(),
    )
    if with_postgresql:
        return PlannedCell(cell, (Load(Dataset("pgbench", Levels(scale=SCALE)), (_RUN,)),))
    if cell.build.engine == LMDB:
        return PlannedCell(cell, (_OTHER_LOADS["lmdb"],))
    types = dict.fromkeys(item.type for item in plan.workloads if plan.runs_on(item, cell.build.engine))
    return PlannedCell(cell, (_OTHER_LOADS[next(iter(types))],))


def _build(builds: Sequence[BuildLevels]) -> BuildLevels:
    """One that the study needs anyway; of those the most usual."""
    for build in builds:
        if build.block_size_bytes == build.wal_block_size_bytes == _DEFAULT_BLOCK_BYTES:
            return build
    return builds[0]
