"""What a plan may ask of the microbenchmark although its reads will not mean what they seem to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.workloads.microbenchmark.tests import READ, WRITE, demands_waiting, tests_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.model.plan import Plan, PlannedWorkload
    from bedplate.plan.warnings import PlanWarnings


def of_plan(plan: Plan) -> Iterator[str]:
    """Sentences: a synchronous fill writes a thousandth of the entries, and the reads behind it find no others."""
    for workload in plan.workloads:
        yield from _of_runs(workload)


def _of_runs(workload: PlannedWorkload) -> Iterator[str]:
    last = ""
    for run in workload.runs:
        tests, kind = tests_of(run), run.levels.text("kind")
        if kind == WRITE:
            last = tests[-1]
        elif kind == READ and demands_waiting(last):
            yield (
                f"run {run.name}: {', '.join(tests)} read what {last} left, which is a thousandth of the entries; "
                "ask for a test behind it that writes them all (fillseq, fillseqbatch, overwrite), or leave it out"
            )


WARNINGS: PlanWarnings = of_plan
