from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.planted_reasons import planted
from tests.support.studies.synthetic_microbenchmark import synthetic_microbenchmark
from tests.support.studies.synthetic_study import Recipe, write_study
from tests.support.studies.synthetic_tpch import TpchRecipe, synthetic_tpch_study
from tests.support.tools.read_spreadsheet import Read, read_spreadsheet, values

from bedplate.analysis.overview import Overview, overview
from bedplate.analysis.part_summaries import ranked
from bedplate.errors import PlanError
from bedplate.export import xlsx
from bedplate.export.tables import export
from bedplate.export.workbook import COLUMNS_MAX, choices_of, workbook_of
from bedplate.export.xlsx import write_spreadsheet
from bedplate.statistics.summary import SUSPECT, SummaryKey

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LONG = "r" * 10_000
SMALL = Recipe(
    filesystem_blocks=(None,),
    database_blocks=(8192, 16384),
    course_s=2,
    failed=((0, 1), (0, 2), (0, 3)),
    suspect=((2, 1), (2, 2), (2, 3)),
    missing=((3, 2),),
    title='=HYPERLINK("http://x","y")',
    runs=("=1+2", f"@SUM(A1) {LONG}"),
)
Sheets = dict[str, list[list[Read]]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Overview:
    return overview(write_study(tmp_path_factory.mktemp("small") / "study", SMALL))


@pytest.fixture(scope="module")
def sheets_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Overview], Sheets]:
    """A study as a spreadsheet, written and read once."""
    folder = tmp_path_factory.mktemp("made")
    # With the study, whose identity is nobody else's as long as it is here.
    kept: dict[int, tuple[Overview, Sheets]] = {}

    def of(found: Overview) -> Sheets:
        if id(found) not in kept:
            kept[id(found)] = found, _read(found, folder / f"{len(kept)}.xlsx")
        return kept[id(found)][1]

    return of


@pytest.fixture(scope="module")
def sheets(found: Overview, sheets_of: Callable[[Overview], Sheets]) -> Sheets:
    return sheets_of(found)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Overview:
    return overview(synthetic_tpch_study(tmp_path_factory.mktemp("tpch") / "study", TpchRecipe()))


@pytest.fixture(scope="module")
def lmdb(tmp_path_factory: pytest.TempPathFactory) -> Overview:
    return overview(synthetic_microbenchmark(tmp_path_factory.mktemp("lmdb") / "study", repetitions=1))


def _read(found: Overview, path: Path) -> Sheets:
    write_spreadsheet(found, path)
    return read_spreadsheet(path)


def _rows(sheet: list[list[Read]]) -> list[dict[str, str | float | None]]:
    """Rows by the heads of their columns; what an empty cell at an end leaves out is empty."""
    heads, *rows = values(sheet)
    return [
        {str(head): row[place] if place < len(row) else None for place, head in enumerate(heads)}
        for row in rows
    ]


def _same(first: Sequence[object], second: Sequence[object]) -> bool:
    """Equal, but for the digits beyond 15 that xlsxwriter does not write."""
    return len(first) == len(second) and all(
        math.isclose(a, b, rel_tol=1e-14) if isinstance(a, int | float) and isinstance(b, float) else a == b
        for a, b in zip(first, second, strict=True)
    )


def test_every_sheet_is_there(sheets: Sheets) -> None:
    assert [
        "Look",
        "Results",
        "pgbench =1+2",
        "pgbench @SUM(A1) rrrrrrrrrrrrr…",
        "Cells",
        "Asked and effective",
        "Runs",
        "About",
        "Choices",
    ] == list(sheets)


def test_text_from_outside_is_never_a_formula(sheets: Sheets) -> None:
    assert {"Look"} == {
        name for name, rows in sheets.items() if any(cell.formula for row in rows for cell in row)
    }
    texts = [cell for rows in sheets.values() for row in rows for cell in row if cell.formula is None]
    found = {str(cell.value)[:8] for cell in texts}
    assert {"=HYPERLI", "=1+2", "=1+2 · t", "@SUM(A1)"} <= found


def test_look_shows_the_first_choice_before_anything_is_calculated(found: Overview, sheets: Sheets) -> None:
    look = sheets["Look"]
    assert look[1][0] == Read("=1+2 · tps, 1/s")
    head = next(number for number, row in enumerate(look) if row and row[0].value == "cell")
    for row, cell in zip(look[head + 1 :], found.cells.values(), strict=False):
        summary = found.summary(cell.id, found.runs[0], "tps")
        shown = [summary.centre, summary.low, summary.high, summary.n]
        assert [cell.label.full, *("" if one is None else one for one in shown)] == [
            row[0].value,
            *(one.value for one in row[2:6]),
        ]
        assert all(one.formula for one in row)


@pytest.mark.parametrize("study", ["found", "warehouse"])
def test_results_are_the_numbers_of_the_overview(
    study: str, request: pytest.FixtureRequest, sheets_of: Callable[[Overview], Sheets]
) -> None:
    found: Overview = request.getfixturevalue(study)
    rows = _rows(sheets_of(found)["Results"])
    by_key = {}
    for row in rows:
        part = [str(row[name] or default) for name, default in (("phase", "measure"), ("item", ""))]
        place = [str(row[name]) for name in ("cell id", "dataset", "run", "metric")]
        # A long name is cut in the table.
        place[2] = next(run for _, run in found.runs if run[:80] == place[2][:80])
        by_key[SummaryKey(*place, *(one.removesuffix(".0") for one in part))] = row
    assert len(rows) == len(by_key)
    assert set(found.summaries) <= set(by_key)
    for key, summary in found.summaries.items():
        row, shown = by_key[key], ranked(found, key, summary).summary
        statistics = (shown.centre, shown.low, shown.high, shown.minimum, shown.maximum, shown.n, shown.basis)
        heads = ("mean", "low", "high", "smallest", "largest", "n", "basis")
        assert _same(statistics, [row[head] for head in heads])


def test_what_is_absent_is_empty_and_says_why(
    warehouse: Overview, found: Overview, sheets_of: Callable[[Overview], Sheets]
) -> None:
    for study in (warehouse, found):
        rows = _rows(sheets_of(study)["Results"])
        absent = [row for row in rows if row["mean"] is None]
        assert absent
        assert all(row["remarks"] for row in absent)
    assert any("mkfs.ext4 exited with status 1" in str(row["remarks"]) for row in absent)


def test_suspect_runs_are_told(sheets: Sheets) -> None:
    suspect = [row for row in _rows(sheets["Results"]) if row["basis"] == SUSPECT]
    assert suspect
    assert all("only suspect runs" in str(row["remarks"]) for row in suspect)
    assert {"suspect"} == {row["validity"] for row in suspect}


def test_a_query_that_was_stopped_has_its_limit_and_no_time(
    warehouse: Overview, sheets_of: Callable[[Overview], Sheets]
) -> None:
    rows = _rows(sheets_of(warehouse)["Results"])
    stopped = [row for row in rows if row["metric"] == "query_s" and row["censored"]]
    assert stopped
    for row in stopped:
        assert (None, 30.0) == (row["mean"], row["limit"])
        assert "stopped at the limit of 30" in str(row["remarks"])


def test_a_run_has_a_wide_sheet_of_means_and_intervals(found: Overview, sheets: Sheets) -> None:
    rows = _rows(sheets["pgbench =1+2"])
    assert [cell.label.full for cell in found.cells.values()] == [row["cell"] for row in rows]
    for row, cell in zip(rows, found.cells, strict=True):
        summary = found.summary(cell, found.runs[0], "latency_ms_p99")
        wide = [row[f"latency_ms_p99 {word}, ms"] for word in ("mean", "low", "high")]
        assert _same([summary.centre, summary.low, summary.high], wide)
        assert summary.n == row["latency_ms_p99 n"]


def test_a_run_of_very_many_figures_takes_several_sheets(
    warehouse: Overview, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bedplate.export.workbook.COLUMNS_MAX", 420)
    sheets = _read(warehouse, tmp_path / "x.xlsx")
    assert {"tpch cold", "tpch cold (2)"} <= set(sheets)
    assert all(len(row) <= COLUMNS_MAX for rows in sheets.values() for row in rows)
    heads = [head for name in sheets if name.startswith("tpch cold") for head in values(sheets[name])[0][3:]]
    # A cell's factors stand on each sheet.
    figures = [head for head in heads if not str(head).startswith(("filesystem.", "postgresql.", "engine"))]
    assert len(figures) == len(set(figures)) < len(heads)


def test_cells_asked_runs_and_about_have_their_rows(found: Overview, sheets: Sheets) -> None:
    cells = _rows(sheets["Cells"])
    assert [("yes")] * len(found.cells) + ["no"] == [row["in the study"] for row in cells]
    assert "btrfs has no 1 KiB blocks; it has 4 KiB" == cells[-1]["remarks, or why it cannot be"]
    unsafe = next(row for row in cells if row["volatile cache"] == "unsafe")
    assert "0 flushes in 64" in str(unsafe["reasons for the class"])
    assert 8192.0 == cells[0]["database block, bytes"]
    asked = _rows(sheets["Asked and effective"])
    assert any((row["option"], row["effective"]) == ("filesystem.barrier", "no") for row in asked)
    runs = _rows(sheets["Runs"])
    assert len(found.measurements) == len(runs)
    assert {"completed", "not_run"} <= {row["outcome"] for row in runs}
    about = {row["what"]: row["is"] for row in _rows(sheets["About"])}
    assert '=HYPERLINK("http://x","y")' == about["study"]
    assert str(about["is said beside every figure"]).startswith("Image file")


def test_long_names_are_cut_visibly_everywhere(sheets: Sheets) -> None:
    texts = [str(cell.value) for rows in sheets.values() for row in rows for cell in row]
    assert max(map(len, texts)) < 3000
    assert any("… (10,009 characters)" in text for text in texts)


def test_a_study_without_a_run_is_a_spreadsheet_that_says_so(tmp_path: Path) -> None:
    cells = range(4)
    empty = Recipe(
        filesystem_blocks=(None,),
        database_blocks=(8192,),
        canaries=0,
        missing=tuple((cell, repetition) for cell in cells for repetition in (1, 2, 3)),
    )
    found = overview(write_study(tmp_path / "study", empty))
    sheets = _read(found, tmp_path / "x.xlsx")
    assert Read("Nothing has been measured yet.") in [row[0] for row in sheets["Look"]]
    assert 1 == len(sheets["Results"])
    assert 4 + 1 == len([row for row in sheets["Cells"][1:] if row])
    nothing = replace(found, cells={}, measurements=(), runs=(), summaries={}, pruned=())
    assert ["Look", "Results", "Cells"] == list(_read(nothing, tmp_path / "y.xlsx"))[:3]


def test_the_same_study_makes_the_same_bytes(found: Overview, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_spreadsheet(found, tmp_path / f"{name}.xlsx")
    assert (tmp_path / "a.xlsx").read_bytes() == (tmp_path / "b.xlsx").read_bytes()
    assert 2 == len(list(tmp_path.iterdir()))


def test_more_rows_than_a_sheet_takes_name_the_way_out(
    found: Overview, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xlsx, "ROWS_MAX", 20)
    with pytest.raises(PlanError, match=r"the sheet Results would have .* rows; .*parquet"):
        write_spreadsheet(found, tmp_path / "x.xlsx")
    assert [] == list(tmp_path.iterdir())


def test_export_takes_the_format_from_the_name(found: Overview, tmp_path: Path) -> None:
    output = tmp_path / "new" / "results.xlsx"
    assert (output,) == export(found.study.directory, output)
    assert "Look" in read_spreadsheet(output)
    assert [output] == list(output.parent.iterdir())


def test_texts_of_many_blanks_and_lines_survive(found: Overview, tmp_path: Path) -> None:
    text = "  two  blanks\n\n<&'\">\ttab \x0b end "
    first = next(iter(found.measurements))
    strange = replace(found, measurements=(replace(first, reasons=planted(text)),))
    (row,) = _rows(_read(strange, tmp_path / "x.xlsx")["Runs"])
    assert text.replace("\x0b", "\ufffd") == row["reasons"]


def test_a_table_is_exported_without_the_library_of_spreadsheets() -> None:
    words = "import sys, bedplate.cli.app, bedplate.export.tables; print('xlsxwriter' in sys.modules)"
    source = Path(xlsx.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", words],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(source)},
    )
    assert "False" == done.stdout.strip()


def test_the_numbers_of_the_choices_are_those_that_look_counts_with(found: Overview) -> None:
    book = workbook_of(found)
    sheets = {sheet.name: sheet for sheet in book.sheets}
    number = [column.head for column in sheets["Choices"].columns].index("number")
    assert list(range(1, len(sheets["Choices"].rows) + 1)) == [row[number] for row in sheets["Choices"].rows]
    key = [column.head for column in sheets["Results"].columns].index("key")
    keys = [row[key] for row in sheets["Results"].rows]
    assert len(keys) == len(set(keys)) == len(sheets["Choices"].rows) * len(found.cells)


def test_each_test_of_lmdb_has_its_own_class_beside_its_speed_and_its_own_colour(
    lmdb: Overview, sheets_of: Callable[[Overview], Sheets]
) -> None:
    sheets = sheets_of(lmdb)
    speeds = [row for row in _rows(sheets["Results"]) if row["metric"] == "test_operations_per_s"]
    classes = {row["item"]: (row["after a power cut"], row["with a volatile cache"]) for row in speeds}
    assert ("durable", "durable") == classes["fillrandsync"]
    assert ("unsafe / bounded loss", "unsafe") == classes["fillrandom"]
    assert ("reads only", "reads only") == classes["readseq"]
    heads = next(row for row in values(sheets["Look"]) if row and row[0] == "cell")
    colours = ["durable with a volatile cache", "unsafe with a volatile cache", "reads only"]
    assert colours == heads[-3:], "a colour for every class of any choice, not of the first alone"
    whole = {row["with a volatile cache"] for row in _rows(sheets["Results"]) if not row["item"]}
    assert {"unsafe"} == whole, "of all commits of a run together holds what the worst of them promise"


def test_a_study_of_lmdb_opens_on_the_speed_of_its_first_test(
    lmdb: Overview, sheets_of: Callable[[Overview], Sheets]
) -> None:
    sheets = sheets_of(lmdb)
    assert Read("write · fillrandsync: test_operations_per_s, 1/s") == sheets["Look"][1][0]
    choices = [choice for choice in choices_of(lmdb) if choice.run[1] == "write"]
    tests = [choice.part.item for choice in choices if choice.metric.name == "test_operations_per_s"]
    assert tests == [choice.part.item for choice in choices[: len(tests)]]
    assert ("measure", "", "tests_s") == (
        choices[len(tests)].part.phase,
        choices[len(tests)].part.item,
        choices[len(tests)].metric.name,
    )


def test_what_survives_a_power_cut_has_a_column_as_wide_as_its_words(lmdb: Overview) -> None:
    told = "durable; without sync unsafe / bounded loss"
    widths = {
        sheet.name: column.width
        for sheet in workbook_of(lmdb).sheets
        for column in sheet.columns
        if column.head == "after a power cut"
    }
    assert {"Look", "Results", "microbenchmark write"} <= widths.keys()
    assert all(width > len(told) for width in widths.values())
