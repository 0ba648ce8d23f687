"""Runs of the microbenchmark on LMDB as a visit leaves them, made of the driver's own documents; and a study of them, with its figures.

The documents are slices of `tests/golden/microbenchmark/every-test.json`, which the driver wrote; a slower cell has longer
times. Device counters grow by what each test moved, times `RawTests.device_share`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from tests.support.studies.made_once import made_once
from tests.support.studies.planted_reasons import planted
from tests.support.studies.synthetic_study import MACHINE, START_WALL_S, facts_of
from tests.support.studies.written import write

from bedplate.figures.run import make_figures
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
from bedplate.model.codec import dumps
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import ScheduledVisit
from bedplate.model.visit import (
    FORMAT_VERSION,
    Durability,
    Outcome,
    Phase,
    PhaseCounters,
    RunRecord,
    Sample,
    TimedItem,
    Timing,
    VisitKey,
    VisitRecord,
)
from bedplate.study.records import StudySchedule
from bedplate.workloads.microbenchmark.model import DOCUMENTS, TESTS, WORKLOAD, is_fill, tests_of
from bedplate.workloads.microbenchmark.plan import BENCH_TESTS, runs_of_tests

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "microbenchmark" / "every-test.json").read_text())
DATASET = Dataset(WORKLOAD, Levels(entries=3000, value_bytes=100))
MONOTONIC = 7000.0
PREPARATION_S = 0.01
CELLS = tuple(
    Cell(
        DeviceLevels(),
        KernelLevels(),
        FilesystemLevels(kind),
        BuildLevels.unbuilt("lmdb"),
        ClusterLevels(settings=Levels(writemap=writemap)),
    )
    for kind in ("ext4", "btrfs")
    for writemap in (False, True)
)
PROMISE = Durability(
    "durable", "durable", "declared", planted("by-test"), Durability("unsafe", "bounded loss", "declared")
)


@dataclass(frozen=True)
class RawTests:
    """One run; `slower` stretches its times, `documents` replaces the text of single documents."""

    spec: RunSpec
    cell: Cell = CELLS[0]
    slower: float = 1.0
    device_share: float = 1.0
    outcome: Outcome = Outcome.COMPLETED
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    documents: Mapping[str, str | None] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    kernel_messages: tuple[str, ...] = ()
    repetition: int = 1
    dataset: Dataset = DATASET

    @property
    def tests(self) -> tuple[str, ...]:
        return tuple(test for test in tests_of(self.spec) if test not in self.left_out)


def spec_of(name: str, tests: tuple[str, ...] = BENCH_TESTS) -> RunSpec:
    """The run of that name in a visit of these tests."""
    runs = runs_of_tests(WORKLOAD, tests, ("cold", "warm"), batch=1000, threads=2)
    return next(spec for spec in runs if spec.name == name)


def document(raw: RawTests, test: str) -> dict[str, Any]:
    """What the driver says of one test alone."""
    (one,) = (one for one in GOLDEN["tests"] if one["test"] == test)
    one = {**one, "elapsed_ns": round(one["elapsed_ns"] * raw.slower)}
    options = {**GOLDEN["options"], "tests": [test], "existing": not is_fill(test)}
    return {**GOLDEN, "tests": [one], "options": options}


def samples(raw: RawTests, test: str, at_s: float, moved: float) -> tuple[Sample, Sample]:
    """The counters at both ends of a test, `moved` sectors having been read before."""
    one = document(raw, test)["tests"][0]
    end_s = at_s + PREPARATION_S + one["elapsed_ns"] / 1e9
    reads = 0.0 if is_fill(test) else raw.device_share * one["bytes"] / 512
    return _sample(at_s, test, moved), _sample(end_s, test, moved + reads)


def _sample(at_s: float, phase: str, sectors: float) -> Sample:
    values = {
        "device.read_sectors": sectors,
        "device.written_sectors": 8 * at_s,
        "device.flushes": 100 * at_s,
        "device.reads": sectors / 8,
        "device.writes": at_s,
        "device.io_ticks_ms": 100 * at_s,
        "device.time_in_queue_ms": 100 * at_s,
        "server.cpu_s": 0.9 * at_s,
        "watching.cpu_s": 0.01 * at_s,
        **{f"cpu.{name}_s": at_s for name in ("user", "idle")},
        **{f"cpu.{name}_s": 0.0 for name in ("system", "iowait", "irq", "steal")},
        "memory.dirty_bytes": 2.0**20,
        "memory.writeback_bytes": 0.0,
    }
    return Sample(MONOTONIC + at_s, START_WALL_S + at_s, phase, values)


def _once_a_second(first: Sample, last: Sample) -> list[Sample]:
    """From the first on, as if all that was counted had come evenly."""
    length_s = last.monotonic_s - first.monotonic_s
    return [
        Sample(
            first.monotonic_s + second,
            first.wall_s + second,
            first.phase,
            {
                name: value + (last.values[name] - value) * second / length_s
                for name, value in first.values.items()
            },
        )
        for second in range(max(1, int(length_s + 0.999)))
    ]


def write_raw_tests(visit: Path, raw: RawTests, *, number: int = 1) -> Path:
    """One run below the directory of a visit; its own directory."""
    run = visit / "runs" / f"{number:02d}-{raw.spec.id}"
    (run / DOCUMENTS).mkdir(parents=True)
    counters, phases, items, at_s, moved = [], [], [], 0.0, 0.0
    for test in raw.tests:
        before, after = samples(raw, test, at_s, moved)
        counters.append(PhaseCounters(test, before, after))
        ends = (before.monotonic_s, after.monotonic_s, before.wall_s, after.wall_s)
        phases.append(Phase(test, *ends))
        one = document(raw, test)["tests"][0]
        items.append(TimedItem(TESTS, test, one["elapsed_ns"] / 1e9, facts={"operations": one["operations"]}))
        at_s, moved = after.monotonic_s - MONOTONIC + 0.5, after.values["device.read_sectors"]
        text = raw.documents.get(test, json.dumps(document(raw, test)))
        if text is not None:
            (run / DOCUMENTS / f"{test}.json").write_text(text)
    cold = raw.spec.levels.text("pass") == "cold"
    facts: dict[str, Scalar] = {
        "cpu_count": 2,
        "memory_bytes": 2**31,
        **({"made_cold": True} if cold else {}),
    }
    if raw.left_out:
        facts["left_out"] = ",".join(raw.left_out)
    record = RunRecord(
        spec=raw.spec,
        outcome=raw.outcome,
        reasons=() if raw.outcome is Outcome.COMPLETED else planted("fillseq: MDB_MAP_FULL: no room"),
        phases=tuple(phases),
        before=counters[0].before if counters else None,
        after=counters[-1].after if counters else None,
        facts={**facts, **raw.facts},
        phase_counters=tuple(counters),
        items=tuple(items),
    )
    write(run / "record.json", record)
    with (run / "course.jsonl").open("w") as course:
        for counter in counters:
            for sample in (*_once_a_second(counter.before, counter.after), counter.after):
                course.write(dumps(sample, indent=None) + "\n")
    return run


def write_visit(directory: Path, raws: tuple[RawTests, ...], *, order: int = 0) -> Path:
    """A visit of these runs, raw; its directory."""
    (directory / "logs").mkdir(parents=True)
    first = raws[0]
    runs = [write_raw_tests(directory, raw, number=number) for number, raw in enumerate(raws, start=1)]
    write(
        directory / "visit.json",
        VisitRecord(
            format_version=FORMAT_VERSION,
            key=VisitKey(first.cell.id, first.dataset.id, first.repetition, 1),
            cell=first.cell,
            dataset=first.dataset,
            outcome=Outcome.COMPLETED,
            reasons=(),
            failed_step=None,
            started_wall_s=START_WALL_S + 100 * order,
            seconds=90,
            boot_id="b",
            executor="local",
            effective_digest=digest({"cell": first.cell.id}),
            durability=PROMISE,
            timings=(Timing("mkfs", 0.5),),
            kernel_messages=first.kernel_messages,
            runs=tuple(run.name for run in runs),
            provenance={"protocol": "lmdb 1", "build": "lmdb", "tools": "liblmdb 0.9.24"},
        ),
    )
    return directory


@made_once
def synthetic_microbenchmark(
    directory: Path,
    *,
    repetitions: int = 3,
    cells: tuple[Cell, ...] = CELLS,
    datasets: tuple[Dataset, ...] = (DATASET,),
) -> Path:
    """A study of some cells with every run and all figures; each cell is half as fast as the one before.

    Its runs are of the type that the datasets are of.
    """
    (workload,) = {dataset.workload for dataset in datasets}
    specs = runs_of_tests(workload, BENCH_TESTS, ("cold", "warm"), batch=1000, threads=2)
    visits = tuple(
        ScheduledVisit(number, cell.id, dataset.id, repetition)
        for number, (repetition, cell, dataset) in enumerate(
            product(range(1, repetitions + 1), cells, datasets)
        )
    )
    directory.mkdir(parents=True)
    write(directory / "study.json", facts_of("LMDB on two file systems"))
    write(directory / "machine.json", MACHINE)
    (directory / "plan.toml").write_text(f'title = "LMDB"\nrepetitions = {repetitions}\n')
    schedule = StudySchedule(
        format_version=FORMAT_VERSION,
        seed=1,
        repetitions=repetitions,
        cells={cell.id: cell for cell in cells},
        datasets={dataset.id: dataset for dataset in datasets},
        runs={dataset.id: specs for dataset in datasets},
        pruned=(),
        visits=visits,
    )
    write(directory / "schedule.json", schedule)
    for visit in visits:
        place = next(i for i, cell in enumerate(cells) if cell.id == visit.cell_id)
        raw = RawTests(
            specs[0],
            cells[place],
            2.0**place * (1 + visit.repetition / 100),
            repetition=visit.repetition,
            dataset=next(dataset for dataset in datasets if dataset.id == visit.dataset_id),
        )
        folder = directory / "visits" / visit.cell_id / visit.dataset_id / f"{visit.repetition}.1"
        write_visit(folder, tuple(replace(raw, spec=spec) for spec in specs), order=visit.index)
        for run in sorted((folder / "runs").iterdir()):
            make_figures(folder, run)
    return directory
