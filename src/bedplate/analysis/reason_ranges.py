"""Reasons of runs in doubt that differ only in their numbers, as one sentence with ranges.

What a run was disturbed by is measured, and hardly ever the same twice: ten lines that differ in a percentage say less
than one with its range. Only a number that stands alone, or before a per cent sign, is an amount; one that is part of
a word, or that stands behind a word such as `query`, is a name, and names make no range.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

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


@dataclass(frozen=True)
class Told:
    """A sentence on runs. From the character `amounts_from` on, its numbers are amounts; None where it has none."""

    sentence: str
    amounts_from: int | None = None


def shape(told: Told) -> tuple[str, ...]:
    """The text between the amounts, the same for all that make one sentence."""
    return tuple(_parts(told)[::2])


def one_sentence(told: Iterable[Told]) -> str:
    """What has one shape: each amount that they differ in is a range, from the smallest to the largest."""
    columns = zip(*map(_parts, dict.fromkeys(told)), strict=True)
    return "".join(_range(found) if place % 2 else found[0] for place, found in enumerate(columns))


def _parts(told: Told) -> list[str]:
    """Text and amount by turns, a text at both ends."""
    if told.amounts_from is None:
        return [told.sentence]
    head, rest = told.sentence[: told.amounts_from], told.sentence[told.amounts_from :]
    parts, end = [head], 0
    for found in _AMOUNT.finditer(rest):
        if not _is_name(found):
            parts[-1] += rest[end : found.start()]
            parts += [found[0], ""]
            end = found.end()
    parts[-1] += rest[end:]
    return parts


def _is_name(found: re.Match[str]) -> bool:
    return _NAMING.search(found.string, 0, found.start()) is not None


def _range(amounts: Iterable[str]) -> str:
    ordered = sorted(set(amounts), key=lambda text: float(text.replace(",", "")))
    least, most = ordered[0], ordered[-1]
    if least == most:
        return least
    return f"{least} to {most}" if any(text[0] in "+-" for text in ordered) else f"{least}–{most}"
