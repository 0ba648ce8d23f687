"""What a reader sees before scrolling: the answer, the picture of it, and where on the page this is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.browser.opened_page import opened
from tests.support.studies.former_studies import unpacked
from tests.support.studies.synthetic_power_cuts import power_cut_study
from tests.support.studies.synthetic_study import Recipe, write_study

from bedplate.page.build import build_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

TITLE = "Barriers and block sizes of four file systems under one database, the whole of it"
RECIPE = Recipe(filesystem_blocks=(1024, 4096), database_blocks=(2048, 8192, 16384), course_s=10, title=TITLE)
LINES = "(one) => one.getBoundingClientRect().height / parseFloat(getComputedStyle(one).lineHeight)"
# How much of the page is below the last line of it, in windows.
EMPTY = """() => (document.documentElement.scrollHeight - window.scrollY
  - document.querySelector("footer").getBoundingClientRect().bottom) / window.innerHeight"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("front")
    build_report([write_study(directory / "study", RECIPE)], directory / "report.html")
    return directory / "report.html"


@pytest.fixture(scope="module")
def cuts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("cuts")
    build_report([power_cut_study(directory / "study")], directory / "report.html")
    return directory / "report.html"


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1920, True), (390, False)])
def test_the_best_cell_of_the_first_class_is_seen_beside_the_answer(
    browser: Browser, report: Path, width: int, *, dark: bool
) -> None:
    with opened(browser, report, width=width, dark=dark, folded=True) as found:
        page = found.page
        best = page.locator("#ranking-plot .rank").first
        expect(best).to_be_in_viewport(ratio=1)
        expect(page.locator("#answer .headline .first")).to_be_in_viewport(ratio=1)
        if width > 390:
            assert page.locator("h1").evaluate(LINES) < 1.5
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert [] == found.complaints


def test_cells_are_ranked_within_their_class_on_one_scale_with_numbers_at_both_ends(
    browser: Browser, report: Path
) -> None:
    with opened(browser, report) as found:
        page = found.page
        assert ["durable", "unsafe"] == page.locator("#ranking-plot > .class").all_inner_texts()
        page.locator("#ranking-plot details summary").first.click()
        figures = page.evaluate(
            """() => [...document.querySelectorAll("#ranking-plot .rank[data-cell]")].map((one) => [
                 one.dataset.cell, parseFloat(one.querySelector(".dot").style.left)])"""
        )
        classes: dict[str, list[float]] = {}
        for cell, place in figures:
            kind = page.evaluate(f"bedplate.document.cells[{cell}].durability_class")
            classes.setdefault(kind, []).append(place)
        assert {"durable", "unsafe"} == classes.keys()
        for places in classes.values():
            assert places == sorted(places, reverse=True)
            assert 0 <= min(places)
            assert max(places) <= 100
        low, high = page.locator("#ranking-plot .scale .ends span").all_inner_texts()
        assert float(low.replace(",", "")) < float(high.replace(",", ""))
        # What is better stands first where less is better, too.
        page.select_option("#choose-metric", label="latency_ms_p99")
        page.evaluate("bedplate.onScreen.drawn()")
        first, second = page.locator("#ranking-plot .rank .dot").all()[:2]
        assert first.evaluate("(one) => parseFloat(one.style.left)") <= second.evaluate(
            "(one) => parseFloat(one.style.left)"
        )


@pytest.mark.parametrize("width", [1280, 1920])
def test_speed_against_bad_cuts_is_seen_first_of_a_study_of_power_cuts(
    browser: Browser, cuts: Path, width: int
) -> None:
    with opened(browser, cuts, width=width, folded=True) as found:
        marks = found.page.locator("#cut-speed-plot .scatterlayer .point")
        expect(marks).to_have_count(12)
        for mark in marks.all():
            expect(mark).to_be_in_viewport()
        assert [] == found.complaints


def test_the_contents_mark_what_is_read_and_the_page_ends_with_its_last_line(
    browser: Browser, report: Path
) -> None:
    with opened(browser, report, folded=True) as found:
        page = found.page
        marked = page.locator("nav.contents a[aria-current]")
        expect(marked).to_have_text("Answer")
        page.evaluate(
            "window.scrollBy(0, document.getElementById('summary-head').getBoundingClientRect().top - 120)"
        )
        expect(marked).to_have_text("Cells")
        # To a section that has no window's height below it.
        page.locator("nav.contents a", has_text="Plan").click()
        expect(marked).to_have_text("Plan")
        expect(page.locator("#plan-head")).to_be_in_viewport()
        page.evaluate("window.scrollTo(0, 0)")
        expect(marked).to_have_text("Answer")
        assert page.evaluate(EMPTY) < 0.15


def test_the_verdict_stands_where_sides_are_chosen(browser: Browser, report: Path) -> None:
    with opened(browser, report, folded=True) as found:
        page = found.page
        page.locator("#sides > summary").click()
        expect(page.locator("#sides-verdict")).to_be_hidden()
        page.select_option("#sides-panel select >> nth=0", label="file system: ext4")
        page.select_option("#sides-panel select >> nth=1", label="file system: xfs")
        verdict = page.locator("#sides-verdict")
        expect(verdict).to_be_in_viewport()
        expect(verdict).to_contain_text("xfs")
        said = verdict.inner_text().removesuffix(" Each pair")
        assert said == page.locator("#compare-verdict").inner_text()
        # It answers to the bar that it is below.
        page.select_option("#choose-metric", label="latency_ms_p99")
        expect(verdict).not_to_contain_text(said)
        verdict.locator("a").click()
        expect(page.locator("#compare-verdict")).to_be_in_viewport()
        expect(page.locator("#sides-panel")).to_be_hidden()


def test_the_average_is_the_first_map_and_the_better_is_never_paler(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        assert page.locator("#heat-list figcaption").first.inner_text().startswith("Average of ")
        heads = page.locator("#heat-list table").first.locator("thead th").all_inner_texts()[1:]
        assert ["2 KiB", "8 KiB", "16 KiB"] == heads
        for metric, better in (("tps", max), ("latency_ms_p99", min)):
            page.select_option("#choose-metric", label=metric)
            page.evaluate("bedplate.onScreen.drawn()")
            squares = page.evaluate(
                """() => [...document.querySelectorAll("#heat-list td.square[data-cell]")].map((one) => [
                     bedplate.data.summary(Number(one.dataset.cell), bedplate.choice.state.run, bedplate.choice.state.metric).mean,
                     Number(one.style.getPropertyValue("--share"))])"""
            )
            best = better(value for value, _ in squares)
            assert 1 == next(share for value, share in squares if value == best)
            legend = page.locator("#heat-legend").inner_text()
            assert "(better)" in legend


def test_the_bar_has_one_line_on_a_phone_with_parts_to_choose_from(
    browser: Browser, cuts: Path, tmp_path: Path
) -> None:
    build_report([unpacked("power-cut-quick", tmp_path)], tmp_path / "report.html")
    for path in (cuts, tmp_path / "report.html"):
        with opened(browser, path, width=390, folded=True) as found:
            page = found.page
            expect(page.locator("#choose-part")).to_be_visible()
            tops = page.locator(".choice > :is(label, details):visible").evaluate_all(
                "all => all.map((one) => Math.round(one.getBoundingClientRect().top))"
            )
            assert 6 == len(tops)
            assert max(tops) - min(tops) <= 2
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
