"""What the answer says that more cuts would tell: how many there would be, of how many repetitions, and how long that takes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.support.studies.synthetic_power_cuts import (
    DATASET,
    RECIPE,
    SPEC,
    RawCuts,
    controls,
    points_of,
    recorded_study,
)
from tests.support.studies.synthetic_study import cells_of

from bedplate.analysis.answer import NextStep, StepKind, headline
from bedplate.analysis.overview import overview
from bedplate.model.levels import Levels

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# A quarter of the cuts, on a device whose sectors nothing tells: those that leave sectors of 512 bytes.
OF_EACH = 10
VISIT_S = 60.0


def sharper(place: Path, raws: Iterable[RawCuts], *, repetitions: int = 1) -> NextStep:
    found = overview(recorded_study(place / "study", raws, repetitions=repetitions))
    (step,) = (each for each in headline(found).following if each.kind is StepKind.CUTS)
    return step


def sound(clients: int = 2, points: int = 4 * OF_EACH) -> RawCuts:
    dataset = replace(DATASET, levels=Levels({**DATASET.levels, "clients": clients}))
    spec = replace(SPEC, levels=Levels({**SPEC.levels, "points": points}))
    made = (*points_of({}, count=points), *controls())
    return RawCuts(cells_of(RECIPE)[0], made, dataset=dataset, spec=spec)


def test_a_repetition_with_two_recordings_of_a_cell_brings_the_cuts_of_both(tmp_path: Path) -> None:
    step = sharper(tmp_path, [sound(clients=2), sound(clients=8)])
    # 72 cuts bound the share by 5 %.
    assert (4, 4 * 2 * OF_EACH) == (step.repetitions, step.count)
    assert 3 * 2 * VISIT_S == step.seconds


def test_what_is_still_due_is_no_step_and_no_time_is_negative(tmp_path: Path) -> None:
    """One of five repetitions is made, and two would do for the bound that comes next."""
    step = sharper(tmp_path, [sound(points=40 * OF_EACH)], repetitions=5)
    assert step.repetitions is not None
    assert step.repetitions > 5
    assert step.count == 10 * OF_EACH * step.repetitions
    assert step.seconds == (step.repetitions - 5) * VISIT_S
    assert f"--repetitions {step.repetitions}" in step.command
