"""Studies with a known truth, many at a time, and how often their verdicts are right.

All arithmetic is on natural logarithms. An array of studies has the shape (studies, repetitions, cells);
cell 0 is the baseline, and every repetition visits its cells in an order of its own, as a plan does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from bedplate.analysis.pooled import level_contrasts
from bedplate.statistics.comparison import DISAGREEMENT, p_disagreement
from bedplate.statistics.estimation import VALUES_MIN, of_differences, weighted_mean
from bedplate.statistics.false_discovery import joint_confidence

if TYPE_CHECKING:
    import numpy.typing as npt

    from bedplate.statistics.estimation import Estimate

    FloatArray: TypeAlias = npt.NDArray[np.float64]

# The margin of `same` in all simulations, and a truth just outside of it.
MARGIN = 0.05
OUTSIDE_MARGIN = 1.0501


@dataclass(frozen=True)
class Scenario:
    """How runs scatter.

    `scatter` is the coefficient of variation of the cells, over and over: of the even and the odd ones. `tails` is `normal`, `t3`
    (Student's t of three degrees, scaled to the same deviation) or `dips` (a tenth of the runs loses 30 %).
    `between` scatters whole repetitions, `trend` is the speed at the end of the study beside that at its
    start, `step` that after half of all visits beside that before.
    """

    name: str
    scatter: tuple[float, ...] = (0.04, 0.04)
    tails: str = "normal"
    between: float = 0.0
    trend: float = 1.0
    step: float = 1.0


SCENARIOS = (
    Scenario("equal, 4 %"),
    Scenario("4 % beside 45 %", (0.04, 0.45)),
    Scenario("heavy tails (t3), 4 %", tails="t3"),
    Scenario("heavy tails (t3), 4 % beside 45 %", (0.04, 0.45), "t3"),
    Scenario("dips of 30 % in a tenth of the runs", tails="dips"),
    Scenario("10 % between repetitions", between=0.1),
    Scenario("20 % slower from start to end", trend=0.8),
    Scenario("20 % slower after half of the visits", step=0.8),
    Scenario("20 % slower after half, 4 % beside 45 %", (0.04, 0.45), step=0.8),
)


PAIRS = 18
# How matched pairs may scatter, beside the scenarios of two cells.
POOLED_SCENARIOS = (
    *SCENARIOS,
    Scenario("every other pair 4 %, 45 %", (0.04, 0.04, 0.45, 0.45)),
    Scenario("one pair of 45 %, the others 4 %", (0.45, 0.45, *(0.04,) * (2 * PAIRS - 2))),
)


def log_deviation(variation: float) -> float:
    """The standard deviation of the logarithm of a lognormal figure with this coefficient of variation."""
    return math.sqrt(math.log1p(variation**2))


def simulate(
    scenario: Scenario, random: np.random.Generator, *, studies: int, repetitions: int, cells: int = 12
) -> FloatArray:
    """Studies of cells that are all equally fast; add logarithms to make them differ."""
    shape = (studies, repetitions, cells)
    deviation = np.resize([log_deviation(part) for part in scenario.scatter], cells)
    if scenario.tails == "t3":
        noise = random.standard_t(3, shape) / math.sqrt(3) * deviation
    else:
        noise = random.standard_normal(shape) * deviation
    if scenario.tails == "dips":
        noise += (random.random(shape) < 0.1) * math.log(0.7)
    order = random.random(shape).argsort(axis=-1).argsort(axis=-1)
    passed = (order + cells * np.arange(repetitions)[:, None] + 0.5) / (repetitions * cells)
    logs = noise + random.normal(0, scenario.between, (studies, repetitions, 1))
    logs += math.log(scenario.trend) * passed
    return np.asarray(logs + math.log(scenario.step) * (passed > 0.5))


def pair_differences(
    scenario: Scenario,
    random: np.random.Generator,
    *,
    studies: int,
    repetitions: int,
    missing: float = 0.0,
    pairs: int = PAIRS,
) -> FloatArray:
    """Differences of matched pairs that are all equally fast: (studies, pairs, repetitions), NaN where a visit is missing.

    What a repetition does to one side of every pair (a boot of one kernel) scatters by 2 % and is shared by its pairs.
    """
    logs = simulate(scenario, random, studies=studies, repetitions=repetitions, cells=2 * pairs)
    logs[random.random(logs.shape) < missing] = np.nan
    differences = np.swapaxes(logs[..., 1::2] - logs[..., 0::2], -1, -2)
    return np.asarray(differences + random.normal(0, 0.02, (studies, 1, repetitions)))


@dataclass(frozen=True)
class Tally:
    """Shares of studies: the interval holds the truth; the verdict is wrong; has the wrong sign; is given.

    `told_apart`: a study tells some difference that is none.
    """

    covered: float
    false: float
    wrong_direction: float
    differs: float
    same: float
    told_apart: float = 0.0


def verdicts(estimate: Estimate, confidence: FloatArray | float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Both bounds and the verdict: 1 or -1 for a difference, 0 for the same, NaN for cannot tell."""
    low, high = estimate.interval(confidence)
    margin = math.log1p(MARGIN)
    signs = np.where(low > 0, 1.0, np.where(high < 0, -1.0, np.nan))
    return low, high, np.where((low >= -margin) & (high <= margin), 0.0, signs)


def are_false(verdict: FloatArray, truth: FloatArray | float) -> npt.NDArray[np.bool_]:
    """A difference where there is none or of the other sign; “the same” beyond the margin."""
    says_same = verdict == 0
    says_differs = ~says_same & ~np.isnan(verdict)
    return np.asarray(
        (says_same & (np.abs(truth) > math.log1p(MARGIN))) | (says_differs & (verdict != np.sign(truth)))
    )


def tally(estimate: Estimate, truth: float, *, confidence: float = 0.95) -> Tally:
    """Judge estimates that were made of studies without a difference, moved to the true log ratio."""
    moved = type(estimate)(estimate.mean + truth, estimate.error, estimate.degrees, estimate.n)
    low, high, verdict = verdicts(moved, confidence)
    return Tally(
        covered=float(np.mean((low <= truth) & (truth <= high))),
        false=float(np.mean(are_false(verdict, truth))),
        wrong_direction=float(np.mean(verdict * truth < 0)),
        differs=float(np.mean(np.abs(verdict) == 1)),
        same=float(np.mean(verdict == 0)),
    )


def mean_over_pairs(differences: FloatArray) -> Estimate:
    """The mean over the pairs of one study that have two values or more: (..., pairs, blocks), NaN where one is missing."""
    usable = np.isfinite(differences).sum(axis=-1) >= VALUES_MIN
    weights = usable / np.maximum(usable.sum(axis=-1, keepdims=True), 1)
    return weighted_mean(differences, weights)


def tally_pooled(differences: FloatArray) -> tuple[float | None, ...]:
    """What one ratio over pairs that are alike keeps, and how often they are said to disagree; shares of studies.

    Covered; false where nothing differs; covered where half of the pairs differ by 1.1 (the mean is meant); told where all
    differ by 1.08, and by the first pair alone; said to disagree where all are alike, and where half differ by 1.1. The
    last three are None where visits are missing.
    """
    half = np.repeat([0.0, math.log(1.1)], differences.shape[-2] // 2)[:, None]
    alike, apart = mean_over_pairs(differences), mean_over_pairs(differences + half)
    equal, told = tally(alike, 0.0), tally(alike, math.log(1.08))
    mixed = tally(replace(apart, mean=apart.mean - half.mean()), 0.0)
    found = (equal.covered, equal.false, mixed.covered, told.differs)
    if np.isnan(differences).any():
        return *found, None, None, None
    single = tally(of_differences(differences[:, 0]), math.log(1.08))
    disagree = (float(np.mean(disagreeing(differences + each))) for each in (0.0, half))
    return *found, single.differs, *disagree


def disagreeing(differences: FloatArray) -> npt.NDArray[np.bool_]:
    """Which studies are said to have pairs that disagree, by all pairs together or by one of two factors, of 3 and of 6 levels."""
    levels = {"first": (1, 2, 3), "second": (1, 2, 3, 4, 5, 6)}
    keys = [(dict(zip(levels, each, strict=True)), frozenset[str]()) for each in product(*levels.values())]
    rows = [
        [at.get(pair, 0.0) - against.get(pair, 0.0) for pair in range(len(keys))]
        for name, own in levels.items()
        for *_, at, against in level_contrasts(name, own, keys, levels)
    ]
    contrasts = of_differences(np.einsum("kp,...pr->...kr", np.array(rows), differences))
    confidence = joint_confidence(contrasts.p_difference(), rate=DISAGREEMENT)
    low, high = contrasts.interval(confidence[..., None])
    depends = ((low > 0) | (high < 0)).any(axis=-1)
    return np.asarray(depends | (p_disagreement(differences) <= DISAGREEMENT))


def tally_together(estimate: Estimate, truth: FloatArray) -> Tally:
    """Judge families of one figure on the last axis: of the verdicts that a study gives, the average share that is false.

    `covered` is 1 - the average share of intervals behind verdicts that miss, `differs` the average share
    of true differences that are found.
    """
    margin = math.log1p(MARGIN)
    # Whether two are the same is a family apart from whether they differ (`statistics/comparison.py`).
    difference = verdicts(estimate, joint_confidence(estimate.p_difference())[..., None])
    sameness = verdicts(estimate, joint_confidence(estimate.p_same(margin))[..., None])
    # One that is within the margin and shows no difference is the same at the confidence of sameness alone.
    shown = np.where(
        (difference[2] == 0) & (difference[0] <= 0) & (difference[1] >= 0), np.nan, difference[2]
    )
    is_same = sameness[2] == 0
    low, high, verdict = (
        np.where(is_same, s, d) for s, d in zip(sameness, (*difference[:2], shown), strict=True)
    )
    given = ~np.isnan(verdict)
    count = np.maximum(given.sum(axis=-1), 1)
    missed = given & ((truth < low) | (truth > high))
    true = np.broadcast_to(np.abs(truth) > 0, verdict.shape)
    found = (np.abs(verdict) == 1) & true
    return Tally(
        covered=1 - float(np.mean(missed.sum(axis=-1) / count)),
        false=float(np.mean(are_false(verdict, truth).sum(axis=-1) / count)),
        wrong_direction=float(np.mean((verdict * truth < 0).sum(axis=-1) / count)),
        differs=float(found.sum() / max(true.sum(), 1)),
        same=float(np.mean(verdict == 0)),
        told_apart=float(np.mean(((np.abs(verdict) == 1) & ~true).any(axis=-1))),
    )
