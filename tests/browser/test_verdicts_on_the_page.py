"""Verdicts and heat maps that the page makes itself, beside those of Python on the same figures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.browser.opened_page import opened
from tests.page_vectors import GOLDEN
from tests.synthetic_study import Recipe, write_study

from bedplate.report.build import build_report

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

COMPARED = """vectors => {
  const { verdicts } = bedplate;
  const side = rows => new Map(rows.map(([repetition, value, status, limit, outcome, validity]) => [repetition, { value, status, limit, outcome, validity }]));
  const made = vectors.cases.map(one => verdicts.compare(side(one.baseline), side(one.contender), vectors.metrics[one.metric],
    { margin: one.margin, confidence: one.confidence, sharesRepetitions: one.shares_repetitions }));
  const says = (found, more) => ({ ...found, p_value: verdicts.pValue(found), more_repetitions: more ? verdicts.moreRepetitions(found) : undefined });
  return {
    cases: made.map(found => says(found, true)),
    families: vectors.families.map(({ members }) => verdicts.judgedTogether(members.map(member => made[member])).map(found => says(found, false))),
  };
}"""
DRAWN = """vectors => vectors.map(({ maps, scale }) => {
  const known = new Map(Object.entries(maps).map(([name, squares]) => [name, new Map(squares.map(([row, column, value]) => [`${row}/${column}`, value]))]));
  const ends = bedplate.heatScale.common([...known.values()].flatMap(squares => [...squares.values()]), scale);
  const average = bedplate.heatScale.average(known, scale);
  return { ends: ends && [ends.low, ends.high, ends.logarithmic], average: [...average.values], used: average.used, left_out: average.left_out };
})"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("verdicts")
    recipe = Recipe(filesystem_blocks=(4096,), database_blocks=(8192,), course_s=5)
    build_report([write_study(directory / "study", recipe)], directory / "report.html")
    return directory / "report.html"


def hold_together(expected: dict[str, Any], found: dict[str, Any], *, but: tuple[str, ...] = ()) -> None:
    for name, wanted in expected.items():
        if name in but:
            continue
        if isinstance(wanted, float):
            assert found[name] == pytest.approx(wanted, rel=1e-9, abs=1e-300), (name, expected)
        else:
            assert wanted == found[name], (name, expected)


def test_the_page_judges_as_python_does(browser: Browser, report: Path) -> None:
    vectors = json.loads((GOLDEN / "comparisons.json").read_text(encoding="utf-8"))
    with opened(browser, report) as page:
        found = page.page.evaluate(COMPARED, vectors)
    assert len(vectors["cases"]) == len(found["cases"])
    for case, made in zip(vectors["cases"], found["cases"], strict=True):
        hold_together(case["expected"], made)
    for family, together in zip(vectors["families"], found["families"], strict=True):
        for expected, made in zip(family["expected"], together, strict=True):
            hold_together(expected, made, but=("more_repetitions",))


def test_the_page_averages_maps_as_python_does(browser: Browser, report: Path) -> None:
    vectors = json.loads((GOLDEN / "heat-maps.json").read_text(encoding="utf-8"))
    with opened(browser, report) as page:
        found = page.page.evaluate(DRAWN, vectors)
    for expected, made in zip(vectors, found, strict=True):
        assert (expected["used"], expected["left_out"]) == (made["used"], made["left_out"])
        assert expected["ends"] == made["ends"]
        values = {f"{row}/{column}": value for row, column, value in expected["average"]}
        assert values == pytest.approx(dict(made["average"]), rel=1e-9)
