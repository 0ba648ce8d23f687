"""A study of pairs from the call to its answer: told, not told, killed anywhere, disturbed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.paired_lab import PairedLab, paired_lab, slower
from tests.support.studies.planted_executor import PlantedExecutor
from tests.support.studies.planted_reasons import planted
from tests.support.studies.search_lab import BEST

from bedplate.analysis.answer import headline
from bedplate.analysis.condition import Truth
from bedplate.analysis.mail import mail_text
from bedplate.analysis.overview import overview
from bedplate.analysis.paired import answer_lines, line_words
from bedplate.campaign import running
from bedplate.campaign.running import run
from bedplate.errors import PlanError, StudyError
from bedplate.model.plan import Pruned
from bedplate.statistics.comparison import Verdict
from bedplate.statistics.paired_sequence import FIRST_LOOK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from bedplate.campaign.planning import PlannedStudy
    from bedplate.campaign.running import Consent
    from bedplate.model.cell import Cell, RunSpec


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PairedLab:
    return paired_lab(tmp_path, monkeypatch)


def test_a_large_difference_ends_it_at_the_first_look(lab: PairedLab) -> None:
    executor = PlantedExecutor(slower(0.2))
    outcome = lab.play(executor)
    found = lab.read()
    assert (True, 2 * FIRST_LOOK) == (outcome.has_ended, len(executor.requests))
    (line,) = found.lines
    assert Verdict.SLOWER is line.comparison.verdict
    assert line.comparison.low is not None
    assert line.comparison.low < 0.8 < (line.comparison.high or 0)
    assert answer_lines(found)[0].startswith("Slower: scheduler=mq-deadline beside scheduler=none.")
    assert len(answer_lines(found)) <= 8


def test_what_is_mailed_of_it_is_the_answer_of_the_pairs(lab: PairedLab) -> None:
    lab.play(PlantedExecutor(slower(0.2)))
    text = mail_text(headline(overview(lab.study)))
    assert "Change  Slower: scheduler=mq-deadline beside scheduler=none." in text
    assert "Take" not in text


def test_what_is_alike_is_called_the_same_within_the_margin(lab: PairedLab) -> None:
    lab.play(PlantedExecutor(slower(0.0), noise=0.005))
    found = lab.read()
    assert Verdict.SAME is found.lines[0].comparison.verdict
    assert answer_lines(found)[0].startswith("Same within 5 %: ")


def test_a_block_is_added_until_it_tells(lab: PairedLab) -> None:
    lab.play(PlantedExecutor(slower(0.05), noise=0.04))
    found = lab.read()
    assert FIRST_LOOK < found.blocks < 30
    assert Verdict.SLOWER is found.lines[0].comparison.verdict
    assert sorted(lab.order(), key=lambda place: place[1]) == lab.order()


def test_it_says_that_it_cannot_tell_when_the_time_is_gone_and_goes_on_with_more(lab: PairedLab) -> None:
    lab.budget_s = 9 * 60.0
    outcome = lab.play(PlantedExecutor(slower(0.0), noise=0.2))
    found = lab.read()
    assert (True, False, FIRST_LOOK) == (outcome.has_ended, found.is_told, found.blocks)
    assert answer_lines(found)[0].startswith("Cannot tell: ")
    assert "larger --budget goes on" in answer_lines(found)[-1]
    lab.budget_s = 13 * 60.0
    lab.play(PlantedExecutor(slower(0.0), noise=0.2))
    assert 6 == lab.read().blocks
    assert "the budget was raised from 9 min 00 s to 13 min 00 s" in [
        entry.what for entry in lab.read().overview.study.facts.history
    ]


def judged(lab: PairedLab) -> object:
    """What the lines say; how long visits took is no part of it."""
    return [(one.comparison.verdict, one.comparison.low, one.comparison.high) for one in lab.read().lines]


@pytest.mark.parametrize("after", [0, 7, 9])
def test_stopped_anywhere_it_goes_on_and_comes_to_the_same_answer(
    tmp_path: Path, lab: PairedLab, after: int
) -> None:
    with pytest.raises(KeyboardInterrupt):
        lab.play(PlantedExecutor(slower(0.05), noise=0.04, stop_after=after))
    lab.play(PlantedExecutor(slower(0.05), noise=0.04))
    interrupted, order = judged(lab), lab.order()
    lab.study = tmp_path / "whole"
    lab.play(PlantedExecutor(slower(0.05), noise=0.04))
    assert (judged(lab), lab.order()) == (interrupted, order)


def test_one_that_has_ended_visits_nothing_more(lab: PairedLab) -> None:
    lab.play(PlantedExecutor(slower(0.2)))
    again = PlantedExecutor(slower(0.2))
    assert lab.play(again).has_ended
    assert [] == again.requests


def once(times: int) -> Callable[[Cell, int], bool]:
    """True for the first so many visits."""
    left = [times]

    def is_so(_cell: Cell, _attempt: int) -> bool:
        left[0] -= 1
        return left[0] >= 0

    return is_so


def test_a_suspect_run_is_no_part_of_a_pair_and_another_block_takes_its_place(lab: PairedLab) -> None:
    executor = PlantedExecutor(slower(0.2), suspect=once(1))
    lab.play(executor)
    found = lab.read()
    assert (FIRST_LOOK + 1, FIRST_LOOK) == (found.blocks, found.lines[0].comparison.n)
    assert "1 suspect run (planted) left out and repeated" in "\n".join(answer_lines(found))


def test_runs_that_are_all_suspect_are_counted_with_their_doubt_which_may_be_accepted_later(
    lab: PairedLab,
) -> None:
    lab.budget_s = 1.0
    lab.play(PlantedExecutor(slower(0.2), suspect=lambda _cell, _attempt: True))
    found = lab.read()
    (line,) = found.lines
    assert line_words(found, line).endswith("0 of the 4 pairs of a first look; 8 suspect runs (planted)")
    lab.accepted = ("planted",)
    again = PlantedExecutor(slower(0.2))
    lab.play(again)
    assert [] == again.requests
    assert Verdict.SLOWER is lab.read().lines[0].comparison.verdict
    assert (
        "from here on a doubt counts that has 'planted'" in lab.read().overview.study.facts.history[-1].what
    )
    lab.accepted = ()
    with pytest.raises(StudyError, match="was begun with --accept 'planted'"):
        lab.play(again)


def is_contender(cell: Cell, _attempt: int = 1) -> bool:
    return cell.levels.get("device.scheduler") == "mq-deadline"


def said_at_the_end(lab: PairedLab, executor: PlantedExecutor) -> str:
    """The last line of a study that ended after its first block, and ends at once when it is called again."""
    assert lab.play(executor).has_ended
    found = lab.read()
    assert found.has_failed
    assert found.blocks <= 1
    assert len(executor.requests) == 2
    assert lab.play(executor).has_ended
    assert len(executor.requests) == 2
    answer = " ".join(answer_lines(found))
    assert "--budget" not in answer
    assert "same command" not in answer
    assert len(answer_lines(found)) <= 8
    return answer_lines(found)[-1]


@pytest.mark.parametrize("fails", [is_contender, lambda cell, _: not is_contender(cell), lambda *_: True])
def test_a_side_that_does_not_run_ends_it_after_the_first_block_with_its_cause(
    lab: PairedLab, fails: Callable[[Cell, int], bool]
) -> None:
    executor = PlantedExecutor(slower(0.0), fails=fails, why=lambda _: "unknown parameter shared_bufers")
    last = said_at_the_end(lab, executor)
    assert last.startswith("  No run of ext4 scheduler=")
    assert "unknown parameter shared_bufers. Mend that and begin in another --directory." in last


@pytest.mark.parametrize("condition", [None, "slower 10%", f"{BEST} worse 10%", f"{BEST} < 100"])
def test_a_side_without_the_figure_ends_it_after_the_first_block(
    lab: PairedLab, condition: str | None
) -> None:
    """The contender's runs have another figure only."""

    def truth(cell: Cell, run: RunSpec) -> Mapping[str, float]:
        return {"latency_ms_p99": 5.0} if is_contender(cell) else slower(0.0)(cell, run)

    lab.condition = condition
    last = said_at_the_end(lab, PlantedExecutor(truth))
    assert f"No run of ext4 scheduler=mq-deadline · fs 4 KiB has {BEST}" in last
    assert "its runs have latency_ms_p99. Ask for another (--metric, --workload)" in last


@pytest.mark.parametrize("metrics", [(), (BEST,)])
def test_a_figure_that_is_absent_everywhere_says_why(lab: PairedLab, metrics: tuple[str, ...]) -> None:
    lab.metrics = metrics
    executor = PlantedExecutor(slower(0.0), absent=lambda _: {BEST: "the log was cut short"})
    last = said_at_the_end(lab, executor)
    assert last.startswith(f"  No run has {BEST if metrics else 'a figure'}: the log was cut short. Ask for")


def test_a_figure_that_is_absent_on_one_side_says_why(lab: PairedLab) -> None:
    def absent(cell: Cell) -> Mapping[str, str]:
        return {BEST: "the log was cut short"} if is_contender(cell) else {}

    last = said_at_the_end(lab, PlantedExecutor(slower(0.0), absent=absent))
    assert f"has {BEST} of " in last
    assert ": the log was cut short. Ask for" in last


def test_a_figure_that_no_workload_has_is_named_with_those_that_there_are(lab: PairedLab) -> None:
    lab.metrics = ("latency_ms_p99",)
    last = said_at_the_end(lab, PlantedExecutor(slower(0.0)))
    assert f"no run has a value of latency_ms_p99; they have {BEST}" in last


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("flushes per appending fsync on the journal device < 1", "has a count of flushes per appending"),
        ("bad", "has a power cut: the plan has no workload that cuts power"),
        ("tps < 1000", "has tps"),
    ],
)
def test_a_condition_on_what_a_plan_never_has_ends_it_after_the_first_block(
    lab: PairedLab, condition: str, words: str
) -> None:
    lab.condition = condition
    assert words in said_at_the_end(lab, PlantedExecutor(slower(0.0)))


def test_a_side_that_only_a_trial_leaves_out_is_refused_before_a_visit(
    lab: PairedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks would have no end: the other side runs, and a pair never comes about."""

    def without_the_contender(found: PlannedStudy, _study: Path, _consent: Consent) -> PlannedStudy:
        kept = tuple(planned for planned in found.expansion.cells if not is_contender(planned.cell))
        left_out = (
            Pruned(planned.cell, planted("the kernel has no such scheduler"))
            for planned in found.expansion.cells
            if is_contender(planned.cell)
        )
        return replace(found, expansion=replace(found.expansion, cells=kept, pruned=tuple(left_out)))

    monkeypatch.setattr(running, "known_better", without_the_contender)
    executor = PlantedExecutor(slower(0.0))
    with pytest.raises(PlanError, match=r"a side of .* cannot run here") as refused:
        lab.play(executor)
    assert "the kernel has no such scheduler" in refused.value.reasons
    assert executor.requests == []
    assert not lab.study.exists()


@pytest.mark.parametrize(("share", "truth"), [(0.2, Truth.HOLDS), (0.0, Truth.FAILS)])
def test_a_condition_ends_it_as_soon_as_it_is_known(lab: PairedLab, share: float, truth: Truth) -> None:
    lab.condition = "slower 10%"
    lab.play(PlantedExecutor(slower(share)))
    found = lab.read()
    assert truth is found.condition
    assert FIRST_LOOK == found.blocks
    # Whether it holds is said of the condition, and not of both sides beside it.
    assert line_words(found, found.lines[0]).endswith(")")


def test_a_study_of_another_question_is_refused(lab: PairedLab) -> None:
    lab.play(PlantedExecutor(slower(0.2)))
    lab.condition = "slower 10%"
    with pytest.raises(StudyError, match="was begun with another question"):
        lab.play(PlantedExecutor(slower(0.2)))


def test_an_ordinary_study_is_not_gone_on_with(lab: PairedLab) -> None:
    lab.on(PlantedExecutor(slower(0.2)))
    run(lab.base, lab.study)
    with pytest.raises(StudyError, match="does not measure pairs until they tell"):
        lab.play(PlantedExecutor(slower(0.2)))
