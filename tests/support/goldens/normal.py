"""What of an output may differ between two machines, Pythons or days, and when two outputs are the same: all of it here.

Nothing else is left out: whatever a command says that is not named below is held to the letter.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from bedplate import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# A sum of floats has other last digits from Python 3.12 on, and with another library of linear algebra.
SAME_TO = 1e-9
_DIGITS = 12
# What is smaller is nothing, written as what was left of a difference.
_SMALL = 1e-3
# Longer than whoever writes figures for a person writes them.
_LONG = re.compile(r"-?\b\d+\.\d{10,}(?:e[+-]?\d+)?\b|-?\b\d\.\d*e[+-]?\d+\b")
_NUMBER = re.compile(r"-?\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b")
_REPLACED = (
    # What a page's script may be is told the browser by the script's digest.
    (re.compile(r"'sha256-[A-Za-z0-9+/=]+'"), "'sha256-…'"),
    # Which version writes; that by which a study was made is the study's.
    (re.compile(rf"(\bcontent=\"bedplate |\bMade by bedplate ){re.escape(__version__)}\b"), r"\1VERSION"),
    (re.compile(rf"(\bexported by bedplate\t){re.escape(__version__)}\b"), r"\1VERSION"),
)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
_CONTEXT_LINES = 2
_SHOWN_LINES = 120
_WIDEST = 400


def normal(text: str, place: Path, made_now: Path | None = None) -> str:
    """The text without the folder that the studies lie in, and with what differs by itself under another word.

    `made_now` is the record of a study that was imported just now: when and by which version is no part of what is kept.
    """
    text = text.replace(f"{place}/", "").replace(str(place), ".")
    if made_now is not None:
        text = re.sub(rf"\bbedplate(\s){re.escape(__version__)}\b", r"bedplate\1VERSION", text)
        moments = {*_MOMENT.findall(made_now.read_text(encoding="utf-8"))}
        for moment in moments:
            text = text.replace(moment, "MOMENT")
        for date in {moment.partition("T")[0] for moment in moments}:
            text = text.replace(date, "DATE")
    for pattern, word in _REPLACED:
        text = pattern.sub(word, text)
    return _LONG.sub(lambda number: f"{float(number.group()):.{_DIGITS}g}", text)


def is_same(before: str, now: str) -> bool:
    """Whether two lines are the same but for the last digits of numbers."""
    if before == now:
        return True
    if _NUMBER.sub("0", before) != _NUMBER.sub("0", now):
        return False
    return all(map(_is_same_number, _NUMBER.findall(before), _NUMBER.findall(now)))


def _is_same_number(before: str, now: str) -> bool:
    """A count is the same or another; only what has a decimal point was worked out by adding floats."""
    if before == now or "." not in before + now:
        return before == now
    a, b = float(before), float(now)
    return abs(a - b) <= SAME_TO * max(abs(a), abs(b), _SMALL)


def difference(before: str, now: str, title: str) -> list[str]:
    """A unified diff of two outputs; empty where they are the same."""
    if before == now:
        return []
    old, new = before.splitlines(), now.splitlines()
    if len(old) == len(new):
        # Where only the last digits differ, the line is no part of the diff.
        new = [a if is_same(a, b) else b for a, b in zip(old, new, strict=True)]
    lines = difflib.unified_diff(old, new, f"{title}, golden", f"{title}, now", n=_CONTEXT_LINES, lineterm="")
    return list(_shortened(lines))


def _shortened(lines: Iterator[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number == _SHOWN_LINES:
            yield "… and more"
            return
        yield line if len(line) <= _WIDEST else f"{line[:_WIDEST]}…"
