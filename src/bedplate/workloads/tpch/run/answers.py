"""Right answers: a result in one canonical form, and the comparison of two by the rules of clause 2.1.3.5.

Within a study all cells compute on one and the same data with one engine, so their canonical forms are
equal to the letter. Against the specification's own answers, or another engine's, the clause's tolerances
hold.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING

from bedplate.errors import OutputNotUnderstood

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# A row as a client prints it; None is SQL's null.
Row = tuple[str | None, ...]

_CENT = Decimal("0.01")
_SUM_TOLERANCE = Decimal(100)
_RATIO_TOLERANCE = Decimal("0.01")
_SHOWN_DIFFERENCES = 5


class ColumnKind(Enum):
    """What a column holds, which decides how exact it must be (clause 2.1.3.5 and its comments)."""

    TEXT = "text"
    INTEGER = "integer"
    DECIMAL = "decimal"
    SUM = "sum"
    AVERAGE = "average"
    # A ratio of sums: both rules hold (comment 1).
    SUM_RATIO = "sum and ratio"


@dataclass(frozen=True)
class Shape:
    """The columns of a query's result, and which of them its `order by` names, counted from 0."""

    columns: tuple[ColumnKind, ...]
    order_by: tuple[int, ...] = ()


_T, _I, _D, _S, _A = (
    ColumnKind.TEXT,
    ColumnKind.INTEGER,
    ColumnKind.DECIMAL,
    ColumnKind.SUM,
    ColumnKind.AVERAGE,
)

# SUM(l_quantity) is exact (comment 4), as are sums of ones and zeros (comment 2). Dates are text.
SHAPES: Mapping[int, Shape] = {
    1: Shape((_T, _T, _D, _S, _S, _S, _A, _A, _A, _I), (0, 1)),
    2: Shape((_D, _T, _T, _I, _T, _T, _T, _T), (0, 2, 1, 3)),
    3: Shape((_I, _S, _T, _I), (1, 2)),
    4: Shape((_T, _I), (0,)),
    5: Shape((_T, _S), (1,)),
    6: Shape((_S,)),
    7: Shape((_T, _T, _I, _S), (0, 1, 2)),
    8: Shape((_I, ColumnKind.SUM_RATIO), (0,)),
    9: Shape((_T, _I, _S), (0, 1)),
    10: Shape((_I, _T, _S, _D, _T, _T, _T, _T), (2,)),
    11: Shape((_I, _S), (1,)),
    12: Shape((_T, _I, _I), (0,)),
    13: Shape((_I, _I), (1, 0)),
    14: Shape((ColumnKind.SUM_RATIO,)),
    15: Shape((_I, _T, _T, _T, _S), (0,)),
    16: Shape((_T, _T, _I, _I), (3, 0, 1, 2)),
    17: Shape((ColumnKind.SUM_RATIO,)),
    18: Shape((_T, _I, _I, _T, _D, _D), (4, 3)),
    19: Shape((_S,)),
    20: Shape((_T, _T), (0,)),
    21: Shape((_T, _I), (1, 0)),
    22: Shape((_T, _I, _S), (0,)),
}


def canonical_answer(query: int, rows: Sequence[Sequence[str | None]]) -> tuple[Row, ...]:
    """The result in the form that is compared and hashed.

    Strings without the blanks that `char(n)` pads with, whole numbers without leading zeros, other numbers
    with two digits behind the point (clause 2.1.3.4), half a cent rounded away from zero. Rows keep their
    order; those that the query's `order by` leaves equal are sorted, because any order of theirs is right.
    OutputNotUnderstood for a row of the wrong length or a number that is none.
    """
    shape = SHAPES[query]
    canonical = [_canonical_row(query, shape, row) for row in rows]
    return tuple(row for group in _ties(shape, canonical) for row in sorted(group, key=_sortable))


def answer_digest(query: int, rows: Sequence[Sequence[str | None]]) -> str:
    """SHA-256 of the canonical form, in hexadecimal: equal for equal answers of one engine on one data set."""
    text = "\n".join(
        "|".join("\\N" if value is None else _escaped(value) for value in row)
        for row in canonical_answer(query, rows)
    )
    return hashlib.sha256(f"{query}\n{len(rows)}\n{text}".encode()).hexdigest()


def answer_differences(
    query: int, expected: Sequence[Sequence[str | None]], found: Sequence[Sequence[str | None]]
) -> tuple[str, ...]:
    """One sentence per way in which `found` is not the answer `expected`; empty where it is right.

    At most five, and a count of the rest. A tie that the row limit cuts is told as a difference: with
    prices to the cent it does not come up.
    """
    if len(expected) != len(found):
        return (f"query {query}: expected {len(expected)} rows, found {len(found)}",)
    shape = SHAPES[query]
    found_rows = [_canonical_row(query, shape, row) for row in found]
    reasons: list[str] = []
    start = 0
    for group in _ties(shape, [_canonical_row(query, shape, row) for row in expected]):
        reasons += _group_differences(query, start, group, found_rows[start : start + len(group)])
        start += len(group)
    if len(reasons) > _SHOWN_DIFFERENCES:
        rest = len(reasons) - _SHOWN_DIFFERENCES
        reasons[_SHOWN_DIFFERENCES:] = [f"query {query}: {rest} more rows differ"]
    return tuple(reasons)


def _group_differences(query: int, start: int, expected: list[Row], found: list[Row]) -> list[str]:
    """Pair rows that may stand in any order; `start` is the place of the first."""
    left = list(found)
    missing = []
    for place, row in enumerate(expected, start + 1):
        pair = next((other for other in left if _equal_rows(query, row, other)), None)
        if pair is None:
            missing.append((place, row))
        else:
            left.remove(pair)
    return [
        f"query {query}, row {place}: expected {_shown(row)}, found {_shown(other)}"
        for (place, row), other in zip(missing, left, strict=True)
    ]


def _equal_rows(query: int, expected: Row, found: Row) -> bool:
    return all(
        value == other if value is None or other is None else _EQUAL[kind](value, other)
        for kind, value, other in zip(SHAPES[query].columns, expected, found, strict=True)
    )


def _equal_sums(expected: str, found: str) -> bool:
    return abs(Decimal(found) - Decimal(expected)) <= _SUM_TOLERANCE


def _equal_ratios(expected: str, found: str) -> bool:
    # The clause's 0.99 v <= round(r, 2) <= 1.01 v, written so that a negative v is held to it too. Its v
    # have two digits, as the canonical form has: with more of them 0.034 would be no share of 0.0344.
    value = Decimal(expected)
    return abs(Decimal(found) - value) <= abs(value) * _RATIO_TOLERANCE


def _equal_sum_ratios(expected: str, found: str) -> bool:
    return _equal_sums(expected, found) and _equal_ratios(expected, found)


def _equal_exactly(expected: str, found: str) -> bool:
    return expected == found


_EQUAL: Mapping[ColumnKind, Callable[[str, str], bool]] = {
    ColumnKind.TEXT: _equal_exactly,
    ColumnKind.INTEGER: _equal_exactly,
    ColumnKind.DECIMAL: _equal_exactly,
    ColumnKind.SUM: _equal_sums,
    ColumnKind.AVERAGE: _equal_ratios,
    ColumnKind.SUM_RATIO: _equal_sum_ratios,
}


def _canonical_row(query: int, shape: Shape, row: Sequence[str | None]) -> Row:
    if len(row) != len(shape.columns):
        raise OutputNotUnderstood(
            f"query {query}", expected=f"{len(shape.columns)} columns", found=_shown(tuple(row))
        )
    return tuple(
        None if value is None else _canonical(query, kind, value)
        for kind, value in zip(shape.columns, row, strict=True)
    )


def _canonical(query: int, kind: ColumnKind, value: str) -> str:
    if kind is ColumnKind.TEXT:
        return value.rstrip(" ")
    try:
        number = Decimal(value.strip())
        if kind is not ColumnKind.INTEGER and number.is_finite():
            rounded = number.quantize(_CENT, rounding=ROUND_HALF_UP)
            # There is one zero, though a number just below it rounds to another.
            return str(rounded or abs(rounded))
        if kind is ColumnKind.INTEGER and number == (whole := int(number)):
            return str(whole)
    except (InvalidOperation, ValueError, OverflowError):
        pass
    raise OutputNotUnderstood(f"query {query}", expected=f"a number ({kind.value})", found=value)


def _ties(shape: Shape, rows: list[Row]) -> list[list[Row]]:
    """Rows that follow one another and agree in every column of `order by`, together."""
    return [
        list(group)
        for _, group in groupby(rows, key=lambda row: tuple(row[place] for place in shape.order_by))
    ]


def _sortable(row: Row) -> tuple[tuple[bool, str], ...]:
    return tuple((value is None, value or "") for value in row)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("|", "\\|").replace("\n", "\\n")


def _shown(row: Row) -> str:
    return "(" + ", ".join("null" if value is None else value for value in row) + ")"
