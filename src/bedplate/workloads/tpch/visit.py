"""TPC-H: its schema, its 22 queries, their parameters and order, what a right answer is, and the runs.

Clauses cited here are those of the TPC-H specification, revision 3. What bedplate does with them is not
an audited TPC-H benchmark and its figures are no TPC-H results.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from bedplate.engines.postgresql.visit import Cluster, PostgresqlProbe, Session, cluster_of
from bedplate.errors import BedplateError
from bedplate.model import codec
from bedplate.model.cell import RunSpec
from bedplate.model.plan import COLD
from bedplate.model.visit import RunRecord, TimedItem
from bedplate.probe.kernel import ProcessProbe
from bedplate.visit.recording import Recording, VisitContext, Workload
from bedplate.visit.server import SessionFailed
from bedplate.workloads.tpch.model import (
    DRAWN,
    LOAD,
    LOAD_PHASES,
    POWER,
    QUERIES,
    QUERY_NUMBERS,
    THROUGHPUT,
    WORKLOAD,
    query_phase,
)
from bedplate.workloads.tpch.queries import (
    STATISTICS_TARGET,
    TABLES,
    Statement,
    check_answers,
    create_tables,
    drawn_query,
    exact_scale_factor,
    foreign_keys,
    indexes,
    item_place,
    load_statements,
    primary_keys,
    query_order,
    row_count,
    validation_query,
)
from bedplate.workloads.tpch.query_plan import ANALYZE_TARGET, PLANS_FILE, QueryPlan, QueryPlans, plan_hash

# What the server says of a query that its own clock has stopped (src/backend/tcop/postgres.c, ProcessInterrupts). The
# clock sends a signal. Where it comes after the end of its statement, the next one is stopped with the second sentence.
_STOPPED = ("canceling statement due to statement timeout", "canceling statement due to user request")

# For the server to give up after its clock has said so, on a device that is slow.
_GRACE_S = 600.0

# A query without a timeout may take what it takes; this only ends a connection that is dead.
_WITHOUT_TIMEOUT_S = 7 * 24 * 3600.0

_LIFTS = 100


class QueryFailed(SessionFailed):
    """A query got no answer, for another reason than its timeout."""

    code = "query-failed"


@dataclass(frozen=True)
class QueryCall:
    """One query with its parameters. `key` names in words what is asked: equal keys have equal answers.

    `stream` is 0 in a power run; streams of a throughput run count from 1.
    """

    query: int
    stream: int
    sql: str
    key: str


@dataclass(frozen=True)
class QueryAnswer:
    """A question that was asked; `rows` is None where it was stopped at its limit.

    `sent_s` and `received_s` are of the monotonic clock.
    """

    question: QueryCall
    sent_s: float
    received_s: float
    rows: list[list[str | None]] | None

    @property
    def seconds(self) -> float:
        """From the query's sending to its last row."""
        return self.received_s - self.sent_s


def questions(spec: RunSpec, scale_factor: float, *, stream: int) -> tuple[QueryCall, ...]:
    """All queries of a stream in their order, with the parameters that the run's levels ask for."""
    return tuple(_question(spec, scale_factor, query, stream) for query in query_order(stream))


def limit_of(spec: RunSpec) -> float | None:
    """The timeout of a run's queries in seconds; None if there is none."""
    return spec.levels.number("query_timeout_s")


@contextlib.contextmanager
def session_for_queries(cluster: Cluster, *, readable: tuple[Path, ...] = ()) -> Iterator[Session]:
    """A session that an error or an interruption ends at once: a psql with a query under way heeds nobody."""
    session = cluster.session(readable=readable)
    try:
        yield session
    except BaseException:
        session.abandon()
        raise
    finally:
        session.close()


def ask(session: Session, call: QueryCall, limit_s: float | None) -> QueryAnswer:
    """Ask and wait for every row. A timeout is a result; anything else that goes wrong is QueryFailed."""
    timeout_s = _WITHOUT_TIMEOUT_S
    if limit_s is not None:
        timeout_s = limit_s + _GRACE_S
        # Zero would be no limit at all.
        session.execute(f"SET statement_timeout = {max(1, round(limit_s * 1000))}", timeout_s=60)
    rows: list[list[str | None]] | None
    sent_s = time.monotonic()
    try:
        rows = session.rows(call.sql, timeout_s=timeout_s)
    except SessionFailed as error:
        if limit_s is None or not _was_stopped(error):
            name = f"query {call.query}" + (f" of stream {call.stream}" if call.stream else "")
            words = (f"{name}: {' '.join(reason.split())}" for reason in error.reasons)
            raise QueryFailed(*words, message=error.said) from error
        rows = None
    received_s = time.monotonic()
    if limit_s is not None:
        _lift_limit(session)
    return QueryAnswer(call, sent_s, received_s, rows)


def _lift_limit(session: Session) -> None:
    """What follows a query (its plan, its counters) has no limit.

    Twice: the first statement still has the limit, and where its clock rings behind its end, it stops what comes next.
    """
    for _ in range(2):
        _insist(session, "SET statement_timeout = 0")


def _insist(session: Session, statement: str) -> None:
    """Said again as long as a limit stops it; SessionFailed where it always does."""
    for _ in range(_LIFTS):
        try:
            session.execute(statement, timeout_s=60)
        except SessionFailed as error:
            if not _was_stopped(error):
                raise
        else:
            return
    raise SessionFailed(
        f"the statement_timeout stopped its own end {_LIFTS} times; ask for a longer query_timeout"
    )


def _was_stopped(error: SessionFailed) -> bool:
    return any(words in error.said for words in _STOPPED)


def _question(spec: RunSpec, scale_factor: float, query: int, stream: int) -> QueryCall:
    scale = f"TPC-H, scale factor {exact_scale_factor(scale_factor).normalize():f}"
    if spec.levels.text("parameters") != DRAWN:
        sql = validation_query(query, scale_factor)
        return QueryCall(query, stream, sql, f"{scale}, validation parameters, query {query}")
    seed = spec.levels.integer("parameter_seed")
    if seed is None:
        raise BedplateError(f"run {spec.name}: parameters are drawn, but from which seed is not said")
    sql = drawn_query(query, scale_factor, seed=seed, stream=stream)
    return QueryCall(query, stream, sql, f"{scale}, seed {seed}, stream {stream}, query {query}")


_LOAD, _PRIMARY_KEYS, _FOREIGN_KEYS, _INDEXES, _ANALYZE, _CHECKPOINT = LOAD_PHASES

# An autovacuum in the middle of a pass would disturb it, and its own ANALYZE would change plans.
_WITHOUT_AUTOVACUUM = " with (autovacuum_enabled = off)"

_ADDED: Mapping[str, tuple[Statement, ...]] = {
    _PRIMARY_KEYS: primary_keys(),
    _FOREIGN_KEYS: foreign_keys(),
    _INDEXES: indexes(),
}

_STATEMENTS = len(TABLES) + sum(map(len, _ADDED.values())) + len((_ANALYZE, _CHECKPOINT))

# Bounded, not timed out by accident: an hour for each unit of scale is a very slow disk.
_LIMIT_S_PER_SCALE = 3600.0

_CHUNK_BYTES = 1 << 20


def load(recording: TpchRecording) -> None:
    """Load everything from the CSV files of `context.inputs`; raises what stops it."""
    folder = recording.context.inputs.get(WORKLOAD)
    if folder is None:
        raise BedplateError(
            f"the visit was given no data for {WORKLOAD}: its inputs name no folder of CSV files"
        )
    files = csv_files(Path(folder))
    # It also brings into memory what the files' own disk would otherwise have to give during the load.
    recording.tell("reading", "the CSV files", position=0, of=_STATEMENTS)
    rows = {name: csv_rows(path) for name, path in files.items()}
    _check_rows(rows, recording.scale_factor)
    with (
        session_for_queries(cluster_of(recording.context), readable=(Path(folder),)) as session,
        recording.watched([session], first_phase=_LOAD),
    ):
        _Loading(recording, session, files, rows).run()


def csv_files(folder: Path) -> dict[str, Path]:
    """The file of each table; BedplateError names every one that is not there."""
    files = {name: folder / f"{name}.csv" for name in TABLES}
    missing = [path for path in files.values() if not path.is_file()]
    if missing:
        raise BedplateError(
            *(f"{path} is missing; make the data again (delete {folder} before)" for path in missing)
        )
    return files


def csv_rows(path: Path) -> int:
    """The lines of a file without its header; BedplateError if it cannot be read.

    TPC-H has no line breaks within values (clause 4.2.2.10's text has none).
    """
    lines, last = 0, b"\n"
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                lines += chunk.count(b"\n")
                last = chunk[-1:]
    except OSError as error:
        raise BedplateError(f"{path} cannot be read: {error.strerror}") from error
    return max(0, lines + (last != b"\n") - 1)


def _check_rows(rows: Mapping[str, int], scale_factor: float) -> None:
    wrong = [
        f"{name}.csv has {rows[name]} rows, and {name} has {right} at scale factor {scale_factor:g};"
        " make the data again"
        for name, table in TABLES.items()
        if (right := row_count(table, scale_factor)) is not None and right != rows[name]
    ]
    if wrong:
        raise BedplateError(*wrong)


class _Loading:
    """The phases of the load in their order, on one session."""

    def __init__(
        self, recording: TpchRecording, session: Session, files: Mapping[str, Path], rows: Mapping[str, int]
    ) -> None:
        self._recording = recording
        self._session = session
        self._files = files
        self._rows = rows
        self._limit_s = _LIMIT_S_PER_SCALE * max(1.0, recording.scale_factor)
        self._done = 0

    def run(self) -> None:
        with self._recording.phase(_LOAD, [self._session]):
            self._load_tables()
        for phase, statements in _ADDED.items():
            with self._recording.phase(phase, [self._session]):
                for statement in statements:
                    self._tell(phase, statement.name)
                    started = time.monotonic()
                    self._execute(statement.sql)
                    self._recording.add(TimedItem(phase, statement.name, time.monotonic() - started))
        with self._recording.phase(_ANALYZE, [self._session]):
            self._tell(_ANALYZE, "")
            self._execute(f"SET default_statistics_target = {STATISTICS_TARGET}")
            self._execute(f"ANALYZE {', '.join(TABLES)}")
        with self._recording.phase(_CHECKPOINT, [self._session]):
            self._tell(_CHECKPOINT, "")
            self._execute("CHECKPOINT")

    def _load_tables(self) -> None:
        for statement in create_tables(self._recording.scale_factor):
            self._execute(statement.sql + _WITHOUT_AUTOVACUUM)
        for statement in load_statements():
            name, path = statement.name, self._files[statement.name]
            self._tell(_LOAD, name)
            started = time.monotonic()
            found = self._load_table(statement, path)
            self._recording.add(TimedItem(_LOAD, name, time.monotonic() - started, facts={"rows": found}))
            if found != self._rows[name]:
                raise BedplateError(
                    f"{name} took {found} rows, and {path} has {self._rows[name]};"
                    " did it change while it was loaded?"
                )

    def _load_table(self, statement: Statement, path: Path) -> int:
        """The rows that COPY took. In one transaction with TRUNCATE, as FREEZE asks and WAL is spared for."""
        self._execute("BEGIN")
        self._execute(f"TRUNCATE {statement.name}")
        # What psql itself has to say, of a file that it cannot read, is no `ERROR:`; a COPY that went well
        # says nothing.
        said = self._session.rows(copy_command(statement, path), timeout_s=self._limit_s)
        if said:
            words = "; ".join(" ".join(word or "" for word in line) for line in said)
            raise SessionFailed(f"{statement.name} cannot be loaded: {words}")
        found = int(self._session.value("SELECT :ROW_COUNT"))
        self._execute("COMMIT")
        return found

    def _execute(self, statement: str) -> None:
        self._session.execute(statement, timeout_s=self._limit_s)

    def _tell(self, phase: str, item: str) -> None:
        self._done += 1
        self._recording.tell(phase, item, position=self._done, of=_STATEMENTS)


def copy_command(statement: Statement, path: Path) -> str:
    """A COPY from standard input as psql's own command, so that the client reads the file.

    BedplateError for a path with a line break, which no quotes can hold.
    """
    text = str(path)
    if "\n" in text or "\r" in text:
        raise BedplateError(f"{text!r} holds a line break; psql cannot name such a file")
    quoted = text.replace("'", "''")
    return "\\" + statement.sql.replace(" from stdin ", f" from '{quoted}' ", 1)


_PLANNING_LIMIT_S = 600.0

# What chooses between plans and may be set; they stand beside the plans, as both are compared.
_SETTINGS = (
    "jit",
    "max_parallel_workers_per_gather",
    "min_parallel_table_scan_size",
    "work_mem",
    "shared_buffers",
    "effective_cache_size",
    "random_page_cost",
    "seq_page_cost",
    "default_statistics_target",
    "server_version",
)


def keep_plans(recording: TpchRecording, session: Session, asked_for: Iterable[QueryCall]) -> None:
    """Write `plans.json`; what several streams ask in the same words is explained once."""
    explained: dict[str, str] = {}
    plans = []
    for question in asked_for:
        if question.sql not in explained:
            lines = session.rows(f"EXPLAIN (FORMAT JSON) {question.sql}", timeout_s=_PLANNING_LIMIT_S)
            explained[question.sql] = "\n".join(word or "" for line in lines for word in line)
        text = explained[question.sql]
        phase, item = item_place(question)
        plans.append(QueryPlan(item, plan_hash(text), text, phase))
        recording.add_facts(phase, item, plan=plans[-1].hash)
    codec.write(recording.directory / PLANS_FILE, QueryPlans(tuple(plans), _settings(session)))


def _settings(session: Session) -> dict[str, str]:
    """Those above, and every `enable_…` that somebody has changed; ANALYZE had a target of its own."""
    names = ", ".join(f"'{name}'" for name in _SETTINGS)
    shown = session.rows(
        f"SELECT name, current_setting(name) FROM pg_settings WHERE name IN ({names}) "  # noqa: S608
        "OR (starts_with(name, 'enable_') AND setting <> boot_val)"
    )
    return {**{str(name): str(value) for name, value in shown}, ANALYZE_TARGET: str(STATISTICS_TARGET)}


_STREAM = 0


def run_power(recording: TpchRecording) -> None:
    """Ask every query, look at every plan, check every answer; raises what stops it."""
    if recording.spec.levels.text("pass") == COLD:
        recording.context.make_cold()
        recording.facts["made_cold"] = True
    asked_for = questions(recording.spec, recording.scale_factor, stream=_STREAM)
    limit_s = limit_of(recording.spec)
    asked: list[QueryAnswer] = []
    with session_for_queries(cluster_of(recording.context)) as session:
        with recording.watched([session], first_phase=query_phase(asked_for[0].query)):
            for done, question in enumerate(asked_for, start=1):
                recording.tell(QUERIES, str(question.query), position=done, of=len(asked_for))
                with recording.phase(query_phase(question.query), [session]):
                    asked.append(ask(session, question, limit_s))
                recording.add(timed(asked[-1], limit_s))
        keep_plans(recording, session, asked_for)
    check_answers(recording, asked)


def timed(query_answer: QueryAnswer, limit_s: float | None) -> TimedItem:
    """The item of a query; one that was stopped has its limit in place of its seconds."""
    phase, item = item_place(query_answer.question)
    if query_answer.rows is None:
        return TimedItem(phase, item, None, limit_s)
    return TimedItem(phase, item, query_answer.seconds, facts={"rows": len(query_answer.rows)})


# A session keeps its counters to itself for up to ten seconds (pgstat.c, PGSTAT_IDLE_INTERVAL); asked so, it
# has handed them over when this statement has ended.
_HAND_OVER_COUNTERS = "SELECT pg_stat_force_next_flush()"


class TpchRecording(Recording):
    """What a run has recorded so far; `watched` frames the measuring, `phase` each part of it."""

    def __init__(self, spec: RunSpec, context: VisitContext, directory: Path) -> None:
        super().__init__(spec, context, directory)
        self.scale_factor = _scale_factor(context)
        self.facts["scale_factor"] = self.scale_factor
        self.facts["block_size_bytes"] = cluster_of(context).build.block_size_bytes

    @contextlib.contextmanager
    def watched(self, sessions: Sequence[Session], *, first_phase: str) -> Iterator[None]:
        """Probes beside the run, once a second and at the ends of its phases; `sessions` are its clients."""
        with cluster_of(self.context).session() as watching:
            pids = [session.pid for session in sessions]
            probes = (
                PostgresqlProbe(watching, cluster_of(self.context).build.version),
                ProcessProbe("client", lambda: pids),
                ProcessProbe("watching", lambda: (os.getpid(), watching.pid)),
            )
            with self.sampled(probes, first_phase=first_phase):
                yield
            self._read_sizes(watching)

    def phase(self, name: str, sessions: Sequence[Session]) -> AbstractContextManager[None]:
        """One phase: its clocks, and the counters just before and after it."""

        def hand_over() -> None:
            for session in sessions:
                session.execute(_HAND_OVER_COUNTERS, timeout_s=60)

        return self.timed_phase(name, hand_over)

    def _read_sizes(self, session: Session) -> None:
        cluster_of(self.context).check_alive()
        self.facts["database_bytes"] = int(session.value("SELECT pg_database_size(current_database())"))
        self.facts["wal_bytes_on_disk"] = int(
            session.value("SELECT coalesce(sum(size), 0)::bigint FROM pg_ls_waldir()")
        )


def _scale_factor(context: VisitContext) -> float:
    scale_factor = context.dataset.levels.number("scale_factor")
    if scale_factor is None:
        raise BedplateError("the dataset names no scale_factor, so there is nothing to load and to ask")
    return scale_factor


def run_throughput(recording: TpchRecording) -> None:
    """Let all streams run at once, then look at every plan and check every answer.

    Raises what stopped the first that was stopped.
    """
    count = recording.spec.levels.integer("streams")
    if count is None or count < 1:
        raise BedplateError(
            f"run {recording.spec.name}: it takes one stream or more, and the plan says {count}"
        )
    limit_s = limit_of(recording.spec)
    numbers = range(1, count + 1)
    asked_for = [questions(recording.spec, recording.scale_factor, stream=number) for number in numbers]
    recording.facts["streams"] = count
    with ExitStack() as stack:
        sessions = [stack.enter_context(session_for_queries(cluster_of(recording.context))) for _ in numbers]
        streams = _Streams(recording, sessions, asked_for, limit_s)
        with recording.watched(sessions, first_phase=THROUGHPUT):
            try:
                with recording.phase(THROUGHPUT, sessions):
                    streams.run()
            finally:
                for one in streams.answers:
                    recording.add(timed(one, limit_s))
        keep_plans(recording, sessions[0], (question for stream in asked_for for question in stream))
    recording.facts["streams_s"] = max(one.received_s for one in streams.answers) - min(
        one.sent_s for one in streams.answers
    )
    check_answers(recording, streams.answers)


# How long an interruption waits for a stream whose session was abandoned.
_END_S = 10.0


class _Streams:
    """One thread for each stream; they wait for one another before the first query."""

    def __init__(
        self,
        recording: TpchRecording,
        sessions: Sequence[Session],
        asked_for: Sequence[Sequence[QueryCall]],
        limit_s: float | None,
    ) -> None:
        self._recording = recording
        self._sessions = sessions
        self._asked_for = asked_for
        self._limit_s = limit_s
        self._start = threading.Barrier(len(sessions))
        self._stopped = threading.Event()
        self._counting = threading.Lock()
        self._begun = 0
        self._asked: list[list[QueryAnswer]] = [[] for _ in sessions]

    @property
    def answers(self) -> list[QueryAnswer]:
        """What was asked, stream by stream."""
        return [one for stream in self._asked for one in stream]

    def run(self) -> None:
        """Until all have ended. One that fails lets the others end with the query they are at."""
        # Not futures: a signal that comes while their locks are taken leaves these taken, and the streams wait for them for ever.
        ended: SimpleQueue[BaseException | None] = SimpleQueue()
        threads = [
            threading.Thread(
                target=self._end_stream, args=(place, ended), name=f"stream-{place}", daemon=True
            )
            for place in range(len(self._sessions))
        ]
        try:
            for thread in threads:
                thread.start()
            failures = [ended.get() for _ in threads]
        except BaseException:
            # An interruption: what the threads wait for must end before they can.
            self._stopped.set()
            self._start.abort()
            for session in self._sessions:
                session.abandon()
            for thread in threads:
                if thread.is_alive():
                    thread.join(_END_S)
            raise
        for failure in failures:
            if failure is not None:
                raise failure

    def _end_stream(self, place: int, outcomes: SimpleQueue[BaseException | None]) -> None:
        """A stream, and what it failed of."""
        try:
            self._run_stream(place)
        except BaseException as failure:  # noqa: BLE001 - it is raised where the streams are waited for
            outcomes.put(failure)
        else:
            outcomes.put(None)

    def _run_stream(self, place: int) -> None:
        self._start.wait()
        for question in self._asked_for[place]:
            if self._stopped.is_set():
                return
            self._tell(question)
            try:
                self._asked[place].append(ask(self._sessions[place], question, self._limit_s))
            except BedplateError:
                self._stopped.set()
                raise

    def _tell(self, call: QueryCall) -> None:
        with self._counting:
            self._begun += 1
            of = len(self._sessions) * len(QUERY_NUMBERS)
            self._recording.tell(*item_place(call), position=self._begun, of=of)


_KINDS: Mapping[str, Callable[[TpchRecording], None]] = {
    LOAD: load,
    POWER: run_power,
    THROUGHPUT: run_throughput,
}


class Tpch(Workload):
    """`type = "tpch"` in a plan: the load is timed phase by phase, as a run of its own."""

    name = WORKLOAD
    protocol = "tpch 1"

    def run(self, spec: RunSpec, context: VisitContext, directory: Path) -> RunRecord:
        """The load, one pass over the queries, or all streams, by the level `kind`."""
        recording = TpchRecording(spec, context, directory)
        return recording.run_steps(lambda: _run_of(spec)(recording))


def _run_of(spec: RunSpec) -> Callable[[TpchRecording], None]:
    kind = spec.levels.text("kind") or ""
    if kind not in _KINDS:
        raise BedplateError(f"run {spec.name}: kind {kind!r} is not known; known are {', '.join(_KINDS)}")
    return _KINDS[kind]


RUN: Workload = Tpch()
