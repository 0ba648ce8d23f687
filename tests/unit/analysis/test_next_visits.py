"""Where few repetitions give no verdict, advice says which visits would tell most per hour, and recommends no cell."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.support.studies.known_study import KNOWN, Place, change_records, known_study

from bedplate.analysis.advice.advised import Advised, Objective, advised
from bedplate.analysis.advice.next_visits import NextVisits, next_visits
from bedplate.analysis.advice.sentences import contest_sentences
from bedplate.analysis.overview import overview
from bedplate.model.codec import read, write
from bedplate.model.figure import RunFigures
from bedplate.model.metrics import METRICS
from bedplate.model.visit import Outcome, Validity

if TYPE_CHECKING:
    from pathlib import Path

SPEED = {"ext4": 1000.0, "xfs": 1200.0, "btrfs": 1001.0}
RECIPE = replace(KNOWN, repetitions=2)


def speed(place: Place, scatter: float = 0.01) -> float:
    noise = random.Random(f"{place.cell.id} {place.repetition}").gauss(0, scatter)
    larger = 1 + place.cell.build.block_size_bytes / 10000
    return SPEED[place.cell.filesystem.type] * larger * math.exp(noise)


def ask(study: Path) -> Advised:
    return advised(overview(study))


def told(found: Advised) -> NextVisits | None:
    (contest,) = found.contests
    return next_visits(found, contest)


def words(found: Advised) -> str:
    (contest,) = found.contests
    return " ".join(each.text for each in contest_sentences(found, contest) if each.kind == "next")


def test_two_repetitions_name_the_cell_to_visit_again_and_no_winner(tmp_path: Path) -> None:
    found = ask(known_study(tmp_path / "study", speed, RECIPE))
    visits = told(found)
    assert visits is not None
    best = found.overview.study.schedule.cells[visits.leader]
    assert ("xfs", 8192, 6) == (best.filesystem.type, best.build.block_size_bytes, visits.among)
    assert visits.chance > 0.8
    assert visits.all_seconds > visits.seconds > 0
    text = words(found)
    assert "these visits would tell most per hour" in text
    assert "xfs" in text
    assert f"with a chance of {100 * visits.chance:.0f} %" in text.replace("\u00a0", " ").replace(
        "\u202f", " "
    )
    kinds = {each.kind for each in contest_sentences(found, found.contests[0])}
    assert "leading" not in kinds


def test_the_same_study_says_the_same_twice(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", lambda place: speed(place, 0.2), RECIPE)
    assert told(ask(study)) == told(ask(study))


def test_scatter_names_rivals_that_tell_most_per_second_first(tmp_path: Path) -> None:
    found = ask(known_study(tmp_path / "study", lambda place: speed(place, 0.3), RECIPE))
    visits = told(found)
    assert visits is not None
    assert visits.chance < 0.95
    assert visits.rivals
    gains = [chance / seconds for _, chance, seconds in visits.rivals]
    assert gains == sorted(gains, reverse=True)
    assert "may be better by more than" in words(found)


def test_verdicts_need_no_model(tmp_path: Path) -> None:
    assert "model of the factors" not in words(ask(known_study(tmp_path / "study", speed)))


def test_a_cell_that_failed_twice_is_not_to_be_visited(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed, RECIPE)
    for path in study.glob("visits/*/*/*/runs/*/run.json"):
        if "xfs" in str(path):
            write(path, replace(read(RunFigures, path), outcome=Outcome.FAILED, figures=()))
    visits = told(ask(study))
    assert visits is not None
    cells = overview(study).study.schedule.cells
    assert "xfs" not in {
        cells[cell].filesystem.type for cell in (visits.leader, *(r[0] for r in visits.rivals))
    }


def test_runs_that_are_not_trusted_tell_the_model_nothing(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed, RECIPE)
    for path in study.glob("visits/*/*/*/runs/*/run.json"):
        write(path, replace(read(RunFigures, path), validity=Validity.SUSPECT))
    assert None is told(ask(study))


def test_less_is_better_where_the_figure_says_so(tmp_path: Path) -> None:
    found = ask(known_study(tmp_path / "study", speed, RECIPE))
    (contest,) = found.contests
    slower = replace(METRICS["latency_ms_p99"], name="tps")
    visits = next_visits(found, replace(contest, objectives=(Objective(slower, "tps", ("tps",)),)))
    assert visits is not None
    worst = found.overview.study.schedule.cells[visits.leader]
    assert worst.build.block_size_bytes < 8192
    assert "xfs" != worst.filesystem.type


def test_without_a_time_of_any_visit_there_is_no_hour_to_speak_of(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed, RECIPE)
    change_records(study, lambda record: replace(record, outcome=Outcome.FAILED))
    assert all(next_visits(found, each) is None for found in [ask(study)] for each in found.contests)
