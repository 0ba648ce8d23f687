"""`Levels`: named values of one layer, immutable, ordered by name, and hashable.

The typed records of `cell.py` hold what every implementation shares. `Levels` holds what only
one file system, engine or workload knows (btrfs `nodatacow`, `clients` of a load), so that a new
one is a new file and not a change of the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias, TypeVar

from bedplate.errors import StudyError

Scalar: TypeAlias = str | int | float | bool

Typed = TypeVar("Typed", str, int, float, bool)


def as_in_a_plan(level: Scalar) -> str:
    """A level as a plan file has it: `true` and `false`, else its text without quotes."""
    return str(level).lower() if isinstance(level, bool) else str(level)


class LevelMismatch(StudyError, TypeError):
    """A level is of another kind than its name says: a study that was damaged, or a call that is wrong."""

    code = "level-mismatch"


class Levels(Mapping[str, Scalar]):
    """An immutable mapping from a factor's name to its level; absent means not asked for."""

    __slots__ = ("_pairs",)

    def __init__(self, values: Mapping[str, Scalar] | None = None, /, **keywords: Scalar) -> None:
        merged = {**(values or {}), **keywords}
        for name, value in merged.items():
            if not isinstance(value, (str, int, float, bool)):
                raise TypeError(f"level {name!r} must be a single value, not {value!r}")
        self._pairs: tuple[tuple[str, Scalar], ...] = tuple(sorted(merged.items()))

    def __getitem__(self, name: str) -> Scalar:
        for key, value in self._pairs:
            if key == name:
                return value
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def __hash__(self) -> int:
        return hash(self._pairs)

    def __eq__(self, value: object) -> bool:
        if isinstance(value, Levels):
            return self._pairs == value._pairs
        return NotImplemented

    def __repr__(self) -> str:
        return f"Levels({dict(self._pairs)!r})"

    def updated(self, **keywords: Scalar) -> Levels:
        """The same levels with some replaced or added."""
        return Levels({**dict(self), **keywords})

    def text(self, name: str) -> str | None:
        """The level as text, None where it was not asked for; LevelMismatch if it is of another kind."""
        return self._typed(name, str)

    def integer(self, name: str) -> int | None:
        """The level as a whole number, None where it was not asked for."""
        value = self._typed(name, int)
        if isinstance(value, bool):
            raise LevelMismatch(f"level {name!r} must be a whole number, not {value!r}")
        return value

    def number(self, name: str) -> float | None:
        """The level as a number, None where it was not asked for."""
        if name not in self:
            return None
        value = self[name]
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise LevelMismatch(f"level {name!r} must be a number, not {value!r}")
        return float(value)

    def flag(self, name: str) -> bool | None:
        """The level as true or false, None where it was not asked for."""
        return self._typed(name, bool)

    def _typed(self, name: str, kind: type[Typed]) -> Typed | None:
        if name not in self:
            return None
        value = self[name]
        if not isinstance(value, kind):
            raise LevelMismatch(f"level {name!r} must be {kind.__name__}, not {value!r}")
        return value
