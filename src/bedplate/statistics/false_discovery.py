"""Many comparisons at once: how many of the verdicts may be wrong, and intervals that say the same.

The false discovery rate of Benjamini & Hochberg (1995, J. R. Stat. Soc. B 57): of all verdicts that are
given, 5 % are wrong on average. Their procedure is proved for independent comparisons and for
positively dependent ones; comparisons with one baseline, and all pairs of cells, are neither to the
letter, yet keep the rate (Yekutieli 2008, J. Stat. Plan. Inference 138; `benchmarks/calibration.py`
has both). The variant for any dependence (Benjamini & Yekutieli 2001) would divide the rate by about
the logarithm of the number of comparisons, which costs three repetitions nearly every verdict.

The intervals belong to the verdicts: of R verdicts among m comparisons each interval has the confidence
1 - R x rate / m, so that of the intervals behind the verdicts 5 % miss on average (false coverage
rate: Benjamini & Yekutieli 2005, J. Am. Stat. Assoc. 100). A verdict is read from its interval
(`comparison`), so its direction is covered too (Weinstein & Yekutieli 2020, Stat. Sin. 30).
Comparisons without a verdict get the interval of the same confidence, which then bears none out: no
table shows an interval that contradicts its verdict. What is one family, and what is not, `objectives` says.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

RATE = 0.05


def discoveries(p_values: npt.ArrayLike, *, rate: float = RATE) -> npt.NDArray[np.int64]:
    """How many of the p-values on the last axis are discoveries: always the smallest ones.

    The largest k for which the k-th smallest is at most k x rate / m. ValueError for a p-value that is none.
    """
    found = np.asarray(p_values, dtype=np.float64)
    if not np.all((found >= 0) & (found <= 1)):
        raise ValueError("p-values lie between 0 and 1; leave out what has none")
    m = found.shape[-1]
    below = np.sort(found, axis=-1) <= np.arange(1, m + 1) * rate / max(m, 1)
    return np.asarray(np.max(np.where(below, np.arange(1, m + 1), 0), axis=-1, initial=0), dtype=np.int64)


def joint_confidence(p_values: npt.ArrayLike, *, rate: float = RATE) -> npt.NDArray[np.float64]:
    """The confidence of every interval of a family: 1 - rate for one comparison, more for many.

    At this confidence exactly the discoveries have verdicts: the next p-value is larger than
    (R + 1) x rate / m. Without discoveries it is 1 - rate / m.
    """
    m = np.asarray(p_values).shape[-1]
    return np.asarray(1 - np.maximum(discoveries(p_values, rate=rate), 1) * rate / max(m, 1))
