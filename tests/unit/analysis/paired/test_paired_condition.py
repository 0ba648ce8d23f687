"""What makes a change bad: conditions as they are written, and whether they hold of planted studies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.studies.paired_lab import PairedLab, paired_lab, slower
from tests.support.studies.planted_executor import DURABLE, PlantedExecutor
from tests.support.studies.search_lab import BEST

from bedplate.analysis.condition import Truth
from bedplate.analysis.paired import nearest, seen_words, side_truth
from bedplate.model.visit import Durability

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.model.cell import Cell

UNSAFE = Durability("unsafe", "durable", "declared")


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PairedLab:
    return paired_lab(tmp_path, monkeypatch)


def test_a_figure_with_a_bound_is_told_by_the_interval_of_its_values(lab: PairedLab) -> None:
    lab.condition = f"{BEST} < 900"
    lab.play(PlantedExecutor(slower(0.2)))
    found = lab.read()
    assert Truth.HOLDS is found.condition
    baseline = [found.record.pairs[0].baseline]
    assert Truth.FAILS is side_truth(found.asked, found.overview, found.record, baseline)
    assert seen_words(found.asked, found.overview, found.record, baseline).startswith(f"{BEST} ")


@pytest.mark.parametrize("is_bad", [True, False])
def test_what_is_unsafe_by_its_records_is_told_after_one_block(lab: PairedLab, *, is_bad: bool) -> None:
    def durability(cell: Cell) -> Durability:
        is_contender = cell.levels.get("device.scheduler") == "mq-deadline"
        return UNSAFE if is_contender and is_bad else DURABLE

    lab.condition = "unsafe"
    executor = PlantedExecutor(slower(0.0), durability=durability)
    lab.play(executor, blocks=1)
    found = lab.read()
    assert (Truth.HOLDS if is_bad else Truth.FAILS) is found.condition
    assert 2 == len(executor.requests)
    cells = [found.record.pairs[0].contender]
    assert f"{'unsafe' if is_bad else 'durable'} after a power cut" in seen_words(
        found.asked, found.overview, found.record, cells
    )


def test_flushes_that_nobody_counted_tell_nothing(lab: PairedLab) -> None:
    lab.condition = "flushes per appending fsync < 1"
    lab.budget_s = 400.0
    lab.play(PlantedExecutor(slower(0.0)), blocks=1)
    assert Truth.CANNOT_TELL is lab.read().condition


@pytest.mark.parametrize(("share", "side"), [(0.0, Truth.FAILS), (0.3, Truth.HOLDS)])
def test_when_the_time_is_gone_the_estimate_has_a_side_of_the_bound(
    lab: PairedLab, share: float, side: Truth
) -> None:
    lab.condition = "slower 10%"
    lab.budget_s = 9 * 60.0
    lab.play(PlantedExecutor(slower(share), noise=0.25))
    found = lab.read()
    assert Truth.CANNOT_TELL is found.condition
    assert side is nearest(found.asked, found.overview, found.record, found.lines)
