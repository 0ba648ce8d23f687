"""Where a log has metadata waiting for a flush that a cut can tear within 4 KiB.

A block of metadata that changes in two of its sectors or more is half old and half new where a device writes only some of them.
Such blocks wait seldom: XFS writes its directories back once in many thousand entries, and a superblock of Btrfs waits
for one entry. A draw by chance, and one by the number of waiting writes too, hardly ever cuts there.

As seldom a flush meets writes that are not complete, which it does not cover: who promises something by them then has not
waited for them.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from bedplate.filesystem.metadata_blocks import GRID_BYTES, SECTOR_BYTES
from bedplate.model.power_cut import IN_FLIGHT
from bedplate.workloads.power_cut.run.log import FUA
from bedplate.workloads.power_cut.run.window import cache_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.filesystem.metadata_blocks import Metadata
    from bedplate.workloads.power_cut.run.log import Log


@dataclass(frozen=True)
class Waiting:
    """Positions from `first` to `last` at which the same blocks wait; `kinds` says what they are, sorted."""

    first: int
    last: int
    kinds: tuple[str, ...]
    blocks: int


def waiting_metadata(
    log: Log, metadata: Metadata, *, measured_from: int, until: int, window_bytes: int
) -> tuple[Waiting, ...]:
    """The spans between two flushes, or of a cache that holds no more, in which metadata waits that can be torn."""
    found: dict[tuple[int, int], list[tuple[int, str]]] = {}
    for index, kind in _changes(log, metadata, measured_from, until):
        device = log.devices[index]
        flushes = bisect_right(log.histories[device].flushes, index)
        found.setdefault((device, flushes), []).append((index, kind))
    return tuple(
        _span(log, device, flushes, blocks, until=until, measured_from=measured_from, cache=window_bytes)
        for (device, flushes), blocks in sorted(found.items())
    )


def flushes_in_flight(log: Log, *, measured_from: int, until: int) -> tuple[Waiting, ...]:
    """The spans behind a flush that met writes on their way, up to the next flush of that device, which may cover them."""
    found = []
    for history in log.histories:
        # Without late writes none is looked for.
        for flush, following in pairwise((*history.flushes, until)) if history.has_late else ():
            met = history.in_flight(flush + 1)
            if met and measured_from <= flush < until:
                found.append(Waiting(flush + 1, min(following, until), (IN_FLIGHT,), len(met)))
    return tuple(sorted(found, key=lambda span: (span.first, span.last)))


def _span(
    log: Log,
    device: int,
    flushes: int,
    blocks: list[tuple[int, str]],
    *,
    until: int,
    measured_from: int,
    cache: int,
) -> Waiting:
    history = log.histories[device]

    def waiting(position: int) -> list[str]:
        held = cache_at(history, position, cache, measured_from=measured_from)
        oldest = history.changes[held.first] if held.first < held.end else position
        return [kind for index, kind in blocks if index >= oldest]

    first = blocks[-1][0] + 1
    last = min(history.flushes[flushes], until) if flushes < len(history.flushes) else until
    kinds = waiting(first)
    if len(waiting(last)) < len(kinds):
        last = first
    return Waiting(first, last, tuple(sorted(set(kinds))), len(kinds))


def _changes(log: Log, metadata: Metadata, measured_from: int, until: int) -> Iterator[tuple[int, str]]:
    """Each block of the grid that a measured write changes in more than one sector, if it is metadata."""
    contents = _Contents(log)
    for index in range(until):
        if not log.is_write(index):
            continue
        device, offset, length = log.devices[index], log.offsets[index], log.lengths[index]
        start = 0
        while start < length:
            part = min(length - start, GRID_BYTES - (offset + start) % GRID_BYTES)
            with log.data(index, start, part) as block:
                kind = metadata.kind(device, offset + start, block)
                # What goes past the cache does not wait in it.
                if kind is not None and index >= measured_from and not log.flags[index] & FUA:
                    changed = contents.changed(device, offset + start, block, counts_new=metadata.counts_new)
                    if changed > 1:
                        yield index, kind
            contents.take(device, offset + start, index, start, part)
            start += part


class _Contents:
    """Which entry last wrote which part of a block, so that what a device held can be looked up in the log."""

    def __init__(self, log: Log) -> None:
        self._log = log
        # By device and block: where in it, how long, which entry, where in its data; oldest first.
        self._parts: dict[tuple[int, int], list[tuple[int, int, int, int]]] = {}

    def take(self, device: int, offset: int, index: int, start: int, length: int) -> None:
        """A part that was written; what it covers in full is no longer needed."""
        key, at = (device, offset // GRID_BYTES), offset % GRID_BYTES
        written = (at, length, index, start)
        if length == GRID_BYTES or key not in self._parts:
            self._parts[key] = [written]
            return
        former = [
            each for each in self._parts[key] if not (at <= each[0] and each[0] + each[1] <= at + length)
        ]
        self._parts[key] = [*former, written]

    def changed(self, device: int, offset: int, block: memoryview, *, counts_new: bool) -> int:
        """In how many sectors the block differs from what was there; blanks where nothing was written yet."""
        parts = self._parts.get((device, offset // GRID_BYTES), ())
        if not parts and not counts_new:
            return 0
        before = bytearray(GRID_BYTES)
        for at, length, index, start in parts:
            with self._log.data(index, start, length) as former:
                before[at : at + length] = former
        at = offset % GRID_BYTES
        return sum(
            block[sector : sector + SECTOR_BYTES] != before[at + sector : at + sector + SECTOR_BYTES]
            for sector in range(0, len(block), SECTOR_BYTES)
        )
