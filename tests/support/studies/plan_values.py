"""Plans with one value of another type: every key that a plan may have, with every type that TOML has."""

from __future__ import annotations

import copy
import datetime as dt
import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from bedplate.plan.load import TABLES
from bedplate.plan.table import keys_of

# As TOML is written: each type, and the ends of each.
OF_EVERY_TYPE = (
    '""',
    '"a"',
    '"\\u0000"',
    f'"{"x" * 5000}"',
    "0",
    "-1",
    "9223372036854775807",
    "170141183460469231731687303715884105728",
    "0.5",
    "1e308",
    "nan",
    "inf",
    "-inf",
    "true",
    "1979-05-27",
    "07:32:00",
    "1979-05-27T07:32:00",
    "1979-05-27T07:32:00Z",
    "[]",
    "[[]]",
    "[[[1]]]",
    "[{}]",
    "[{ a = 1 }]",
    '["a", 1, 1.5, true, 1979-05-27]',
    "{}",
    "{ a = 1 }",
    "{ a = { a = 1 } }",
    "{ a = [{ a = 1 }] }",
    "{ vary = [] }",
    "{ vary = [[], {}] }",
    "{ vary = [[1], [1]] }",
    "{ vary = [{ a = 1 }, { a = 1 }] }",
    "{ vary = [nan, nan] }",
    '{ vary = ["a", 1, 0.5, true, ["a"]] }',
    "{ vary = [1979-05-27] }",
    "{ vary = { vary = [1] } }",
    "{ commit = {} }",
    '{ path = "a", commit = { vary = [{}, [1]] } }',
)
# A key on its way down, and the number of a table of a list.
_Path = tuple[str | int, ...]


@dataclass(frozen=True)
class _Text:
    """Stands among values, and is written as it is."""

    text: str


def with_every_type(texts: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Each place of the plans, and each key that their tables may have, with each of the types: its words, and the plan.

    A place that several plans have is tried in the first one alone.
    """
    tried: set[tuple[str, ...]] = set()
    for text in texts:
        values = tomllib.loads(text)
        for path in (*_paths(values), *_keys_left_out(values)):
            place = _place(values, path)
            if place not in tried:
                tried.add(place)
                for value in OF_EVERY_TYPE:
                    yield f"{'.'.join(map(str, path))} = {value:.60}", _with(values, path, value)


def _paths(values: Any, path: _Path = ()) -> Iterator[_Path]:
    if path:
        yield path
    steps = values if isinstance(values, dict) else range(len(values)) if isinstance(values, list) else ()
    for step in steps:
        yield from _paths(values[step], (*path, step))


def _keys_left_out(values: dict[str, Any]) -> Iterator[_Path]:
    for place, table in TABLES.items():
        if place[:1] == ("workload",):
            kind, *inner = place[1:]
            homes: list[_Path] = [
                ("workload", number, *inner)
                for number, each in enumerate(values.get("workload", ()))
                if each.get("type") == kind
            ]
        elif isinstance(values.get("".join(place[:1])), list):
            homes = [(*place, 0)]
        else:
            homes = [place]
        for home in homes:
            yield from ((*home, key) for key in keys_of(table))


def _place(values: Any, path: _Path) -> tuple[str, ...]:
    """The names on the way, and the type of each table there, which says what its keys are."""
    found = []
    for step in path:
        if isinstance(values, dict) and isinstance(values.get("type"), str):
            found.append(f"type={values['type']}")
        if isinstance(step, str):
            found.append(step)
        try:
            values = values[step]
        except (KeyError, IndexError, TypeError):
            values = None
    return tuple(found)


def _with(values: dict[str, Any], path: _Path, text: str) -> str:
    """The plan, each top key on one line, with `text` at a place that may be new."""
    changed: Any = copy.deepcopy(values)
    at = changed
    for step, following in pairwise(path):
        if isinstance(at, dict):
            at = at.setdefault(str(step), [] if isinstance(following, int) else {})
        elif step == len(at):
            at.append({})
            at = at[-1]
        else:
            at = at[step]
        if isinstance(at, list) and isinstance(following, str):
            at = at[0]
    at[path[-1]] = _Text(text)
    return "\n".join(f"{json.dumps(name)} = {_written(each)}" for name, each in changed.items()) + "\n"


def _written(value: Any) -> str:
    if isinstance(value, _Text):
        return value.text
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(name)} = {_written(each)}' for name, each in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False)
