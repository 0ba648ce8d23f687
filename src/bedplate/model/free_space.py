"""The free space of a mounted file system at one moment, by the pieces that it lies in; and which aged one a recorded disk is a copy of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bedplate.units import KIB

# Before the database is loaded; after it, with what fills the file system in its place; after the runs.
MADE, AFTER_LOAD, ENDED = "made", "loaded", "ended"

# The phase of its figures; the item is the moment.
FREE_SPACE = "free space"

# Upper ends of the classes of pieces; the last class has none.
CLASSES_KIB = (16, 64, 128, 1024, 16 * 1024, 256 * 1024)


@dataclass(frozen=True)
class AgedCopy:
    """The aged file system in the cache that a recorded disk began as a copy of."""

    key: str
    """digest of what it was made by"""
    identity: str
    """UUID of its making"""
    settled: bool
    """whether its free space changed no more when it was done"""


@dataclass(frozen=True)
class FreeSpace:
    """Free space at one moment; bytes and pieces."""

    moment: str
    """`made`: before the database; `loaded`: with it; `ended`: after the runs"""
    filesystem_bytes: int
    """size that statvfs tells"""
    used_bytes: int
    """of it in use, by statvfs"""
    available_bytes: int
    """of it available to others than root"""
    free_bytes: int | None = None
    """sum of the pieces; null where nothing tells them"""
    extents: int | None = None
    """how many pieces"""
    largest_bytes: int | None = None
    """the largest"""
    half_bytes: int | None = None
    """half of the free space lies in pieces of at most this size"""
    classes: tuple[int, ...] = ()
    """bytes in pieces of up to 16, 64, 128 KiB, 1, 16, 256 MiB, and in larger ones"""

    @property
    def fill(self) -> float:
        """Share that is in use, as df has it: of what others than root may use."""
        return self.used_bytes / (self.used_bytes + self.available_bytes)

    @property
    def mean_bytes(self) -> float | None:
        """Mean size of a piece."""
        if self.free_bytes is None or not self.extents:
            return None
        return self.free_bytes / self.extents


def in_pieces(pieces: Iterable[int] | None) -> dict[str, Any]:
    """The fields that are made of the pieces' bytes; none where nothing tells them."""
    if pieces is None:
        return {}
    sizes = sorted(pieces)
    total, below, half = sum(sizes), 0, 0
    classes = [0] * (len(CLASSES_KIB) + 1)
    for size in sizes:
        if 2 * below < total:
            half = size
        below += size
        classes[next((at for at, end in enumerate(CLASSES_KIB) if size <= end * KIB), -1)] += size
    return {
        "free_bytes": total,
        "extents": len(sizes),
        "largest_bytes": max(sizes, default=0),
        "half_bytes": half,
        "classes": tuple(classes),
    }
