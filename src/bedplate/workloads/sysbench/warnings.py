"""What a plan may ask of sysbench although its runs will be `suspect`, or will fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.postgresql.checkpoints import too_short
from bedplate.engines.postgresql.connections import too_many_clients
from bedplate.model.engines import POSTGRESQL
from bedplate.workloads.sysbench.model import READ_ONLY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.model.plan import Plan
    from bedplate.plan.warnings import PlanWarnings


def of_plan(plan: Plan) -> Iterator[str]:
    """Sentences; of a server with fuzzy checkpoints nobody knows beforehand how soon its log turns over."""
    for workload in plan.workloads:
        if workload.type == "sysbench" and plan.runs_on(workload, POSTGRESQL):
            for run in workload.runs:
                yield from too_many_clients(plan, run, run.levels.integer("threads") or 1)
                if run.levels.text("script") != READ_ONLY:
                    yield from too_short(plan, run, run.levels.number("warmup_s"))


WARNINGS: PlanWarnings = of_plan
