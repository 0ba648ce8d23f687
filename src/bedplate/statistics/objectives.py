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

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from bedplate.statistics.comparison import CONFIDENCE, judged_apart
from bedplate.statistics.false_discovery import RATE, discoveries, joint_confidence

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from bedplate.statistics.comparison import Comparison
    from bedplate.statistics.estimation import FloatArray


class Evidence(Protocol):
    """The p-values of one figure, without those of what does not scatter."""

    @property
    def p_differences(self) -> FloatArray:
        """Of “the two are equal”."""

    @property
    def p_sames(self) -> FloatArray:
        """Of “the two differ by more than the margin”."""


@dataclass(frozen=True)
class Confidence:
    """Of the intervals of one figure: of those that are read for a difference, and of those read for sameness."""

    difference: float = CONFIDENCE
    sameness: float = CONFIDENCE


def confidences(figures: Sequence[Evidence], *, rate: float = RATE) -> tuple[Confidence, ...]:
    """One for each figure, in their order."""
    differences = _of_families([pairs.p_differences for pairs in figures], rate)
    sames = _of_families([pairs.p_sames for pairs in figures], rate)
    return tuple(Confidence(*each) for each in zip(differences, sames, strict=True))


def judged_together(
    comparisons: Sequence[Comparison], figures: Sequence[Hashable], *, rate: float = RATE
) -> tuple[Comparison, ...]:
    """The comparisons of one question with intervals and verdicts that hold together, in their order.

    `figures` says of each what it is a comparison of. Those without an interval are in no family, and stay as they are.
    """
    families: defaultdict[Hashable, list[Comparison]] = defaultdict(list)
    for comparison, figure in zip(comparisons, figures, strict=True):
        families[figure].append(comparison)
    own = dict(
        zip(families, confidences([_family(each) for each in families.values()], rate=rate), strict=True)
    )
    return tuple(
        comparison
        if comparison.basis is None
        else judged_apart(comparison, difference=own[figure].difference, sameness=own[figure].sameness)
        for comparison, figure in zip(comparisons, figures, strict=True)
    )


@dataclass(frozen=True)
class _Family:
    p_differences: FloatArray
    p_sames: FloatArray


def _family(comparisons: Sequence[Comparison]) -> _Family:
    scattering = [each for each in comparisons if each.scatters]
    return _Family(
        np.array([p for each in scattering if (p := each.p_difference) is not None]),
        np.array([p for each in scattering if (p := each.p_same) is not None]),
    )


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
