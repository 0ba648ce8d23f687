"""Reasons of suspect runs that differ only in their numbers, as one sentence with ranges.

What a run was disturbed by is measured, and hardly ever the same twice: ten lines that differ in a percentage say less
than one with its range. Only a number that stands alone, or before a per cent sign, is an amount; one that is part of
a word, or that stands behind a word such as `query`, is a name, and names make no range.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bedplate.report.overview import Trouble

if TYPE_CHECKING:
    from collections.abc import Iterable

_AMOUNT = re.compile(
    r"(?:(?<=\s)|^)[+-]?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?=%|\)|\s|;|:|$|,(?![0-9])|\.(?:\s|$))"
)
# Behind these a number is a name.
_NAMING = re.compile(
    r"\b(?:query|stream|pass|visit|repetition|run|node|test|block|blocks|inode|sector|line|page|relation|pid|cpu|port|"
    r"error|errno|status|code|signal)[\s:#=]*$",
    re.IGNORECASE,
)
_PLACE = "\0"


def shape(reason: str) -> str:
    """The same text for all reasons that make one sentence; the reason itself where it is none of a suspect run."""
    head, colon, rest = reason.partition(": ")
    if not head.startswith(Trouble.SUSPECT.value) or _PLACE in reason:
        return reason
    return f"{head}{colon}{_AMOUNT.sub(lambda found: found[0] if _is_name(found) else _PLACE, rest)}"


def one_sentence(reasons: Iterable[str]) -> str:
    """Reasons of one shape: each amount that they differ in is a range, from the smallest to the largest."""
    known = list(dict.fromkeys(reasons))
    if len(known) == 1:
        return known[0]
    found = [[one[0] for one in _AMOUNT.finditer(_rest(reason)) if not _is_name(one)] for reason in known]
    texts = iter([_range(amounts) for amounts in zip(*found, strict=True)])
    return "".join(
        next(texts) if part == _PLACE else part for part in re.split(f"({_PLACE})", shape(known[0]))
    )


def _rest(reason: str) -> str:
    return reason.partition(": ")[2]


def _is_name(found: re.Match[str]) -> bool:
    return _NAMING.search(found.string, 0, found.start()) is not None


def _range(amounts: Iterable[str]) -> str:
    ordered = sorted(set(amounts), key=lambda text: float(text.replace(",", "")))
    least, most = ordered[0], ordered[-1]
    if least == most:
        return least
    return f"{least} to {most}" if any(text[0] in "+-" for text in ordered) else f"{least}–{most}"
