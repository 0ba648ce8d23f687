"""Probes of the kernel's own counters: block device, memory, pressure, processors, processes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

_FLUSH_FIELDS = ("flushes", "flush_ticks_ms")

# Names of the fields of a block device's `stat` file, in order (Documentation/block/stat.rst). Kernels
# before 4.18 have no discards, before 5.5 no flushes: those are absent then, not zero.
_DEVICE_FIELDS = (
    "reads",
    "reads_merged",
    "read_sectors",
    "read_ticks_ms",
    "writes",
    "writes_merged",
    "written_sectors",
    "write_ticks_ms",
    "inflight",
    "io_ticks_ms",
    "time_in_queue_ms",
    "discards",
    "discards_merged",
    "discarded_sectors",
    "discard_ticks_ms",
    *_FLUSH_FIELDS,
)

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class DeviceProbe:
    """Counters of one block device; `prefix` is `device` or `journal_device`.

    Flushes are absent of a partition, and of a device that stands on others: the kernel counts them for
    the whole disk below alone, whose other users flush it too (block/blk-flush.c).
    """

    skew = "reads one file of the kernel"

    def __init__(self, stat: Path, *, prefix: str = "device") -> None:
        self.name = f"diskstats of the {prefix.replace('_', ' ')}"
        self._stat = stat
        self._prefix = prefix
        device = stat.parent
        counts_flushes = not (device / "partition").exists() and not any(device.glob("slaves/*"))
        self._fields = _DEVICE_FIELDS if counts_flushes else _DEVICE_FIELDS[: -len(_FLUSH_FIELDS)]

    def read(self) -> Mapping[str, float]:
        """`device.reads` … `device.flushes`; all cumulative but `inflight`."""
        values = self._stat.read_text().split()
        return {
            f"{self._prefix}.{name}": float(value) for name, value in zip(self._fields, values, strict=False)
        }


class MemoryProbe:
    """Dirty, writeback, available and cached memory of the machine, and how often its caches were dropped."""

    name = "memory"
    skew = "reads two files of the kernel"
    _WANTED = {  # noqa: RUF012 -- a table
        b"Dirty": "memory.dirty_bytes",
        b"Writeback": "memory.writeback_bytes",
        b"MemAvailable": "memory.available_bytes",
        b"Cached": "memory.cached_bytes",
    }

    def __init__(self, path: Path = Path("/proc/meminfo"), events: Path = Path("/proc/vmstat")) -> None:
        self._path = path
        self._events = events

    def read(self) -> Mapping[str, float]:
        """Gauges in bytes; `memory.cache_drops` counts writes to /proc/sys/vm/drop_caches (`drop_pagecache`)."""
        found = {}
        for line in self._path.read_bytes().splitlines():
            name, _, rest = line.partition(b":")
            if name in self._WANTED:
                found[self._WANTED[name]] = float(rest.split()[0]) * 1024
        for line in self._events.read_bytes().splitlines():
            if line.startswith(b"drop_pagecache "):
                found["memory.cache_drops"] = float(line.split()[1])
        return found


class PressureProbe:
    """Pressure stall totals (Documentation/accounting/psi.rst); nothing where the kernel has none."""

    name = "pressure"
    skew = "reads three files of the kernel"

    def __init__(self, directory: Path = Path("/proc/pressure")) -> None:
        self._paths = [path for name in ("cpu", "io", "memory") if (path := directory / name).exists()]

    def read(self) -> Mapping[str, float]:
        """`pressure.io.some.total_us` and its kin, cumulative."""
        found = {}
        for path in self._paths:
            try:
                text = path.read_text()
            except OSError:
                continue  # psi=0 leaves the files there and refuses to read them
            for kind, total in re.findall(r"^(some|full) .*total=(\d+)", text, re.MULTILINE):
                found[f"pressure.{path.name}.{kind}.total_us"] = float(total)
        return found


class ProcessorProbe:
    """Time of all processors together, by what they did, and how often they went from one task to another."""

    name = "processors"
    skew = "reads one file of the kernel"

    def __init__(self, path: Path = Path("/proc/stat")) -> None:
        self._path = path

    def read(self) -> Mapping[str, float]:
        """`cpu.user_s` (with nice), `system`, `idle`, `iowait`, `irq` (with softirq), `steal`; context switches."""
        text = self._path.read_bytes()
        words = text.split(b"\n", maxsplit=1)[0].split()
        user, nice, system, idle, iowait, irq, softirq, steal = (int(word) for word in words[1:9])
        ticks = {
            "user": user + nice,
            "system": system,
            "idle": idle,
            "iowait": iowait,
            "irq": irq + softirq,
            "steal": steal,
        }
        found = {f"cpu.{name}_s": value / _TICKS_PER_S for name, value in ticks.items()}
        switches = re.search(rb"^ctxt (\d+)$", text, re.MULTILINE)
        return found if switches is None else {**found, "cpu.context_switches": float(switches[1])}


class ProcessProbe:
    """CPU time of named sets of processes; one that has ended keeps what was last seen of it."""

    name = "processes"
    skew = "reads one file of the kernel for each process"

    def __init__(self, prefix: str, pids: Callable[[], Iterable[int]]) -> None:
        self._prefix = prefix
        self._pids = pids
        self._last_s: dict[int, float] = {}

    def read(self) -> Mapping[str, float]:
        """`<prefix>.cpu_s`, cumulative over all the processes seen."""
        for pid in self._pids():
            seconds = process_cpu_s(pid)
            if seconds is not None:
                self._last_s[pid] = seconds
        return {f"{self._prefix}.cpu_s": sum(self._last_s.values())} if self._last_s else {}


class GroupProbe:
    """CPU time of a control group, where one could be made."""

    name = "server processes"
    skew = "reads one file of the kernel"

    def __init__(self, prefix: str, cpu_seconds: Callable[[], float | None]) -> None:
        self._prefix = prefix
        self._cpu_seconds = cpu_seconds

    def read(self) -> Mapping[str, float]:
        """`<prefix>.cpu_s`, cumulative."""
        seconds = self._cpu_seconds()
        return {} if seconds is None else {f"{self._prefix}.cpu_s": seconds}


def process_cpu_s(pid: int, directory: Path = Path("/proc")) -> float | None:
    """User and system time of a live process, None if it is gone."""
    try:
        text = (directory / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name is in brackets and may hold anything, brackets and spaces included.
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


DUE_S, LATE_S = "emulated.due_s", "emulated.late_s"


class EmulatedDeviceProbe:
    """What the requests of an emulated device should have taken, and how late their answers were."""

    name = "emulated device"
    skew = "reads one file of a program in user space"

    def __init__(self, status_file: Path) -> None:
        self._status = status_file

    def read(self) -> Mapping[str, float]:
        """Seconds of all requests together, both cumulative."""
        found = json.loads(self._status.read_text(encoding="utf-8", errors="replace"))
        return {DUE_S: found["due_ns"] / 1e9, LATE_S: found["late_ns"] / 1e9}
