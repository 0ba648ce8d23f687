r"""An expression behind pgbench's `\set`, `\if` and `\elif`: what it uses, and what pgbench would not take (`exprscan.l`, `exprparse.y`).

It takes a little more than pgbench does: two comparisons in a row, and numbers beyond 64 bits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.near_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WORD = re.compile(
    r"""(?P<blank>[ \t\r\f\v]+|\\\r?\n)
    |(?P<variable>:[A-Za-z0-9_\x80-\U0010ffff]+)
    |(?P<constant>[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?)
    |(?P<word>[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*)
    |(?P<sign><>|!=|<=|>=|<<|>>|[-+*/%=<>|&\#~(),])""",
    re.VERBOSE,
)
# What stands for a constant or a variable among the words, and for the end.
_OPERAND, _END = "0", ""
_LONGEST_SHOWN = 40
_BEFORE_ONE = frozenset(("+", "-", "~", "not"))
_BETWEEN_TWO = frozenset((*"+-*/%=<>|&#", "<>", "!=", "<=", ">=", "<<", ">>", "and", "or"))
_BEHIND_ONE = frozenset(("isnull", "notnull"))
_LITERALS = frozenset(("null", "true", "false"))
_KEYWORDS = _LITERALS | _BEHIND_ONE | {"and", "or", "not", "case", "when", "then", "else", "end", "is"}
# Which parts of a CASE may stand before each other part.
_CASE_ORDER: Mapping[str, tuple[str, ...]] = {
    "then": ("when",),
    "when": ("then",),
    "else": ("then",),
    "end": ("then", "else"),
}
# The fewest and the most arguments of each function.
_FUNCTIONS: Mapping[str, tuple[int, float]] = {
    **dict.fromkeys(("abs", "debug", "double", "exp", "int", "ln", "sqrt"), (1, 1)),
    **dict.fromkeys(("mod", "pow", "power", "random"), (2, 2)),
    **dict.fromkeys(("random_exponential", "random_gaussian", "random_zipfian"), (3, 3)),
    **dict.fromkeys(("greatest", "least"), (1, float("inf"))),
    **dict.fromkeys(("hash", "hash_fnv1a", "hash_murmur2"), (1, 2)),
    "permute": (2, 3),
    "pi": (0, 0),
}


@dataclass(frozen=True)
class Expression:
    """`end` is behind its line's end; `variables` are names with their places."""

    end: int
    variables: tuple[tuple[str, int], ...]
    problem: str | None


@dataclass
class _Open:
    """A parenthesis, that of a function with the arguments so far, or a CASE in one of its parts."""

    function: str = ""
    arguments: int = 0
    case_part: str = ""


def read_expression(text: str, start: int) -> Expression:
    """From `start` to the end of the line, or of the last that a backslash joins to it."""
    at, variables, words = start, [], []
    problem = None
    while at < len(text) and text[at] != "\n":
        word = _WORD.match(text, at)
        if word is None:
            problem = f"its expression has {text[at]!r}, which pgbench does not take"
            break
        at = word.end()
        if word.lastgroup == "variable":
            variables.append((word[0][1:], word.start()))
        if word.lastgroup in ("constant", "variable"):
            words.append(_OPERAND)
        elif word.lastgroup != "blank":
            words.append(word[0].lower())
    line_end = text.find("\n", at)
    end = len(text) if line_end < 0 else line_end + 1
    return Expression(end, tuple(variables), problem or _problem((*words, _END, _END)))


def _problem(words: Sequence[str]) -> str | None:
    """What pgbench stops at; None where it takes the expression."""
    opened: list[_Open] = []
    at, wants_operand = 0, True
    while True:
        word, following = words[at], words[at + 1]
        top = opened[-1] if opened else _Open()
        at += 1
        if wants_operand and word in _BEFORE_ONE:
            continue
        if wants_operand and word == "(":
            opened.append(_Open())
        elif wants_operand and word == "case" and following == "when":
            opened.append(_Open(case_part="when"))
            at += 1
        elif wants_operand and _is_name(word):
            if word not in _FUNCTIONS:
                hint = did_you_mean(word, _FUNCTIONS, otherwise=f"there are {', '.join(_FUNCTIONS)}")
                return f"pgbench has no function {shown_word(word)}; {hint}"
            if following != "(":
                return f"the function {word} has no ( behind it"
            opened.append(_Open(word))
            at += 1
            if words[at] == ")":
                wants_operand = False
                opened[-1].arguments = -1
            elif words[at] == ",":
                # pgbench's grammar lets the first argument be nothing.
                at += 1
        elif wants_operand and (word == _OPERAND or word in _LITERALS):
            wants_operand = False
        elif wants_operand:
            return _unexpected(word)
        elif word in _BETWEEN_TWO:
            wants_operand = True
        elif word in _BEHIND_ONE:
            continue
        elif word == "is":
            at += following == "not"
            if words[at] not in _LITERALS:
                return "IS in its expression wants NULL, TRUE or FALSE"
            at += 1
        elif word == ")" and opened and not top.case_part:
            opened.pop()
            fewest, most = _FUNCTIONS.get(top.function, (1, 1))
            if not fewest <= top.arguments + 1 <= most:
                return f"{top.function} has {top.arguments + 1} arguments, and takes {_range(fewest, most)}"
        elif word == "," and top.function:
            top.arguments += 1
            wants_operand = True
        elif top.case_part in _CASE_ORDER.get(word, ()):
            top.case_part = word
            if word == "end":
                opened.pop()
            else:
                wants_operand = True
        elif word == _END and not opened:
            return None
        else:
            return _unexpected(word)


def _is_name(word: str) -> bool:
    return word not in _KEYWORDS and (word[:1].isalpha() or word[:1] == "_" or word[:1] >= "\x80")


def _unexpected(word: str) -> str:
    if word == _END:
        return "its expression ends too early"
    return f"its expression has {'a value' if word == _OPERAND else shown_word(word)} where pgbench expects something else"


def _range(fewest: int, most: float) -> str:
    if most == float("inf"):
        return f"{fewest} or more"
    return f"{fewest}" if fewest == most else f"{fewest} or {most:g}"


def shown_word(word: str) -> str:
    """A word of a script in a sentence: of bounded length, and printable."""
    shown = "".join(character if character.isprintable() else "?" for character in word[:_LONGEST_SHOWN])
    return shown + ("…" if len(word) > _LONGEST_SHOWN else "")
