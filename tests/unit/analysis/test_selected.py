"""Studies narrowed by filters: scores, tables, page and exports are over the selected cells alone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest
from tests.support.studies.synthetic_study import Recipe, write_study
from tests.support.studies.synthetic_tpch import TpchRecipe, synthetic_tpch_study, tpch_cells
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.comparison import selected, selected_overviews
from bedplate.analysis.overview import overview
from bedplate.errors import PlanError
from bedplate.export.tables import export
from bedplate.page.document import page_document
from bedplate.statistics.summary import SummaryKey
from bedplate.terminal.tables import show_document, show_tables

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.analysis.overview import Overview

RECIPE = TpchRecipe()
CELLS = [cell.id for cell in tpch_cells(RECIPE)]
EXT4, XFS, BTRFS = CELLS[:2], CELLS[2:4], CELLS[4:]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six cells; query 20 stops in the fifth, 9 and 17 have two plans across them, 21 wavers in the third."""
    return synthetic_tpch_study(tmp_path_factory.mktemp("tpch") / "study", RECIPE)


def over(study: Path, *filters: str) -> Overview:
    (found,) = selected_overviews([study], filters)
    return found


def test_scores_are_those_of_a_study_that_has_no_other_cells(tmp_path: Path) -> None:
    recipe = replace(RECIPE, timeouts=(), other_plans=((1, 9),), wavering_plans=(), failed=(), repetitions=3)
    whole = synthetic_tpch_study(tmp_path / "whole", recipe)
    small = synthetic_tpch_study(tmp_path / "small", replace(recipe, filesystems=("btrfs",), other_plans=()))
    chosen = over(whole, "type=btrfs")
    assert list(overview(small).cells) == list(chosen.cells)
    cold = chosen.scores[0].scores
    assert 22 == len(cold.kept), "query 9 has two plans in cells that are not selected"
    assert 21 == len(overview(whole).scores[0].scores.kept)
    for cell in cold.cells:
        best = {q: min(one.times_s[q] for one in cold.cells) for q in cold.queries}
        score = sum(best[q] / cell.times_s[q] for q in cold.queries)
        assert cell.score.value == pytest.approx(score)
        summary = chosen.summary(cell.cell, chosen.runs[1], "score")
        assert (cell.score.value, cell.score.low) == (summary.centre, summary.low)


def test_what_a_cell_says_of_itself_stays(study: Path) -> None:
    whole, chosen = overview(study), over(study, "type=xfs")
    assert XFS == list(chosen.cells)
    assert {m.cell for m in chosen.measurements} == set(XFS)
    for run in chosen.runs:
        for cell in XFS:
            assert whole.summaries_of(cell, run)[0] == chosen.summaries_of(cell, run)[0]
    key = SummaryKey(XFS[0], *chosen.runs[1], "query_s", "queries", "9")
    assert whole.summaries[key] == chosen.summaries[key]
    assert not {key.cell for key in chosen.summaries} - set(XFS)


def test_several_filters_select_together(study: Path) -> None:
    chosen = over(study, "type=btrfs", "type=ext4 build.block_size=8k")
    assert [EXT4[0], *BTRFS] == list(chosen.cells), "in the order of the study"
    assert "type=btrfs, or type=ext4 build.block_size=8k: 3 of 6 cells" == chosen.selection
    assert chosen.selection in chosen.marks[0]


def test_no_filter_changes_nothing(study: Path) -> None:
    found = overview(study)
    assert (found,) == selected([found], ())
    assert found.selection is None


def test_a_filter_that_selects_nothing_is_told(study: Path) -> None:
    with pytest.raises(PlanError, match="zfs"):
        over(study, "type=zfs")
    with pytest.raises(PlanError, match="empty filter"):
        over(study, " ")


def test_of_two_studies_the_one_without_a_selected_cell_is_left_out(study: Path, tmp_path: Path) -> None:
    other = write_study(
        tmp_path / "pgbench",
        Recipe(filesystem_blocks=(4096,), database_blocks=(8192,), repetitions=1, course_s=5),
    )
    (found,) = selected_overviews([study, other], ["study=pgbench"])
    assert "pgbench" == found.study.directory.name


def test_show_names_the_selection_and_no_other_cell(study: Path) -> None:
    text = " ".join(as_printed(show_tables([study], workload="cold", cells=["type=ext4"])).split())
    assert "A selection, type=ext4: 2 of 6 cells" in text
    assert "Scores of cold, over 2 of 2 cells (selected: type=ext4: 2 of 6 cells)" in text
    assert "xfs" not in text
    assert "21 of 22 queries are left" in text, "9 has two plans in ext4; 17, 20 and 21 are well here"
    (document,) = show_document([study], cells=["type=ext4"])["studies"]
    assert EXT4 == [cell["cell"] for cell in document["cells"]]
    assert "type=ext4: 2 of 6 cells" == document["selection"]


def test_the_page_is_of_the_selection(study: Path) -> None:
    page = page_document(selected_overviews([study], ["type=ext4,btrfs"]))
    assert [*EXT4, *BTRFS] == [cell["id"] for cell in page["cells"]]
    assert "type=ext4,btrfs: 4 of 6 cells" == page["studies"][0]["selection"]
    assert [0, 1, 2, 3] == [cell["cell"] for cell in page["tpch"]["scores"][0]["cells"]]
    text = json.dumps(page)
    assert not [cell for cell in XFS if cell in text]


def test_exports_are_of_the_selection(study: Path, tmp_path: Path) -> None:
    tables = ("runs", "figures", "courses", "scores", "dropped_queries", "plans")
    export(study, tmp_path / "some", ["parquet"], cells=["type=ext4"], tables=tables)
    frames = {path.stem: pl.read_parquet(path) for path in (tmp_path / "some").iterdir()}
    for name in ("runs", "figures", "courses", "scores", "plans"):
        assert set(EXT4) == set(frames[name]["cell"]), name
    assert {"type=ext4: 2 of 6 cells"} == set(frames["scores"]["selection"])
    assert {"9"} == set(frames["dropped_queries"]["query"])
    export(study, tmp_path / "all.json")
    rows = json.loads((tmp_path / "all.json").read_text())
    assert {None} == {row["selection"] for row in rows["scores"]}
    export(study, tmp_path / "some.xlsx", cells=["type=ext4"])
    assert (tmp_path / "some.xlsx").stat().st_size


def test_canaries_stay_with_any_selection(tmp_path: Path) -> None:
    path = write_study(tmp_path / "study", Recipe(repetitions=2, course_s=5, canaries=2))
    whole = overview(path)
    chosen = selected([whole], [next(iter(whole.cells))])[0]
    canaries = [m for m in whole.measurements if m.canary]
    assert canaries
    assert canaries == [m for m in chosen.measurements if m.canary]
    assert 1 == len(chosen.cells)
    assert () == chosen.pruned
