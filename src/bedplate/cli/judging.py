"""The commands that judge a study: comparisons, effects, advice, claims. Each is a few lines, as in `app.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bedplate.cli.options import (
    ACROSS_DURABILITY,
    AS_JSON,
    CELLS,
    CLAIMS,
    METRICS,
    OF_WORKLOAD,
    STUDY_DIRECTORIES,
    STUDY_DIRECTORY,
)
from bedplate.cli.studies import require_studies
from bedplate.registry import WORKLOADS

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@STUDY_DIRECTORIES
@click.option(
    "--baseline", metavar="FILTER", required=True, help="what to compare with: `type=ext4 barrier=yes`"
)
@click.option(
    "--contender", metavar="FILTER", required=True, help="what is compared with it: `type=xfs,btrfs`"
)
@OF_WORKLOAD
@METRICS
@click.option("--margin", metavar="SHARE", default="5%", help="what counts as the same, either way")
@click.option(
    "--factor",
    "factors",
    metavar="NAME",
    multiple=True,
    type=click.Choice(["kernel", "build", "tools", "zfs", "qemu", "host_kernel", "machine", "disk"]),
    help="what differs between the studies on purpose: kernel, build, tools, zfs, qemu, host_kernel, machine, disk",
)
@click.option(
    "--accept",
    "accepted",
    metavar="WORDS",
    multiple=True,
    help="count suspect runs whose every doubt has these words or this code: 'other programs used'; may be given again",
)
@click.option(
    "--fail-if",
    metavar="CONDITION",
    help="'slower 5%': exit with 1 where it holds, with 125 where it cannot be told",
)
@ACROSS_DURABILITY
@CELLS
@AS_JSON
def compare(
    studies: tuple[Path, ...],
    *,
    baseline: str,
    contender: str,
    workload: str | None,
    metrics: tuple[str, ...],
    margin: str,
    factors: tuple[str, ...],
    accepted: tuple[str, ...],
    fail_if: str | None,
    across_durability: bool,
    cells: tuple[str, ...],
    as_json: bool,
) -> int:
    """Compare cells that differ only in what two filters name: ratio, interval, verdict.

    First one line over all matched pairs of a durability class and what they disagree in, then the pairs.

    A FILTER is one or more name=level, several levels with commas, or a cell's id or label: `filesystem.type=ext4
    barrier=no`, `block_size=4k,8k`, `class=durable` (what a power cut leaves). A factor may be named by its end where that is one factor. `study=DIRECTORY`
    chooses among several studies, and pairs them; they get a verdict where they are comparable.

    CONDITION is slower, faster, worse, better, lower or higher, by a share; without one by the margin. Exit codes
    with it: 0 it does not hold, 1 it holds of a comparison, 125 it cannot be told, as where a study is missing. `git
    bisect run` takes 125 for a commit that cannot be tested. It takes 2, an option that there is not, for a bad one:
    try the call by hand first.
    """
    from bedplate.cli.comparing import compare as hold_against  # noqa: PLC0415

    return hold_against(
        studies,
        baseline=baseline,
        contender=contender,
        workload=workload,
        metrics=metrics,
        margin=margin,
        factors=factors,
        accepted=accepted,
        fail_if=fail_if,
        across_durability=across_durability,
        cells=cells,
        as_json=as_json,
    )


@click.command()
@STUDY_DIRECTORY
@OF_WORKLOAD
@METRICS
@ACROSS_DURABILITY
@CELLS
@AS_JSON
def effects(
    study: Path,
    *,
    workload: str | None,
    metrics: tuple[str, ...],
    across_durability: bool,
    cells: tuple[str, ...],
    as_json: bool,
) -> None:
    """What each factor of a study matters: its share of the variation, ratios of its levels, interactions.

    Cells are held against each other within one durability class. What only one file system has is judged within it,
    and held at its usual level where file systems are compared.
    """
    (study,) = require_studies([study])
    from bedplate.cli.comparing import effects as tell  # noqa: PLC0415

    tell(
        study,
        workload=workload,
        metrics=metrics,
        across_durability=across_durability,
        cells=cells,
        as_json=as_json,
    )


@click.command()
@STUDY_DIRECTORY
@click.option(
    "--workload",
    "workloads",
    metavar="NAME",
    multiple=True,
    help=f"only this run, or the runs of this type: {', '.join(WORKLOADS)}; may be given again",
)
@click.option(
    "--durability",
    type=click.Choice(["durable", "bounded loss", "unsafe", "unknown"]),
    metavar="CLASS",
    help="only cells of this class: durable, 'bounded loss', unsafe, unknown; without it the first two",
)
@click.option(
    "--cache",
    type=click.Choice(["volatile", "volatile-4k", "volatile-512", "protected"]),
    default="volatile",
    help="the device's cache: volatile (with its own sectors, or those named), or one that survives a power cut",
)
@CELLS
@AS_JSON
def advise(
    study: Path,
    *,
    workloads: tuple[str, ...],
    durability: str | None,
    cache: str,
    cells: tuple[str, ...],
    as_json: bool,
) -> None:
    """Which cells to choose among those that are equally durable, and what to measure next.

    On more than speed, as far as the runs have it: p99, steadiness across checkpoints, space, what is written. From
    comparisons that hold together, not from point estimates: with two repetitions there is no recommendation.
    """
    (study,) = require_studies([study])
    from bedplate.cli.advising import advise as recommend  # noqa: PLC0415

    recommend(study, workloads=workloads, durability=durability, cache=cache, cells=cells, as_json=as_json)


@click.command()
@STUDY_DIRECTORIES
@CLAIMS
@AS_JSON
def claims(studies: tuple[Path, ...], *, files: tuple[Path, ...], as_json: bool) -> None:
    """What the original studies concluded, or you do: holds, does not hold, cannot tell, or not measured.

    Each claim is judged in every study that measured it; all findings together keep the false discovery rate.
    """
    studies = require_studies(studies)
    from bedplate.cli.claims import claims as judge  # noqa: PLC0415

    judge(studies, files=files, as_json=as_json)
