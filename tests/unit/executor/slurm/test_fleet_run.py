"""The run of a fleet's study with a pretended Slurm: killed at any moment of its collection, nothing is lost or doubled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.pretended_fleet import PretendedSlurm, Silent
from tests.synthetic_study import MACHINE

from bedplate.errors import CommandFailed, RequirementMissing
from bedplate.executor.keeping import Grounds
from bedplate.executor.slurm.controller import ControllerSilent, Slurm
from bedplate.executor.slurm.fleet_run import FleetRun, Manner
from bedplate.executor.slurm.layout import FleetLayout
from bedplate.executor.slurm.progress import read_fleet
from bedplate.executor.study_run import Tally
from bedplate.model import codec
from bedplate.model.visit import EngineBuild, VisitRecord
from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan
from bedplate.plan.order import order
from bedplate.plan.platforms import Platform
from bedplate.study.layout import is_study
from bedplate.study.store import Attempt, StudyStore

ROOT = Path(__file__).resolve().parents[4]
PLAN = """
title = "Pretended"
repetitions = 3
executor = "slurm"
[scratch_device]
image_size = "1 GB"
[slurm]
nodes = ["n1", "n2"]
controller_deadline = "1 min"
[[filesystem]]
type = { vary = ["ext4", "xfs"] }
[[workload]]
type = "pgbench"
scale = 1
[[workload.run]]
script = "read-only"
clients = 1
duration = "60 s"
"""


class Killed(BaseException):
    """As SIGKILL: nothing after it is done."""


def start(directory: Path, slurm: Slurm, **changes: Any) -> Tally:
    plan = load_plan(PLAN, source="plan.toml", directory=directory)
    expansion = expand(plan, None, platform=Platform("slurm"))
    schedule = order(plan, expansion, executor="slurm")
    study = directory / "study"
    builds = {b: EngineBuild("/p", b.version, 8192, 8192, "", "", "", (), "d") for b in plan.builds}
    store = (
        StudyStore.open(study)
        if is_study(study)
        else StudyStore.create(
            study,
            plan=plan,
            plan_text=PLAN,
            plan_files={},
            machine=MACHINE,
            expansion=expansion,
            schedule=schedule,
            executor="slurm",
        )
    )
    display: Any = Silent()
    manner = Manner(("true",), pause_s=0.0, file_grace_s=0.0, listing_grace_s=0.0)
    with store:
        grounds = Grounds(plan, expansion, builds, {}, (), erase_foreign=False)
        run = FleetRun(store, grounds, slurm, display, manner=manner, **changes)
        return run.run(store.due(schedule))


def records(directory: Path) -> list[VisitRecord]:
    found = [codec.read(VisitRecord, p) for p in (directory / "study").glob("visits/*/*/*/visit.json")]
    assert len(found) == len({(r.key.cell, r.key.dataset, r.key.repetition, r.key.canary) for r in found})
    return found


def test_the_benchmark_of_a_dry_run_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "benchmarks/fleet_dry_run.py", "--visits", "40", "--nodes", "2", "--json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
    )
    assert 0 == done.returncode, done.stderr
    found = json.loads(done.stdout)
    assert (40, 2) == (found["visits"], found["jobs"])


def test_every_visit_is_in_the_study_with_its_node_and_every_node_is_told(tmp_path: Path) -> None:
    tally = start(tmp_path, PretendedSlurm())
    assert (10, 0, ()) == (tally.completed, tally.failed, tally.left_behind)
    assert {"n1", "n2"} == {record.provenance["node"] for record in records(tmp_path)}
    nodes = read_fleet(tmp_path / "study", None)
    assert [("n1", 6, 0), ("n2", 4, 0)] == [(n.node, n.completed, n.left) for n in nodes]


@pytest.mark.parametrize("at", range(10))
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_start_that_is_killed_while_it_collects_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, moment: str
) -> None:
    slurm = PretendedSlurm()
    finish, count = Attempt.finish, iter(range(1000))

    def killed(attempt: Attempt) -> None:
        here = next(count) == at
        if here and moment == "before":
            raise Killed
        finish(attempt)
        if here:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Attempt, "finish", killed)
        with pytest.raises(Killed):
            start(tmp_path, slurm)
    jobs = len(slurm.jobs())
    start(tmp_path, slurm)
    assert 10 == len(records(tmp_path))
    assert {1} == {record.key.attempt for record in records(tmp_path)}
    assert 3 == len(slurm.jobs()) >= jobs
    assert () == FleetLayout.of_study(tmp_path / "study").jobs.unsettled()


class Refusing(PretendedSlurm):
    """Refuses the jobs of one node."""

    def submit(self, arguments: Sequence[str]) -> str:
        if "--nodelist=n2" in arguments:
            raise CommandFailed("Invalid node name specified", argv=["sbatch"], status=1, output="")
        return super().submit(arguments)


def test_what_slurm_refuses_is_told_and_the_other_nodes_go_on(tmp_path: Path) -> None:
    tally = start(tmp_path, Refusing())
    assert 6 == tally.completed
    (told,) = tally.left_behind
    assert "repetition 2 on n2 was not submitted: Invalid node name" in told
    assert 4 == start(tmp_path, PretendedSlurm()).completed


class Silenced(PretendedSlurm):
    """Submits, and says that it does not know; the first time it does not even submit."""

    def __init__(self, *, submits: bool) -> None:
        super().__init__()
        self._submits = submits

    def submit(self, arguments: Sequence[str]) -> str:
        if self._submits:
            super().submit(arguments)
        else:
            self._submits = True
        raise ControllerSilent("Socket timed out on send/recv operation")


@pytest.mark.parametrize("submits", [True, False])
def test_a_submission_of_which_nobody_knows_is_looked_for_and_made_once(
    tmp_path: Path, submits: bool
) -> None:
    slurm = Silenced(submits=submits)
    tally = start(tmp_path, slurm)
    assert (10, 0) == (tally.completed, tally.failed)
    assert 10 == len(records(tmp_path))
    assert 3 == len(slurm.jobs())


class Gone(PretendedSlurm):
    """Its controller never answers, and its jobs say nothing."""

    def submit(self, arguments: Sequence[str]) -> str:
        return "1"

    def jobs(self) -> Any:
        raise ControllerSilent("Unable to contact slurm controller")


def test_a_controller_is_waited_for_until_the_studys_own_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])

    def later(_seconds: float) -> None:
        clock[0] += 7

    with pytest.raises(RequirementMissing, match="has not answered for 1 min"):
        start(tmp_path, Gone(), sleep=later)
    assert 60 < clock[0] < 80
    # The jobs are still the study's.
    assert FleetLayout.of_study(tmp_path / "study").jobs.unsettled()
