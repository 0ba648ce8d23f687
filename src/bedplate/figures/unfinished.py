"""What is said of a run that has no figures because it did not come so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.figures.validity import INPUT_UNREADABLE
from bedplate.model.figure import RunFigures
from bedplate.model.reason import Reason, because
from bedplate.model.visit import FORMAT_VERSION, Validity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bedplate.figures.inputs import RunInputs

NOTHING_MEASURED = because("nothing-measured", "nothing was measured")
NOT_COMPLETED = because("run-not-completed", "the run did not complete")


def unmeasured(inputs: RunInputs, *, warmup_s: float | None = None) -> RunFigures:
    """A run that did not come to its measurement has reasons and no figures."""
    record = inputs.record
    return RunFigures(
        format_version=FORMAT_VERSION,
        run=record.spec.name,
        run_id=record.spec.id,
        workload=record.spec.workload,
        outcome=record.outcome,
        reasons=record.reasons,
        validity=Validity.UNKNOWN,
        validity_reasons=(NOTHING_MEASURED, *unreadable(inputs.problems)),
        measure_start_wall_s=None,
        warmup_s=warmup_s,
        duration_s=None,
    )


def not_completed(inputs: RunInputs) -> tuple[Validity, tuple[Reason, ...]]:
    """The verdict on a run that began and failed: what it counted would be read as its speed."""
    return Validity.UNKNOWN, (NOT_COMPLETED, *unreadable(inputs.problems))


def unreadable(problems: Iterable[str]) -> tuple[Reason, ...]:
    """What cannot be read, as reasons."""
    return tuple(Reason(INPUT_UNREADABLE.code, words) for words in problems)
