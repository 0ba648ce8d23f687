"""All commands, each a few lines: the work stands in the rooms below.

Click and the standard library are all that may be imported here: whatever a command needs beyond that
it imports when it is called. Why click: docs/decisions/0007-command-line-by-click.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from bedplate import __version__
from bedplate.cli.ask import ab, ask, bisect, quickstart, search
from bedplate.cli.cuts import power_cut
from bedplate.cli.machine import cancel, device
from bedplate.cli.options import (
    AS_JSON,
    CELLS,
    ERASE,
    ERASE_FOREIGN,
    EXECUTOR,
    METRIC_NAME,
    OF_WORKLOAD,
    PATH,
    PLAN_FILE,
    RETRY_FAILED,
    STUDY_DIRECTORIES,
    STUDY_DIRECTORY,
    YES,
    add_examples,
    completed,
    completion,
    metric_names,
)
from bedplate.cli.printing import require_studies, study_at
from bedplate.cli.read import (
    advise,
    claims,
    compare,
    effects,
    export,
    import_results,
    index,
    inspect,
    report,
    summary,
)
from bedplate.errors import EXIT_DONE

EXIT_CODES = (
    (0, "done"),
    (1, "some runs failed"),
    (2, "the plan or the call is wrong"),
    (3, "a requirement is missing"),
    (130, "interrupted"),
)

_EPILOG = (
    f"Exit codes: {'; '.join(f'{code} {words}' for code, words in EXIT_CODES)}; `compare --fail-if` has its own. "
    "A study that was interrupted goes on when the same command is given again. "
    "Each command's --help has examples; docs/bedplate.1 is the manual page."
)


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
@click.version_option(__version__, prog_name="bedplate", message="%(prog)s %(version)s")
def program() -> None:
    """Measures databases across Linux file systems. IT ERASES THE SCRATCH DEVICE THAT A PLAN NAMES."""


def call(words: Sequence[str]) -> int:
    """Run the command that `words` name, and give its exit code.

    Click's own `main` is not used: it has other exit codes for Ctrl-C and for a closed pipe.
    """
    asked = completed(program)
    if asked is not None:
        return asked
    try:
        with program.make_context("bedplate", list(words)) as context:
            status: int | None = program.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return EXIT_DONE if status is None else status


program.add_command(quickstart)

program.add_command(ask)

program.add_command(ab)

program.add_command(bisect)

program.add_command(inspect)

program.add_command(device)


@program.command()
@click.argument(
    "plan", metavar="[PLAN]", type=PATH, required=False, help="prepare what this plan needs; default: quick"
)
@YES
@click.option(
    "--tarball", metavar="FILE", type=PATH, help="a PostgreSQL source tarball, instead of a download"
)
@EXECUTOR
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
    from bedplate.cli.measuring import setup as prepare  # noqa: PLC0415

    prepare(plan, yes=yes, tarball=tarball, executor=executor, kernels=kernels, zfs=zfs)


@program.command()
@AS_JSON
def doctor(*, as_json: bool) -> int:
    """What this machine can run, what is missing, and the fix.

    As root it makes and mounts each file system once on a small image, a fraction of a second each; the answers are kept in the cache.
    """
    from bedplate.cli.doctor import doctor as examine  # noqa: PLC0415

    return examine(as_json=as_json)


def _print_schema(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 -- click's
    """Before anything else of the command line is asked for: there is one schema for all plans."""
    if wanted:
        from bedplate.cli.printing import print_json  # noqa: PLC0415
        from bedplate.plan.schema import plan_schema  # noqa: PLC0415

        print_json(plan_schema())
        context.exit()


@program.command()
@PLAN_FILE
@EXECUTOR
@AS_JSON
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="print the JSON schema of plans, for editors, and nothing else",
)
def plan(plan: Path, *, executor: str | None, as_json: bool) -> int:
    """Show what a plan would do: executor, cells, the pruned ones with reasons, order, disk space, time.

    Exit code 0 only where `run` would begin as things are. It is 2 where the plan is wrong or no cell of it can run here, and 3 where a
    program, a right or a device is missing, which is listed.
    """
    from bedplate.cli.planning import show_plan  # noqa: PLC0415

    return show_plan(plan, executor=executor, as_json=as_json)


@program.command()
@PLAN_FILE
@click.option("--study", metavar="DIR", type=PATH, required=True, help="the study, made or gone on with")
@EXECUTOR
@ERASE
@ERASE_FOREIGN
@RETRY_FAILED
@YES
def run(
    plan: Path,
    *,
    study: Path,
    executor: str | None,
    erase: tuple[str, ...],
    erase_foreign: bool,
    retry_failed: bool,
    yes: bool,
) -> int:
    """Run a plan, or go on where it stopped."""
    from bedplate.cli.measuring import consent  # noqa: PLC0415
    from bedplate.cli.measuring import run as measure  # noqa: PLC0415

    given = consent(erase, erase_foreign=erase_foreign, yes=yes)
    return measure(plan, study, consent=given, executor=executor, retry_failed=retry_failed)


program.add_command(search)


@program.command()
@STUDY_DIRECTORY
@click.option("--repetitions", metavar="N", type=click.IntRange(min=1), help="how many there shall be in all")
@click.option(
    "--plan", metavar="PLAN", type=PATH, help="a plan that adds cells or repetitions to the study's"
)
@EXECUTOR
@ERASE
@ERASE_FOREIGN
@RETRY_FAILED
@YES
def extend(
    study: Path,
    *,
    repetitions: int | None,
    plan: Path | None,
    executor: str | None,
    erase: tuple[str, ...],
    erase_foreign: bool,
    retry_failed: bool,
    yes: bool,
) -> int:
    """Add repetitions or cells to a study, and run them; the study keeps a note of it."""
    from bedplate.campaign import running  # noqa: PLC0415
    from bedplate.campaign.display import display_for_terminal  # noqa: PLC0415
    from bedplate.cli.measuring import consent, tell  # noqa: PLC0415

    outcome = running.extend(
        study_at(study),
        repetitions=repetitions,
        plan=plan,
        consent=consent(erase, erase_foreign=erase_foreign, yes=yes),
        executor=executor,
        retry_failed=retry_failed,
        watch=display_for_terminal,
    )
    return tell(outcome, f"bedplate extend {outcome.study} --repetitions {outcome.plan.repetitions}")


@program.command()
@STUDY_DIRECTORY
@click.option("--verify", is_flag=True, help="compare every file of every visit with its checksum")
@AS_JSON
def status(study: Path, *, verify: bool, as_json: bool) -> int:
    """How far a study is, what failed and why, and how well it uses its time."""
    (study,) = require_studies([study])
    from bedplate.cli.status import status as tell  # noqa: PLC0415

    return tell(study, verify=verify, as_json=as_json)


program.add_command(cancel)


@program.command()
@STUDY_DIRECTORIES
@OF_WORKLOAD
@click.option(
    "--metric",
    metavar="NAME",
    type=METRIC_NAME,
    shell_complete=metric_names,
    help="one metric (docs/METRICS.md), in place of what each workload is about",
)
@CELLS
@click.option(
    "--sort",
    metavar="METRIC",
    type=METRIC_NAME,
    shell_complete=metric_names,
    help="the cells in the order of this metric, the best first",
)
@click.option("--top", metavar="N", type=click.IntRange(min=1), help="with --sort: only the first N cells")
@click.option(
    "--all",
    "all_cells",
    is_flag=True,
    help="every cell; of more than 20 the ten best of each class are shown otherwise",
)
@AS_JSON
def show(
    studies: tuple[Path, ...],
    *,
    workload: str | None,
    metric: str | None,
    cells: tuple[str, ...],
    sort: str | None,
    top: int | None,
    all_cells: bool,
    as_json: bool,
) -> None:
    """Tables of a study's results.

    Cells are sorted by what a power cut leaves of them, and then the best first.
    """
    if top is not None and sort is None:
        raise click.UsageError("--top goes with --sort METRIC, which says what is best")
    studies = require_studies(studies)
    from bedplate.cli.printing import print_json, print_tables  # noqa: PLC0415
    from bedplate.terminal import tables  # noqa: PLC0415

    order = None if sort is None else tables.Order(sort, top)
    if as_json:
        print_json(tables.show_document(studies, workload=workload, metric=metric, cells=cells, order=order))
        return
    print_tables(
        tables.show_tables(
            studies, workload=workload, metric=metric, cells=cells, order=order, all_cells=all_cells
        )
    )


for _command in (compare, effects, advise, claims):
    program.add_command(_command)

for _command in (summary, report, index, export, import_results):
    program.add_command(_command)

program.add_command(power_cut)


@program.command()
@click.option(
    "--cache",
    is_flag=True,
    help="instead: list what the cache holds that nothing uses (environments, builds, data, images), and remove it after a yes",
)
@click.option(
    "--days",
    type=click.FloatRange(min=0),
    metavar="N",
    help="with --cache: what is kept for later starts goes when none asked for it in N days; 30 unless given, 0 is all of it",
)
@click.option("--yes", is_flag=True, help="with --cache: remove them without asking")
def release(*, cache: bool, days: float | None, yes: bool) -> int:
    """Free mounts, loop devices, servers and control groups that a killed start left behind."""
    from bedplate.cli.release import release as give_back  # noqa: PLC0415
    from bedplate.cli.release import release_cache  # noqa: PLC0415

    if yes and not cache:
        raise click.UsageError("--yes goes with --cache; nothing else of this command asks")
    if days is not None and not cache:
        raise click.UsageError("--days goes with --cache; nothing else of this command looks at when")
    return release_cache(yes=yes, days=days) if cache else give_back()


program.add_command(completion)

add_examples(program)
