"""CPU per gigabyte: what a file system takes of the processor for the bytes that it moves.

Throughput alone hides it: two file systems that saturate the device equally may leave the database
very different amounts of CPU. The CPU here is what the tool itself was charged, its system calls
included; write-back and journal threads of the kernel are charged to nobody, so buffered writes look
cheaper than they are. A gigabyte is 2**30 bytes, as everywhere in bedplate.
"""

from __future__ import annotations

import math

from bedplate.units import GIB


def cpu_s_per_gib(cpu_s: float, size_bytes: float) -> float | None:
    """CPU seconds per GiB moved; None where nothing was moved, which has no price.

    ValueError for a negative or endless argument: that is a mistake of the caller, not a figure.
    """
    for name, value in (("cpu_s", cpu_s), ("size_bytes", size_bytes)):
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be a number of zero or more, not {value!r}")
    if size_bytes == 0:
        return None
    return cpu_s / (size_bytes / GIB)
