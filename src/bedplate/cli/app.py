"""All commands, each a few lines: the work stands in the rooms below.

Click and the standard library are all that may be imported here: whatever a command needs beyond that
it imports when it is called. Why click: docs/decisions/0007-command-line-by-click.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bedplate.cli.cancel import cancel
from bedplate.cli.power_cut import power_cut
from bedplate.cli.studies import require_studies
from bedplate.errors import EXIT_DONE
from bedplate.host.ownership import first_made, give_to_caller
from bedplate.registry import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Sequence

_EPILOG = (
    "Exit codes: 0 done; 1 some runs failed; 2 the plan or the call is wrong; 3 a requirement is missing; "
    "130 interrupted; `compare --fail-if` has its own. A study that was interrupted goes on when the same command is given again."
)
_PATH = click.Path(path_type=Path)

# What several commands take.
_plan_file = click.argument("plan", metavar="PLAN", type=_PATH, help="a plan, TOML (docs/PLANS.md)")
_study_directory = click.argument("study", metavar="STUDY", type=_PATH, help="a study's directory")
_study_directories = click.argument(
    "studies", metavar="STUDY...", type=_PATH, nargs=-1, required=True, help="studies' directories"
)
_as_json = click.option("--json", "as_json", is_flag=True, help="print one JSON document instead")
_yes = click.option("--yes", is_flag=True, help="install missing system packages without asking")
_erase = click.option(
    "--erase", metavar="NAME", multiple=True, help="a device of the plan's once more: it will be erased"
)
_erase_foreign = click.option(
    "--erase-foreign", is_flag=True, help="also if the device bears a signature that is not bedplate's"
)
_executor = click.option(
    "--executor",
    type=click.Choice(["local", "qemu", "slurm", "auto"]),
    metavar="NAME",
    help="in place of the plan's own: local (this machine), qemu (a guest), slurm (a cluster), auto (what fits)",
)
_workload = click.option(
    "--workload",
    metavar="NAME",
    help=f"only this run, or the runs of this type: {', '.join(WORKLOADS)}",
)
_metrics = click.option(
    "--metric",
    "metrics",
    metavar="NAME",
    multiple=True,
    help="a metric (docs/METHOD.md), in place of what each run is about; may be given again",
)
_cells = click.option(
    "--cells",
    metavar="FILTER",
    multiple=True,
    help="only the cells that this selects, as in `compare`; may be given again for more",
)
_retry_failed = click.option("--retry-failed", is_flag=True, help="do failed visits again, as new attempts")


class _Program(click.Group):
    """The commands in the order in which a person meets them, not in that of the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        return list(self.commands)


@click.group(
    cls=_Program,
    epilog=_EPILOG,
    no_args_is_help=True,
    context_settings={"show_default": True},
)
def program() -> None:
    """Measures databases across Linux file systems. IT ERASES THE SCRATCH DEVICE THAT A PLAN NAMES."""


def call(words: Sequence[str]) -> int:
    """Run the command that `words` name, and give its exit code.

    Click's own `main` is not used: it has other exit codes for Ctrl-C and for a closed pipe.
    """
    try:
        with program.make_context("bedplate", list(words)) as context:
            status: int | None = program.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return EXIT_DONE if status is None else status


@program.command()
@click.option(
    "--directory",
    metavar="DIR",
    type=_PATH,
    default=Path("bedplate-study"),
    help="where the study and the report go",
)
@_yes
def quickstart(directory: Path, *, yes: bool) -> int:
    """From nothing to a first report: packages, PostgreSQL, plans/quick.toml on an image file."""
    from bedplate.cli.quickstart import quickstart as begin  # noqa: PLC0415

    return begin(directory, yes=yes)


@program.command()
@click.argument(
    "plan", metavar="[PLAN]", type=_PATH, required=False, help="prepare what this plan needs; default: quick"
)
@_yes
@click.option(
    "--tarball", metavar="FILE", type=_PATH, help="a PostgreSQL source tarball, instead of a download"
)
@_executor
@click.option(
    "--kernel", "kernels", metavar="VERSION", multiple=True, help="fetch this kernel for guests as well"
)
@click.option("--zfs", is_flag=True, help="build ZFS for the kernels of guests: some minutes for each")
def setup(
    plan: Path | None,
    *,
    yes: bool,
    tarball: Path | None,
    executor: str | None,
    kernels: tuple[str, ...],
    zfs: bool,
) -> None:
    """Install what is missing, build every PostgreSQL that a plan needs, fetch what its guests need."""
    from bedplate.cli.prepare import setup as prepare  # noqa: PLC0415

    prepare(plan, yes=yes, tarball=tarball, executor=executor, kernels=kernels, zfs=zfs)


@program.command()
@_as_json
def doctor(*, as_json: bool) -> int:
    """What this machine can run, what is missing, and the fix."""
    from bedplate.cli.doctor import doctor as examine  # noqa: PLC0415

    return examine(as_json=as_json)


@program.command()
@_plan_file
@_executor
@_as_json
def plan(plan: Path, *, executor: str | None, as_json: bool) -> None:
    """Show what a plan would do: executor, cells, the pruned ones with reasons, order, disk space, time."""
    from bedplate.cli.plans import show_plan  # noqa: PLC0415

    show_plan(plan, executor=executor, as_json=as_json)


@program.command()
@_plan_file
@click.option("--study", metavar="DIR", type=_PATH, required=True, help="the study, made or gone on with")
@_executor
@_erase
@_erase_foreign
@_retry_failed
def run(
    plan: Path,
    *,
    study: Path,
    executor: str | None,
    erase: tuple[str, ...],
    erase_foreign: bool,
    retry_failed: bool,
) -> int:
    """Run a plan, or go on where it stopped."""
    from bedplate.cli.running import consent  # noqa: PLC0415
    from bedplate.cli.running import run as measure  # noqa: PLC0415

    given = consent(erase, erase_foreign=erase_foreign)
    return measure(plan, study, consent=given, executor=executor, retry_failed=retry_failed)


@program.command()
@_study_directory
@click.option("--repetitions", metavar="N", type=click.IntRange(min=1), help="how many there shall be in all")
@click.option(
    "--plan", metavar="PLAN", type=_PATH, help="a plan that adds cells or repetitions to the study's"
)
@_executor
@_erase
@_erase_foreign
@_retry_failed
def extend(
    study: Path,
    *,
    repetitions: int | None,
    plan: Path | None,
    executor: str | None,
    erase: tuple[str, ...],
    erase_foreign: bool,
    retry_failed: bool,
) -> int:
    """Add repetitions or cells to a study, and run them; the study keeps a note of it."""
    from bedplate.cli.running import consent  # noqa: PLC0415
    from bedplate.cli.running import extend as enlarge  # noqa: PLC0415

    return enlarge(
        study,
        repetitions=repetitions,
        plan=plan,
        consent=consent(erase, erase_foreign=erase_foreign),
        executor=executor,
        retry_failed=retry_failed,
    )


@program.command()
@_study_directory
@click.option("--verify", is_flag=True, help="compare every file of every visit with its checksum")
@_as_json
def status(study: Path, *, verify: bool, as_json: bool) -> int:
    """How far a study is, what failed and why, and how well it uses its time."""
    from bedplate.cli.status import status as tell  # noqa: PLC0415

    return tell(study, verify=verify, as_json=as_json)


program.add_command(cancel)


@program.command()
@_study_directories
@_workload
@click.option(
    "--metric", metavar="NAME", help="one metric (docs/METHOD.md), in place of what each workload is about"
)
@_cells
@_as_json
def show(
    studies: tuple[Path, ...],
    *,
    workload: str | None,
    metric: str | None,
    cells: tuple[str, ...],
    as_json: bool,
) -> None:
    """Tables of a study's results."""
    require_studies(studies)
    from bedplate.cli.printing import print_json, print_tables  # noqa: PLC0415
    from bedplate.terminal import tables  # noqa: PLC0415

    if as_json:
        print_json(tables.show_document(studies, workload=workload, metric=metric, cells=cells))
        return
    print_tables(tables.show_tables(studies, workload=workload, metric=metric, cells=cells))


@program.command()
@_study_directories
@click.option(
    "--baseline", metavar="FILTER", required=True, help="what to compare with: `type=ext4 barrier=yes`"
)
@click.option(
    "--contender", metavar="FILTER", required=True, help="what is compared with it: `type=xfs,btrfs`"
)
@_workload
@_metrics
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
@click.option(
    "--across-durability",
    is_flag=True,
    help="pool pairs of all durability classes together; without it each class has a pooled line of its own",
)
@_as_json
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
    as_json: bool,
) -> int:
    """Compare cells that differ only in what two filters name: ratio, interval, verdict.

    First one line over all matched pairs of a durability class and what they disagree in, then the pairs.

    A FILTER is one or more name=level, several levels with commas, or a cell's id or label: `filesystem.type=ext4
    barrier=no`, `block_size=4k,8k`. A factor may be named by its end where that is one factor. `study=DIRECTORY`
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
        as_json=as_json,
    )


@program.command()
@_study_directory
@_workload
@_metrics
@click.option(
    "--across-durability",
    is_flag=True,
    help="judge cells of all durability classes together, such as barriers on and off",
)
@_as_json
def effects(
    study: Path,
    *,
    workload: str | None,
    metrics: tuple[str, ...],
    across_durability: bool,
    as_json: bool,
) -> None:
    """What each factor of a study matters: its share of the variation, ratios of its levels, interactions.

    Cells are held against each other within one durability class. What only one file system has is judged within it,
    and held at its usual level where file systems are compared.
    """
    require_studies([study])
    from bedplate.cli.comparing import effects as tell  # noqa: PLC0415

    tell(study, workload=workload, metrics=metrics, across_durability=across_durability, as_json=as_json)


@program.command()
@_study_directory
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
@_cells
@_as_json
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
    require_studies([study])
    from bedplate.cli.advising import advise as recommend  # noqa: PLC0415

    recommend(study, workloads=workloads, durability=durability, cache=cache, cells=cells, as_json=as_json)


@program.command()
@_study_directories
@click.option(
    "--claims",
    "files",
    metavar="FILE",
    type=_PATH,
    multiple=True,
    help="a file of claims (docs/CLAIMS.md), in place of those that come with bedplate; may be given again",
)
@_as_json
def claims(studies: tuple[Path, ...], *, files: tuple[Path, ...], as_json: bool) -> None:
    """What the original studies concluded, or you do: holds, does not hold, cannot tell, or not measured.

    Each claim is judged in every study that measured it; all findings together keep the false discovery rate.
    """
    require_studies(studies)
    from bedplate.cli.claims import claims as judge  # noqa: PLC0415

    judge(studies, files=files, as_json=as_json)


@program.command()
@_study_directories
@click.option(
    "-o", "--output", metavar="FILE", type=_PATH, default=Path("report.html"), help="the page to write"
)
@_cells
@click.option(
    "--claims",
    "files",
    metavar="FILE",
    type=_PATH,
    multiple=True,
    help="a file of claims to judge, in place of those that come with bedplate; may be given again",
)
def report(
    studies: tuple[Path, ...], *, output: Path, cells: tuple[str, ...], files: tuple[Path, ...]
) -> None:
    """Write one self-contained HTML page."""
    require_studies(studies)
    from bedplate.cli.claims import own_claims  # noqa: PLC0415
    from bedplate.page.build import build_report  # noqa: PLC0415

    made = first_made(output)
    build_report(studies, output, cells=cells, claims=files or sorted(own_claims().glob("*.toml")))
    give_to_caller(made)
    print(output)


@program.command()
@_study_directory
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    type=_PATH,
    required=True,
    help="a directory, or a .ods, .xlsx, .csv, .parquet or .json file",
)
@_cells
def export(study: Path, *, output: Path, cells: tuple[str, ...]) -> None:
    """Write a study's figures as a spreadsheet (ODS, XLSX), or as CSV, Parquet or JSON."""
    require_studies([study])
    from bedplate.export.tables import export as write  # noqa: PLC0415

    made = first_made(output)
    for path in write(study, output, cells=cells):
        print(path)
    give_to_caller(made)


program.add_command(power_cut)


@program.command()
@click.option(
    "--cache",
    is_flag=True,
    help="instead: list old Python environments and builds that nothing uses, and remove them after a yes",
)
@click.option("--yes", is_flag=True, help="with --cache: remove them without asking")
def release(*, cache: bool, yes: bool) -> int:
    """Free mounts, loop devices, servers and control groups that a killed start left behind."""
    from bedplate.cli.release import release as give_back  # noqa: PLC0415
    from bedplate.cli.release import release_cache  # noqa: PLC0415

    if yes and not cache:
        raise click.UsageError("--yes goes with --cache; nothing else of this command asks")
    return release_cache(yes=yes) if cache else give_back()
