"""`bedplate ab`: two sides of a change in blocks, until it can be told which is faster, or that they are the same.

As in `app.py`, only click and the standard library are imported before a command is called.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import wraps
from typing import TYPE_CHECKING

import click

from bedplate.cli.completion import plan_names
from bedplate.cli.options import ACCEPT, DIRECTORY, EXECUTOR, METRICS, OF_WORKLOAD, PATH, on_types, words_of
from bedplate.cli.search import TimeBudget

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bedplate.campaign.paired.sides import Change
    from bedplate.cli.changes.asked import PairsAsked

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
        click.option("--yes", is_flag=True, help="do it without asking, missing packages included"),
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
            **others: object,
        ) -> int:
            from bedplate.cli.changes.asked import PairsAsked  # noqa: PLC0415

            how = PairsAsked(plan, words_of(types), executor, workload, metrics, budget, accepted)
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
    help="what was before and what is new: commits, a patch, kernels",
)
@click.option(
    "--postgres",
    "tree",
    metavar="TREE",
    help="a PostgreSQL repository: the sides are commits of it, or a commit and a patch in a file",
)
@click.option(
    "--kernel", "is_kernel", is_flag=True, help="the sides are kernels, by version or path, in guests"
)
@click.option("--vary", metavar="KEY=ONE,OTHER", help="a key of the plan with two values: barrier=true,false")
@click.option("--margin", metavar="SHARE", default="5%", help="what counts as the same, either way")
@click.option(
    "--fail-if",
    metavar="CONDITION",
    help="'slower 5%': end when that is known; exit with 1 where it holds, with 125 where it is not known",
)
@of_a_change(BUDGET_DEFAULT)
def ab(
    sides: tuple[str, ...],
    *,
    tree: str | None,
    is_kernel: bool,
    vary: str | None,
    margin: str,
    fail_if: str | None,
    how: PairsAsked,
    directory: Path | None,
    yes: bool,
) -> int:
    """Did a change make it slower: both sides in blocks, until it can tell or its time is gone.

    A block is a visit of each side, in random order. After each block it looks, with an interval that may be looked at (docs/METHOD.md). It ends
    with slower, faster, the same within the margin, or cannot tell; after the first block where a side does not run or has no such figure, and says
    why. The same command goes on where it was stopped.
    """
    from bedplate.cli.changes.measuring import AbAsked, measured  # noqa: PLC0415
    from bedplate.cli.comparing import bisectable  # noqa: PLC0415

    with nullcontext() if fail_if is None else bisectable():
        asked = AbAsked(
            change=_change(sides, tree, vary, is_kernel=is_kernel), how=how, margin=margin, condition=fail_if
        )
        return measured(asked, directory, yes=yes)


def _change(sides: tuple[str, ...], tree: str | None, vary: str | None, *, is_kernel: bool) -> Change:
    """What the sides differ in; UsageError where the call names none, or several."""
    from bedplate.campaign.paired.sides import commits_beside, kernels_beside, varied_key  # noqa: PLC0415

    named = [
        name for name, given in (("--postgres", tree), ("--kernel", is_kernel), ("--vary", vary)) if given
    ]
    if len(named) != 1:
        found = " and ".join(named) if named else "none of them"
        raise click.UsageError(
            f"say what changes, by one of --postgres TREE, --kernel and --vary KEY=ONE,OTHER; found {found}"
        )
    if vary is not None:
        if sides:
            raise click.UsageError(f"--vary has both values itself; {' '.join(sides)!r:.200} is not needed")
        return varied_key(vary)
    if len(sides) != 2:
        example = (
            "ab --kernel 6.1 6.12" if is_kernel else "ab --postgres ~/src/postgres master v3-0001-foo.patch"
        )
        raise click.UsageError(f"a change has two sides, found {len(sides)}: {example}")
    if tree is not None:
        return commits_beside(tree, *sides)
    return kernels_beside(*sides)
