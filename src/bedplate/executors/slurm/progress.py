"""Where a fleet's study stands, by node: what its job does, how much is left, and until when."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, StudyError
from bedplate.executors.slurm.layout import FleetLayout
from bedplate.model.visit import Outcome
from bedplate.study.checksums import VisitFiles
from bedplate.study.layout import StudyLayout
from bedplate.study.schedule import read_schedule
from bedplate.study.stored import read_record, visits_by_place

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bedplate.executors.slurm.controller import JobState, Slurm
    from bedplate.model.plan import ScheduledVisit
    from bedplate.model.visit import VisitRecord


@dataclass(frozen=True)
class NodeProgress:
    """One node. `job` and `state` are None where no job of this study waits or runs there.

    A damaged visit counts as one that failed. `waiting` results are in their job's folder and not in the study yet. `seconds_left` is None before the
    first visit has completed anywhere. `seen` is False where Slurm was not asked, or did not answer.
    """

    node: str
    completed: int
    failed: int
    left: int
    job: str | None
    state: str | None
    repetition: int | None
    waiting: int
    seconds_left: float | None
    seen: bool


def read_fleet(study: Path, slurm: Slurm | None) -> tuple[NodeProgress, ...]:
    """Every node of a fleet's study in the order of the plan; empty for a study of one machine."""
    layout = StudyLayout(study)
    schedule = read_schedule(layout)
    by_node: dict[str, list[ScheduledVisit]] = defaultdict(list)
    for visit in schedule.visits:
        if visit.node is not None:
            by_node[visit.node].append(visit)
    if not by_node:
        return ()
    records: dict[str, list[VisitRecord]] = defaultdict(list)
    damaged: Counter[str] = Counter()
    scheduled = visits_by_place(schedule)
    for node, visits in by_node.items():
        for visit in visits:
            attempts = layout.attempts_at(visit)
            if attempts:
                try:
                    records[node].append(read_record(VisitFiles(attempts[max(attempts)]), scheduled))
                except StudyError:
                    damaged[node] += 1
    seconds = [
        record.whole_seconds or record.seconds
        for found in records.values()
        for record in found
        # One that was lost took no time worth the name.
        if record.outcome is Outcome.COMPLETED
    ]
    mean_s = sum(seconds) / len(seconds) if seconds else None
    listing = _listing(slurm)
    jobs = _jobs(study, listing)
    return tuple(
        _node(
            node,
            len(visits),
            records[node],
            jobs.get(node),
            mean_s,
            damaged=damaged[node],
            seen=listing is not None,
        )
        for node, visits in by_node.items()
    )


@dataclass(frozen=True)
class _Job:
    number: str | None
    state: str
    repetition: int
    waiting: int


def _jobs(study: Path, listing: Mapping[str, JobState] | None) -> dict[str, _Job]:
    """The first unsettled job of each node, which is the one that runs or runs next."""
    found: dict[str, _Job] = {}
    layout = FleetLayout.of_study(study)
    for folder in layout.jobs.unsettled():
        order, submitted, end = folder.order, folder.submission, folder.end
        # One that ended and left nothing more was collected by a start that was killed before it said so.
        is_collected = end is not None and not folder.finished()
        if is_collected or not layout.is_own(order):
            continue
        if end is not None:
            state = "ended, to be collected"
        elif listing is not None and order.name in listing:
            state = listing[order.name].words
        else:
            state = "begun" if folder.is_taken() else "submitted"
        found.setdefault(
            order.node,
            _Job(submitted.job if submitted else None, state, order.repetition, len(folder.finished())),
        )
    return found


def _node(
    node: str,
    visits: int,
    records: list[VisitRecord],
    job: _Job | None,
    mean_s: float | None,
    *,
    damaged: int,
    seen: bool,
) -> NodeProgress:
    left = visits - len(records) - damaged
    return NodeProgress(
        node=node,
        completed=sum(record.outcome is Outcome.COMPLETED for record in records),
        failed=damaged + sum(record.outcome is not Outcome.COMPLETED for record in records),
        left=left,
        job=job.number if job else None,
        state=job.state if job else None,
        repetition=job.repetition if job else None,
        waiting=job.waiting if job else 0,
        seconds_left=None if mean_s is None else left * mean_s,
        seen=seen,
    )


def _listing(slurm: Slurm | None) -> Mapping[str, JobState] | None:
    if slurm is None:
        return None
    try:
        return slurm.jobs()
    except BedplateError:
        return None
