"""Families of verdicts: what one figure shows does not make another show more by chance."""

from __future__ import annotations

import numpy as np
import pytest

from bedplate.model.metrics import METRICS
from bedplate.statistics.comparison import Confidence, Pairs, all_pairs, confidences

CELLS, REPETITIONS = 10, 5
TPS = METRICS["tps"]


def figure(logs: np.ndarray) -> Pairs:
    pairs = CELLS * (CELLS - 1) // 2
    return all_pairs(100 * np.exp(logs), TPS, comparable=np.ones(pairs, dtype=np.bool_))


def scattering(random: np.random.Generator, scatter: float) -> Pairs:
    return figure(random.normal(0, scatter, (CELLS, REPETITIONS)))


def test_equal_cells_are_told_apart_in_one_study_of_twenty_at_the_most() -> None:
    random = np.random.default_rng(1)
    size = figure(np.zeros((CELLS, REPETITIONS)))
    behind = 0
    for _ in range(400):
        figures = [scattering(random, 0.04), scattering(random, 0.1), scattering(random, 0.2), size]
        told = [pairs.verdicts(own) for pairs, own in zip(figures, confidences(figures), strict=True)]
        behind += any(better.any() for better, _ in told[:1])
    # 5 % and three standard errors; in one family with the sizes it was more than 80 %.
    assert behind / 400 < 0.05 + 3 * 0.011


def test_a_figure_that_does_not_scatter_changes_no_confidence() -> None:
    random = np.random.default_rng(2)
    own = [scattering(random, 0.04), scattering(random, 0.1)]
    alike = figure(np.zeros((CELLS, REPETITIONS)))
    apart = figure(np.repeat(np.arange(CELLS, dtype=np.float64)[:, None], REPETITIONS, axis=1))
    assert confidences(own) == confidences([*own, alike, apart])[:2]
    assert Confidence() == confidences([alike])[0]


def test_sameness_that_is_shown_lowers_no_confidence_of_differences() -> None:
    random = np.random.default_rng(3)
    quiet = scattering(random, 0.001)
    (found,) = confidences([quiet])
    # No difference was found: one p-value of 45 would have to be below 5 % / 45.
    assert found.difference == pytest.approx(1 - 0.05 / 45, rel=1e-6)
    assert found.sameness == pytest.approx(0.95)


def test_figures_that_show_differences_leave_the_others_their_rate() -> None:
    random = np.random.default_rng(4)
    steps = np.arange(CELLS, dtype=np.float64)[:, None]
    loud = figure(steps + random.normal(0, 0.01, (CELLS, REPETITIONS)))
    quiet = scattering(random, 0.1)
    told, untold = confidences([loud, quiet])
    assert told.difference == pytest.approx(1 - 0.05 / 2)
    assert untold.difference >= 1 - 0.05 / 2 / 45 - 1e-12
