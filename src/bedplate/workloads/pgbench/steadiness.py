"""Decides when a warm-up has done its work.

A warm-up that ends too early measures how the cache fills: on a disk of 150 IOPS, 90 seconds of it
made 32 kB blocks look twice as fast as 1 kB blocks, and a settled run found the reverse. So two
things are watched: the rate of transactions, and the reads that still reach the device.
"""

from __future__ import annotations

import math
from statistics import fmean


class SteadyDetector:
    """Steady when three windows in a row agree, in transactions and in device reads.

    `window_s` seconds make a window; the three means of transactions may differ by `tolerance` of
    their mean, and device reads may not have fallen by more than twice that (they scatter more).
    Fewer than one device read a second counts as none.
    """

    WINDOWS = 3

    def __init__(self, *, window_s: int = 10, tolerance: float = 0.05) -> None:
        self._window_s = window_s
        self._tolerance = tolerance
        self._transactions: list[float] = []
        self._reads: list[float] = []

    def add_second(self, transactions: float) -> None:
        """The transactions of one more second, in order."""
        self._transactions.append(transactions)

    def add_reads(self, reads: float) -> None:
        """The device reads of one more second, in order."""
        self._reads.append(reads)

    @property
    def steady(self) -> bool:
        """Whether the last three windows agree."""
        transactions = self._windows(self._transactions)
        if transactions is None:
            return False
        middle = fmean(transactions)
        if middle <= 0 or max(transactions) - min(transactions) > self._tolerance * middle:
            return False
        reads = self._windows(self._reads)
        if reads is None:
            return False
        return reads[0] < 1 or (reads[0] - reads[-1]) <= 2 * self._tolerance * reads[0]

    def _windows(self, seconds: list[float]) -> list[float] | None:
        needed = self.WINDOWS * self._window_s
        if len(seconds) < needed:
            return None
        last = seconds[-needed:]
        means = [fmean(last[i : i + self._window_s]) for i in range(0, needed, self._window_s)]
        return means if all(math.isfinite(mean) for mean in means) else None
