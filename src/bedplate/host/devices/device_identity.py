"""Which disk a device is, read from sysfs: a study goes on with the one that it began with, and with no other."""

from __future__ import annotations

import os
from pathlib import Path

from bedplate.host.devices.block_tree import BlockTree
from bedplate.host.devices.device_node import DeviceNode
from bedplate.host.devices.loop_table import backing_file, loop_file
from bedplate.host.files import text_of
from bedplate.model.devices.identity import DeviceIdentity

# As SCSI, NVMe and virtio disks and memory cards tell them.
_WWID = ("wwid", "device/wwid", "device/cid")
_SERIAL = ("serial", "device/serial")
# What a maker writes who gives no disk a name of its own.
_BLANK = " 0.:-"
_PARTITION_UUID = "PARTUUID="
_SYS = Path("/sys")


def device_identity(device: str, tree: BlockTree | None = None) -> DeviceIdentity | None:
    """What the name leads to now; None if that is no block device."""
    tree = tree or BlockTree()
    node = DeviceNode.at(device, tree)
    if node is None:
        return None
    with node:
        return identity_of(node.name, tree)


def identity_of(name: str, tree: BlockTree) -> DeviceIdentity:
    """That of a device or a partition by the kernel's name of it, which is to be held open."""
    whole = tree.whole(name)
    file = _file_behind(whole, tree)
    # A loop device over a disk is that disk.
    disk = tree.whole(tree.below_all_loops(whole))
    return DeviceIdentity(
        size_bytes=tree.size_bytes(name),
        model=tree.model(disk) or None,
        wwid=_first(disk, _WWID, tree),
        serial=_first(disk, _SERIAL, tree),
        partition=_number(name, "partition", tree),
        partition_start=_number(name, "start", tree) if name != whole else None,
        partition_uuid=_partition_uuid(name, tree) if name != whole else None,
        volume_uuid=_first(disk, ("dm/uuid", "md/uuid"), tree) or _linked(disk, "by-id", "md-uuid-", tree),
        file_inode=None if file is None else file[1],
        file_device=None if file is None else file[0],
        disk_sequence=_number(disk, "diskseq", tree),
        boot_id=text_of(tree.proc / "sys/kernel/random/boot_id") or None,
    )


def other_device_reasons(
    device: str, name: str, recorded: DeviceIdentity | None, tree: BlockTree
) -> tuple[str, ...]:
    """Why a device is not the one that its study began with; () if it may be, or if nothing was recorded."""
    if recorded is None:
        return ()
    told = recorded.differences(identity_of(name, tree))
    if not told:
        return ()
    what = f"{device} is another device than the one that this study began with: it leads to /dev/{name}"
    way_out = "bring that one back under this name, or measure this one in a study of its own (--study)"
    return (f"{what}, {', '.join(told)}; {way_out}",)


def _first(name: str, files: tuple[str, ...], tree: BlockTree) -> str | None:
    texts = (tree.text(name, file) for file in files)
    return next((text for text in texts if text.strip(_BLANK)), None)


def _number(name: str, file: str, tree: BlockTree) -> int | None:
    text = tree.text(name, file)
    return int(text) if text.isdigit() else None


def _partition_uuid(name: str, tree: BlockTree) -> str | None:
    """By the kernel, where it is new enough; else by udev's link."""
    for line in tree.text(name, "uevent").splitlines():
        if line.startswith(_PARTITION_UUID):
            return line.removeprefix(_PARTITION_UUID).lower()
    return _linked(name, "by-partuuid", "", tree)


def _linked(name: str, folder: str, start: str, tree: BlockTree) -> str | None:
    """What follows `start` in the name of a link of udev's that leads to the device."""
    for link in sorted(tree.dev.glob(f"disk/{folder}/{start}*")):
        if tree.name_at(link) == name:
            return link.name.removeprefix(start).lower()
    return None


def _file_behind(name: str, tree: BlockTree) -> tuple[int, int] | None:
    """Device and inode of the file behind a loop device; None for what is no loop, or is over a device."""
    file = backing_file(name, tree.sys / "block")
    if file is None:
        return None
    # The kernel's own numbers: the name may be of another mount namespace. It tells them to root alone.
    found = loop_file(name) if tree.sys == _SYS else None
    if found is not None:
        return None if found.block_device else (found.device, found.inode)
    if tree.name_at(file) is not None:
        return None
    try:
        status = os.stat(file)  # noqa: PTH116 -- a name of the kernel's
    except OSError:
        return None
    return status.st_dev, status.st_ino
