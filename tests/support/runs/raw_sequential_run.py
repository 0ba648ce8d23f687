"""Raw runs of bonnie++, fio and pg_test_fsync as a visit leaves them, and a study of such visits.

The tools' outputs are real ones, of tests/golden; clocks and counters are made up.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.studies.planted_reasons import planted
from tests.support.studies.synthetic_study import (
    MACHINE,
    START_WALL_S,
    comparisons_of,
    durability_of,
    facts_of,
)

from bedplate.figures.run import make_figures
from bedplate.model import codec
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
from bedplate.model.figure import RunFigures
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import ScheduledVisit
from bedplate.model.visit import (
    FORMAT_VERSION,
    Outcome,
    Phase,
    PhaseCounters,
    RunRecord,
    Sample,
    Timing,
    VisitKey,
    VisitRecord,
)
from bedplate.study.records import StudySchedule
from bedplate.units import GIB, MIB
from bedplate.workloads.bonnie.figures import STAGES
from bedplate.workloads.fio.model import FIO_JOB, FIO_LAY_OUT, PG_TEST_FSYNC

GOLDEN = Path(__file__).parents[2] / "golden"
WALL, MONOTONIC = 1_762_132_851.75, 5000.0
BETWEEN_S = 0.05
# Growth a second of every counter; the gauges are constant.
GROWTH: Mapping[str, float] = {
    "device.reads": 100.0,
    "device.read_sectors": 2048.0 * 1024,
    "device.writes": 90.0,
    "device.written_sectors": 2048.0 * 512,
    "device.flushes": 4.0,
    "device.io_ticks_ms": 500.0,
    "device.time_in_queue_ms": 2000.0,
    "cpu.user_s": 0.4,
    "cpu.system_s": 0.15,
    "cpu.idle_s": 7.0,
    "cpu.iowait_s": 0.1,
    "cpu.steal_s": 0.0,
    "cpu.irq_s": 0.0,
    "server.cpu_s": 0.5,
    "watching.cpu_s": 0.01,
    "pressure.io.some.total_us": 250_000.0,
}
_GAUGES = {"memory.dirty_bytes": 30.0 * MIB, "memory.writeback_bytes": 2.0 * MIB}

BONNIE = RunSpec(
    "bonnie",
    "bonnie",
    Levels(direct=False, chunk_bytes=8192, per_character_bytes=3 * MIB, files=65536),
)
RANDREAD = RunSpec("random-read-8k", "fio", Levels(rw="randread", bs="8 kB", size="256 MB", direct=False))
WAL = RunSpec("wal-append", "fio", Levels(rw="write", bs="8 kB", size="16 MB", fdatasync=1))
TEST_FSYNC = RunSpec(PG_TEST_FSYNC, "fio", Levels(tool=PG_TEST_FSYNC, seconds=2))


def cell_of(filesystem: str) -> Cell:
    """A cell of no engine."""
    return Cell(
        DeviceLevels(memory_bytes=256 * MIB),
        KernelLevels(),
        FilesystemLevels(filesystem),
        BuildLevels.unbuilt("none"),
        ClusterLevels(),
    )


@dataclass(frozen=True)
class RawSequential:
    """One raw run: its output is `golden`, names below tests/golden by the names of the log.

    `seconds` are those of its phases by name, in order. `growth` and `facts` replace or, where None, take away.
    """

    spec: RunSpec = BONNIE
    golden: Mapping[str, str] = field(default_factory=lambda: {"bonnie.out": "bonnie/limited.csv"})
    seconds: Mapping[str, float] = field(
        default_factory=lambda: {**dict.fromkeys(STAGES, 2.0), "sync": 0.5},
    )
    facts: Mapping[str, Scalar] = field(
        default_factory=lambda: {
            "file_bytes": GIB,
            "memory_bytes": 256 * MIB,
            "seeks": 30000,
            "tool_cpu_s": 9.0,
        }
    )
    growth: Mapping[str, float | None] = field(default_factory=dict)
    outcome: Outcome = Outcome.COMPLETED
    canary: bool = False
    filesystem: str = "ext4"
    repetition: int = 1

    @property
    def dataset(self) -> Dataset:
        """bonnie++ has its file, fio nothing."""
        return Dataset(self.spec.workload, Levels(file_bytes=GIB) if self.spec is BONNIE else Levels())

    def figures(self, directory: Path) -> RunFigures:
        """Write the visit, make its figures."""
        self.write(directory)
        return make_figures(directory, directory / "runs" / f"01-{self.spec.id}")

    def write(self, directory: Path, number: int = 1) -> None:
        """The visit and this run of it, the first by default."""
        run = directory / "runs" / f"{number:02d}-{self.spec.id}"
        (run / "logs").mkdir(parents=True)
        codec.write(directory / "visit.json", self.visit())
        codec.write(run / "record.json", self.record())
        ends = [self._sample(second, "any") for second in range(int(sum(self.seconds.values())) + 2)]
        (run / "course.jsonl").write_text("".join(codec.dumps(end, indent=None) + "\n" for end in ends))
        for name, golden in self.golden.items():
            shutil.copy(GOLDEN / golden, run / "logs" / name)
            (run / "logs" / name).with_suffix(".err").touch()

    def visit(self, runs: tuple[RunSpec, ...] = ()) -> VisitRecord:
        """The record of the visit."""
        cell = cell_of(self.filesystem)
        return VisitRecord(
            format_version=FORMAT_VERSION,
            key=VisitKey(cell.id, self.dataset.id, self.repetition, 1, self.canary),
            cell=cell,
            dataset=self.dataset,
            outcome=Outcome.COMPLETED,
            reasons=(),
            failed_step=None,
            started_wall_s=START_WALL_S,
            seconds=60.0,
            boot_id=MACHINE.boot_id,
            executor="local",
            comparisons=comparisons_of(cell),
            effective_digest=digest({"cell": cell.id}),
            durability=durability_of(cell),
            device_facts=Levels(kind="image file on a loop device", size_bytes=4 * GIB),
            timings=(Timing("mkfs", 0.4),),
            provenance={"protocol": f"{self.spec.workload} 1"},
            runs=tuple(f"{number:02d}-{spec.id}" for number, spec in enumerate(runs or (self.spec,), 1)),
        )

    def record(self) -> RunRecord:
        """The record of the run."""
        counters = tuple(
            PhaseCounters(
                phase.name,
                self._sample(phase.start_monotonic_s - MONOTONIC, phase.name),
                self._sample(phase.end_monotonic_s - MONOTONIC, phase.name),
            )
            for phase in self._phases()
        )
        return RunRecord(
            spec=self.spec,
            outcome=self.outcome,
            reasons=() if self.outcome is Outcome.COMPLETED else planted("bonnie++ ended with status 1: no"),
            phases=self._phases(),
            before=counters[0].before if counters else None,
            after=counters[-1].after if counters else None,
            facts=self.facts,
            phase_counters=counters,
        )

    def _phases(self) -> tuple[Phase, ...]:
        found, at_s = [], 0.0
        for name, seconds in self.seconds.items():
            end_s = at_s + seconds
            found.append(Phase(name, MONOTONIC + at_s, MONOTONIC + end_s, WALL + at_s, WALL + end_s))
            at_s = end_s + BETWEEN_S
        return tuple(found)

    def _sample(self, at_s: float, phase: str) -> Sample:
        growth = {name: each for name, each in {**GROWTH, **self.growth}.items() if each is not None}
        values = {name: each * (at_s + 100) for name, each in growth.items()} | _GAUGES
        return Sample(MONOTONIC + at_s, WALL + at_s, phase, values)


def fio_run(
    spec: RunSpec, golden: str, *, lays_out: bool = False, job_s: float = 4.0, **changes: object
) -> RawSequential:
    """A run of fio whose JSON is `golden`."""
    seconds = {**({FIO_LAY_OUT: 1.0} if lays_out else {}), FIO_JOB: job_s, "sync": 0.25}
    facts: dict[str, Scalar] = {"memory_bytes": 256 * MIB, "tool_cpu_s": 1.5, "file_bytes": 256 * MIB}
    return RawSequential(
        spec=spec,
        golden={"fio.out": golden},
        seconds=seconds,
        facts=facts,
        **changes,  # type: ignore[arg-type]
    )


def sequential_study(directory: Path, repetitions: int = 2) -> Path:
    """A study of bonnie++ and fio on two file systems, with figures made of it; the directory."""
    directory.mkdir(parents=True)
    kinds = ("ext4", "xfs")
    visits: list[ScheduledVisit] = []
    runs: dict[str, tuple[RunSpec, ...]] = {}
    datasets: dict[str, Dataset] = {}
    for repetition in range(1, repetitions + 1):
        for kind in kinds:
            for loads in (_bonnie_runs(kind, repetition), _fio_runs(kind, repetition)):
                dataset = loads[0].dataset
                datasets[dataset.id] = dataset
                runs[dataset.id] = tuple(run.spec for run in loads)
                visits.append(ScheduledVisit(len(visits), cell_of(kind).id, dataset.id, repetition))
                place = directory / "visits" / cell_of(kind).id / dataset.id / f"{repetition}.1"
                for number, run in enumerate(loads, start=1):
                    run.write(place, number)
                codec.write(place / "visit.json", loads[0].visit(runs[dataset.id]))
                for folder in sorted((place / "runs").iterdir()):
                    make_figures(place, folder)
    codec.write(directory / "study.json", facts_of("Files on two file systems"))
    codec.write(directory / "machine.json", MACHINE)
    (directory / "plan.toml").write_text('title = "Files on two file systems"\n', encoding="utf-8")
    schedule = StudySchedule(
        format_version=FORMAT_VERSION,
        seed=7,
        repetitions=repetitions,
        cells={cell_of(kind).id: cell_of(kind) for kind in kinds},
        datasets=datasets,
        runs=runs,
        pruned=(),
        visits=tuple(visits),
    )
    codec.write(directory / "schedule.json", schedule)
    return directory


def _bonnie_runs(kind: str, repetition: int) -> tuple[RawSequential, ...]:
    cpu = {"server.cpu_s": 0.5 if kind == "ext4" else 0.2}
    return (RawSequential(filesystem=kind, repetition=repetition, growth=cpu),)


def _fio_runs(kind: str, repetition: int) -> tuple[RawSequential, ...]:
    jobs = (
        fio_run(RANDREAD, "fio/randread.json", lays_out=True),
        fio_run(WAL, "fio/ready-wal-append.json"),
    )
    return (
        *(replace(job, filesystem=kind, repetition=repetition) for job in jobs),
        RawSequential(
            spec=TEST_FSYNC,
            golden={f"{PG_TEST_FSYNC}.out": "pg_test_fsync/pg18-ext4.txt"},
            seconds={FIO_JOB: 32.0, "sync": 0.1},
            facts={"memory_bytes": 256 * MIB, "tool_cpu_s": 0.5},
            filesystem=kind,
            repetition=repetition,
        ),
    )
