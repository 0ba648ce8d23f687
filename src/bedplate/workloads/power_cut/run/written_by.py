"""Which process asked for each write of a log: the kernel's requests, put beside what came of them.

One request becomes several entries of the log, or several requests one, as the block layer splits and joins them. So an entry is that of whoever
asked last, before it, for the sectors that it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.power_cut_blame import WritingProcess
from bedplate.units import KERNEL_SECTOR_BYTES, KIB
from bedplate.workloads.power_cut.run.log import overwrite, packed_writers, read_log

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from bedplate.host.block_requests import BlockRequest, RequestTrace
    from bedplate.host.process import ProcessTitle
    from bedplate.workloads.power_cut.run.log import Log

_BLOCK_SECTORS = 4 * KIB // KERNEL_SECTOR_BYTES


def note_writers(path: Path, trace: RequestTrace) -> int:
    """Write into the log who asked for each write while it was traced; how many have a name now. CallsNotCounted where the trace has a gap."""
    requests, titles = trace.found, trace.titles
    with read_log(path) as log:
        found = {
            log.writers_at(entry): packed_writers(_processes(asked, titles))
            for device, number in enumerate(trace.devices)
            for entry, asked in askers(log, device, [each for each in requests if each.device == number])
        }
    overwrite(path, found.items())
    return len(found)


def askers(
    log: Log, device: int, requests: Sequence[BlockRequest]
) -> Iterator[tuple[int, tuple[BlockRequest, ...]]]:
    """Writes of a device, by their entries, each with the requests that it is made of; one of which a part was not asked for is left out.

    `requests` are that device's, in the order of their times.
    """
    last = _LastAsked()
    waiting = iter(each for each in requests if each.sectors and not each.is_done)
    following = next(waiting, None)
    for entry in log.histories[device].changes:
        time_ns = log.entry(entry).time_ns
        if not log.is_write(entry) or time_ns is None:
            continue
        while following is not None and following.time_ns <= time_ns:
            last.take(following)
            following = next(waiting, None)
        begin = log.offsets[entry] // KERNEL_SECTOR_BYTES
        asked = last.of(begin, begin + log.lengths[entry] // KERNEL_SECTOR_BYTES)
        if asked:
            yield entry, asked


class _LastAsked:
    """Who asked last for each sector. Of a block that two requests share, the one that begins in it is known by its first sector as well."""

    def __init__(self) -> None:
        self._by_block: dict[int, BlockRequest] = {}
        self._by_begin: dict[int, BlockRequest] = {}

    def take(self, request: BlockRequest) -> None:
        """The next one."""
        end = request.sector + request.sectors
        self._by_begin[request.sector] = request
        for block in range(request.sector // _BLOCK_SECTORS, -(-end // _BLOCK_SECTORS)):
            self._by_block[block] = request

    def of(self, begin: int, end: int) -> tuple[BlockRequest, ...]:
        """The requests that these sectors came from, in their order; empty where one of them is nobody's."""
        found: list[BlockRequest] = []
        while begin < end:
            both = (self._by_begin.get(begin), self._by_block.get(begin // _BLOCK_SECTORS))
            covering = [each for each in both if each and each.sector <= begin < each.sector + each.sectors]
            if not covering:
                return ()
            found.append(max(covering, key=lambda each: each.time_ns))
            begin = found[-1].sector + found[-1].sectors
        return tuple(found)


def _processes(
    asked: Sequence[BlockRequest], titles: Mapping[int, ProcessTitle | None]
) -> Iterator[WritingProcess]:
    """Each once."""
    for request in {(each.thread, each.thread or each.name): each for each in asked}.values():
        title = titles.get(request.thread)
        if title is None:
            yield WritingProcess(request.thread, request.name, None)
        else:
            yield WritingProcess(title.pid, title.name, title.is_kernel)
