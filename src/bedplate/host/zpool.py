"""Pools of bedplate's own on this machine: named after their device, so that they are found again.

On the disk every one is called as all of bedplate's file systems are labelled; the name in memory is
a temporary one (`zpool import -t`), so that two studies on two devices do not meet.
"""

from __future__ import annotations

import array
import errno
import fcntl
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import DeviceInUse, OutputNotUnderstood, RequirementMissing
from bedplate.host.process import wait_until
from bedplate.model.filesystem import LABEL
from bedplate.units import KERNEL_SECTOR_BYTES

if TYPE_CHECKING:
    from bedplate.host.command import Commands

_BLKPG = 0x1269  # _IO(0x12, 105)
_ADD, _DELETE = 1, 2
_NUMBER = 1
_PARTITION_PATIENCE_S = 10.0

SYSFS = Path("/sys/class/block")


def partition_over(device_path: str, *, sysfs: Path = SYSFS) -> str:
    """The node of the partition over all of `device_path`, added now if there is none.

    A partition, and what cannot be partitioned (a logical volume), is answered with as it is.
    DeviceInUse if the disk has other partitions.
    """
    name = _name(device_path)
    if (sysfs / name / "partition").exists():
        return device_path
    found = find_partition_over(device_path, sysfs=sysfs)
    if found is None:
        size_bytes = int((sysfs / name / "size").read_text()) * KERNEL_SECTOR_BYTES
        try:
            add_partition(device_path, start_bytes=0, length_bytes=size_bytes)
        except OSError as error:
            if error.errno == errno.EINVAL:
                return device_path
            raise DeviceInUse(
                f"{device_path} cannot get a partition over all of it ({error.strerror}); does it have others?"
            ) from error
        found = find_partition_over(device_path, sysfs=sysfs)
    if found is None or not wait_until(Path(found).exists, deadline_s=_PARTITION_PATIENCE_S):
        raise RequirementMissing(
            f"the partition over {device_path} has no node; /dev should be a devtmpfs, or udev should run"
        )
    return found


def find_partition_over(device_path: str, *, sysfs: Path = SYSFS) -> str | None:
    """The node of a partition that is as large as `device_path`; None if there is none."""
    name = _name(device_path)
    for mark in sorted((sysfs / name).glob(f"{name}*/partition")):
        folder = mark.parent
        sizes = ((folder / "size").read_text(), (sysfs / name / "size").read_text())
        if (folder / "start").read_text().strip() == "0" and sizes[0] == sizes[1]:
            return f"/dev/{folder.name}"
    return None


def disk_under(node: str, *, sysfs: Path = SYSFS) -> str:
    """The disk whose partition `node` is, if that is one over all of it; else `node`."""
    folder = (sysfs / _name(node)).resolve()
    if (folder / "partition").exists():
        disk = f"/dev/{folder.parent.name}"
        if find_partition_over(disk, sysfs=sysfs) == f"/dev/{folder.name}":
            return disk
    return node


def drop_partition_over(device_path: str, *, sysfs: Path = SYSFS) -> None:
    """Take it away again, if it is there; DeviceInUse if somebody holds it."""
    if find_partition_over(device_path, sysfs=sysfs) is not None:
        remove_partition(device_path)


def add_partition(device_path: str, *, start_bytes: int, length_bytes: int) -> None:
    """Tell the kernel of partition 1; OSError in the kernel's words.

    addpart(8) does the same. Debian 13 has it in a package of its own.
    """
    _blkpg(device_path, _ADD, start_bytes=start_bytes, length_bytes=length_bytes)


def remove_partition(device_path: str) -> None:
    """Let the kernel forget partition 1, if it knows one; DeviceInUse if somebody holds it."""

    def dropped() -> bool:
        # A prober of new partitions (udev) may have it open for a moment.
        try:
            _blkpg(device_path, _DELETE, start_bytes=0, length_bytes=0)
        except OSError as error:
            if error.errno == errno.EBUSY:
                return False
            if error.errno != errno.ENXIO:
                raise
        return True

    if not wait_until(dropped, deadline_s=_PARTITION_PATIENCE_S):
        raise DeviceInUse(f"the partition of {device_path} stays busy; is its pool still imported?")


def _name(device_path: str) -> str:
    return os.path.realpath(device_path).rpartition("/")[2]


def _blkpg(device_path: str, operation: int, *, start_bytes: int, length_bytes: int) -> None:
    """`struct blkpg_partition`, with its address in `struct blkpg_ioctl_arg`."""
    partition = array.array("B", struct.pack("@qqi64s64s4x", start_bytes, length_bytes, _NUMBER, b"", b""))
    address, size = partition.buffer_info()
    device = os.open(device_path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.ioctl(device, _BLKPG, struct.pack("@iii4xP", operation, 0, size, address))
    finally:
        os.close(device)


MODULE = Path("/sys/module/zfs")

# The kernel has a folder in it for each imported pool (spa_stats.c), by the name that the pool has in memory.
KSTATS = Path("/proc/spl/kstat/zfs")

_PATIENCE_S = 30.0
_NO_ERRORS = "No known data errors"

# The columns of its table, behind name and state.
_ERRORS = ("read", "write", "checksum")


@dataclass(frozen=True)
class PoolStatus:
    """What `zpool status` says of one pool.

    `scan` is the last scrub, empty if there was none. `devices` and `logs` are the nodes of data and
    log devices, `counted` the errors that any of them had (reads, writes and checksums together), and `counters`
    the three of each that had any, by its name.
    """

    state: str
    scan: str
    errors: str
    devices: tuple[str, ...]
    logs: tuple[str, ...]
    counters: tuple[tuple[str, tuple[int, ...]], ...] = ()

    @property
    def counted(self) -> int:
        """All errors together."""
        return sum(sum(counts) for _, counts in self.counters)

    @property
    def complaints(self) -> tuple[str, ...]:
        """What it says of errors, a line each; none where it says that there are none."""
        counted = (
            f"{name}: {', '.join(f'{count} {kind}' for kind, count in zip(_ERRORS, counts, strict=True))} errors"
            for name, counts in self.counters
        )
        known = () if self.errors == _NO_ERRORS else (f"errors: {self.errors}",)
        return tuple(f"zpool status: {line}" for line in (*counted, *known))

    @property
    def is_clean(self) -> bool:
        """True after a scrub that found nothing to repair, on devices that made no error."""
        return self._is_whole and self.counted == 0 and self.scan.startswith("scrub repaired 0B ")

    @property
    def is_mended(self) -> bool:
        """True after a scrub that found errors and repaired them all, by another copy."""
        return self._is_whole and not self.is_clean

    @property
    def _is_whole(self) -> bool:
        scrubbed = self.scan.startswith("scrub repaired ") and " with 0 errors " in self.scan
        return self.state == "ONLINE" and self.errors == _NO_ERRORS and scrubbed


def pool_name(device_path: str) -> str:
    """`bedplate-vda` for /dev/vda, whatever link led to it."""
    return f"{LABEL}-{os.path.realpath(device_path).rpartition('/')[2]}"


def imported_pools(commands: Commands, *, module: Path = MODULE) -> Mapping[str, str]:
    """Every imported pool with its alternate root (`-` without one); none where ZFS is not loaded."""
    if not module.exists():
        return {}
    shown = commands.run(["zpool", "list", "-H", "-o", "name,altroot"]).stdout
    rows = (line.split("\t") for line in shown.splitlines())
    return {row[0]: row[-1] for row in rows if len(row) == 2}


def is_imported(name: str, commands: Commands) -> bool:
    """Whether a pool has this name in memory; asked of the kernel, as a start of zpool costs seconds on an emulated processor."""
    return (KSTATS / name).is_dir() if KSTATS.is_dir() else name in imported_pools(commands)


def is_suspended(name: str) -> bool:
    """Whether its requests wait for an operator; asked of the kernel, as zpool may wait with them."""
    try:
        return (KSTATS / name / "state").read_text(encoding="ascii").strip() == "SUSPENDED"
    except OSError:
        return False


def export_pool(name: str, commands: Commands, *, deadline_s: float = _PATIENCE_S) -> None:
    """Export it; a pool may be busy for a moment after a good unmount. DeviceInUse at the deadline."""
    said: list[str] = []

    def exported() -> bool:
        done = commands.run(["zpool", "export", name], timeout_s=600, check=False)
        said.append(done.output)
        if "busy" not in done.output:
            done.require_success()
        return done.status == 0

    if not wait_until(exported, deadline_s=deadline_s, pause_s=0.05):
        raise DeviceInUse(f"pool {name} cannot be exported: {said[-1]}")


def release_pool(name: str, commands: Commands, *, disks: Sequence[str] | None = None) -> bool:
    """Export a pool and take its devices' partitions away; False if no such pool is imported.

    The pool is asked for its devices where the caller does not know its `disks`.
    """
    if not is_imported(name, commands):
        return False
    if disks is None:
        status = parse_status(commands.run(["zpool", "status", "-P", "-p", name]).stdout)
        disks = [disk_under(node) for node in (*status.devices, *status.logs)]
    export_pool(name, commands)
    for disk in disks:
        drop_partition_over(disk)
    return True


def parse_status(text: str) -> PoolStatus:
    """`zpool status -P -p` of one pool; OutputNotUnderstood without its state, config and errors."""
    fields: dict[str, str] = {}
    rows: list[list[str]] = []
    logs: list[str] = []
    section, key = "", ""
    for line in text.splitlines():
        head, colon, rest = line.partition(":")
        if line.startswith("\t") and key == "config":
            words = line.split()
            if len(words) == 1:
                section = words[0]
            elif words and words[0] != "NAME":
                rows.append(words)
                if section == "logs":
                    logs.append(words[0])
        elif colon and head.strip().isidentifier() and not line.startswith("\t"):
            key = head.strip()
            fields[key] = rest.strip()
    if not {"state", "config", "errors"} <= fields.keys() or not rows:
        raise OutputNotUnderstood("zpool status", expected="state, config and errors of a pool", found=text)
    nodes = [row[0] for row in rows if row[0].startswith("/")]
    return PoolStatus(
        state=fields["state"],
        scan=fields.get("scan", ""),
        errors=fields["errors"],
        devices=tuple(node for node in nodes if node not in logs),
        logs=tuple(node for node in logs if node.startswith("/")),
        counters=tuple(
            (row[0], counts)
            for row in rows
            if len(counts := tuple(map(int, filter(str.isdigit, row[2:5])))) == len(_ERRORS) and any(counts)
        ),
    )
