"""What a page's script and a Python module say: their string literals, with what is filled in left open."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support.tools.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

# Where a value is filled in.
HOLE = "\0"
_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r"|(?P<string>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')"
    r"|(?P<template>`)"
    r"|(?P<name>[\w$]+)"
    r"|(?P<regex>/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/[a-z]*)"
    r"|(?P<space>\s+)"
    r"|(?P<mark>.)",
    re.DOTALL,
)
_PIECE = re.compile(r"(?:\\.|\$(?!\{)|[^`\\$])*", re.DOTALL)
_FIELD = re.compile(r"\{[^{} ]*\}")


@dataclass(frozen=True)
class Literal:
    """A text and the line on which it begins; texts that are joined by `+` are one."""

    line: int
    text: str


def script_literals(source: str) -> list[Literal]:
    """The strings and templates of JavaScript as oxfmt formats it."""
    return list(_Script(source).literals())


def python_literals(source: str) -> Iterator[Literal]:
    """The strings of a module but its docstrings, also of fields; an f-string and a template for `format` have holes."""
    passed: set[int] = set()
    for node in nodes(source):
        if isinstance(node, ast.Expr):
            passed.add(id(node.value))
        if id(node) in passed:
            continue
        if isinstance(node, ast.JoinedStr):
            passed |= {id(part) for part in node.values}
            parts = (part.value if isinstance(part, ast.Constant) else HOLE for part in node.values)
            yield Literal(node.lineno, _FIELD.sub(HOLE, "".join(map(str, parts))))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield Literal(node.lineno, _FIELD.sub(HOLE, node.value))


class _Script:
    """Reads a script from its start; a slash begins an expression where no value stands before it."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0

    def literals(self, *, is_hole: bool = False) -> Iterator[Literal]:
        """To the end, or to the brace that closes a hole."""
        text, line, before, open_braces = "", 0, "", 0
        while self._at < len(self._source):
            kind, piece, start = self._next(before)
            if kind in {"comment", "space"}:
                continue
            if kind in {"string", "template"}:
                made = ast.literal_eval(piece) if kind == "string" else None
                if before != "+" and text:
                    yield Literal(line, text)
                    text = ""
                line = line if text else self._source.count("\n", 0, start) + 1
                if made is None:
                    inner: list[Literal] = []
                    made = self._template(inner)
                    yield from inner
                text += made
                before = '"'
                continue
            if text and piece != "+":
                yield Literal(line, text)
                text = ""
            open_braces += (piece == "{") - (piece == "}")
            before = piece
            if is_hole and open_braces < 0:
                break
        if text:
            yield Literal(line, text)

    def _template(self, inner: list[Literal]) -> str:
        text = ""
        while True:
            found = _PIECE.match(self._source, self._at)
            assert found is not None
            text += found.group()
            self._at = found.end()
            if self._source.startswith("`", self._at):
                self._at += 1
                return text
            self._at += len("${")
            text += HOLE
            inner += self.literals(is_hole=True)

    def _next(self, before: str) -> tuple[str, str, int]:
        start = self._at
        found = _TOKEN.match(self._source, start)
        assert found is not None
        kind, piece = str(found.lastgroup), found.group()
        divides = bool(re.fullmatch(r"[\w$]+|[\])\"]", before)) and before != "return"
        if kind == "regex" and divides:
            kind, piece = "mark", "/"
        self._at = start + len(piece)
        return kind, piece, start
