"""Records to JSON and back, by their own type annotations.

`bedplate run-visit` has only the standard library, so this stands where pydantic stands on the
reading side. A document with a key that the record does not have, or without one that it needs,
is refused with its path: a record is never filled up by guessing.
"""

from __future__ import annotations

import json
import os
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from bedplate.errors import StudyError
from bedplate.model.levels import Levels

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record")


def to_json(value: Any) -> Any:
    """The JSON value of a record: objects for records, lists for tuples, null for None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise TypeError(f"{type(value).__name__} has no place in a record: {value!r}")


def dumps(value: Any, *, indent: int | None = 2) -> str:
    """The JSON text of a record; infinities and not-a-numbers are refused, as JSON has none."""
    return json.dumps(to_json(value), indent=indent, ensure_ascii=False, allow_nan=False)


def from_json(kind: type[Record], value: Any, *, path: str = "") -> Record:
    """The record of type `kind` in a JSON value; StudyError names the place that does not fit."""
    return _decode(kind, value, path or kind.__name__)  # type: ignore[no-any-return]


def loads(kind: type[Record], text: str, *, source: str = "") -> Record:
    """The record of type `kind` in a JSON text."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise StudyError(f"{source or kind.__name__} is not JSON: {error}") from error
    return from_json(kind, value, path=source)


def read(kind: type[Record], path: Path) -> Record:
    """The record in a file; StudyError if it is missing or does not fit."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise StudyError(f"{path} cannot be read: {error.strerror}") from error
    return loads(kind, text, source=str(path))


def write(path: Path, value: Any) -> None:
    """Write a record so that a reader finds the old file or the new one, never half of one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(dumps(value))
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _decode(kind: Any, value: Any, path: str) -> Any:
    origin = get_origin(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        return _decode_union(get_args(kind), value, path)
    if isinstance(kind, type) and is_dataclass(kind):
        return _decode_record(kind, value, path)
    if kind is Levels:
        _expect(isinstance(value, dict), "an object", value, path)
        return Levels(value)
    if origin is tuple:
        _expect(isinstance(value, list), "a list", value, path)
        item = get_args(kind)[0]
        if len(get_args(kind)) == 2 and get_args(kind)[1] is Ellipsis:
            return tuple(_decode(item, entry, f"{path}[{i}]") for i, entry in enumerate(value))
        _expect(len(value) == len(get_args(kind)), f"{len(get_args(kind))} entries", value, path)
        return tuple(
            _decode(part, entry, f"{path}[{i}]")
            for i, (part, entry) in enumerate(zip(get_args(kind), value, strict=True))
        )
    if origin is not None and issubclass(origin, Mapping):
        _expect(isinstance(value, dict), "an object", value, path)
        return {key: _decode(get_args(kind)[1], entry, f"{path}.{key}") for key, entry in value.items()}
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(value)
        except ValueError:
            allowed = ", ".join(str(member.value) for member in kind)
            raise StudyError(f"{path}: expected one of {allowed}, found {value!r}") from None
    return _decode_scalar(kind, value, path)


def _decode_scalar(kind: Any, value: Any, path: str) -> Any:
    if kind is float:
        _expect(isinstance(value, (int, float)) and not isinstance(value, bool), "a number", value, path)
        return float(value)
    if kind is int:
        _expect(isinstance(value, int) and not isinstance(value, bool), "a whole number", value, path)
        return value
    if kind in (str, bool):
        _expect(isinstance(value, kind), kind.__name__, value, path)
        return value
    raise TypeError(f"{path}: no decoder for {kind!r}")


def _decode_union(kinds: tuple[Any, ...], value: Any, path: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    # Exact scalar types first, so that 1 stays a whole number in `int | float` and true a flag.
    for kind in kinds:
        if isinstance(kind, type) and type(value) is kind:
            return value
    reasons: list[str] = []
    for kind in kinds:
        if kind is type(None):
            continue
        try:
            return _decode(kind, value, path)
        except StudyError as error:
            reasons.extend(error.reasons)
    raise StudyError(*reasons)


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


def _decode_record(kind: type[DataclassInstance], value: Any, path: str) -> Any:
    _expect(isinstance(value, dict), f"an object ({kind.__name__})", value, path)
    known = {field.name: field for field in fields(kind)}
    unknown = sorted(set(value) - set(known))
    missing = [
        name
        for name, field in known.items()
        if name not in value and field.default is MISSING and field.default_factory is MISSING
    ]
    if unknown or missing:
        raise StudyError(
            *(f"{path}.{name}: {kind.__name__} has no such field" for name in unknown),
            *(f"{path}.{name}: missing" for name in missing),
        )
    hints = _hints(kind)
    return kind(**{name: _decode(hints[name], entry, f"{path}.{name}") for name, entry in value.items()})


def _expect(fits: bool, expected: str, found: Any, path: str) -> None:  # noqa: FBT001
    if not fits:
        raise StudyError(f"{path}: expected {expected}, found {found!r:.200}")
