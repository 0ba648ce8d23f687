"""pgbench: PostgreSQL's own benchmark, driven and recorded."""

from __future__ import annotations

import re
import shutil
import signal
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bedplate.engines.postgresql.own_data import ClusterLayout, size_of
from bedplate.engines.postgresql.pgbench_script import SIMPLE, WAY_OUT, read_script
from bedplate.engines.postgresql.visit import PostgresqlProbe, Session, cluster_of
from bedplate.errors import BedplateError, CommandFailed, VisitFailed
from bedplate.host.cgroups import drop_page_cache
from bedplate.model.cell import Dataset, RunSpec
from bedplate.model.durability import SESSION_SETTINGS
from bedplate.model.levels import Scalar
from bedplate.model.reason import reasons_of
from bedplate.model.visit import RunRecord, Sample
from bedplate.units import MIB, format_size
from bedplate.visit.recording import (
    MEASURE,
    WARMUP,
    ClientEnded,
    ClientRecording,
    Driver,
    LoggedClient,
    SecondSeen,
    VisitContext,
    Workload,
)
from bedplate.visit.server import why_the_server_is_gone
from bedplate.workloads.pgbench.model import (
    BUILT_IN,
    COPY,
    DUMP,
    READ_WRITE,
    RunScript,
    SteadyDetector,
    is_own,
    scripts_of,
    variables_of,
    without_data,
)
from bedplate.workloads.pgbench.own_files import DATABASE, demand_unchanged
from bedplate.workloads.pgbench.script import statement_texts

# Enough for tens of thousands of commits, and read in a tenth of a second.
_WAL_READ_BYTES_MAX = 4 * MIB

_COMMIT = re.compile(r"^rmgr: Transaction .*? tx: +(\d+),.* desc: COMMIT", re.MULTILINE)

# `SET [SESSION | LOCAL] … = off`, `set_config('…', 'off', …)`, and what the server reads as off.
_SETS_ASYNCHRONOUS = re.compile(
    r"synchronous_commit['\"]?\s*(?:=|\bto\b|,)\s*['\"]?\s*(?:off|false|fals|fal|fa|f|no|n|of|0)\b",
    re.IGNORECASE,
)

# `CREATE TEMP TABLE`, `SELECT … INTO TEMPORARY …`, and their schema.
_TEMPORARY = re.compile(
    r"\b(?:create|(?<!insert\s)into)\s+(?:(?:local|global)\s+)?temp(?:orary)?\b|\bpg_temp\b", re.IGNORECASE
)

_NAMED = ", ".join(f"'{name}'" for name in SESSION_SETTINGS)

_ROLES = """
SELECT coalesce(d.datname, 'every database') || ' for ' || coalesce(r.rolname, 'every role') || ': ' || c
FROM pg_db_role_setting s
LEFT JOIN pg_database d ON d.oid = s.setdatabase LEFT JOIN pg_roles r ON r.oid = s.setrole,
LATERAL unnest(s.setconfig) c
WHERE c ~ '^(fsync|full_page_writes|synchronous_commit)=' ORDER BY 1
"""

_UNLOGGED = """
SELECT format('%I.%I', schemaname, s.relname), n_tup_ins + n_tup_upd + n_tup_del
FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
WHERE c.relpersistence = 'u' AND n_tup_ins + n_tup_upd + n_tup_del > 0 ORDER BY 1
"""

# The last sessions of a run tell what they did when they end, a moment after pgbench has.
_GONE_LIMIT_S = 10.0


def unlogged_writes(session: Session) -> Mapping[str, int]:
    """Rows written so far to each unlogged table that there is."""
    return {str(name): int(rows or 0) for name, rows in session.rows(_UNLOGGED)}


def commit_facts(
    context: VisitContext,
    *,
    before: Sample,
    after: Sample,
    clients: int,
    scripts: Sequence[RunScript],
    unlogged_before: Mapping[str, int],
) -> Mapping[str, Scalar]:
    """Asked of a new session, which gets what roles and databases are set to by now."""
    with cluster_of(context).client_session() as session:
        rows = session.rows(f"SELECT name, current_setting(name) FROM pg_settings WHERE name IN ({_NAMED})")  # noqa: S608
    with cluster_of(context).session() as session:
        facts: dict[str, Scalar] = {f"session_{name}": str(value) for name, value in rows}
        _wait_for_the_last(session)
        roles = [str(row[0]) for row in session.rows(_ROLES)]
        unlogged = [
            name
            for name, written in unlogged_writes(session).items()
            if written > unlogged_before.get(name, 0)
        ]
        hides = is_own(context.dataset.levels)
        if roles:
            facts["role_settings"] = "; ".join(map(_without_names, roles) if hides else roles)
        if unlogged:
            facts["unlogged_tables_written"] = (
                _named_tables(unlogged, scripts) if hides else ", ".join(unlogged)
            )
        texts = [text for script in scripts for text in statement_texts(script.text or "")]
        if any(map(_SETS_ASYNCHRONOUS.search, texts)):
            facts["script_sets_synchronous_commit_off"] = True
        if any(map(_TEMPORARY.search, texts)):
            facts["script_has_temporary_tables"] = True
        return {**facts, **_writing(session, context, before, after, clients)}


def _named_tables(tables: Sequence[str], scripts: Sequence[RunScript]) -> str:
    """Those that the scripts name, and how many others: a study says no more of one's own database."""
    texts = " ".join(script.text or "" for script in scripts)
    told = [name for name in tables if name.rpartition(".")[2].strip('"') in texts]
    others = len(tables) - len(told)
    return ", ".join([*told, *([f"{others} of the database's own"] if others else [])])


def _without_names(role_setting: str) -> str:
    """The setting alone: databases and roles have the names of somebody's."""
    return "a role or a database: " + role_setting.rpartition(": ")[2]


def _wait_for_the_last(session: Session) -> None:
    deadline = time.monotonic() + _GONE_LIMIT_S
    asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'"
    while int(session.value(asked)) and time.monotonic() < deadline:
        session.execute("SELECT pg_sleep(0.02)")


def _writing(
    session: Session, context: VisitContext, before: Sample, after: Sample, clients: int
) -> Mapping[str, Scalar]:
    """How many transactions wrote and committed, and how often the WAL was synced meanwhile.

    Who writes is given an id, and so is every savepoint below it; commits are of all transactions. The lesser of the
    two is more than there were where both are many (reads, and writes with savepoints). So where it would speak
    against the run, commits are counted in the WAL.
    """
    told = {**after.values, **PostgresqlProbe(session, cluster_of(context).build.version).read()}
    told["postgresql.transaction_ids"] = after.values.get("postgresql.transaction_ids", 0.0)

    def grown(name: str) -> float | None:
        return told[name] - before.values[name] if name in before.values and name in told else None

    given, committed, rows = (
        grown(f"postgresql.{name}") for name in ("transaction_ids", "xact_commit", "rows_written")
    )
    if given is None or committed is None:
        return {}
    syncs = grown("postgresql.wal_syncs")
    facts: dict[str, Scalar] = {} if syncs is None else {"wal_syncs": int(syncs)}
    # One that only asked for its id wrote nothing.
    most = 0 if rows == 0 else int(min(given, committed))
    waits = [count for count in (syncs, grown("device.flushes")) if count is not None]
    share = _commits_per_id(session, context, before) if waits and min(waits) * clients < most else None
    if share is None:
        return {**facts, "writing_transactions": most, "writing_transactions_by": "ids"}
    return {**facts, "writing_transactions": int(min(given * share, most)), "writing_transactions_by": "WAL"}


def _commits_per_id(session: Session, context: VisitContext, before: Sample) -> float | None:
    """Commits for each id that was given, over the last of the WAL; None where it cannot be read.

    Older segments than the last checkpoint's may be written anew already.
    """
    start, end = (
        int(value or 0)
        for value in session.rows(
            "SELECT redo_lsn - '0/0', pg_current_wal_insert_lsn() - '0/0' FROM pg_control_checkpoint()"
        )[0]
    )
    start = max(start, end - int(_WAL_READ_BYTES_MAX), int(before.values.get("postgresql.wal_bytes", 0)))
    # What no commit has waited for may be in memory only: this one waits.
    session.execute("SET synchronous_commit = on")
    session.execute("SELECT pg_logical_emit_message(true, 'bedplate', '')")
    try:
        told = (
            cluster_of(context)
            .run(
                "pg_waldump",
                f"--path={context.data_directory / 'pg_wal'}",
                "--rmgr=Transaction",
                f"--start={_lsn(start)}",
                f"--end={_lsn(end)}",
                timeout_s=60,
            )
            .stdout
        )
    except BedplateError:
        return None
    ids = [int(found) for found in _COMMIT.findall(told)]
    return len(ids) / (max(ids) - min(ids) + 1) if len(ids) > 1 else None


def _lsn(position: int) -> str:
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


BLANK, RANDOM = FILLERS = ("blank", "random")

FILLER = "filler"

# As pgbench has them (initPopulateTable, src/bin/pgbench/pgbench.c).
_ROWS = {"pgbench_branches": 1, "pgbench_tellers": 10, "pgbench_accounts": 100_000}

_COLUMNS = {
    "pgbench_branches": "(bid, bbalance, filler) SELECT row, 0, {filler}",
    "pgbench_tellers": "(tid, bid, tbalance, filler) SELECT row, (row - 1) / 10 + 1, 0, {filler}",
    "pgbench_accounts": "(aid, bid, abalance, filler) SELECT row, (row - 1) / 100000 + 1, 0, {filler}",
}

# 64 bytes are 86 letters, the width of the columns is 84 and 88; encode() breaks lines.
_FILLER = "left(replace(encode(sha512(convert_to('{seed} ' || row, 'UTF8')), 'base64'), E'\\n', ''), 84)"

_SAMPLE = "SELECT string_agg(filler, '') FROM (SELECT filler FROM pgbench_accounts ORDER BY aid LIMIT 2000) AS sample"

# Of blanks it is a hundredth; of random letters three quarters.
_SHARE_MIN = 0.6


def load_random(session: Session, scale: int, seed: int) -> None:
    """Fill the tables that pgbench has made (steps `dt`); with its own rows, numbers and all."""
    for table, rows in _ROWS.items():
        filler = _FILLER.format(seed=seed)
        words = _COLUMNS[table].format(filler=filler)
        session.execute(f"INSERT INTO {table} {words} FROM generate_series(1, {rows * scale}) AS row")


def demand_random(session: Session) -> float:
    """The share of its size that zlib leaves of the filler; VisitFailed where it is compressible after all."""
    found = session.value(_SAMPLE).encode()
    share = len(zlib.compress(found)) / len(found) if found else 0.0
    if share < _SHARE_MIN:
        raise VisitFailed(
            "load", f'filler = "{RANDOM}": zlib leaves {share:.0%} of what the rows hold, so it is not random'
        )
    return share


_DEFAULT_DURATION_S = 60.0

# Loading is bounded, not timed out by accident: 20 s for each unit of scale is a very slow disk.
_LOAD_LIMIT_S_PER_SCALE = 20.0

# What the server says of parameters where it takes none.
_PARAMETERS_REFUSED = re.compile(
    r"bind message supplies \d+ parameters|(?:syntax error at or near|there is no parameter|could not determine data type of parameter) "
    r'"?\$\d+|cannot insert multiple commands into a prepared statement|has too many arguments'
)


class Pgbench(Workload):
    """`type = "pgbench"` in a plan."""

    name = "pgbench"
    protocol = "pgbench 1"
    drivers: tuple[Driver, ...] = (Driver("pgbench_log"),)

    def load(self, dataset: Dataset, context: VisitContext) -> None:
        """Create and fill pgbench's tables, or copy one's own database, then force everything to the device."""
        if is_own(dataset.levels):
            _copy_database(context)
            return
        if dataset.levels.text(FILLER) == RANDOM:
            _initialise(dataset, context, "--init-steps=dt")
            with cluster_of(context).client_session() as session:
                load_random(session, dataset.levels.integer("scale") or 1, context.seed)
            _initialise(dataset, context, "--init-steps=vp")
            with cluster_of(context).client_session() as session:
                demand_random(session)
        else:
            _initialise(dataset, context)
        _checkpoint(context)

    def run(self, spec: RunSpec, context: VisitContext, directory: Path) -> RunRecord:
        """A CHECKPOINT, the warm-up, the measurement; probes beside both."""
        recording = ClientRecording(spec, context, directory)
        return recording.run_steps(_PgbenchRun(recording).measure)


def _initialise(dataset: Dataset, context: VisitContext, *init_steps: str) -> None:
    """Pgbench's own initialisation; of some of its steps where they are named."""
    scale = dataset.levels.integer("scale") or 1
    connection = cluster_of(context).connection.of_client
    try:
        context.commands.run(
            [
                str(connection.program("pgbench")),
                "--initialize",
                "--quiet",
                f"--scale={scale}",
                *init_steps,
                *_fillfactor(dataset),
                *connection.options(),
            ],
            confinement=connection.restriction(),
            timeout_s=600 + _LOAD_LIMIT_S_PER_SCALE * scale,
        )
    except CommandFailed as error:
        # pgbench only says that its connection failed; the cause is the server's to tell.
        raise BedplateError(*why_the_server_is_gone(context), *reasons_of(error)) from error


def _copy_database(context: VisitContext) -> None:
    """Put a copy of the restored database that fits this cluster, or of a data directory, in the place of the empty one."""
    cluster, levels = cluster_of(context), context.dataset.levels
    layout = ClusterLayout(cluster.build, context.request.cell.cluster.data_checksums)
    found = context.inputs.get(COPY if COPY in levels else layout.key)
    if found is None:
        raise BedplateError(
            f"the request names no database to be copied for {levels.get(DUMP) or levels.get(COPY)}"
        )
    data = Path(found)
    demand_unchanged(data, levels)
    needed, free = size_of(data), shutil.disk_usage(context.mount_point).free
    if needed > free:
        raise BedplateError(
            f"the database has {format_size(needed)}, and the file system {format_size(free)} free; a larger image_size gives it room"
        )
    cluster.take_over(data, database=levels.text(DATABASE))
    # A server that was started on them meanwhile wrote while they were read.
    demand_unchanged(data, levels)
    if context.request.cell.device.memory_bytes is not None:
        # Pages belong to the group that first touched them; the copy was made outside.
        drop_page_cache()
    _checkpoint(context)


def _checkpoint(context: VisitContext) -> None:
    with cluster_of(context).session() as session:
        session.execute("CHECKPOINT")


@dataclass(frozen=True)
class _Settings:
    """The levels of a run, with pgbench's own defaults where the plan is silent."""

    script: str
    clients: int
    jobs: int
    duration_s: float
    warmup_s: float
    until_steady: bool
    rate_tps: float | None

    @classmethod
    def of(cls, spec: RunSpec) -> _Settings:
        levels = spec.levels
        clients = levels.integer("clients") or 1
        return cls(
            script=levels.text("script") or READ_WRITE,
            clients=clients,
            jobs=levels.integer("jobs") or 1,
            duration_s=levels.number("duration_s") or _DEFAULT_DURATION_S,
            warmup_s=levels.number("warmup_s") or 0.0,
            until_steady=levels.text("warmup") == "until steady",
            rate_tps=levels.number("rate_tps"),
        )


class _PgbenchRun:
    """One run under way."""

    def __init__(self, recording: ClientRecording) -> None:
        self._recording = recording
        self._spec = recording.spec
        self._context = context = recording.context
        self._settings = _Settings.of(recording.spec)
        levels = context.dataset.levels
        self._is_own_database = is_own(levels)
        facts: dict[str, Scalar | None] = {
            "script": self._settings.script,
            "clients": self._settings.clients,
            "jobs": self._settings.jobs,
            "duration_s_asked": self._settings.duration_s,
            "block_size_bytes": cluster_of(context).build.block_size_bytes,
            "scale": None if self._is_own_database else levels.integer("scale") or 1,
            "scale_asked": levels.text("scale_asked"),
            FILLER: levels.text(FILLER),
            "rate_tps": self._settings.rate_tps,
        }
        recording.facts |= {name: value for name, value in facts.items() if value is not None}
        self._detector = SteadyDetector()
        self._stopped = False
        self._last_reads: float | None = None

    def measure(self) -> None:
        """The run itself; raises what stops it, after the probes have been stopped."""
        recording, settings = self._recording, self._settings
        with cluster_of(self._context).session() as session:
            unlogged_before = unlogged_writes(session)
            with recording.watched(session, on_sample=self._watch_reads):
                if settings.until_steady or settings.warmup_s > 0:
                    with recording.warm_up():
                        self._follow(WARMUP, settings.warmup_s)
                with recording.timed_phase(MEASURE):
                    self._follow(MEASURE, settings.duration_s)
            counters = recording.last_counters
            recording.facts |= commit_facts(
                self._context,
                before=counters.before,
                after=counters.after,
                clients=settings.clients,
                scripts=scripts_of(self._spec.levels),
                unlogged_before=unlogged_before,
            )

    def _follow(self, phase: str, duration_s: float) -> None:
        ends_early = phase == WARMUP and self._settings.until_steady
        ended = self._recording.follow(
            phase,
            duration_s,
            lambda log_prefix: self._client(phase, duration_s, log_prefix),
            on_second=self._stop_when_steady if ends_early else None,
        )
        self._recording.facts[f"{phase}_pgbench_status"] = ended.status
        if phase == WARMUP:
            early = "steady" if self._stopped else "limit"
            self._recording.facts["warmup_ended"] = early if ends_early else "fixed"
        self._recording.demand(_explained(ended, self._spec.levels.text("protocol")))

    def _client(self, phase: str, duration_s: float, log_prefix: Path) -> LoggedClient:
        context, directory = self._context, self._recording.directory
        # A rate is a question about latency under load; the warm-up goes at full speed.
        rate_tps = self._settings.rate_tps if phase == MEASURE else None
        # A rate adds the schedule lag to every line of the log; the reader must know.
        log_reader = (
            context.native_drivers["pgbench_log"],
            *(() if rate_tps is None else ("--schedule-lag",)),
        )
        return LoggedClient(
            argv=pgbench_options(
                self._spec,
                context,
                duration_s=duration_s,
                # Another seed for the measurement: else it would repeat the warm-up's rows.
                seed=context.seed + (phase == MEASURE),
                log_prefix=log_prefix,
                rate_tps=rate_tps,
            ),
            # Its scripts lie beside its log.
            restriction=cluster_of(context).connection.restriction(
                writable=(log_prefix.parent,), readable=(context.log_directory,)
            ),
            log_reader=log_reader,
            log_prefix=log_prefix,
            condensed=directory / f"{phase}.bin",
            output=directory / "logs" / ("pgbench" if phase == MEASURE else phase),
            kept_of_errors=without_data if self._is_own_database else str,
        )

    def _stop_when_steady(self, logged_client: LoggedClient, last_second: SecondSeen) -> None:
        if not self._stopped:
            self._detector.add_second(last_second.transactions)
            if self._detector.steady:
                # pgbench's own alarm for the end of its time (pgbench.c, handle_sig_alarm).
                logged_client.stop_early(signal.SIGALRM)
                self._stopped = True

    def _watch_reads(self, sample: Sample) -> None:
        reads = sample.values.get("device.reads")
        if reads is not None and self._last_reads is not None:
            self._detector.add_reads(reads - self._last_reads)
        self._last_reads = reads


def _explained(failure: ClientEnded, protocol: str | None) -> ClientEnded:
    """With the way out where the server refused what a protocol makes of variables."""
    if protocol in (None, SIMPLE) or not _PARAMETERS_REFUSED.search(failure.said):
        return failure
    why = f'it ran with protocol = "{protocol}", where variables are parameters of statements'
    return replace(failure, problem=f"{failure.problem}; {why}; {WAY_OUT}")


def pgbench_options(
    spec: RunSpec,
    context: VisitContext,
    *,
    duration_s: float,
    seed: int,
    log_prefix: Path | None = None,
    rate_tps: float | None = None,
) -> list[str]:
    """The argument list of a run; without `log_prefix` nothing is logged (the bare benchmark)."""
    settings = _Settings.of(spec)
    connection = cluster_of(context).connection.of_client
    protocol = spec.levels.text("protocol")
    return [
        str(connection.program("pgbench")),
        "--no-vacuum",
        f"--client={settings.clients}",
        f"--jobs={settings.jobs}",
        f"--time={max(1, round(duration_s))}",
        f"--random-seed={seed % 2**31}",
        *(() if log_prefix is None else ("--log", f"--log-prefix={log_prefix}")),
        *(() if protocol is None else (f"--protocol={protocol}",)),
        *(() if rate_tps is None else (f"--rate={rate_tps:g}",)),
        *_script_options(spec, context),
        *connection.options(),
    ]


def _script_options(spec: RunSpec, context: VisitContext) -> Iterator[str]:
    scripts = scripts_of(spec.levels)
    # pgbench finds the scale of its own scripts only; an own script's :scale would be 1.
    if any(script.text is not None for script in scripts) and not is_own(context.dataset.levels):
        yield f"--scale={context.dataset.levels.integer('scale') or 1}"
    yield from (f"--define={name}={value}" for name, value in variables_of(spec.levels).items())
    for number, script in enumerate(scripts, start=1):
        weight = f"@{script.weight}" if len(scripts) > 1 else ""
        built_in = BUILT_IN.get(script.name)
        if script.text is None and built_in is not None:
            yield f"--builtin={built_in.option}{weight}"
            continue
        if script.text is None:
            raise BedplateError(f"the script {script.name!r} has no text")
        # A request may come from a study that somebody else wrote, and no plan.
        if problems := read_script(script.text).problems:
            raise BedplateError(*(f"script {script.name}: {problem}" for problem in problems))
        path = context.log_directory / f"{spec.id}-{number}.sql"
        path.write_text(script.text, encoding="utf-8")
        path.chmod(0o644)
        yield f"--file={path}{weight}"


def _fillfactor(dataset: Dataset) -> list[str]:
    fillfactor = dataset.levels.integer("fillfactor")
    return [] if fillfactor is None else [f"--fillfactor={fillfactor}"]


RUN: Workload = Pgbench()
