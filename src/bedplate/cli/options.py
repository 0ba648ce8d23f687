"""The arguments and options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bedplate.cli.completion import METRIC_NAME, OneOf, metric_names, plan_names
from bedplate.installation import shipped
from bedplate.registry import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from click.decorators import FC

PATH = click.Path(path_type=Path)
PLAN_FILE = click.argument(
    "plan",
    metavar="PLAN",
    type=PATH,
    shell_complete=plan_names,
    help="a plan, TOML (docs/PLANS.md), or a ready one: quick",
)
STUDY_DIRECTORY = click.argument("study", metavar="STUDY", type=PATH, help="a study's directory")
STUDY_DIRECTORIES = click.argument(
    "studies", metavar="STUDY...", type=PATH, nargs=-1, required=True, help="studies' directories"
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="print one JSON document instead")
YES = click.option("--yes", is_flag=True, help="install missing system packages without asking")
ERASE = click.option(
    "--erase", metavar="NAME", multiple=True, help="a device of the plan's once more: it will be erased"
)
ERASE_FOREIGN = click.option(
    "--erase-foreign", is_flag=True, help="also if the device bears a signature that is not bedplate's"
)
EXECUTOR = click.option(
    "--executor",
    type=OneOf(["local", "qemu", "slurm", "auto"]),
    metavar="NAME",
    help="in place of the plan's own: local (this machine), qemu (a guest), slurm (a cluster), auto (what fits)",
)
OF_WORKLOAD = click.option(
    "--workload",
    metavar="NAME",
    help=f"only this run, or where none is called so the runs of this type: {', '.join(WORKLOADS)}",
)
METRICS = click.option(
    "--metric",
    "metrics",
    metavar="NAME",
    multiple=True,
    type=METRIC_NAME,
    shell_complete=metric_names,
    help="a metric (docs/method/metrics.md; p99 is latency_ms_p99), in place of what each run is about; may be given again",
)
CLAIMS = click.option(
    "--claims",
    "files",
    metavar="FILE",
    type=PATH,
    multiple=True,
    help="a file of claims (docs/CLAIMS.md), in place of those that come with bedplate; may be given again",
)
CELLS = click.option(
    "--cells",
    metavar="FILTER",
    multiple=True,
    help="only the cells that this selects: 'class=durable type=ext4,xfs', as in `compare`; may be given again for more",
)
ACCEPT = click.option(
    "--accept",
    "accepted",
    metavar="WORDS",
    multiple=True,
    help="count suspect runs whose every doubt has these words or this code: 'other programs used'; may be given again",
)
ACROSS_DURABILITY = click.option(
    "--across-durability",
    is_flag=True,
    help="cells of all durability classes together, such as barriers on and off; without it each class by itself",
)
DIRECTORY = click.option(
    "--directory",
    metavar="DIR",
    type=PATH,
    help="where the plan, the study and the page go; a name of the question's without it",
)


def on_types(without: str) -> Callable[[FC], FC]:
    """File systems by their names."""
    return click.option(
        "--on",
        "types",
        metavar="TYPES",
        default="",
        show_default=False,
        help=f"file systems, with commas between; without it {without}",
    )


ON_USUAL = on_types("those of ext4, xfs, btrfs that this kernel has")


def claim_files(named: Sequence[Path]) -> Sequence[Path]:
    """Those that are named, else those that come with bedplate."""
    return named or sorted(shipped("claims").glob("*.toml"))


def words_of(text: str) -> tuple[str, ...]:
    """`ext4, xfs` as words."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


RETRY_FAILED = click.option("--retry-failed", is_flag=True, help="do failed visits again, as new attempts")
