"""`python -m tests.support.fleets.fleet_cancel STUDY`: what `bedplate release STUDY` does, for pretended visits."""

from __future__ import annotations

import sys
from pathlib import Path

from bedplate.executors.slurm.controller import FleetLayout, Slurm
from bedplate.executors.slurm.fleet_run import Manner, cancel_jobs
from bedplate.model.machine import Fleet


def main(study: Path) -> None:
    manner = Manner(words=("true",), pause_s=0.2)
    ended = cancel_jobs(
        FleetLayout.of_study(study), Slurm(), Fleet(("n1", "n2")), manner=manner, patience_s=30
    )
    print(*ended.done, *ended.problems, *ended.nodes, sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
