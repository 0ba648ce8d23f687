"""A search on disk that nobody ran: its blocks are those that the records give, its figures those of a synthetic study.

Of the 24 cells the six without barriers are left out; XFS with database blocks of 4 KiB is the fastest of the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tests.support.studies.made_once import made_once
from tests.support.studies.synthetic_study import MACHINE, Recipe, cells_of, facts_of, write_visit
from tests.support.studies.written import write

from bedplate.analysis.overview import overview
from bedplate.analysis.search import searched
from bedplate.model.cell import RunSpec
from bedplate.model.levels import Levels
from bedplate.model.plan import ScheduledVisit, SearchCandidate, SearchedBlock, SearchLeftOut, SearchRecord
from bedplate.model.reason import because
from bedplate.model.visit import FORMAT_VERSION
from bedplate.statistics.search import SearchEnd
from bedplate.study.records import StudySchedule

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.statistics.search import NextBlock

VISIT_S = 95.0
RUN = "read-write"


@dataclass(frozen=True)
class SearchRecipe:
    """`blocks` ends it early, as a search that is under way; `budget_visits` is the budget in visits."""

    budget_visits: float = 120
    blocks: int | None = None
    durable: str = "volatile"
    recipe: Recipe = field(default_factory=lambda: Recipe(filesystem_blocks=(4096,), course_s=5, canaries=0))


@made_once
def write_search(directory: Path, asked: SearchRecipe | None = None) -> Path:
    """Write a search into `directory`, which is made, as far as the recipe says."""
    made = asked or SearchRecipe()
    directory.mkdir(parents=True)
    cells, dataset = cells_of(made.recipe), made.recipe.dataset
    unsafe = [cell for cell in cells if cell.filesystem.barrier is False]
    why = because("durability-not-asked", "without barriers a volatile cache loses what was promised")
    open_cells = tuple(cell for cell in cells if cell not in unsafe)
    record = SearchRecord(
        version=1,
        best="tps",
        runs=(RUN,),
        dataset=dataset.id,
        durable=made.durable,
        budget_s=made.budget_visits * VISIT_S,
        margin=0.05,
        candidates=tuple(SearchCandidate(cell.id, VISIT_S) for cell in open_cells),
        left_out=tuple(SearchLeftOut(cell.id, why) for cell in unsafe),
        baseline=open_cells[0].id,
    )
    schedule = StudySchedule(
        format_version=FORMAT_VERSION,
        seed=made.recipe.seed,
        repetitions=made.recipe.repetitions,
        cells={cell.id: cell for cell in cells},
        datasets={dataset.id: dataset},
        runs={
            dataset.id: tuple(
                RunSpec(name, dataset.workload, Levels(script=name, clients=4)) for name in made.recipe.runs
            )
        },
        pruned=(),
        visits=(),
    )
    write(directory / "study.json", facts_of(made.recipe.title))
    write(directory / "machine.json", MACHINE)
    (directory / "plan.toml").write_text(f'title = "{made.recipe.title}"\n', encoding="utf-8")
    write(directory / "schedule.json", schedule)
    write(directory / "search.json", record)
    while made.blocks is None or len(record.blocks) < made.blocks:
        found = searched(overview(directory))
        assert found is not None
        if isinstance(found.after, SearchEnd) or found.after is None:
            break
        for block in found.after:
            record, schedule = _visited(directory, made, record, schedule, block)
    return directory


def _visited(
    directory: Path, made: SearchRecipe, record: SearchRecord, schedule: StudySchedule, block: NextBlock
) -> tuple[SearchRecord, StudySchedule]:
    """A block, written down and then visited."""
    ids = [each.cell for each in record.candidates]
    leader = None if block.leader is None else ids[block.leader]
    cells = tuple(ids[number] for number in block.cells)
    record = replace(record, blocks=(*record.blocks, SearchedBlock(block.block, cells, block.proof, leader)))
    begun = len(schedule.visits)
    visits = [
        ScheduledVisit(begun + at, cell, record.dataset, block.block + 1) for at, cell in enumerate(cells)
    ]
    schedule = replace(schedule, visits=(*schedule.visits, *visits))
    write(directory / "schedule.json", schedule)
    write(directory / "search.json", record)
    order = list(schedule.cells)
    for visit in visits:
        write_visit(
            directory,
            made.recipe,
            schedule.cells[visit.cell_id],
            dataset=made.recipe.dataset,
            specs=schedule.runs[record.dataset],
            visit=visit,
            number=order.index(visit.cell_id),
            change=None,
        )
    return record, schedule
