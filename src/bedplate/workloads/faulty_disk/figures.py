"""The figures of a run of faults: of all of them, and of the tries of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.figures.protocol import Made, run_figures
from bedplate.figures.unfinished import NOT_COMPLETED, NOTHING_MEASURED, unreadable
from bedplate.model.metrics import figure
from bedplate.model.reason import because
from bedplate.model.visit import Outcome, Validity
from bedplate.workloads.faulty_disk.model import FAULTS_LEVEL, TRIES
from bedplate.workloads.faulty_disk.records import FaultVerdict, Seen
from bedplate.workloads.faulty_disk.tries import read_tries
from bedplate.workloads.faulty_disk.validity import VALIDITY, evidence_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from bedplate.figures.protocol import FigureMaker
    from bedplate.model.figure import Figure, RunFigures
    from bedplate.model.reason import Reason
    from bedplate.model.visit import RunRecord
    from bedplate.workloads.faulty_disk.records import FaultRecord

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
        verdict = VALIDITY.judge(evidence_of(tries, asked(record)))
        found = [*_figures(tries.tried)]
        for fault, records in tries.by_fault.items():
            found += _figures(records, phase=FAULT_PHASE, item=fault)
        return Made(_frame(record, verdict, found), {})


def asked(record: RunRecord) -> int:
    """How many tries a run was to make, without the controls."""
    names = (record.spec.levels.text(FAULTS_LEVEL) or "").split(",")
    return len(names) * (record.spec.levels.integer(TRIES) or 1)


def _figures(records: Sequence[FaultRecord], *, phase: str = "measure", item: str = "") -> Iterator[Figure]:
    hit = [record for record in records if record.is_result]
    yield figure("faults_hit", len(hit), phase=phase, item=item)
    yield figure("faults_not_hit", len(records) - len(hit), phase=phase, item=item)
    for metric, count in (
        ("faults_lost", sum(record.verdict.is_lost for record in hit)),
        ("faults_lost_silently", sum(record.verdict is FaultVerdict.LOST_SILENT for record in hit)),
        ("faults_stopped", sum(record.seen is not Seen.WENT_ON for record in hit)),
    ):
        yield figure(metric, count if hit else None, phase=phase, item=item, reason=_NOT_HIT)


def _unknown(record: RunRecord, why: Reason, problems: Sequence[str]) -> Made:
    return Made(_frame(record, (Validity.UNKNOWN, (why, *unreadable(problems))), ()), {})


def _frame(
    record: RunRecord, verdict: tuple[Validity, tuple[Reason, ...]], figures: Sequence[Figure]
) -> RunFigures:
    return run_figures(record, verdict, figures, start_wall_s=None, duration_s=None)


FIGURES: FigureMaker = FaultyDiskFigures()
