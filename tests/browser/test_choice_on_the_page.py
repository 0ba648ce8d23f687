"""What a reader chooses: factors, cells, a baseline and a contender, and the address that holds it all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.browser.opened_page import opened
from tests.support.studies.known_study import load_study
from tests.support.studies.synthetic_study import Recipe, write_study

from bedplate.analysis.comparison import ComparisonQuestion, answer
from bedplate.analysis.overview import overview
from bedplate.analysis.pooled import pooled_lines
from bedplate.page.build import build_report

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

RECIPE = Recipe(
    filesystem_blocks=(1024, 4096),
    database_blocks=(4096, 8192),
    repetitions=5,
    course_s=5,
    failed=((1, 1), (1, 2), (1, 3), (1, 4), (1, 5)),
    suspect=((2, 1),),
)
LINK = "location.hash.slice(1)"
CHOSEN = "JSON.stringify(bedplate.choice.state)"
COMPARED = """async () => {
  const { state } = bedplate.choice;
  const judged = await bedplate.pairs.judged(bedplate.pairs.pairsOf(state), [state]);
  return judged.map(({ baseline, contender, found }) => [bedplate.document.cells[baseline].id, bedplate.document.cells[contender].id, found.verdict, found.estimate, found.low, found.high, found.n]);
}"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study(tmp_path_factory.mktemp("choice") / "study", RECIPE)


@pytest.fixture(scope="module")
def report(study: Path) -> Path:
    build_report([study], study.parent / "report.html")
    return study.parent / "report.html"


@pytest.fixture
def page(browser: Browser, report: Path) -> Iterator[Page]:
    with opened(browser, report) as found:
        yield found.page
        assert [] == found.complaints


def tick(page: Page, factor: str, level: str) -> None:
    if page.locator("#filters").get_attribute("open") is None:
        page.locator("#filters > summary").click()
    page.locator(f'#filters input[data-factor="{factor}"][value="{level}"]').check()


def test_a_ticked_level_narrows_every_picture(page: Page) -> None:
    tick(page, "filesystem.type", "ext4")
    expect(page.locator("#filters > summary")).to_have_text("8 of 14 cells: file system ext4")
    # Two variants of two durability classes, which are in no average together.
    expect(page.locator("#heat-list figcaption")).to_have_count(2)
    page.locator("#heat-table > summary").click()
    expect(page.locator("#heat-table tbody tr")).to_have_count(8)
    expect(page.locator("#caches-table tbody tr")).to_have_count(8)
    tick(page, "filesystem.barrier", "yes")
    expect(page.locator("#caches-table tbody tr")).to_have_count(4)
    expect(page.locator("#heat-list figcaption")).to_have_count(1)
    page.locator("#filters-clear").click()
    expect(page.locator("#filters > summary")).to_have_text("All 14 cells")
    expect(page.locator("#caches-table tbody tr")).to_have_count(14)


def test_a_class_is_chosen_and_what_has_no_barrier_stays_or_is_said_to_be_passed_over(page: Page) -> None:
    tick(page, "class", "durable")
    expect(page.locator("#filters > summary")).to_have_text("9 of 14 cells: durability class durable")
    tick(page, "filesystem.barrier", "yes")
    expect(page.locator("#filters > summary")).to_contain_text("9 of 14 cells")
    expect(page.locator("#filters-panel")).to_contain_text("Kept although no barrier can be asked of them")
    page.locator("#filters-clear").click()
    tick(page, "filesystem.barrier", "no")
    expect(page.locator("#filters > summary")).to_have_text(
        "4 of 14 cells: barrier no; 6 without barrier passed over"
    )


def test_a_chip_counts_what_its_level_would_leave(page: Page) -> None:
    tick(page, "filesystem.type", "ext4")
    chip = page.locator(".chip", has=page.locator('input[data-factor="filesystem.barrier"][value="no"]'))
    expect(chip.locator(".count")).to_have_text("4")
    other = page.locator(".chip", has=page.locator('input[data-factor="filesystem.type"][value="xfs"]'))
    expect(other.locator(".count")).to_have_text("4")


def test_scale_and_average_are_those_of_what_is_shown(page: Page, study: Path) -> None:
    # One square of ext4 with barriers failed, so its map is in no average; without that square it is. ext4 without
    # barriers is of another durability class, and in no average with the others.
    average = page.locator("#heat-list figure", has_text="Average of")
    expect(average).to_contain_text("Average of 1 variant, durable")
    expect(average).to_contain_text("Left out, as they lack a square: ext4 barrier, btrfs nodatacow.")
    expect(average).to_contain_text("Not in it: 1 of other durability classes.")
    legend = page.locator("#heat-legend")
    found = overview(study)
    run = next(run for run in found.runs if run[1] == "read-write")
    fastest = f"{max(found.summary(cell, run, 'tps').centre or 0.0 for cell in found.cells):,.0f}"
    expect(legend).to_contain_text(f"{fastest} (better), one linear scale for all maps")
    expect(legend).to_contain_text("whatever a power cut leaves (durable, unsafe / durable)")
    expect(page.locator("#heat-list td.best")).to_have_count(1)
    tick(page, "filesystem.block_size_bytes", "4 KiB")
    expect(average).to_contain_text("n = 3")
    # The fastest square has a database block of 4 KiB: without it the scale ends lower.
    page.locator("#filters-clear").click()
    tick(page, "build.block_size_bytes", "8 KiB")
    expect(legend).not_to_contain_text(fastest)
    expect(legend).to_contain_text("one linear scale for all maps")
    # One square alone is no map, so there is neither an average nor a scale of maps.
    tick(page, "filesystem.block_size_bytes", "4 KiB")
    expect(page.locator("#heat-list")).to_contain_text("4 of 4 variants have one square each")
    expect(average).to_have_count(0)
    expect(legend).to_be_empty()


def test_compare_begins_with_one_line_over_all_pairs(page: Page, study: Path) -> None:
    page.evaluate(
        "bedplate.choice.change({ baseline: { factor: 'filesystem.type', level: 'ext4' }, contender: { factor: 'filesystem.type', level: 'xfs' } })"
    )
    asked = ComparisonQuestion("type=ext4", "type=xfs", workload="read-write", metrics=("tps",))
    ((_, sentences),) = pooled_lines(answer([overview(study)], asked))
    line = page.locator("#compare-verdict b").first
    expect(line).to_have_text(re.compile(r"^xfs / ext4 over \d matched pairs, durable: ×"))
    assert line.inner_text().rpartition(":")[2] == sentences[0].rpartition(":")[2]
    expect(page.locator("#compare-verdict")).to_contain_text(
        "cross durability classes (durable beside unsafe / durable: 4, durable beside unknown: 1)"
    )


def test_cells_are_picked_one_by_one(page: Page) -> None:
    page.locator("#filters > summary").click()
    page.locator("#picked > summary").click()
    page.locator('#picked input[data-picked="0"]').uncheck()
    expect(page.locator("#filters > summary")).to_have_text("13 of 14 cells")
    page.select_option("#heat-press", value="leave")
    page.keyboard.press("Escape")
    page.locator('#heat-list td[data-cell="3"]').press("Enter")
    expect(page.locator("#filters > summary")).to_have_text("12 of 14 cells")
    expect(page.locator('#heat-list td[data-cell="3"]')).to_have_count(0)


def test_the_page_compares_as_the_command_does(page: Page, study: Path) -> None:
    page.evaluate(
        "bedplate.choice.change({ baseline: { factor: 'filesystem.barrier', level: 'yes' }, contender: { factor: 'filesystem.barrier', level: 'no' } })"
    )
    found = page.evaluate(COMPARED)
    asked = ComparisonQuestion("barrier=yes", "barrier=no", workload="read-write", metrics=("tps",))
    expected = answer([overview(study)], asked).compared
    assert len(expected) == len(found) == 4
    for one, (baseline, contender, verdict, *figures, n) in zip(expected, found, strict=True):
        made = one.comparison
        assert (baseline, contender) == (one.pair.baseline.cell, one.pair.contender.cell)
        assert (verdict, n) == (made.verdict.value, made.n)
        for value, wanted in zip(figures, (made.estimate, made.low, made.high), strict=True):
            assert value == (None if wanted is None else pytest.approx(wanted, rel=1e-3))
    expect(page.locator("#compare-table tbody tr")).to_have_count(4)
    expect(page.locator("#compare-verdict")).to_contain_text("of 3 comparisons with an interval can tell")


def test_one_cell_is_held_against_all_others(page: Page) -> None:
    page.select_option("#heat-press", value="baseline")
    page.locator('#heat-list td[data-cell="4"]').click()
    expect(page.locator("#sides > summary")).to_contain_text("All against ext4 nobarrier")
    expect(page.locator("#compare-table tbody tr")).to_have_count(13)
    expect(page.locator('#heat-list td[data-cell="4"]')).to_have_class("difference apart baseline")
    assert "faster" not in page.locator('#heat-list td[data-cell="0"]').inner_text()
    page.locator('#heat-list td[data-cell="0"]').hover()
    expect(page.locator("#heat-detail")).to_contain_text("of ext4 nobarrier")
    page.locator("#sides > summary").click()
    page.locator("#sides-clear").click()
    expect(page.locator("#compare-note")).to_contain_text("No baseline is chosen")
    expect(page.locator("#heat-definition")).to_contain_text("There is no difference to show")


def test_cannot_tell_looks_unlike_the_same_and_unlike_a_difference(page: Page) -> None:
    # One baseline failed, so that its contender has nothing to be told by.
    page.evaluate(
        "bedplate.choice.change({ baseline: { factor: 'filesystem.barrier', level: 'yes' }, 'heat.show': 'difference' })"
    )
    kinds = {
        kind: page.locator(f"#heat-list td.difference.{kind}") for kind in ("told", "open", "alike", "apart")
    }
    expect(kinds["told"].first).to_contain_text("faster")
    expect(kinds["open"].first).to_contain_text("cannot tell")
    style = "(node) => [getComputedStyle(node).borderTopStyle, getComputedStyle(node).backgroundColor].join()"
    told, undecided = (kinds[kind].first.evaluate(style) for kind in ("told", "open"))
    assert undecided.startswith("dashed")
    assert told.startswith("none")
    page.locator("#heat-table > summary").click()
    expect(page.locator("#heat-table thead")).to_contain_text("Verdict")


def test_the_address_brings_the_same_view_back(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        tick(page, "filesystem.type", "ext4")
        page.select_option("#choose-run", label="read-only")
        page.select_option("#choose-metric", label="latency_ms_p99")
        page.evaluate(
            "bedplate.choice.change({ baseline: 4, contender: { factor: 'filesystem.barrier', level: 'yes' }, courses: [2, 3], 'heat.show': 'difference', cells: [0, 1, 2, 3, 4, 6] })"
        )
        expect(page).to_have_url(re.compile("heat.show"))
        link, chosen = page.evaluate(LINK), page.evaluate(CHOSEN)
        assert "filesystem.type=ext4" in link
        assert "run=read-only" in link
        assert "metric=latency_ms_p99" in link
        assert len(link) < 500
        page.reload()
        expect(page.locator("html")).to_have_attribute("data-ready", "yes")
        assert chosen == page.evaluate(CHOSEN)
        assert [] == found.complaints
    with opened(browser, report) as found:
        other = found.page
        assert chosen != other.evaluate(CHOSEN)
        other.evaluate("link => { location.hash = link; }", link)
        expect(other.locator("#choose-run option:checked")).to_have_text("read-only")
        assert chosen == other.evaluate(CHOSEN)
        expect(other.locator("#filters > summary")).to_contain_text("6 of 14 cells")
        assert [] == found.complaints


def test_without_a_choice_the_address_is_bare_and_with_defaults_too(page: Page) -> None:
    assert page.evaluate(LINK) == ""
    tick(page, "filesystem.type", "ext4")
    expect(page).to_have_url(re.compile("html#filesystem.type=ext4$"))
    page.locator("#filters-clear").click()
    expect(page).to_have_url(re.compile("html$"))


def test_a_section_is_still_a_place_in_the_page(page: Page) -> None:
    page.select_option("#choose-run", label="read-only")
    expect(page).to_have_url(re.compile("#run=read-only$"))
    page.evaluate("location.hash = 'durability'")
    expect(page).to_have_url(re.compile("#durability&run=read-only$"))
    expect(page.locator("#choose-run option:checked")).to_have_text("read-only")


def test_names_that_are_no_more_are_dropped_and_said(browser: Browser, report: Path) -> None:
    link = (
        "#run=gone&metric=tps&filesystem.type=ext4,zfs&cells=nobody&baseline=<b>x</b>&no.such=1&repetition=99"
    )
    with opened(browser, report) as found:
        page = found.page
        page.evaluate("link => { location.hash = link; }", link)
        note = page.locator("#choice-note")
        expect(note).to_be_visible()
        for word in ("run gone", "filesystem.type zfs", "cell nobody", "baseline <b>x</b>", "no.such"):
            expect(note).to_contain_text(word)
        expect(page.locator("#filters > summary")).to_have_text("8 of 14 cells: file system ext4")
        assert 0 == note.locator("b").count()
        page.select_option("#choose-run", label="read-only")
        expect(note).to_be_hidden()
        assert [] == found.complaints


def test_a_link_holds_though_an_earlier_choice_is_written_before_it_is_read(
    browser: Browser, report: Path
) -> None:
    with opened(browser, report) as found:
        page = found.page
        # As the writing of a choice does, between the change of the address and the event that tells of it.
        page.evaluate(
            """() => {
              location.hash = "filesystem.type=ext4&no.such=1";
              history.replaceState(null, "", location.pathname);
            }"""
        )
        expect(page.locator("#choice-note")).to_contain_text("no.such")
        expect(page.locator("#filters > summary")).to_have_text("8 of 14 cells: file system ext4")
        expect(page).to_have_url(re.compile(r"#filesystem\.type=ext4$"))
        assert [] == found.complaints


@pytest.mark.parametrize("dark", [False, True])
def test_the_popovers_fit_a_phone(browser: Browser, report: Path, *, dark: bool) -> None:
    with opened(browser, report, width=390, dark=dark) as found:
        page = found.page
        for name in ("filters", "sides"):
            page.locator(f"#{name} > summary").click()
            expect(page.locator(f"#{name}-panel")).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            page.keyboard.press("Escape")
            expect(page.locator(f"#{name}-panel")).to_be_hidden()
        assert [] == found.complaints


def test_a_figure_of_the_visit_is_that_of_python_whatever_run_is_chosen(
    browser: Browser, tmp_path: Path
) -> None:
    """Both runs of a visit tell how long the load took, one of them is in doubt."""
    study = load_study(tmp_path / "study", lambda _: 1000.0, doubted=("read-only",))
    build_report([study], tmp_path / "report.html")
    question = ComparisonQuestion("filesystem.type=ext4", "filesystem.type=xfs", metrics=("load_s",))
    expected = {
        (each.pair.baseline.cell, each.pair.contender.cell): each.comparison
        for each in answer([overview(study)], question).compared
    }
    with opened(browser, tmp_path / "report.html") as found:
        for run in (0, 1):
            change = f"""bedplate.choice.change({{ run: {run}, metric: bedplate.data.metricOf.get("load_s"),
                baseline: {{ factor: "filesystem.type", level: "ext4" }}, contender: {{ factor: "filesystem.type", level: "xfs" }} }})"""
            found.page.evaluate(change)
            judged = found.page.evaluate(COMPARED)
            made = {(one[0], one[1]): one for one in judged if (one[0], one[1]) in expected}
            assert made.keys() == expected.keys()
            assert len(judged) == len(expected)
            for pair, comparison in expected.items():
                _, _, verdict, estimate, low, high, n = made[pair]
                assert (comparison.verdict.value, comparison.n) == (verdict, n)
                assert [comparison.estimate, comparison.low, comparison.high] == pytest.approx(
                    [estimate, low, high], rel=1e-3
                )
        assert [] == found.complaints
