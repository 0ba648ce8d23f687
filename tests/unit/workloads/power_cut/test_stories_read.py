"""Stories of bad cuts stand on the page and in the export, whatever a study has written into them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.studies.synthetic_power_cuts import power_cut_study
from tests.unit.model.test_fault_of_a_cut import LOST

from bedplate.cli.cut_tools import bad_points
from bedplate.cli.cuts import blame, find_run
from bedplate.cuts.blame import story_of
from bedplate.cuts.points import read_cuts
from bedplate.cuts.records import LOG_FILE, CutPoint
from bedplate.errors import RequirementMissing, StudyError
from bedplate.export.tables import export
from bedplate.page.build import build_report
from bedplate.study.power_cut_stories import keep_stories, run_names


@pytest.fixture
def told(tmp_path: Path) -> tuple[Path, int]:
    """A study with the story of one bad cut, and its number."""
    study = power_cut_study(tmp_path / "study")
    run = find_run(study, "btrfs")
    bad = next(each.point for each in read_cuts(run).points if each.outcome.is_bad and not each.point.control)
    story = story_of(replace(LOST, point=bad.number, first_problem="<script>alert(1)</script>"), None)
    keep_stories(study, run, [story])
    return study, bad.number


def test_a_run_is_named_by_a_part_of_its_path_or_by_all_of_it(
    told: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    study, _ = told
    run = find_run(study, "btrfs")
    monkeypatch.chdir(study)
    for words in (str(run), str(run.relative_to(study)), f"{run}/"):
        assert run == find_run(study, words)
    with pytest.raises(StudyError, match="no run of power cuts fits"):
        find_run(study, str(run.parent))


def test_the_page_has_the_five_lines_and_obeys_none(told: tuple[Path, int], tmp_path: Path) -> None:
    study, number = told
    build_report([study], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count(f"<div>point {number} (subset-4k): lost: &lt;script&gt;") == 1
    assert "<div>fault: engine: it acknowledged what no flush had put on the medium</div>" in page
    assert "<script>alert(1)" not in page


def test_all_goes_on_with_the_cuts_that_have_no_story(
    told: tuple[Path, int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study, number = told
    run = find_run(study, "btrfs")
    every = [point.number for point in bad_points(run, every=True)]
    asked: list[int] = []

    def tell_stories(_: Path, __: Path, points: Sequence[CutPoint], *, most: int, **___: object) -> None:
        asked.extend(point.number for point in points)
        keep_stories(
            study, run, [story_of(replace(LOST, point=each.number, replays=most), None) for each in points]
        )

    monkeypatch.setattr("bedplate.cli.cut_tools.tell_stories", tell_stories)
    monkeypatch.setattr("bedplate.cli.cuts.require_root", lambda: None)
    monkeypatch.setattr("bedplate.workloads.power_cut.cut_questions.require_log", lambda _: None)
    monkeypatch.setattr("bedplate.workloads.power_cut.cut_questions.job_of", lambda _, **__: None)
    assert 0 == blame(study, "btrfs", None, every=True, most=9)
    assert sorted({*every} - {number}) == asked
    assert f"{len(every)} bad cuts, 1 of them with a story already" in capsys.readouterr().err
    assert 0 == blame(study, "btrfs", None, every=True, most=9)
    assert len(every) - 1 == len(asked)
    assert f"{len(every)} bad cuts, {len(every)} of them" in capsys.readouterr().err


def test_a_run_whose_file_system_the_kernel_lacks_is_named_and_the_others_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study = power_cut_study(tmp_path / "study")
    bad = [run for run in run_names(study).values() if bad_points(run, every=True)]
    for run in bad:
        (run / LOG_FILE).touch()
    asked: list[Path] = []

    def tell_stories(_: Path, run: Path, __: Sequence[CutPoint], **___: object) -> None:
        asked.append(run)

    def lacks_first(folder: Path, **_: object) -> None:
        if folder == bad[0]:
            raise RequirementMissing("kernel 6.1 has no jfs")

    monkeypatch.setattr("bedplate.cli.cut_tools.tell_stories", tell_stories)
    monkeypatch.setattr("bedplate.cli.cuts.require_root", lambda: None)
    monkeypatch.setattr("bedplate.workloads.power_cut.cut_questions.job_of", lacks_first)
    assert len(bad) > 1
    assert 1 == blame(study, None, None, every=True, most=9)
    assert bad[1:] == asked
    said = capsys.readouterr().err
    (name,) = (name for name, run in run_names(study).items() if run == bad[0])
    assert f"error: {name}: kernel 6.1 has no jfs" in said
    with pytest.raises(RequirementMissing, match="has no jfs"):
        blame(study, str(bad[0]), None, every=True, most=9)


def test_a_page_without_stories_says_nothing_of_them(tmp_path: Path) -> None:
    build_report([power_cut_study(tmp_path / "study")], tmp_path / "report.html")
    assert 'id="cut-stories"' not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_export_has_fault_and_story_of_the_cut_that_was_asked_of(
    told: tuple[Path, int], tmp_path: Path
) -> None:
    study, number = told
    export(study, tmp_path / "all.json")
    rows = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))["power_cuts"]
    found = [row for row in rows if row["story"] is not None]
    assert [(number, False, "engine", "promised-before-flushed")] == [
        (row["number"], row["control"], row["fault"], row["fault_code"]) for row in found
    ]
    assert 5 == len(found[0]["story"].splitlines())
