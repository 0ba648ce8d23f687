"""Bytes that change at rest, or cannot be read any more: on a device of the recorder's, while nothing is mounted or attached."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

from bedplate.model.fault_order import ByteRange
from bedplate.workloads.faulty_disk.faults import Place

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bedplate.workloads.faulty_disk.faults import Rot

# What the recorder takes as one write.
_SECTOR_BYTES = 512
_BLOCK_BYTES, _READ_BYTES = 4096, 2**20


def rot_away(device: Path, rot: Rot, ranges: Sequence[ByteRange], seed: int) -> ByteRange:
    """Change what one drawn place holds, as much of it as the place has; where. What becomes unreadable is drawn alone.

    Of what the file system keeps most was never written: there a block that holds something is drawn.
    """
    draw = random.Random(f"rot of {seed}")  # noqa: S311 -- chance, not secrecy
    if rot.place in (Place.JOURNAL, Place.METADATA):
        ranges = written_in(device, ranges) or ranges
    chosen = draw.choices(ranges, [each.length for each in ranges])[0]
    length = min(rot.length or _SECTOR_BYTES, chosen.length)
    at = chosen.start + draw.randrange(chosen.length // length) * length
    if rot.is_unreadable:
        # A disk loses whole blocks, and says so to whoever reads one.
        return ByteRange(at // _BLOCK_BYTES * _BLOCK_BYTES, _BLOCK_BYTES)
    bit = draw.randrange(8 * length)
    first = at // _SECTOR_BYTES * _SECTOR_BYTES
    disk = os.open(device, os.O_RDWR | os.O_CLOEXEC)
    try:
        # Whole sectors, of which a place smaller than one changes alone.
        found = bytearray(os.pread(disk, -(-(at + length - first) // _SECTOR_BYTES) * _SECTOR_BYTES, first))
        if rot.length:
            found[at - first : at - first + length] = draw.randbytes(length)
        else:
            found[at - first + bit // 8] ^= 1 << bit % 8
        os.pwrite(disk, found, first)
    finally:
        os.close(disk)
    return ByteRange(at, length) if rot.length else ByteRange(at + bit // 8, 1)


def written_in(disk: Path, ranges: Sequence[ByteRange]) -> list[ByteRange]:
    """The blocks of these ranges that hold anything but zeros."""
    found, empty = [], bytes(_BLOCK_BYTES)
    file = os.open(disk, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for each in ranges:
            for start in range(each.start, each.start + each.length, _READ_BYTES):
                data = os.pread(file, min(_READ_BYTES, each.start + each.length - start), start)
                found += [
                    ByteRange(start + at, min(_BLOCK_BYTES, len(data) - at))
                    for at in range(0, len(data), _BLOCK_BYTES)
                    if not empty.startswith(data[at : at + _BLOCK_BYTES])
                ]
    finally:
        os.close(file)
    return found
