"""The arguments and options that several commands take."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click
from click.decorators import FC

from bedplate.cli.commands import every_command, root_context
from bedplate.installation import shipped
from bedplate.registry import WORKLOADS

_VARIABLE = "_BEDPLATE_COMPLETE"

_PROGRAM = "bedplate"


class OneOf(click.Choice[str]):
    """One of some words; of a wrong one the message names what was meant, behind all that there are."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        """As click has it, and `did you mean zsh?`."""
        from bedplate.near_names import did_you_mean  # noqa: PLC0415 -- of a wrong word alone

        listed = super().get_invalid_choice_message(value, ctx)
        hint = did_you_mean(str(value), self.choices)
        return f"{listed} {hint[0].upper()}{hint[1:]}" if hint else listed


@click.command()
@click.argument(
    "shell",
    metavar="SHELL",
    type=OneOf(["bash", "zsh", "fish"]),
    help="bash, zsh or fish",
)
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what completes commands and options in a shell.

    `eval "$(bedplate completion bash)"`; metrics are completed too.
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415

    of_shell = get_completion_class(shell)
    if of_shell is not None:
        print(of_shell(context.find_root().command, {}, _PROGRAM, _VARIABLE).source())


def completed(program: click.Command) -> int | None:
    """Answer a shell that asks how a line goes on; the exit code, or None where none asks."""
    asked = os.environ.get(_VARIABLE)
    if asked is None:
        return None
    from click.shell_completion import shell_complete  # noqa: PLC0415

    return shell_complete(program, {}, _PROGRAM, _VARIABLE, asked)


class MetricName(click.ParamType[str]):
    """A metric by its name, a short one, or one that it had before."""

    name = "metric"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002 -- click's
        """Its name of today; whether there is such a metric is said where it is looked for."""
        from bedplate.model.metrics import metric_today  # noqa: PLC0415

        return metric_today(value)


METRIC_NAME = MetricName()


def metric_names(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Metrics that begin so."""
    from bedplate.model.metrics import METRICS, SHORT_NAMES  # noqa: PLC0415

    return [name for name in (*METRICS, *SHORT_NAMES) if name.startswith(begun)]


def plan_names(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Ready plans, plans beside, and folders that begin so."""
    from pathlib import Path  # noqa: PLC0415

    from bedplate.campaign.planning import own_plans  # noqa: PLC0415

    # What stands before the last slash stays as it was typed.
    folder = begun[: begun.rfind("/") + 1]
    try:
        entries = sorted(Path(folder or ".").iterdir())
    except OSError:
        entries = []
    files = [f"{folder}{each.name}" for each in entries if each.suffix == ".toml" or each.is_dir()]
    ready = sorted(plan.stem for plan in own_plans().glob("*.toml"))
    return [name for name in (*ready, *files) if name.startswith(begun)]


PATH = click.Path(path_type=Path)

PLAN_FILE = click.argument(
    "plan",
    metavar="PLAN",
    type=PATH,
    shell_complete=plan_names,
    help="a plan, TOML (docs/PLANS.md), or a ready one: quick",
)

STUDY_OF_PLAN = click.option(
    "--study",
    metavar="DIR",
    type=PATH,
    help="the study, made or gone on with; without it a folder of the plan's name",
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
    help="a metric (docs/METRICS.md; p99 is latency_ms_p99), in place of what each run is about; may be given again",
)


def claims_option(*names: str) -> Callable[[FC], FC]:
    """Files of claims, by an option of one of these names."""
    return click.option(
        *names,
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

NOT_WORSE = click.option(
    "--not-worse",
    metavar="METRIC:SHARE",
    multiple=True,
    help="only cells that are at most so much worse than the plan's first cell in this figure: p99:10% (latency_ms_p99); may be given again",
)

ACCEPT = click.option(
    "--accept",
    "accepted",
    metavar="WORDS",
    multiple=True,
    help="count suspect runs whose every doubt has these words or this code: 'other programs used'; may be given again",
)

EXIT_BY_IT = "exit with 1 where it holds, with 125 where it is not known"


def condition_option(words: str, *, required: bool = False) -> Callable[[FC], FC]:
    """A condition; `words` say what becomes of it."""
    return click.option("--fail-if", metavar="CONDITION", required=required, help=words)


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


REPETITIONS_IN_ALL = click.option(
    "--repetitions",
    metavar="N",
    type=click.IntRange(min=1),
    help="add repetitions to the study until there are so many in all",
)

RETRY_FAILED = click.option("--retry-failed", is_flag=True, help="do failed visits again, as new attempts")

# By the command's words.
EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "ask filesystem": ("sudo bedplate ask filesystem", "sudo bedplate ask filesystem --on ext4,xfs"),
    "ask safe": (
        "sudo bedplate ask safe",
        "sudo bedplate ask safe /var/lib/postgresql/18/main",
        "sudo bedplate ask safe full_page_writes=off --on ext4,xfs,btrfs",
    ),
    "ab": (
        "sudo bedplate ab --postgres ~/src/postgres master v3-0001-foo.patch --plan quick",
        "bedplate ab --kernel 6.12 ~/linux/arch/x86/boot/bzImage --on ext4,xfs",
        "sudo bedplate ab --vary barrier=true,false --budget 30min --fail-if 'slower 10%'",
    ),
    "bisect": (
        "sudo bedplate bisect --postgres ~/src/postgres REL_18_0 master --fail-if 'slower 10%'",
        "bedplate bisect --linux ~/src/linux v7.0 v7.1 --fail-if 'flushes per appending fsync < 1'",
        "bedplate bisect --linux ~/src/linux v7.0 v7.1 --fail-if unsafe --on ext4",
    ),
    "doctor": (
        "bedplate doctor",
        "bedplate doctor /var/lib/postgresql/18/main",
        "bedplate doctor /var/lib/mysql",
        "bedplate doctor /dev/sda1 -o mine.toml",
    ),
    "doctor --install": (
        "sudo bedplate doctor --install",
        "sudo bedplate doctor kernels --install --kernel 6.12 --zfs --yes",
    ),
    "doctor --measure": (
        "sudo bedplate doctor /dev/disk/by-id/nvme-eui.0025 --measure",
        "sudo bedplate doctor /dev/disk/by-id/nvme-eui.0025 --measure --erase /dev/disk/by-id/nvme-eui.0025",
        "bedplate doctor /var/lib/postgresql --measure",
    ),
    "plan": (
        "bedplate plan quick",
        "bedplate plan mine.toml --executor qemu",
        "bedplate plan --schema",
    ),
    "run": (
        "sudo bedplate run quick --study first",
        "sudo bedplate run mine.toml --study s --erase /dev/disk/by-id/nvme-eui.0025",
        "sudo bedplate run mine.toml --study s --retry-failed",
        "sudo bedplate run first --repetitions 5",
        "sudo bedplate run first --add with-btrfs.toml",
    ),
    "search": (
        "sudo bedplate search mine.toml --study s --best tps --run read-write --budget 4h",
        "sudo bedplate search mine.toml --study s --best tps --run read-write --not-worse p99:10% --budget 4h",
        "sudo bedplate search mine.toml --study s --budget 6h",
    ),
    "show": (
        "bedplate show first",
        "bedplate show first --sort tps --top 10 --cells type=ext4,xfs",
        "bedplate show first --workload read-write --metric latency_ms_p99",
    ),
    "show --advice": (
        "bedplate show first --advice",
        "bedplate show first --advice --durability durable --cache protected",
    ),
    "show --effects": (
        "bedplate show first --effects",
        "bedplate show first --effects --workload read-write --metric tps",
    ),
    "show --claims": ("bedplate show first --claims", "bedplate show first --claims --file mine.toml"),
    "show --mail": (
        "bedplate show first --mail",
        "bedplate show first --mail --markdown | mail -s first list@example.org",
    ),
    "show --status": ("bedplate show first --status", "bedplate show first --status --verify"),
    "compare": (
        "bedplate compare first --baseline type=ext4 --contender type=xfs",
        "bedplate compare first --baseline barrier=yes --contender barrier=no --metric tps --fail-if 'slower 5%'",
    ),
    "report": (
        "bedplate report first",
        "bedplate report first second -o both.html",
        "bedplate report studies -o /srv/www/bedplate/index.html",
    ),
    "export": (
        "bedplate export first -o first.xlsx",
        "bedplate export first -o tables --format csv --table figures --metric tps",
        "bedplate export warehouse -o plans.parquet --table plans",
    ),
    "import": (
        "bedplate import pg-fs-benchmark/i5 --study i5",
        "bedplate import PostgresBench --study services --format postgresbench",
    ),
    "power-cut try": (
        "sudo bedplate power-cut try examples/engines/toy --on ext4",
        "sudo bedplate power-cut try ./my-engine --on ext4,xfs,btrfs --points 200 --fail-if bad",
    ),
    "power-cut points": ("bedplate power-cut points cuts", "bedplate power-cut points cuts ext4 --all"),
    "power-cut blame": (
        "sudo bedplate power-cut blame cuts",
        "sudo bedplate power-cut blame cuts ext4 17",
        "bedplate power-cut blame cuts-in-guests --guest",
    ),
    "power-cut bundle": ("sudo bedplate power-cut bundle cuts ext4 17 --output /var/tmp/cut-17-bundle",),
    "power-cut replay": (
        "sudo bedplate power-cut replay cuts ext4 17 --keep /var/tmp/cut-17",
        "sudo bedplate power-cut replay cuts ext4 --profile untorn-16k --points 90",
        "bedplate power-cut replay cuts-in-guests jfs --profile ordered --points 12",
    ),
    "release": (
        "sudo bedplate release",
        "bedplate release first",
        "bedplate release --cache",
        "bedplate release --cache --days 0",
    ),
    "completion": (
        "bedplate completion bash > ~/.local/share/bash-completion/completions/bedplate",
        "bedplate completion fish > ~/.config/fish/completions/bedplate.fish",
    ),
}


def add_examples(commands: click.Group) -> None:
    """Put the examples at the end of the help of every command; a group has the first one of each of its own."""
    for words, command, _ in every_command(commands, root_context(commands)):
        lines = EXAMPLES.get(words, ())
        if isinstance(command, click.Group):
            lines = tuple(own[0] for name, own in EXAMPLES.items() if name.startswith(f"{words} "))
        if lines:
            # Click breaks no line of a paragraph that begins so.
            command.epilog = "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))
