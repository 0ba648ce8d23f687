"""Records that a run wrote, one a line; what cannot be read of them is told in a few sentences, however much it is."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TypeVar

from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.model.limits import MOST_LINES

Record = TypeVar("Record")
# A file that is damaged throughout has as many reasons as lines: a reader learns nothing from the sixth.
_MOST_TOLD = 5
# A line that is no record costs ten times what one costs that is.
_MOST_DAMAGED = 10_000


def read_record_lines(
    kind: type[Record], path: Path, *, missing: str
) -> tuple[tuple[Record, ...], tuple[str, ...]]:
    """The records of a file and what is damaged in it, of which the last sentence counts what is not told.

    A line that cannot be read leaves out one that `missing` names, `a point`; the rest is kept.
    """
    try:
        data = codec.read_bytes(path)
    except StudyError as error:
        return (), tuple(error.reasons)
    # Counted before there are any: an empty line takes fifty times the memory of its one byte.
    if (count := data.count(b"\n")) > MOST_LINES:
        return (), (f"{path} is not read: it has {count:,} lines, and at most {MOST_LINES:,} are",)
    count += bool(data) and not data.endswith(b"\n")
    records: list[Record] = []
    told: list[str] = []
    damaged = 0
    for number, line in enumerate(BytesIO(data), start=1):
        try:
            records.append(codec.loads(kind, line.decode(errors="replace"), source=f"{path}, line {number}"))
        except StudyError as error:
            damaged += 1
            if len(told) < _MOST_TOLD:
                told.append(_damage(error.reasons, missing))
            if damaged == _MOST_DAMAGED:
                break
    if damaged > len(told):
        rest = ", and the rest was not tried" if damaged == _MOST_DAMAGED else ""
        told.append(
            f"{damaged - len(told):,} more lines of {path} cannot be read either{rest}; it has {count:,} lines"
        )
    return tuple(records), tuple(told)


def _damage(reasons: tuple[str, ...], missing: str) -> str:
    first, *rest = reasons
    more = f" (and {len(rest):,} more of this line)" if rest else ""
    return f"{first}{more}: {missing} is missing"
