"""What is found after one cut, and what that is called: a pure judgement of what was seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bedplate.model.power_cut import PointOutcome, PointRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.model.page_writes import RecoveredPages
    from bedplate.model.power_cut import CutPoint
    from bedplate.visit.cut_engine import OracleAnswer
    from bedplate.workloads.power_cut.run.acknowledged import Acknowledged
    from bedplate.workloads.power_cut.run.pages import PagePlaces
    from bedplate.workloads.power_cut.run.window import CrashState

# Enough for a person; a page of errors says no more.
_PROBLEMS_KEPT = 8
# Of these the file system's: the first says why it did not mount, the last which repair it was that let it.
_MOUNTING_KEPT, _REPAIRING_KEPT = 2, 3
_PROBLEM_LENGTH = 400


@dataclass(frozen=True)
class Recovered:
    """How a file system came back. `mounted` is false where neither a mount nor its repair helped.

    `repaired` says that it mounted only after a repair; `unclean` that its check found errors once the oracle had been
    asked and it was unmounted again, None where it was not checked. `replay_failed` says that a repair went on without the
    journal, which it could not replay. `refused` is why the first mount failed that did, None if none did. `kernel_said` is what the
    file system complained of in the kernel's log, None where nobody listened. `counted` is what it said of errors to who asked it.
    `pages` is how a server's pages came to it, and `places` where they lay in the end, None where nobody looked.
    Times in seconds.
    """

    mounted: bool
    repaired: bool = False
    unclean: bool | None = None
    replay_failed: bool = False
    mount_s: float | None = None
    fsck_s: float | None = None
    refused: str | None = None
    problems: tuple[str, ...] = ()
    kernel_said: tuple[str, ...] | None = None
    counted: tuple[str, ...] = ()
    pages: RecoveredPages | None = None
    places: PagePlaces | None = None


def why_again(recovered: Recovered, answer: OracleAnswer | None) -> str | None:
    """Why an image is built again and looked at once more: what may be the machine's fault as well as the image's. None without a reason."""
    if recovered.refused is not None:
        return recovered.refused
    return answer.detected[0] if answer is not None and answer.out_of_time else None


def looked_again(first: str | None, second: str | None, record: PointRecord) -> PointRecord:
    """The record of a second look, at an image that was built again, beside what ended the first one.

    What is wrong with an image is wrong with a copy of it. Where the second look needed no third, it was something else.
    """
    if first is None or second is not None:
        return record
    return replace(record, failed_once=_shortened(first))


def judge(
    point: CutPoint,
    window: CrashState,
    acknowledged: Acknowledged,
    recovered: Recovered,
    answer: OracleAnswer | None,
) -> PointRecord:
    """One point's record; `answer` is None where there was no file system to ask an engine on."""
    present = None if answer is None else answer.present
    missing = None if present is None else acknowledged.missing(present)
    found = () if answer is None else (*answer.detected, *answer.silent)
    lost = (
        ()
        if missing is None or not missing.transactions
        else (_lost_words(missing.transactions, acknowledged),)
    )
    return PointRecord(
        point=point,
        outcome=_outcome(recovered, answer, lost=bool(lost)),
        flush_position=window.flush_position,
        volatile_writes=window.volatile_writes,
        volatile_discards=window.volatile_discards,
        volatile_bytes=window.volatile_bytes,
        kept_writes=window.kept_writes,
        acknowledged=acknowledged.transactions,
        lost_transactions=0 if missing is None else missing.transactions,
        lost_ms=None if missing is None else missing.first_ms,
        consistent=not found if found or present is not None else None,
        mount_s=recovered.mount_s,
        fsck_s=recovered.fsck_s,
        engine_start_s=None if answer is None else answer.start_s,
        oracle_s=None if answer is None else answer.oracle_s,
        unclean=recovered.unclean,
        replay_failed=recovered.replay_failed,
        kernel_said=recovered.kernel_said,
        engine_said=() if answer is None else tuple(map(_shortened, answer.disk_errors)),
        pages=recovered.pages,
        problems=tuple(map(_shortened, _problems(recovered.problems, (*found, *lost)))),
    )


def _problems(of_filesystem: Sequence[str], of_engine: Sequence[str]) -> Sequence[str]:
    """What the file system and its repair said comes first: what an engine misses then is what they took."""
    kept = of_filesystem
    if len(kept) > _MOUNTING_KEPT + _REPAIRING_KEPT:
        kept = (*kept[:_MOUNTING_KEPT], *kept[-_REPAIRING_KEPT:])
    return (*kept, *of_engine)[:_PROBLEMS_KEPT]


def _outcome(recovered: Recovered, answer: OracleAnswer | None, *, lost: bool) -> PointOutcome:
    """The gravest of what was found."""
    if answer is None or not recovered.mounted:
        return PointOutcome.FILE_SYSTEM_LOST
    # An engine that complains and is wrong besides has been caught; one that only is wrong has not.
    if answer.detected:
        return PointOutcome.DETECTED
    if answer.silent:
        return PointOutcome.SILENT
    if lost:
        return PointOutcome.LOST
    if recovered.repaired or recovered.unclean:
        return PointOutcome.NEEDS_FSCK
    return PointOutcome.OK


def _lost_words(transactions: int, acknowledged: Acknowledged) -> str:
    return f"{transactions} of {acknowledged.transactions} acknowledged transactions are missing"


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _PROBLEM_LENGTH else f"{line[: _PROBLEM_LENGTH - 1]}…"
