"""What a study will visit, as it stands in `schedule.json`, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.plan import Expansion, Load, PlannedCell, Schedule
from bedplate.model.visit import FORMAT_VERSION
from bedplate.study.records import StudySchedule

if TYPE_CHECKING:
    from bedplate.model.plan import ScheduledVisit


def schedule_record(expansion: Expansion, schedule: Schedule) -> StudySchedule:
    """What `schedule.json` holds of an expansion and its order."""
    canaries = (expansion.canary,) if expansion.canary else ()
    loads = {load.dataset.id: load for planned in expansion.cells for load in planned.loads}
    canary_loads = {load.dataset.id: load for planned in canaries for load in planned.loads}
    return StudySchedule(
        format_version=FORMAT_VERSION,
        seed=schedule.seed,
        repetitions=schedule.repetitions,
        cells={planned.cell.id: planned.cell for planned in (*expansion.cells, *canaries)},
        datasets={identity: load.dataset for identity, load in {**canary_loads, **loads}.items()},
        runs={identity: load.runs for identity, load in loads.items()},
        pruned=expansion.pruned,
        visits=schedule.visits,
        canary_runs=next((load.runs for load in canary_loads.values()), ()),
    )


def recorded_expansion(record: StudySchedule) -> tuple[Expansion, Schedule]:
    """The expansion and the order that a study was begun with.

    A study goes on with these: what the machine would refuse may have changed since (another version
    of a tool), and a study whose cells come and go would be two.
    """
    loads: dict[str, dict[str, Load]] = {}
    canary: PlannedCell | None = None
    for visit in record.visits:
        if visit.canary:
            canary = PlannedCell(record.cells[visit.cell_id], (_load(record, visit),))
        else:
            loads.setdefault(visit.cell_id, {})[visit.dataset_id] = _load(record, visit)
    cells = tuple(
        PlannedCell(cell, tuple(loads[identity].values()))
        for identity, cell in record.cells.items()
        if identity in loads
    )
    schedule = Schedule(record.seed, record.repetitions, record.visits)
    return Expansion(cells, record.pruned, canary), schedule


def _load(record: StudySchedule, visit: ScheduledVisit) -> Load:
    runs = record.canary_runs if visit.canary else record.runs[visit.dataset_id]
    return Load(record.datasets[visit.dataset_id], runs)
