"""Verdicts and heat maps that the page makes itself, beside those of Python on the same figures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from tests.browser.opened_page import opened
from tests.page_vectors import GOLDEN
from tests.synthetic_power_cuts import power_cut_study
from tests.synthetic_study import Recipe, write_study

from bedplate.report.build import build_report
from bedplate.report.compared import Question, answer
from bedplate.report.counted_share import BAD_SHARE
from bedplate.report.overview import overview

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

COMPARED = """vectors => {
  const { verdicts } = bedplate;
  const side = rows => new Map(rows.map(([repetition, value, status, limit, outcome, validity, of]) => [repetition, { value, status, limit, outcome, validity, of: of ?? null }]));
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


def test_shares_of_cuts_are_told_from_one_recording(browser: Browser, tmp_path: Path) -> None:
    study = power_cut_study(tmp_path / "study", refused="xfs")
    build_report([study], tmp_path / "report.html")
    question = Question("type=ext4 barrier=yes", "type=ext4 barrier=no", metrics=(BAD_SHARE,))
    (expected,) = answer([overview(study)], question).compared
    cells = list(overview(study).cells)
    sides = [cells.index(side.cell) for side in (expected.pair.baseline, expected.pair.contender)]
    with opened(browser, tmp_path / "report.html") as found:
        page = found.page
        page.evaluate(
            f"""bedplate.choice.change({{ run: bedplate.document.runs.findIndex((one) => one.kind === "power_cut"),
                metric: bedplate.data.metricOf.get("{BAD_SHARE}"), baseline: {sides[0]}, contender: {sides[1]} }})"""
        )
        row = page.locator("#compare-table tbody tr")
        expect(row).to_have_count(1)
        expect(row.locator(".judged")).to_have_text(expected.comparison.verdict.value)
        expect(row).to_contain_text("30 of 30 beside 0 of 30, the cuts of one recording")
        expect(row.locator(".figure")).to_have_text("+1.000")
        assert expected.comparison.low is not None
        expect(row).to_contain_text(f"+{expected.comparison.low:.4f} to +1.000")
        expect(page.locator("#compare-note")).to_contain_text("The figure is contender − baseline")
        # A refused verdict is suspect: nothing is held against it.
        page.evaluate(f"bedplate.choice.change({{ contender: {cells.index(_cell_of(study, 'xfs'))} }})")
        expect(row.locator(".judged")).to_have_text("cannot tell")
        expect(row).to_contain_text("1 suspect run left out")
        assert [] == found.complaints


def _cell_of(study: Path, filesystem: str) -> str:
    cells = overview(study).study.schedule.cells
    return next(name for name, cell in cells.items() if cell.filesystem.type == filesystem)
