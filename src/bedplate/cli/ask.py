"""`bedplate ask` and `bedplate quickstart`: a question, its plan, a start of a study, and the answer.

As in `app.py`, only click and the standard library are imported before a command is called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.decorators import FC

from bedplate.cli.options import (
    ACCEPT,
    AS_JSON,
    DIRECTORY,
    ERASE,
    ERASE_FOREIGN,
    EXECUTOR,
    EXIT_BY_IT,
    METRIC_NAME,
    METRICS,
    NOT_WORSE,
    OF_WORKLOAD,
    ON_USUAL,
    PATH,
    PLAN_FILE,
    RETRY_FAILED,
    STUDY_OF_PLAN,
    YES,
    condition_option,
    metric_names,
    on_types,
    plan_names,
    words_of,
)
from bedplate.units import parse_duration_s

if TYPE_CHECKING:
    from bedplate.campaign.paired import Change
    from bedplate.campaign.searching import SearchOutcome
    from bedplate.cli.changes import PairsAsked
    from bedplate.model.plan import NotWorse


def _repetitions(without: int) -> Callable[[FC], FC]:
    return click.option(
        "--repetitions",
        metavar="N",
        type=click.IntRange(1, 1000),
        help=f"how often each cell is visited; without it {without}",
    )


_server = click.option(
    "--server",
    metavar="KIND",
    help="PostgreSQL's: built, packaged (the distribution's packages), or the folder of an installed one; without it the newest that is "
    "installed, else packaged",
)

_yes = click.option("--yes", is_flag=True, help="do it without asking, missing packages included")


class TimeBudget(click.ParamType[float]):
    """A length of time as a plan has it."""

    name = "time"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds."""
        try:
            return parse_duration_s(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


# Not listed: it is for whoever has just installed bedplate, and the README names it.
@click.command(hidden=True)
@click.option(
    "--directory",
    metavar="DIR",
    type=PATH,
    default=Path("bedplate-study"),
    help="where the study and the report go",
)
@YES
def quickstart(directory: Path, *, yes: bool) -> int:
    """From nothing to a first report, on an image file.

    Packages are installed, PostgreSQL is built, and plans/quick.toml is run.
    """
    from bedplate.cli.asking import run_quickstart as begin  # noqa: PLC0415

    return begin(directory, yes=yes)


@click.group()
def ask() -> None:
    """Which file system, and is it safe: asked and answered.

    A plan is written and shown with its time, run after a yes, and answered.

    Nothing of yours is erased: the scratch device is an image file beside the study.
    """


@ask.command(name="filesystem")
@ON_USUAL
@_repetitions(5)
@click.option("--scale", metavar="N", help="scale of the load (15 MB each), or a multiple as '4x memory'")
@_server
@click.option(
    "--budget",
    metavar="TIME",
    type=TimeBudget(),
    help="begin no repetition that would end later than this behind the yes: 10min; the first one is always whole",
)
@DIRECTORY
@RETRY_FAILED
@_yes
@AS_JSON
def _filesystem(
    types: str,
    *,
    repetitions: int | None,
    scale: str | None,
    server: str | None,
    budget: float | None,
    directory: Path | None,
    retry_failed: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Which file system suits PostgreSQL on this machine.

    After each repetition there are a table and a page, which say what so many repetitions can tell.
    """
    from bedplate.campaign.preparation import server_choice  # noqa: PLC0415
    from bedplate.campaign.questions import filesystem_question  # noqa: PLC0415
    from bedplate.cli.asking import answer  # noqa: PLC0415
    from bedplate.host.facts import read_machine  # noqa: PLC0415

    about = partial(
        filesystem_question,
        read_machine(),
        repetitions=repetitions,
        scale=scale,
        build_levels=server_choice().levels(server),
    )
    return answer(
        about,
        words_of(types),
        directory,
        yes=yes,
        as_json=as_json,
        retry_failed=retry_failed,
        looks=True,
        budget_s=budget,
    )


@click.command(name="kernel")
@click.argument(
    "kernels", metavar="KERNEL...", nargs=-1, required=True, help="versions, releases or paths: 6.1 6.12"
)
@on_types("ext4")
@_repetitions(3)
@DIRECTORY
@RETRY_FAILED
@_yes
@AS_JSON
def ask_kernel(
    kernels: tuple[str, ...],
    types: str,
    *,
    repetitions: int | None,
    directory: Path | None,
    retry_failed: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Did a kernel make it slower: `ask kernel 6.1 6.12 --on ext4`, in guests of QEMU, without root."""
    from bedplate.campaign.questions import kernel_question  # noqa: PLC0415
    from bedplate.cli.asking import answer  # noqa: PLC0415

    about = partial(kernel_question, kernels, repetitions=repetitions)
    return answer(about, words_of(types), directory, yes=yes, as_json=as_json, retry_failed=retry_failed)


@ask.command(name="safe")
@click.argument(
    "words",
    metavar="[DATADIR|SETTING=VALUE]...",
    nargs=-1,
    help="a server's data directory, or settings of PostgreSQL: full_page_writes=off",
)
@ON_USUAL
@click.option(
    "--points",
    metavar="N",
    type=click.IntRange(4, 100_000),
    help="how often the power of each is cut (default: 160 of one recording, 80 of two or three, else 40)",
)
@_server
@DIRECTORY
@RETRY_FAILED
@_yes
@AS_JSON
def _safe(
    words: tuple[str, ...],
    types: str,
    *,
    points: int | None,
    server: str | None,
    directory: Path | None,
    retry_failed: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Is a server, or a setting, safe after a power cut.

    A setting that is on or off is asked about beside its opposite. Several change together. With a data directory, or nothing
    where one server runs: is it safe as it runs now, with its settings.
    """
    from bedplate.campaign.preparation import server_choice  # noqa: PLC0415
    from bedplate.campaign.questions import asked_settings, safe_question  # noqa: PLC0415
    from bedplate.cli.asking import answer, own_server  # noqa: PLC0415
    from bedplate.host.facts import read_machine  # noqa: PLC0415

    if not types and all("=" not in word for word in words):
        return answer(
            own_server(words, points=points),
            (),
            directory,
            yes=yes,
            as_json=as_json,
            retry_failed=retry_failed,
        )
    about = partial(
        safe_question,
        read_machine(),
        asked_settings(words),
        points=points,
        build_levels=server_choice().levels(server),
    )
    return answer(about, words_of(types), directory, yes=yes, as_json=as_json, retry_failed=retry_failed)


@click.command()
@PLAN_FILE
@STUDY_OF_PLAN
@click.option(
    "--best",
    metavar="METRIC",
    type=METRIC_NAME,
    shell_complete=metric_names,
    help="the figure whose best cell is looked for (docs/METRICS.md); p50, p95, p99 and p99_9 are latencies",
)
@click.option(
    "--run",
    "runs",
    metavar="RUN",
    multiple=True,
    help="the run that it is a figure of, by its name; given again, the best cell of each run and what it comes to in the others",
)
@click.option(
    "--durable",
    type=click.Choice(["volatile", "protected", "bounded", "measured", "any"]),
    metavar="CLASS",
    help="only cells that a power cut leaves so. volatile: all is kept with a volatile cache (the default). protected: all is kept "
    "where the cache survives. bounded: the last commits may be lost. measured: as volatile, and power is cut in the cells that would be "
    "named. any: all cells",
)
@click.option("--budget", metavar="TIME", type=TimeBudget(), help="how long it may take at most: 90min, 4h")
@NOT_WORSE
@ACCEPT
@EXECUTOR
@ERASE
@ERASE_FOREIGN
@YES
def search(
    plan: Path,
    *,
    study: Path | None,
    best: str | None,
    runs: tuple[str, ...],
    durable: str | None,
    budget: float | None,
    not_worse: tuple[str, ...],
    accepted: tuple[str, ...],
    executor: str | None,
    erase: tuple[str, ...],
    erase_foreign: bool,
    yes: bool,
) -> int:
    """Find the best cell of many within a budget of time.

    It proves that cell, and goes on where it was stopped.

    It visits few cells, in blocks, and a model of their factors says which come next. Then the leader, its rivals and the plan's first cell get
    fresh repetitions. The answer is "this one", "one of these", or "not known" with the best guess. The study is one like any
    other: `run STUDY --repetitions N` adds the visits that all its cells lack.
    """
    from bedplate.analysis.search import Course  # noqa: PLC0415
    from bedplate.campaign import searching  # noqa: PLC0415
    from bedplate.campaign.display import display_for_terminal  # noqa: PLC0415
    from bedplate.campaign.questions import SearchAsked  # noqa: PLC0415
    from bedplate.cli.measuring import consent  # noqa: PLC0415

    asked = SearchAsked(
        best, tuple(dict.fromkeys(runs)), durable, budget, tuple(map(parse_not_worse, not_worse)), accepted
    )
    outcome = searching.search(
        plan,
        study or Path(plan.stem),
        asked,
        Course(),
        consent=consent(erase, erase_foreign=erase_foreign, yes=yes),
        executor=executor,
        watch=display_for_terminal,
    )
    chosen = f" --executor {executor}" if executor else ""
    return tell(outcome, f"bedplate search {plan} --study {outcome.study}{chosen}")


def tell(outcome: SearchOutcome, go_on: str) -> int:
    """What came of a start, and the answer; its exit code."""
    from bedplate.analysis.overview import overview  # noqa: PLC0415
    from bedplate.analysis.search import answer_lines, searched  # noqa: PLC0415
    from bedplate.cli.measuring import tell_start  # noqa: PLC0415
    from bedplate.cli.printing import say  # noqa: PLC0415

    start = outcome.start
    if start is not None:
        tell_start(start, outcome.kernel_release, go_on)
        if start.needs_kernel is not None:
            return outcome.exit_code
    found = searched(overview(outcome.study))
    if found is not None:
        print()
        for line in answer_lines(found):
            say(line)
    return outcome.exit_code


def parse_not_worse(text: str) -> NotWorse:
    """`p99:10%` as the question has it; PlanError for a share that is none."""
    from bedplate.analysis.condition import parse_share  # noqa: PLC0415
    from bedplate.errors import PlanError  # noqa: PLC0415
    from bedplate.model.metrics import metric_today  # noqa: PLC0415
    from bedplate.model.plan import NotWorse as Asked  # noqa: PLC0415

    metric, colon, share = text.rpartition(":")
    if not colon or not metric:
        raise PlanError(f"--not-worse {text!r:.100} is not understood; write a figure and a share: p99:10%")
    return Asked(metric_today(metric), parse_share(share.strip()))


BUDGET_DEFAULT = "2h"


def of_a_change(budget: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """The options that `ab` and `bisect` share, handed over as `how`; `budget` is what it takes without one."""
    options = (
        click.option(
            "--plan",
            metavar="PLAN",
            type=PATH,
            shell_complete=plan_names,
            help="a plan whose workload and file systems it is measured on, or a ready one; without it a read-write run over one checkpoint",
        ),
        on_types("ext4, or those of the plan"),
        OF_WORKLOAD,
        METRICS,
        click.option(
            "--budget",
            metavar="TIME",
            type=TimeBudget(),
            default=budget,
            help="how long visits may take at most",
        ),
        ACCEPT,
        EXECUTOR,
        DIRECTORY,
        _yes,
        AS_JSON,
    )

    def with_options(command: Callable[..., int]) -> Callable[..., int]:
        @wraps(command)
        def collected(
            *arguments: object,
            plan: Path | None,
            types: str,
            workload: str | None,
            metrics: tuple[str, ...],
            budget: float,
            accepted: tuple[str, ...],
            executor: str | None,
            as_json: bool,
            **others: object,
        ) -> int:
            from bedplate.cli.changes import PairsAsked  # noqa: PLC0415
            from bedplate.cli.printing import JsonAnswer  # noqa: PLC0415

            with JsonAnswer(is_wanted=as_json) as document:
                how = PairsAsked(
                    plan, words_of(types), executor, workload, metrics, budget, accepted, document
                )
                return command(*arguments, how=how, **others)

        for option in reversed(options):
            collected = option(collected)
        return collected

    return with_options


@click.command()
@click.argument(
    "sides",
    metavar="[BASELINE CONTENDER]",
    nargs=-1,
    help="with --postgres: what was before and what is new, two commits, or a commit and a patch",
)
@click.option(
    "--postgres",
    "tree",
    metavar="TREE",
    help="a PostgreSQL repository: the sides are commits of it, or a commit and a patch in a file",
)
@click.option(
    "--kernel", "kernels", metavar="OLD NEW", nargs=2, help="two kernels, by version or path, in guests"
)
@click.option("--vary", metavar="KEY=ONE,OTHER", help="a key of the plan with two values: barrier=true,false")
@click.option("--margin", metavar="SHARE", default="5%", help="what counts as the same, either way")
@condition_option(
    f"'slower 5%', 'tps < 1000', unsafe, … (docs/COMMANDS.md): end when that is known; {EXIT_BY_IT}"
)
@of_a_change(BUDGET_DEFAULT)
def ab(
    sides: tuple[str, ...],
    *,
    tree: str | None,
    kernels: tuple[str, ...] | None,
    vary: str | None,
    margin: str,
    fail_if: str | None,
    how: PairsAsked,
    directory: Path | None,
    yes: bool,
) -> int:
    """Did a change make it slower: old and new side by side.

    Both are measured in blocks, until that is known or the budget is used.

    A block is a visit of each side, in random order. After each block it looks, with an interval that may be looked at (docs/METHOD.md). It ends
    with slower, faster, the same within the margin, or cannot tell; after the first block where a side does not run or has no such figure, and says
    why. The same command goes on where it was stopped.
    """
    from bedplate.cli.changes import AbAsked, measured  # noqa: PLC0415
    from bedplate.cli.status import bisectable  # noqa: PLC0415

    with nullcontext() if fail_if is None else bisectable():
        asked = AbAsked(change=_change(sides, tree, kernels, vary), how=how, margin=margin, condition=fail_if)
        return measured(asked, directory, yes=yes)


def _change(
    sides: tuple[str, ...], tree: str | None, kernels: tuple[str, ...] | None, vary: str | None
) -> Change:
    """What the sides differ in; UsageError where the call names none, or several."""
    from bedplate.campaign.paired import commits_beside, kernels_beside, varied_key  # noqa: PLC0415

    named = [name for name, given in (("--postgres", tree), ("--kernel", kernels), ("--vary", vary)) if given]
    if len(named) != 1:
        found = " and ".join(named) if named else "none of them"
        raise click.UsageError(
            f"say what changes, by one of --postgres TREE, --kernel OLD NEW and --vary KEY=ONE,OTHER; found {found}"
        )
    if tree is not None:
        if len(sides) != 2:
            raise click.UsageError(
                f"a change has two sides, found {len(sides)}: ab --postgres ~/src/postgres master v3-0001-foo.patch"
            )
        return commits_beside(tree, *sides)
    if sides:
        raise click.UsageError(f"{named[0]} has both sides itself; {' '.join(sides)!r:.200} is not needed")
    if kernels is None:
        return varied_key(vary or "")
    if any(kernel.startswith("-") for kernel in kernels):
        raise click.UsageError(
            f"--kernel takes two kernels, found {' '.join(kernels)!r:.200}: ab --kernel 6.1 6.12"
        )
    return kernels_beside(*kernels)


# Of each commit.
_BUDGET_DEFAULT = "30min"


@click.command()
@click.argument("good", metavar="GOOD", help="a commit before the change")
@click.argument("bad", metavar="BAD", help="a commit after it")
@click.option("--postgres", metavar="TREE", help="a PostgreSQL repository that both are commits of")
@click.option(
    "--linux", metavar="TREE", help="a Linux repository that both are commits of; its kernels run in guests"
)
@click.option("--kernel", "former", metavar="TREE", hidden=True, help="--linux, before")
@condition_option(
    "what makes a commit bad: 'slower 10%' than the good one, 'flushes per appending fsync < 1', a metric with a bound, 'unsafe', or 'bad' power cuts",
    required=True,
)
@of_a_change(_BUDGET_DEFAULT)
def bisect(
    good: str,
    bad: str,
    *,
    postgres: str | None,
    linux: str | None,
    former: str | None,
    fail_if: str,
    how: PairsAsked,
    directory: Path | None,
    yes: bool,
) -> int:
    """Find the commit that made it slower, or unsafe.

    It is git's search: each commit is measured in pairs with the good one.

    Both ends are measured first. A commit is skipped only where it cannot be built or run. --budget is of each commit. Your checkout is
    not touched: git searches in a repository of bedplate's own. It ends with the commit, what bears it out, and a text for a mailing list.
    The same command goes on where it was stopped.
    """
    if former is not None:
        print("note: --kernel TREE of `bisect` is --linux TREE now", file=sys.stderr)
    linux = linux or former
    if (postgres is None) == (linux is None):
        raise click.UsageError("say whose commits they are, by one of --postgres TREE and --linux TREE")
    from bedplate.cli.changes import BisectAsked, bisected  # noqa: PLC0415

    asked = BisectAsked(
        tree=postgres or linux or "",
        is_kernel=linux is not None,
        good=good,
        bad=bad,
        condition=fail_if,
        how=how,
    )
    return bisected(asked, directory, yes=yes)
