"""Recordings of one cell have names of their own, whatever a plan varied between them."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.synthetic_power_cuts import power_cut_study

from bedplate.analysis.overview import overview
from bedplate.cuts.runs import CutRun, told_apart
from bedplate.model.levels import Levels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.model.levels import Scalar


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> CutRun:
    study = power_cut_study(tmp_path_factory.mktemp("cuts") / "study")
    return next(iter(chain.from_iterable(cell.cuts for cell in overview(study).cells.values())))


def of(run: CutRun, dataset: Mapping[str, Scalar], spec: Mapping[str, Scalar] | None = None) -> CutRun:
    levels = Levels({**run.dataset.levels, **dataset})
    asked = Levels({**run.spec.levels, **(spec or {})})
    return replace(run, dataset=replace(run.dataset, levels=levels), spec=replace(run.spec, levels=asked))


def test_one_recording_has_nothing_to_be_told_from(run: CutRun) -> None:
    assert () == told_apart(run, [run])


@pytest.mark.parametrize(
    ("level", "value", "words"),
    [
        ("press_dirty_pages", True, ("no dirty pages pressed", "dirty pages pressed")),
        ("clients", 8, ("clients 2", "clients 8")),
        ("duration_s", 60.0, ("duration 4 s", "duration 60 s")),
        ("image_bytes", 2**32, ("disk 512 MiB", "disk 4 GiB")),
        ("ram_journal", "kept", ("journal lost", "journal kept")),
        ("completions", "late", ("completions at once", "completions late")),
        ("recut", 40, ("recut 0", "recut 40")),
        ("points", 61, ("points 40", "points 61")),
    ],
)
def test_what_a_plan_varies_between_recordings_is_in_their_names(
    run: CutRun, level: str, value: Scalar, words: tuple[str, str]
) -> None:
    both = [run, of(run, {level: value})]
    assert [(each,) for each in words] == [told_apart(each, both) for each in both]


def test_what_the_cuts_were_asked_tells_too_and_a_number_of_points_only_where_nothing_else_does(
    run: CutRun,
) -> None:
    unit = of(run, {"points": 40}, {"device_unit": 16384})
    states = of(run, {"points": 41}, {"states": 300})
    more = of(run, {"points": 80}, {"states": 300})
    assert [("device unit 16 KiB",), ("device unit none",)] == [
        tuple(word for word in told_apart(each, [unit, states]) if "unit" in word) for each in (unit, states)
    ]
    names = {told_apart(each, [unit, states, more]) for each in (unit, states, more)}
    assert 3 == len(names)
    assert not any("points" in word for word in told_apart(unit, [unit, states, more]))
    assert told_apart(more, [unit, states, more])[-1] == "points 80"
