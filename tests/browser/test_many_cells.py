"""A page of 360 cells: where links end, what a choice leaves in its place, tables that fold, and questions in three choices."""

from __future__ import annotations

import re
from statistics import geometric_mean
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.browser.opened_page import opened
from tests.support.studies.synthetic_study import Recipe, cells_of, tps_of, write_changed_study

from bedplate.analysis.answer import headline
from bedplate.analysis.overview import overview
from bedplate.analysis.wording import figure
from bedplate.page.build import build_report

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

# All block sizes in four variants, each under six mount options that change nothing.
RECIPE = Recipe(
    runs=("read-write",),
    mount_options=tuple((f"commit={5 * number}",) for number in range(1, 7)),
    repetitions=3,
    course_s=20,
)
UNFOLDED = ["summary", "compare", "heat-maps", "courses"]
AWAY_PX_MOST = 10
# Until nothing is drawn any more, and the page keeps its height.
SETTLED = """async () => {
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  await bedplate.onScreen.drawn();
  for (let same = 0, height = 0; same < 20; same += 1) {
    await frame();
    if (document.documentElement.scrollHeight !== height) same = 0;
    height = document.documentElement.scrollHeight;
  }
}"""
# How far a section's heading stands below the bar.
AWAY = """(id) => {
  const heading = document.getElementById(`${id}-head`).closest("summary, section").getBoundingClientRect();
  const away = heading.top - document.querySelector(".choice").getBoundingClientRect().bottom;
  // What stands at the end of the page is in sight there.
  const { scrollHeight } = document.documentElement;
  const isEnd = window.scrollY + window.innerHeight >= scrollHeight - 1;
  return isEnd && away > 0 && heading.top < window.innerHeight ? 0 : away;
}"""
# From the element under the reader's eye before a choice to the same one after it.
MOVED = f"""async ([id, partial]) => {{
  const settled = {SETTLED};
  document.getElementById(id).scrollIntoView();
  await settled();
  const main = document.querySelector("main").getBoundingClientRect();
  const seen = document.elementFromPoint(main.left + 300, window.innerHeight / 3);
  // Between two sections nothing has a name but the section that was gone to.
  const one = seen.closest("[id]") ?? document.getElementById(id);
  const before = one.getBoundingClientRect().top;
  bedplate.choice.change(partial);
  await settled();
  return [one.id, one.getBoundingClientRect().top - before];
}}"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("many")
    assert 360 == len(cells_of(RECIPE))
    # To make a course for each of a thousand runs takes seconds; all have the same.
    study = write_changed_study(directory / "study", RECIPE, lambda figures, _cell, _visit: figures)
    build_report([study], directory / "report.html")
    return directory / "report.html"


@pytest.fixture(scope="module")
def kept(browser: Browser, report: Path) -> Iterator[Page]:
    """One page as a reader gets it, for all tests that leave it as it was."""
    with opened(browser, report, folded=True) as found:
        yield found.page
        assert [] == found.complaints


@pytest.fixture
def page(kept: Page) -> Page:
    kept.evaluate(
        """(unfolded) => {
          bedplate.choice.change(Object.fromEntries(Object.keys(bedplate.choice.state).map((key) => [key, null])));
          document.querySelectorAll("details").forEach((one) => {
            one.open = one.matches(".part") && unfolded.includes(one.querySelector("section").id);
          });
          window.scrollTo(0, 0);
        }""",
        UNFOLDED,
    )
    return kept


def test_six_sections_and_what_a_reader_comes_for_is_unfolded(page: Page) -> None:
    assert ["Answer", "Compare", "Picture", "Time", "Durability", "How it was measured"] == page.locator(
        "section.chapter > h2"
    ).all_inner_texts()
    assert ["Answer", "Compare", "Picture", "Time", "Durability", "How it was measured"] == page.locator(
        "nav.contents > ol > li > a"
    ).all_inner_texts()
    unfolded = page.evaluate(
        "[...document.querySelectorAll('details.part[open] > section')].map((one) => one.id)"
    )
    assert UNFOLDED == unfolded
    # What is folded costs nothing until it is asked for.
    assert 0 == page.locator("#order-plot svg").count()


@pytest.mark.parametrize("section", ["ranking", "checkpoints", "durability", "plan"])
def test_a_link_ends_at_its_section_when_the_page_is_opened_there(kept: Page, section: str) -> None:
    address = kept.url.partition("#")[0]
    # Or the browser would only go to the section, on the page that is open.
    kept.goto("about:blank")
    kept.goto(f"{address}#{section}")
    expect(kept.locator("html")).to_have_attribute("data-ready", "yes")
    kept.evaluate(SETTLED)
    assert abs(kept.evaluate(AWAY, section)) <= AWAY_PX_MOST


def test_every_entry_of_the_contents_ends_at_its_section_and_is_marked_there(page: Page) -> None:
    away = {}
    marked = page.locator("nav.contents a[aria-current]")
    links = page.locator("nav.contents a")
    for link in (*links.all(), *reversed(links.all())):
        link.click()
        page.evaluate("() => new Promise((resolve) => setTimeout(resolve))")
        page.evaluate(SETTLED)
        section = str(link.get_attribute("href"))[1:]
        away[section] = page.evaluate(AWAY, section)
        expect(marked).to_have_attribute("href", f"#{section}")
    assert {} == {section: px for section, px in away.items() if abs(px) > AWAY_PX_MOST}
    assert 18 <= len(away)


@pytest.mark.parametrize("section", ["heat-maps", "courses", "durability"])
def test_a_choice_moves_nothing_that_is_looked_at(page: Page, section: str) -> None:
    factor = "filesystem.type"
    for partial in (
        {"filters": {factor: ["xfs"]}},
        {"filters": None},
        {"cells": [0, 1, 2, 3]},
        {"cells": None},
    ):
        seen, px = page.evaluate(MOVED, [section, partial])
        assert abs(px) <= AWAY_PX_MOST, (seen, partial)


def test_rows_that_cannot_be_told_apart_stand_in_one_line(page: Page) -> None:
    rows = page.locator("#summary tbody tr[data-cell]")
    seen = page.locator("#summary tbody tr[data-cell]:visible")
    assert 360 == rows.count()
    expect(seen).to_have_count(15)
    expect(page.locator("#summary .tools .note")).to_contain_text("360 rows in ")
    more = seen.locator(".alike").first
    alike = int(more.inner_text().split()[1])
    more.click()
    expect(seen).to_have_count(15 + alike)
    expect(page.locator("#summary tr.twin:visible")).to_have_count(alike)
    seen.locator(".alike").first.click()
    expect(seen).to_have_count(15)


def test_rows_of_cells_are_made_when_they_are_seen_sorted_saved_or_printed(page: Page) -> None:
    page.evaluate("bedplate.choice.change({ baseline: 0 })")
    page.evaluate("document.getElementById('checkpoints').closest('details.part').open = true")
    page.locator("#checkpoints-head").scroll_into_view_if_needed()
    rows = page.locator("#checkpoints-table tbody tr")
    made = page.locator("#checkpoints-table tbody tr:has(td)")
    expect(rows).to_have_count(360)
    expect(page.locator("#checkpoints-table tbody tr:visible")).to_have_count(15)
    expect(made).to_have_count(15)
    alike = page.locator("#checkpoints-table .alike").first
    behind = int(alike.inner_text().split()[1])
    alike.click()
    expect(made).to_have_count(15 + behind)
    page.locator("#checkpoints-table th button", has_text="variation").first.click()
    expect(page.locator("#checkpoints-table tbody tr:visible td:first-child").first).not_to_be_empty()
    page.evaluate("bedplate.choice.change({ filters: { 'filesystem.type': ['ext4', 'xfs'] } })")
    page.evaluate(SETTLED)
    expect(rows).to_have_count(324)
    assert made.count() < 324
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    expect(made).to_have_count(324)
    # Each comparison has its own row behind the first ones, with how many more repetitions it takes.
    page.locator("#compare-head").scroll_into_view_if_needed()
    expect(page.locator("#compare-table tbody tr:has(td)")).to_have_count(323)
    assert not any(
        "…" == text for text in page.locator("#compare-table tbody td:nth-child(5)").all_inner_texts()
    )


def test_a_table_is_sorted_and_searched(page: Page) -> None:
    figures = page.locator("#summary tbody tr[data-cell]:visible .figure")
    head = page.locator("#summary th", has_text="tps")
    head.locator("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    values = [float(text.replace(",", "")) for text in figures.all_inner_texts()]
    assert sorted(values, reverse=True) == values
    head.locator("button").click()
    values = [float(text.replace(",", "")) for text in figures.all_inner_texts()]
    assert sorted(values) == values
    head.locator("button").click()
    expect(page.locator("#summary tbody tr").first).to_have_attribute("data-cell", "0")
    page.locator("#summary input[type=search]").fill("btrfs commit=10")
    expect(page.locator("#summary tbody tr[data-cell]:visible")).to_have_count(6)
    page.locator("#summary input[type=search]").fill("")
    expect(page.locator("#summary tbody tr[data-cell]:visible")).to_have_count(15)


def test_one_square_alone_is_no_map(page: Page) -> None:
    expect(page.locator("#heat-list .map")).not_to_have_count(0)
    page.evaluate(
        """bedplate.choice.change({ filters: { "filesystem.block_size_bytes": ["4 KiB"], "build.block_size_bytes": ["8 KiB"] } })"""
    )
    page.evaluate(SETTLED)
    page.locator("#heat-maps-head").scroll_into_view_if_needed()
    expect(page.locator("#heat-list")).to_contain_text("24 of 24 variants have one square each")
    expect(page.locator("#heat-list .map")).to_have_count(0)


def test_courses_open_on_the_leader_against_the_runner_up(page: Page) -> None:
    leading = page.evaluate("bedplate.document.ranking[0].slice(0, 2)")
    assert leading == page.evaluate("bedplate.choice.state.courses")
    classes = page.evaluate(
        "bedplate.choice.state.courses.map((one) => bedplate.document.cells[one].durability_class)"
    )
    assert ["durable", "durable"] == classes


def test_an_entry_of_a_legend_puts_its_lines_out_and_back(page: Page) -> None:
    page.locator("#courses-head").scroll_into_view_if_needed()
    expect(page.locator("#courses-plot svg.main-svg")).not_to_have_count(0)
    hidden = "document.getElementById('courses-plot').data.filter((one) => one.visible === false).length"
    entry = page.locator("#chosen button.legend").first
    entry.click()
    expect(entry).to_have_attribute("aria-pressed", "false")
    lines = page.evaluate(hidden)
    assert lines > 1
    # It stays out where the picture is drawn again.
    page.evaluate("bedplate.choice.change({ repetition: 2 })")
    page.evaluate(SETTLED)
    assert lines == page.evaluate(hidden)
    page.locator("#chosen button.legend").first.click()
    assert 0 == page.evaluate(hidden)


# What stands in the bar and ends below it.
OUTSIDE_BAR = """
() => {
  const { bottom } = document.querySelector(".choice").getBoundingClientRect();
  return [...document.querySelectorAll(".choice select, .choice > details > summary")]
    .filter((one) => one.getBoundingClientRect().bottom > bottom)
    .map((one) => one.id || one.textContent);
}
"""


# Lists of the bar that would be wider if they had the room.
SHORTENED = """() => [...document.querySelectorAll(".choice select")].filter((one) => {
  const { width } = one.getBoundingClientRect();
  const whole = one.cloneNode(true);
  whole.value = one.value;
  Object.assign(whole.style, { position: "absolute", maxWidth: "none" });
  one.parentElement.append(whole);
  const wanted = whole.getBoundingClientRect().width;
  whole.remove();
  return width && width < wanted - 1;
}).map((one) => one.value)"""


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_has_contents_a_bar_of_one_line_and_the_class_in_sight(
    browser: Browser, report: Path, *, dark: bool
) -> None:
    with opened(browser, report, width=390, dark=dark, folded=True) as found:
        page = found.page
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.locator(".choice").bounding_box()["height"] < 60  # type: ignore[index]
        assert [] == page.evaluate(OUTSIDE_BAR)
        # What is chosen is read whole.
        assert [] == page.evaluate(SHORTENED)
        page.locator("#menu > summary").click()
        page.locator("#menu-panel a", has_text="Checkpoints").click()
        expect(page.locator("#menu-panel")).to_be_hidden()
        page.evaluate(SETTLED)
        assert abs(page.evaluate(AWAY, "checkpoints")) <= AWAY_PX_MOST
        # However far a table is scrolled.
        place = page.locator("#checkpoints-table")
        place.evaluate("(one) => { one.scrollLeft = one.scrollWidth; }")
        name = place.locator("tbody tr").first.locator("td").first.bounding_box()
        assert name
        assert 0 <= name["x"] < 390 / 2
        assert "durable" in place.locator("tbody tr").first.locator("td").first.inner_text()
        assert [] == found.complaints


# What a reader asks of such a page, within three choices: what is chosen, pressed or ticked, each of which is counted.
CHOICES_MOST = 3
COUNTED = """() => {
  window.choices = 0;
  for (const [kind, of] of [["change", "input, select"], ["click", "summary, a[href], button"]])
    document.addEventListener(kind, ({ target, isTrusted }) => {
      // Who opens a popover of the bar has chosen nothing yet.
      if (isTrusted && target.closest(of) && !target.closest(".choice > details > summary")) window.choices += 1;
    }, true);
}"""


@pytest.fixture
def asked(page: Page) -> Iterator[Page]:
    """The page for a question, which has to be answered within three choices."""
    if page.evaluate("window.choices === undefined"):
        page.evaluate(COUNTED)
    page.evaluate("() => { window.choices = 0; }")
    yield page
    assert page.evaluate("window.choices") <= CHOICES_MOST


def test_which_durable_cell_is_the_best_for_read_write(asked: Page) -> None:
    page = asked
    # Without a choice and without scrolling: the first line of the picture beside the answer.
    best = page.locator("#ranking-plot > .class + .rank").first
    expect(best).to_be_in_viewport()
    assert "durable" == page.locator("#ranking-plot > .class").first.inner_text()
    name = best.locator(".name").inner_text()
    assert "xfs" in name
    assert name.endswith("fs 4 KiB · db 4 KiB")


def test_does_the_block_size_of_the_file_system_matter(asked: Page) -> None:
    page = asked
    # One choice: the effects are unfolded.
    page.locator("#effects-head").click()
    expect(page.locator("#effects-ratios svg.main-svg")).not_to_have_count(0)
    page.locator("#effects-table > summary").click()
    expect(page.locator("#effects-table tbody tr", has_text="fs block")).not_to_have_count(0)
    rows = page.locator("#effects-table tbody tr", has_text="fs block").all_inner_texts()
    told = {tuple(row.split("\t")[:3]): row.split("\t")[3:] for row in rows if len(row.split("\t")) == 7}
    # Planted: 4 KiB is 1.07 to 1.10 times as fast as 1 KiB, by the database's block size.
    ones = [cell for cell in cells_of(RECIPE) if cell.filesystem.type == "xfs"]
    speed = {
        size: geometric_mean(
            tps_of(cell, "read-write") for cell in ones if cell.filesystem.block_size_bytes == size
        )
        for size in (1024, 4096)
    }
    *figures, verdict = told["fs block", "4 KiB", "1 KiB"]
    ratio, low, high = map(float, figures)
    assert 1 < low < speed[4096] / speed[1024] < high
    assert ratio == pytest.approx(speed[4096] / speed[1024], rel=0.02)
    assert "faster" == verdict


def test_ext4_against_xfs_with_blocks_of_8_kib(asked: Page) -> None:
    page = asked
    # Three choices: the block size, and the two sides.
    page.locator("#filters > summary").click()
    page.locator('#filters input[data-factor="build.block_size_bytes"][value="8 KiB"]').check()
    page.keyboard.press("Escape")
    page.locator("#sides > summary").click()
    page.select_option("#choose-baseline", label="file system: ext4")
    page.select_option("#choose-contender", label="file system: xfs")
    page.keyboard.press("Escape")
    expect(page.locator("#compare-table tbody tr")).not_to_have_count(0)
    verdict = page.locator("#compare-verdict b").first
    told = re.compile(r"^xfs / ext4 over 18 matched pairs, durable: ×(\S+) \((\S+) to (\S+)\): faster$")
    expect(verdict).to_have_text(told)
    matched = told.match(verdict.inner_text())
    assert matched
    # Planted: 1,300 beside 1,200.
    ratio, low, high = map(float, matched.groups())
    assert 1 < low < 1300 / 1200 < high
    assert ratio == pytest.approx(1300 / 1200, rel=0.02)
    names = page.locator("#compare-table tbody tr td:first-child").all_inner_texts()
    assert all("db 8 KiB" in name and "xfs" in name for name in names)


def test_the_page_has_the_planted_truth_to_its_last_digit(page: Page, report: Path) -> None:
    found = overview(report.parent / "study")
    own = headline(found).answers[0]
    assert own.taken is not None
    assert own.taken.cell == page.evaluate("bedplate.document.cells[bedplate.document.ranking[0][0]].id")
    # Planted: XFS with blocks of 4 KiB of both kinds, whatever its commit interval.
    cell = found.study.schedule.cells[own.taken.cell]
    assert ("xfs", 4096, 4096) == (
        cell.filesystem.type,
        cell.filesystem.block_size_bytes,
        cell.database_block_bytes,
    )
    said = "bedplate.told(bedplate.data.summary(bedplate.document.ranking[0][0], 0, bedplate.data.first(0)))"
    assert page.evaluate(said) == figure(own.taken.summary).mean


def test_tps_around_checkpoints(asked: Page) -> None:
    page = asked
    # One choice: the part is unfolded by its link.
    page.locator("nav.contents a", has_text="Checkpoints").click()
    expect(page.locator("#checkpoints-table tbody tr:visible")).not_to_have_count(0)
    row = page.locator("#checkpoints-table tbody tr:visible").first
    # Planted: 0.7 of the run's tps inside, 0.9 settling, 1.2 outside.
    inside, settling, outside = (
        float(row.locator("td").nth(place).inner_text().replace(",", "")) for place in (1, 3, 5)
    )
    assert [0.7 / 1.2, 0.9 / 1.2] == pytest.approx([inside / outside, settling / outside], rel=0.01)
    assert "0.58" == row.locator("td").nth(7).inner_text()
