from __future__ import annotations

from bedplate.statistics.heat_map import effective_cells


def test_cells_in_force_alike_are_one_result_under_two_names() -> None:
    found = effective_cells([("a", "x"), ("b", "y"), ("c", "x"), ("a", "x")])
    assert (("a", "c"),) == found.identical
    assert ("c",) == found.others("a")
    assert () == found.others("b")


def test_a_cell_that_changes_between_visits_is_identical_to_none() -> None:
    found = effective_cells([("a", "x"), ("a", "y"), ("b", "x")])
    assert () == found.identical
    assert ("a",) == found.changing


def test_a_visit_without_a_read_back_says_nothing() -> None:
    found = effective_cells([("a", None), ("b", None)])
    assert () == found.identical
    assert () == found.changing
