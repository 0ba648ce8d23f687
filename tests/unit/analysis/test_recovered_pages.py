"""What a verdict says of pages that a recovery wrote, which was cut again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from tests.support.studies.synthetic_power_cuts import recovery
from tests.support.studies.unmended_pages import (
    ALIGNED,
    COUNTS,
    OFF,
    PAGES,
    PLAIN,
    UNIT,
    run_of,
    weighted,
)

from bedplate.analysis.answer import copies_words, without_copies
from bedplate.analysis.wording import recording_words
from bedplate.cuts.records import PointOutcome, PointRecord, Profile, RecoveredPages
from bedplate.model.device_cache import VOLATILE_4K
from bedplate.model.reason import sentences

if TYPE_CHECKING:
    from bedplate.analysis.overview import Overview

RECOVERED = RecoveredPages(3, ALIGNED, replace(COUNTS, atomic=200, extensions=0))


def recut(
    *found: RecoveredPages | None, outcomes: dict[Profile, PointOutcome] | None = None
) -> tuple[PointRecord, ...]:
    """A recovery for each, cut eight times, and the whole of it with what is known of its pages."""
    made: list[PointRecord] = []
    for number, pages in enumerate(found):
        *cuts, whole = recovery(number, outcomes)
        made += [*cuts, replace(whole, pages=pages)]
    return tuple(made)


def test_a_ground_holds_for_the_recoveries_that_were_cut_again_too(tmp_path: Path) -> None:
    run = run_of(tmp_path, again=recut(RECOVERED, RECOVERED))
    assert ((), 16) == (run.verdict.refused, run.verdict.recut.cuts)
    assert "durable · untorn by file system" == run.words_with(VOLATILE_4K)
    assert (
        "as it recovered, to be cut again, it wrote 400 pages untorn over older ones, 0 refused, and 0 behind a file's end, in 2 recoveries"
    ) in recording_words(run)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, "nothing was counted in 1 of 2 recoveries"),
        (replace(RECOVERED, counts=None), "nothing was counted in 1 of 2 recoveries"),
        (replace(RECOVERED, counts=replace(COUNTS, refused={"ENOSPC": 71})), "in recovery: XFS found no free space in one piece for 71 of 9,800 pages"),
        (replace(RECOVERED, counts=replace(COUNTS, refused={"EINVAL": 71})), "in recovery: the kernel refused an untorn write for 71 of 9,800 pages (71 EINVAL)"),
        (replace(RECOVERED, counts=replace(COUNTS, no_pages=2)), "in recovery: 2 writes with direct I/O were no whole pages"),
    ],
)  # fmt: skip
def test_a_page_that_a_recovery_wrote_otherwise_refuses_the_verdict(
    found: RecoveredPages | None, words: str, tmp_path: Path
) -> None:
    none_written = replace(RECOVERED, counts=replace(COUNTS, atomic=0))
    again = recut(none_written, found)
    refused = run_of(tmp_path / "on", again=again).verdict.refused
    assert any(words in sentence for sentence in sentences(refused))
    assert () == run_of(tmp_path / "count", PLAIN, level="count", again=again).verdict.refused


def test_recoveries_that_wrote_no_page_show_nothing_and_one_alone_may_have_had_none(tmp_path: Path) -> None:
    none_written = replace(RECOVERED, counts=replace(COUNTS, atomic=0))
    refused = run_of(tmp_path / "none", again=recut(none_written, none_written)).verdict.refused
    assert any("in recovery: untorn_writes = on, and no page" in each for each in sentences(refused))
    some = run_of(tmp_path / "some", again=recut(none_written, RECOVERED))
    assert "durable · untorn by file system" == some.words_with(VOLATILE_4K)


def test_a_recovery_that_left_damage_says_nothing_of_pages(tmp_path: Path) -> None:
    damaged = tuple(recovery(0, whole=PointOutcome.DETECTED))
    assert () == run_of(tmp_path, again=damaged).verdict.refused


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (RECOVERED, "durable · untorn by device (16 kB)"),
        (None, "durable · untorn by device (16 kB)"),
        (replace(RECOVERED, after=replace(ALIGNED, unaligned=7)), "unknown · 7 of 10,512 pages not aligned after a recovery"),
        (replace(RECOVERED, direct_files=0), "unknown · nobody saw where the pages of a recovery lie"),
        (replace(RECOVERED, writes=40, uncovered_writes=0), "durable · untorn by device (16 kB)"),
        (replace(RECOVERED, writes=40, uncovered_writes=2), "unknown · 2 of 40 writes of pages beyond the unit in recoveries"),
    ],
)  # fmt: skip
def test_a_device_keeps_whole_what_a_recovery_wrote_aligned(
    found: RecoveredPages | None, words: str, tmp_path: Path
) -> None:
    """Of a recovery that is older than this look nothing is known, and its study says what it said."""
    again = recut(RECOVERED, found)
    run = run_of(
        tmp_path,
        replace(PAGES, counts=None, writes=4190, uncovered_writes=0),
        level="off",
        points=weighted(torn_as=Profile.UNTORN_16K),
        changed={"spec": UNIT},
        again=tuple(replace(each, pages=each.pages and replace(each.pages, counts=None)) for each in again),
    )
    assert words == run.words_with(VOLATILE_4K)


@pytest.mark.parametrize("level", ["on", "count"])
def test_a_bad_cut_in_recovery_is_named_where_no_other_is(level: str, tmp_path: Path) -> None:
    pages = PAGES if level == "on" else PLAIN
    counts = replace(RECOVERED, counts=pages.counts)
    again = recut(counts, outcomes={Profile.SUBSET_4K: PointOutcome.DETECTED})
    run = run_of(tmp_path, pages, level=level, again=again)
    assert "unsafe" == run.words_with(VOLATILE_4K)
    (found,) = without_copies(
        cast("Overview", SimpleNamespace(cells={"cell": SimpleNamespace(cuts=(run,), declared=OFF)}))
    )
    _, (head, text, _, _) = copies_words(found, {"cell": "xfs"})
    open_words = (
        "without page images 2 of 4 cuts in recovery bad: xfs (bad: 0 of 160, < 2.3 %; 2 of 4 in recovery)."
    )
    not_words = "without page images cuts are bad that no torn page explains: xfs (bad: 0 of 160, < 2.3 %; 2 of 4 in recovery)."
    assert (("Unsafe", not_words) if level == "on" else ("Open", open_words)) == (head, text)


def test_pages_that_a_recovery_had_no_room_for_count_with_the_others(tmp_path: Path) -> None:
    counts = replace(COUNTS, refused={"ENOSPC": 71})
    run = run_of(tmp_path, again=recut(replace(RECOVERED, counts=counts)))
    facts = SimpleNamespace(cuts=(run,), declared=OFF)
    (found,) = without_copies(cast("Overview", SimpleNamespace(cells={"cell": facts})))
    assert (run,) == found.no_room
    assert any(
        "for 71 of 19,529 pages that were to be whole (ENOSPC)" in text
        for _, text, _, _ in copies_words(found, {"cell": "xfs"})
    )
