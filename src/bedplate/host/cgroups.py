"""Control groups: where this machine has them, and those that a visit makes, limits, asks and removes.

Here: the hierarchies of both versions, one group, the page cache that it is charged for.
Not here: which processes belong in it (`visit/`).
May import: `host`; the standard library.
Must not import: `filesystem`, `engines`, `plan`, `study`, `workloads`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bedplate.errors import RequirementMissing, VerifyFailed
from bedplate.host import ledger
from bedplate.host.files import file_lock_if_free, text_of
from bedplate.host.ledger import Holding, Ledger
from bedplate.host.mount import parse_mount_table
from bedplate.host.tunables import Tuned, restore, set_tunable
from bedplate.model.cell import Throttle
from bedplate.model.visit import ReadBack
from bedplate.units import format_size

_V1 = "cgroup"
_V2 = "cgroup2"
_PLACE = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Hierarchy:
    """`v1` maps a controller (`memory`, `blkio`, `cpuacct`) to the mount that has it.

    `v2` is the unified mount, with `v2_controllers` those that are not bound to version 1. None where
    it is not mounted.
    """

    v1: dict[str, Path]
    v2: Path | None
    v2_controllers: frozenset[str]

    def version_of(self, controller: str, v2_name: str | None = None) -> int | None:
        """1 or 2, whichever has the controller; None where neither does."""
        if (v2_name or controller) in self.v2_controllers:
            return 2
        return 1 if controller in self.v1 else None


def read_hierarchy(mount_table: Path = Path("/proc/self/mountinfo")) -> Hierarchy:
    """From the kernel's own mount table; needs no root.

    A hierarchy may be mounted many times, also within somebody's container or chroot: the system's own place wins,
    else the first.
    """
    v1: dict[str, Path] = {}
    v2: Path | None = None
    table = parse_mount_table(os.fsdecode(mount_table.read_bytes()))
    for entry in sorted(table, key=lambda entry: not Path(entry.target).is_relative_to(_PLACE)):
        if entry.type == _V1:
            # A controller's name is an option of the super block; so are other words, which do no harm.
            v1 = {word: Path(entry.target) for word in entry.super_options if "=" not in word} | v1
        elif entry.type == _V2:
            v2 = v2 or Path(entry.target)
    controllers: frozenset[str] = frozenset()
    if v2 is not None:
        try:
            controllers = frozenset((v2 / "cgroup.controllers").read_text().split())
        except OSError:
            controllers = frozenset()
    return Hierarchy({name: path for name, path in v1.items() if name not in {"rw", "ro"}}, v2, controllers)


_VM = Path("/proc/sys/vm")

# The kernel's own defaults of vm.dirty_ratio and vm.dirty_background_ratio, in percent.
_DIRTY_PERCENT = {"dirty_bytes": 20, "dirty_background_bytes": 10}

_DIRTY_LOCK = "dirty_bytes"

_DIRTY_HELD = (
    "memory: another visit with a limit of its own holds vm.dirty_bytes, which is one for the whole machine under "
    "control groups of version 1; wait for its end. One that was killed holds it until its last writes are on the device"
)

_LIMITS = {
    # field of Throttle: (file of version 1, key of io.max)
    "read_iops": ("blkio.throttle.read_iops_device", "riops"),
    "write_iops": ("blkio.throttle.write_iops_device", "wiops"),
    "read_bytes_per_s": ("blkio.throttle.read_bps_device", "rbps"),
    "write_bytes_per_s": ("blkio.throttle.write_bps_device", "wbps"),
}

_V1_CONTROLLERS = ("memory", "cpuacct")


@dataclass(frozen=True)
class Usage:
    """What the group has used so far; None where this machine does not count it."""

    memory_bytes_peak: int | None
    cpu_s: float | None


class Group:
    """A control group in every hierarchy that is needed; `comparisons` say what is in force."""

    def __init__(self, name: str, hierarchy: Hierarchy, ledger: Ledger, vm: Path) -> None:
        self.name = name
        self.comparisons: tuple[ReadBack, ...] = ()
        self._hierarchy = hierarchy
        self._ledger = ledger
        self._vm = vm
        self._directories: dict[str, Path] = {}
        self._tuned: list[Tuned] = []
        self._machine_wide = ExitStack()
        self._throttled: list[Holding] = []

    @classmethod
    def create(
        cls,
        name: str,
        *,
        memory_bytes: int | None = None,
        throttle: Throttle | None = None,
        device_number: str | None = None,
        ledger: Ledger,
        hierarchy: Hierarchy | None = None,
        vm: Path = _VM,
    ) -> Group:
        """A new group, empty. Without limits it still counts the CPU time of its members.

        RequirementMissing if this machine cannot limit what is asked, VerifyFailed if a limit does
        not read back; nothing is left of the group in either case.
        """
        if throttle is not None and device_number is None:
            raise ValueError("a throttle needs the number of its device")
        found = hierarchy or read_hierarchy()
        wanted = {name: name in found.v2_controllers for name in _v2_names(memory_bytes, throttle)}
        reasons = _unmet(found, memory="memory" in wanted, throttle="io" in wanted)
        if reasons:
            raise RequirementMissing(*reasons)
        if found.v2 is not None:
            _delegate(found.v2, [name for name, there in wanted.items() if there])
        group = cls(name, found, ledger, vm)
        try:
            group._make()
            comparisons = [] if memory_bytes is None else [*group._limit_memory(memory_bytes)]
            if throttle is not None and device_number is not None:
                comparisons += group._throttle(throttle, device_number)
            group.comparisons = tuple(comparisons)
        except BaseException:
            group.release()
            raise
        return group

    def add(self, pid: int) -> None:
        """Move a process into the group; its memory so far stays charged where it was."""
        for directory in self._directories.values():
            (directory / "cgroup.procs").write_text(str(pid))

    def enter(self) -> None:
        """Move this process into the group: for `preexec_fn`, before privileges are dropped."""
        self.add(os.getpid())

    def usage(self) -> Usage:
        """The peak of memory (with page cache) and the CPU seconds so far."""
        peak = None
        for key, name in (("memory", "memory.max_usage_in_bytes"), ("v2", "memory.peak")):
            if key in self._directories and peak is None:
                peak = _read_int(self._directories[key] / name)
        return Usage(peak, self.cpu_seconds())

    def cpu_seconds(self) -> float | None:
        """CPU seconds of all members so far, user and system; None where nothing counts them."""
        if "cpuacct" in self._directories:
            nanoseconds = _read_int(self._directories["cpuacct"] / "cpuacct.usage")
            return None if nanoseconds is None else nanoseconds / 1e9
        if "v2" not in self._directories:
            return None
        lines = text_of(self._directories["v2"] / "cpu.stat").splitlines()
        counters = dict(line.split(maxsplit=1) for line in lines if " " in line)
        microseconds = counters.get("usage_usec")
        return None if microseconds is None else int(microseconds) / 1e6

    def release(self) -> None:
        """Lift the limits, kill what is still inside, remove the group. Safe to repeat."""
        for tuned in reversed(self._tuned):
            restore(tuned, ledger=self._ledger)
        self._tuned.clear()
        self._machine_wide.close()
        for holding in self._throttled:
            outcome = ledger.restore_throttle(holding.name, holding.detail)
            if outcome.problem is not None:
                raise VerifyFailed(outcome.problem)
            self._ledger.settled(holding)
        self._throttled.clear()
        for directory in self._directories.values():
            ledger.remove_group(directory)
            self._ledger.settled(Holding("cgroup", str(directory)))
        self._directories.clear()

    def _make(self) -> None:
        places = {name: self._hierarchy.v1[name] for name in _V1_CONTROLLERS if name in self._hierarchy.v1}
        if self._hierarchy.v2 is not None:
            places["v2"] = self._hierarchy.v2
        for key, parent in places.items():
            directory = parent / f"bedplate-{self.name}"
            # Controllers that are mounted together share one directory.
            if directory not in self._directories.values():
                self._ledger.note(Holding("cgroup", str(directory)))
                try:
                    directory.mkdir()
                except OSError as error:
                    self._ledger.settled(Holding("cgroup", str(directory)))
                    raise RequirementMissing(
                        f"control group {directory} cannot be made: {error.strerror}; "
                        f"`bedplate release` frees what was left"
                    ) from error
            self._directories[key] = directory

    def _limit_memory(self, memory_bytes: int) -> Iterable[ReadBack]:
        if self._hierarchy.version_of("memory") == 2:
            path = self._directories["v2"] / "memory.max"
            _write(path, str(memory_bytes))
            # What does not fit must fail: swapped out, it would be measured on another device.
            _write_if_there(self._directories["v2"] / "memory.swap.max", "0")
        else:
            path = self._directories["memory"] / "memory.limit_in_bytes"
            _write(path, str(memory_bytes))
            _write_if_there(self._directories["memory"] / "memory.memsw.limit_in_bytes", str(memory_bytes))
            if not self._machine_wide.enter_context(file_lock_if_free(self._vm / _DIRTY_LOCK)):
                raise RequirementMissing(_DIRTY_HELD)
            for name, percent in _DIRTY_PERCENT.items():
                value = str(memory_bytes * percent // 100)
                # Background first would be refused where it is above the old limit: the kernel caps it.
                tuned = set_tunable(self._vm / name, value, ledger=self._ledger)
                self._tuned.append(tuned)
                yield ReadBack(f"kernel.vm.{name}", None, int(tuned.effective), str(tuned.path), None)
        effective = _read_int(path)
        page = os.sysconf("SC_PAGE_SIZE")
        if effective is None or effective // page != memory_bytes // page:
            raise VerifyFailed(
                f"{path}: asked for {format_size(memory_bytes)}, effective is {effective} bytes"
            )
        yield ReadBack("device.memory_bytes", memory_bytes, effective, str(path), True)

    def _throttle(self, throttle: Throttle, device: str) -> list[ReadBack]:
        asked = {field: value for field in _LIMITS if (value := getattr(throttle, field)) is not None}
        version = self._hierarchy.version_of("blkio", "io")
        comparisons = []
        for field, value in asked.items():
            file, key = _LIMITS[field]
            if version == 2:
                path = self._directories["v2"] / "io.max"
                _write(path, f"{device} {key}={value}")
                effective = _io_max(path, device, key)
            else:
                path = self._hierarchy.v1["blkio"] / file
                before = _device_line(path, device)
                holding = Holding("throttle", f"{path} {device}", f"{device} {before or 0}")
                self._ledger.note(holding)
                self._throttled.append(holding)
                _write(path, f"{device} {value}")
                effective = _device_line(path, device)
            if effective != value:
                raise VerifyFailed(f"{path}: asked for {value} on {device}, effective is {effective}")
            comparisons.append(ReadBack(f"device.throttle.{field}", value, effective, str(path), True))
        return comparisons


def memory_limit_reasons(
    memory_bytes: int | None, *, hierarchy: Hierarchy | None = None, vm: Path = _VM
) -> tuple[str, ...]:
    """Why no group with this limit can be made now: another one holds what is the whole machine's."""
    if memory_bytes is None or (hierarchy or read_hierarchy()).version_of("memory") != 1:
        return ()
    with file_lock_if_free(vm / _DIRTY_LOCK) as is_free:
        return () if is_free else (_DIRTY_HELD,)


def drop_page_cache(vm: Path = _VM) -> None:
    """Write out what is dirty, then drop clean pages, dentries and inodes of the whole machine."""
    os.sync()
    (vm / "drop_caches").write_text("3")


def _v2_names(memory_bytes: int | None, throttle: Throttle | None) -> tuple[str, ...]:
    """The controllers that the limits need, as version 2 calls them."""
    asked = {"memory": memory_bytes is not None, "io": throttle is not None}
    return tuple(name for name, needed in asked.items() if needed)


def _unmet(hierarchy: Hierarchy, *, memory: bool, throttle: bool) -> tuple[str, ...]:
    way_out = "boot with cgroup_enable=memory, or leave it out of the plan"
    reasons = []
    if memory and hierarchy.version_of("memory") is None:
        reasons.append(f"memory: no control group of this machine limits memory; {way_out}")
    if throttle and hierarchy.version_of("blkio", "io") is None:
        reasons.append(
            "throttle: no control group of this machine throttles block devices "
            "(the kernel needs CONFIG_BLK_DEV_THROTTLING); leave it out of the plan"
        )
    return tuple(reasons)


def _delegate(root: Path, controllers: Iterable[str]) -> None:
    """Let children of the unified root have the controllers; they stay on, as systemd leaves them too."""
    try:
        enabled = set((root / "cgroup.subtree_control").read_text().split())
        missing = sorted(set(controllers) - enabled)
        for controller in missing:
            (root / "cgroup.subtree_control").write_text(f"+{controller}")
    except OSError as error:
        raise RequirementMissing(
            f"{root}/cgroup.subtree_control does not take {' '.join(missing)}: {error.strerror}; "
            f"run bedplate outside of a container, or leave memory and throttle out of the plan"
        ) from error


def _write(path: Path, value: str) -> None:
    try:
        path.write_text(value)
    except OSError as error:
        raise VerifyFailed(f"{path} does not take {value!r}: {error.strerror}") from error


def _write_if_there(path: Path, value: str) -> None:
    if path.exists():
        _write(path, value)


def _read_int(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _device_line(path: Path, device: str) -> int | None:
    """The value on the line `7:0 150`; None where the device has no line."""
    for line in path.read_text().splitlines():
        number, _, value = line.partition(" ")
        if number == device:
            return int(value)
    return None


def _io_max(path: Path, device: str, key: str) -> int | None:
    """The value in `7:0 rbps=max wbps=max riops=150 wiops=max`; None for `max` or no line."""
    for line in path.read_text().splitlines():
        number, _, words = line.partition(" ")
        if number == device:
            value = dict(word.split("=", 1) for word in words.split())[key]
            return None if value == "max" else int(value)
    return None
