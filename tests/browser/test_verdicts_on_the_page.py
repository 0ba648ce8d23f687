"""Verdicts and heat maps that the page makes itself, beside those of Python on the same figures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.browser.opened_page import opened
from tests.support.studies.synthetic_power_cuts import power_cut_study, torn_study
from tests.support.studies.synthetic_study import Recipe, cells_of, write_study

from bedplate.analysis.comparison import ComparisonQuestion, answer
from bedplate.analysis.overview import BAD_SHARE, overview
from bedplate.page.build import build_report

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


def test_shares_of_cuts_are_told_from_one_recording(browser: Browser, tmp_path: Path) -> None:
    study = power_cut_study(tmp_path / "study", refused="xfs")
    build_report([study], tmp_path / "report.html")
    question = ComparisonQuestion("type=ext4 barrier=yes", "type=ext4 barrier=no", metrics=(BAD_SHARE,))
    (expected,) = answer([overview(study)], question).compared
    cells = list(overview(study).cells)
    sides = [cells.index(side.cell) for side in (expected.pair.baseline, expected.pair.contender)]
    with opened(browser, tmp_path / "report.html") as found:
        page = found.page
        page.evaluate(
            f"""bedplate.choice.change({{ run: bedplate.document.runs.findIndex((one) => one.kind === "power_cut"),
                metric: bedplate.data.metricOf.get("{BAD_SHARE}"), baseline: {sides[0]}, contender: {sides[1]} }})"""
        )
        row = page.locator("#compare-table tbody tr")
        expect(row).to_have_count(1)
        expect(row.locator(".judged")).to_have_text(expected.comparison.verdict.value)
        expect(row).to_contain_text("30 of 30 beside 0 of 30, the cuts of one recording")
        expect(row.locator(".figure")).to_have_text("+1")
        assert expected.comparison.low is not None
        expect(row).to_contain_text(f"+{expected.comparison.low:.4f} to +1")
        expect(page.locator("#compare-note")).to_contain_text("The figure is contender − baseline")
        # A refused verdict is suspect: nothing is held against it.
        page.evaluate(f"bedplate.choice.change({{ contender: {cells.index(_cell_of(study, 'xfs'))} }})")
        expect(row.locator(".judged")).to_have_text("cannot tell")
        expect(row).to_contain_text("1 suspect run left out")
        assert [] == found.complaints


def test_a_third_file_system_takes_no_pair_of_the_other_two_away(browser: Browser, tmp_path: Path) -> None:
    every = cells_of(Recipe(filesystem_blocks=(4096,), database_blocks=(2048, 8192)))
    discard = [
        replace(cell, filesystem=replace(cell.filesystem, mount_options=("discard",)))
        for cell in every
        if cell.filesystem.type in {"xfs", "btrfs"}
    ]
    recipe = Recipe(cells=(*every, *discard), runs=("read-write",), course_s=2, canaries=0)
    study = write_study(tmp_path / "study", recipe)
    build_report([study], tmp_path / "report.html")
    found = overview(study)
    told = answer([found], ComparisonQuestion("type=ext4", "type=xfs,btrfs", metrics=("tps",)))
    cells = list(found.cells)
    expected = [
        [cells.index(side.cell) for side in (one.baseline, one.contender)] for one in told.matched.pairs
    ]
    assert any(one.one_sided for one in [told.matched])
    with opened(browser, tmp_path / "report.html") as shown:
        pairs = shown.page.evaluate(
            """() => bedplate.pairs.pairsOf({ baseline: { factor: "filesystem.type", level: "ext4" }, contender: null })
                .map(({ baseline, contender }) => [baseline, contender])"""
        )
        assert sorted(expected) == sorted(pairs)
        assert [] == shown.complaints


@pytest.mark.parametrize("sectors", [4096, 512])
def test_what_hangs_on_sectors_is_said_of_this_device(browser: Browser, tmp_path: Path, sectors: int) -> None:
    study = torn_study(tmp_path / "study", {"kind": "block device", "physical_block_size": sectors})
    build_report([study], tmp_path / "report.html")
    found = overview(study)
    question = ComparisonQuestion("type=xfs", "type=ext4", metrics=("tps",))
    cells = list(found.cells)
    expected = answer([found], question).compared
    here = "durable" if sectors == 4096 else "unsafe / durable"
    with opened(browser, tmp_path / "report.html") as shown:
        page = shown.page
        # Every variant has one square, which is no map: the table of cells says it.
        expect(page.locator("#heat-maps")).to_have_count(0)
        row = page.locator("#summary tbody tr[data-cell]:visible", has_text="xfs")
        expect(row).to_contain_text(f"durable; unsafe with 512-byte sectors; this device: {here}, measured")
        for each in expected:
            sides = [cells.index(side.cell) for side in (each.pair.baseline, each.pair.contender)]
            page.evaluate(f"bedplate.choice.change({{ baseline: {sides[0]}, contender: {sides[1]} }})")
            (told,) = [note for note in each.notes if "survives a power cut" in note]
            expect(page.locator("#compare-table")).to_contain_text(told)
        assert [] == shown.complaints


def _cell_of(study: Path, filesystem: str) -> str:
    cells = overview(study).study.schedule.cells
    return next(name for name, cell in cells.items() if cell.filesystem.type == filesystem)
