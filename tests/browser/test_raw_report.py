"""Sequential I/O on the page in a real Chromium: bars of throughput and of CPU beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.browser.opened_page import opened
from tests.support.runs.raw_sequential_run import sequential_study

from bedplate.page.build import build_report

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

BARS = """id => document.getElementById(id).data.map(trace => Object.fromEntries(trace.x.map((x, i) => [x, trace.y[i]])))"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("raw")
    build_report([sequential_study(directory / "study")], directory / "report.html")
    return directory / "report.html"


@pytest.mark.parametrize("width", [1280, 390])
def test_throughput_and_cpu_stand_beside_each_other(browser: Browser, report: Path, width: int) -> None:
    with opened(browser, report, width=width) as found:
        page = found.page
        runs = page.locator("#choose-run option").all_inner_texts()
        page.select_option(
            "#choose-run", index=next(i for i, run in enumerate(runs) if run.startswith("bonnie"))
        )
        expect(page.locator("#raw-note")).to_contain_text("bonnie")
        ext4, xfs = page.evaluate(BARS, "raw-cpu")
        assert {"put_block", "rewrite", "get_block"} == set(ext4)
        assert ext4["rewrite"] == pytest.approx(1.0)
        assert xfs["rewrite"] == pytest.approx(0.4)
        throughput, _ = page.evaluate(BARS, "raw-throughput")
        assert throughput["put_block"] == pytest.approx(1441325 / 1024, rel=1e-4)
        page.locator("#raw-table summary").click()
        row = page.locator("#raw-table tr", has_text="seq_create").first
        expect(row).to_contain_text("–")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_jobs_of_fio_stand_on_one_axis(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        runs = page.locator("#choose-run option").all_inner_texts()
        page.select_option(
            "#choose-run", index=next(i for i, run in enumerate(runs) if run.startswith("pg_test"))
        )
        expect(page.locator("#raw-note")).to_contain_text("is no sequential I/O")
        page.select_option(
            "#choose-run", index=next(i for i, run in enumerate(runs) if run.startswith("wal"))
        )
        expect(page.locator("#raw-note")).to_contain_text(
            "The jobs of fio, geometric means over the repetitions"
        )
        bars = page.evaluate(BARS, "raw-throughput")
        assert [{"random-read-8k", "wal-append"}] * 2 == [set(each) for each in bars]
