"""`type = "pgbench"` in a plan: its tables, and every combination of the levels of its runs, in order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import ceil
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, Field, PlainValidator, model_validator

from bedplate.engines.postgresql.builds.extensions import extensions_of, lacking_sentence
from bedplate.engines.postgresql.builds.version import major_of
from bedplate.engines.postgresql.checkpoints import needed_duration_s
from bedplate.engines.postgresql.own_data.adopted import database_name
from bedplate.engines.postgresql.pgbench_script import (
    DEFAULT_PROTOCOL,
    PROTOCOLS,
    SYNC_PIPELINE,
    SYNC_PIPELINE_SINCE,
    read_script,
)
from bedplate.errors import PlanError
from bedplate.model.cell import RunSpec
from bedplate.model.engines import POSTGRESQL
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import DEFAULTS_VERSION, DatasetScale, EngineSetup, PlannedWorkload
from bedplate.plan import values
from bedplate.plan.chosen_cells import Departures
from bedplate.plan.fields import ChosenCells, Count, Duration, Factor, ListFactor, RunName, within
from bedplate.plan.table import InnerTables, PlanTable, at_least_one
from bedplate.plan.values import UNTIL_STEADY
from bedplate.plan.words import joined
from bedplate.plan.workload_table import WorkloadTable
from bedplate.workloads.pgbench import script_values
from bedplate.workloads.pgbench.dump import SCRIPTS, Dump, dump
from bedplate.workloads.pgbench.filler import BLANK, FILLERS
from bedplate.workloads.pgbench.own_directory import OwnDirectory, own_directory
from bedplate.workloads.pgbench.script_values import Script
from bedplate.workloads.pgbench.scripts import READ_ONLY, RunScript, levels_of

ScaleLevel: TypeAlias = Annotated[DatasetScale, PlainValidator(values.scale)]
ScriptLevel: TypeAlias = Annotated[Script, PlainValidator(script_values.script)]
ScriptsLevel: TypeAlias = Annotated[tuple[Script, ...], PlainValidator(script_values.scripts)]
Variables: TypeAlias = Annotated[tuple[tuple[str, Scalar], ...], PlainValidator(script_values.variables)]
DumpLevel: TypeAlias = Annotated[Dump, PlainValidator(dump)]
CopyLevel: TypeAlias = Annotated[OwnDirectory, PlainValidator(own_directory)]
DatabaseName: TypeAlias = Annotated[str, PlainValidator(database_name)]
ScriptOfDataset: TypeAlias = Annotated[Script, PlainValidator(script_values.script_of_dataset)]
Filler: TypeAlias = Annotated[str, within(values.one_of, FILLERS)]
WarmUp: TypeAlias = Annotated[float | str, PlainValidator(values.warmup)]
Rate: TypeAlias = Annotated[float | None, PlainValidator(values.rate)]
Protocol: TypeAlias = Annotated[str, within(values.one_of, PROTOCOLS)]

# Threads of pgbench where the plan is silent. A thread for each client since version 2: one that serves two sessions
# makes two speeds of one configuration, as the scheduler places it (docs/method/measuring.md, "Threads of pgbench").
_JOBS_UNTIL_VERSION_2 = 2
WARMUP_LIMIT_S = 600.0
_READING_S = 10.0
_WHOLE_S = 5
# 30 s is the shortest that PostgreSQL takes, and so much WAL that no checkpoint is asked for by its amount.
_CHECKPOINTS: Mapping[str, Scalar] = {
    "checkpoint_timeout": "30s",
    "checkpoint_completion_target": 0.3,
    "max_wal_size": "2GB",
}
_FACTORS = ("clients", "jobs", "warmup", "duration", "rate", "protocol")


class RunTable(PlanTable):
    """`[[workload.run]]`: one run, or several where a key varies."""

    name: RunName | None = Field(default=None, description="name of the run")
    """– | 1 to 60 letters, digits, blanks and `. _ = -` | the script's name | `"at 500 tps"`"""
    script: Factor[ScriptLevel] = Field(
        default=(), description="read-only, read-write, simple-update, or an own script"
    )
    """measure | `read-only`, `read-write`, `simple-update`, or the path of an own pgbench script in or below the plan's directory |
    this or `scripts` | `"read-write"`"""
    scripts: ListFactor[ScriptsLevel] = Field(
        default=(), description='several scripts with weights: ["mine.sql@3", "read-only"]'
    )
    """measure | a list of 2 to 100 of the same, each with `@` and its weight from 1 to 9999 (1 without); a list is one level |
    this or `script` | `["order.sql@9", "stock.sql"]`"""
    variables: Variables = Field(default=(), description="what scripts find set: { warehouses = 100 }")
    """measure | a table of names and numbers, or texts of letters, digits and `. _ + -`: what scripts find set as `:name` |
    none | `{ warehouses = 100 }`"""
    clients: Factor[Count] = Field(default=(1,), description="sessions at once")
    """measure | sessions at once | `1` | `{ vary = [1, 10] }`"""
    jobs: Factor[Count] = Field(default=(), description="threads of pgbench")
    """measure | threads of pgbench, at most `clients` | `clients` (`2` in studies that were begun before this was so) | `4`"""
    warmup: Factor[WarmUp] = Field(default=(30.0,), description=f'a time, or "{UNTIL_STEADY}"')
    """measure | a time from 0, or `"until steady"`; recorded, and left out of every figure | `"30 s"` | `"5 min"`"""
    warmup_limit: Duration | None = Field(default=None, description=f'longest warm-up with "{UNTIL_STEADY}"')
    """measure | the longest that `"until steady"` may take | `"10 min"` | `"20 min"`"""
    duration: Factor[Duration] = Field(default=(), description='time that is measured, such as "5 min"')
    """measure | the time that is measured, 1 s or more | `"10 s"` of `read-only`, else what holds a checkpoint (below) | `"10 min"`"""
    rate: Factor[Rate] = Field(default=(None,), description="transactions offered a second")
    """measure | transactions offered a second, or `"unlimited"` | `"unlimited"` | `500`"""
    protocol: Factor[Protocol] = Field(default=(DEFAULT_PROTOCOL,), description="query protocol")
    """measure | `simple`, `extended`, `prepared` | `"prepared"` | `"simple"`"""

    @model_validator(mode="after")
    def _fits_together(self) -> RunTable:
        reasons = []
        if bool(self.script) == bool(self.scripts):
            reasons.append(
                'script or scripts: one of them is needed, script = "read-write" or scripts = ["mine.sql@3", "read-only"]'
            )
        if self.warmup_limit is not None and UNTIL_STEADY not in self.warmup:
            reasons.append(f'warmup_limit is for warmup = "{UNTIL_STEADY}" only')
        if self.jobs and max(self.jobs) > min(self.clients):
            reasons.append(
                f"jobs = {max(self.jobs)} with clients = {min(self.clients)}: pgbench starts no more threads "
                "than clients"
            )
        names = dict(self.variables)
        reasons += dict.fromkeys(
            f"{own.path} {problem}"
            for level in self.script_levels
            for own in level
            if own.text is not None
            for protocol in self.protocol
            for problem in read_script(own.text).problems_with(names, protocol)
        )
        if reasons:
            raise ValueError(joined(reasons))
        return self

    @property
    def script_levels(self) -> tuple[tuple[Script, ...], ...]:
        """The scripts of each level: one, or several at once."""
        return self.scripts or tuple((script,) for script in self.script)


def _default_runs() -> tuple[RunTable, ...]:
    """Reads, then writes over a whole checkpoint."""
    runs = ({"script": READ_ONLY, "warmup": "3 s"}, {"script": "read-write", "warmup": "5 s"})
    return tuple(RunTable.model_validate({**run, "clients": 4}) for run in runs)


class PgbenchTable(WorkloadTable):
    """`[[workload]]` of type pgbench: a dataset, and the runs on it."""

    type: Literal["pgbench"] = Field(description="pgbench")
    scale: Factor[ScaleLevel] = Field(default=(), description='pgbench scale, or "4x memory"')
    """load | pgbench's scale (15 MB each), or a multiple of the memory | `20`, or so many that the database takes a quarter of the
    memory if that is less | `300`, `"4x memory"`"""
    filler: Factor[Filler] = Field(default=(), description="blank, or random")
    """load | what the filler columns hold: `blank`, as pgbench makes them, which compress to a hundredth; `random`, which compress to
    three quarters at the least (Btrfs, ZFS, disks that compress) | `"blank"` | `{ vary = ["blank", "random"] }`"""
    dump: Factor[DumpLevel] = Field(default=(), description="an archive of pg_dump: one's own database")
    """load | in place of `scale`: the path of an archive of `pg_dump --format=custom` or `--format=directory`, from the plan's
    directory or absolute ([one's own database](OWN_DATABASE.md)) | none | `"shop.dump"`"""
    copy_of: Factor[CopyLevel] = Field(
        default=(), alias="copy", description="a data directory of a server that was shut down"
    )
    """load | in place of `scale` or `dump`: the path of a data directory whose server was shut down, or of a base backup
    ([a data directory](OWN_DATABASE.md#a-data-directory)) | none | `"/var/lib/postgresql/18/main"`"""
    database: DatabaseName | None = Field(
        default=None, description="the database of a copy that scripts run in"
    )
    """load | the database of a `copy` in which the scripts run | none; a `copy` needs it | `"shop"`"""
    prepare: ScriptOfDataset | None = Field(
        default=None, description="a script that runs once behind a restore"
    )
    """load | the path of a pgbench script beside the plan: runs once behind the restore of a `dump`, by one client | none |
    `"indexes.sql"`"""
    settle: ScriptOfDataset | None = Field(
        default=None, description="a script that runs once behind `prepare`"
    )
    """load | the same, behind `prepare` | none | `"history.sql"`"""
    cells: ChosenCells = Field(
        default=(), description="a list of tables: where it differs from the first cell"
    )
    """– | the cells that it runs in, as of power cuts | every cell of its engine | `[{ filesystem.type = "xfs" }]`"""
    run: Annotated[tuple[RunTable, ...], AfterValidator(at_least_one)] = Field(
        default=_default_runs(), description="one or more [[workload.run]] tables"
    )
    """– | one or more `[[workload.run]]` tables, made in this order | `read-only` and `read-write` ([above](#as-short-as-it-gets))
    | –"""

    @model_validator(mode="after")
    def _has_one_dataset(self) -> PgbenchTable:
        reasons = []
        sources = [name for name, value in (("dump", self.dump), ("copy", self.copy_of)) if value]
        if sources and self.scale:
            reasons.append(f"scale is of pgbench's own tables, and {sources[0]} brings others; take one out")
        if sources and self.filler:
            reasons.append(f"filler is of pgbench's own tables, and {sources[0]} brings others; take one out")
        if len(sources) > 1:
            reasons.append("dump and copy are two databases; give each a [[workload]]")
        if not self.dump and (self.prepare or self.settle):
            reasons.append("prepare and settle run behind the restore of a dump, and there is none")
        if bool(self.copy_of) != (self.database is not None):
            reasons.append(
                'copy and database belong together: database = "shop" names the one in which scripts run'
            )
        has_runs = "run" in self.model_fields_set
        if sources and not has_runs:
            reasons.append(
                f'run is missing: a {sources[0]} needs runs with scripts of your own, script = "mine.sql"'
            )
        names = (each.name for each in self._scripts() if each.text is None)
        built_in = dict.fromkeys(names) if sources and has_runs else ()
        if built_in:
            reasons.append(
                f"{', '.join(built_in)}: pgbench's scripts are for its own tables; give scripts of your own"
            )
        if reasons:
            raise ValueError(joined(reasons))
        return self

    dataset_key: ClassVar[str] = ".scale"
    inner_tables: ClassVar[InnerTables] = {"run": RunTable}

    def run_count(self) -> int:
        """Every combination of each table's levels."""
        return sum(map(_run_count, self.run))

    def dataset_count(self) -> int:
        """One for each scale, archive or data directory."""
        return len(self.dump or self.copy_of or self._scales)

    def engines(self) -> tuple[str, ...]:
        """PostgreSQL."""
        return (POSTGRESQL,)

    def cells_named(self) -> tuple[Departures, ...]:
        """Its `cells`."""
        return self.cells

    def settings_of_defaults(self) -> Mapping[str, Scalar]:
        """Checkpoints that a short run holds, where the plan names no run."""
        return {} if "run" in self.model_fields_set else _CHECKPOINTS

    def suited(self, setups: Sequence[EngineSetup]) -> PgbenchTable:
        """Runs without a duration last as long as one checkpoint of any of its clusters.

        PlanError where a version of the plan cannot restore an archive, or lacks what is in it. What a commit or a patch has is not known.
        """
        setup = next(each for each in setups if each.engine == POSTGRESQL)
        too_old = [
            f"workload.dump: {each.name} was written by pg_dump {each.major}, and [postgresql] version = "
            f'"{build.version}" restores none of a later version than its own'
            for each in self.dump
            for build in setup.builds
            if major_of(build.version) < each.major
        ]
        too_old += [
            f"workload.dump: {lacking_sentence(each.name, lacking)}"
            for each in self.dump
            for build in setup.builds
            if build.source_commit is None and not build.patches
            if (lacking := sorted(set(each.extensions.split()) - extensions_of(major_of(build.version))))
        ]
        oldest = min(setup.builds, key=lambda build: major_of(build.version), default=None)
        if oldest is not None and major_of(oldest.version) < SYNC_PIPELINE_SINCE:
            too_old += (
                f"workload.run: {own.path} has \\{SYNC_PIPELINE}, which pgbench has since PostgreSQL {SYNC_PIPELINE_SINCE}, and "
                f'[postgresql] version = "{oldest.version}"'
                for own in self._scripts()
                if own.text is not None and SYNC_PIPELINE in read_script(own.text).commands
            )
        if too_old:
            raise PlanError(*dict.fromkeys(too_old))
        return self.model_copy(update={"run": tuple(_with_duration(run, setup) for run in self.run)})

    def planned(self, seed: int, defaults: int) -> PlannedWorkload:  # noqa: ARG002 -- scripts draw by the visit's seed
        """A multiple of the memory becomes a scale where the memory of a cell is known."""
        runs = run_specs(self.run, self.type, defaults=defaults)
        if not self.dump and not self.copy_of:
            return PlannedWorkload(self.type, self._scales, runs)
        given = {name: getattr(self, name) for name in SCRIPTS}
        texts = {name: script.text for name, script in given.items() if script is not None}
        own = [
            *(each.levels(texts) for each in self.dump),
            *(each.levels(self.database or "") for each in self.copy_of),
        ]
        return PlannedWorkload(self.type, (), runs, tuple(map(Levels, own)))

    def _scripts(self) -> Iterator[Script]:
        return (script for run in self.run for level in run.script_levels for script in level)

    @property
    def _scales(self) -> tuple[DatasetScale, ...]:
        scales = self.scale or (DatasetScale(),)
        # Blanks are what pgbench itself writes, and what every study before had.
        more = [Levels() if filler == BLANK else Levels(filler=filler) for filler in self.filler or (BLANK,)]
        return tuple(replace(scale, more=levels) for scale in scales for levels in more)


def _with_duration(table: RunTable, setup: EngineSetup) -> RunTable:
    if table.duration:
        return table
    if all(script.name == READ_ONLY for level in table.script_levels for script in level):
        duration_s = _READING_S
    else:
        warmups = [None if warmup == UNTIL_STEADY else float(warmup) for warmup in table.warmup]
        needed_s = max(needed_duration_s(cluster, warmup) for cluster in setup.clusters for warmup in warmups)
        duration_s = float(_WHOLE_S * ceil(needed_s / _WHOLE_S))
    return table.model_copy(update={"duration": (duration_s,)})


def _run_count(table: RunTable) -> int:
    count = 1
    for levels in _factors(table).values():
        count *= len(levels)
    return count


def run_specs(
    tables: tuple[RunTable, ...], workload: str, *, defaults: int = DEFAULTS_VERSION
) -> tuple[RunSpec, ...]:
    """The runs of all tables, in the order of the plan; ValueError if two have one name.

    Within a table the last key of the list above varies fastest. Where a key varies, its level is
    appended to the name.
    """
    specs = tuple(spec for table in tables for spec in _runs(table, workload, defaults))
    # Folders are made of the names: what differs in punctuation only would differ in nothing there.
    names = Counter(re.sub(r"[^a-z0-9.]+", "-", spec.name.lower()) for spec in specs)
    twice = sorted(name for name, count in names.items() if count > 1)
    if twice:
        raise ValueError(f"two runs are called {', '.join(twice)}; give each a name")
    return specs


def _factors(table: RunTable) -> dict[str, tuple[Any, ...]]:
    return {"script": table.script_levels, **{name: getattr(table, name) or (None,) for name in _FACTORS}}


def _runs(table: RunTable, workload: str, defaults: int) -> Iterator[RunSpec]:
    factors = _factors(table)
    for combination in product(*factors.values()):
        levels = dict(zip(factors, combination, strict=True))
        varied = {name: level for name, level in levels.items() if len(factors[name]) > 1}
        yield RunSpec(_name(table, levels["script"], varied), workload, _levels(table, levels, defaults))


def _name(table: RunTable, scripts: tuple[Script, ...], varied: dict[str, Any]) -> str:
    name = table.name or _word(scripts)
    for factor, level in varied.items():
        if factor == "script":
            name += "" if table.name is None else f"-{_word(level)}"
        else:
            name += f"-{factor}-{_word(level)}"
    return name


def _word(level: Any) -> str:
    if isinstance(level, tuple):
        # A weight is part of what was asked: two levels may differ in nothing else.
        several = len(level) > 1
        return "-".join(each.label + (f"={each.weight}" if several else "") for each in level)[:60]
    if level is None:
        return "unlimited"
    return f"{level:g}" if isinstance(level, float) else str(level).replace(" ", "-")


def _levels(table: RunTable, levels: dict[str, Any], defaults: int) -> Levels:
    steady = levels["warmup"] == UNTIL_STEADY
    found: dict[str, Scalar | None] = {
        **levels_of(
            [
                RunScript(_level_name(each, levels["script"]), each.text, each.weight)
                for each in levels["script"]
            ],
            dict(table.variables),
        ),
        "clients": levels["clients"],
        "jobs": levels["jobs"] or _default_jobs(levels["clients"], defaults),
        "warmup": UNTIL_STEADY if steady else "fixed",
        # Until steady: the longest that it may take.
        "warmup_s": (table.warmup_limit or WARMUP_LIMIT_S) if steady else levels["warmup"],
        "duration_s": levels["duration"],
        "rate_tps": levels["rate"],
        "protocol": levels["protocol"],
    }
    return Levels({name: level for name, level in found.items() if level is not None})


def _level_name(script: Script, beside: tuple[Script, ...]) -> str:
    """Several are told apart by their files; a single one is named by its run."""
    return script.label if len(beside) > 1 else script.name


def _default_jobs(clients: int, defaults: int) -> int:
    return clients if defaults >= 2 else min(clients, _JOBS_UNTIL_VERSION_2)


PLAN = PgbenchTable
