"""What is said of a run that has no figures because it did not come so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.figures.protocol import run_figures
from bedplate.figures.validity import INPUT_UNREADABLE
from bedplate.model.reason import Reason, because
from bedplate.model.visit import Validity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bedplate.figures.inputs import RunInputs
    from bedplate.model.figure import RunFigures

NOTHING_MEASURED = because("nothing-measured", "nothing was measured")
NOT_COMPLETED = because("run-not-completed", "the run did not complete")


def unmeasured(inputs: RunInputs, *, warmup_s: float | None = None) -> RunFigures:
    """A run that did not come to its measurement has reasons and no figures."""
    verdict = (Validity.UNKNOWN, (NOTHING_MEASURED, *unreadable(inputs.problems)))
    return run_figures(inputs.record, verdict, start_wall_s=None, duration_s=None, warmup_s=warmup_s)


def not_completed(inputs: RunInputs) -> tuple[Validity, tuple[Reason, ...]]:
    """The verdict on a run that began and failed: what it counted would be read as its speed."""
    return Validity.UNKNOWN, (NOT_COMPLETED, *unreadable(inputs.problems))


def unreadable(problems: Iterable[str]) -> tuple[Reason, ...]:
    """What cannot be read, as reasons."""
    return tuple(Reason(INPUT_UNREADABLE.code, words) for words in problems)
