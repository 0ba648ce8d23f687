"""A course or the latencies of a run, read back within bounds: a Parquet file of a kilobyte may say that it holds a billion rows.

What a file comes to is in its footer (parquet.thrift of Apache Parquet): that is looked at before any of it is unpacked.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.model.limits import MOST_NAME_CHARACTERS, most_bytes_of
from bedplate.units import MIB

# Unpacked. A course of 24 hours takes 25 MiB. Latencies are read a group of rows at a time: bedplate's groups take 12 MiB, and 24 hours
# with a hundred different latencies in each second are nine million rows.
_WHOLE_BYTES_MOST = _GROUP_BYTES_MOST = 256 * MIB

_ROWS_MOST = 100_000_000

_VALUE_BYTES = 8

_MAGIC = b"PAR1"

_FOOTER_END = struct.Struct("<I4s")

# 16,384 groups of rows of the columns of a course.
_FOOTER_BYTES_MOST = 16 * MIB

_DEPTH_MOST = 16

# Of parquet.thrift: the fields of FileMetaData, RowGroup, ColumnChunk and ColumnMetaData that are read here.
_SCHEMA, _ROWS, _ROW_GROUPS, _COLUMNS, _ROWS_OF_GROUP, _CHUNK_METADATA, _VALUES, _UNPACKED = (
    2,
    3,
    4,
    1,
    3,
    3,
    5,
    6,
)


def read_course(path: Path) -> pl.DataFrame:
    """The whole table; StudyError where it is damaged, no plain file, or comes to more than a run has."""
    with course_scan(path, whole=True) as rows:
        course = rows.collect()
    for name, kind in course.schema.items():
        if kind == pl.String and any(
            len(text or "") > MOST_NAME_CHARACTERS for text in course[name].unique()
        ):
            raise StudyError(
                f"{path} is not read: a text of its column {name:.80} is longer than {MOST_NAME_CHARACTERS:,} characters"
            )
    return course


@contextmanager
def course_scan(path: Path, *, whole: bool = False) -> Iterator[pl.LazyFrame]:
    """Its rows, for a query that takes them a group at a time, or as a `whole`; StudyError likewise, from within too."""
    # By a file: polars knows no path that is no UTF-8.
    with codec.opened(path) as file:
        try:
            size_bytes = os.fstat(file.fileno()).st_size
            if reason := _too_much(file, size_bytes, most_bytes_of(path.name), whole=whole):
                raise StudyError(f"{path} is not read: {reason}")
            file.seek(0)
            yield pl.scan_parquet(file)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, _FooterDamagedError) as error:
            raise StudyError(f"{path} cannot be read: {error}") from error


class _FooterDamagedError(Exception):
    """A file ends in nothing that Parquet's footers are."""


def _too_much(file: BinaryIO, size_bytes: int, most_bytes: int, *, whole: bool) -> str:
    """What is more in it than a run has, as its size and its footer say; empty if nothing is."""
    if size_bytes > most_bytes:
        return f"it has {size_bytes:,} bytes, and such a file has at most {most_bytes:,}"
    footer = _Compact(_footer(file, size_bytes)).struct()
    try:
        groups = footer[_ROW_GROUPS]
        rows = footer[_ROWS]
        # polars believes the one and unpacks the other.
        if rows != sum(group[_ROWS_OF_GROUP] for group in groups) or any(
            chunk[_CHUNK_METADATA][_VALUES] != group[_ROWS_OF_GROUP]
            for group in groups
            for chunk in group[_COLUMNS]
        ):
            raise _FooterDamagedError("its footer is damaged: it counts its rows in two ways")
        sizes = [sum(map(_unpacked_bytes, group[_COLUMNS])) for group in groups]
        # A column without pages still has its rows.
        whole_bytes = max(sum(sizes), rows * max(1, len(footer[_SCHEMA]) - 1) * _VALUE_BYTES)
    except (KeyError, TypeError) as error:
        raise _FooterDamagedError("its footer is damaged") from error
    if rows > _ROWS_MOST:
        return f"it has {rows:,} rows, and a run has at most {_ROWS_MOST:,}"
    if (largest := max(sizes, default=0)) > _GROUP_BYTES_MOST:
        return f"a group of its rows has {largest:,} bytes unpacked, and at most {_GROUP_BYTES_MOST:,} are read at once"
    if whole and whole_bytes > _WHOLE_BYTES_MOST:
        return f"it has {whole_bytes:,} bytes unpacked, and a run has at most {_WHOLE_BYTES_MOST:,}"
    return ""


def _footer(file: BinaryIO, size_bytes: int) -> bytes:
    file.seek(max(0, size_bytes - _FOOTER_END.size))
    end = file.read(_FOOTER_END.size)
    if len(end) < _FOOTER_END.size or not end.endswith(_MAGIC):
        raise _FooterDamagedError("it is no Parquet file")
    length = _FOOTER_END.unpack(end)[0]
    if length > min(_FOOTER_BYTES_MOST, size_bytes - _FOOTER_END.size):
        raise _FooterDamagedError("its footer is larger than itself")
    file.seek(size_bytes - _FOOTER_END.size - length)
    return file.read(int(length))


def _unpacked_bytes(chunk: dict[int, Any]) -> int:
    """Of a column within a group of rows: its values as they are in memory, or its pages, whatever is more."""
    about = chunk[_CHUNK_METADATA]
    return int(max(about[_VALUES] * _VALUE_BYTES, about[_UNPACKED], 0))


class _Compact:
    """Thrift's compact protocol, as far as footers are written in it: a struct as its fields by their numbers."""

    def __init__(self, data: bytes) -> None:
        self._data = BytesIO(data)

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The fields up to the end of a struct."""
        found: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != 0:
            kind, step = head & 15, head >> 4
            number = number + step if step else self._whole()
            # A flag is in the head itself, 1 or 2.
            found[number] = kind == 1 if kind in (1, 2) else self._value(kind, depth + 1)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEPTH_MOST:
            raise _FooterDamagedError("its footer is nested too deeply")
        if kind in (1, 2, 3):
            return self._byte()
        if kind in (4, 5, 6):
            return self._whole()
        if kind == 7:
            return self._take(8)
        if kind == 8:
            return self._take(self._length())
        if kind in (9, 10):
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._length()
            return [self._struct_or_value(head & 15, depth) for _ in range(count)]
        if kind == 12:
            return self.struct(depth)
        raise _FooterDamagedError("its footer is damaged")

    def _struct_or_value(self, kind: int, depth: int) -> Any:
        return self.struct(depth + 1) if kind == 12 and depth < _DEPTH_MOST else self._value(kind, depth + 1)

    def _byte(self) -> int:
        return self._take(1)[0]

    def _take(self, count: int) -> bytes:
        taken = self._data.read(count)
        if len(taken) < count:
            raise _FooterDamagedError("its footer is cut off")
        return taken

    def _length(self) -> int:
        """An unsigned number of seven bits a byte."""
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise _FooterDamagedError("its footer is damaged")

    def _whole(self) -> int:
        """The same with a sign, in zigzag."""
        value = self._length()
        return (value >> 1) ^ -(value & 1)
