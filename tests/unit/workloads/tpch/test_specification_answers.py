"""The specification's answers are whole, in canonical form, and right results pass where wrong ones do not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.errors import OutputNotUnderstood
from bedplate.workloads.tpch.queries import (
    SHAPES,
    ColumnKind,
    Row,
    canonical_answer,
    check_answer,
    specification_answer,
)

QUERIES = range(1, 23)
# Lines of the kit's answer files without their header.
ROWS = (4, 100, 10, 5, 5, 1, 4, 2, 175, 20, 1048, 2, 42, 1, 1, 18314, 1, 57, 1, 186, 100, 7)

# As the kit prints them, or the specification with its queries (clause 2.4.x.5): some of each kind of column.
SOME: dict[int, tuple[int, Row]] = {
    1: (3, ("R", "F", "37719753.00", "56568041380.90", "53741292684.60", "55889619119.83", "25.51", "38250.85",
            "0.05", "1478870")),
    2: (7, ("9852.52", "Supplier#000008973", "RUSSIA", "18972", "Manufacturer#2", "t5L67YdBYYH6o,Vz24jpDyQ9",
            "32-188-594-7038", "rns wake final foxes. carefully unusual depende")),
    3: (9, ("2300070", "367371.15", "1995-03-13", "0")),
    6: (0, ("123141078.23",)),
    8: (1, ("1996", "0.04")),
    10: (7, ("84223", "Customer#000084223", "594998.02", "528.65", "UNITED KINGDOM",
             "nAVZCs6BaWap rrM27N 2qBnzc5WBauxbA", "33-442-824-8191",
             " slyly final deposits haggle regular, pending dependencies. pending escapades wake")),
    11: (1047, ("5182", "7874521.73")),
    13: (41, ("39", "1")),
    14: (0, ("16.38",)),
    15: (0, ("8449", "Supplier#000008449", "Wp34zim9qYFbVctdW", "20-469-856-8873", "1772627.21")),
    16: (0, ("Brand#41", "MEDIUM BRUSHED TIN", "3", "28")),
    18: (56, ("Customer#000088703", "88703", "2995076", "1994-01-30", "363812.12", "302.00")),
    19: (0, ("3083843.06",)),
    20: (185, ("Supplier#000009974", "7wJ,J5DKcxSU4Kp1cQLpbcAvB5AsvKT")),
    21: (99, ("Supplier#000002483", "12")),
    22: (6, ("31", "922", "6806670.18")),
}  # fmt: skip


def test_every_query_has_as_many_rows_as_in_the_kit() -> None:
    assert list(ROWS) == [len(specification_answer(query)) for query in QUERIES]


@pytest.mark.parametrize("query", SOME)
def test_rows_are_those_that_are_printed(query: int) -> None:
    place, row = SOME[query]
    assert row == specification_answer(query)[place]


@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_in_canonical_form_and_right_against_themselves(query: int) -> None:
    answer = specification_answer(query)
    assert answer == canonical_answer(query, answer)
    assert () == check_answer(query, answer)


@given(st.sampled_from(QUERIES), st.data())
@settings(deadline=None, max_examples=60)
def test_one_changed_value_is_found(query: int, data: st.DataObject) -> None:
    answer = specification_answer(query)
    place = data.draw(st.integers(0, len(answer) - 1))
    column = data.draw(st.integers(0, len(answer[0]) - 1))
    row = list(answer[place])
    old = row[column]
    assert old is not None
    # 102 is beyond the tolerance of a sum, and of a share or an average of what is stored.
    row[column] = f"{old}x" if SHAPES[query].columns[column] is ColumnKind.TEXT else str(float(old) * 2 + 102)
    if SHAPES[query].columns[column] is ColumnKind.INTEGER:
        row[column] = str(int(old) + 1)
    differences = check_answer(query, [*answer[:place], tuple(row), *answer[place + 1 :]])
    assert differences
    assert all(sentence.startswith(f"query {query}") for sentence in differences)


def test_a_client_may_print_more_digits_and_blanks() -> None:
    assert () == check_answer(6, [("123141078.2283",)])
    assert () == check_answer(17, [("348406.0542857143",)])
    assert () == check_answer(8, [("1995", "0.0344358904066548"), ("1996", "0.04148552129353032")])
    # As the kit itself rounds it.
    assert () == check_answer(17, [("348406.02",)])
    first, *rest = specification_answer(5)
    assert () == check_answer(5, [(f"{first[0]:25}", "55502041.1697"), *rest])


def test_a_row_more_or_less_is_a_difference() -> None:
    answer = specification_answer(4)
    assert ("query 4: expected 5 rows, found 4",) == check_answer(4, answer[1:])
    assert ("query 4: expected 5 rows, found 6",) == check_answer(4, (*answer, answer[0]))
    assert ("query 6: expected 1 rows, found 0",) == check_answer(6, [])


def test_an_answer_at_another_scale_factor_is_none() -> None:
    assert check_answer(6, [("1193053.2253",)])


@pytest.mark.parametrize("query", [0, 23, -1])
def test_an_unknown_query_is_named(query: int) -> None:
    with pytest.raises(ValueError, match=f"query {query} is not known; TPC-H has queries 1 to 22"):
        specification_answer(query)
    with pytest.raises(ValueError, match="is not known"):
        check_answer(query, [])


def test_rows_of_another_query_are_not_understood() -> None:
    with pytest.raises(OutputNotUnderstood, match="expected 2 columns"):
        check_answer(4, [(*row, "1") for row in specification_answer(4)])
