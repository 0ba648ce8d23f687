"""What a verdict of power cuts says of pages: whole by whom, torn, or not known; and when it is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from tests.support.studies.judged_cuts import made
from tests.support.studies.synthetic_power_cuts import (
    RECIPE,
    RECORDING,
    RawCuts,
    controls,
    power_cut_study,
)
from tests.support.studies.unmended_pages import (
    ALIGNED,
    COUNTS,
    OFF,
    PAGES,
    PLAIN,
    UNIT,
    run_of,
    untorn_cell,
    weighted,
)

from bedplate.analysis.answer import (
    cell_names,
    copies_words,
    headline,
    headline_lines,
    saving,
    saving_words,
    without_copies,
)
from bedplate.analysis.overview import overview
from bedplate.analysis.wording import recording_words
from bedplate.cuts.records import PageCounts, PageFacts, PointOutcome, Profile
from bedplate.model.device_cache import PROTECTED, VOLATILE_4K
from bedplate.model.figure import Scale
from bedplate.model.levels import Levels
from bedplate.model.reason import (
    INNODB_DOUBLEWRITE_OFF,
    PAGES_WRITTEN_OTHERWISE,
    because,
    is_given,
    sentences,
)
from bedplate.model.visit import Durability, VisitKey
from bedplate.statistics.summary import Observation, Summary, summarise

if TYPE_CHECKING:
    from bedplate.analysis.overview import CellFacts, Overview


def test_pages_that_the_file_system_writes_whole_are_the_ground_of_a_durable_cell(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    assert "durable · untorn by file system" == run.words_with(VOLATILE_4K)
    assert "durable" == run.class_with(VOLATILE_4K)
    # In order no page is torn.
    assert run.ground(PROTECTED) is None
    (written, lie) = recording_words(run)
    assert "9,729 pages untorn over older ones, 0 refused, and 1,086 behind" in written
    assert "0 of 10,512 pages do not lie at a multiple of their size" in lie
    assert "in 4 pieces before the clients and in 300 after" in lie


def test_an_engine_that_keeps_images_of_its_pages_needs_no_ground(tmp_path: Path) -> None:
    run = replace(run_of(tmp_path), declared=Durability("durable", "durable", "declared"))
    assert "durable" == run.words_with(VOLATILE_4K)


def test_a_few_cuts_are_no_ground_for_more_than_is_declared(tmp_path: Path) -> None:
    assert "unsafe" == run_of(tmp_path, points=weighted(count=40)).words_with(VOLATILE_4K)


@pytest.mark.parametrize(
    ("count", "words"),
    [(40, "unknown · 10 of 72 cuts that could tear a page"), (320, "durable · untorn by file system")],
)
def test_nor_are_they_one_of_a_verdict_that_is_not_the_cells(tmp_path: Path, count: int, words: str) -> None:
    run = run_of(tmp_path, points=weighted(count=count))
    # As with a journal in memory that was kept at each cut.
    other = replace(run, verdict=replace(run.verdict, of_the_cell=False))
    assert words == other.words_with(VOLATILE_4K)


def test_cuts_that_tear_pages_and_no_others_say_so(tmp_path: Path) -> None:
    bad = {Profile.SUBSET_4K: PointOutcome.DETECTED}
    torn = run_of(tmp_path / "torn", PLAIN, level="count", points=weighted(bad))
    assert "unsafe · pages tear" == torn.words_with(VOLATILE_4K)
    # Without cuts that tear nothing, nothing shows that tearing did it.
    alone = tuple(each for each in weighted(bad) if each.point.profile is Profile.SUBSET_4K)
    of_one_kind = run_of(tmp_path / "alone", PLAIN, level="count", points=(*alone, *controls()))
    assert "unsafe" == of_one_kind.words_with(VOLATILE_4K)
    also_lost = weighted({**bad, Profile.LOST: PointOutcome.DETECTED})
    assert "unsafe" == run_of(tmp_path / "lost", PLAIN, level="count", points=also_lost).words_with(
        VOLATILE_4K
    )


@pytest.mark.parametrize(
    ("pages", "words"),
    [
        (PAGES, "unknown · nobody counted the writes of pages beyond the unit"),
        (replace(PAGES, after=replace(ALIGNED, unaligned=300, divided=7, unmapped=5)), "unknown · 312 of 10,512 pages not aligned"),
        (replace(PAGES, direct_files=0), "unknown · pages through the page cache, which joins them to longer writes"),
        (replace(PAGES, page_bytes=32768), "unknown · a page of 32 kB is more than 16 kB"),
        (replace(PAGES, after=replace(ALIGNED, unmapped=10512)), "unknown · the file system does not say where its pages lie on the device"),
        (replace(PAGES, writes=4190, uncovered_writes=0), "durable · untorn by device (16 kB)"),
        (replace(PAGES, writes=4190, uncovered_writes=3), "unknown · 3 of 4,190 writes of pages beyond the unit"),
        (None, "unknown · nobody looked where the pages lie"),
    ],
)  # fmt: skip
def test_a_device_keeps_whole_what_is_aligned_and_direct(
    pages: PageFacts | None, words: str, tmp_path: Path
) -> None:
    uncounted = pages and replace(pages, counts=None)
    points = weighted(torn_as=Profile.UNTORN_16K)
    run = run_of(tmp_path, uncounted, level="off", points=points, changed={"spec": UNIT})
    assert words == run.words_with(VOLATILE_4K)
    assert words.split(" · ", maxsplit=1)[0] == run.class_with(VOLATILE_4K)


def test_a_device_is_no_ground_after_a_few_cuts_that_could_tear(tmp_path: Path) -> None:
    points = weighted(count=40, torn_as=Profile.UNTORN_16K)
    pages = replace(PAGES, counts=None, writes=4190, uncovered_writes=0)
    run = run_of(tmp_path, pages, level="off", points=points, changed={"spec": UNIT})
    tearing = run.verdict.cuts(VOLATILE_4K).tearing
    assert 0 < tearing < 72
    assert f"unknown · {tearing} of 72 cuts that could tear a page" == run.words_with(VOLATILE_4K)


def test_pages_may_come_as_they_like_where_the_engine_keeps_images_of_them(tmp_path: Path) -> None:
    pages = replace(PAGES, counts=replace(COUNTS, refused={"ENOSPC": 271}))
    kept = Durability("durable", "durable", "declared")
    assert () == run_of(tmp_path, pages, changed={"durability": kept}).verdict.refused


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        (None, "nothing was counted"),
        (replace(COUNTS, refused={"ENOSPC": 271}), "no free space in one piece for 271 of 10,000 pages"),
        (replace(COUNTS, refused={"EINVAL": 271}), "refused an untorn write for 271 of 10,000 pages (271 EINVAL)"),
        (replace(COUNTS, atomic=0), "no page was written over an older one"),
        (replace(COUNTS, no_pages=2), "2 writes with direct I/O were no whole pages"),
    ],
)  # fmt: skip
def test_a_page_that_was_written_otherwise_refuses_the_verdict(
    counts: PageCounts | None, words: str, tmp_path: Path
) -> None:
    refused = run_of(tmp_path / "on", replace(PAGES, counts=counts)).verdict.refused
    assert any(words in sentence for sentence in sentences(refused))
    assert () == run_of(tmp_path / "count", replace(PAGES, counts=counts), level="count").verdict.refused


def test_figures_of_pages_are_made(tmp_path: Path) -> None:
    facts = {**RECORDING.facts, "wal_bytes": 1024 * RECORDING.acknowledged, "wal_page_images": 0}
    raw = RawCuts(untorn_cell("on"), weighted(), recording=replace(RECORDING, pages=PAGES, facts=facts))
    found = {(each.metric, each.item): each.value for each in made(tmp_path, raw)[0].figures}
    assert (9729, 0, 1086) == tuple(
        found[name, ""] for name in ("untorn_writes", "untorn_refused", "page_extensions")
    )
    assert (1, 0) == (found["recorded_wal_kib_per_commit", ""], found["page_images_per_transaction", ""])
    assert 0 == found["unaligned_pages", "after"]
    assert found["extents_per_mib", "after"] == pytest.approx(300 / (10512 / 128))


def test_the_first_line_says_where_copies_of_pages_may_go_and_where_they_must_stay(tmp_path: Path) -> None:
    found = overview(power_cut_study(tmp_path / "study", recipe=replace(RECIPE, runs=(), repetitions=1)))
    torn = run_of(
        tmp_path / "torn", PLAIN, level="count", points=weighted({Profile.SUBSET_4K: PointOutcome.DETECTED})
    )
    unaligned = replace(PAGES, counts=None, after=replace(ALIGNED, unaligned=312))
    of_unit = {"level": "off", "points": weighted(torn_as=Profile.UNTORN_16K), "changed": {"spec": UNIT}}
    runs = {
        "ext4 barrier": (run_of(tmp_path / "whole"),),
        "xfs": (torn, run_of(tmp_path / "unaligned", unaligned, **of_unit)),  # type: ignore[arg-type]
    }
    named = {name: cell for cell, name in cell_names(found).items()}
    cells = {
        named[name]: replace(
            found.cells[named[name]],
            cuts=tuple(replace(run, key=VisitKey(named[name], "dataset", 1, 1)) for run in own),
        )
        for name, own in runs.items()
    }

    def told(cells: dict[str, CellFacts]) -> list[tuple[str, str]]:
        changed = replace(found, cells={**found.cells, **cells})
        return [(line.head, line.text) for line in headline_lines(headline(changed))]

    first, second, third, *rest = told(cells)
    assert (
        "Safe",
        "page images may go where pages are untorn by file system: ext4 barrier (bad: 0 of 160, < 2.3 %).",
    ) == first
    assert "Unsafe" == second[0]
    assert second[1].startswith("without page images pages tear: xfs (bad: 80 of 160, < ")
    assert (
        "Open",
        "without page images 312 of 10,512 pages not aligned: xfs (bad: 0 of 160, < 2.3 %).",
    ) == third
    assert not any("page images" in text for _, text in rest)
    (nowhere, *_) = told({named["xfs"]: cells[named["xfs"]]})
    assert (
        "Open",
        "page images may go nowhere here: no recording shows that pages are whole without page images.",
    ) == nowhere


def test_too_few_cuts_leave_open_whether_copies_may_go(tmp_path: Path) -> None:
    few = run_of(tmp_path / "few", points=weighted(count=40))
    facts = SimpleNamespace(
        cuts=(few, replace(few, declared=Durability("durable", "durable", "declared"))), declared=OFF
    )
    (told,) = without_copies(cast("Overview", SimpleNamespace(cells={"cell": facts})))
    assert ("page images", {}, (), {"10 of 72 cuts that could tear a page": (few,)}) == (
        told.copies,
        told.whole,
        told.torn,
        told.unknown,
    )


def test_no_number_of_good_cuts_lets_innodb_do_without_double_writing(tmp_path: Path) -> None:
    declared = Durability("unsafe", "unknown", "declared", (because(INNODB_DOUBLEWRITE_OFF, "written once"),))
    run = replace(run_of(tmp_path / "on", changed={"durability": declared}), declared=declared)
    assert run.shown_class is not None
    assert ("unsafe", "unknown") == (run.shown_class.volatile_cache, run.shown_class.protected_cache)
    assert is_given("pages-passed-over", run.shown_class.reasons)
    assert "unsafe · a checkpoint may pass over a page that no sync covers" == run.words_with(VOLATILE_4K)
    # A device that writes pages whole mends no such page either.
    unit = replace(PAGES, counts=None)
    points = weighted(torn_as=Profile.UNTORN_16K)
    of_unit = replace(
        run_of(tmp_path / "unit", unit, level="off", points=points, changed={"spec": UNIT}), declared=declared
    )
    assert "unsafe" == of_unit.class_with(VOLATILE_4K)
    facts = SimpleNamespace(cuts=(run, of_unit), declared=declared)
    (told,) = without_copies(cast("Overview", SimpleNamespace(cells={"cell": facts})))
    first, (head, text, _, _) = copies_words(told, {"cell": "xfs"})
    assert "double writing may go nowhere here" in first[1]
    assert "Open" == head
    assert text.startswith(
        "without double writing a checkpoint may pass over a page that no sync covers: xfs"
    )


def written(cell: str, metric: str) -> Summary:
    kib = {
        ("kept", "device_written_kib_per_transaction"): 24.7,
        ("kept", "wal_kib_per_transaction"): 9.39,
        ("gone", "device_written_kib_per_transaction"): 16.4,
        ("gone", "wal_kib_per_transaction"): 0.51,
        ("elsewhere", "device_written_kib_per_transaction"): 1.0,
    }.get((cell, metric))
    return Summary(0) if kib is None else summarise([Observation(kib)], Scale.RATIO)


def speeds(**levels: dict[str, str]) -> Overview:
    """Cells by what they ask for, those without page images called `gone`."""
    cells = {name: SimpleNamespace(levels=Levels(own)) for name, own in levels.items()}
    facts = {
        name: SimpleNamespace(
            declared=OFF if name == "gone" else Durability("durable", "durable", "declared")
        )
        for name in levels
    }
    study = SimpleNamespace(schedule=SimpleNamespace(cells=cells))
    told = SimpleNamespace(
        cells=facts,
        study=study,
        runs=(("dataset", "200 a second"),),
        summary=lambda cell, _, metric: written(cell, metric),
    )
    return cast("Overview", told)


def test_what_a_cell_without_copies_saves_is_said_beside_the_like_cell_that_has_them() -> None:
    kept = {"filesystem.type": "xfs", "postgresql.full_page_writes": "on"}
    gone = {"filesystem.type": "xfs", "postgresql.full_page_writes": "off", "cluster.untorn_writes": "on"}
    found = speeds(elsewhere={**kept, "filesystem.type": "ext4"}, kept=kept, gone=gone)
    told = saving(found, ["gone"])
    assert told is not None
    assert (
        "without page images 16 KiB to the device (-34 %) and 0.51 KiB of log (-95 %) for each transaction: xfs off beside xfs, "
        "200 a second."
    ) == saving_words(told, "page images", {"gone": "xfs off", "kept": "xfs"})
    # Another file system is no measure, and neither is a cell that does without copies too.
    assert saving(speeds(elsewhere={**kept, "filesystem.type": "ext4"}, gone=gone), ["gone"]) is None
    assert saving(found, []) is None


@pytest.mark.parametrize("kept", [0, 1])
def test_a_file_system_that_loses_a_block_of_its_own_tore_no_page(kept: int, tmp_path: Path) -> None:
    # As XFS with blocks of 8 kB does: its repair leaves the engine's files in lost+found, and no page was torn.
    bad = {Profile.SUBSET_4K: PointOutcome.DETECTED}
    broken = [each for each in weighted(bad) if each.outcome.is_bad and not each.point.control]
    repaired = {each.point.number for each in broken[kept:]}
    points = tuple(
        replace(each, fsck_s=0.2, problems=("cannot be mounted",)) if each.point.number in repaired else each
        for each in weighted(bad)
    )
    run = run_of(tmp_path, PLAIN, level="count", points=points)
    (told,) = without_copies(
        cast("Overview", SimpleNamespace(cells={"cell": SimpleNamespace(cuts=(run,), declared=OFF)}))
    )
    # One cut whose file system was whole is enough to say that pages tear.
    assert ((run,) if kept else (), (), () if kept else (run,)) == (told.torn, told.broken, told.fallen)
    assert ("unsafe · pages tear" if kept else "unsafe") == run.words_with(VOLATILE_4K)
    (text,) = (text for head, text, _, _ in copies_words(told, {"cell": "xfs"}) if head == "Unsafe")
    assert (
        "pages tear" if kept else "the file system itself broke, which page images do not mend: xfs"
    ) in text


def test_a_repair_that_good_cuts_need_too_says_nothing_of_what_broke(tmp_path: Path) -> None:
    # As without a journal, or on JFS.
    bad = {Profile.SUBSET_4K: PointOutcome.DETECTED}
    points = tuple(
        each if each.point.control else replace(each, fsck_s=0.2, problems=("repaired",))
        for each in weighted(bad)
    )
    run = run_of(tmp_path, PLAIN, level="count", points=points)
    assert "unsafe · pages tear" == run.words_with(VOLATILE_4K)


@pytest.mark.parametrize(
    ("pages", "bad", "is_said"),
    [
        # Each page was written whole: what a cut broke is no torn page.
        (PAGES, {Profile.SUBSET_4K: PointOutcome.SILENT}, True),
        # Something is bad where nothing is torn.
        (PLAIN, {Profile.SUBSET_4K: PointOutcome.DETECTED, Profile.LOST: PointOutcome.DETECTED}, True),
        (PLAIN, {Profile.SUBSET_4K: PointOutcome.DETECTED}, False),
    ],
)
def test_what_no_torn_page_explains_is_not_called_torn(
    pages: PageFacts, bad: dict[Profile, PointOutcome], is_said: bool, tmp_path: Path
) -> None:
    run = run_of(tmp_path, pages, level="count", points=weighted(bad))
    (told,) = without_copies(
        cast("Overview", SimpleNamespace(cells={"cell": SimpleNamespace(cuts=(run,), declared=OFF)}))
    )
    assert ((run,), ()) == ((told.broken, told.torn) if is_said else (told.torn, told.broken))
    words = [text for head, text, _, _ in copies_words(told, {"cell": "xfs"}) if head == "Unsafe"]
    beginning = "cuts are bad that no torn page explains" if is_said else "pages tear"
    assert [f"without page images {beginning}: xfs"] == [text.partition(" (bad: ")[0] for text in words]
    assert ("unsafe" if is_said else "unsafe · pages tear") == run.words_with(VOLATILE_4K)


def test_pages_that_found_no_room_are_a_finding_with_its_way_out(tmp_path: Path) -> None:
    pages = replace(PAGES, counts=replace(COUNTS, refused={"ENOSPC": 271}))
    run = run_of(tmp_path, pages)
    assert run.verdict.refused
    facts = SimpleNamespace(cuts=(run,), declared=OFF)
    (told,) = without_copies(cast("Overview", SimpleNamespace(cells={"cell": facts})))
    assert ({}, (), {}, (run,)) == (told.whole, told.torn, told.unknown, told.no_room)
    (_, (head, text, _, _)) = copies_words(told, {"cell": "xfs aged"})
    words = (
        "without page images XFS had no free space in one piece for 271 of 10,000 pages that were to be whole (ENOSPC): xfs aged; "
        'cowextsize = "8k" is the way out.'
    )
    assert ("Open", words) == (head, text)
    # The visit of such a run has failed, and keeps what it had declared before.
    failed = replace(run, declared=None, declared_first=OFF)
    (told,) = without_copies(
        cast("Overview", SimpleNamespace(cells={"cell": SimpleNamespace(cuts=(failed,), declared=None)}))
    )
    assert (failed,) == told.no_room


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        (
            replace(COUNTS, refused={"EINVAL": 271}),
            "the kernel refused an untorn write for 271 of 10,000 pages (271 EINVAL), which were written plainly and may be torn",
        ),
        (
            replace(COUNTS, refused={"EOPNOTSUPP": 1}),
            "the kernel refused an untorn write for 1 of 9,730 pages (1 EOPNOTSUPP), which were written plainly and may be torn",
        ),
        (replace(COUNTS, no_pages=2), "2 writes with direct I/O were no whole pages, and may be torn"),
    ],
)
@pytest.mark.parametrize("has_failed", [False, True])
def test_a_verdict_that_is_refused_for_its_pages_is_in_the_answer_with_its_reason(
    counts: PageCounts, why: str, has_failed: bool, tmp_path: Path
) -> None:
    run = run_of(tmp_path, replace(PAGES, counts=counts))
    assert [PAGES_WRITTEN_OTHERWISE] == [reason.code for reason in run.verdict.refused]
    if has_failed:
        run = replace(run, declared=None, declared_first=OFF)
    facts = SimpleNamespace(cuts=(run,), declared=None if has_failed else OFF)
    (told,) = without_copies(cast("Overview", SimpleNamespace(cells={"cell": facts})))
    assert ({}, (), {}, ()) == (told.whole, told.torn, told.unknown, told.no_room)
    first, line = copies_words(told, {"cell": "xfs"})
    assert "page images may go nowhere here" in first[1]
    assert ("Open", f"without page images no verdict on xfs: {why}.", "without page images", 2) == line


def test_where_copies_may_go_comes_before_the_speeds_of_the_same_study(tmp_path: Path) -> None:
    found = overview(power_cut_study(tmp_path / "study", recipe=replace(RECIPE, repetitions=1)))
    cell = next(iter(found.cells))
    run = replace(run_of(tmp_path / "whole"), key=VisitKey(cell, "dataset", 1, 1))
    changed = replace(found, cells={**found.cells, cell: replace(found.cells[cell], cuts=(run,))})
    told = headline(changed)
    assert told.answers
    heads = [line.head for line in headline_lines(told)]
    assert "Safe" == heads[0]
    assert "Not yet" in heads[1:]


def test_a_bad_cut_in_order_leaves_open_whether_copies_may_go_and_is_no_want_of_cuts(tmp_path: Path) -> None:
    points = weighted(torn_as=Profile.UNTORN_16K)
    first = next(each.point.number for each in points if each.point.profile is Profile.ORDERED)
    points = tuple(
        replace(each, outcome=PointOutcome.DETECTED) if each.point.number == first else each
        for each in points
    )
    off = replace(PAGES, counts=None)
    run = run_of(tmp_path, off, level="off", points=points, changed={"spec": UNIT})
    assert () == run.verdict.refused
    facts = SimpleNamespace(cuts=(run,), declared=OFF)
    (told,) = without_copies(cast("Overview", SimpleNamespace(cells={"cell": facts})))
    assert ({}, ()) == (told.whole, told.torn)
    assert ["1 of 80 cuts in order bad, which no whole page mends"] == list(told.unknown)
