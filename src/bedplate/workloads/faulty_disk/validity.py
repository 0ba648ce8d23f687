"""Whether what came of a run of faults may be believed: what must be whole was, and what must be missed was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.figures.evidence import RunEvidence
from bedplate.figures.rule import Rule, RunRules, Spoken, spoken
from bedplate.figures.validity import INPUT_UNREADABLE
from bedplate.model.power_cut import PointOutcome
from bedplate.model.visit import Validity
from bedplate.workloads.faulty_disk.faults import CONTROL_LOST, CONTROL_WHOLE
from bedplate.workloads.faulty_disk.records import FaultRecord, FaultVerdict

if TYPE_CHECKING:
    from bedplate.workloads.faulty_disk.tries import FaultTries


@dataclass(frozen=True, kw_only=True)
class FaultEvidence(RunEvidence):
    """What the rules look at: nothing is timed, and the kernel complains of the disk that fails."""

    asked: int
    tries: FaultTries

    def control(self, name: str) -> FaultRecord | None:
        """The try of a control."""
        return next((record for record in self.tries.controls if record.fault == name), None)


def evidence_of(tries: FaultTries, asked: int) -> FaultEvidence:
    """Of one run, of which so many faults were to be tried."""
    return FaultEvidence(
        duration_s=0.0,
        windows=(),
        complaints=(),
        kernel_messages=(),
        clock_step_s=None,
        steal_share=None,
        course_problem=None,
        problems=tries.problems,
        asked=asked,
        tries=tries,
    )


# What an oracle has seen, which is not asked where the file system is lost.
_SEEN = (PointOutcome.LOST, PointOutcome.SILENT, PointOutcome.DETECTED)


def _missing(evidence: FaultEvidence) -> Spoken | None:
    tried = len(evidence.tries.tried)
    if tried >= evidence.asked:
        return None
    return spoken(f"{tried} of {evidence.asked} faults were tried", tried=tried, asked=evidence.asked)


def _not_whole(evidence: FaultEvidence) -> Spoken | str | None:
    found = evidence.control(CONTROL_WHOLE.name)
    if found is None:
        return "no try was made without a fault"
    if found.verdict is FaultVerdict.WENT_ON and not found.detected:
        return None
    words = "; ".join((*found.found, *found.said))
    return spoken(f"without any fault: {found.verdict.value} ({words})", verdict=found.verdict.value)


def _not_seen(evidence: FaultEvidence) -> Spoken | str | None:
    found = evidence.control(CONTROL_LOST.name)
    if found is None:
        return "no try was made in which every write is lost"
    if found.verdict.is_lost and found.left in _SEEN:
        return None
    return spoken(
        f"every write of the disk was lost from a moment on, and nothing was missed: {found.verdict.value}",
        verdict=found.verdict.value,
    )


def _none_hit(evidence: FaultEvidence) -> str | None:
    tried = evidence.tries.tried
    if not tried or any(record.is_result for record in tried):
        return None
    return f"none of {len(tried)} faults came to a result"


NOT_WHOLE: Rule[FaultEvidence] = Rule(
    "control without a fault not whole",
    "the try without a fault was stopped, something acknowledged was missing, nothing was acknowledged, or somebody complained",
    "what is missing or said without a fault is missing or said with one",
    _not_whole,
)
NOT_SEEN: Rule[FaultEvidence] = Rule(
    "lost writes not seen",
    "every write was lost from a moment on, and the oracle found all that was acknowledged, or was not asked",
    "an oracle that does not see that sees nothing",
    _not_seen,
)
NONE_HIT: Rule[FaultEvidence] = Rule(
    "no fault hit",
    "nothing met any of the faults, or nobody missed what they took",
    "a fault that was never hit, or left no trace, is no result",
    _none_hit,
    verdict=Validity.UNKNOWN,
)
VALIDITY: RunRules[FaultEvidence] = RunRules(
    "faulty disks",
    (
        INPUT_UNREADABLE,
        Rule(
            "faults missing",
            "fewer faults were tried than the plan asks for",
            "what did not end well may be what is missing",
            _missing,
        ),
        NOT_WHOLE,
        NOT_SEEN,
        NONE_HIT,
    ),
)
