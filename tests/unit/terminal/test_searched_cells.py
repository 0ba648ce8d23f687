"""A search in the terminal: the model's figures beside the means, effects by the model, and that cells were chosen."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.synthetic_search import SearchRecipe, write_search
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.comparison import selected_overviews
from bedplate.analysis.effects import study_effects
from bedplate.analysis.overview import overview
from bedplate.analysis.search import search_of
from bedplate.errors import PlanError
from bedplate.terminal.tables import modelled_effects, modelled_effects_document, show_document, show_tables

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_search(tmp_path_factory.mktemp("search") / "study", SearchRecipe(blocks=None))


def test_show_says_that_cells_were_chosen_and_has_the_model_beside_the_means(study: Path) -> None:
    text = as_printed(show_tables([study]))
    flat = " ".join(text.split())
    assert "A search chose which cells to visit and how often" in flat
    assert "By the model: its median" in flat
    assert "6 cells left out: without barriers a volatile cache loses what was promised." in flat
    assert all(len(line) <= 80 for line in text.splitlines())


def test_the_document_has_every_cell_with_both_figures(study: Path) -> None:
    (told,) = json.loads(json.dumps(show_document([study])))["studies"]
    found = {each["cell"]: each for each in told["search"]["cells"]}
    assert 24 == len(found)
    (named,) = told["search"]["named"]
    best = found[named]
    assert "xfs" in best["label"]
    assert best["proved"]["n"] >= 3
    assert best["predicted"]["low"] < best["predicted"]["value"] < best["predicted"]["high"]
    assert best["measured"]["centre"] != best["predicted"]["value"]
    unvisited = [each for each in found.values() if not each["visits"]]
    assert any(each["predicted"] is not None and each["measured"]["centre"] is None for each in unvisited)


def test_a_selection_of_its_cells_says_so_and_has_no_model(study: Path) -> None:
    text = " ".join(as_printed(show_tables([study], cells=["type=xfs"])).split())
    assert "A search chose which cells to visit" in text
    assert "By the model" not in text
    (narrowed,) = selected_overviews([study], ["type=xfs"])
    assert search_of(narrowed) is None


def test_effects_are_the_models_or_refused_with_the_reason(study: Path) -> None:
    found = overview(study)
    with pytest.raises(PlanError, match="a search chose the cells of this study"):
        study_effects(found)
    search = search_of(found)
    assert search is not None
    text = " ".join(as_printed(modelled_effects(search)).split())
    assert "file system xfs / btrfs" in text
    assert "no share of the variation is given" in text
    told = modelled_effects_document(search)
    assert ["filesystem.type", "build.block_size_bytes"] == [each["factor"] for each in told["factors"]]
    assert all(each["low"] <= each["ratio"] <= each["high"] for each in told["factors"])


def test_a_study_that_is_no_search_has_no_such_mark(tmp_path: Path) -> None:
    under_way = write_search(tmp_path / "study", SearchRecipe(blocks=1))
    (mark,) = [words for words in overview(under_way).marks if "search" in words]
    (under_way / "search.json").unlink()
    assert mark not in overview(under_way).marks
