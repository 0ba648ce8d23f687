"""What makes a change bad: conditions as they are written, and whether they hold of planted studies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.studies.paired_lab import PairedLab, paired_lab, slower
from tests.support.studies.planted_executor import DURABLE, PlantedExecutor
from tests.support.studies.search_lab import BEST

from bedplate.analysis.comparison import Truth
from bedplate.analysis.paired import ConditionSubject, nearest, parse_paired_condition, seen_words, side_truth
from bedplate.errors import PlanError
from bedplate.model.visit import Durability

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.model.cell import Cell

UNSAFE = Durability("unsafe", "durable", "declared")


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PairedLab:
    return paired_lab(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("text", "subject", "blocks"),
    [
        ("slower 10%", ConditionSubject.SIDES, 4),
        ("latency_ms_p99 worse 10%", ConditionSubject.SIDES, 4),
        ("flushes per appending fsync < 1", ConditionSubject.FLUSHES, 1),
        ("flushes per overwriting fsync on the journal device > 2", ConditionSubject.FLUSHES, 1),
        ("tps < 1000", ConditionSubject.FIGURE, 4),
        ("unsafe", ConditionSubject.CLASS, 1),
        ("bad", ConditionSubject.CUTS, 1),
    ],
)
def test_each_kind_is_understood(text: str, subject: ConditionSubject, blocks: int) -> None:
    found = parse_paired_condition(text, margin=0.05)
    assert (subject, blocks) == (found.subject, found.first_blocks)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "slow",
        "faster than before",
        "tps",
        "10%",
        "flushes < 1",
        "tpz < 1",
        "tps < x",
        "<script>",
        "x" * 10_000,
    ],
)
def test_nonsense_is_answered_by_one_sentence_with_what_would_do(text: str) -> None:
    with pytest.raises(PlanError) as refused:
        parse_paired_condition(text, margin=0.05)
    (reason,) = refused.value.reasons
    assert "these would do" in reason or "did you mean" in reason
    assert len(reason) < 600


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
