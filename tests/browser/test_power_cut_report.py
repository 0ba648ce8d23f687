"""Power cuts on the page in a real Chromium: verdicts, speed against durability, what was lost, recovery."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.browser.opened_page import opened
from tests.support.studies.synthetic_power_cuts import RECIPE, power_cut_study

from bedplate.page.build import build_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

# The words of the keys above the marks, and the pairs of them that touch.
KEYS = """() => {
  const all = [...document.querySelectorAll("#cut-speed-plot .annotation-text")];
  const boxes = all.map((one) => one.getBoundingClientRect());
  const touch = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const torn = all.filter((_, i) => boxes.some((other, j) => i !== j && touch(boxes[i], other)));
  return [all.map((one) => one.textContent), torn.map((one) => one.textContent)];
}"""


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
        # With sectors of 4 KiB, with 512 bytes, and in order.
        safe, torn = ["durable"] * 3, ["unsafe", "unsafe", "durable"]
        assert [*safe, *torn, *["refused"] * 3, *torn] == verdicts
        # The class is in sight however narrow the window is, and nothing is cut off a wide one.
        ends = page.locator(".cuts .badge").evaluate_all(
            "all => all.map((one) => one.getBoundingClientRect().right)"
        )
        assert max(ends) <= width
        beyond = page.locator(".wide:has(> .cuts)").evaluate("(one) => one.scrollWidth - one.clientWidth")
        assert width == 390 or beyond == 0
        # A bound is not torn from its count.
        lines = page.locator(".cuts .figure").evaluate_all(
            "all => all.map((one) => one.getClientRects().length)"
        )
        assert {1} == set(lines)
        # Four cells with each of three caches.
        expect(page.locator("#cut-speed-plot .scatterlayer .point")).to_have_count(12)
        # A median for each recording, and its cuts.
        for plot, recordings in (("cut-lost-plot", 1), ("cut-recovery-plot", 4)):
            cuts, medians = page.locator(f"#{plot} .scatterlayer .trace:has(.point)").all()
            expect(medians.locator(".point")).to_have_count(recordings)
            assert recordings < cuts.locator(".point").count()
        page.locator("#cut-speed-table summary").click()
        expect(page.locator("#cut-speed-table tbody tr")).to_have_count(4)
        expect(page.locator("#cut-speed-table")).to_contain_text("20 of 20 bad, 83.16 % to 100 %")
        expect(page.locator("#cut-speed-table")).to_contain_text("verdict refused")
        assert [] == found.complaints
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_on_a_phone_the_reasons_of_a_class_stand_in_sight_below_it(browser: Browser, report: Path) -> None:
    with opened(browser, report, width=390) as found:
        reasons = found.page.locator(".flushes td.why > div")
        assert 4 <= reasons.count()
        assert (
            reasons.evaluate_all("all => Math.max(...all.map((one) => one.getBoundingClientRect().right))")
            <= 390
        )
        # The name of a number stands beside it, as there is no head to read it from.
        names = found.page.locator(".flushes td.number").first.evaluate(
            "(one) => getComputedStyle(one, '::before').content"
        )
        assert '"data, appending"' == names
        assert [] == found.complaints


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


def test_a_saved_row_has_its_cell_however_many_rows_the_cell_spans(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        with page.expect_download() as taken:
            page.locator(".wide:has(> .cuts) + .save").get_by_role("button", name="Save CSV").click()
        text = Path(taken.value.path()).read_text(encoding="utf-8-sig")
        head, *rows = list(csv.reader(io.StringIO(text)))
        assert ["Cell", "Cache", "Verdict", "Drawn, bad cuts"] == head[:4]
        cuts = [row for row in rows if row[1]]
        names = [row[0].split(" ·")[0] for row in cuts]
        assert names == [
            name for name in ("ext4 barrier", "ext4 nobarrier", "xfs", "btrfs nodatacow") for _ in "123"
        ]
        verdicts = [row[2] for row in cuts if row[0].startswith("ext4 nobarrier")]
        assert ["unsafe", "unsafe", "durable"] == verdicts
        assert {len(head)} == {len(row) for row in rows}
        assert [] == found.complaints


def test_the_pictures_follow_the_run_and_the_cells_that_are_chosen(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        page.select_option("#choose-run", label="read-only")
        expect(page.locator("#cut-speed-note")).to_contain_text("tps, read-only")
        # Power cuts have no speed: the first run that has one stands for it.
        page.evaluate(
            "bedplate.choice.change({ run: bedplate.document.runs.findIndex((one) => one.kind === 'power_cut') })"
        )
        expect(page.locator("#cut-speed-note")).to_contain_text("tps")
        page.evaluate("bedplate.choice.change({ cells: [0] })")
        expect(page.locator("#cut-speed-plot .scatterlayer .point")).to_have_count(3)
        expect(page.locator("#cut-lost-note")).to_contain_text("No cut")
        expect(page.locator("#cut-speed-legend")).to_contain_text("unknown, or verdict refused")
        assert [] == found.complaints


@pytest.mark.parametrize("width", [1280, 390])
def test_a_page_opens_at_its_top_whatever_its_bar_has(browser: Browser, report: Path, width: int) -> None:
    with opened(browser, report, width=width, fresh=True) as found:
        assert 0 == found.page.evaluate("window.scrollY")
        assert found.page.evaluate("document.getElementById('part-choice').hidden") is False
        assert [] == found.complaints


@pytest.mark.parametrize("width", [1280, 390])
def test_marks_have_names_where_they_have_room_and_none_hides_another(
    browser: Browser, report: Path, width: int
) -> None:
    with opened(browser, report, width=width) as found:
        texts, touching = found.page.evaluate(KEYS)
        names = ["btrfs nodatacow", "ext4 barrier", "xfs", "ext4 nobarrier"]
        if width == 390:
            # A phone has room for their numbers.
            assert ["1", "2", "3", "4"] == texts
            explained = found.page.locator("#cut-speed-legend li:has(b)").all_inner_texts()
            assert all(name in text for name, text in zip(names, explained, strict=True))
        else:
            assert names == [
                text.removesuffix("unsafe / durable").removesuffix("verdict refused").removesuffix("durable")
                for text in texts
            ]
        assert [] == touching
        # A square around a ring around a smaller diamond, as they stand at the same share in some of the cells.
        marks = found.page.evaluate(
            "document.getElementById('cut-speed-plot').data.map(({ marker }) => [marker.symbol, marker.size])"
        )
        assert ["square-open", "circle-open", "diamond"] == [symbol for symbol, _ in marks]
        assert marks[0][1] > 1.3 * marks[1][1] > 1.5 * marks[2][1]
        assert [] == found.complaints


def test_many_marks_have_numbers_that_the_legend_explains(browser: Browser, tmp_path: Path) -> None:
    recipe = replace(
        RECIPE,
        filesystem_blocks=(1024, 4096),
        database_blocks=(4096, 8192, 16384),
        repetitions=1,
        course_s=10,
    )
    build_report([power_cut_study(tmp_path / "study", recipe=recipe)], tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html", fresh=True) as found:
        page = found.page
        texts, touching = page.evaluate(KEYS)
        assert [str(number) for number in range(1, 22)] == texts
        assert [] == touching
        explained = page.locator("#cut-speed-legend li:has(b)")
        expect(explained).to_have_count(21)
        expect(explained.first).to_contain_text("btrfs nodatacow")
        expect(explained.first).to_contain_text("unsafe / durable")
        # On paper, and where few are looked at, keys are set anew.
        page.evaluate("Plotly.relayout('cut-speed-plot', { width: 680 })")
        texts, touching = page.evaluate(KEYS)
        assert [] == touching
        page.evaluate("Plotly.relayout('cut-speed-plot', { width: 1000, 'xaxis.range': [2100, 2500] })")
        expect(explained).to_have_count(0)
        texts, touching = page.evaluate(KEYS)
        assert 2 == len(texts)
        assert all("unsafe / durable" in text for text in texts)
        assert [] == touching
        assert [] == found.complaints


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_page_of_power_cuts_alone_begins_with_what_is_safe(
    browser: Browser, tmp_path: Path, width: int, *, dark: bool
) -> None:
    recipe = replace(RECIPE, runs=(), repetitions=1)
    build_report([power_cut_study(tmp_path / "study", recipe=recipe)], tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html", width=width, dark=dark) as found:
        page = found.page
        # Ten cuts show too little to be called safe.
        assert "Open" == page.locator("#answer .headline dt").first.inner_text()
        assert "none of 10 cuts" in page.locator("#answer .headline .first").inner_text()
        sections = page.eval_on_selector_all("main > section", "every => every.map((one) => one.id)")
        assert ["answer", "durability"] == sections[:2]
        for section in page.locator("main > section").all():
            section.scroll_into_view_if_needed()
        # No speed, no picture of it, and nothing to save of it.
        expect(page.locator("#durability")).to_contain_text("No cell has a speed here")
        expect(page.locator("#cut-speed")).to_have_count(0)
        # How many cuts of each cell were bad is beside the answer in its place.
        expect(page.locator("#ranking-note")).to_contain_text("power_cuts_bad")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert [] == found.complaints
