"""How fast this machine's timestamp counter runs, which emulated processors read as their own.

QEMU hands the host's counter through (cpu_get_host_ticks). A guest's kernel measures its rate at boot against an emulated timer, in
some milliseconds; on a busy host it was six times off, and so was every time of that guest.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import time
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_CPUINFO = Path("/proc/cpuinfo")
# rdtsc; shl rdx, 32; or rax, rdx; ret
_READ_COUNTER = bytes.fromhex("0f31 48c1e220 4809d0 c3")
_STEADY = "constant_tsc"
_PERIOD_S, _TRIES = 0.05, 20


def counter_khz(*, cpuinfo: Path = _CPUINFO) -> int | None:
    """Ticks a millisecond, to some millionths; None where the counter is not steady, or may not be read."""
    if platform.machine() != "x86_64" or not _is_steady(cpuinfo):
        return None
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        # A hardened kernel lets nobody make a page that is written and run.
        return None
    page.write(_READ_COUNTER)
    held = ctypes.c_char.from_buffer(page)
    counter = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(held))
    first_ticks, first_ns = _moment(counter)
    Event().wait(_PERIOD_S)
    ticks, ns = _moment(counter)
    return round((ticks - first_ticks) * 1e6 / (ns - first_ns))


def _is_steady(cpuinfo: Path) -> bool:
    try:
        return _STEADY in cpuinfo.read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        return False


def _moment(counter: Callable[[], int]) -> tuple[int, int]:
    """Counter and clock at one moment: of several readings the one that was interrupted least."""
    found = []
    for _ in range(_TRIES):
        before_ns = time.monotonic_ns()
        ticks = counter()
        after_ns = time.monotonic_ns()
        found.append((after_ns - before_ns, ticks, (before_ns + after_ns) // 2))
    _, ticks, ns = min(found)
    return ticks, ns
