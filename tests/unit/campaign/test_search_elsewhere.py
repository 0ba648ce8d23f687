"""A search whose cells get power cuts, on the nodes of a fleet, and in guests."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.planted_executor import PlantedExecutor, PlantedNodes
from tests.support.studies.search_lab import BEST, CELLS, SearchLab, best_of, search_lab, truth

from bedplate.analysis.search import answer_lines, beside_each_other, stages
from bedplate.campaign import running, searching, start
from bedplate.campaign.preparation import PreparedDrivers
from bedplate.campaign.questions import SearchAsked
from bedplate.plan.order import blocks_of
from bedplate.study.stored import read_study

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bedplate.analysis.search import Searched
    from bedplate.model.cell import Cell, RunSpec

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


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SearchLab:
    return search_lab(tmp_path, monkeypatch)


@pytest.fixture
def cutting(lab: SearchLab) -> SearchLab:
    lab.plan.write_text(WITH_CUTS)
    lab.patch.setattr(start, "drivers_of_plan", lambda *_: PreparedDrivers({}, {}))
    for module in (running, searching):
        lab.patch.setattr(module, "ensure_requirements", lambda *_: None)
    lab.asked = replace(lab.asked, durable="measured", runs=("write",))
    return lab


def cuts_of(found: Searched) -> list[str]:
    visits = found.overview.study.visits
    return [v.record.cell.filesystem.type for v in visits if v.record.key.dataset == found.record.cut_dataset]


def test_measured_the_named_cell_gets_power_cuts(cutting: SearchLab) -> None:
    cutting.play(PlantedExecutor(truth))
    found = cutting.read()
    assert ["xfs"] == cuts_of(found)
    best = best_of(found)
    durability = found.overview.cells[best.id].durability
    assert durability is not None
    assert ("measured", "durable") == (durability.basis, durability.volatile_cache)
    assert found.spent_s == pytest.approx(60.0 * len(found.tried) + 120.0, rel=0.01)


def test_a_cell_that_its_cuts_refute_is_closed_and_the_search_goes_on(cutting: SearchLab) -> None:
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


@pytest.mark.parametrize("after", [13, 22])
def test_stopped_about_its_power_cuts_it_goes_on(cutting: SearchLab, after: int) -> None:
    executor = PlantedExecutor(truth, stop_after=after)
    with contextlib.suppress(KeyboardInterrupt):
        cutting.play(executor)
    cutting.play(PlantedExecutor(truth), SearchAsked())
    found = cutting.read()
    assert found.end is not None
    assert ["xfs"] == cuts_of(found)


def test_on_a_fleet_each_node_gets_a_block_of_its_own_at_a_time(lab: SearchLab) -> None:
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


def test_in_guests_the_visits_of_a_block_share_a_boot(lab: SearchLab) -> None:
    lab.play(PlantedExecutor(truth))
    visits = read_study(lab.study).schedule.visits
    assert all(visit.boot is not None for visit in visits)
    boots = {(visit.boot, visit.repetition) for visit in visits}
    # Six visits are fewer than a boot holds: each repetition has one, which no other repetition has.
    assert len(boots) == len({boot for boot, _ in boots}) == len({repetition for _, repetition in boots})


TWO_JOBS = CELLS + '[[workload.job]]\njob = "sequential-scan"\nsize = "64 MB"\n'


def of_two(cell: Cell, run: RunSpec) -> Mapping[str, float]:
    """XFS is the fastest in the one run, Btrfs in the other."""
    speed = truth(cell, run)[BEST]
    return {BEST: speed * 4.0 if run.name == "sequential-scan" and cell.filesystem.type == "btrfs" else speed}


def test_several_runs_give_a_front_and_no_sum(lab: SearchLab) -> None:
    lab.plan.write_text(TWO_JOBS)
    lab.play(PlantedExecutor(of_two), replace(lab.asked, runs=("wal-append", "sequential-scan")))
    found = lab.read()
    first, second = stages(found.overview)
    assert (0, 1) == (first.stage, second.stage)
    assert ["xfs", "btrfs"] == [best_of(each).filesystem.type for each in (first, second)]
    # What the first run found tells the second's model, and its proof takes the first one's cell along.
    assert first.end is not None
    proof = second.end.proof if second.end else None
    assert proof is not None
    assert first.end.cells[0] in proof.rivals
    said = "\n".join(answer_lines(found))
    assert "front        2 cells" in said
    for run in ("wal-append", "sequential-scan"):
        assert f"\n{run}:\n" in f"\n{said}\n"
        comparison = beside_each_other(
            (first, second),
            first if run == "wal-append" else second,
            first.end.cells[0],
            (second.end or first.end).cells[0],
        )
        assert comparison.estimate is not None
        assert (comparison.estimate > 1) is (run == "sequential-scan")
    assert found.spent_s == pytest.approx(60.0 * len(found.overview.study.visits), rel=0.02)


def test_one_cell_that_is_the_best_in_every_run_is_the_front(lab: SearchLab) -> None:
    lab.plan.write_text(TWO_JOBS)
    lab.play(PlantedExecutor(truth), replace(lab.asked, runs=("wal-append", "sequential-scan")))
    assert any("one cell: xfs" in line for line in answer_lines(lab.read()))


@pytest.mark.parametrize("after", [8, 25, 30])
def test_stopped_in_either_run_it_goes_on(tmp_path: Path, lab: SearchLab, after: int) -> None:
    lab.plan.write_text(TWO_JOBS)
    asked = replace(lab.asked, runs=("wal-append", "sequential-scan"))
    with contextlib.suppress(KeyboardInterrupt):
        lab.play(PlantedExecutor(of_two, stop_after=after), asked)
    lab.play(PlantedExecutor(of_two), SearchAsked())
    order = lab.order()
    lab.study = tmp_path / "whole"
    lab.play(PlantedExecutor(of_two), asked)
    assert lab.order() == order
