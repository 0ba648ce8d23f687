"""A bisection from both ends to the commit: what git asks for is judged, kept, and told to git again.

How a commit is judged says a `CommitJudge`; here nothing is measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from bedplate.campaign.bisection.history import BAD, GOOD, SKIP, BisectHistory
from bedplate.campaign.bisection.record import read_bisection, write_bisection
from bedplate.errors import StudyError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bedplate.campaign.bisection.history import Ends
    from bedplate.campaign.bisection.record import BisectionRecord, JudgedCommit
    from bedplate.model.source_commit import SourceCommit


class CommitJudge(Protocol):
    """Holds a commit against the good one."""

    def ends(self, bad: SourceCommit) -> JudgedCommit:
        """The bad commit, held against the good one. It is `bad` only where that is sure, and the good one is not bad itself."""
        ...

    def commit(self, candidate: SourceCommit) -> JudgedCommit:
        """A commit that git asks for: `good`, `bad`, or `skip` where it cannot be built or run."""
        ...


class BisectEnding(Enum):
    """How a bisection ended."""

    FOUND = "found"
    # Only skipped commits are left between the last good and the first bad one.
    SKIPPED = "skipped"
    # The bad end is not bad.
    NO_BAD_COMMIT = "no bad commit"
    # Whether the bad end is bad was not known when its time was gone.
    NOT_KNOWN = "not known"


@dataclass(frozen=True)
class Bisected:
    """What a bisection came to. `first_bad` is the commit that made it so, `any_of` those that it may be."""

    ends: Ends
    record: BisectionRecord
    ending: BisectEnding
    first_bad: SourceCommit | None = None
    parents: tuple[SourceCommit, ...] = ()
    any_of: tuple[SourceCommit, ...] = ()

    @property
    def visits(self) -> int:
        """Of all studies together."""
        judged = (*self.record.judged, *((self.record.ends,) if self.record.ends is not None else ()))
        return sum(each.visits for each in judged)

    def of(self, commit: str) -> JudgedCommit | None:
        """What a commit was found to be; None of one that was not asked for."""
        ends = self.record.ends
        if ends is not None and ends.commit == commit:
            return ends
        return next((each for each in self.record.judged if each.commit == commit), None)


def bisect(
    place: Path, ends: Ends, asked: BisectionRecord, judge: CommitJudge, *, tell: Callable[[str], None]
) -> Bisected:
    """Find the commit, or go on with it. StudyError where the folder has another bisection."""
    record = read_bisection(place)
    if record is None:
        record = asked
        write_bisection(place, record)
    elif replace(record, ends=None, judged=()) != asked:
        raise StudyError(
            f"{place} has another bisection, of {record.good[:12]} to {record.bad[:12]} for {record.condition!r:.100}; name another --directory"
        )
    # What was not known when its time was gone may be known with more of it.
    if record.ends is None or record.ends.verdict == SKIP:
        record = replace(record, ends=judge.ends(ends.bad))
        write_bisection(place, record)
    at_end = record.ends
    if at_end is None:
        raise AssertionError("both ends were judged")
    tell(f"bisect: both ends: {at_end.words}")
    if at_end.verdict != BAD:
        ending = BisectEnding.NO_BAD_COMMIT if at_end.verdict == GOOD else BisectEnding.NOT_KNOWN
        return Bisected(ends, record, ending)
    history = BisectHistory(ends)
    while True:
        step = history.next([(each.commit, each.verdict) for each in record.judged])
        if step.commit is None:
            break
        candidate = history.commit(step.commit)
        tell(f"bisect: commit {len(record.judged) + 1}: {candidate.level}")
        found = judge.commit(candidate)
        record = replace(record, judged=(*record.judged, found))
        write_bisection(place, record)
        tell(f"bisect: {found.verdict}: {found.words}")
    if step.first_bad is None:
        return Bisected(ends, record, BisectEnding.SKIPPED, any_of=tuple(map(history.commit, step.any_of)))
    parents = tuple(map(history.commit, history.parents(step.first_bad)))
    return Bisected(ends, record, BisectEnding.FOUND, history.commit(step.first_bad), parents)
