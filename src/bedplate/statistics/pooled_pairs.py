"""One ratio over many matched pairs, how sure it is, and whether the pairs disagree about it.

A pair is a contender and a baseline that differ in nothing but what is compared. Its differences (of logarithms where a
ratio is meant) are made within each repetition, as in `estimation.paired`. The pooled estimate is the mean over the
pairs of their means: a mean over *these* pairs, each of which counts the same.

A repetition is a block. What happens in one (a boot of a kernel, a neighbour at work) may move all of its pairs
together, so pairs are no repetitions of each other: eighteen pairs in three repetitions have three blocks and two degrees
of freedom. What pairs add is that their own scatter averages out. With nothing missing this is Student's t over the
means of the blocks. Where repetitions are missing, each pair keeps its own weight: the variance is the cluster-robust one
with the bias-reduced residuals of Bell & McCaffrey (2002, Surv. Methodol. 28; CR2), a block being a cluster and every pair
having a mean of its own. Its degrees of freedom are Satterthwaite's, from the scatter of each pair as found: pairs may
scatter as differently as they like. Of two studies, which have no block in common, the smaller degrees count
(Mickey & Brown 1966, as in `estimation.unpaired`).

Whether pairs disagree is the analysis of variance of pairs by blocks, with the degrees of freedom of Box (1954, Ann.
Math. Stat. 25) for pairs of unequal scatter, estimated from each pair's residuals. These estimates err on the careful
side. One pair that scatters far more than the others may pass for a disagreement, so it must show without the pair that
scatters most as well. `benchmarks/calibration.py` has what all of this keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import fdtrc

from bedplate.statistics.estimation import NO_SCATTER, Estimate

if TYPE_CHECKING:
    import numpy.typing as npt

    from bedplate.statistics.estimation import BoolArray, FloatArray

# At this p-value or below pairs are said to disagree.
LEVEL = 0.05
# A pair with a single value has no scatter of its own, which the variance is made of.
VALUES_MIN = 2


def weighted_mean(
    differences: FloatArray, weights: FloatArray, studies: npt.NDArray[np.intp] | None = None
) -> Estimate:
    """The weighted sum of the means of rows, each over its own blocks.

    `differences` has the shape (..., rows, blocks), NaN where a row lacks a block; `weights` (..., rows): 1 / rows each
    for a mean over pairs, summing to 0 for a contrast of pairs. `studies` numbers the study of each block; a row has blocks
    of one study. A row with a weight has two values at least; ValueError otherwise. `n` is the number of blocks, of several
    studies the smallest.
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


def p_disagreement(differences: FloatArray) -> FloatArray:
    """The chance of pairs as far apart as these, were their differences one and the same.

    `differences` has the shape (..., pairs, blocks) and no gap; two pairs and two blocks at least, ValueError otherwise.
    """
    pairs, blocks = differences.shape[-2:]
    if min(pairs, blocks) < VALUES_MIN or not np.all(np.isfinite(differences)):
        raise ValueError("pairs can only disagree where there are two of them, in two blocks, without a gap")
    p_all = _p_of_variance(differences)
    if pairs == VALUES_MIN:
        return p_all
    scatter = (_residuals(differences) ** 2).sum(axis=-1)
    keep = np.argsort(np.argsort(scatter, axis=-1), axis=-1) < pairs - 1
    fewer = differences[keep].reshape(*differences.shape[:-2], pairs - 1, blocks)
    return np.asarray(np.maximum(p_all, _p_of_variance(fewer)))


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


def _residuals(differences: FloatArray) -> FloatArray:
    """What is neither the pair's nor the block's."""
    of_pairs = differences.mean(axis=-1, keepdims=True)
    of_blocks = differences.mean(axis=-2, keepdims=True)
    return np.asarray(differences - of_pairs - of_blocks + differences.mean(axis=(-2, -1), keepdims=True))


def _p_of_variance(differences: FloatArray) -> FloatArray:
    """Analysis of variance, with Box's degrees of freedom for pairs of unequal scatter."""
    pairs, blocks = differences.shape[-2:]
    means = differences.mean(axis=-1)
    between = blocks * ((means - means.mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1) / (pairs - 1)
    variances = (_residuals(differences) ** 2).sum(axis=-1) / (blocks - 1)
    total = variances.sum(axis=-1)
    within = total / (pairs - 1)
    # The trace of the covariance of the pairs' means about their mean, squared, by that of its square.
    squares = (variances**2).sum(axis=-1) * (1 - 2 / pairs) + (total / pairs) ** 2
    scatters = within > NO_SCATTER**2
    own = (total * (1 - 1 / pairs)) ** 2 / np.where(scatters, squares, 1.0)
    degrees = np.where(scatters, np.clip(own, 1.0, pairs - 1.0), pairs - 1.0)
    ratio = between / np.where(scatters, within, 1.0)
    p_value = fdtrc(degrees, degrees * (blocks - 1), ratio)
    return np.asarray(np.where(scatters, p_value, np.where(between > NO_SCATTER**2, 0.0, 1.0)))
