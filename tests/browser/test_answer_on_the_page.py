"""Answer, effects, claims, drift and machines in a real Chromium, and pictures that are taken along."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from playwright.sync_api import expect
from tests.browser.opened_page import opened, unfold
from tests.support.studies.former_studies import unpacked
from tests.support.studies.synthetic_study import HOSTILE, MACHINE, Recipe, write_study

from bedplate.model.codec import write
from bedplate.page.build import build_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Download, Page

pytestmark = pytest.mark.browser

CLAIMS = sorted(Path(__file__).parents[2].joinpath("claims").glob("*.toml"))
ACROSS = "within file system ext4, cells of all durability classes"
SVG = "{http://www.w3.org/2000/svg}"
RECIPE = Recipe(
    filesystem_blocks=(1024, 4096),
    database_blocks=(2048, 8192),
    repetitions=5,
    course_s=12,
    suspect=((2, 1),),
    failed=((1, 1),),
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("answer")
    build_report([write_study(directory / "study", RECIPE)], directory / "report.html", claims=CLAIMS)
    return directory / "report.html"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("two")
    first = write_study(directory / "first", RECIPE)
    second = write_study(directory / "second", replace(RECIPE, repetitions=3, seed=8, title="Elsewhere"))
    write(second / "machine.json", replace(MACHINE, hostname="other"))
    build_report([first, second], directory / "report.html", claims=CLAIMS)
    return directory / "report.html"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("hostile")
    recipe = replace(RECIPE, filesystem_blocks=(4096,), hostile=True, title=HOSTILE)
    build_report([write_study(directory / "study", recipe)], directory / "report.html", claims=CLAIMS)
    return directory / "report.html"


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Quickstart's page of a real study, of which most runs were suspect."""
    directory = tmp_path_factory.mktemp("quick")
    build_report([unpacked("quickstart", directory)], directory / "report.html")
    return directory / "report.html"


def test_quickstarts_page_explains_its_marks_and_a_phone_has_its_reasons_in_sight(
    browser: Browser, quick: Path
) -> None:
    with opened(browser, quick, width=390) as found:
        page = found.page
        shown(page, "ranking")
        expect(page.locator("#ranking-note")).to_contain_text("A hollow dot has no run that is trusted.")
        shown(page, "compare")
        # It has no heat map.
        expect(page.locator("#compare-note")).to_have_text(
            "No baseline is chosen: choose one in the bar above."
        )
        reasons = page.locator(".failures td.why > div")
        assert 7 == reasons.count()
        ends = reasons.evaluate_all("all => all.map((one) => one.getBoundingClientRect().right)")
        assert max(ends) <= 390
        assert [] == found.complaints


def shown(page: Page, section: str) -> None:
    page.locator(f"#{section}").scroll_into_view_if_needed()


def saved(page: Page, picture: str, kind: str) -> Download:
    """What the button behind a picture downloads."""
    place = page.locator(f"#{picture}")
    place.scroll_into_view_if_needed()
    expect(place).not_to_be_empty()
    with page.expect_download() as waiting:
        page.locator(f"#{picture} + .save button", has_text=kind).click()
    return waiting.value


def rows_of(download: Download) -> list[list[str]]:
    text = Path(download.path()).read_text(encoding="utf-8-sig")
    return list(csv.reader(io.StringIO(text)))


def number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(("width", "dark"), [(1280, True), (390, False), (390, True)])
def test_opens_without_a_complaint_in_every_look(
    browser: Browser, two: Path, width: int, *, dark: bool
) -> None:
    with opened(browser, two, width=width, dark=dark) as found:
        for section in ("answer", "effects", "claims", "order", "machine"):
            shown(found.page, section)
        expect(found.page.locator("#effects-ratios svg.main-svg")).not_to_have_count(0)
        assert [] == found.complaints
        assert found.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_answer_stands_first_and_needs_no_script(browser: Browser, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(report.as_uri())
    assert "answer" == page.locator("section").first.get_attribute("id")
    assert "Take" == page.locator("#answer .headline dt").first.inner_text()
    assert "tps" in page.locator("#answer .headline .first").inner_text()
    assert "nobarrier" not in page.locator("#answer .headline .first").inner_text()
    assert "mount -o noatime DEVICE DIRECTORY" in page.locator("#answer .copied").first.inner_text()
    assert "nobarrier" in page.locator("#answer .front").inner_text()
    assert "nobarrier" not in page.locator("#answer .choices").first.inner_text()
    assert page.locator("#claims .badge.holds").count() > 0
    assert page.locator("#claims .badge.fails").count() > 0
    context.close()


def test_effects_answer_to_the_choice_and_live_in_the_address(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        shown(page, "effects")
        expect(page.locator("#effects-note")).to_contain_text("read-write: tps")
        expect(page.locator("#effects-strongest")).to_contain_text("barrier changes what a power cut leaves")
        page.select_option("#choose-metric", label="latency_ms_p99")
        expect(page.locator("#effects-note")).to_contain_text("read-write: latency_ms_p99")
        page.select_option("#choose-run", label="read-only")
        expect(page.locator("#effects-note")).to_contain_text("read-only")
        page.select_option("#effects-design", label=ACROSS)
        expect(page.locator("#effects-ratios")).to_contain_text("barrier")
        page.wait_for_url(re.compile("effects.design"))
        link = page.url
        expect(page.locator("#effects-design option:checked")).to_have_text(ACROSS)
        page.goto("about:blank")
        page.goto(link)
        expect(page.locator("html")).to_have_attribute("data-ready", "yes")
        unfold(page)
        shown(page, "effects")
        expect(page.locator("#effects-design option:checked")).to_have_text(ACROSS)
        page.locator("#effects-table > summary").click()
        expect(page.locator("#effects-table tbody tr")).not_to_have_count(0)
        assert [] == found.complaints


def test_each_study_has_its_own_lane_and_each_machine_its_column(browser: Browser, two: Path) -> None:
    with opened(browser, two) as found:
        page = found.page
        shown(page, "order")
        expect(page.locator("#order-plot .subplot.xy")).to_have_count(1)
        expect(page.locator("#order-plot .subplot.x2y2")).to_have_count(1)
        head = page.locator("#machine > .wide table.machines thead th")
        assert 3 == head.count()
        differing = page.locator("#machine > .wide tr.differs th").all_inner_texts()
        assert "Host" in differing
        assert "CPU" not in differing
        assert 2 == page.locator("#answer .front").count()
        assert [] == found.complaints


def test_pictures_are_saved_as_svg_and_csv(browser: Browser, report: Path) -> None:
    with opened(browser, report, dark=True) as found:
        for picture in (
            "ranking-plot",
            "heat-list",
            "effects-ratios",
            "courses-plot",
            "order-plot",
            "caches-table",
        ):
            drawing = saved(found.page, picture, "SVG")
            assert re.fullmatch(r"[a-z0-9._-]+\.svg", drawing.suggested_filename)
            text = Path(drawing.path()).read_text(encoding="utf-8")
            root = ET.fromstring(text)  # noqa: S314 - made by our own page
            assert f"{SVG}svg" == root.tag
            assert "Barriers and block sizes" in (root.findtext(f"{SVG}title") or "")
            # How many values stand behind it goes along, in the picture or in the note below it.
            assert "n = " in " ".join(root.itertext())
            assert "color-mix" not in text
            assert "oklab" not in text
            rows = rows_of(saved(found.page, picture, "CSV"))
            assert len(rows) > 2
            # What is a figure is one, alone in its field.
            assert [] == [
                field
                for row in rows
                for field in row
                if re.fullmatch(r"(n = )?[\d.,]+( ?%| ?–.*)?", field) and not number(field)
            ]
            picture_bytes = Path(saved(found.page, picture, "PNG").path()).read_bytes()
            assert picture_bytes.startswith(b"\x89PNG\r\n")
            wide, high = (int.from_bytes(picture_bytes[at : at + 4], "big") for at in (16, 20))
            assert (wide, high) == (
                2 * round(float(root.get("width") or 0)),
                2 * round(float(root.get("height") or 0)),
            )
        assert [] == found.complaints
        assert [found.uri] == [url for url in found.requests if not url.startswith(("data:", "blob:"))]


def test_a_saved_table_holds_what_is_shown(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        shown(page, "claims")
        table = page.locator("#claims table.claims").first
        with page.expect_download() as waiting:
            table.locator("xpath=../following-sibling::p[contains(@class,'save')][1]/button[2]").click()
        rows = rows_of(waiting.value)
        assert table.locator("tbody tr").count() == len(rows) - 1
        assert table.locator("tbody .badge").all_inner_texts() == [row[0] for row in rows[1:]]


def test_commands_of_a_cell_are_saved(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        shown(page, "effective")
        with page.expect_download() as waiting:
            page.get_by_role("button", name="Save commands").click()
        assert "mount -o noatime /dev/loop0 '/mnt x'" in Path(waiting.value.path()).read_text(
            encoding="utf-8"
        )


def test_a_hostile_study_saves_text_and_runs_nothing(browser: Browser, hostile: Path) -> None:
    with opened(browser, hostile) as found:
        page = found.page
        for picture in ("heat-list", "effects-shares", "order-plot"):
            drawing = Path(saved(page, picture, "SVG").path()).read_text(encoding="utf-8")
            root = ET.fromstring(drawing)  # noqa: S314 - made by our own page
            assert {"script", "img", "foreignObject"}.isdisjoint(
                node.tag.rpartition("}")[2] for node in root.iter()
            )
            rows_of(saved(page, picture, "CSV"))
        assert page.evaluate("window.__pwned") is None
        assert [] == found.complaints


def test_a_field_of_a_saved_table_holds_one_figure(browser: Browser, report: Path) -> None:
    rows = [
        ["Cell", "cuts", "ratio", "version", "when", "share", "tps"],
        [
            "5",
            "5 of 24, < 43 %",
            "×1.08 (1.05 to 1.11)",
            "1.2.3",
            "2026-11-23",
            "97.0 %",
            "1,320 1,229–1,417",
        ],
        ["6", "24 of 24", "+0.03 (-0.01 to +0.05)", "4 KiB", "", "none: nothing was read", "–"],
        ["7", "–", "no ratio", "", "", "12 %", "941.0"],
    ]
    with opened(browser, report) as found:
        head, *body = found.page.evaluate("rows => bedplate.save.oneByField(rows)", rows)
    assert [
        *("Cell", "cuts", "cuts, of", "cuts, below, %", "ratio", "ratio, from", "ratio, to", "ratio, note"),
        *("version", "when", "share, %", "share, note", "tps", "tps, from", "tps, to"),
    ] == head
    nothing = "none: nothing was read"
    assert [
        [
            "5",
            "5",
            "24",
            "43",
            "1.08",
            "1.05",
            "1.11",
            "",
            "1.2.3",
            "2026-11-23",
            "97.0",
            "",
            "1320",
            "1229",
            "1417",
        ],
        ["6", "24", "24", "", "0.03", "-0.01", "0.05", "", "4 KiB", "", "", nothing, "", "", ""],
        ["7", "", "", "", "", "", "", "no ratio", "", "", "12", "", "941.0", "", ""],
    ] == body


def test_the_answer_is_copied_as_a_text_for_a_mail(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.get_by_role("button", name="Copy summary").first.click()
        expect(page.locator(".save.copy .note").first).to_have_text("Copied.")
        text = page.evaluate("navigator.clipboard.readText()")
        assert text == page.evaluate("bedplate.document.mails[0]")
        assert "| cell" in text
        # A row of Markdown is as wide as the name of its cell.
        assert max(len(line) for line in text.splitlines() if not line.startswith("|")) <= 72
        assert [] == found.complaints


def test_what_a_spreadsheet_might_run_is_text(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        text = found.page.evaluate(
            "bedplate.save.csv([['=1+1', '-0.5', '+0.1 to 2', '@x', '1,096.5', 'a,b', 'say \"x\"', null]])"
        )
        assert '\ufeff\'=1+1,-0.5,\'+0.1 to 2,\'@x,1096.5,"a,b","say ""x""",\r\n' == text


@pytest.mark.parametrize("width", [1280, 390])
def test_every_control_has_a_name_and_is_reached_by_key(browser: Browser, report: Path, width: int) -> None:
    with opened(browser, report, width=width) as found:
        for section in found.page.locator("section.chapter").all():
            section.scroll_into_view_if_needed()
        nameless = found.page.evaluate(
            """() => [...document.querySelectorAll("main button, main select, main input, main a, main summary")]
              .filter((one) => !(one.textContent.trim() || one.getAttribute("aria-label") || one.labels?.length))
              .map((one) => one.outerHTML.slice(0, 120))"""
        )
        assert [] == nameless
        unreachable = found.page.evaluate(
            """() => [...document.querySelectorAll(".wide")].filter((one) => one.scrollWidth > one.clientWidth + 1
              && one.tabIndex < 0).map((one) => one.parentElement.id + "/" + one.id)"""
        )
        assert [] == unreachable


def test_tables_without_a_script_answer_to_the_choice(browser: Browser, two: Path) -> None:
    with opened(browser, two) as found:
        page = found.page
        rows = page.locator("#summary tr[data-cell]:visible")
        every = rows.count()
        assert every == page.evaluate("bedplate.document.cells.length")
        # Of the first study one cell, of the second none.
        page.evaluate("bedplate.choice.change({ cells: [1] })")
        expect(rows).to_have_count(1)
        expect(page.locator("#durability tr[data-cell]:visible")).to_have_count(1)
        page.evaluate("bedplate.choice.change({ cells: null })")
        expect(rows).to_have_count(every)
        assert [] == found.complaints


@pytest.mark.parametrize("dark", [False, True])
def test_words_stand_out_from_their_ground(browser: Browser, report: Path, *, dark: bool) -> None:
    """WCAG 2.2, 1.4.3: at least 4.5 to 1, in both themes."""
    with opened(browser, report, dark=dark) as found:
        faint = found.page.evaluate(
            """() => {
              const brush = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
              const channels = (name) => {
                brush.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name);
                brush.fillRect(0, 0, 1, 1);
                return [...brush.getImageData(0, 0, 1, 1).data].slice(0, 3).map((one) => one / 255);
              };
              const light = (name) => channels(name).map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
                .reduce((sum, one, place) => sum + one * [0.2126, 0.7152, 0.0722][place], 0);
              const contrast = (one, other) => {
                const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
                return (high + 0.05) / (low + 0.05);
              };
              const pairs = ["--ink", "--muted", "--accent", "--good", "--warn", "--bad"].flatMap((word) => ["--ground", "--surface"].map((ground) => [word, ground]));
              pairs.push(["--warn", "--warn-soft"], ["--ink", "--sunken"], ["--muted", "--sunken"], ["--ink", "--accent-soft"], ["--ink", "--warn-soft"]);
              return pairs.map(([word, ground]) => [word, ground, contrast(word, ground)]).filter(([, , found]) => found < 4.5);
            }"""
        )
        assert [] == faint


def test_paper_is_light_whatever_the_screen_is(browser: Browser, report: Path) -> None:
    with opened(browser, report, dark=True) as found:
        page = found.page
        colours = """() => ["--good", "--warn", "--warn-soft", "--series-1", "--ink"].map((name) =>
          getComputedStyle(document.documentElement).getPropertyValue(name).trim())"""
        on_screen = page.evaluate(colours)
        page.emulate_media(media="print", color_scheme="dark")
        assert set(on_screen).isdisjoint(page.evaluate(colours))
        assert "rgb(255, 255, 255)" == page.evaluate("getComputedStyle(document.body).backgroundColor")
        # Every picture is drawn for paper, those too that nobody has scrolled to.
        for picture in ("effects-ratios", "order-plot"):
            expect(page.locator(f"#{picture} svg.main-svg")).not_to_have_count(0)
        expect(page.locator(".save").first).to_be_hidden()
        assert [] == found.complaints
