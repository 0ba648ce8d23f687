"""Whose fault a bad cut is: by codes and values, and never by a sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bedplate.cuts.blame import (
    BlamedWrite,
    BlameEvidence,
    Party,
    Repeatability,
    Story,
    Unsynced,
    WritingProcess,
    WrittenPlace,
    fault_of,
    story_of,
)
from bedplate.cuts.records import PointOutcome, Profile
from bedplate.model import codec
from bedplate.model.durability import BOUNDED_LOSS, DURABLE, UNKNOWN, UNSAFE, with_kept_journal
from bedplate.model.reason import because
from bedplate.model.visit import Durability

WRITE = BlamedWrite(
    70, "disk", 40960, 8192, ((0, 8192),), 2.5, 0, WrittenPlace.ENGINE, ("base/1/2, byte 0: page 0",)
)
TORN = replace(WRITE, lost=((4096, 4096),))
IN_LOG = replace(WRITE, place=WrittenPlace.ENGINE_LOG)
IN_TREES = replace(WRITE, place=WrittenPlace.METADATA)
LOST = BlameEvidence(
    7,
    PointOutcome.LOST,
    Profile.SUBSET_4K,
    control=False,
    in_recovery=False,
    lost_writes=9,
    lost_parts=20,
    replays=31,
    steadiness=Repeatability.STEADY,
    smallest=(WRITE,),
    found=PointOutcome.LOST,
    lost_ms=1.0,
    problem="3 of 90 acknowledged transactions are missing",
    first_problem="5 of 90 acknowledged transactions are missing",
)
CORRUPT = replace(
    LOST, outcome=PointOutcome.DETECTED, found=PointOutcome.DETECTED, lost_ms=None, problem="invalid page"
)
IN_ORDER = replace(LOST, profile=Profile.ORDERED, smallest=(), bad_without_loss=True, lost_writes=0)
UNSYNCED = replace(
    IN_ORDER,
    outcome=PointOutcome.DETECTED,
    found=PointOutcome.DETECTED,
    mended_by=replace(WRITE, place=WrittenPlace.JOURNAL, ms_before_cut=-1.4),
)
BROKEN = replace(CORRUPT, repaired=True, smallest=(replace(TORN, place=WrittenPlace.METADATA),))


def durability(volatile: str, protected: str, *codes: str) -> Durability:
    return Durability(
        volatile, protected, "declared", tuple(because(code, f"because of {code}") for code in codes)
    )


PROMISED_LESS = Durability(
    BOUNDED_LOSS,
    BOUNDED_LOSS,
    "declared",
    (because("promised-by-author", "its author promises bounded loss", promised=BOUNDED_LOSS),),
)


@pytest.mark.parametrize(
    ("evidence", "declared", "party", "code"),
    [
        (LOST, None, Party.ENGINE, "promised-before-flushed"),
        (replace(LOST, lost_ms=40.0, was_there=True), None, Party.ENGINE, "recovery-drops-flushed"),
        (replace(LOST, lost_ms=40.0, was_there=False), None, Party.ENGINE, "promised-before-flushed"),
        (replace(LOST, smallest=(replace(WRITE, place=WrittenPlace.JOURNAL),)), None, Party.ENGINE, "metadata-not-synced"),
        (replace(LOST, in_recovery=True), None, Party.ENGINE, "recovery-not-synced"),
        (CORRUPT, None, Party.ENGINE, "relied-on-order"),
        (replace(CORRUPT, smallest=(TORN,)), None, Party.ENGINE, "relied-on-whole-write"),
        (IN_ORDER, None, Party.ENGINE, "promised-before-written"),
        (replace(IN_ORDER, mended_by=replace(WRITE, place=WrittenPlace.JOURNAL)), None, Party.ENGINE, "metadata-not-synced"),
        # What a commit of the file system brings was the engine's to sync; bytes that were nowhere are no change of metadata.
        (replace(IN_ORDER, mended_by=IN_TREES, unsynced=Unsynced.NAME), None, Party.ENGINE, "metadata-not-synced"),
        (replace(IN_ORDER, mended_by=IN_TREES, unsynced=Unsynced.BYTES), None, Party.ENGINE, "promised-before-written"),
        (replace(IN_ORDER, found=PointOutcome.SILENT), None, Party.ENGINE, "relied-on-order"),
        # Nothing is lost, and the journal's next write mends it: no page was torn, whatever its copies would have done.
        (UNSYNCED, None, Party.ENGINE, "relied-on-unsynced"),
        (UNSYNCED, durability(UNSAFE, UNKNOWN, "innodb-doublewrite-off"), Party.ENGINE, "relied-on-unsynced"),
        (UNSYNCED, durability(UNSAFE, UNSAFE, "innodb-never-syncs"), Party.ENGINE, "innodb-never-syncs"),
        (replace(UNSYNCED, mended_by=WRITE), durability(UNSAFE, UNKNOWN, "innodb-doublewrite-off"), Party.ENGINE, "innodb-doublewrite-off"),
        # Nor is one torn that the engine's own log mends: on XFS a checkpoint had passed over an undo page that no sync covers.
        (replace(UNSYNCED, mended_by=IN_LOG), durability(UNSAFE, UNKNOWN, "innodb-doublewrite-off"), Party.ENGINE, "damaged-until-log"),
        (replace(UNSYNCED, mended_by=IN_LOG), None, Party.ENGINE, "damaged-until-log"),
        # On Btrfs a commit brings such a page; of PostgreSQL, whose log has whole pages, only a torn one is known there.
        (replace(UNSYNCED, mended_by=IN_TREES), durability(UNSAFE, UNKNOWN, "innodb-doublewrite-off"), Party.ENGINE, "damaged-until-commit"),
        (replace(UNSYNCED, mended_by=IN_TREES), durability(UNSAFE, UNKNOWN, "full-page-writes-off"), Party.ENGINE, "full-page-writes-off"),
        (replace(CORRUPT, smallest=(IN_LOG,)), durability(UNSAFE, UNKNOWN, "full-page-writes-off"), Party.ENGINE, "relied-on-order"),
        (replace(CORRUPT, smallest=(IN_LOG, TORN)), durability(UNSAFE, UNKNOWN, "full-page-writes-off"), Party.ENGINE, "full-page-writes-off"),
        (replace(UNSYNCED, mended_by=None), durability(UNSAFE, UNKNOWN, "full-page-writes-off"), Party.ENGINE, "full-page-writes-off"),
        (BROKEN, None, Party.FILE_SYSTEM, "metadata-torn"),
        (replace(BROKEN, smallest=(WRITE,)), None, Party.FILE_SYSTEM, "metadata-missing"),
        (replace(BROKEN, smallest=(), bad_without_loss=True), None, Party.FILE_SYSTEM, "not-whole-in-order"),
        (replace(BROKEN, replay_failed=True), None, Party.FILE_SYSTEM, "journal-not-replayed"),
        (replace(LOST, control=True, smallest=(replace(WRITE, flushes_since=4),)), None, Party.DEVICE, "device-lied"),
        # A write past the cache is one that the device acknowledged, without any flush.
        (replace(LOST, control=True, smallest=(replace(WRITE, is_through=True),)), None, Party.DEVICE, "device-lied"),
        (replace(LOST, smallest=(replace(WRITE, is_through=True),)), None, Party.ENGINE, "promised-before-flushed"),
        # Of a control whose file system had sent none, the device kept what it was asked to.
        (replace(LOST, control=True), durability(UNSAFE, DURABLE, "flushes-missing"), Party.FILE_SYSTEM, "flushes-missing"),
        (replace(LOST, steadiness=Repeatability.NOT_BAD_AGAIN, smallest=()), None, Party.NOBODY_KNOWN, "not-bad-again"),
        # What was declared is the reason where somebody relied on it.
        (LOST, durability(UNSAFE, DURABLE, "flushes-missing"), Party.FILE_SYSTEM, "flushes-missing"),
        (LOST, durability(UNSAFE, UNSAFE, "fsync-off"), Party.ENGINE, "fsync-off"),
        (LOST, durability(UNSAFE, UNSAFE, "fsync-off", "flushes-missing"), Party.ENGINE, "fsync-off"),
        (BROKEN, durability(UNSAFE, UNSAFE, "full-page-writes-off"), Party.FILE_SYSTEM, "metadata-torn"),
        # In order the cell is durable, whatever a volatile cache does.
        (IN_ORDER, durability(UNSAFE, DURABLE, "flushes-missing"), Party.ENGINE, "promised-before-written"),
        (IN_ORDER, durability(BOUNDED_LOSS, BOUNDED_LOSS, "synchronous-commit-off"), Party.ENGINE, "synchronous-commit-off"),
        (LOST, durability(DURABLE, DURABLE, "no-journal"), Party.ENGINE, "promised-before-flushed"),
        # A reason that takes something else away is none of this finding.
        (replace(IN_ORDER, profile=Profile.SUBSET_4K), durability(UNSAFE, UNSAFE, "flushes-missing"), Party.ENGINE, "promised-before-written"),
        (replace(BROKEN, profile=Profile.ORDERED), durability(UNSAFE, UNSAFE, "flushes-missing"), Party.FILE_SYSTEM, "metadata-torn"),
        (CORRUPT, durability(BOUNDED_LOSS, BOUNDED_LOSS, "synchronous-commit-off"), Party.ENGINE, "relied-on-order"),
        (CORRUPT, durability(BOUNDED_LOSS, BOUNDED_LOSS, "fsync-waits-for-nothing"), Party.ENGINE, "relied-on-order"),
        # Of an engine's own settings the class says it in older studies, and the reason in others.
        (CORRUPT, durability(UNSAFE, BOUNDED_LOSS, "sqlite-normal"), Party.ENGINE, "relied-on-order"),
        (LOST, durability(UNSAFE, BOUNDED_LOSS, "sqlite-normal"), Party.ENGINE, "sqlite-normal"),
        (CORRUPT, replace(PROMISED_LESS, protected_cache=UNSAFE), Party.ENGINE, "relied-on-order"),
        # What settings bound explains no more than that; a bound of theirs says nothing of a file system's loss.
        (replace(LOST, is_bounded=False), durability(BOUNDED_LOSS, BOUNDED_LOSS, "synchronous-commit-off"), Party.ENGINE, "promised-before-flushed"),
        (replace(LOST, is_bounded=True), durability(BOUNDED_LOSS, BOUNDED_LOSS, "synchronous-commit-off"), Party.ENGINE, "synchronous-commit-off"),
        (replace(LOST, is_bounded=False), durability(BOUNDED_LOSS, BOUNDED_LOSS, "synchronous-commit-off", "fsync-waits-for-nothing"), Party.FILE_SYSTEM, "fsync-waits-for-nothing"),
        (CORRUPT, PROMISED_LESS, Party.ENGINE, "relied-on-order"),
        (LOST, PROMISED_LESS, Party.ENGINE, "promised-by-author"),
        (replace(CORRUPT, smallest=(TORN,)), durability(UNSAFE, UNKNOWN, "full-page-writes-off"), Party.ENGINE, "full-page-writes-off"),
        (replace(LOST, smallest=(replace(WRITE, place=WrittenPlace.JOURNAL),)), durability(UNSAFE, UNKNOWN, "full-page-writes-off"), Party.ENGINE, "metadata-not-synced"),
        (IN_ORDER, durability(UNSAFE, UNKNOWN, "full-page-writes-off"), Party.ENGINE, "promised-before-written"),
        # What only says that nothing is known is no reason, and hides none.
        (LOST, durability(UNKNOWN, UNKNOWN, "flushes-missing", "no-promise"), Party.FILE_SYSTEM, "flushes-missing"),
        (LOST, durability(UNKNOWN, UNKNOWN, "innodb-setting-not-known"), Party.ENGINE, "promised-before-flushed"),
        (LOST, durability(UNKNOWN, UNKNOWN, "no-flushes-counted"), Party.NOBODY_KNOWN, "no-flushes-counted"),
        (replace(LOST, profile=Profile.ORDERED), durability(UNKNOWN, UNKNOWN, "no-flushes-counted"), Party.ENGINE, "promised-before-flushed"),
        (replace(LOST, smallest=(replace(WRITE, flushes_met=1),)), durability(UNKNOWN, UNKNOWN, "no-flushes-counted"), Party.ENGINE, "promised-before-flushed"),
        (LOST, durability(UNSAFE, DURABLE, "flushes-missing", "sync-by-test"), Party.FILE_SYSTEM, "flushes-missing"),
        (CORRUPT, durability(UNKNOWN, UNKNOWN, "no-promise"), Party.ENGINE, "relied-on-order"),
        # Without a journal the file system may be lost, or a repair may damage files; a plain loss is none of its doing.
        (replace(LOST, smallest=(replace(WRITE, place=WrittenPlace.METADATA),)), durability(UNSAFE, UNKNOWN, "full-page-writes-off", "no-journal"), Party.ENGINE, "metadata-not-synced"),
        (CORRUPT, durability(UNSAFE, UNKNOWN, "synchronous-commit-off", "no-journal"), Party.ENGINE, "relied-on-order"),
        (replace(BROKEN, found=PointOutcome.FILE_SYSTEM_LOST), durability(UNSAFE, UNSAFE, "fsync-off", "no-journal"), Party.FILE_SYSTEM, "no-journal"),
        (BROKEN, durability(UNSAFE, UNSAFE, "fsync-off", "no-journal"), Party.FILE_SYSTEM, "no-journal"),
        (BROKEN, durability(DURABLE, DURABLE, "no-journal"), Party.FILE_SYSTEM, "metadata-torn"),
        (replace(BROKEN, found=PointOutcome.LOST), durability(DURABLE, DURABLE, "no-journal"), Party.ENGINE, "metadata-not-synced"),
        # Without a journal every cut is repaired: a repair is no file system's fault then.
        (replace(CORRUPT, repaired=True), durability(UNSAFE, UNSAFE, "fsync-off", "no-journal"), Party.ENGINE, "fsync-off"),
        # A cut in order lost nothing that the device had acknowledged.
        (replace(LOST, control=True, profile=Profile.ORDERED, smallest=(replace(WRITE, flushes_since=4),)), None, Party.ENGINE, "promised-before-flushed"),
        (replace(LOST, smallest=(replace(WRITE, place=WrittenPlace.JOURNAL, flushes_met=2),)), None, Party.FILE_SYSTEM, "flush-before-complete"),
    ],
)  # fmt: skip
def test_the_fault_is_named(
    evidence: BlameEvidence, declared: Durability | None, party: Party, code: str
) -> None:
    fault = fault_of(evidence, declared)
    assert (party, code) == (fault.party, fault.reason.code)


def test_only_without_double_writing_a_checkpoint_is_said_to_pass_over_a_page() -> None:
    evidence = replace(UNSYNCED, mended_by=IN_LOG)
    passed_over = "a checkpoint may pass over a page that no sync covers"
    for code, is_said in (("innodb-doublewrite-off", True), ("full-page-writes-off", False)):
        reason = fault_of(evidence, durability(UNSAFE, UNKNOWN, code)).reason
        assert is_said is (passed_over in reason.sentence)
        assert "no write is torn or lost" in reason.sentence


def test_an_authors_promise_of_everything_is_no_excuse() -> None:
    said = because("promised-by-author", "its author promises durable", promised=DURABLE)
    declared = Durability(UNSAFE, DURABLE, "declared", (said, because("flushes-missing", "none")))
    assert Party.FILE_SYSTEM is fault_of(LOST, declared).party


@pytest.mark.parametrize(
    "evidence",
    [
        LOST,
        CORRUPT,
        IN_ORDER,
        BROKEN,
        replace(LOST, steadiness=Repeatability.CHANGES, is_smallest=False),
        replace(LOST, steadiness=Repeatability.NOT_BAD_AGAIN, smallest=(), found=None),
        replace(IN_ORDER, mended_by=replace(WRITE, ms_before_cut=-3.0), writes_until_mended=2),
        replace(LOST, smallest=(replace(WRITE, writers=(WritingProcess(7, "server", is_kernel=None),)),)),
    ],
)
def test_a_story_has_five_lines_and_survives_its_file(evidence: BlameEvidence) -> None:
    story = story_of(evidence, None)
    assert 5 == len(story.lines)
    assert all(story.lines)
    assert not any("\n" in line for line in story.lines)
    assert story == codec.loads(Story, codec.dumps(story, indent=None))


def test_a_line_holds_nothing_that_a_terminal_obeys() -> None:
    said = replace(LOST, first_problem="page\x1b[2J\nbad", problem="\x07")
    lines = story_of(said, None).lines
    assert "page?[2J?bad" in lines[0]
    assert all(line.isprintable() for line in lines)


SERVER = WritingProcess(70, "server: checkpointer", is_kernel=False)
KERNEL = WritingProcess(71, "kworker/u8:3", is_kernel=True)


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (WRITE, "before the cut, no flush"),
        (replace(WRITE, writers=(SERVER,)), "before the cut by server: checkpointer (process 70), no flush"),
        (
            replace(WRITE, writers=(KERNEL,)),
            "before the cut by the kernel's write-back (kworker/u8:3), no flush",
        ),
        (
            replace(WRITE, place=WrittenPlace.JOURNAL, writers=(KERNEL,)),
            "before the cut by the kernel (kworker/u8:3), no flush",
        ),
        (
            replace(WRITE, writers=(replace(KERNEL, pid=0, is_kernel=None),)),
            "before the cut by kworker/u8:3 (a process without a number here), no flush",
        ),
        (
            replace(WRITE, writers=(SERVER, replace(SERVER, pid=72, is_kernel=None))),
            "by server: checkpointer (process 70) and by server: checkpointer (process 72), no flush",
        ),
    ],
)
def test_a_story_says_who_wrote_where_that_was_seen(write: BlamedWrite, said: str) -> None:
    assert said in story_of(replace(LOST, smallest=(write,)), None).lines[3]


def test_a_write_that_came_too_late_has_its_writer_too() -> None:
    late = replace(WRITE, ms_before_cut=-3.0)
    told = replace(IN_ORDER, mended_by=late, writes_until_mended=2)
    assert "it came 2 writes behind the cut, 3 ms later; the first" in story_of(told, None).lines[3]
    told = replace(told, mended_by=replace(late, writers=(SERVER,)))
    assert "3 ms later, written by server: checkpointer (process 70); the" in story_of(told, None).lines[3]


def test_what_is_not_certain_is_said() -> None:
    lines = story_of(replace(LOST, steadiness=Repeatability.CHANGES, is_smallest=False), None).lines
    assert "perhaps fewer, as no more replays were allowed; the same image gave another verdict" in lines[1]
    slipped = story_of(replace(CORRUPT, outcome=PointOutcome.LOST), None).lines
    assert "1 write is enough for corrupt, detected: invalid page (31 replays)" in slipped[1]


def test_torn_writes_are_named_by_what_of_them_is_lost() -> None:
    lines = story_of(replace(CORRUPT, smallest=(TORN,)), None).lines
    assert "of 9 lost or torn writes 1 write, torn is enough: invalid page (31 replays)" == lines[1]
    same = story_of(replace(CORRUPT, first_problem="invalid page"), None).lines
    assert "of 9 lost or torn writes 1 write is enough (31 replays)" == same[1]
    assert "entry 70, bytes 4096 to 8192 of 8 KiB: base/1/2, byte 0: page 0" == lines[2]


def test_a_journal_in_memory_that_was_kept_is_no_reason_and_the_missing_flush_is_one() -> None:
    declared = durability(UNSAFE, UNSAFE, "journal-in-memory", "data-flushes-missing")
    lost, kept = (fault_of(CORRUPT, each) for each in (declared, with_kept_journal(declared)))
    assert ["journal-in-memory", "data-flushes-missing"] == [lost.reason.code, kept.reason.code]
    assert Party.FILE_SYSTEM is kept.party


@pytest.mark.parametrize(
    ("unsynced", "words"),
    [
        (None, "bytes, a size or a name"),
        (Unsynced.BYTES, "the bytes were not on the medium"),
        (
            Unsynced.SIZE,
            "the bytes were on the medium, and the journal did not have them yet as a part of the file",
        ),
        (Unsynced.NAME, "a name was not in its directory yet"),
    ],
)
def test_what_was_relied_on_before_a_sync_is_said_by_what_was_late(
    unsynced: Unsynced | None, words: str
) -> None:
    fault = fault_of(replace(UNSYNCED, unsynced=unsynced), None)
    assert "relied-on-unsynced" == fault.reason.code
    assert f"no fsync had waited for: {words}" in str(fault.reason)
