"""Tables of somebody's database, as they can be had: a CSV file, a plain `pg_dump`, or an SQLite file, read only."""

from __future__ import annotations

import csv
import io
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from bedplate.imported.published import MOST_TEXT_BYTES, PublishedSource, SourceUnreadable, shown
from bedplate.model.reason import Reason, because, reasons_of

if TYPE_CHECKING:
    Row = Mapping[str, str]

_MOST_ROWS = 1_000_000
_SQLITE = b"SQLite format 3\0"
_COPY = re.compile(r'^COPY (?:\w+\.)?"?(\w+)"? \(([^)]*)\) FROM stdin;$')
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "\\": "\\"}
_ESCAPED = re.compile(r"\\(.)")
# What programs write for a NULL.
_ABSENT = frozenset({"NULL", "[NULL]", "\\N"})
# No name of a column has one. The first line of some spreadsheets' files names the separator: `sep=;`.
_OTHER_SEPARATORS = (
    (";", "semicolons"),
    ("\t", "tabulators"),
    ("sep=", "a separator that its first line names"),
)


def tables_of(
    source: PublishedSource, wanted: Sequence[str], problems: list[Reason]
) -> Mapping[str, tuple[PurePosixPath, list[Row]]]:
    """The rows of each wanted table with the file it was found in, texts by column; a NULL is no entry.

    What cannot be read is a problem. Of two files that have a table the first is taken.
    """
    found: dict[str, tuple[PurePosixPath, list[Row]]] = {}
    for file in source.files:
        try:
            for name, rows in _tables(source, file, wanted):
                found.setdefault(name, (file, rows))
        except SourceUnreadable as error:
            problems += reasons_of(error)
        except (csv.Error, sqlite3.Error) as error:
            problems.append(because("source-unreadable", f"{shown(file)} cannot be read: {error}"))
    return found


def _tables(
    source: PublishedSource, file: PurePosixPath, wanted: Sequence[str]
) -> Iterable[tuple[str, list[Row]]]:
    match file.suffix:
        case ".csv" if file.stem in wanted:
            yield file.stem, _of_csv(source, file)
        case ".sql":
            yield from _of_dump(source.read_text(file), wanted)
        case ".db" | ".sqlite" | ".sqlite3":
            yield from _of_sqlite(source, file, wanted)


def _of_csv(source: PublishedSource, file: PurePosixPath) -> list[Row]:
    """With a line of names, as psql's copy `TO 'tests.csv' CSV HEADER` writes it."""
    rows = list(csv.reader(io.StringIO(source.read_text(file)), strict=True))
    if not rows:
        return []
    names, *values = rows
    between = next((name for mark, name in _OTHER_SEPARATORS if names[:1] and mark in names[0]), None)
    if between is not None:
        raise source.refusal(
            file,
            f"has {between} between its columns, as spreadsheets save it where a number has a comma; save it with commas between columns "
            "and points in numbers",
        )
    return [_row(names, [None if word in _ABSENT else word for word in each]) for each in values if each]


def _of_dump(text: str, wanted: Sequence[str]) -> Iterator[tuple[str, list[Row]]]:
    """The `COPY … FROM stdin` of `pg_dump --data-only`."""
    lines = iter(text.splitlines())
    for line in lines:
        head = _COPY.match(line)
        if head is None:
            continue
        names = [name.strip().strip('"') for name in head[2].split(",")]
        rows = []
        for data in lines:
            if data == "\\.":
                break
            if head[1] in wanted:
                rows.append(
                    _row(names, [None if each == "\\N" else _unescaped(each) for each in data.split("\t")])
                )
        if head[1] in wanted:
            yield head[1], rows


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), text)


def _of_sqlite(
    source: PublishedSource, file: PurePosixPath, wanted: Sequence[str]
) -> Iterator[tuple[str, list[Row]]]:
    data = source.read_bytes(file)
    if not data.startswith(_SQLITE):
        raise source.refusal(file, "is no SQLite file")
    log = file.with_name(f"{file.name}-wal")
    if source.has(log) and source.read_bytes(log):
        raise source.refusal(file, f"has rows in {shown(log.name)}; copy it by `VACUUM INTO` first")
    # A copy in memory: nothing of the source is opened, locked or played back. Written as if no log were beside it, which is so.
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(data[:18] + b"\1\1" + data[20:])
        yield from _rows_of_connection(connection, wanted)


def _rows_of_connection(
    connection: sqlite3.Connection, wanted: Sequence[str]
) -> Iterator[tuple[str, list[Row]]]:
    """Plain tables alone: a view, or a function in a schema, may run without end."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_TEXT_BYTES)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    there = {
        name
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%' AND sql NOT LIKE '%GENERATED%'"
        )
    }
    for name in wanted:
        if name in there:
            cursor = connection.execute(f'SELECT * FROM "{name}"')  # noqa: S608 -- one of our own words
            names = [str(column[0]) for column in cursor.description]
            rows = cursor.fetchmany(_MOST_ROWS)
            yield name, [_row(names, [None if each is None else str(each) for each in row]) for row in rows]


def _row(names: Sequence[str], values: Sequence[str | None]) -> Row:
    return {name: value for name, value in zip(names, values, strict=False) if value is not None}
