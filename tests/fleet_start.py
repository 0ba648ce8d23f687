"""A start of a fleet's study with a pretended Slurm, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.pretended_fleet import PretendedSlurm, Silent
from tests.synthetic_study import MACHINE

from bedplate.executor.keeping import Grounds
from bedplate.executor.slurm.controller import JobState, Slurm
from bedplate.executor.slurm.fleet_run import FleetRun, Manner
from bedplate.executor.slurm.job_folder import JobFolder
from bedplate.executor.study_run import Tally
from bedplate.model import codec
from bedplate.model.visit import EngineBuild, VisitRecord
from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan
from bedplate.plan.order import order
from bedplate.plan.platforms import Platform
from bedplate.study.layout import is_study
from bedplate.study.store import StudyStore

if TYPE_CHECKING:
    from bedplate.model.plan import Expansion, Plan, Schedule

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


def pretended_store(
    study: Path, plan: Plan, text: str, expansion: Expansion, schedule: Schedule
) -> StudyStore:
    """The study's store, made on the first start."""
    if is_study(study):
        return StudyStore.open(study)
    return StudyStore.create(
        study,
        plan=plan,
        plan_text=text,
        plan_files={},
        machine=MACHINE,
        expansion=expansion,
        schedule=schedule,
        executor="slurm",
    )


def start(directory: Path, slurm: Slurm, *, grace_s: float = 0.0, **changes: Any) -> Tally:
    plan = load_plan(PLAN, source="plan.toml", directory=directory)
    expansion = expand(plan, None, platform=Platform("slurm"))
    schedule = order(plan, expansion, executor="slurm")
    study = directory / "study"
    builds = {b: EngineBuild("/p", b.version, 8192, 8192, "", "", "", (), "d") for b in plan.builds}
    store = pretended_store(study, plan, PLAN, expansion, schedule)
    display: Any = Silent()
    manner = Manner(("true",), pause_s=0.0, file_grace_s=grace_s, listing_grace_s=0.0)
    with store:
        grounds = Grounds(plan, expansion, builds, {}, (), erase_foreign=False)
        run = FleetRun(store, grounds, slurm, display, manner=manner, **changes)
        return run.run(store.due(schedule))


def records(directory: Path) -> list[VisitRecord]:
    found = [codec.read(VisitRecord, p) for p in (directory / "study").glob("visits/*/*/*/visit.json")]
    assert len(found) == len({(r.key.cell, r.key.dataset, r.key.repetition, r.key.canary) for r in found})
    return found


class Waiting(PretendedSlurm):
    """Its jobs wait for their turn; whoever submits them is killed a moment later."""

    def submit(self, arguments: Sequence[str]) -> str:
        job = JobFolder(Path(arguments[-1]).parent).order
        number = str(len(self._jobs) + 1)
        self._jobs[job.name] = JobState(number, "PENDING", "Priority", job.name)
        return number

    def cancel(self, job: str) -> None:
        self._jobs = {n: replace(s, state="CANCELLED") if s.job == job else s for n, s in self._jobs.items()}
