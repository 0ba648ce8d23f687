"""Sentences made of parts: those that Python and the page's script fill with values alike (`page/rules.py` gives them to the script)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def filled(template: str, **values: object) -> str:
    """The template with values in place of its {names}, whole numbers with thousands apart; `{s}` makes a plural unless `n` is 1."""
    written = {name: f"{value:,}" if isinstance(value, int) else value for name, value in values.items()}
    return template.format(**{"s": "" if values.get("n") == 1 else "s", **written})


def and_more(count: int, shown: int) -> str:
    """` and 3 more` behind the first `shown` of `count`; empty where these are all."""
    return f" and {count - shown} more" if count > shown else ""


def first_of(words: Sequence[str], shown: int, separator: str = ", ") -> str:
    """The first `shown` of some words in a row, and how many more there are."""
    return f"{separator.join(words[:shown])}{and_more(len(words), shown)}"
