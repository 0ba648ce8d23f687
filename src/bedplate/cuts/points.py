"""The points of a run of power cuts and the facts of its recording, as the run left them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import TypeVar

from bedplate.cuts.records import (
    DRAWN,
    POINTS_FILE,
    RECORDING_FILE,
    PageCounts,
    PageFacts,
    Placement,
    PointOutcome,
    PointRecord,
    Profile,
    RecordingFacts,
    RecoveredPages,
)
from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.model.cell import UNTORN_ON
from bedplate.model.limits import MOST_LINES
from bedplate.model.rules import Spoken, spoken
from bedplate.units import KIB

Record = TypeVar("Record")

# A file that is damaged throughout has as many reasons as lines: a reader learns nothing from the sixth.
_MOST_TOLD = 5

# A line that is no record costs ten times what one costs that is.
_MOST_DAMAGED = 10_000


def read_record_lines(
    kind: type[Record], path: Path, *, missing: str
) -> tuple[tuple[Record, ...], tuple[str, ...]]:
    """The records of a file and what is damaged in it, of which the last sentence counts what is not told.

    A line that cannot be read leaves out one that `missing` names, `a point`; the rest is kept.
    """
    try:
        data = codec.read_bytes(path)
    except StudyError as error:
        return (), tuple(error.reasons)
    # Counted before there are any: an empty line takes fifty times the memory of its one byte.
    if (count := data.count(b"\n")) > MOST_LINES:
        return (), (f"{path} is not read: it has {count:,} lines, and at most {MOST_LINES:,} are",)
    count += bool(data) and not data.endswith(b"\n")
    records: list[Record] = []
    told: list[str] = []
    damaged = 0
    for number, line in enumerate(BytesIO(data), start=1):
        try:
            records.append(codec.loads(kind, line.decode(errors="replace"), source=f"{path}, line {number}"))
        except StudyError as error:
            damaged += 1
            if len(told) < _MOST_TOLD:
                told.append(_damage(error.reasons, missing))
            if damaged == _MOST_DAMAGED:
                break
    if damaged > len(told):
        rest = ", and the rest was not tried" if damaged == _MOST_DAMAGED else ""
        told.append(
            f"{damaged - len(told):,} more lines of {path} cannot be read either{rest}; it has {count:,} lines"
        )
    return tuple(records), tuple(told)


def _damage(reasons: tuple[str, ...], missing: str) -> str:
    first, *rest = reasons
    more = f" (and {len(rest):,} more of this line)" if rest else ""
    return f"{first}{more}: {missing} is missing"


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
    return BOUNDED if within_bound(record, recording.bound_ms, recording.bound_transactions) else LOSS


def as_weaker(record: PointRecord) -> PointRecord:
    """A bad cut as the device leaves it that asks less, and after which it was bad too; ValueError of one that was not."""
    if record.weaker is None:
        raise ValueError(f"cut {record.point.number} was bad with no other device")
    weaker = record.weaker
    return replace(
        record,
        point=replace(record.point, profile=weaker.profile, state=None),
        outcome=weaker.outcome,
        lost_transactions=weaker.lost_transactions,
        lost_ms=weaker.lost_ms,
        problems=weaker.problems,
        weaker=None,
    )


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


def tallies(records: Iterable[PointRecord], recording: RecordingFacts) -> dict[str, CutCounts]:
    """The drawn cuts by profile."""
    by_profile: dict[str, list[PointRecord]] = {}
    for record in records:
        if not record.point.control and is_drawn(record):
            by_profile.setdefault(record.point.profile.value, []).append(record)
    return {name: tally(drawn, recording) for name, drawn in sorted(by_profile.items())}


def with_unmounted(records: Sequence[PointRecord], recording: RecordingFacts) -> dict[str, CutCounts]:
    """The same, with those that broke the file system itself.

    A repair says nothing where good cuts need it too: without a journal, with a lost one, and on JFS, which never mounts behind a cut.
    """
    found = tallies(records, recording)
    good = [record for record in records if not record.outcome.is_bad]
    if 2 * sum(record.fsck_s is not None for record in good) >= len(good):
        return found
    broken = [record for record in records if _is_broken(record) and not _was_whole(record)]
    unmounted = tallies(broken, recording)
    return {
        name: replace(counted, unmounted=unmounted[name].cuts if name in unmounted else 0)
        for name, counted in found.items()
    }


def _is_broken(record: PointRecord) -> bool:
    return record.outcome.value in BROKEN


def _was_whole(record: PointRecord) -> bool:
    """Whether the file system mounted by itself and no check of it found errors."""
    is_lost = record.outcome is PointOutcome.FILE_SYSTEM_LOST
    return not is_lost and record.fsck_s is None and not record.unclean


def tally(records: Iterable[PointRecord], recording: RecordingFacts) -> CutCounts:
    """The findings of some cuts, counted."""
    return CutCounts.together([CutCounts(Counter(finding_of(record, recording) for record in records))])


def is_placed(placement: Placement, record: PointRecord) -> bool:
    """Whether a cut was placed in that way."""
    return record.point.placement is placement


def is_sought(record: PointRecord) -> bool:
    """Whether a cut was placed where something can happen, so that it shows that and not how often."""
    return is_placed(Placement.SOUGHT, record) or is_placed(Placement.ORDER, record)


def is_drawn(record: PointRecord) -> bool:
    """Whether chance placed a cut."""
    return record.point.placement in DRAWN


# How a cut was placed, by the words that documents and test reports count it by; all that are no control.
CUT_KINDS: Mapping[Placement, str] = {
    Placement.UNIFORM: "drawn",
    Placement.WEIGHTED: "drawn",
    Placement.SOUGHT: "sought",
    Placement.ORDER: "placed",
    Placement.ENUMERATED: "states",
    Placement.SPAN: "recovery",
    Placement.EVERY: "every",
}

# Not one of them: the device lies about its flushes, or nothing was cut.
CONTROL = "control"


def cut_kind(record: PointRecord) -> str:
    """One of `CUT_KINDS`, or `CONTROL`: also what stands behind a recovery that nothing cut."""
    return CONTROL if record.point.control else CUT_KINDS.get(record.point.placement, CONTROL)


def is_bad_cut(record: PointRecord) -> bool:
    """Whether something acknowledged was gone or damaged, by no lie of the device about its flushes."""
    return record.outcome.is_bad and not record.point.control


def why_not_untorn(
    level: str, pages: PageFacts | None, recovered: Sequence[RecoveredPages | None] = ()
) -> Spoken | str | None:
    """Of a cell with that level of `untorn_writes`: what was written otherwise; None where nothing was, and where nothing was asked.

    `recovered` are the recoveries that were cut again, each None of which nothing is known.
    """
    if level != UNTORN_ON:
        return None
    counts = None if pages is None else pages.counts
    if counts is None:
        return "untorn_writes = on, and nothing was counted: nothing shows how the pages were written"
    return _why_not(counts, "") or _why_not_in_recovery(recovered)


def _why_not_in_recovery(recovered: Sequence[RecoveredPages | None]) -> Spoken | str | None:
    """Of all of them together: one alone may have had no page to write over an older one."""
    if not recovered:
        return None
    counted = [each.counts for each in recovered if each is not None and each.counts is not None]
    together = PageCounts.together(counted)
    missing = len(recovered) - len(counted)
    if missing or together.is_empty:
        return (
            f"untorn_writes = on, and nothing was counted in {missing or len(recovered)} of {len(recovered)} recoveries: nothing "
            "shows how their pages were written"
        )
    return _why_not(together, "in recovery: ")


def _why_not(counts: PageCounts, prefix: str) -> Spoken | str | None:
    if counts.refusal is not None:
        words = f"{prefix}{counts.refusal}"
        return spoken(words, refused=counts.refusals, pages=counts.atomic + counts.refusals)
    if not counts.atomic:
        return f"{prefix}untorn_writes = on, and no page was written over an older one: nothing could be torn, and nothing shows"
    if counts.no_pages:
        return f"{prefix}{counts.no_pages:,} writes with direct I/O were no whole pages, and may be torn"
    return None


OK = PointOutcome.OK.value
NEEDS_FSCK = PointOutcome.NEEDS_FSCK.value
BOUNDED = "bounded loss"
LOSS = "loss"
DETECTED = PointOutcome.DETECTED.value
SILENT = PointOutcome.SILENT.value
FILE_SYSTEM_LOST = PointOutcome.FILE_SYSTEM_LOST.value

# From best to worst.
FINDINGS = (OK, NEEDS_FSCK, BOUNDED, LOSS, DETECTED, SILENT, FILE_SYSTEM_LOST)

# Nothing that was acknowledged is gone or damaged.
GOOD = (OK, NEEDS_FSCK)

# What is there is whole, and the engine can go on with it.
WHOLE = (OK, NEEDS_FSCK, BOUNDED, LOSS)
BROKEN = (DETECTED, SILENT, FILE_SYSTEM_LOST)


@dataclass(frozen=True)
class CutCounts:
    """How often each finding came up among cuts of one kind; a finding that did not is left out.

    Of those that left something broken `unmounted` are those whose file system broke itself: unlike behind good cuts it had to be repaired, was
    lost, or a check of it found errors.
    """

    findings: Mapping[str, int] = field(default_factory=dict)
    unmounted: int = 0

    @property
    def cuts(self) -> int:
        """All of them."""
        return sum(self.findings.values())

    @property
    def bad(self) -> int:
        """Those after which something acknowledged was gone or damaged."""
        return sum(count for name, count in self.findings.items() if name not in GOOD)

    @property
    def broken(self) -> int:
        """Those after which what was left was not whole."""
        return self.of(*BROKEN)

    @property
    def grave(self) -> int:
        """Those that took or damaged more than the engine's settings allow."""
        return self.of(LOSS, *BROKEN)

    @property
    def worst(self) -> str | None:
        """The gravest finding; None without a cut."""
        return max(self.findings, key=FINDINGS.index, default=None)

    def of(self, *names: str) -> int:
        """How many cuts came to one of these findings."""
        return sum(self.findings.get(name, 0) for name in names)

    @classmethod
    def together(cls, tallies: Iterable[CutCounts]) -> CutCounts:
        """Several as one, the findings from best to worst."""
        every = tuple(tallies)
        counts = {name: sum(tally.of(name) for tally in every) for name in FINDINGS}
        return cls(
            {name: count for name, count in counts.items() if count}, sum(each.unmounted for each in every)
        )


def within_bound(
    final_record: PointRecord,
    bound_ms: float | None,
    bound_transactions: int | None,
    *,
    after_ms: float = 0.0,
) -> bool:
    """Whether no more is missing than the engine's settings allow; a loss of unknown age is within no time.

    The age of a loss is held against the last acknowledgement, which was `after_ms` before the recording's end: the engine
    stopped then, and not when the file system was unmounted.
    """
    by_count = bound_transactions is not None and final_record.lost_transactions <= bound_transactions
    by_time = (
        bound_ms is not None
        and final_record.lost_ms is not None
        and final_record.lost_ms - after_ms <= bound_ms
    )
    return by_count or by_time
