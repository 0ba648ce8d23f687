"""Intervals that are looked at after every block: what they promise, on sequences of which the truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t as student
from tests.support.studies.simulated_pairs import PAIRED, bisected, differences, watched
from tests.support.studies.simulated_studies import Scenario

from bedplate.statistics.estimation import of_differences
from bedplate.statistics.paired_sequence import FIRST_LOOK, joint, sequential

USES = 1000
FOUR = Scenario("4 %", (0.04, 0.04))


def test_identical_builds_are_told_apart_in_three_of_a_hundred_uses_at_most() -> None:
    found = watched(differences(FOUR, np.random.default_rng(5), uses=USES, blocks=10, ratio=1.0))
    assert 0.97 <= found.share(0) + found.cannot_tell


@pytest.mark.parametrize("scenario", PAIRED, ids=lambda scenario: scenario.name)
def test_however_long_one_looks_a_difference_that_is_none_stays_below_five_of_a_hundred(
    scenario: Scenario,
) -> None:
    found = watched(differences(scenario, np.random.default_rng(5), uses=USES, blocks=60, ratio=1.0))
    assert found.share(1) + found.share(-1) <= 0.05


def test_looking_at_a_students_interval_after_every_block_would_spoil_it() -> None:
    found = differences(FOUR, np.random.default_rng(5), uses=USES, blocks=40, ratio=1.0)
    spoilt = watched(found, estimated=of_differences)
    assert 0.1 < spoilt.share(1) + spoilt.share(-1)


def test_a_fifth_slower_is_found_at_the_first_look_nearly_always() -> None:
    found = watched(differences(FOUR, np.random.default_rng(5), uses=USES, blocks=10, ratio=0.8))
    assert 0.99 <= found.share(-1)
    assert FIRST_LOOK == np.median(found.blocks)


def test_a_tenth_slower_is_found_within_ten_blocks_in_nine_of_ten_uses() -> None:
    found = watched(differences(FOUR, np.random.default_rng(5), uses=USES, blocks=10, ratio=0.9))
    assert 0.9 <= found.share(-1)


def test_the_same_is_an_answer_within_two_hours_of_visits() -> None:
    found = watched(differences(FOUR, np.random.default_rng(5), uses=USES, blocks=40, ratio=1.0))
    assert 0.85 <= found.share(0)


def test_no_candidate_of_a_bisection_is_left_without_a_side() -> None:
    good = bisected(differences(FOUR, np.random.default_rng(5), uses=USES, blocks=10, ratio=1.0), slower=0.1)
    bad = bisected(differences(FOUR, np.random.default_rng(6), uses=USES, blocks=10, ratio=0.8), slower=0.1)
    assert 1.0 == pytest.approx(good.good + good.bad)
    assert 0.99 <= good.good
    assert 0.99 <= bad.bad


def test_the_half_width_is_that_of_the_published_construction() -> None:
    """At the first look the bound solves 2 (1 - T(a) + a f(a)) = 0.05 for Student's t of m - 1 degrees."""
    values = np.array([0.01, -0.02, 0.03, 0.015])
    half = float(sequential(values).half_width(0.95))
    bound = half / float(of_differences(values).error)
    degrees = FIRST_LOOK - 1
    assert 0.05 == pytest.approx(
        2 * (student.sf(bound, degrees) + bound * student.pdf(bound, degrees)), rel=1e-6
    )
    more = np.append(values, [0.0, 0.02])
    later = float(sequential(more).half_width(0.95)) / float(of_differences(more).error)
    power = (6 / FIRST_LOOK * (1 + bound**2 / degrees) ** FIRST_LOOK) ** (1 / 6)
    assert math.sqrt(5 * (power - 1)) == pytest.approx(later)


def test_it_is_wider_than_students_at_every_look() -> None:
    values = np.random.default_rng(1).normal(size=30)
    for n in range(FIRST_LOOK, 31):
        assert of_differences(values[:n]).half_width(0.95) < sequential(values[:n]).half_width(0.95)


def test_fewer_blocks_than_the_first_look_are_refused() -> None:
    with pytest.raises(ValueError, match="the first look is after 4 blocks, found 3; measure another"):
        sequential(np.array([0.1, 0.2, 0.1]))


def test_lines_that_are_watched_together_share_what_may_be_wrong() -> None:
    assert 0.95 == joint(0.05, 1)
    assert 0.99 == pytest.approx(joint(0.05, 5))
