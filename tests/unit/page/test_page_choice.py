"""What the page chooses by: the factors in which cells differ, their surroundings, and figures of single runs."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.support.studies.synthetic_study import Recipe, write_study
from tests.support.studies.synthetic_tpch import TpchRecipe, synthetic_tpch_study

from bedplate.analysis.cell_filter import CLASS
from bedplate.analysis.comparison import Surroundings, candidates_of
from bedplate.analysis.labels import level_text
from bedplate.analysis.overview import overview
from bedplate.analysis.part_summaries import page_parts
from bedplate.model.metrics import METRICS
from bedplate.page.document import choice_document, observations_document, surroundings_document

if TYPE_CHECKING:
    from pathlib import Path

SMALL = Recipe(filesystem_blocks=(1024, 4096), database_blocks=(4096, 16384), repetitions=2, course_s=5)


def test_every_cell_has_its_level_of_every_factor_in_which_cells_differ(tmp_path: Path) -> None:
    found = [overview(write_study(tmp_path / "study", SMALL))]
    factors, places = choice_document(found)
    names = [factor["name"] for factor in factors]
    assert {"filesystem.type", "filesystem.barrier", "build.block_size_bytes"} <= {*names}
    assert "study" not in names
    for candidate, levels in zip(candidates_of(found), places, strict=True):
        for factor, place in zip(factors, levels, strict=True):
            name = factor["name"]
            if name == CLASS:
                assert candidate.classes[0] == factor["levels"][place]
            elif place < 0:
                assert name not in candidate.levels
            else:
                assert level_text(name, candidate.levels[name]) == factor["levels"][place]
    for factor in factors:
        assert len(set(factor["levels"])) == len(factor["levels"])


def test_sizes_stand_in_their_order_and_not_in_that_of_letters(tmp_path: Path) -> None:
    recipe = replace(SMALL, database_blocks=(16384, 4096, 8192))
    factors, _ = choice_document([overview(write_study(tmp_path / "study", recipe))])
    (blocks,) = [factor for factor in factors if factor["name"] == "build.block_size_bytes"]
    assert ["4 KiB", "8 KiB", "16 KiB"] == blocks["levels"]
    assert "db block" == blocks["words"]


def test_of_two_studies_the_study_is_a_factor_and_comes_first(tmp_path: Path) -> None:
    found = [overview(write_study(tmp_path / name, SMALL)) for name in ("before", "after")]
    factors, places = choice_document(found)
    assert ("study", ["after", "before"]) == (factors[0]["name"], factors[0]["levels"])
    assert len(places) == sum(len(each.cells) for each in found)


def test_surroundings_are_told_once_and_pointed_at(tmp_path: Path) -> None:
    studies = [
        overview(write_study(tmp_path / name, replace(SMALL, provenance={"kernel": name})))
        for name in ("6.1", "6.12")
    ]
    runs = studies[0].runs
    document = surroundings_document(studies, runs)
    count = len(studies[0].cells)
    (dataset,) = {dataset for dataset, _ in runs}
    assert [{dataset: 0}] * count + [{dataset: 1}] * count == document["of"]
    assert [["6.1"], ["6.12"]] == [kind["kernel"] for ((_, kind),) in document["kinds"]]
    assert [len(runs)] * 2 == [len(asked) for asked in document["asked"]]
    assert surroundings_document(studies[:1], runs)["asked"] is None


def test_visits_of_two_datasets_are_never_held_against_each_other(tmp_path: Path) -> None:
    """bonnie++ and fio in one study: each has its tools, and its cells may be compared all the same."""
    found = overview(write_study(tmp_path / "study", replace(SMALL, provenance={"tools": "bonnie++ 2"})))
    others = [
        replace(
            visit,
            record=replace(
                visit.record,
                key=replace(visit.record.key, dataset="fio"),
                provenance={"tools": "fio 3"} | ({"kernel": visit.record.key.cell}),
            ),
        )
        for visit in found.study.visits
    ]
    both = replace(found, study=replace(found.study, visits=(*found.study.visits, *others)))
    cells = candidates_of([both])
    surroundings = Surroundings([both], ())
    assert () == surroundings.of_cells(cells, both.runs[0])
    (told,) = surroundings.of_cells(cells, ("fio", "wal-append"))
    assert told.startswith("kernel: ")
    document = surroundings_document([both], both.runs)
    assert {both.runs[0][0], "fio"} == set(document["of"][0])
    assert 1 == len({place[both.runs[0][0]] for place in document["of"]})
    assert len(cells) == len({place["fio"] for place in document["of"]})


def test_single_figures_of_parts_are_those_of_the_runs(tmp_path: Path) -> None:
    found = [overview(synthetic_tpch_study(tmp_path / "study", TpchRecipe()))]
    parts = page_parts(found)
    metrics = [name for name in METRICS if any(key.metric == name for key in found[0].summaries)]
    packed = observations_document(found, metrics, parts)["within"]
    within = json.loads(zlib.decompress(base64.b64decode(packed)))
    measurements = found[0].measurements
    limited = 0
    for part, metric, rows, values, limits in within:
        assert part > 0
        for row, value, limit in zip(rows, values, limits, strict=True):
            seen = measurements[row].observation(metrics[metric], parts[part].phase, parts[part].item)
            assert (seen.value is None) == (value is None)
            assert value is None or seen.value is None or abs(value - seen.value) <= 1e-5 * abs(seen.value)
            limited += limit is not None
    assert limited
