"""Comparisons of what was asked with what is in force, and what follows from them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bedplate.errors import VerifyFailed
from bedplate.model.visit import ReadBack

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bedplate.model.levels import Scalar

MOUNT_OPTION = "filesystem.mount_options."
MKFS_OPTION = "filesystem.mkfs_options."
FILL_FACT = "filesystem.fill"
NOT_VERIFIABLE = "not verifiable"

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)


def compared(name: str, asked: Scalar | None, effective: Scalar | None, source: str) -> ReadBack:
    """A level that is read back whether or not it was asked for; unasked it matches nothing."""
    return ReadBack(name, asked, effective, source, None if asked is None else asked == effective)


def fact(name: str, effective: Scalar | None, source: str) -> ReadBack:
    """Something in force that no plan asks for, but that explains a figure."""
    return ReadBack(name, None, effective, source, None)


def not_verifiable(name: str, asked: Scalar, why: str) -> ReadBack:
    """An asked option whose effect cannot be read anywhere: said, not assumed."""
    return ReadBack(name, asked, None, f"{NOT_VERIFIABLE}: {why}", None)


def verify(comparisons: Iterable[ReadBack]) -> None:
    """Raise VerifyFailed with one reason per asked option that is not in force."""
    reasons = [_reason(item) for item in comparisons if item.matches is False]
    if reasons:
        raise VerifyFailed(*reasons)


def effective_facts(comparisons: Iterable[ReadBack]) -> Mapping[str, Scalar]:
    """What tells two effective configurations apart, by name: the input of an `effective_digest`.

    The words that were asked are left out, since what they did is in the facts (so an option that
    the kernel ignored makes no difference); those whose effect cannot be read are kept. UUIDs,
    device numbers and absent facts are left out.
    """
    facts: dict[str, Scalar] = {}
    for item in comparisons:
        if item.asked is not None and item.source.startswith(NOT_VERIFIABLE):
            facts[item.name] = item.asked
        elif item.effective is None or item.name.startswith((MOUNT_OPTION, MKFS_OPTION)):
            continue
        elif not (isinstance(item.effective, str) and _UUID.search(item.effective)):
            facts[item.name] = item.effective
    return dict(sorted(facts.items()))


def _reason(item: ReadBack) -> str:
    if item.effective is None:
        return f"{item.name}: asked {item.asked!r}, not shown by {item.source}: it was ignored"
    return f"{item.name}: asked {item.asked!r}, effective is {item.effective!r} ({item.source})"
