"""`--fail-if` of power cuts: what a verdict makes of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.studies.judged_cuts import DECLARED, good, judged
from tests.support.studies.synthetic_power_cuts import controls, points_of

from bedplate.analysis.condition import BAD, PROMISED, Truth, cut_truth
from bedplate.cuts.records import PointOutcome, Profile
from bedplate.cuts.runs import CutRun
from bedplate.cuts.verdict import PowerCutVerdict
from bedplate.model.cell import Dataset, RunSpec
from bedplate.model.reason import because
from bedplate.model.visit import Durability, VisitKey


def run_with(verdict: PowerCutVerdict, declared: Durability | None = DECLARED) -> CutRun:
    return CutRun(
        VisitKey("c", "d", 1, 1),
        Dataset("power_cut"),
        RunSpec("r", "power_cut"),
        Path(),
        None,
        verdict,
        declared,
        (),
        (),
    )


def lossy(path: Path) -> PowerCutVerdict:
    points = (*points_of({Profile.LOST: PointOutcome.LOST}), *controls())
    return judged(path, good(points=points))


def test_a_bad_cut_is_told_and_so_is_none(tmp_path: Path) -> None:
    whole, lost = run_with(judged(tmp_path / "good", good())), run_with(lossy(tmp_path / "lossy"))
    assert [Truth.FAILS, Truth.FAILS] == [cut_truth(each, [whole]) for each in (BAD, PROMISED)]
    assert [Truth.HOLDS, Truth.HOLDS] == [cut_truth(each, [whole, lost]) for each in (BAD, PROMISED)]


@pytest.mark.parametrize("condition", [BAD, PROMISED])
def test_without_a_verdict_nothing_can_be_told(tmp_path: Path, condition: str) -> None:
    assert Truth.CANNOT_TELL is cut_truth(condition, [])
    refused = replace(lossy(tmp_path), refused=(because("x", "refused"),))
    assert Truth.CANNOT_TELL is cut_truth(condition, [run_with(refused)])


def test_what_was_not_promised_cannot_be_worse(tmp_path: Path) -> None:
    nothing = Durability("unknown", "unknown", "declared", ())
    assert Truth.CANNOT_TELL is cut_truth(PROMISED, [run_with(lossy(tmp_path), nothing)])
    allowed = Durability("unsafe", "unsafe", "declared", ())
    assert Truth.FAILS is cut_truth(PROMISED, [run_with(lossy(tmp_path / "2"), allowed)])
