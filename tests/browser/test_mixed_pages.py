"""Pages that are not of one plain study: filters on other workloads, studies that may not be compared, long names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.browser.opened_page import opened
from tests.support.runs.raw_sequential_run import sequential_study
from tests.support.studies.four_engines import four_engines
from tests.support.studies.synthetic_microbenchmark import synthetic_microbenchmark
from tests.support.studies.synthetic_power_cuts import power_cut_study
from tests.support.studies.synthetic_study import Recipe, with_barriers_of_xfs, write_study
from tests.support.studies.synthetic_tpch import TpchRecipe, synthetic_tpch_study

from bedplate.analysis.comparison import ComparisonQuestion, answer
from bedplate.analysis.overview import overview
from bedplate.page.build import build_report

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Browser, Page


pytestmark = pytest.mark.browser

RECIPE = Recipe(filesystem_blocks=(4096,), database_blocks=(4096, 8192), repetitions=3, course_s=5)
LONG = "w" * 10_000
FACTOR = """() => { const { factors, cells } = bedplate.document;
  const place = factors.findIndex(({ levels }) => levels.length < cells.length || factors.length === 1);
  const { name, levels } = factors[place];
  return [name, levels[0], cells.filter((cell) => cell.levels[place] === 0).length, cells.length]; }"""
COMPARED = """async () => {
  const { state } = bedplate.choice;
  const judged = await bedplate.pairs.judged(bedplate.pairs.pairsOf(state), [state]);
  return judged.map((one) => ({ word: bedplate.pairs.word(one), why: one.incomparable }));
}"""


def bars(page: Page, plot: str) -> int:
    return int(page.evaluate("(id) => document.getElementById(id).data[0].y.length", plot))


def traces(page: Page, plot: str) -> int:
    return int(page.evaluate("(id) => document.getElementById(id).data.length", plot))


@pytest.mark.parametrize(
    ("write", "plot", "counted"),
    [
        (lambda path: synthetic_microbenchmark(path, repetitions=2), "microbenchmark-plot", bars),
        (sequential_study, "raw-throughput", traces),
        (lambda path: synthetic_tpch_study(path, TpchRecipe(repetitions=1)), "items-plot", traces),
    ],
    ids=["lmdb", "raw", "tpch"],
)
def test_filters_narrow_the_pictures_of_every_workload(
    browser: Browser,
    tmp_path: Path,
    write: Callable[[Path], Path],
    plot: str,
    counted: Callable[[Page, str], int],
) -> None:
    build_report([write(tmp_path / "study")], tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as found:
        page = found.page
        factor, level, left, cells = page.evaluate(FACTOR)
        assert left < cells
        before = counted(page, plot)
        page.locator("#filters > summary").click()
        page.locator(f'#filters input[data-factor="{factor}"][value="{level}"]').check()
        expect(page.locator("#filters > summary")).to_contain_text(f"{left} of {cells} cells")
        page.evaluate("bedplate.onScreen.drawn()")
        assert left == counted(page, plot) < before
        page.locator("#filters-clear").click()
        page.evaluate("bedplate.onScreen.drawn()")
        assert before == counted(page, plot)
        assert [] == found.complaints


@pytest.fixture(scope="module")
def unlike(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two studies on one kernel and a third on another, called alike."""
    directory = tmp_path_factory.mktemp("unlike")
    recipes = {"before": "6.1", "again": "6.1", "after": "6.12"}
    studies = [
        write_study(
            directory / name, replace(RECIPE, provenance={"kernel": kernel, "machine": "m"}, seed=number)
        )
        for number, (name, kernel) in enumerate(recipes.items())
    ]
    build_report(studies, directory / "report.html")
    return directory / "report.html"


def test_what_may_not_be_compared_stands_side_by_side(browser: Browser, unlike: Path) -> None:
    with opened(browser, unlike) as found:
        page = found.page
        page.evaluate("bedplate.choice.change({ baseline: { factor: 'study', level: 'before' } })")
        judged = page.evaluate(COMPARED)
        apart = [one for one in judged if one["word"] == "side by side"]
        assert len(judged) == 2 * len(apart) > 0
        assert {"kernel: 6.1, 6.12"} == {reason for one in apart for reason in one["why"]}
        rows = page.locator("#compare-table tbody tr")
        expect(rows).to_have_count(len(judged))
        expect(rows.locator(".judged.apart")).to_have_count(len(apart))
        expect(page.locator("#compare-verdict")).to_contain_text(f"of {len(judged) - len(apart)} comparison")
        page.select_option("#heat-show", label="difference to the baseline")
        expect(page.locator("#heat-list td.difference.apart small", has_text="side by side")).to_have_count(
            len(apart)
        )
        assert [] == found.complaints


def test_a_study_keeps_its_pairs_beside_one_that_asks_for_more(browser: Browser, tmp_path: Path) -> None:
    plain = write_study(tmp_path / "plain", RECIPE)
    asking = write_study(tmp_path / "asking", replace(RECIPE, cells=with_barriers_of_xfs(RECIPE)))
    build_report([plain, asking], tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as found:
        page = found.page
        page.evaluate(
            """bedplate.choice.change({ baseline: { factor: "filesystem.type", level: "ext4" },
                 contender: { factor: "filesystem.type", level: "xfs" } })"""
        )
        within = """() => bedplate.pairs.pairsOf(bedplate.choice.state).filter(({ baseline, contender }) =>
            bedplate.document.cells[baseline].study === bedplate.document.cells[contender].study).length"""
        expected = answer([overview(plain)], ComparisonQuestion("type=ext4", "type=xfs"))
        assert len(expected.matched.pairs) == page.evaluate(within) > 0
        assert [] == found.complaints


def test_sequential_runs_beside_a_database_show_cells_of_their_own(browser: Browser, tmp_path: Path) -> None:
    studies = [write_study(tmp_path / "database", RECIPE), sequential_study(tmp_path / "files")]
    build_report(studies, tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as found:
        page = found.page
        page.locator("#raw").scroll_into_view_if_needed()
        expect(page.locator("#raw-note")).to_contain_text("its leader and its runner-up are shown")
        expect(page.locator("#raw-note")).to_contain_text("n = ")
        heights = page.evaluate("document.getElementById('raw-throughput').data.flatMap((one) => one.y)")
        assert any(height is not None for height in heights)
        expect(page.locator("#raw-legend li").first).to_contain_text("files")
        assert [] == found.complaints


def test_servers_and_libraries_of_one_study_stand_apart(browser: Browser, tmp_path: Path) -> None:
    build_report([four_engines(tmp_path / "study")], tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as found:
        page = found.page
        tables = page.locator("#summary table.cells")
        heads = [" ".join(table.locator("th").all_inner_texts()) for table in tables.all()]
        assert [(True, False), (False, True)] == [("oltp_" in words, "read-warm" in words) for words in heads]
        engines = [" ".join(table.locator("td.name").all_inner_texts()) for table in tables.all()]
        assert [(True, True, False, False), (False, False, True, True)] == [
            tuple(name in words for name in ("PostgreSQL", "MariaDB", "SQLite", "LMDB")) for words in engines
        ]
        page.evaluate(
            """bedplate.choice.change({ run: bedplate.document.runs.findIndex(({ run }) => run === "oltp_update_index"),
                 baseline: { factor: "build.engine", level: "mariadb" } })"""
        )
        page.evaluate("bedplate.onScreen.all()")
        # The libraries have no such run: two pairs, one on each file system.
        expect(page.locator("#compare-verdict")).to_contain_text(
            "over 2 matched pairs, durable: ×1.49 (1.46 to 1.52): faster"
        )
        drawn = page.locator("#ranking-plot .rank .name").all_inner_texts()[:-1]
        assert (4, False) == (len(drawn), any("LMDB" in name or "SQLite" in name for name in drawn))
        assert [] == found.complaints


def test_studies_are_called_by_their_names_and_told_once(browser: Browser, unlike: Path) -> None:
    with opened(browser, unlike) as found:
        page = found.page
        assert RECIPE.title == page.locator("h1").inner_text()
        assert ["before", "again", "after"] == page.locator(".studies strong").all_inner_texts()
        assert page.locator(".page-head .note").count() == 1
        names = page.locator("#answer h3").all_inner_texts()
        assert {"before", "again", "after"} <= set(names)
        assert "· again" in page.evaluate("bedplate.data.cellName(bedplate.document.cells.length / 3)")
        assert [] == found.complaints


def test_what_same_means_is_chosen_and_stands_in_the_address(browser: Browser, unlike: Path) -> None:
    with opened(browser, unlike) as found:
        page = found.page
        page.evaluate("bedplate.choice.change({ baseline: { factor: 'study', level: 'before' } })")
        expect(page.locator("#compare-note")).to_contain_text("less than 5\u00a0%")
        narrow = page.evaluate(COMPARED)
        page.select_option("#compare-margin", label="20 %")
        expect(page.locator("#compare-note")).to_contain_text("less than 20\u00a0%")
        words = {one["word"] for one in page.evaluate(COMPARED)}
        assert "same within 20 %" in words
        assert narrow != page.evaluate(COMPARED)
        with page.expect_download() as waiting:
            page.locator("#compare-table + .save button", has_text="CSV").click()
        assert "same within 20 %" in waiting.value.path().read_text(encoding="utf-8-sig")
        page.wait_for_url("**compare.margin=20*")
        page.select_option("#compare-margin", label="5 %")
        expect(page.locator("#compare-note")).to_contain_text("less than 5\u00a0%")
        page.wait_for_url(lambda url: "compare.margin" not in url)
        assert [] == found.complaints


@pytest.mark.parametrize("width", [1280, 390])
def test_names_of_ten_thousand_letters_stay_within_the_answer(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    recipe = replace(RECIPE, title=LONG, mount_options=((LONG,),), failed=((1, 1),), suspect=((2, 1),))
    build_report([write_study(tmp_path / "study", recipe)], tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html", width=width) as found:
        page = found.page
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        within = page.evaluate(
            "[...document.querySelectorAll('#answer, #answer .headline, #answer .headline dd')]"
            ".every((one) => one.scrollWidth <= one.clientWidth + 1)"
        )
        assert within
        assert page.locator("#answer .headline dd").count() > 0
        assert [] == found.complaints


def test_a_run_without_parts_offers_none_to_take_along(browser: Browser, tmp_path: Path) -> None:
    """Cuts have parts, transactions beside them have none."""
    build_report([power_cut_study(tmp_path / "study")], tmp_path / "report.html")
    kind = "bedplate.document.runs.findIndex((one) => (one.kind === 'power_cut') === {})"
    with opened(browser, tmp_path / "report.html") as found:
        page = found.page
        save = page.locator("#items").get_by_role("group", name="Save Queries and phases")
        page.evaluate(f"bedplate.choice.change({{ run: {kind.format('true')} }})")
        page.evaluate("bedplate.onScreen.drawn()")
        expect(save).to_be_visible()
        page.evaluate(f"bedplate.choice.change({{ run: {kind.format('false')} }})")
        expect(page.locator("#items-note")).to_contain_text("has no parts")
        expect(page.locator("#items-note")).to_contain_text("these have: power-cut.")
        expect(save).to_be_hidden()
        for nothing_in_it in ("#choose-group", "#choose-item-metric", "#items-table"):
            expect(page.locator(nothing_in_it)).to_be_hidden()
        page.evaluate(f"bedplate.choice.change({{ run: {kind.format('true')}, courses: [] }})")
        expect(page.locator("#items-note")).to_contain_text("No cell is chosen")
        expect(save).to_be_hidden()
        page.evaluate("bedplate.choice.change({ courses: [1] })")
        expect(save).to_be_visible()
        assert [] == found.complaints
