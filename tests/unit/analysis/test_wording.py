from __future__ import annotations

import pytest

from bedplate.analysis.wording import (
    capital,
    centre_words,
    counted,
    durability_words,
    number_words,
    repetitions_sentence,
    scatter_of,
)
from bedplate.model.metrics import METRICS
from bedplate.model.visit import Durability
from bedplate.statistics.summary import Summary


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "–"),
        (0.0, "0"),
        (24_312.7, "24,310"),
        (999.96, "1,000"),
        (12.414, "12.41"),
        (0.087_654, "0.08765"),
        (-3.14159, "-3.142"),
        (1000.5, "1,001"),
        (1.5e12, "1.50e+12"),
        (0.000_012_34, "1.23e-5"),
        (2.0, "2"),
        (-123_456.0, "-123,500"),
    ],
)
def test_four_digits_and_never_a_zero_for_nothing(value: float | None, expected: str) -> None:
    assert expected == number_words(value)


@pytest.mark.parametrize(
    ("value", "scatter", "expected"),
    [
        (24_312.7, 145.0, "24,310"),
        (1316.0, 188.0, "1,320"),
        (0.7864, 0.117, "0.79"),
        (13.42, 3.0, "13.4"),
        (13.42, 0.000_1, "13.42"),
        (13.42, None, "13.42"),
        (12.0, 40.0, "12"),
    ],
)
def test_no_digit_that_the_scatter_denies(value: float, scatter: float | None, expected: str) -> None:
    assert expected == number_words(value, scatter)


def test_scatter_is_that_of_the_interval_else_of_the_range() -> None:
    assert 5.0 == scatter_of(Summary(3, minimum=1.0, maximum=2.0, low=0.0, high=10.0))
    assert 0.5 == scatter_of(Summary(2, minimum=1.0, maximum=2.0))
    assert None is scatter_of(Summary(1, minimum=1.0, maximum=1.0))
    assert None is scatter_of(Summary(2, minimum=1.0, maximum=1.0))


def test_both_caches_are_named_where_they_differ() -> None:
    assert "durable" == durability_words(Durability("durable", "durable", "declared"))
    assert "unsafe / durable" == durability_words(Durability("unsafe", "durable", "declared"))
    assert "unknown" == durability_words(None)


def test_what_was_left_out_is_counted() -> None:
    text = counted(Summary(2, basis="trusted", suspect=1, failed=1, not_run=2))
    assert "n = 2, 1 suspect, left out, 1 failed, 2 not run" == text


def test_the_sentence_grows_with_the_repetitions() -> None:
    said = [repetitions_sentence(n) for n in range(6)]
    assert "no verdicts" in said[2]
    assert all("`sudo ./bedplate extend STUDY --repetitions 5`" in sentence for sentence in said[1:5])
    assert "bedplate extend" not in said[5]


def test_counted_cases_are_not_told_to_wait_for_repetitions() -> None:
    said = repetitions_sentence(1, has_speeds=False)
    assert "exact interval" in said
    assert "no verdicts" not in said
    assert "--repetitions 2`" in said


@pytest.mark.parametrize(
    ("executor", "words"), [("local", "`sudo ./bedplate extend S "), ("slurm", "`./bedplate extend S ")]
)
def test_who_hands_visits_to_others_needs_no_root_for_more_of_them(executor: str, words: str) -> None:
    assert words in repetitions_sentence(4, study="S", executor=executor)


def test_a_sentence_keeps_the_name_of_a_metric_at_its_beginning() -> None:
    assert "tps of read-write changed" == capital("tps of read-write changed")
    assert "Two runs are suspect" == capital("two runs are suspect")
    assert "" == capital("")


def test_a_figure_is_called_what_it_is() -> None:
    assert "geometric mean" == centre_words(METRICS["tps"])
    assert "mean" == centre_words(METRICS["power_cuts_bad"])
