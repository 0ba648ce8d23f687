"""Cuts in recovery are counted apart everywhere, and one that is bad makes its cell unsafe."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console
from tests.support.studies.synthetic_power_cuts import DATASET, power_cut_study, recut_study, write_points

from bedplate.analysis.answer import headline, headline_lines
from bedplate.analysis.condition import BAD, PROMISED, Truth, cut_truth
from bedplate.analysis.mail import mail_text
from bedplate.analysis.overview import CellFacts, Overview, overview
from bedplate.cli.app import program
from bedplate.cuts.points import read_cuts
from bedplate.cuts.records import (
    POINTS_FILE,
    RECORDING_FILE,
    Placement,
    PointOutcome,
    PointRecord,
    Profile,
    RecordingFacts,
)
from bedplate.cuts.runs import recovery_words
from bedplate.cuts.verdict import Recoveries, recoveries_of
from bedplate.export.tables import export
from bedplate.figures.run import make_figures
from bedplate.model import codec
from bedplate.model.reason import because
from bedplate.model.visit import RunRecord, VisitRecord
from bedplate.terminal.tables import power_cut_document as power_cut_table_document
from bedplate.terminal.tables import power_cut_table, show_document, show_tables
from bedplate.workloads.power_cut.page import CutRow, power_cut_rows


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recut_study(tmp_path_factory.mktemp("recut") / "study")


@pytest.fixture(scope="module")
def found(study: Path) -> Overview:
    return overview(study)


def cell_of(found: Overview, panel: str) -> CellFacts:
    return next(cell for cell in found.cells.values() if cell.label.panel.startswith(panel))


def cut_row(found: Overview, panel: str) -> CutRow:
    (row,) = [row for row in power_cut_rows([found]) if row.cell.startswith(panel)]
    return row


def printed(study: Path, width: int = 100) -> str:
    text = StringIO()
    console = Console(file=text, width=width, color_system=None)
    for table in show_tables([study], workload=None, metric=None):
        console.print(table)
    return text.getvalue()


def test_a_bad_cut_in_recovery_makes_a_cell_unsafe_that_nothing_else_does(found: Overview) -> None:
    ext4, xfs = cell_of(found, "ext4 barrier").durability, cell_of(found, "xfs").durability
    assert ext4 is not None
    assert xfs is not None
    assert ("durable", "unsafe") == (ext4.volatile_cache, ext4.volatile_cache_512)
    assert any("in recovery 2 of 4 bad: 2 loss" in reason.sentence for reason in ext4.reasons)
    assert ("durable", "durable") == (xfs.volatile_cache, xfs.volatile_cache_512)


def test_they_stand_apart_with_their_bound(study: Path, found: Overview) -> None:
    (run,) = cell_of(found, "ext4 barrier").cuts
    assert ["cuts in recovery: 2 of 16, < 39 %, of 2 recoveries"] == recovery_words(run)
    (document,) = next(
        cell["power_cuts"]
        for cell in show_document([study], workload=None, metric=None)["studies"][0]["cells"]
        if cell["cell"] == run.key.cell
    )
    assert (16, 2, 2, 2) == tuple(
        document["recovery"][name] for name in ("cuts", "bad", "recoveries", "recoveries_asked")
    )
    assert 2 == document["recovery"]["caches"]["volatile-512"]["bad"]
    # Drawn cuts have a share of their own, which these do not touch.
    assert 0 == document["volatile_512"]["bad"]
    text = printed(study)
    assert "Cuts in recovery" in text
    assert "2 of 16, < 39 %" in text
    row = cut_row(found, "ext4 barrier")
    assert "cuts in recovery: 2 of 16, < 39 %, of 2 recoveries" in row.notes
    assert any("in recovery: 2 loss" in cache.drawn for cache in row.caches)


def test_the_answer_says_that_it_was_in_recovery(found: Overview) -> None:
    words = " ".join(line.text.replace("\N{NO-BREAK SPACE}", " ") for line in headline_lines(headline(found)))
    assert "(2 of 4 in recovery)" in words
    assert (
        "a recovery that ran to its end left damage too, so that power cuts in recovery show nothing" in words
    )


def test_a_condition_holds_by_them_and_cannot_be_told_where_they_do_not_count(found: Overview) -> None:
    (bad,), (good,), (not_whole,) = (cell_of(found, panel).cuts for panel in ("ext4 barrier", "xfs", "btrfs"))
    assert Truth.HOLDS is cut_truth(BAD, [bad])
    assert Truth.FAILS is cut_truth(BAD, [good])
    hidden = replace(good, verdict=replace(good.verdict, recoveries=not_whole.verdict.recoveries))
    for condition in (BAD, PROMISED):
        assert Truth.CANNOT_TELL is cut_truth(condition, [hidden])


def test_a_recovery_that_is_not_whole_by_itself_counts_for_nothing(study: Path, found: Overview) -> None:
    btrfs = cell_of(found, "btrfs")
    (run,) = btrfs.cuts
    assert 0 == run.verdict.recut.cuts
    assert 1 == len([note for note in cut_row(found, "btrfs").notes if "recovery" in note])
    (words,) = recovery_words(run)
    assert words.startswith("cuts in recovery do not count: nothing cut the recovery from cut 5")
    assert btrfs.durability is not None
    assert any(words in reason.sentence for reason in btrfs.durability.reasons)
    assert "refused" in printed(study)


def test_they_are_exported_and_listed(study: Path, found: Overview, tmp_path: Path) -> None:
    export(study, tmp_path / "all.json")
    tables = json.loads((tmp_path / "all.json").read_text())
    ext4, btrfs = (cell_of(found, panel).id for panel in ("ext4 barrier", "btrfs"))
    verdicts = {row["cell"]: row for row in tables["verdicts"]}
    assert (2, 16, 2) == tuple(verdicts[ext4][f"recover{end}"] for end in ("ies", "y_cuts", "y_bad"))
    assert (1, None) == (verdicts[btrfs]["recoveries"], verdicts[btrfs]["recovery_cuts"])
    cuts = [row for row in tables["power_cuts"] if row["cell"] == ext4]
    assert 46 + 18 == len(cuts)
    assert {None, 0, 4} == {row["recovery_of"] for row in cuts}
    said = CliRunner().invoke(program, ["power-cut", "points", str(study)], standalone_mode=False).output
    assert "2 of 16 in recovery" in said
    one = ["power-cut", "points", str(study), "ext4-pg8k-barrier"]
    listed = CliRunner().invoke(program, one, standalone_mode=False).output
    assert "recovery from cut 0: loss" in listed


def test_points_name_a_recovery_that_counts_for_nothing_and_count_no_controls(study: Path) -> None:
    runs = CliRunner().invoke(program, ["power-cut", "points", str(study)], standalone_mode=False).output
    (btrfs,) = [line for line in runs.splitlines() if "btrfs" in line]
    assert "recoveries refused (1 not whole)" in btrfs
    assert "in recovery" not in btrfs
    points = ["power-cut", "points", str(study)]
    said = CliRunner().invoke(program, [*points, "btrfs"], standalone_mode=False).output
    assert "cuts in recovery do not count: nothing cut the recovery from cut 5" in said
    good = CliRunner().invoke(program, [*points, "xfs"], standalone_mode=False).output
    assert good.startswith("none of 56 cuts was bad; --all lists them, and the 8 controls")


def test_the_mail_says_that_a_cell_is_bad_in_recovery(found: Overview) -> None:
    for markdown in (False, True):
        lines = mail_text(headline(found), markdown=markdown).splitlines()
        (ext4,) = [line for line in lines if "0 of 10, < 31 %; 2 of 4 in recovery" in line]
        assert "unsafe" in ext4
        assert all(len(line) <= 72 for line in lines if not line.startswith("|"))
        (xfs,) = [line for line in lines if line.lstrip("| ").startswith("xfs") and "0 of 10" in line]
        assert "recovery" not in xfs


def test_recoveries_that_a_switch_of_the_device_forbids_are_not_made(tmp_path: Path) -> None:
    study = tmp_path / "study"
    recut_study(study)
    (run,) = study.glob(f"visits/btrfs*/{DATASET.id}/*/runs/*")
    recording = codec.read(RecordingFacts, run / RECORDING_FILE)
    codec.write(run / RECORDING_FILE, replace(recording, recoveries=()))
    for path, name in ((run / "record.json", "spec"), (run.parents[1] / "visit.json", "cell")):
        record = json.loads(path.read_text())
        if name == "spec":
            record["spec"]["levels"]["recut"] = 40
        else:
            record["cell"]["filesystem"].update(type="xfs", barrier=False)
        path.write_text(json.dumps(record))
    visit = codec.read(VisitRecord, run.parents[1] / "visit.json")
    recoveries = recoveries_of(visit, codec.read(RunRecord, run / "record.json"), read_cuts(run))
    assert recoveries is not None
    assert (5, 0) == (recoveries.asked, recoveries.recorded)
    (reason,) = recoveries.uncounted
    assert reason.sentence.startswith(
        "cuts in recovery were not made: a switch of the device keeps its flushes away"
    )


def test_what_was_not_made_is_said_wherever_recoveries_are(found: Overview) -> None:
    btrfs = cell_of(found, "btrfs")
    (run,) = btrfs.cuts
    not_made = Recoveries(5, 0, not_made=because("recovery-without-switch", "a switch"))
    changed = replace(run, verdict=replace(run.verdict, recoveries=not_made))
    assert ["cuts in recovery were not made: a switch"] == recovery_words(changed)
    assert changed.shown_class is not None
    assert any("were not made" in reason.sentence for reason in changed.shown_class.reasons)
    cells = {**found.cells, btrfs.id: replace(btrfs, cuts=(changed,))}
    text = StringIO()
    Console(file=text, width=100, color_system=None).print(power_cut_table(replace(found, cells=cells)))
    (line,) = [line for line in text.getvalue().splitlines() if "0 of 5" in line]
    assert line.split()[-4:] == ["not", "made", "a", "switch"]
    (document,) = power_cut_table_document(replace(btrfs, cuts=(changed,)))
    assert "a switch" == document["recovery"]["not_made"]


def test_a_study_without_any_says_nothing_of_them(tmp_path: Path) -> None:
    study = power_cut_study(tmp_path / "plain")
    assert "recovery" not in printed(study)
    assert all([] == recovery_words(run) for cell in overview(study).cells.values() for run in cell.cuts)


EVERY = 300


@pytest.fixture(scope="module")
def exhausted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """XFS, of which a third cut alone is bad; of the second recovery that was to be cut at every write there were too many."""
    study = recut_study(tmp_path_factory.mktemp("exhausted") / "study")
    (run,) = study.glob(f"visits/xfs*/{DATASET.id}/*/runs/*")
    points = [
        codec.loads(PointRecord, line, source="a line")
        for line in (run / POINTS_FILE).read_text().splitlines()
    ]
    wholes = {each.point.recovery_of: each for each in points if each.point.placement is Placement.WHOLE}
    points = [
        replace(each, recovery_writes={0: 4, 4: 512}[each.point.recovery_of or 0])
        if each in wholes.values()
        else each
        for each in points
    ]
    end = wholes[0]
    for number, (second, profile, outcome) in enumerate(
        (
            *((None, Profile.ORDERED, PointOutcome.OK) for _ in range(3)),
            (None, Profile.WHOLE, PointOutcome.OK),
            (17, Profile.ORDERED, PointOutcome.OK),
            (17, Profile.ORDERED, PointOutcome.LOST),
        ),
        start=2000,
    ):
        point = replace(
            end.point,
            number=number,
            position=number,
            profile=profile,
            placement=Placement.EVERY,
            second=second,
        )
        points.append(replace(end, point=point, outcome=outcome, lost_transactions=2 * outcome.is_bad))
    points.append(replace(end, point=replace(end.point, number=2900, second=17), recovery_writes=3))
    write_points(run / POINTS_FILE, points)
    record = json.loads((run / "record.json").read_text())
    record["spec"]["levels"]["exhaustive"] = 2 * EVERY
    (run / "record.json").write_text(json.dumps(record))
    make_figures(run.parents[1], run)
    return study


def test_a_bad_cut_at_every_write_makes_a_cell_unsafe_and_is_counted_apart(exhausted: Path) -> None:
    xfs = cell_of(overview(exhausted), "xfs")
    (run,) = xfs.cuts
    assert (16, 0) == (run.verdict.recut.cuts, run.verdict.recut.bad)
    assert (6, 1) == (run.verdict.exhaustive.cuts, run.verdict.exhaustive.bad)
    assert xfs.durability is not None
    assert ("unsafe", "unsafe") == (xfs.durability.volatile_cache, xfs.durability.protected_cache)
    assert any("at every write of recoveries 1 of 5 bad" in each.sentence for each in xfs.durability.reasons)
    assert Truth.HOLDS is cut_truth(BAD, [run])
    assert [
        "cuts in recovery: 0 of 16, < 21 %, of 2 recoveries",
        (
            "cut at every write: 1 recovery behind each of 4 writes, 1 recovery from second cuts, "
            "not 1 recovery of 512 writes or more: 1 of 6 cuts bad"
        ),
    ] == recovery_words(run)


def test_cuts_at_every_write_have_no_bound_and_are_said_everywhere(exhausted: Path, tmp_path: Path) -> None:
    found = overview(exhausted)
    xfs = cell_of(found, "xfs")
    (document,) = power_cut_table_document(xfs)
    every = document["recovery"]["exhaustive"]
    assert (6, 1, 1, 4, 1, 1, 512) == tuple(
        every[name]
        for name in ("cuts", "bad", "recoveries", "writes", "third", "left_out", "left_out_writes")
    )
    assert "bad_share_high" not in every
    assert 1 == every["caches"]["protected"]["bad"]
    text = printed(exhausted)
    assert "1 of 6" in text
    assert "At every write:" in text
    row = cut_row(found, "xfs")
    assert any("at every write of recoveries: 1 loss" in cache.drawn for cache in row.caches)
    words = " ".join(line.text.replace("\N{NO-BREAK SPACE}", " ") for line in headline_lines(headline(found)))
    assert "1 of 5 at every write of recoveries" in words
    export(exhausted, tmp_path / "all.json")
    tables = json.loads((tmp_path / "all.json").read_text())
    verdict = next(row for row in tables["verdicts"] if row["cell"] == xfs.id)
    assert (6, 1, 1, 1) == tuple(
        verdict[name] for name in ("exhaustive_cuts", "exhaustive_bad", "exhausted", "third")
    )
    assert {None, 17} == {row["second"] for row in tables["power_cuts"] if row["cell"] == xfs.id}
    one = ["power-cut", "points", str(exhausted), "xfs"]
    listed = CliRunner().invoke(program, one, standalone_mode=False).output
    assert "recovery from a second cut, at entry 17 of that from cut 0: loss" in listed
