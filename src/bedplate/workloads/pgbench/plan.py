"""`type = "pgbench"` in a plan: its tables, and every combination of the levels of its runs, in order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from bedplate.engines.postgresql.model import DATABASE_BLOCK_SIZES
from bedplate.engines.postgresql.own_data import database_name
from bedplate.engines.postgresql.pgbench_script import (
    BUILT_IN_VARIABLES,
    DEFAULT_PROTOCOL,
    PROTOCOLS,
    SIMPLE,
    SYNC_PIPELINE,
    SYNC_PIPELINE_SINCE,
    read_script,
)
from bedplate.engines.postgresql.versions import extensions_of, lacking_sentence, major_of
from bedplate.engines.postgresql.visit import needed_duration_s, too_many_clients, too_short
from bedplate.errors import PlanError
from bedplate.model.cell import Cell, Dataset, DeviceLevels, RunSpec, Throttle
from bedplate.model.engines import POSTGRESQL
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import DatasetScale, EngineSetup, Load, Plan, PlannedWorkload
from bedplate.plan import values
from bedplate.plan.estimate import GROWTH, WorkloadEstimate
from bedplate.plan.fields import (
    ChosenCells,
    Count,
    Departures,
    Duration,
    Factor,
    ListFactor,
    RunTable,
    run_specs,
    within,
)
from bedplate.plan.rules import DatasetRule
from bedplate.plan.table import InnerTables, WorkloadTable, at_least_one
from bedplate.plan.values import UNTIL_STEADY, file_beside_the_plan
from bedplate.plan.words import in_quotes, joined
from bedplate.units import KIB
from bedplate.workloads.pgbench.model import (
    COPY,
    DUMP,
    READ_ONLY,
    READ_WRITE,
    RunScript,
    levels_of,
    scripts_of,
)
from bedplate.workloads.pgbench.own_files import (
    SCRIPTS,
    Dump,
    OwnDirectory,
    against_the_files,
    database_bytes,
    dump,
    own_directory,
)
from bedplate.workloads.pgbench.script import seems_to_read_only
from bedplate.workloads.pgbench.visit import BLANK, FILLERS

if TYPE_CHECKING:
    from bedplate.plan.differences import PlanWarnings

BUILT_IN_SCRIPTS = ("read-only", "read-write", "simple-update")
# pgbench itself takes 128 (MAX_BUILT_IN_SCRIPTS in its source).
MOST_SCRIPTS = 100
MOST_VARIABLES = 100

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,59}")
_VARIABLE_TEXT = re.compile(r"[A-Za-z0-9._+-]{1,60}")


@dataclass(frozen=True)
class Script:
    """A script of transactions: a built-in one by name, or an own one (`custom`) with its text, its stem and its path."""

    name: str
    text: str | None = None
    stem: str | None = None
    path: str | None = None
    weight: int = 1

    @property
    def label(self) -> str:
        """What a run's name calls it."""
        return self.stem or self.name


def script(value: Any, info: ValidationInfo) -> Script:
    """A built-in script by name, or an own one by its path beside the plan."""
    if not isinstance(value, str):
        raise ValueError(f"allowed: {', '.join(BUILT_IN_SCRIPTS)}, or the path of an own script")
    if value in BUILT_IN_SCRIPTS:
        return Script(value)
    try:
        text = file_beside_the_plan(value, info)
    except ValueError as error:
        raise ValueError(f"not one of {', '.join(BUILT_IN_SCRIPTS)}, and as an own script: {error}") from None
    return _own_script(value, text)


def _own_script(path: str, text: str) -> Script:
    if problems := read_script(text).problems:
        raise ValueError(joined(problems))
    stem = re.sub(r"[^A-Za-z0-9._=-]+", "-", Path(path).stem).strip("-.")[:40]
    return Script("custom", text, stem or "custom", path)


def script_of_dataset(value: Any, info: ValidationInfo) -> Script:
    """An own script that runs once behind a restore, where a plan sets no variables and statements are sent as text."""
    if not isinstance(value, str):
        raise ValueError("allowed is the path of an own script")
    text = file_beside_the_plan(value, info)
    if problems := read_script(text).problems_with((), SIMPLE):
        raise ValueError(joined(problems))
    return _own_script(value, text)


def scripts(value: Any, info: ValidationInfo) -> tuple[Script, ...]:
    """Several scripts, each with its weight: `"mine.sql@3"`. They must differ in their labels."""
    if not isinstance(value, list) or not 1 < len(value) <= MOST_SCRIPTS:
        raise ValueError(
            f'allowed is a list of 2 to {MOST_SCRIPTS} scripts with weights: ["mine.sql@3", "read-only"]'
        )
    reasons: list[str] = []
    found: list[Script] = []
    for each in value:
        try:
            found.append(_weighted(each, info))
        except ValueError as error:
            reasons.append(f"{in_quotes(each)}: {error}")
    labels = Counter(each.label for each in found)
    reasons += (
        f"{count} scripts are called {label}, and figures are named by script; rename the file"
        for label, count in labels.items()
        if count > 1
    )
    if reasons:
        raise ValueError(joined(reasons))
    return tuple(found)


def _weighted(value: Any, info: ValidationInfo) -> Script:
    name, at, weight = value.rpartition("@") if isinstance(value, str) else ("", "", "")
    if not at:
        return script(value, info)
    if not re.fullmatch(r"[1-9]\d{0,3}", weight, re.ASCII):
        raise ValueError("a weight is a whole number from 1 to 9999, behind an @ at the end")
    return replace(script(name, info), weight=int(weight))


def variables(value: Any) -> tuple[tuple[str, str | int | float], ...]:
    """What scripts find set under a name; sorted."""
    if not isinstance(value, dict) or len(value) > MOST_VARIABLES:
        raise ValueError(f"allowed is a table of at most {MOST_VARIABLES} names: {{ warehouses = 100 }}")
    reasons = []
    for name, each in value.items():
        if not _VARIABLE.fullmatch(name) or name in BUILT_IN_VARIABLES:
            reasons.append(
                f"{in_quotes(name)}: a name is 1 to 60 letters, digits and _, no digit first, and none of {', '.join(BUILT_IN_VARIABLES)}, "
                "which are set anyway"
            )
        elif isinstance(each, bool) or not (
            isinstance(each, (int, float)) or (isinstance(each, str) and _VARIABLE_TEXT.fullmatch(each))
        ):
            reasons.append(
                f"{name} = {in_quotes(each)}: allowed is a number, or a text of 1 to 60 letters, digits and . _ + -"
            )
    if reasons:
        raise ValueError(joined(reasons))
    return tuple(sorted(value.items()))


# Named, as a table has keys of the same names as their checks.
ScriptLevel: TypeAlias = Annotated[Script, within(script, form=values.TEXT)]

DumpLevel: TypeAlias = Annotated[Dump, within(dump, form=values.TEXT)]

ScriptsLevel: TypeAlias = Annotated[
    tuple[Script, ...],
    within(scripts, form={"type": "array", "items": values.TEXT, "minItems": 2}),
]

Variables: TypeAlias = Annotated[
    tuple[tuple[str, Scalar], ...],
    within(
        variables,
        form={"type": "object", "additionalProperties": {"type": ["string", "number"]}},
    ),
]

CopyLevel: TypeAlias = Annotated[OwnDirectory, within(own_directory, form=values.TEXT)]
ScriptOfDataset: TypeAlias = Annotated[Script, within(script_of_dataset, form=values.TEXT)]
Filler: TypeAlias = Annotated[str, within(values.one_of, FILLERS)]
WarmUp: TypeAlias = Annotated[float | str, within(values.warmup)]
Protocol: TypeAlias = Annotated[str, within(values.one_of, PROTOCOLS)]

# Threads of pgbench where the plan is silent. A thread for each client since version 2: one that serves two sessions
# makes two speeds of one configuration, as the scheduler places it (docs/METHOD.md, "Threads of pgbench").
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


class PgbenchRunTable(RunTable):
    """`[[workload.run]]`: one run, or several where a key varies."""

    script: Factor[ScriptLevel] = ()
    """measure | `read-only`, `read-write`, `simple-update`, or the path of an own pgbench script in or below the plan's directory |
    this or `scripts` | `"read-write"`"""
    scripts: ListFactor[ScriptsLevel] = ()
    """measure | a list of 2 to 100 of the same, each with `@` and its weight from 1 to 9999 (1 without); a list is one level |
    this or `script` | `["order.sql@9", "stock.sql"]`"""
    variables: Variables = ()
    """measure | a table of names and numbers, or texts of letters, digits and `. _ + -`: what scripts find set as `:name` |
    none | `{ warehouses = 100 }`"""
    clients: Factor[Count] = (1,)
    """measure | sessions at once | `1` | `{ vary = [1, 10] }`"""
    jobs: Factor[Count] = ()
    """measure | threads of pgbench, at most `clients` | `clients` (`2` in studies that were begun before this was so) | `4`"""
    warmup: Factor[WarmUp] = (30.0,)
    """measure | a time from 0, or `"until steady"`; recorded, and left out of every figure | `"30 s"` | `"5 min"`"""
    warmup_limit: Duration | None = None
    """measure | the longest that `"until steady"` may take | `"10 min"` | `"20 min"`"""
    duration: Factor[Duration] = ()
    """measure | the time that is measured, 1 s or more | `"10 s"` of `read-only`, else what holds a checkpoint (below) | `"10 min"`"""
    rate: Factor[Annotated[float | None, within(values.rate)]] = (None,)
    """measure | transactions offered a second, or `"unlimited"` | `"unlimited"` | `500`"""
    protocol: Factor[Protocol] = (DEFAULT_PROTOCOL,)
    """measure | `simple`, `extended`, `prepared` | `"prepared"` | `"simple"`"""

    @model_validator(mode="after")
    def _fits_together(self) -> PgbenchRunTable:
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

    varying: ClassVar[tuple[str, ...]] = (
        "script",
        "clients",
        "jobs",
        "warmup",
        "duration",
        "rate",
        "protocol",
    )

    def factors(self) -> dict[str, tuple[Any, ...]]:
        """With all scripts of a level as that of `script`."""
        return {**super().factors(), "script": self.script_levels}

    def word(self, level: Any) -> str:
        """Of scripts their labels."""
        if not isinstance(level, tuple):
            return super().word(level)
        # A weight is part of what was asked: two levels may differ in nothing else.
        several = len(level) > 1
        return "-".join(each.label + (f"={each.weight}" if several else "") for each in level)[:60]

    def levels(self, by_key: Mapping[str, Any], defaults: int) -> Mapping[str, Scalar | None]:
        """With the texts of its scripts."""
        steady, scripts = by_key["warmup"] == UNTIL_STEADY, by_key["script"]
        clients = by_key["clients"]
        default_jobs = clients if defaults >= 2 else min(clients, _JOBS_UNTIL_VERSION_2)
        # Several are told apart by their files; a single one is named by its run.
        named = [
            RunScript(each.label if len(scripts) > 1 else each.name, each.text, each.weight)
            for each in scripts
        ]
        return {
            **super().levels(by_key, defaults),
            **levels_of(named, dict(self.variables)),
            "jobs": by_key["jobs"] or default_jobs,
            "warmup": UNTIL_STEADY if steady else "fixed",
            # Until steady: the longest that it may take.
            "warmup_s": (self.warmup_limit or WARMUP_LIMIT_S) if steady else by_key["warmup"],
        }


def _default_runs() -> tuple[PgbenchRunTable, ...]:
    """Reads, then writes over a whole checkpoint."""
    runs = ({"script": READ_ONLY, "warmup": "3 s"}, {"script": "read-write", "warmup": "5 s"})
    return tuple(PgbenchRunTable.model_validate({**run, "clients": 4}) for run in runs)


class PgbenchTable(WorkloadTable):
    """`[[workload]]` of type pgbench: a dataset, and the runs on it."""

    type: Literal["pgbench"] = Field(description="pgbench")
    scale: Factor[Annotated[DatasetScale, within(values.scale)]] = ()
    """load | pgbench's scale (15 MB each), or a multiple of the memory | `20`, or so many that the database takes a quarter of the
    memory if that is less | `300`, `"4x memory"`"""
    filler: Factor[Filler] = ()
    """load | what the filler columns hold: `blank`, as pgbench makes them, which compress to a hundredth; `random`, which compress to
    three quarters at the least (Btrfs, ZFS, disks that compress) | `"blank"` | `{ vary = ["blank", "random"] }`"""
    dump: Factor[DumpLevel] = ()
    """load | in place of `scale`: the path of an archive of `pg_dump --format=custom` or `--format=directory`, from the plan's
    directory or absolute ([one's own database](OWN_DATABASE.md)) | none | `"shop.dump"`"""
    copy_of: Factor[CopyLevel] = Field(default=(), alias="copy")
    """load | in place of `scale` or `dump`: the path of a data directory whose server was shut down, or of a base backup
    ([a data directory](OWN_DATABASE.md#a-data-directory)) | none | `"/var/lib/postgresql/18/main"`"""
    database: Annotated[str, within(database_name, form=values.TEXT)] | None = None
    """load | the database of a `copy` in which the scripts run | none; a `copy` needs it | `"shop"`"""
    prepare: ScriptOfDataset | None = None
    """load | the path of a pgbench script beside the plan: runs once behind the restore of a `dump`, by one client | none |
    `"indexes.sql"`"""
    settle: ScriptOfDataset | None = None
    """load | the same, behind `prepare` | none | `"history.sql"`"""
    cells: ChosenCells = ()
    """– | the cells that it runs in, as of power cuts | every cell of its engine | `[{ filesystem.type = "xfs" }]`"""
    run: Annotated[tuple[PgbenchRunTable, ...], AfterValidator(at_least_one)] = Field(
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
    runs_on: ClassVar[tuple[str, ...]] = (POSTGRESQL,)
    inner_tables: ClassVar[InnerTables] = {"run": PgbenchRunTable}

    def run_count(self) -> int:
        """Every combination of each table's levels."""
        return sum(table.run_count() for table in self.run)

    def dataset_count(self) -> int:
        """One for each scale, archive or data directory."""
        return len(self.dump or self.copy_of or self._scales)

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
        runs = run_specs(self.run, self.type, defaults, _folder_name)
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


def _with_duration(run_table: PgbenchRunTable, setup: EngineSetup) -> PgbenchRunTable:
    if run_table.duration:
        return run_table
    if all(script.name == READ_ONLY for level in run_table.script_levels for script in level):
        duration_s = _READING_S
    else:
        warmups = [None if warmup == UNTIL_STEADY else float(warmup) for warmup in run_table.warmup]
        needed_s = max(needed_duration_s(cluster, warmup) for cluster in setup.clusters for warmup in warmups)
        duration_s = float(_WHOLE_S * ceil(needed_s / _WHOLE_S))
    return run_table.model_copy(update={"duration": (duration_s,)})


def _folder_name(name: str) -> str:
    """Folders are made of the names: what differs in punctuation only would differ in nothing there."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower())


PLAN = PgbenchTable

ROWS_PER_SCALE = 100_000

_PAGE_HEADER = 24
_HEAP_ROW = 128 + 4
_BTREE_SPECIAL = 16
_BTREE_ENTRY = 16 + 4
_BTREE_FILL = 0.9

# Where a plan does not say: 300 MB, which is more than PostgreSQL's usual buffers and loaded in seconds; with little memory
# a share of it, so that the page cache holds the database.
_SUITABLE_UNITS_MOST = 20

_SUITABLE_SHARE = 0.25


def bytes_per_scale(block_size_bytes: int) -> int:
    """Bytes of tables and indexes per unit of pgbench scale, right after loading.

    Small pages hold fewer rows: 7 per kB at 1 kB, 7.75 at 32 kB.
    """
    rows_per_page = (block_size_bytes - _PAGE_HEADER) // _HEAP_ROW
    heap_pages = ceil(ROWS_PER_SCALE / rows_per_page)
    usable = block_size_bytes - _PAGE_HEADER - _BTREE_SPECIAL
    entries_per_leaf = int(usable * _BTREE_FILL) // _BTREE_ENTRY
    level = ceil(ROWS_PER_SCALE / entries_per_leaf)
    index_pages = level
    while level > 1:
        # Inner pages are counted as if the index stood alone; within one large index they are shared.
        level = ceil(level / (usable // _BTREE_ENTRY))
        index_pages += level
    return (heap_pages + index_pages) * block_size_bytes


def scale_units(scale: DatasetScale, memory_bytes: int) -> int:
    """The pgbench scale; `memory_bytes` counts for a multiple of the memory only.

    The same for every block size, so that all cells hold the same rows: the smallest scale at which
    the database is that multiple at the densest block size, and so at least that at the others. One that suits the
    memory is at most a quarter of it, and no more than 20; `memory_bytes` 0 is not known, and no limit.
    """
    if scale.units is not None:
        return scale.units
    densest = min(bytes_per_scale(size) for size in DATABASE_BLOCK_SIZES)
    if scale.times_memory is not None:
        return max(1, ceil(scale.times_memory * memory_bytes / densest))
    if not memory_bytes:
        return _SUITABLE_UNITS_MOST
    return min(_SUITABLE_UNITS_MOST, max(1, int(_SUITABLE_SHARE * memory_bytes / densest)))


RULES: Mapping[str, DatasetRule] = {"data-directory-is-otherwise": against_the_files}

_LOAD_S_PER_SCALE = 0.12

# On an emulated processor, loaded and idle hosts between them: the load of scale 1 takes 3 to 10 s.
_EMULATED_LOAD_S_PER_SCALE = 5.0

# `pgbench -i` writes each row twice: to the table and to the WAL.
_LOAD_WRITE_FACTOR = 2.0

# Measured: 1.2 GB of a data directory in 14 s, beside other work.
_COPY_BYTES_PER_S = 85e6

# On an emulated processor, over 9p: 98 MB in 461 s in a guest that had 8.6 % of a processor, which is 40 s of one.
_EMULATED_COPY_BYTES_PER_S = 2.5e6

# Measured: 1.2 GB in 32 s with two jobs.
_RESTORE_BYTES_PER_S = 37e6

# initdb, the start of a server, VACUUM and the shutdown, of the smallest.
_RESTORE_OVERHEAD_S = 6.0

# What the page cache merges sequential writes into, at least.
_LOAD_IO_BYTES = 128 * KIB


class PgbenchEstimate(WorkloadEstimate):
    """Its runs take what they were asked to; a throttled device is reckoned from its limits."""

    def scale_units(self, scale: DatasetScale, memory_bytes: int) -> int:
        """Pgbench's scale."""
        return scale_units(scale, memory_bytes)

    def load_seconds(self, cell: Cell, dataset: Dataset, *, emulated: bool) -> float:
        """By the scale or by the bytes that are copied, and by what the device lets through."""
        own_bytes = database_bytes(dataset.levels)
        if own_bytes:
            # A copy of files, written once and read from the cache's disk.
            return _copy_seconds(own_bytes, cell.device, emulated=emulated)
        scale = dataset.levels.integer("scale") or 0
        unthrottled = scale * (_EMULATED_LOAD_S_PER_SCALE if emulated else _LOAD_S_PER_SCALE)
        written = scale * bytes_per_scale(cell.build.block_size_bytes) * _LOAD_WRITE_FACTOR
        return max(unthrottled, _device_seconds(written, cell.device))

    def dataset_bytes(self, cell: Cell, load: Load) -> float:
        """Tables, indexes, and what the runs leave dead."""
        own_bytes = database_bytes(load.dataset.levels)
        if own_bytes:
            return own_bytes * GROWTH
        scale = load.dataset.levels.integer("scale") or 0
        return bytes_per_scale(cell.build.block_size_bytes) * scale * GROWTH if scale else 0.0

    def prepared_bytes(self, dataset: Dataset, cells: Sequence[Cell]) -> int:
        """A restored database for each build and choice of checksums; a data directory is copied from where it is."""
        return int(_restores(dataset, cells) * database_bytes(dataset.levels))

    def prepared_seconds(self, dataset: Dataset, cells: Sequence[Cell]) -> float:
        """Restoring as many; not what `prepare` and `settle` take."""
        each_s = _RESTORE_OVERHEAD_S + database_bytes(dataset.levels) / _RESTORE_BYTES_PER_S
        return _restores(dataset, cells) * each_s


def _restores(dataset: Dataset, cells: Sequence[Cell]) -> int:
    return len({(cell.build, cell.cluster.data_checksums) for cell in cells}) if DUMP in dataset.levels else 0


def _copy_seconds(size_bytes: float, device_levels: DeviceLevels, *, emulated: bool) -> float:
    unthrottled = size_bytes / (_EMULATED_COPY_BYTES_PER_S if emulated else _COPY_BYTES_PER_S)
    return max(unthrottled, _device_seconds(size_bytes, device_levels))


def _device_seconds(size_bytes: float, device_levels: DeviceLevels) -> float:
    """What writing so much takes an emulated device; 0 of any other."""
    throttle, latency = device_levels.throttle, device_levels.latency
    seconds = 0.0 if throttle is None else _throttled_seconds(size_bytes, throttle)
    if latency is not None:
        seconds = max(seconds, size_bytes / _LOAD_IO_BYTES * latency.mean_ns("write", _LOAD_IO_BYTES) / 1e9)
    return seconds


def _throttled_seconds(size_bytes: float, throttle: Throttle) -> float:
    by_bandwidth = size_bytes / throttle.write_bytes_per_s if throttle.write_bytes_per_s else 0.0
    by_iops = size_bytes / _LOAD_IO_BYTES / throttle.write_iops if throttle.write_iops else 0.0
    return max(by_bandwidth, by_iops)


ESTIMATE = PgbenchEstimate()

CANARY = Load(
    Dataset("pgbench", Levels(scale=5)),
    (
        RunSpec(
            "canary",
            "pgbench",
            Levels(
                script="read-write",
                clients=2,
                jobs=2,
                warmup="fixed",
                warmup_s=2.0,
                duration_s=8.0,
                protocol="prepared",
            ),
        ),
    ),
)


def of_plan(plan: Plan) -> Iterator[str]:
    """Sentences."""
    own = [workload for workload in plan.workloads if workload.type == "pgbench"]
    for workload in own:
        for run in workload.runs:
            yield from _of_run(plan, run)
            yield from too_many_clients(plan, run, run.levels.integer("clients") or 1)
    yield from _of_scales(own)
    sources = {
        key for workload in own for levels in workload.datasets for key in (DUMP, COPY) if key in levels
    }
    for key in sorted(sources):
        what = "the restored database" if key == DUMP else "the data directory"
        yield (
            f"workload.{key}: the study keeps no data of it, but the texts of the scripts; its page and exports go where you "
            f"send them. Every visit copies {what}, whose files are then as fragmented as fresh ones"
        )


def _of_run(plan: Plan, run: RunSpec) -> list[str]:
    if all(map(seems_to_read_only, scripts_of(run.levels))):
        return []
    steady = run.levels["warmup"] == UNTIL_STEADY
    return list(too_short(plan, run, None if steady else run.levels.number("warmup_s")))


def _of_scales(workloads: Iterable[PlannedWorkload]) -> list[str]:
    found = []
    for workload in workloads:
        smallest = min((scale.units for scale in workload.scales if scale.units is not None), default=None)
        for run in workload.runs:
            clients = run.levels.integer("clients") or 1
            names = [script.name for script in scripts_of(run.levels)]
            if smallest is not None and smallest < clients and READ_WRITE in names:
                found.append(
                    f"run {run.name}: {clients} clients on scale {smallest} wait for each other's rows "
                    "(one branch per unit of scale), more than for the device"
                )
    return found


WARNINGS: PlanWarnings = of_plan
