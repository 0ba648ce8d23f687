"""Shares of bad cuts beside each other: k of n has a verdict from a single recording."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.synthetic_power_cuts import (
    DATASET,
    RECIPE,
    RawCuts,
    controls,
    points_of,
    power_cut_study,
    recorded_study,
    write_cut_visit,
)
from tests.support.studies.synthetic_study import cells_of
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.comparison import (
    Compared,
    ComparisonAnswer,
    ComparisonQuestion,
    answer,
)
from bedplate.analysis.condition import EXIT_HOLDS, exit_status, parse_condition, truth
from bedplate.analysis.overview import BAD_SHARE, overview
from bedplate.cuts.records import PointOutcome, Profile
from bedplate.errors import EXIT_CANNOT_TELL, PlanError
from bedplate.figures.run import make_figures
from bedplate.model.codec import read, write
from bedplate.model.figure import RunFigures
from bedplate.statistics.comparison import Verdict, p_difference, proportion_difference
from bedplate.terminal.compare_tables import compare_document, compare_tables, condition_sentence

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return power_cut_study(tmp_path_factory.mktemp("cuts") / "study", refused="xfs")


def ask(study: Path, contender: str, *metrics: str) -> ComparisonAnswer:
    question = ComparisonQuestion("type=ext4 barrier=yes", contender, metrics=metrics or (BAD_SHARE,))
    return answer([overview(study)], question)


def only(found: ComparisonAnswer) -> Compared:
    (one,) = found.compared
    return one


def printed(found: ComparisonAnswer) -> str:
    return as_printed(compare_tables(found))


def test_one_recording_tells_what_is_unsafe(study: Path) -> None:
    found = ask(study, "type=ext4 barrier=no")
    comparison = only(found).comparison
    # Of 40 cuts 10 are in order: another machine, and no part of the share.
    exact = proportion_difference((0, 30), (30, 30))
    assert (Verdict.HIGHER, 1, 1.0) == (comparison.verdict, comparison.n, comparison.estimate)
    assert (comparison.low, comparison.high) == pytest.approx((exact.low, exact.high))
    assert comparison.p_difference == p_difference((0, 30), (30, 30))
    (document,) = compare_document(found)["comparisons"]
    assert {
        "baseline": {"bad": 0, "cuts": 30},
        "contender": {"bad": 30, "cuts": 30},
    } == document["counted"]
    assert ("higher", "difference", 1) == (document["verdict"], document["kind"], document["n"])
    text = printed(found)
    assert "30 of 30" in text
    assert "0 of 30" in text
    assert "the cuts of one recording" in " ".join(text.split())
    assert "repetitions" not in text


def test_suspect_recordings_are_no_part_of_it(study: Path) -> None:
    comparison = only(ask(study, "type=xfs")).comparison
    assert (None, 1, None) == (comparison.estimate, comparison.suspect, comparison.pooled)


def test_profiles_have_their_own_counts(study: Path) -> None:
    for m in overview(study).measurements:
        for phase, item, name in m.parts:
            if name == BAD_SHARE:
                cuts = m.value("power_cuts", phase, item)
                bad = m.value("power_cuts_bad", phase, item)
                assert (bad, cuts) == m.observation(name, phase, item).of
    assert all(m.observation("tps").of is None for m in overview(study).measurements)


def test_figures_that_contradict_each_other_are_no_counts(study: Path, tmp_path: Path) -> None:
    changed = power_cut_study(tmp_path / "study")
    for path in changed.glob("visits/*/*/*/runs/*/run.json"):
        run = read(RunFigures, path)
        figures = tuple(
            replace(each, value=0.123) if each.metric == BAD_SHARE and not each.item else each
            for each in run.figures
        )
        write(path, replace(run, figures=figures))
    comparison = only(ask(changed, "type=ext4 barrier=no")).comparison
    assert comparison.pooled is None
    assert "a verdict needs 3 repetitions in common, found 1" in comparison.reasons


def test_shares_and_speeds_are_judged_together(study: Path) -> None:
    found = ask(study, "type=ext4 barrier=no", BAD_SHARE, "tps")
    assert len(found.judged) == len(found.compared) > 1
    # Two of three figures show a difference; in the third, speed without writing, the cells are the same.
    assert {1 - 0.05 * 2 / 3} == set(found.confidences)
    assert found.verdicts == len(found.judged)
    assert Verdict.HIGHER is found.compared[-1].comparison.verdict


@pytest.mark.parametrize(
    ("words", "status"),
    [("worse 5%", EXIT_HOLDS), ("better 5%", 0), ("worse 95%", EXIT_CANNOT_TELL), ("higher 60%", EXIT_HOLDS)],
)
def test_a_condition_on_a_share_means_points(study: Path, words: str, status: int) -> None:
    found = ask(study, "type=ext4 barrier=no")
    condition = parse_condition(words, margin=0.05)
    assert status == exit_status(truth(condition, each) for each in found.compared)
    points = words.removesuffix("%")
    assert condition_sentence(found, condition).startswith(f"{points} points: ")


def test_a_share_is_no_speed(study: Path) -> None:
    with pytest.raises(PlanError, match="is no speed, so nothing is slower; write worse, higher or lower"):
        truth(parse_condition("slower 5%", margin=0.05), only(ask(study, "type=ext4 barrier=no")))


def test_where_numbers_of_bad_cuts_tell_nothing_their_share_is_named(study: Path) -> None:
    """One recording of each has no scatter that a count could be held against."""
    text = " ".join(printed(ask(study, "type=ext4 barrier=no", "power_cuts_bad")).split())
    assert "A share of cuts has an interval from one recording on: `--metric power_cut_bad_share`." in text
    assert "extend" not in text


def test_the_shares_beside_a_difference_are_of_the_recordings_that_are_compared(tmp_path: Path) -> None:
    """XFS lost commits in the repetition of which ext4 has no believed recording: that is in no difference, and in no share beside one."""
    ext4, xfs = (
        cell for cell in cells_of(RECIPE) if cell.filesystem.barrier or cell.filesystem.type == "xfs"
    )
    sound = [RawCuts(cell, (*points_of({}), *controls())) for cell in (ext4, xfs)]
    study = recorded_study(tmp_path / "study", sound, repetitions=2, made=2)
    for cell, points in (
        (ext4, [*points_of({}), *controls(PointOutcome.OK)]),
        (xfs, [*points_of({Profile.LOST: PointOutcome.LOST}), *controls()]),
    ):
        visit = study / "visits" / cell.id / DATASET.id / "2.1"
        shutil.rmtree(visit)
        make_figures(visit, write_cut_visit(visit, RawCuts(cell, tuple(points)), repetition=2, order=9))
    one = only(ask(study, "type=xfs"))
    assert (0.0, 1) == (one.comparison.estimate, one.comparison.n)
    assert [0.0, 0.0] == [each.centre for each in one.figures]
