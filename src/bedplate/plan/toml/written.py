"""Values of a plan as the text of a plan file."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from bedplate.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(values: Mapping[str, Any]) -> str:
    """Plain keys first, then a table for each table; what lies deeper stands on one line. PlanError for what no plan has."""
    return "\n".join((*_lines(values, ()), ""))


def toml_value(value: object) -> str:
    """A value on one line."""
    if isinstance(value, str):
        if not value.isprintable():
            raise PlanError(f"{value!r:.200} has characters that are not printable; nothing in a plan has")
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(name)} = {toml_value(each)}' for name, each in value.items())} }}"
    raise PlanError(f"{value!r:.200} is no value of a plan")


def _lines(values: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    plain = {name: each for name, each in values.items() if not _is_table(each) and not _are_tables(each)}
    for name, each in plain.items():
        yield f"{_key(name)} = {toml_value(each)}"
    for name, each in values.items():
        if name in plain:
            continue
        inner = (*path, name)
        heading = ".".join(map(_key, inner))
        for table in (each,) if _is_table(each) else each:
            # A table of tables alone needs no heading of its own.
            if not _is_table(each) or not table or not all(map(_is_table, table.values())):
                yield ""
                yield f"[{heading}]" if _is_table(each) else f"[[{heading}]]"
            yield from _lines(table, inner)


def _is_table(value: object) -> bool:
    """What is varied is a level of its key, and no table of its own."""
    return isinstance(value, dict) and "vary" not in value and "commit" not in value


def _are_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else toml_value(name)
