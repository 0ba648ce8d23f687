"""`bedplate cancel`: ends the jobs of a study on a Slurm cluster.

As in `app.py`, only click and the standard library are imported before a command is called.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from bedplate.cli.studies import study_at
from bedplate.errors import EXIT_DONE, EXIT_SOME_RUNS_FAILED, StudyError


@click.command()
@click.argument("study", metavar="STUDY", type=click.Path(path_type=Path), help="a study's directory")
def cancel(study: Path) -> int:
    """End the jobs of a study on a Slurm cluster; its visits give back what they hold, what has ended is kept."""
    from bedplate.campaign.planning import kept_plan  # noqa: PLC0415
    from bedplate.executors.slurm.cancel import cancel_jobs  # noqa: PLC0415
    from bedplate.executors.slurm.controller import Slurm, require_slurm  # noqa: PLC0415
    from bedplate.executors.slurm.fleet_run import Manner  # noqa: PLC0415
    from bedplate.executors.slurm.layout import FleetLayout  # noqa: PLC0415
    from bedplate.model import no_links  # noqa: PLC0415

    study = study_at(study).absolute()
    fleet = kept_plan(study).plan.fleet
    layout = FleetLayout.of_study(study)
    if fleet is None or not no_links.is_there(layout.directory):
        raise StudyError(f"{study} does not run on Slurm; stop its `bedplate run` instead")
    require_slurm()
    ended = cancel_jobs(layout, Slurm(), fleet, manner=Manner.of_this_checkout(os.environ))
    for sentence in ended.done or ("no job of this study waits or runs",):
        print(sentence)
    for node in ended.nodes:
        print(f"{node}: a job gives back what was left there when it has the node")
    for problem in ended.problems:
        print(f"error: {problem}", file=sys.stderr)
    print("what has ended is kept; `bedplate run` with the same plan and study goes on")
    return EXIT_SOME_RUNS_FAILED if ended.problems else EXIT_DONE
