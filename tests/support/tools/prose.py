"""Sentences of what a user reads: of Markdown, of comments, of templates, of the literals of a program."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from tests.support.tools.literals import HOLE, python_literals, script_literals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from markdown_it.token import Token

# What code and values become: one word, whatever is in them.
_ONE_WORD = "x"
_MARKDOWN = MarkdownIt("commonmark").enable("table")
# A sentence ends at these where a space follows: "1.5" and "e.g. this" go on. A middle dot is between things, not words.
_END = re.compile(r"(?<!e\.g\.)(?<!i\.e\.)(?<!cf\.)(?<=[.!?])[\")”’*]*(?:\s+|$)|\n\s*\n| · ")
_COMMENT = re.compile(r"^\s*#\s?(.*)$")
_TEMPLATE_HOLE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
# A sentence that a template gives to a macro: two words at least.
_TEMPLATE_LITERAL = re.compile(r'"([^"\n]*\w [^"\n]*)"')
_TEMPLATE_ENDS = re.compile(
    r"\{%.*?%\}|\{#.*?#\}|<pre.*?</pre>|</?(?:p|li|h\d|dt|dd|td|th|tr|summary|figcaption|div|label|option|button)\b[^>]*>",
    re.DOTALL,
)
# Statements of SQL, and XML.
_PROGRAM = re.compile(r"(?:SELECT|UNION|WITH|INSERT|CREATE)\b|<")
_TAG = re.compile(r"<[^>]*>")


@dataclass(frozen=True)
class Sentence:
    """A sentence and the line on which its block begins."""

    line: int
    text: str


def sentences(line: int, block: str) -> Iterator[Sentence]:
    """Those of one block of text: what comes in two blocks is never one sentence."""
    for piece in _END.split(block.replace(HOLE, _ONE_WORD)):
        if text := " ".join(piece.split()):
            yield Sentence(line, text)


def of_markdown(source: str) -> Iterator[Sentence]:
    """Of paragraphs, headings, items and cells of tables; blocks of code have none."""
    first = 0
    for token in _MARKDOWN.parse(source):
        # A cell has no place of its own: its row has.
        first = token.map[0] if token.map else first
        if token.type == "inline":
            yield from sentences(first + 1, "".join(_inline(token.children or ())))


def of_comments(source: str) -> Iterator[Sentence]:
    """Of lines that begin with `#`: those that follow one another are a block, an empty one ends it."""
    block: list[str] = []
    begin = 0
    for number, line in enumerate([*source.splitlines(), ""], 1):
        found = _COMMENT.match(line)
        # What is indented in a comment is an example.
        if found and found[1].strip() and not found[1].startswith("  "):
            begin = begin if block else number
            block.append(found[1])
        elif block:
            yield from sentences(begin, _plain(" ".join(block)))
            block = []


def of_template(source: str) -> Iterator[Sentence]:
    """Of a page's template, without its tags; a value is one word. What stands in quotes in a hole is read too."""
    for hole in _TEMPLATE_HOLE.finditer(source):
        for literal in _TEMPLATE_LITERAL.finditer(hole[0]):
            line = source.count("\n", 0, hole.start() + literal.start()) + 1
            yield from sentences(line, _TAG.sub("", literal[1]))
    at = 0
    text = _TEMPLATE_HOLE.sub(lambda found: _ONE_WORD + "\n" * found[0].count("\n"), source)
    for piece in _TEMPLATE_ENDS.split(text):
        begin = source.count("\n", 0, source.find(piece.strip()[:40], at)) + 1 if piece.strip() else 1
        yield from sentences(begin, _TAG.sub("", piece))


def of_python(source: str) -> Iterator[Sentence]:
    """Of a module's literals; docstrings are for those who read it, and what has no space is a name.

    A literal of several lines is a program or a file of its own, and so are a statement of SQL and XML.
    """
    for literal in python_literals(source):
        text = literal.text.strip()
        if " " in text and "\n" not in text and not _PROGRAM.match(text):
            yield from sentences(literal.line, _plain(text))


def of_help(text: str) -> Iterator[Sentence]:
    """Of the help of a command or an option, whose paragraphs are parted by empty lines."""
    yield from sentences(1, _plain(text))


def of_script(source: str) -> Iterator[Sentence]:
    """Of the literals of JavaScript."""
    for literal in script_literals(source):
        if " " in literal.text.strip():
            yield from sentences(literal.line, _TAG.sub("", literal.text))


def _plain(text: str) -> str:
    return re.sub(r"`[^`]*`", _ONE_WORD, text)


def _inline(tokens: Iterable[Token]) -> Iterator[str]:
    for token in tokens:
        match token.type:
            case "code_inline" | "image" | "html_inline":
                yield _ONE_WORD
            case "softbreak" | "hardbreak":
                yield " "
            case _:
                yield token.content
