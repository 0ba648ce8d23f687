"""A log as a device with FUA would have written it, made of that of one without.

The recorded device has none, so the kernel flushes it behind each write that is to go past the cache. Such a flush covers everything else
too, which a device with FUA would still hold. So the write is given the flag in the log, and the flush loses its own, where nobody else waited
for it: neither a sync, nor a write before which everything had to be on the medium (REQ_PREFLUSH). Where it is not certain, a flush stays.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.units import KERNEL_SECTOR_BYTES
from bedplate.workloads.power_cut.run.log import FLUSH, FUA, overwrite, read_log

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from bedplate.host.block_requests import BlockRequest, RequestTrace
    from bedplate.workloads.power_cut.run.log import Log

_FLAGS = struct.Struct("<Q")
_FOREVER_NS = 2**63


@dataclass(frozen=True)
class WrittenThrough:
    """Entries of a log: `writes` that go past the cache, and `needless` flushes, which were sent for want of FUA alone."""

    writes: frozenset[int]
    needless: frozenset[int]


def written_through(log: Log, requests: Sequence[BlockRequest], devices: Sequence[int]) -> WrittenThrough:
    """Of a log whose devices have these numbers; `requests` in the order of their times, of the time in which they were looked at."""
    writes: set[int] = set()
    needless: set[int] = set()
    for device, number in enumerate(devices):
        own = [each for each in requests if each.device == number]
        if own:
            through, without_need = _of_device(log, device, own)
            writes |= through
            needless |= without_need
    return WrittenThrough(frozenset(writes), frozenset(needless))


def as_with_fua(path: Path, trace: RequestTrace) -> int:
    """Make the log that of a device with FUA, by what was asked of its devices while it was recorded; how many writes went past the cache."""
    with read_log(path) as log:
        asked = [each for each in trace.found if each.asks_for_medium]
        found = written_through(log, asked, trace.devices)
    write_down(path, found)
    return len(found.writes)


def write_down(path: Path, found: WrittenThrough) -> None:
    """Give the entries their flags, in the log itself."""
    with read_log(path) as log:
        changed = [(log.flags_at(index), log.flags[index] | FUA) for index in found.writes]
        changed += [(log.flags_at(index), log.flags[index] & ~FLUSH) for index in found.needless]
    overwrite(path, [(at, _FLAGS.pack(flags)) for at, flags in changed])


def _of_device(log: Log, device: int, requests: Sequence[BlockRequest]) -> tuple[set[int], set[int]]:
    entries = [index for index in range(len(log)) if log.devices[index] == device]
    times = [log.entry(index).time_ns or 0 for index in entries]
    begin, end = requests[0].time_ns, requests[-1].time_ns
    queued = [each for each in requests if not each.is_done]
    taken: set[int] = set()

    def write_of(request: BlockRequest) -> int | None:
        """The entry that it became: the first of its place behind its coming that is no other's."""
        for place in range(bisect_left(times, request.time_ns), len(entries)):
            index = entries[place]
            same = log.offsets[index] == request.sector * KERNEL_SECTOR_BYTES
            if same and log.lengths[index] == request.sectors * KERNEL_SECTOR_BYTES and index not in taken:
                return index if log.is_write(index) else None
        return None

    waits = list(_syncs(requests))
    writes: set[int] = set()
    for request in queued:
        if not request.sectors:
            continue
        index = write_of(request)
        if index is not None:
            taken.add(index)
        if request.goes_through and index is not None:
            writes.add(index)
        if request.flushes_before:
            written_ns = None if index is None else log.entry(index).time_ns
            waits.append((request.time_ns, _FOREVER_NS if written_ns is None else written_ns))
    flushes = [index for index in log.histories[device].flushes if not log.lengths[index]]
    waited = _merged(waits)
    first = min(writes, default=len(log))
    needless = {
        index
        for index in flushes
        if first < index
        and begin <= (time := log.entry(index).time_ns or 0) <= end
        and not _is_waited_for(time, waited)
    }
    return writes, needless


def _syncs(requests: Sequence[BlockRequest]) -> Iterable[tuple[int, int]]:
    """When each sync began to wait for a flush, and when it had waited; they are done in the order in which they came."""
    done = [each.time_ns for each in requests if each.is_done and each.is_sync and not each.sector]
    # A write of the first sector is done in the same words: who waited meanwhile may have waited for one more.
    alike = [each.time_ns for each in requests if each.sectors and not each.sector and not each.is_done]
    place = 0
    for each in requests:
        if each.is_done or not each.is_sync:
            continue
        place = bisect_left(done, each.time_ns, place)
        end = place + any(_is_beside(each.time_ns, first, done, place) for first in alike)
        yield each.time_ns, done[end] if end < len(done) else _FOREVER_NS
        place += 1


def _is_beside(began_ns: int, first_ns: int, done: Sequence[int], place: int) -> bool:
    """Whether a sync that began then, and ended at that place or later, was under way with a request of that time, which is done once."""
    if place < len(done) and done[place] < first_ns:
        return False
    last = bisect_left(done, first_ns) + 1
    return last >= len(done) or began_ns <= done[last]


def _merged(waits: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """In order, and none within another."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(waits):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def _is_waited_for(time_ns: int, waits: Sequence[tuple[int, int]]) -> bool:
    place = bisect_right(waits, (time_ns, _FOREVER_NS)) - 1
    return place >= 0 and time_ns <= waits[place][1]
