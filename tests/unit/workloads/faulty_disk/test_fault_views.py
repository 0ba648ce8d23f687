"""Disks that failed as they are read: in the terminal, on the page, in exports."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.support.studies.synthetic_faulty_disks import (
    CONTROL_TRIES,
    FAULT_DATASET,
    FAULT_SPEC,
    FAULTS,
    faulty_disk_study,
    tried,
    tries_of,
    write_fault_visit,
)
from tests.support.studies.synthetic_power_cuts import RawCuts
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.answer import headline, headline_lines
from bedplate.analysis.overview import Overview, overview
from bedplate.cuts.faults import FaultVerdict
from bedplate.cuts.records import PointOutcome
from bedplate.export.tables import export
from bedplate.figures.run import make_figures
from bedplate.model.cell import Dataset
from bedplate.model.codec import read
from bedplate.model.levels import Levels
from bedplate.model.visit import VisitRecord
from bedplate.page.build import build_report
from bedplate.plan.load import load_plan
from bedplate.terminal.tables import show_tables
from bedplate.units import GIB
from bedplate.workloads.faulty_disk.figures import NOT_WHOLE
from bedplate.workloads.faulty_disk.page import _plan_of, _square, fault_matrix
from bedplate.workloads.faulty_disk.reading import FaultSquare, answer_lines, fault_rows

PLANS = Path(__file__).parents[4] / "plans"
QUICK_LEVELS = Levels(engine="postgresql", image_bytes=4 * GIB, clients=2, duration_s=4.0, tries=1)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return faulty_disk_study(tmp_path_factory.mktemp("faults") / "study")


@pytest.fixture(scope="module")
def found(study: Path) -> Overview:
    return overview(study)


def test_a_cell_has_a_square_for_each_fault_with_the_worst_first(found: Overview) -> None:
    rows = fault_rows(found)
    assert 4 == len(rows)
    (bare,) = [row for row in rows if "nobarrier" in row.cell.label.full]
    assert list(FAULTS) == [square.fault for square in bare.squares]
    first = bare.squares[0]
    assert ("lost, silent 1 of 2; stopped, whole 1 of 2", "engine") == (first.verdicts, first.detected)
    never = rows[0].squares[2]
    assert ("not hit 2 of 2", "–") == (never.verdicts, never.detected)


def test_the_terminal_has_a_row_for_each_fault(study: Path) -> None:
    text = as_printed(show_tables([study], workload=None, metric=None), 80)
    assert "Faulty disks" in text
    assert "lost, silent 1 of 2" in text
    assert "not hit" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_the_page_has_the_evidence_and_what_tries_it_again(found: Overview) -> None:
    faults, rows = fault_matrix([found])
    assert ("one write fails with EIO, in the data", "one flush fails with EIO") == faults[:2]
    (bare,) = [row for row in rows if "nobarrier" in row.cell]
    square = bare.squares[0]
    assert "unsafe" == square.badge
    assert ("1 hit", "500 acknowledged, 3 of them missing") == square.evidence[:2]
    assert "the server answered by itself once the disk worked again" in square.evidence
    assert "mounted anew: 3 of 500 acknowledged transactions are missing" in square.evidence
    assert "unknown" == bare.squares[2].badge


def test_the_plan_of_a_square_makes_its_worst_try_alone(found: Overview) -> None:
    text = (PLANS / "faulty-disk-quick.toml").read_text(encoding="utf-8")
    cell = next(load_plan(text, source="quick", directory=PLANS).cells())
    datasets = {FAULT_DATASET.id: Dataset(FAULT_DATASET.workload, QUICK_LEVELS)}
    row = next(row for row in fault_rows(found) if "nobarrier" in row.cell.label.full)
    schedule = replace(found.study.schedule, cells={row.cell.id: cell}, datasets=datasets)
    study = replace(found.study, plan_text=text, schedule=schedule)
    plan = _plan_of(replace(found, study=study), row)
    again = load_plan(_square(row, "write-once-data", plan).plan, source="again", directory=PLANS)
    assert [cell] == list(again.cells())
    (run,) = again.workloads[0].runs
    assert {"faults": "write-once-data", "tries": 1, "seed": 9} == dict(run.levels)
    assert (1, False) == (again.repetitions, again.canary.enabled)
    # Of a plan that is none here, or has no such cell, nothing is offered.
    assert not _plan_of(found, row)
    assert not _square(row, "write-once-data", {}).plan


def test_what_is_not_counted_or_not_known_is_not_said(found: Overview) -> None:
    row = fault_rows(found)[0]
    (first, *_) = row.squares
    refused = replace(
        first.records[0],
        verdict=FaultVerdict.LOST_DETECTED,
        left=PointOutcome.DETECTED,
        hit_at=8192,
        hit_bytes=4096,
    )
    square = replace(first, records=(refused,))
    matrix = _square(replace(row, squares=(square,)), first.fault, {})
    assert (
        "1 hit, the first of 4,096 bytes at 8,192",
        "500 acknowledged, what is missing was not counted",
    ) == matrix.evidence[:2]
    assert "bounded" == matrix.badge
    # Whatever came of it: the controls were not as they must be.
    assert "unknown" == _square(replace(row, squares=(square,), doubts=("why",)), first.fault, {}).badge
    unheard = replace(refused, detected=(), kernel_heard=False)
    assert "unknown: no kernel log" == replace(first, records=(unheard,)).detected
    assert "nobody" == replace(first, records=(replace(unheard, kernel_heard=True), unheard)).detected


def test_what_an_engine_said_is_escaped_on_the_page(study: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    build_report([study], target)
    text = target.read_text(encoding="utf-8")
    assert 'id="faulty-disks"' in text
    assert "PANIC: &lt;could not&gt; fsync" in text
    assert "<could not>" not in text


def test_the_export_has_every_try_and_the_controls(study: Path, tmp_path: Path) -> None:
    export(study, tmp_path / "out")
    table = pl.read_parquet(tmp_path / "out" / "disk_faults.parquet")
    assert 4 * (2 + 2 * len(FAULTS)) == table.height
    assert {"control-none", "control-lost", *FAULTS} == set(table["fault"])
    silent = table.filter((pl.col("verdict") == "lost, silent") & (pl.col("fault") == "write-once-data"))
    assert [("stopped", "engine", 3)] == silent.select("seen", "detected", "lost_transactions").rows()


def test_the_answer_names_what_was_lost_silently_before_anything_else_is_said_of_faults(
    found: Overview,
) -> None:
    told = headline_lines(headline(found))
    lost, whole = (line for line in told if line.lead.startswith(("acknowledged rows", "nothing that was")))
    assert ("Unsafe", "acknowledged rows are lost silently") == (lost.head, lost.lead)
    assert "nobarrier" in lost.text
    assert "(one write fails with EIO, in the data: 1 of 2 tries)" in lost.text
    assert ("Safe", "nothing that was acknowledged is lost in 12 tries in which the disk failed") == (
        whole.head,
        whole.lead,
    )
    assert "nobarrier" not in whole.text


def test_cells_whose_controls_went_wrong_are_open_in_the_answer(found: Overview) -> None:
    first, *rest = fault_rows(found)
    doubted = replace(first, doubts=("no try was made without a fault",), codes=frozenset({NOT_WHOLE.code}))
    rows = (doubted, *rest)
    names = {row.cell.id: f"cell{number}" for number, row in enumerate(rows)}
    lines = list(answer_lines(rows, names))
    assert ["Unsafe", "Safe", "Open"] == [line.head for line in lines]
    assert lines[-1].text.startswith("cell0: the controls went wrong")
    assert "cell0" not in lines[1].text


def test_a_false_failure_is_in_the_answer(found: Overview) -> None:
    row = next(
        row
        for row in fault_rows(found)
        if all(
            each.verdict is not FaultVerdict.LOST_SILENT for square in row.squares for each in square.records
        )
    )
    squares = tuple(
        replace(square, records=tuple(replace(each, false_failures=1) for each in square.records))
        for square in row.squares
    )
    false, whole = answer_lines([replace(row, squares=squares)], {row.cell.id: "cell"})
    assert ("Less safe", "Safe") == (false.head, whole.head)
    assert "reported as failed, and there all the same: cell (4 of 4 tries)." == false.text


def test_a_cell_of_which_no_fault_was_hit_has_no_controls_that_went_wrong(tmp_path: Path) -> None:
    """Once both were said to have."""
    nothing = (*CONTROL_TRIES, *(tried(2 + n, FAULTS[n % 3], FaultVerdict.NOT_HIT) for n in range(6)))
    cut_short = (*CONTROL_TRIES, tried(2, FAULTS[0], FaultVerdict.STOPPED))
    study = faulty_disk_study(tmp_path / "study")
    for begin, tries in (("xfs", nothing), ("btrfs", cut_short)):
        (visit,) = study.glob(f"visits/{begin}-*/{FAULT_DATASET.id}/*")
        cell = read(VisitRecord, visit / "visit.json").cell
        shutil.rmtree(visit)
        raw = RawCuts(cell, (), recording=None, dataset=FAULT_DATASET, spec=FAULT_SPEC)
        make_figures(visit, write_fault_visit(visit, raw, tries))
    told = [line.text for line in headline_lines(headline(overview(study))) if line.head == "Open"]
    assert [
        "btrfs nodatacow: 1 of 6 faults were tried, so that nothing is said.",
        "xfs: no fault was hit, or none left a trace.",
    ] == told


def test_a_loss_that_is_refused_and_one_that_settings_allow_are_told_apart(found: Overview) -> None:
    row = fault_rows(found)[0]
    verdicts = (FaultVerdict.LOST_DETECTED, FaultVerdict.BOUNDED, FaultVerdict.NOT_HIT) * 2
    squares = tuple(
        FaultSquare(fault, tuple(each for each in tries_of(verdicts) if each.fault == fault))
        for fault in FAULTS
    )
    lines = list(answer_lines([replace(row, squares=squares)], {row.cell.id: "ext4"}))
    assert [
        "lost, and refused by the engine or the file system: ext4 (one write fails with EIO, in the data: 2 of 2 tries).",
        "the last transactions are lost, no more than their settings allow: ext4 (one flush fails with EIO: 2 of 2 tries).",
    ] == [line.text for line in lines]


def test_the_cell_that_lost_most_stands_first(found: Overview) -> None:
    silent, whole = FaultVerdict.LOST_SILENT, FaultVerdict.STOPPED
    rows = []
    for row, second in zip(fault_rows(found), (whole, silent), strict=False):
        tries = tries_of((silent, whole, whole, second, whole, whole))
        squares = (FaultSquare(FAULTS[0], tuple(each for each in tries if each.fault == FAULTS[0])),)
        rows.append(replace(row, squares=squares))
    names = {row.cell.id: f"cell{number}" for number, row in enumerate(rows)}
    (line,) = answer_lines(rows, names)
    words = "one write fails with EIO, in the data"
    assert (
        f"acknowledged rows are lost silently: cell1 ({words}: 2 of 2 tries); cell0 ({words}: 1 of 2 tries)."
        == line.text
    )
