"""Mean differences with Student's intervals: the arithmetic under every verdict.

Arrays in, arrays out: repetitions lie on the last axis, all others are studies, comparisons or
contrasts. So the simulations of `benchmarks/calibration.py` run the very lines that judge a study.

The figures are logarithms where a ratio is meant. `paired` takes the difference within each repetition
(randomised blocks, one pair per block) and Student's t over those differences: what a repetition does
to both cells drops out, and the variances of the two cells may be anything, as only the differences
are looked at (Student 1908; Cochran & Cox, Experimental Designs, 1957, chapter 4). It needs as many
repetitions as degrees of freedom, which is its price: three repetitions have two.

`unpaired` is for repetitions that have nothing in common (two studies). It pools no variances either, and
has the degrees of freedom of the smaller sample, with which it never covers less than it says under
unequal variances (Mickey & Brown 1966, Ann. Math. Stat. 37). Welch's approximate degrees are narrower, and
give 5.7 % false verdicts in place of 5 for three values of 4 % beside three of 45 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import fdtrc, gammaincinv, ndtr, stdtr, stdtrit

if TYPE_CHECKING:
    FloatArray: TypeAlias = npt.NDArray[np.float64]
    BoolArray: TypeAlias = npt.NDArray[np.bool_]

# Two differences have a range; the interval of one degree of freedom is about nine times wider than it.
REPETITIONS_MIN = 3

# A pair with a single value has no scatter of its own, which the variance is made of.
VALUES_MIN = 2

# Enough for the third digit of a chance.
CLASSES = 256

# Equal differences may round to others in their last digit.
NO_SCATTER = 1e-12


@dataclass(frozen=True)
class Estimate:
    """A mean difference, its standard error and degrees of freedom, of one shape.

    `n` is the number of repetitions behind each, the smaller one where two samples differ.
    """

    mean: FloatArray
    error: FloatArray
    degrees: FloatArray
    n: int

    @property
    def scatters(self) -> BoolArray:
        """Whether repetitions differ at all; where they do not, arithmetic tells and no chance is taken."""
        return np.asarray(self.error > NO_SCATTER * np.maximum(1.0, np.abs(self.mean)))

    def half_width(self, confidence: FloatArray | float) -> FloatArray:
        """Half of the interval's width at a confidence between 0 and 1."""
        return np.asarray(stdtrit(self.degrees, 0.5 + np.asarray(confidence) / 2) * self.error)

    def interval(self, confidence: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        """Student's interval; of no width where all repetitions agree to the last digit."""
        half = self.half_width(confidence)
        return self.mean - half, self.mean + half

    def p_difference(self) -> FloatArray:
        """Two-sided p-value of “no difference”: 1 - the confidence at which the interval touches 0."""
        return np.asarray(2 * stdtr(self.degrees, -np.abs(_standardised(self.mean, self.error))))

    def p_same(self, margin: float) -> FloatArray:
        """Twice the larger p-value of two one-sided tests of |difference| >= margin (Schuirmann 1987).

        Twice, so that it is 1 - the confidence at which the whole two-sided interval lies within the
        margin, and one interval can be read for both questions.
        """
        room = margin - np.abs(self.mean)
        return np.asarray(np.minimum(1.0, 2 * stdtr(self.degrees, -_standardised(room, self.error))))


def paired(baseline: FloatArray, contender: FloatArray) -> Estimate:
    """Contender - baseline within each repetition. At least two repetitions; ValueError otherwise."""
    return of_differences(np.asarray(contender - baseline))


def of_differences(differences: FloatArray) -> Estimate:
    """The mean of values that were made once per repetition, such as a contrast. At least two."""
    n = differences.shape[-1]
    if n < 2:
        raise ValueError(f"an error needs two repetitions at least, found {n}; measure another")
    mean = differences.mean(axis=-1)
    error = differences.std(axis=-1, ddof=1) / np.sqrt(n)
    return Estimate(mean, error, np.full_like(mean, n - 1), n)


def unpaired(baseline: FloatArray, contender: FloatArray) -> Estimate:
    """Contender - baseline of two samples without repetitions in common; two values in each at least."""
    smaller = min(baseline.shape[-1], contender.shape[-1])
    if smaller < 2:
        raise ValueError(f"an error needs two repetitions at least, found {smaller}; measure another")
    mean = contender.mean(axis=-1) - baseline.mean(axis=-1)
    variance = baseline.var(axis=-1, ddof=1) / baseline.shape[-1]
    variance += contender.var(axis=-1, ddof=1) / contender.shape[-1]
    return Estimate(mean, np.sqrt(variance), np.full_like(mean, smaller - 1), smaller)


def weighted_mean(
    differences: FloatArray, weights: FloatArray, studies: npt.NDArray[np.intp] | None = None
) -> Estimate:
    """The weighted sum of the means of rows, each over its own blocks.

    `differences` has the shape (..., rows, blocks), NaN where a row lacks a block; `weights` (..., rows): 1 / rows each
    for a mean over pairs, summing to 0 for a contrast of pairs. `studies` numbers the study of each block; a row has blocks
    of one study. A row with a weight has two values at least; ValueError otherwise. `n` is the number of blocks, of several
    studies the smallest. Without a gap it is Student's interval of the sum in each block (`of_differences`).
    """
    there = np.isfinite(differences)
    weights = np.broadcast_to(weights, differences.shape[:-1])
    used = there & (weights != 0)[..., None]
    counts = used.sum(axis=-1)
    if np.any((counts < VALUES_MIN) & (weights != 0)):
        raise ValueError(f"a pair needs {VALUES_MIN} repetitions in common to be pooled; leave it out")
    values = np.where(used, differences, 0.0)
    means = values.sum(axis=-1) / np.maximum(counts, 1)
    residuals = np.where(used, differences - means[..., None], 0.0)
    scatter = (residuals**2).sum(axis=-1) / np.maximum(counts - 1, 1)
    # The residuals of a row fall short by its own mean: sqrt(n / (n - 1)) gives their variance back.
    shares = weights / np.sqrt(np.maximum(counts * (counts - 1), 1))
    by_block = (shares[..., None] * residuals).sum(axis=-2)
    covariance = _covariance(shares**2 * scatter, used, counts)
    mean = (weights * means).sum(axis=-1)
    numbers = np.zeros(differences.shape[-1], dtype=np.intp) if studies is None else studies
    blocks = used.any(axis=-2)
    of_studies = [own for study in np.unique(numbers) for own in [numbers == study] if blocks[..., own].any()]
    degrees = np.min(
        [_degrees(covariance[..., own, :][..., own], blocks[..., own]) for own in of_studies], axis=0
    )
    n = min(int(blocks[..., own].sum(axis=-1).min()) for own in of_studies)
    return Estimate(mean, np.sqrt((by_block**2).sum(axis=-1)), np.asarray(degrees), n)


def _covariance(scales: FloatArray, used: BoolArray, counts: npt.NDArray[np.intp]) -> FloatArray:
    """Of the blocks' sums of residuals, were all rows independent: (..., blocks, blocks)."""
    there = used.astype(np.float64)
    shared = np.einsum("...p,...pr,...ps->...rs", -scales / np.maximum(counts, 1), there, there)
    diagonal = np.einsum("...p,...pr->...r", scales, there)
    return np.asarray(shared + diagonal[..., None] * np.eye(there.shape[-1]))


def _degrees(covariance: FloatArray, blocks: BoolArray) -> FloatArray:
    """Satterthwaite's: of a sum of squares with this covariance. Where nothing scatters, one less than there are blocks."""
    trace = np.trace(covariance, axis1=-2, axis2=-1)
    squares = (covariance**2).sum(axis=(-2, -1))
    whole = np.maximum(blocks.sum(axis=-1) - 1, 1)
    scatters = trace > NO_SCATTER**2
    return np.asarray(np.where(scatters, trace**2 / np.where(scatters, squares, 1.0), whole))


def chance_of_verdict(
    mean: float, deviation: float, repetitions: FloatArray, *, confidence: float, margin: float
) -> FloatArray:
    """How likely so many repetitions tell a difference, or that there is none worth the name.

    `deviation` is that of one repetition's difference, `mean` the true one, `repetitions` whole numbers from
    2 on. Told is an interval that leaves out 0 or lies within ±margin. The chance given the width of the
    interval is one of the normal distribution; it is averaged over the widths that the chi distribution
    expects, which holds for both kinds together where noncentral t does not.
    """
    if deviation <= 0:
        return np.ones_like(repetitions)
    error = (deviation / np.sqrt(repetitions))[:, None]
    found = np.array([_deviations(int(n) - 1) for n in repetitions])
    half = stdtrit(repetitions - 1, 0.5 + confidence / 2)[:, None] * error * found
    differs = 1 - _within(half, mean, error)
    same = _within(np.maximum(margin - half, 0), mean, error)
    return np.asarray(np.minimum(1.0, differs + same).mean(axis=-1))


def _within(bound: FloatArray, mean: float, error: FloatArray) -> FloatArray:
    """The chance that a normal mean lies between -bound and bound."""
    return np.asarray(ndtr((bound - mean) / error) - ndtr((-bound - mean) / error))


@lru_cache(maxsize=256)
def _deviations(degrees: int) -> FloatArray:
    """Deviations as samples find them, as shares of the true one: the middles of equally likely classes."""
    middles = (np.arange(CLASSES) + 0.5) / CLASSES
    return np.asarray(np.sqrt(gammaincinv(degrees / 2, middles) / (degrees / 2)))


def _standardised(distance: FloatArray, error: FloatArray) -> FloatArray:
    """Distance / error, infinite where there is no error, 0 where there is neither."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(distance == 0, 0.0, distance / error))


LEVEL = 0.05


@dataclass(frozen=True)
class Blocks:
    """The mean difference in each block with the number of repetitions behind it, on the scale of the arithmetic.

    `p_agreement` is the chance of means as far apart were the difference one and the same; None where no block has
    two repetitions, or there is one block.
    """

    means: Mapping[str, float]
    counts: Mapping[str, int]
    p_agreement: float | None

    @property
    def disagree(self) -> bool:
        """Whether the blocks' means are further apart than their repetitions explain."""
        return self.p_agreement is not None and self.p_agreement <= LEVEL


def blocks(differences: Mapping[int, float], block_of: Mapping[int, str]) -> Blocks | None:
    """Look at differences by repetition, block by block; None without two blocks. KeyError for a strange repetition."""
    found: dict[str, list[float]] = {}
    for repetition, difference in sorted(differences.items()):
        found.setdefault(block_of[repetition], []).append(difference)
    if len(found) < 2:
        return None
    return Blocks(
        means={name: float(np.mean(values)) for name, values in found.items()},
        counts={name: len(values) for name, values in found.items()},
        p_agreement=_p_agreement(list(found.values())),
    )


def _p_agreement(groups: Sequence[Sequence[float]]) -> float | None:
    values = np.concatenate([np.asarray(group, dtype=np.float64) for group in groups])
    between, within = len(groups) - 1, len(values) - len(groups)
    if within < 1:
        return None
    means = np.concatenate([np.full(len(group), np.mean(group)) for group in groups])
    scatter = float(((values - means) ** 2).sum()) / within
    apart = float(((means - values.mean()) ** 2).sum()) / between
    if scatter == 0:
        return 1.0 if apart == 0 else 0.0
    return float(fdtrc(between, within, apart / scatter))
