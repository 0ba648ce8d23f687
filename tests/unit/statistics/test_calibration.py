"""The short form of benchmarks/calibration.py: the promises of the statistics, on studies of known truth.

Seeds are fixed; still each bound leaves the simulation three and a half of its standard errors, so that
it is the method that is judged and not the seed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.support.studies.simulated_studies import (
    MARGIN,
    OUTSIDE_MARGIN,
    POOLED_SCENARIOS,
    SCENARIOS,
    Scenario,
    pair_differences,
    simulate,
    tally,
    tally_pooled,
    tally_together,
    verdicts,
)

from bedplate.model.figure import Better, Metric, Scale
from bedplate.statistics.comparison import Verdict, compare
from bedplate.statistics.estimation import paired, unpaired
from bedplate.statistics.summary import Observation

STUDIES = 6000
TPS = Metric("tps", "1/s", Scale.RATIO, Better.HIGHER, "transactions per second")
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


def slack(share: float, count: int = STUDIES) -> float:
    return 3.5 * math.sqrt(share * (1 - share) / count)


def one(
    scenario: Scenario, repetitions: int, seed: int = 7
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return simulate(scenario, np.random.default_rng(seed), studies=STUDIES, repetitions=repetitions)


@pytest.mark.parametrize("repetitions", [3, 5])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_an_interval_holds_the_truth_and_verdicts_are_seldom_false(
    scenario: Scenario, repetitions: int
) -> None:
    logs = one(scenario, repetitions)
    estimate = paired(logs[..., 0], logs[..., 1])
    equal, edge = tally(estimate, 0.0), tally(estimate, math.log(OUTSIDE_MARGIN))
    assert equal.covered >= 0.95 - slack(0.05)
    assert equal.false <= 0.05 + slack(0.05)
    assert edge.false <= 0.05 + slack(0.05)


@pytest.mark.parametrize("repetitions", [3, 5])
def test_equal_variances_are_covered_neither_less_nor_much_more(repetitions: int) -> None:
    logs = one(BY_NAME["equal, 4 %"], repetitions)
    assert 0.93 <= tally(paired(logs[..., 0], logs[..., 1]), 0.0).covered <= 0.97


@pytest.mark.parametrize("repetitions", [3, 5])
@pytest.mark.parametrize("ratio", [1.01, 1.02, 1.05, 1.2])
def test_a_machine_that_slows_halfway_turns_no_verdict_round(repetitions: int, ratio: float) -> None:
    logs = one(BY_NAME["20 % slower after half of the visits"], repetitions)
    assert tally(paired(logs[..., 0], logs[..., 1]), math.log(ratio)).wrong_direction <= 0.01


def test_five_repetitions_find_a_tenth_at_four_per_cent_and_a_half_at_none() -> None:
    quiet, noisy = one(BY_NAME["equal, 4 %"], 5), one(BY_NAME["4 % beside 45 %"], 5)
    assert tally(paired(quiet[..., 0], quiet[..., 1]), math.log(1.1)).differs > 0.75
    assert tally(paired(noisy[..., 0], noisy[..., 1]), math.log(1.1)).differs < 0.15


@pytest.mark.parametrize("repetitions", [(3, 3), (5, 3), (5, 5)])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_studies_without_common_repetitions_are_not_told_apart_by_chance(
    scenario: Scenario, repetitions: tuple[int, int]
) -> None:
    before, after = one(scenario, repetitions[0])[..., 0], one(scenario, repetitions[1], seed=8)[..., 1]
    assert tally(unpaired(before, after), 0.0).false <= 0.05 + slack(0.05)


@pytest.mark.parametrize("repetitions", [3, 5])
@pytest.mark.parametrize("differing", [0, 5])
@pytest.mark.parametrize("name", ["equal, 4 %", "4 % beside 45 %", "20 % slower after half of the visits"])
def test_of_many_verdicts_one_in_twenty_is_false_at_most(name: str, differing: int, repetitions: int) -> None:
    logs = one(BY_NAME[name], repetitions)[:3000]
    truth = np.where(np.arange(11) < differing, math.log(1.3), 0.0)
    cells = np.swapaxes(logs, -1, -2)
    found = tally_together(paired(cells[:, :1], cells[:, 1:] + truth[:, None]), truth)
    assert found.false <= 0.05 + slack(0.05, 3000)
    assert found.covered >= 0.95 - slack(0.05, 3000)


def test_what_is_simulated_is_what_judges_a_study() -> None:
    words = {0.0: Verdict.SAME, 1.0: Verdict.FASTER, -1.0: Verdict.SLOWER}
    logs = one(BY_NAME["equal, 4 %"], 5)[:300] * 0.3
    logs[::2, :, 1] += 0.05
    estimate = paired(logs[..., 0], logs[..., 1])
    low, _, verdict = verdicts(estimate, 0.95)
    seen = set()
    for study in range(300):
        first, second = (
            {r: Observation(100 * math.exp(value)) for r, value in enumerate(logs[study, :, cell])}
            for cell in (0, 1)
        )
        found = compare(first, second, TPS, margin=MARGIN)
        assert words.get(float(verdict[study]), Verdict.CANNOT_TELL) is found.verdict
        assert found.low == pytest.approx(math.exp(low[study]))
        seen.add(found.verdict)
    assert len(seen) >= 3


@pytest.mark.parametrize(("missing", "repetitions"), [(0.0, 3), (0.0, 8), (0.1, 3)])
@pytest.mark.parametrize(
    "scenario", [POOLED_SCENARIOS[at] for at in (0, 6, -2, -1)], ids=lambda scenario: scenario.name
)
def test_one_ratio_over_many_pairs_holds_and_pairs_that_are_alike_seldom_disagree(
    scenario: Scenario, missing: float, repetitions: int
) -> None:
    random = np.random.default_rng(11)
    found = pair_differences(scenario, random, studies=2000, repetitions=repetitions, missing=missing)
    covered, false, mixed, _, single, disagree, _ = tally_pooled(found)
    assert covered is not None
    assert mixed is not None
    assert false is not None
    assert min(covered, mixed) >= 0.95 - slack(0.05, 2000)
    assert false <= 0.05 + slack(0.05, 2000)
    assert (disagree is None) == (single is None) == bool(missing)
    assert disagree is None or disagree <= 0.03 + slack(0.03, 2000)
