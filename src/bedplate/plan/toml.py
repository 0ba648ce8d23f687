"""Plans as texts: read, written, and kept to one cell."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from bedplate.errors import PlanError
from bedplate.plan.words import in_quotes

MOST_CHARACTERS = 1_000_000

# A plan needs five. The parser's time grows with the square of them: 50,000 took it minutes.
MOST_KEY_PARTS = 16

# One word of a line. A text that is not closed ends with its line, so that no character is read twice.
_WORD = re.compile(
    r"""(?P<comment>\#.*)|(?P<dot>\.)|(?P<blank>[ \t]++)"""
    r"""|(?P<part>[A-Za-z0-9_-]++|"(?:[^"\\]|\\.)*+"?|'[^']*+'?)|(?P<other>.)"""
)


def parse_toml(text: str) -> dict[str, Any]:
    """The values of a TOML text; PlanError says why it is none, or is refused for its size."""
    if len(text) > MOST_CHARACTERS:
        raise PlanError(f"the text has {len(text)} characters; allowed are {MOST_CHARACTERS}")
    for number, line in enumerate(text.split("\n"), start=1):
        # Most lines have no such number of dots, and need no second look.
        if line.count(".") >= MOST_KEY_PARTS and _longest_key(line) > MOST_KEY_PARTS:
            raise PlanError(
                f"line {number} has a key of more than {MOST_KEY_PARTS} parts with dots between them"
            )
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise PlanError("not TOML: nested too deeply") from None
    except ValueError as error:
        message = str(error)
        raise PlanError(f"not TOML: {message if len(message) <= 300 else in_quotes(message)}") from None


def _longest_key(line: str) -> int:
    """The most parts that follow each other with nothing but dots and blanks between them."""
    longest = parts = 0
    continues = False
    for word in _WORD.finditer(line):
        kind = word.lastgroup
        if kind == "part":
            parts = parts + 1 if continues else 1
            longest = max(longest, parts)
            continues = False
        elif kind == "dot":
            continues = True
        elif kind != "blank":
            continues = False
    return longest


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
