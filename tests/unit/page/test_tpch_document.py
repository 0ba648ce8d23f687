"""What a page knows of TPC-H: scores by readers' names, and every plan once."""

from __future__ import annotations

import base64
import json
import zlib
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.studies.synthetic_study import Recipe, write_study
from tests.support.studies.synthetic_tpch import TpchRecipe, synthetic_tpch_study, tpch_cells

from bedplate.analysis.overview import overview
from bedplate.errors import StudyError
from bedplate.model.codec import read, write
from bedplate.page.document import page_document
from bedplate.workloads.tpch.page import tpch_document
from bedplate.workloads.tpch.query_plan import PLANS_FILE, QueryPlan, QueryPlans

if TYPE_CHECKING:
    from pathlib import Path


def unpacked(text: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(text)))


def document_of(path: Path) -> dict[str, Any]:
    found = overview(path)
    made = tpch_document([found], found.runs)
    assert made is not None
    return made


def plans_of(path: Path) -> Any:
    return unpacked(document_of(path)["plans"])


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six cells, two passes, three plans that differ somewhere, a timeout, a failed run."""
    return synthetic_tpch_study(tmp_path_factory.mktemp("tpch") / "study")


def test_a_study_without_tpch_has_none(tmp_path: Path) -> None:
    recipe = Recipe(filesystem_blocks=(4096,), database_blocks=(8192,), repetitions=1, course_s=2)
    found = overview(write_study(tmp_path / "study", recipe))
    assert tpch_document([found], found.runs) is None


def test_every_pass_has_its_scores(study: Path) -> None:
    made = document_of(study)
    assert ["cold", "warm"] == [overview(study).runs[view["run"]][1] for view in made["scores"]]
    cold = made["scores"][0]
    assert ["9", "17", "20", "21"] == [query for query, _ in cold["dropped"]]
    assert 22 == len(cold["queries"]) == len(cold["kept"]) + len(cold["dropped"])
    assert [0, 1, 2, 3, 4, 5] == [cell["cell"] for cell in cold["cells"]]
    best = cold["cells"][3]
    assert pytest.approx(22, abs=0.5) == best["score"][0]
    assert best["score"][1] <= 1
    assert ["20"] == cold["cells"][4]["timeouts"]
    assert made["note"].startswith("not an audited TPC-H result")


def test_reasons_name_cells_as_readers_know_them(study: Path) -> None:
    dropped = dict(document_of(study)["scores"][0]["dropped"])
    assert ["over its limit in 3 of 3 runs in btrfs · fs default, 4 KiB · db 8 KiB"] == dropped["20"]
    text = json.dumps(dropped)
    assert not [cell.id for cell in tpch_cells(TpchRecipe()) if cell.id in text]


def test_of_many_cells_the_first_are_named_and_the_rest_counted(study: Path) -> None:
    (reason,) = dict(document_of(study)["scores"][0]["dropped"])["17"]
    assert "; 2 more cells | btrfs" in reason


def test_each_plan_is_kept_once(study: Path) -> None:
    plans = plans_of(study)
    assert [str(query) for query in range(1, 23)] == plans["queries"]
    counts = {query: len(found) for query, found in plans["plans"].items()}
    assert {"9": 2, "17": 2, "21": 2} == {query: count for query, count in counts.items() if count > 1}
    assert 1 == len(plans["settings"])
    hashes = [plan["hash"] for plan in plans["plans"]["9"]]
    assert len(hashes) == len(set(hashes))


def test_two_plans_of_a_query_part_at_their_first_difference(study: Path) -> None:
    plans = plans_of(study)
    assert [[0, 1, 1, ["Node Type: Hash Join | Nested Loop"]]] == plans["differences"]["9"]
    assert [] == plans["differences"]["1"]
    words = [plan["lines"][1][1] for plan in plans["plans"]["9"]]
    assert ["Hash Join", "Nested Loop"] == words


def test_a_plan_that_wavers_says_in_which_repetitions(study: Path) -> None:
    cold = overview(study).runs.index(next(run for run in overview(study).runs if run[1] == "cold"))
    rows = [row for row in plans_of(study)["rows"] if row[:3] == [cold, 2, "21"]]
    assert [[0, [1, 3]], [1, [2]]] == [row[3:5] for row in rows]


def test_power_that_is_coarse_is_told_of_its_cell(tmp_path: Path) -> None:
    recipe = TpchRecipe(filesystems=("ext4",), repetitions=1, scale_factor=0.001, failed=(), timeouts=())
    notes = document_of(synthetic_tpch_study(tmp_path / "study", recipe))["power_notes"]
    assert {(1, 0), (1, 1), (2, 0), (2, 1)} == {(run, cell) for run, cell, _ in notes}
    assert {"queries under 1 s count to the nearest 0.1 s, which is coarse for them"} == {
        note for _, _, found in notes for note in found if not note.startswith("raised")
    }


def test_a_study_of_streams_alone_has_its_note_and_no_scores(tmp_path: Path) -> None:
    recipe = TpchRecipe(filesystems=("ext4",), repetitions=1, passes=(), failed=(), timeouts=())
    made = document_of(synthetic_tpch_study(tmp_path / "study", recipe))
    assert made["note"].startswith("not an audited TPC-H result")
    assert [] == made["scores"]
    assert 22 == len(unpacked(made["plans"])["queries"])


def test_streams_have_their_plans_too(study: Path) -> None:
    names = [run for _, run in overview(study).runs]
    rows = [row for row in plans_of(study)["rows"] if row[0] == names.index("throughput")]
    assert 22 == len({row[2] for row in rows})
    # Both streams of a repetition are one entry of it.
    assert [[0, [1, 3]], [1, [2]]] == [row[3:5] for row in rows if row[1:3] == [2, "21"]]
    assert {(1, 2, 3)} == {tuple(row[4]) for row in rows if row[2] == "1"}


def test_a_run_that_failed_has_no_plans(study: Path) -> None:
    warm = overview(study).runs.index(next(run for run in overview(study).runs if run[1] == "warm"))
    (row,) = [row for row in plans_of(study)["rows"] if row[:3] == [warm, 3, "1"]]
    assert [1, 3] == row[4]


def test_a_plan_that_cannot_be_read_is_told_and_stops_nothing(tmp_path: Path) -> None:
    recipe = TpchRecipe(filesystems=("ext4",), repetitions=1, passes=("cold",), streams=0, failed=())
    path = synthetic_tpch_study(tmp_path / "study", recipe)
    file = min(path.rglob(PLANS_FILE))
    kept = read(QueryPlans, file)
    write(
        file,
        QueryPlans(
            tuple(QueryPlan(p.item, "f" * 64, "no plan") if p.item == "1" else p for p in kept.plans),
            kept.settings,
        ),
    )
    plans = plans_of(path)
    unread = [plan for plan in plans["plans"]["1"] if plan["problem"]]
    assert [([], "f" * 64)] == [(plan["lines"], plan["hash"]) for plan in unread]
    assert "EXPLAIN (FORMAT JSON)" in unread[0]["problem"]
    assert [] == plans["differences"]["1"]


def test_a_damaged_file_of_plans_is_refused_by_its_name(tmp_path: Path) -> None:
    recipe = TpchRecipe(filesystems=("ext4",), repetitions=1, passes=("cold",), streams=0, failed=())
    path = synthetic_tpch_study(tmp_path / "study", recipe)
    file = min(path.rglob(PLANS_FILE))
    file.write_text("{", encoding="utf-8")
    with pytest.raises(StudyError, match=PLANS_FILE):
        overview(path)


def test_a_square_of_a_part_that_was_stopped_has_a_limit_and_no_figure(study: Path) -> None:
    page = page_document([overview(study)])
    within = unpacked(page["within"])
    names = [label for label, _ in page["parts"]]
    metric = [m["name"] for m in page["metrics"]].index("query_s")
    cold = [run["run"] for run in page["runs"]].index("cold")
    summaries = within["summaries"]
    rows = [
        i
        for i in range(len(summaries["cell"]))
        if (summaries["run"][i], summaries["metric"][i], names[summaries["part"][i]])
        == (cold, metric, "query 20")
    ]
    stopped = [(summaries["cell"][i], summaries["limit"][i]) for i in rows if summaries["mean"][i] is None]
    assert [(4, 30.0)] == stopped
