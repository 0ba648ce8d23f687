"""Several figures of the same alternatives: which confidence each figure's verdicts have, so that all hold together.

A figure is a family of its own. In one family with the others, a figure that shows many differences would lower the
confidence of all: cells that are alike in speed and unlike in size would be told apart in speed by chance. Families are
selected first by their smallest evidence (Simes 1986, Biometrika 73), then each is judged at the rate x the share of the
families that were selected (Benjamini & Bogomolov 2014, J. R. Stat. Soc. B 76). So where nothing differs, a verdict is
given in 5 % of the studies at most, and of the figures that show something 5 % of the verdicts are wrong on average.

Whether two are the same is another question than whether they differ, and a family of its own. What does not scatter
at all (the size of equal databases) is told by arithmetic and is in no family: it takes no chance, and leaves none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bedplate.statistics.comparison import CONFIDENCE
from bedplate.statistics.false_discovery import RATE, discoveries, joint_confidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.statistics.all_pairs import Pairs
    from bedplate.statistics.estimation import FloatArray


@dataclass(frozen=True)
class Confidence:
    """Of the intervals of one figure: of those that are read for a difference, and of those read for sameness."""

    difference: float = CONFIDENCE
    sameness: float = CONFIDENCE


def confidences(figures: Sequence[Pairs], *, rate: float = RATE) -> tuple[Confidence, ...]:
    """One for each figure, in their order."""
    differences = _of_families([pairs.p_differences for pairs in figures], rate)
    sames = _of_families([pairs.p_sames for pairs in figures], rate)
    return tuple(Confidence(*each) for each in zip(differences, sames, strict=True))


def _of_families(families: Sequence[FloatArray], rate: float) -> list[float]:
    """The confidence of each family; that of one comparison where it has none."""
    asked = [family for family in families if len(family)]
    if not asked:
        return [CONFIDENCE for _ in families]
    selected = int(discoveries([_simes(family) for family in asked], rate=rate))
    own_rate = rate * max(selected, 1) / len(asked)
    return [
        float(joint_confidence(family, rate=own_rate)) if len(family) else CONFIDENCE for family in families
    ]


def _simes(p_values: FloatArray) -> float:
    """The p-value of “none of these is true”."""
    ordered = np.sort(p_values)
    return float(min(1.0, np.min(ordered * len(ordered) / np.arange(1, len(ordered) + 1))))
