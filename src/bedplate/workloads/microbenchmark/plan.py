"""`type = "microbenchmark"` in a plan: fills and overwrites first, then reads of what the last of them left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, model_validator

from bedplate import registry
from bedplate.errors import PlanError
from bedplate.model.cell import Cell, Dataset, RunSpec, engine_model
from bedplate.model.engines import LMDB
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import EngineSetup, Load, Plan, PlannedWorkload
from bedplate.plan import values
from bedplate.plan.estimate import WorkloadEstimate
from bedplate.plan.fields import Count, Duration, Factor, Passes, within
from bedplate.plan.table import WorkloadTable
from bedplate.plan.words import joined
from bedplate.units import GIB, MIB, TIB
from bedplate.workloads.microbenchmark.model import (
    MODEL,
    READ,
    TPCB,
    WORKLOAD,
    WRITE,
    demands_waiting,
    has_several_connections,
    is_synchronous,
    tests_of,
)

if TYPE_CHECKING:
    from bedplate.plan.differences import PlanWarnings

# In the published order; those of 100 kB values are a set of their own.
_SMALL_WRITES = (
    "fillrandsync",
    "fillrandom",
    "fillrandbatch",
    "fillseqsync",
    "fillseq",
    "fillseqbatch",
    "overwrite",
)

_SMALL_READS = ("readrandom", "readseq", "readreverse", "readwhilewriting")
_LARGE_WRITES = ("fillrand100K", "fillseq100K")
_LARGE_READS = ("readrand100K", "readseq100K")

# As published; what only some engines have is asked for by its name.
BENCH_TESTS = (*_SMALL_WRITES, *_SMALL_READS, *_LARGE_WRITES, *_LARGE_READS)

_ALL_TESTS = (*BENCH_TESTS, TPCB)

# The writer of readwhilewriting fills the cache as it goes: it has no cold pass.
_WARM_ONLY = frozenset({"readwhilewriting"})

_SETS = (("", _SMALL_WRITES, _SMALL_READS), ("-100K", _LARGE_WRITES, _LARGE_READS))

# Those that have a driver for it.
TESTED_ENGINES = registry.engines_with(WORKLOAD)

Entries: TypeAlias = Annotated[int, within(values.whole_number, 1000, 10**12)]

# LMDB itself refuses a value of 4 GiB, in its own words.
MapSize: TypeAlias = Annotated[int, within(values.size, MIB, 64 * TIB)]

Tests: TypeAlias = Annotated[tuple[str, ...], within(values.some_of, _ALL_TESTS)]


class MicrobenchmarkTable(WorkloadTable):
    """`[[workload]]` of type microbenchmark, or lmdb, which is what it was called on LMDB alone."""

    type: Literal["microbenchmark", "lmdb"] = Field(description="microbenchmark")
    engine: Factor[Annotated[str, within(values.one_of, TESTED_ENGINES)]] = (LMDB,)
    """build | `lmdb`, `sqlite`: set up as in `[lmdb]` and `[sqlite]` | `"lmdb"` | `{ vary = ["lmdb", "sqlite"] }`"""
    entries: Factor[Entries] = (1_000_000,)
    """load | 1000 or more; the synchronous tests and those of 100 kB values do a thousandth of it | `1000000` | `100000`"""
    value_size: Factor[Annotated[int, within(values.size, 1, 8 * GIB)]] = (100,)
    """load | size of a value, half of it compressible | `"100 B"` | `{ vary = ["100 B", "1 kB"] }`"""
    batch: Count = 1000
    """measure | entries of one transaction in the batch tests | `1000` | `100`"""
    tests: Tests = BENCH_TESTS
    """measure | a list of `fillrandsync`, `fillrandom`, `fillrandbatch`, `fillseqsync`, `fillseq`, `fillseqbatch`, `overwrite`,
    `readrandom`, `readseq`, `readreverse`, `readwhilewriting`, `fillrand100K`, `fillseq100K`, `readrand100K`, `readseq100K`; and,
    only of SQLite, `tpcb` | all but `tpcb` | `["fillseq", "readseq"]`"""
    reads: Passes = ("cold", "warm")
    """measure | the passes of the reading tests, in order: before each test of a `cold` one the file system is mounted again |
    `["cold", "warm"]` | `["warm"]`"""
    threads: Count = 4
    """measure | readers of `readwhilewriting` | `4` | `2`"""
    processes: Factor[Count] = (4,)
    """measure | processes of `tpcb`, each with its own connection; a run for each level | `4` | `{ vary = [1, 4, 16] }`"""
    duration: Duration = 10.0
    """measure | how long `tpcb` runs, 1 s or more | `"10 s"` | `"60 s"`"""
    map_size: Factor[MapSize] = ()
    """load | only of LMDB: size of the map, in whole pages; what does not fit ends the test with the library's own words | 3.2 times the keys and
    values, and 16 MiB (with `readwhilewriting`, whose readers keep old pages, 1 GiB) | `{ vary = ["1 GB", "4 GB"] }`"""

    @model_validator(mode="after")
    def _fits_together(self) -> MicrobenchmarkTable:
        reasons = [*misfits(self.tests, self.reads), *_not_had(self.tests, self.engine)]
        if self.map_size and self.engine != (LMDB,):
            reasons.append('map_size is LMDB\'s alone; leave it out, or write engine = "lmdb"')
        if self.type != WORKLOAD and self.engine != (LMDB,):
            reasons.append(f'type = "{self.type}" runs on LMDB alone; write type = "{WORKLOAD}"')
        if reasons:
            raise ValueError(joined(reasons))
        return self

    dataset_key: ClassVar[str] = ".entries"

    def run_count(self) -> int:
        """At the most: what writes, and each pass of reads, of values of either size; and each number of processes."""
        return 2 * (1 + len(self.reads)) + len(self.processes)

    def engines(self) -> tuple[str, ...]:
        """Those that are asked."""
        return self.engine

    def suited(self, setups: Sequence[EngineSetup]) -> MicrobenchmarkTable:
        """As it is; PlanError for tests of several connections where a setting of the engine lets one in."""
        several = [test for test in self.tests if has_several_connections(test)]
        own = [
            (engine_model(setup.engine), setup.clusters) for setup in setups if setup.engine in self.engine
        ]
        alone = dict.fromkeys(
            f"{model.label}'s {found}"
            for model, clusters in own
            for cluster in clusters
            if (found := model.lets_one_in(cluster.settings))
        )
        if several and alone:
            raise PlanError(
                f"workload.tests: {' and '.join(several)} need several connections at once, and {' and '.join(alone)} lets one in; "
                "name tests without them, or leave that setting out"
            )
        return self

    def planned(self, seed: int, defaults: int) -> PlannedWorkload:  # noqa: ARG002 -- its defaults have one version
        """What writes first, tpcb last: its tables are its own."""
        specs = (
            *runs_of_tests(self.type, self.tests, self.reads, batch=self.batch, threads=self.threads),
            *self._runs_of_transfers(),
        )
        # A study of the former name goes on: its digest says nothing of engines.
        engines = self.engine if self.type == WORKLOAD else ()
        return PlannedWorkload(self.type, (), specs, self.datasets(), engines=engines)

    def _runs_of_transfers(self) -> Iterator[RunSpec]:
        for processes in self.processes if TPCB in self.tests else ():
            name = f"{TPCB}-processes-{processes}" if len(self.processes) > 1 else TPCB
            levels = Levels(kind=WRITE, tests=TPCB, processes=processes, duration_s=self.duration)
            yield RunSpec(name, self.type, levels)

    def dataset_factors(self) -> Mapping[str, tuple[Scalar, ...]]:
        """Entries, sizes of values and of maps."""
        factors: dict[str, tuple[Scalar, ...]] = {"entries": self.entries, "value_bytes": self.value_size}
        return {**factors, "map_bytes": self.map_size} if self.map_size else factors


def misfits(tests: Sequence[str], reads: Sequence[str]) -> list[str]:
    """What cannot be done: reads of what nothing fills, passes that nothing reads in."""
    reasons = []
    for _, writes, reading in _SETS:
        wanted = [name for name in reading if name in tests]
        if wanted and not any(name in tests for name in writes if name.startswith("fill")):
            reasons.append(
                f"{', '.join(wanted)} read what a fill leaves, and no fill of their size is asked for"
            )
        if wanted and not reads:
            reasons.append(f'{", ".join(wanted)} need a pass: reads = ["cold", "warm"]')
    if "overwrite" in tests and not any(name in tests for name in _SMALL_WRITES[:-1]):
        reasons.append("overwrite needs a fill before it")
    return list(dict.fromkeys(reasons))


def _not_had(tests: Sequence[str], engines: Sequence[str]) -> Iterator[str]:
    for engine in engines:
        model = engine_model(engine)
        lacking = [test for test in tests if test not in (*BENCH_TESTS, *model.more_tests)]
        if lacking:
            yield f"{', '.join(lacking)}: {model.label} does not have it; take it out, or leave {engine} out of engine"


def runs_of_tests(
    workload: str, tests: Sequence[str], reads: Sequence[str], *, batch: int, threads: int
) -> tuple[RunSpec, ...]:
    """One run for what writes, and one for each pass of reads; the 100 kB values after the small ones."""
    common: dict[str, Scalar] = {"batch": batch, "threads": threads}
    found = []
    for suffix, writes, reading in _SETS:
        writing = [name for name in writes if name in tests]
        if writing:
            levels = Levels({**common, "kind": WRITE, "tests": ",".join(writing)})
            found.append(RunSpec(f"write{suffix}", workload, levels))
        for number, kind in enumerate(reads, start=1):
            named = [
                name for name in reading if name in tests and not (kind == "cold" and name in _WARM_ONLY)
            ]
            if not named:
                continue
            again = sum(other == kind for other in reads[:number])
            name = f"read-{kind}{suffix}" + (f"-{again}" if again > 1 else "")
            levels = Levels(
                {**common, "kind": "read", "pass": kind, "pass_number": number, "tests": ",".join(named)}
            )
            found.append(RunSpec(name, workload, levels))
    return tuple(found)


PLAN = MicrobenchmarkTable

# What a local NVMe disk does through a file system, and one fsync on it.
_BYTES_PER_S = 400e6

_FSYNC_S = 0.002
_OPERATIONS_PER_S = 300_000.0
_KEY_BYTES = 16
_LARGE_VALUE_BYTES = 100_000

# The driver's map: 3.2 times the keys and values of its largest test, and 16 MiB.
_MAP_SHARE = 3.2

_MAP_BYTES = 16 * MIB


class MicrobenchmarkEstimate(WorkloadEstimate):
    """By the flushes of commits that wait for them, and by what is moved."""

    def run_seconds(self, cell: Cell, load: Load, run: RunSpec, *, emulated: bool) -> float:  # noqa: ARG002 -- the disk's
        """All tests of a run."""
        entries = load.dataset.levels.integer("entries") or 0
        names = tests_of(run)
        # What has a time of its own takes that long, beside filling its tables.
        asked_s = run.levels.number("duration_s") or 0.0
        moved = _map_bytes(load, run) / _MAP_SHARE * len(names)
        return (
            asked_s
            + sum(_flushes(cell, load, run, name) for name in names) * _FSYNC_S
            + len(names) * entries / _OPERATIONS_PER_S
            + moved / _BYTES_PER_S
        )

    def dataset_bytes(self, cell: Cell, load: Load) -> float:  # noqa: ARG002 -- of others' role
        """The map of LMDB, as it is asked for or as the driver makes it; with a copy beside it, as room for any other engine."""
        asked = load.dataset.levels.integer("map_bytes")
        return asked or max((_map_bytes(load, run) for run in load.runs), default=0)


def _flushes(cell: Cell, load: Load, run: RunSpec, test: str) -> float:
    """How many of a test's commits wait for the device: of every fill and overwrite, where the engine's settings say so."""
    entries = load.dataset.levels.integer("entries") or 0
    model, settings = engine_model(cell.build.engine), cell.cluster.settings
    # The writer of readwhilewriting writes no longer than its readers read.
    if (
        not MODEL.fills(run)
        or test == TPCB
        or not model.waits_in_test(settings, synchronous=is_synchronous(test))
    ):
        return 0.0
    if test.endswith("batch"):
        return entries / (run.levels.integer("batch") or 1)
    return entries / 1000 if is_synchronous(test) or test.endswith("100K") else float(entries)


def _map_bytes(load: Load, run: RunSpec) -> int:
    entries = load.dataset.levels.integer("entries") or 0
    value_bytes = load.dataset.levels.integer("value_bytes") or 0
    if "100K" in str(run.levels.get("tests", "")):
        entries, value_bytes = entries // 1000, _LARGE_VALUE_BYTES
    return int(_MAP_SHARE * entries * (_KEY_BYTES + value_bytes)) + _MAP_BYTES


ESTIMATE = MicrobenchmarkEstimate()

CANARY = Load(
    Dataset(WORKLOAD, Levels(entries=200_000, value_bytes=100)),
    (RunSpec("canary", WORKLOAD, Levels(kind="write", tests="fillrandsync,fillseq", batch=1000, threads=1)),),
)


def of_plan(plan: Plan) -> Iterator[str]:
    """Sentences: a synchronous fill writes a thousandth of the entries, and the reads behind it find no others."""
    for workload in plan.workloads:
        yield from _of_runs(workload)


def _of_runs(workload: PlannedWorkload) -> Iterator[str]:
    last = ""
    for run in workload.runs:
        tests, kind = tests_of(run), run.levels.text("kind")
        if kind == WRITE:
            last = tests[-1]
        elif kind == READ and demands_waiting(last):
            yield (
                f"run {run.name}: {', '.join(tests)} read what {last} left, which is a thousandth of the entries; "
                "ask for a test behind it that writes them all (fillseq, fillseqbatch, overwrite), or leave it out"
            )


WARNINGS: PlanWarnings = of_plan
