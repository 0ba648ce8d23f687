"""A start of a fleet's study with a pretended Slurm, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.fleets.pretended_fleet import PretendedSlurm, Silent
from tests.support.studies.synthetic_study import MACHINE

from bedplate.campaign.start import SharedInputs, StudyStart
from bedplate.executors.protocol import StartOutcome
from bedplate.executors.slurm.controller import Slurm
from bedplate.executors.slurm.fleet_run import FleetRun, Manner
from bedplate.executors.slurm.job_folder import JobFolder
from bedplate.model import codec
from bedplate.model.visit import EngineBuild, VisitRecord
from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan
from bedplate.plan.order import order
from bedplate.plan.rules import Platform
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


def start(directory: Path, slurm: Slurm, *, grace_s: float = 0.0, **changes: Any) -> StartOutcome:
    plan = load_plan(PLAN, source="plan.toml", directory=directory)
    expansion = expand(plan, None, platform=Platform("slurm"))
    schedule = order(plan, expansion, executor="slurm")
    study = directory / "study"
    builds = {b: EngineBuild("/p", b.version, 8192, 8192, "", "", "", (), "d") for b in plan.builds}
    store = pretended_store(study, plan, PLAN, expansion, schedule)
    display: Any = Silent()
    manner = Manner(("true",), pause_s=0.0, file_grace_s=grace_s, listing_grace_s=0.0)
    with store:
        shared = SharedInputs(plan, expansion, builds, {}, (), erase_foreign=False)
        begun = StudyStart(store, shared, display, store.due_visits(schedule))
        return FleetRun(begun, slurm, manner=manner, **changes).run()


def records(directory: Path) -> list[VisitRecord]:
    found = [codec.read(VisitRecord, p) for p in (directory / "study").glob("visits/*/*/*/visit.json")]
    assert len(found) == len({(r.key.cell, r.key.dataset, r.key.repetition, r.key.canary) for r in found})
    return found


class Waiting(PretendedSlurm):
    """Its jobs wait for their turn; whoever submits them is killed a moment later."""

    def submit(self, arguments: Sequence[str]) -> str:
        return self.list_job(JobFolder(Path(arguments[-1]).parent).order.name, "PENDING")
