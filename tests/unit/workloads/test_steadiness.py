"""A warm-up is over when neither tps nor the cache moves any more."""

from __future__ import annotations

import random

from bedplate.workloads.pgbench.model import SteadyDetector


def _fed(transactions: list[float], reads: list[float]) -> SteadyDetector:
    detector = SteadyDetector(window_s=10, tolerance=0.05)
    for value in transactions:
        detector.add_second(value)
    for value in reads:
        detector.add_reads(value)
    return detector


def test_a_level_course_is_steady_after_three_windows() -> None:
    assert not _fed([1000.0] * 29, [0.0] * 29).steady
    assert _fed([1000.0] * 30, [0.0] * 30).steady


def test_a_climbing_course_is_not_steady() -> None:
    assert not _fed([100.0 + 10 * second for second in range(60)], [0.0] * 60).steady


def test_level_tps_over_falling_device_reads_is_a_cache_that_still_fills() -> None:
    assert not _fed([100.0] * 60, [150.0 - 2 * second for second in range(60)]).steady


def test_level_device_reads_are_steady() -> None:
    assert _fed([100.0] * 60, [150.0] * 60).steady


def test_noise_within_a_window_is_averaged_out() -> None:
    noise = random.Random(7)
    transactions = [1000.0 * noise.uniform(0.9, 1.1) for _ in range(60)]
    assert _fed(transactions, [0.0] * 60).steady


def test_nothing_at_all_is_not_steady() -> None:
    assert not _fed([0.0] * 60, [0.0] * 60).steady


def test_without_device_counters_nothing_is_claimed() -> None:
    assert not _fed([1000.0] * 60, []).steady
