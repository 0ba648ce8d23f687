"""The section of a search on the page, and its answer in place of advice."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.synthetic_search import SearchRecipe, write_search
from tests.unit.page.test_build_report import elements

from bedplate.analysis.overview import overview, overview_of
from bedplate.analysis.search import search_of
from bedplate.model.visit import Validity
from bedplate.page.build import build_report
from bedplate.page.views import search_sections, searches_document
from bedplate.study.stored import read_study

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.analysis.overview import Overview


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_search(tmp_path_factory.mktemp("search") / "study", SearchRecipe(blocks=None))


@pytest.fixture(scope="module")
def found(study: Path) -> Overview:
    return overview(study)


def test_every_cell_is_a_square_with_what_was_predicted_measured_and_proved(found: Overview) -> None:
    (section,) = search_sections([found], ["study"])
    squares = [each for one in section.maps for _, row in one.rows for each in row if each is not None]
    assert 18 == len(squares)
    assert not any(each.share is None or each.why for each in squares)
    # The six without barriers are a variant of their own, of which there is nothing to draw.
    (without,) = (line for line in section.left_out if line.startswith("No map of what is left out whole: "))
    assert "nobarrier" in without
    (named,) = (each for each in squares if each.is_named)
    assert "7" == named.measured.split(" in ")[1]
    assert named.proved
    assert 1.0 == max(each.share for each in squares if each.share is not None) == named.share
    unvisited = [each for each in squares if each.share is not None and "not visited" == each.measured]
    assert unvisited
    assert all(each.predicted for each in unvisited)


def test_a_cell_whose_runs_are_not_believed_is_not_called_left_out(tmp_path: Path) -> None:
    stored = read_study(write_search(tmp_path / "study", SearchRecipe(budget_visits=14, blocks=1)))
    visits = tuple(
        replace(each, runs=tuple(replace(run, validity=Validity.SUSPECT) for run in each.runs))
        for each in stored.visits
    )
    (section,) = search_sections([overview_of(replace(stored, visits=visits))], ["study"])
    squares = [each for one in section.maps for _, row in one.rows for each in row if each is not None]
    assert {None} == {each.share for each in squares}
    assert len(visits) == sum("not believed" == each.measured for each in squares)
    assert 18 == len(squares)
    assert not any(each.why for each in squares)


def test_the_proof_is_todays_comparison_and_the_factors_have_intervals(found: Overview) -> None:
    (section,) = search_sections([found], ["study"])
    search = search_of(found)
    assert search is not None
    assert search.proof is not None
    assert len(search.proof.rivals) == len(section.proof)
    assert "xfs" in section.leader
    assert {"slower"} == {row.verdict for row in section.proof}
    assert any(row.note == "the plan's first cell" for row in section.proof)
    assert ["file system", "db block"] == [row.factor for row in section.factors]
    assert all(" to " in row.bounds for row in section.factors)


def test_the_chances_over_time_add_up(found: Overview) -> None:
    (course,) = searches_document([found])
    assert sorted(course["minutes"]) == course["minutes"]
    for at in range(len(course["minutes"])):
        chances = [line[1][at] for line in course["lines"]]
        assert sum(chances) + course["rest"][at] == pytest.approx(1, abs=0.01)
    assert course["proofs"][0] == 0 < course["proofs"][-1]


def test_a_page_of_a_search_answers_with_it_and_shows_no_effects_of_means(
    study: Path, tmp_path: Path
) -> None:
    build_report([study], tmp_path / "report.html")
    page = elements((tmp_path / "report.html").read_text(encoding="utf-8"))
    ids = {attributes.get("id") for tag, attributes in page.tags if tag == "section"}
    assert "search" in ids
    assert "effects" not in ids
    data = json.loads(page.scripts[0])
    assert data["mails"][0].startswith("This one: xfs")
    assert [] == data["effects"]
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    # Above the picture of the answer, the means, the pictures of them and the courses.
    assert 4 == text.count('<ul class="marks"><li>A search chose which cells to visit')


def test_commands_that_stand_between_back_quotes_are_code(found: Overview, tmp_path: Path) -> None:
    build_report([found.study.directory], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    answer = page[page.index('id="answer"') :]
    headline = "".join(re.findall(r'<dl class="headline">.*?</dl>', answer, re.DOTALL))
    assert "<code>bedplate " in headline
    assert "`" not in headline


def test_a_search_that_has_not_ended_says_where_it_is(tmp_path: Path) -> None:
    under_way = overview(write_search(tmp_path / "study", SearchRecipe(blocks=3)))
    (section,) = search_sections([under_way], ["study"])
    assert (3, (), "") == (section.blocks, section.proof, section.leader)
    assert not any(each.is_named for one in section.maps for _, row in one.rows for each in row if each)
