"""A partition over a whole disk that only the kernel knows: nothing is written to the disk.

For what insists on a partition. ZFS takes a whole disk for one that it should partition itself, and
then waits for udev, which a guest has not; and a partition table would be a foreign signature to the
next visit. `BLKPG` (include/uapi/linux/blkpg.h) adds a partition until the next reading of the table.
"""

from __future__ import annotations

import array
import errno
import fcntl
import os
import struct
from pathlib import Path

from bedplate.errors import DeviceInUse, RequirementMissing
from bedplate.host.patience import wait_until
from bedplate.units import KERNEL_SECTOR_BYTES

_BLKPG = 0x1269  # _IO(0x12, 105)
_ADD, _DELETE = 1, 2
_NUMBER = 1
_PATIENCE_S = 10.0
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
    if found is None or not wait_until(Path(found).exists, deadline_s=_PATIENCE_S):
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

    if not wait_until(dropped, deadline_s=_PATIENCE_S):
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
