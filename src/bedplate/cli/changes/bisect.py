"""`bedplate bisect`: which commit made it slower, or unsafe.

As in `app.py`, only click and the standard library are imported before a command is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bedplate.cli.changes.ab import of_a_change

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.cli.changes.asked import PairsAsked

# Of each commit.
_BUDGET_DEFAULT = "30min"


@click.command()
@click.argument("good", metavar="GOOD", help="a commit before the change")
@click.argument("bad", metavar="BAD", help="a commit after it")
@click.option("--postgres", metavar="TREE", help="a PostgreSQL repository that both are commits of")
@click.option(
    "--kernel", metavar="TREE", help="a Linux repository that both are commits of; its kernels run in guests"
)
@click.option(
    "--fail-if",
    metavar="CONDITION",
    required=True,
    help="what makes a commit bad: 'slower 10%' than the good one, 'flushes per appending fsync < 1', a metric with a bound, 'unsafe', or 'bad' power cuts",
)
@of_a_change(_BUDGET_DEFAULT)
def bisect(
    good: str,
    bad: str,
    *,
    postgres: str | None,
    kernel: str | None,
    fail_if: str,
    how: PairsAsked,
    directory: Path | None,
    yes: bool,
) -> int:
    """Find the commit that made it slower, or unsafe: git's search, each commit in pairs with the good one.

    Both ends are measured first. A commit is skipped only where it cannot be built or run. --budget is of each commit. Your checkout is
    not touched: git searches in a repository of bedplate's own. It ends with the commit, what bears it out, and a text for a mailing list.
    The same command goes on where it was stopped.
    """
    if (postgres is None) == (kernel is None):
        raise click.UsageError("say whose commits they are, by one of --postgres TREE and --kernel TREE")
    from bedplate.cli.changes.bisecting import BisectAsked, bisected  # noqa: PLC0415

    asked = BisectAsked(
        tree=postgres or kernel or "",
        is_kernel=kernel is not None,
        good=good,
        bad=bad,
        condition=fail_if,
        how=how,
    )
    return bisected(asked, directory, yes=yes)
