"""TPC-H's part of the page in a real Chromium: parts to choose, bars, scores, plans side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.browser.opened_page import opened
from tests.support.studies.synthetic_study import HOSTILE, Recipe, write_study
from tests.support.studies.synthetic_tpch import TpchRecipe, synthetic_tpch_study

from bedplate.page.build import build_report

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six cells; query 20 of one stops at 30 s, query 9 has two plans, query 21 wavers in one cell."""
    directory = tmp_path_factory.mktemp("tpch")
    build_report([synthetic_tpch_study(directory / "study")], directory / "report.html")
    return directory / "report.html"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("hostile")
    recipe = TpchRecipe(
        filesystems=("ext4",),
        repetitions=2,
        hostile=True,
        timeouts=((1, 20),),
        other_plans=((1, 9),),
        wavering_plans=((0, 21),),
        failed=((1, 2, "warm"),),
    )
    build_report([synthetic_tpch_study(directory / "study", recipe)], directory / "report.html")
    return directory / "report.html"


def choose(page: Page, name: str, label: str) -> None:
    page.select_option(f"#choose-{name}", label=label)


def options(page: Page, name: str) -> list[str]:
    return page.locator(f"#choose-{name} option").all_inner_texts()


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False)])
def test_opens_offline_without_a_complaint_or_a_request(
    browser: Browser, report: Path, width: int, *, dark: bool
) -> None:
    with opened(browser, report, width=width, dark=dark) as found:
        for run in ("load", "warm", "throughput"):
            choose(found.page, "run", run)
            expect(found.page.locator("#courses-note")).to_contain_text(run)
        assert [] == found.complaints
        assert [found.uri] == [url for url in found.requests if not url.startswith(("data:", "blob:"))]
        assert found.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_study_of_tpch_shows_nothing_of_transactions(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        shown = {section.get_attribute("id") for section in page.locator("section").all()}
        assert {"scores", "items", "plans"} <= shown
        assert not {"latency", "distribution", "checkpoints"} & shown
        assert "tps" not in options(page, "metric")
        assert "queries_total_s" in page.locator("#heat-definition").inner_text()
        # The pass in which a query was stopped took longer than its sum.
        assert 0 == page.locator("#heat-list td.empty:not(.stopped)").count()
        assert page.locator("#heat-list td.stopped").inner_text().startswith("> ")
        assert "22 queries completed" in page.locator("#summary").inner_text()


def test_parts_are_offered_where_the_run_and_the_metric_have_them(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        assert ["whole run"] == options(page, "part")
        choose(page, "metric", "device_read_mib")
        assert ["whole run", *(f"query {number}" for number in range(1, 23))] == options(page, "part")
        choose(page, "part", "query 14")
        choose(page, "metric", "query_s")
        assert "query 14" == page.locator("#choose-part option:checked").inner_text()
        assert "cold, query 14" in page.locator("#heat-definition").inner_text()
        choose(page, "run", "load")
        assert "load_total_s" == page.locator("#choose-metric option:checked").inner_text()
        choose(page, "metric", "table_load_s")
        assert "lineitem" in options(page, "part")
        choose(page, "part", "lineitem")
        assert 6 == page.locator("#heat-list td.square[data-cell]").count()
        assert [] == found.complaints


def test_a_timeout_in_a_map_is_told_from_a_value(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        choose(page, "metric", "query_s")
        choose(page, "part", "query 20")
        square = page.locator("#heat-list td.stopped")
        assert ["> 30"] == square.all_inner_texts()
        square.focus()
        assert "stopped at its limit" in page.locator("#heat-detail").inner_text()


def test_bars_tell_timeouts_from_values(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        page.evaluate(
            """bedplate.choice.change({
              courses: bedplate.document.cells.flatMap((cell, place) => (cell.column_bytes === 8192 ? [place] : [])),
            })"""
        )
        expect(page.locator("#items-legend li")).to_have_count(4)
        traces = page.evaluate(
            "document.getElementById('items-plot').data.map((t) => [t.y, t.marker.pattern?.shape ?? ''])"
        )
        # Two traces for each of the three chosen cells: measured bars, and hatched ones.
        assert ["", "/"] * 3 == [shape for _, shape in traces]
        hatched = [(i, height) for y, shape in traces if shape for i, height in enumerate(y) if height]
        assert [(19, 30)] == hatched
        assert traces[4][0][19] is None
        legend = page.locator("#items-legend").inner_text()
        assert "stopped at its limit, not measured" in legend
        assert "durable" in legend
        page.locator("#items-table > summary").click()
        # Rows behind the first ones have no cells before somebody looks for them.
        page.locator("#items-table button", has_text="Show all").click()
        row = page.locator("#items-table tr", has_text="query 20").filter(has_text="btrfs")
        expect(row).to_contain_text("> 30 (3×)")
        expect(page.locator("#items-table tbody tr")).to_have_count(66)


def test_bars_take_a_logarithmic_axis_and_another_metric(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        axis = "document.getElementById('items-plot').layout.yaxis.type ?? 'linear'"
        assert "linear" == page.evaluate(axis)
        page.check("#choose-logarithmic")
        assert "log" == page.evaluate(axis)
        choose(page, "item-metric", "device_written_mib")
        expect(page.locator("#items-note")).to_contain_text("values of 0 have no place on a logarithmic axis")
        choose(page, "run", "load")
        assert "phases" in options(page, "group")
        choose(page, "group", "indexes, one by one")
        expect(page.locator("#items-note")).to_contain_text("table_load_s")
        assert [] == found.complaints


def test_scores_name_the_queries_that_they_leave_out(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        assert 6 == page.locator("#scores-table tbody tr").count()
        best = page.locator("#scores-table tbody tr").first.inner_text()
        assert "xfs · fs default, 4 KiB · db 32 KiB" in best
        assert "durable" in best
        assert "95 %" in best
        assert "18 of 22 queries are left in the m-figures; left out: 9, 17, 20, 21." == (
            page.locator("#scores-kept").inner_text()
        )
        page.locator("#scores-dropped > summary").click()
        # Filled when it is opened: waited for, not looked at once.
        expect(page.locator("#scores-dropped")).to_contain_text("over its limit in 3 of 3 runs in btrfs")
        expect(page.locator("#scores-dropped")).to_contain_text("2 plans across the cells")
        assert "not an audited TPC-H result" in page.locator("#scores-audit").inner_text()
        assert (
            "none: query 20 was stopped at its limit of 30 s" in page.locator("#scores-official").inner_text()
        )
        choose(page, "run", "load")
        expect(page.locator("#scores-note")).to_contain_text("these are those of cold")


def test_an_unaudited_figure_says_so_over_its_map(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        choose(found.page, "metric", "tpch_power")
        assert "not an audited TPC-H result" in found.page.locator("#heat-definition").inner_text()


def test_two_plans_stand_side_by_side_with_their_first_difference(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        expect(page.locator("#plans-verdict")).to_contain_text("line 2: Node Type: Hash Join | Nested Loop")
        assert "9 (2 plans)" == page.locator("#choose-query option:checked").inner_text()
        marked = page.locator("#plans-trees li.parts")
        assert ["Hash Join", "Nested Loop"] == marked.locator(".words").all_inner_texts()
        assert ["first difference"] * 2 == marked.locator(".mark").all_inner_texts()
        # The other way round the words change sides with the trees.
        left, right = (page.locator(f"#choose-{side}").input_value() for side in ("left", "right"))
        page.select_option("#choose-left", value=right)
        page.select_option("#choose-right", value=left)
        expect(page.locator("#plans-verdict")).to_contain_text("Node Type: Nested Loop | Hash Join")
        assert [] == found.complaints


def test_one_plan_in_two_cells_is_called_the_same(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        choose(page, "query", "1")
        expect(page.locator("#plans-verdict")).to_contain_text("Same plan")
        assert 0 == page.locator("#plans-trees li.parts").count()
        assert 2 == page.locator("#plans-trees figure").count()


def test_repetitions_that_disagree_on_a_plan_are_told(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        choose(page, "query", "21 (2 plans)")
        choose(page, "left", "xfs · fs default, 4 KiB · db 8 KiB · plan A (repetition 1, 3)")
        choose(page, "right", "xfs · fs default, 4 KiB · db 8 KiB · plan B (repetition 2)")
        expect(page.locator("#plans-verdict")).to_contain_text("Different plans, A and B")
        expect(page.locator("#plans-note")).to_contain_text("do not agree on the plan of query 21")
        page.locator("#plans-table > summary").click()
        expect(page.locator("#plans-table tbody tr")).to_have_count(6)
        cells = page.locator("#plans-table tbody tr").nth(2).locator("td").all_inner_texts()
        assert "A B" == cells[21]
        choose(page, "run", "load")
        expect(page.locator("#plans-verdict")).to_contain_text("has kept no query plans")
        choose(page, "run", "warm")
        expect(page.locator("#plans-verdict")).to_contain_text("plan")
        assert [] == found.complaints


def test_a_course_names_its_phases(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        choose(page, "run", "load")
        expect(page.locator("#courses-plot")).to_contain_text("foreign keys")
        page.locator("#courses-table > summary").click()
        expect(page.locator("#courses-table tbody tr")).not_to_have_count(0)
        text = page.locator("#courses-table").inner_text()
        assert "indexes" in text
        assert "tps" not in text
        assert "seconds since the start of the first phase" in page.locator("#courses-plot").inner_text()


def test_a_study_of_each_kind_on_one_page(browser: Browser, tmp_path: Path) -> None:
    tpch = synthetic_tpch_study(
        tmp_path / "tpch", TpchRecipe(filesystems=("ext4",), repetitions=1, failed=(), wavering_plans=())
    )
    recipe = Recipe(filesystem_blocks=(4096,), database_blocks=(8192,), repetitions=1, course_s=5)
    build_report([tpch, write_study(tmp_path / "pgbench", recipe)], tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as found:
        page = found.page
        assert "tps" == page.locator("#choose-metric option:checked").inner_text()
        assert "no parts" in page.locator("#items-note").inner_text()
        for run in page.locator("#choose-run option").all():
            page.select_option("#choose-run", value=run.get_attribute("value"))
        (cold,) = [name for name in options(page, "run") if name.startswith("cold")]
        choose(page, "run", cold)
        # The cells that were chosen are the other study's, so some that have this run are chosen instead.
        expect(page.locator("#items-legend")).to_contain_text("· tpch ·")
        expect(page.locator("#latency-note")).to_contain_text("makes no transactions")
        assert [] == found.complaints


def test_streams_without_a_pass_say_that_nobody_audited_them(browser: Browser, tmp_path: Path) -> None:
    recipe = TpchRecipe(filesystems=("ext4",), repetitions=1, passes=(), failed=(), timeouts=())
    build_report([synthetic_tpch_study(tmp_path / "study", recipe)], tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as found:
        page = found.page
        expect(page.locator("#scores-note")).to_contain_text("there are no scores")
        assert "not an audited TPC-H result" in page.locator("#scores-audit").inner_text()
        assert "throughput of throughput" in page.locator("#scores-official").inner_text()
        choose(page, "run", "throughput")
        expect(page.locator("#plans-verdict")).to_contain_text("Different plans, A and B")
        assert not page.locator("#choose-scores").is_visible()
        assert [] == found.complaints


def test_a_study_of_failures_alone_still_explains_itself(browser: Browser, tmp_path: Path) -> None:
    recipe = TpchRecipe(
        filesystems=("ext4",), repetitions=1, failed=((0, 1, "load"), (1, 1, "load")), timeouts=()
    )
    build_report([synthetic_tpch_study(tmp_path / "study", recipe)], tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as found:
        page = found.page
        assert "Nothing has been measured yet." in page.locator("#summary").inner_text()
        assert "lineitem has 599999 rows" in page.locator("#failures").inner_text()
        for run in ("load", "cold", "warm", "throughput"):
            choose(page, "run", run)
            assert 0 == page.locator("#heat-list td.square").count()
        assert [] == found.complaints


def test_a_hostile_study_executes_nothing(browser: Browser, hostile: Path) -> None:
    with opened(browser, hostile) as found:
        page = found.page
        for summary in page.locator("details:not(.part, #menu) > summary").all():
            summary.click()
        for name in ("run", "query", "group", "part"):
            choose(page, "run", "cold")
            choose(page, "metric", "query_s")
            for option in page.locator(f"#choose-{name} option").all():
                page.select_option(f"#choose-{name}", value=option.get_attribute("value"))
        choose(page, "run", "cold")
        choose(page, "query", "9 (2 plans)")
        assert HOSTILE in page.locator("#plans-trees").inner_text()
        page.locator("#items-plot").hover(position={"x": 300, "y": 200})
        page.locator("#courses-plot").hover(position={"x": 300, "y": 80})
        assert page.evaluate("window.__pwned") is None
        assert 0 == page.locator("img").count()
        assert HOSTILE == page.locator("h1").inner_text()
        assert [] == found.complaints
        assert [found.uri] == [url for url in found.requests if not url.startswith(("data:", "blob:"))]
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
