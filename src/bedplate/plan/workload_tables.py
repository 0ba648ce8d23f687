"""The schema of `[[workload]]`: one class per type of workload; a new one is one more class and entry."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from bedplate.model.engines import CUT_ENGINES, POSTGRESQL
from bedplate.model.power_cut import (
    DEFAULT_PROFILES,
    DURATION_S,
    IMAGE_BYTES,
    JOURNAL_KEPT,
    JOURNAL_LOST,
    KEEP_SMALL,
    POINTS_DEFAULT,
    SOUGHT_POINTS,
    Profile,
)
from bedplate.plan.fields import (
    CacheBytes,
    ChosenCells,
    ChunkSize,
    Count,
    CutEngine,
    CutImage,
    CutPoints,
    CutProfiles,
    Duration,
    Factor,
    FileCount,
    FileSize,
    FioJobs,
    Flag,
    KeptLogs,
    LmdbEntries,
    LmdbMap,
    LmdbTests,
    LmdbValue,
    Passes,
    PerCharacter,
    Protocol,
    QueryParameters,
    RamJournal,
    Rate,
    RunName,
    ScaleFactor,
    ScaleLevel,
    ScriptLevel,
    Seed,
    SoughtPoints,
    Streams,
    WarmUp,
)
from bedplate.plan.lmdb_runs import LMDB_TESTS, lmdb_misfits
from bedplate.plan.power_cut_runs import KEPT_LOGS, PROFILES
from bedplate.plan.table import Table, at_least_one
from bedplate.plan.values import UNTIL_STEADY
from bedplate.plan.words import joined
from bedplate.units import MIB


class RunTable(Table):
    """`[[workload.run]]`: one run, or several where a key varies."""

    name: RunName | None = Field(default=None, description="name of the run")
    script: Factor[ScriptLevel] = Field(description="read-only, read-write, simple-update, or an own script")
    clients: Factor[Count] = Field(default=(1,), description="sessions at once")
    jobs: Factor[Count] = Field(default=(), description="threads of pgbench")
    warmup: Factor[WarmUp] = Field(default=(30.0,), description=f'a time, or "{UNTIL_STEADY}"')
    warmup_limit: Duration | None = Field(default=None, description=f'longest warm-up with "{UNTIL_STEADY}"')
    duration: Factor[Duration] = Field(description='time that is measured, such as "5 min"')
    rate: Factor[Rate] = Field(default=(None,), description="transactions offered a second")
    protocol: Factor[Protocol] = Field(default=("prepared",), description="query protocol")

    @model_validator(mode="after")
    def _fits_together(self) -> RunTable:
        reasons = []
        if self.warmup_limit is not None and UNTIL_STEADY not in self.warmup:
            reasons.append(f'warmup_limit is for warmup = "{UNTIL_STEADY}" only')
        if self.jobs and max(self.jobs) > min(self.clients):
            reasons.append(
                f"jobs = {max(self.jobs)} with clients = {min(self.clients)}: pgbench starts no more threads "
                "than clients"
            )
        if reasons:
            raise ValueError(joined(reasons))
        return self


class PgbenchTable(Table):
    """`[[workload]]` of type pgbench: a dataset, and the runs on it."""

    type: Literal["pgbench"] = Field(description="pgbench")
    scale: Factor[ScaleLevel] = Field(description='pgbench scale, or "4x memory"')
    run: Annotated[tuple[RunTable, ...], AfterValidator(at_least_one)] = Field(
        description="one or more [[workload.run]] tables"
    )


class TpchTable(Table):
    """`[[workload]]` of type tpch: its load, passes over the 22 queries, and streams of them at once."""

    type: Literal["tpch"] = Field(description="tpch")
    scale_factor: Factor[ScaleFactor] = Field(description="a number from 0.01 to 10000, such as 1")
    query_timeout: Duration | None = Field(
        default=None, description='longest time of a query, such as "300 s"'
    )
    passes: Passes = Field(default=("cold", "warm"), description='a list of "cold" and "warm"')
    streams: Streams = Field(default=0, description="a whole number from 0 to 100: streams at once")
    parameters: QueryParameters = Field(default="validation", description='"validation" or "drawn"')

    @model_validator(mode="after")
    def _asks_for_something(self) -> TpchTable:
        if not self.passes and not self.streams:
            raise ValueError('there is nothing to run: give passes = ["cold", "warm"], streams = 2, or both')
        return self


class LmdbWorkloadTable(Table):
    """`[[workload]]` of type lmdb: the tests of LMDB's microbenchmark."""

    type: Literal["lmdb"] = Field(description="lmdb")
    entries: Factor[LmdbEntries] = Field(default=(1_000_000,), description="a whole number from 1000")
    value_size: Factor[LmdbValue] = Field(default=(100,), description='size of a value, such as "100 B"')
    batch: Count = Field(default=1000, description="entries of a transaction in the batch tests")
    tests: LmdbTests = Field(default=LMDB_TESTS, description=f"a list of {', '.join(LMDB_TESTS)}")
    reads: Passes = Field(default=("cold", "warm"), description='a list of "cold" and "warm"')
    threads: Count = Field(default=4, description="readers of readwhilewriting")
    map_size: Factor[LmdbMap] = Field(default=(), description='size of the map, such as "4 GB"')

    @model_validator(mode="after")
    def _fits_together(self) -> LmdbWorkloadTable:
        reasons = lmdb_misfits(self.tests, self.reads)
        if reasons:
            raise ValueError(joined(reasons))
        return self


class BonnieTable(Table):
    """`[[workload]]` of type bonnie: bonnie++ on one file and on many."""

    type: Literal["bonnie"] = Field(description="bonnie")
    file_size: Factor[FileSize] = Field(default=("2x memory",), description='a size, or "2x memory"')
    direct: Factor[Flag] = Field(default=(False,), description="true or false: O_DIRECT for the block writes")
    chunk_size: Factor[ChunkSize] = Field(default=(8192,), description="bytes of one read or write")
    per_character: PerCharacter = Field(
        default=3 * MIB, description="bytes of the per-character stages, 0 for none"
    )
    files: FileCount = Field(default=16 * 1024, description="files that are created, a multiple of 1024")


class FioTable(Table):
    """`[[workload]]` of type fio: one run for each job."""

    type: Literal["fio"] = Field(description="fio")
    job: Annotated[tuple[FioJobs, ...], AfterValidator(at_least_one)] = Field(
        description="one or more [[workload.job]] tables"
    )
    pg_test_fsync: Flag = Field(default=False, description="true or false: pg_test_fsync after the jobs")


class PowerCutTable(Table):
    """`[[workload]]` of type power_cut: a short recording, cut at many points."""

    type: Literal["power_cut"] = Field(description="power_cut")
    engine: Factor[CutEngine] = Field(default=(POSTGRESQL,), description=" or ".join(CUT_ENGINES))
    points: CutPoints = Field(
        default=POINTS_DEFAULT, description="a whole number from 1 to 100000: how often the power is cut"
    )
    sought: SoughtPoints = Field(
        default=SOUGHT_POINTS,
        description="a whole number from 0 to 100000: cuts more, where metadata waits that can be torn",
    )
    profiles: CutProfiles = Field(
        default=tuple(profile.value for profile in DEFAULT_PROFILES),
        description=f"a list of {', '.join(PROFILES)}",
    )
    cache_bytes: CacheBytes = Field(
        default=8 * MIB, description='the most that the device\'s cache holds, such as "8 MB"'
    )
    seed: Seed | None = Field(default=None, description="a whole number; the plan's without it")
    duration: Factor[Duration] = Field(
        default=(DURATION_S,), description='time that is recorded, such as "20 s"'
    )
    clients: Factor[Count] = Field(default=(2,), description="sessions at once")
    image_size: Factor[CutImage] = Field(
        default=(IMAGE_BYTES,),
        description='size of the recorded disk, such as "4 GB"; it is sparse, in memory',
    )
    ram_journal: Factor[RamJournal] = Field(
        default=(JOURNAL_LOST,), description=f"{JOURNAL_LOST} or {JOURNAL_KEPT}"
    )
    keep_logs: KeptLogs = Field(
        default=KEEP_SMALL,
        description=f"{', '.join(KEPT_LOGS)}: the log of a run without a bad cut is kept if it packs well, always, or never",
    )
    cells: ChosenCells = Field(
        default=(), description="a list of tables: where it differs from the first cell"
    )

    @model_validator(mode="after")
    def _can_be_judged(self) -> PowerCutTable:
        reasons = []
        if Profile.ORDERED.value not in self.profiles:
            reasons.append(
                f'profiles lack "{Profile.ORDERED.value}": only cuts in order show that a recording is whole, and without them '
                "no verdict is made; add it"
            )
        if self.points < len(self.profiles):
            reasons.append(
                f"points = {self.points} leave some of {len(self.profiles)} profiles without a cut: give "
                f"{len(self.profiles)} or more, or name fewer profiles"
            )
        if reasons:
            raise ValueError(joined(reasons))
        return self


AnyWorkload: TypeAlias = Annotated[
    PgbenchTable | TpchTable | LmdbWorkloadTable | BonnieTable | FioTable | PowerCutTable,
    Field(discriminator="type"),
]
# By the type, and by the type and the tables in it.
WORKLOAD_TABLES: dict[tuple[str, ...], type[Table]] = {
    ("pgbench",): PgbenchTable,
    ("pgbench", "run"): RunTable,
    ("tpch",): TpchTable,
    ("lmdb",): LmdbWorkloadTable,
    ("bonnie",): BonnieTable,
    ("fio",): FioTable,
    ("power_cut",): PowerCutTable,
}
WORKLOAD_TYPES = tuple(dict.fromkeys(names[0] for names in WORKLOAD_TABLES))
