"""A page of many cells draws what is in sight first, and everything in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.browser.opened_page import opened
from tests.support.studies.synthetic_study import Recipe, write_study

from bedplate.page.build import build_report

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("large")
    recipe = Recipe(
        filesystem_blocks=(2048, 4096),
        runs=("read-write",),
        mount_options=(("commit=5",), ("commit=30",)),
        repetitions=1,
        course_s=3,
    )
    build_report([write_study(directory / "study", recipe)], directory / "report.html")
    return directory / "report.html"


def test_a_choice_is_answered_first_where_the_reader_looks(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        assert 84 == page.evaluate("bedplate.document.cells.length")
        answered = page.evaluate(
            """async () => {
              await bedplate.onScreen.all();
              document.getElementById("order").scrollIntoView({ behavior: "instant" });
              const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
              for (let frames = 0; frames < 5; frames += 1) await frame();
              const order = [];
              const both = ["heat-definition", "order-note"].map((id) => new Promise((resolve) => {
                const seen = () => { order.push(id); resolve(); };
                new MutationObserver(seen).observe(document.getElementById(id), { childList: true });
              }));
              bedplate.choice.change({ metric: bedplate.data.metricOf.get("latency_ms_p99") });
              await Promise.all(both);
              return [...new Set(order)];
            }"""
        )
        # Views are drawn in the order of the page, but for those that nobody sees.
        assert ["order-note", "heat-definition"] == answered
        assert page.locator("#order-note").inner_text().startswith("latency_ms_p99")
        assert [] == found.complaints


def test_what_is_near_the_window_is_drawn_after_what_is_in_it(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        drawn = found.page.evaluate(
            """async () => {
              const heights = { near: 1.2, far: 3, seen: 0.2 };
              const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
              const order = [];
              const asks = Object.entries(heights).map(([name, height]) => {
                const element = document.body.appendChild(document.createElement("div"));
                Object.assign(element.style, { position: "fixed", top: `${100 * height}vh`, height: "1px", width: "1px" });
                return bedplate.onScreen.watch(element, () => order.push(name));
              });
              for (let frames = 0; frames < 5; frames += 1) await frame();
              asks.forEach((ask) => ask());
              const atOnce = [...order];
              await bedplate.onScreen.answered();
              const answered = [...order];
              await bedplate.onScreen.drawn();
              const soon = [...order];
              await bedplate.onScreen.all();
              return { atOnce, answered, soon, all: order };
            }"""
        )
        assert {
            "atOnce": ["seen"],
            "answered": ["seen"],
            "soon": ["seen", "near"],
            "all": ["seen", "near", "far"],
        } == drawn
        assert [] == found.complaints


def test_a_view_that_fails_near_the_window_is_told_and_holds_up_no_other(
    browser: Browser, report: Path
) -> None:
    with opened(browser, report) as found:
        told = found.page.evaluate(
            """async () => {
              const seen = [];
              const drawn = [];
              const asks = ["first", "second"].map((name) => {
                const element = document.body.appendChild(document.createElement("div"));
                Object.assign(element.style, { position: "fixed", top: "120vh", height: "1px", width: "1px" });
                const ask = bedplate.onScreen.watch(element, () => {
                  drawn.push(name);
                  if (name === "first") throw new Error("the first fails");
                });
                seen.push(new Promise((resolve) => {
                  new IntersectionObserver(resolve, { rootMargin: "50% 0px" }).observe(element);
                }));
                return ask;
              });
              await Promise.all(seen);
              // Observers are told in any order; by the next frame all were.
              await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
              const [first, second] = asks.map((ask) => ask());
              const failed = await first.then(() => null, (error) => error.message);
              await second;
              return { failed, drawn };
            }"""
        )
        assert {"failed": "the first fails", "drawn": ["first", "second"]} == told
        assert any("the first fails" in complaint for complaint in found.complaints)


def test_a_view_that_fails_far_from_the_window_is_told_and_holds_up_no_other(
    browser: Browser, report: Path
) -> None:
    with opened(browser, report, fresh=True) as found:
        told = found.page.evaluate(
            """async () => {
              const drawn = [];
              const element = document.body.appendChild(document.createElement("div"));
              await new Promise((resolve) => {
                // What is held up is never drawn, and a test that waits for it never ends.
                setTimeout(resolve, 10_000);
                const asks = ["first", "second"].map((name) =>
                  bedplate.onScreen.watch(element, () => {
                    drawn.push(name);
                    if (name === "first") throw new Error("the first fails");
                    resolve();
                  }),
                );
                for (const ask of asks) ask();
              });
              return drawn;
            }"""
        )
        assert ["first", "second"] == told
        assert any("the first fails" in complaint for complaint in found.complaints)


def test_what_is_far_is_drawn_after_a_rest(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        for plot in ("courses-plot", "latency-linear", "distribution-plot", "order-plot"):
            expect(page.locator(f"#{plot} svg.main-svg")).not_to_have_count(0)
        assert 0 == page.evaluate("window.scrollY")
        assert [] == found.complaints


def test_all_is_drawn_for_paper(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        page.evaluate("bedplate.onScreen.all()")
        for plot in ("courses-plot", "latency-linear", "distribution-plot", "order-plot"):
            assert page.locator(f"#{plot} svg.main-svg").count() > 0
        assert [] == found.complaints
