"""Dips are found where they came up, and scatter is not taken for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bedplate.statistics.drift import dips

if TYPE_CHECKING:
    from collections.abc import Sequence


def study(*cells: Sequence[float]) -> list[tuple[str, float]]:
    return [(f"cell {number}", value) for number, values in enumerate(cells) for value in values]


def test_one_of_three_runs_that_lost_half_is_found_beside_a_quiet_cell() -> None:
    (found,) = dips(study([1000, 520, 1010], [990, 1003, 1008]))
    assert ("cell 0", 1, 3) == (found.group, found.dipped, found.n)
    assert 0.517 == pytest.approx(found.ratio, abs=1e-3)


def test_dips_do_not_hide_each_other() -> None:
    cells = [1000, 1010, 500, 990, 1005, 510, 1000, 1002, 995, 490]
    (found,) = dips(study(cells, [1000.0 + each for each in range(10)]))
    assert (3, 10) == (found.dipped, found.n)


def test_a_run_that_was_faster_is_no_dip() -> None:
    assert () == dips(study([1000, 2000, 1010, 1005, 995], [990, 1003, 1008, 1001, 1000]))


def test_a_cell_that_is_slow_in_half_of_its_runs_has_two_levels_and_no_dips() -> None:
    assert () == dips(study([1000, 500, 1010, 505], [990, 1003, 1008, 1001]))


def test_two_values_and_no_values_say_nothing() -> None:
    assert () == dips(study([1000, 500]))
    assert () == dips([])


def test_values_without_any_scatter_are_judged_all_the_same() -> None:
    (found,) = dips(study([1000, 1000, 500, 1000, 1000], [900] * 5))
    assert (1, 5, 0.0) == (found.dipped, found.n, found.p_value)


@pytest.mark.parametrize("repetitions", [3, 5, 10])
def test_equal_scatter_is_hardly_ever_called_a_dip(repetitions: int) -> None:
    random = np.random.default_rng(repetitions)
    told = sum(
        bool(dips(study(*np.exp(random.normal(0, 0.1, (6, repetitions))).tolist()))) for _ in range(200)
    )
    assert told <= 10
