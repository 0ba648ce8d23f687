"""A search from the call to its end, with visits whose truth is planted: honest, killed anywhere, extended."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.planted_executor import DURABLE, PlantedExecutor
from tests.support.studies.search_lab import BEST, CELLS, SearchLab, best_of, search_lab, truth

from bedplate.analysis.search import answer_lines
from bedplate.campaign.questions import SearchAsked
from bedplate.campaign.running import extend
from bedplate.errors import StudyError
from bedplate.model.plan import NotWorse
from bedplate.model.visit import Durability
from bedplate.statistics.search import Ending
from bedplate.study.stored import read_study

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bedplate.model.cell import Cell, RunSpec


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SearchLab:
    return search_lab(tmp_path, monkeypatch)


def test_it_finds_and_proves_the_planted_cell_in_fewer_visits_than_two_repetitions(lab: SearchLab) -> None:
    executor = PlantedExecutor(truth)
    outcome = lab.play(executor)
    found = lab.read()
    assert (True, 0) == (outcome.has_ended, outcome.exit_code)
    assert found.end is not None
    assert Ending.THIS == found.end.ending
    best = best_of(found)
    assert ("xfs", "mq-deadline", 4096) == (
        best.filesystem.type,
        best.levels["device.scheduler"],
        best.levels["device.read_ahead_kb"],
    )
    assert found.end.proof is not None
    assert found.end.proof.gain is not None
    assert found.end.proof.gain.low is not None
    assert found.end.proof.gain.low < 1.3 * 1.2 * 1.15 < (found.end.proof.gain.high or 0)
    assert len(executor.requests) == len(found.tried) < 5 * 12


def test_a_search_that_has_ended_visits_nothing_more(lab: SearchLab) -> None:
    lab.play(PlantedExecutor(truth))
    again = PlantedExecutor(truth)
    outcome = lab.play(again, SearchAsked())
    assert ([], None, True) == (again.requests, outcome.start, outcome.has_ended)


@pytest.mark.parametrize("after", [0, 1, 5, 6, 13, 20])
def test_stopped_anywhere_it_goes_on_and_comes_to_the_same_end(
    tmp_path: Path, lab: SearchLab, after: int
) -> None:
    with pytest.raises(KeyboardInterrupt):
        lab.play(PlantedExecutor(truth, stop_after=after))
    assert lab.read().end is None
    lab.play(PlantedExecutor(truth), SearchAsked())
    interrupted, order = lab.read(), lab.order()
    lab.study = tmp_path / "whole"
    lab.play(PlantedExecutor(truth))
    assert lab.order() == order
    whole = lab.read()
    assert whole.end is not None
    assert interrupted.end is not None
    assert (whole.end.ending, whole.end.cells, whole.end.chance) == (
        interrupted.end.ending,
        interrupted.end.cells,
        interrupted.end.chance,
    )


def test_stopped_at_every_visit_it_comes_to_the_same_order(tmp_path: Path, lab: SearchLab) -> None:
    for _ in itertools.count():
        try:
            lab.play(PlantedExecutor(truth, stop_after=1), lab.asked)
        except KeyboardInterrupt:
            continue
        break
    order = lab.order()
    lab.study = tmp_path / "whole"
    lab.play(PlantedExecutor(truth))
    assert lab.order() == order


def test_a_suspect_run_is_visited_again_and_never_believed(lab: SearchLab) -> None:
    """In XFS every first attempt is in doubt, as if it were twice as fast: who believed it would name the wrong cell."""
    lab.play(
        PlantedExecutor(truth, suspect=lambda cell, attempt: cell.filesystem.type == "xfs" and attempt == 1)
    )
    found = lab.read()
    assert "xfs" != best_of(found).filesystem.type
    assert all(
        each.value is None
        for each in found.tried
        if found.overview.study.schedule.cells[found.id_of(each.cell)].filesystem.type == "xfs"
        and not each.proof
    )


def test_a_run_of_a_proof_that_is_in_doubt_gets_another_attempt_in_its_block(lab: SearchLab) -> None:
    doubted = Counter[str]()

    def suspect(cell: Cell, attempt: int) -> bool:
        # The first run in each proof's block of the leader, which is known after the second block.
        doubted[cell.id] += 1
        return attempt == 1 and doubted[cell.id] % 4 == 3

    lab.play(PlantedExecutor(truth, suspect=suspect))
    found = lab.read()
    attempts = {
        (v.record.key.repetition, v.record.key.cell): v.record.key.attempt
        for v in found.overview.study.visits
    }
    assert any(attempt > 1 for attempt in attempts.values())
    assert found.end is not None
    assert "xfs" == best_of(found).filesystem.type


def test_a_cell_that_fails_is_given_up_and_the_rest_goes_on(lab: SearchLab) -> None:
    executor = PlantedExecutor(truth, fails=lambda cell, _: cell.filesystem.type == "xfs")
    outcome = lab.play(executor)
    found = lab.read()
    assert (True, "ext4") == (outcome.has_ended, best_of(found).filesystem.type)
    failures = Counter(r.cell.id for r in executor.requests if r.cell.filesystem.type == "xfs")
    assert failures
    assert all(count <= 6 for count in failures.values())
    assert any(each.closed and each.closed.code == "search-visits-failed" for each in found.cells)


def test_where_every_cell_fails_none_is_named(lab: SearchLab) -> None:
    executor = PlantedExecutor(truth, fails=lambda *_: True)
    outcome = lab.play(executor)
    end = lab.read().end
    assert end is not None
    assert (Ending.NOT_KNOWN, ()) == (end.ending, end.cells)
    assert (True, 1) == (outcome.has_ended, outcome.exit_code)
    assert len(executor.requests) <= 2 * 12


def test_where_visits_fail_alike_the_search_ends_with_its_cause_and_no_advice_of_more_time(
    lab: SearchLab,
) -> None:
    executor = PlantedExecutor(truth, fails=lambda *_: True, why=lambda _: "unknown parameter shared_bufers")
    outcome = lab.play(executor)
    assert outcome.start is not None
    assert (True, 1, ()) == (outcome.has_ended, outcome.exit_code, outcome.start.left_behind)
    visits = len(executor.requests)
    assert visits < 6
    answer = " ".join(answer_lines(lab.read()))
    assert "failed alike, at mkfs: unknown parameter shared_bufers" in answer
    assert "--budget" not in answer
    assert "another hour" not in answer
    lab.play(executor, SearchAsked())
    assert visits == len(executor.requests)


def test_a_figure_that_is_absent_ends_it_after_the_first_block_and_says_why(lab: SearchLab) -> None:
    executor = PlantedExecutor(truth, absent=lambda _: {BEST: "the log was cut short"})
    with pytest.raises(StudyError, match=f"none has {BEST} \\(the log was cut short\\); "):
        lab.play(executor)
    assert len(executor.starts) == 1


def test_cells_of_another_class_are_visited_once_at_most_and_never_named(lab: SearchLab) -> None:
    unsafe = Durability("unsafe", "durable", "declared")

    def durability(cell: Cell) -> Durability:
        return unsafe if cell.filesystem.type == "xfs" else DURABLE

    executor = PlantedExecutor(truth, durability=durability)
    lab.play(executor)
    found = lab.read()
    assert "ext4" == best_of(found).filesystem.type
    counts = Counter(r.cell.id for r in executor.requests if r.cell.filesystem.type == "xfs")
    assert all(count <= 2 for count in counts.values())


def test_with_a_protected_cache_they_may_win(lab: SearchLab) -> None:
    unsafe = Durability("unsafe", "durable", "declared")
    lab.play(PlantedExecutor(truth, durability=lambda _: unsafe), replace(lab.asked, durable="protected"))
    assert "xfs" == best_of(lab.read()).filesystem.type


def test_cells_that_turn_out_the_same_are_not_visited_for_each_name(lab: SearchLab) -> None:
    executor = PlantedExecutor(
        truth,
        same=lambda cell: f"{cell.filesystem.type} {cell.levels['device.scheduler']}",
    )
    lab.play(executor)
    found = lab.read()
    assert found.entrants.same_as
    last = max(each.block for each in found.tried)
    names = [found.overview.study.schedule.cells[cell] for cell in found.record.blocks[last].cells]
    assert len({(c.filesystem.type, c.levels["device.scheduler"]) for c in names}) == len(names)


def test_a_flat_plan_ends_with_several_or_says_that_it_is_not_known(lab: SearchLab) -> None:
    lab.play(PlantedExecutor(lambda *_: {BEST: 1000.0}, noise=0.12))
    end = lab.read().end
    assert end is not None
    assert Ending.THIS != end.ending


def test_a_budget_that_ends_before_a_proof_is_said_and_more_of_it_goes_on(lab: SearchLab) -> None:
    lab.play(PlantedExecutor(truth), replace(lab.asked, budget_s=14 * 60.0))
    end = lab.read().end
    assert end is not None
    assert Ending.NOT_KNOWN == end.ending
    assert end.cells
    spent = lab.read().spent_s
    assert spent <= 14 * 60.0 + 30
    lab.play(PlantedExecutor(truth), SearchAsked(budget_s=100 * 60.0))
    found = lab.read()
    assert found.end is not None
    assert Ending.THIS == found.end.ending
    assert "budget was raised" in found.overview.study.facts.history[-1].what


def test_a_canary_opens_and_closes_it_and_comes_back(lab: SearchLab) -> None:
    lab.plan.write_text(CELLS.replace("enabled = false", 'every = "10 min"\nfilesystem = "ext4"'))
    lab.play(PlantedExecutor(truth))
    visits = read_study(lab.study).schedule.visits
    assert visits[0].canary
    assert visits[-1].canary
    canaries = [visit.repetition for visit in visits if visit.canary]
    assert list(range(1, len(canaries) + 1)) == canaries
    assert list(range(len(visits))) == [visit.index for visit in visits]
    found = lab.read()
    assert found.spent_s == pytest.approx(60.0 * len(visits), rel=0.05)


def test_a_cell_that_is_too_bad_in_another_figure_is_not_named(lab: SearchLab) -> None:
    """XFS is the fastest, and has twice the latency that the plan's first cell has."""

    def slow_tail(cell: Cell, run: RunSpec) -> Mapping[str, float]:
        return {
            BEST: truth(cell, run)[BEST],
            "latency_ms_p99": 10.0 if cell.filesystem.type == "xfs" else 5.0,
        }

    lab.play(PlantedExecutor(slow_tail))
    assert "xfs" == best_of(lab.read()).filesystem.type
    lab.study = lab.study.with_name("other")
    lab.play(PlantedExecutor(slow_tail), replace(lab.asked, not_worse=(NotWorse("latency_ms_p99", 0.1),)))
    found = lab.read()
    best = best_of(found)
    assert ("ext4", "mq-deadline", 4096) == (
        best.filesystem.type,
        best.levels["device.scheduler"],
        best.levels["device.read_ahead_kb"],
    )
    assert found.end is not None
    assert found.end.proof is not None
    assert (1, ()) == (len(found.end.proof.kept), found.end.proof.unsure)


def test_a_latency_is_best_where_it_is_lowest(lab: SearchLab) -> None:
    lab.play(PlantedExecutor(truth), replace(lab.asked, best="latency_ms_p99"))
    found = lab.read()
    assert "xfs" == best_of(found).filesystem.type
    predicted = {each.id: each.predicted for each in found.cells}
    best = predicted[best_of(found).id]
    assert best is not None
    assert best.low < 5.0 / (1.3 * 1.2 * 1.15) < best.high


def test_extended_it_is_the_factorial_and_every_visit_is_used(lab: SearchLab) -> None:
    first = PlantedExecutor(truth)
    lab.play(first)
    answer = lab.read().end
    rest = PlantedExecutor(truth)
    lab.on(rest)
    outcome = extend(lab.study, repetitions=2)
    assert 0 == outcome.failed
    study = read_study(lab.study)
    assert len(first.requests) + len(rest.requests) == len(study.visits) == len(study.schedule.visits)
    assert not study.set_aside
    keys = {(v.record.key.cell, v.record.key.repetition) for v in study.visits}
    assert {(cell, repetition) for cell in study.schedule.cells for repetition in (1, 2)} <= keys
    assert list(range(len(study.schedule.visits))) == [v.index for v in study.schedule.visits]
    assert study.search is not None
    assert 2 == study.search.extended
    after = lab.read().end
    assert answer is not None
    assert after is not None
    assert (answer.ending, answer.cells) == (after.ending, after.cells)
    with pytest.raises(StudyError, match="was a search"):
        lab.play(PlantedExecutor(truth))
    # It is an ordinary study from now on.
    more = PlantedExecutor(truth)
    lab.on(more)
    extend(lab.study, repetitions=3)
    assert {3} == {request.key.repetition for request in more.requests}
