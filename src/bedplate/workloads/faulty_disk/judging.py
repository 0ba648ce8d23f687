"""What a fault is called by what was seen: codes and counts in, codes out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.power_cut import PointOutcome
from bedplate.workloads.faulty_disk.records import Detected, FaultVerdict, Seen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.model.power_cut import PointRecord

_LOST = {
    PointOutcome.LOST: FaultVerdict.LOST_SILENT,
    PointOutcome.SILENT: FaultVerdict.LOST_SILENT,
    PointOutcome.DETECTED: FaultVerdict.LOST_DETECTED,
    PointOutcome.FILE_SYSTEM_LOST: FaultVerdict.LOST_DETECTED,
}


def verdict_of(
    left: PointOutcome,
    seen: Seen,
    *,
    is_hit: bool,
    writable: bool,
    is_repaired: bool = False,
    is_bounded: bool = False,
    is_unseen: bool = False,
    is_said: bool = False,
    ended_early: bool = False,
) -> FaultVerdict:
    """`left` is what was found after the file system had been mounted anew, which took a repair or not.

    A loss `is_bounded` by the engine's settings or not: they bound what an engine loses that stops or is killed, or that bedplate `ended_early`. What is
    missing behind a repair nobody takes for whole. A fault `is_unseen` where the disk was quiet about it and nobody said anything. A loss `is_said` where the
    engine's log has an error of the disk of what is left: who reads it knows, though the engine works on.
    """
    if not is_hit:
        return FaultVerdict.NOT_HIT
    if left in _LOST and is_repaired:
        return FaultVerdict.LOST_DETECTED
    if left is PointOutcome.LOST and is_bounded and (seen is not Seen.WENT_ON or ended_early):
        return FaultVerdict.BOUNDED
    if left in _LOST:
        return FaultVerdict.LOST_DETECTED if is_said else _LOST[left]
    if left is PointOutcome.NEEDS_FSCK:
        return FaultVerdict.REPAIRED
    if seen is Seen.HUNG:
        return FaultVerdict.HUNG
    if not writable:
        return FaultVerdict.READ_ONLY
    if is_unseen and seen is Seen.WENT_ON:
        return FaultVerdict.NO_TRACE
    return FaultVerdict.STOPPED if seen is Seen.STOPPED else FaultVerdict.WENT_ON


def detected_by(
    left: PointOutcome,
    seen: Seen,
    *,
    writable: bool,
    kernel_spoke: bool,
    engine_spoke: bool,
    is_repaired: bool = False,
) -> tuple[Detected, ...]:
    """Who said that something was wrong. `engine_spoke` says that it gave an error that stopped no client.

    A repair speaks for the file system where a mount had asked for it, and not where a check found that nobody makes.
    """

    def found() -> Iterator[Detected]:
        if kernel_spoke or is_repaired or not writable or left is PointOutcome.FILE_SYSTEM_LOST:
            yield Detected.FILE_SYSTEM
        if engine_spoke or seen is Seen.STOPPED or left is PointOutcome.DETECTED:
            yield Detected.ENGINE

    return tuple(found())


def within_bound(
    left: PointRecord, bound_ms: float | None, bound_transactions: int | None, *, after_ms: float = 0.0
) -> bool:
    """Whether no more is missing than the engine's settings allow; a loss of unknown age is within no time.

    The age of a loss is held against the last acknowledgement, which was `after_ms` before the recording's end: the engine
    stopped then, and not when the file system was unmounted.
    """
    by_count = bound_transactions is not None and left.lost_transactions <= bound_transactions
    by_time = bound_ms is not None and left.lost_ms is not None and left.lost_ms - after_ms <= bound_ms
    return by_count or by_time
