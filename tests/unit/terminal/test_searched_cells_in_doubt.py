"""A search of which no run is believed: no figure is proved, each has its mark, and nothing is said of factors."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.support.studies.planted_reasons import planted
from tests.support.studies.synthetic_search import write_search
from tests.support.studies.written import write
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.overview import overview
from bedplate.analysis.search import Searched, left_out_words, searched
from bedplate.model.codec import read
from bedplate.model.figure import RunFigures
from bedplate.model.visit import Validity
from bedplate.terminal.tables import modelled_effects, searched_tables


@pytest.fixture(scope="module")
def doubted(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    """The search had its proof; then every run of it is found suspect."""
    study = write_search(tmp_path_factory.mktemp("search") / "study")
    for path in study.glob("visits/*/*/*/runs/*/run.json"):
        run = read(RunFigures, path)
        write(
            path,
            replace(run, validity=Validity.SUSPECT, validity_reasons=planted("the client was saturated")),
        )
    found = searched(overview(study))
    assert found is not None
    return found


def test_runs_in_doubt_prove_nothing_and_have_their_mark(doubted: Searched) -> None:
    assert {None} == {cell.proved for cell in doubted.cells}
    visited = [
        line for line in as_printed(searched_tables(doubted), 120).splitlines() if re.search(r"\d !", line)
    ]
    assert len(visited) == sum(cell.visits > 0 for cell in doubted.cells)
    assert all(line.rstrip().endswith("-") for line in visited)


def test_no_factor_is_told_of_without_a_believed_figure(doubted: Searched) -> None:
    text = as_printed(modelled_effects(doubted), 120)
    assert "no figure yet" in text
    assert "best / worst level" not in text


def test_a_reason_fits_several_cells(doubted: Searched) -> None:
    assert any(
        re.fullmatch(r"\d cells left out: no run could be believed, so that no more are made\.", words)
        for words in left_out_words(doubted)
    )
