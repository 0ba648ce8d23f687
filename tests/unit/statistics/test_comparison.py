"""Two cells side by side: verdicts, directions, and every way in which nothing can be said."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from bedplate.model.figure import Better, Metric, Scale, Status
from bedplate.model.visit import Outcome, Validity
from bedplate.statistics.comparison import (
    CHANCE,
    Comparison,
    EstimateKind,
    Verdict,
    at_confidence,
    compare,
    judged_apart,
    p_difference,
    proportion_difference,
)
from bedplate.statistics.estimation import Estimate, of_differences, paired, unpaired
from bedplate.statistics.summary import Observation

TPS = Metric("tps", "1/s", Scale.RATIO, Better.HIGHER, "transactions per second")
TIME = Metric("query_s", "s", Scale.RATIO, Better.LOWER, "time of a query")
SIZE = Metric("size_mib", "MiB", Scale.RATIO, Better.LOWER, "size on disk")
HITS = Metric("hit_ratio", "share", Scale.PROPORTION, Better.HIGHER, "blocks found")
FAILURES = Metric("transactions_failed", "1", Scale.COUNT, Better.LOWER, "failed transactions")
BAD = Metric("power_cut_bad_share", "share", Scale.PROPORTION, Better.LOWER, "bad cuts / cuts")
POSITIVE = st.floats(min_value=1e-3, max_value=1e6)


def by_repetition(*values: float | None) -> dict[int, Observation]:
    return {
        repetition: Observation(value, Status.ABSENT if value is None else Status.MEASURED)
        for repetition, value in enumerate(values, 1)
    }


def stopped(limit: float) -> Observation:
    return Observation(None, Status.CENSORED, limit=limit)


def seen(comparison: Comparison) -> tuple[Verdict, int, bool]:
    return comparison.verdict, comparison.n, comparison.low is not None


def test_the_interval_is_students_over_the_logarithms_of_pairs() -> None:
    first, second = (100.0, 110.0, 90.0, 105.0), (130.0, 150.0, 120.0, 128.0)
    found = compare(by_repetition(*first), by_repetition(*second), TPS)
    expected = stats.ttest_rel(np.log(second), np.log(first))
    low, high = expected.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((math.exp(low), math.exp(high)))
    assert found.p_difference == pytest.approx(expected.pvalue)
    assert (Verdict.FASTER, 4, True) == seen(found)
    assert found.smallest == pytest.approx(128 / 105)
    assert found.largest == pytest.approx(150 / 110)


def test_without_shared_repetitions_no_variance_is_pooled_and_the_smaller_sample_counts() -> None:
    first, second = (100.0, 110.0, 90.0), (130.0, 150.0, 120.0, 128.0)
    found = compare(by_repetition(*first), by_repetition(*second), TPS, shares_repetitions=False)
    logs = [np.log(side) for side in (first, second)]
    error = math.hypot(*(stats.sem(side) for side in logs))
    middle = logs[1].mean() - logs[0].mean()
    half = stats.t.ppf(0.975, 2) * error
    assert (found.low, found.high) == pytest.approx((math.exp(middle - half), math.exp(middle + half)))
    assert 3 == found.n
    assert found.smallest is None


@pytest.mark.parametrize(
    ("metric", "ratio", "verdict"),
    [
        (TPS, 1.3, Verdict.FASTER),
        (TPS, 0.7, Verdict.SLOWER),
        (TIME, 1.3, Verdict.SLOWER),
        (TIME, 0.7, Verdict.FASTER),
        (SIZE, 1.3, Verdict.HIGHER),
        (SIZE, 0.7, Verdict.LOWER),
        (replace(TPS, better=Better.NEITHER), 1.3, Verdict.HIGHER),
    ],
)
def test_the_verdict_speaks_of_the_contender(metric: Metric, ratio: float, verdict: Verdict) -> None:
    first = (100.0, 102.0, 99.0, 101.0)
    second = tuple(ratio * value * scatter for value, scatter in zip(first, (1, 1.01, 0.99, 1), strict=True))
    assert verdict is compare(by_repetition(*first), by_repetition(*second), metric).verdict


def test_drift_between_repetitions_takes_no_side() -> None:
    drift = (1.0, 0.5, 2.0)
    first = by_repetition(*(100 * d for d in drift))
    second = by_repetition(*(120 * d * s for d, s in zip(drift, (1, 1.01, 0.99), strict=True)))
    assert Verdict.FASTER is compare(first, second, TPS).verdict
    assert Verdict.CANNOT_TELL is compare(first, second, TPS, shares_repetitions=False).verdict


def test_same_is_within_the_margin_even_if_it_differs_a_little() -> None:
    first, second = by_repetition(100, 100.1, 99.9), by_repetition(101, 101.1, 100.9)
    found = compare(first, second, TPS)
    assert Verdict.SAME is found.verdict
    assert found.differs
    assert Verdict.FASTER is compare(first, second, TPS, margin=0.005).verdict
    assert Verdict.FASTER is compare(first, second, TPS, margin=None).verdict


def test_two_repetitions_are_described_and_not_judged() -> None:
    found = compare(by_repetition(100, 100), by_repetition(200, 210), TPS)
    assert (Verdict.CANNOT_TELL, 2, False) == seen(found)
    assert (2.0, 2.1) == pytest.approx((found.smallest, found.largest))
    assert ("a verdict needs 3 repetitions in common, found 2",) == found.reasons
    assert (None, None, False) == (found.p_difference, found.p_same, found.scatters)
    assert found == at_confidence(found, 0.95)


def test_only_common_repetitions_count() -> None:
    first = {1: Observation(100), 2: Observation(100), 3: Observation(99), 9: Observation(1)}
    second = {1: Observation(120), 2: Observation(121), 3: Observation(119), 4: Observation(9000)}
    found = compare(first, second, TPS)
    assert (Verdict.FASTER, 3, True) == seen(found)
    nothing = compare({1: Observation(1)}, {2: Observation(1)}, TPS)
    assert (("the two have no repetition in common",), None) == (nothing.reasons, nothing.estimate)


def test_failed_and_absent_runs_are_never_zero() -> None:
    first = by_repetition(100, 101, 99, 100, 100)
    second = by_repetition(120, 121, 119, None)
    second[5] = Observation(1.0, outcome=Outcome.FAILED)
    assert (Verdict.FASTER, 3, True) == seen(compare(first, second, TPS))
    assert ("one side has no run with a value",) == compare(first, {}, TPS).reasons


def test_suspect_runs_are_left_out_unless_asked_for() -> None:
    first = by_repetition(100, 101, 99)
    second = {r: replace(o, validity=Validity.SUSPECT) for r, o in by_repetition(120, 121, 119).items()}
    found = compare(first, second, TPS)
    assert (Verdict.CANNOT_TELL, 0, False) == seen(found)
    assert ("one side has no run with a value (3 suspect runs left out)",) == found.reasons
    assert 3 == found.suspect
    asked = compare(first, second, TPS, with_doubted=True)
    assert (Verdict.FASTER, 3, True) == seen(asked)
    assert 0 == asked.suspect


def test_runs_of_unknown_validity_are_left_out_and_counted_apart() -> None:
    first = by_repetition(100, 101, 99, 100)
    second = dict(by_repetition(120, 121, 119, 120))
    second[1] = replace(second[1], validity=Validity.UNKNOWN)
    second[2] = replace(second[2], validity=Validity.SUSPECT)
    found = compare(first, second, TPS)
    assert (Verdict.CANNOT_TELL, 2, False) == seen(found)
    assert (1, 1) == (found.suspect, found.unknown)
    nothing = compare(first, {1: second[1], 2: second[2]}, TPS)
    assert (
        "one side has no run with a value (1 suspect run, 1 run of unknown validity left out)",
    ) == nothing.reasons


def test_sameness_and_difference_have_a_confidence_each() -> None:
    # 1 % apart on average, and shown so: negligible at both, whatever the confidence for sameness is.
    near = compare(by_repetition(1000, 1001, 999, 1000), by_repetition(1010, 1011, 1009, 1010), TPS)
    assert Verdict.SAME is judged_apart(near, difference=0.95, sameness=0.99999).verdict
    # Alike within the margin at 95 %, which is not enough where sameness asks for more.
    alike = compare(by_repetition(1000, 1010, 990, 1004), by_repetition(1003, 1001, 1001, 999), TPS)
    assert Verdict.SAME is alike.verdict
    told = judged_apart(alike, difference=0.95, sameness=0.9999)
    assert (Verdict.CANNOT_TELL, 0.95) == (told.verdict, told.confidence)
    assert 0.99 == judged_apart(alike, difference=0.9999, sameness=0.99).confidence


def test_a_zero_has_no_ratio() -> None:
    found = compare(by_repetition(0, 1, 2), by_repetition(1, 2, 3), TPS)
    assert (Verdict.CANNOT_TELL, 3, False) == seen(found)
    assert ("a value is not positive, and has no logarithm to compare",) == found.reasons


def test_a_contender_that_is_always_stopped_is_slower_by_at_least_so_much() -> None:
    first = by_repetition(100, 104, 97)
    found = compare(first, dict.fromkeys((1, 2, 3), stopped(300)), TIME)
    assert Verdict.SLOWER is found.verdict
    assert found.high is None
    assert found.low is not None
    assert 2.5 < found.low < 3.0
    assert 3 == found.censored


def test_a_stopped_baseline_bounds_from_the_other_side() -> None:
    found = compare(dict.fromkeys((1, 2, 3), stopped(300)), by_repetition(100, 104, 97), TIME)
    assert Verdict.FASTER is found.verdict
    assert (None, True) == (found.low, (found.high or 1) < 0.4)


def test_a_limit_proves_nothing_about_the_other_direction() -> None:
    # Cut at 50, the contender looks faster; uncut it may be anything.
    found = compare(by_repetition(100, 101, 99), dict.fromkeys((1, 2, 3), stopped(50)), TIME)
    assert Verdict.CANNOT_TELL is found.verdict
    found = compare(by_repetition(49, 49.1, 49), dict.fromkeys((1, 2, 3), stopped(50)), TIME)
    assert Verdict.SLOWER is found.verdict
    found = compare(by_repetition(50, 50, 50), dict.fromkeys((1, 2, 3), stopped(50)), TIME)
    assert (Verdict.CANNOT_TELL, None) == (found.verdict, found.more_repetitions)


def test_limits_on_both_sides_leave_nothing_to_tell() -> None:
    first, second = by_repetition(100, 101, 99), by_repetition(200, 210, 205)
    first[4], second[4] = stopped(300), stopped(300)
    found = compare(first, second, TIME)
    assert (Verdict.CANNOT_TELL, 4, False) == seen(found)
    assert ("both sides have runs that were stopped at a limit",) == found.reasons


def test_proportions_are_compared_as_a_difference_and_may_be_one() -> None:
    found = compare(by_repetition(1.0, 1.0, 1.0), by_repetition(0.8, 0.81, 0.79), HITS)
    assert (EstimateKind.DIFFERENCE, Verdict.LOWER) == (found.kind, found.verdict)
    assert found.estimate == pytest.approx(-0.2)


def counted(*found: tuple[int, int], validity: Validity = Validity.VALID) -> dict[int, Observation]:
    return {
        repetition: Observation(k / n, validity=validity, of=(k, n))
        for repetition, (k, n) in enumerate(found, 1)
    }


def test_k_of_n_is_told_from_a_single_recording() -> None:
    found = compare(counted((0, 45)), counted((12, 45)), BAD)
    assert (EstimateKind.DIFFERENCE, Verdict.HIGHER, 1) == (found.kind, found.verdict, found.n)
    assert found.estimate == pytest.approx(12 / 45)
    assert found.p_difference == p_difference((0, 45), (12, 45))
    assert Verdict.LOWER is compare(counted((12, 45)), counted((0, 45)), BAD).verdict
    few = compare(counted((8, 45)), counted((12, 45)), BAD)
    assert (Verdict.CANNOT_TELL, 1, True) == seen(few)
    assert few.more_repetitions is None
    assert Verdict.SAME is compare(counted((0, 112)), counted((0, 112)), BAD).verdict


def test_k_of_n_is_pooled_over_the_repetitions_that_both_have() -> None:
    found = compare(counted((1, 20), (3, 30)), counted((9, 20), (20, 30), (30, 30)), BAD)
    assert found.pooled is not None
    assert ((4, 50), (29, 50), None) == (
        found.pooled.baseline,
        found.pooled.contender,
        found.pooled.within,
    )
    apart = compare(counted((1, 20)), counted((9, 20), (20, 30)), BAD, shares_repetitions=False)
    assert apart.pooled is not None
    assert ((1, 20), (29, 50)) == (apart.pooled.baseline, apart.pooled.contender)
    doubted = compare(counted((1, 20)), counted((9, 20), validity=Validity.SUSPECT), BAD)
    assert (None, 1, None) == (doubted.estimate, doubted.suspect, doubted.p_difference)


def test_of_three_recordings_the_wider_interval_counts() -> None:
    steady = compare(counted(*[(0, 30)] * 3), counted(*[(30, 30)] * 3), BAD)
    exact = proportion_difference((0, 90), (90, 90))
    assert (steady.low, steady.high) == (exact.low, exact.high)
    first, second = ((1, 30), (2, 30), (0, 30)), ((30, 30), (1, 30), (9, 30))
    scattered = compare(counted(*first), counted(*second), BAD)
    assert p_difference((3, 90), (40, 90)) < 1e-5
    assert (Verdict.CANNOT_TELL, 3, True) == seen(scattered)
    shares = [np.array([k / n for k, n in side]) for side in (first, second)]
    assert scattered.p_difference == pytest.approx(stats.ttest_rel(shares[1], shares[0]).pvalue)


def test_recordings_that_differ_by_more_than_counting_explains_make_no_false_verdicts() -> None:
    generator = np.random.default_rng(11)
    wrong = naive = 0
    for _ in range(400):
        shares = generator.beta(0.9, 2.1, (2, 3))
        first, second = ([(int(k), 40) for k in generator.binomial(40, side)] for side in shares)
        found = compare(counted(*first), counted(*second), BAD, margin=None)
        wrong += found.verdict is not Verdict.CANNOT_TELL
        totals = [(sum(k for k, _ in side), 120) for side in (first, second)]
        naive += p_difference(totals[0], totals[1]) <= 0.05
    assert wrong <= 0.05 * 400
    assert naive > 0.3 * 400


def test_counts_may_be_zero_and_are_the_same_where_they_agree_to_the_last() -> None:
    nothing = compare(by_repetition(0, 0, 0), by_repetition(0, 0, 0), FAILURES)
    assert (Verdict.SAME, 0.0, None) == (nothing.verdict, nothing.estimate, nothing.margin)
    assert nothing.more_repetitions is None
    burst = compare(by_repetition(0, 0, 0), by_repetition(0, 0, 500), FAILURES)
    assert Verdict.CANNOT_TELL is burst.verdict
    assert Verdict.HIGHER is compare(by_repetition(0, 1, 0), by_repetition(40, 44, 38), FAILURES).verdict


def test_how_many_more_would_tell_is_what_the_simulation_says() -> None:
    generator = np.random.default_rng(5)
    first = (100.0, 104.0, 97.0)
    found = compare(by_repetition(*first), by_repetition(112, 105, 116), TPS)
    assert Verdict.CANNOT_TELL is found.verdict
    assert found.more_repetitions is not None
    assert isinstance(found.basis, Estimate)
    deviation = float(found.basis.error) * math.sqrt(3)

    def told(n: int) -> float:
        each = generator.normal(float(found.basis.mean if found.basis else 0), deviation, (4000, n))
        low, high = of_differences(each).interval(0.95)
        margin = math.log(1.05)
        return float(np.mean((low > 0) | (high < 0) | ((low > -margin) & (high < margin))))

    total = 3 + found.more_repetitions
    # The simulation's standard error is 0.6 points; 2 are allowed.
    assert told(total) >= CHANCE - 0.02
    assert told(total - 1) <= CHANCE + 0.02


def test_what_no_hundred_repetitions_would_tell_has_no_number() -> None:
    found = compare(by_repetition(100, 150, 60), by_repetition(110, 55, 150), TPS)
    assert (Verdict.CANNOT_TELL, None) == (found.verdict, found.more_repetitions)


@pytest.mark.parametrize(("margin", "confidence"), [(-0.1, 0.95), (math.inf, 0.95), (0.05, 1.0)])
def test_what_is_no_margin_is_refused(margin: float, confidence: float) -> None:
    with pytest.raises(ValueError, match="must lie between"):
        compare({}, {}, TPS, margin=margin, confidence=confidence)


def test_one_repetition_has_no_error() -> None:
    for estimate in (paired, unpaired):
        with pytest.raises(ValueError, match="two repetitions at least"):
            estimate(np.array([1.0]), np.array([2.0]))


_PAIRS = st.lists(st.tuples(POSITIVE, POSITIVE), min_size=3, max_size=8)


def sides(
    pairs: Sequence[tuple[float, float]],
) -> tuple[Mapping[int, Observation], Mapping[int, Observation]]:
    return by_repetition(*(a for a, _ in pairs)), by_repetition(*(b for _, b in pairs))


@settings(deadline=None)
@given(_PAIRS, st.booleans())
def test_turned_round_the_ratio_is_its_reciprocal(
    pairs: list[tuple[float, float]], shares_repetitions: bool
) -> None:
    first, second = sides(pairs)
    forth = compare(first, second, TPS, shares_repetitions=shares_repetitions)
    back = compare(second, first, TPS, shares_repetitions=shares_repetitions)
    opposite = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    assert opposite.get(forth.verdict, forth.verdict) is back.verdict
    assert forth.estimate is not None
    assert back.estimate == pytest.approx(1 / forth.estimate)


@settings(deadline=None)
@given(_PAIRS, st.floats(0.01, 100))
def test_the_unit_is_of_no_account(pairs: list[tuple[float, float]], factor: float) -> None:
    first, second = sides(pairs)
    scaled = sides([(a * factor, b * factor) for a, b in pairs])
    found, again = compare(first, second, TPS), compare(*scaled, TPS)
    # Where all differences are equal to rounding, its last digits are all the scatter there is.
    assume(isinstance(found.basis, Estimate) and float(found.basis.error) > 1e-6)
    assert found.estimate == pytest.approx(again.estimate)
    assert found.low == pytest.approx(again.low, rel=1e-4)


@settings(deadline=None)
@given(_PAIRS, st.floats(0.5, 0.999))
def test_the_verdict_is_what_the_interval_shows(pairs: list[tuple[float, float]], confidence: float) -> None:
    found = at_confidence(compare(*sides(pairs), TPS), confidence)
    if found.low is None or found.high is None:
        return
    within = found.low >= 1 / 1.05 and found.high <= 1.05
    if within:
        assert Verdict.SAME is found.verdict
    elif found.low > 1 or found.high < 1:
        assert found.verdict is (Verdict.FASTER if found.low > 1 else Verdict.SLOWER)
    else:
        assert Verdict.CANNOT_TELL is found.verdict
    p_values = (found.p_difference, found.p_same)
    assert None not in p_values
    p_value = min(each for each in p_values if each is not None)
    if abs(p_value - (1 - confidence)) > 1e-9:
        assert (p_value < 1 - confidence) == (found.verdict is not Verdict.CANNOT_TELL)
