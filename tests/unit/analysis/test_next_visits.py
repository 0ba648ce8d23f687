"""What to measure next: which visits would tell most per hour, the command that makes them, or why none would."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.support.studies.known_study import KNOWN, Place, change_records, known_study

from bedplate.analysis.advice import (
    SURE,
    Advised,
    NextVisits,
    Objective,
    advised,
    next_visits,
)
from bedplate.analysis.answer import StepKind, contest_notes, fitted, headline, headline_lines, short_names
from bedplate.analysis.comparison import selected_overviews
from bedplate.analysis.overview import overview
from bedplate.model.codec import read, write
from bedplate.model.figure import RunFigures
from bedplate.model.metrics import METRICS
from bedplate.model.visit import Validity, VisitRecord
from bedplate.statistics.comparison import MARGIN
from bedplate.statistics.search import lead_by_repetitions
from bedplate.study.records import IMPORTED
from bedplate.terminal.advice_tables import advice_document

if TYPE_CHECKING:
    from pathlib import Path

SPEED = {"ext4": 1000.0, "xfs": 1200.0, "btrfs": 1001.0}
RECIPE = replace(KNOWN, repetitions=2)
THREE = replace(KNOWN, repetitions=3)


def speed(place: Place, scatter: float = 0.01) -> float:
    noise = random.Random(f"{place.cell.id} {place.repetition}").gauss(0, scatter)
    larger = 1 + place.cell.build.block_size_bytes / 10000
    return SPEED[place.cell.filesystem.type] * larger * math.exp(noise)


def ask(study: Path) -> Advised:
    return advised(overview(study))


def told(found: Advised) -> NextVisits | str:
    (contest,) = found.contests
    return next_visits(found, contest)


def said(found: Advised) -> str:
    """All lines of the answer, and what stands below the table."""
    told = headline(found.overview, found)
    notes = [
        words
        for each in found.contests
        for words in contest_notes(found, each, short_names(found.overview), None)
    ]
    return " ".join((*fitted(headline_lines(told), columns=2000, most=None), *notes))


def types(found: Advised) -> dict[str, str]:
    return {cell: own.filesystem.type for cell, own in found.overview.study.schedule.cells.items()}


@pytest.mark.parametrize("repetitions", [1, 2])
def test_too_few_repetitions_have_no_chance_and_name_no_cell(tmp_path: Path, repetitions: int) -> None:
    recipe = replace(RECIPE, repetitions=repetitions)
    found = ask(known_study(tmp_path / "study", lambda place: speed(place, 0.15), recipe))
    assert told(found) == "a chance needs 3 trusted repetitions of two cells at least"
    text = said(found)
    assert "chance of" not in text
    assert "probability" not in text
    assert f"{5 - repetitions} more repetitions" in text
    assert text.count("--repetitions") == text.count("--repetitions 5") == 1


@pytest.mark.parametrize("repetitions", [3, 5])
def test_a_cell_that_is_called_within_the_margin_of_the_best_is_it_as_often_as_said(repetitions: int) -> None:
    """2,000 studies of which the runs scatter by 2, 5, 15 and 45 %, and cells differ by 10 %."""
    noise = np.random.default_rng(41)
    right = []
    for study in range(2000):
        scatter = (0.02, 0.05, 0.15, 0.45)[study % 4]
        truth = noise.normal(0, 0.1, 4)
        best = lead_by_repetitions(
            [noise.normal(own, scatter, repetitions) for own in truth],
            MARGIN,
        )
        if best.chance >= SURE:
            right.append(truth[best.leader] >= truth.max() - math.log1p(MARGIN))
    assert len(right) > 500
    assert np.mean(right) >= SURE


def test_scatter_names_rivals_that_tell_most_per_second_first(tmp_path: Path) -> None:
    found = ask(known_study(tmp_path / "study", lambda place: speed(place, 0.3), THREE))
    visits = told(found)
    assert isinstance(visits, NextVisits)
    assert visits.chance < 0.95
    assert visits.rivals
    gains = [chance / seconds for _, chance, seconds in visits.rivals]
    assert gains == sorted(gains, reverse=True)
    assert visits.seconds == pytest.approx(95.0 * (1 + len(visits.rivals)))
    # No command visits these alone, so that the document has them and no sentence.
    assert "probability" not in said(found)


def test_where_all_verdicts_are_there_nothing_is_to_be_measured(tmp_path: Path) -> None:
    told = headline(ask(known_study(tmp_path / "study", speed)).overview)
    assert () == told.following


def test_a_cell_that_is_sure_to_be_within_the_margin_has_no_rivals_beside_it(tmp_path: Path) -> None:
    """Database blocks of 8 KiB are a little faster on XFS, within the margin; the rest is ruled out."""

    def alike(place: Place) -> float:
        larger = place.cell.build.block_size_bytes == 8192
        noise = random.Random(f"{place.cell.id} {place.repetition}").gauss(0, 0.003)
        return SPEED[place.cell.filesystem.type] * (1.01 if larger else 1.0) * math.exp(noise)

    text = said(ask(known_study(tmp_path / "study", alike)))
    assert "With a probability of 95 % or more xfs db 8k is within 5 % of the best of 2 cells." in text


def test_leaders_that_verdicts_do_not_tell_apart_are_to_be_visited_and_the_ruled_out_are_not(
    tmp_path: Path,
) -> None:
    """XFS and Btrfs are alike and scatter; ext4 is ten times slower."""

    def scattered(place: Place) -> float:
        noise = random.Random(f"{place.cell.id} {place.repetition}").gauss(0, 0.1)
        return (100 if place.cell.filesystem.type == "ext4" else 1000) * math.exp(noise)

    found = ask(known_study(tmp_path / "study", scattered))
    (contest,) = found.contests
    assert contest.can_judge
    open_cells = {cell for cell in contest.cells if types(found)[cell] != "ext4"}
    visits = told(found)
    assert isinstance(visits, NextVisits)
    assert visits.rivals
    assert open_cells >= set(visits.cells)
    assert 4 == visits.among
    # One rival: the first that the answer names.
    answer = headline(found.overview)
    (step,) = answer.following
    assert step.apart is answer.answers[0].tied[0]
    more = step.apart.comparison.more_repetitions
    if more is None:
        assert (StepKind.LONGER, "") == (step.kind, step.command)
    else:
        assert more == step.count
        assert step.command.endswith(f" --repetitions {5 + more}")


def test_the_document_has_the_visits_that_tell_most(tmp_path: Path) -> None:
    found = ask(known_study(tmp_path / "study", lambda place: speed(place, 0.3), THREE))
    (contest,) = advice_document(headline(found.overview, found))["contests"]
    visits = told(found)
    assert isinstance(visits, NextVisits)
    assert [list(each) for each in visits.rivals] == [
        [each["cell"], each["chance"], each["seconds"]] for each in contest["chance"]["rivals"]
    ]


def test_one_cell_alone_is_told_from_nothing(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed, RECIPE)
    cells = overview(study).study.schedule.cells
    (xfs, *_) = [cell for cell, levels in cells.items() if levels.filesystem.type == "xfs"]
    (narrowed,) = selected_overviews([study], [xfs])
    assert "a chance needs 3 trusted repetitions of two cells at least" == told(advised(narrowed))
    assert () == contest_notes(advised(narrowed), advised(narrowed).contests[0], {}, None)


def test_published_runs_are_not_to_be_extended(tmp_path: Path) -> None:
    for repetitions in (2, 5):
        own = known_study(
            tmp_path / f"{repetitions}",
            lambda place: speed(place, 0.3),
            replace(RECIPE, repetitions=repetitions),
        )
        measured = overview(own)
        facts = replace(measured.study.facts, origin=IMPORTED)
        found = advised(replace(measured, study=replace(measured.study, facts=facts)))
        assert () == headline(found.overview, found).following
        assert "extend" not in said(found)


def test_where_no_cell_may_be_recommended_the_way_to_ask_about_them_is_named(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed)
    change_records(study, lambda record: replace(record, durability=None))
    (step,) = headline(overview(study)).following
    assert step.command.endswith("--durability unknown")


def test_runs_that_were_doubted_again_and_again_leave_nothing_to_choose_from(tmp_path: Path) -> None:
    """Five of each cell, of which those of one cell alone are trusted: a chance among one would be sure and empty."""
    study = known_study(tmp_path / "study", speed)
    (trusted, *_) = ask(study).contests[0].cells
    for path in study.glob("visits/*/*/*/runs/*/run.json"):
        if read(VisitRecord, path.parents[2] / "visit.json").key.cell != trusted:
            write(path, replace(read(RunFigures, path), validity=Validity.SUSPECT))
    assert "a chance needs 3 trusted repetitions of two cells at least" == told(ask(study))
    assert "only one durable cell has 3 trusted repetitions" in said(ask(study))


def test_less_is_better_where_the_figure_says_so(tmp_path: Path) -> None:
    found = ask(known_study(tmp_path / "study", lambda place: speed(place, 0.3), THREE))
    (contest,) = found.contests
    slower = replace(METRICS["latency_ms_p99"], name="tps")
    visits, other = (
        told(found),
        next_visits(found, replace(contest, objectives=(Objective(slower, "tps", ("tps",)),))),
    )
    assert isinstance(visits, NextVisits)
    assert isinstance(other, NextVisits)
    assert visits.leader != other.leader


def test_without_a_time_of_any_visit_there_is_no_hour_to_speak_of(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", lambda place: speed(place, 0.3), replace(THREE, canaries=0))
    change_records(study, lambda record: replace(record, seconds=0.0, whole_seconds=None))
    assert "no visit has a time" == told(ask(study))
    assert "probability" not in said(ask(study))
