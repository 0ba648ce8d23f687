"""Writes and flushes that are asked of block devices, by the kernel's own tracepoints: who asks, and what is to be on the medium.

A device sees neither. Its requests come from the kernel, whoever wrote. One without FUA never sees which write was to go past its cache: the
kernel sends it plainly, and a flush behind it. What was asked for is seen above that. Read with perf_event_open(2), which leaves nothing
behind, however its owner ends.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import platform
import re
import struct
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import NamedTuple, Self

from bedplate.cuts.log import NameCall
from bedplate.errors import BedplateError
from bedplate.host.command import Commands
from bedplate.host.ledger import Holding, Ledger
from bedplate.host.mount import unmount
from bedplate.host.process import ProcessTitle, title_of
from bedplate.units import KIB, MIB

# Where systems mount it, since Linux 4.1.
TRACEFS = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))


SYNC = "syscalls/sys_enter_sync"


_NUMBERS = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}


# linux/perf_event.h: PERF_TYPE_TRACEPOINT, PERF_FLAG_FD_CLOEXEC.
_TRACEPOINT = 2


_CLOSE_ON_EXEC = 8


_COUNT_BYTES = 8


# `field:unsigned int nr_sector;	offset:24;	size:4;	signed:0;`
_FIELD = re.compile(r"field:[^;]*?(\w+)(?:\[[^]]*\])?;\s*offset:(\d+);\s*size:(\d+);")


_EVERY_PROCESS = -1


_NO_GROUP = -1


class CallsNotCounted(BedplateError):
    """This kernel, or this account, has no such counter."""

    code = "calls-not-counted"


class _Attributes(ctypes.Structure):
    """`struct perf_event_attr` up to PERF_ATTR_SIZE_VER5; zero is what a plain counter wants of the rest."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("config", ctypes.c_uint64),
        ("sample_period", ctypes.c_uint64),
        ("sample_type", ctypes.c_uint64),
        ("read_format", ctypes.c_uint64),
        ("flags", ctypes.c_uint64),
        ("wakeup", ctypes.c_uint32 * 2),
        ("config_more", ctypes.c_uint64 * 2),
        ("branches", ctypes.c_uint64),
        ("registers", ctypes.c_uint64),
        ("stack", ctypes.c_uint32),
        ("clockid", ctypes.c_int32),
        ("rest", ctypes.c_uint64 * 2),
    )


@dataclass(frozen=True)
class Tracepoint:
    """Its number, and where its fields stand in what it says: offset and size in bytes."""

    number: int
    fields: Mapping[str, tuple[int, int]]


class CallCounter:
    """Counts the hits of a tracepoint by every process from `with` on; `count` says how many there were so far."""

    def __init__(self, tracepoint: Tracepoint) -> None:
        self._event = tracepoint.number
        self._files: list[int] = []
        self._undo = ExitStack()

    @property
    def count(self) -> int:
        """Over all processors."""
        return sum(int.from_bytes(os.read(file, _COUNT_BYTES), "little") for file in self._files)

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            for processor in processors():
                self._files.append(perf_event_open(self._event, processor))
                undo.callback(os.close, self._files[-1])
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._files.clear()
        self._undo.close()


def call_counter(place: Path, *, ledger: Ledger, commands: Commands, tracepoint: str = SYNC) -> CallCounter:
    """A counter of one tracepoint; CallsNotCounted with the reason where there can be none."""
    (point,) = tracepoints(place, (tracepoint,), ledger=ledger, commands=commands)
    return CallCounter(point)


def tracepoints(
    place: Path, names: Iterable[str], *, ledger: Ledger, commands: Commands
) -> tuple[Tracepoint, ...]:
    """Tracepoints by their names; CallsNotCounted where the kernel has one of them not.

    A tracefs that nobody mounted is mounted in the new folder `place` for the moment in which they are read there.
    """
    for root in TRACEFS:
        if (root / "events").is_dir():
            return tuple(_tracepoint(root, name) for name in names)
    place.mkdir()
    holding = Holding("mount", str(place), "tracefs")
    ledger.note(holding)
    try:
        done = commands.run(["mount", "-t", "tracefs", "tracefs", str(place)], check=False)
        if done.status != 0:
            raise CallsNotCounted(f"tracefs cannot be mounted: {done.output.strip()}")
        return tuple(_tracepoint(place, name) for name in names)
    finally:
        # Whether it was mounted is not known to whoever was interrupted meanwhile.
        unmount(place, commands=commands)
        ledger.settled(holding)
        with suppress(OSError):
            place.rmdir()


def _tracepoint(root: Path, name: str) -> Tracepoint:
    folder = root / "events" / name
    try:
        fields = _FIELD.findall((folder / "format").read_text(encoding="ascii", errors="replace"))
        return Tracepoint(
            int((folder / "id").read_text()), {name: (int(at), int(size)) for name, at, size in fields}
        )
    except (OSError, ValueError) as error:
        raise CallsNotCounted(f"this kernel has no tracepoint {name}") from error


def perf_event_open(
    event: int,
    processor: int,
    *,
    sample_period: int = 0,
    sample_type: int = 0,
    flags: int = 0,
    clock: int = 0,
) -> int:
    """A file that counts a tracepoint's hits on one processor, or with a period keeps them; CallsNotCounted with the reason where it cannot."""
    number = _NUMBERS.get(platform.machine())
    if number is None:
        raise CallsNotCounted(f"perf_event_open(2) has no number here for {platform.machine()}")
    attributes = _Attributes(
        type=_TRACEPOINT,
        size=ctypes.sizeof(_Attributes),
        config=event,
        sample_period=sample_period,
        sample_type=sample_type,
        flags=flags,
        clockid=clock,
    )
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    words = (_EVERY_PROCESS, processor, _NO_GROUP, _CLOSE_ON_EXEC)
    file = libc.syscall(
        ctypes.c_long(number), ctypes.byref(attributes), *(ctypes.c_long(word) for word in words)
    )
    if file < 0:
        code = ctypes.get_errno()
        words_of = "be root" if code in (errno.EACCES, errno.EPERM) else os.strerror(code)
        raise CallsNotCounted(f"the kernel counts no tracepoint for us (perf_event_open: {words_of})")
    return int(file)


def processors(online: Path = Path("/sys/devices/system/cpu/online")) -> Iterator[int]:
    """Those at work, such as `0-3,6`."""
    for part in online.read_text(encoding="utf-8").strip().split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


_QUEUED, _DONE = "block/block_bio_queue", "block/block_rq_complete"


# linux/perf_event.h
_SAMPLE_THREAD, _SAMPLE_TIME, _SAMPLE_RAW = 1 << 1, 1 << 2, 1 << 10


_TASKS, _USE_CLOCKID = 1 << 13, 1 << 25


_CLOCK_MONOTONIC = 1


_SET_FILTER = 0x40082406


_RECORD_LOST, _RECORD_FORK, _RECORD_SAMPLE = 2, 7, 9


_HEAD = struct.Struct("=IHH")


_SAMPLE = struct.Struct("=IIQI")


# A thread that has ended has this number.
_ENDED = 0xFFFF_FFFF


_HEAD_AT, _TAIL_AT = 1024, 1032


_WRITES = 'rwbs ~ "*W*"'


_PLACE = ("dev", "sector", "nr_sector", "rwbs")


_WHO = ("comm",)


# Of one processor; of many together no more than all may have, each with what a tenth of a second brings.
_RING_BYTES, _LEAST_RING_BYTES, _ALL_RINGS_BYTES = 2 * MIB, 128 * KIB, 64 * MIB


_LOOK_EVERY_S = 0.1


_END_LIMIT_S = 30.0


@dataclass(frozen=True, slots=True)
class BlockRequest:
    """A write or a flush when it came (`is_done` false), or one that was done without data; `flags` are blktrace's letters, such as `FWFS`.

    `device` is major << 20 | minor; sectors have 512 bytes. `thread` is who asked, as this process' PID namespace numbers threads, 0 of one that
    is not in it, and `name` what the kernel calls it. Of one that is done nobody asked then.
    """

    time_ns: int
    device: int
    flags: str
    sector: int
    sectors: int
    is_done: bool
    thread: int = 0
    name: str = ""

    @property
    def asks_for_medium(self) -> bool:
        """Whether it is a flush, has one before it, or is to go past the cache."""
        return self.is_done or "F" in self.flags

    @property
    def is_sync(self) -> bool:
        """Whether somebody waits for a flush and for nothing else: it has no data, and is not the flush itself."""
        return not self.sectors and "W" in self.flags and (self.is_done or self.flushes_before)

    @property
    def flushes_before(self) -> bool:
        """Whether a flush comes before it (REQ_PREFLUSH); all of it, where it has no data."""
        return self.flags.startswith("F")

    @property
    def goes_through(self) -> bool:
        """Whether its data are to be on the medium when it is done (REQ_FUA)."""
        return "F" in self.flags[1 + self.flushes_before :]


class Hit(NamedTuple):
    """A hit of a tracepoint, and what it says."""

    time_ns: int
    process: int
    thread: int
    raw: bytes


class Fork(NamedTuple):
    """A process, or one more thread of it, was begun by another one, or by itself."""

    process: int
    parent: int


class _Reading:
    """Reads the rings of some tracepoints from `with` to its end, in a thread of its own."""

    def __init__(self, name: str) -> None:
        self._rings: list[_Ring] = []
        self._lost = 0
        self._ended = threading.Event()
        self._reader = threading.Thread(target=self._read, name=name, daemon=True)
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            for ring in self._open_rings():
                self._rings.append(undo.enter_context(ring))
            self._undo = undo.pop_all()
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._reader.join(_END_LIMIT_S)
        self._undo.close()

    def _read(self) -> None:
        has_ended = False
        while not has_ended:
            has_ended = self._ended.wait(_LOOK_EVERY_S)
            for ring in self._rings:
                for record in ring.samples():
                    if record is None:
                        self._lost += 1
                    else:
                        self._take(ring, record)

    def _open_rings(self) -> Iterator[_Ring]:
        raise NotImplementedError

    def _take(self, ring: _Ring, hit: Hit | Fork, /) -> None:
        raise NotImplementedError


class RequestTrace(_Reading):
    """Those of some devices from `with` to its end, in the order of their times; CallsNotCounted where the kernel does not tell, or some were lost."""

    def __init__(self, device_numbers: Iterable[int], tracepoints: Iterable[tuple[Tracepoint, bool]]) -> None:
        super().__init__("block requests")
        self.devices = tuple(device_numbers)
        self._points = tuple(tracepoints)
        self._found: list[BlockRequest] = []
        self._titles: dict[int, ProcessTitle | None] = {}

    @property
    def requests(self) -> tuple[BlockRequest, ...]:
        """All of them, once it has ended."""
        if self._lost:
            raise CallsNotCounted(f"{self._lost} requests were lost, as nobody read them in time")
        return tuple(sorted(self._found, key=lambda each: each.time_ns))

    @property
    def titles(self) -> Mapping[int, ProcessTitle | None]:
        """Of each thread that asked, as it was called at its first request; None of one that was gone when it was looked up."""
        return self._titles

    def _open_rings(self) -> Iterator[_Ring]:
        asked = " || ".join(f"dev == {device}" for device in self.devices)
        online = tuple(processors())
        ring_bytes = ring_bytes_for(len(online) * len(self._points))
        for point, is_done in self._points:
            # One that is done has lost the letter where the kernel did its flush; without data it is a sync, or a flush itself.
            condition = f"({asked}) && {'nr_sector == 0' if is_done else _WRITES}"
            for processor in online:
                yield _Ring(point, processor, condition, is_done=is_done, ring_bytes=ring_bytes)

    def _take(self, ring: _Ring, hit: Hit | Fork, /) -> None:
        if isinstance(hit, Fork):
            return
        request = ring.request(hit)
        self._found.append(request)
        if not request.is_done and request.thread not in self._titles:
            self._titles[request.thread] = title_of(request.thread)


def ring_bytes_for(rings: int) -> int:
    """How large each is: a power of two, as the kernel wants it."""
    size = _RING_BYTES
    while size > _LEAST_RING_BYTES and rings * size > _ALL_RINGS_BYTES:
        size //= 2
    return size


class _Ring:
    """What one tracepoint says on one processor."""

    def __init__(
        self,
        tracepoint: Tracepoint,
        processor: int,
        condition: str,
        *,
        is_done: bool = False,
        ring_bytes: int = _RING_BYTES,
        with_forks: bool = False,
    ) -> None:
        self._point = tracepoint
        self._processor = processor
        self._condition = condition
        self._is_done = is_done
        self._ring_bytes = ring_bytes
        self._flags = _USE_CLOCKID | (_TASKS if with_forks else 0)
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            file = perf_event_open(
                self._point.number,
                self._processor,
                sample_period=1,
                sample_type=_SAMPLE_THREAD | _SAMPLE_TIME | _SAMPLE_RAW,
                flags=self._flags,
                clock=_CLOCK_MONOTONIC,
            )
            undo.callback(os.close, file)
            self._filter(file)
            try:
                self._memory = undo.enter_context(mmap.mmap(file, mmap.PAGESIZE + self._ring_bytes))
            except OSError as error:
                raise CallsNotCounted(
                    f"no memory is to be had for what the kernel tells: {error.strerror}"
                ) from error
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def _filter(self, file: int) -> None:
        try:
            fcntl.ioctl(file, _SET_FILTER, self._condition.encode() + b"\0")
        except OSError as error:
            raise CallsNotCounted(
                f"the kernel does not take {self._condition}: {errno.errorcode.get(error.errno or 0)}"
            ) from error

    def samples(self) -> Iterator[Hit | Fork | None]:
        """What was said since the last look; None for each that was lost."""
        (head,) = struct.unpack_from("=Q", self._memory, _HEAD_AT)
        (tail,) = struct.unpack_from("=Q", self._memory, _TAIL_AT)
        while tail < head:
            kind, _, size = _HEAD.unpack(self._bytes(tail, _HEAD.size))
            content = self._bytes(tail + _HEAD.size, size - _HEAD.size)
            tail += size
            if kind == _RECORD_LOST:
                yield from [None] * struct.unpack_from("=QQ", content)[1]
            elif kind == _RECORD_FORK:
                yield Fork(*struct.unpack_from("=II", content))
            elif kind == _RECORD_SAMPLE:
                process, thread, time_ns, length = _SAMPLE.unpack_from(content)
                raw = content[_SAMPLE.size : _SAMPLE.size + length]
                yield Hit(time_ns, process, thread, raw)
        struct.pack_into("=Q", self._memory, _TAIL_AT, tail)

    def _bytes(self, offset: int, length: int) -> bytes:
        """From the ring, which begins anew at its end."""
        offset %= self._ring_bytes
        first = self._memory[mmap.PAGESIZE + offset : mmap.PAGESIZE + min(self._ring_bytes, offset + length)]
        return first + self._memory[mmap.PAGESIZE : mmap.PAGESIZE + length - len(first)]

    def request(self, hit: Hit) -> BlockRequest:
        """A sample of a tracepoint of blocks."""
        raw, thread = hit.raw, hit.thread
        fields = {name: raw[at : at + size] for name, (at, size) in self._point.fields.items()}
        device, sector, sectors = (int.from_bytes(fields[name], "little") for name in _PLACE[:3])
        # The tracepoint's own number is that of the machine, and /proc has those of a container.
        who = (0, "") if self._is_done else (0 if thread == _ENDED else thread, _text(fields["comm"]))
        return BlockRequest(hit.time_ns, device, _text(fields["rwbs"]), sector, sectors, self._is_done, *who)


def _text(field: bytes) -> str:
    return intern(field.split(b"\0")[0].decode("utf-8", errors="replace"))


def device_number(path: Path) -> int:
    """As the kernel has it: major << 20 | minor."""
    number = path.stat().st_rdev
    return os.major(number) << 20 | os.minor(number)


def request_trace(
    device_numbers: Iterable[int], place: Path, *, ledger: Ledger, commands: Commands, with_done: bool = False
) -> RequestTrace:
    """Of devices by their numbers, those that were done as well where `with_done`. CallsNotCounted with the reason where there is none.

    `place` is a new folder for the moment in which tracefs is needed.
    """
    points = tracepoints(place, (_QUEUED, _DONE)[: 1 + with_done], ledger=ledger, commands=commands)
    for point, is_done in zip(points, (False, True), strict=False):
        if lacking := {*_PLACE, *(() if is_done else _WHO)} - set(point.fields):
            raise CallsNotCounted(f"this kernel's tracepoints of blocks lack {', '.join(sorted(lacking))}")
    return RequestTrace(device_numbers, zip(points, (False, True), strict=False))


_CALLS = "raw_syscalls/sys_enter"


# linux/falloc.h, fcntl.h
_KEEPS_SIZE = 1


_O_CREAT, _O_TRUNC = 0o100, 0o1000


_BY_NUMBER: Mapping[str, Mapping[int, str]] = {
    "x86_64": {
        **dict.fromkeys((82, 264, 316), "rename"),
        **dict.fromkeys((86, 265, 88, 266), "link"),
        **dict.fromkeys((87, 263, 84), "unlink"),
        **dict.fromkeys((76, 77), "truncate"),
        **dict.fromkeys((83, 258), "make directory"),
        285: "allocate",
        85: "truncate",
        2: "open",
        257: "openat",
    },
    "aarch64": {
        **dict.fromkeys((38, 276), "rename"),
        **dict.fromkeys((36, 37), "link"),
        **dict.fromkeys((45, 46), "truncate"),
        35: "unlink",
        34: "make directory",
        47: "allocate",
        56: "openat",
    },
}


class CallTrace(_Reading):
    """Calls that change names and sizes, by processes that see a mount, but this one; of the whole time, or CallsNotCounted.

    The mount is one of a namespace of ours: whoever sees it is ours.
    """

    def __init__(self, tracepoint: Tracepoint, mount_point: Path) -> None:
        super().__init__("calls")
        self._point = tracepoint
        # As proc_pid_mountinfo(5) writes it.
        self._mount_words = f" {str(mount_point).replace(' ', chr(92) + '040')} "
        self._kinds = _BY_NUMBER.get(platform.machine(), {})
        self._found: list[tuple[int, NameCall]] = []
        self._is_own: dict[int, bool | None] = {os.getpid(): False}
        self._parents: dict[int, int] = {}

    @property
    def calls(self) -> tuple[NameCall, ...]:
        """In the order of their times, once it has ended."""
        if self._lost:
            raise CallsNotCounted(f"{self._lost} calls were lost, as nobody read them in time")
        own = (call for process, call in self._found if self._belongs(process))
        return tuple(sorted(own, key=lambda call: call.time_ns))

    def _belongs(self, process: int) -> bool:
        seen: set[int] = set()
        # One that was gone when it was looked up is whose its parent was.
        while self._is_own.get(process) is None and process in self._parents and process not in seen:
            seen.add(process)
            process = self._parents[process]
        return self._is_own.get(process) is True

    def _open_rings(self) -> Iterator[_Ring]:
        condition = " || ".join(f"id == {number}" for number in self._kinds)
        online = tuple(processors())
        for processor in online:
            yield _Ring(
                self._point, processor, condition, ring_bytes=ring_bytes_for(len(online)), with_forks=True
            )

    def _take(self, ring: _Ring, hit: Hit | Fork, /) -> None:  # noqa: ARG002 -- all say the same
        if isinstance(hit, Fork):
            if hit.process != hit.parent:
                self._parents[hit.process] = hit.parent
                self._is_own.pop(hit.process, None)
            return
        at, size = self._point.fields["id"]
        number = int.from_bytes(hit.raw[at : at + size], "little")
        first, _ = self._point.fields["args"]
        kind = _call_kind(self._kinds.get(number, ""), struct.unpack_from("=4Q", hit.raw, first))
        if kind is None:
            return
        self._found.append((hit.process, NameCall(hit.time_ns, kind, hit.thread)))
        if hit.process not in self._is_own:
            self._is_own[hit.process] = self._sees_mount(hit.process)

    def _sees_mount(self, process: int) -> bool | None:
        """None of one that is gone."""
        try:
            return self._mount_words in Path(f"/proc/{process}/mountinfo").read_text(errors="replace")
        except OSError:
            return None


def _call_kind(name: str, registers: tuple[int, ...]) -> str | None:
    """By its arguments, where the name is not enough; None of an open that makes and shortens nothing."""
    if name in ("open", "openat"):
        flags = registers[1 + (name == "openat")]
        return "truncate" if flags & _O_TRUNC else "create" if flags & _O_CREAT else None
    if name == "allocate" and registers[1] & ~_KEEPS_SIZE:
        return "punch"
    return name or None


def call_trace(mount_point: Path, place: Path, *, ledger: Ledger, commands: Commands) -> CallTrace:
    """Of those that see a mount; CallsNotCounted with the reason where there is none. `place` is as for `request_trace`."""
    if platform.machine() not in _BY_NUMBER:
        raise CallsNotCounted(f"the numbers of calls are not known for {platform.machine()}")
    (point,) = tracepoints(place, (_CALLS,), ledger=ledger, commands=commands)
    if lacking := {"id", "args"} - set(point.fields):
        raise CallsNotCounted(f"this kernel's tracepoint of calls lacks {', '.join(sorted(lacking))}")
    return CallTrace(point, mount_point)
