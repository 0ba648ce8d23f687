"""Ratios near a border of rounding, and those that are very small or very large."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bedplate.analysis.pooled import figure_words, ratio_words
from bedplate.model.metrics import METRICS
from bedplate.statistics.comparison import Comparison, Verdict, compare


def ratio(estimate: float, low: float, high: float) -> Comparison:
    plain = compare({}, {}, METRICS["tps"])
    return replace(plain, estimate=estimate, low=low, high=high, verdict=Verdict.FASTER)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        # 1.0046 is 1.00 in two digits, which a reader takes for an interval that has equality in it.
        ((1.06, 1.0046, 1.12), "×1.060 (1.005 to 1.120): faster"),
        ((1.06, 1.00004, 1.12), "×1.0600 (1.0000 to 1.1200): faster"),
        ((1.084, 1.05, 1.12), "×1.08 (1.05 to 1.12): faster"),
        ((1240.4, 999.6, 1531.2), "×1,240 (999.6 to 1,531): faster"),
        ((0.0043, 0.0021, 0.00872), "×0.004300 (0.002100 to 0.008720): faster"),
    ],
)
def test_no_bound_is_rounded_to_equality_and_no_ratio_has_an_exponent_early(
    found: tuple[float, float, float], words: str
) -> None:
    assert words == figure_words(ratio(*found))
    assert words.removesuffix(": faster") == ratio_words(ratio(*found))
