"""Sentences made of parts: those that Python and the page's script fill with values alike (`page/rules.py` gives them to the script)."""

from __future__ import annotations


def filled(template: str, **values: object) -> str:
    """The template with values in place of its {names}; `{s}` makes a plural unless `n` is 1."""
    return template.format(**{"s": "" if values.get("n") == 1 else "s", **values})


def and_more(count: int, shown: int) -> str:
    """` and 3 more` behind the first `shown` of `count`; empty where these are all."""
    return f" and {count - shown} more" if count > shown else ""
