"""`bedplate cancel`: ends the jobs of a study on a Slurm cluster.

As in `app.py`, only click and the standard library are imported before a command is called.
"""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("study", metavar="STUDY", type=click.Path(path_type=Path), help="a study's directory")
def cancel(study: Path) -> int:
    """End the jobs of a study on a Slurm cluster; its visits give back what they hold, what has ended is kept."""
    from bedplate.cli.fleet import cancel as end  # noqa: PLC0415

    return end(study)
