from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.export.workbook import (
    NAME_MAX,
    TEXT_MAX,
    cell_text,
    cell_value,
    looks_like_formula,
    sheet_names,
    short_name,
    unique,
)

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)


@settings(deadline=None)
@given(st.lists(ANY_TEXT, max_size=12), st.lists(st.sampled_from(["Look", "Cells", "About"])))
def test_names_of_sheets_are_taken_by_both_programs(wanted: list[str], taken: list[str]) -> None:
    names = sheet_names(wanted, taken)
    assert len(wanted) == len(names)
    folded = [name.casefold() for name in (*names, *dict.fromkeys(taken), "History")]
    assert len(folded) == len(set(folded))
    for name in names:
        assert 0 < len(name.encode("utf-16-le")) // 2 <= 31
        assert not set(name) & set("[]:*?/\\")
        assert not name.startswith("'")
        assert not name.endswith("'")


def test_a_long_name_of_a_sheet_is_cut_visibly_and_stays_unique() -> None:
    first, second = sheet_names(["pgbench " + "x" * 40, "pgbench " + "x" * 50])
    assert first == "pgbench " + "x" * 22 + "…"
    assert second.endswith("… (2)")


def test_a_name_that_leaves_nothing_is_a_sheet_all_the_same() -> None:
    assert ("sheet", "-", "History (2)") == sheet_names(["''", "?", "History"])


@settings(deadline=None)
@given(ANY_TEXT)
def test_every_text_can_be_written_as_xml(text: str) -> None:
    shown = cell_text(text)
    shown.encode("utf-8")
    assert len(text) == len(shown)
    assert not any(ord(letter) < 32 and letter not in "\t\n\r" for letter in shown)


def test_a_text_of_ten_thousand_characters_says_that_it_was_cut() -> None:
    assert cell_text("x" * 10_000) == "x" * TEXT_MAX + "… (10,000 characters)"
    assert cell_text("x" * TEXT_MAX) == "x" * TEXT_MAX
    assert short_name("a\n b" + "c" * 9_997) == "a b" + "c" * (NAME_MAX - 3) + "… (10,000 characters)"


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        (True, "yes"),
        (False, "no"),
        (None, None),
        ("", None),
        (math.nan, None),
        (-math.inf, None),
        (0, 0),
        (0.0, 0.0),
        (2**53, 2**53),
        (2**53 + 1, "9007199254740993"),
        ((1, 2), "(1, 2)"),
    ],
)
def test_what_is_no_number_is_no_number_in_a_cell(found: object, shown: object) -> None:
    assert (shown, type(shown)) == (cell_value(found), type(cell_value(found)))


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "a (2)", "a (2) (2)", "b"]), max_size=12))
def test_unique_names_are_unique_and_keep_their_beginnings(names: list[str]) -> None:
    found = unique(names)
    assert len(names) == len(set(found))
    assert all(one.startswith(name) for one, name in zip(found, names, strict=True))


@pytest.mark.parametrize("text", ["=1+2", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_what_begins_as_a_formula_is_told(text: str) -> None:
    assert looks_like_formula(text)
    assert not looks_like_formula(f"x{text}")
