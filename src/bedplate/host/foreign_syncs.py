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
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from bedplate.errors import BedplateError
from bedplate.host.ledger import Holding
from bedplate.host.mount import unmount

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.host.command import Commands
    from bedplate.host.ledger import Ledger

# Where systems mount it, since Linux 4.1.
TRACEFS = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
SYNC = "syscalls/sys_enter_sync"
_NUMBERS = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
# linux/perf_event.h: PERF_TYPE_TRACEPOINT, PERF_FLAG_FD_CLOEXEC, and the first published size of the structure.
_TRACEPOINT = 2
_CLOSE_ON_EXEC = 8
_ATTRIBUTES_BYTES = 64
_COUNT_BYTES = 8
_EVERY_PROCESS = -1
_NO_GROUP = -1


class CallsNotCounted(BedplateError):
    """This kernel, or this account, has no such counter."""

    code = "calls-not-counted"


class _Attributes(ctypes.Structure):
    """`struct perf_event_attr` up to PERF_ATTR_SIZE_VER0; zero is what a plain counter wants of the rest."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("config", ctypes.c_uint64),
        ("rest", ctypes.c_uint64 * 6),
    )


class CallCounter:
    """Counts the hits of a tracepoint by every process from `with` on; `count` says how many there were so far."""

    def __init__(self, event: int) -> None:
        self._event = event
        self._files: list[int] = []
        self._undo = ExitStack()

    @property
    def count(self) -> int:
        """Over all processors."""
        return sum(int.from_bytes(os.read(file, _COUNT_BYTES), "little") for file in self._files)

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            for processor in _processors():
                self._files.append(_open(self._event, processor))
                undo.callback(os.close, self._files[-1])
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._files.clear()
        self._undo.close()


def call_counter(place: Path, *, ledger: Ledger, commands: Commands, tracepoint: str = SYNC) -> CallCounter:
    """A counter of one tracepoint; CallsNotCounted with the reason where there can be none.

    A tracefs that nobody mounted is mounted in the new folder `place` for the moment in which a number is read there.
    """
    for root in TRACEFS:
        if (root / "events").is_dir():
            return CallCounter(_number(root, tracepoint))
    place.mkdir()
    holding = Holding("mount", str(place), "tracefs")
    ledger.note(holding)
    try:
        done = commands.run(["mount", "-t", "tracefs", "tracefs", str(place)], check=False)
        if done.status != 0:
            raise CallsNotCounted(f"tracefs cannot be mounted: {done.output.strip()}")
        return CallCounter(_number(place, tracepoint))
    finally:
        # Whether it was mounted is not known to whoever was interrupted meanwhile.
        unmount(place, commands=commands)
        ledger.settled(holding)
        with suppress(OSError):
            place.rmdir()


def _number(root: Path, tracepoint: str) -> int:
    path = root / "events" / tracepoint / "id"
    try:
        return int(path.read_text())
    except (OSError, ValueError) as error:
        raise CallsNotCounted(f"this kernel has no tracepoint {tracepoint}") from error


def _open(event: int, processor: int) -> int:
    number = _NUMBERS.get(platform.machine())
    if number is None:
        raise CallsNotCounted(f"perf_event_open(2) has no number here for {platform.machine()}")
    attributes = _Attributes(_TRACEPOINT, _ATTRIBUTES_BYTES, event)
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


def _processors(online: Path = Path("/sys/devices/system/cpu/online")) -> Iterator[int]:
    """Such as `0-3,6`."""
    for part in online.read_text(encoding="utf-8").strip().split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)
