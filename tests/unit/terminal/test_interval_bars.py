from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.statistics.comparison import EstimateKind
from bedplate.terminal.table_parts import BarScale, Span, bar_scale, interval_bar

COLUMNS = 13
DOUBLE = BarScale(EstimateKind.RATIO, math.log(2))


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        (Span(1.0, 1.0, 1.0), "      ●      "),
        (Span(2.0, None, None), "      │     ●"),
        (Span(math.sqrt(2), 1.0, 2.0), "      ┼──●───"),
        (Span(math.sqrt(0.5), 0.5, 1.0), "───●──┼      "),
        (Span(1.0, 0.1, 10.0), "◂─────●─────▸"),
        (Span(3.0, 2.5, 3.5), "      │     ▸"),
        (Span(1.5, 1.2, None), "      │ ──●──"),
        (Span(None, None, None), "      │      "),
    ],
)
def test_a_bar_shows_where_the_interval_lies(span: Span, expected: str) -> None:
    assert expected == interval_bar(span, DOUBLE, columns=COLUMNS)


def test_differences_stand_on_a_scale_of_their_own() -> None:
    scale = bar_scale(EstimateKind.DIFFERENCE, [Span(-0.2, -0.4, 0.0)])
    assert scale is not None
    assert "-0.4 to 0.4" == scale.words
    assert "───●──┼      " == interval_bar(Span(-0.2, -0.4, 0.0), scale, columns=COLUMNS)


def test_without_an_estimate_there_is_no_scale() -> None:
    assert bar_scale(EstimateKind.RATIO, [Span(None, None, None)]) is None


_POSITIVE = st.floats(1e-6, 1e6)


@settings(deadline=None)
@given(
    st.lists(st.tuples(_POSITIVE, _POSITIVE, _POSITIVE).map(sorted), min_size=1, max_size=8),
    st.sampled_from(list(EstimateKind)),
)
def test_every_bar_has_its_width_and_one_point_or_an_arrow(
    found: list[list[float]], kind: EstimateKind
) -> None:
    spans = [Span(middle, low, high) for low, middle, high in found]
    scale = bar_scale(kind, spans)
    assert scale is not None
    for span in spans:
        text = interval_bar(span, scale, columns=COLUMNS)
        assert COLUMNS == len(text)
        assert 1 == text.count("●") or set("◂▸") & set(text)
        if span.low is not None and span.low > 1 and kind is EstimateKind.RATIO:
            assert not set("◂─●") & set(text[: COLUMNS // 2])
