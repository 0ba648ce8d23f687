from __future__ import annotations

import re

import pytest

from bedplate.analysis.pooled import figure_words, ratio_words
from bedplate.analysis.wording import (
    FigureWords,
    capital,
    centre_words,
    counted,
    durability_words,
    ends_words,
    figure,
    number_words,
    repetitions_sentence,
    scatter_of,
    span,
    unit_words,
)
from bedplate.model.figure import Scale
from bedplate.model.metrics import METRICS
from bedplate.model.visit import Durability
from bedplate.statistics.comparison import EstimateKind, Verdict, at_confidence, compare
from bedplate.statistics.summary import Observation, Summary, summarise


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


def found(*values: float, scale: Scale = Scale.RATIO) -> FigureWords:
    return figure(summarise(map(Observation, values), scale))


def test_digits_do_not_grow_as_the_evidence_shrinks() -> None:
    assert "25,000" == found(25_190.0).mean
    assert "5.8" == found(5.841).mean
    # Two that agree to the last digit are two that agree by chance.
    assert "5.84" == found(5.841, 5.841).mean
    assert "21,300" == found(21_278.0, 21_322.0).mean
    assert "21,300" == found(21_278.0, 21_322.0, 21_300.0).mean
    # A count is what was counted.
    assert "137" == found(137.0, scale=Scale.COUNT).mean


def test_two_values_are_no_interval_and_an_interval_that_says_nothing_is_none() -> None:
    two, three = found(100.0, 120.0), found(100.0, 110.0, 120.0)
    assert ("100 · 120", "100 and 120") == (two.between("–"), two.between(" to "))
    assert "87–138" == three.between("–")
    wild = found(1.0, 30.0, 1000.0)
    assert "interval not known" == wild.between("–") == wild.between(" to ")
    assert "100 · 120" == span(summarise(map(Observation, (100.0, 120.0)), Scale.RATIO))
    assert "100–120" == span(summarise(map(Observation, (100.0, 110.0, 120.0)), Scale.RATIO))


def test_a_mean_of_figures_with_a_zero_says_that_it_is_no_geometric_one() -> None:
    assert "1 (mean)" == found(0.0, 1.0, 2.0).mean
    assert "0" == found(0.0, 0.0, 0.0).mean
    assert "1" == found(0.0, 1.0, 2.0, scale=Scale.COUNT).mean


@pytest.mark.parametrize(
    ("low", "high", "kind", "words"),
    [
        (0.9, 1.1, EstimateKind.RATIO, "0.900–1.100"),
        (0.01, 65.34, EstimateKind.RATIO, "interval not known"),
        (6.01e-13, 1.66e12, EstimateKind.RATIO, "interval not known"),
        (0.5, None, EstimateKind.RATIO, "0.500–…"),
        (None, None, EstimateKind.RATIO, ""),
        (-0.01, 0.9, EstimateKind.DIFFERENCE, "-0.010–0.900"),
    ],
)
def test_one_rule_says_which_interval_says_nothing(
    low: float | None, high: float | None, kind: EstimateKind, words: str
) -> None:
    assert words == ends_words(kind, low, high, "{:.3f}".format, "–")


def test_two_counts_that_are_zero_everywhere_are_the_same() -> None:
    sides = [{n: Observation(value) for n in range(3)} for value in (0.0, 0.0, 2.0)]
    same = compare(sides[0], sides[1], METRICS["transactions_failed"])
    assert "0 (in every repetition): the same" == figure_words(same)
    other = compare(sides[0], sides[2], METRICS["transactions_failed"])
    assert Verdict.SAME is not other.verdict
    speeds = compare(sides[0], sides[1], METRICS["tps"])
    assert ("both are 0 in every repetition, so that there is no ratio",) == speeds.reasons


def test_intervals_of_another_confidence_say_theirs() -> None:
    sides = [{n: Observation(value + n) for n in range(5)} for value in (100.0, 120.0)]
    plain = compare(sides[0], sides[1], METRICS["tps"])
    assert re.fullmatch(r"×1.196 \([\d.]+ to [\d.]+\)", ratio_words(plain))
    assert ratio_words(at_confidence(plain, 0.9997)).endswith(", 99.97 %)")


def test_a_unit_is_not_written_where_the_name_says_it() -> None:
    assert ["", "ms", ""] == [unit_words(METRICS[name]) for name in ("tps", "latency_ms_p99", "tps_cv")]


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
    assert all("`sudo ./bedplate run STUDY --repetitions 5`" in sentence for sentence in said[1:5])
    assert "bedplate run" not in said[5]


def test_counted_cases_are_not_told_to_wait_for_repetitions() -> None:
    said = repetitions_sentence(1, has_speeds=False)
    assert "exact interval" in said
    assert "no verdicts" not in said
    assert "--repetitions 2`" in said


@pytest.mark.parametrize(
    ("executor", "words"), [("local", "`sudo ./bedplate run S "), ("slurm", "`./bedplate run S ")]
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
