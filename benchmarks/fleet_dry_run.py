"""What a study on 100 nodes costs the login node: planning, submitting and collecting 10,000 visits.

    ./benchmarks/run fleet_dry_run [--visits 10000] [--nodes 100] [--json]

Nodes and Slurm are pretended, and so are the visits: each leaves a record without runs. So no figure is made;
making those of a visit with two pgbench runs is named apart, as it does not depend on the fleet. CPU seconds of
this process without what the pretending itself takes; the limit is a minute.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.support.fleets.pretended_fleet import PretendedSlurm, Silent
from tests.support.studies.synthetic_study import MACHINE

from bedplate.campaign.start import SharedInputs, StudyStart
from bedplate.executors.slurm.fleet_run import FleetRun, Manner
from bedplate.model.visit import EngineBuild
from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan
from bedplate.plan.order import order
from bedplate.plan.rules import Platform
from bedplate.study.store import StudyStore

LIMIT_S = 60.0
CELLS = 20
_PLAN = """
title = "Pretended"
repetitions = {repetitions}
executor = "slurm"
[scratch_device]
image_size = "1 GB"
[slurm]
nodes = ["n[1-{nodes}]"]
[[filesystem]]
type = {{ vary = ["ext4", "xfs"] }}
mount_options = {{ vary = [["noatime"], ["relatime"]] }}
[postgresql]
block_size = {{ vary = ["2 kB", "4 kB", "8 kB", "16 kB", "32 kB"] }}
[[workload]]
type = "pgbench"
scale = 1
[[workload.run]]
script = "read-only"
clients = 1
duration = "60 s"
[canary]
enabled = false
"""


def measure(visits: int, nodes: int, directory: Path) -> dict[str, float]:
    """CPU seconds of each part, and the wall time of all."""
    wall = time.monotonic()
    started = time.process_time()
    text = _PLAN.format(repetitions=visits // CELLS, nodes=nodes)
    plan = load_plan(text, source="plan.toml", directory=directory)
    expansion = expand(plan, None, platform=Platform("slurm"))
    schedule = order(plan, expansion, executor="slurm")
    planned = time.process_time()
    builds = {
        build: EngineBuild("/p", build.version, build.block_size_bytes, 8192, "", "", "", (), "d")
        for build in plan.builds
    }
    with StudyStore.create(
        directory / "study",
        plan=plan,
        plan_text=text,
        plan_files={},
        machine=MACHINE,
        expansion=expansion,
        schedule=schedule,
        executor="slurm",
    ) as store:
        due = store.due_visits(schedule)
        written = time.process_time()
        slurm = PretendedSlurm()
        shared = SharedInputs(plan, expansion, builds, {}, (), erase_foreign=False)
        display: Any = Silent()
        start = StudyStart(store, shared, display, due)
        tally = FleetRun(start, slurm, manner=Manner(("true",), pause_s=0.0)).run()
        ended = time.process_time()
    if tally.completed != len(schedule.visits) or tally.left_behind:
        raise SystemExit(f"{tally.completed} of {len(schedule.visits)} visits were collected: {tally}")
    return {
        "visits": len(schedule.visits),
        "nodes": nodes,
        "jobs": len(slurm.jobs()),
        "planning_cpu_s": planned - started,
        "study_cpu_s": written - planned,
        "submitting_and_collecting_cpu_s": ended - written - slurm.cpu_s,
        "pretending_cpu_s": slurm.cpu_s,
        "all_cpu_s": ended - started - slurm.cpu_s,
        "wall_s": time.monotonic() - wall,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--visits", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bedplate-fleet-") as place:
        found = measure(given.visits, given.nodes, Path(place))
    if given.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name:<32} {value:10.2f}")
    return 0 if found["all_cpu_s"] < LIMIT_S else 1


if __name__ == "__main__":
    sys.exit(main())
