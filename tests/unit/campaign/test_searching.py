"""A search from the call to its end, with visits whose truth is planted: honest, killed anywhere, and refused in sentences."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.planted_executor import DURABLE, PlantedExecutor, PlantedNodes

from bedplate.analysis.overview import overview
from bedplate.analysis.search.searched import searched
from bedplate.analysis.search.step import Course
from bedplate.campaign import planning, searching, start, study_run
from bedplate.campaign.keeping import keep
from bedplate.campaign.running import extend, run
from bedplate.campaign.search_question import SearchAsked
from bedplate.campaign.searching import search
from bedplate.errors import PlanError, StudyError
from bedplate.model.search import NotWorse
from bedplate.model.visit import Durability
from bedplate.plan.fleet_order import blocks_of
from bedplate.statistics.search.course import Ending
from bedplate.study.stored import read_study

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bedplate.analysis.search.searched import Searched
    from bedplate.campaign.searching import SearchOutcome
    from bedplate.model.cell import Cell, RunSpec
    from bedplate.model.figure import RunFigures
    from bedplate.model.visit import VisitRecord
    from bedplate.study.store import Attempt

CELLS = """
title = "Small"
repetitions = 2
seed = 11
executor = "qemu"
[scratch_device]
image_size = "1 GB"
scheduler = { vary = ["none", "mq-deadline"] }
read_ahead = { vary = ["128 kB", "4 MB"] }
[[filesystem]]
type = { vary = ["ext4", "xfs", "btrfs"] }
block_size = "4 kB"
[[workload]]
type = "fio"
[[workload.job]]
job = "wal-append"
size = "64 MB"
[canary]
enabled = false
"""
# LMDB needs no build; the drivers of its visits are never started here.
WITH_CUTS = """
title = "Small"
repetitions = 2
seed = 11
executor = "qemu"
[scratch_device]
image_size = "1 GB"
scheduler = { vary = ["none", "mq-deadline"] }
[[filesystem]]
type = { vary = ["ext4", "xfs", "btrfs"] }
block_size = "4 kB"
[[workload]]
type = "microbenchmark"
engine = "lmdb"
[[workload]]
type = "power_cut"
engine = "lmdb"
points = 40
[canary]
enabled = false
"""
RUN = "wal-append"
BEST = "operations_per_s"
SPEEDS = {"ext4": 1.0, "xfs": 1.3, "btrfs": 0.6}


def truth(cell: Cell, _run: RunSpec) -> Mapping[str, float]:
    """XFS with the deadline scheduler and 4 MB of read-ahead is the fastest."""
    speed = SPEEDS[cell.filesystem.type]
    speed *= 1.2 if cell.levels.get("device.scheduler") == "mq-deadline" else 1.0
    speed *= 1.15 if cell.levels.get("device.read_ahead_kb") == 4096 else 1.0
    return {BEST: 1000.0 * speed, "latency_ms_p99": 5.0 / speed}


class Laboratory:
    """A plan and a study in a directory; `play` searches with an executor."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.study = tmp_path / "study"
        self.plan = tmp_path / "plan.toml"
        self.plan.write_text(CELLS)
        self.patch = monkeypatch
        self.asked = SearchAsked(best=BEST, runs=(RUN,), durable="volatile", budget_s=100 * 60.0)

    def play(self, executor: PlantedExecutor, asked: SearchAsked | None = None) -> SearchOutcome:
        self.on(executor)
        return search(self.plan, self.study, self.asked if asked is None else asked, Course())

    def on(self, executor: PlantedExecutor) -> None:
        self.patch.setattr(planning, "executor_for", lambda _: executor)

    def read(self) -> Searched:
        found = searched(overview(self.study))
        assert found is not None
        return found

    def order(self) -> list[tuple[str, int]]:
        return [(v.cell_id, v.repetition) for v in read_study(self.study).schedule.visits]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Laboratory:
    def kept(
        attempt: Attempt, record: VisitRecord, *, seconds_before: float
    ) -> tuple[VisitRecord, list[RunFigures]]:
        # Visits of a test take no time; what they would take is in their records.
        del seconds_before
        return keep(attempt, record, seconds_before=record.seconds)

    monkeypatch.setattr(study_run, "keep", kept)
    monkeypatch.setenv("BEDPLATE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return Laboratory(tmp_path, monkeypatch)


def best_of(found: Searched) -> Cell:
    end = found.end
    assert end is not None
    return found.overview.study.schedule.cells[found.id_of(end.cells[0])]


def test_it_finds_and_proves_the_planted_cell_in_fewer_visits_than_two_repetitions(lab: Laboratory) -> None:
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


def test_a_search_that_has_ended_visits_nothing_more(lab: Laboratory) -> None:
    lab.play(PlantedExecutor(truth))
    again = PlantedExecutor(truth)
    outcome = lab.play(again, SearchAsked())
    assert ([], None, True) == (again.requests, outcome.start, outcome.has_ended)


@pytest.mark.parametrize("after", [0, 1, 5, 6, 13, 20])
def test_stopped_anywhere_it_goes_on_and_comes_to_the_same_end(
    tmp_path: Path, lab: Laboratory, after: int
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


def test_stopped_at_every_visit_it_comes_to_the_same_order(tmp_path: Path, lab: Laboratory) -> None:
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


def test_a_suspect_run_is_visited_again_and_never_believed(lab: Laboratory) -> None:
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


def test_a_run_of_a_proof_that_is_in_doubt_gets_another_attempt_in_its_block(lab: Laboratory) -> None:
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


def test_a_cell_that_fails_is_given_up_and_the_rest_goes_on(lab: Laboratory) -> None:
    executor = PlantedExecutor(truth, fails=lambda cell, _: cell.filesystem.type == "xfs")
    outcome = lab.play(executor)
    found = lab.read()
    assert (True, "ext4") == (outcome.has_ended, best_of(found).filesystem.type)
    failures = Counter(r.cell.id for r in executor.requests if r.cell.filesystem.type == "xfs")
    assert failures
    assert all(count <= 6 for count in failures.values())
    assert any(each.closed and each.closed.code == "search-visits-failed" for each in found.cells)


def test_where_every_cell_fails_none_is_named(lab: Laboratory) -> None:
    executor = PlantedExecutor(truth, fails=lambda *_: True)
    outcome = lab.play(executor)
    end = lab.read().end
    assert end is not None
    assert (Ending.NOT_KNOWN, ()) == (end.ending, end.cells)
    assert (True, 1) == (outcome.has_ended, outcome.exit_code)
    assert len(executor.requests) <= 2 * 12


def test_where_visits_fail_alike_the_start_ends_and_says_why(lab: Laboratory) -> None:
    executor = PlantedExecutor(truth, fails=lambda *_: True, why=lambda _: "unknown parameter shared_bufers")
    outcome = lab.play(executor)
    assert outcome.start is not None
    assert "failed alike" in outcome.start.left_behind[0]
    assert (False, 1) == (outcome.has_ended, outcome.exit_code)
    assert len(executor.requests) < 6


def test_cells_of_another_class_are_visited_once_at_most_and_never_named(lab: Laboratory) -> None:
    unsafe = Durability("unsafe", "durable", "declared")

    def durability(cell: Cell) -> Durability:
        return unsafe if cell.filesystem.type == "xfs" else DURABLE

    executor = PlantedExecutor(truth, durability=durability)
    lab.play(executor)
    found = lab.read()
    assert "ext4" == best_of(found).filesystem.type
    counts = Counter(r.cell.id for r in executor.requests if r.cell.filesystem.type == "xfs")
    assert all(count <= 2 for count in counts.values())


def test_with_a_protected_cache_they_may_win(lab: Laboratory) -> None:
    unsafe = Durability("unsafe", "durable", "declared")
    lab.play(PlantedExecutor(truth, durability=lambda _: unsafe), replace(lab.asked, durable="protected"))
    assert "xfs" == best_of(lab.read()).filesystem.type


def test_cells_that_turn_out_the_same_are_not_visited_for_each_name(lab: Laboratory) -> None:
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


def test_a_flat_plan_ends_with_several_or_says_that_it_is_not_known(lab: Laboratory) -> None:
    lab.play(PlantedExecutor(lambda *_: {BEST: 1000.0}, noise=0.12))
    end = lab.read().end
    assert end is not None
    assert Ending.THIS != end.ending


def test_a_budget_that_ends_before_a_proof_is_said_and_more_of_it_goes_on(lab: Laboratory) -> None:
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


def test_a_canary_opens_and_closes_it_and_comes_back(lab: Laboratory) -> None:
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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"best": "opperations_per_s"},
            r"metric .opperations_per_s. is not known; did you mean operations_per_s",
        ),
        ({"best": "transactions"}, "transactions has no best"),
        ({"runs": ("wal-apend",)}, r"no run is called 'wal-apend'; did you mean wal-append"),
        ({"runs": ()}, "a search needs --run RUN"),
        ({"best": None}, "a search needs --best METRIC"),
        ({"budget_s": None}, "a search needs --budget TIME"),
        ({"budget_s": 60.0}, "less than one block of 6 visits"),
        ({"not_worse": (NotWorse("latency_p99", 0.1),)}, "metric 'latency_p99' is not known; did you mean"),
        ({"not_worse": (NotWorse(BEST, 0.1),)}, "that is the figure whose best cell is looked for"),
        ({"durable": "measured"}, r"--durable measured cuts power: give the plan a \[\[workload\]\]"),
    ],
)
def test_bad_input_is_a_sentence_each_and_touches_nothing(
    lab: Laboratory, change: dict[str, object], words: str
) -> None:
    executor = PlantedExecutor(truth)
    with pytest.raises(PlanError, match=words):
        lab.play(executor, replace(lab.asked, **change))  # type: ignore[arg-type]
    assert not lab.study.exists()
    assert [] == executor.requests


def test_all_that_is_wrong_is_said_at_once(lab: Laboratory) -> None:
    with pytest.raises(PlanError) as error:
        lab.play(PlantedExecutor(truth), SearchAsked(best="tsp", runs=("none",)))
    assert 3 == len(error.value.reasons)


def test_a_plan_of_one_cell_is_no_search(lab: Laboratory) -> None:
    one = CELLS.replace('{ vary = ["none", "mq-deadline"] }', '"none"').replace(
        '{ vary = ["128 kB", "4 MB"] }', '"4 MB"'
    )
    lab.plan.write_text(one.replace('{ vary = ["ext4", "xfs", "btrfs"] }', '"ext4"'))
    with pytest.raises(PlanError, match="a search needs two cells, and 1 of this plan's 1"):
        lab.play(PlantedExecutor(truth))


def test_a_figure_that_no_run_has_is_told_after_the_first_block(lab: Laboratory) -> None:
    executor = PlantedExecutor(truth)
    with pytest.raises(StudyError, match=r"6 runs of wal-append so far have no tps; .*operations_per_s"):
        lab.play(executor, replace(lab.asked, best="tps"))
    assert 6 == len(executor.requests)


def test_an_ordinary_study_is_no_search_and_a_search_no_ordinary_study(
    lab: Laboratory, tmp_path: Path
) -> None:
    lab.on(PlantedExecutor(truth))
    run(lab.plan, tmp_path / "plain")
    ordinary, lab.study = lab.study, tmp_path / "plain"
    with pytest.raises(StudyError, match="a study of all its cells and no search"):
        lab.play(PlantedExecutor(truth))
    lab.study = ordinary
    with pytest.raises(KeyboardInterrupt):
        lab.play(PlantedExecutor(truth, stop_after=3))
    with pytest.raises(StudyError, match="is a search; `bedplate search PLAN --study"):
        run(lab.plan, lab.study)


def test_another_question_is_refused_and_an_old_budget_too(lab: Laboratory) -> None:
    with pytest.raises(KeyboardInterrupt):
        lab.play(PlantedExecutor(truth, stop_after=3))
    with pytest.raises(PlanError) as error:
        lab.play(PlantedExecutor(truth), SearchAsked(best="latency_ms_p99", durable="any", budget_s=60.0))
    assert ["--best", "--durable", "--budget"] == [
        reason.partition(":")[0] for reason in error.value.reasons[:3]
    ]


def test_a_cell_that_is_too_bad_in_another_figure_is_not_named(lab: Laboratory) -> None:
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


def test_a_latency_is_best_where_it_is_lowest(lab: Laboratory) -> None:
    lab.play(PlantedExecutor(truth), replace(lab.asked, best="latency_ms_p99"))
    found = lab.read()
    assert "xfs" == best_of(found).filesystem.type
    predicted = {each.id: each.predicted for each in found.cells}
    best = predicted[best_of(found).id]
    assert best is not None
    assert best.low < 5.0 / (1.3 * 1.2 * 1.15) < best.high


@pytest.fixture
def cutting(lab: Laboratory) -> Laboratory:
    lab.plan.write_text(WITH_CUTS)
    lab.patch.setattr(start, "drivers_of_plan", lambda *_: {})
    lab.patch.setattr(searching, "ensure_requirements", lambda *_: None)
    lab.asked = replace(lab.asked, durable="measured", runs=("write",))
    return lab


def cuts_of(found: Searched) -> list[str]:
    visits = found.overview.study.visits
    return [v.record.cell.filesystem.type for v in visits if v.record.key.dataset == found.record.cut_dataset]


def test_measured_the_named_cell_gets_power_cuts(cutting: Laboratory) -> None:
    cutting.play(PlantedExecutor(truth))
    found = cutting.read()
    assert ["xfs"] == cuts_of(found)
    best = best_of(found)
    durability = found.overview.cells[best.id].durability
    assert durability is not None
    assert ("measured", "durable") == (durability.basis, durability.volatile_cache)
    assert found.spent_s == pytest.approx(60.0 * len(found.tried) + 120.0, rel=0.01)


def test_a_cell_that_its_cuts_refute_is_closed_and_the_search_goes_on(cutting: Laboratory) -> None:
    cutting.play(PlantedExecutor(truth, loses=lambda cell: cell.filesystem.type == "xfs"))
    found = cutting.read()
    assert "ext4" == best_of(found).filesystem.type
    assert "ext4" == cuts_of(found)[-1]
    assert "xfs" in cuts_of(found)
    closed = [
        each.closed.sentence for each in found.cells if each.closed and "measured" in each.closed.sentence
    ]
    assert closed
    assert all("bounded loss after a power cut" in words or "unsafe" in words for words in closed)


@pytest.mark.parametrize("after", [14, 15, 16, 17, 18, 19, 20])
def test_stopped_about_its_power_cuts_it_goes_on(cutting: Laboratory, after: int) -> None:
    executor = PlantedExecutor(truth, stop_after=after)
    with contextlib.suppress(KeyboardInterrupt):
        cutting.play(executor)
    cutting.play(PlantedExecutor(truth), SearchAsked())
    found = cutting.read()
    assert found.end is not None
    assert ["xfs"] == cuts_of(found)


def test_on_a_fleet_each_node_gets_a_block_of_its_own_at_a_time(lab: Laboratory) -> None:
    slurm = 'executor = "slurm"\n[slurm]\nnodes = ["n1", "n2"]\n'
    lab.plan.write_text(
        CELLS.replace('executor = "qemu"\n', slurm).replace("enabled = false", 'every = "10 min"')
    )
    executor = PlantedExecutor(truth, fleet=PlantedNodes())
    lab.play(executor)
    found = lab.read()
    assert "xfs" == best_of(found).filesystem.type
    assert (2, 2 * 100 * 60.0) == (found.record.at_once, found.budget_s)
    visits = found.overview.study.schedule.visits
    # A repetition is whole on its node, as in a study of all cells, and both nodes have one at a time.
    assert all(v.node == ("n1", "n2")[(v.repetition - 1) % 2] for v in visits if not v.canary)
    first = [v for v in executor.starts[0] if not v.canary]
    assert {("n1", 1), ("n2", 2)} == {(v.node, v.repetition) for v in first}
    assert 12 == len({v.cell_id for v in first})
    # Canaries of both nodes are counted together, and open and close each node's visits.
    for number, node in enumerate(("n1", "n2")):
        own = [visit for visit in visits if visit.node == node]
        assert own[0].canary
        assert own[-1].canary
        canaries = [visit.repetition for visit in own if visit.canary]
        assert [at * 2 + number + 1 for at in range(len(canaries))] == canaries
    for start_ in executor.starts:
        assert {block.node for block in blocks_of(start_)} <= {"n1", "n2"}


def test_in_guests_the_visits_of_a_block_share_a_boot(lab: Laboratory) -> None:
    lab.play(PlantedExecutor(truth))
    visits = read_study(lab.study).schedule.visits
    assert all(visit.boot is not None for visit in visits)
    boots = {(visit.boot, visit.repetition) for visit in visits}
    # Six visits are fewer than a boot holds: each repetition has one, which no other repetition has.
    assert len(boots) == len({boot for boot, _ in boots}) == len({repetition for _, repetition in boots})


def test_extended_it_is_the_factorial_and_every_visit_is_used(lab: Laboratory) -> None:
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
