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
    Contest,
    NextVisits,
    Objective,
    Sentence,
    advised,
    closing_sentences,
    contest_sentences,
    next_sentences,
    next_visits,
)
from bedplate.analysis.claims import judge_claims
from bedplate.analysis.comparison import selected_overviews
from bedplate.analysis.headline import headline
from bedplate.analysis.overview import overview
from bedplate.model.codec import read, write
from bedplate.model.figure import RunFigures
from bedplate.model.metrics import METRICS
from bedplate.model.visit import Validity, VisitRecord
from bedplate.page.answer import study_answer
from bedplate.page.views import page_effects
from bedplate.statistics.comparison import MARGIN
from bedplate.statistics.search import lead_by_repetitions
from bedplate.study.records import IMPORTED
from bedplate.terminal.advice_tables import advice_document
from bedplate.units import format_count

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


def next_of(found: Advised) -> list[Sentence]:
    (contest,) = found.contests
    return [each for each in contest_sentences(found, contest) if each.kind == "next"]


def words(found: Advised) -> str:
    return " ".join(each.text for each in next_of(found))


def in_speed_alone(contest: Contest) -> Contest:
    """Without steadiness, by which cells that are slow may lead."""
    first = contest.objectives[:1], contest.confidences[:1]
    return replace(
        contest, objectives=first[0], confidences=first[1], better=contest.better[:1], same=contest.same[:1]
    )


def types(found: Advised) -> dict[str, str]:
    return {cell: own.filesystem.type for cell, own in found.overview.study.schedule.cells.items()}


@pytest.mark.parametrize("repetitions", [1, 2])
def test_too_few_repetitions_have_no_chance_and_name_no_cell(tmp_path: Path, repetitions: int) -> None:
    recipe = replace(RECIPE, repetitions=repetitions)
    found = ask(known_study(tmp_path / "study", lambda place: speed(place, 0.15), recipe))
    assert told(found) == "a chance needs 3 trusted repetitions of two cells at least"
    text = words(found)
    assert "chance of" not in text
    assert "unlikely" not in text
    assert f"--repetitions 5` adds {5 - repetitions} repetitions of every cell, about " in text
    assert {each.kind for each in contest_sentences(found, found.contests[0])} <= {"limits", "next"}


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
    assert "is the likeliest. These may be better by more than 5 %: " in words(found)
    assert "Visits of these and of it would tell most per hour" in words(found)


def test_where_all_verdicts_are_there_no_visit_is_named_and_the_reason_is(tmp_path: Path) -> None:
    found = ask(known_study(tmp_path / "study", speed))
    (contest,) = found.contests
    (said,) = next_sentences(found, in_speed_alone(contest))
    assert (None, "") == (said.visits, said.command)
    assert said.text == "No visit would decide more in tps of read-write: every other cell is ruled out."


def test_cells_that_are_shown_the_same_leave_nothing_to_decide(tmp_path: Path) -> None:
    """Database blocks of 8 KiB are a little faster on XFS, within the margin; the rest is ruled out."""

    def alike(place: Place) -> float:
        larger = place.cell.build.block_size_bytes == 8192
        noise = random.Random(f"{place.cell.id} {place.repetition}").gauss(0, 0.003)
        return SPEED[place.cell.filesystem.type] * (1.01 if larger else 1.0) * math.exp(noise)

    found = ask(known_study(tmp_path / "study", alike))
    (contest,) = found.contests
    (said,) = next_sentences(found, in_speed_alone(contest))
    assert said.text == (
        "No visit would decide more in tps of read-write: xfs fs 4k db 8k is the same within 5 % as the other that nothing rules out."
    )
    assert 2 == len(said.cells)


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
    first, *others = next_sentences(found, in_speed_alone(contest))
    visits = first.visits
    assert visits is not None
    assert visits.rivals
    assert open_cells >= set(visits.cells) == set(first.cells)
    assert 4 == visits.among
    # Nobody is told to add repetitions twice: the pairs say how many.
    assert "" == first.command
    (counted,) = [each for each in others if each.command]
    (more,) = {min(proof.comparison.more_repetitions or 0 for proof in counted.evidence)}
    assert counted.command.endswith(f" --repetitions {5 + more}")
    assert f"`{counted.command}` adds {format_count(more, 'repetition')} of every cell" in counted.text
    steps = [step.command for step in headline(found.overview).following]
    assert counted.command.split(" --repetitions ")[0] == steps[0].split(" --repetitions ")[0]


def test_the_document_and_the_page_say_the_same_visits(tmp_path: Path) -> None:
    found = ask(known_study(tmp_path / "study", lambda place: speed(place, 0.3), THREE))
    said, *_ = next_of(found)
    (contest,) = advice_document(found)["contests"]
    document, *_ = [each for each in contest["sentences"] if each["kind"] == "next"]
    visits = said.visits
    assert visits is not None
    assert (said.text, said.command or None, list(said.cells)) == (
        document["text"],
        document["command"],
        document["cells"],
    )
    assert [list(each) for each in visits.rivals] == [
        [each["cell"], each["chance"], each["seconds"]] for each in document["visits"]["rivals"]
    ]
    answer = study_answer(found.overview, page_effects(found.overview), judge_claims([found.overview], ()), 0)
    assert said.text in answer.volatile.following


def test_one_cell_alone_is_told_from_nothing(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed, RECIPE)
    cells = overview(study).study.schedule.cells
    (xfs, *_) = [cell for cell, levels in cells.items() if levels.filesystem.type == "xfs"]
    (narrowed,) = selected_overviews([study], [xfs])
    (said,) = next_of(advised(narrowed))
    assert said.text == "No visit would decide more in tps of read-write: no other cell is durable."


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
        assert [] == next_of(found)
        (said,) = [each.text for each in closing_sentences(found) if each.kind == "next"]
        assert said == "Nothing: these are published runs, to which none can be added."
        assert not any("extend" in each.text for each in contest_sentences(found, found.contests[0]))


def test_where_no_cell_may_be_recommended_the_way_to_ask_about_them_is_named(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed)
    change_records(study, lambda record: replace(record, durability=None))
    (said,) = [each.text for each in closing_sentences(ask(study)) if each.kind == "next"]
    assert "--durability 'unknown'`" in said


def test_runs_that_were_doubted_again_and_again_leave_nothing_to_choose_from(tmp_path: Path) -> None:
    """Five of each cell, of which those of one cell alone are trusted: a chance among one would be sure and empty."""
    study = known_study(tmp_path / "study", speed)
    (trusted, *_) = ask(study).contests[0].cells
    for path in study.glob("visits/*/*/*/runs/*/run.json"):
        if read(VisitRecord, path.parents[2] / "visit.json").key.cell != trusted:
            write(path, replace(read(RunFigures, path), validity=Validity.SUSPECT))
    first, left_out = next_of(ask(study))
    assert "is not known: a chance needs 3 trusted repetitions of two cells at least." in first.text
    assert "" == first.command
    assert left_out.text.startswith("Not judged here, to be measured again")


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
    first, *_ = next_of(ask(study))
    assert "is not known: no visit has a time." in first.text
