"""Numbers and moments in somebody else's text: one that is none, infinite or absurd is absent."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from bedplate.units import GIB

# No figure of a machine comes near; beyond it nothing can be drawn (`study/impossible.py`).
_LARGEST = 1e15
_LONGEST = 40


def number(told: Any) -> float | None:
    """A number that is not negative; None for anything else."""
    if isinstance(told, bool) or not isinstance(told, (str, int, float)) or len(str(told)) > _LONGEST:
        return None
    # Python takes `1_000`, which nobody prints.
    if isinstance(told, str) and "_" in told:
        return None
    try:
        found = float(told)
    except ValueError:
        return None
    return found if math.isfinite(found) and 0 <= found <= _LARGEST else None


def whole(told: Any) -> int | None:
    """The same of a whole number."""
    found = number(told)
    return int(found) if found is not None and found == int(found) else None


def gibibytes(told: Any) -> int | None:
    """A size in GiB, as bytes."""
    found = number(told)
    size = None if found is None else number(found * GIB)
    return None if size is None else int(size)


def moment(told: Any) -> float | None:
    """A date, or a date with its time, as Unix time; one without a zone is taken for UTC."""
    try:
        found = datetime.fromisoformat(str(told or "")[:_LONGEST])
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
