from __future__ import annotations

import base64
import json
import math
import re
import zlib
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.errors import StudyError
from bedplate.model.course import COURSE_COLUMNS, SHOWN_COLUMNS
from bedplate.report.courses import packed, packed_course, packed_latencies, rounded

if TYPE_CHECKING:
    from pathlib import Path


def unpacked(text: str | None) -> Any:
    assert text is not None
    return json.loads(zlib.decompress(base64.b64decode(text)))


def test_absent_seconds_stay_absent_and_empty_columns_go(tmp_path: Path) -> None:
    pl.DataFrame(
        {
            "second": [-1, 0],
            "tps": [None, 1234.567],
            "queue_depth": pl.Series([None, None], dtype=pl.Float64),
            "dirty_mib": [math.nan, math.inf],
        }
    ).write_parquet(tmp_path / "course.parquet")
    assert {
        "second": [-1, 0],
        "tps": [None, 1235],
        "dirty_mib": [None, None],
    } == unpacked(packed_course(tmp_path))


def test_phases_stand_as_stretches_of_seconds(tmp_path: Path) -> None:
    phases = ["query 14", "query 14", None, "query 2", "query 14"]
    pl.DataFrame(
        {"second": range(5), "phase": phases, "device_read_mib_per_s": [1.0, 2.0, None, 4.0, 5.0]}
    ).write_parquet(tmp_path / "course.parquet")
    assert {
        "second": [0, 1, 2, 3, 4],
        "device_read_mib_per_s": [1, 2, None, 4, 5],
        "phases": [["query 14", 0, 2], ["query 2", 3, 4], ["query 14", 4, 5]],
    } == unpacked(packed_course(tmp_path))


def test_a_warmup_and_its_measurement_are_no_phases(tmp_path: Path) -> None:
    pl.DataFrame({"second": [-1, 0], "phase": ["warmup", "measure"], "tps": [1.0, 2.0]}).write_parquet(
        tmp_path / "course.parquet"
    )
    assert {"second": [-1, 0], "tps": [1, 2]} == unpacked(packed_course(tmp_path))


def test_latencies_are_summed_without_the_warmup(tmp_path: Path) -> None:
    pl.DataFrame(
        {
            "phase": ["warmup", "measure", "measure", "measure"],
            "second": [-1, 0, 1, 1],
            "script": [0, 0, 0, 1],
            "latency_us_low": [1000.0, 1000.0, 1000.0, 8000.0],
            "latency_us_high": [1100.0, 1100.0, 1100.0, 9000.0],
            "count": [99, 2, 3, 4],
        }
    ).write_parquet(tmp_path / "latency.parquet")
    assert {"low_ms": [1, 8], "high_ms": [1.1, 9], "count": [5, 4]} == unpacked(packed_latencies(tmp_path))


def test_a_run_without_files_has_neither(tmp_path: Path) -> None:
    assert packed_course(tmp_path) is None
    assert packed_latencies(tmp_path) is None


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "course.parquet").write_bytes(b"PAR1 but no more")
    with pytest.raises(StudyError, match=r"course\.parquet cannot be read"):
        packed_course(tmp_path)


@given(st.floats())
def test_rounding_keeps_four_digits_or_nothing(value: float) -> None:
    short = rounded(value)
    if not math.isfinite(value):
        assert short is None
    else:
        assert short == pytest.approx(value, rel=6e-4, abs=1e-300)


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_what_is_packed_comes_out_again(value: Any) -> None:
    assert value == unpacked(packed(value))


def test_a_page_carries_the_columns_that_its_script_shows_and_no_others(repository: Path) -> None:
    script = (repository / "src/bedplate/report/page/40_courses.js").read_text(encoding="utf-8")
    named = set(re.findall(r"\w+", script))
    # The phase of every second is carried as the stretches of `phases`.
    assert set(SHOWN_COLUMNS) == named & set(COURSE_COLUMNS) - {"phase"}
