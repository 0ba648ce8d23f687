"""Runs that a reader must not believe: of visits that failed after them, and of unknown validity. Every reader is asked."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest
from tests.support.studies.known_study import KNOWN, Place, change_records, known_study
from tests.support.studies.planted_reasons import planted
from tests.support.studies.synthetic_power_cuts import power_cut_study
from tests.support.studies.xfs_claim import xfs_claim
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.advice import advised
from bedplate.analysis.answer import headline
from bedplate.analysis.claims import Finding, judge_claims, parse_claims
from bedplate.analysis.comparison import ComparisonQuestion, accepting, answer, left_doubts
from bedplate.analysis.effects import study_effects
from bedplate.analysis.overview import Overview, overview
from bedplate.analysis.wording import durability_class
from bedplate.export.tables import export
from bedplate.model.codec import read, write
from bedplate.model.figure import RunFigures
from bedplate.model.reason import because, sentences
from bedplate.model.visit import CheckOutcome, Outcome, Validity, VisitRecord
from bedplate.page.answer import study_answer
from bedplate.page.build import build_report
from bedplate.page.document import page_document
from bedplate.page.views import page_effects
from bedplate.study.store import read_progress
from bedplate.terminal.advice_tables import advice_document
from bedplate.terminal.compare_tables import closing_sentences, compare_document
from bedplate.terminal.tables import show_document, show_tables
from bedplate.workloads.power_cut.page import power_cut_document, power_cut_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FSCK = "fsck found errors after a clean unmount: bad magic number in the log"
LOG = "the server's log could not be read: its checkpoints are not known"


def speed(place: Place) -> float:
    """XFS is twice as fast as the others, so that every reader would name it."""
    noise = random.Random(f"{place.cell.id} {place.repetition}").gauss(0, 0.01)
    return (2000.0 if place.cell.filesystem.type == "xfs" else 1000.0) * math.exp(noise)


def failed(step: str, reason: str, outcome: CheckOutcome | None) -> Callable[[VisitRecord], VisitRecord]:
    def change(record: VisitRecord) -> VisitRecord:
        if record.cell.filesystem.type != "xfs":
            return record
        return replace(
            record,
            outcome=Outcome.FAILED,
            reasons=planted(reason),
            failed_step=step,
            filesystem_check="bad magic number in the log" if step == "check" else None,
            filesystem_check_outcome=outcome,
        )

    return change


def of_unknown_validity(study: Path) -> Path:
    for path in study.glob("visits/[!c]*/*/*/runs/*/run.json"):
        if read(VisitRecord, path.parents[2] / "visit.json").cell.filesystem.type == "xfs":
            write(
                path,
                replace(read(RunFigures, path), validity=Validity.UNKNOWN, validity_reasons=planted(LOG)),
            )
    return study


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return known_study(tmp_path_factory.mktemp("plain") / "study", speed)


@pytest.fixture(scope="module", params=[CheckOutcome.ERRORS, None], ids=["recorded", "of an earlier version"])
def dirty(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every XFS visit failed its fsck."""
    study = known_study(tmp_path_factory.mktemp("dirty") / "study", speed)
    change_records(study, failed("check", FSCK, request.param))
    return study


@pytest.fixture(scope="module")
def unknown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of every XFS run it is unknown whether it is valid."""
    return of_unknown_validity(known_study(tmp_path_factory.mktemp("unknown") / "study", speed))


def printed(study: Path) -> str:
    return as_printed(show_tables([study]), 200)


def xfs_cells(found: Overview) -> list[str]:
    cells = found.study.schedule.cells
    return [cell for cell in found.cells if cells[cell].filesystem.type == "xfs"]


def ask_everyone(study: Path) -> dict[str, object]:
    """Whether each reader gives XFS a verdict; all of them do where its runs are valid."""
    found = overview(study)
    compared = compare_document(answer([found], ComparisonQuestion("type=ext4 barrier=yes", "type=xfs")))
    effects = study_effects(found)
    claims = judge_claims([found], [parse_claims(xfs_claim("at_least = 1.1"))])
    ((claim,),) = claims.judged
    first = study_answer(found, page_effects(found), claims, 0)
    advice = advice_document(headline(found, advised(found, cache="protected")))
    return {
        "compare": any(each["verdict"] != "cannot tell" for each in compared["comparisons"]),
        "effects": any(
            "xfs" in (one.level, one.baseline)
            for each in effects.found
            for part in each.parts
            for one in part.effects
        ),
        "claims": claim.finding in (Finding.HOLDS, Finding.FAILS),
        "advise": any(
            "xfs" in cell["label"] and cell["standing"]
            for each in advice["contests"]
            for cell in each["cells"]
        ),
        "page": any(
            "xfs" in choice.cell
            for cache in (first.volatile, first.protected)
            if cache
            for contest in cache.contests
            for choice in contest.choices
            if choice.standing != "not judged"
        ),
    }


def test_every_reader_gives_a_verdict_where_the_runs_are_valid(plain: Path) -> None:
    assert dict.fromkeys(("compare", "effects", "claims", "advise", "page"), True) == ask_everyone(plain)


def test_runs_of_visits_that_failed_their_fsck_have_no_verdict_anywhere(dirty: Path) -> None:
    assert dict.fromkeys(("compare", "effects", "claims", "advise", "page"), False) == ask_everyone(dirty)


def test_runs_of_unknown_validity_have_no_verdict_anywhere(unknown: Path) -> None:
    assert dict.fromkeys(("compare", "effects", "claims", "advise", "page"), False) == ask_everyone(unknown)


def test_the_tables_mark_such_runs_and_say_why(dirty: Path, unknown: Path) -> None:
    told = printed(dirty)
    assert "suspect (read-write): its visit failed after it at the step “check”: fsck found errors" in told
    assert "10 of 40 completed runs are suspect" in told
    doubt = printed(unknown)
    assert f"unknown validity (read-write): {LOG}" in doubt
    assert "? validity unknown" in doubt
    assert "Of 10 of 40 completed runs evidence is missing" in doubt
    lines = {
        name: next(line for line in doubt.splitlines() if line.strip().startswith(name))
        for name in ("xfs", "btrfs")
    }
    assert ("5 ?" in lines["xfs"], "5 ✓" in lines["btrfs"]) == (True, True), lines


def test_errors_that_fsck_found_leave_the_class_unknown_for_every_reader(dirty: Path, tmp_path: Path) -> None:
    found = overview(dirty)
    for cell in xfs_cells(found):
        promise = found.cells[cell].durability
        assert promise is not None
        assert ("unknown", "unknown") == (promise.volatile_cache, promise.protected_cache)
        assert ("fsck found errors after a clean unmount, without any power cut",) == sentences(
            promise.reasons
        )
    advice = advice_document(headline(found))
    assert {"unknown"} == {advice["durability"][cell]["class"] for cell in xfs_cells(found)}
    assert {"unknown"} == {
        cell["durability"] for cell in page_document([found])["cells"] if cell["panel"].startswith("xfs")
    }
    export(dirty, tmp_path)
    figures = pl.read_parquet(tmp_path / "figures.parquet").filter(pl.col("cell").is_in(xfs_cells(found)))
    assert {"unknown"} == set(figures["durability_volatile"]) | set(figures["durability_protected"])


def test_exports_have_the_validity_as_read(dirty: Path, unknown: Path, tmp_path: Path) -> None:
    for study, validity, reason in (
        (dirty, "suspect", "its visit failed after it"),
        (unknown, "unknown", LOG),
    ):
        export(study, tmp_path / validity)
        runs = pl.read_parquet(tmp_path / validity / "runs.parquet").filter(
            pl.col("cell").is_in(xfs_cells(overview(study))) & ~pl.col("canary")
        )
        assert {validity} == set(runs["validity"])
        assert all(reason in words for words in runs["reasons"])
        document = json.dumps(show_document([study]), ensure_ascii=False)
        assert reason in document


def test_the_page_has_the_validity_as_read_and_its_reason(dirty: Path, unknown: Path, tmp_path: Path) -> None:
    for study, validity, reason in (
        (dirty, "suspect", "its visit failed after it"),
        (unknown, "unknown", LOG),
    ):
        found = overview(study)
        page = page_document([found])
        rows = page["measurements"]
        xfs = {place for place, cell in enumerate(page["cells"]) if cell["panel"].startswith("xfs")}
        here = [place for place, cell in enumerate(rows["cell"]) if cell in xfs and not rows["canary"][place]]
        assert {validity} == {rows["validity"][place] for place in here}
        build_report([study], tmp_path / f"{validity}.html")
        html = (tmp_path / f"{validity}.html").read_text(encoding="utf-8")
        assert f'<span class="badge {validity}">{validity}</span>' in html
        assert reason in html


def test_what_is_left_out_is_counted_beside_the_verdicts(dirty: Path, unknown: Path) -> None:
    question = ComparisonQuestion("type=ext4 barrier=yes", "type=xfs")
    left = " ".join(closing_sentences(answer([overview(dirty)], question)))
    assert "10 values of suspect runs are no part of these verdicts" in left
    left = " ".join(closing_sentences(answer([overview(unknown)], question)))
    assert "10 values of runs of unknown validity are no part of these verdicts" in left
    for study, counts in ((dirty, (10, 0)), (unknown, (0, 10))):
        for each in study_effects(overview(study)).found:
            assert counts == (each.suspect, each.unknown)
        assert 10 == read_progress(study).suspect


@pytest.mark.parametrize("step", ["stop", "collect", "unmount", "clean-up", "visit process"])
def test_a_visit_that_failed_otherwise_after_its_runs_makes_them_suspect_and_has_no_class(
    step: str, tmp_path: Path
) -> None:
    study = known_study(tmp_path / "study", speed, replace(KNOWN, repetitions=3, canaries=0))
    change_records(study, failed(step, "the server did not stop", None))
    found = overview(study)
    for cell in xfs_cells(found):
        runs = found.of(cell, found.runs[0])
        assert {Validity.SUSPECT} == {m.validity for m in runs}
        assert all(f"at the step “{step}”: the server did not stop" in m.reasons[0].sentence for m in runs)
        promise = found.cells[cell].durability
        assert promise is not None
        assert "unknown" == promise.volatile_cache
        assert "no visit of the cell completed" in promise.reasons[0].sentence


def test_a_check_that_could_not_run_is_no_error_that_fsck_found(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed, replace(KNOWN, repetitions=3, canaries=0))
    busy = failed("check", "the device is busy", CheckOutcome.COULD_NOT_RUN)
    change_records(study, lambda record: busy(record) if record.key.repetition == 1 else record)
    found = overview(study)
    for cell in xfs_cells(found):
        promise = found.cells[cell].durability
        assert promise is not None
        # Of the two visits that completed.
        assert ("durable", ()) == (promise.volatile_cache, promise.reasons)
        validities = [m.validity for m in found.of(cell, found.runs[0])]
        assert [Validity.SUSPECT, Validity.VALID, Validity.VALID] == sorted(validities)


def test_the_failure_of_one_run_says_nothing_of_the_others(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed, replace(KNOWN, repetitions=3, canaries=0))
    change_records(study, failed("runs", "read-only: the client was killed", CheckOutcome.CLEAN))
    found = overview(study)
    assert {Validity.VALID} == {m.validity for m in found.measurements}


def test_a_visit_that_was_done_again_is_judged_by_its_last_attempt(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed, replace(KNOWN, repetitions=3, canaries=0))
    dirty = failed("check", FSCK, CheckOutcome.ERRORS)
    for path in sorted(study.glob("visits/[!c]*/*/3.1")):
        again = path.with_name("3.2")
        again.mkdir()
        record = read(VisitRecord, path / "visit.json")
        write(again / "visit.json", replace(record, key=replace(record.key, attempt=2)))
        for run in path.glob("runs/*/run.json"):
            (again / run.relative_to(path)).parent.mkdir(parents=True)
            write(again / run.relative_to(path), read(RunFigures, run))
        write(path / "visit.json", dirty(record))
    found = overview(study)
    assert {Validity.VALID} == {m.validity for m in found.measurements}
    assert "unknown" not in {c.durability.volatile_cache for c in found.cells.values() if c.durability}


def test_doubts_may_be_accepted_but_no_class_comes_back(dirty: Path, unknown: Path) -> None:
    (taken,) = accepting([overview(unknown)], ["could not be read"])
    assert {Validity.VALID} == {m.validity for m in taken.measurements if not m.canary}
    (taken,) = accepting([overview(dirty)], ["fsck"])
    assert {Validity.VALID} == {m.validity for m in taken.measurements if not m.canary}
    assert {"unknown"} == {
        durability_class(taken.cells[cell].durability, "volatile") for cell in xfs_cells(taken)
    }


def test_power_cuts_of_a_failed_visit_have_no_class(tmp_path: Path) -> None:
    study = power_cut_study(tmp_path / "study")
    assert "measured" in {c.durability.basis for c in overview(study).cells.values() if c.durability}
    change_records(study, failed("check", FSCK, CheckOutcome.ERRORS))
    found = overview(study)
    (cell,) = xfs_cells(found)
    promise = found.cells[cell].durability
    assert promise is not None
    assert ("unknown", "unknown", "declared") == (
        promise.volatile_cache,
        promise.protected_cache,
        promise.basis,
    )
    (run,) = found.cells[cell].cuts
    assert {None} == {cuts.shown for cuts in run.verdict.caches.values()}
    assert "fsck found errors" in run.verdict.refused[0].sentence
    drawn = power_cut_document([found]) or []
    assert [[None] * 3] == [
        [cache["class"] for cache in each["caches"].values()] for each in drawn if each["refused"]
    ]
    (row,) = [row for row in power_cut_rows([found]) if row.cell.startswith("xfs")]
    assert {"refused"} == {cache.verdict for cache in row.caches}
    export(study, tmp_path / "out")
    verdicts = pl.read_parquet(tmp_path / "out" / "verdicts.parquet").filter(pl.col("cell") == cell)
    assert [None] == verdicts["measured_volatile"].to_list()
    assert ["unknown"] == verdicts["declared_volatile"].to_list()
    assert "fsck found errors" in verdicts["refused"][0]


def test_what_is_accepted_by_a_code_or_by_words_is_no_doubt_that_is_left() -> None:
    doubts = (*planted("Other programs used the processors"), because("two-speeds", "tps was 1 and then 2"))
    assert ("two-speeds",) == tuple(each.code for each in left_doubts(doubts, ("OTHER programs",)))
    assert ("planted",) == tuple(each.code for each in left_doubts(doubts, ("two-speeds",)))
    assert () == left_doubts(doubts, ("planted", "and then"))
    assert doubts == left_doubts(doubts, ("speeds", "two"))
