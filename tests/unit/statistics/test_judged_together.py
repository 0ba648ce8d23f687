"""The comparisons of one question: verdicts that hold together, and intervals that do not contradict them."""

from __future__ import annotations

import math
import random
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.model.figure import Better, Metric, Scale
from bedplate.statistics.comparison import Comparison, Verdict, compare, judged_together
from bedplate.statistics.summary import Observation

if TYPE_CHECKING:
    from collections.abc import Sequence

TPS = Metric("tps", "1/s", Scale.RATIO, Better.HIGHER, "transactions per second")
SIZE = Metric("size", "MiB", Scale.RATIO, Better.LOWER, "size")
DIFFERENCES = (Verdict.FASTER, Verdict.SLOWER, Verdict.HIGHER, Verdict.LOWER)


def compared(ratio: float, scatter: float, seed: int, n: int = 5) -> Comparison:
    generator = random.Random(seed)
    first = [100 * math.exp(generator.gauss(0, scatter)) for _ in range(n)]
    second = [100 * ratio * math.exp(generator.gauss(0, scatter)) for _ in range(n)]
    return compare(observed(first), observed(second), TPS)


def observed(values: Sequence[float]) -> dict[int, Observation]:
    return {repetition: Observation(value) for repetition, value in enumerate(values, 1)}


def all_pairs(cells: Sequence[Sequence[float]], metric: Metric = TPS) -> list[Comparison]:
    return [compare(observed(a), observed(b), metric) for a, b in combinations(cells, 2)]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.floats(0.8, 1.25), st.floats(0.002, 0.3), st.integers(0, 999), st.integers(0, 2)),
        min_size=1,
        max_size=25,
    )
)
def test_no_interval_contradicts_its_verdict(drawn: Sequence[tuple[float, float, int, int]]) -> None:
    alone = [compared(ratio, scatter, seed) for ratio, scatter, seed, _ in drawn]
    for before, after in zip(alone, judged_together(alone, [figure for *_, figure in drawn]), strict=True):
        assert before.low is not None
        assert after.low is not None
        assert after.high is not None
        assert after.difference_confidence is not None
        assert min(after.confidence, after.difference_confidence) >= 0.95 - 1e-12
        assert after.low <= before.low + 1e-12
        if after.verdict is Verdict.SAME:
            assert 1 / 1.05 <= after.low <= after.high <= 1.05
        else:
            assert after.confidence == after.difference_confidence
            assert after.differs == (after.verdict is not Verdict.CANNOT_TELL)


def test_among_many_that_are_equal_a_lucky_one_loses_its_verdict() -> None:
    equal = [compared(1.0, 0.04, seed) for seed in range(100)]
    assert [c for c in equal if c.verdict in DIFFERENCES]
    assert not [c for c in judged_together(equal, ["tps"] * 100) if c.verdict in DIFFERENCES]


def test_what_has_no_interval_is_in_no_family() -> None:
    short, sure = compared(1.0, 0.04, 1, n=2), compared(2.0, 0.01, 2)
    judged = judged_together([short, sure], ["tps", "tps"])
    assert short == judged[0]
    assert (sure.verdict, sure.low, sure.high) == (judged[1].verdict, judged[1].low, judged[1].high)
    assert (short,) == judged_together([short], ["tps"])
    assert () == judged_together([], [])


@pytest.fixture(scope="module")
def equal_studies() -> list[list[Comparison]]:
    """Of 75 studies every two of eight cells that are equal."""
    chance = np.random.default_rng(3)
    return [all_pairs(np.exp(chance.normal(0, 0.03, (8, 10))).tolist()) for _ in range(75)]


@pytest.mark.parametrize("with_sizes", [False, True])
def test_equal_cells_are_told_apart_in_one_study_of_twenty_at_the_most(
    equal_studies: list[list[Comparison]], *, with_sizes: bool
) -> None:
    sizes = all_pairs([[100.0] * 10] * 8, SIZE) if with_sizes else []
    told = same = 0
    for speeds in equal_studies:
        figures = ["tps"] * len(speeds) + ["size"] * len(sizes)
        judged = judged_together([*speeds, *sizes], figures)[: len(speeds)]
        told += any(each.verdict in DIFFERENCES for each in judged)
        same += sum(each.verdict is Verdict.SAME for each in judged)
    # 5 % and three standard errors. Where verdicts of sameness were in the family of differences it was 30 %, and with
    # sizes, which do not scatter, 45 %: 75 studies find either in 999 of 1000 draws.
    assert told / 75 < 0.05 + 3 * 0.025
    assert same / 75 / 28 > 0.6


def test_a_figure_that_differs_everywhere_leaves_the_others_their_confidence() -> None:
    chance = np.random.default_rng(4)
    apart = all_pairs((np.arange(1, 9)[:, None] * np.exp(chance.normal(0, 0.001, (8, 5)))).tolist(), SIZE)
    alike = all_pairs(np.exp(chance.normal(0, 0.04, (8, 5))).tolist())
    judged = judged_together([*apart, *alike], ["size"] * 28 + ["tps"] * 28)
    assert all(each.verdict is Verdict.HIGHER for each in judged[:28])
    assert {round(1 - 0.05 / 2 / 28, 9)} == {round(each.confidence, 9) for each in judged[28:]}
