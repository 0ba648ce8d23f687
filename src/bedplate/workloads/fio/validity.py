"""Whether a completed run of fio may be believed."""

from __future__ import annotations

import os
from dataclasses import dataclass

from bedplate.figures.rule import Rule, RunRules
from bedplate.figures.tool_validity import CACHE_ANSWERED, Moved, ToolEvidence, below
from bedplate.figures.validity import OF_EVERY_TIMED_RUN
from bedplate.units import format_size, percent

# What the kernel holds back at the end was never written at the speed that the tool states.
WRITTEN_SHARE_MIN = 0.5


@dataclass(frozen=True, kw_only=True)
class FioEvidence(ToolEvidence):
    """Of a run of fio: `writes` are those through the page cache, `steady_state_missed` a criterion that was not met, `error` the errno at which it stopped."""

    writes: tuple[Moved, ...]
    steady_state_missed: str | None
    error: int


def _not_on_the_device(evidence: FioEvidence) -> str | None:
    found = [
        f"{moved.what} wrote {format_size(moved.asked_bytes)}, of which the device had {format_size(taken)} when it ended"
        for moved, taken in below(evidence.writes, WRITTEN_SHARE_MIN)
    ]
    return f"the cache took the writes: {'; '.join(found)}" if found else None


def _not_steady(evidence: FioEvidence) -> str | None:
    if evidence.steady_state_missed is None:
        return None
    return f"no steady state: the criterion {evidence.steady_state_missed} was not met before the runtime was over"


def _stopped(evidence: FioEvidence) -> str | None:
    if not evidence.error:
        return None
    return f"the job stopped at an error: {os.strerror(evidence.error)} (errno {evidence.error}); its figures are of what it did before"


VALIDITY: RunRules[FioEvidence] = RunRules(
    "fio",
    (
        CACHE_ANSWERED,
        Rule(
            "cache took the writes",
            f"when a job ended that writes through the page cache, the device had less than {percent(WRITTEN_SHARE_MIN)} of "
            "its bytes",
            "the kernel writes later, and the job's time ends before; the limit is a convention of bedplate",
            _not_on_the_device,
        ),
        Rule(
            "no steady state",
            "the job asks for a steady state, and fio's criterion was not met",
            "SNIA, “Solid State Storage Performance Test Specification”: figures of a drive that still settles are transient",
            _not_steady,
        ),
        Rule(
            "job stopped",
            "fio's JSON has an error for the job",
            "figures of a job that stopped are those until then",
            _stopped,
        ),
        *OF_EVERY_TIMED_RUN,
    ),
)
