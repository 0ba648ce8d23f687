"""All commands, each a few lines: the work stands in the rooms below.

Click and the standard library are all that may be imported here: whatever a command needs beyond that
it imports when it is called. Why click: docs/decisions/0007-command-line-by-click.md.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from bedplate import __version__
from bedplate.cli.ask import ab, ask, bisect, quickstart, search
from bedplate.cli.commands import Viewed, every_command
from bedplate.cli.cuts import power_cut
from bedplate.cli.former import add_former_names
from bedplate.cli.machine import cancel, measure_command
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
    REPETITIONS_IN_ALL,
    RETRY_FAILED,
    STUDY_DIRECTORIES,
    STUDY_DIRECTORY,
    STUDY_OF_PLAN,
    YES,
    add_examples,
    completed,
    completion,
    metric_names,
    plan_names,
)
from bedplate.cli.printing import require_studies
from bedplate.cli.read import (
    advise,
    claims,
    compare,
    effects,
    export,
    import_results,
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
    f"Exit codes: {'; '.join(f'{code} {words}' for code, words in EXIT_CODES)}. With --fail-if: 0 it does not hold, 1 it holds, 125 it is not known. "
    "A study that was interrupted goes on when the same command is given again. "
    "Each command's --help has examples; docs/bedplate.1 is the manual page."
)


# In the order in which a person meets them. A command that is in none of these would not be listed, which a test holds.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "Ask": ("ask filesystem", "ask safe", "ab", "bisect", "search"),
    "Measure": ("plan", "run"),
    "Read": ("show", "compare", "report", "export", "import"),
    "Power cuts": tuple(f"power-cut {name}" for name in ("try", "points", "blame", "replay", "bundle")),
    "Machine": ("doctor", "release", "completion"),
}

# What erases or installs: no typing mistake is answered with one of these.
_CONSENTS = ("--yes", "--erase", "--erase-foreign")


class _Program(click.Group):
    """The commands by what they are for, each on one line of its own."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        """As they are registered: the alphabet is nobody's way through them."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """A heading for each group, and below it whole sentences."""
        listed = {words: command for words, command, _ in every_command(self, ctx)}
        widest = max(len(name) for names in GROUPS.values() for name in names)
        for heading, names in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(name.ljust(widest), listed[name].get_short_help_str(formatter.width)) for name in names]
                )


@click.group(
    cls=_Program,
    epilog=_EPILOG,
    no_args_is_help=True,
    context_settings={"show_default": True, "help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, "-V", "--version", prog_name="bedplate", message="%(prog)s %(version)s")
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
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        at: click.Context | None = getattr(error, "ctx", None)
        print(f"error: {_mistake(error, at)}", file=sys.stderr)
        if at is not None:
            pieces = " ".join(at.command.collect_usage_pieces(at))
            print(f"usage: {at.command_path} {pieces}\nhelp:  {at.command_path} --help", file=sys.stderr)
        return error.exit_code
    return EXIT_DONE if status is None else status


def _mistake(mistake: click.ClickException, context: click.Context | None) -> str:
    """What is wrong with a command line, in one sentence, and the way out."""
    if not isinstance(mistake, click.NoSuchOption) or context is None:
        words = mistake.format_message().removesuffix(".")
        return words[:1].lower() + words[1:]
    possible = mistake.possibilities or ()
    near = [option for option in possible if option not in _CONSENTS]
    if near:
        return f"no such option {mistake.option_name}; did you mean {' or '.join(near)}?"
    owners = [
        f"`bedplate {words}`"
        for words, command, _ in every_command(program, context.find_root())
        if mistake.option_name in _options(command)
    ]
    if not owners:
        return f"no such option {mistake.option_name}"
    where = f"{', '.join(owners[:_MOST_OWNERS])}{' and others' if len(owners) > _MOST_OWNERS else ''}"
    if context.command is program:
        return f"options come behind the command: {mistake.option_name} is one of {where}"
    return f"{mistake.option_name} is no option of `{context.command_path}`, but of {where}"


_MOST_OWNERS = 4


def _options(command: click.Command) -> list[str]:
    return [name for parameter in command.params for name in parameter.opts]


@program.command(name="help", hidden=True)
@click.argument("words", metavar="[COMMAND]...", nargs=-1, help="the command, and the command within it")
@click.pass_context
def _help(context: click.Context, words: tuple[str, ...]) -> None:
    """The help of a command: `help run` is `run --help`."""
    command: click.Command = program
    above = context.find_root()
    for word in words:
        inner = command.get_command(above, word) if isinstance(command, click.Group) else None
        if inner is None:
            raise click.UsageError(f"no such command '{' '.join(words)}'", above)
        above, command = click.Context(inner, info_name=word, parent=above), inner
    click.echo(command.get_help(above))


for _command in (quickstart, ask, ab, bisect, search):
    program.add_command(_command)


@click.command(name="install")
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
def _install(
    plan: Path | None,
    *,
    yes: bool,
    tarball: Path | None,
    executor: str | None,
    kernels: tuple[str, ...],
    zfs: bool,
) -> None:
    """Install what is missing, build and fetch what a plan needs.

    Every PostgreSQL of the plan is built; kernels and tools of its guests are fetched.
    """
    from bedplate.cli.measuring import setup as prepare  # noqa: PLC0415

    prepare(plan, yes=yes, tarball=tarball, executor=executor, kernels=kernels, zfs=zfs)


# A server's directory is closed to others, and what lies below it can be told all the same.
_ANY_PATH = click.Path(path_type=Path, readable=False)


@click.command(cls=Viewed)
@click.argument(
    "target",
    metavar="[DATADIR|DEVICE|MOUNTPOINT]",
    type=_ANY_PATH,
    required=False,
    help="what a server runs on, in place of the machine: file system, options, device, cache, settings, durability class",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=PATH,
    help="with a server's directory, a device or a mount point: write the plan that measures it to this file",
)
@AS_JSON
def doctor(target: Path | None, *, output: Path | None, as_json: bool) -> int:
    """What this machine or a server has, and what is missing.

    Without words it says what this machine can run, what is missing, and the fix. As root it makes and mounts each file system once
    on a small image, a fraction of a second each; the answers are kept in the cache.

    With a server's directory, a device or a mount point it says what a server there runs on. It reads the kernel's tables and the server's
    files, starts nothing and changes nothing; without root it says what it could not read.
    """
    if target is not None:
        from bedplate.cli.read import inspect  # noqa: PLC0415

        return inspect(target, plan=output, as_json=as_json)
    if output is not None:
        raise click.UsageError("--output goes with a server's directory, a device or a mount point")
    from bedplate.cli.doctor import doctor as examine  # noqa: PLC0415

    return examine(as_json=as_json)


program.add_command(doctor)

doctor.add_view("--install", _install)

doctor.add_view("--measure", measure_command)


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
    """Show what a plan would do, and how long it takes.

    Executor, cells, the pruned ones with reasons, order, disk space.

    Exit code 0 only where `run` would begin as things are. It is 2 where the plan is wrong or no cell of it can run here, and 3 where a
    program, a right or a device is missing, which is listed.
    """
    from bedplate.cli.planning import show_plan  # noqa: PLC0415

    return show_plan(plan, executor=executor, as_json=as_json)


@program.command()
@click.argument(
    "plan",
    metavar="PLAN|STUDY",
    type=PATH,
    shell_complete=plan_names,
    help="a plan, TOML (docs/PLANS.md), or a ready one: quick; with --repetitions or --add the study that they add to",
)
@STUDY_OF_PLAN
@REPETITIONS_IN_ALL
@click.option(
    "--add", metavar="PLAN", type=PATH, help="add the cells or repetitions of this plan to the study"
)
@EXECUTOR
@ERASE
@ERASE_FOREIGN
@RETRY_FAILED
@YES
def run(
    plan: Path,
    *,
    study: Path | None,
    repetitions: int | None,
    add: Path | None,
    executor: str | None,
    erase: tuple[str, ...],
    erase_foreign: bool,
    retry_failed: bool,
    yes: bool,
) -> int:
    """Run a plan, go on where it stopped, or add to a study.

    With --repetitions or --add a study gets more of them, and keeps a note of it: `run STUDY --repetitions 5`.
    """
    from bedplate.cli.measuring import add_to_study, consent  # noqa: PLC0415
    from bedplate.cli.measuring import run as measure  # noqa: PLC0415

    given = consent(erase, erase_foreign=erase_foreign, yes=yes)
    if repetitions is not None or add is not None:
        if study is not None or plan.suffix == ".toml":
            raise click.UsageError(
                f"--repetitions and --add go with a study alone: `bedplate run {study or plan.stem} --repetitions 5`"
            )
        return add_to_study(
            plan,
            repetitions=repetitions,
            add=add,
            consent=given,
            executor=executor,
            retry_failed=retry_failed,
        )
    return measure(
        plan, study or Path(plan.stem), consent=given, executor=executor, retry_failed=retry_failed
    )


@click.command(name="status")
@STUDY_DIRECTORY
@click.option("--verify", is_flag=True, help="compare every file of every visit with its checksum")
@AS_JSON
def _status(study: Path, *, verify: bool, as_json: bool) -> int:
    """How far a study is, and what failed and why.

    It also says how well the study uses its time.
    """
    (study,) = require_studies([study])
    from bedplate.cli.status import status as tell  # noqa: PLC0415

    return tell(study, verify=verify, as_json=as_json)


@click.command(cls=Viewed)
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
    """Tables of a study's results, or another view of them.

    Cells are sorted by what a power cut leaves of them, and then the best first.

    Each option that begins with "instead" is another view, with options of its own: `show STUDY --advice`, `show --advice --help`.
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


program.add_command(show)

show.add_view("--advice", advise)
show.add_view("--effects", effects)
show.add_view("--claims", claims)
show.add_view("--mail", summary)
show.add_view("--status", _status)

for _command in (compare, report, export, import_results, power_cut):
    program.add_command(_command)


@program.command()
@click.argument(
    "study",
    metavar="[STUDY]",
    type=PATH,
    required=False,
    help="end this study's jobs on a Slurm cluster instead; its visits give back what they hold, and what has ended is kept",
)
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
def release(study: Path | None, *, cache: bool, days: float | None, yes: bool) -> int:
    """Free what a killed start left, or end a study's jobs.

    Mounts, loop devices, control groups and servers; with --cache what nothing in the cache uses, with STUDY its jobs on a Slurm cluster.
    """
    from bedplate.cli.release import release as give_back  # noqa: PLC0415
    from bedplate.cli.release import release_cache  # noqa: PLC0415

    if yes and not cache:
        raise click.UsageError("--yes goes with --cache; nothing else of this command asks")
    if days is not None and not cache:
        raise click.UsageError("--days goes with --cache; nothing else of this command looks at when")
    if study is None:
        return release_cache(yes=yes, days=days) if cache else give_back()
    if cache:
        raise click.UsageError("a study and --cache are two things to release; name one of them")
    return cancel(study)


program.add_command(completion)


add_former_names(program)

add_examples(program)
