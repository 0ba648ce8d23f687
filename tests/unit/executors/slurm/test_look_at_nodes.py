"""The look at a fleet's nodes before the first visit: everything wrong is said at once, and no job is left behind."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.fleets.pretended_fleet import Silent
from tests.support.studies.synthetic_study import MACHINE

from bedplate.errors import CommandFailed, RequirementMissing
from bedplate.executors.slurm.controller import ControllerSilent, FleetLayout, JobState, QueueFull, Slurm
from bedplate.executors.slurm.fleet_run import Manner
from bedplate.executors.slurm.job_folder import JobClaim, JobEnd, JobFolder
from bedplate.executors.slurm.nodes import find_node_facts
from bedplate.executors.slurm.on_node import FactsRequest
from bedplate.executors.slurm.payload import ONLY
from bedplate.model import codec
from bedplate.model.devices import DeviceIdentity
from bedplate.model.machine import NodeFacts
from bedplate.plan.load import load_plan

NODES = ("n1", "n2", "n3")
PLAN = """
title = "Looked at"
executor = "slurm"
[scratch_device]
image_size = "1 GB"
[slurm]
nodes = ["n[1-3]"]
controller_deadline = "1 min"
[[filesystem]]
type = "ext4"
[[workload]]
type = "pgbench"
scale = 1
[[workload.run]]
script = "read-only"
clients = 1
duration = "60 s"
"""


class Cluster(Slurm):
    """Answers a look at once, but for the nodes that are busy, refused or have no room."""

    def __init__(
        self,
        *,
        busy: Sequence[str] = (),
        refused: Sequence[str] = (),
        most_jobs: int = 99,
        silent: int = 0,
        lost_submissions: int = 0,
    ) -> None:
        super().__init__()
        self.listing: dict[str, JobState] = {}
        self.cancelled: list[str] = []
        self.submitted: list[str] = []
        self._busy, self._refused, self._most_jobs = busy, refused, most_jobs
        self._silent, self._lost = silent, lost_submissions

    def submit(self, arguments: Sequence[str]) -> str:
        folder = JobFolder(Path(arguments[-1]).parent)
        order = folder.order
        if order.node in self._refused:
            raise CommandFailed(
                "sbatch failed", output="Invalid node name specified", argv=["sbatch"], status=1
            )
        if sum(not job.has_ended for job in self.listing.values()) >= self._most_jobs:
            raise QueueFull("AssocMaxSubmitJobLimit")
        if self._lost:
            self._lost -= 1
            raise ControllerSilent("Socket timed out on send/recv operation")
        self.submitted.append(order.node)
        number = str(len(self.submitted))
        state = "PENDING" if order.node in self._busy else "RUNNING"
        self.listing[order.name] = JobState(number, state, "Resources", order.name, order.node)
        if order.node not in self._busy:
            folder.take(JobClaim(number, order.node))
            folder.result(ONLY).mkdir()
            codec.write(folder.result(ONLY) / "facts.json", NodeFacts(order.node, MACHINE))
            folder.note_end(JobEnd("done", "every visit has ended", time.time(), results=1))
        return number

    def jobs(self) -> Mapping[str, JobState]:
        if self._silent:
            self._silent -= 1
            raise ControllerSilent("Unable to contact slurm controller")
        seen = dict(self.listing)
        # What was listed as running has ended at the next look.
        self.listing = {
            name: replace(job, state="COMPLETED") if job.state == "RUNNING" else job
            for name, job in self.listing.items()
        }
        return seen

    def cancel(self, job: str) -> None:
        self.cancelled.append(job)
        self.listing = {
            name: replace(state, state="CANCELLED") if state.job == job else state
            for name, state in self.listing.items()
        }


def look(study: Path, cluster: Slurm, **more: Any) -> Mapping[str, NodeFacts]:
    display: Any = Silent()
    return find_node_facts(
        load_plan(PLAN, source="plan.toml", directory=study.parent),
        FleetLayout.of_study(study),
        cluster,
        display,
        manner=Manner(("true",), pause_s=0.0, file_grace_s=0.0, listing_grace_s=0.0),
        erase_foreign=False,
        **more,
    )


def test_every_node_is_looked_at_and_nothing_is_left(tmp_path: Path) -> None:
    assert NODES == tuple(look(tmp_path / "study", Cluster()))
    assert ["key", "nodes"] == sorted(path.name for path in (tmp_path / "study" / "fleet").iterdir())


def test_every_node_that_slurm_refuses_is_named_and_no_job_is_left_behind(tmp_path: Path) -> None:
    cluster = Cluster(refused=("n1", "n3"), busy=("n2",))
    with pytest.raises(RequirementMissing) as caught:
        look(tmp_path / "study", cluster)
    told = "\n".join(caught.value.reasons)
    assert "n1: Slurm takes no job for it: Invalid node name specified" in told
    assert "n3: Slurm takes no job for it" in told
    # What is wrong is not kept back until a busy node is free.
    assert "n2: not looked at" in told
    assert all(job.has_ended for job in cluster.listing.values())


def test_a_silent_controller_is_waited_for(tmp_path: Path) -> None:
    assert NODES == tuple(look(tmp_path / "study", Cluster(silent=3)))


def test_a_controller_that_stays_silent_ends_the_look_at_the_plans_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 10_000, 10))
    monkeypatch.setattr("bedplate.executors.slurm.nodes.time.monotonic", lambda: next(clock))
    with pytest.raises(RequirementMissing, match="has not answered"):
        look(tmp_path / "study", Cluster(silent=10**6))


def test_a_submission_that_was_lost_is_made_again_and_its_order_taken_back(tmp_path: Path) -> None:
    cluster = Cluster(lost_submissions=1)
    assert NODES == tuple(look(tmp_path / "study", cluster))
    assert sorted(NODES) == sorted(cluster.submitted)


def test_where_a_user_may_have_one_job_nodes_are_looked_at_one_after_the_other(tmp_path: Path) -> None:
    assert NODES == tuple(look(tmp_path / "study", Cluster(most_jobs=1)))


def test_one_that_is_interrupted_leaves_no_job(tmp_path: Path) -> None:
    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    cluster = Cluster(busy=("n2", "n3"))
    with pytest.raises(KeyboardInterrupt):
        look(tmp_path / "study", cluster, sleep=interrupted)
    assert ["2", "3"] == sorted(cluster.cancelled)


def test_what_a_killed_look_left_in_the_queue_is_cancelled_by_the_next(tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    class Dying(Cluster):
        def cancel(self, job: str) -> None:
            raise Killed

    def killed(_seconds: float) -> None:
        raise Killed

    first = Dying(busy=("n2", "n3"))
    with pytest.raises(Killed):
        look(tmp_path / "study", first, sleep=killed)
    looking = tmp_path / "study" / "fleet" / "looking"
    waiting = [JobFolder(path) for path in looking.glob("n[23]*")]
    assert 2 == len(waiting)
    second = Cluster()
    second.listing = dict(first.listing)
    assert NODES == tuple(look(tmp_path / "study", second))
    assert ["2", "3"] == sorted(second.cancelled)
    assert not looking.exists()


def test_a_node_that_is_looked_at_again_is_held_against_the_disk_that_the_study_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = "/dev/disk/by-path/port-1"
    monkeypatch.setitem(globals(), "PLAN", PLAN.replace('image_size = "1 GB"', f'device = "{device}"'))
    known = FleetLayout.of_study(tmp_path / "study").facts_of("n1")
    known.parent.mkdir(parents=True)
    disk = DeviceIdentity(1 << 30, serial="A")
    codec.write(known, NodeFacts("n1", MACHINE, device=disk))
    asked: dict[str, DeviceIdentity | None] = {}

    class Reading(Cluster):
        def submit(self, arguments: Sequence[str]) -> str:
            order = JobFolder(Path(arguments[-1]).parent).order
            assert order.facts is not None
            asked[order.node] = codec.read(FactsRequest, Path(order.facts)).scratch_device.recorded
            return super().submit(arguments)

    look(tmp_path / "study", Reading())
    assert {"n1": disk, "n2": None, "n3": None} == asked
