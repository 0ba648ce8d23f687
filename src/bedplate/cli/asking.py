"""Questions to the person at the terminal."""

from __future__ import annotations

import sys


def can_ask() -> bool:
    """Whether there is a person at the terminal."""
    return sys.stdin.isatty()


def agreed(question: str) -> bool:
    """Whether a person at the terminal says yes; False where there is none to ask."""
    if not can_ask():
        return False
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except (EOFError, UnicodeDecodeError):
        return False
