"""A PostgreSQL that is played: TPC-H runs on it say what they would say to a real one."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self, cast

from bedplate.model.cell import Dataset, RunSpec
from bedplate.model.levels import Levels
from bedplate.model.visit import RunRecord
from bedplate.visit.recording import VisitContext, workload_for
from bedplate.visit.server import ServerFailed, SessionFailed
from bedplate.workloads.tpch.model import QUERY_NUMBERS
from bedplate.workloads.tpch.queries import SHAPES, TABLES, ColumnKind, drawn_query, validation_query
from bedplate.workloads.tpch.visit import csv_rows

Rows = list[list[str | None]]
Answer = Callable[[str], Rows]

STOPPED = "ERROR:  canceling statement due to statement timeout"
PLAN = json.dumps([{"Plan": {"Node Type": "Seq Scan", "Relation Name": "lineitem"}}], indent=2)
SMALL = 0.001


class Server:
    """What all sessions say stands in `said`, in order; `answer` may be replaced to fail or to wait."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.alive = True
        self.sessions: list[Session] = []
        self.answer: Answer = usual_answer
        self.build = SimpleNamespace(version="18.6", block_size_bytes=8192)

    def session(self, *, readable: tuple[Path, ...] = ()) -> Session:
        assert all(folder.is_dir() for folder in readable)
        self.sessions.append(Session(self, 1000 + len(self.sessions)))
        return self.sessions[-1]

    def check_alive(self) -> None:
        if not self.alive:
            raise ServerFailed("the server died (status -9): its last words")

    @property
    def lacks_room(self) -> bool:
        return False

    def queries(self) -> list[str]:
        return [
            text for text in self.said if text.split()[0].lower() in ("select", "with") and "pg_" not in text
        ]


class Session:
    def __init__(self, server: Server, pid: int) -> None:
        self.server = server
        self.pid = pid
        self.abandoned = threading.Event()
        self.closed = False
        self.copied = 0

    def rows(self, statement: str, *, timeout_s: float = 60.0) -> Rows:
        assert timeout_s > 0
        assert not self.closed
        if statement.startswith(("PREPARE", "EXECUTE")):
            return [["xact_commit", "1"], ["temp_bytes", "0"]] if statement.startswith("EXECUTE") else []
        self.server.said.append(statement)
        found = self.server.answer(statement)
        if statement.startswith("\\copy"):
            self.copied = csv_rows(Path(statement.split("'")[1]))
        return [[str(self.copied)]] if statement == "SELECT :ROW_COUNT" else found

    def execute(self, statement: str, *, timeout_s: float = 3600.0) -> None:
        self.rows(statement, timeout_s=timeout_s)

    def value(self, statement: str, *, timeout_s: float = 60.0) -> str:
        value = self.rows(statement, timeout_s=timeout_s)[0][0]
        assert value is not None
        return value

    def abandon(self) -> None:
        self.abandoned.set()

    def close(self) -> None:
        self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def usual_answer(statement: str) -> Rows:
    if statement.startswith("EXPLAIN"):
        return [[line] for line in PLAN.splitlines()]
    if "pg_settings" in statement:
        return [["jit", "off"], ["server_version", "18.6"]]
    if statement.startswith("SELECT") and "pg_" in statement:
        return [["4096"]]
    query = QUERY_OF.get(statement)
    return [] if query is None else plausible_rows(query)


def plausible_rows(query: int) -> Rows:
    return [["x" if kind is ColumnKind.TEXT else str(query) for kind in SHAPES[query].columns]]


QUERY_OF = {validation_query(query, scale): query for query in QUERY_NUMBERS for scale in (SMALL, 1)}


class Play:
    """A rig around a played server, and the runs on it."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.server = Server()
        self.events: list[Mapping[str, Any]] = []
        self.expected_answers: dict[str, str] = {}
        self.answer_sources: dict[str, str] = {}
        self.inputs: dict[str, str] = {"tpch": str(base / "data")}
        self.scale_factor = SMALL
        self.cold = 0
        self.directory = base / "run"
        (self.directory / "logs").mkdir(parents=True)

    def make_cold(self) -> None:
        assert all(session.closed for session in self.server.sessions)
        self.cold += 1

    def run(self, kind: str, **levels: Any) -> RunRecord:
        context = SimpleNamespace(
            dataset=Dataset("tpch", Levels(scale_factor=self.scale_factor)),
            memory_bytes=2**30,
            mount_point=self.base,
            data_directory=self.base,
            probes=(),
            emit=self.events.append,
            server=self.server,
            inputs=self.inputs,
            expected_answers=self.expected_answers,
            answer_sources=self.answer_sources,
            make_cold=self.make_cold,
        )
        spec = RunSpec(kind, "tpch", Levels({"kind": kind, **levels}))
        return workload_for("tpch").run(spec, cast("VisitContext", context), self.directory)

    def power(self, kind: str = "warm", **levels: Any) -> RunRecord:
        asked = {"pass": kind, "pass_number": 1, "parameters": "validation", **levels}
        return self.run("power", **asked)

    def write_data(self, rows: Mapping[str, int] | None = None) -> None:
        """Files of the right length whose lines nobody reads."""
        counts = {
            name: int(table.rows * SMALL) if table.scaled else table.rows for name, table in TABLES.items()
        }
        (self.base / "data").mkdir(exist_ok=True)
        for name, count in {**counts, **(rows or {})}.items():
            (self.base / "data" / f"{name}.csv").write_text("header\n" + "1\n" * count)


def failing_at(part: str, words: str = "ERROR:  out of luck") -> Answer:
    def answer(statement: str) -> Rows:
        if part in statement:
            raise SessionFailed(f"{statement:.120}: {words}")
        return usual_answer(statement)

    return answer


def stopping(slow: set[str]) -> Answer:
    def answer(statement: str) -> Rows:
        if statement in slow:
            raise SessionFailed(f"{statement:.120}: {STOPPED}", message=STOPPED)
        return usual_answer(statement)

    return answer


def drawn_answer(*, seed: int, streams: tuple[int, ...]) -> Answer:
    known = {
        drawn_query(query, SMALL, seed=seed, stream=stream): query
        for query in QUERY_NUMBERS
        for stream in streams
    }

    def answer(statement: str) -> Rows:
        query = known.get(statement)
        return usual_answer(statement) if query is None else plausible_rows(query)

    return answer
