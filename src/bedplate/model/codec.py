"""Records to JSON and back, by their own type annotations.

`bedplate run-visit` has only the standard library, so this stands where pydantic stands on the
reading side. A document with a key that the record does not have, or without one that it needs,
is refused with its path: a record is never filled up by guessing.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    NoReturn,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from bedplate.errors import StudyError
from bedplate.model.levels import Levels
from bedplate.model.reason import Reason, of_format_1

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record")

# What every reader of a study's tables can hold; no count of bedplate's comes near it.
_WHOLE_MAX = 2**63 - 1
_PLAIN = frozenset({str, int, float, bool, type(None)})
# Half of a character, which no text can be written with. bedplate itself writes characters as they are.
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def to_json(value: Any, *, in_words: bool = False) -> Any:
    """The JSON value of a record: objects for records, lists for tuples, null for None.

    `in_words`: a reason is its sentence, as in every document that is no study.
    """
    kind: Any = type(value)
    # Most values, and the reader of the counters pays for each of them while something is measured.
    if kind in _PLAIN:
        return value
    if in_words and kind is Reason:
        return value.sentence
    if (names := _field_names(kind)) is not None:
        return {name: to_json(getattr(value, name), in_words=in_words) for name in names}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): to_json(item, in_words=in_words) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item, in_words=in_words) for item in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (str, int, float)):
        return value
    raise TypeError(f"{kind.__name__} has no place in a record: {value!r}")


def dumps(value: Any, *, indent: int | None = 2) -> str:
    """The JSON text of a record; infinities and not-a-numbers are refused, as JSON has none."""
    return json.dumps(to_json(value), indent=indent, ensure_ascii=False, allow_nan=False)


def from_json(kind: type[Record], value: Any, *, path: str = "") -> Record:
    """The record of type `kind` in a JSON value; StudyError names the place that does not fit."""
    return _decoder(kind)(value, _Place(None, path or kind.__name__))  # type: ignore[no-any-return]


def loads(kind: type[Record], text: str, *, source: str = "") -> Record:
    """The record of type `kind` in a JSON text."""
    value = parse(text, source=source or kind.__name__)
    try:
        return from_json(kind, value, path=source)
    except RecursionError:
        raise _too_deep(source or kind.__name__) from None


def parse(text: str, *, source: str) -> Any:
    """The JSON value of a text; StudyError, which begins with `source`, where it is none that a record can hold.

    Infinities and not-a-numbers are no JSON, halves of characters no text.
    """
    try:
        value = json.loads(text, parse_constant=_no_number)
        if _HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise _too_deep(source) from None
    except UnicodeEncodeError:
        raise StudyError(f"{source} has half of a character in a text (\\ud800 to \\udfff)") from None
    except ValueError as error:
        raise StudyError(f"{source} is not JSON: {error}") from error
    return value


def read(kind: type[Record], path: Path) -> Record:
    """The record in a file; StudyError if it is missing or does not fit."""
    return loads(kind, read_text(path), source=str(path))


def read_text(path: Path) -> str:
    """The text of a file of a study; StudyError names one that is missing, no plain file or no UTF-8."""
    return decode(read_bytes(path), source=str(path))


def read_bytes(path: Path) -> bytes:
    """What a plain file holds; StudyError for anything else. A pipe in its place would be waited for without end."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise StudyError(f"{path} cannot be read: it is no plain file")
            return file.read()
    except OSError as error:
        raise StudyError(f"{path} cannot be read: {error.strerror}") from error


def decode(data: bytes, *, source: str) -> str:
    """Bytes as text; StudyError names where they are no UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StudyError(f"{source} is no UTF-8: byte {error.start} is {data[error.start]:#04x}") from error


def write(path: Path, value: Any) -> None:
    """Write a record so that a reader finds the old file or the new one, never half of one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(dumps(value))
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


@cache
def _field_names(kind: type) -> tuple[str, ...] | None:
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None


class _Place:
    """Where a value stands in its document; spelled out only for a value that does not fit."""

    __slots__ = ("name", "parent")

    def __init__(self, parent: _Place | None, name: str | int) -> None:
        self.parent = parent
        self.name = name

    def __str__(self) -> str:
        if self.parent is None:
            return str(self.name)
        return f"{self.parent}[{self.name}]" if isinstance(self.name, int) else f"{self.parent}.{self.name}"


# Made once for each type: a study of hundreds of cells has a hundred thousand figures to read.
_Decoder: TypeAlias = Callable[[Any, _Place], Any]


def _decoder(kind: Any) -> _Decoder:
    return _decoder_of(kind)


@cache
def _decoder_of(kind: Any) -> _Decoder:
    origin = get_origin(kind)
    if kind is Any:
        return lambda value, _: value
    if origin in (Union, types.UnionType):
        return _union_decoder(get_args(kind))
    if kind is Reason:
        return _reason_decoder()
    if isinstance(kind, type) and is_dataclass(kind):
        return _record_decoder(kind)
    if kind is Levels:
        return _levels
    if origin is tuple:
        return _tuple_decoder(get_args(kind))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_decoder(get_args(kind)[1])
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _enum_decoder(kind)
    return _scalar_decoder(kind)


def _levels(value: Any, place: _Place) -> Levels:
    if not isinstance(value, dict):
        raise _misfit("an object", value, place)
    for name, level in value.items():
        kind = type(level)
        if kind not in (str, bool):
            (_LEVEL_NUMBERS.get(kind) or _decoder(str))(level, _Place(place, name))
    return Levels(value)


def _reason_decoder() -> _Decoder:
    record = _record_decoder(Reason)
    # A text stands in the place of a reason in studies of format 1 alone.
    return lambda value, place: of_format_1(value) if isinstance(value, str) else record(value, place)


def _tuple_decoder(kinds: tuple[Any, ...]) -> _Decoder:
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        item = _decoder(kinds[0])

        def decode_all(value: Any, place: _Place) -> Any:
            if not isinstance(value, list):
                raise _misfit("a list", value, place)
            return tuple([item(entry, _Place(place, i)) for i, entry in enumerate(value)])

        return decode_all
    items = [_decoder(kind) for kind in kinds]

    def decode_each(value: Any, place: _Place) -> Any:
        if not isinstance(value, list):
            raise _misfit("a list", value, place)
        if len(value) != len(items):
            raise _misfit(f"{len(items)} entries", value, place)
        return tuple(
            decode(entry, _Place(place, i))
            for i, (decode, entry) in enumerate(zip(items, value, strict=True))
        )

    return decode_each


def _mapping_decoder(kind: Any) -> _Decoder:
    item = _decoder(kind)

    def decode(value: Any, place: _Place) -> Any:
        if not isinstance(value, dict):
            raise _misfit("an object", value, place)
        return {key: item(entry, _Place(place, key)) for key, entry in value.items()}

    return decode


def _enum_decoder(kind: type[Enum]) -> _Decoder:
    members = {member.value: member for member in kind}

    def decode(value: Any, place: _Place) -> Any:
        try:
            return members[value]
        except (KeyError, TypeError):
            allowed = ", ".join(str(member.value) for member in kind)
            raise StudyError(f"{place}: expected one of {allowed}, found {value!r:.200}") from None

    return decode


def _scalar_decoder(kind: Any) -> _Decoder:
    if kind not in (float, int, str, bool):
        raise TypeError(f"no decoder for {kind!r}")
    words = {float: "a number", int: "a whole number"}.get(kind, kind.__name__)

    def decode(value: Any, place: _Place) -> Any:
        # By its exact type: JSON has no other kinds, and true is not 1.
        if type(value) is kind:
            if kind is float and not math.isfinite(value):
                raise _misfit("a finite number", value, place)
            if kind is int and abs(value) > _WHOLE_MAX:
                raise _misfit("a whole number of at most 63 bits", value, place)
            return value
        if kind is float and type(value) is int and abs(value) <= _WHOLE_MAX:
            return float(value)
        raise _misfit(words, value, place)

    return decode


_LEVEL_NUMBERS = {kind: _scalar_decoder(kind) for kind in (int, float)}


def _too_deep(source: str) -> StudyError:
    return StudyError(f"{source} is no record: it is nested too deeply")


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _union_decoder(kinds: tuple[Any, ...]) -> _Decoder:
    # Exact scalar types first, so that 1 stays a whole number in `int | float` and true a flag.
    exact = {kind: _exact_decoder(kind) for kind in kinds if isinstance(kind, type)}
    others = [_decoder(kind) for kind in kinds if kind is not type(None)]

    def decode(value: Any, place: _Place) -> Any:
        if (found := exact.get(type(value))) is not None:
            return found(value, place)
        reasons: list[str] = []
        for attempt in others:
            try:
                return attempt(value, place)
            except StudyError as error:
                reasons.extend(error.reasons)
        raise StudyError(*reasons)

    return decode


def _exact_decoder(kind: type) -> _Decoder:
    return _scalar_decoder(kind) if kind in (int, float) else lambda value, _: value


def _record_decoder(kind: type[DataclassInstance]) -> _Decoder:
    known = frozenset(field.name for field in fields(kind))
    needed = frozenset(
        field.name for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING
    )
    hints = get_type_hints(kind)
    # Filled when the first one is read: a record may hold records of its own kind.
    decoders: dict[str, _Decoder] = {}

    def decode(value: Any, place: _Place) -> Any:
        if not isinstance(value, dict):
            raise _misfit(f"an object ({kind.__name__})", value, place)
        if not (value.keys() <= known and needed <= value.keys()):
            raise StudyError(
                *(
                    f"{place}.{name}: {kind.__name__} has no such field"
                    for name in sorted(set(value) - known)
                ),
                *(
                    f"{place}.{field.name}: missing"
                    for field in fields(kind)
                    if field.name in needed - set(value)
                ),
            )
        if not decoders:
            decoders.update((name, _decoder(hints[name])) for name in known)
        return kind(**{name: decoders[name](entry, _Place(place, name)) for name, entry in value.items()})

    return decode


def _misfit(expected: str, found: Any, place: _Place) -> StudyError:
    return StudyError(f"{place}: expected {expected}, found {found!r:.200}")
