"""The section of a search in a real Chromium: the course of its chances, the maps, what mattered, the proof."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.browser.opened_page import opened
from tests.support.studies.synthetic_search import SearchRecipe, write_search

from bedplate.page.build import build_report

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("search")
    study = write_search(directory / "study", SearchRecipe(blocks=None))
    build_report([study], directory / "report.html")
    return directory / "report.html"


@pytest.mark.parametrize("width", [1280, 390])
def test_the_search_is_drawn_and_fits_its_window(browser: Browser, report: Path, width: int) -> None:
    with opened(browser, report, width=width) as found:
        page = found.page
        page.locator("#search").scroll_into_view_if_needed()
        expect(page.locator("#search-0-plot .scatterlayer .trace")).not_to_have_count(0)
        expect(page.locator("#search-0-note")).to_contain_text("Search: this one")
        squares = page.locator("#search td.square")
        assert 18 == squares.count()
        # The cells without barriers were never open: they have no map, and are named.
        assert 0 == page.locator("#search td.empty").count()
        expect(page.locator("#search")).to_contain_text("No map of what is left out whole: ext4 nobarrier")
        named = page.locator("#search td.best")
        expect(named).to_have_count(1)
        expect(named).to_contain_text("proved")
        assert "not visited" in " ".join(squares.all_inner_texts())
        expect(page.get_by_role("region", name="What mattered")).to_contain_text("file system")
        expect(page.get_by_role("region", name="The proof")).to_contain_text("the plan's first cell")
        page.locator("#search-0-table summary").click()
        expect(page.locator("#search-0-table tbody tr")).not_to_have_count(0)
        assert not page.locator("#effects").count()
        assert [] == found.complaints
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_answer_is_the_search_and_no_advice(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        answer = found.page.locator("#answer")
        expect(answer.locator("dt").first).to_have_text("Search")
        expect(answer).to_contain_text("This one: xfs")
        expect(answer).not_to_contain_text("What to choose")
        expect(answer).to_contain_text("Matters")
        for chapter in ("comparison", "picture", "time"):
            marks = found.page.locator(f"#{chapter} > .marks")
            expect(marks).to_contain_text("A search chose which cells to visit")
        assert [] == found.complaints
