"""A copy of a fleet's study, and one that was moved: whose the jobs are."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.fleets.fleet_start import Killed, Waiting, records, start
from tests.support.fleets.pretended_fleet import PretendedSlurm

from bedplate.executors.slurm.controller import FleetLayout
from bedplate.executors.slurm.fleet_run import Manner, cancel_jobs, read_fleet
from bedplate.model.machine import Fleet
from bedplate.study.store import Attempt


def copied(directory: Path) -> Path:
    """Where a copy of the study in `directory` stands."""
    shutil.copytree(directory / "study", directory / "copy" / "study")
    return directory / "copy"


def test_a_copied_study_leaves_the_jobs_of_the_other_alone_and_has_its_own(tmp_path: Path) -> None:
    slurm = Waiting()

    def killed(_seconds: float) -> None:
        raise Killed

    with pytest.raises(Killed):
        start(tmp_path, slurm, sleep=killed)
    copy = copied(tmp_path)
    before = dict(slurm.jobs())
    layout = FleetLayout.of_study(copy / "study")
    assert () == cancel_jobs(layout, slurm, Fleet(("n1", "n2")), manner=Manner(("true",), pause_s=0.0)).done
    assert before == slurm.jobs()
    assert {None} == {node.job for node in read_fleet(copy / "study", slurm)}
    # The copy is lived by jobs of its own, beside those that wait.
    second = PretendedSlurm()
    second._jobs = dict(before)
    assert 10 == start(copy, second).completed
    own = second.jobs().keys() - before.keys()
    assert 3 == len(own)
    assert not {name.rpartition("-")[0] for name in own} & {name.rpartition("-")[0] for name in before}
    assert () == layout.jobs.unsettled()
    # The first study knows nothing of that.
    third = PretendedSlurm()
    third._jobs = {name: replace(job, state="CANCELLED") for name, job in before.items()}
    assert 10 == start(tmp_path, third).completed
    assert {
        job.order.name.rpartition("-")[0] for job in FleetLayout.of_study(tmp_path / "study").jobs.jobs()
    } == {FleetLayout.of_study(tmp_path / "study").key()}


def test_what_had_ended_and_was_not_collected_comes_with_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_attempt: Attempt) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Attempt, "finish", killed)
        with pytest.raises(Killed):
            start(tmp_path, PretendedSlurm())
    waiting = sum(len(job.finished()) for job in FleetLayout.of_study(tmp_path / "study").jobs.jobs())
    assert waiting
    copy = copied(tmp_path)
    slurm = PretendedSlurm()
    start(copy, slurm)
    assert 10 == len(records(copy))
    assert 10 - waiting == sum(
        len(job.order.visits)
        for job in FleetLayout.of_study(copy / "study").jobs.jobs()
        if job.order.name in slurm.jobs()
    )


def test_a_study_that_was_moved_or_taken_to_the_place_of_another_keeps_its_key(tmp_path: Path) -> None:
    layout = FleetLayout(tmp_path / "one" / "fleet")
    key = layout.key()
    assert key == layout.key()
    (tmp_path / "one").rename(tmp_path / "two")
    assert key == FleetLayout(tmp_path / "two" / "fleet").key()
    shutil.copytree(tmp_path / "two", tmp_path / "one")
    assert key == FleetLayout(tmp_path / "one" / "fleet").key()
    shutil.copytree(tmp_path / "two", tmp_path / "three")
    third = FleetLayout(tmp_path / "three" / "fleet")
    assert key != third.key()
    assert third.key() == third.key()
    # One of a time when a key did not say whose it is.
    (tmp_path / "three" / "fleet" / "key").write_text("bedplate-0123456789\n")
    assert "bedplate-0123456789" == third.key()
