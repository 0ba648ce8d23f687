"""`python -m tests.support.fleets.fleet_driver STUDY BEHAVIOUR [REPETITIONS] [TIME]`: a study on two nodes with pretended visits.

What `bedplate run` does from the point where the plan is read, as a process of its own that can be killed.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from tests.support.fleets.fleet_start import pretended_store

from bedplate.campaign.display import LineDisplay
from bedplate.campaign.start import SharedInputs, StudyStart
from bedplate.executors.slurm.controller import Slurm
from bedplate.executors.slurm.fleet_run import FleetRun, Manner
from bedplate.model.visit import EngineBuild
from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan
from bedplate.plan.order import order
from bedplate.plan.rules import Platform

PLAN = """
title = "Pretended"
seed = 3
repetitions = {repetitions}
executor = "slurm"
[scratch_device]
image_size = "512 MB"
[slurm]
nodes = ["n1", "n2"]
partition = "bench"
gres = "scratch_device:1"
time = "{time}"
local_directory = "{local}"
[[filesystem]]
type = {{ vary = ["ext4", "xfs"] }}
[[workload]]
type = "pgbench"
scale = 1
[[workload.run]]
script = "read-only"
clients = 1
duration = "1 s"
[canary]
enabled = false
"""


def main(study: Path, behaviour: Path, repetitions: str = "2", time: str = "10 min") -> None:
    text = PLAN.format(repetitions=repetitions, time=time, local=behaviour.parent)
    plan = load_plan(text, source="plan.toml", directory=study.parent)
    expansion = expand(plan, None, platform=Platform("slurm"))
    schedule = order(plan, expansion, executor="slurm")
    builds = {
        build: EngineBuild("/p", build.version, build.block_size_bytes, 8192, "", "", "", (), "d")
        for build in plan.builds
    }
    sources = Path(__file__).resolve().parents[3]
    python = ("env", f"PYTHONPATH={sources / 'src'}:{sources}", sys.executable, "-S", "-P", "-m")
    manner = Manner(
        words=(*python, "bedplate"),
        command=(*python, "tests.support.fleets.pretended_visit", str(behaviour)),
        needs_root=False,
        pause_s=0.2,
        file_grace_s=1.0,
        listing_grace_s=3.0,
    )
    store = pretended_store(study, plan, text, expansion, schedule)
    with store:
        shared = SharedInputs(plan, expansion, builds, {}, (), erase_foreign=False)
        start = StudyStart(store, shared, LineDisplay(), store.due_visits(schedule))
        found = FleetRun(start, Slurm(), manner=manner).run()
    print(json.dumps(asdict(found)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
