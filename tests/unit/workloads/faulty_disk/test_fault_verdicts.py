"""What a fault is called by what was seen, and whether a run of faults may be believed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.studies.synthetic_faulty_disks import (
    CONTROL_TRIES,
    FAULT_DATASET,
    FAULT_SPEC,
    GOOD,
    SILENT,
    tried,
    write_fault_visit,
)
from tests.support.studies.synthetic_power_cuts import RECIPE, RawCuts, point
from tests.support.studies.synthetic_study import cells_of

from bedplate.cuts.faults import (
    TRIES_FILE,
    Detected,
    FaultRecord,
    FaultVerdict,
    Seen,
    counted,
    detected_by,
    read_tries,
    verdict_of,
)
from bedplate.cuts.points import within_bound
from bedplate.cuts.records import PointOutcome
from bedplate.figures.run import make_figures
from bedplate.model.figure import RunFigures, Status
from bedplate.model.visit import Outcome, Validity

RAW = RawCuts(cells_of(RECIPE)[0], (), recording=None, dataset=FAULT_DATASET, spec=FAULT_SPEC)


@pytest.mark.parametrize(
    ("left", "seen", "writable", "verdict"),
    [
        (PointOutcome.OK, Seen.WENT_ON, True, FaultVerdict.WENT_ON),
        (PointOutcome.OK, Seen.STOPPED, True, FaultVerdict.STOPPED),
        (PointOutcome.OK, Seen.STOPPED, False, FaultVerdict.READ_ONLY),
        (PointOutcome.OK, Seen.HUNG, True, FaultVerdict.HUNG),
        (PointOutcome.OK, Seen.HUNG, False, FaultVerdict.HUNG),
        (PointOutcome.NEEDS_FSCK, Seen.HUNG, True, FaultVerdict.REPAIRED),
        (PointOutcome.LOST, Seen.HUNG, True, FaultVerdict.LOST_SILENT),
        (PointOutcome.NEEDS_FSCK, Seen.STOPPED, False, FaultVerdict.REPAIRED),
        (PointOutcome.LOST, Seen.WENT_ON, True, FaultVerdict.LOST_SILENT),
        # Whatever was said when the disk failed: nobody says afterwards that rows are missing.
        (PointOutcome.SILENT, Seen.STOPPED, False, FaultVerdict.LOST_SILENT),
        (PointOutcome.DETECTED, Seen.WENT_ON, True, FaultVerdict.LOST_DETECTED),
        (PointOutcome.FILE_SYSTEM_LOST, Seen.STOPPED, True, FaultVerdict.LOST_DETECTED),
    ],
)
def test_the_gravest_thing_that_was_seen_is_the_verdict(
    left: PointOutcome, seen: Seen, *, writable: bool, verdict: FaultVerdict
) -> None:
    assert verdict is verdict_of(left, seen, is_hit=True, writable=writable)
    assert FaultVerdict.NOT_HIT is verdict_of(left, seen, is_hit=False, writable=writable)


def test_what_is_missing_behind_a_repair_is_detected_and_never_bounded() -> None:
    how = {"is_hit": True, "writable": True, "is_repaired": True, "is_bounded": True}
    for left in (PointOutcome.LOST, PointOutcome.SILENT):
        assert FaultVerdict.LOST_DETECTED is verdict_of(left, Seen.WENT_ON, **how)
    quiet = {"writable": True, "kernel_spoke": False, "engine_spoke": False, "is_repaired": True}
    assert (Detected.FILE_SYSTEM,) == detected_by(PointOutcome.LOST, Seen.WENT_ON, **quiet)


def test_what_a_quiet_disk_did_and_nobody_missed_is_no_result() -> None:
    how = {"is_hit": True, "is_unseen": True}
    assert FaultVerdict.NO_TRACE is verdict_of(PointOutcome.OK, Seen.WENT_ON, writable=True, **how)
    assert FaultVerdict.LOST_SILENT is verdict_of(PointOutcome.LOST, Seen.WENT_ON, writable=True, **how)
    assert FaultVerdict.READ_ONLY is verdict_of(PointOutcome.OK, Seen.WENT_ON, writable=False, **how)
    assert FaultVerdict.STOPPED is verdict_of(PointOutcome.OK, Seen.STOPPED, writable=True, **how)
    assert {FaultVerdict.NO_TRACE, FaultVerdict.NOT_HIT} == {
        each for each in FaultVerdict if not each.is_result
    }


def test_damage_that_only_our_check_found_was_said_by_nobody() -> None:
    quiet = {"writable": True, "kernel_spoke": False, "engine_spoke": False}
    assert () == detected_by(PointOutcome.NEEDS_FSCK, Seen.WENT_ON, **quiet)


def test_a_loss_is_as_old_as_it_was_at_the_last_acknowledgement() -> None:
    # The server came back and was asked for 31 seconds; 80 ms of its promises are missing.
    lost = point(0, PointOutcome.LOST, lost=2, lost_ms=31_080.0)
    assert within_bound(lost, 600.0, None, after_ms=31_000.0)
    assert not within_bound(lost, 600.0, None, after_ms=30_000.0)
    # An engine that nothing stopped has no bounded loss.
    how = {"is_hit": True, "writable": True, "is_bounded": True}
    assert FaultVerdict.LOST_SILENT is verdict_of(PointOutcome.LOST, Seen.WENT_ON, **how)


def test_a_loss_is_bounded_by_count_or_by_time_and_damage_never() -> None:
    lost = point(0, PointOutcome.LOST, lost=2, lost_ms=80.0)
    assert within_bound(lost, None, 2)
    assert within_bound(lost, 80.0, None)
    assert not within_bound(lost, 79.0, 1)
    assert not within_bound(lost, None, None)
    assert not within_bound(replace(lost, lost_ms=None), 1e9, None)
    how = {"is_hit": True, "writable": True, "is_bounded": True}
    assert FaultVerdict.BOUNDED is verdict_of(PointOutcome.LOST, Seen.STOPPED, **how)
    assert FaultVerdict.LOST_SILENT is verdict_of(PointOutcome.SILENT, Seen.STOPPED, **how)
    assert not FaultVerdict.BOUNDED.is_lost


def test_file_system_and_engine_are_kept_apart() -> None:
    quiet = {"writable": True, "kernel_spoke": False, "engine_spoke": False}
    assert () == detected_by(PointOutcome.SILENT, Seen.WENT_ON, **quiet)
    assert (Detected.ENGINE,) == detected_by(PointOutcome.OK, Seen.STOPPED, **quiet)
    assert (Detected.ENGINE,) == detected_by(PointOutcome.DETECTED, Seen.WENT_ON, **quiet)
    assert (Detected.ENGINE,) == detected_by(PointOutcome.OK, Seen.WENT_ON, **{**quiet, "engine_spoke": True})
    for spoken in (
        detected_by(PointOutcome.OK, Seen.WENT_ON, **{**quiet, "writable": False}),
        detected_by(PointOutcome.OK, Seen.WENT_ON, **{**quiet, "kernel_spoke": True}),
        detected_by(PointOutcome.NEEDS_FSCK, Seen.WENT_ON, **quiet, is_repaired=True),
        detected_by(PointOutcome.FILE_SYSTEM_LOST, Seen.WENT_ON, **quiet),
    ):
        assert (Detected.FILE_SYSTEM,) == spoken


def figures_of(path: Path, tries: tuple[FaultRecord, ...], **changes: object) -> RunFigures:
    raw = replace(RAW, **changes)  # type: ignore[arg-type]
    return make_figures(path / "visit", write_fault_visit(path / "visit", raw, tries))


def values(found: RunFigures, item: str = "") -> dict[str, float | None]:
    return {each.metric: each.value for each in found.figures if each.item == item}


def test_a_fault_that_was_never_hit_counts_for_nothing(tmp_path: Path) -> None:
    found = figures_of(tmp_path, GOOD)
    assert (Validity.VALID, ()) == (found.validity, found.validity_reasons)
    assert {
        "faults_hit": 4,
        "faults_not_hit": 2,
        "faults_lost": 0,
        "faults_lost_silently": 0,
        "faults_stopped": 4,
    } == values(found)
    never = [each for each in found.figures if each.item == "read-once-data"]
    absent = {each.metric for each in never if each.status is Status.ABSENT}
    assert {"faults_lost", "faults_lost_silently", "faults_stopped"} == absent
    assert {"fault-not-hit"} == {each.reason.code for each in never if each.reason is not None}


def test_what_was_lost_silently_is_counted_by_fault(tmp_path: Path) -> None:
    found = figures_of(tmp_path, SILENT)
    assert 1 == values(found)["faults_lost_silently"]
    assert 1 == values(found, "write-once-data")["faults_lost"]


def codes(found: RunFigures) -> set[str]:
    return {reason.code for reason in found.validity_reasons}


def test_a_control_that_is_not_as_it_must_be_makes_all_suspect(tmp_path: Path) -> None:
    none, lost = CONTROL_TRIES
    blind = (none, replace(lost, verdict=FaultVerdict.WENT_ON), *GOOD[2:])
    refused = (
        none,
        replace(lost, verdict=FaultVerdict.LOST_DETECTED, left=PointOutcome.FILE_SYSTEM_LOST),
        *GOOD[2:],
    )
    complaining = (replace(none, detected=(Detected.FILE_SYSTEM,)), lost, *GOOD[2:])
    idle = (replace(none, verdict=FaultVerdict.NOT_HIT, acknowledged=0), lost, *GOOD[2:])
    broken = (replace(none, verdict=FaultVerdict.LOST_SILENT), lost, *GOOD[2:])
    bounded = (none, replace(lost, verdict=FaultVerdict.BOUNDED), *GOOD[2:])
    for number, (tries, code) in enumerate(
        (
            (blind, "lost-writes-not-seen"),
            # The oracle is not asked where the file system is lost.
            (refused, "lost-writes-not-seen"),
            (complaining, "control-without-a-fault-not-whole"),
            (idle, "control-without-a-fault-not-whole"),
            (bounded, "lost-writes-not-seen"),
            (broken, "control-without-a-fault-not-whole"),
            ((none, *GOOD[2:]), "lost-writes-not-seen"),
            ((lost, *GOOD[2:]), "control-without-a-fault-not-whole"),
            (GOOD[:-1], "faults-missing"),
        )
    ):
        found = figures_of(tmp_path / str(number), tries)
        assert (Validity.SUSPECT, {code}) == (found.validity, codes(found))


def test_a_run_of_which_nothing_was_hit_is_unknown(tmp_path: Path) -> None:
    verdicts = (FaultVerdict.NOT_HIT, FaultVerdict.NO_TRACE)
    none = tuple(replace(each, verdict=verdicts[n % 2]) for n, each in enumerate(GOOD[2:]))
    found = figures_of(tmp_path, (*CONTROL_TRIES, *none))
    assert (Validity.UNKNOWN, {"no-fault-hit"}) == (found.validity, codes(found))


def test_a_run_that_failed_has_no_figures_and_keeps_its_tries(tmp_path: Path) -> None:
    found = figures_of(tmp_path, GOOD[:4], outcome=Outcome.FAILED)
    assert () == found.figures
    assert Validity.UNKNOWN is found.validity


def test_a_damaged_line_is_a_problem_and_the_rest_is_kept(tmp_path: Path) -> None:
    run = write_fault_visit(tmp_path / "visit", RAW, GOOD)
    path = run / TRIES_FILE
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*lines[:-1], lines[-1][:40], '{"number": 9}']), encoding="utf-8")
    found = read_tries(run)
    assert (5, 2) == (len(found.tried), len(found.controls))
    # The line that is cut, and what the other lacks.
    assert "line 8 is not JSON" in found.problems[0]
    assert all("line 9" in problem for problem in found.problems[1:])
    path.unlink()
    missing = read_tries(run)
    assert (0, 1) == (len(missing.tried), len(missing.problems))


def test_verdicts_are_counted_from_the_worst_on_and_what_was_not_hit_last() -> None:
    order = (FaultVerdict.NOT_HIT, FaultVerdict.WENT_ON, FaultVerdict.LOST_SILENT, FaultVerdict.REPAIRED)
    found = counted(tried(n, "full", verdict) for n, verdict in enumerate(order))
    assert [FaultVerdict.LOST_SILENT, FaultVerdict.REPAIRED, FaultVerdict.WENT_ON, FaultVerdict.NOT_HIT] == [
        *found
    ]
