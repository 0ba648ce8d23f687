"""A visit of published runs, written as the records that a measured one has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.imported.published import UNKNOWN
from bedplate.model import codec
from bedplate.model.figure import DEFINITIONS_VERSION, RunFigures
from bedplate.model.levels import Levels
from bedplate.model.machine import StoredMachine
from bedplate.model.reason import because
from bedplate.model.visit import (
    FORMAT_VERSION,
    RECORD_FILE,
    Outcome,
    RunRecord,
    Validity,
    VisitKey,
    VisitRecord,
)
from bedplate.study.records import IMPORTED
from bedplate.study.stored import VISIT_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bedplate.imported.published import PublishedMachine, PublishedRun
    from bedplate.imported.study import ImportedVisit
    from bedplate.model.cell import RunSpec
    from bedplate.model.reason import Reason
    from bedplate.study.store import Attempt

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
    first, *others = machines

    def shared(name: str, absent: str | int | None) -> str | int | None:
        value: str | int | None = getattr(first, name)
        return value if all(getattr(other, name) == value for other in others) else absent

    names = ", ".join(dict.fromkeys(machine.name for machine in machines))
    return StoredMachine(
        hostname=names if len(names) <= _LONGEST_NAME else f"{len(machines)} machines",
        distribution=str(shared("distribution", UNKNOWN)),
        kernel_release=str(shared("kernel_release", UNKNOWN)),
        architecture=UNKNOWN,
        cpu_model=str(shared("cpu_model", UNKNOWN)),
        cpu_count=_whole(shared("cpu_count", None)),
        memory_bytes=_whole(shared("memory_bytes", None)),
        page_size_bytes=None,
        filesystems=(),
        cgroup_version=None,
        pressure_available=False,
        virtualisation=None,
        boot_id="",
        is_root=False,
    )


def _whole(value: str | int | None) -> int | None:
    return value if isinstance(value, int) else None


def _record_run(folder: Path, spec: RunSpec, run: PublishedRun | None) -> None:
    outcome, reasons = _outcome(run)
    facts = {} if run is None else {"source_file": run.file, **run.facts}
    codec.write(folder / RECORD_FILE, RunRecord(spec, outcome, reasons, facts=facts))
    if run is not None and run.text:
        (folder / "logs").mkdir()
        (folder / "logs" / "source.txt").write_text(run.text, encoding="utf-8")
    doubts = () if run is None else run.doubts
    known = Validity.SUSPECT if doubts else Validity.VALID
    codec.write(
        folder / "run.json",
        RunFigures(
            format_version=FORMAT_VERSION,
            run=spec.name,
            run_id=spec.id,
            workload=spec.workload,
            outcome=outcome,
            reasons=reasons,
            validity=known if outcome is Outcome.COMPLETED else Validity.UNKNOWN,
            validity_reasons=doubts,
            measure_start_wall_s=None if run is None else run.started_wall_s,
            warmup_s=None,
            duration_s=None if run is None else run.duration_s,
            figures=() if run is None or outcome is not Outcome.COMPLETED else run.figures,
            definitions=DEFINITIONS_VERSION,
        ),
    )


def _outcome(run: PublishedRun | None) -> tuple[Outcome, tuple[Reason, ...]]:
    if run is None:
        return Outcome.NOT_RUN, (_NOT_THERE,)
    if run.failure is not None:
        return Outcome.FAILED, (run.failure,)
    return Outcome.COMPLETED, ()


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
