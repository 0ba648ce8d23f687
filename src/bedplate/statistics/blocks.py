"""Whether the blocks of a study (the nodes of a fleet) agree about a difference.

Differences are made within repetitions, each of which lies whole in one block, so what a block is like drops out of
every one of them, and their mean and interval (`estimation.paired`) need to know nothing of blocks: a block's own
effect is in no difference. What may be left is that the difference itself is another one in each block. The
interval then speaks of the blocks that were measured, each weighing as many repetitions as it has; it is wider for
it, never narrower, as the blocks' disagreement scatters the differences too. Whether there is one is asked here, by
the analysis of variance of the differences (Fisher 1925).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import fdtrc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
