"""A TPC-H study on disk that nobody measured, beside `synthetic_study`: for tests of the reading side.

Times follow simple rules (`query_s`), with noise from a seed. What a test wants to see is named in the recipe:
queries that time out, cells that plan a query differently, plans that waver, runs that fail. The rows of
figures are those that `workloads/tpch/figures.py` makes; its tests hold the two together.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.support.studies.made_once import made_once
from tests.support.studies.synthetic_study import (
    HOSTILE,
    MACHINE,
    START_WALL_S,
    comparisons_of,
    durability_of,
    facts_of,
)
from tests.support.studies.synthetic_tpch_run import VISIT_S, TpchRun
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
    digest,
)
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import ScheduledVisit
from bedplate.model.visit import FORMAT_VERSION, Outcome, Timing, VisitKey, VisitRecord
from bedplate.study.records import StudySchedule
from bedplate.workloads.tpch.model import (
    LOAD,
    POWER,
    THROUGHPUT,
    VALIDATION,
    WORKLOAD,
)

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class TpchRecipe:
    """What to make. Cells count from 0, in the order of `tpch_cells`; repetitions from 1.

    `timeouts` are (cell, query) that never end, `other_plans` those that the cell plans in its own way,
    `wavering_plans` those whose plan is another in the second repetition only. `failed` and `suspect` are runs
    by (cell, repetition, name of the run); without a `load` the runs after it were not made. `missing` are
    visits that were not made yet. `streams` of 0 leaves the throughput run out.
    """

    filesystems: tuple[str, ...] = ("ext4", "xfs", "btrfs")
    database_blocks: tuple[int, ...] = (8192, 32768)
    repetitions: int = 3
    passes: tuple[str, ...] = ("cold", "warm")
    streams: int = 2
    scale_factor: float = 0.1
    query_timeout_s: float | None = 30.0
    timeouts: tuple[tuple[int, int], ...] = ((4, 20),)
    other_plans: tuple[tuple[int, int], ...] = ((1, 9), (3, 9), (5, 17))
    wavering_plans: tuple[tuple[int, int], ...] = ((2, 21),)
    failed: tuple[tuple[int, int, str], ...] = ((3, 2, "warm"),)
    suspect: tuple[tuple[int, int, str], ...] = ()
    missing: tuple[tuple[int, int], ...] = ()
    hostile: bool = False
    title: str = "Data warehouse on three file systems"
    seed: int = 7
    settings: Levels = field(default_factory=lambda: Levels(shared_buffers="512MB", work_mem="128MB"))


def tpch_cells(recipe: TpchRecipe) -> tuple[Cell, ...]:
    """Every file system with every database block, the blocks changing fastest."""
    return tuple(
        Cell(
            DeviceLevels(),
            KernelLevels(),
            FilesystemLevels(name, mount_options=(HOSTILE,) if recipe.hostile else ()),
            BuildLevels(block_size_bytes=block),
            ClusterLevels(settings=recipe.settings),
        )
        for name in recipe.filesystems
        for block in recipe.database_blocks
    )


def tpch_runs(recipe: TpchRecipe) -> tuple[RunSpec, ...]:
    """`load`, a power run per pass (a repeated one is `warm-2`), and `throughput` where there are streams."""
    shared: dict[str, Scalar] = {"parameters": VALIDATION}
    if recipe.query_timeout_s is not None:
        shared["query_timeout_s"] = recipe.query_timeout_s
    specs = [RunSpec("load", WORKLOAD, Levels(kind=LOAD))]
    for number, name in enumerate(recipe.passes, start=1):
        again = recipe.passes[:number].count(name)
        levels = Levels({**shared, "kind": POWER, "pass": name, "pass_number": number})
        specs.append(RunSpec(name if again == 1 else f"{name}-{again}", WORKLOAD, levels))
    if recipe.streams:
        levels = Levels({**shared, "kind": THROUGHPUT, "streams": recipe.streams})
        specs.append(RunSpec("throughput", WORKLOAD, levels))
    return tuple(specs)


@made_once
def synthetic_tpch_study(directory: Path, recipe: TpchRecipe | None = None) -> Path:
    """Write the whole study into `directory`, which is made; the directory."""
    made = recipe or TpchRecipe()
    directory.mkdir(parents=True)
    cells = tpch_cells(made)
    dataset = Dataset(WORKLOAD, Levels(scale_factor=made.scale_factor))
    specs = tpch_runs(made)
    visits = _schedule(made, cells, dataset)
    title = HOSTILE if made.hostile else made.title
    write(directory / "study.json", facts_of(title))
    write(directory / "machine.json", MACHINE)
    (directory / "plan.toml").write_text(
        f'title = "{made.title}"\nrepetitions = {made.repetitions}\n', encoding="utf-8"
    )
    schedule = StudySchedule(
        format_version=FORMAT_VERSION,
        seed=made.seed,
        repetitions=made.repetitions,
        cells={cell.id: cell for cell in cells},
        datasets={dataset.id: dataset},
        runs={dataset.id: specs},
        pruned=(),
        visits=visits,
    )
    write(directory / "schedule.json", schedule)
    for visit in visits:
        number = next(i for i, cell in enumerate(cells) if cell.id == visit.cell_id)
        if (number, visit.repetition) not in made.missing:
            _Visit(made, cells[number], dataset, specs, visit, number).write(directory)
    return directory


def _schedule(recipe: TpchRecipe, cells: tuple[Cell, ...], dataset: Dataset) -> tuple[ScheduledVisit, ...]:
    chance = random.Random(recipe.seed)
    order = [
        (cell, repetition)
        for repetition in range(1, recipe.repetitions + 1)
        for cell in chance.sample(cells, len(cells))
    ]
    return tuple(
        ScheduledVisit(index, cell.id, dataset.id, repetition)
        for index, (cell, repetition) in enumerate(order)
    )


@dataclass(frozen=True)
class _Visit:
    """One visit and its runs, as they are written."""

    recipe: TpchRecipe
    cell: Cell
    dataset: Dataset
    specs: tuple[RunSpec, ...]
    scheduled: ScheduledVisit
    number: int

    def write(self, directory: Path) -> None:
        key = VisitKey(self.cell.id, self.dataset.id, self.scheduled.repetition, 1)
        place = directory / "visits" / self.cell.id / self.dataset.id / f"{self.scheduled.repetition}.1"
        (place / "logs").mkdir(parents=True)
        runs = [self._run(index, spec) for index, spec in enumerate(self.specs)]
        folders = [f"{index:02d}-{spec.id}" for index, spec in enumerate(self.specs, start=1)]
        for run, folder in zip(runs, folders, strict=True):
            run.write(place / "runs" / folder)
        problems = tuple(reason.about(run.spec.name) for run in runs for reason in run.reasons)
        record = VisitRecord(
            format_version=FORMAT_VERSION,
            key=key,
            cell=self.cell,
            dataset=self.dataset,
            outcome=Outcome.FAILED if problems else Outcome.COMPLETED,
            reasons=problems,
            failed_step="runs" if problems else None,
            started_wall_s=START_WALL_S + self.scheduled.index * VISIT_S,
            seconds=VISIT_S - 5,
            boot_id=MACHINE.boot_id,
            executor="local",
            comparisons=comparisons_of(self.cell),
            effective_digest=digest({"cell": self.cell.id}),
            durability=durability_of(self.cell),
            device_facts=Levels(kind="image file on a loop device", size_bytes=4 * 2**30),
            timings=(Timing("mkfs", 0.4), Timing("initdb", 2.0), Timing("server start", 0.5)),
            versions={"postgresql": "18.1"},
            runs=tuple(folders),
            build_digest="feedfacefeedface",
        )
        write(place / "visit.json", record)

    def _run(self, index: int, spec: RunSpec) -> TpchRun:
        repetition = self.scheduled.repetition
        earlier = {spec.name for spec in self.specs[:index]}
        failed = {
            name for cell, number, name in self.recipe.failed if (cell, number) == (self.number, repetition)
        }
        outcome = Outcome.COMPLETED
        if "load" in failed & earlier:
            outcome = Outcome.NOT_RUN
        elif spec.name in failed:
            outcome = Outcome.FAILED
        return TpchRun(self.recipe, self.cell, self.number, self.scheduled, spec, index, outcome)
