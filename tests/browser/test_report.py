"""The page in a real Chromium: opened from a file, without a network, by people and against hostile names."""

from __future__ import annotations

import re
import subprocess
import zlib
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.browser.opened_page import ARGUMENTS, opened
from tests.support.studies.synthetic_study import HOSTILE, Recipe, write_study

from bedplate.page.build import build_report
from bedplate.page.static import CHAPTERS

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

# Parts that only a study with another workload, a search, or a page with claims has.
OF_OTHERS = ("items", "raw", "claims", "search")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("browser")
    recipe = Recipe(
        filesystem_blocks=(1024, 4096),
        database_blocks=(4096, 8192),
        course_s=20,
        failed=((1, 1), (1, 2), (1, 3)),
        suspect=((2, 1),),
        missing=((3, 3),),
    )
    build_report([write_study(directory / "study", recipe)], directory / "report.html")
    return directory / "report.html"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("hostile")
    recipe = Recipe(
        filesystem_blocks=(4096,),
        database_blocks=(8192,),
        repetitions=2,
        course_s=10,
        hostile=True,
        failed=((1, 1),),
        suspect=((2, 1),),
    )
    build_report([write_study(directory / "study", recipe)], directory / "report.html")
    return directory / "report.html"


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False)])
def test_opens_offline_without_a_complaint_or_a_request(
    browser: Browser, report: Path, width: int, *, dark: bool
) -> None:
    with opened(browser, report, width=width, dark=dark) as found:
        assert [] == found.complaints
        assert [found.uri] == [url for url in found.requests if not url.startswith(("data:", "blob:"))]
        assert found.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_every_section_is_there_and_drawn(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        sections = [
            section
            for *chapter, parts in CHAPTERS
            for section in (chapter, *parts)
            if section[0] not in OF_OTHERS
        ]
        assert [name for name, _ in sections] == [
            section.get_attribute("id") for section in page.locator("section").all()
        ]
        for section, title in sections:
            assert page.locator(f"#{section}-head").inner_text().startswith(title)
        for plot in (
            "courses-plot",
            "latency-linear",
            "latency-logarithmic",
            "distribution-plot",
            "order-plot",
        ):
            expect(page.locator(f"#{plot} svg.main-svg")).not_to_have_count(0)
        assert 5 == page.locator("#heat-list figure").count()
        assert "tps" in page.locator("#heat-definition").inner_text()


# Of every picture the axes that have fewer than two numbers, or a figure's end that is far from the first or the last of them.
BARE = """() => [...document.querySelectorAll(".js-plotly-plot")].flatMap((plot) => {
  const { _fullLayout: made } = plot;
  return Object.keys(made).filter((name) => /^[xy]axis\\d*$/.test(name) && made[name].visible !== false).flatMap((name) => {
    const axis = made[name];
    const texts = (axis._vals ?? []).filter((one) => one.text && one.text.trim());
    if (axis._mainAxis !== undefined) return [];
    if (texts.length < 2) return [`${plot.id} ${name} ${texts.length}`];
    const [from, to] = axis.range;
    const places = [texts[0].x, texts.at(-1).x].map((x) => (x - from) / (to - from));
    return axis.type === "category" || (places[0] < 0.07 && places[1] > 0.93) ? [] : [`${plot.id} ${name} ${places}`];
  });
})"""


def test_no_axis_is_without_numbers(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        found.page.evaluate("bedplate.onScreen.all()")
        assert [] == found.page.evaluate(BARE)
        assert 6 < found.page.locator(".js-plotly-plot").count()


# What stands at the ticks of an axis, beside the places that they have on it.
TICKS = """([id, axis]) => {
  const { _fullLayout: made } = document.getElementById(id);
  const { tickvals, ticktext, range } = made[axis];
  return tickvals.map((value, i) => [value, ticktext[i]])
    .filter(([value]) => range[0] <= Math.log10(value) && Math.log10(value) <= range[1]);
}"""


def test_numbers_of_a_logarithmic_axis_are_written_out(browser: Browser, report: Path) -> None:
    """A 5 at the place of 50 would be read as 5."""
    with opened(browser, report) as found:
        found.page.evaluate("bedplate.onScreen.all()")
        ticks = found.page.evaluate(TICKS, ["latency-logarithmic", "yaxis"])
        assert 3 <= len(ticks)
        assert all(float(text.replace(",", "")) == pytest.approx(value) for value, text in ticks)


def test_either_legend_of_the_chosen_runs_puts_a_line_out_of_both_pictures(
    browser: Browser, report: Path
) -> None:
    with opened(browser, report, fresh=True) as found:
        page = found.page
        page.evaluate("bedplate.onScreen.all()")
        keys = page.locator("#distribution-legend button")
        assert page.locator("#chosen button").all_inner_texts() == keys.all_inner_texts() != []
        keys.first.click()
        for place in ("#chosen", "#distribution-legend"):
            expect(page.locator(f"{place} button").first).to_have_attribute("aria-pressed", "false")
            expect(page.locator(f"{place} button").last).to_have_attribute("aria-pressed", "true")
        hidden = "(id) => document.getElementById(id).data.filter((one) => one.visible === false).length"
        assert 0 < page.evaluate(hidden, "distribution-plot") < page.evaluate(hidden, "courses-plot")
        page.locator("#chosen button").first.click()
        assert 0 == page.evaluate(hidden, "distribution-plot")
        assert [] == found.complaints


def test_paper_has_the_plan_whole_and_no_tools(browser: Browser, report: Path) -> None:
    with opened(browser, report, fresh=True) as found:
        page = found.page
        page.locator("#plan pre").evaluate("(one) => { one.textContent += 'last\\n'.repeat(200); }")
        assert page.locator("#plan pre").evaluate("(one) => one.scrollHeight > one.clientHeight")
        page.emulate_media(media="print")
        assert page.locator("#plan pre").evaluate("(one) => one.scrollHeight <= one.clientHeight")
        for tool in page.locator(".tools, .save, #heat-detail").all():
            expect(tool).to_be_hidden()


@pytest.mark.parametrize("width", [1280, 390])
def test_names_and_numbers_of_effects_stand_apart(browser: Browser, report: Path, width: int) -> None:
    touching = """(id) => {
      const boxes = [...document.querySelectorAll(`#${id} .xtick text`)].map((one) => one.getBoundingClientRect());
      return boxes.filter((box, i) => boxes.some((other, j) => i < j && box.left < other.right && other.left < box.right
        && box.top < other.bottom && other.top < box.bottom)).length;
    }"""
    with opened(browser, report, width=width) as found:
        page = found.page
        page.evaluate("bedplate.onScreen.all()")
        for plot in ("effects-shares", "effects-ratios"):
            assert 0 == page.evaluate(touching, plot)
            own = page.locator(f"#{plot} .cartesianlayer .plotbg, #{plot} .bglayer .bg").first.bounding_box()
            picture = page.locator(f"#{plot}").bounding_box()
            assert own and picture  # noqa: PT018
            assert own["width"] > picture["width"] * (0.8 if width == 390 else 0.4)


def strokes(path: Path) -> int:
    """How many lines a PDF draws."""
    data = path.read_bytes()
    found = 0
    for start in re.finditer(rb"stream\r?\n", data):
        packed = data[start.end() : data.find(b"endstream", start.end())]
        try:
            drawn = zlib.decompress(packed.rstrip(b"\r\n"))
        except zlib.error:
            continue
        found += len(re.findall(rb"(?m)^[\d.\- ]+ l$", drawn))
    return found


def test_a_pdf_of_headless_chromium_has_every_chart(chromium: Path, report: Path, tmp_path: Path) -> None:
    """Printed as soon as it is read, before anything was drawn; without a script there are no charts to count."""
    pages = {"whole": report, "bare": tmp_path / "bare.html"}
    bare = re.sub(r"<script>.*?</script>", "", report.read_text(encoding="utf-8"), flags=re.DOTALL)
    pages["bare"].write_text(bare, encoding="utf-8")
    drawn = {}
    for name, page in pages.items():
        made = tmp_path / f"{name}.pdf"
        own = [f"--user-data-dir={tmp_path / 'profile'}", f"--print-to-pdf={made}", page.as_uri()]
        subprocess.run([str(chromium), "--headless", *ARGUMENTS, *own], check=True, capture_output=True)
        drawn[name] = strokes(made)
    # Two courses of 30 seconds in seven lanes are 400 lines; latencies, their distribution and the order of runs come on top.
    assert drawn["whole"] > drawn["bare"] + 600


def test_without_a_script_a_sentence_says_what_is_missing(browser: Browser, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(report.as_uri())
    assert "Without JavaScript" in (page.locator("main noscript").text_content() or "")
    assert page.locator("#summary tbody tr[data-cell]").first.is_visible()
    context.close()


def test_an_empty_square_says_why(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        empty = found.page.locator("#heat-list td.empty")
        assert {"failed", "pruned", "not planned"} == {
            text.replace("\n", " ") for text in empty.all_inner_texts()
        }
        found.page.locator("#heat-list td.empty", has_text="failed").focus()
        assert "mkfs.ext4 exited with status 1: no space" in found.page.locator("#heat-detail").inner_text()


def test_choosing_a_metric_and_a_run_changes_the_pictures(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        squares = page.locator("#heat-list td.square")
        before = squares.all_inner_texts()
        page.select_option("#choose-metric", label="latency_ms_p99")
        latencies = squares.all_inner_texts()
        assert before != latencies
        assert "latency_ms_p99" in page.locator("#heat-definition").inner_text()
        page.select_option("#choose-run", label="read-only")
        expect(page.locator("#courses-note")).to_contain_text("read-only")
        assert latencies != squares.all_inner_texts()
        assert "read-only" in page.locator("#order-note").inner_text()
        assert "No run of read-only held a checkpoint." == page.locator("#checkpoints-table").inner_text()
        assert [] == found.complaints


def test_a_square_is_reached_by_key_and_adds_its_course(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        runs = page.locator("#chosen li")
        before = runs.count()
        square = page.locator('#heat-list td.square[data-cell="0"]')
        square.focus()
        assert "ext4 barrier · fs 1 KiB · db 4 KiB" in page.locator("#heat-detail").inner_text()
        square.press("Enter")
        expect(runs).to_have_count(before + 1)
        expect(page.locator("#latency-note")).to_contain_text("fs 1 KiB · db 4 KiB")
        assert (
            "ext4 barrier · fs 1 KiB · db 4 KiB"
            == page.locator("#choose-effective option:checked").inner_text()
        )


def test_every_picture_has_its_table(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        for table in ("heat", "courses", "latency", "distribution", "order"):
            page.locator(f"#{table}-table > summary").click()
            # Filled when it is opened, from courses that are unpacked first: waited for, not looked at once.
            expect(page.locator(f"#{table}-table tbody tr")).not_to_have_count(0)
        assert "suspect" in page.locator("#order-table").inner_text()
        assert [] == found.complaints


def test_cells_are_chosen_for_the_courses(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        page.locator("#cell-choice > summary").click()
        checked = page.locator("#cell-list input:checked")
        # The boxes are made when the browser tells that they were unfolded.
        expect(checked).not_to_have_count(0)
        for left in reversed(range(checked.count())):
            checked.first.uncheck()
            expect(checked).to_have_count(left)
        expect(page.locator("#courses-note")).to_contain_text("None of the chosen cells")
        page.locator("#cell-list input").first.check()
        expect(page.locator("#courses-plot svg.main-svg").first).to_be_visible()
        assert [] == found.complaints


def test_a_study_of_failures_alone_still_explains_itself(browser: Browser, tmp_path: Path) -> None:
    recipe = Recipe(
        filesystem_blocks=(None,),
        database_blocks=(8192,),
        repetitions=1,
        canaries=0,
        failed=((0, 1),),
        missing=((1, 1), (2, 1), (3, 1)),
    )
    build_report([write_study(tmp_path / "study", recipe)], tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as found:
        assert 0 == found.page.locator("#heat-maps").count()
        assert "no space" in found.page.locator("#failures").inner_text()
        assert "Nothing has been measured yet." in found.page.locator("#summary").inner_text()
        assert [] == found.complaints


def test_a_hostile_study_executes_nothing(browser: Browser, hostile: Path) -> None:
    with opened(browser, hostile) as found:
        page = found.page
        for summary in page.locator("details:not(.part, #menu) > summary").all():
            summary.click()
        for run in page.locator("#choose-run option").all():
            page.select_option("#choose-run", value=run.get_attribute("value"))
        for cell in page.locator("#choose-effective option").all():
            page.select_option("#choose-effective", value=cell.get_attribute("value"))
        page.locator("#ranking-plot").hover()
        page.locator("#courses-plot").hover(position={"x": 400, "y": 80})
        page.locator("#order-plot").hover(position={"x": 400, "y": 80})
        assert page.evaluate("window.__pwned") is None
        assert 0 == page.locator("img").count()
        assert HOSTILE == page.locator("h1").inner_text()
        assert [] == found.complaints
        assert [found.uri] == [url for url in found.requests if not url.startswith(("data:", "blob:"))]
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
