"""A fleet on a real Slurm of two nodes on this machine: what succeeds, fails, is lost, cancelled, killed.

The daemons are an ordinary user's, on loopback; visits are pretended ones, as real ones need root. The cases
that wait for Slurm's own time limits are slow, two minutes, and run when they are asked for:
BEDPLATE_SLURM_SLOW=1 python -m pytest tests/host/test_slurm.py
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.fleets.slurm_lab import NODES, SlurmLab, lacking_programs, slurm_lab
from tests.support.tools.patience import AT_MOST_S

from bedplate.executors.slurm.job_folder import JobFolders
from bedplate.host.process import wait_until
from bedplate.model import codec
from bedplate.model.visit import Outcome, VisitRecord

pytestmark = [
    pytest.mark.host,
    pytest.mark.third_lane,
    pytest.mark.skipif(
        bool(lacking_programs()),
        reason=f"no Slurm here: {', '.join(lacking_programs())} (packages slurmctld slurmd slurm-client)",
    ),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmLab]:
    with slurm_lab() as lab:
        yield lab


slow = pytest.mark.skipif(
    os.environ.get("BEDPLATE_SLURM_SLOW") != "1", reason="waits for Slurm's own limits: BEDPLATE_SLURM_SLOW=1"
)


class Fleet:
    """One study on the cluster."""

    def __init__(self, lab: SlurmLab, place: Path) -> None:
        self.lab = lab
        self.study = place / "study"
        self.behaviour = place / "behaviour"
        place.mkdir()
        self.behaviour.mkdir()
        if lab.before:
            for path in (place, self.behaviour):
                os.chown(path, 65534, 65534)

    def start(
        self, repetitions: int = 2, time: str = "10 min", *, environment: dict[str, str] | None = None
    ) -> subprocess.Popen[str]:
        words = (
            "-m",
            "tests.support.fleets.fleet_driver",
            self.study,
            self.behaviour,
            str(repetitions),
            time,
        )
        return self.lab.start_python(*words, environment=environment)

    def end(
        self, process: subprocess.Popen[str], *, deadline_s: float = AT_MOST_S
    ) -> tuple[str, dict[str, Any]]:
        said, _ = process.communicate(timeout=deadline_s)
        assert 0 == process.returncode, said + self.lab.logs()
        tally: dict[str, Any] = json.loads(said.strip().splitlines()[-1])
        return said, tally

    def hold(self, node: str) -> None:
        (self.behaviour / f"hold-{node}").touch()

    def release(self, node: str) -> None:
        (self.behaviour / f"hold-{node}").unlink()

    def lines(self, name: str) -> list[str]:
        file = self.behaviour / name
        return file.read_text().splitlines() if file.exists() else []

    def wait_for_lines(self, name: str, count: int, node: str = "") -> None:
        assert wait_until(
            lambda: count <= sum(line.startswith(node) for line in self.lines(name)), deadline_s=AT_MOST_S
        ), self.lab.logs()

    def wait_for_jobs(self, count: int) -> None:
        jobs = JobFolders(self.study / "fleet" / "jobs")
        assert wait_until(
            lambda: count == sum(job.submission is not None for job in jobs.jobs()), deadline_s=AT_MOST_S
        )

    def records(self) -> list[VisitRecord]:
        return [codec.read(VisitRecord, path) for path in sorted(self.study.glob("visits/*/*/*/visit.json"))]


@pytest.fixture
def fleet(cluster: SlurmLab, request: pytest.FixtureRequest) -> Fleet:
    return Fleet(cluster, cluster.base / "studies" / request.node.name[:40])


def test_every_visit_is_lived_once_on_its_node_and_a_second_start_finds_nothing_to_do(fleet: Fleet) -> None:
    _, tally = fleet.end(fleet.start(repetitions=4))
    assert (8, 0, []) == (tally["completed"], tally["failed"], tally["left_behind"])
    where = {(record.key.repetition, record.provenance["node"]) for record in fleet.records()}
    assert {(1, "n1"), (2, "n2"), (3, "n1"), (4, "n2")} == where
    assert all(record.whole_seconds is not None for record in fleet.records())
    _, tally = fleet.end(fleet.start(repetitions=4))
    assert 0 == tally["completed"]
    assert {1} == set(Counter(fleet.lines("lived")).values())
    assert 8 == len(fleet.lines("lived"))
    assert [] == list(fleet.study.glob("fleet/jobs/*/results/*"))


def test_a_visit_whose_process_fails_is_failed_with_its_words_and_the_next_goes_on(fleet: Fleet) -> None:
    (fleet.behaviour / "fail-xfs").touch()
    _, tally = fleet.end(fleet.start())
    assert (2, 2) == (tally["completed"], tally["failed"])
    failed = [record for record in fleet.records() if record.outcome is Outcome.FAILED]
    assert {"xfs"} == {record.cell.filesystem.type for record in failed}
    assert all("ended with status 7: the disk is on fire" in record.reasons[0].sentence for record in failed)


def test_unfit_is_a_node_that_the_machine_fails_and_nothing_is_recorded_of_it(fleet: Fleet) -> None:
    (fleet.behaviour / "unfit-n2").touch()
    said, tally = fleet.end(fleet.start(repetitions=4))
    assert (4, 0) == (tally["completed"], tally["failed"]), said
    assert {"n1"} == {record.provenance["node"] for record in fleet.records()}
    assert "no visit can run on n2: the disk is full; 2 visits of it did not run" in said
    assert 1 == len([line for line in fleet.lines("begun") if line.startswith("n2")])
    (fleet.behaviour / "unfit-n2").unlink()
    _, tally = fleet.end(fleet.start(repetitions=4))
    assert (4, 0, []) == (tally["completed"], tally["failed"], tally["left_behind"])


def test_a_killed_start_is_taken_up_by_the_next_and_nothing_is_lived_twice(fleet: Fleet) -> None:
    for node in NODES:
        fleet.hold(node)
    first = fleet.start(repetitions=4)
    fleet.wait_for_jobs(4)
    for node in NODES:
        fleet.wait_for_lines("begun", 1, node)
    first.kill()
    first.wait()
    for node in NODES:
        fleet.release(node)
    # Results lie in the jobs' folders with nobody to collect them.
    fleet.wait_for_lines("lived", 4)
    said, tally = fleet.end(fleet.start(repetitions=4))
    assert "found Slurm job" in said
    assert "Slurm job" not in "".join(line for line in said.splitlines() if "visits" in line)
    assert (8, 0) == (tally["completed"], tally["failed"])
    assert {1} == set(Counter(fleet.lines("lived")).values())


def test_a_cancelled_study_gives_its_nodes_back_and_goes_on_later(fleet: Fleet) -> None:
    for node in NODES:
        fleet.hold(node)
    start = fleet.start(repetitions=4)
    fleet.wait_for_jobs(4)
    for node in NODES:
        fleet.wait_for_lines("begun", 1, node)
    done = fleet.lab.start_python("-m", "tests.support.fleets.fleet_cancel", fleet.study)
    said, _ = done.communicate(timeout=AT_MOST_S)
    assert 0 == done.returncode, said
    assert 2 == said.count("had not begun: cancelled"), said
    assert 2 == said.count("gave everything back and ended"), said
    _, tally = fleet.end(start)
    assert 0 == tally["completed"] + tally["failed"]
    assert 4 == len(tally["left_behind"])
    assert "" == fleet.lab.call("squeue", "-h", "-t", "running,pending")
    for node in NODES:
        fleet.release(node)
    _, tally = fleet.end(fleet.start(repetitions=4))
    assert (8, 0) == (tally["completed"], tally["failed"])
    assert {1} == {record.key.attempt for record in fleet.records()}


def test_a_node_that_is_lost_in_a_visit_fails_that_visit_alone_and_its_repetition_is_told_incomplete(
    fleet: Fleet,
) -> None:
    fleet.hold("n2")
    start = fleet.start()
    fleet.wait_for_lines("begun", 1, "n2")
    # A node that answers nobody; marked as slurmctld does after its own heartbeat (test_a_lost_heartbeat).
    fleet.lab.daemons["n2"].send_signal(signal.SIGSTOP)
    fleet.lab.call("scontrol", "update", "NodeName=n2", "State=DOWN", "Reason=lost")
    said, tally = fleet.end(start)
    fleet.lab.daemons["n2"].send_signal(signal.SIGCONT)
    fleet.lab.call("scontrol", "update", "NodeName=n2", "State=RESUME")
    fleet.release("n2")
    assert (2, 1) == (tally["completed"], tally["failed"]), said
    (lost,) = [record for record in fleet.records() if record.outcome is Outcome.FAILED]
    assert "NODE_FAIL" in lost.reasons[0].sentence
    # Slurm 22.05 says 0:0, 24.11 says 0:1.
    assert re.search(r"\(exit code 0:[01]\)", lost.reasons[0].sentence)
    assert "n2" == lost.provenance["node"]
    assert ["1 visit of it did not run"] == [words.rpartition("; ")[2] for words in tally["left_behind"]]
    # The same command does the visit that never began, on the same node, and not the failed one.
    _, tally = fleet.end(fleet.start())
    assert (1, 0) == (tally["completed"], tally["failed"])
    assert {"n2"} == {r.provenance["node"] for r in fleet.records() if r.key.repetition == 2}
    # The orphan ended its visit at last; that result came too late and is not taken, nor did it go on.
    assert {1} == set(Counter(fleet.lines("begun")).values())
    assert 3 == sum(record.outcome is Outcome.COMPLETED for record in fleet.records())


def test_a_job_that_is_put_back_does_not_begin_twice(fleet: Fleet) -> None:
    fleet.hold("n1")
    start = fleet.start(repetitions=1)
    fleet.wait_for_lines("begun", 1, "n1")
    (job,) = JobFolders(fleet.study / "fleet" / "jobs").jobs()
    assert job.submission is not None
    # --no-requeue forbids it to Slurm itself, and an operator may still ask for it.
    fleet.lab.call("scontrol", "update", f"JobId={job.submission.job}", "Requeue=1")
    fleet.lab.call("scontrol", "requeuehold", job.submission.job)
    _, tally = fleet.end(start)
    fleet.lab.call("scancel", job.submission.job)
    assert 1 == len([line for line in fleet.lines("begun") if line.startswith("n1")])
    assert tally["left_behind"]


def test_a_controller_that_is_away_is_waited_for(fleet: Fleet) -> None:
    fleet.hold("n1")
    start = fleet.start(repetitions=1, environment=fleet.lab.impatient())
    fleet.wait_for_lines("begun", 1, "n1")
    fleet.lab.kill_daemon("slurmctld", signal.SIGTERM)
    assert start.stdout is not None
    for line in start.stdout:
        if "the controller does not answer" in line:
            break
    else:
        raise AssertionError("it never noticed")
    # The job goes on without its controller, and what it says is enough.
    fleet.release("n1")
    fleet.wait_for_lines("lived", 2, "n1")
    fleet.lab.start_daemon("slurmctld")
    _, tally = fleet.end(start)
    assert (2, 0, []) == (tally["completed"], tally["failed"], tally["left_behind"])


def test_a_submission_that_nobody_saw_end_is_not_made_twice(fleet: Fleet) -> None:
    fleet.hold("n1")
    first = fleet.start(repetitions=1)
    fleet.wait_for_lines("begun", 1, "n1")
    first.kill()
    first.wait()
    (job,) = JobFolders(fleet.study / "fleet" / "jobs").jobs()
    # As if the start had been killed between sbatch and the note of it.
    (job.directory / "submitted.json").unlink()
    again = fleet.start(repetitions=1)
    fleet.release("n1")
    said, tally = fleet.end(again)
    assert "whose submission nobody saw end" in said
    assert (2, 0) == (tally["completed"], tally["failed"])
    assert 2 == len(fleet.lines("lived"))


def test_a_wrong_partition_is_said_at_once(fleet: Fleet) -> None:
    done = fleet.lab.start_python(
        "-c",
        "from bedplate.executors.slurm.controller import Slurm\n"
        "from bedplate.errors import CommandFailed\n"
        "try: Slurm().submit(['--partition=nowhere', '--wrap=true'])\n"
        "except CommandFailed as error: print(type(error).__name__, error)",
    )
    said, _ = done.communicate(timeout=AT_MOST_S)
    assert "CommandFailed" in said
    assert "invalid partition" in said


@slow
def test_a_visit_that_does_not_fit_into_its_jobs_limit_fails_and_says_so(fleet: Fleet) -> None:
    fleet.hold("n1")
    said, tally = fleet.end(fleet.start(repetitions=1, time="1 min"))
    assert (0, 1) == (tally["completed"], tally["failed"]), said
    (record,) = fleet.records()
    assert any(word in record.reasons[0].sentence for word in ("TIMEOUT", "limit")), record.reasons


@slow
def test_a_lost_heartbeat_is_a_lost_node(fleet: Fleet) -> None:
    fleet.hold("n2")
    start = fleet.start()
    fleet.wait_for_lines("begun", 1, "n2")
    fleet.lab.kill_daemon("n2")
    for pid in fleet.lab.step_daemons("n2"):
        os.kill(pid, signal.SIGKILL)
    said, tally = fleet.end(start)
    assert tally["failed"] == 1, said
    (lost,) = [record for record in fleet.records() if record.outcome is Outcome.FAILED]
    assert "NODE_FAIL" in lost.reasons[0].sentence
    fleet.release("n2")
    fleet.lab.start_daemon("n2")
