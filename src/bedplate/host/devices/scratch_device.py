"""The scratch device: refused with every reason at once, or prepared. What is here may be erased."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, DeviceRefused, RequirementMissing
from bedplate.host.devices.block_tree import BlockTree
from bedplate.host.devices.device import AttachedDevice
from bedplate.host.devices.device_holders import device_holders, writers_of
from bedplate.host.devices.device_identity import other_device_reasons
from bedplate.host.devices.device_node import DeviceNode
from bedplate.host.devices.loop import attach_loop, detach_loop, image_reasons, write_image
from bedplate.host.devices.signature import erase_signatures, read_signatures
from bedplate.host.ledger import Holding
from bedplate.host.patience import wait_until
from bedplate.units import format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from bedplate.host.command import Commands
    from bedplate.host.ledger import Ledger
    from bedplate.model.visit import ScratchDevice

IMAGE_NAME = "bedplate-scratch.img"
_CLAIM_PATIENCE_S = 2.0
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
    expected: str | None = None,
    spared: Collection[int] = (),
) -> tuple[str, ...]:
    """Every reason why this may not be erased, as a sentence with its way out; () if it may.

    Writes nothing. `minimum_bytes` is what the study needs, `directory` where an image would stand if
    the plan names none, `expected` the node that the device's name led to before, `spared` the processes that may write to
    the device. Reading a device's signatures needs root.
    """
    if scratch.device is None:
        return _image_reasons(scratch, directory, minimum_bytes)
    tree = tree or BlockTree()
    node = DeviceNode.at(scratch.device, tree)
    if node is None:
        return _nothing_there(scratch)
    with node:
        return _device_reasons(
            scratch,
            node,
            commands,
            tree=tree,
            minimum_bytes=minimum_bytes,
            expected=expected,
            spared=spared,
        )


def prepare(
    scratch: ScratchDevice,
    *,
    ledger: Ledger,
    commands: Commands,
    directory: Path,
    progress: Callable[[int], None] | None = None,
    tree: BlockTree | None = None,
    apart_from: AttachedDevice | None = None,
    expected: str | None = None,
) -> AttachedDevice:
    """Make the scratch device ready for mkfs.

    An image is written anew with zeros and attached; a real device loses its signatures. DeviceRefused
    with every reason, asked again here of the very device that is then erased, which nobody else can
    take meanwhile. `apart_from` is a device that it must share nothing with, `expected` the node of the one
    whose lock is held.
    """
    if scratch.device is None:
        if not scratch.image_bytes:
            raise RequirementMissing("a scratch device needs a device's name or an image's size")
        path = image_path(scratch, directory)
        ledger.note(Holding("image", str(path)))
        write_image(path, scratch.image_bytes, progress=progress)
        return attach_loop(path, ledger=ledger, commands=commands)
    tree = tree or BlockTree()
    node = DeviceNode.at(scratch.device, tree)
    if node is None:
        raise DeviceRefused(*_nothing_there(scratch))
    with contextlib.ExitStack() as stack:
        stack.enter_context(node)
        reasons = _device_reasons(
            scratch, node, commands, tree=tree, expected=expected, apart_from=apart_from, hold=True
        )
        if reasons:
            raise DeviceRefused(*reasons)
        # A partition table may go only with --erase-foreign; its partitions' signatures go first, or they
        # would come back to life with the next table of the same shape. The claim is on them as well.
        for partition in tree.partitions(node.name):
            erase_signatures(f"/dev/{partition}", commands, claimed=True)
        erase_signatures(node.path, commands, claimed=True)
        node.read_partitions()
        node.unclaim()
        stack.pop_all()
    shown = tree.node(node.name)
    usable = shown if node.is_at(shown) else node.path
    return AttachedDevice(usable, node.name, tree.whole(node.name), tree.size_bytes(node.name), hold=node)


def release_device(
    device: AttachedDevice, *, ledger: Ledger, commands: Commands, keep_image: bool = False
) -> None:
    """Detach an image's loop device and delete the image; a real device is left as it is, and let go.

    `keep_image` leaves the file for the next visit, which writes it anew in the same place on the disk
    below, and takes it out of the ledger.
    """
    if device.hold is not None:
        device.hold.close()
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


def _nothing_there(scratch: ScratchDevice) -> tuple[str, ...]:
    device = str(scratch.device)
    found = "is not a block device" if Path(device).exists() else "does not exist"
    return (*_unnamed(scratch), f"{device} {found}; name a disk, a partition, a logical volume or an array")


def _unnamed(scratch: ScratchDevice) -> list[str]:
    if scratch.device in scratch.erase:
        return []
    return [f"{scratch.device} will be erased; name it again on the command line: --erase {scratch.device}"]


def _device_reasons(
    scratch: ScratchDevice,
    node: DeviceNode,
    commands: Commands,
    *,
    tree: BlockTree,
    minimum_bytes: int = 0,
    expected: str | None = None,
    apart_from: AttachedDevice | None = None,
    spared: Collection[int] = (),
    hold: bool = False,
) -> tuple[str, ...]:
    """Every reason against this node; `hold` keeps the claim on it, so that nobody takes it after the last look."""
    device, name = str(scratch.device), node.name
    reasons = _unnamed(scratch)
    claim = node.claim(patience_s=_CLAIM_PATIENCE_S if hold else 0.0)
    if claim is None and not hold:
        # Only looked at: somebody else may be about to make a file system here.
        node.unclaim()
    if not node.is_named(tree):
        reasons.append(f"{device} was {name}, whose number has gone to another device meanwhile; try again")
    if expected is not None and not node.is_at(expected):
        reasons.append(f"{device} is another device than before: {node.path}, and it was {expected}")
    reasons += other_device_reasons(device, name, scratch.recorded, tree)
    if apart_from is not None:
        reasons += overlap_reasons(device, name, apart_from.path, apart_from.name, tree)
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
    reasons += _signature_reasons(scratch, node, commands, tree)
    if claim is None:
        reasons += _writer_reasons(device, name, tree, spared, patience_s=_CLAIM_PATIENCE_S if hold else 0.0)
    elif not in_use:
        reasons.append(_claim_reason(device, node, claim))
    return tuple(reasons)


def overlap_reasons(device: str, name: str, other: str, other_name: str, tree: BlockTree) -> tuple[str, ...]:
    """Why a journal's device and the scratch device share bytes: they may be two partitions of a disk."""
    if name == other_name:
        return (f"{device} is the scratch device itself; name another device for the journal",)
    if name in tree.partitions(other_name) or other_name in tree.partitions(name):
        return (f"{device} and {other} overlap: one is a partition of the other; name another one",)
    if _is_on_same_bytes(name, other_name, tree):
        return (f"{device} and {other} are on the same bytes; name another one",)
    return ()


def _is_on_same_bytes(name: str, other: str, tree: BlockTree) -> bool:
    """Whether loops lead from both to one device or file. Two volumes that are made of one device have their own parts of it."""
    above, below = ({of: True, **tree.stands_on(of)} for of in (name, other))
    return any(
        (one == two and (above[one] or below[two])) or two in tree.loops_beside(one)
        for one in above
        for two in below
    )


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
    # A loop device over the same bytes may be mounted, and the kernel sees nothing wrong with that.
    below = tree.stands_on(name)
    for device in (name, *below):
        shared = (device, tree.whole(device), *(tree.partitions(device) if below.get(device, True) else ()))
        reasons += [
            f"{tree.node(part)} has its bytes in common with /dev/{loop}; `losetup --detach /dev/{loop}` if that may go"
            for part in dict.fromkeys(shared)
            for loop in tree.loops_beside(part)
            if loop not in below and loop != tree.whole(name)
        ]
    for device in (device for device, by_loop in below.items() if by_loop):
        if used := _use_reasons_below(device, tree):
            reasons.append(
                f"{tree.node(name)} is a loop device over {tree.node(device)}, which is in use: {'; '.join(used)}"
            )
    reasons += [
        f"/dev/{loop} is a loop device over a file that is swap; `swapoff` frees it"
        for loop in dict.fromkeys(map(tree.whole, (name, *below)))
        if tree.is_swap_file(loop)
    ]
    return list(dict.fromkeys(reasons))


def _use_reasons_below(name: str, tree: BlockTree) -> list[str]:
    parts = dict.fromkeys((name, tree.whole(name), *tree.partitions(name)))
    used = [sentence for part in parts for sentence in tree.users(part) or tree.mounted_elsewhere(part)]
    used += [f"{tree.node(part)} carries the running system" for part in parts if part in tree.under_root()]
    node = None if used else DeviceNode.at(f"/dev/{name}", tree)
    if node is not None:
        with node:
            if node.name == name and node.claim() == "busy":
                used.append("something has claimed it that no table shows (a journal, another namespace?)")
    return used


def _signature_reasons(
    scratch: ScratchDevice, node: DeviceNode, commands: Commands, tree: BlockTree
) -> list[str]:
    reasons = []
    # By the node that was resolved; told by the name that the plan has for it.
    shown = {node.path: str(scratch.device)}
    for path in (node.path, *(f"/dev/{partition}" for partition in tree.partitions(node.name))):
        named = shown.get(path, path)
        try:
            signatures = read_signatures(path, commands)
        except BedplateError as error:
            reasons.append(f"what is on {named} cannot be read, so it is left alone: {error}")
            continue
        for signature in signatures:
            if signature.is_member:
                reasons.append(
                    f"{named} is a {signature}: part of an array, a volume group or a pool; "
                    f"take it out of that, then `wipefs --all {named}`"
                )
            elif signature.is_encrypted:
                reasons.append(
                    f"{named} is a {signature}: an encrypted volume, whose content cannot be seen; "
                    f"if it may go, `wipefs --all {named}`"
                )
            elif not signature.is_own and not scratch.erase_foreign:
                reasons.append(
                    f"{named} holds {signature} that bedplate did not make; --erase-foreign allows to erase it"
                )
    return reasons


def _writer_reasons(
    device: str, name: str, tree: BlockTree, spared: Collection[int], *, patience_s: float
) -> tuple[str, ...]:
    """Who writes to it, to a part of it or to its whole disk, though nobody has claimed it."""
    numbers = {tree.st_rdev(part) for part in (name, *tree.partitions(name), tree.whole(name))}
    writers: tuple[str, ...] = ()

    def none_left() -> bool:
        nonlocal writers
        writers = writers_of(numbers, spared=spared, proc=tree.proc)
        return not writers

    # A program that has just ended its work on the device may be on its way out.
    wait_until(none_left, deadline_s=patience_s)
    return tuple(
        f"{device} is written to by a program, as by a virtual machine: {writer}; end it, or choose another device"
        for writer in writers
    )


def _claim_reason(device: str, node: DeviceNode, found: str) -> str:
    """The kernel's own word: what no table shows (another namespace's mount, an external journal)."""
    if found != "busy":
        return f"{device} cannot be opened: {found}"
    who = "; ".join(device_holders(node.path))
    told = f": {who}" if who else ""
    return f"{device} is held by something that no table shows (a journal, another namespace?); free it{told}"
