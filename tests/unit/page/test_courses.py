from __future__ import annotations

import base64
import json
import math
import re
import zlib
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bedplate.analysis.wording import rounded
from bedplate.errors import StudyError
from bedplate.model.course import COURSE_COLUMNS, SHOWN_COLUMNS
from bedplate.page.document import (
    COARSE,
    FINE,
    PackedData,
    Precision,
    packed,
    packed_course,
    packed_latencies,
    packed_runs,
    precision_for,
)

if TYPE_CHECKING:
    from pathlib import Path


def unpacked(text: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(text)))


def deflated(piece: bytes | None) -> Any:
    assert piece is not None
    return json.loads(zlib.decompress(piece))


def course_of(piece: bytes | None) -> dict[str, Any]:
    """What the page's script makes of a packed course, by the description in page/document.py."""
    assert piece is not None
    content = zlib.decompress(piece)
    start = 4 + int.from_bytes(content[:4], "little")
    head = json.loads(content[4:start])
    n = head["n"]
    made: dict[str, Any] = {"second": head.get("second") or [head["first"] + i for i in range(n)]}
    if "phases" in head:
        made["phases"] = head["phases"]
    for name, low, high, steps, logarithmic in head["columns"]:
        codes = list(content[start : start + n])
        start += n
        if steps > 254:
            codes = [
                code + 256 * upper for code, upper in zip(codes, content[start : start + n], strict=True)
            ]
            start += n
        shares = [None if code == 0 else (code - 1) / steps for code in codes]
        made[name] = [
            None
            if share is None
            else low * (high / low) ** share
            if logarithmic
            else low + share * (high - low)
            for share in shares
        ]
    assert len(content) == start
    return made


def test_absent_seconds_stay_absent_and_empty_columns_go(tmp_path: Path) -> None:
    pl.DataFrame(
        {
            "second": [-1, 0],
            "tps": [None, 1234.567],
            "queue_depth": pl.Series([None, None], dtype=pl.Float64),
            "dirty_mib": [math.nan, math.inf],
        }
    ).write_parquet(tmp_path / "course.parquet")
    assert {"second": [-1, 0], "tps": [None, 1234.567]} == course_of(packed_course(tmp_path))


def test_phases_stand_as_stretches_of_seconds(tmp_path: Path) -> None:
    phases = ["query 14", "query 14", None, "query 2", "query 14"]
    pl.DataFrame(
        {"second": range(5), "phase": phases, "device_read_mib_per_s": [0.0, 2.0, None, 4.0, 0.0]}
    ).write_parquet(tmp_path / "course.parquet")
    assert {
        "second": [0, 1, 2, 3, 4],
        "device_read_mib_per_s": [0, 2, None, 4, 0],
        "phases": [["query 14", 0, 2], ["query 2", 3, 4], ["query 14", 4, 5]],
    } == course_of(packed_course(tmp_path))


def test_a_warmup_and_its_measurement_are_no_phases(tmp_path: Path) -> None:
    pl.DataFrame({"second": [-1, 0], "phase": ["warmup", "measure"], "tps": [0.0, 2.0]}).write_parquet(
        tmp_path / "course.parquet"
    )
    assert {"second": [-1, 0], "tps": [0, 2]} == course_of(packed_course(tmp_path))


def test_seconds_with_a_gap_are_kept_as_they_are(tmp_path: Path) -> None:
    pl.DataFrame({"second": [-1, 0, 7], "tps": [1.0, 0.0, 2.0]}).write_parquet(tmp_path / "course.parquet")
    assert [-1, 0, 7] == course_of(packed_course(tmp_path))["second"]


def test_a_course_of_no_seconds_is_packed_too(tmp_path: Path) -> None:
    pl.DataFrame(schema={"second": pl.Int64, "tps": pl.Float64}).write_parquet(tmp_path / "course.parquet")
    assert {"second": []} == course_of(packed_course(tmp_path))


@pytest.mark.parametrize("precision", [FINE, COARSE])
@given(values=st.lists(st.none() | st.floats(min_value=0, max_value=1e12), min_size=1, max_size=40))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_value_comes_back_within_half_a_step(
    tmp_path: Path, precision: Precision, values: list[float | None]
) -> None:
    columns = {name: pl.Series(values, dtype=pl.Float64) for name in ("tps", "latency_ms_p99", "dirty_mib")}
    pl.DataFrame({"second": range(len(values)), **columns}).write_parquet(tmp_path / "course.parquet")
    found = course_of(packed_course(tmp_path, precision))
    known = [value for value in values if value is not None]
    for name in columns:
        assert (name in found) == bool(known)
        for value, back in zip(values, found.get(name, values), strict=True):
            assert (value is None) == (back is None)
            if value is None or back is None:
                continue
            if name.startswith("latency") and min(known) > 0:
                # Steps of the logarithm, of the column's whole range.
                step = math.log(max(known) / min(known)) / precision.steps(name)
                assert abs(math.log(back) - math.log(value)) <= 0.51 * step + 1e-6
            else:
                assert abs(back - value) <= max(known) * (0.51 / precision.steps(name) + 1e-6)


def test_many_seconds_are_kept_in_a_byte_each() -> None:
    assert FINE == precision_for(24 * 2 * 3 * 600)
    assert COARSE == precision_for(360 * 3 * 600)
    assert max(COARSE.transactions, COARSE.beside) <= 254


def test_runs_keep_their_order_and_those_without_a_folder_their_place(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / str(number)).mkdir()
        pl.DataFrame({"second": [number], "tps": [1.0]}).write_parquet(tmp_path / f"{number}/course.parquet")
    made = packed_runs([None, *(tmp_path / str(number) for number in range(20))], FINE)
    assert (None, None) == made[0]
    assert list(range(20)) == [course_of(course)["second"][0] for course, _ in made[1:]]
    assert all(latencies is None for _, latencies in made)


def test_packed_data_stands_where_it_says() -> None:
    packed_data = PackedData()
    pieces = [b"", b"a", b"some bytes", bytes(range(256))]
    places = [packed_data.put(piece) for piece in pieces]
    assert packed_data.put(None) is None
    found = [base64.b64decode(packed_data.text[first : first + long]) for first, long in filter(None, places)]
    assert pieces == found


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
    assert {"low_ms": [1, 8], "high_ms": [1.1, 9], "count": [5, 4]} == deflated(packed_latencies(tmp_path))


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
    script = (repository / "src/bedplate/page/assets/script/views/courses.js").read_text(encoding="utf-8")
    named = set(re.findall(r"\w+", script))
    # The phase of every second is carried as the stretches of `phases`.
    assert set(SHOWN_COLUMNS) == named & set(COURSE_COLUMNS) - {"phase"}
