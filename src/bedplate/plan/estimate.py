"""How long a study takes and how much disk it needs, before anything has been measured.

Rough on purpose, and said so where it is shown. What a workload takes is its own to say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from bedplate import registry
from bedplate.model.cell import UNTORN_OFF, Cell, Dataset, FilesystemLevels, RunSpec
from bedplate.model.filesystem import (
    AGE_PROFILES,
    FILL,
    RESTORABLE,
    TRAITS,
    age_of,
    deciding,
    fill_of,
    kept_data_of,
)
from bedplate.model.plan import DatasetScale, Expansion, Load, Plan, PlannedCell, Schedule, model_of
from bedplate.model.reason import Reason
from bedplate.model.visit import RESTORED, ScratchDevice
from bedplate.plan.rules import LOCAL, QEMU, SLURM
from bedplate.units import GIB, KIB, MIB, format_size, percent

FILESYSTEM_OVERHEAD_BYTES = 160 * MIB  # journal, tables of inodes, template databases
GROWTH = 1.15  # dead rows, copy on write


class EngineEstimate(Protocol):
    """The role `estimate` of an engine; one that keeps nothing beside its data has no such file."""

    def log_bytes(self, cell: Cell) -> int:
        """How large its log becomes."""


class WorkloadEstimate:
    """Where the engine keeps a log the device holds it up to its limit, else files alone."""

    def scale_units(self, scale: DatasetScale, memory_bytes: int) -> int:
        """How many units are loaded; `memory_bytes` 0 is not known. Of workloads whose datasets have a scale."""
        raise NotImplementedError

    def load_seconds(self, cell: Cell, dataset: Dataset, *, emulated: bool) -> float:  # noqa: ARG002 -- of others' role
        """What it takes to load the dataset before the runs."""
        return 0.0

    def run_seconds(self, cell: Cell, load: Load, run: RunSpec, *, emulated: bool) -> float:  # noqa: ARG002 -- of those that end by themselves
        """Warm-up and measurement of a run, as they are asked for."""
        return sum(run.levels.number(name) or 0.0 for name in ("warmup_s", "duration_s"))

    def dataset_bytes(self, cell: Cell, load: Load) -> float:
        """What the dataset and the runs' files take at the most, right after they were made."""
        raise NotImplementedError

    def device_bytes(self, cell: Cell, load: Load) -> int:
        """What a visit needs on the scratch device, the file system itself included."""
        engine: EngineEstimate | None = registry.engine_part_or_none(cell.build.engine, "estimate")
        if engine is None:
            return int(int(self.dataset_bytes(cell, load)) * GROWTH) + FILESYSTEM_OVERHEAD_BYTES
        return int(self.dataset_bytes(cell, load)) + engine.log_bytes(cell) + FILESYSTEM_OVERHEAD_BYTES

    def prepared_bytes(self, dataset: Dataset, cells: Sequence[Cell]) -> int:  # noqa: ARG002 -- of others' role
        """What is made beforehand for a dataset of these cells and kept in the cache."""
        return 0

    def prepared_seconds(self, dataset: Dataset, cells: Sequence[Cell]) -> float:  # noqa: ARG002 -- of others' role
        """What making it takes, on this machine itself; 0 where it is not reckoned."""
        return 0.0


def estimate_of(workload: str) -> WorkloadEstimate:
    """That of a type; PlanError lists the known ones."""
    estimate: WorkloadEstimate = registry.part(workload, "estimate")
    return estimate


# Of what an engine needs on a recorded disk, its log included.
_ENGINE_BYTES = 256 * MIB

_AGED_MOST_BYTES = 64 * GIB

# Why other executors have no aged disks. Of nodes each would make its own, and repetitions are to stand on the same one.
_ELSEWHERE = {QEMU: "guests do not reach", SLURM: "the nodes of a cluster do not share"}

# Kept in the cache: between 3 and 14 % of the size. Measured on two busy cores, 1 GiB: 3 to 24 s of mixed files, 48 to 73 s of small ones.
_KEPT_SHARE = 0.15

_SECONDS_PER_GIB = {"mixed": 10.0, "small files": 60.0}

# Copied onto the image, whose blocks are allocated, and read once; as slow as a disk of the cache may be, not measured.
RESTORED_BYTES_PER_S = 150e6

# mkfs, initdb, start, stop, unmount, and reading the device to find what is not zero.
_MAKING_OVERHEAD_S = 10.0


def age_reasons(cell: Cell, load: Load, scratch: ScratchDevice, *, executor: str) -> Iterator[Reason]:
    """Why a cell cannot be aged or filled as it asks, with this dataset."""
    for words in _age_sentences(cell, load, scratch, executor=executor):
        yield Reason("age-impossible", words)


def _age_sentences(cell: Cell, load: Load, scratch: ScratchDevice, *, executor: str) -> Iterator[str]:
    profile, fill = age_of(cell.filesystem), fill_of(cell.filesystem)
    own_disk = model_of(load.dataset.workload).has_own_disk
    size = _size_bytes(load, scratch)
    if profile is not None:
        if executor in _ELSEWHERE:
            yield (
                f"aged: an aged file system is made on the machine itself and kept in its cache, which {_ELSEWHERE[executor]}; "
                'use executor = "local"'
            )
        if not own_disk and not scratch.is_image:
            yield (
                "aged: what is copied onto a device is the file system's own blocks, and all others must be zeros, as of an image; "
                "on a real device old blocks would show through: use image_size"
            )
        if size is not None and size > _AGED_MOST_BYTES:
            yield f"aged: {format_size(size)} take hours to age; {format_size(_AGED_MOST_BYTES)} is the most"
    if size is None:
        return  # the visit itself looks
    needed = _ENGINE_BYTES if own_disk else estimate_of(load.dataset.workload).device_bytes(cell, load)
    if profile is not None:
        left = int(size * (1 - AGE_PROFILES[profile].left_share))
        if needed > left:
            yield (
                f"aged: {profile!r} leaves {format_size(left)} of {format_size(size)}, and the visit needs about "
                f"{format_size(needed)}; use a larger image or less data"
            )
    if fill is not None:
        if needed > size * fill:
            yield (
                f"{FILL}: the visit needs about {format_size(needed)}, more than {percent(fill)} of {format_size(size)}; "
                "use a larger image or less data"
            )
        grows, left = _growth_bytes(cell, load, own_disk=own_disk), int(size * (1 - fill))
        if grows > left:
            yield (
                f"{FILL}: {percent(fill)} leaves {format_size(left)} of {format_size(size)}, and log and dead rows may grow by "
                f"{format_size(grows)}; use a larger image, less data or a smaller log"
            )


def _size_bytes(load: Load, scratch: ScratchDevice) -> int | None:
    if model_of(load.dataset.workload).has_own_disk:
        return load.dataset.levels.integer("image_bytes")
    return scratch.image_bytes


def _growth_bytes(cell: Cell, load: Load, *, own_disk: bool) -> int:
    if own_disk:
        return 0
    engine: EngineEstimate | None = registry.engine_part_or_none(cell.build.engine, "estimate")
    data = estimate_of(load.dataset.workload).dataset_bytes(cell, load)
    grows = data if TRAITS[cell.filesystem.type].keeps_whole_extents else data * (1 - 1 / GROWTH)
    return int(grows) + (0 if engine is None else engine.log_bytes(cell))


def aged_images(cell_loads: Iterable[tuple[Cell, Load]], scratch: ScratchDevice) -> tuple[int, float]:
    """Bytes in the cache and seconds of the aged file systems that these visits stand on, each made once."""
    wanted: set[tuple[FilesystemLevels, int]] = set()
    for cell, load in cell_loads:
        size = _size_bytes(load, scratch)
        if age_of(cell.filesystem) is not None and size is not None:
            plain = {name: level for name, level in cell.filesystem.features.items() if name != FILL}
            wanted.add((replace(cell.filesystem, features=type(cell.filesystem.features)(plain)), size))
    seconds = sum(_SECONDS_PER_GIB[age_of(levels) or ""] * size / GIB for levels, size in wanted)
    return int(sum(_KEPT_SHARE * size for _, size in wanted)), seconds


def restored_reasons(plan: Plan, cell: Cell, load: Load, *, executor: str) -> Iterator[Reason]:
    """Why the dataset of a cell cannot be restored, where the plan asks for that."""
    if plan.dataset_by == RESTORED:
        for words in _sentences(plan, cell, load, executor):
            yield Reason("restored-impossible", f'dataset = "{RESTORED}": {words}')


def _sentences(plan: Plan, cell: Cell, load: Load, executor: str) -> Iterator[str]:
    kind, model = cell.filesystem.type, model_of(load.dataset.workload)
    if executor != LOCAL:
        yield 'images are kept in this machine\'s cache, which guests and nodes do not reach; use executor = "local"'
    if not plan.scratch_device.is_image:
        yield (
            "what is copied onto a device is what is not zero, and all other blocks must be zeros, as of an image; on a real device "
            "old blocks would show through: use image_size"
        )
    if kind not in RESTORABLE:
        yield (f"on {kind} a restored dataset was never tried; it was on {', '.join(RESTORABLE)}")
    if cell.filesystem.journal == "external":
        yield "an image holds no external journal"
    if age_of(cell.filesystem) is not None or fill_of(cell.filesystem) is not None:
        yield "an aged or filled file system gets its dataset where its free space is, so the visit must load it"
    if cell.cluster.untorn_writes != UNTORN_OFF:
        yield "untorn_writes writes by another way while it loads, so the visit must load it"
    if not model.restores(load.dataset.levels):
        yield (
            f"{load.dataset.words} is not loaded before its runs, or comes from the cache already; give it a plan of its own with "
            'dataset = "loaded"'
        )
    elif kept_data_of(cell.build.engine) is None:
        yield f"nobody has looked which settings of {cell.build.engine} decide the files that a load leaves"


def restored_warnings(
    plan: Plan, planned_cells: Iterable[PlannedCell], memory_of: Callable[[Cell], int | None]
) -> tuple[str, ...]:
    """Memory that holds less than the data, one sentence for each dataset and memory.

    A load leaves large folios in the page cache there, which stay in it, and reading makes small ones
    (docs/decisions/0018-restored-under-memory-pressure.md).
    """
    if plan.dataset_by != RESTORED:
        return ()
    most: dict[tuple[Dataset, int], float] = {}
    for planned in planned_cells:
        memory = memory_of(planned.cell)
        for load in planned.loads:
            data = estimate_of(load.dataset.workload).dataset_bytes(planned.cell, load)
            if memory is not None and memory < data:
                most[load.dataset, memory] = max(data, most.get((load.dataset, memory), 0.0))
    return tuple(
        f'dataset = "{RESTORED}": {dataset.words} is about {format_size(int(data))}, more than the memory of {format_size(memory)}; '
        "restored visits differ there from loaded ones by several per cent, and less from one another: compare them with one another "
        "alone (docs/METHOD.md)"
        for (dataset, memory), data in most.items()
    )


def restored_seconds(cell: Cell, dataset: Dataset) -> float:
    """What copying an image onto the device takes, and reading what the load would have left in the cache."""
    return _aged_image_bytes(cell, dataset) / RESTORED_BYTES_PER_S


def kept_images(plan: Plan, cell_loads: Iterable[tuple[Cell, Load]]) -> tuple[int, float]:
    """Bytes in the cache and seconds of the images that these visits share, each made once; nothing where each visit loads."""
    if plan.dataset_by != RESTORED:
        return 0, 0.0
    made = dict.fromkeys((deciding(cell), load.dataset) for cell, load in cell_loads)
    seconds = sum(
        _MAKING_OVERHEAD_S + estimate_of(dataset.workload).load_seconds(cell, dataset, emulated=False)
        for cell, dataset in made
    )
    return sum(_aged_image_bytes(cell, dataset) for cell, dataset in made), seconds


def _aged_image_bytes(cell: Cell, dataset: Dataset) -> int:
    """At most: the log may not have grown to its limit."""
    return estimate_of(dataset.workload).device_bytes(cell, Load(dataset, ()))


# A fully written image: 1.0 to 1.3 s per GiB.
IMAGE_WRITE_BYTES_PER_S = 0.85 * GIB

# mkfs, mount, read back, count flushes, initdb, start, stop, unmount, fsck.
VISIT_OVERHEAD_S = 6.0

# On an emulated processor, loaded and idle hosts between them: initdb 12 to 22 s instead of 1, a boot 8 to 20 s.
EMULATED_VISIT_OVERHEAD_S = 45.0

BOOT_S = 15.0

# The CHECKPOINT before a run, and the second in which the server reports its statistics.
RUN_OVERHEAD_S = 1.5

# In the study, per second of a run: a sample of counters, and the condensed transaction log.
COURSE_BYTES_PER_S = 3 * KIB

TRANSACTION_LOG_BYTES_PER_S = 24 * KIB
VISIT_RECORD_BYTES = 512 * KIB


@dataclass(frozen=True)
class StudyEstimate:
    """Seconds and bytes of a whole study; on a fleet the seconds of the node that has most to do.

    `device_bytes` is the largest that a visit needs on the scratch device, `image_bytes` the image
    file (None for a real device), `study_bytes` what the study's directory grows to, `data_bytes` what
    is made beforehand and kept in the cache; `data_seconds` is what making it takes where that is reckoned, and is no part of `seconds`.
    """

    visits: int
    canary_visits: int
    seconds: float
    measured_seconds: float
    device_bytes: int
    image_bytes: int | None
    study_bytes: int
    data_bytes: int = 0
    data_seconds: float = 0.0


def visit_seconds(
    plan: Plan, cell: Cell, load: Load, *, canary: bool = False, executor: str = LOCAL
) -> float:
    """One visit from preflight to clean-up, without the boot of a guest.

    A guest is reckoned as emulated: whether this machine can do better is known when one has run.
    """
    image = plan.scratch_device_for(canary=canary).image_bytes or 0
    runs = _running_seconds(cell, load, emulated=executor == QEMU) + RUN_OVERHEAD_S * len(load.runs)
    overhead_s = VISIT_OVERHEAD_S if executor != QEMU else EMULATED_VISIT_OVERHEAD_S
    of_workload = estimate_of(load.dataset.workload)
    if plan.dataset_by_of(canary=canary) == RESTORED:
        load_s = restored_seconds(cell, load.dataset)
    else:
        load_s = of_workload.load_seconds(cell, load.dataset, emulated=executor == QEMU)
    return image / IMAGE_WRITE_BYTES_PER_S + overhead_s + load_s + runs


def estimate(plan: Plan, expansion: Expansion, schedule: Schedule, *, executor: str = LOCAL) -> StudyEstimate:
    """The study that a schedule makes."""
    loads = expansion.by_visit
    seconds = measured = 0.0
    size = 0
    of_node: defaultdict[str | None, float] = defaultdict(float)
    per_load = {
        key: (
            visit_seconds(plan, cell, load, canary=key[2], executor=executor),
            *_measured_and_bytes(cell, load),
        )
        for key, (cell, load) in loads.items()
    }
    for visit in schedule.visits:
        took, counted, stored = per_load[visit.cell_id, visit.dataset_id, visit.canary]
        seconds, measured, size = seconds + took, measured + counted, size + stored
        of_node[visit.node] += took
    if executor == SLURM:
        # Nodes work at once.
        seconds = max(of_node.values(), default=0.0)
    if executor == QEMU:
        seconds += BOOT_S * len({visit.boot for visit in schedule.visits})
    cells_of: defaultdict[Dataset, list[Cell]] = defaultdict(list)
    for cell, load in loads.values():
        cells_of[load.dataset].append(cell)
    aged_bytes, aged_seconds = aged_images(loads.values(), plan.scratch_device)
    kept_bytes, kept_seconds = kept_images(plan, (loads[key] for key in loads if not key[2]))
    canaries = sum(visit.canary for visit in schedule.visits)
    return StudyEstimate(
        visits=len(schedule.visits) - canaries,
        canary_visits=canaries,
        seconds=seconds,
        measured_seconds=measured,
        device_bytes=max((device_bytes_needed(cell, load) for cell, load in loads.values()), default=0),
        image_bytes=_image_bytes(plan, canaries),
        study_bytes=size,
        data_bytes=aged_bytes
        + kept_bytes
        + sum(estimate_of(each.workload).prepared_bytes(each, cells) for each, cells in cells_of.items()),
        data_seconds=aged_seconds
        + kept_seconds
        + sum(estimate_of(each.workload).prepared_seconds(each, cells) for each, cells in cells_of.items()),
    )


def _image_bytes(plan: Plan, canaries: int) -> int | None:
    """The data of a device with latency is in memory; a canary's is a file all the same."""
    if plan.latencies and not canaries:
        return None
    return plan.scratch_device_for(canary=bool(plan.latencies)).image_bytes


def device_bytes_needed(cell: Cell, load: Load) -> int:
    """What a visit needs on the scratch device: tables and WAL up to its limit, or files; the file system itself."""
    return estimate_of(load.dataset.workload).device_bytes(cell, load)


def _running_seconds(cell: Cell, load: Load, *, emulated: bool) -> float:
    """Warm-up and measurement of all runs: asked for, or reckoned."""
    return sum(estimate_of(run.workload).run_seconds(cell, load, run, emulated=emulated) for run in load.runs)


def _measured_and_bytes(cell: Cell, load: Load) -> tuple[float, int]:
    running = _running_seconds(cell, load, emulated=False)
    stored = VISIT_RECORD_BYTES + running * (COURSE_BYTES_PER_S + TRANSACTION_LOG_BYTES_PER_S)
    measured = running - sum(run.levels.number("warmup_s") or 0.0 for run in load.runs)
    return measured, int(stored)
