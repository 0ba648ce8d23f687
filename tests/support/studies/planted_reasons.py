"""Reasons of tests' own making."""

from __future__ import annotations

from bedplate.model.reason import Reason


def planted(*sentences: str, code: str = "planted") -> tuple[Reason, ...]:
    """One for each sentence."""
    return tuple(Reason(code, sentence) for sentence in sentences)
