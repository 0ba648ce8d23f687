"""The vectors that the page's script is held against are what Python says today."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.tools.page_vectors import GOLDEN, comparison_vectors, heat_map_vectors


def same(one: Any, other: Any) -> bool:
    """Equal, figures to the ninth digit."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) or isinstance(other, float):
        return None not in (one, other) and one == pytest.approx(other, rel=1e-9, abs=1e-300)
    return bool(one == other)


def test_comparisons_are_those_of_today() -> None:
    stored = json.loads((GOLDEN / "comparisons.json").read_text(encoding="utf-8"))
    assert same(stored, json.loads(json.dumps(comparison_vectors()))), (
        "run python -m tests.support.tools.page_vectors"
    )


def test_every_verdict_is_among_them() -> None:
    stored = json.loads((GOLDEN / "comparisons.json").read_text(encoding="utf-8"))
    verdicts = {case["expected"]["verdict"] for case in stored["cases"]}
    assert {"faster", "slower", "higher", "lower", "same", "cannot tell"} == verdicts
    counted = {case["expected"]["verdict"] for case in stored["cases"] if case["metric"] == "bad"}
    assert {"higher", "lower", "same", "cannot tell"} == counted
    assert any(case["expected"]["open_side"] for case in stored["cases"])
    assert any(case["expected"]["more_repetitions"] for case in stored["cases"])


def test_heat_maps_are_those_of_today() -> None:
    stored = json.loads((GOLDEN / "heat-maps.json").read_text(encoding="utf-8"))
    assert same(stored, json.loads(json.dumps(heat_map_vectors()))), (
        "run python -m tests.support.tools.page_vectors"
    )
    assert any(each["left_out"] and each["used"] for each in stored)
    assert any(each["ends"] and each["ends"][2] for each in stored)
