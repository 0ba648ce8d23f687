"""The mean over matched pairs: what it is without gaps, what gaps and unequal scatter do, and when pairs disagree."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import f_oneway, ttest_1samp
from tests.support.studies.simulated_studies import mean_over_pairs

from bedplate.statistics.comparison import p_disagreement
from bedplate.statistics.estimation import of_differences, weighted_mean

RANDOM = np.random.default_rng(5)


def test_without_gaps_it_is_students_t_over_the_means_of_the_blocks() -> None:
    differences = RANDOM.normal(0.08, 0.1, (7, 18, 4))
    found, expected = mean_over_pairs(differences), of_differences(differences.mean(axis=-2))
    assert np.allclose(found.mean, expected.mean)
    assert np.allclose(found.error, expected.error)
    assert np.allclose(found.degrees, 3)
    assert 4 == found.n
    first = ttest_1samp(differences[0].mean(axis=0), 0)
    assert float(found.p_difference()[0]) == pytest.approx(float(first.pvalue))


def test_pairs_that_share_what_a_block_does_are_no_repetitions_of_each_other() -> None:
    """Eighteen pairs that a block moves together are known no better than one."""
    together = np.broadcast_to(RANDOM.normal(0, 0.1, (1, 3)), (18, 3))
    assert float(mean_over_pairs(together).error) == pytest.approx(float(of_differences(together[0]).error))


def test_a_pair_with_a_gap_keeps_its_weight_and_one_without_scatter_is_left_out() -> None:
    gap = np.array([[0.10, 0.20, np.nan], [0.0, 0.1, 0.2], [0.4, np.nan, np.nan]])
    found = mean_over_pairs(gap)
    assert float(found.mean) == pytest.approx((0.15 + 0.1) / 2)
    assert 1 < float(found.degrees) < 2
    with pytest.raises(ValueError, match="2 repetitions in common"):
        weighted_mean(gap, np.full(3, 1 / 3))


def test_the_noisier_pair_has_the_say_in_the_degrees_of_freedom() -> None:
    quiet = RANDOM.normal(0, 1e-4, (5, 5))
    loud = np.array([[0.3, -0.2, np.nan, np.nan, np.nan]])
    assert float(mean_over_pairs(np.vstack([quiet, loud])).degrees) == pytest.approx(1, abs=0.05)


def test_two_studies_have_the_smaller_degrees_of_freedom() -> None:
    nothing = [np.nan] * 3
    rows = np.array([[0.1, 0.2, 0.4, *nothing, np.nan], [*nothing, 0.3, 0.1, 0.2, 0.25]])
    found = weighted_mean(rows, np.ones(2), np.array([0, 0, 0, 1, 1, 1, 1]))
    assert (2.0, 3) == (float(found.degrees), found.n)
    variances = [np.var(row[np.isfinite(row)], ddof=1) / np.isfinite(row).sum() for row in rows]
    assert float(found.error) == pytest.approx(math.sqrt(sum(variances)))


def test_what_never_scatters_has_no_error_and_no_disagreement() -> None:
    alike = np.full((4, 3), 0.1)
    assert float(mean_over_pairs(alike).degrees) == 2
    assert not bool(mean_over_pairs(alike).scatters)
    assert 1.0 == float(p_disagreement(alike))
    apart = alike + np.arange(4.0)[:, None]
    assert 0.0 == float(p_disagreement(np.asarray(apart)))


def test_two_pairs_disagree_as_their_difference_is_told() -> None:
    pairs = RANDOM.normal(0, 0.1, (2, 4))
    assert float(p_disagreement(pairs)) == pytest.approx(float(ttest_1samp(pairs[1] - pairs[0], 0).pvalue))


def test_what_a_block_does_to_all_pairs_is_no_disagreement() -> None:
    pairs = RANDOM.normal(0, 0.01, (6, 3))
    assert np.allclose(p_disagreement(pairs), p_disagreement(pairs + np.array([0.0, 5.0, -3.0])))
    half = pairs + np.repeat([0.0, 0.2], 3)[:, None]
    assert 0.001 > float(p_disagreement(half))
    # The plain analysis of variance agrees where scatter is equal.
    assert 0.001 > f_oneway(*half).pvalue


def test_one_loud_pair_alone_is_no_disagreement() -> None:
    pairs = RANDOM.normal(0, 0.01, (6, 3))
    pairs[2] = [0.5, 0.1, 0.6]
    assert 0.05 < float(p_disagreement(pairs))


@pytest.mark.parametrize("shape", [(1, 3), (3, 1)])
def test_a_disagreement_takes_two_of_each(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="two of them"):
        p_disagreement(np.zeros(shape))
