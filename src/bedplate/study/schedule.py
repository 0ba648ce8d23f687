"""What a study will visit, as it stands in `schedule.json`, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.model.levels import LevelMismatch
from bedplate.model.limits import too_long
from bedplate.model.plan import Expansion, Load, PlannedCell, Schedule
from bedplate.model.visit import FORMAT_VERSION
from bedplate.study.records import StudySchedule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.model.levels import Levels
    from bedplate.model.plan import ScheduledVisit
    from bedplate.model.search import SearchRecord
    from bedplate.study.layout import StudyLayout


_KINDS = {
    "text": ("kind", "script", "pass"),
    "integer": ("files", "streams", "points", "pass_number"),
    "number": ("scale_factor",),
}


def read_schedule(layout: StudyLayout) -> StudySchedule:
    """`schedule.json`, whole in itself; StudyError names what its visits lack in it."""
    found = codec.read(StudySchedule, layout.schedule)
    lacks = tuple(dict.fromkeys(_lacks(found)))
    if lacks:
        raise StudyError(*(f"{layout.schedule} is damaged: {words}" for words in lacks))
    return found


def wrong_levels(levels: Levels) -> Iterator[str]:
    """Levels of a dataset or a run that are of another kind than every reader takes them for."""
    for kind, names in _KINDS.items():
        for name in names:
            try:
                getattr(levels, kind)(name)
            except LevelMismatch as error:
                yield from error.reasons


def _lacks(record: StudySchedule) -> Iterator[str]:
    for what, entries in (("cell", record.cells), ("dataset", record.datasets)):
        for identity, entry in entries.items():
            # An id is a hash of what it stands for.
            if entry.id != identity:
                yield f"what it says of the {what} {identity!r:.200} is that of {entry.id!r:.200}"
    levels = [entry.levels for entry in record.datasets.values()]
    levels += [run.levels for runs in (*record.runs.values(), record.canary_runs) for run in runs]
    for each in levels:
        yield from wrong_levels(each)
    for each in (*levels, *(cell.levels for cell in record.cells.values())):
        for name, level in each.items():
            # Whole files of a plan's, which no table shows.
            if isinstance(level, str) and not name.endswith(("_text", ".configuration")):
                yield from too_long(f"the level {name:.80}", name, level)
    for run in (run for runs in (*record.runs.values(), record.canary_runs) for run in runs):
        yield from too_long("the name of a run", run.name, run.workload)
    seen = set()
    for visit in record.visits:
        if visit.cell_id not in record.cells:
            yield f"its visits name the cell {visit.cell_id!r:.200}, which it does not have"
        if visit.dataset_id not in record.datasets:
            yield f"its visits name the dataset {visit.dataset_id!r:.200}, which it does not have"
        if not visit.canary and visit.dataset_id not in record.runs:
            yield f"it has no runs of the dataset {visit.dataset_id!r:.200}"
        place = (visit.cell_id, visit.dataset_id, visit.repetition, visit.canary)
        if place in seen:
            yield f"repetition {visit.repetition} of {visit.cell_id!r:.200} is in it twice"
        seen.add(place)


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


def recorded_expansion(
    record: StudySchedule, search: SearchRecord | None = None
) -> tuple[Expansion, Schedule]:
    """The expansion and the order that a study was begun with; of a `search` with the cells that it may come to.

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
    if search is not None:
        datasets = (search.dataset, *filter(None, (search.cut_dataset,)))
        own = {each: Load(record.datasets[each], record.runs[each]) for each in datasets}
        loads |= {each.cell: {**own, **loads.get(each.cell, {})} for each in search.candidates}
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
