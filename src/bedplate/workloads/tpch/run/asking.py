"""One query of TPC-H: what is asked, and asking it in a session against the clock."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError
from bedplate.visit.piped_session import SessionFailed
from bedplate.workloads.tpch.model import DRAWN
from bedplate.workloads.tpch.run.queries import drawn_query, query_order, validation_query
from bedplate.workloads.tpch.run.schema import exact_scale_factor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bedplate.engines.postgresql.cluster import Cluster
    from bedplate.engines.postgresql.session import Session
    from bedplate.model.cell import RunSpec

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


def ask(session: Session, question: QueryCall, limit_s: float | None) -> QueryAnswer:
    """Ask and wait for every row. A timeout is a result; anything else that goes wrong is QueryFailed."""
    timeout_s = _WITHOUT_TIMEOUT_S
    if limit_s is not None:
        timeout_s = limit_s + _GRACE_S
        # Zero would be no limit at all.
        session.execute(f"SET statement_timeout = {max(1, round(limit_s * 1000))}", timeout_s=60)
    rows: list[list[str | None]] | None
    sent_s = time.monotonic()
    try:
        rows = session.rows(question.sql, timeout_s=timeout_s)
    except SessionFailed as error:
        if limit_s is None or not _was_stopped(error):
            name = f"query {question.query}" + (f" of stream {question.stream}" if question.stream else "")
            words = (f"{name}: {' '.join(reason.split())}" for reason in error.reasons)
            raise QueryFailed(*words, said=error.said) from error
        rows = None
    received_s = time.monotonic()
    if limit_s is not None:
        _lift_limit(session)
    return QueryAnswer(question, sent_s, received_s, rows)


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
