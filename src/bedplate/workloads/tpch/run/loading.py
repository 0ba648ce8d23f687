"""Filling the database: tables, primary keys, foreign keys, indexes, statistics, a CHECKPOINT; each timed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.server import cluster_of
from bedplate.errors import BedplateError
from bedplate.model.visit import TimedItem
from bedplate.visit.piped_session import SessionFailed
from bedplate.workloads.tpch.model import LOAD_PHASES, WORKLOAD
from bedplate.workloads.tpch.run.asking import session_for_queries
from bedplate.workloads.tpch.run.schema import (
    STATISTICS_TARGET,
    TABLES,
    create_tables,
    foreign_keys,
    indexes,
    load_statements,
    primary_keys,
    row_count,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.engines.postgresql.session import Session
    from bedplate.workloads.tpch.run.recording import TpchRecording
    from bedplate.workloads.tpch.run.schema import Statement

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
    recording.tell("reading", "the CSV files", done=0, of=_STATEMENTS)
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
        self._recording.tell(phase, item, done=self._done, of=_STATEMENTS)


def copy_command(statement: Statement, path: Path) -> str:
    """A COPY from standard input as psql's own command, so that the client reads the file.

    BedplateError for a path with a line break, which no quotes can hold.
    """
    text = str(path)
    if "\n" in text or "\r" in text:
        raise BedplateError(f"{text!r} holds a line break; psql cannot name such a file")
    quoted = text.replace("'", "''")
    return "\\" + statement.sql.replace(" from stdin ", f" from '{quoted}' ", 1)
