"""What became of a run that has no figures, and why it has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.reason import because
from bedplate.model.visit import Outcome

if TYPE_CHECKING:
    from bedplate.model.cell import RunSpec
    from bedplate.model.reason import Reason
    from bedplate.study.stored import SetAside, StoredVisit

_NOT_YET = because("not-run-yet", "not run yet")
_NO_RECORD = because("no-record", "the visit has no record of this run")


def without_figures(
    stored: StoredVisit | None, spec: RunSpec, aside: SetAside | None
) -> tuple[Outcome, tuple[Reason, ...]]:
    """A run that began and left no figures has failed; one that its visit never came to did not run."""
    if aside is not None:
        return Outcome.NOT_RUN, tuple(because("set-aside", f"not used: {reason}") for reason in aside.reasons)
    if stored is None:
        return Outcome.NOT_RUN, (_NOT_YET,)
    if stored.record.outcome is Outcome.COMPLETED:
        return Outcome.NOT_RUN, (_NO_RECORD,)
    return Outcome.FAILED if stored.has_begun(spec) else Outcome.NOT_RUN, stored.record.reasons
