"""What became of a job, from its folder first and from Slurm's word second.

The folder is the truth: a job that says `done` is done, whatever its state and its exit code. Slurm's state only
explains why a job has not said so. What Slurm does not know any more is lost; what it cannot tell now is waited
for. The signatures of these cases were taken from a real Slurm 22.05 (docs/FLEET.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from bedplate.executors.slurm.job_folder import WITHDRAWN, JobClaim, end_of_log

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from bedplate.executors.slurm.controller import JobState
    from bedplate.executors.slurm.job_folder import JobEnd, JobFolder, JobOrder

# Files of another machine appear on a shared file system some time after they were written: NFS may go by what it
# knows of a folder for a minute (acdirmax in nfs(5)).
FILE_GRACE_S = 75.0
# A job that was submitted a moment ago may not be listed yet.
LISTING_GRACE_S = 30.0
# A log may be gigabytes of a tool's, and a line of it a sentence's worth.
_LAST_BYTES = 300


class Fate(Enum):
    """How a job ended: in order, before its time limit, by its node's fault, asked to, lost, or never begun."""

    DONE = "done"
    LIMIT = "limit"
    UNFIT = "unfit"
    STOPPED = "stopped"
    LOST = "lost"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class JobOutcome:
    """A fate with its sentence, and Slurm's state where it says one."""

    fate: Fate
    sentence: str
    state: str = ""


class Judge:
    """Looks at one job again and again until it has ended."""

    def __init__(
        self, *, file_grace_s: float = FILE_GRACE_S, listing_grace_s: float = LISTING_GRACE_S
    ) -> None:
        self._file_grace_s = file_grace_s
        self._listing_grace_s = listing_grace_s
        self._ended_since_s: float | None = None
        self._missing_since_s: float | None = None
        self._was_taken = False

    def judge(
        self,
        job: JobFolder,
        order: JobOrder,
        listing: Mapping[str, JobState] | None,
        *,
        results: Callable[[], int],
        now_s: float,
    ) -> JobOutcome | None:
        """What became of the job; None while it waits or lives, or while nobody can tell.

        `listing` is Slurm's word, None where the controller is silent; `results` says how many of the job's
        have been seen; `now_s` is a monotonic clock. Makes sure, of a job that never began, that it never will.
        """
        end = job.end
        if end is not None and results() < end.results and not self._has_waited(now_s):
            return None
        if end is not None and end.why in {"done", "limit", "unfit", "refused"}:
            fate = Fate.LOST if end.why == "refused" else Fate(end.why)
            return JobOutcome(fate, f"{self._called(job, order)}: {end.sentence}")
        if listing is None:
            return None
        state = listing.get(order.name)
        if state is None:
            return self._not_listed(job, order, end, now_s)
        self._missing_since_s = None
        if state.is_held:
            return _sealed(job, JobOutcome(Fate.LOST, self._sentence(job, order, state), state.state))
        # A job that began and waits was put back; it would find its order taken. A listing may be older than that.
        put_back = state.waits and job.is_taken()
        if not state.has_ended and not put_back:
            self._ended_since_s = None
            return None
        if (end is None or put_back) and not self._has_waited(now_s):
            return None
        fate = {"TIMEOUT": Fate.LIMIT, "CANCELLED": Fate.STOPPED, "PREEMPTED": Fate.STOPPED}.get(
            state.state, Fate.LOST if end is None else Fate.STOPPED
        )
        return _sealed(job, JobOutcome(fate, self._sentence(job, order, state), state.state))

    def _has_waited(self, now_s: float) -> bool:
        """Whether files of the job had time to appear since it was first seen to have ended."""
        self._ended_since_s = self._ended_since_s or now_s
        return now_s - self._ended_since_s >= self._file_grace_s

    def _not_listed(
        self, job: JobFolder, order: JobOrder, end: JobEnd | None, now_s: float
    ) -> JobOutcome | None:
        if end is not None:
            return JobOutcome(Fate.STOPPED, f"{self._called(job, order)}: {end.sentence}")
        # One that has begun since Slurm was asked is in its next listing.
        began, self._was_taken = job.is_taken() and not self._was_taken, job.is_taken()
        self._missing_since_s = now_s if began else self._missing_since_s or now_s
        if now_s - self._missing_since_s < self._listing_grace_s:
            return None
        claim = job.claim
        if job.submission is None and (claim is None or claim.by == WITHDRAWN):
            words = f"repetition {order.repetition} on {order.node} was laid out and never submitted"
            # Whether a job has it is asked of the file system's server, not of what is remembered here.
            free = claim is not None or job.take(JobClaim(WITHDRAWN))
            return JobOutcome(Fate.WITHDRAWN, words) if free else None
        if claim is not None and claim.by == WITHDRAWN:
            words = f"{self._called(job, order)}: its order was taken back before it began"
            return JobOutcome(Fate.STOPPED, words)
        words = (
            f"{self._called(job, order)}: Slurm does not know it any more, and it did not say how it ended"
        )
        return _sealed(job, JobOutcome(Fate.LOST, words))

    @staticmethod
    def _called(job: JobFolder, order: JobOrder) -> str:
        submission = job.submission
        number = f"Slurm job {submission.job}" if submission else f"job {order.name}"
        return f"{number} on {order.node}"

    def _sentence(self, job: JobFolder, order: JobOrder, state: JobState) -> str:
        last = _last_line(job.log)
        said = "; it left no log" if last is None else f"; its log: {job.log}" + (last and f" (“{last}”)")
        end = job.end
        how = "did not say so itself" if end is None else f"says that {end.sentence}"
        return f"{self._called(job, order)} ended as {state.words} and {how}{said}"


def _last_line(log: Path) -> str | None:
    """The end of what the job said last, empty where it said nothing; None without a log."""
    said = end_of_log(log, _LAST_BYTES)
    if said is None:
        return None
    lines = said.decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _sealed(job: JobFolder, verdict: JobOutcome) -> JobOutcome | None:
    """The verdict, once no job can begin with this order; None if one just has."""
    had = job.is_taken()
    if had or job.take(JobClaim(WITHDRAWN)):
        return verdict
    return None
