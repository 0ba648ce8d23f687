"""The table `search` of an export, and what stands beside the runs and means of a search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from tests.support.studies.synthetic_search import SearchRecipe, write_search
from tests.support.studies.synthetic_study import Recipe, write_study

from bedplate.analysis.overview import overview
from bedplate.errors import PlanError
from bedplate.export.tables import export
from bedplate.export.workbook import workbook_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_search(tmp_path_factory.mktemp("search") / "study", SearchRecipe(blocks=None))


def test_a_row_for_each_cell_with_the_model_beside_the_mean(study: Path, tmp_path: Path) -> None:
    export(study, tmp_path / "search.parquet", tables=["search"])
    table = pl.read_parquet(tmp_path / "search.parquet")
    assert 24 == table.height
    named = table.filter(pl.col("named")).row(0, named=True)
    assert named["predicted_low"] < named["predicted"] < named["predicted_high"]
    assert named["proved_low"] < named["proved"] < named["proved_high"]
    assert (
        table.filter(pl.col("visits") == 0)["measured"].null_count()
        == table.filter(pl.col("visits") == 0).height
    )
    left_out = table.filter(pl.col("left_out").is_not_null())
    assert 6 == left_out.height
    assert left_out["predicted"].null_count() == 6


def test_runs_say_that_a_search_chose_them(study: Path, tmp_path: Path) -> None:
    export(study, tmp_path / "runs.parquet", tables=["runs"])
    runs = pl.read_parquet(tmp_path / "runs.parquet")
    assert [True] == runs.filter(~pl.col("canary"))["chosen"].unique().to_list()
    plain = write_study(
        tmp_path / "plain", Recipe(filesystem_blocks=(4096,), database_blocks=(8192,), course_s=2)
    )
    export(plain, tmp_path / "plain.parquet", tables=["runs"])
    assert not pl.read_parquet(tmp_path / "plain.parquet")["chosen"].any()
    with pytest.raises(PlanError, match="no table 'search'"):
        export(plain, tmp_path / "none.csv", tables=["search"])


def test_a_spreadsheet_has_a_sheet_of_the_search_and_remarks_beside_its_means(study: Path) -> None:
    book = workbook_of(overview(study))
    sheets = {sheet.name: sheet for sheet in book.sheets}
    assert 24 == len(sheets["Search"].rows)
    results = [" ".join(str(cell) for cell in row) for row in sheets["Results"].rows]
    told = [row for row in results if "chosen by a search; by its model" in row]
    assert told
    assert all("read-write" in row for row in told)
    assert any("search chose which cells" in str(row) for row in sheets["About"].rows)
