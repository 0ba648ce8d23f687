"""Courses as a reader meets them: of many runs, zoomed together, kept in the address, unpacked as they were packed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from playwright.sync_api import expect
from tests.browser.opened_page import opened, unfold
from tests.support.studies.synthetic_study import Recipe, write_study

from bedplate.page import document
from bedplate.page.build import build_report

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recipe = Recipe(filesystem_blocks=(1024, 4096), database_blocks=(4096, 8192), course_s=20)
    return write_study(tmp_path_factory.mktemp("courses") / "study", recipe)


@pytest.fixture(scope="module")
def report(study: Path) -> Path:
    output = study.parent / "report.html"
    build_report([study], output)
    return output


def time_axis(page: Page, picture: str) -> list[float]:
    """The ends of a picture's time axis, in seconds."""
    found: list[float] = page.evaluate("(id) => document.getElementById(id).layout.xaxis.range", picture)
    return found


def first_course(page: Page) -> tuple[str, dict[str, list[Any]]]:
    """The cell of the first drawn course, and its columns as the page has unpacked them."""
    found: tuple[str, dict[str, list[Any]]] = page.evaluate(
        """async () => {
          const [one] = bedplate.courses.chosen(bedplate.choice.state);
          return [bedplate.document.cells[one.cell].id, await bedplate.packedData.course(one.run)];
        }"""
    )
    return found


@pytest.mark.parametrize("precision", [document.FINE, document.COARSE])
def test_a_course_is_unpacked_as_it_was_recorded(
    browser: Browser,
    study: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    precision: document.Precision,
) -> None:
    monkeypatch.setattr(document, "precision_for", lambda _: precision)
    build_report([study], tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as found:
        cell, unpacked = first_course(found.page)
        [recorded] = [
            pl.read_parquet(path)
            for path in study.glob(f"visits/{cell}/*/1.1/runs/*/course.parquet")
            if '"run": "read-write"' in (path.parent / "run.json").read_text(encoding="utf-8")
        ]
        assert recorded["second"].to_list() == unpacked["second"]
        for name in ("tps", "latency_ms_p50", "latency_ms_max", "dirty_mib"):
            values = recorded[name].to_list()
            # A step, and as much again for the digits that are shown of it.
            if name.startswith("latency"):
                for value, back in zip(values, unpacked[name], strict=True):
                    step = (max(values) / min(values)) ** (1 / precision.steps(name)) - 1
                    assert abs(back / value - 1) <= max(step * 1.6, 6e-4)
            else:
                for value, back in zip(values, unpacked[name], strict=True):
                    assert abs(back - value) <= max(values) * max(1.1 / precision.steps(name), 1e-4)
        told = "a second is given to 1/180" in found.page.locator("#courses-note").inner_text()
        assert told == (precision is document.COARSE)
        assert [] == found.complaints


def test_zooming_in_one_picture_zooms_all_and_the_link_keeps_it(browser: Browser, report: Path) -> None:
    pictures = ("courses-plot", "latency-linear", "latency-logarithmic")
    with opened(browser, report) as found:
        page = found.page
        before = time_axis(page, "courses-plot")
        box = page.locator("#latency-linear .nsewdrag").first
        box.scroll_into_view_if_needed()
        place = box.bounding_box()
        assert place is not None
        middle = place["y"] + place["height"] / 2
        page.mouse.move(place["x"] + place["width"] * 0.3, middle)
        page.mouse.down()
        page.mouse.move(place["x"] + place["width"] * 0.6, middle, steps=4)
        page.mouse.up()
        page.wait_for_url("**courses.span**")
        ends = time_axis(page, "courses-plot")
        assert before[0] < ends[0] < ends[1] < before[1]
        for picture in pictures:
            assert ends == pytest.approx(time_axis(page, picture), abs=0.1)
        link = page.url
        page.goto("about:blank")
        page.goto(link)
        expect(page.locator("html")).to_have_attribute("data-ready", "yes")
        unfold(page)
        for picture in pictures:
            assert ends == pytest.approx(time_axis(page, picture), abs=0.1)
        page.locator("#courses-plot .nsewdrag").first.dblclick()
        page.wait_for_url(lambda url: "courses.span" not in url)
        assert before == pytest.approx(time_axis(page, "latency-logarithmic"), abs=1.5)
        assert [] == found.complaints


def test_many_runs_are_drawn_as_bands_of_their_variants(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        page.select_option("#choose-courses", label="all shown cells")
        page.select_option("#choose-repetition", label="all")
        # Four cells of each variant, two of btrfs, three repetitions.
        expect(page.locator("#courses-note")).to_contain_text("n = 42 runs of the shown cells")
        variants = page.locator("#chosen li").all_inner_texts()
        assert ["12 runs", "12 runs", "12 runs", "6 runs"] == [
            text.rpartition("(")[2].rstrip(")") for text in variants if "runs" in text
        ]
        expect(page.locator("#distribution-note")).to_contain_text("of 42 runs")
        median = page.evaluate(
            """() => {
              const node = document.getElementById("courses-plot");
              const [low, high, middle] = node.data;
              return middle.y.every((value, i) => low.y[i] <= value && value <= high.y[i]) && middle.y.length;
            }"""
        )
        assert 30 == median
        page.locator("#courses-table > summary").click()
        expect(page.locator("#courses-table tbody tr")).to_have_count(4 * 30)
        assert [] == found.complaints


def test_rows_of_a_long_table_are_made_when_they_are_asked_for(browser: Browser, report: Path) -> None:
    eight = "bedplate.choice.change({ courses: bedplate.choice.shown().slice(0, 8) })"
    with opened(browser, report) as found:
        page = found.page
        page.evaluate(eight)
        page.locator("#courses-table > summary").click()
        rows = page.locator("#courses-table tbody tr")
        expect(rows).to_have_count(15)
        expect(page.locator("#courses-table caption")).to_contain_text("240 rows, the first 15 shown")
        page.locator("#courses-table caption input").fill("warm-up")
        expect(page.locator("#courses-table caption")).to_contain_text("80 rows")
        expect(rows).to_have_count(240)

        page.evaluate("bedplate.choice.change({ courses: null })")
        page.evaluate(eight)
        expect(rows).to_have_count(15)
        page.locator("#courses-table th button", has_text="tps").click()
        expect(rows).to_have_count(240)
        shown = page.locator("#courses-table tbody tr:not(.beyond)").all_inner_texts()
        greatest = page.evaluate(
            """async () => {
              const every = await Promise.all(
                bedplate.courses.chosen(bedplate.choice.state).map((one) => bedplate.packedData.course(one.run)),
              );
              return bedplate.number(Math.max(...every.flatMap((course) => course.tps)));
            }"""
        )
        assert greatest in shown[0]

        page.evaluate("bedplate.choice.change({ courses: null })")
        page.evaluate(eight)
        expect(rows).to_have_count(15)
        saved = page.evaluate('bedplate.save.rowsBehind("courses-table")()')
        assert 1 + 240 == len(saved)
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        expect(rows).to_have_count(240)
        assert [] == found.complaints


def test_all_repetitions_of_a_few_cells_are_lines(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        page.select_option("#choose-repetition", label="all")
        expect(page.locator("#courses-note")).to_contain_text("n = 6 runs; ")
        names = page.evaluate(
            "[...new Set(document.getElementById('courses-plot').data.map((trace) => trace.name))]"
        )
        assert 6 == len(names)
        page.select_option("#choose-repetition", label="2")
        expect(page.locator("#courses-note")).to_contain_text("n = 2 runs; ")
        assert [] == found.complaints
