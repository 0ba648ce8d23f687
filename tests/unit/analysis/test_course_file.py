"""A table of a run is read within bounds, whatever its file says that it holds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

from bedplate.analysis import course_file
from bedplate.analysis.course_file import course_scan, read_course
from bedplate.errors import StudyError
from bedplate.units import GIB


def written(path: Path, frame: pl.DataFrame) -> Path:
    frame.write_parquet(path, compression="zstd", statistics=False)
    return path


@pytest.fixture
def course(tmp_path: Path) -> Path:
    seconds = pl.arange(0, 3000, eager=True).alias("second")
    return written(tmp_path / "course.parquet", pl.DataFrame([seconds, (seconds / 7).alias("tps")]))


def test_a_course_is_what_was_written(course: Path) -> None:
    assert (3000, 2) == read_course(course).shape
    with course_scan(course) as rows:
        assert 2999 == rows.select(pl.col("second").max()).collect(engine="streaming").item()


def test_an_empty_course_has_no_rows(tmp_path: Path) -> None:
    path = written(tmp_path / "course.parquet", pl.DataFrame({"second": []}, schema={"second": pl.Int64}))
    assert read_course(path).is_empty()


def test_rows_without_end_in_a_small_file_are_refused_before_they_are_made(tmp_path: Path) -> None:
    path = written(
        tmp_path / "course.parquet",
        pl.DataFrame({f"c{n}": pl.zeros(1_000_000, eager=True) for n in range(36)}),
    )
    assert path.stat().st_size < 100_000
    with pytest.raises(
        StudyError, match=r"course\.parquet is not read: it has 288,[0-9]+,[0-9]+ bytes unpacked"
    ):
        read_course(path)


def test_a_column_of_one_long_text_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "course.parquet", pl.DataFrame({"phase": ["x" * 100_000] * 1000}))
    with pytest.raises(StudyError, match="a text of its column phase is longer"):
        read_course(path)


def test_a_group_of_rows_that_is_too_large_is_not_read_even_in_groups(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(course_file, "_GROUP_BYTES_MOST", 1000)
    with pytest.raises(StudyError, match="a group of its rows has"), course_scan(course):
        pass
    monkeypatch.setattr(course_file, "_ROWS_MOST", 1000)
    with pytest.raises(StudyError, match="it has 3,000 rows"), course_scan(course):
        pass


def test_holes_and_pipes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "course.parquet"
    path.touch()
    os.truncate(path, 20 * GIB)
    with pytest.raises(StudyError, match="is not read: it has 21,474,836,480 bytes"):
        read_course(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StudyError, match="no plain file"):
        read_course(path)


def _damaged(data: bytes) -> Iterator[bytes]:
    """Every byte of the footer as another one, and the file cut off at each of its ends."""
    footer = int.from_bytes(data[-8:-4], "little")
    for at in range(len(data) - 8 - footer, len(data)):
        for byte in (0, 0x9C):
            yield data[:at] + bytes([byte]) + data[at + 1 :]
    yield from (data[:at] for at in range(0, len(data), 97))


def test_a_damaged_footer_is_a_sentence(course: Path, tmp_path: Path) -> None:
    path = tmp_path / "damaged.parquet"
    for data in _damaged(course.read_bytes()):
        path.write_bytes(data)
        with suppress(StudyError):
            assert read_course(path).height <= 100_000_000
