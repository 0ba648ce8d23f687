"""Power cuts that nobody made: points and recordings as a run leaves them, and a study of speeds and cuts.

What a cut finds follows from the cell: with barriers nothing is lost, without them everything but in order is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tests.support.studies.made_once import made_once
from tests.support.studies.planted_reasons import planted
from tests.support.studies.synthetic_study import (
    MACHINE,
    START_WALL_S,
    Recipe,
    cells_of,
    durability_of,
    facts_of,
    write_study,
)

from bedplate.cuts.records import (
    DEFAULT_PROFILES,
    POINTS_FILE,
    RECORDING_FILE,
    CutPoint,
    Placement,
    PointOutcome,
    PointRecord,
    Profile,
    RecordingFacts,
)
from bedplate.figures.run import make_figures
from bedplate.model import codec
from bedplate.model.cell import Cell, Dataset, RunSpec
from bedplate.model.levels import Levels
from bedplate.model.plan import ScheduledVisit
from bedplate.model.visit import (
    FORMAT_VERSION,
    Durability,
    FlushCount,
    Outcome,
    Phase,
    RunRecord,
    VisitKey,
    VisitRecord,
)
from bedplate.study.records import StudySchedule

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

POINTS = 40
CONTROLS = 6
DATASET = Dataset(
    "power_cut",
    Levels(engine="postgresql", image_bytes=2**29, clients=2, duration_s=4.0, points=POINTS),
)
SPEC = RunSpec(
    "power-cut",
    "power_cut",
    Levels(points=POINTS, profiles="subset-4k,subset-512,lost,ordered", cache_bytes=8 * 2**20, seed=7),
)
FLUSHED = (FlushCount("data", "appending", 64, 128), FlushCount("data", "overwriting", 64, 64))
UNFLUSHED = (FlushCount("data", "appending", 64, 0), FlushCount("data", "overwriting", 64, 0))
RECIPE = Recipe(filesystem_blocks=(None,), database_blocks=(8192,), canaries=0, title="Speed and power cuts")


def point(
    number: int,
    outcome: PointOutcome = PointOutcome.OK,
    profile: Profile = Profile.SUBSET_4K,
    *,
    control: bool = False,
    lost: int = 0,
    lost_ms: float | None = None,
) -> PointRecord:
    """One cut that found `outcome`."""
    cut = CutPoint(number, 5000 + 10 * number, profile, Placement.UNIFORM, seed=number, control=control)
    found = outcome is not PointOutcome.FILE_SYSTEM_LOST
    return PointRecord(
        point=cut,
        outcome=outcome,
        flush_position=4990 + 10 * number,
        volatile_writes=9,
        volatile_bytes=9 * 8192,
        kept_writes=4,
        acknowledged=100 + number,
        lost_transactions=lost,
        lost_ms=lost_ms,
        consistent=outcome in (PointOutcome.OK, PointOutcome.NEEDS_FSCK, PointOutcome.LOST)
        if found
        else None,
        mount_s=0.02 if found else None,
        fsck_s=0.1 if outcome is PointOutcome.NEEDS_FSCK else None,
        engine_start_s=0.2 + number / 1000 if found else None,
        oracle_s=0.1 if found else None,
        problems=() if outcome is PointOutcome.OK else (f"cut {number}: {outcome.value}",),
    )


def points_of(bad: dict[Profile, PointOutcome], *, every: int = 1, count: int = POINTS) -> list[PointRecord]:
    """As many of each profile; of a profile in `bad` each `every`th finds what stands there."""
    profiles = DEFAULT_PROFILES
    found = []
    for number in range(count):
        profile = profiles[number % len(profiles)]
        outcome = (
            bad.get(profile, PointOutcome.OK) if number // len(profiles) % every == 0 else PointOutcome.OK
        )
        lost = 5 + number if outcome is PointOutcome.LOST else 0
        found.append(point(number, outcome, profile, lost=lost, lost_ms=3.5 * lost or None))
    return found


def controls(outcome: PointOutcome = PointOutcome.DETECTED, *, count: int = CONTROLS) -> list[PointRecord]:
    """Cuts in which the device lied."""
    return [
        point(number, outcome, Profile.LOST, control=True, lost=3, lost_ms=900.0) for number in range(count)
    ]


def recovery(
    first: int,
    outcomes: dict[Profile, PointOutcome] | None = None,
    *,
    cuts: int = 8,
    whole: PointOutcome = PointOutcome.OK,
) -> list[PointRecord]:
    """The recovery from cut `first`, cut again with each profile in turn, and the whole of it."""
    number = 1000 + 10 * first
    found = []
    for place in range(cuts + 1):
        profile = DEFAULT_PROFILES[place % len(DEFAULT_PROFILES)] if place < cuts else Profile.ORDERED
        outcome = (outcomes or {}).get(profile, PointOutcome.OK) if place < cuts else whole
        made = point(number + place, outcome, profile, lost=3 if outcome is PointOutcome.LOST else 0)
        placement = Placement.SPAN if place < cuts else Placement.WHOLE
        found.append(replace(made, point=replace(made.point, placement=placement, recovery_of=first)))
    return found


RECORDING = RecordingFacts(
    entries=20000,
    measured_from=4000,
    writes=12000,
    flushes=6000,
    discards=0,
    write_bytes=90 * 2**20,
    acknowledged=8000,
    clients=2,
    seconds=4.0,
    window_bytes=8 * 2**20,
    image_bytes=2**29,
)


@dataclass(frozen=True)
class RawCuts:
    """One visit with one run of power cuts."""

    cell: Cell
    points: tuple[PointRecord, ...]
    recording: RecordingFacts | None = RECORDING
    flush_counts: tuple[FlushCount, ...] = FLUSHED
    durability: Durability | None = field(
        default=Durability("durable", "durable", "declared", planted("flushes"))
    )
    outcome: Outcome = Outcome.COMPLETED
    dataset: Dataset = DATASET
    spec: RunSpec = SPEC


def write_cut_visit(directory: Path, raw: RawCuts, *, repetition: int = 1, order: int = 0) -> Path:
    """A visit as it stands raw; the directory of its run."""
    run = directory / "runs" / f"01-{raw.spec.id}"
    (run / "logs").mkdir(parents=True)
    started = START_WALL_S + 100 * order
    record = RunRecord(
        raw.spec,
        raw.outcome,
        () if raw.outcome is Outcome.COMPLETED else planted("a worker died"),
        phases=(Phase("recording", 10.0, 16.0, started, started + 6.0),),
    )
    codec.write(run / "record.json", record)
    write_points(run / POINTS_FILE, raw.points)
    if raw.recording is not None:
        codec.write(run / RECORDING_FILE, raw.recording)
    codec.write(
        directory / "visit.json",
        VisitRecord(
            format_version=FORMAT_VERSION,
            key=VisitKey(raw.cell.id, raw.dataset.id, repetition, 1),
            cell=raw.cell,
            dataset=raw.dataset,
            outcome=raw.outcome,
            reasons=(),
            failed_step=None,
            started_wall_s=started,
            seconds=60.0,
            boot_id="b",
            executor="local",
            flush_counts=raw.flush_counts,
            durability=raw.durability,
            runs=(run.name,),
            provenance={"protocol": "power_cut 1"},
        ),
    )
    return run


def write_points(path: Path, points: Iterable[PointRecord]) -> None:
    """A line for each."""
    path.write_text("".join(codec.dumps(each, indent=None) + "\n" for each in points), encoding="utf-8")


def raw_of(cell: Cell) -> RawCuts:
    """What cuts find in a cell of the study: btrfs is declared durable, and is not."""
    good = RawCuts(cell, (*points_of({}), *controls()), durability=durability_of(cell))
    if cell.filesystem.barrier is False:
        bad = dict.fromkeys(DEFAULT_PROFILES[:3], PointOutcome.LOST)
        unflushed = replace(RECORDING, flushes=2)
        return replace(
            good, points=(*points_of(bad), *controls()), recording=unflushed, flush_counts=UNFLUSHED
        )
    if cell.filesystem.type == "btrfs":
        torn = {Profile.SUBSET_512: PointOutcome.SILENT, Profile.SUBSET_4K: PointOutcome.DETECTED}
        return replace(good, points=(*points_of(torn, every=2), *controls()))
    return good


@made_once
def power_cut_study(directory: Path, *, refused: str | None = None, recipe: Recipe = RECIPE) -> Path:
    """Four cells or those of another recipe, each with speeds in its repetitions and one visit of power cuts.

    `refused` names a type of file system whose controls all pass, so that its verdict is refused.
    """
    write_study(directory, recipe)
    schedule = codec.read(StudySchedule, directory / "schedule.json")
    cells = cells_of(recipe)
    first = len(schedule.visits)
    visits = tuple(ScheduledVisit(first + n, cell.id, DATASET.id, 1) for n, cell in enumerate(cells))
    codec.write(
        directory / "schedule.json",
        replace(
            schedule,
            datasets={**schedule.datasets, DATASET.id: DATASET},
            runs={**schedule.runs, DATASET.id: (SPEC,)},
            visits=(*schedule.visits, *visits),
        ),
    )
    for visit, cell in zip(visits, cells, strict=True):
        raw = raw_of(cell)
        if cell.filesystem.type == refused:
            raw = replace(raw, points=(*points_of({}), *controls(PointOutcome.OK)))
        place = directory / "visits" / cell.id / DATASET.id / "1.1"
        make_figures(place, write_cut_visit(place, raw, order=visit.index))
    return directory


def recorded_study(directory: Path, raws: Iterable[RawCuts], *, repetitions: int = 1, made: int = 1) -> Path:
    """Power cuts alone: each of `raws` is a recording of its cell on its dataset, in the first `made` of the repetitions."""
    every = tuple(raws)
    places = [(raw, repetition) for repetition in range(1, repetitions + 1) for raw in every]
    visits = tuple(
        ScheduledVisit(order, raw.cell.id, raw.dataset.id, repetition)
        for order, (raw, repetition) in enumerate(places)
    )
    directory.mkdir(parents=True)
    codec.write(directory / "study.json", facts_of("Power cuts"))
    codec.write(directory / "machine.json", MACHINE)
    (directory / "plan.toml").write_text(f"repetitions = {repetitions}\n", encoding="utf-8")
    schedule = StudySchedule(
        format_version=FORMAT_VERSION,
        seed=7,
        repetitions=repetitions,
        cells={raw.cell.id: raw.cell for raw in every},
        datasets={raw.dataset.id: raw.dataset for raw in every},
        runs={raw.dataset.id: (raw.spec,) for raw in every},
        pruned=(),
        visits=visits,
    )
    codec.write(directory / "schedule.json", schedule)
    for visit, (raw, repetition) in zip(visits, places, strict=True):
        if repetition <= made:
            place = directory / "visits" / raw.cell.id / raw.dataset.id / f"{repetition}.1"
            make_figures(place, write_cut_visit(place, raw, repetition=repetition, order=visit.index))
    return directory


def recut_study(directory: Path) -> Path:
    """ext4 with barriers has lost something in recovery alone, XFS nothing there either, Btrfs nothing that counts."""
    study = power_cut_study(directory)
    lost = recovery(0, {Profile.SUBSET_512: PointOutcome.LOST})
    for begin, again in (
        ("ext4-pg8k-barrier", [*lost, *recovery(4)]),
        ("xfs", [*recovery(0), *recovery(4)]),
        ("btrfs", recovery(5, whole=PointOutcome.DETECTED)),
    ):
        (run,) = study.glob(f"visits/{begin}*/{DATASET.id}/*/runs/*")
        lines = (run / POINTS_FILE).read_text(encoding="utf-8").splitlines()
        points = [codec.loads(PointRecord, line, source="a line") for line in lines]
        write_points(run / POINTS_FILE, [*points, *again])
        firsts = tuple(dict.fromkeys(each.point.recovery_of or 0 for each in again))
        codec.write(run / RECORDING_FILE, replace(RECORDING, recoveries=firsts))
    return study


def torn_study(directory: Path, device: dict[str, object]) -> Path:
    """XFS loses its directory where a cut tears it and else nothing; every visit says what device it had."""
    study = power_cut_study(directory)
    for path in study.glob("visits/*/*/*/visit.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        record["device_facts"] = device
        path.write_text(json.dumps(record), encoding="utf-8")
    (run,) = study.glob(f"visits/xfs-*/{DATASET.id}/*/runs/*")
    torn = [_sought(n, Profile.SUBSET_512, PointOutcome.FILE_SYSTEM_LOST) for n in range(12)]
    whole = [_sought(n, Profile.SUBSET_4K, PointOutcome.OK) for n in range(12, 24)]
    write_points(run / POINTS_FILE, [*points_of({}), *torn, *whole, *controls()])
    codec.write(run / RECORDING_FILE, replace(RECORDING, sought=24, waiting={"directory block": 1}))
    return study


def _sought(number: int, profile: Profile, outcome: PointOutcome) -> PointRecord:
    made = point(POINTS + number, outcome, profile)
    return replace(made, point=replace(made.point, placement=Placement.SOUGHT))
