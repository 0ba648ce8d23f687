"""A partition that only the kernel knows, for one test: what fails in it leaves none on the loop device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bedplate.host.zpool import add_partition, remove_partition
from bedplate.units import MIB


@contextmanager
def kernel_partition(disk: str, *, start_bytes: int = MIB, length_bytes: int) -> Iterator[str]:
    """The node of partition 1 of `disk`."""
    add_partition(disk, start_bytes=start_bytes, length_bytes=length_bytes)
    try:
        yield f"{disk}p1"
    finally:
        remove_partition(disk)
