"""Cells whose effective configuration is the same: one result under several names, not several results."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class EffectiveCells:
    """`identical` holds groups of two cells or more; `changing` cells that differ between their visits."""

    identical: tuple[tuple[str, ...], ...]
    changing: tuple[str, ...]

    def others(self, cell: str) -> tuple[str, ...]:
        """The other names of the same effective configuration."""
        for group in self.identical:
            if cell in group:
                return tuple(name for name in group if name != cell)
        return ()


def effective_cells(visits: Iterable[tuple[str, str | None]]) -> EffectiveCells:
    """Group cells by the digest of what was in force, from pairs of cell and digest, one per visit.

    A visit without a digest (it failed before the read-back) says nothing. A cell whose visits do not
    agree is identical to none: it is not even identical to itself.
    """
    digests: defaultdict[str, set[str]] = defaultdict(set)
    for cell, digest in visits:
        if digest is not None:
            digests[cell].add(digest)
    grouped: defaultdict[str, list[str]] = defaultdict(list)
    for cell, found in digests.items():
        if len(found) == 1:
            grouped[next(iter(found))].append(cell)
    return EffectiveCells(
        identical=tuple(tuple(group) for group in grouped.values() if len(group) > 1),
        changing=tuple(cell for cell, found in digests.items() if len(found) > 1),
    )
