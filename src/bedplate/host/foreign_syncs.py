"""How often anybody on the machine called sync(2), which commits every mounted file system, one that is recorded too.

No mount namespace keeps a file system from it: the kernel walks all superblocks (fs/sync.c, iterate_supers). Only another
kernel does, that of a guest. So the calls are counted, by the kernel's own tracepoint and perf_event_open(2): a counter
that leaves nothing behind, however its owner ends.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from bedplate.errors import BedplateError
from bedplate.host.ledger import Holding
from bedplate.host.mount import unmount

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from bedplate.host.command import Commands
    from bedplate.host.ledger import Ledger

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

    def __init__(self, point: Tracepoint) -> None:
        self._event = point.number
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
