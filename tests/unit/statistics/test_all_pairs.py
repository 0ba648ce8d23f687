"""Pairs as arrays give the verdicts of pairs one by one."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bedplate.model.figure import Metric, Scale
from bedplate.model.metrics import METRICS
from bedplate.statistics.comparison import Comparison, Confidence, Verdict, all_pairs, compare, judged_apart
from bedplate.statistics.estimation import Estimate
from bedplate.statistics.summary import Observation

TPS, SHARE, COUNT = METRICS["tps"], METRICS["client_cpu_share"], METRICS["transactions"]
CONFIDENCE = Confidence(difference=0.97, sameness=0.9)
# Whole thousandths about a level, and gaps: verdicts of all kinds come up, none by the last digit.
tables = st.tuples(st.integers(2, 5), st.integers(1, 5)).flatmap(
    lambda shape: arrays(
        np.float64,
        shape,
        elements=st.one_of(
            st.just(math.nan), st.integers(900, 1300).map(float), st.integers(1000, 1010).map(float)
        ),
    )
)


def one_by_one(values: np.ndarray, metric: Metric, first: int, second: int) -> Comparison:
    sides = [
        {number: Observation(None if math.isnan(value) else value) for number, value in enumerate(row)}
        for row in (values[first], values[second])
    ]
    found = compare(sides[0], sides[1], metric)
    return judged_apart(found, difference=CONFIDENCE.difference, sameness=CONFIDENCE.sameness)


def together(values: np.ndarray, metric: Metric) -> tuple[np.ndarray, np.ndarray]:
    count = len(values)
    comparable = np.ones(count * (count - 1) // 2, dtype=np.bool_)
    return all_pairs(values, metric, comparable=comparable).verdicts(CONFIDENCE)


@settings(deadline=None, max_examples=200)
@given(tables, st.sampled_from([TPS, SHARE, COUNT]))
def test_verdicts_are_those_of_one_comparison_each(table: np.ndarray, metric: Metric) -> None:
    values = table if metric.scale is not Scale.SHARE else table / 10000
    larger, same = together(values, metric)
    for first, second in combinations(range(len(values)), 2):
        found = one_by_one(values, metric, first, second)
        is_same = found.verdict is Verdict.SAME
        up = (
            found.differs
            and not is_same
            and (found.estimate or 0) > (1 if metric.scale is Scale.RATIO else 0)
        )
        down = found.differs and not is_same and not up
        assert (down, up, is_same, is_same) == (
            larger[first, second],
            larger[second, first],
            same[first, second],
            same[second, first],
        )


@settings(deadline=None)
@given(tables)
def test_p_values_are_those_of_one_comparison_each(values: np.ndarray) -> None:
    count = len(values)
    found = all_pairs(values, TPS, comparable=np.ones(count * (count - 1) // 2, dtype=np.bool_))
    pairs = [one_by_one(values, TPS, first, second) for first, second in combinations(range(count), 2)]
    assert [pair.basis is not None for pair in pairs] == list(found.judged)
    scattering = [pair for pair in pairs if isinstance(pair.basis, Estimate) and pair.basis.error > 1e-9]
    assert [True for _ in scattering] == [pair.scatters for pair in scattering]
    assert np.allclose([pair.p_difference or 0.0 for pair in scattering], found.p_differences, atol=1e-9)
    assert np.allclose([pair.p_same or 0.0 for pair in scattering], found.p_sames, atol=1e-9)


def test_what_does_not_scatter_is_told_and_is_in_no_family() -> None:
    values = np.array([[100.0, 100, 100], [100.0, 100, 100], [300.0, 300, 300], [100.0, 110, 104]])
    found = all_pairs(values, TPS, comparable=np.ones(6, dtype=np.bool_))
    assert (6, 3, 3) == (int(found.judged.sum()), len(found.p_differences), len(found.p_sames))
    larger, same = found.verdicts(Confidence(0.999999, 0.999999))
    assert same[0, 1]
    assert larger[2, 0]
    assert larger[2, 1]


def test_a_pair_in_other_surroundings_has_no_verdict() -> None:
    values = np.array([[100.0, 101, 102], [200.0, 201, 203], [300.0, 301, 302]])
    found = all_pairs(values, TPS, comparable=np.array([False, True, True]))
    larger, same = found.verdicts(Confidence())
    assert [False, True, True] == list(found.judged)
    assert not larger[1, 0]
    assert larger[2, 0]
    assert larger[2, 1]
    assert not same.any()


def test_a_value_without_a_logarithm_leaves_its_row_out() -> None:
    values = np.array([[100.0, 101, 102], [0.0, 201, 203], [300.0, 301, 302]])
    found = all_pairs(values, TPS, comparable=np.ones(3, dtype=np.bool_))
    assert [False, True, False] == list(found.judged)
