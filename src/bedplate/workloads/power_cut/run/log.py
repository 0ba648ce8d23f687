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
was gone before that was looked up), name. No name is none at all: it was not seen.
"""

from __future__ import annotations

import mmap
import os
import struct
from array import array
from bisect import bisect_left
from itertools import accumulate, islice
from typing import TYPE_CHECKING, NamedTuple, Self

from bedplate.errors import OutputNotUnderstood
from bedplate.model.power_cut_blame import WritingProcess
from bedplate.units import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

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

    def _not_understood(self, expected: str, found: str, index: int | None = None) -> OutputNotUnderstood:
        where = "" if index is None else f", entry {index}"
        return OutputNotUnderstood(f"the write log {self.path}{where}", expected=expected, found=found)


def packed_writers(writers: Iterable[WritingProcess]) -> bytes:
    """As an entry's header has them; those beyond the fourth, and the ends of long names, are left out."""
    return b"".join(
        _WRITER.pack(each.pid, _KINDS[each.is_kernel], each.name.encode())
        for each in islice(writers, _WRITERS_MOST)
    )


def overwrite(path: Path, parts: Iterable[tuple[int, bytes]]) -> None:
    """Put bytes where they belong in a log that has ended; whoever has mapped it sees them."""
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        for at, part in parts:
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
