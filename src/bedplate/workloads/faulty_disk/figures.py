"""The figures of a run of faults: of all of them, and of the tries of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bedplate.cuts.faults import (
    CONTROL_LOST,
    CONTROL_WHOLE,
    FaultRecord,
    FaultTries,
    FaultVerdict,
    Seen,
    read_tries,
)
from bedplate.cuts.records import PointOutcome
from bedplate.figures.run import FigureMaker, Made, run_figures
from bedplate.figures.samples import RunEvidence
from bedplate.model.figure import Figure, RunFigures
from bedplate.model.metrics import figure
from bedplate.model.reason import Reason, because
from bedplate.model.rules import (
    INPUT_UNREADABLE,
    NOT_COMPLETED,
    NOTHING_MEASURED,
    Rule,
    RunRules,
    Spoken,
    spoken,
    unreadable,
)
from bedplate.model.visit import Outcome, RunRecord, Validity
from bedplate.workloads.faulty_disk.model import FAULTS_LEVEL, TRIES


@dataclass(frozen=True, kw_only=True)
class FaultEvidence(RunEvidence):
    """What the rules look at: nothing is timed, and the kernel complains of the disk that fails."""

    try_count: int
    tries: FaultTries

    def control(self, name: str) -> FaultRecord | None:
        """The try of a control."""
        return next((record for record in self.tries.controls if record.fault == name), None)


def evidence_of(tries: FaultTries, try_count: int) -> FaultEvidence:
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
        try_count=try_count,
        tries=tries,
    )


# What an oracle has seen, which is not asked where the file system is lost.
_SEEN = (PointOutcome.LOST, PointOutcome.SILENT, PointOutcome.DETECTED)


def _missing(evidence: FaultEvidence) -> Spoken | None:
    tried = len(evidence.tries.tried)
    if tried >= evidence.try_count:
        return None
    return spoken(f"{tried} of {evidence.try_count} faults were tried", tried=tried, asked=evidence.try_count)


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

FAULT_PHASE = "fault"

_NOT_HIT = because("fault-not-hit", "nothing met the fault, or nobody missed what it took")


class FaultyDiskFigures:
    """Makes the figures of runs whose workload is `faulty_disk`; the tries stay, as they have the evidence."""

    bulky: tuple[str, ...] = ()

    def make(self, visit_directory: Path, run_directory: Path, record: RunRecord) -> Made:  # noqa: ARG002 -- of the run alone
        """Read the raw record of a run and make everything of it."""
        tries = read_tries(run_directory)
        if not tries.tried:
            return _unknown(record, NOTHING_MEASURED, tries.problems)
        if record.outcome is not Outcome.COMPLETED:
            return _unknown(record, NOT_COMPLETED, tries.problems)
        verdict = VALIDITY.judge(evidence_of(tries, tries_requested(record)))
        found = [*_figures(tries.tried)]
        for fault, records in tries.by_fault.items():
            found += _figures(records, phase=FAULT_PHASE, item=fault)
        return Made(_frame(record, verdict, found), {})


def tries_requested(record: RunRecord) -> int:
    """How many tries a run was to make, without the controls."""
    names = (record.spec.levels.text(FAULTS_LEVEL) or "").split(",")
    return len(names) * (record.spec.levels.integer(TRIES) or 1)


def _figures(
    fault_records: Sequence[FaultRecord], *, phase: str = "measure", item: str = ""
) -> Iterator[Figure]:
    hit = [record for record in fault_records if record.is_result]
    yield figure("faults_hit", len(hit), phase=phase, item=item)
    yield figure("faults_not_hit", len(fault_records) - len(hit), phase=phase, item=item)
    for metric, count in (
        ("faults_lost", sum(record.verdict.is_lost for record in hit)),
        ("faults_lost_silently", sum(record.verdict is FaultVerdict.LOST_SILENT for record in hit)),
        ("faults_stopped", sum(record.seen is not Seen.WENT_ON for record in hit)),
    ):
        yield figure(metric, count if hit else None, phase=phase, item=item, reason=_NOT_HIT)


def _unknown(record: RunRecord, reason: Reason, problems: Sequence[str]) -> Made:
    return Made(_frame(record, (Validity.UNKNOWN, (reason, *unreadable(problems))), ()), {})


def _frame(
    record: RunRecord, judgement: tuple[Validity, tuple[Reason, ...]], figures: Sequence[Figure]
) -> RunFigures:
    return run_figures(record, judgement, figures, start_wall_s=None, duration_s=None)


FIGURES: FigureMaker = FaultyDiskFigures()
