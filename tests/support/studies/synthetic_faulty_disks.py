"""Disks that failed and nobody made: tries as a run leaves them, and a study of speeds and faults."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.support.studies.made_once import made_once
from tests.support.studies.synthetic_power_cuts import RECIPE, RawCuts, write_cut_visit
from tests.support.studies.synthetic_study import cells_of, write_study

from bedplate.cuts.faults import TRIES_FILE, Detected, FaultRecord, FaultVerdict, Seen
from bedplate.cuts.records import PointOutcome
from bedplate.figures.run import make_figures
from bedplate.model import codec
from bedplate.model.cell import Dataset, RunSpec
from bedplate.model.levels import Levels
from bedplate.model.plan import ScheduledVisit
from bedplate.study.records import StudySchedule

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FAULTS = ("write-once-data", "flush-once", "read-once-data")
FAULT_DATASET = Dataset(
    "faulty_disk", Levels(engine="postgresql", image_bytes=2**32, clients=2, duration_s=4.0)
)
FAULT_SPEC = RunSpec("faulty-disk", "faulty_disk", Levels(faults=",".join(FAULTS), tries=2, seed=7))


def tried(
    number: int, fault: str, verdict: FaultVerdict = FaultVerdict.STOPPED, *, lost: int = 0
) -> FaultRecord:
    """One try that came to `verdict`."""
    is_hit = verdict.is_result
    has_stopped = is_hit and verdict is not FaultVerdict.WENT_ON
    return FaultRecord(
        number=number,
        fault=fault,
        seed=7 + number,
        hits=int(is_hit),
        seen=Seen.STOPPED if has_stopped else Seen.WENT_ON,
        writable=verdict is not FaultVerdict.READ_ONLY,
        came_back=True,
        verdict=verdict,
        detected=(Detected.ENGINE,) if has_stopped else (),
        acknowledged=500,
        lost_transactions=lost,
        left=PointOutcome.LOST if lost else PointOutcome.OK,
        no_result=None if verdict.is_result else "nothing met the fault",
        said=('PANIC: <could not> fsync file "base/5/16384"',) if has_stopped else (),
        found=(f"{lost} of 500 acknowledged transactions are missing",) if lost else (),
    )


CONTROL_TRIES = (
    replace(tried(0, "control-none", FaultVerdict.WENT_ON), hits=0),
    tried(1, "control-lost", FaultVerdict.LOST_SILENT, lost=200),
)


def tries_of(verdicts: Iterable[FaultVerdict]) -> tuple[FaultRecord, ...]:
    """Each fault with the next of the verdicts, the controls before them."""
    return (
        *CONTROL_TRIES,
        *(
            tried(2 + n, fault, verdict, lost=3 if verdict is FaultVerdict.LOST_SILENT else 0)
            for n, (fault, verdict) in enumerate(zip(FAULTS * 2, verdicts, strict=True))
        ),
    )


GOOD = tries_of((FaultVerdict.STOPPED, FaultVerdict.READ_ONLY, FaultVerdict.NOT_HIT) * 2)
SILENT = tries_of(
    (
        *(FaultVerdict.LOST_SILENT, FaultVerdict.STOPPED, FaultVerdict.NOT_HIT),
        *(FaultVerdict.STOPPED, FaultVerdict.STOPPED, FaultVerdict.NOT_HIT),
    )
)


def write_fault_visit(directory: Path, raw: RawCuts, tries: Iterable[FaultRecord], *, order: int = 0) -> Path:
    """A visit as it stands raw; the directory of its run."""
    run = write_cut_visit(directory, raw, order=order)
    lines = (codec.dumps(each, indent=None) + "\n" for each in tries)
    (run / TRIES_FILE).write_text("".join(lines), encoding="utf-8")
    return run


@made_once
def faulty_disk_study(directory: Path) -> Path:
    """Four cells with speeds, and one visit each in which the disk fails: without barriers rows are lost silently."""
    write_study(directory, RECIPE)
    schedule = codec.read(StudySchedule, directory / "schedule.json")
    cells = cells_of(RECIPE)
    first = len(schedule.visits)
    visits = tuple(ScheduledVisit(first + n, cell.id, FAULT_DATASET.id, 1) for n, cell in enumerate(cells))
    codec.write(
        directory / "schedule.json",
        replace(
            schedule,
            datasets={**schedule.datasets, FAULT_DATASET.id: FAULT_DATASET},
            runs={**schedule.runs, FAULT_DATASET.id: (FAULT_SPEC,)},
            visits=(*schedule.visits, *visits),
        ),
    )
    for visit, cell in zip(visits, cells, strict=True):
        raw = RawCuts(cell, (), recording=None, dataset=FAULT_DATASET, spec=FAULT_SPEC)
        place = directory / "visits" / cell.id / FAULT_DATASET.id / "1.1"
        tries = SILENT if cell.filesystem.barrier is False else GOOD
        make_figures(place, write_fault_visit(place, raw, tries, order=visit.index))
    return directory
