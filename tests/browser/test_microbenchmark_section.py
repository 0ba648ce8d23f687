"""LMDB's section of the page in a real Chromium: one test at a time, what it promises beside every bar."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.browser.opened_page import opened
from tests.support.studies.synthetic_microbenchmark import synthetic_microbenchmark

from bedplate.page.build import build_report

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("lmdb")
    build_report([synthetic_microbenchmark(directory / "study", repetitions=2)], directory / "report.html")
    return directory / "report.html"


@pytest.mark.parametrize("width", [1280, 390])
def test_the_chosen_test_is_drawn_in_every_cell_best_first(
    browser: Browser, report: Path, width: int
) -> None:
    with opened(browser, report, width=width) as found:
        page = found.page
        page.select_option("#microbenchmark-run", label="write")
        page.select_option("#microbenchmark-test", label="fillseq")
        expect(page.locator("#microbenchmark-plot")).to_contain_text("fillseq: test_operations_per_s")
        beside = page.locator("#microbenchmark-plot .annotation-text").all_text_contents()
        if width == 390:
            # Names stand above the bars, so that these are seen without scrolling.
            assert not any(name[0].isdigit() for name in beside[::2])
            # What all of them are called has no room.
            expected = {f"{kind} {no}writemap" for kind in ("ext4", "btrfs") for no in ("", "no ")}
            assert expected == set(beside[::2])
            beside = beside[1::2]
        assert 4 == len(beside)
        bar = page.locator("#microbenchmark-plot .bars .point").first.bounding_box()
        assert bar is not None
        assert bar["x"] + bar["width"] <= width
        assert bar["width"] > 200
        speeds = [float(text.split(" ")[0].replace(",", "")) for text in beside]
        assert sorted(speeds, reverse=True) == speeds
        assert {"unsafe / bounded loss"} == {text.partition(" · ")[2] for text in beside}
        page.select_option("#microbenchmark-test", label="fillseqsync")
        expect(
            page.locator("#microbenchmark-plot .annotation-text").nth(1 if width == 390 else 0)
        ).to_contain_text("durable")
        page.locator("#microbenchmark-table summary").click()
        expect(page.locator("#microbenchmark-table tbody tr")).to_have_count(4)
        assert [] == found.complaints
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_section_follows_the_run_of_the_page_and_keeps_the_test(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        page.select_option("#choose-run", label="read-cold")
        expect(page.locator("#microbenchmark-run option:checked")).to_have_text("read-cold")
        assert ["readrandom", "readseq", "readreverse"] == page.locator(
            "#microbenchmark-test option"
        ).all_inner_texts()
        expect(page.locator("#microbenchmark-note")).to_contain_text("only reads")
        page.select_option("#microbenchmark-metric", label="device_read_mib")
        page.select_option("#microbenchmark-test", label="readseq")
        assert "device_read_mib" == page.locator("#microbenchmark-metric option:checked").inner_text()
        assert not page.locator("#caches").count()
        assert [] == found.complaints
