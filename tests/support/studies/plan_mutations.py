"""Plans with a few things wrong, drawn from a seed: what a person mistypes, and what a stranger sends."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

# What stands in place of a value: other types, ends of ranges, texts that mean something to somebody.
VALUES = (
    "true",
    "false",
    "0",
    "-1",
    "1e307",
    "1e999",
    "nan",
    "inf",
    "9223372036854775808",
    '""',
    '"inf"',
    '"nan"',
    '"1e307"',
    '"0x10"',
    '"\\u001b[31m"',
    '"\\u202e"',
    '"../../etc/passwd"',
    '"4x memory"',
    '"until steady"',
    '"unlimited"',
    f'"{"9" * 400} GB"',
    f'"{"9" * 400} h"',
    f'"{"x" * 5000}"',
    "{}",
    "[]",
    "[[]]",
    "[{}]",
    "{ vary = [] }",
    "{ vary = [[], {}] }",
    '{ vary = ["wal-append"] }',
    "{ vary = [1, 1] }",
    "{ vary = [1e307, nan] }",
    "{ vary = { vary = [1] } }",
    "1979-05-27T07:32:00Z",
)
_KEYS = ("vary", "type", "job", "name", "run", "scale", "settings", "a.b.c", '"\\u0000"', "cells", "engine")
_SETTINGS = ("checkpoint_completion_target", "checkpoint_timeout", "shared_buffers", "io_method", "a.b")
_LINE = re.compile(r"\s*([A-Za-z_][\w.]*)\s*=\s*(.+)")


def mutated(texts: tuple[str, ...], *, seed: int, count: int) -> Iterator[str]:
    """`count` plans made of these, each with one to four changes; the same ones for the same seed."""
    drawn = random.Random(seed)
    for _ in range(count):
        lines = drawn.choice(texts).splitlines()
        for _ in range(drawn.randint(1, 4)):
            lines = _changed(lines, drawn)
        yield "\n".join(lines) + "\n"


def _changed(lines: list[str], drawn: random.Random) -> list[str]:
    if not lines:
        return [f"title = {drawn.choice(VALUES)}"]
    at = drawn.randrange(len(lines))
    found = _LINE.fullmatch(lines[at])
    match drawn.randrange(8):
        case 0:
            return lines[:at] + lines[at + 1 :]
        case 1:
            return [*lines, *lines[at : at + drawn.randint(1, 6)]]
        case 2:
            return [*lines[:at], f"{drawn.choice(_KEYS)} = {drawn.choice(VALUES)}", *lines[at:]]
        case 3:
            name = drawn.choice(_SETTINGS)
            return [*lines, "[postgresql.settings]", f"{name} = {drawn.choice(VALUES)}"]
        case 4 if found:
            return [*lines[:at], f"{drawn.choice(_KEYS)} = {found[2]}", *lines[at + 1 :]]
        case 5 if lines[at]:
            place = drawn.randrange(len(lines[at]))
            sign = drawn.choice(list('[]{}".=,#\\\n\0-9x'))
            return [*lines[:at], lines[at][:place] + sign + lines[at][place + 1 :], *lines[at + 1 :]]
        case _ if found:
            return [*lines[:at], f"{found[1]} = {drawn.choice(VALUES)}", *lines[at + 1 :]]
    return [line for line in lines if line.strip()]
