"""A plan to its cells on a machine, and the pruned ones, each with its reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from math import ceil

from bedplate import registry
from bedplate.errors import PlanError
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    Dataset,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
)
from bedplate.model.levels import Levels
from bedplate.model.machine import Machine
from bedplate.model.plan import Expansion, Load, Plan, PlannedCell, PlannedWorkload, Pruned, model_of
from bedplate.model.reason import distinct
from bedplate.plan.estimate import (
    age_reasons,
    device_bytes_needed,
    estimate_of,
    restored_reasons,
    restored_warnings,
)
from bedplate.plan.rules import (
    GUEST_MEMORY_BYTES,
    CellContext,
    Platform,
    dataset_reasons,
    latency_reasons,
    reasons,
)
from bedplate.units import GIB, MIB, format_size

_DEFAULT_BLOCK_BYTES = 8192
_PREFERRED_FILESYSTEM = "ext4"


def canary_filesystem(plan: Plan, cells: Sequence[Cell]) -> str | None:
    """The type that the canary runs on: the plan's, else ext4 where a cell has it, else the first's."""
    if plan.canary.filesystem is not None:
        return plan.canary.filesystem
    types = dict.fromkeys(cell.filesystem.type for cell in cells)
    return _PREFERRED_FILESYSTEM if _PREFERRED_FILESYSTEM in types else next(iter(types), None)


def canary_kernel(cells: Sequence[Cell], kind: str | None) -> KernelLevels:
    """The kernel of a canary in a guest: that of the first cell of its type, so that none is fetched for it."""
    return next((cell.kernel for cell in cells if cell.filesystem.type == kind), KernelLevels())


def canary(plan: Plan, cells: Sequence[Cell], *, in_guests: bool = False) -> PlannedCell | None:
    """The canary of a plan whose `cells` cells will run; None where it is off or nothing runs.

    Without guests it asks for no kernel: a canary that made the machine boot would cost too much. It needs
    nothing that the plan does not need anyway: a server where there is one, else the first workload's tool.
    """
    kind = canary_filesystem(plan, cells)
    if not plan.canary.enabled or kind is None or not cells:
        return None
    builds = [cell.build for cell in cells]
    settings: Mapping[str, ClusterLevels] = registry.engine_parts("canary")
    build = _build([build for build in builds if build.engine in settings] or builds)
    cell = Cell(
        DeviceLevels(),
        canary_kernel(cells, kind) if in_guests else KernelLevels(),
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


# As a benchmark of files itself demands.
_TIMES_MEMORY_MIN = 2


def expand(
    plan: Plan,
    machine: Machine | None,
    *,
    refusals: Mapping[FilesystemLevels, tuple[str, ...]] | None = None,
    platform: Platform | None = None,
) -> Expansion:
    """Every cell that can exist, with its loads; the rest as pruned.

    Without a machine only the rules that hold everywhere apply. `refusals` are what trying file
    systems on this machine has shown, by their levels (empty: it works). `platform` says where the
    cells would run, on this machine by default. PlanError where a scale is a multiple of a memory
    that is not known.
    """
    platform = platform or Platform()

    def memory_of(cell: Cell) -> int | None:
        return _memory_bytes(plan, cell, machine, platform)

    around: dict[KernelLevels, CellContext] = {}
    kept: list[PlannedCell] = []
    pruned: list[Pruned] = []
    for asked in plan.cells():
        cell = platform.settled(asked)
        if cell.kernel not in around:
            around[cell.kernel] = platform.surroundings(
                cell.kernel, machine, plan.scratch_device, refusals or {}
            )
        found = reasons(cell, around[cell.kernel])
        loads: tuple[Load, ...] = ()
        if not found:
            all_loads = _loads(plan.workloads_of(asked), memory_of(cell))
            against = [
                distinct(
                    (
                        *dataset_reasons(cell, load.dataset),
                        *age_reasons(cell, load, plan.scratch_device, executor=platform.executor),
                        *latency_reasons(cell, load, executor=platform.executor),
                        *restored_reasons(plan, cell, load, executor=platform.executor),
                    )
                )
                for load in all_loads
            ]
            loads = tuple(load for load, of_load in zip(all_loads, against, strict=True) if not of_load)
            # A cell that cannot have some of the datasets runs the others.
            found = () if loads else distinct(chain.from_iterable(against))
        if found:
            pruned.append(Pruned(cell, found))
        else:
            kept.append(PlannedCell(cell, loads))
    return Expansion(
        cells=tuple(kept),
        pruned=tuple(pruned),
        canary=canary(plan, [planned.cell for planned in kept], in_guests=platform.has_guests),
        warnings=(
            *plan.warnings,
            *_warnings(plan, kept, pruned),
            *_small_files(kept, memory_of),
            *restored_warnings(plan, kept, memory_of),
        ),
    )


def _small_files(
    planned_cells: Iterable[PlannedCell], memory_of: Callable[[Cell], int | None]
) -> tuple[str, ...]:
    """Files that the cache may answer, one sentence for each size and memory."""
    found: dict[str, None] = {}
    for planned in planned_cells:
        memory = memory_of(planned.cell)
        for load in planned.loads:
            file = load.dataset.levels.integer("file_bytes")
            if memory is not None and file and file < _TIMES_MEMORY_MIN * memory:
                found[
                    f"workload.file_size: {format_size(file)} is less than {_TIMES_MEMORY_MIN} x the memory of "
                    f"{format_size(memory)}, so the cache may answer: its runs will be suspect"
                ] = None
    return tuple(found)


def _loads(workloads: Iterable[PlannedWorkload], known_memory_bytes: int | None) -> tuple[Load, ...]:
    found: dict[Dataset, Load] = {}
    for workload in workloads:
        for levels in workload.datasets:
            dataset = Dataset(workload.type, _in_bytes(levels, known_memory_bytes))
            found[dataset] = Load(dataset, workload.runs)
        for scale in workload.scales:
            if scale.times_memory is not None and known_memory_bytes is None:
                raise PlanError(
                    'workload.scale is a multiple of the memory, and neither [machine] memory = "2 GB" nor a '
                    "machine says how much that is"
                )
            memory = known_memory_bytes or 0
            levels = Levels(scale.more, scale=estimate_of(workload.type).scale_units(scale, memory))
            if scale.times_memory is not None:
                # The rule "the database must not fit the cache" needs to know what was meant.
                levels = levels.updated(scale_asked=f"{scale.times_memory:g}x memory")
            dataset = Dataset(workload.type, levels)
            if any(_same_scale(dataset, other) for other in found):
                raise PlanError(
                    f"workload.scale: two scales come to {dataset.levels['scale']} at "
                    f"{format_size(memory)} of memory; take one out"
                )
            found[dataset] = Load(dataset, workload.runs)
    return tuple(found.values())


def _same_scale(dataset: Dataset, earlier: Dataset) -> bool:
    """Whether two differ in nothing but how their scale was asked for."""
    one, two = (
        {name: level for name, level in each.levels.items() if name != "scale_asked"}
        for each in (dataset, earlier)
    )
    return one == two


def _in_bytes(levels: Levels, known_memory_bytes: int | None) -> Levels:
    """The levels of a dataset; a file that is a multiple of the memory gets its size."""
    asked = levels.get("file_size")
    if asked is None:
        return levels
    rest = {name: level for name, level in levels.items() if name != "file_size"}
    if isinstance(asked, int):
        return Levels(rest, file_bytes=asked)
    if known_memory_bytes is None:
        raise PlanError(
            'workload.file_size is a multiple of the memory, and neither [machine] memory = "2 GB" nor a '
            "machine says how much that is"
        )
    times = float(str(asked).partition("x")[0])
    return Levels(rest, file_bytes=ceil(times * known_memory_bytes / MIB) * MIB, file_size_asked=asked)


def _memory_bytes(plan: Plan, cell: Cell, machine: Machine | None, platform: Platform) -> int | None:
    """The memory around a cell; None where nobody knows."""
    if cell.device.memory_bytes is not None:
        return cell.device.memory_bytes
    if platform.has_guests:
        return plan.guest.memory_bytes or GUEST_MEMORY_BYTES
    if machine is None:
        return None
    # Kernels reserve differing slivers; the dataset must not change with an update.
    return max(1, round(machine.memory_bytes / GIB)) * GIB


def _warnings(plan: Plan, planned_cells: list[PlannedCell], pruned: list[Pruned]) -> list[str]:
    found = []
    if not planned_cells:
        found.append(f"no cell is left ({len(pruned)} pruned): there is nothing to run")
    size = plan.scratch_device.image_bytes
    needed = max(
        (device_bytes_needed(planned.cell, load) for planned in planned_cells for load in planned.loads),
        default=0,
    )
    if size is not None and needed > size:
        found.append(
            f"scratch_device.image_size: {format_size(size)} may not hold the largest visit, "
            f"which needs about {format_size(needed)}"
        )
    return found
