"""Why one cut is bad: replays of its log that lose less and less, until nothing can be spared.

A cut that is bad although nothing is lost is compared with later cuts in order: which write, behind it, brings what had been
promised by then. What is left is named by the files of the image on which all is kept, and of the one that is bad.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from bedplate.cuts.blame import (
    BlamedWrite,
    BlameEvidence,
    Found,
    NoMoreQuestions,
    Questions,
    Repeatability,
    Unsynced,
    WrittenPlace,
    shrink,
)
from bedplate.cuts.log import DEVICE_NAMES, FUA, MARK, Acknowledged, Acknowledgements, Log, Piece, losses
from bedplate.cuts.points import BOUNDED, finding_of
from bedplate.cuts.records import (
    ChosenState,
    CutPoint,
    Placement,
    PointOutcome,
    PointRecord,
    Profile,
    RecordingFacts,
)
from bedplate.workloads.power_cut.bench import ImageBuilder, ReplayJob

if TYPE_CHECKING:
    from bedplate.workloads.power_cut.tearing import ImageNames, Named
    from bedplate.workloads.power_cut.worker import CutSite

_NAMES_MOST = 3

# Ages are differences of whole microseconds.
_SLACK_MS = 0.0005


class Cut(NamedTuple):
    """What one inquest is about: a point of a log, and what had been promised before it.

    `marks` are those of the log, None of a recovery's, in which nobody promises anything. The facts of the
    `recording` bound what settings may lose; without them no loss is a bounded one.
    """

    log: Log
    point: CutPoint
    measured_from: int
    promised: Acknowledged
    marks: Acknowledgements | None
    recording: RecordingFacts | None = None


class Inquest:
    """Of one cut, with at most `most` replays. `builder` builds of its log."""

    def __init__(self, job: ReplayJob, cut: Cut, builder: ImageBuilder, cut_site: CutSite, most: int) -> None:
        self._job, self._cut, self._builder, self._site = job, cut, builder, cut_site
        self._losses = losses(cut.log, cut.point, job.window_bytes, measured_from=cut.measured_from)
        self._most = most
        self._replays = 0
        self._records: dict[frozenset[int], PointRecord] = {}
        self._is_steady = True

    def hold(self) -> Found:
        """As many replays as it takes, up to the limit. What is left at their end is asked again, and so is a cut that is not bad."""
        first = self._replayed(self._losses.parts)
        if not first.outcome.is_bad:
            first = self._replayed(self._losses.parts)
            self._is_steady = not first.outcome.is_bad
        begun = BlameEvidence(
            self._cut.point.number,
            first.outcome,
            self._cut.point.profile,
            control=self._cut.point.control,
            in_recovery=self._cut.point.recovery_of is not None,
            lost_writes=len({piece.entry for piece in self._losses.parts.values()}),
            lost_parts=len(self._losses.parts),
            replays=self._replays,
            steadiness=Repeatability.NOT_BAD_AGAIN,
            first_problem=first.problems[0] if first.problems else "",
        )
        if not first.outcome.is_bad:
            return Found(begun, self._cut.point)
        whole = self._replayed(())
        if not self._losses.parts or self._finding(whole) == self._finding(first):
            return self._without_loss(begun, first, whole)
        return self._with_losses(begun, first, whole)

    def _with_losses(self, blame: BlameEvidence, cut_record: PointRecord, lossless: PointRecord) -> Found:
        """What gives the same finding as the cut, of which there is none, or another one, without any loss."""
        finding = self._finding(cut_record)
        questions = Questions(
            lambda lost_parts: self._finding(self._replayed(lost_parts)) == finding,
            max(1, self._most - self._replays - 2),
        )
        by_write: dict[int, list[int]] = {}
        for number, piece in self._losses.parts.items():
            by_write.setdefault(piece.entry, []).append(number)
        shrunk = shrink(list(by_write.values()), questions)
        lost_parts = frozenset(shrunk.parts)
        told = self._records[lost_parts]
        again = [self._replayed(lost_parts)]
        names = self._names(lost_parts)
        was_there = self._was_there(lost_parts, told)
        # Whoever answers now so and now so may have spared what matters, or kept what does not.
        if shrunk.is_smallest and self._replays < self._most:
            again.append(self._replayed(lost_parts))
        evidence = replace(
            blame,
            replays=self._replays,
            steadiness=self._steadiness(cut_record, told, *again),
            smallest=tuple(self._blamed(lost_parts, names)),
            is_smallest=shrunk.is_smallest,
            without_loss=lossless.outcome if lossless.outcome.is_bad else None,
            was_there=was_there,
        )
        found = self._of_record(evidence, told)
        found = replace(
            found,
            repaired=found.repaired and _is_worse(told, lossless),
            replay_failed=found.replay_failed and not lossless.replay_failed,
        )
        return Found(found, self._losses.only(lost_parts))

    def _without_loss(self, blame: BlameEvidence, cut_record: PointRecord, lossless: PointRecord) -> Found:
        again = self._replayed(())
        # Where nothing was lost the cut itself is the same image.
        looks = (lossless, again) if self._losses.parts else (cut_record, lossless, again)
        late = self._mended() if lossless.outcome.is_bad else None
        mended_by, unsynced = (None, None) if late is None else self._late_write(late)
        evidence = replace(
            blame,
            replays=self._replays,
            steadiness=self._steadiness(*looks),
            bad_without_loss=lossless.outcome.is_bad,
            mended_by=mended_by,
            unsynced=unsynced,
            writes_until_mended=None if late is None or mended_by is None else self._writes_behind(late),
        )
        return Found(self._of_record(evidence, lossless), self._losses.only(()))

    def _finding(self, record: PointRecord) -> str:
        return finding_of(record, self._cut.recording)

    def _of_record(self, evidence: BlameEvidence, record: PointRecord) -> BlameEvidence:
        known = self._cut.recording
        has_bound = known is not None and (known.bound_ms, known.bound_transactions) != (None, None)
        is_loss = record.outcome is PointOutcome.LOST
        return replace(
            evidence,
            found=record.outcome,
            repaired=_is_repaired(record),
            replay_failed=record.replay_failed,
            lost_ms=record.lost_ms,
            is_bounded=self._finding(record) == BOUNDED if is_loss and has_bound else None,
            problem=record.problems[0] if record.problems else "",
        )

    def _steadiness(self, *looks: PointRecord) -> Repeatability:
        """Whether all looks found the same, none after a first one that failed."""
        alike = len(set(map(self._finding, looks))) == 1 and all(each.failed_once is None for each in looks)
        return Repeatability.STEADY if alike and self._is_steady else Repeatability.CHANGES

    def _replayed(self, lost_parts: Iterable[int]) -> PointRecord:
        lost_parts = frozenset(lost_parts)
        record = self._replay_point(self._losses.only(lost_parts), self._cut.promised)
        self._records[lost_parts] = record
        return record

    def _replay_point(
        self, point: CutPoint, promised: Acknowledged, acknowledged: Acknowledged | None = None
    ) -> PointRecord:
        self._replays += 1
        return self._site.replay(point, self._builder, promised, acknowledged=acknowledged)

    def _mended(self) -> int | None:
        """The first position behind the cut, found by halving, at which a cut in order has all that was promised at this one."""
        log, begin = self._cut.log, self._cut.point.position
        until, step = begin, 1
        try:
            while True:
                if until == len(log):
                    return None
                last, until = until, min(len(log), begin + step)
                if self._has_all(until):
                    break
                step *= 2
            while until - last > 1:
                middle = (last + until) // 2
                last, until = (last, middle) if self._has_all(middle) else (middle, until)
        except NoMoreQuestions:
            return None
        return until

    def _has_all(self, position: int) -> bool:
        """Whether a cut in order there is good, held against what was promised here; the oracle knows what is promised there."""
        if self._replays >= self._most:
            raise NoMoreQuestions
        acknowledged = self._cut.promised if self._cut.marks is None else self._cut.marks.before(position)
        return not self._replay_point(_all_before(position), self._cut.promised, acknowledged).outcome.is_bad

    def _was_there(self, lost_parts: frozenset[int], record: PointRecord) -> bool | None:
        """Whether a cut in order before the first lost write has what is missing, where that is older than the write."""
        first = min(self._losses.parts[number].entry for number in lost_parts)
        ms = self._ms_before_cut(first)
        if record.outcome is not PointOutcome.LOST or record.lost_ms is None or ms is None:
            return None
        if record.lost_ms <= ms or self._cut.marks is None or self._replays >= self._most:
            return None
        before = self._cut.marks.before(first)
        there = self._replay_point(_all_before(first), before)
        if there.outcome is PointOutcome.LOST and there.lost_ms is not None:
            if before.cut_us is None or self._cut.promised.cut_us is None:
                return None
            # Settings may lose the last ones there too: what counts is whether the first that is missing there is a later one.
            between_ms = (self._cut.promised.cut_us - before.cut_us) / 1000
            return there.lost_ms + between_ms < record.lost_ms - _SLACK_MS
        return not there.outcome.is_bad

    def _ms_before_cut(self, index: int) -> float | None:
        log = self._cut.log
        at_ns, cut_ns = log.entry(index).time_ns, log.time_before(self._cut.point.position)
        return None if at_ns is None or cut_ns is None else (cut_ns - at_ns) / 1e6

    def _names(self, lost_parts: frozenset[int]) -> ImageNames:
        """Of the image that keeps everything first: there a file has its name that the bad one may lack."""
        points = (self._losses.only(()), self._losses.only(lost_parts))
        return self._site.names_on(points, self._builder)

    def _blamed(self, lost_parts: frozenset[int], names: ImageNames) -> Iterator[BlamedWrite]:
        by_entry: dict[int, list[Piece]] = {}
        for number in sorted(lost_parts):
            piece = self._losses.parts[number]
            by_entry.setdefault(piece.entry, []).append(piece)
        for entry, pieces in by_entry.items():
            found = [each for piece in pieces for each in names.of(self._cut.log, piece)]
            yield self._write(entry, tuple((piece.start, piece.length) for piece in pieces), found)

    def _late_write(self, position: int) -> tuple[BlamedWrite | None, Unsynced | None]:
        """The last entry before the position at which all was there, none where that is a mark or a flush, which brings nothing.

        Beside it what of the engine's files had not been there at the cut, where that entry is the file system's own.
        """
        log, entry, begin = self._cut.log, position - 1, self._cut.point.position
        if not _is_change(log, entry):
            return None, None
        images = self._site.names_on((_all_before(position), _all_before(begin)), self._builder)
        write = self._write(
            entry, ((0, log.lengths[entry]),), list(images.of(log, Piece(entry, 0, log.lengths[entry])))
        )
        if write.place in (WrittenPlace.JOURNAL, WrittenPlace.METADATA):
            return write, images.unsynced(log, range(begin, position))
        return write, None

    def _write(
        self, index: int, lost_ranges: tuple[tuple[int, int], ...], labels: list[Named]
    ) -> BlamedWrite:
        log, position = self._cut.log, self._cut.point.position
        device = log.devices[index]
        flushes = log.histories[device].flushes
        return BlamedWrite(
            index,
            DEVICE_NAMES[device],
            log.offsets[index],
            log.lengths[index],
            lost_ranges,
            self._ms_before_cut(index),
            sum(index < flush < position for flush in flushes),
            labels[0].place if labels else WrittenPlace.UNKNOWN,
            tuple(dict.fromkeys(each.words for each in labels))[:_NAMES_MOST],
            log.histories[device].flushes_met(index, position),
            log.writers(index),
            is_through=bool(log.flags[index] & FUA) and index < position,
        )

    def _writes_behind(self, position: int) -> int:
        return sum(_is_change(self._cut.log, each) for each in range(self._cut.point.position, position))


def _all_before(position: int) -> CutPoint:
    """A cut in order that keeps nothing of what was on its way: of two such cuts the later one has all that the other has."""
    nothing = ChosenState((), kept=True)
    return CutPoint(0, position, Profile.ORDERED, Placement.UNIFORM, seed=0, state=nothing)


def _is_change(log: Log, index: int) -> bool:
    """Whether it is a write or a discard."""
    return log.lengths[index] > 0 and not log.flags[index] & MARK


def _is_repaired(record: PointRecord) -> bool:
    return record.fsck_s is not None or record.outcome is PointOutcome.FILE_SYSTEM_LOST


def _is_worse(record: PointRecord, lossless: PointRecord) -> bool:
    """Whether the file system came back worse than with all that had been written; some are repaired after every cut."""
    if lossless.outcome is PointOutcome.FILE_SYSTEM_LOST:
        return False
    if record.outcome is PointOutcome.FILE_SYSTEM_LOST or not _is_repaired(lossless):
        return True
    return record.replay_failed and not lossless.replay_failed
