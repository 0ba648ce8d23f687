"""A study on disk that nobody measured: real files in the real format, with figures that are made up.

For tests and benchmarks of the reading side. The figures follow simple rules (smaller database blocks
are faster, barriers cost, checkpoints slow down), with noise from a seed, so that pictures look like
pictures and tests can name what they expect.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tests.support.studies.made_once import made_once
from tests.support.studies.planted_reasons import planted
from tests.support.studies.synthetic_course import WARMUP_S, write_same_tables, write_tables
from tests.support.studies.written import write

from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    Dataset,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
    RunSpec,
    Throttle,
    digest,
)
from bedplate.model.figure import DEFINITIONS_VERSION, Figure, RunFigures, Window
from bedplate.model.levels import Levels
from bedplate.model.machine import Machine
from bedplate.model.metrics import METRICS, figure
from bedplate.model.plan import Pruned, ScheduledVisit
from bedplate.model.visit import (
    FORMAT_VERSION,
    Durability,
    FlushCount,
    Outcome,
    ReadBack,
    Timing,
    Validity,
    VisitKey,
    VisitRecord,
)
from bedplate.study.records import HistoryEntry, StudyFacts, StudySchedule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import TypeAlias

    # What a run came to, in place of what is made up.
    Change: TypeAlias = Callable[[RunFigures, Cell, ScheduledVisit], RunFigures]

HOSTILE = '</script><script>window.__pwned=1</script><img src=x onerror="window.__pwned=1">\'"&{{7*7}}'
START_WALL_S = 1_700_000_000.0
# Of mkfs the version and the option that takes the size of a block, by type; others are taken for ext4.
_MKFS = {"xfs": ("6.13.0", "-b", "size={}"), "btrfs": ("6.14", "--sectorsize", "{}")}
_MKFS_OF_EXT4 = ("1.47.2", "-b", "{}")
_DATASET = Dataset("pgbench", Levels(scale=30))
_CANARY_RUN = RunSpec("canary", "pgbench", Levels(script="read-write", clients=1))
MACHINE = Machine(
    hostname="bench",
    distribution="Debian GNU/Linux 13 (trixie)",
    kernel_release="6.12.48-amd64",
    architecture="x86_64",
    cpu_model="Example CPU 2.4 GHz",
    cpu_count=2,
    memory_bytes=8 * 2**30,
    page_size_bytes=4096,
    filesystems=("ext4", "xfs", "btrfs"),
    cgroup_version=2,
    pressure_available=True,
    virtualisation="kvm",
    boot_id="00000000-0000-4000-8000-000000000000",
    is_root=True,
    tools={"mkfs.ext4": "mke2fs 1.47.2", "mkfs.xfs": "mkfs.xfs version 6.13.0"},
    tunables={"vm.dirty_ratio": "20", "vm.dirty_background_ratio": "10"},
)


@dataclass(frozen=True)
class Recipe:
    """What to make. `failed`, `suspect` and `missing` are visits by (cell index, repetition from 1)."""

    filesystem_blocks: tuple[int | None, ...] = (1024, 2048, 4096)
    database_blocks: tuple[int, ...] = (1024, 2048, 4096, 8192, 16384, 32768)
    runs: tuple[str, ...] = ("read-only", "read-write")
    repetitions: int = 3
    course_s: int = 60
    failed: tuple[tuple[int, int], ...] = ()
    suspect: tuple[tuple[int, int], ...] = ()
    missing: tuple[tuple[int, int], ...] = ()
    canaries: int = 3
    hostile: bool = False
    device_kind: str = "image file on a loop device"
    throttle: Throttle | None = None
    title: str = "Barriers and block sizes"
    seed: int = 7
    settings: Levels = field(default_factory=Levels)
    executor: str = "local"
    provenance: Mapping[str, str] = field(default_factory=dict)
    flush_counts: tuple[FlushCount, ...] = ()
    # Each makes every variant once more: a way to hundreds of cells.
    mount_options: tuple[tuple[str, ...], ...] = ((),)
    # These cells in place of the ones that the fields above make.
    cells: tuple[Cell, ...] = ()
    dataset: Dataset = _DATASET


def cells_of(recipe: Recipe) -> tuple[Cell, ...]:
    """Four variants; btrfs has 4 kB blocks only, as in life."""
    if recipe.cells:
        return recipe.cells
    hostile = (HOSTILE,) if recipe.hostile else ()
    variants = (
        FilesystemLevels("ext4", barrier=True, mount_options=hostile),
        FilesystemLevels("ext4", barrier=False),
        FilesystemLevels("xfs"),
        FilesystemLevels("btrfs", features=Levels(nodatacow=True)),
    )
    return tuple(
        Cell(
            DeviceLevels(throttle=recipe.throttle),
            KernelLevels(),
            replace(variant, block_size_bytes=fs_block, mount_options=(*variant.mount_options, *options)),
            BuildLevels(block_size_bytes=db_block),
            ClusterLevels(settings=recipe.settings),
        )
        for variant in variants
        for options in recipe.mount_options
        for fs_block in recipe.filesystem_blocks
        for db_block in recipe.database_blocks
        if not (variant.type == "btrfs" and fs_block not in (4096, None))
    )


def with_barriers_of_xfs(recipe: Recipe) -> tuple[Cell, ...]:
    """XFS alone, asked for barriers, which `cells_of` asks of ext4 only."""
    own = [cell for cell in cells_of(recipe) if cell.filesystem.type == "xfs"]
    return tuple(replace(cell, filesystem=replace(cell.filesystem, barrier=True)) for cell in own)


@made_once
def write_study(directory: Path, recipe: Recipe | None = None) -> Path:
    """Write the whole study into `directory`, which is made; the directory."""
    return _write(directory, recipe or Recipe(), None)


def write_changed_study(directory: Path, recipe: Recipe, change: Change) -> Path:
    """The same, but every run has the figures that `change` gives back, and all have the same course."""
    return _write(directory, recipe, change)


def _write(directory: Path, made: Recipe, change: Change | None) -> Path:
    directory.mkdir(parents=True)
    cells = cells_of(made)
    dataset = made.dataset
    specs = tuple(
        RunSpec(name, dataset.workload, Levels(script=name, clients=4, duration_s=float(made.course_s)))
        for name in ((*made.runs[:-1], HOSTILE) if made.hostile else made.runs)
    )
    visits = _schedule(made, cells, dataset)
    write(directory / "study.json", facts_of(HOSTILE if made.hostile else made.title))
    write(directory / "machine.json", MACHINE)
    text = f'title = "{made.title}"\nrepetitions = {made.repetitions}\n'
    (directory / "plan.toml").write_text(text + (f"# {HOSTILE}\n" if made.hostile else ""), encoding="utf-8")
    pruned = [
        Pruned(replace(cells[-1], filesystem=replace(cells[-1].filesystem, block_size_bytes=size)), reasons)
        for size, reasons in ((1024, planted("btrfs has no 1 KiB blocks; it has 4 KiB")),)
    ]
    schedule = StudySchedule(
        format_version=FORMAT_VERSION,
        seed=made.seed,
        repetitions=made.repetitions,
        cells={cell.id: cell for cell in cells},
        datasets={dataset.id: dataset},
        runs={dataset.id: (_CANARY_RUN, *specs) if made.canaries else specs},
        pruned=tuple(pruned),
        visits=visits,
    )
    write(directory / "schedule.json", schedule)
    numbers = {cell.id: number for number, cell in enumerate(cells)}
    for visit in visits:
        number = numbers[visit.cell_id]
        if not visit.canary and (number, visit.repetition) in made.missing:
            continue
        if visit.canary:
            write_visit(
                directory,
                made,
                cells[number],
                dataset=dataset,
                specs=(_CANARY_RUN,),
                visit=visit,
                number=number,
                change=change,
            )
        else:
            write_visit(
                directory,
                made,
                cells[number],
                dataset=dataset,
                specs=specs,
                visit=visit,
                number=number,
                change=change,
            )
    return directory


def facts_of(title: str) -> StudyFacts:
    """`study.json` of a study that was made once and not extended."""
    return StudyFacts(
        format_version=FORMAT_VERSION,
        title=title,
        created="2026-01-02T03:04:05Z",
        bedplate="0.1.0",
        plan_digest="0123456789abcdef",
        machine_identity=MACHINE.identity,
        kernel_release=MACHINE.kernel_release,
        history=(HistoryEntry("2026-01-02T03:04:05Z", "created"),),
    )


def _schedule(recipe: Recipe, cells: tuple[Cell, ...], dataset: Dataset) -> tuple[ScheduledVisit, ...]:
    chance = random.Random(recipe.seed)
    order: list[tuple[Cell, int, bool]] = []
    for repetition in range(1, recipe.repetitions + 1):
        order += [(cell, repetition, False) for cell in chance.sample(cells, len(cells))]
    for number in range(recipe.canaries):
        place = round(number * len(order) / max(recipe.canaries - 1, 1))
        order.insert(place, (cells[0], number + 1, True))
    return tuple(
        ScheduledVisit(index, cell.id, dataset.id, repetition, canary)
        for index, (cell, repetition, canary) in enumerate(order)
    )


def write_visit(
    directory: Path,
    recipe: Recipe,
    cell: Cell,
    *,
    dataset: Dataset,
    specs: tuple[RunSpec, ...],
    visit: ScheduledVisit,
    number: int,
    change: Change | None,
) -> None:
    """A visit of the study, as its recipe has it."""
    key = VisitKey(cell.id, dataset.id, visit.repetition, 1, visit.canary)
    failed = not visit.canary and (number, visit.repetition) in recipe.failed
    place = (
        directory / "visits" / "canary" / dataset.id / f"{visit.repetition}.1"
        if visit.canary
        else directory / "visits" / cell.id / dataset.id / f"{visit.repetition}.1"
    )
    (place / "logs").mkdir(parents=True)
    reason = f"mkfs.{cell.filesystem.type} exited with status 1: {HOSTILE if recipe.hostile else 'no space'}"
    record = VisitRecord(
        format_version=FORMAT_VERSION,
        key=key,
        cell=cell,
        dataset=dataset,
        outcome=Outcome.FAILED if failed else Outcome.COMPLETED,
        reasons=planted(reason) if failed else (),
        failed_step="mkfs" if failed else None,
        started_wall_s=START_WALL_S + visit.index * 100,
        seconds=95.0,
        boot_id=MACHINE.boot_id,
        executor=recipe.executor,
        provenance=recipe.provenance,
        flush_counts=() if failed else recipe.flush_counts,
        comparisons=comparisons_of(cell),
        effective_digest=digest({"cell": cell.id}),
        durability=durability_of(cell),
        device_facts=Levels(
            {
                "kind": recipe.device_kind,
                "size_bytes": 4 * 2**30,
                "rotational": 0,
                "write_cache": "write back",
            }
        ),
        timings=(Timing("mkfs", 0.4), Timing("load", 12.5)),
        versions={
            f"mkfs.{cell.filesystem.type}": _MKFS.get(cell.filesystem.type, _MKFS_OF_EXT4)[0],
            "postgresql": "18.1",
        },
        commands=(_mkfs_of(cell), ("mount", "-o", "noatime", "/dev/loop0", "/mnt x")),
        runs=() if failed else tuple(spec.name for spec in specs),
        build_digest="feedfacefeedface",
    )
    write(place / "visit.json", record)
    if not failed:
        for position, spec in enumerate(specs):
            _write_run(
                place / "runs" / f"{position:02d}-run",
                recipe,
                cell,
                spec=spec,
                visit=visit,
                number=number,
                position=position,
                change=change,
            )


def _mkfs_of(cell: Cell) -> tuple[str, ...]:
    """The command that made its file system."""
    kind = cell.filesystem.type
    _, option, value = _MKFS.get(kind, _MKFS_OF_EXT4)
    return (f"mkfs.{kind}", option, value.format(cell.filesystem.block_size_bytes or 4096), "/dev/loop0")


def durability_of(cell: Cell) -> Durability:
    """Without barriers a volatile cache loses what was promised; without waiting for commits any does."""
    if cell.cluster.settings.get("synchronous_commit") == "off":
        return Durability("bounded loss", "bounded loss", "declared", planted("synchronous_commit = off"))
    if cell.filesystem.barrier is not False:
        return Durability("durable", "durable", "declared")
    reason = "0 flushes in 64 appending fsyncs: a volatile cache may lose them"
    return Durability("unsafe", "durable", "declared", planted(reason))


def comparisons_of(cell: Cell) -> tuple[ReadBack, ...]:
    """Some options of the cell as they were read back."""
    filesystem = cell.filesystem
    asked = filesystem.block_size_bytes
    return (
        ReadBack(
            "filesystem.block_size_bytes", asked, asked or 4096, "superblock", None if asked is None else True
        ),
        ReadBack(
            "filesystem.barrier", filesystem.barrier, filesystem.barrier is not False, "mountinfo", None
        ),
        *(
            ReadBack(f"filesystem.mount_options.{option}", option, option, "mountinfo", matches=True)
            for option in filesystem.mount_options
        ),
        ReadBack("setting shared_buffers", None, "128MB", "pg_settings", None),
    )


def tps_of(cell: Cell, run: str) -> float:
    """The tps around which every run of the cell lies."""
    size = cell.database_block_bytes or 8192
    if run == "read-only":
        base = 24_000.0
        return base / (1 + 0.08 * abs(math.log2(size / 2048)))
    speed = {"ext2": 1100.0, "ext3": 1000.0, "ext4": 1200.0, "xfs": 1300.0, "btrfs": 700.0}[
        cell.filesystem.type
    ]
    if cell.filesystem.barrier is False:
        speed *= 2.0
    fs_block = cell.filesystem.block_size_bytes or 4096
    return speed / (1 + 0.12 * abs(math.log2(size / 4096)) + 0.05 * math.log2(4096 / fs_block))


def _write_run(
    place: Path,
    recipe: Recipe,
    cell: Cell,
    *,
    spec: RunSpec,
    visit: ScheduledVisit,
    number: int,
    position: int,
    change: Change | None,
) -> None:
    place.mkdir(parents=True)
    chance = random.Random(f"{recipe.seed} {visit.index} {position}")
    read_only = spec.name in ("read-only", "oltp_read_only")
    noise = chance.gauss(1.0, 0.01 if read_only else 0.05)
    tps = tps_of(cell, spec.name) * max(noise, 0.5)
    span = recipe.course_s
    windows = (
        () if read_only else (Window("timed", span * 0.2, span * 0.5), Window("timed", span * 0.8, None))
    )
    suspect = not visit.canary and (number, visit.repetition) in recipe.suspect
    what = HOSTILE if recipe.hostile else "tps still climbed at the end of the warm-up"
    started = START_WALL_S + visit.index * 100 + position * 40
    run = RunFigures(
        definitions=DEFINITIONS_VERSION,
        format_version=FORMAT_VERSION,
        run=spec.name,
        run_id=spec.id,
        workload=spec.workload,
        outcome=Outcome.COMPLETED,
        reasons=(),
        validity=Validity.SUSPECT if suspect else Validity.VALID,
        validity_reasons=planted(what) if suspect else (),
        measure_start_wall_s=started,
        warmup_s=float(WARMUP_S),
        duration_s=float(span),
        figures=_figures(tps, span, chance, read_only=read_only),
        windows=windows,
    )
    if change is None:
        write(place / "run.json", run)
        write_tables(place, tps, span, windows, chance)
    else:
        write(place / "run.json", change(run, cell, visit))
        write_same_tables(place, span, windows)


def _figures(tps: float, span: int, chance: random.Random, *, read_only: bool) -> tuple[Figure, ...]:
    latency = 4000.0 / tps
    known: dict[str, float] = {
        "tps": tps,
        "transactions": float(round(tps * span)),
        "tps_cv": 0.04 if read_only else 0.2,
        "latency_ms_mean": latency,
        "latency_ms_p50": latency * 0.8,
        "latency_ms_p95": latency * 2.1,
        "latency_ms_p99": latency * (4 + chance.random()),
        "latency_ms_p99_9": latency * 9,
        "latency_ms_max": latency * 40,
        "shared_buffers_hit_ratio": 0.93 if read_only else 0.97,
        "fast_transaction_share": 0.91,
        "device_reads_per_transaction": 0.0 if read_only else 0.4,
        "checkpoints_timed": 0.0 if read_only else 2.0,
        "load_s": 12.5,
    }
    if not read_only:
        known |= {
            "tps_in_checkpoint": tps * 0.7,
            "tps_settling": tps * 0.9,
            "tps_outside": tps * 1.2,
            "tps_in_checkpoint_cv": 0.3,
            "tps_settling_cv": 0.2,
            "tps_outside_cv": 0.1,
        }
    (why,) = planted("the server read nothing from the file system")
    absent = figure("page_cache_hit_ratio", None, reason=why)
    return (*(figure(name, value) for name, value in known.items() if name in METRICS), absent)
