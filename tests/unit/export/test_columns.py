from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import polars as pl
import pytest

from bedplate.export.columns import RUN_COLUMNS, Column, field_columns, frame
from bedplate.export.tables import FIGURE_COLUMNS, NODES, SEARCH_TABLE, workload_exports
from bedplate.model.reason import Reason, because


class Grade(Enum):
    GOOD = "good"


@dataclass(frozen=True)
class Stone:
    weight_kg: float | None
    count: int
    is_cut: bool
    grade: Grade
    doubts: tuple[Reason, ...] = ()

    @property
    def chips(self) -> int:
        """Two of each."""
        return 2 * self.count


STONE = Stone(None, 3, True, Grade.GOOD, (because("cold", "it is cold"), because("wet", "it is wet")))
COLUMNS = field_columns(Stone, lambda stone: stone, "weight_kg number=count chips is_cut grade doubts")
TABLES: dict[str, tuple[Column[Any], ...]] = {
    "runs": RUN_COLUMNS,
    "figures": FIGURE_COLUMNS,
    "search": SEARCH_TABLE.columns,
    "nodes": NODES.columns,
    **{name: table.columns for export in workload_exports() for name, table in export.tables.items()},
}


def test_a_field_is_a_column_of_its_kind() -> None:
    table = frame(COLUMNS, [STONE, replace(STONE, weight_kg=1.5, doubts=()), None])
    assert table.schema == {
        "weight_kg": pl.Float64,
        "number": pl.Int64,
        "chips": pl.Int64,
        "is_cut": pl.Boolean,
        "grade": pl.String,
        "doubts": pl.String,
    }
    assert table.rows() == [
        (None, 3, 6, True, "good", "it is cold; it is wet"),
        (1.5, 3, 6, True, "good", ""),
        (None, None, None, None, None, None),
    ]


def test_a_table_without_rows_has_its_columns_all_the_same() -> None:
    assert frame(COLUMNS, []).schema == frame(COLUMNS, [STONE]).schema


def test_a_column_of_no_field_is_refused_where_it_is_written() -> None:
    with pytest.raises(AttributeError, match="colour"):
        field_columns(Stone, lambda stone: stone, "count colour")


@pytest.mark.parametrize("name", TABLES)
def test_each_column_has_a_name_of_its_own_and_the_first_has_a_meaning(name: str) -> None:
    names = [column.name for column in TABLES[name]]
    assert sorted({*names}) == sorted(names)
    assert TABLES[name][0].meaning
