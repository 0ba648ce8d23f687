"""How a recorded server's pages come to the file system: what it takes untorn, where they lie, and what was counted.

Asked of a server whose pages are to be written untorn, or whose device is said to write a unit whole. Files are known as the server's data
by being open with O_DIRECT, so they are looked for while the clients work, or while the server recovers and is asked.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import stat
import struct
import threading
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Self

from bedplate import registry
from bedplate.cuts.blame import Unsynced, WritingProcess, WrittenPlace
from bedplate.cuts.choice import Waiting
from bedplate.cuts.log import (
    DISCARD,
    DISK,
    FLUSH,
    FUA,
    MARK,
    Log,
    NameCall,
    Piece,
    cache_at,
    is_torn,
    overwrite,
    packed_calls,
    packed_writers,
    read_log,
)
from bedplate.cuts.records import ENOSPC, IN_FLIGHT, PageFacts, Profile, RecoveredPages
from bedplate.errors import BedplateError
from bedplate.filesystem.blocks import (
    GRID_BYTES,
    REWRITTEN,
    SECTOR_BYTES,
    BlockOwners,
    CommitPart,
    Metadata,
    Owner,
    commit_part,
    metadata_of,
)
from bedplate.host.block_requests import BlockRequest, RequestTrace
from bedplate.host.files import folders_below
from bedplate.host.pages import (
    TAKEN,
    FileExtent,
    direct_files,
    extents_of,
    page_layout,
    probe_untorn_write,
    untorn_unit,
)
from bedplate.host.process import ProcessTitle
from bedplate.model.cell import UNTORN_ON, Cell, FilesystemLevels
from bedplate.model.filesystem import TRAITS
from bedplate.units import KERNEL_SECTOR_BYTES, KIB, format_size
from bedplate.visit.cuts import FaultEngine, PageNames, Subject
from bedplate.visit.declaration import UntornWrites
from bedplate.workloads.power_cut.bench import DATA_DIRECTORY

_LOOK_EVERY_S = 0.2

# A server that recovers may be asked all questions, and be gone, within half a second.
_LOOK_AT_RECOVERY_EVERY_S = 0.02

_END_LIMIT_S = 60.0

# Of each file its size and its extents.
_Mapped = dict[Path, tuple[int, tuple[FileExtent, ...]]]


@dataclass(frozen=True)
class PagePlaces:
    """Where pages lie, by bytes of the device, those that touch as one."""

    page_bytes: int
    parts: tuple[tuple[int, int], ...]

    def writes(self, log: Log, span: range, unit: Profile) -> tuple[int, int]:
        """How many writes had a part of them; and how many of those the unit does not cover, or are shorter than a page.

        By the log, as the kernel joins requests that a server made one by one. Zeros are left out: they are written where nothing was.
        """
        own = [index for index in span if self._is_met(log, index)]
        uncovered = sum(is_torn(log, unit, index) or log.lengths[index] < self.page_bytes for index in own)
        return len(own), uncovered

    def _is_met(self, log: Log, index: int) -> bool:
        if not log.is_write(index) or log.devices[index] != DISK:
            return False
        start, length = log.offsets[index], log.lengths[index]
        following = bisect_left(self.parts, (start + length,))
        if not following or self.parts[following - 1][1] <= start:
            return False
        with log.data(index) as data:
            return data != bytes(length)


class DirectFiles:
    """Looks again and again for the files below a directory that a server has open with O_DIRECT, but those of its log.

    The directory is named as /proc names it, without a link.
    """

    def __init__(self, below: Path, *, logs: Sequence[str], every_s: float) -> None:
        self._below = below
        self._logs = tuple(logs)
        self._every_s = every_s
        self._found: set[Path] = set()
        self._ended = threading.Event()
        self._looking = threading.Thread(target=self._look, name="page watch", daemon=True)

    def begin(self) -> None:
        """From now on."""
        self._looking.start()

    def end(self) -> AbstractSet[Path] | None:
        """Look once more; those that were ever found, None where the looking has failed."""
        if not self._looking.is_alive():
            return None
        self._ended.set()
        self._looking.join(_END_LIMIT_S)
        return {path for path in self._found if not self._is_of_log(path)}

    def _is_of_log(self, path: Path) -> bool:
        return any(path.relative_to(self._below).match(pattern) for pattern in self._logs)

    def _look(self) -> None:
        has_ended = False
        while not has_ended:
            has_ended = self._ended.wait(self._every_s)
            # Once more behind the last transaction: a short recording is over between two looks.
            self._found |= direct_files(self._below)


class PageWatch:
    """Looks from `with` to its end at the files of a server that runs; `facts` afterwards, None where there is no page to look at.

    `logs` are patterns of the files that are the engine's log, below its data directory.
    BedplateError at its beginning where pages are to be written untorn and the file system refuses the first.
    """

    def __init__(
        self,
        data_directory: Path,
        cell: Cell,
        untorn: UntornWrites | None,
        *,
        is_wanted: bool,
        logs: Sequence[str] = (),
    ) -> None:
        self.facts: PageFacts | None = None
        self._data_directory = data_directory = data_directory.resolve()
        self._page_bytes = cell.database_block_bytes if is_wanted or untorn is not None else None
        self._untorn = untorn
        self._has_own_addresses = TRAITS[cell.filesystem.type].has_own_addresses
        self._direct = DirectFiles(data_directory, logs=logs, every_s=_LOOK_EVERY_S)
        self._before: _Mapped = {}
        self._probe = ""
        # Where they lay in the end.
        self._places: PagePlaces | None = None

    def __enter__(self) -> Self:
        if self._page_bytes is not None:
            self._probe = probe_untorn_write(
                self._data_directory.parent / "untorn-write.probe", self._page_bytes
            )
            # For want of room is a finding, and the server meets it too: its pages are counted.
            if (
                self._untorn is not None
                and self._untorn.mode == UNTORN_ON
                and self._probe not in (TAKEN, ENOSPC)
            ):
                raise BedplateError(
                    f"untorn_writes = on: an untorn write of a page of {format_size(self._page_bytes)} into the recorded file system "
                    f"came to {self._probe}; XFS with reflink and blocks no larger than the page takes one, others where the device does"
                )
            paths = (Path(each.path) for _, found in folders_below(self._data_directory) for each in found)
            self._before = _mapped(paths, self._page_bytes, has_own_addresses=self._has_own_addresses)
            self._direct.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._page_bytes is None:
            return
        direct = self._direct.end()
        if kind is None and direct is not None:
            self.facts = self._page_facts(direct, self._page_bytes)

    def facts_of(self, log: Log, span: range, unit: Profile | None) -> PageFacts | None:
        """With what reached the disk of the pages, where it is said to write a `unit` whole."""
        if self.facts is None or self._places is None or unit is None:
            return self.facts
        writes, uncovered = self._places.writes(log, span, unit)
        return replace(self.facts, writes=writes, uncovered_writes=uncovered)

    def _page_facts(self, direct: AbstractSet[Path], page_bytes: int) -> PageFacts:
        after = _mapped(direct, page_bytes, has_own_addresses=self._has_own_addresses)
        own = sorted(after)
        self._places = _places(after, page_bytes)
        unit = untorn_unit(own[0] if own else self._data_directory)
        before = [self._before[path] for path in own if path in self._before]
        return PageFacts(
            page_bytes=page_bytes,
            unit_min_bytes=unit.min_bytes if unit else None,
            unit_max_bytes=unit.max_bytes if unit else None,
            unit_max_optimised_bytes=unit.max_optimised_bytes if unit else None,
            probe=self._probe,
            direct_files=len(own),
            before=page_layout(before, page_bytes),
            after=page_layout(after.values(), page_bytes),
            counts=self._untorn.counted() if self._untorn else None,
        )


class RecoveryWatch:
    """Looks from `with` to its end at the files of a server that recovers, if its pages have a size by which to look."""

    def __init__(
        self,
        data_directory: Path,
        filesystem: str,
        page_bytes: int | None,
        untorn: UntornWrites | None,
        *,
        logs: Sequence[str] = (),
    ) -> None:
        self.places: PagePlaces | None = None
        self._page_bytes = page_bytes
        self.untorn = untorn
        self._has_own_addresses = TRAITS[filesystem].has_own_addresses
        self._direct = DirectFiles(data_directory, logs=logs, every_s=_LOOK_AT_RECOVERY_EVERY_S)
        self._found: AbstractSet[Path] | None = None

    def __enter__(self) -> Self:
        if self._page_bytes is not None:
            self._direct.begin()
        return self

    def __exit__(self, *_: object) -> None:
        if self._page_bytes is not None:
            self._found = self._direct.end()

    def facts(self) -> RecoveredPages | None:
        """Once all is written back, as `places`; None where nobody looked."""
        if self._page_bytes is None or self._found is None:
            return None
        after = _mapped(self._found, self._page_bytes, has_own_addresses=self._has_own_addresses)
        self.places = _places(after, self._page_bytes)
        counts = self.untorn.counted() if self.untorn else None
        return RecoveredPages(len(after), page_layout(after.values(), self._page_bytes), counts)


def _mapped(paths: Iterable[Path], page_bytes: int, *, has_own_addresses: bool) -> _Mapped:
    """Sizes and extents of those that are files of a page or more; the server may take one away meanwhile."""
    found: _Mapped = {}
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_size >= page_bytes:
                extents = _extents(path)
                # Of such a file system nobody can tell where on the device a page lies.
                if has_own_addresses:
                    extents = tuple(replace(each, at=None) for each in extents)
                found[path] = (status.st_size, extents)
    return found


def _places(files: _Mapped, page_bytes: int) -> PagePlaces:
    """Of those with a place."""
    found: list[tuple[int, int]] = []
    extents = (each for _, extents in files.values() for each in extents)
    for start, length in sorted((each.at, each.length) for each in extents if each.at is not None):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], start + length))
        else:
            found.append((start, start + length))
    return PagePlaces(page_bytes, tuple(found))


def _extents(path: Path) -> tuple[FileExtent, ...]:
    """None where the file system has no map of its files: no page has a place then."""
    try:
        return extents_of(path)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.ENOTTY):
            raise
        return ()


COMMIT = "commit"

# So many changes before two tell what the two are part of.
_BEFORE = 2


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
        _span(
            log, device, flushes, blocks, until=until, measured_from=measured_from, window_bytes=window_bytes
        )
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


def order_spans(
    log: Log, filesystem: FilesystemLevels, *, measured_from: int, until: int
) -> tuple[Waiting, ...]:
    """Where the order of what an engine does shows: behind each commit of its file system, and where file blocks are written over.

    Behind a commit is what was changed before it, and not what came after. So a fault of order between two changes of names or sizes, A and
    then B of one thread, is bad behind the commits that have A and not B: the first that ends behind A, or where that was under way already, the first
    that begins there. The kinds of a commit are the changes (A, B) that it may so come between, with up to two that came before A as well:
    a compaction may end in the same two as what is done each moment. Those are the likeliest of which B came latest. For a fault of which no
    call was seen, a commit is a kind by itself. Those of a block are how often it is written over, by powers of two: what changes at each
    commit is not what changes now and then, such as a manifest.
    """
    flushes = sorted({flush for history in log.histories for flush in history.flushes})
    commits = _commits(log, filesystem.type, flushes, measured_from, until)
    begins, ends = [each.begin for each in commits], [each.end for each in commits]
    begun_ns = [log.time_before(begin + 1) or 0 for begin in begins]
    threads: dict[int, list[tuple[int, NameCall]]] = {}
    for index in range(measured_from, until):
        for call in log.calls(index):
            threads.setdefault(call.thread, []).append((index, call))
    kinds: list[dict[str, int]] = [{COMMIT: 0} for _ in commits]
    pairs = (
        (calls, number, index, following)
        for calls in threads.values()
        for number, ((index, _), (_, following)) in enumerate(pairwise(calls))
    )
    for calls, number, index, following in pairs:
        for place in {bisect_left(ends, index), bisect_left(begins, index)} - {len(commits)}:
            is_certain = begins[place] >= index
            late_ns = following.time_ns - begun_ns[place] if is_certain else -_FOREVER_NS
            for first in range(number, max(0, number - _BEFORE) - 1, -1):
                before = ", ".join(call.kind for _, call in calls[first : number + 1])
                kind = f"{before}, then {following.kind}"
                kinds[place][kind] = max(late_ns, kinds[place].get(kind, late_ns))
    found = (
        Waiting(commit.first, commit.last, tuple(own), 0, tuple(own.values()))
        for commit, own in zip(commits, kinds, strict=True)
    )
    return (*found, *_written_over(log, filesystem, flushes, measured_from, until))


class _Commit(NamedTuple):
    """Its first and its last write, and the positions at which nothing behind it is on the medium: the first and the last."""

    begin: int
    end: int
    first: int
    last: int


def _commits(
    log: Log,
    of_type: str,
    flushes: Sequence[int],
    measured_from: int,
    until: int,
) -> list[_Commit]:
    """In their order; of several that one flush covers the last."""
    found: dict[int, _Commit] = {}
    begin: int | None = None
    for index in range(measured_from, until):
        part = _commit_part(log, of_type, index) if log.is_write(index) else CommitPart.NONE
        if begin is None and CommitPart.BEGIN in part:
            begin = index
        if CommitPart.END not in part:
            continue
        place = bisect_right(flushes, index)
        first = index + 1 if log.flags[index] & FUA else flushes[place] + 1 if place < len(flushes) else until
        if first < until:
            if begin is None:
                # It is not seen, and lies no further back than the flush before.
                begin = flushes[place - 1] if place else measured_from
            following = bisect_left(flushes, first)
            last = min(flushes[following], until) if following < len(flushes) else until
            found[first] = _Commit(begin, index, first, last)
        begin = None
    return [found[first] for first in sorted(found)]


def _commit_part(log: Log, of_type: str, index: int) -> CommitPart:
    device, offset, length = log.devices[index], log.offsets[index], log.lengths[index]
    found, start = CommitPart.NONE, 0
    while start < length:
        part = min(length - start, GRID_BYTES - (offset + start) % GRID_BYTES)
        with log.data(index, start, part) as block:
            found |= commit_part(of_type, device, offset + start, block)
        start += part
    return found


class _FileBlocks:
    """What is no metadata of the file system's, as far as that is told."""

    counts_new = False

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata

    def kind(self, device: int, offset: int, block: memoryview, /) -> str | None:
        """By where it is: how often it is written over is known in the end."""
        return str(offset // GRID_BYTES) if self._metadata.kind(device, offset, block) is None else None


def _written_over(
    log: Log, filesystem: FilesystemLevels, flushes: Sequence[int], measured_from: int, until: int
) -> Iterator[Waiting]:
    """The spans from a write over what a file had to the flush that covers it."""
    changes = tuple(_changes(log, _FileBlocks(metadata_of(filesystem)), measured_from, until, over_old=True))
    times = Counter(block for _, block in changes)
    spans: dict[tuple[int, int], list[str]] = {}
    for index, block in changes:
        place = bisect_right(flushes, index)
        last = min(flushes[place] if place < len(flushes) else until, until)
        kind = f"{REWRITTEN}, {2 ** (times[block].bit_length() - 1)} times or more"
        spans.setdefault((index + 1, max(index + 1, last)), []).append(kind)
    for (first, last), kinds in spans.items():
        yield Waiting(first, last, tuple(sorted(set(kinds))), len(kinds))


def _span(
    log: Log,
    device: int,
    flushes: int,
    blocks: list[tuple[int, str]],
    *,
    until: int,
    measured_from: int,
    window_bytes: int,
) -> Waiting:
    history = log.histories[device]

    def waiting(position: int) -> list[str]:
        held = cache_at(history, position, window_bytes, measured_from=measured_from)
        oldest = history.changes[held.first] if held.first < held.end else position
        return [kind for index, kind in blocks if index >= oldest]

    first = blocks[-1][0] + 1
    last = min(history.flushes[flushes], until) if flushes < len(history.flushes) else until
    kinds = waiting(first)
    if len(waiting(last)) < len(kinds):
        last = first
    return Waiting(first, last, tuple(sorted(set(kinds))), len(kinds))


def _changes(
    log: Log, metadata: Metadata, measured_from: int, until: int, *, over_old: bool = False
) -> Iterator[tuple[int, str]]:
    """Each block of the grid that a measured write changes in more than one sector, if it is metadata.

    `over_old` counts sectors only that held something before.
    """
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
                    changed = contents.changed(
                        device, offset + start, block, counts_new=metadata.counts_new, over_old=over_old
                    )
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

    def changed(
        self, device: int, offset: int, block: memoryview, *, counts_new: bool, over_old: bool = False
    ) -> int:
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
            block[sector : sector + SECTOR_BYTES] != (old := before[at + sector : at + sector + SECTOR_BYTES])
            and (not over_old or any(old))
            for sector in range(0, len(block), SECTOR_BYTES)
        )


_BLOCK_SECTORS = 4 * KIB // KERNEL_SECTOR_BYTES


def note_writers(path: Path, trace: RequestTrace) -> int:
    """Write into the log who asked for each write while it was traced; how many have a name now. CallsNotCounted where the trace has a gap."""
    requests, titles = trace.requests, trace.titles
    with read_log(path) as log:
        found = {
            log.writers_at(entry): packed_writers(_processes(asked, titles))
            for device, number in enumerate(trace.devices)
            for entry, asked in askers(log, device, [each for each in requests if each.device == number])
        }
    overwrite(path, found.items())
    return len(found)


def note_calls(path: Path, calls: Iterable[NameCall]) -> None:
    """Write into the log which names and sizes were changed before each entry and behind the one before; calls in the order of their times."""
    found: dict[int, tuple[int, list[NameCall]]] = {}
    following = iter(calls)
    call = next(following, None)
    with read_log(path) as log:
        for index in range(len(log)):
            time_ns = None if log.flags[index] & MARK else log.entry(index).time_ns
            while call is not None and time_ns is not None and call.time_ns <= time_ns:
                found.setdefault(log.calls_at(index), (time_ns, []))[1].append(call)
                call = next(following, None)
    overwrite(path, ((at, packed_calls(own, time_ns)) for at, (time_ns, own) in found.items()))


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

    def take(self, block_request: BlockRequest) -> None:
        """The next one."""
        end = block_request.sector + block_request.sectors
        self._by_begin[block_request.sector] = block_request
        for block in range(block_request.sector // _BLOCK_SECTORS, -(-end // _BLOCK_SECTORS)):
            self._by_block[block] = block_request

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
    requests: Sequence[BlockRequest], titles: Mapping[int, ProcessTitle | None]
) -> Iterator[WritingProcess]:
    """Each once."""
    for request in {(each.thread, each.thread or each.name): each for each in requests}.values():
        title = titles.get(request.thread)
        if title is None:
            yield WritingProcess(request.thread, request.name, None)
        else:
            yield WritingProcess(title.pid, title.name, title.is_kernel)


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
        asked = [each for each in trace.requests if each.asks_for_medium]
        found = written_through(log, asked, trace.devices)
    write_down(path, found)
    return len(found.writes)


def write_down(path: Path, through: WrittenThrough) -> None:
    """Give the entries their flags, in the log itself."""
    with read_log(path) as log:
        changed = [(log.flags_at(index), log.flags[index] | FUA) for index in through.writes]
        changed += [(log.flags_at(index), log.flags[index] & ~FLUSH) for index in through.needless]
    overwrite(path, [(at, _FLAGS.pack(flags)) for at, flags in changed])


def _of_device(log: Log, device: int, requests: Sequence[BlockRequest]) -> tuple[set[int], set[int]]:
    entries = [index for index in range(len(log)) if log.devices[index] == device]
    times = [log.entry(index).time_ns or 0 for index in entries]
    begin, end = requests[0].time_ns, requests[-1].time_ns
    queued = [each for each in requests if not each.is_done]
    taken: set[int] = set()

    def write_of(block_request: BlockRequest) -> int | None:
        """The entry that it became: the first of its place behind its coming that is no other's."""
        for place in range(bisect_left(times, block_request.time_ns), len(entries)):
            index = entries[place]
            same = log.offsets[index] == block_request.sector * KERNEL_SECTOR_BYTES
            if (
                same
                and log.lengths[index] == block_request.sectors * KERNEL_SECTOR_BYTES
                and index not in taken
            ):
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


def _is_beside(began_ns: int, first_ns: int, done_ns: Sequence[int], place: int) -> bool:
    """Whether a sync that began then, and ended at that place or later, was under way with a request of that time, which is done once."""
    if place < len(done_ns) and done_ns[place] < first_ns:
        return False
    last = bisect_left(done_ns, first_ns) + 1
    return last >= len(done_ns) or began_ns <= done_ns[last]


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


class Named(NamedTuple):
    """Whose it is, and its name."""

    place: WrittenPlace
    words: str


@dataclass(frozen=True)
class ImageNames:
    """Names by images in turn: the next one is asked where the one before knows no file's name.

    `called` are the engine's own names of files, `log_files` patterns of its log's; whose they are says the `subject`, without which
    parts of files have no names.
    """

    owners: Sequence[BlockOwners]
    pages: PageNames | None
    called: Mapping[str, str] = field(default_factory=dict)
    log_files: tuple[str, ...] = ()
    subject: Subject | None = None
    sizes: Sequence[Mapping[str, int]] = ()
    """of each image: the sizes of the engine's files by path"""

    def unsynced(self, log: Log, entries: range) -> Unsynced | None:
        """What of the engine's files the first image has and the second lacks, which was cut where `entries` begin, the first where they end.

        None where the files could not be looked at.
        """
        if len(self.sizes) < 2 or not any(self.sizes):
            return None
        after, before = self.sizes[:2]
        if before.keys() != after.keys():
            return Unsynced.NAME
        changed = {path for path, size in after.items() if size != before[path]} or set(after)
        paths = {f"{DATA_DIRECTORY}/{path}" for path in changed}
        for entry in filter(log.is_write, entries):
            with log.data(entry, 0, log.lengths[entry]) as data:
                owners = self.owners[0].of(log.devices[entry], log.offsets[entry], data)
                if any(owner.path in paths for owner in owners):
                    return Unsynced.BYTES
        return Unsynced.SIZE

    def of(self, log: Log, piece: Piece) -> Iterator[Named]:
        """Of a part of a write; a discard brings nothing that has a name."""
        if log.flags[piece.entry] & DISCARD:
            yield Named(WrittenPlace.UNKNOWN, "a discard")
            return
        device, offset = log.devices[piece.entry], log.offsets[piece.entry] + piece.start
        with log.data(piece.entry, piece.start, piece.length) as data:
            found: tuple[Owner, ...] = ()
            for owners in self.owners:
                found = owners.of(device, offset, data)
                if found[0].place is not WrittenPlace.UNKNOWN:
                    break
            else:
                found = self._by_whole_blocks(log, piece) or found
            for owner in found:
                yield self._label(owner, bytes(data[owner.start : owner.start + owner.length]))

    def _by_whole_blocks(self, log: Log, piece: Piece) -> tuple[Owner, ...]:
        """The file system's own blocks that a part is of: only its beginning says what a block is, and that may have been kept."""
        begin = log.offsets[piece.entry]
        first, end = begin + piece.start, begin + piece.start + piece.length
        start = max(0, first - first % GRID_BYTES - begin)
        stop = min(log.lengths[piece.entry], end + -end % GRID_BYTES - begin)
        with log.data(piece.entry, start, stop - start) as blocks:
            for owners in self.owners:
                found = owners.of(log.devices[piece.entry], begin + start, blocks)
                if found[0].place is WrittenPlace.METADATA:
                    return found
        return ()

    def _label(self, block_owner: Owner, data: bytes) -> Named:
        if block_owner.path is None:
            return Named(block_owner.place, block_owner.words)
        inside = block_owner.path.removeprefix(f"{DATA_DIRECTORY}/")
        if inside == block_owner.path:
            return Named(WrittenPlace.OTHER_FILE, block_owner.words)
        page = None
        if self.pages is not None and self.subject is not None:
            page = self.pages.name(inside, block_owner.offset, data, self.called, self.subject)
        words = block_owner.words.removeprefix(f"{DATA_DIRECTORY}/")
        is_log = any(fnmatch(inside, pattern) for pattern in self.log_files)
        place = WrittenPlace.ENGINE_LOG if is_log else WrittenPlace.ENGINE
        return Named(place, words if page is None else f"{words}: {page}")


def page_names(engine: str) -> PageNames | None:
    """The engine's own words for parts of its files; None of one that has none."""
    found: PageNames | None = registry.engine_part_or_none(engine, "page_names")
    return found


def log_files(engine: str) -> tuple[str, ...]:
    """Patterns of its log's files, below its data directory; none of an engine that has no log, or none that is known."""
    found: FaultEngine | None = registry.engine_part_or_none(engine, "faulty_disk")
    return () if found is None else found.log_files


# linux/inotify.h: IN_MOVED_TO, IN_DELETE; IN_CLOEXEC and IN_NONBLOCK are those of open(2).
_MOVED_TO, _DELETE = 0x80, 0x200

_EVENTS_BYTES = 64 * 1024
_NOTHING_TO_WATCH = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES})


class NameCommits:
    """From `with` on until its end. `folder` and those that are below it then are watched; `file` is made on the same file system."""

    def __init__(self, folder: Path, file: Path) -> None:
        self._folder = folder
        self._file = file
        self._thread = threading.Thread(target=self._work, name="neighbour", daemon=True)

    def __enter__(self) -> Self:
        libc = ctypes.CDLL(None, use_errno=True)
        self._events = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._events < 0:
            code = ctypes.get_errno()
            raise BedplateError(_unwatched(str(self._folder), code))
        try:
            self._watch(libc.inotify_add_watch)
        except BaseException:
            os.close(self._events)
            raise
        self._over, self._end = os.pipe2(os.O_CLOEXEC)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._end)
        self._thread.join()
        os.close(self._over)
        os.close(self._events)

    def _watch(self, add_watch: Callable[[int, bytes, int], int]) -> None:
        for folder, _ in folders_below(self._folder):
            if add_watch(self._events, os.fsencode(folder), _MOVED_TO | _DELETE) >= 0:
                continue
            code = ctypes.get_errno()
            # One that is gone meanwhile, or cannot be read, has no names that change.
            if code not in _NOTHING_TO_WATCH:
                raise BedplateError(_unwatched(folder, code))

    def _work(self) -> None:
        # A file system that gives errors is the engine's to complain of.
        with suppress(OSError):
            file = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                self._commit(file)
            finally:
                os.close(file)

    def _commit(self, file: int) -> None:
        while True:
            ready, _, _ = select.select([self._events, self._over], [], [])
            if self._events not in ready:
                return
            os.write(file, b"%d\n" % len(os.read(self._events, _EVENTS_BYTES)))
            os.fsync(file)


def _unwatched(folder: str, code: int) -> str:
    said = f"nothing tells what is renamed in {folder}: {os.strerror(code)}"
    if code != errno.ENOSPC:
        return said
    return f"{said}, which is the limit of watches of a user; raise fs.inotify.max_user_watches"
