"""An inquest into one cut, with an oracle that is planted: nothing is built or mounted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from tests.support.tools.written_log import DISCARD, FLUSH, FUA, MARK, Written, written_log

from bedplate.cuts.blame import BlameEvidence, Found, Party, Repeatability, Unsynced, WrittenPlace, story_of
from bedplate.cuts.log import Acknowledgements, read_log, window
from bedplate.cuts.records import CutPoint, Placement, PointOutcome, PointRecord, Profile, RecordingFacts
from bedplate.filesystem.blocks import Owner
from bedplate.workloads.power_cut.bench import DATA_DIRECTORY
from bedplate.workloads.power_cut.inquest import Cut, Inquest
from bedplate.workloads.power_cut.tearing import ImageNames

MS = 1_000_000


def entries() -> list[Written]:
    """A flush, twenty writes of 8 KiB with a mark behind the tenth, a flush, five writes more."""
    made = [Written(flags=FLUSH, time_ns=MS)]
    for number in range(20):
        made.append(Written(0, 16 * number, b"x" * 8192, time_ns=(2 + number) * MS))
        if number == 9:
            made.append(Written(flags=MARK, text=b"A 0 1 11000", time_ns=11 * MS))
    made.append(Written(flags=FLUSH, time_ns=30 * MS))
    return made + [Written(0, 16 * number, b"y" * 8192, time_ns=(31 + number) * MS) for number in range(5)]


CUT = 22
# Right behind the second flush: nothing waits, so a cut here loses nothing.
NOTHING_WAITS = 23
RECORDING = RecordingFacts(9, 0, 3, 3, 0, 9, 9, 1, 1.0, 9, 9, bound_ms=600.0)
OUTCOMES = Callable[[CutPoint], PointOutcome]


@dataclass
class PlantedSite:
    """Says of each cut what is planted, and keeps what it was asked."""

    outcome: OUTCOMES
    lost_ms: float | Callable[[CutPoint], float] | None = None
    failed_once: str | None = None
    fsck_s: Callable[[CutPoint], float | None] = lambda _: None
    replay_failed: Callable[[CutPoint], bool] = lambda _: False
    asked: list[CutPoint] = field(default_factory=list)

    def replay(
        self, point: CutPoint, _builder: Any, _promised: Any, *, acknowledged: Any = None
    ) -> PointRecord:
        del acknowledged
        self.asked.append(point)
        outcome = self.outcome(point)
        return PointRecord(
            *(point, outcome, None, 0, 0, 0, 1),
            lost_ms=self.lost_ms(point) if callable(self.lost_ms) else self.lost_ms,
            failed_once=self.failed_once,
            fsck_s=self.fsck_s(point),
            replay_failed=self.replay_failed(point),
            problems=(outcome.value,),
        )

    def names_on(self, _points: Any, _builder: Any) -> ImageNames:
        return ImageNames((), None)


def held(
    tmp_path: Path,
    site: PlantedSite,
    profile: Profile,
    *,
    most: int = 200,
    position: int = CUT,
    control: bool = False,
    written: Sequence[Written] = (),
    recording: RecordingFacts | None = None,
) -> Found:
    with read_log(written_log(tmp_path / "log", written or entries())) as log:
        point = CutPoint(4, position, profile, Placement.UNIFORM, 9, control)
        marks = Acknowledgements(log)
        cut = Cut(log, point, 0, marks.before(position), marks, recording)

        @dataclass
        class Job:
            window_bytes: int = 10**6

        return Inquest(cast("Any", Job()), cut, cast("Any", None), cast("Any", site), most).hold()


def lost_of(point: CutPoint) -> set[int]:
    assert point.state is not None
    return set(point.state.parts)


def broken_by(*parts: int) -> OUTCOMES:
    """Of `lost`, where each part is a write, from entry 1 on with the mark between."""
    return lambda point: PointOutcome.DETECTED if lost_of(point) >= set(parts) else PointOutcome.OK


def test_the_planted_write_is_found_and_asked_again(tmp_path: Path) -> None:
    site = PlantedSite(broken_by(12))
    found = held(tmp_path, site, Profile.LOST)
    evidence = found.evidence
    assert [14] == [write.entry for write in evidence.smallest]
    assert (20, 20, True, Repeatability.STEADY) == (
        evidence.lost_writes,
        evidence.lost_parts,
        evidence.is_smallest,
        evidence.steadiness,
    )
    assert 7.0 == evidence.smallest[0].ms_before_cut
    assert not evidence.smallest[0].is_torn
    assert evidence.replays == len(site.asked)
    assert {12} == lost_of(found.smallest)


def test_torn_writes_are_shrunk_to_their_blocks(tmp_path: Path) -> None:
    """Every block that the seed did not keep is lost; the planted one is the first of these."""
    first: list[int] = []

    def outcome(point: CutPoint) -> PointOutcome:
        first[:] = first or [min(lost_of(point))]
        return PointOutcome.SILENT if first[0] in lost_of(point) else PointOutcome.OK

    (write,) = held(tmp_path, PlantedSite(outcome), Profile.SUBSET_4K).evidence.smallest
    assert ((4096,), 8192) == (tuple(length for _, length in write.lost), write.length)
    assert write.is_torn


def test_a_cut_that_is_bad_without_a_loss_is_mended_by_a_later_write(tmp_path: Path) -> None:
    def outcome(point: CutPoint) -> PointOutcome:
        late = point.profile is Profile.ORDERED and point.position >= 26
        return PointOutcome.OK if late else PointOutcome.LOST

    evidence = held(tmp_path, PlantedSite(outcome), Profile.ORDERED).evidence
    assert evidence.bad_without_loss
    assert evidence.mended_by is not None
    assert (25, 3) == (evidence.mended_by.entry, evidence.writes_until_mended)
    # It was not under way at any flush before the cut.
    assert 0 == evidence.mended_by.flushes_met
    assert () == evidence.smallest


def mended_late(tmp_path: Path, written: Sequence[Written], needed: int) -> BlameEvidence:
    """Of a cut at entry 1, which is good as soon as one entry is on the medium, by the window of each image."""
    with read_log(written_log(tmp_path / "asked", written)) as log:

        def outcome(point: CutPoint) -> PointOutcome:
            if point.profile is not Profile.ORDERED:
                return PointOutcome.LOST
            kept = {piece.entry for piece in window(log, point, 10**6).kept}
            return PointOutcome.OK if needed in kept else PointOutcome.LOST

        site = PlantedSite(outcome)
        return held(tmp_path, site, Profile.ORDERED, position=1, written=written).evidence


def test_what_is_on_its_way_mends_nothing_before_it_is_there(tmp_path: Path) -> None:
    """Each write is under way for twenty entries: whether one before the needed write is kept is no drawn matter."""
    written = [Written(0, 16 * number, b"x" * 8192, late=min(number, 20)) for number in range(60)]
    for needed in (21, 33, 40):
        evidence = mended_late(tmp_path, written, needed)
        assert evidence.mended_by is not None
        assert (needed, needed) == (evidence.mended_by.entry, evidence.writes_until_mended)


def test_a_discard_that_mends_is_blamed_and_no_write_before_it(tmp_path: Path) -> None:
    written = [Written(0, 16 * number, b"x" * 8192) for number in range(8)]
    written[5] = Written(0, 0, flags=DISCARD, discarded_sectors=16)
    evidence = mended_late(tmp_path, written, 5)
    assert evidence.mended_by is not None
    assert (5, 5) == (evidence.mended_by.entry, evidence.writes_until_mended)


def test_a_loss_that_nothing_mends_is_said(tmp_path: Path) -> None:
    evidence = held(tmp_path, PlantedSite(lambda _: PointOutcome.LOST), Profile.SUBSET_512).evidence
    assert (True, None) == (evidence.bad_without_loss, evidence.mended_by)


def test_what_is_worse_than_without_a_loss_is_looked_for(tmp_path: Path) -> None:
    """The last transaction is missing whatever is kept; one write makes damage of it."""

    def outcome(point: CutPoint) -> PointOutcome:
        return PointOutcome.SILENT if 3 in lost_of(point) else PointOutcome.LOST

    evidence = held(tmp_path, PlantedSite(outcome), Profile.LOST).evidence
    assert ([4], PointOutcome.SILENT) == ([write.entry for write in evidence.smallest], evidence.found)


def test_a_cut_that_is_good_again_is_no_cause(tmp_path: Path) -> None:
    site = PlantedSite(lambda _: PointOutcome.OK)
    evidence = held(tmp_path, site, Profile.LOST).evidence
    assert (Repeatability.NOT_BAD_AGAIN, 2) == (evidence.steadiness, len(site.asked))


def test_a_cut_that_is_bad_at_the_second_look_alone_is_no_steady_one(tmp_path: Path) -> None:
    looks = iter([PointOutcome.OK])
    site = PlantedSite(lambda point: next(looks, broken_by(12)(point)))
    evidence = held(tmp_path, site, Profile.LOST).evidence
    assert (Repeatability.CHANGES, True) == (evidence.steadiness, evidence.is_smallest)
    assert [14] == [write.entry for write in evidence.smallest]


def test_a_finding_behind_a_first_look_that_failed_is_no_steady_one(tmp_path: Path) -> None:
    site = PlantedSite(broken_by(12), failed_once="it did not mount")
    assert Repeatability.CHANGES is held(tmp_path, site, Profile.LOST).evidence.steadiness


def test_what_is_looked_for_gives_the_cuts_own_finding(tmp_path: Path) -> None:
    """Entry 1 alone breaks it in another way, which is no cause of this cut's."""

    def outcome(point: CutPoint) -> PointOutcome:
        if lost_of(point) >= {7, 12}:
            return PointOutcome.SILENT
        return PointOutcome.DETECTED if 0 in lost_of(point) else PointOutcome.OK

    evidence = held(tmp_path, PlantedSite(outcome), Profile.LOST).evidence
    assert ([8, 14], PointOutcome.SILENT) == ([write.entry for write in evidence.smallest], evidence.found)


@pytest.mark.parametrize("beside", [None, 0.5])
def test_a_repair_that_is_needed_without_a_loss_too_is_not_the_losss(
    tmp_path: Path, beside: float | None
) -> None:
    def repair_s(point: CutPoint) -> float | None:
        return 0.5 if lost_of(point) else beside

    site = PlantedSite(broken_by(12), fsck_s=repair_s)
    assert (beside is None) is held(tmp_path, site, Profile.LOST).evidence.repaired


@pytest.mark.parametrize("without_loss", [False, True])
def test_a_file_system_that_is_always_repaired_came_back_worse_where_its_journal_was_not_replayed(
    tmp_path: Path, *, without_loss: bool
) -> None:
    """As JFS is: its repair replays the journal, and with the loss it could not. Whose tool never can, the loss is not to blame."""
    site = PlantedSite(
        broken_by(12), fsck_s=lambda _: 0.5, replay_failed=lambda point: bool(lost_of(point)) or without_loss
    )
    evidence = held(tmp_path, site, Profile.LOST).evidence
    assert [not without_loss] * 2 == [evidence.repaired, evidence.replay_failed]
    story = story_of(evidence, None)
    expected = (
        (Party.FILE_SYSTEM, "journal-not-replayed") if not without_loss else (Party.ENGINE, "relied-on-order")
    )
    assert expected == (story.party, story.reason.code)


def test_a_file_system_that_is_lost_came_back_worse_than_one_that_was_repaired(tmp_path: Path) -> None:
    def outcome(point: CutPoint) -> PointOutcome:
        return PointOutcome.FILE_SYSTEM_LOST if 12 in lost_of(point) else PointOutcome.OK

    evidence = held(tmp_path, PlantedSite(outcome, fsck_s=lambda _: 0.5), Profile.LOST).evidence
    assert evidence.repaired
    assert Party.FILE_SYSTEM is story_of(evidence, None).party


def test_a_verdict_that_changes_on_the_same_image_is_said(tmp_path: Path) -> None:
    asked: set[frozenset[int]] = set()

    def outcome(point: CutPoint) -> PointOutcome:
        lost = frozenset(lost_of(point))
        bad = 5 in lost and not (lost == {5} and lost in asked)
        asked.add(lost)
        return PointOutcome.DETECTED if bad else PointOutcome.OK

    assert Repeatability.CHANGES is held(tmp_path, PlantedSite(outcome), Profile.LOST).evidence.steadiness


@pytest.mark.parametrize("most", [4, 7, 12])
def test_no_more_replays_than_allowed(tmp_path: Path, most: int) -> None:
    site = PlantedSite(broken_by(0, 7, 12, 19))
    evidence = held(tmp_path, site, Profile.LOST, most=most).evidence
    assert len(site.asked) <= most
    assert not evidence.is_smallest


@pytest.mark.parametrize(("was_there", "before"), [(True, PointOutcome.OK), (False, PointOutcome.LOST)])
def test_an_older_loss_is_looked_for_before_the_lost_write(
    tmp_path: Path, was_there: bool, before: PointOutcome
) -> None:
    """The first missing transaction was acknowledged 10 ms before the cut, and the lost write was issued 3 ms before it."""

    def outcome(point: CutPoint) -> PointOutcome:
        if point.position == 18:
            return before
        return PointOutcome.LOST if 16 in lost_of(point) else PointOutcome.OK

    site = PlantedSite(outcome, lost_ms=10.0)
    assert was_there is held(tmp_path, site, Profile.LOST).evidence.was_there


def test_a_write_past_the_cache_is_told_from_one_that_needs_a_flush(tmp_path: Path) -> None:
    """Of a control, whose device lost the last commit's write."""
    written = entries()
    written[14] = replace(written[14], flags=FUA)
    for lost, is_through in ((12, True), (13, False)):
        site = PlantedSite(broken_by(lost))
        (write,) = held(tmp_path, site, Profile.LOST, control=True, written=written).evidence.smallest
        assert is_through is write.is_through


def test_a_loss_beyond_what_settings_allow_is_looked_for(tmp_path: Path) -> None:
    """The last 100 ms are missing whatever is kept, which is allowed; one write loses four seconds."""

    def lost_ms(point: CutPoint) -> float:
        return 4000.0 if point.profile is Profile.WHOLE and 12 in lost_of(point) else 100.0

    site = PlantedSite(lambda _: PointOutcome.LOST, lost_ms=lost_ms)
    evidence = held(tmp_path, site, Profile.LOST, recording=RECORDING).evidence
    assert (False, False) == (evidence.bad_without_loss, evidence.is_bounded)
    assert [14] == [write.entry for write in evidence.smallest]
    allowed = PlantedSite(lambda _: PointOutcome.LOST, lost_ms=100.0)
    evidence = held(tmp_path, allowed, Profile.LOST, recording=RECORDING).evidence
    assert (True, True) == (evidence.bad_without_loss, evidence.is_bounded)
    assert held(tmp_path, allowed, Profile.LOST).evidence.is_bounded is None


@pytest.mark.parametrize(("missing_ms", "was_there"), [(5.0, True), (16.0, False)])
def test_what_was_there_is_not_missed_where_settings_allow_a_loss_too(
    tmp_path: Path, missing_ms: float, *, was_there: bool
) -> None:
    """The cut before the lost write is 4 ms earlier, and the loss is 20 ms old. One of 16 ms there is the same transaction."""
    site = PlantedSite(
        lambda point: PointOutcome.LOST if point.position == 18 or 16 in lost_of(point) else PointOutcome.OK,
        lost_ms=lambda point: missing_ms if point.position == 18 else 20.0,
    )
    assert was_there is held(tmp_path, site, Profile.LOST).evidence.was_there


def test_without_a_loss_another_finding_is_not_the_cuts_own(tmp_path: Path) -> None:
    site = PlantedSite(
        lambda point: PointOutcome.LOST if 12 in lost_of(point) else PointOutcome.SILENT,
    )
    evidence = held(tmp_path, site, Profile.LOST).evidence
    assert ([14], PointOutcome.LOST) == ([write.entry for write in evidence.smallest], evidence.found)
    assert PointOutcome.SILENT is evidence.without_loss
    assert "; without any loss it is corrupt, silent" in story_of(evidence, None).lines[1]


@pytest.mark.parametrize(
    ("looks", "without_loss"),
    [
        ((PointOutcome.LOST, PointOutcome.OK, PointOutcome.OK), False),
        ((PointOutcome.LOST, PointOutcome.SILENT, PointOutcome.SILENT), True),
        ((PointOutcome.LOST, PointOutcome.LOST, PointOutcome.OK), True),
    ],
)
def test_the_first_look_at_a_cut_that_lost_nothing_counts_too(
    tmp_path: Path, looks: Sequence[PointOutcome], without_loss: bool
) -> None:
    given = iter(looks)
    site = PlantedSite(lambda _: next(given, PointOutcome.LOST))
    evidence = held(tmp_path, site, Profile.ORDERED, position=NOTHING_WAITS).evidence
    assert (Repeatability.CHANGES, without_loss) == (evidence.steadiness, evidence.bad_without_loss)
    story = story_of(evidence, None)
    assert without_loss is not (Party.NOBODY_KNOWN is story.party)
    assert "no more replays" not in "".join(story.lines)


def test_that_replays_ended_is_said_of_those_that_did(tmp_path: Path) -> None:
    words = "no more replays were allowed"
    unsteady = PlantedSite(broken_by(0, 7, 12), failed_once="it did not mount")
    for most, is_said in ((200, False), (7, True)):
        lines = story_of(held(tmp_path, unsteady, Profile.LOST, most=most).evidence, None).lines
        assert is_said is (words in lines[1])


class PlantedOwners:
    """Of an image whose first file lies in the first 64 KiB of the device, and the next behind it."""

    def of(self, device: int, offset: int, data: memoryview) -> tuple[Owner, ...]:
        del device, data
        path = f"{DATA_DIRECTORY}/{'log' if offset < 65536 else 'other'}"
        return (Owner(WrittenPlace.OTHER_FILE, path, path),)


@pytest.mark.parametrize(
    ("before", "written_at", "unsynced"),
    [
        ({"log": 10}, 100, Unsynced.NAME),
        ({"log": 10, "other": 5, "old": 1}, 100, Unsynced.NAME),
        ({"log": 8, "other": 5}, 100, Unsynced.BYTES),
        # What came of another file brings nothing of the one that has grown.
        ({"log": 8, "other": 5}, 200, Unsynced.SIZE),
        ({"log": 10, "other": 5}, 200, Unsynced.BYTES),
        ({"log": 10, "other": 5}, None, Unsynced.SIZE),
        ({}, 100, None),
    ],
)
def test_what_no_sync_had_brought_is_looked_for_in_files_and_log(
    tmp_path: Path, before: dict[str, int], written_at: int | None, unsynced: Unsynced | None
) -> None:
    after = {"log": 10, "other": 5} if before else {}
    images = ImageNames((cast("Any", PlantedOwners()),) * 2, None, sizes=(after, before))
    written = [Written(0, 0, b"x" * 512)]
    written += [] if written_at is None else [Written(0, written_at, b"y" * 512)]
    with read_log(written_log(tmp_path / "log", written)) as log:
        assert unsynced is images.unsynced(log, range(1, len(log)))
