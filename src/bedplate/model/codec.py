"""Records to JSON and back, by their own type annotations.

`bedplate run-visit` has only the standard library, so this stands where pydantic stands on the
reading side. A document with a key that the record does not have, or without one that it needs,
is refused with its path: a record is never filled up by guessing.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import stat
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from io import BufferedReader
from operator import attrgetter
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
from bedplate.model import limits
from bedplate.model.levels import Levels
from bedplate.model.limits import MOST_NAMED_LEVELS, MOST_VALUES, most_bytes_of
from bedplate.model.reason import Reason, of_format_1

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record")

# What every reader of a study's tables can hold; no count of bedplate's comes near it.
_WHOLE_MAX = 2**63 - 1

_PLAIN = frozenset({str, int, float, bool, type(None)})

# From so many words on a record is looked up by them; beyond so many different ones no more are kept.
_WORDS_MIN = 4

_READ_BEFORE_MAX = 4096

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


def named_fields(names: str) -> list[tuple[str, str]]:
    """Fields by the names that a table or a document has for them: `key=field`, or `key` where the two are the same."""
    return [(key, field or key) for key, _, field in (pair.partition("=") for pair in names.split())]


def json_fields(record: object, names: str) -> dict[str, Any]:
    """Some fields of a record and of the records in it, as a document has them; a reason is its sentence."""
    return {key: to_json(attrgetter(field)(record), in_words=True) for key, field in named_fields(names)}


def dumps(value: Any, *, indent: int | None = 2) -> str:
    """The JSON text of a record; infinities and not-a-numbers are refused, as JSON has none."""
    return json.dumps(to_json(value), indent=indent, ensure_ascii=False, allow_nan=False)


def from_json(kind: type[Record], value: Any, *, path: str = "") -> Record:
    """The record of type `kind` in a JSON value; StudyError names the place that does not fit."""
    try:
        return _decoder(kind)(value)  # type: ignore[no-any-return]
    except _Misfit as error:
        raise error.error_at(path or kind.__name__) from None


def loads(kind: type[Record], text: str, *, source: str = "") -> Record:
    """The record of type `kind` in a JSON text."""
    value = parse(text, source=source or kind.__name__)
    try:
        return from_json(kind, value, path=source)
    except RecursionError:
        raise _too_deep(source or kind.__name__) from None


def parse(text: str, *, source: str) -> Any:
    """The JSON value of a text; StudyError, which begins with `source`, where it is none that a record can hold.

    Infinities and not-a-numbers are no JSON, halves of characters no text. An empty list takes twenty times the memory of its two
    characters, so values are counted before there are any.
    """
    values = text.count(",") + text.count("[") + text.count("{")
    if values > MOST_VALUES:
        raise StudyError(f"{source} has some {values:,} values; a document has at most {MOST_VALUES:,}")
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
    """What a plain file holds, within the limit of its kind; StudyError for anything else."""
    most_bytes = most_bytes_of(path.name)
    with opened(path) as file:
        size_bytes = os.fstat(file.fileno()).st_size
        # A file of holes takes no disk and all of the memory.
        data = file.read(size_bytes + 1) if size_bytes <= most_bytes else b""
        if len(data) > size_bytes:
            # It grows meanwhile, or has no size, as what the kernel makes when it is read.
            data += file.read(most_bytes - size_bytes)
            size_bytes = len(data)
    if size_bytes > most_bytes:
        raise StudyError(f"{path} is not read: it has {_more_than(size_bytes, most_bytes, path.name)}")
    return data


@contextmanager
def opened(path: Path) -> Iterator[BufferedReader]:
    """A plain file of a study, to be read; StudyError for anything else, and where it cannot be read.

    A pipe in its place would be waited for without end, a link would lead out of the study.
    """
    try:
        descriptor = limits.open_without_links(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise StudyError(f"{path} cannot be read: it is no plain file")
            yield file
    except OSError as error:
        why = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise StudyError(f"{path} cannot be read: {why}") from error


def encoded(path: Path, text: str) -> bytes:
    """What a file of that name would hold; StudyError where it would be larger than readers take."""
    data = text.encode()
    if len(data) > (most_bytes := most_bytes_of(path.name)):
        raise StudyError(
            f"{path} is not written: it would have {_more_than(len(data), most_bytes, path.name)}"
        )
    return data


def _more_than(size_bytes: int, most_bytes: int, name: str) -> str:
    """How large a file is, and what its kind may have."""
    return f"{size_bytes:,} bytes, and a file {name} has at most {most_bytes:,}"


def decode(data: bytes, *, source: str) -> str:
    """Bytes as text; StudyError names where they are no UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StudyError(f"{source} is no UTF-8: byte {error.start} is {data[error.start]:#04x}") from error


def write(path: Path, value: Any) -> None:
    """Write a record so that a reader finds the old file or the new one, never half of one.

    StudyError where it would be larger than readers take.
    """
    _replace_file(path, encoded(path, f"{dumps(value)}\n"))


def write_text(path: Path, text: str) -> None:
    """Write a text likewise, however long: no reader of ours takes it. Where a link stands it is replaced, and what it leads to stays."""
    _replace_file(path, text.encode())


def _replace_file(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    temporary.unlink(missing_ok=True)
    with temporary.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


@cache
def _field_names(kind: type) -> tuple[str, ...] | None:
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None


class _Misfit(Exception):
    """A value that does not fit: where it stands below what is being read, from within outwards, and why."""

    def __init__(self, *reasons: tuple[tuple[str | int, ...], str]) -> None:
        self.found = reasons
        super().__init__(reasons)

    def within(self, name: str | int) -> _Misfit:
        """The same, as the value around it sees it."""
        return _Misfit(*(((name, *path), words) for path, words in self.found))

    def error_at(self, path: str) -> StudyError:
        """With the place spelled out, which is done for a value that does not fit alone."""
        steps = (
            ("".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in own), words)
            for own, words in self.found
        )
        return StudyError(*(f"{path}{where}{words}" for where, words in steps))


# Made once for each type: a study of hundreds of cells has a hundred thousand figures to read.
_Decoder: TypeAlias = Callable[[Any], Any]


def _decoder(kind: Any) -> _Decoder:
    return _decoder_of(kind)


@cache
def _decoder_of(kind: Any) -> _Decoder:
    origin = get_origin(kind)
    if kind is Any:
        return lambda value: value
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


def _levels(value: Any) -> Levels:
    if not isinstance(value, dict):
        raise _misfit("an object", value)
    if len(value) > MOST_NAMED_LEVELS:
        raise _misfit(f"at most {MOST_NAMED_LEVELS} levels", value)
    for name, level in value.items():
        kind = type(level)
        if kind not in (str, bool):
            try:
                (_LEVEL_NUMBERS.get(kind) or _decoder(str))(level)
            except _Misfit as error:
                raise error.within(name) from None
    return Levels(value)


def _reason_decoder() -> _Decoder:
    record = _record_decoder(Reason)
    # A text stands in the place of a reason in studies of format 1 alone.
    return lambda value: of_format_1(value) if isinstance(value, str) else record(value)


def _tuple_decoder(kinds: tuple[Any, ...]) -> _Decoder:
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        item = _decoder(kinds[0])

        def decode_all(value: Any) -> Any:
            if not isinstance(value, list):
                raise _misfit("a list", value)
            made: list[Any] = []
            try:
                for entry in value:
                    made.append(item(entry))  # noqa: PERF401 -- its length says which entry does not fit
            except _Misfit as error:
                raise error.within(len(made)) from None
            return tuple(made)

        return decode_all
    items = [_decoder(kind) for kind in kinds]

    def decode_each(value: Any) -> Any:
        if not isinstance(value, list):
            raise _misfit("a list", value)
        if len(value) != len(items):
            raise _misfit(f"{len(items)} entries", value)
        made: list[Any] = []
        try:
            for decode, entry in zip(items, value, strict=True):
                made.append(decode(entry))
        except _Misfit as error:
            raise error.within(len(made)) from None
        return tuple(made)

    return decode_each


def _mapping_decoder(kind: Any) -> _Decoder:
    item = _decoder(kind)

    def decode(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _misfit("an object", value)
        made = {}
        key = ""
        try:
            for key, entry in value.items():
                made[key] = item(entry)
        except _Misfit as error:
            raise error.within(key) from None
        return made

    return decode


def _enum_decoder(kind: type[Enum]) -> _Decoder:
    members = {member.value: member for member in kind}

    def decode(value: Any) -> Any:
        try:
            return members[value]
        except (KeyError, TypeError):
            allowed = ", ".join(str(member.value) for member in kind)
            raise _misfit(f"one of {allowed}", value) from None

    return decode


def _scalar_decoder(kind: Any) -> _Decoder:
    if kind not in (float, int, str, bool):
        raise TypeError(f"no decoder for {kind!r}")
    words = {float: "a number", int: "a whole number"}.get(kind, kind.__name__)

    def decode(value: Any) -> Any:
        # By its exact type: JSON has no other kinds, and true is not 1.
        if type(value) is kind:
            if kind is float and not math.isfinite(value):
                raise _misfit("a finite number", value)
            if kind is int and abs(value) > _WHOLE_MAX:
                raise _misfit("a whole number of at most 63 bits", value)
            return value
        if kind is float and type(value) is int and abs(value) <= _WHOLE_MAX:
            return float(value)
        raise _misfit(words, value)

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

    def decode(value: Any) -> Any:
        if (found := exact.get(type(value))) is not None:
            return found(value)
        reasons: list[tuple[tuple[str | int, ...], str]] = []
        for attempt in others:
            try:
                return attempt(value)
            except _Misfit as error:
                reasons.extend(error.found)
        raise _Misfit(*reasons)

    return decode


def _exact_decoder(kind: type) -> _Decoder:
    return _scalar_decoder(kind) if kind in (int, float) else lambda value: value


def _record_decoder(kind: type[DataclassInstance]) -> _Decoder:
    known = frozenset(field.name for field in fields(kind))
    needed = frozenset(
        field.name for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING
    )
    hints = get_type_hints(kind)
    # Filled when the first one is read: a record may hold records of its own kind.
    decoders: dict[str, _Decoder] = {}
    # Figures differ in their value alone: the words beside it are read once for all that have the same ones.
    words = tuple(name for name, hint in hints.items() if _is_word(hint))
    words = words if len(words) >= _WORDS_MIN else ()
    read_before: dict[tuple[Any, ...], dict[str, Any]] = {}
    # What is taken as it stands, by its exact type: most fields, and a call for each of them is most of the time.
    plain = {name: _taken_as_it_stands(hint) for name, hint in hints.items()}
    others: list[tuple[str, frozenset[type], _Decoder]] = []
    construct = _constructor(kind)

    def decode(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _misfit(f"an object ({kind.__name__})", value)
        # Only of a whole record: a field that is left out is not one that is null.
        if words and value.keys() == known:
            try:
                before = read_before.get(tuple(map(value.get, words)))
            except TypeError:
                # In the place of a word is what has no hash: it is refused below.
                before = None
            if before is not None:
                made = before.copy()
                name = ""
                try:
                    for name, taken, read_one in others:
                        entry = value[name]
                        made[name] = entry if type(entry) in taken else read_one(entry)
                except _Misfit as error:
                    raise error.within(name) from None
                return construct(made)
        elif not (value.keys() <= known and needed <= value.keys()):
            raise _Misfit(
                *(((name,), f": {kind.__name__} has no such field") for name in sorted(set(value) - known)),
                *(
                    ((field.name,), ": missing")
                    for field in fields(kind)
                    if field.name in needed - set(value)
                ),
            )
        if not decoders:
            decoders.update((name, _decoder(_not_none(hints[name]))) for name in known)
            others.extend((name, plain[name], decoders[name]) for name in hints if name not in words)
        made = {}
        name = ""
        try:
            for name, entry in value.items():
                made[name] = entry if type(entry) in plain[name] else decoders[name](entry)
        except _Misfit as error:
            raise error.within(name) from None
        if words and value.keys() == known and len(read_before) < _READ_BEFORE_MAX:
            read_before[tuple(map(value.get, words))] = {name: made[name] for name in words}
        return construct(made)

    return decode


def _not_none(hint: Any) -> Any:
    """What is left to be read of a field that may be null, as null is taken as it stands."""
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    is_union = get_origin(hint) in (Union, types.UnionType)
    return kinds[0] if is_union and len(kinds) == 1 else hint


def _is_word(hint: Any) -> bool:
    return hint is str or (isinstance(hint, type) and issubclass(hint, Enum))


def _constructor(kind: type[DataclassInstance]) -> Callable[[dict[str, Any]], Any]:
    """Makes a record of its fields, those at their defaults left out.

    A frozen record sets each field by a call, which is half of the time of reading it. One that checks nothing when it is
    made gets all of them at once.
    """
    checks = hasattr(kind, "__post_init__") or hasattr(kind, "__slots__")
    if checks or any(field.default_factory is not MISSING for field in fields(kind)):
        return lambda made: kind(**made)
    usual = {field.name: field.default for field in fields(kind) if field.default is not MISSING}
    count = len(fields(kind))

    def construct(values: dict[str, Any]) -> Any:
        record = object.__new__(kind)
        object.__setattr__(record, "__dict__", values if len(values) == count else {**usual, **values})
        return record

    return construct


def _taken_as_it_stands(hint: Any) -> frozenset[type]:
    """Of the types that a field may have those that nothing else is asked of."""
    kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return frozenset(kind for kind in kinds if kind in (str, bool, type(None)))


def _misfit(expected: str, value: Any) -> _Misfit:
    return _Misfit(((), f": expected {expected}, found {value!r:.200}"))
