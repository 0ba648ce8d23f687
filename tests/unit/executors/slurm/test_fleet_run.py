"""The run of a fleet's study with a pretended Slurm: killed at any moment of its collection, nothing is lost or doubled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.fleets.fleet_start import Killed, records, start
from tests.support.fleets.pretended_fleet import PretendedSlurm, completed
from tests.support.studies.planted_reasons import planted

from bedplate.errors import CommandFailed, MachineUnfit, RequirementMissing
from bedplate.executors.protocol import StartOutcome
from bedplate.executors.slurm import fleet_run
from bedplate.executors.slurm.controller import ControllerSilent, FleetLayout, QueueFull
from bedplate.executors.slurm.fleet_run import read_fleet
from bedplate.executors.slurm.job_folder import JobFolder
from bedplate.model.visit import Outcome, VisitKey, VisitRecord, VisitRequest
from bedplate.study.store import Attempt

ROOT = Path(__file__).resolve().parents[4]


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


class Late(PretendedSlurm):
    """On its shared file system results are seen some looks later than the job's last word."""

    def __init__(self) -> None:
        super().__init__()
        self._hidden: list[tuple[Path, int]] = []

    def submit(self, arguments: Sequence[str]) -> str:
        number = super().submit(arguments)
        last = max((Path(arguments[-1]).parent / "results").iterdir())
        last.rename(last.with_name(f".{last.name}.late"))
        self._hidden.append((last, 3))
        return number

    def jobs(self) -> Any:
        for last, looks in self._hidden:
            if looks == 1:
                last.with_name(f".{last.name}.late").rename(last)
        self._hidden = [(last, looks - 1) for last, looks in self._hidden if looks > 1]
        return super().jobs()


def test_results_that_are_seen_late_are_collected_and_lived_once(tmp_path: Path) -> None:
    slurm = Late()
    tally = start(tmp_path, slurm, grace_s=1000.0)
    assert (10, 0, ()) == (tally.completed, tally.failed, tally.left_behind)
    assert 3 == len(slurm.jobs())


class Narrow(PretendedSlurm):
    """Takes a second job only when the first one's end has been seen."""

    def __init__(self) -> None:
        super().__init__()
        self._refused = False

    def submit(self, arguments: Sequence[str]) -> str:
        if len(self._jobs) == 1 and not self._refused:
            self._refused = True
            raise QueueFull("QOSMaxSubmitJobPerUserLimit")
        return super().submit(arguments)


def test_where_a_user_may_have_no_more_jobs_the_next_waits_for_the_end_of_one(tmp_path: Path) -> None:
    slurm = Narrow()
    tally = start(tmp_path, slurm)
    assert (10, 0, ()) == (tally.completed, tally.failed, tally.left_behind)
    assert 3 == len(slurm.jobs())


class Crowded(PretendedSlurm):
    """Never takes any."""

    def submit(self, arguments: Sequence[str]) -> str:
        raise QueueFull("QOSMaxSubmitJobPerUserLimit")


def test_where_there_is_no_job_to_wait_for_that_is_said(tmp_path: Path) -> None:
    tally = start(tmp_path, Crowded())
    assert 0 == tally.completed
    assert 2 == sum("QOSMaxSubmitJobPerUserLimit" in words for words in tally.left_behind)


class Cancelling(PretendedSlurm):
    """`bedplate release STUDY` is given while the first job is being submitted."""

    def __init__(self, study: Path) -> None:
        super().__init__()
        self._study = study

    def submit(self, arguments: Sequence[str]) -> str:
        FleetLayout.of_study(self._study).cancelled.touch()
        return super().submit(arguments)


def test_a_start_that_is_cancelled_while_it_submits_submits_no_other_job(tmp_path: Path) -> None:
    slurm = Cancelling(tmp_path / "study")
    assert 1 == len({visit.repetition for visit in lived(tmp_path, start(tmp_path, slurm))})
    assert 1 == len(slurm.jobs())
    start(tmp_path, PretendedSlurm())
    assert 10 == len(records(tmp_path))


def lived(directory: Path, tally: StartOutcome) -> list[VisitKey]:
    found = [record.key for record in records(directory) if not record.key.canary]
    assert tally.completed >= len(found)
    return found


class Dozing(PretendedSlurm):
    """Its controller is silent for three looks, and maybe for what is submitted meanwhile."""

    def __init__(self, *, takes_jobs: bool) -> None:
        super().__init__()
        self._silent = 3
        self._takes_jobs = takes_jobs
        self.asked_while_silent = 0

    def submit(self, arguments: Sequence[str]) -> str:
        if self._silent:
            self.asked_while_silent += 1
            if not self._takes_jobs:
                raise ControllerSilent("Unable to contact slurm controller")
        return super().submit(arguments)

    def jobs(self) -> Any:
        if self._silent:
            self._silent -= 1
            raise ControllerSilent("Unable to contact slurm controller")
        return super().jobs()


@pytest.mark.parametrize(("takes_jobs", "asked"), [(False, 1), (True, 2)])
def test_a_silent_controller_is_asked_for_no_further_job_until_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, takes_jobs: bool, asked: int
) -> None:
    # With one job on each node the third repetition is left when both have said that they are done.
    monkeypatch.setattr(fleet_run, "JOBS_PER_NODE", 1)
    pauses = iter(range(1000))
    slurm = Dozing(takes_jobs=takes_jobs)
    tally = start(tmp_path, slurm, sleep=lambda _seconds: next(pauses))
    assert (10, 0, ()) == (tally.completed, tally.failed, tally.left_behind)
    assert asked == slurm.asked_while_silent
    assert 3 == len(slurm.jobs())


def test_a_job_of_which_everything_was_collected_is_none_that_runs(tmp_path: Path) -> None:
    start(tmp_path, PretendedSlurm())
    for job in FleetLayout.of_study(tmp_path / "study").jobs.jobs():
        # The start was killed after the last visit, before it wrote this down.
        (job.directory / "settled.json").unlink()
    assert {None} == {node.state for node in read_fleet(tmp_path / "study", None)}


class Unfit(PretendedSlurm):
    """On these nodes no visit can run; a node's second job waits behind its first."""

    def __init__(self, *nodes: str) -> None:
        super().__init__()
        self._unfit = nodes

    def submit(self, arguments: Sequence[str]) -> str:
        job = JobFolder(Path(arguments[-1]).parent).order
        if job.node not in self._unfit:
            return super().submit(arguments)
        if any(known.node == job.node for known in self._jobs.values()):
            return self.list_job(job.name, "PENDING", node=job.node)
        return self.refuse(arguments, "/scratch: No space left on device")


@pytest.mark.parametrize("jobs_per_node", [1, 2])
def test_a_node_that_the_machine_fails_is_taken_out_and_nothing_is_recorded_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs_per_node: int
) -> None:
    monkeypatch.setattr(fleet_run, "JOBS_PER_NODE", jobs_per_node)
    slurm = Unfit("n1")
    tally = start(tmp_path, slurm)
    # Repetitions 1 and 3 are on n1.
    assert (4, 0) == (tally.completed, tally.failed)
    assert {"n2"} == {record.provenance["node"] for record in records(tmp_path)}
    first, second = tally.left_behind
    assert "no visit can run on n1: /scratch: No space left on device; 3 visits of it did not run" in first
    assert "3 " in second
    assert "n1" in second
    # What waited behind it was not begun there either.
    states = sorted(job.state for job in slurm.jobs().values() if job.node == "n1")
    assert ["CANCELLED", "FAILED"][-jobs_per_node:] == states
    assert () == FleetLayout.of_study(tmp_path / "study").jobs.unsettled()
    again = start(tmp_path, PretendedSlurm())
    assert (6, 0, ()) == (again.completed, again.failed, again.left_behind)
    assert {1} == {record.key.attempt for record in records(tmp_path)}


def test_without_a_node_on_which_a_visit_can_run_the_start_ends_as_on_one_machine(tmp_path: Path) -> None:
    with pytest.raises(
        MachineUnfit, match=r"(?s)on n1: /scratch.*on n2: /scratch.*same command again"
    ) as caught:
        start(tmp_path, Unfit("n1", "n2"))
    assert 3 == caught.value.exit_code
    assert [] == records(tmp_path)
    assert 10 == start(tmp_path, PretendedSlurm()).completed


def test_an_unfit_node_that_nobody_watched_is_tried_again_by_the_start_that_finds_it(tmp_path: Path) -> None:
    class Killing(Unfit):
        def jobs(self) -> Any:
            raise Killed

    slurm = Killing("n1", "n2")
    with pytest.raises(Killed):
        start(tmp_path, slurm)
    tally = start(tmp_path, PretendedSlurm())
    assert (10, 0, ()) == (tally.completed, tally.failed, tally.left_behind)


class Misspelt(PretendedSlurm):
    """A setting fails every visit on these nodes; those of others wait some looks for their turn."""

    def __init__(self, *nodes: str) -> None:
        super().__init__()
        self._nodes = nodes
        self._waiting: list[Sequence[str]] = []
        self._looks = 0

    def submit(self, arguments: Sequence[str]) -> str:
        job = JobFolder(Path(arguments[-1]).parent).order
        if job.node in self._nodes:
            return super().submit(arguments)
        self._waiting.append(arguments)
        return self.list_job(job.name, "PENDING", node=job.node)

    def jobs(self) -> Any:
        self._looks += 1
        if self._looks > 3:
            while self._waiting:
                super().submit(self._waiting.pop())
        return super().jobs()

    def record(self, request: VisitRequest, node: str) -> VisitRecord:
        if node not in self._nodes:
            return completed(request)
        reason = f"12:00:0{len(self._jobs)} the server on {node} did not start: no parameter shared_bufers"
        return replace(
            completed(request), outcome=Outcome.FAILED, reasons=planted(reason), failed_step="server start"
        )


def test_what_fails_every_visit_alike_on_every_node_ends_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_run, "JOBS_PER_NODE", 1)
    slurm = Misspelt("n1", "n2")
    tally = start(tmp_path, slurm)
    assert (0, 7, 2) == (tally.completed, tally.failed, len(slurm.jobs()))
    assert "failed alike, at server start" in tally.left_behind[0]
    assert "the 3 that are left" in tally.left_behind[1]


def test_jobs_that_wait_are_taken_from_the_queue_of_a_study_that_is_given_up(tmp_path: Path) -> None:
    class Queued(Misspelt):
        def submit(self, arguments: Sequence[str]) -> str:
            if JobFolder(Path(arguments[-1]).parent).order.repetition < 3:
                return super().submit(arguments)
            return self.list_job(JobFolder(Path(arguments[-1]).parent).order.name, "PENDING", node="n1")

    slurm = Queued("n1", "n2")
    tally = start(tmp_path, slurm)
    assert (0, 7) == (tally.completed, tally.failed)
    assert ["CANCELLED", "COMPLETED", "COMPLETED"] == sorted(job.state for job in slurm.jobs().values())


def test_what_fails_on_one_node_alone_is_tried_on_the_others(tmp_path: Path) -> None:
    slurm = Misspelt("n1")
    tally = start(tmp_path, slurm)
    assert (4, 6, ()) == (tally.completed, tally.failed, tally.left_behind)
    assert 3 == len(slurm.jobs())
