"""`bedplate power-cut points`: which cuts were bad, by the numbers that `replay` takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.support.studies.synthetic_power_cuts import power_cut_study
from tests.unit.model.test_fault_of_a_cut import LOST

from bedplate.cli.app import program
from bedplate.cli.cut_tools import point_lines, run_lines
from bedplate.cli.cuts import find_run
from bedplate.cuts.blame import story_of
from bedplate.cuts.points import read_cuts
from bedplate.cuts.records import LOG_FILE, POINTS_FILE, PointRecord
from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.study.power_cut_stories import keep_stories, run_names


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return power_cut_study(tmp_path_factory.mktemp("cuts") / "study")


def said(*words: str) -> list[str]:
    done = CliRunner().invoke(program, ["power-cut", "points", *words], standalone_mode=False)
    assert done.exception is None
    return done.output.splitlines()


def test_every_run_stands_with_its_bad_cuts_and_a_name_that_replay_takes(study: Path) -> None:
    lines = said(str(study))
    assert len(lines) == len(run_names(study)) == 4
    (btrfs,) = [line for line in lines if "btrfs" in line]
    assert btrfs.split()[:7] == ["btrfs", "10", "of", "40", "bad", "no", "log"]
    # Two of ext4 have a number each.
    assert ["btrfs", "ext4-1", "ext4-2", "xfs"] == sorted(line.split()[0] for line in lines)
    for line in lines:
        name, *_, path = line.split()
        assert find_run(study, name) == find_run(study, path)
    folder = find_run(study, btrfs.split()[-1])
    (folder / LOG_FILE).touch()
    assert "log kept" in next(line for line in said(str(study)) if "btrfs" in line)
    (folder / LOG_FILE).unlink()


def test_what_the_stories_of_a_run_say_together_stands_below_it(tmp_path: Path) -> None:
    study = power_cut_study(tmp_path / "study")
    run = find_run(study, "btrfs")
    bad = [
        each.point.number for each in read_cuts(run).points if each.outcome.is_bad and not each.point.control
    ]
    good = next(each.point.number for each in read_cuts(run).points if not each.outcome.is_bad)
    without = replace(LOST, point=bad[2], smallest=(), bad_without_loss=True, is_smallest=False)
    found = [*(replace(LOST, point=number) for number in bad[:2]), without]
    keep_stories(study, run, [story_of(one, None) for one in (*found, replace(LOST, point=good))])
    lines = said(str(study))
    (start,) = [number for number, line in enumerate(lines) if "btrfs" in line]
    assert [
        "3 of 10 explained, by the loss of 1 write (2); nothing (1)",
        "what is lost: engine (2)",
        "fault: engine, promised-before-flushed (2); engine, promised-before-written (1)",
        "of these 1 may shrink further, or answered differently when asked again",
    ] == [line.strip() for line in lines[start + 1 : start + 5]]
    assert len(lines) == 8


def test_bad_cuts_are_listed_by_number_and_controls_only_if_asked(study: Path) -> None:
    folder = find_run(study, "btrfs")
    records = [
        codec.loads(PointRecord, line, source="a line")
        for line in (folder / POINTS_FILE).read_text(encoding="utf-8").splitlines()
    ]
    bad = [record for record in records if record.outcome.is_bad and not record.point.control]
    numbered = [line for line in point_lines(folder, every=False) if line[4:5].isdigit()]
    assert [int(line.split()[0]) for line in numbered] == sorted(record.point.number for record in bad)
    assert not any("control" in line for line in numbered)
    every = [line for line in point_lines(folder, every=True) if line[4:5].isdigit()]
    assert len(every) == len(records)
    assert sum("control" in line for line in every) == 6


def test_a_run_without_a_bad_cut_says_so_and_damage_is_told(study: Path, tmp_path: Path) -> None:
    assert (
        "none of 40 cuts was bad; --all lists them, and the 6 controls"
        == said(str(study), "ext4-pg8k-barrier")[0]
    )
    (tmp_path / POINTS_FILE).write_text("{\n")
    lines = list(point_lines(tmp_path, every=False))
    assert any("line 1 is not JSON" in line for line in lines)


def test_a_study_without_power_cuts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="has no run of power cuts"):
        list(run_lines(tmp_path, {}))
