"""A text to the values that TOML means; refused before parsing where that would take minutes."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from bedplate.errors import PlanError
from bedplate.plan.words import shown

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
        raise PlanError(f"not TOML: {message if len(message) <= 300 else shown(message)}") from None


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
