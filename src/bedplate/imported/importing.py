"""`bedplate import`: a source, the adapter that it is for, and the study that is made of it.

A cell of the study is what the source varied, a dataset a scale, a visit the runs of one repetition on it. Nothing is made up:
what the source does not say is absent, and a run that it lacks did not run. Every reader reads it as any other study.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bedplate import registry
from bedplate.errors import PlanError, StudyError
from bedplate.imported.published import (
    UNKNOWN,
    Adapter,
    Publication,
    PublishedMachine,
    PublishedRun,
    PublishedSource,
)
from bedplate.model import codec
from bedplate.model.cell import Cell, Dataset, DeviceLevels, RunSpec
from bedplate.model.figure import DEFINITIONS_VERSION, RunFigures
from bedplate.model.levels import Levels
from bedplate.model.machine import StoredMachine
from bedplate.model.plan import (
    Canary,
    EngineSetup,
    Expansion,
    Load,
    Plan,
    PlannedCell,
    PlannedWorkload,
    Schedule,
    ScheduledVisit,
)
from bedplate.model.reason import Reason, because
from bedplate.model.visit import (
    FORMAT_VERSION,
    RECORD_FILE,
    Outcome,
    RunRecord,
    ScratchDevice,
    Validity,
    VisitKey,
    VisitRecord,
)
from bedplate.near_names import unknown_name
from bedplate.study.records import IMPORTED
from bedplate.study.store import Attempt, StudyStore, refuse_unless_new
from bedplate.study.stored import VISIT_FILE
from bedplate.units import format_count

# A folder of thousands of files may be of another kind altogether.
_MOST_UNREADABLE = 5


def adapters() -> Mapping[str, Adapter]:
    """The role `publications` of every workload that has it, by the names of the forms."""
    return {each.name: each for own in registry.parts("publications").values() for each in own}


def adapter_for(source: PublishedSource, asked: str | None = None) -> Adapter:
    """The adapter that a source is for.

    PlanError for a form that is not known, where none recognises the source, or several do and none is asked for.
    """
    known = adapters()
    if asked is not None:
        if asked not in known:
            raise PlanError(unknown_name("form of publication", asked, known))
        return known[asked]
    found = [each for each in known.values() if each.recognises(source)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(each.name for each in found)
        raise PlanError(f"{source.name} may be {names}; say which with --format")
    forms = "; ".join(each.words for each in known.values())
    raise PlanError(
        f"{source.name} is none of the forms that are known: {forms}", *source.unreadable[:_MOST_UNREADABLE]
    )


@dataclass(frozen=True)
class Imported:
    """What came of an import: all runs, those without figures among them, and what was left out."""

    adapter: str
    runs: tuple[PublishedRun, ...]
    problems: tuple[Reason, ...]

    @property
    def failures(self) -> tuple[Reason, ...]:
        """Why runs have no figures."""
        return tuple(run.failure for run in self.runs if run.failure is not None)

    @property
    def doubted(self) -> int:
        """How many runs are suspect."""
        return sum(bool(run.doubts) for run in self.runs)


def import_source(path: Path, study: Path, *, form: str | None = None) -> Imported:
    """Make a study of a source. PlanError where nothing in it can be used, with every reason; StudyError for the directory."""
    refuse_unless_new(study)
    source = PublishedSource(path)
    adapter = adapter_for(source, form)
    found = adapter.read(source)
    runs, copies = _without_copies(found.runs)
    problems = (*source.problems, *found.problems, *copies)
    if not runs:
        raise PlanError(f"{source.name} has no run of the form {adapter.name}", *problems)
    title = f"{source.name} (imported, {adapter.name})"
    # Beside its place, then moved there: a study that a kill left half made would never be completed.
    begun = study.absolute().with_name(f".{study.absolute().name}.importing")
    # rmtree(3.11) opens what it is given before it looks whether that is a folder: a link is followed, a pipe waited for.
    if begun.is_dir() and not begun.is_symlink():
        shutil.rmtree(begun, ignore_errors=True)
    if os.path.lexists(begun):
        raise StudyError(f"{begun} is in the way, and is no folder; remove it")
    try:
        whole = Publication(runs, problems)
        write_study(begun, whole, title=title, source=source.name, adapter=adapter.name)
        begun.rename(study)
    except OSError as error:
        raise StudyError(f"{study} cannot be made: {error.strerror}") from error
    finally:
        shutil.rmtree(begun, ignore_errors=True)
    return Imported(adapter.name, runs, problems)


def _without_copies(runs: Sequence[PublishedRun]) -> tuple[tuple[PublishedRun, ...], tuple[Reason, ...]]:
    """Each run once, and a problem for every copy: read twice it would count as a repetition, and make a verdict of one run."""
    kept: list[PublishedRun] = []
    copies: list[Reason] = []
    alike: defaultdict[object, list[PublishedRun]] = defaultdict(list)
    for run in runs:
        known = alike[run.machine.name, run.cell, run.scale, run.spec, run.text]
        first = next((other for other in known if _is_copy(run, other)), None)
        if first is None:
            known.append(run)
            kept.append(run)
            continue
        words = f"{run.file}: {run.spec.name} is the run of {first.file} again; it counts once"
        copies.append(because("source-duplicate", words))
    return tuple(kept), tuple(copies)


def _is_copy(run: PublishedRun, other: PublishedRun) -> bool:
    """Whether two runs of one cell and text are one run. A start that one of them lacks parts them from none."""
    has_starts = None not in (run.started_wall_s, other.started_wall_s)
    if has_starts and run.started_wall_s != other.started_wall_s:
        return False
    if run.failure is not None and not has_starts and run.series != other.series:
        # Two that failed may have left the same words.
        return False
    # A document numbers its runs.
    return run.repetition == other.repetition or not (run.file == other.file or run.failure is not None)


_NOT_THERE = because("not-in-the-source", "the source has no such run of this cell")

# The step at which a visit stops where single runs of it failed: the others are not doubted for it.
_STEP = "runs"

_LONGEST_NAME = 80


def record_visit(visit: ImportedVisit, attempt: Attempt) -> None:
    """Write a visit and its runs into the place of an attempt."""
    folders = []
    for place, spec in enumerate(visit.due):
        run = visit.runs.get(spec.name)
        folder = attempt.directory / "runs" / f"{place:02}-{spec.id}"
        folder.mkdir(parents=True)
        folders.append(folder.name)
        _record_run(folder, spec, run)
    runs = tuple(visit.runs.values())
    codec.write(attempt.directory / VISIT_FILE, _visit(visit, attempt.number, runs, tuple(folders)))


def machine_of(machines: Sequence[PublishedMachine]) -> StoredMachine:
    """The machine of a study; of several what all of them have."""
    names = ", ".join(dict.fromkeys(machine.name for machine in machines))
    counts, sizes = ({getattr(each, name) for each in machines} for name in ("cpu_count", "memory_bytes"))
    return StoredMachine(
        hostname=names if len(names) <= _LONGEST_NAME else f"{len(machines)} machines",
        distribution=UNKNOWN,
        kernel_release=UNKNOWN,
        architecture=UNKNOWN,
        cpu_model=UNKNOWN,
        cpu_count=counts.pop() if len(counts) == 1 else None,
        memory_bytes=sizes.pop() if len(sizes) == 1 else None,
        page_size_bytes=None,
        filesystems=(),
        cgroup_version=None,
        pressure_available=False,
        virtualisation=None,
        boot_id="",
        is_root=False,
    )


def _record_run(folder: Path, spec: RunSpec, run: PublishedRun | None) -> None:
    """A run of the source, or that it has none."""
    record = RunRecord(spec, Outcome.NOT_RUN, (_NOT_THERE,), facts={})
    figures = RunFigures(
        format_version=FORMAT_VERSION,
        run=spec.name,
        run_id=spec.id,
        workload=spec.workload,
        outcome=record.outcome,
        reasons=record.reasons,
        validity=Validity.UNKNOWN,
        validity_reasons=(),
        measure_start_wall_s=None,
        warmup_s=None,
        duration_s=None,
        figures=(),
        definitions=DEFINITIONS_VERSION,
    )
    if run is not None:
        outcome, reasons = (
            (Outcome.COMPLETED, ()) if run.failure is None else (Outcome.FAILED, (run.failure,))
        )
        known = Validity.SUSPECT if run.doubts else Validity.VALID
        record = RunRecord(spec, outcome, reasons, facts={"source_file": run.file})
        figures = replace(
            figures,
            outcome=outcome,
            reasons=reasons,
            validity=known if run.failure is None else Validity.UNKNOWN,
            validity_reasons=run.doubts,
            measure_start_wall_s=run.started_wall_s,
            duration_s=run.duration_s,
            figures=run.figures if run.failure is None else (),
        )
        if run.text:
            (folder / "logs").mkdir()
            (folder / "logs" / "source.txt").write_text(run.text, encoding="utf-8")
    codec.write(folder / RECORD_FILE, record)
    codec.write(folder / "run.json", figures)


def _visit(
    visit: ImportedVisit, number: int, runs: Sequence[PublishedRun], folders: tuple[str, ...]
) -> VisitRecord:
    first = runs[0]
    failures = tuple(run.failure for run in runs if run.failure is not None)
    moments = [run.started_wall_s for run in runs if run.started_wall_s is not None]
    disk = first.machine.disk
    return VisitRecord(
        format_version=FORMAT_VERSION,
        key=VisitKey(visit.cell.id, visit.dataset.id, visit.repetition, number),
        cell=visit.cell,
        dataset=visit.dataset,
        outcome=Outcome.FAILED if failures else Outcome.COMPLETED,
        reasons=failures,
        failed_step=_STEP if failures else None,
        started_wall_s=min(moments, default=None),
        seconds=sum(run.duration_s or 0.0 for run in runs),
        boot_id="",
        executor=IMPORTED,
        device_facts=Levels({"model": disk} if disk else {}),
        versions=dict(first.versions),
        runs=folders,
        provenance={"machine": first.machine.name[:_LONGEST_NAME], **first.surroundings},
        sealed=True,
    )


_MACHINE = "machine"


@dataclass(frozen=True)
class ImportedVisit:
    """The runs of one repetition of a cell on a dataset, by their names; `due` are all that such a visit may have."""

    cell: Cell
    dataset: Dataset
    repetition: int
    runs: Mapping[str, PublishedRun]
    due: tuple[RunSpec, ...]


def write_study(directory: Path, publication: Publication, *, title: str, source: str, adapter: str) -> None:
    """Make the study. StudyError where something else is in the directory."""
    visits = visits_of(publication.runs)
    machines = {run.machine: None for run in publication.runs}
    machine = machine_of(tuple(machines))
    plan, expansion, schedule = _planned(visits, title)
    with StudyStore.create(
        directory,
        plan=plan,
        plan_text=_plan_text(title, source, adapter, publication),
        plan_files={},
        machine=machine,
        expansion=expansion,
        schedule=schedule,
        executor=IMPORTED,
        origin=IMPORTED,
    ) as store:
        for scheduled, visit in zip(schedule.visits, visits, strict=True):
            with store.attempt(scheduled) as attempt:
                record_visit(visit, attempt)
                attempt.finish()
        store.note(f"imported {format_count(len(publication.runs), 'run')} of {source} as {adapter}")


def visits_of(runs: Sequence[PublishedRun]) -> tuple[ImportedVisit, ...]:
    """The runs as visits, in the order in which they were made as far as the source tells."""
    grouped: defaultdict[tuple[Cell, int | None, str, int], dict[str, PublishedRun]] = defaultdict(dict)
    for run, repetition in _counted(_told_apart(runs)):
        grouped[run.cell, run.scale, run.series, repetition][run.spec.name] = run
    datasets = _datasets(
        (scale, series, tuple(run.spec for run in found.values()))
        for (_, scale, series, _), found in grouped.items()
    )
    visits = []
    seen: Counter[tuple[Cell, Dataset]] = Counter()
    for (cell, scale, series, _), found in sorted(grouped.items(), key=lambda each: _moment(each[1])):
        dataset, due = datasets[scale, series, frozenset(run.spec for run in found.values())]
        seen[cell, dataset] += 1
        visits.append(ImportedVisit(cell, dataset, seen[cell, dataset], found, due))
    return tuple(visits)


def _told_apart(runs: Sequence[PublishedRun]) -> Sequence[PublishedRun]:
    """With the machine as a level of every cell, where one cell was measured on several."""
    machines: defaultdict[Cell, set[str]] = defaultdict(set)
    for run in runs:
        machines[run.cell].add(run.machine.name)
    if all(len(names) == 1 for names in machines.values()):
        return runs
    return [replace(run, cell=_on(run.cell, run.machine.name)) for run in runs]


def _on(cell: Cell, machine: str) -> Cell:
    features = cell.filesystem.features.updated(**{_MACHINE: machine})
    return replace(cell, filesystem=replace(cell.filesystem, features=features))


def _counted(runs: Iterable[PublishedRun]) -> Iterable[tuple[PublishedRun, int]]:
    """Each run with its repetition, and a further one where the source has a run of that number twice."""
    taken: set[tuple[Cell, int | None, str, str, int]] = set()
    for run in runs:
        number = run.repetition
        while (key := (run.cell, run.scale, run.series, run.spec.name, number)) in taken:
            number += 1
        taken.add(key)
        yield run, number


def _moment(found: Mapping[str, PublishedRun]) -> float:
    """When the first of them began; those of which nothing is said stay in their order at the end."""
    return min(
        (run.started_wall_s for run in found.values() if run.started_wall_s is not None), default=float("inf")
    )


_Kind = tuple[int | None, str, frozenset["RunSpec"]]


def _datasets(
    groups: Iterable[tuple[int | None, str, tuple[RunSpec, ...]]],
) -> Mapping[_Kind, tuple[Dataset, tuple[RunSpec, ...]]]:
    """The dataset of each kind of visit, with all runs on it.

    Visits of one scale share a dataset where the runs of one are among those of the other: it lacks some. Where they are
    not, they are two ways of measuring: the rarer ones have the name of their series as a level.
    """
    ordered = list(groups)
    counts: Counter[_Kind] = Counter((scale, series, frozenset(specs)) for scale, series, specs in ordered)
    order = {
        spec: place for place, spec in enumerate(dict.fromkeys(s for *_, specs in ordered for s in specs))
    }
    found: dict[_Kind, tuple[Dataset, tuple[RunSpec, ...]]] = {}
    for scale in dict.fromkeys(scale for scale, _, _ in counts):
        kinds = [kind for kind in counts if kind[0] == scale]
        wholes: Counter[frozenset[RunSpec]] = Counter()
        whole_of: dict[_Kind, frozenset[RunSpec]] = {}
        for kind in sorted(kinds, key=lambda each: -len(each[2])):
            whole_of[kind] = next((whole for whole in wholes if kind[2] <= whole), kind[2])
            wholes[whole_of[kind]] += counts[kind]
        (commonest, _), *_ = wholes.most_common(1)
        for kind in kinds:
            whole = whole_of[kind]
            levels = Levels({} if scale is None else {"scale": scale})
            if whole != commonest:
                # Of one series two kinds may be left, which its runs tell apart.
                levels = levels.updated(series=kind[1])
            found[kind] = (
                Dataset(next(iter(whole)).workload, levels),
                tuple(sorted(whole, key=order.__getitem__)),
            )
    return _told_by_runs(found)


def _told_by_runs(
    found: Mapping[_Kind, tuple[Dataset, tuple[RunSpec, ...]]],
) -> Mapping[_Kind, tuple[Dataset, tuple[RunSpec, ...]]]:
    """A schedule has one list of runs for a dataset: what would have two is numbered."""
    lists: defaultdict[Dataset, list[tuple[RunSpec, ...]]] = defaultdict(list)
    for dataset, due in found.values():
        if due not in lists[dataset]:
            lists[dataset].append(due)
    return {
        kind: (
            dataset
            if (place := lists[dataset].index(due)) == 0
            else Dataset(dataset.workload, dataset.levels.updated(runs=place + 1)),
            due,
        )
        for kind, (dataset, due) in found.items()
    }


def _planned(visits: Sequence[ImportedVisit], title: str) -> tuple[Plan, Expansion, Schedule]:
    loads: dict[Cell, dict[Dataset, Load]] = {}
    for visit in visits:
        loads.setdefault(visit.cell, {})[visit.dataset] = Load(visit.dataset, visit.due)
    cells = tuple(PlannedCell(cell, tuple(own.values())) for cell, own in loads.items())
    repetitions = max(visit.repetition for visit in visits)
    scheduled = tuple(
        ScheduledVisit(index, visit.cell.id, visit.dataset.id, visit.repetition)
        for index, visit in enumerate(visits)
    )
    plan = Plan(
        title=title,
        repetitions=repetitions,
        seed=0,
        executor=IMPORTED,
        scratch_device=ScratchDevice(),
        devices=(DeviceLevels(),),
        kernels=tuple(dict.fromkeys(cell.kernel for cell in loads)),
        filesystems=tuple(dict.fromkeys(cell.filesystem for cell in loads)),
        engines=tuple(
            EngineSetup(
                engine,
                tuple(dict.fromkeys(cell.build for cell in loads if cell.build.engine == engine)),
                tuple(dict.fromkeys(cell.cluster for cell in loads if cell.build.engine == engine)),
            )
            for engine in dict.fromkeys(cell.build.engine for cell in loads)
        ),
        workloads=tuple(
            PlannedWorkload(load.dataset.workload, (), load.runs, (load.dataset.levels,))
            for load in {load.dataset: load for own in loads.values() for load in own.values()}.values()
        ),
        canary=Canary(enabled=False),
    )
    return plan, Expansion(cells, (), None), Schedule(0, repetitions, scheduled)


def _plan_text(title: str, source: str, adapter: str, publication: Publication) -> str:
    """In place of a plan: what was read, and what was left out of it."""
    failed, left = sum(run.failure is not None for run in publication.runs), len(publication.problems)
    told = [
        f"{title}",
        f"No plan: imported from {source} as {adapter}.",
        f"{format_count(len(publication.runs), 'run')}, {failed} of them without figures; {format_count(left, 'thing')} left out{':' * bool(left)}",
        *(f"  {problem.sentence}" for problem in publication.problems),
    ]
    return "".join(f"# {line}\n" for text in told for line in text.splitlines() or [""])
