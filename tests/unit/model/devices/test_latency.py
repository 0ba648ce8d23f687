"""Times of an emulated device, from the words of a plan to what they come to."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.model.devices import Latency, Law, Stall

MS = 1e6


@pytest.mark.parametrize(
    ("words", "shown", "option"),
    [
        ("2ms", "2ms", "constant:2000000"),
        ("500 us", "0.5ms", "constant:500000"),
        ("constant 1.5s", "1.5s", "constant:1500000000"),
        ("uniform  1ms  3 ms", "uniform 1ms 3ms", "uniform:1000000:3000000"),
        ("exponential 2ms", "exponential 2ms", "exponential:2000000"),
        ("lognormal 0.5 ms 1.3", "lognormal 0.5ms 1.3", "lognormal:500000:1.3"),
    ],
)
def test_words_of_a_plan_are_read_and_shown_one_way(words: str, shown: str, option: str) -> None:
    law = Law.parse(words)
    assert (shown, option) == (law.words, law.option)
    assert law == Law.parse(law.words)


@pytest.mark.parametrize(
    "words",
    ["", "2", "2 h", "-1ms", "70s", "uniform 3ms 1ms", "uniform 1ms", "lognormal 1ms", "lognormal 1ms 0.5", "lognormal 0ms 2",
     "lognormal 1ms 11", "normal 1ms 2", "lognormal 1ms x", "1ms 2ms"],
)  # fmt: skip
def test_what_is_no_time_is_refused_with_what_is_allowed(words: str) -> None:
    with pytest.raises(ValueError, match=r"allowed|write a number|takes"):
        Law.parse(words)


def test_quantiles_and_means_are_those_of_the_distribution() -> None:
    assert 2 * MS == Law.parse("2ms").quantile_ns(0.99) == Law.parse("2ms").mean_ns
    assert 2.98 * MS == pytest.approx(Law.parse("uniform 1ms 3ms").quantile_ns(0.99))
    assert 2 * MS == Law.parse("uniform 1ms 3ms").mean_ns
    assert 2 * MS * math.log(100) == pytest.approx(Law.parse("exponential 2ms").quantile_ns(0.99))
    lognormal = Law.parse("lognormal 0.5ms 1.3")
    assert 0.5 * MS == pytest.approx(lognormal.quantile_ns(0.5))
    # 2.3263 standard deviations of the logarithm above the median; tables of the normal distribution.
    assert 0.5 * MS * 1.3**2.3263479 == pytest.approx(lognormal.quantile_ns(0.99))
    assert 0.5 * MS * math.exp(math.log(1.3) ** 2 / 2) == pytest.approx(lognormal.mean_ns)


@given(st.floats(0.01, 0.98), st.sampled_from(["uniform 1ms 3ms", "exponential 2ms", "lognormal 1ms 2"]))
def test_a_larger_share_never_takes_less(share: float, words: str) -> None:
    law = Law.parse(words)
    assert law.quantile_ns(share) <= law.quantile_ns(share + 0.01)


def test_a_stall_is_shorter_than_its_period() -> None:
    assert "200ms every 30s" == Stall.parse("200 ms  every 30 s").words
    for words in ("200ms", "30s every 200ms", "0ms every 1s"):
        with pytest.raises(ValueError, match=r"allowed is|a stall is shorter"):
            Stall.parse(words)


def test_the_most_that_a_device_answers_is_bounded_by_its_places_and_its_limit() -> None:
    device = Latency("x", "1ms", "2ms", "2ms", queue_depth=8)
    assert (8000.0, 4000.0) == (device.most_per_s("read"), device.most_per_s("write"))
    assert 3000 == Latency("x", "1ms", "2ms", "2ms", queue_depth=8, iops=3000).most_per_s("read")
    assert 80_000 == Latency("x", "1ms", "2ms", "2ms", queue_depth=8, sequential="0.1ms").most_per_s("write")
    assert math.inf == Latency("x", "0ms", "0ms", "0ms").most_per_s("read")
    assert Latency("x", "0ms", "0ms", "0ms").is_path_alone
    assert not device.is_path_alone


def test_the_command_line_has_what_was_asked_and_no_more() -> None:
    plain = Latency("x", "1ms", "1ms", "2ms", queue_depth=4)
    assert (
        *("--read", "constant:1000000", "--write", "constant:1000000", "--flush", "constant:2000000"),
        *("--depth", "4"),
    ) == plain.options
    whole = Latency("x", "1ms", "1ms", "2ms", 4, "0.1ms", 100, 1_000_000, "200ms every 30s")
    assert (
        *("--sequential", "constant:100000", "--requests-per-s", "100", "--bytes-per-s", "1000000"),
        *("--stall-ns", "200000000", "--period-ns", "30000000000"),
    ) == whole.options[len(plain.options) :]
