"""`bedplate search`: the best cell of a plan within a budget of time.

As in `app.py`, only click and the standard library are imported before a command is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bedplate.cli.completion import METRIC_NAME, metric_names
from bedplate.cli.options import ACCEPT, ERASE, ERASE_FOREIGN, EXECUTOR, PATH, PLAN_FILE, YES
from bedplate.units import parse_duration_s

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.campaign.searching import SearchOutcome
    from bedplate.model.search import NotWorse


class TimeBudget(click.ParamType[float]):
    """A length of time as a plan has it."""

    name = "time"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds."""
        try:
            return parse_duration_s(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command()
@PLAN_FILE
@click.option("--study", metavar="DIR", type=PATH, required=True, help="the study, made or gone on with")
@click.option(
    "--best",
    metavar="METRIC",
    type=METRIC_NAME,
    shell_complete=metric_names,
    help="the figure whose best cell is looked for (docs/method/metrics.md); p50, p95, p99 and p99_9 are latencies",
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
@click.option(
    "--not-worse",
    metavar="METRIC:SHARE",
    multiple=True,
    help="only cells that are at most so much worse than the plan's first cell in this figure: p99:10% (latency_ms_p99); may be given again",
)
@ACCEPT
@EXECUTOR
@ERASE
@ERASE_FOREIGN
@YES
def search(
    plan: Path,
    *,
    study: Path,
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
    """Find the best cell of a plan within a budget of time, and prove it; or go on where a search stopped.

    It visits few cells, in blocks, and a model of their factors says which come next. Then the leader, its rivals and the plan's first cell get
    fresh repetitions. The answer is "this one", "one of these", or "not known" with the best guess. The study is one like any
    other: `extend` adds the visits that all its cells lack.
    """
    from bedplate.analysis.search.step import Course  # noqa: PLC0415
    from bedplate.campaign import searching  # noqa: PLC0415
    from bedplate.campaign.display import display_for_terminal  # noqa: PLC0415
    from bedplate.campaign.search_question import SearchAsked  # noqa: PLC0415
    from bedplate.cli.running import consent  # noqa: PLC0415

    asked = SearchAsked(
        best, tuple(dict.fromkeys(runs)), durable, budget, tuple(map(_not_worse, not_worse)), accepted
    )
    outcome = searching.search(
        plan,
        study,
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
    from bedplate.analysis.search.answer import answer_lines  # noqa: PLC0415
    from bedplate.analysis.search.searched import searched  # noqa: PLC0415
    from bedplate.cli.printing import say  # noqa: PLC0415
    from bedplate.cli.running import tell_start  # noqa: PLC0415

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


def _not_worse(text: str) -> NotWorse:
    """`p99:10%` as the question has it; PlanError for a share that is none."""
    from bedplate.analysis.comparison.condition import parse_share  # noqa: PLC0415
    from bedplate.errors import PlanError  # noqa: PLC0415
    from bedplate.model.metrics import metric_today  # noqa: PLC0415
    from bedplate.model.search import NotWorse as Asked  # noqa: PLC0415

    metric, colon, share = text.rpartition(":")
    if not colon or not metric:
        raise PlanError(f"--not-worse {text!r:.100} is not understood; write a figure and a share: p99:10%")
    return Asked(metric_today(metric), parse_share(share.strip()))
