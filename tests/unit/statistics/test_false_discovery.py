"""Many comparisons: Benjamini & Hochberg against scipy's, and intervals that agree with the verdicts."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bedplate.model.figure import Better, Metric, Scale
from bedplate.statistics.comparison import Comparison, Verdict, compare
from bedplate.statistics.false_discovery import discoveries, joint_confidence, judged_together
from bedplate.statistics.summary import Observation

TPS = Metric("tps", "1/s", Scale.RATIO, Better.HIGHER, "transactions per second")


def compared(ratio: float, scatter: float, seed: int, n: int = 5) -> Comparison:
    generator = random.Random(seed)
    first = [100 * math.exp(generator.gauss(0, scatter)) for _ in range(n)]
    second = [100 * ratio * math.exp(generator.gauss(0, scatter)) for _ in range(n)]
    baseline, contender = (
        {r: Observation(value) for r, value in enumerate(side, 1)} for side in (first, second)
    )
    return compare(baseline, contender, TPS)


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_discoveries_are_those_of_scipy(p_values: list[float]) -> None:
    adjusted = stats.false_discovery_control(p_values)
    # Exactly at the rate the two may round apart.
    if all(abs(p - 0.05) > 1e-9 for p in adjusted):
        assert sum(p <= 0.05 for p in adjusted) == int(discoveries(p_values))


def test_one_comparison_keeps_its_confidence() -> None:
    assert float(joint_confidence([0.3])) == pytest.approx(0.95)
    assert float(joint_confidence([0.001])) == pytest.approx(0.95)


def test_a_late_p_value_carries_the_earlier_ones_with_it() -> None:
    # 0.03 is above 2/4 x 5 %, but 0.035 is below 3/4 x 5 %.
    assert 3 == int(discoveries([0.03, 0.01, 0.035, 0.9]))
    assert 0 == int(discoveries([0.02, 0.2, 0.3, 0.9]))


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan])
def test_what_is_no_p_value_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        discoveries([0.5, wrong])


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.floats(0.8, 1.25), st.floats(0.002, 0.3), st.integers(0, 999)), min_size=1, max_size=25
    )
)
def test_verdicts_are_the_discoveries_and_no_interval_contradicts_them(
    drawn: Sequence[tuple[float, float, int]],
) -> None:
    alone = [compared(*parameters) for parameters in drawn]
    judged = judged_together(alone)
    told = [c for c in judged if c.verdict is not Verdict.CANNOT_TELL]
    p_values = [c.p_value or 0.0 for c in alone]
    assert int(discoveries(p_values)) == len(told)
    assert 1 == len({c.confidence for c in judged})
    for before, after in zip(alone, judged, strict=True):
        assert before.low is not None
        assert after.low is not None
        assert after.confidence >= 0.95 - 1e-12
        assert after.low <= before.low + 1e-12
        if after.verdict is Verdict.CANNOT_TELL:
            assert not after.differs


def test_among_many_that_are_equal_a_lucky_one_loses_its_verdict() -> None:
    equal = [compared(1.0, 0.04, seed) for seed in range(100)]
    lucky = [c for c in equal if c.verdict in {Verdict.FASTER, Verdict.SLOWER}]
    assert lucky
    assert not [c for c in judged_together(equal) if c.verdict in {Verdict.FASTER, Verdict.SLOWER}]


def test_what_has_no_interval_is_no_part_of_the_family() -> None:
    short, sure = compared(1.0, 0.04, 1, n=2), compared(2.0, 0.01, 2)
    judged = judged_together([short, sure])
    assert short == judged[0]
    assert sure == judged[1]
    assert (short,) == judged_together([short])
    assert () == judged_together([])
