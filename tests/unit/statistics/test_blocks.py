"""Nodes as blocks: their own effect takes no side, and their disagreement is found and not invented."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bedplate.statistics.estimation import LEVEL, blocks, paired

REPETITIONS = 6
NODES = {repetition: f"n{repetition % 3}" for repetition in range(REPETITIONS)}


def test_means_and_counts_are_those_of_each_block() -> None:
    found = blocks({1: 0.0, 2: 1.0, 3: 2.0}, {1: "a", 2: "b", 3: "a"})
    assert found is not None
    assert ({"a": 1.0, "b": 1.0}, {"a": 2, "b": 1}) == (found.means, found.counts)


def test_one_block_has_nobody_to_agree_with() -> None:
    assert blocks({1: 0.1, 2: 0.2}, {1: "a", 2: "a"}) is None


def test_one_repetition_in_each_block_cannot_tell() -> None:
    found = blocks({1: 0.1, 2: 0.9}, {1: "a", 2: "b"})
    assert found is not None
    assert found.p_agreement is None
    assert not found.disagree


def test_a_repetition_of_no_block_is_an_error() -> None:
    with pytest.raises(KeyError):
        blocks({1: 0.1, 9: 0.2}, {1: "a"})


@settings(deadline=None)
@given(
    st.lists(
        st.lists(st.floats(-2, 2).map(lambda x: round(x, 3)), min_size=2, max_size=5), min_size=2, max_size=4
    )
)
def test_the_p_value_is_that_of_scipys_one_way_analysis(groups: list[list[float]]) -> None:
    if all(len(set(group)) == 1 for group in groups):
        return
    differences: dict[int, float] = {}
    names: dict[int, str] = {}
    for number, group in enumerate(groups):
        for value in group:
            names[len(differences)] = f"n{number}"
            differences[len(differences)] = value
    found = blocks(differences, names)
    assert found is not None
    assert found.p_agreement is not None
    expected = stats.f_oneway(*groups).pvalue
    if math.isfinite(expected):
        assert expected == pytest.approx(found.p_agreement, abs=1e-9)


def simulated(count: int, *, node_sd: float, disagreement: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Logs of two cells that are the same on average, on three nodes: (studies, repetitions) each."""
    random = np.random.default_rng(seed)
    node = random.normal(0, node_sd, (count, 3))[:, [r % 3 for r in range(REPETITIONS)]]
    # Sums to nothing over these nodes: the difference of the nodes that were measured is zero.
    own = random.normal(0, disagreement, (count, 3))
    own = (own - own.mean(axis=1, keepdims=True))[:, [r % 3 for r in range(REPETITIONS)]]
    noise = random.normal(0, 0.02, (2, count, REPETITIONS))
    return node + noise[0], node + own + noise[1]


@pytest.mark.parametrize("disagreement", [0.0, 0.05, 0.3])
def test_whatever_nodes_are_like_no_more_verdicts_are_wrong_than_the_interval_says(
    disagreement: float,
) -> None:
    baseline, contender = simulated(20_000, node_sd=0.5, disagreement=disagreement, seed=5)
    low, high = paired(baseline, contender).interval(0.95)
    wrong = float(((low > 0) | (high < 0)).mean())
    # Three standard errors of the simulation beyond 5 %.
    assert wrong <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 20_000)
    assert disagreement > 0 or wrong >= 0.045


def test_disagreement_is_told_as_often_as_chance_where_there_is_none_and_mostly_where_there_is() -> None:
    told = {}
    for disagreement in (0.0, 0.1):
        baseline, contender = simulated(2000, node_sd=0.5, disagreement=disagreement, seed=6)
        found = [blocks(dict(enumerate(row)), NODES) for row in (contender - baseline).tolist()]
        told[disagreement] = sum(each is not None and each.disagree for each in found) / 2000
    assert abs(told[0.0] - LEVEL) <= 3 * math.sqrt(LEVEL * (1 - LEVEL) / 2000)
    assert told[0.1] > 0.6
