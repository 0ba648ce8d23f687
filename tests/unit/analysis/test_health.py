"""Drift, steps and outliers of whole studies, as sentences beside the figures."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.support.studies.known_study import KNOWN, Place, known_study
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.answer import headline, headline_lines
from bedplate.analysis.comparison import ComparisonQuestion, answer
from bedplate.analysis.overview import StudyHealth, StudySeries, overview, study_health
from bedplate.page.build import build_report
from bedplate.statistics.drift import Drift, Outlier, dips
from bedplate.terminal.compare_tables import closing_sentences
from bedplate.terminal.tables import show_document, show_tables

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RECIPE = replace(KNOWN, canaries=8)
VISITS = 8 * 5 + 8


def steady(place: Place) -> float:
    noise = random.Random(f"{place.cell.id} {place.repetition} {place.canary}").gauss(0, 0.02)
    return {"ext4": 1000.0, "xfs": 1500.0, "btrfs": 700.0}[place.cell.filesystem.type] * math.exp(noise)


def told(directory: Path, tps: Callable[[Place], float], **changes: object) -> str:
    study = known_study(directory / "study", tps, replace(RECIPE, **changes))  # type: ignore[arg-type]
    return " ".join(study_health(overview(study)).sentences())


def test_a_steady_study_says_nothing(tmp_path: Path) -> None:
    assert "" == told(tmp_path, steady)


def test_a_machine_that_slows_halfway_is_told_with_the_canary(tmp_path: Path) -> None:
    text = told(tmp_path, lambda place: steady(place) * (0.8 if place.order >= 20 else 1), canaries=20)
    assert re.search(
        r"tps of read-write changed with time, within cells: 0\.(79|80|81) times from visit 2\d of 60 on if it was sudden",
        text,
    )
    assert re.search(
        r"The canary's tps changed with time, within cells: 0\.(79|80|81) times from visit 2\d", text
    )
    assert "none gains by it, but intervals are wider" in text
    assert "did not change" not in text


def test_a_trend_is_told_with_its_size(tmp_path: Path) -> None:
    text = told(tmp_path, lambda place: steady(place) * math.exp(-0.5 * place.order / VISITS))
    assert re.search(
        r"0\.(5\d|6\d) times \(0\.\d\d–0\.\d\d\) from the first visit to the last if gradual", text
    )


def test_a_canary_that_saw_nothing_is_told_too(tmp_path: Path) -> None:
    slows = lambda place: steady(place) * (0.8 if place.order >= VISITS / 2 and not place.canary else 1)  # noqa: E731
    assert "The canary, visited 8 times, did not change." in told(tmp_path, slows)
    assert "There was no canary" in told(tmp_path / "without", slows, canaries=0)
    # One was there, and one value has no course.
    assert "The canary was visited too rarely to show whether" in told(tmp_path / "once", slows, canaries=1)


def test_one_wild_value_is_an_outlier_and_stays(tmp_path: Path) -> None:
    def wild(place: Place) -> float:
        is_it = (place.cell.filesystem.type, place.cell.build.block_size_bytes, place.repetition) == (
            "xfs",
            8192,
            3,
        )
        return steady(place) * (0.5 if is_it else 1)

    text = told(tmp_path, wild)
    assert "Outliers in tps of read-write: xfs · fs 4 KiB · db 8 KiB at visit" in text
    assert "0.5" in text
    assert "none is left out for it" in text


def test_as_many_outliers_as_chance_gives_are_not_told() -> None:
    found = Outlier("ext4", 3, 100.0, 0.7, 5, 0.005)
    series = StudySeries(
        ("d", "r"), "tps of r", False, Drift(1500, 300), (found, found), 0.01, {"ext4": "ext4"}
    )
    assert () == StudyHealth((series,), 1500, 0, 1500).sentences()
    rare = replace(series, outliers=(found, replace(found, p_value=1e-5)))
    (sentence,) = StudyHealth((rare,), 1500, 0, 1500).sentences()
    assert (
        "Outliers in tps of r: ext4 at visit 3 (0.70 times its others). Chance alone gives about 3"
        in sentence
    )
    many = replace(series, outliers=(found,) * 9)
    assert " and 6 more" in StudyHealth((many,), 1500, 0, 1500).sentences()[0]


def test_suspect_runs_are_counted_and_bend_no_trend(tmp_path: Path) -> None:
    suspect = tuple((n, 5) for n in range(8))
    text = told(
        tmp_path,
        lambda place: steady(place) * (0.3 if place.repetition == 5 else 1),
        suspect=suspect,
        canaries=0,
    )
    assert "8 of 40 completed runs are suspect" in text
    assert "changed with time" not in text


def test_it_stands_below_the_tables_and_in_the_comparison(tmp_path: Path) -> None:
    study = known_study(
        tmp_path / "study", lambda place: steady(place) * (0.8 if place.order >= VISITS / 2 else 1), RECIPE
    )
    text = as_printed(show_tables([study]))
    assert "tps of read-write changed with time" in text
    assert any("changed with time" in words for words in show_document([study])["studies"][0]["health"])
    found = answer([overview(study)], ComparisonQuestion("type=ext4 barrier=yes", "type=xfs"))
    assert any("changed with time" in words for words in closing_sentences(found))


def test_runs_that_lost_half_of_their_speed_are_told_in_the_terminal_and_on_the_page(tmp_path: Path) -> None:
    def dipping(place: Place) -> float:
        is_xfs = place.cell.filesystem.type == "xfs" and place.cell.build.block_size_bytes == 8192
        return steady(place) * (0.5 if is_xfs and place.repetition == 2 and not place.canary else 1)

    study = known_study(tmp_path / "study", dipping, replace(RECIPE, repetitions=3))
    text = " ".join(study_health(overview(study)).sentences())
    assert re.search(
        r"Dips in tps of read-write: xfs · fs 4 KiB · db 8 KiB in 1 of 3 runs \(0\.(4|5)\d times the speed",
        text,
    )
    assert "intervals of 95 % hold the truth less often" in text
    compared = closing_sentences(
        answer([overview(study)], ComparisonQuestion("type=ext4 barrier=yes", "type=xfs"))
    )
    assert any("Dips in tps of read-write" in words for words in compared)
    assert any("Dips in tps of read-write" in line.text for line in headline_lines(headline(overview(study))))
    build_report([study], tmp_path / "page.html")
    assert "Dips in tps of read-write" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_load_that_once_took_twice_as_long_is_a_dip_and_one_that_took_half_is_none() -> None:
    # Of times less is better, so the slow side lies above.
    values = [10.0, 10.1, 20.0, 10.05, 9.9]
    assert 1 == len(dips(("load", 1 / value) for value in values))
    assert () == dips(("load", 1 / value) for value in [*values[:2], 5.0, *values[3:]])


def test_one_run_in_doubt_is_singular() -> None:
    suspect, unknown = StudyHealth((), 9, 1, 9, unknown=1).sentences()
    assert "1 of 9 completed runs is suspect and is in no verdict." == suspect
    assert "so that nobody knows whether it is valid: it is in no verdict" in unknown
    several = StudyHealth((), 9, 2, 9, unknown=3).sentences()
    assert "2 of 9 completed runs are suspect and are in no verdict." == several[0]
    assert "whether they are valid" in several[1]
