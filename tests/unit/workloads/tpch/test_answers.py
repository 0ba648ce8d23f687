"""Answers are held to the rules of clause 2.1.3.5, and equal answers have one digest."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.errors import OutputNotUnderstood
from bedplate.workloads.tpch.queries import (
    SHAPES,
    ColumnKind,
    answer_differences,
    answer_digest,
    canonical_answer,
)

Q1 = (
    "A",
    "F",
    "37734107.00",
    "56586554400.73",
    "53758257134.87",
    "55909065222.83",
    "25.52",
    "38273.13",
    ".05",
    "1478493",
)


def with_value(row: tuple[str, ...], place: int, value: str | None) -> list[tuple[str | None, ...]]:
    return [(*row[:place], value, *row[place + 1 :])]


def test_shapes_order_by_columns_that_they_have() -> None:
    assert list(range(1, 23)) == list(SHAPES)
    for shape in SHAPES.values():
        assert set(shape.order_by) <= set(range(len(shape.columns)))


def test_an_answer_is_right_against_itself() -> None:
    assert () == answer_differences(1, [Q1], [Q1])
    assert () == answer_differences(6, [(None,)], [(None,)])
    assert () == answer_differences(16, [], [])


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, "A  "),  # char(n) is padded
        (2, "37734107"),
        (3, "56586554500.73"),  # within $100
        (3, "56586554300.73"),
        (5, "55909065222.827692"),
        (6, "25.522005853257337"),
        (6, "25.77"),  # within 1 %
        (8, "0.049985295838397614"),
        (9, "01478493"),
    ],
)
def test_differences_that_the_clause_allows(place: int, value: str) -> None:
    assert () == answer_differences(1, [Q1], with_value(Q1, place, value))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, "a"),
        (0, None),
        (2, "37734107.01"),  # sum(l_quantity) is exact, comment 4
        (3, "56586554500.74"),
        (3, "56586554300.72"),
        (6, "25.78"),
        (6, "25.26"),
        (8, "0.04"),
        (8, "-0.05"),
        (9, "1478494"),
    ],
)
def test_differences_that_it_does_not_allow(place: int, value: str | None) -> None:
    (reason,) = answer_differences(1, [Q1], with_value(Q1, place, value))
    assert reason.startswith("query 1, row 1: expected (A, F, 37734107.00, ")
    assert ("null" if value is None else value.rstrip()[:6]) in reason


def test_a_ratio_of_sums_is_held_to_both_rules() -> None:
    # 1 % of 348406.05 is 3484, and a sum may be off by 100.
    assert () == answer_differences(17, [("348406.05",)], [("348506.05",)])
    assert 1 == len(answer_differences(17, [("348406.05",)], [("348507.05",)]))
    assert 1 == len(answer_differences(17, [("50.00",)], [("51.00",)]))


def test_sums_of_ones_and_zeros_are_exact() -> None:
    assert 1 == len(answer_differences(12, [("MAIL", "6202", "9324")], [("MAIL", "6203", "9324")]))


def test_a_negative_ratio_is_held_to_one_per_cent() -> None:
    assert () == answer_differences(14, [("-10.00",)], [("-10.10",)])
    assert 1 == len(answer_differences(14, [("-10.00",)], [("-10.20",)]))


def test_null_is_not_zero() -> None:
    assert ("query 6, row 1: expected (null), found (0.00)",) == answer_differences(6, [(None,)], [("0",)])


def test_rows_that_order_by_leaves_equal_may_come_in_any_order() -> None:
    rows = [("1", "30.00"), ("7", "20.00"), ("3", "20.00"), ("5", "10.00")]
    other = [rows[0], rows[2], rows[1], rows[3]]
    assert () == answer_differences(11, rows, other)
    assert answer_digest(11, rows) == answer_digest(11, other)


def test_other_rows_may_not() -> None:
    rows = [("ALGERIA", "1998", "10.00"), ("ALGERIA", "1997", "500.00")]
    assert 2 == len(answer_differences(9, rows, rows[::-1]))
    assert answer_digest(9, rows) != answer_digest(9, rows[::-1])


def test_a_row_is_used_once() -> None:
    expected = [("1", "20.00"), ("2", "20.00")]
    assert 1 == len(answer_differences(11, expected, [("1", "20.00"), ("1", "20.00")]))


def test_the_number_of_rows_counts() -> None:
    assert ("query 4: expected 1 rows, found 0",) == answer_differences(4, [("1-URGENT", "1")], [])
    assert ("query 4: expected 0 rows, found 1",) == answer_differences(4, [], [("1-URGENT", "1")])


def test_many_differences_are_counted() -> None:
    expected = [(f"{place}", "1") for place in range(9)]
    reasons = answer_differences(4, expected, [(place, "2") for place, _ in expected])
    assert 6 == len(reasons)
    assert reasons[-1] == "query 4: 4 more rows differ"


@pytest.mark.parametrize(
    ("query", "value", "canonical"),
    [
        (6, "123141078.2283", "123141078.23"),
        (6, "0.125", "0.13"),
        (6, "-0.125", "-0.13"),
        (6, "-0.001", "0.00"),
        (6, "1E+2", "100.00"),
        (6, ".5", "0.50"),
        (6, " 7 ", "7.00"),
        (6, None, None),
    ],
)
def test_numbers_in_canonical_form(query: int, value: str | None, canonical: str | None) -> None:
    assert ((canonical,),) == canonical_answer(query, [(value,)])


def test_a_year_is_a_whole_number_however_it_is_printed() -> None:
    assert (("1995", "0.03"),) == canonical_answer(8, [("1995.0", "0.0344358904066548")])


@pytest.mark.parametrize("value", ["", "NaN", "Infinity", "-Infinity", "abc", "1,5", "1995.5"])
def test_what_is_no_number_is_refused(value: str) -> None:
    with pytest.raises(OutputNotUnderstood, match="query 8: expected a number"):
        canonical_answer(8, [(value, "0.03")])
    if value != "1995.5":
        with pytest.raises(OutputNotUnderstood, match="query 6: expected a number"):
            canonical_answer(6, [(value,)])


@pytest.mark.parametrize("row", [(), ("1",), ("1", "2", "3")])
def test_a_row_of_another_length_is_refused(row: tuple[str, ...]) -> None:
    with pytest.raises(OutputNotUnderstood, match="query 4: expected 2 columns"):
        answer_differences(4, [("1-URGENT", "1")], [row])


def test_digests_tell_apart_what_looks_alike_when_joined() -> None:
    answers: list[list[tuple[str | None, ...]]] = [
        [("a|b", "c")],
        [("a", "b|c")],
        [("a", "b"), ("c", "d")],
        [("a", "b\nc|d")],
        [("a", None)],
        [("a", "\\N")],
    ]
    assert 6 == len({answer_digest(20, answer) for answer in answers})


def test_digests_of_two_queries_differ() -> None:
    assert answer_digest(6, [("1",)]) != answer_digest(19, [("1",)])


_VALUES = {
    ColumnKind.TEXT: st.text(alphabet="ab |\\\n", max_size=3),
    ColumnKind.INTEGER: st.integers(-3, 3).map(str),
    **dict.fromkeys(
        (ColumnKind.DECIMAL, ColumnKind.SUM, ColumnKind.AVERAGE, ColumnKind.SUM_RATIO),
        st.decimals(-2, 2, places=3).map(str),
    ),
}
_ANSWERS = st.sampled_from(sorted(SHAPES)).flatmap(
    lambda query: st.tuples(
        st.just(query),
        st.lists(st.tuples(*(st.none() | _VALUES[kind] for kind in SHAPES[query].columns)), max_size=6),
    )
)


@settings(deadline=None)
@given(_ANSWERS)
def test_the_canonical_form_is_its_own(answer: tuple[int, list[tuple[str | None, ...]]]) -> None:
    query, rows = answer
    canonical = canonical_answer(query, rows)
    assert canonical == canonical_answer(query, canonical)
    assert answer_digest(query, rows) == answer_digest(query, canonical)
    assert () == answer_differences(query, rows, canonical)
    assert () == answer_differences(query, canonical, rows)


@settings(deadline=None)
@given(_ANSWERS, st.data())
def test_digests_are_equal_exactly_where_canonical_forms_are(
    answer: tuple[int, list[tuple[str | None, ...]]], data: st.DataObject
) -> None:
    query, rows = answer
    other = data.draw(st.permutations(rows))
    same = canonical_answer(query, rows) == canonical_answer(query, other)
    assert same == (answer_digest(query, rows) == answer_digest(query, other))
