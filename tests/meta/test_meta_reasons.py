"""Decisions read the codes and values of reasons: nothing in the product searches their sentences.

What a foreign program said may be searched: it has no codes, and is kept apart (`BedplateError.said`).
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Protocol

import pytest
from tests.support.tools.syntax import tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_INSTEAD = "its code or its values (bedplate.model.reason), or what the foreign program said (error.said)"
_ONE = frozenset({"reason", "sentence", "problem", "note", "doubt", "remark"})
_SEVERAL = frozenset(f"{name}s" for name in _ONE)
_SEARCHES = frozenset(
    {
        *("startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition"),
        *("split", "rsplit", "find", "rfind", "index", "count"),
    }
)
_PATTERNS = frozenset({"search", "match", "fullmatch", "findall", "finditer"})
# Of a text that stays the same text.
_SAME = frozenset({"casefold", "lower", "upper", "strip", "lstrip", "rstrip"})
_ERRORS = frozenset({"error", "failure"})

# (path, name of the function) -> the reason why it may.
_ALLOWED: dict[tuple[str, str], str] = {
    ("src/bedplate/model/reason.py", "of_format_1"): "the one place where sentences of format 1 are read",
    ("src/bedplate/analysis/comparison.py", "_is_meant"): "the words are the asker's own",
    (
        "src/bedplate/executors/slurm/controller.py",
        "is_held",
    ): "a reason of Slurm's own, which is one of its words",
}


class _Judge(Protocol):
    def __call__(self, findings: Sequence[str]) -> None: ...


class _Source(Protocol):
    path: str
    text: str


def _name_of(node: ast.expr) -> str:
    """`found.reason` and `the_reason` are both a reason."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.rpartition("_")[2]


def _is_text(node: ast.expr) -> bool:
    """Whether an expression is the sentence of a reason, as far as its words tell."""
    match node:
        case ast.Name() | ast.Attribute():
            return _name_of(node) in _ONE
        case ast.Subscript(value=value):
            return _name_of(value) in _SEVERAL
        case ast.Call(func=ast.Name(id="str"), args=[inner]):
            return _is_text(inner) or _name_of(inner) in _ERRORS
        case ast.Call(func=ast.Attribute(attr="join"), args=[inner]):
            return _name_of(inner) in _SEVERAL
        case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in _SAME:
            return _is_text(value)
        case ast.JoinedStr(values=values):
            inside = [part.value for part in values if isinstance(part, ast.FormattedValue)]
            return any(_is_text(each) or _name_of(each) in _ERRORS for each in inside)
    return False


def _is_words(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _searched(node: ast.AST) -> bool:
    """Whether a call or a comparison looks into a sentence."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr=attr), args=args) if attr in _SEARCHES:
            # `split()` alone only evens out blanks.
            return bool(args) and _is_text(value)
        case ast.Call(func=ast.Attribute(attr=attr), args=args) if attr in _PATTERNS:
            return any(map(_is_text, args))
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[right]):
            return _is_text(right) or (_is_words(left) and _name_of(right) in _SEVERAL)
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
            return (_is_text(left) and _is_words(right)) or (_is_text(right) and _is_words(left))
    return False


def _named(node: ast.AST, function: str = "") -> Iterator[tuple[ast.AST, str]]:
    """Every node below one, with the function that it stands in."""
    for child in ast.iter_child_nodes(node):
        inside = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
        yield child, inside
        yield from _named(child, inside)


def searched_sentences(path: str, text: str) -> list[tuple[str, int]]:
    """The functions in which a sentence is searched, with the line."""
    return [
        (function, getattr(node, "lineno", 0)) for node, function in _named(tree(text)) if _searched(node)
    ]


# The same of the page's scripts, by a name before a method that looks into a text.
_SCRIPT = re.compile(
    rf"\b(?:\w*(?:{'|'.join(name.title() for name in _ONE)})|{'|'.join(_ONE)}|(?:{'|'.join(_SEVERAL)})\[\w+\])\??"
    r"\.(?:startsWith|endsWith|includes|indexOf|match|replace|search|split)\("
    rf"|\.test\((?:{'|'.join(_ONE)})\b"
)


def searched_in_scripts(text: str) -> list[int]:
    """The lines of a script in which a sentence is searched."""
    return [number for number, line in enumerate(text.split("\n"), start=1) if _SCRIPT.search(line)]


def _not_allowed(sources: Iterable[_Source]) -> Iterator[str]:
    for source in sources:
        if not source.path.startswith("src/"):
            continue
        if source.path.endswith(".py"):
            for function, line in searched_sentences(source.path, source.text):
                if (source.path, function) not in _ALLOWED:
                    yield f"{source.path}:{line}: {function} searches a sentence; use {_INSTEAD}"
        elif source.path.endswith(".js"):
            for line in searched_in_scripts(source.text):
                yield f"{source.path}:{line}: a sentence is searched; give the page what is asked for as a field"


def test_no_sentence_is_searched(sources: Sequence[_Source], judge: _Judge) -> None:
    judge(list(_not_allowed(sources)))


def test_the_allow_list_holds_only_what_is_needed(python_sources: Sequence[_Source], judge: _Judge) -> None:
    named = {path for path, _ in _ALLOWED}
    ours = [source for source in python_sources if source.path in named]
    used = {(s.path, function) for s in ours for function, _ in searched_sentences(s.path, s.text)}
    judge([f"{key} searches no sentence; remove the entry" for key in _ALLOWED if key not in used])


@pytest.mark.parametrize(
    "text",
    [
        "any(reason.startswith('full_page_writes = off') for reason in reasons)",
        "FULL in found.reason",
        "'not comparable' not in note",
        "reason.sentence.casefold().endswith(word)",
        "name, _, words = problem.partition(': ')",
        "_PASSING.search(reason)",
        "re.match('mkfs', error.reasons[0])",
        "'connection' in '; '.join(record.reasons)",
        "'the run did not complete' in reasons",
        "_NO_SPACE in str(error)",
        "words in f'{error} {output}'",
        "m.reason == 'no tps'",
        "why = absence_reason.removeprefix(own)",
        "head = reason.split(':')[0]",
    ],
)
def test_a_planted_search_is_found(text: str) -> None:
    assert [("", 1)] == searched_sentences("a.py", text)


@pytest.mark.parametrize(
    "text",
    [
        "reason.code == NOT_COMPARABLE",
        "is_given(FULL, reasons)",
        "reason in reasons",
        "_NO_SPACE in error.said",
        "'; '.join(map(str, reasons))",
        "_NUMBER.sub('0', reason.sentence)",
        "line.startswith('ERROR')",
        "' '.join(reason.split())",
    ],
)
def test_what_reads_no_sentence_passes(text: str) -> None:
    assert [] == searched_sentences("a.py", text)


@pytest.mark.parametrize(
    "text",
    [
        'notes.filter((note) => !note.includes("not comparable"))',
        "entry.reason?.startsWith(own)",
        "const head = reason.split(':')[0];",
        "if (/^refused/.test(reason)) return;",
        'm.reasons[0].replace(", measured", "")',
    ],
)
def test_a_planted_search_in_a_script_is_found(text: str) -> None:
    assert [1] == searched_in_scripts(text)


@pytest.mark.parametrize(
    "text", ["notes.includes(note)", "reasons.join('; ')", "page.runs[run].writes", "words.split(' ')"]
)
def test_a_sound_script_passes(text: str) -> None:
    assert [] == searched_in_scripts(text)
