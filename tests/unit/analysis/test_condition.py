from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.analysis.comparison import Compared
from bedplate.analysis.condition import Truth, exit_status, parse_condition, parse_share, truth
from bedplate.errors import PlanError
from bedplate.model.figure import Better, Metric, Scale
from bedplate.statistics.comparison import Comparison, Verdict, compare, judged_apart
from bedplate.statistics.summary import Observation

TPS = Metric("tps", "1/s", Scale.RATIO, Better.HIGHER, "")
TIME = Metric("query_s", "s", Scale.RATIO, Better.LOWER, "")
HIT = Metric("hit", "share", Scale.PROPORTION, Better.HIGHER, "")
SIZE = Metric("size", "MiB", Scale.RATIO, Better.NEITHER, "")
COUNT = Metric("failed", "1", Scale.COUNT, Better.LOWER, "")


@dataclass(frozen=True)
class Given:
    """As much of a comparison as a condition looks at."""

    comparison: Comparison
    identical: bool = False


def judge(text: str, metric: Metric, baseline: list[float], contender: list[float]) -> Truth:
    sides = [{n: Observation(value) for n, value in enumerate(side)} for side in (baseline, contender)]
    found = Given(compare(sides[0], sides[1], metric))
    return truth(parse_condition(text, margin=0.05), cast("Compared", found))


FIRST = [100.0, 101.0, 99.0, 100.5, 99.5]
HALF = [value / 2 for value in FIRST]


@pytest.mark.parametrize(
    ("text", "metric", "expected"),
    [
        ("slower 5%", TPS, Truth.HOLDS),
        ("slower 99%", TPS, Truth.HOLDS),
        ("slower 101%", TPS, Truth.FAILS),
        ("faster 5%", TPS, Truth.FAILS),
        ("slower", TPS, Truth.HOLDS),
        ("faster 5%", TIME, Truth.HOLDS),
        ("slower 5 %", TIME, Truth.FAILS),
        ("better 99%", TIME, Truth.HOLDS),
        ("worse 99%", TPS, Truth.HOLDS),
        ("lower 50%", SIZE, Truth.HOLDS),
        ("higher 1%", SIZE, Truth.FAILS),
        ("higher 0%", COUNT, Truth.FAILS),
        ("better 0%", COUNT, Truth.HOLDS),
    ],
)
def test_half_of_it_is_judged_by_what_the_metric_is(text: str, metric: Metric, expected: Truth) -> None:
    assert expected is judge(text, metric, FIRST, HALF)


def test_shares_are_compared_in_points() -> None:
    before, after = [0.90, 0.91, 0.90, 0.89, 0.90], [0.80, 0.81, 0.80, 0.79, 0.80]
    assert Truth.HOLDS is judge("worse 5%", HIT, before, after)
    assert Truth.FAILS is judge("worse 15%", HIT, before, after)
    assert Truth.CANNOT_TELL is judge("worse 10%", HIT, before, [0.80, 0.815, 0.795, 0.79, 0.80])


@pytest.mark.parametrize(
    ("text", "metric", "words"),
    [
        ("slower 5%", HIT, "hit is no speed"),
        ("better 5%", SIZE, "neither way is better"),
        ("worse 5%", COUNT, "no share is taken"),
    ],
)
def test_a_condition_that_does_not_fit_its_metric_is_refused(text: str, metric: Metric, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        judge(text, metric, FIRST, HALF)


@pytest.mark.parametrize("text", ["5", "", "%", "-1%", "nan%", "1e3%"])
def test_a_share_has_a_percent_sign(text: str) -> None:
    with pytest.raises(PlanError, match="5%"):
        parse_share(text)


def test_exit_codes_are_those_of_bisecting() -> None:
    holds, fails, unknown = Truth.HOLDS, Truth.FAILS, Truth.CANNOT_TELL
    assert [1, 1, 125, 0, 125] == [
        exit_status(found) for found in ([holds, unknown], [holds, fails], [fails, unknown], [fails], [])
    ]


_VALUES = st.lists(st.floats(1, 1000), min_size=3, max_size=6)


@settings(deadline=None)
@given(_VALUES, _VALUES, st.sampled_from([TPS, TIME]), st.integers(0, 50))
def test_slower_and_faster_never_hold_together_and_turn_with_the_sides(
    first: list[float], second: list[float], metric: Metric, percent: int
) -> None:
    slower, faster = (judge(f"{word} {percent}%", metric, first, second) for word in ("slower", "faster"))
    assert not slower is faster is Truth.HOLDS
    turned = judge(f"faster {percent}%", metric, second, first)
    # Bounds are the same but for the last digit of a logarithm taken back.
    assert {slower, turned} in ({slower}, {Truth.FAILS, Truth.CANNOT_TELL}, {Truth.HOLDS, Truth.CANNOT_TELL})


@settings(deadline=None)
@given(_VALUES, _VALUES, st.integers(0, 30))
def test_a_harder_condition_never_holds_where_an_easier_one_does_not(
    first: list[float], second: list[float], percent: int
) -> None:
    easier, harder = (judge(f"slower {share}%", TPS, first, second) for share in (percent, percent + 20))
    if harder is Truth.HOLDS:
        assert easier is Truth.HOLDS
    if easier is Truth.FAILS:
        assert harder is Truth.FAILS


def test_a_difference_within_the_margin_holds_at_the_confidence_of_differences_alone() -> None:
    # 3 % slower: the same within 5 %, and slower by more than 2 % where the interval is narrow enough.
    baseline, contender = ([value * factor for value in FIRST] for factor in (1.0, 0.97))
    contender = [value + shift for value, shift in zip(contender, (0.1, -0.1, 0.2, -0.2, 0.1), strict=True)]
    sides = [{n: Observation(value) for n, value in enumerate(side)} for side in (baseline, contender)]
    alone = compare(sides[0], sides[1], TPS)
    condition = parse_condition("slower 2%", margin=0.05)

    def told(difference: float) -> tuple[Verdict, Truth]:
        found = judged_apart(alone, difference=difference, sameness=0.95)
        return found.verdict, truth(condition, cast("Compared", Given(found)))

    assert (Verdict.SAME, Truth.HOLDS) == told(0.95)
    assert (Verdict.SAME, Truth.CANNOT_TELL) == told(0.999999)
