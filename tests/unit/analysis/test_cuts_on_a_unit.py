"""Cuts as a device would leave them that writes 8 or 16 kB whole: a verdict on such a device, and no class of the cell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.studies.judged_cuts import DECLARED, good, judged, made
from tests.support.studies.synthetic_power_cuts import (
    DATASET,
    RECORDING,
    SPEC,
    controls,
    points_of,
    write_cut_visit,
)

from bedplate.analysis.overview import BAD_SHARE, Measurement, part_figures, whole_figures
from bedplate.analysis.wording import recording_words
from bedplate.cuts.choice import with_unit
from bedplate.cuts.records import DEFAULT_PROFILES, PointOutcome, Profile
from bedplate.cuts.runs import CutRun
from bedplate.cuts.verdict import measured_durability
from bedplate.model.device_cache import VOLATILE_4K
from bedplate.model.durability import DURABLE
from bedplate.model.levels import Levels
from bedplate.model.visit import Outcome, Validity, VisitKey

UNIT = replace(SPEC, levels=Levels({**SPEC.levels, "device_unit": 16384}))


def test_the_profile_of_the_unit_stands_for_those_that_tear() -> None:
    assert (Profile.UNTORN_8K, Profile.LOST, Profile.ORDERED) == with_unit(
        DEFAULT_PROFILES, Profile.UNTORN_8K
    )
    assert DEFAULT_PROFILES == with_unit(DEFAULT_PROFILES, None)


def test_a_verdict_on_a_device_with_a_unit_is_no_class_of_the_cell(tmp_path: Path) -> None:
    verdict = judged(tmp_path, good(spec=UNIT))
    assert (DURABLE, False) == (verdict.cuts(VOLATILE_4K).shown, verdict.of_the_cell)
    assert measured_durability(verdict, DECLARED) is None


@pytest.mark.parametrize(("torn", "bad"), [(PointOutcome.OK, 0), (PointOutcome.SILENT, 10)])
def test_the_share_of_bad_cuts_counts_those_of_the_unit(torn: PointOutcome, bad: int, tmp_path: Path) -> None:
    drawn = [
        replace(each, point=replace(each.point, profile=Profile.UNTORN_16K))
        if each.point.profile is Profile.SUBSET_4K
        else each
        for each in points_of({Profile.SUBSET_4K: torn})
        if each.point.profile is not Profile.SUBSET_512
    ]
    figures, _ = made(tmp_path, good(points=(*drawn, *controls()), spec=UNIT))
    found = Measurement(
        *("cell", "dataset", "run", 1, 1, 0, False, Outcome.COMPLETED, Validity.VALID, ()),
        by_metric=whole_figures(figures.figures),
        parts=part_figures(figures.figures),
    )
    # Ten as the device of the unit leaves it, ten that lose all; those in order are of another machine.
    assert (bad, 20) == found.observation(BAD_SHARE).of


@pytest.mark.parametrize(("uncovered", "long"), [(312, 10512), (0, 4187)])
def test_what_the_unit_does_not_cover_is_said(uncovered: int, long: int, tmp_path: Path) -> None:
    recording = replace(RECORDING, long_writes=long, uncovered_writes=uncovered)
    raw = good(points=(*points_of({}), *controls()), recording=recording, spec=UNIT)
    run = CutRun(
        key=VisitKey("cell", "dataset", 1, 1),
        dataset=DATASET,
        spec=UNIT,
        directory=write_cut_visit(tmp_path / "visit", raw),
        recording=recording,
        verdict=judged(tmp_path / "judged", raw),
        declared=None,
        lost_transactions=(),
        recovery_s=(),
    )
    (words,) = recording_words(run)
    assert "a device would leave it that writes 16 KiB whole" in words
    assert f"It does not cover {uncovered:,} of {long:,} writes above 4 KiB" in words
