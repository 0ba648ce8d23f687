"""The points of a run of power cuts and the facts of its recording, as the run left them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import StudyError
from bedplate.figures.record_lines import read_record_lines
from bedplate.model import codec
from bedplate.model.power_cut import (
    POINTS_FILE,
    RECORDING_FILE,
    Placement,
    PointOutcome,
    PointRecord,
    Profile,
    RecordingFacts,
)
from bedplate.model.power_cut_verdict import BOUNDED, LOSS
from bedplate.units import KIB

if TYPE_CHECKING:
    from pathlib import Path

# What a profile tears of a write that it does not keep whole.
_GRAIN_BYTES = {
    Profile.SUBSET_512: 512,
    Profile.SUBSET_4K: 4 * KIB,
    Profile.UNTORN_8K: 4 * KIB,
    Profile.UNTORN_16K: 4 * KIB,
    Profile.SUBSET_8K: 8 * KIB,
    Profile.SUBSET_16K: 16 * KIB,
}


@dataclass(frozen=True)
class Cuts:
    """What was recorded, None where that cannot be read, and what came of each cut; `problems` are what is damaged.

    `points` are cuts of the recording, `recuts` those of the recovery from one of them; of each recovery one stands behind
    everything, and cuts nothing.
    """

    recording: RecordingFacts | None
    points: tuple[PointRecord, ...]
    problems: tuple[str, ...] = ()
    recuts: tuple[PointRecord, ...] = ()


def read_cuts(run_directory: Path) -> Cuts:
    """Read both files of a run; what cannot be read becomes a problem, and the rest is kept.

    A point that stands there twice, as a run that was killed and resumed may leave it, counts once: the last one.
    """
    problems: tuple[str, ...] = ()
    recording = None
    try:
        recording = codec.read(RecordingFacts, run_directory / RECORDING_FILE)
    except StudyError as error:
        problems = tuple(error.reasons)
    records, damage = read_record_lines(PointRecord, run_directory / POINTS_FILE, missing="a point")
    points = {(record.point.control, record.point.number): record for record in records}
    found = points.values()
    return Cuts(
        recording,
        tuple(each for each in found if each.point.recovery_of is None),
        (*problems, *damage),
        tuple(each for each in found if each.point.recovery_of is not None),
    )


def finding_of(record: PointRecord, recording: RecordingFacts | None) -> str:
    """What a cut came to, in the verdict's words: a loss is bounded where the engine's settings bound it that far.

    A loss of unknown size or age is not within a bound, and no loss is of a recording whose facts cannot be read.
    """
    if record.outcome is not PointOutcome.LOST:
        return str(record.outcome.value)
    if recording is None:
        return LOSS
    transactions, ms = recording.bound_transactions, recording.bound_ms
    by_count = transactions is not None and record.lost_transactions <= transactions
    by_time = ms is not None and record.lost_ms is not None and record.lost_ms <= ms
    return BOUNDED if by_count or by_time else LOSS


def recovery_s(record: PointRecord) -> float | None:
    """Seconds until the engine answered again; None where it never did."""
    if record.mount_s is None or record.consistent is None:
        return None
    # An engine without a server has none to start: it answers from a file system that is mounted.
    return record.mount_s + (record.fsck_s or 0.0) + (record.engine_start_s or 0.0)


def tears_pages(record: PointRecord, page_bytes: int) -> bool:
    """Whether writes were torn at a grain within the engine's page, where many of them waited for a flush."""
    point = record.point
    grain_bytes = _GRAIN_BYTES.get(point.profile)
    return (
        not point.control
        and grain_bytes is not None
        and grain_bytes < page_bytes
        and point.placement is Placement.WEIGHTED
        and record.volatile_writes > 0
    )
