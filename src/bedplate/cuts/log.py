"""The recorder's log: every write, flush and discard of the devices, and the marks of the clients, in one order.

The format is that of the kernel's dm-log-writes (drivers/md/dm-log-writes.c), which xfstests and QEMU's
blklogwrites share. A superblock fills the first sector: `<QQQI` magic, version, number of entries, sector size. Each
entry has a header of one sector, `<QQQQ` sector, number of sectors, flags, length of its own data; the sectors that
were written follow it, none after a flush, a discard or a mark. The text of a mark stands in its header after the
struct.

The recorder adds `<QI` to a header, where other writers leave zeros: the monotonic time in nanoseconds and the device,
after the struct, or at the end of the sector in a mark. A time of zero is none at all. Where it is no mark, `<I` follows: how
many entries were logged between the moment at which the request was issued and the one at which it was complete, when it
was logged. So entries stand in the order of completion, and one with 0, as in every log of others, was complete at once.
Behind that the visit notes who asked for a write, up to four times `<IB59s`: process, kind (1 program, 2 thread of the kernel, 3 it
was gone before that was looked up), name. No name is none at all: it was not seen. Behind these, up to 23 times `<BII`: which names
and sizes the engine changed since the entry before, each by its number in `host.block_requests.CALL_KINDS`, and how many nanoseconds before
this one, and the thread that did it.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import struct
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice
from pathlib import Path
from typing import NamedTuple, Self

from bedplate.cuts.blame import WritingProcess
from bedplate.cuts.records import ChosenState, CutPoint, Profile
from bedplate.errors import OutputNotUnderstood
from bedplate.units import one_line

FLUSH = 1
FUA = 2
DISCARD = 4
MARK = 8

# Newer kernels mark what a file system wrote as metadata; it changes nothing here.
_METADATA = 16

_KNOWN = FLUSH | FUA | DISCARD | MARK | _METADATA

# What a device is in the log, and the name of its image. The journal is an external one.
DISK, JOURNAL = 0, 1

DEVICE_NAMES = ("disk", "journal")
_MAGIC = 0x6A736677736872
_VERSION = 1
_SUPERBLOCK = struct.Struct("<QQQI")
_HEADER = struct.Struct("<QQQQ")
_EXTENSION = struct.Struct("<QI")
_HEADER_AND_EXTENSION = struct.Struct("<QQQQQII")

# In a header, behind sector and number of sectors.
_FLAGS_AT = 16

_WRITER = struct.Struct("<IB59s")
_WRITERS_MOST = 4
_KINDS = {False: 1, True: 2, None: 3}

# Behind the writers: of each call that changed names or sizes before this entry was issued, and behind the one before, its kind,
# how many nanoseconds before, and the thread that made it.
_CALL = struct.Struct("<BII")

_CALLS_MOST = 23
_LONGEST_NS = 2**32 - 1
_SMALLEST_SECTOR = 512
_LARGEST_SECTOR = 65536

# What a file's offset can be.
_LARGEST_OFFSET = 2**63 - 1


class LogEntry(NamedTuple):
    """One entry: what was asked of which device, in bytes; `time_ns` is None where the writer noted none."""

    device: int
    offset: int
    length: int
    flags: int
    time_ns: int | None


class History:
    """What happened to one device: numbers of entries, each column in their order.

    `changes` are writes and discards; `bytes_before[k]` is what was written before the k-th of them, and the last
    value what was written at all. `flushes` are the entries before which the device was told to keep everything that was
    complete. `has_late` says whether any change was issued before the entry in front of it.
    """

    def __init__(self) -> None:
        self.changes = array("Q")
        self.bytes_before = array("Q", [0])
        self.flushes = array("Q")
        self.has_late = False
        # How many entries there were when the k-th change was issued, and the least of these from the k-th on.
        self._issued = array("Q")
        self._least_issued = array("Q")

    def add(self, index: int, length: int, flags: int, late: int) -> None:
        """Take in the device's next entry."""
        if flags & FLUSH:
            self.flushes.append(index)
        if length and not flags & MARK:
            self.has_late |= late > 0
            self._issued.append(index - late)
            self.changes.append(index)
            self.bytes_before.append(self.bytes_before[-1] + (0 if flags & DISCARD else length))

    def flushes_met(self, index: int, position: int) -> int:
        """The flushes before entry `position` that were sent while the change `index` was on its way."""
        issued = self._issued[bisect_left(self.changes, index)]
        return max(0, bisect_left(self.flushes, min(index, position)) - bisect_left(self.flushes, issued))

    def in_flight(self, position: int) -> tuple[int, ...]:
        """The changes that were issued within the first `position` entries, and were not complete then."""
        if not self.has_late:
            return ()
        if not self._least_issued:
            least = accumulate(reversed(self._issued), min)
            self._least_issued = array("Q", reversed(tuple(least)))
        found = []
        for k in range(bisect_left(self.changes, position), len(self.changes)):
            if self._least_issued[k] >= position:
                break
            if self._issued[k] < position:
                found.append(self.changes[k])
        return tuple(found)


class Log:
    """A log that is mapped, not read: an index of its entries, numbered from 0, and views of their data.

    Entries count as the writer's did. A flush with data is a flush before that data, as the kernel means it.
    """

    def __init__(self, path: Path, content: mmap.mmap) -> None:
        self.path = path
        self._content = content
        # Columns, not objects: a log of a few seconds has hundreds of thousands of entries.
        self.offsets = array("Q")
        self.lengths = array("Q")
        self.flags = array("B")
        self.devices = array("B")
        self._times_ns = array("Q")
        self._data_at = array("Q")
        self._sector_bytes = 0
        self.histories = tuple(History() for _ in DEVICE_NAMES)
        self._index()
        self._view = memoryview(content)

    def __len__(self) -> int:
        return len(self.flags)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Unmap the log; views of its data that are still held would keep it, so that is an error of ours."""
        self._view.release()
        self._content.close()

    def entry(self, index: int) -> LogEntry:
        """One entry by its number."""
        return LogEntry(
            self.devices[index],
            self.offsets[index],
            self.lengths[index],
            self.flags[index],
            self._times_ns[index] or None,
        )

    def is_write(self, index: int) -> bool:
        """Whether it carries data for a device."""
        return self.lengths[index] > 0 and not self.flags[index] & (DISCARD | MARK)

    def data(self, index: int, start: int = 0, length: int | None = None) -> memoryview:
        """What a write wrote, or `length` bytes of it from `start`; nothing is copied."""
        first = self._data_at[index] + start
        return self._view[first : first + (self.lengths[index] - start if length is None else length)]

    def mark(self, index: int) -> bytes | None:
        """The text of a mark, None for any other entry."""
        if not self.flags[index] & MARK:
            return None
        first = self._data_at[index]
        return bytes(self._view[first : first + self.lengths[index]])

    def flags_at(self, index: int) -> int:
        """Where in the file the flags of an entry stand that is no mark."""
        return self._data_at[index] - self._sector_bytes + _FLAGS_AT

    def writers_at(self, index: int) -> int:
        """Where in the file it says who asked for a write."""
        return self._data_at[index] - self._sector_bytes + _HEADER_AND_EXTENSION.size

    def writers(self, index: int) -> tuple[WritingProcess, ...] | None:
        """Who asked for a write; None where that was not seen."""
        at = self.writers_at(index)
        slots = _WRITER.iter_unpack(self._content[at : at + _WRITERS_MOST * _WRITER.size])
        kinds = {number: is_kernel for is_kernel, number in _KINDS.items()}
        found = tuple(
            WritingProcess(pid, one_line(name.rstrip(b"\0").decode(errors="replace")), kinds.get(kind))
            for pid, kind, name in slots
            if name.strip(b"\0")
        )
        return found or None

    def calls_at(self, index: int) -> int:
        """Where in the file it says which names and sizes the engine changed before an entry that is no mark."""
        return self.writers_at(index) + _WRITERS_MOST * _WRITER.size

    def calls(self, index: int) -> tuple[NameCall, ...]:
        """These changes in their order; empty where none was seen, and of a mark."""
        if self.flags[index] & MARK:
            return ()
        at = self.calls_at(index)
        codes = self._content[at : at + _CALLS_MOST * _CALL.size]
        if not codes[0]:
            return ()
        return tuple(
            NameCall(self._times_ns[index] - before_ns, CALL_KINDS[code - 1], thread)
            for code, before_ns, thread in _CALL.iter_unpack(codes)
            if 0 < code <= len(CALL_KINDS)
        )

    def find_mark(self, text: bytes, after: int = 0) -> int | None:
        """The first mark with exactly that text, from entry `after` on."""
        return next((index for index in range(after, len(self)) if self.mark(index) == text), None)

    def time_before(self, position: int) -> int | None:
        """When the last of the first `position` entries was issued that has a time, in monotonic nanoseconds."""
        return next((time for index in range(position - 1, -1, -1) if (time := self._times_ns[index])), None)

    def _index(self) -> None:
        sector_bytes, count = self._superblock()
        self._sector_bytes = sector_bytes
        total = len(self._content)
        at = sector_bytes
        while count is None or len(self) < count:
            if at + sector_bytes > total:
                break
            sector, sectors, flags, data_length, time_ns, device, late = _HEADER_AND_EXTENSION.unpack_from(
                self._content, at
            )
            data_at, length = at + sector_bytes, sectors * sector_bytes
            at = data_at
            if flags & ~_KNOWN:
                raise self._not_understood(f"flags within {_KNOWN:#x}", f"{flags:#x}", len(self))
            if not flags & MARK and (sector + sectors) * sector_bytes > _LARGEST_OFFSET:
                raise self._not_understood("an offset of 63 bits", f"{sector} + {sectors} sectors", len(self))
            if flags & MARK:
                if _HEADER.size + data_length > sector_bytes:
                    raise self._not_understood("a mark within its sector", f"{data_length} bytes", len(self))
                data_at, length = data_at - sector_bytes + _HEADER.size, data_length
                time_ns, device = self._mark_extension(at, data_length, sector_bytes)
                late = 0
            elif not flags & DISCARD:
                at += length
                if at > total:
                    break
                if count is None and not (length or flags or time_ns):
                    break  # a log that was given its room beforehand ends in zeros
            if device >= len(DEVICE_NAMES):
                raise self._not_understood("device 0 or 1", str(device), len(self))
            if late > len(self):
                raise self._not_understood(f"{len(self)} entries before it or fewer", str(late), len(self))
            self.histories[device].add(len(self), length, flags, late)
            self.offsets.append(sector * sector_bytes if not flags & MARK else 0)
            self.lengths.append(length)
            self.flags.append(flags)
            self.devices.append(device)
            self._times_ns.append(time_ns)
            self._data_at.append(data_at)
        if count is not None and len(self) < count:
            raise self._not_understood(f"{count} entries", f"the file ends after {len(self)}", len(self))

    def _mark_extension(self, end: int, text_length: int, sector_bytes: int) -> tuple[int, int]:
        if _HEADER.size + text_length + _EXTENSION.size > sector_bytes:
            return 0, 0  # the text leaves no room for it
        time_ns, device = _EXTENSION.unpack_from(self._content, end - _EXTENSION.size)
        return time_ns, device

    def _superblock(self) -> tuple[int, int | None]:
        """Bytes of a sector and how many entries there are; None from a recorder that was killed."""
        magic, version, count, sector_bytes = _SUPERBLOCK.unpack_from(self._content)
        if (magic, version) != (_MAGIC, _VERSION):
            raise self._not_understood(
                f"magic {_MAGIC:#x}, version {_VERSION}", f"{magic:#x}, version {version}"
            )
        if not _SMALLEST_SECTOR <= sector_bytes <= _LARGEST_SECTOR or sector_bytes & (sector_bytes - 1):
            raise self._not_understood("a sector of 512 to 65536 bytes", str(sector_bytes))
        return sector_bytes, count or None

    def _not_understood(self, expected: str, text: str, index: int | None = None) -> OutputNotUnderstood:
        where = "" if index is None else f", entry {index}"
        return OutputNotUnderstood(f"the write log {self.path}{where}", expected=expected, found=text)


def packed_writers(writers: Iterable[WritingProcess]) -> bytes:
    """As an entry's header has them; those beyond the fourth, and the ends of long names, are left out."""
    return b"".join(
        _WRITER.pack(each.pid, _KINDS[each.is_kernel], each.name.encode())
        for each in islice(writers, _WRITERS_MOST)
    )


def packed_calls(calls: Sequence[NameCall], time_ns: int) -> bytes:
    """As the header of an entry of that time has them; the last ones where there are too many."""
    return b"".join(
        _CALL.pack(CALL_KINDS.index(call.kind) + 1, min(time_ns - call.time_ns, _LONGEST_NS), call.thread)
        for call in calls[-_CALLS_MOST:]
    )


def overwrite(path: Path, writes: Iterable[tuple[int, bytes]]) -> None:
    """Put bytes where they belong in a log that has ended; whoever has mapped it sees them."""
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        for at, part in writes:
            os.pwrite(file, part, at)
    finally:
        os.close(file)


def read_log(path: Path) -> Log:
    """Map a log and index its entries; the last one that is not whole is left out if the recorder was killed.

    OutputNotUnderstood if it is no log, or ends before the number of entries that its superblock gives.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        if size < _SMALLEST_SECTOR:
            raise OutputNotUnderstood(
                f"the write log {path}", expected="a superblock of 512 bytes", found=f"{size} bytes"
            )
        content = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
    finally:
        os.close(descriptor)
    try:
        return Log(path, content)
    except BaseException:
        content.close()
        raise


_TORN_BYTES = {
    Profile.SUBSET_512: 512,
    Profile.SUBSET_4K: 4096,
    Profile.SUBSET_8K: 8192,
    Profile.SUBSET_16K: 16384,
    Profile.UNTORN_8K: 4096,
    Profile.UNTORN_16K: 4096,
}

# A write of a power of two that is aligned to itself and no longer is whole or not there (NVM Express 1.4, 6.4: of one that
# is longer than AWUPF, or crosses a boundary, nothing is promised).
_UNIT_BYTES = {Profile.UNTORN_8K: 8192, Profile.UNTORN_16K: 16384}

_KEPT_RUN = re.compile("1+")


class Piece(NamedTuple):
    """A part of an entry that is kept: `length` bytes from `start` of its data."""

    entry: int
    start: int
    length: int


class Cache(NamedTuple):
    """One device's cache at a cut: its changes from the `first`-th to before the `end`-th of its history.

    `flush_position` is the flush that emptied it; None where something else bounds it. `in_flight` are the entries that were
    on their way to it.
    """

    first: int
    end: int
    flush_position: int | None
    in_flight: tuple[int, ...] = ()

    @property
    def waiting(self) -> int:
        """How many changes are at risk."""
        return self.end - self.first + len(self.in_flight)


@dataclass(frozen=True)
class CrashState:
    """What was volatile at a cut, and what of it the medium holds afterwards.

    `durable_until` says for each device before which entry all of its changes are on the medium. `kept` are applied to
    that in their order. `flush_positions` are the flushes that emptied the caches, None where none did. A write counts
    as kept if any of it is. `volatile_discards` wait beside the writes.
    """

    durable_until: tuple[int, ...]
    flush_positions: tuple[int | None, ...]
    volatile_writes: int
    volatile_bytes: int
    kept_writes: int
    kept: tuple[Piece, ...]
    volatile_discards: int = 0

    @property
    def flush_position(self) -> int | None:
        """The last flush of the disk before the cut that counts."""
        return self.flush_positions[DISK]


def cache_at(
    history: History,
    position: int,
    window_bytes: int,
    *,
    measured_from: int = 0,
    honours_flushes: bool = True,
) -> Cache:
    """What one device's cache holds before entry `position`, by the rules above."""
    end = bisect_left(history.changes, position)
    by_size = bisect_left(history.bytes_before, history.bytes_before[end] - window_bytes)
    first = min(end, max(by_size, bisect_left(history.changes, measured_from)))
    in_flight = history.in_flight(position)
    flushes_before = bisect_left(history.flushes, position)
    if not honours_flushes or flushes_before == 0:
        return Cache(first, end, None, in_flight)
    flush = history.flushes[flushes_before - 1]
    by_flush = bisect_left(history.changes, flush)
    if by_flush < first or flush < measured_from:
        return Cache(first, end, None, in_flight)
    return Cache(by_flush, end, flush, in_flight)


@dataclass(frozen=True)
class Losses:
    """What a point lost, as parts that are kept or not each by itself.

    `point` is the same cut with those parts chosen; it is drawn by no seed, and keeps whatever else was at risk. `parts` are the lost
    ones by their numbers, in the log's order, and how many there are besides them is `kept`.
    """

    point: CutPoint
    parts: Mapping[int, Piece]
    kept: int

    def only(self, parts: Iterable[int]) -> CutPoint:
        """The same cut that loses these alone."""
        return replace(self.point, state=ChosenState(tuple(sorted(parts)), kept=False))


def losses(log: Log, point: CutPoint, window_bytes: int, *, measured_from: int = 0) -> Losses:
    """What a point lost; a cut in order lost what was on its way alone."""
    changes = _changes(log, _caches(log, point, window_bytes, measured_from))
    whole = point.profile in (Profile.LOST, Profile.ORDERED)
    profile = Profile.WHOLE if whole else point.profile
    kept = {
        (piece.entry, start)
        for piece in _kept_pieces(log, point, changes)
        for start in _starts(log, profile, piece)
    }
    found: dict[int, Piece] = {}
    number = 0
    for index in changes:
        for part in _parts(log, profile, index):
            if (index, part.start) not in kept:
                found[number] = part
            number += 1
    chosen = replace(point, profile=profile, seed=0, state=ChosenState(tuple(found), kept=False))
    return Losses(chosen, found, number - len(found))


def window(log: Log, point: CutPoint, window_bytes: int, *, measured_from: int = 0) -> CrashState:
    """The window of a point and what is kept of it; a control's device ignored every flush.

    ValueError if the log has fewer entries than the point's position.
    """
    if not 0 <= point.position <= len(log):
        raise ValueError(f"a cut at entry {point.position}: {log.path} has {len(log)} entries")
    caches = _caches(log, point, window_bytes, measured_from)
    changes = _changes(log, caches)
    kept = tuple(_kept_pieces(log, point, changes))
    writes = sum(map(log.is_write, changes))
    return CrashState(
        durable_until=tuple(
            history.changes[cache.first] if cache.first < cache.end else point.position
            for history, cache in zip(log.histories, caches, strict=True)
        ),
        flush_positions=tuple(cache.flush_position for cache in caches),
        volatile_writes=writes,
        volatile_bytes=sum(log.lengths[index] for index in changes if log.is_write(index)),
        kept_writes=len({piece.entry for piece in kept if log.is_write(piece.entry)}),
        kept=kept,
        volatile_discards=len(changes) - writes,
    )


def changes_at(log: Log, position: int, window_bytes: int, *, measured_from: int = 0) -> list[int]:
    """What is at risk on all devices at a cut before entry `position`, in the log's order."""
    caches = [
        cache_at(history, position, window_bytes, measured_from=measured_from) for history in log.histories
    ]
    return _changes(log, caches)


def free_parts(log: Log, profile: Profile, changes: Iterable[int], position: int) -> tuple[int, ...]:
    """The numbers of the parts of these changes that the profile keeps or not each by itself, at a cut before entry `position`.

    What went past the cache (FUA) is there always: its parts have numbers and no choice.
    """
    found: list[int] = []
    number = 0
    for index in changes:
        count = _blocks(log, profile, index)
        if not _is_through(log, index, position):
            found += range(number, number + count)
        number += count
    return tuple(found)


def _is_through(log: Log, index: int, position: int) -> bool:
    return bool(log.flags[index] & FUA) and index < position


def _caches(log: Log, point: CutPoint, window_bytes: int, measured_from: int) -> list[Cache]:
    return [
        cache_at(
            history,
            point.position,
            window_bytes,
            measured_from=measured_from,
            honours_flushes=not point.control,
        )
        for history in log.histories
    ]


def _changes(log: Log, caches: Iterable[Cache]) -> list[int]:
    return sorted(
        index
        for history, cache in zip(log.histories, caches, strict=True)
        for index in (*history.changes[cache.first : cache.end], *cache.in_flight)
    )


def _kept_pieces(log: Log, point: CutPoint, changes: list[int]) -> Iterator[Piece]:
    """The parts of these changes that the medium holds, in order."""
    blocks = [_blocks(log, _profile_at(point, index), index) for index in changes]
    bits = _bits(point.seed, sum(blocks)) if point.state is None else _bits_of_state(point.state, sum(blocks))
    at = 0
    for index, count in zip(changes, blocks, strict=True):
        drawn, at = bits[at : at + count], at + count
        is_through = not point.control and _is_through(log, index, point.position)
        if is_through or (point.profile is Profile.ORDERED and index < point.position):
            yield Piece(index, 0, log.lengths[index])
        elif is_torn(log, point.profile, index):
            yield from _torn(log, index, drawn, _TORN_BYTES[point.profile])
        elif drawn == "1":
            yield Piece(index, 0, log.lengths[index])


def _profile_at(point: CutPoint, index: int) -> Profile:
    """Of what was on its way at a cut in order nobody knows whether it came."""
    in_flight = point.profile is Profile.ORDERED and index >= point.position
    return Profile.WHOLE if in_flight else point.profile


def is_torn(log: Log, profile: Profile, index: int) -> bool:
    """Whether a device may keep a part of this change: not of a write that its unit covers, nor of a discard."""
    if profile not in _TORN_BYTES or log.flags[index] & DISCARD:
        return False
    length = log.lengths[index]
    fits = length <= _UNIT_BYTES.get(profile, 0) and length & (length - 1) == 0
    return not (fits and log.offsets[index] % length == 0)


def _blocks(log: Log, profile: Profile, index: int) -> int:
    """How many parts of this change are kept or not each by itself: blocks of the device's own grid, if torn."""
    if profile in (Profile.ORDERED, Profile.LOST):
        return 0
    if not is_torn(log, profile, index):
        return 1
    block_bytes = _TORN_BYTES[profile]
    first = log.offsets[index] // block_bytes
    return -(-(log.offsets[index] + log.lengths[index]) // block_bytes) - first


def _parts(log: Log, profile: Profile, index: int) -> Iterator[Piece]:
    """The parts of a change that `_blocks` counts."""
    length = log.lengths[index]
    if not is_torn(log, profile, index):
        yield from [Piece(index, 0, length)] * _blocks(log, profile, index)
        return
    block_bytes = _TORN_BYTES[profile]
    ahead = log.offsets[index] % block_bytes
    for block in range(_blocks(log, profile, index)):
        start = max(0, block * block_bytes - ahead)
        yield Piece(index, start, min(length, (block + 1) * block_bytes - ahead) - start)


def _starts(log: Log, profile: Profile, piece: Piece) -> Iterator[int]:
    """Where the parts begin that a piece is made of."""
    end = piece.start + piece.length
    return (part.start for part in _parts(log, profile, piece.entry) if piece.start <= part.start < end)


def _torn(log: Log, index: int, bits: str, block_bytes: int) -> Iterator[Piece]:
    offset, length = log.offsets[index], log.lengths[index]
    ahead = offset % block_bytes
    for run in _KEPT_RUN.finditer(bits):
        start = max(0, run.start() * block_bytes - ahead)
        yield Piece(index, start, min(length, run.end() * block_bytes - ahead) - start)


def _bits_of_state(state: ChosenState, count: int) -> str:
    """So many digits, 1 where the part is kept."""
    others, these = ("0", "1") if state.kept else ("1", "0")
    digits = [others] * count
    for part in state.parts:
        digits[part] = these
    return "".join(digits)


def _bits(seed: int, count: int) -> str:
    """So many digits 0 or 1, the same for the same seed everywhere."""
    if not count:
        return ""
    drawn = int.from_bytes(hashlib.shake_256(str(seed).encode()).digest(-(-count // 8)), "big")
    return format(drawn, f"0{-(-count // 8) * 8}b")[:count]


_PREFIX = b"A "
_ACKNOWLEDGED = re.compile(rb"A (\d{1,9}) (\d{1,18}) (\d{1,18})\s*")
_OTHERS_PREFIX = b"ack "
_OTHERS = re.compile(rb"ack (\d{1,9}) (\d{1,18})")

# A commit that returned an error: the client has not got it, and may try the same number again.
_FAILED = re.compile(rb"fail (\d{1,9}) (\d{1,18})")

_OTHERS_EXPECTED = (
    "`begin`, or `ack CLIENT NUMBER` with the numbers 1, 2, 3, … of each client, or `fail CLIENT NUMBER` of the next one, whole lines in one write "
    "(docs/ENGINES.md)"
)


@dataclass(frozen=True)
class Missing:
    """Acknowledged transactions that are not there: how many, and how long before the cut the first was promised.

    `first_ms` is None where nothing is missing.
    """

    transactions: int
    first_ms: float | None


@dataclass(frozen=True)
class Acknowledged:
    """The promises before one cut. `highest` is each client's last sequence; `cut_us` when the cut was, monotonic.

    `failed` are the sequences that were reported to clients as failed, of those that were not acknowledged at a later try.
    """

    transactions: int
    highest: Mapping[int, int]
    cut_us: int | None
    _all: Acknowledgements
    _before: Mapping[int, int]
    failed: Mapping[int, int] = field(default_factory=dict)

    @property
    def after_last_ms(self) -> float:
        """How long before the cut the last promise was; 0 without any."""
        times_us = [self._all.clients[client][1][count - 1] for client, count in self._before.items()]
        return 0.0 if self.cut_us is None or not times_us else (self.cut_us - max(times_us)) / 1000

    def missing(self, present: Mapping[int, int]) -> Missing:
        """What is missing if each client's transactions are there up to `present[client]`, and no later one.

        A client that is not in `present` has none at all.
        """
        count, first_us = 0, None
        for client, number in self._before.items():
            sequences, times = self._all.clients[client]
            lost = [
                time
                for sequence, time in zip(sequences[:number], times[:number], strict=True)
                if client not in present or sequence > present[client]
            ]
            count += len(lost)
            if lost:
                first_us = min(lost) if first_us is None else min(first_us, *lost)
        if first_us is None or self.cut_us is None:
            return Missing(count, None)
        # The mark's own time is the client's, a moment before the recorder took it in.
        return Missing(count, max(0.0, (self.cut_us - first_us) / 1000))


class Acknowledgements:
    """All marks of a log, read once. `clients` has for each client its sequences and times in µs, in the log's order."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.clients: dict[int, tuple[list[int], list[int]]] = {}
        self.positions: list[int] = []
        self._positions_of: dict[int, list[int]] = {}
        self._failed: dict[int, tuple[int, int]] = {}
        for index in range(len(log)):
            if log.flags[index] & MARK:
                self._take(index, log.mark(index) or b"")

    def before(self, position: int) -> Acknowledged:
        """The promises of the first `position` entries."""
        before = {
            client: count
            for client, positions in self._positions_of.items()
            if (count := bisect_left(positions, position))
        }
        times_us = [self.clients[client][1][count - 1] for client, count in before.items()]
        issued_ns = self._log.time_before(position)
        if issued_ns is not None:
            times_us.append(issued_ns // 1000)
        return Acknowledged(
            transactions=sum(before.values()),
            highest={client: max(self.clients[client][0][:count]) for client, count in before.items()},
            cut_us=max(times_us, default=None),
            _all=self,
            _before=before,
            failed={client: number for client, (index, number) in self._failed.items() if index < position},
        )

    def _take(self, index: int, text: bytes) -> None:
        if text.startswith(_OTHERS_PREFIX) and (found := _OTHERS.fullmatch(text)) is not None:
            client, sequence = map(int, found.groups())
            self._add(index, client, sequence, (self._log.entry(index).time_ns or 0) // 1000)
            return
        if (failed := _FAILED.fullmatch(text)) is not None:
            client, sequence = map(int, failed.groups())
            self._failed[client] = index, sequence
            return
        if not text.startswith(_PREFIX):
            return  # another mark: where the clients began, or the kernel's own at its end
        found = _ACKNOWLEDGED.fullmatch(text)
        if found is None:
            raise OutputNotUnderstood(
                f"mark {index} of the write log {self._log.path}",
                expected="A <client> <sequence> <monotonic µs>",
                found=text.decode(errors="replace"),
            )
        self._add(index, *map(int, found.groups()))

    def _add(self, index: int, client: int, sequence: int, time_us: int) -> None:
        self._failed.pop(client, None)
        sequences, times = self.clients.setdefault(client, ([], []))
        sequences.append(sequence)
        times.append(time_us)
        self._positions_of.setdefault(client, []).append(index)
        self.positions.append(index)


def require_protocol(log: Log, *, clients: int, own_marks: Container[bytes]) -> None:
    """OutputNotUnderstood for the first line of somebody's writer that says something else than it may.

    `own_marks` are ours, which stand among them.
    """
    last: Counter[int] = Counter()
    for index in range(len(log)):
        text = log.mark(index)
        if text is None or text in own_marks:
            continue
        found = _OTHERS.fullmatch(text) or _FAILED.fullmatch(text)
        client, number = map(int, found.groups()) if found else (-1, 0)
        if client not in range(clients) or number != last[client] + 1:
            told = f", behind {last[client]} of client {client}" if last[client] else ""
            raise OutputNotUnderstood(
                "the writer", expected=_OTHERS_EXPECTED, found=f"{text.decode(errors='replace')}{told}"
            )
        last[client] += text.startswith(_OTHERS_PREFIX)


CALL_KINDS = ("create", "truncate", "rename", "link", "unlink", "allocate", "punch", "make directory")
"""Calls that change what names, sizes and parts files have; a log has them by their places here, from 1 on."""


@dataclass(frozen=True, slots=True)
class NameCall:
    """One of `CALL_KINDS`, when and by which thread it was made."""

    time_ns: int
    kind: str
    thread: int = 0
