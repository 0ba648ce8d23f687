"""The numbers in what a tool prints of a superblock, and in the options of a mkfs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.filesystem.comparison import fact
from bedplate.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from bedplate.model.levels import Scalar
    from bedplate.model.visit import ReadBack


def number(text: str | None) -> int | None:
    """A text that is nothing but a number; None for any other."""
    return int(text) if text is not None and text.isdigit() else None


def number_or_text(text: str) -> Scalar:
    """A number where the text is nothing else."""
    return int(text) if text.isdigit() else text


def size_or_text(text: str) -> Scalar:
    """Bytes where the text is a size (`64k`)."""
    try:
        return parse_size(text)
    except ValueError:
        return text


def number_facts(
    superblock: Mapping[str, str],
    source: str,
    names: Mapping[str, str],
    read: Callable[[str | None], int | None] = number,
) -> Iterator[ReadBack]:
    """One fact for each of `names`, which maps our word to the tool's."""
    for name, key in names.items():
        yield fact(f"filesystem.superblock.{name}", read(superblock.get(key)), source)
