"""Bytes that change at rest: on the recorder's disk, while nothing is mounted or attached."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

from bedplate.model.fault_order import ByteRange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.host.recorder import Recorder
    from bedplate.workloads.faulty_disk.faults import Rot

# What the recorder takes as one write.
_SECTOR_BYTES = 512


def rot_away(recorder: Recorder, rot: Rot, ranges: Sequence[ByteRange], seed: int) -> ByteRange:
    """Change what one drawn place holds, as much of it as the place has; where."""
    draw = random.Random(f"rot of {seed}")  # noqa: S311 -- chance, not secrecy
    chosen = draw.choices(ranges, [each.length for each in ranges])[0]
    length = max(_SECTOR_BYTES, min(rot.length, chosen.length))
    at = chosen.start + draw.randrange(max(1, chosen.length // length)) * length
    bit = draw.randrange(8 * length)
    disk = os.open(recorder.disk, os.O_RDWR | os.O_CLOEXEC)
    try:
        found = bytearray(os.pread(disk, length, at))
        if rot.length:
            found = bytearray(draw.randbytes(length))
        else:
            found[bit // 8] ^= 1 << bit % 8
        os.pwrite(disk, found, at)
    finally:
        os.close(disk)
    return ByteRange(at, length) if rot.length else ByteRange(at + bit // 8, 1)
