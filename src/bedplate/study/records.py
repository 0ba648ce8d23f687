"""What stands at the top of a study, `study.json` and `schedule.json`, and beside each visit, `checksums.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import PlanError, StudyError
from bedplate.model import codec, limits
from bedplate.model.cell import Cell, Dataset, RunSpec
from bedplate.model.devices import DeviceIdentity
from bedplate.model.levels import LevelMismatch, Levels
from bedplate.model.limits import too_long
from bedplate.model.machine import NodeFacts
from bedplate.model.plan import (
    WANTED,
    Expansion,
    Load,
    Plan,
    PlannedCell,
    Pruned,
    Schedule,
    ScheduledVisit,
    SearchRecord,
)
from bedplate.model.visit import FORMAT_VERSION

if TYPE_CHECKING:
    from bedplate.study.layout import StudyLayout

# Where the runs of a study come from. What others published was neither watched nor set up by bedplate.
MEASURED, IMPORTED = "measured", "imported"


@dataclass(frozen=True)
class HistoryEntry:
    """What was done to a study, and when."""

    when: str
    """ISO 8601, UTC"""
    what: str
    """a sentence: created, extended, gone on with under a new kernel"""


@dataclass(frozen=True)
class FileChecksum:
    """What a file was when its visit had ended, or when the study was made or extended."""

    size_bytes: int
    """its size when the visit had ended"""
    sha256: str
    """SHA-256 of its content, in hexadecimal"""


@dataclass(frozen=True)
class StudyFacts:
    """`study.json`: what a study is, and what was done to it."""

    format_version: int
    """2; 1 in older ones"""
    title: str
    """the plan's title"""
    created: str
    """ISO 8601, UTC"""
    bedplate: str
    """version that made the study"""
    plan_digest: str
    """digest of everything in the plan that decides a result"""
    machine_identity: str
    """digest of what must not change within a study"""
    kernel_release: str
    """kernel of the last start; a declared factor may change it"""
    history: tuple[HistoryEntry, ...]
    """what was done to the study, oldest first"""
    executor: str = "local"
    """who runs the visits: `local`, `qemu`, `slurm`; `imported` where others made them; where the plan says `auto`, the one that the study was begun with"""
    defaults: int = 1
    """version of the table of defaults that the plan is read with: 1, where it is missing, gives a client program
    two threads; 2 one for each client"""
    checksums: Mapping[str, FileChecksum] = field(default_factory=dict)
    """the other files at the top (`plan.toml`, `plan/`, `machine.json`, `schedule.json`), by their path, as they
    were when the study was made or last extended; empty in older studies"""
    origin: str = MEASURED
    """`measured`, or `imported` where `bedplate import` made it of runs that others published; missing in older studies"""
    devices: Mapping[str, DeviceIdentity] = field(default_factory=dict)
    """the devices that are erased, by their names in the plan, as they were when the study began; empty for images, on a
    fleet (`fleet/nodes/` has them) and in older studies until their next start"""

    @property
    def is_imported(self) -> bool:
        """Whether others made its runs."""
        return self.origin == IMPORTED


@dataclass(frozen=True)
class StudySchedule:
    """`schedule.json`: what there is to visit, and in which order."""

    format_version: int
    """2; 1 in older ones"""
    seed: int
    """what the order was drawn from"""
    repetitions: int
    """passes over all cells"""
    cells: Mapping[str, Cell]
    """cell id to cell"""
    datasets: Mapping[str, Dataset]
    """dataset id to dataset"""
    runs: Mapping[str, tuple[RunSpec, ...]]
    """dataset id to its runs, in order"""
    pruned: tuple[Pruned, ...]
    """cells that cannot exist here"""
    visits: tuple[ScheduledVisit, ...]
    """all visits in their order"""
    canary_runs: tuple[RunSpec, ...] = ()
    """the runs of a canary visit, which may share its dataset with a cell"""


@dataclass(frozen=True)
class Checksums:
    """`checksums.json` of a visit."""

    format_version: int
    """2; 1 in older ones"""
    files: Mapping[str, FileChecksum]
    """every file of the visit but this one, by its path below the visit's directory"""


_KINDS = {
    "text": ("kind", "script", "pass"),
    "integer": ("files", "streams", "points", "pass_number"),
    "number": ("scale_factor",),
}


def read_schedule(layout: StudyLayout) -> StudySchedule:
    """`schedule.json`, whole in itself; StudyError names what its visits lack in it."""
    found = codec.read(StudySchedule, layout.schedule)
    try:
        lacks = tuple(dict.fromkeys(_lacks(found)))
    except PlanError as error:
        # An engine or a workload that nobody knows: another version may have written it.
        raise StudyError(
            *(f"{layout.schedule} cannot be read: {words}" for words in error.reasons)
        ) from error
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


def _lacks(schedule: StudySchedule) -> Iterator[str]:
    for what, entries in (("cell", schedule.cells), ("dataset", schedule.datasets)):
        for identity, entry in entries.items():
            # An id is a hash of what it stands for.
            if entry.id != identity:
                yield f"what it says of the {what} {identity!r:.200} is that of {entry.id!r:.200}"
    levels = [entry.levels for entry in schedule.datasets.values()]
    levels += [run.levels for runs in (*schedule.runs.values(), schedule.canary_runs) for run in runs]
    for each in levels:
        yield from wrong_levels(each)
    for each in (*levels, *(cell.levels for cell in schedule.cells.values())):
        for name, level in each.items():
            # Whole files of a plan's, which no table shows.
            if isinstance(level, str) and not name.endswith(("_text", ".configuration")):
                yield from too_long(f"the level {name:.80}", name, level)
    for run in (run for runs in (*schedule.runs.values(), schedule.canary_runs) for run in runs):
        yield from too_long("the name of a run", run.name, run.workload)
    seen = set()
    for visit in schedule.visits:
        if visit.cell_id not in schedule.cells:
            yield f"its visits name the cell {visit.cell_id!r:.200}, which it does not have"
        if visit.dataset_id not in schedule.datasets:
            yield f"its visits name the dataset {visit.dataset_id!r:.200}, which it does not have"
        if not visit.canary and visit.dataset_id not in schedule.runs:
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


def _load(schedule: StudySchedule, visit: ScheduledVisit) -> Load:
    runs = schedule.canary_runs if visit.canary else schedule.runs[visit.dataset_id]
    return Load(schedule.datasets[visit.dataset_id], runs)


SEARCH_VERSION = 1


def read_order(layout: StudyLayout) -> tuple[StudySchedule, SearchRecord | None]:
    """The schedule, and what a search asks and came to; None of a study that is none. StudyError names what does not fit.

    The search first: a block is in the schedule before it is in `search.json`, so a reader beside the writer finds both.
    """
    found = codec.read(SearchRecord, layout.search) if limits.is_there(layout.search) else None
    schedule = read_schedule(layout)
    if found is None:
        return schedule, None
    if found.version != SEARCH_VERSION:
        raise StudyError(
            f"{layout.search} has format {found.version}, this bedplate knows {SEARCH_VERSION}; "
            "read it with the version that wrote it"
        )
    if wrong := tuple(dict.fromkeys(_search_misfits(found, schedule))):
        raise StudyError(*(f"{layout.search} is damaged: {words}" for words in wrong))
    return schedule, found


def _search_misfits(search: SearchRecord, schedule: StudySchedule) -> Iterator[str]:
    if search.durable not in WANTED:
        yield f"it asks for the durability {search.durable!r:.200}, which does not exist"
    for dataset in filter(None, (search.dataset, search.cut_dataset)):
        if dataset not in schedule.datasets:
            yield f"it is of the dataset {dataset!r:.200}, which the schedule does not have"
    candidates = [each.cell for each in search.candidates]
    if len(set(candidates)) < len(candidates):
        yield "a cell is among its candidates twice"
    for cell in (*candidates, *(each.cell for each in search.left_out)):
        if cell not in schedule.cells:
            yield f"it names the cell {cell!r:.200}, which the schedule does not have"
    of_blocks = {cell for block in search.blocks for cell in block.cells}
    of_blocks |= {cell for cell in (search.baseline, *(b.leader for b in search.blocks)) if cell is not None}
    for cell in sorted(of_blocks - set(candidates)):
        yield f"its blocks name {cell!r:.200}, which is none of its candidates"
    if [block.number for block in search.blocks] != list(range(len(search.blocks))):
        yield "its blocks are not numbered from 0 on"
    scheduled = {
        (v.cell_id, v.repetition) for v in schedule.visits if v.dataset_id == search.dataset and not v.canary
    }
    for block in search.blocks:
        if not all((cell, block.number + 1) in scheduled for cell in block.cells):
            yield f"block {block.number} has cells that repetition {block.number + 1} of the schedule lacks"
    for each in search.candidates:
        if not each.seconds > 0:
            yield f"a visit of {each.cell!r:.200} is reckoned to take {each.seconds} s"
    if not search.budget_s > 0 or not 0 < search.margin < 1:
        yield f"its budget is {search.budget_s} s and its margin {search.margin}"


PAIRED_VERSION = 1


@dataclass(frozen=True)
class PairedCells:
    """Two cells that differ in the change alone."""

    baseline: str
    """id of the cell without the change"""
    contender: str
    """id of the cell with it"""


@dataclass(frozen=True)
class PairedRecord:
    """`paired.json`: what a study of pairs asks. Frozen when the study is made; the budget and the accepted doubts alone may grow."""

    version: int
    """1"""
    baseline: str
    """what the side without the change is called, as it was typed"""
    contender: str
    """what the side with the change is called"""
    pairs: tuple[PairedCells, ...]
    """the pairs of each block"""
    budget_s: float
    """seconds of visits that it may take"""
    margin: float
    """what counts as the same: 0.05 is 5 %"""
    wrong: float
    """the chance that any interval misses at any look: 0.05"""
    workload: str | None = None
    """the run that is compared; null for all"""
    metrics: tuple[str, ...] = ()
    """the metrics that are compared; empty for what each run is about"""
    accepted: tuple[str, ...] = ()
    """doubts for which no run is left out"""
    condition: str | None = None
    """the condition that ends it, as `--fail-if` has it; null where the intervals alone do"""


@dataclass(frozen=True)
class PairedStep:
    """What follows in a study of pairs: another block, or nothing where `is_last`. `words` say where the study is."""

    words: str
    is_last: bool


def read_paired(layout: StudyLayout, schedule: StudySchedule) -> PairedRecord | None:
    """What a study of pairs asks; None of any other. StudyError names what does not fit."""
    if not limits.is_there(layout.paired):
        return None
    found = codec.read(PairedRecord, layout.paired)
    if found.version != PAIRED_VERSION:
        raise StudyError(
            f"{layout.paired} has format {found.version}, this bedplate knows {PAIRED_VERSION}; "
            "read it with the version that wrote it"
        )
    if wrong := tuple(dict.fromkeys(_pair_misfits(found, schedule))):
        raise StudyError(*(f"{layout.paired} is damaged: {words}" for words in wrong))
    return found


def _pair_misfits(paired: PairedRecord, schedule: StudySchedule) -> Iterator[str]:
    if not paired.pairs:
        yield "it has no pair"
    for pair in paired.pairs:
        for cell in (pair.baseline, pair.contender):
            if cell not in schedule.cells:
                yield f"it names the cell {cell!r:.200}, which the schedule does not have"
        if pair.baseline == pair.contender:
            yield f"it pairs {pair.baseline!r:.200} with itself"
    if not paired.budget_s > 0 or not 0 < paired.margin < 1 or not 0 < paired.wrong < 1:
        yield f"its budget is {paired.budget_s} s, its margin {paired.margin}, its chance to miss {paired.wrong}"


def nodes_directory(layout: StudyLayout) -> Path:
    """Where the files of a study's nodes are."""
    return layout.fleet / "nodes"


def read_nodes(layout: StudyLayout) -> Mapping[str, NodeFacts]:
    """What was found about the nodes, by name; empty before that, and without a fleet.

    StudyError names a file that cannot be read, and the way out.
    """
    found = {}
    directory = nodes_directory(layout)
    for path in (directory / name for name in limits.names_in(directory) if name.endswith(".json")):
        try:
            found[path.stem] = codec.read(NodeFacts, path)
        except StudyError as error:
            raise StudyError(*error.reasons, f"remove {path}, and it is found out again") from error
    return found


def node_devices(layout: StudyLayout, plan: Plan) -> Mapping[str, Mapping[str, DeviceIdentity]]:
    """By node the devices that its visits erase, by their names, as they were when somebody looked at the node first."""
    fleet, journal = plan.fleet, plan.journal_device
    if fleet is None:
        return {}
    found = {}
    for node, facts in read_nodes(layout).items():
        pairs = (
            (fleet.devices.get(node, plan.scratch_device.device), facts.device),
            (
                None if journal is None else fleet.journal_devices.get(node, journal.device),
                facts.journal_device,
            ),
        )
        found[node] = {name: device for name, device in pairs if name is not None and device is not None}
    return found
