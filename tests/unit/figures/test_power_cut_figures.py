"""Verdicts of power cuts: counts, classes, and the experiments that are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.studies.judged_cuts import CELL, DECLARED, VOLATILE, changed, good, judged, made, shown
from tests.support.studies.synthetic_power_cuts import (
    RECORDING,
    UNFLUSHED,
    controls,
    point,
    points_of,
    write_cut_visit,
)

from bedplate.cuts.points import FINDINGS, CutCounts, finding_of, read_cuts, recovery_s
from bedplate.cuts.records import POINTS_FILE, RECORDING_FILE, PointOutcome, Profile
from bedplate.cuts.verdict import CUTS_FOR_MORE, classes_of, cut_words, measured_durability
from bedplate.figures.run import make_figures
from bedplate.model.cell import ClusterLevels
from bedplate.model.device_cache import CACHES, PROTECTED, VOLATILE_4K, VOLATILE_512
from bedplate.model.durability import BOUNDED_LOSS, CLASSES, DURABLE, UNSAFE
from bedplate.model.figure import Status
from bedplate.model.levels import Levels
from bedplate.model.reason import sentences
from bedplate.model.visit import Durability, Outcome, Validity
from bedplate.statistics.comparison import proportion


def test_a_cell_that_loses_nothing_is_durable_and_its_run_valid(tmp_path: Path) -> None:
    figures, verdict = made(tmp_path, good())
    assert verdict is not None
    assert (Validity.VALID, ()) == (figures.validity, figures.validity_reasons)
    assert (shown(verdict, VOLATILE_4K), shown(verdict, PROTECTED)) == (DURABLE, DURABLE)
    counts = [verdict.cuts(cache).drawn.cuts for cache in (VOLATILE_4K, VOLATILE_512, PROTECTED)]
    assert [20, 10, 10, 6] == [*counts, verdict.controls.cuts]
    by_name = {(item.metric, item.item): item for item in figures.figures}
    assert by_name["power_cuts", ""].value == 40
    assert by_name["power_cuts_bad", ""].value == 0
    assert by_name["power_cut_bad_share", "ordered"].value == 0
    assert by_name["lost_ms_max", ""].status is Status.ABSENT
    assert by_name["lost_transactions_max", ""].value == 0
    assert by_name["recorded_commits_per_s", ""].value == 2000
    assert by_name["recorded_flushes_per_commit", ""].value == 0.75
    assert by_name["recovery_s_max", ""].value == pytest.approx(0.02 + 0.2 + 0.039)
    found = measured_durability(verdict, DECLARED)
    assert found is not None
    assert Durability(DURABLE, DURABLE, "measured", volatile_cache_512=DURABLE) == replace(found, reasons=())
    assert (
        "volatile cache, 4 KiB sectors: 0 of 20 bad",
        "volatile cache, 512-byte sectors: 0 of 10 bad",
        "protected cache: 0 of 10 bad",
    ) == sentences(found.reasons)


def test_barriers_off_is_unsafe_but_for_a_protected_cache(tmp_path: Path) -> None:
    raw = good(
        points=(*points_of(dict.fromkeys(VOLATILE, PointOutcome.LOST)), *controls()),
        recording=replace(RECORDING, flushes=2),
        flush_counts=UNFLUSHED,
        durability=Durability("unsafe", "durable", "declared"),
    )
    verdict = judged(tmp_path, raw)
    assert (UNSAFE, DURABLE) == (shown(verdict, VOLATILE_4K), shown(verdict, PROTECTED))
    assert cut_words(verdict.cuts(VOLATILE_4K).drawn) == "20 of 20 bad: 20 loss"
    assert cut_words(verdict.volatile_drawn) == "30 of 30 bad: 30 loss"
    assert verdict.loss.transactions_max == 5 + 38
    found = measured_durability(verdict, raw.durability)
    assert found is not None
    assert not any("declared" in reason.sentence for reason in found.reasons)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (PointOutcome.DETECTED, "corrupt, detected"),
        (PointOutcome.SILENT, "corrupt, silent"),
        (PointOutcome.FILE_SYSTEM_LOST, "file system lost"),
    ],
)
def test_a_single_torn_page_is_unsafe_and_said_against_what_was_declared(
    tmp_path: Path, outcome: PointOutcome, words: str
) -> None:
    points = points_of({})
    points[0] = point(0, outcome)
    verdict = judged(tmp_path, good(points=(*points, *controls())))
    assert shown(verdict, VOLATILE_4K) == UNSAFE
    assert verdict.cuts(VOLATILE_4K).drawn.worst == words
    found = measured_durability(verdict, DECLARED)
    assert found is not None
    assert sentences(found.reasons[:2]) == (
        f"volatile cache, 4 KiB sectors: 1 of 20 bad: 1 {words}",
        "volatile cache, 4 KiB sectors: declared durable, measured unsafe",
    )


def test_fsck_is_work_and_no_loss(tmp_path: Path) -> None:
    everywhere = dict.fromkeys(Profile, PointOutcome.NEEDS_FSCK)
    figures, verdict = made(tmp_path, good(points=(*points_of(everywhere), *controls())))
    assert verdict is not None
    assert (DURABLE, DURABLE) == (shown(verdict, VOLATILE_4K), shown(verdict, PROTECTED))
    assert {item.value for item in figures.figures if item.metric == "recovery_fsck_s"} == {0.1}
    found = measured_durability(verdict, DECLARED)
    assert found is not None
    assert "40 of 40 cuts needed fsck" in sentences(found.reasons)


@pytest.mark.parametrize(
    ("lost", "lost_ms", "bounds", "finding"),
    [
        (50, 599.9, {"bound_ms": 600.0}, "bounded loss"),
        (50, 600.1, {"bound_ms": 600.0}, "loss"),
        (50, None, {"bound_ms": 600.0}, "loss"),
        (1, None, {"bound_transactions": 1}, "bounded loss"),
        (2, 1.0, {"bound_transactions": 1}, "loss"),
        (1, 1.0, {}, "loss"),
    ],
)
def test_a_loss_is_bounded_only_by_what_the_engine_promises(
    lost: int, lost_ms: float | None, bounds: dict[str, float], finding: str
) -> None:
    record = point(1, PointOutcome.LOST, lost=lost, lost_ms=lost_ms)
    assert finding_of(record, replace(RECORDING, **bounds)) == finding  # type: ignore[arg-type]


def test_asynchronous_commits_are_bounded_loss_on_both_sides(tmp_path: Path) -> None:
    points = [*points_of(dict.fromkeys(Profile, PointOutcome.LOST)), *controls()]
    raw = good(
        points=tuple(points),
        recording=replace(RECORDING, bound_ms=600.0, flushes=400),
        durability=Durability("bounded loss", "bounded loss", "declared"),
        cell=replace(CELL, cluster=ClusterLevels(settings=Levels(synchronous_commit="off"))),
    )
    verdict = judged(tmp_path, raw)
    assert verdict.refused == ()
    assert (BOUNDED_LOSS, BOUNDED_LOSS) == (shown(verdict, VOLATILE_4K), shown(verdict, PROTECTED))


def test_what_fails_with_one_cache_fails_with_each_that_asks_more() -> None:
    tallies = {
        PROTECTED: CutCounts({"loss": 1}),
        VOLATILE_4K: CutCounts({"ok": 9}),
        VOLATILE_512: CutCounts({"ok": 9}),
    }
    assert {PROTECTED: UNSAFE, VOLATILE_4K: UNSAFE, VOLATILE_512: UNSAFE} == classes_of(tallies)
    torn = {**tallies, PROTECTED: CutCounts({"ok": 1}), VOLATILE_512: CutCounts({"file system lost": 1})}
    assert {PROTECTED: DURABLE, VOLATILE_4K: DURABLE, VOLATILE_512: UNSAFE} == classes_of(torn)
    assert {PROTECTED: None, VOLATILE_4K: DURABLE, VOLATILE_512: None} == classes_of(
        {VOLATILE_4K: CutCounts({"ok": 9})}
    )


@settings(deadline=None)
@given(
    st.fixed_dictionaries(
        {cache: st.dictionaries(st.sampled_from(FINDINGS), st.integers(1, 9)) for cache in CACHES}
    ),
    st.sampled_from(CACHES),
    st.sampled_from(FINDINGS),
)
def test_a_worse_cut_never_makes_a_better_class(
    counts: dict[str, dict[str, int]], at: str, more: str
) -> None:
    before = classes_of({cache: CutCounts(found) for cache, found in counts.items()})
    counts[at] = {**counts[at], more: counts[at].get(more, 0) + 1}
    after = classes_of({cache: CutCounts(found) for cache, found in counts.items()})
    for cache in CACHES:
        first, second = before[cache], after[cache]
        assert first is None or (second is not None and CLASSES.index(second) >= CLASSES.index(first))


@settings(deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(FINDINGS), st.integers(0, 9)), max_size=4))
def test_tallies_add_up(tallies: list[dict[str, int]]) -> None:
    together = CutCounts.together(map(CutCounts, tallies))
    assert together.cuts == sum(sum(each.values()) for each in tallies)
    assert together.cuts >= together.bad >= together.broken >= 0
    assert all(together.findings.values())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"points": tuple(points_of({}))}, "no control was cut"),
        ({"points": (*points_of({}), *controls(PointOutcome.OK))}, "0 of 6 controls were bad"),
        (
            {
                "points": (
                    *points_of({}),
                    *controls(count=3),
                    *[
                        replace(each, point=replace(each.point, number=9 + n))
                        for n, each in enumerate(controls(PointOutcome.OK, count=3))
                    ],
                )
            },
            "3 of 6 controls were bad",
        ),
        ({"points": (*points_of({})[:39], *controls())}, "39 of 40 cuts were judged"),
        (
            {"points": (*points_of({Profile.ORDERED: PointOutcome.LOST}), *controls())},
            "10 of 10 cuts in order were bad (loss)",
        ),
        ({"recording": replace(RECORDING, flushes=3)}, "3 flushes were recorded for 8000 commits"),
        ({"flush_counts": UNFLUSHED}, "6000 flushes were recorded, where syncs in the visit"),
        ({"flush_counts": ()}, "the visit counted no flushes"),
        ({"recording": replace(RECORDING, acknowledged=0)}, "no transaction was acknowledged"),
    ],
)
def test_an_experiment_that_does_not_hold_makes_no_class(
    tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    figures, verdict = made(tmp_path, good(**changes))
    assert verdict is not None
    assert any(words in reason.sentence for reason in verdict.refused), verdict.refused
    assert (None, None) == (shown(verdict, VOLATILE_4K), shown(verdict, PROTECTED))
    assert measured_durability(verdict, DECLARED) is None
    assert (Validity.SUSPECT, verdict.refused) == (figures.validity, figures.validity_reasons)
    assert figures.figures


def test_a_few_flushes_of_unmounting_are_no_contradiction(tmp_path: Path) -> None:
    raw = good(recording=replace(RECORDING, flushes=16), flush_counts=UNFLUSHED)
    assert judged(tmp_path, raw).refused == ()


def test_flushes_of_the_journal_s_device_count(tmp_path: Path) -> None:
    raw = good(recording=replace(RECORDING, flushes=0, journal_flushes=6000))
    assert judged(tmp_path, raw).refused == ()


def test_where_commits_do_not_wait_few_flushes_are_no_contradiction(tmp_path: Path) -> None:
    few = replace(RECORDING, flushes=20)
    for number, cell in enumerate(
        replace(CELL, cluster=ClusterLevels(settings=Levels({name: "off"})))
        for name in ("fsync", "synchronous_commit")
    ):
        assert judged(tmp_path / str(number), good(cell=cell, recording=few)).refused == ()
    assert judged(tmp_path / "waits", good(recording=few)).refused


def test_a_run_that_failed_has_no_verdict_and_no_figures(tmp_path: Path) -> None:
    figures, verdict = made(tmp_path, good(outcome=Outcome.FAILED))
    assert (Validity.UNKNOWN, ()) == (figures.validity, figures.figures)
    assert verdict is not None
    assert verdict.refused[0].sentence == "the run did not complete"


def test_damaged_files_are_reasons_and_not_errors(tmp_path: Path) -> None:
    run = write_cut_visit(tmp_path / "visit", good())
    text = (run / POINTS_FILE).read_text()
    (run / POINTS_FILE).write_text(text[:-40] + '\n{"point": 3}\n')
    figures = make_figures(tmp_path / "visit", run)
    assert figures.validity is not Validity.VALID
    told = [reason.sentence for reason in figures.validity_reasons]
    assert any("is not JSON" in each and "a point is missing" in each for each in told)
    (run / RECORDING_FILE).unlink()
    (run / "run.json").unlink()
    assert make_figures(tmp_path / "visit", run).validity_reasons[0].sentence == "nothing was measured"


def test_a_point_that_stands_twice_counts_once(tmp_path: Path) -> None:
    run = write_cut_visit(tmp_path / "visit", good())
    lines = (run / POINTS_FILE).read_text().splitlines()
    again = json.loads(lines[0])
    again["outcome"] = "corrupt, silent"
    (run / POINTS_FILE).write_text("\n".join([*lines, json.dumps(again)]) + "\n")
    cuts = read_cuts(run)
    assert len(cuts.points) == len(lines)
    assert sum(record.outcome is PointOutcome.SILENT for record in cuts.points) == 1


def test_a_journal_in_memory_that_was_kept_is_another_cell_s_verdict(tmp_path: Path) -> None:
    filesystem = replace(CELL.filesystem, journal="external", journal_device="ram")
    raw = good(
        cell=replace(CELL, filesystem=filesystem), durability=Durability("unsafe", "unsafe", "declared")
    )
    kept = judged(tmp_path / "kept", raw)
    assert (shown(kept, VOLATILE_4K), kept.of_the_cell) == (DURABLE, False)
    assert measured_durability(kept, DECLARED) is None
    lost = judged(tmp_path / "lost", replace(raw, recording=replace(RECORDING, loses_journal=True)))
    assert lost.of_the_cell
    found = measured_durability(lost, raw.durability)
    assert found is not None
    assert "gone after each cut" in found.reasons[-1].sentence


def test_a_side_that_no_cut_asked_keeps_what_was_declared(tmp_path: Path) -> None:
    ordered = [point(number, PointOutcome.OK, Profile.ORDERED) for number in range(40)]
    verdict = judged(tmp_path, good(points=(*ordered, *controls())))
    found = measured_durability(verdict, Durability("unsafe", "durable", "declared"))
    assert found is not None
    assert (found.volatile_cache, found.protected_cache) == ("unsafe", "durable")
    assert sentences(found.reasons[:2]) == (
        "volatile cache, 4 KiB sectors: not cut, so unsafe is as declared",
        "volatile cache, 512-byte sectors: not cut, so unsafe is as declared",
    )


@pytest.mark.parametrize("outcome", [PointOutcome.DETECTED, PointOutcome.SILENT])
def test_what_is_missing_in_what_is_not_whole_is_no_count_and_no_zero(
    tmp_path: Path, outcome: PointOutcome
) -> None:
    broken = replace(point(0, outcome), lost_transactions=900, lost_ms=7.0)
    rest = points_of({})[1:]
    figures, verdict = made(tmp_path / "broken", good(points=(broken, *rest, *controls())))
    assert verdict is not None
    assert (verdict.loss.transactions_max, verdict.loss.ms_max) == (None, None)
    (lost,) = [item for item in figures.figures if item.metric == "lost_transactions_max"]
    assert lost.status is Status.ABSENT
    both = (broken, point(1, PointOutcome.LOST, lost=3, lost_ms=2.0), *rest[1:], *controls())
    loss = judged(tmp_path / "both", good(points=both)).loss
    assert (loss.transactions_max, loss.ms_max) == (3, 2.0)


def test_recovery_counts_fsck_and_nothing_where_the_engine_never_answered() -> None:
    assert recovery_s(point(0)) == pytest.approx(0.22)
    assert recovery_s(point(0, PointOutcome.NEEDS_FSCK)) == pytest.approx(0.32)
    assert recovery_s(point(0, PointOutcome.FILE_SYSTEM_LOST)) is None


def test_few_cuts_promise_no_more_than_was_declared_and_one_bad_cut_less(tmp_path: Path) -> None:
    declared = Durability("unsafe", "unknown", "declared")
    few = judged(tmp_path / "few", good(durability=declared))
    found = measured_durability(few, declared)
    assert found is not None
    assert (found.volatile_cache, found.protected_cache) == ("unsafe", "unknown")
    assert any("20 cuts are too few to promise more (72 may)" in reason.sentence for reason in found.reasons)
    many = CutCounts({"ok": CUTS_FOR_MORE})
    enough = changed(changed(few, VOLATILE_4K, drawn=many), PROTECTED, drawn=many)
    found = measured_durability(enough, declared)
    assert found is not None
    assert (found.volatile_cache, found.protected_cache) == (DURABLE, DURABLE)
    assert "volatile cache, 4 KiB sectors: declared unsafe, measured durable" in sentences(found.reasons)
    # Ten cuts with small sectors are too few for them; what a cache with large ones shows is nothing of theirs.
    assert found.volatile_cache_512 == UNSAFE


def test_cuts_at_which_nothing_was_at_risk_promise_nothing(tmp_path: Path) -> None:
    declared = Durability("unsafe", "durable", "declared")
    kinds = (*points_of({}), *controls())
    points = tuple(replace(each, volatile_writes=0) if each.point.number % 8 < 4 else each for each in kinds)
    verdict = judged(tmp_path, good(points=points, durability=declared))
    assert [10, 5, 0] == [verdict.cuts(cache).idle for cache in (VOLATILE_4K, VOLATILE_512, PROTECTED)]
    enough = changed(verdict, VOLATILE_4K, drawn=CutCounts({"ok": CUTS_FOR_MORE + 10}))
    for idle, stands in ((10, DURABLE), (11, UNSAFE)):
        found = measured_durability(changed(enough, VOLATILE_4K, idle=idle), declared)
        assert found is not None
        assert found.volatile_cache == stands
        words = f"nothing waited for a flush at {idle + 5} of the 92 cuts with a volatile cache"
        assert words in sentences(found.reasons)


def test_what_the_engine_s_settings_allow_stays_allowed_though_no_cut_lost_any(tmp_path: Path) -> None:
    declared = Durability("bounded loss", "bounded loss", "declared")
    verdict = changed(
        judged(tmp_path, good(recording=replace(RECORDING, bound_transactions=1), durability=declared)),
        VOLATILE_4K,
        drawn=CutCounts({"ok": 500}),
    )
    found = measured_durability(verdict, declared)
    assert found is not None
    assert found.volatile_cache == BOUNDED_LOSS


def test_so_many_cuts_bound_the_bad_ones_by_five_percent() -> None:
    assert proportion(0, CUTS_FOR_MORE).high < 0.05 < proportion(0, CUTS_FOR_MORE - 1).high


def test_lmdb_answers_once_it_is_mounted() -> None:
    assert recovery_s(replace(point(0), engine_start_s=None)) == pytest.approx(0.02)


def test_one_bad_cut_is_unsafe_where_nothing_was_known(tmp_path: Path) -> None:
    declared = Durability("unsafe", "unknown", "declared")
    points = (*points_of({Profile.ORDERED: PointOutcome.SILENT}, every=9), *controls())
    found = measured_durability(judged(tmp_path, good(points=points, durability=declared)), declared)
    assert found is not None
    assert found.protected_cache == "unsafe"


def test_a_cut_that_was_good_at_the_second_look_alone_is_counted_aloud(tmp_path: Path) -> None:
    first, *others = points_of({})
    again = replace(first, failed_once="mount: structure needs cleaning")
    (_, verdict) = made(tmp_path, good(points=(again, *others, *controls())))
    assert verdict is not None
    found = measured_durability(verdict, DECLARED)
    assert found is not None
    (reason,) = (each for each in found.reasons if each.code == "good-at-second-look")
    assert reason.sentence.startswith("1 of 40 cuts were looked at twice")
