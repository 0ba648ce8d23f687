"""Power cuts on the page in a real Chromium: verdicts, speed against durability, what was lost, recovery."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.browser.opened_page import opened
from tests.synthetic_power_cuts import power_cut_study

from bedplate.report.build import build_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("cuts")
    build_report([power_cut_study(directory / "study", refused="xfs")], directory / "report.html")
    return directory / "report.html"


@pytest.mark.parametrize("width", [1280, 390])
def test_verdicts_and_pictures_are_there_and_fit(browser: Browser, report: Path, width: int) -> None:
    with opened(browser, report, width=width) as found:
        page = found.page
        verdicts = page.locator("#power-cuts ~ .wide tbody td .badge").all_inner_texts()
        assert ["durable", "unsafe / durable", "refused", "unsafe / durable"] == verdicts
        # A bound is not torn from its count.
        lines = page.locator(".cuts .figure").evaluate_all(
            "all => all.map((one) => one.getClientRects().length)"
        )
        assert {1} == set(lines)
        # Four cells with each cache, so eight marks.
        expect(page.locator("#cut-speed-plot .scatterlayer .point")).to_have_count(8)
        expect(page.locator("#cut-lost-plot .boxlayer .trace.boxes")).to_have_count(1)
        expect(page.locator("#cut-recovery-plot .boxlayer .trace.boxes")).to_have_count(4)
        page.locator("#cut-speed-table summary").click()
        expect(page.locator("#cut-speed-table tbody tr")).to_have_count(4)
        expect(page.locator("#cut-speed-table")).to_contain_text("30 of 30 bad, 88.43 % to 100.0 %")
        expect(page.locator("#cut-speed-table")).to_contain_text("verdict refused")
        assert [] == found.complaints
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_every_picture_has_its_table_and_can_be_taken_along(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        for name, cells in (("speed", 4), ("lost", 1), ("recovery", 4)):
            page.locator(f"#cut-{name}-table summary").click()
            expect(page.locator(f"#cut-{name}-table tbody tr")).to_have_count(cells)
            save = page.locator(f"#cut-{name}-plot + .save")
            with page.expect_download() as taken:
                save.get_by_role("button", name="Save CSV").click()
            rows = Path(taken.value.path()).read_text(encoding="utf-8-sig").splitlines()
            assert 1 + cells == len(rows)
        expect(page.locator("#durability .wide:has(.plot) + .save")).to_have_count(0)
        assert [] == found.complaints


def test_the_pictures_follow_the_run_and_the_cells_that_are_chosen(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        page.select_option("#choose-run", label="read-only (pgbench scale 30)")
        expect(page.locator("#cut-speed-note")).to_contain_text("tps, read-only")
        # Power cuts have no speed: the first run that has one stands for it.
        page.evaluate(
            "bedplate.choice.change({ run: bedplate.document.runs.findIndex((one) => one.kind === 'power_cut') })"
        )
        expect(page.locator("#cut-speed-note")).to_contain_text("tps")
        page.evaluate("bedplate.choice.change({ cells: [0] })")
        expect(page.locator("#cut-speed-plot .scatterlayer .point")).to_have_count(2)
        expect(page.locator("#cut-lost-note")).to_contain_text("No cut")
        expect(page.locator("#cut-speed-legend")).to_contain_text("unknown, or verdict refused")
        assert [] == found.complaints
