"""Why a cut was bad: the smallest loss that is enough, where it lies, whose fault it is, and the story of all that in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain, pairwise

from bedplate.cuts.records import CutPoint, PointOutcome, Profile
from bedplate.model.durability import (
    DURABLE,
    NO_JOURNAL,
    NOT_COUNTED,
    OF_FILE_SYSTEM,
    OF_FLUSHES,
    OF_NOTHING,
    PROMISED,
    takes_the_last,
)
from bedplate.model.reason import PAGES_PASSED_OVER, PAGES_UNMENDED, Reason, because
from bedplate.model.visit import Durability
from bedplate.units import format_count, format_milliseconds, format_size, one_line

# Below a study: the stories that were made of its kept logs later, by the path of the run; in a run's folder, its own.
STORIES_FOLDER = "blame"

STORIES_FILE = "blame.jsonl"
NOT_BAD_AGAIN = "not-bad-again"


class WrittenPlace(Enum):
    """Whose the bytes are: a file of the engine, or of its log, another file, the file system's own blocks, or nobody's that was found."""

    ENGINE = "engine"
    ENGINE_LOG = "engine's log"
    OTHER_FILE = "other file"
    JOURNAL = "journal"
    METADATA = "metadata"
    UNKNOWN = "unknown"


_FILE_SYSTEMS_OWN = (WrittenPlace.JOURNAL, WrittenPlace.METADATA)
_OF_FILES = (WrittenPlace.ENGINE, WrittenPlace.ENGINE_LOG, WrittenPlace.OTHER_FILE)


class Repeatability(Enum):
    """Whether the same image gives the same verdict: what was asked twice did, did not, or the cut was not bad again at all."""

    STEADY = "steady"
    CHANGES = "changes"
    NOT_BAD_AGAIN = "not bad again"


@dataclass(frozen=True)
class WritingProcess:
    """Who asked a device for a write, as the kernel's tracepoint had it."""

    pid: int
    """its process; 0 where it has no number: it had ended, or is outside of the container"""
    name: str
    """what it is called, as when it first wrote: `postgres: checkpointer`, `jbd2/loop0-8`"""
    is_kernel: bool | None
    """whether it is a thread of the kernel, which writes what others left to it; null where it was gone before that was looked up"""


@dataclass(frozen=True)
class BlamedWrite:
    """A write of the log that the smallest loss has, or that a cut in order came before."""

    entry: int
    """its number in the log"""
    device: str
    """`disk` or `journal`"""
    offset: int
    """where it begins on the device, in bytes"""
    length: int
    """its bytes"""
    lost: tuple[tuple[int, int], ...]
    """what of it is lost: from where in its data, and how many bytes; of a write that came too late all of it"""
    ms_before_cut: float | None
    """when it was issued; negative behind the cut, null where the log has no times"""
    flushes_since: int
    """flushes of its device between it and the cut: of a device that lies they were acknowledged"""
    place: WrittenPlace
    """whose the lost bytes are"""
    names: tuple[str, ...] = ()
    """the same by name: file and offset, relation and page"""
    flushes_met: int = 0
    """flushes of its device that were sent while it was on its way, which cover nothing of it"""
    writers: tuple[WritingProcess, ...] | None = None
    """which processes asked for it, in the order of its bytes; null where that was not recorded"""
    is_through: bool = False
    """whether it went past the cache (FUA) and was complete before the cut; false in older stories"""

    @property
    def is_torn(self) -> bool:
        """Whether a part of it was kept."""
        return sum(length for _, length in self.lost) < self.length


class Unsynced(Enum):
    """What of a file no sync had brought to the medium: its content, its size or map while the content was there, or its name."""

    BYTES = "bytes"
    SIZE = "size"
    NAME = "name"


@dataclass(frozen=True)
class BlameEvidence:
    """What replays of one bad cut found."""

    point: int
    """the cut's number"""
    outcome: PointOutcome
    """what was found there"""
    profile: Profile
    """of the cut"""
    control: bool
    """whether its device lied about flushes"""
    in_recovery: bool
    """whether the cut was one of a recovery"""
    lost_writes: int
    """writes that the cut lost, or tore"""
    lost_parts: int
    """parts of them, each of which is kept or not by itself"""
    replays: int
    """images that were made and asked"""
    steadiness: Repeatability
    """whether an image that was tried twice answered alike"""
    smallest: tuple[BlamedWrite, ...] = ()
    """the writes whose loss alone is enough; empty where the cut is bad without any loss"""
    is_smallest: bool = True
    """whether nothing of these can be spared; false where the replays ended before that was known"""
    found: PointOutcome | None = None
    """what is found with the smallest loss: it is bad, and may be bad in another way. Not bad where the same image was good when it was looked
    at again; null where the cut was not bad again"""
    bad_without_loss: bool = False
    """whether the cut has the same finding where all that had been written is kept"""
    without_loss: PointOutcome | None = None
    """of a cut with another finding where all that had been written is kept: which, if it is bad"""
    mended_by: BlamedWrite | None = None
    """of such a cut: the write behind it with which all that had been promised is there; null where none was found"""
    writes_until_mended: int | None = None
    """how many writes and discards behind the cut that is"""
    unsynced: Unsynced | None = None
    """of such a cut that a write of the file system's own mends: what of the engine's files was not there before: `bytes`, `size`, `name`; null
    where nobody looked, as in older stories"""
    repaired: bool = False
    """whether the file system had to be repaired, or was lost, with the smallest loss, and not without it"""
    replay_failed: bool = False
    """whether the repair, with the smallest loss, went on without the journal, which it could not replay; false in older stories"""
    lost_ms: float | None = None
    """how long before the cut the first missing transaction was acknowledged, with the smallest loss"""
    is_bounded: bool | None = None
    """of a loss: whether it is within what the engine's settings may lose; null where they bound none, and of any other finding"""
    was_there: bool | None = None
    """of a loss that is older than the lost writes: whether its first transaction was there before the first of these was made; null
    of any other"""
    problem: str = ""
    """what was wrong with the smallest loss, in the first words"""
    first_problem: str = ""
    """what was wrong at the cut itself"""


class Party(Enum):
    """Whose fault a bad cut is; `nobody known` where the evidence names none."""

    DEVICE = "device"
    FILE_SYSTEM = "file system"
    ENGINE = "engine"
    NOBODY_KNOWN = "nobody known"


@dataclass(frozen=True)
class Fault:
    """Who broke which promise, or relied on none."""

    party: Party
    reason: Reason


@dataclass(frozen=True)
class Story:
    """One bad cut, told."""

    evidence: BlameEvidence
    """what replays found"""
    party: Party
    """whose fault it is"""
    reason: Reason
    """why"""
    lines: tuple[str, ...]
    """the same in five lines"""


def fault_of(evidence: BlameEvidence, declared: Durability | None) -> Fault:
    """By the evidence, and by what flushes and settings declared for the cell.

    What a declaration takes away is the reason where somebody relied on it; without one the evidence alone speaks.
    """
    if evidence.steadiness is Repeatability.NOT_BAD_AGAIN:
        return Fault(Party.NOBODY_KNOWN, because(NOT_BAD_AGAIN, "the cut was not bad when it was replayed"))
    if _was_bad_once(evidence):
        words = "the cut was bad when it was replayed, and not when the same image was looked at again"
        return Fault(Party.NOBODY_KNOWN, because(NOT_BAD_AGAIN, words))
    flushes = max((write.flushes_since for write in evidence.smallest), default=0)
    is_through = any(write.is_through for write in evidence.smallest)
    # Of a cut in order the device kept what it had acknowledged.
    if evidence.control and (flushes or is_through) and not _is_in_order(evidence):
        words = f"it acknowledged {format_count(flushes, 'flush', 'flushes')} behind the write, and lost it all the same"
        if not flushes:
            words = "it acknowledged the write as one past its cache (FUA), and lost it all the same"
        return Fault(Party.DEVICE, because("device-lied", words, flushes=flushes))
    of_filesystem, of_engine = _declared(evidence, declared)
    is_usual = declared is not None and any(each.code == NO_JOURNAL for each in declared.reasons)
    # Without a journal a repair belongs to every cut, and says nothing of most.
    repaired = evidence.repaired and not (is_usual and not _lacks_journal(evidence))
    if of_engine is not None and not repaired:
        return Fault(Party.ENGINE, of_engine)
    if of_filesystem is not None:
        return Fault(Party.FILE_SYSTEM, of_filesystem)
    if repaired:
        return Fault(Party.FILE_SYSTEM, _of_broken_filesystem(evidence))
    own = [write for write in evidence.smallest if write.place in _FILE_SYSTEMS_OWN and write.flushes_met]
    if own:
        words = f"it sent {format_count(own[0].flushes_met, 'flush', 'flushes')} while a write of its own was on its way, and waited for none"
        return Fault(Party.FILE_SYSTEM, because("flush-before-complete", words))
    if _may_be_unflushed(evidence, declared):
        words = (
            "no flush came behind the write, and whether the file system sends one for a sync was not counted"
        )
        return Fault(Party.NOBODY_KNOWN, because(NOT_COUNTED, words))
    return Fault(Party.ENGINE, _of_engine(evidence, declared))


def _may_be_unflushed(evidence: BlameEvidence, declared: Durability | None) -> bool:
    """Whether a file system may have been asked for a flush that it did not send, as nobody counted them."""
    is_counted = declared is None or all(each.code != NOT_COUNTED for each in declared.reasons)
    is_met = any(write.flushes_met or write.flushes_since for write in evidence.smallest)
    return not is_counted and not is_met and not _is_in_order(evidence)


def _was_bad_once(evidence: BlameEvidence) -> bool:
    """Whether the image of a cut without a loss was good where it was looked at again."""
    return evidence.found is not None and not evidence.found.is_bad


def _is_in_order(evidence: BlameEvidence) -> bool:
    """Whether nothing that had been written is missing, which no flush would have changed."""
    return evidence.profile is Profile.ORDERED or evidence.bad_without_loss


def _declared(evidence: BlameEvidence, declared: Durability | None) -> tuple[Reason | None, Reason | None]:
    """The first reason of the file system's and of the engine's that explains such a finding, of a cell not called durable with such a cache."""
    if declared is None:
        return None, None
    if (declared.protected_cache if _is_in_order(evidence) else declared.volatile_cache) == DURABLE:
        return None, None
    telling = [each for each in declared.reasons if _explains(each, evidence, declared)]
    of_filesystem = next((each for each in telling if each.code in OF_FILE_SYSTEM), None)
    of_engine = next((each for each in telling if each.code not in OF_FILE_SYSTEM), None)
    return of_filesystem, of_engine


def _explains(reason: Reason, evidence: BlameEvidence, declared: Durability) -> bool:
    """Whether what a declaration takes away is what is missing or damaged here."""
    if reason.code in OF_NOTHING:
        return False
    if reason.code in OF_FLUSHES:
        return not _is_in_order(evidence)
    if reason.code == NO_JOURNAL:
        return _lacks_journal(evidence)
    # What an author promises is no reason, unless it is less than all.
    if reason.values.text(PROMISED) == DURABLE:
        return False
    if takes_the_last(reason, declared):
        # The bound is one of the engine's settings, and says nothing of what a file system may lose.
        is_within = reason.code in OF_FILE_SYSTEM or evidence.is_bounded is not False
        return evidence.found is PointOutcome.LOST and is_within
    if reason.code in PAGES_UNMENDED:
        # A page is torn between two writes as well as within one; what is missing then may be rows, in silence.
        in_pages = any(write.place is WrittenPlace.ENGINE for write in evidence.smallest)
        in_order = evidence.bad_without_loss and evidence.found is not PointOutcome.LOST
        waited: tuple[WrittenPlace, ...] = (WrittenPlace.JOURNAL, WrittenPlace.ENGINE_LOG)
        if reason.code in PAGES_PASSED_OVER:
            # A commit of the file system brings whole pages too, which a checkpoint had passed over.
            waited = (*waited, WrittenPlace.METADATA)
        return in_pages or (in_order and not any(_waited_for(place, evidence) for place in waited))
    return True


def _lacks_journal(evidence: BlameEvidence) -> bool:
    """Whether a journal would have kept it.

    The file system is lost, or its repair damaged files where a block of its own is lost. A plain loss is no repair's.
    """
    if evidence.found is PointOutcome.FILE_SYSTEM_LOST:
        return True
    is_own = any(write.place is WrittenPlace.METADATA for write in evidence.smallest)
    return evidence.repaired and is_own and evidence.found is not PointOutcome.LOST


def _waited_for(place: WrittenPlace, evidence: BlameEvidence) -> bool:
    """Whether a cut that lost nothing is mended by the next write there.

    By the journal's, where a file's map, size or name had not been committed. The engine's log mends no page that was torn.
    """
    late = evidence.mended_by
    return evidence.bad_without_loss and late is not None and late.place is place


def _of_broken_filesystem(evidence: BlameEvidence) -> Reason:
    if evidence.replay_failed:
        return because(
            "journal-not-replayed", "its repair could not replay its journal, and went on without it"
        )
    if evidence.bad_without_loss:
        return because("not-whole-in-order", "it was not whole although all that it had written was kept")
    if any(write.is_torn for write in evidence.smallest):
        return because("metadata-torn", "it does not survive that a block of its own is torn")
    return because("metadata-missing", "it does not survive that a write of its own is missing")


def _metadata_not_synced(unsynced: Unsynced | None) -> Reason:
    """Which of both the change was the blocks of a journal do not tell; the files of the image do, where they were looked at."""
    words = {
        Unsynced.NAME: "a name had been synced (an fsync of the directory)",
        Unsynced.SIZE: "a file's size or map had been synced (an fsync of the file)",
    }
    either = "a change of metadata had been synced: a name (an fsync of the directory) or a file's size (an fsync of the file)"
    changed = either if unsynced is None else words.get(unsynced, either)
    return because("metadata-not-synced", f"it acknowledged before {changed}")


_UNSYNCED_WORDS = {
    None: "bytes, a size or a name",
    Unsynced.BYTES: "the bytes were not on the medium",
    Unsynced.SIZE: "the bytes were on the medium, and the journal did not have them yet as a part of the file",
    Unsynced.NAME: "a name was not in its directory yet, or still was",
}


def _of_engine(evidence: BlameEvidence, declared: Durability | None) -> Reason:
    """Of an engine that is called durable, on a file system that flushes and came back whole."""
    if evidence.in_recovery:
        words = "its recovery replaced what had been durable, and did not make the replacement durable first"
        return because("recovery-not-synced", words)
    if evidence.found is PointOutcome.LOST and evidence.bad_without_loss:
        mends_by_own = evidence.mended_by is not None and evidence.mended_by.place in _FILE_SYSTEMS_OWN
        if mends_by_own and evidence.unsynced is not Unsynced.BYTES:
            return _metadata_not_synced(evidence.unsynced)
        return because("promised-before-written", "it acknowledged before it had written")
    may_pass_over = declared is not None and any(each.code in PAGES_PASSED_OVER for each in declared.reasons)
    if _waited_for(WrittenPlace.ENGINE_LOG, evidence):
        words = "no write is torn or lost, and its data are damaged until the next write of its own log"
        if may_pass_over:
            words = f"{words}: without double writing a checkpoint may pass over a page that no sync covers"
        return because("damaged-until-log", words)
    if _waited_for(WrittenPlace.JOURNAL, evidence):
        words = f"it relied on a change that no fsync had waited for: {_UNSYNCED_WORDS[evidence.unsynced]}"
        return because("relied-on-unsynced", words)
    if may_pass_over and _waited_for(WrittenPlace.METADATA, evidence):
        words = (
            "no write is torn or lost, and its data are damaged until the file system commits: without double writing a checkpoint passes over "
            "a page, or a page is torn between two commits"
        )
        return because("damaged-until-commit", words)
    if evidence.bad_without_loss:
        words = "it relied on writes being whole or in an order that nothing asked for"
        return because("relied-on-order", words)
    if evidence.found is PointOutcome.LOST:
        if evidence.was_there:
            words = "its recovery drops transactions that were on the medium before the lost write was made"
            return because("recovery-drops-flushed", words)
        if all(write.place in _FILE_SYSTEMS_OWN for write in evidence.smallest):
            return _metadata_not_synced(None)
        return because("promised-before-flushed", "it acknowledged what no flush had put on the medium")
    if any(write.is_torn for write in evidence.smallest):
        words = "it took a write for whole of which the device kept a part, as a device may"
        return because("relied-on-whole-write", words)
    return because("relied-on-order", "it relied on an order of writes that no flush had asked for")


def story_of(evidence: BlameEvidence, declared: Durability | None) -> Story:
    """The evidence, the fault, and both in five lines."""
    fault = fault_of(evidence, declared)
    kind = f"{evidence.profile.value}, a control" if evidence.control else evidence.profile.value
    lines = (
        f"point {evidence.point} ({kind}): {evidence.outcome.value}{f': {evidence.first_problem}' if evidence.first_problem else ''}",
        _smallest_words(evidence),
        _place_words(evidence),
        _time_words(evidence),
        f"fault: {fault.party.value}: {fault.reason}",
    )
    # A file system's and an engine's words may hold anything.
    return Story(evidence, fault.party, fault.reason, tuple(map(one_line, lines)))


def _smallest_words(evidence: BlameEvidence) -> str:
    asked = format_count(evidence.replays, "replay", "replays")
    if evidence.steadiness is Repeatability.NOT_BAD_AGAIN:
        return f"not bad when it was replayed ({asked}): its verdict changes on the same image"
    if _was_bad_once(evidence):
        return f"bad when it was replayed, and good at a second try ({asked}): its verdict changes on the same image"
    unsteady = "; the same image gave another verdict at a second try" * (
        evidence.steadiness is Repeatability.CHANGES
    )
    if evidence.bad_without_loss:
        return f"bad although everything that had been written is kept ({asked}){unsteady}"
    torn = sum(write.is_torn for write in evidence.smallest)
    what = format_count(len(evidence.smallest), "write", "writes")
    some = "" if not torn else ", torn" if torn == len(evidence.smallest) else f", {torn} of them torn"
    more = "" if evidence.is_smallest else "; perhaps fewer, as no more replays were allowed"
    if evidence.without_loss is not None:
        more += f"; without any loss it is {evidence.without_loss.value}"
    lost = format_count(evidence.lost_writes, "lost or torn write", "lost or torn writes")
    verb = "is" if len(evidence.smallest) == 1 else "are"
    other = "" if evidence.found in (None, evidence.outcome) else f" for {evidence.found.value}"
    # A part of what the cut took may be seen elsewhere, or by fewer transactions.
    seen = f": {evidence.problem}" if evidence.problem not in ("", evidence.first_problem) else ""
    return f"of {lost} {what}{some} {verb} enough{other}{seen} ({asked}){more}{unsteady}"


def _place_words(evidence: BlameEvidence) -> str:
    blamed = evidence.smallest or tuple(filter(None, (evidence.mended_by,)))
    if not blamed:
        return "no write of the log mends it" if evidence.bad_without_loss else "no write is to blame"
    first = blamed[0]
    parts = ", ".join(f"bytes {start} to {start + length}" for start, length in first.lost[:3])
    part = f"{parts} of " if first.is_torn else ""
    where = "; ".join(first.names) or f"{first.place.value} at byte {first.offset} of the {first.device}"
    others = f"; and {len(blamed) - 1} more" if len(blamed) > 1 else ""
    too_late = "written too late: " if evidence.bad_without_loss else ""
    return f"{too_late}entry {first.entry}, {part}{format_size(first.length)}: {where}{others}"


def _time_words(evidence: BlameEvidence) -> str:
    promised = (
        ""
        if evidence.lost_ms is None
        else f"; the first missing transaction was acknowledged {format_milliseconds(evidence.lost_ms)} before the cut"
    )
    if evidence.mended_by is not None:
        ms = evidence.mended_by.ms_before_cut
        when = "" if ms is None else f", {format_milliseconds(-ms)} later"
        writes = format_count(evidence.writes_until_mended or 0, "write", "writes")
        by = _by_words(evidence.mended_by)
        return f"it came {writes} behind the cut{when}{by and f', written{by}'}{promised}"
    if not evidence.smallest:
        return f"nothing that was written is missing{promised}"
    first = evidence.smallest[0]
    when = (
        "at an unknown time"
        if first.ms_before_cut is None
        else f"{format_milliseconds(first.ms_before_cut)} before the cut"
    )
    flushes = format_count(first.flushes_since, "flush", "flushes") if first.flushes_since else "no flush"
    met = (
        f", {format_count(first.flushes_met, 'flush', 'flushes')} met it on its way"
        if first.flushes_met
        else ""
    )
    return f"issued {when}{_by_words(first)}, {flushes} of that device since{met}{promised}"


def _by_words(write: BlamedWrite) -> str:
    """Who wrote it; a thread of the kernel writes back what a program left in a file. Nothing where it was not recorded."""
    kernel = "the kernel's write-back" if write.place in _OF_FILES else "the kernel"
    words = (
        f"{kernel} ({each.name})"
        if each.is_kernel
        else f"{each.name} ({f'process {each.pid}' if each.pid else 'a process without a number here'})"
        for each in write.writers or ()
    )
    return "".join(f"{' and' * bool(number)} by {each}" for number, each in enumerate(words))


@dataclass(frozen=True)
class Shrunk:
    """The parts that are left. `is_smallest` is false where the questions ended before each of them had been spared once."""

    parts: tuple[int, ...]
    is_smallest: bool


class Questions:
    """Asks `breaks` of a set once, and `most` times in all."""

    def __init__(self, breaks: Callable[[frozenset[int]], bool], most: int) -> None:
        self._breaks, self._most = breaks, most
        self._answers: dict[frozenset[int], bool] = {}

    @property
    def count(self) -> int:
        """How often `breaks` was called."""
        return len(self._answers)

    def ask(self, parts: Iterable[int]) -> bool:
        """NoMoreQuestions where it would be one too many."""
        lost = frozenset(parts)
        if lost not in self._answers:
            if self.count >= self._most:
                raise NoMoreQuestions
            self._answers[lost] = self._breaks(lost)
        return self._answers[lost]


class NoMoreQuestions(Exception):
    """As many were asked as may be."""


def shrink(writes: Sequence[Sequence[int]], questions: Questions) -> Shrunk:
    """Of parts that break together, by the write that each belongs to; none of `writes` may be empty."""
    left = _Shrinking([tuple(write) for write in writes], questions)
    try:
        left.minimise()
        if any(len(write) > 1 for write in left.units):
            left.units = [(part,) for part in chain.from_iterable(left.units)]
            left.minimise()
    except NoMoreQuestions:
        return Shrunk(left.parts, is_smallest=False)
    return Shrunk(left.parts, is_smallest=True)


class _Shrinking:
    """`units` break together, and each is lost whole or not at all."""

    def __init__(self, units: list[tuple[int, ...]], questions: Questions) -> None:
        self.units = units
        self._questions = questions

    @property
    def parts(self) -> tuple[int, ...]:
        return tuple(sorted(chain.from_iterable(self.units)))

    def minimise(self) -> None:
        """The algorithm `ddmin`: one of n pieces is enough, or all but one, or finer pieces are tried."""
        pieces = 2
        while len(self.units) > 1:
            pieces = min(pieces, len(self.units))
            chunks = _chunks(self.units, pieces)
            if (enough := self._first(chunks)) is not None:
                self.units, pieces = enough, 2
            elif pieces > 2 and (rest := self._first(_without_each(chunks))) is not None:
                self.units, pieces = rest, pieces - 1
            elif pieces == len(self.units):
                return
            else:
                pieces *= 2

    def _first(self, subsets: Iterable[list[tuple[int, ...]]]) -> list[tuple[int, ...]] | None:
        return next((each for each in subsets if self._questions.ask(chain.from_iterable(each))), None)


def _chunks(units: list[tuple[int, ...]], count: int) -> list[list[tuple[int, ...]]]:
    ends = [len(units) * number // count for number in range(count + 1)]
    return [units[first:end] for first, end in pairwise(ends)]


def _without_each(chunks: list[list[tuple[int, ...]]]) -> Iterable[list[tuple[int, ...]]]:
    return (list(chain(*chunks[:number], *chunks[number + 1 :])) for number in range(len(chunks)))


@dataclass(frozen=True)
class Found:
    """The evidence, and the cut that loses the smallest set alone."""

    evidence: BlameEvidence
    smallest: CutPoint
