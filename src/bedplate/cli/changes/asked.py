"""How a change is measured, whatever it is: what `ab` and `bisect` are both asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.campaign.paired.sides import paired_plan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bedplate.campaign.paired.sides import Change, PairedPlan
    from bedplate.study.paired import PairedRecord


@dataclass(frozen=True)
class PairsAsked:
    """The plan that both sides run, what is compared, and for how long at most."""

    plan: Path | None
    types: Sequence[str]
    executor: str | None
    workload: str | None
    metrics: tuple[str, ...]
    budget_s: float
    accepted: tuple[str, ...]

    def paired(self, change: Change, repetitions: int) -> PairedPlan:
        """The plan of a change, with its first blocks."""
        return paired_plan(
            change, plan=self.plan, types=self.types, executor=self.executor, repetitions=repetitions
        )

    def record(
        self, plan: PairedPlan, *, margin: float, metrics: tuple[str, ...] = (), condition: str | None = None
    ) -> PairedRecord:
        """What the study of a plan asks; `metrics` take the place of those of the call."""
        return plan.record(
            budget_s=self.budget_s,
            margin=margin,
            workload=self.workload,
            metrics=metrics or self.metrics,
            accepted=self.accepted,
            condition=condition,
        )
