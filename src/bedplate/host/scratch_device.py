"""The scratch device: refused with every reason at once, or prepared. What is here may be erased."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, DeviceRefused, RequirementMissing
from bedplate.host.block_tree import BlockTree
from bedplate.host.device import AttachedDevice
from bedplate.host.ledger import Holding
from bedplate.host.loop import attach_loop, detach_loop, image_reasons, write_image
from bedplate.host.signature import erase_signatures, read_signatures
from bedplate.units import format_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from bedplate.host.command import Commands
    from bedplate.host.ledger import Ledger
    from bedplate.model.visit import ScratchDevice

IMAGE_NAME = "bedplate-scratch.img"
_STABLE = re.compile(r"disk/by-[a-z]+/[^/]+|mapper/[^/]+|md/[^/]+")
_VOLUME = re.compile(r"[^/]+/[^/]+")


def image_path(scratch: ScratchDevice, directory: Path) -> Path:
    """Where the image file of this scratch device stands; `directory` if the plan names none."""
    return Path(scratch.image_directory or directory) / IMAGE_NAME


def refusal_reasons(
    scratch: ScratchDevice,
    commands: Commands,
    *,
    minimum_bytes: int = 0,
    directory: Path | None = None,
    tree: BlockTree | None = None,
) -> tuple[str, ...]:
    """Every reason why this may not be erased, as a sentence with its way out; () if it may.

    Writes nothing. `minimum_bytes` is what the study needs, `directory` where an image would stand if
    the plan names none. Reading a device's signatures needs root.
    """
    if scratch.device is None:
        return _image_reasons(scratch, directory, minimum_bytes)
    tree = tree or BlockTree()
    device = scratch.device
    reasons = []
    if device not in scratch.erase:
        reasons.append(f"{device} will be erased; name it again on the command line: --erase {device}")
    name = tree.name_at(device)
    if name is None:
        found = "is not a block device" if Path(device).exists() else "does not exist"
        return (*reasons, f"{device} {found}; name a disk, a partition, a logical volume or an array")
    if not _is_stable(device, name, tree):
        reasons.append(_unstable(device, name, tree))
    in_use = _use_reasons(name, tree)
    reasons += in_use
    if tree.is_read_only(name):
        reasons.append(f"{device} is write-protected; `blockdev --setrw {device}` if it should not be")
    size_bytes = tree.size_bytes(name)
    if size_bytes < max(minimum_bytes, 1):
        reasons.append(
            f"{device} has {format_size(size_bytes)}, {format_size(minimum_bytes)} are needed; "
            f"use a larger device or a smaller scale"
        )
    reasons += _signature_reasons(scratch, device, tree.partitions(name), commands, tree)
    if not in_use and (busy := _exclusive_reason(device)) is not None:
        reasons.append(busy)
    return tuple(reasons)


def prepare(
    scratch: ScratchDevice,
    *,
    ledger: Ledger,
    commands: Commands,
    directory: Path,
    progress: Callable[[int], None] | None = None,
    tree: BlockTree | None = None,
) -> AttachedDevice:
    """Make the scratch device ready for mkfs.

    An image is written anew with zeros and attached; a real device loses its signatures. DeviceRefused
    with every reason, asked again here, a moment before anything is erased.
    """
    if scratch.device is None:
        if not scratch.image_bytes:
            raise RequirementMissing("a scratch device needs a device's name or an image's size")
        path = image_path(scratch, directory)
        ledger.note(Holding("image", str(path)))
        write_image(path, scratch.image_bytes, progress=progress)
        return attach_loop(path, ledger=ledger, commands=commands)
    tree = tree or BlockTree()
    reasons = refusal_reasons(scratch, commands, tree=tree)
    if reasons:
        raise DeviceRefused(*reasons)
    name = tree.name_at(scratch.device)
    assert name is not None  # noqa: S101 -- refused above otherwise
    node = tree.node(name)
    # A partition table may go only with --erase-foreign; its partitions' signatures go first, or they
    # would come back to life with the next table of the same shape.
    for partition in tree.partitions(name):
        erase_signatures(tree.node(partition), commands)
    erase_signatures(node, commands)
    return AttachedDevice(node, name, tree.whole(name), tree.size_bytes(name))


def release_device(
    device: AttachedDevice, *, ledger: Ledger, commands: Commands, keep_image: bool = False
) -> None:
    """Detach an image's loop device and delete the image; a real device is left as it is.

    `keep_image` leaves the file for the next visit, which writes it anew in the same place on the disk
    below, and takes it out of the ledger.
    """
    if device.image is None:
        return
    detach_loop(device, ledger=ledger, commands=commands)
    if not keep_image:
        device.image.unlink(missing_ok=True)
    ledger.settled(Holding("image", str(device.image)))


def _image_reasons(scratch: ScratchDevice, directory: Path | None, minimum_bytes: int) -> tuple[str, ...]:
    size_bytes = scratch.image_bytes or 0
    reasons = []
    if size_bytes < minimum_bytes:
        reasons.append(
            f"the image has {format_size(size_bytes)}, {format_size(minimum_bytes)} are needed; "
            f"use a larger image or a smaller scale"
        )
    if directory is None and scratch.image_directory is None:
        return tuple(reasons)
    return (*reasons, *image_reasons(image_path(scratch, directory or Path("/")), size_bytes))


def _is_stable(device: str, name: str, tree: BlockTree) -> bool:
    """Names that follow the device wherever the kernel puts it at the next boot."""
    if device != os.path.normpath(device) or not device.startswith(f"{tree.dev}/"):
        return False
    relative = device.removeprefix(f"{tree.dev}/")
    if _STABLE.fullmatch(relative):
        return True
    # `/dev/group/volume` is LVM's name of a mapped device.
    return _VOLUME.fullmatch(relative) is not None and name.startswith("dm-") and Path(device).is_symlink()


def _unstable(device: str, name: str, tree: BlockTree) -> str:
    folders = (*sorted(tree.dev.glob("disk/by-*")), tree.dev / "mapper", tree.dev / "md")
    names = [
        path
        for folder in folders
        if folder.is_dir()
        for path in sorted(folder.iterdir())
        if tree.name_at(path) == name
    ]
    way_out = f"write {names[0]}" if names else f"see {tree.dev}/disk/by-id"
    return f"{device} may be another device after the next boot; use a stable name: {way_out}"


def _use_reasons(name: str, tree: BlockTree) -> list[str]:
    parts = (name, *tree.partitions(name))
    reasons = [sentence for part in parts for sentence in tree.users(part)]
    under_root = tree.under_root()
    reasons += [
        f"{tree.node(part)} carries the running system; choose another device"
        for part in parts
        if part in under_root and (part == name or name not in under_root)
    ]
    return reasons


def _signature_reasons(
    scratch: ScratchDevice, device: str, partitions: tuple[str, ...], commands: Commands, tree: BlockTree
) -> list[str]:
    reasons = []
    for path in (device, *(tree.node(partition) for partition in partitions)):
        try:
            signatures = read_signatures(path, commands)
        except BedplateError as error:
            reasons.append(f"what is on {path} cannot be read, so it is left alone: {error}")
            continue
        for signature in signatures:
            if signature.is_member:
                reasons.append(
                    f"{path} is a {signature}: part of an array, a volume group or a pool; "
                    f"take it out of that, then `wipefs --all {path}`"
                )
            elif not signature.is_own and not scratch.erase_foreign:
                reasons.append(
                    f"{path} holds {signature} that bedplate did not make; --erase-foreign allows to erase it"
                )
    return reasons


def _exclusive_reason(device: str) -> str | None:
    """The kernel's own word: what no table shows (another namespace's mount, an external journal)."""
    try:
        file = os.open(device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.EBUSY:
            return (
                f"{device} is held by something that no table shows (a journal, another namespace?); free it"
            )
        return f"{device} cannot be opened: {error.strerror}"
    os.close(file)
    return None
