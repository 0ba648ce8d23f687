"""A cancelled study of a fleet: every job of its own is ended, and what became of the nodes is told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.fleets.fleet_start import Killed, Waiting, records, start
from tests.support.fleets.pretended_fleet import PretendedSlurm

from bedplate.errors import CommandFailed
from bedplate.executors.slurm.controller import FleetLayout
from bedplate.executors.slurm.fleet_run import Manner, cancel_jobs
from bedplate.executors.slurm.job_folder import FAILURE, JobClaim, JobEnd, JobFolder
from bedplate.executors.slurm.payload import ONLY
from bedplate.model.machine import Fleet


@pytest.mark.parametrize("forgets", [False, True])
def test_what_was_cancelled_while_nobody_watched_is_lived_by_the_next_start(
    tmp_path: Path, forgets: bool
) -> None:
    first = Waiting()

    def killed(_seconds: float) -> None:
        raise Killed

    with pytest.raises(Killed):
        start(tmp_path, first, sleep=killed)
    layout = FleetLayout.of_study(tmp_path / "study")
    # One that the start had laid out when it was killed.
    unsubmitted = layout.jobs.jobs()[0]
    (unsubmitted.directory / "submitted.json").unlink()
    del first._jobs[unsubmitted.order.name]
    fleet = Fleet(("n1", "n2"))
    done = cancel_jobs(layout, first, fleet, manner=Manner(("true",), pause_s=0.0)).done
    assert 2 == sum("had not begun: cancelled" in words for words in done)
    assert not unsubmitted.take(JobClaim("9", "n1"))
    second = PretendedSlurm()
    second._jobs = {} if forgets else dict(first._jobs)
    tally = start(tmp_path, second)
    assert (10, 0, ()) == (tally.completed, tally.failed, tally.left_behind)
    assert 10 == len(records(tmp_path))


class Stubborn(Waiting):
    """Takes no signal for a job that waits or has ended, as scancel does."""

    def ask_to_end(self, job: str) -> None:
        raise CommandFailed("scancel failed", output="Invalid job id specified", argv=["scancel"], status=228)


def test_a_job_that_takes_no_signal_is_taken_from_the_queue_and_the_others_are_ended_too(
    tmp_path: Path,
) -> None:
    slurm = Stubborn()

    def killed(_seconds: float) -> None:
        raise Killed

    with pytest.raises(Killed):
        start(tmp_path, slurm, sleep=killed)
    layout = FleetLayout.of_study(tmp_path / "study")
    jobs = layout.jobs.jobs()
    # The first has begun and was put back, of the second the order was taken back by a `cancel` that was killed.
    jobs[0].take(JobClaim("1", "n1"))
    jobs[1].take(JobClaim("withdrawn"))
    ended = cancel_jobs(
        layout, slurm, Fleet(("n1", "n2")), manner=Manner(("true",), pause_s=0.0), release_patience_s=0.0
    )
    assert set(ended.nodes) <= {"n1", "n2"}
    assert {"CANCELLED"} == {slurm.jobs()[job.order.name].state for job in jobs}


class Cleaning(Stubborn):
    """Its jobs that clean up end at once; that of n2 fails."""

    def submit(self, arguments: Sequence[str]) -> str:
        folder = JobFolder(Path(arguments[-1]).parent)
        order = folder.order
        if order.release:
            folder.result(ONLY).mkdir()
            if order.node == "n2":
                (folder.result(ONLY) / FAILURE).write_text("sudo: a password is required")
            folder.note_end(JobEnd("done", "every visit has ended", 0.0, results=1))
        return super().submit(arguments)


def test_what_a_clean_up_says_of_its_node_is_told_and_a_node_is_cleaned_once(tmp_path: Path) -> None:
    slurm = Cleaning()

    def killed(_seconds: float) -> None:
        raise Killed

    with pytest.raises(Killed):
        start(tmp_path, slurm, sleep=killed)
    layout = FleetLayout.of_study(tmp_path / "study")
    for job in layout.jobs.jobs():
        job.take(JobClaim("1", job.order.node))
    ended = cancel_jobs(layout, slurm, Fleet(("n1", "n2")), manner=Manner(("true",), pause_s=0.0))
    assert () == ended.nodes
    assert 1 == ended.done.count("n1: what was left there was given back")
    assert ("n2: sudo: a password is required; `bedplate release` on the node",) == ended.problems
    assert 2 == len(list((layout.directory / "releasing").iterdir()))
