"""Aged, filled and restored file systems in a plan: what cannot be, and what making them takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from bedplate import registry
from bedplate.model.cell import UNTORN_OFF, Cell, Dataset, FilesystemLevels
from bedplate.model.filesystem import AGE_PROFILES, FILL, TRAITS, age_of, fill_of
from bedplate.model.kept_dataset import RESTORABLE, deciding, kept_data_of
from bedplate.model.plan import Load, Plan, PlannedCell
from bedplate.model.reason import Reason
from bedplate.model.visit import RESTORED, ScratchDevice
from bedplate.model.workload import model_of
from bedplate.plan.platforms import LOCAL, QEMU, SLURM
from bedplate.plan.workload_estimate import GROWTH, EngineEstimate, estimate_of
from bedplate.units import GIB, MIB, format_size, percent

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


def aged_images(visits: Iterable[tuple[Cell, Load]], scratch: ScratchDevice) -> tuple[int, float]:
    """Bytes in the cache and seconds of the aged file systems that these visits stand on, each made once."""
    wanted: set[tuple[FilesystemLevels, int]] = set()
    for cell, load in visits:
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
    plan: Plan, kept: Iterable[PlannedCell], memory_of: Callable[[Cell], int | None]
) -> tuple[str, ...]:
    """Memory that holds less than the data, one sentence for each dataset and memory.

    A load leaves large folios in the page cache there, which stay in it, and reading makes small ones
    (docs/decisions/0018-restored-under-memory-pressure.md).
    """
    if plan.dataset_by != RESTORED:
        return ()
    most: dict[tuple[Dataset, int], float] = {}
    for planned in kept:
        memory = memory_of(planned.cell)
        for load in planned.loads:
            data = estimate_of(load.dataset.workload).dataset_bytes(planned.cell, load)
            if memory is not None and memory < data:
                most[load.dataset, memory] = max(data, most.get((load.dataset, memory), 0.0))
    return tuple(
        f'dataset = "{RESTORED}": {dataset.words} is about {format_size(int(data))}, more than the memory of {format_size(memory)}; '
        "restored visits differ there from loaded ones by several per cent, and less from one another: compare them with one another "
        "alone (docs/method/filesystems.md)"
        for (dataset, memory), data in most.items()
    )


def restored_seconds(cell: Cell, dataset: Dataset) -> float:
    """What copying an image onto the device takes, and reading what the load would have left in the cache."""
    return _image_bytes(cell, dataset) / RESTORED_BYTES_PER_S


def kept_images(plan: Plan, visits: Iterable[tuple[Cell, Load]]) -> tuple[int, float]:
    """Bytes in the cache and seconds of the images that these visits share, each made once; nothing where each visit loads."""
    if plan.dataset_by != RESTORED:
        return 0, 0.0
    made = dict.fromkeys((deciding(cell), load.dataset) for cell, load in visits)
    seconds = sum(
        _MAKING_OVERHEAD_S + estimate_of(dataset.workload).load_seconds(cell, dataset, emulated=False)
        for cell, dataset in made
    )
    return sum(_image_bytes(cell, dataset) for cell, dataset in made), seconds


def _image_bytes(cell: Cell, dataset: Dataset) -> int:
    """At most: the log may not have grown to its limit."""
    return estimate_of(dataset.workload).device_bytes(cell, Load(dataset, ()))
