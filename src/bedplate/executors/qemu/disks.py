"""The disks of a guest: images that are written full of zeros for each visit, or devices of the host."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import DeviceRefused, RequirementMissing
from bedplate.executors.qemu.command_line import GuestDisk
from bedplate.host.devices.block_tree import BlockTree
from bedplate.host.devices.device_node import DeviceNode
from bedplate.host.devices.loop import write_image
from bedplate.host.devices.scratch_device import image_path, refusal_reasons
from bedplate.host.ledger import Holding
from bedplate.model.device_cache import DISK, JOURNAL_DISK, SECTORS
from bedplate.model.visit import ScratchDevice
from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from contextlib import ExitStack

    from bedplate.host.command import Commands
    from bedplate.host.ledger import Ledger
    from bedplate.model.visit import VisitRequest

DATA = "bedplate-data"
JOURNAL = "bedplate-journal"
_JOURNAL_IMAGE = "bedplate-journal.img"
_MEMORY = Path("/dev/shm")  # noqa: S108 -- a file of bedplate's own
# What must stay free beside an image: on a disk for the study and its logs, in memory for nothing.
_MARGIN_BYTES = 256 * MIB
_MEMORY_MARGIN_BYTES = 16 * MIB


def disks_of(
    request: VisitRequest, *, place: Path, hold: ExitStack, locked: Mapping[str, str | None]
) -> tuple[GuestDisk, ...]:
    """The disks that this visit needs; images without a directory of their own stand in `place`.

    Devices of the host stay open until `hold` ends; `locked` are the nodes whose locks are held, by the names of the devices.
    RequirementMissing for a scratch device that is neither a device nor an image, DeviceRefused where none is there.
    """
    scratch = request.scratch_device
    data = _disk(DATA, scratch, image_path(scratch, place), hold, locked)
    if request.journal_device is None:
        return (data,)
    journal = request.journal_device
    directory = Path(journal.image_directory) if journal.image_directory else _MEMORY
    # Images of several bedplates stand in the same memory.
    image = directory / f"{os.getpid()}-{_JOURNAL_IMAGE}"
    return (data, _disk(JOURNAL, journal, image, hold, locked, in_memory=journal.is_image))


def renew(
    request: VisitRequest,
    disks: tuple[GuestDisk, ...],
    *,
    ledger: Ledger,
    commands: Commands,
    progress: Callable[[int, int], None],
    spared: Collection[int] = (),
) -> None:
    """Write the images of a visit anew; a device of the host is asked for once more and left as it is.

    `progress` gets the total of bytes and those done. `spared` is the process of a guest that has the disks already.
    DeviceRefused with every reason; RequirementMissing where there is no room.
    """
    devices = (request.scratch_device, request.journal_device)
    reasons = [
        reason
        for disk, device in zip(disks, devices, strict=False)
        if device is not None and not device.is_image
        for reason in refusal_reasons(device, commands, expected=str(disk.path), spared=spared)
    ]
    if reasons:
        raise DeviceRefused(*reasons)
    for disk, device in zip(disks, devices, strict=False):
        if device is None or not device.is_image:
            continue
        ledger.note(Holding("image", str(disk.path)))
        write_image(
            disk.path,
            disk.size_bytes,
            progress=partial(progress, disk.size_bytes),
            margin_bytes=_MEMORY_MARGIN_BYTES if disk.in_memory else _MARGIN_BYTES,
        )


def demand_same(disks: Iterable[GuestDisk]) -> None:
    """DeviceRefused where a path leads to another device than the one that was looked at."""
    reasons = [
        f"{disk.path} is another device than the one that was looked at for this visit; give the same command again"
        for disk in disks
        if not disk.is_what_it_was
    ]
    if reasons:
        raise DeviceRefused(*reasons)


def inside(disk: GuestDisk) -> ScratchDevice:
    """How the visit in the guest knows a disk: all of it may go, whatever an earlier visit left."""
    return ScratchDevice(device=disk.device, erase=(disk.device,), erase_foreign=True)


def said_of(request: VisitRequest, disks: tuple[GuestDisk, ...]) -> dict[str, str]:
    """What the disks really are, which the guest cannot see: kinds, and physical sectors where something tells."""
    tree, found = BlockTree(), {}
    for disk, device, key in zip(
        disks, (request.scratch_device, request.journal_device), (DISK, JOURNAL_DISK), strict=False
    ):
        if device is None:
            continue
        kind = "memory" if disk.in_memory else "image file" if device.is_image else "block device"
        found[key] = f"{kind} on a virtio disk"
        if (sectors := tree.sectors_at(disk.path)) is not None:
            found[f"{key}{SECTORS}"] = str(sectors)
    return found


def _disk(
    serial: str,
    scratch: ScratchDevice,
    image: Path,
    hold: ExitStack,
    locked: Mapping[str, str | None],
    *,
    in_memory: bool = False,
) -> GuestDisk:
    if scratch.device is not None:
        tree = BlockTree()
        node = DeviceNode.at(scratch.device, tree)
        if node is None:
            raise DeviceRefused(f"{scratch.device} is not there; name a disk, a partition, or a volume")
        hold.enter_context(node)
        try:
            node.pin()
        except OSError as error:
            raise DeviceRefused(f"{scratch.device} cannot be opened: {error.strerror}") from error
        held = locked.get(scratch.device)
        if not node.is_named(tree) or (held is not None and not node.is_at(held)):
            raise DeviceRefused(
                f"{scratch.device} is another device than a moment ago; give the same command again"
            )
        # The kernel's own name: what is asked for before each visit is what the guest writes to.
        return GuestDisk(serial, Path(f"/dev/{node.name}"), tree.size_bytes(node.name), hold=node)
    if not scratch.image_bytes:
        raise RequirementMissing("a scratch device needs a device's name or an image's size")
    return GuestDisk(serial, image, scratch.image_bytes, in_memory=in_memory)
