"""The scratch device: refused with every reason at once, or prepared. What is here may be erased."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import re
import struct
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from bedplate.errors import BedplateError, DeviceInUse, DeviceRefused, RequirementMissing, VerifyFailed
from bedplate.host import ledger
from bedplate.host.block_tree import (
    BlockTree,
    DeviceNode,
    attached_to,
    backing_file,
    device_holders,
    erase_signatures,
    fingerprint,
    loop_detail,
    loop_file,
    read_signatures,
    writers_of,
)
from bedplate.host.command import Commands
from bedplate.host.files import text_of
from bedplate.host.ledger import Holding, Holdings, Ledger
from bedplate.host.mount import type_below
from bedplate.host.process import wait_until
from bedplate.model.device_cache import BACKING_PHYSICAL_BLOCK, BLOCK_DEVICE, KIND, UNKNOWN_SECTORS
from bedplate.model.devices import DeviceIdentity
from bedplate.model.levels import Levels, Scalar
from bedplate.model.visit import ScratchDevice
from bedplate.units import KERNEL_SECTOR_BYTES, MIB, format_size


@dataclass(frozen=True)
class AttachedDevice:
    """`path` is the node (`/dev/loop3`), `name` the kernel's name of it (`loop3`).

    `image` is the file behind a loop device of bedplate's own, None for a real device. `queue_name`
    is the whole device that carries the queue settings (`sda` for `sda3`). `hold` keeps a real device
    open, so that `path` and `name` stay the device that was looked at.
    """

    path: str
    name: str
    queue_name: str
    size_bytes: int
    image: Path | None = None
    hold: DeviceNode | None = field(default=None, compare=False, repr=False)

    @property
    def queue(self) -> Path:
        """Where the kernel keeps the queue's settings."""
        return Path("/sys/block") / self.queue_name / "queue"

    @property
    def sector_bytes(self) -> int:
        """The smallest write that it takes: a file system made for smaller sectors is not mounted on it."""
        return int((self.queue / "logical_block_size").read_text())

    @property
    def stat(self) -> Path:
        """The device's counters (Documentation/block/stat.rst)."""
        return Path("/sys/class/block") / self.name / "stat"


def device_facts(device: AttachedDevice) -> Levels:
    """What the kernel says of the device: the context of every figure, compared with nothing."""
    facts: dict[str, Scalar] = {
        KIND: "image file on a loop device" if device.image else BLOCK_DEVICE,
        "size_bytes": device.size_bytes,
    }
    for name in (
        "rotational",
        "logical_block_size",
        "physical_block_size",
        "scheduler",
        "nr_requests",
        "read_ahead_kb",
        "write_cache",
        "fua",
        "max_sectors_kb",
        "discard_max_bytes",
    ):
        with contextlib.suppress(OSError):
            text = (device.queue / name).read_text().strip()
            facts[name] = int(text) if text.isdigit() else text
    if device.name.startswith("loop"):
        facts[BACKING_PHYSICAL_BLOCK] = BlockTree().sectors_under(device.name) or UNKNOWN_SECTORS
    for name in ("model", "firmware_rev", "vendor"):
        with contextlib.suppress(OSError):
            facts[name] = (device.queue.parent / "device" / name).read_text().strip()
    return Levels(facts)


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
    node = DeviceNode.find(device, tree)
    if node is None:
        return None
    with node:
        return identity_of(node.name, tree)


def identity_of(name: str, tree: BlockTree) -> DeviceIdentity:
    """That of a device or a partition by the kernel's name of it, which is to be held open."""
    whole = tree.disk_of(name)
    file = _file_behind(whole, tree)
    # A loop device over a disk is that disk.
    disk = tree.disk_of(tree.below_all_loops(whole))
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


def _number(name: str, attribute: str, tree: BlockTree) -> int | None:
    text = tree.text(name, attribute)
    return int(text) if text.isdigit() else None


def _partition_uuid(name: str, tree: BlockTree) -> str | None:
    """By the kernel, where it is new enough; else by udev's link."""
    for line in tree.text(name, "uevent").splitlines():
        if line.startswith(_PARTITION_UUID):
            return line.removeprefix(_PARTITION_UUID).lower()
    return _linked(name, "by-partuuid", "", tree)


def _linked(name: str, folder: str, prefix: str, tree: BlockTree) -> str | None:
    """What follows `prefix` in the name of a link of udev's that leads to the device."""
    for link in sorted(tree.dev.glob(f"disk/{folder}/{prefix}*")):
        if tree.name_at(link) == name:
            return link.name.removeprefix(prefix).lower()
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


# linux/fs.h: _IOW(0x94, 9, int)
_FICLONE = 0x40049409

# linux/falloc.h: FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
_PUNCH_HOLE = 0x01 | 0x02

_FILL_BYTES = MIB
_ZEROS = bytes(_FILL_BYTES)
_CANNOT = frozenset({errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS})


def create_blank(path: Path, size_bytes: int) -> int:
    """A new file of nothing but a hole, open for reading and writing; one of that name is unlinked, not emptied.

    A loop device may still hold the former file.
    """
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(descriptor, size_bytes)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def write_all(descriptor: int, data: memoryview, offset: int) -> None:
    """Write all of it there."""
    while data:
        written = os.pwrite(descriptor, data, offset)
        offset += written
        data = data[written:]


def is_zeros(data: memoryview) -> bool:
    """Whether there is nothing in it; cheap where there is something at its beginning."""
    if bytes(data[:8]).strip(b"\0"):
        return False
    return all(
        bytes(chunk) == _ZEROS[: len(chunk)]
        for start in range(0, len(data), _FILL_BYTES)
        if (chunk := data[start : start + _FILL_BYTES])
    )


def zero(descriptor: int, offset: int, length: int) -> None:
    """Make a range read as zeros: a hole, or written zeros where the file system below makes none."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(descriptor, _PUNCH_HOLE, ctypes.c_int64(offset), ctypes.c_int64(length)) == 0:
        return
    code = ctypes.get_errno()
    if code not in _CANNOT:
        raise OSError(code, os.strerror(code))
    for start in range(0, length, _FILL_BYTES):
        write_all(descriptor, memoryview(_ZEROS)[: min(_FILL_BYTES, length - start)], offset + start)


def overwrite_image(file: int, mapped: mmap.mmap, target: int) -> None:
    """Give `target`, a file of the same size, the contents of `file`, which is `mapped`; its holes become holes.

    In memory most of a copy's time is for new pages: over a former copy, and from a mapping that stays, it takes a quarter of it.
    """
    extents = tuple(_extents(file))
    end_of_data = 0
    for start, end in (*extents, (os.fstat(file).st_size,) * 2):
        for first, last in _extents(target, end_of_data, start):
            zero(target, first, last - first)
        end_of_data = end
    with memoryview(mapped) as data:
        for start, end in extents:
            # By a write, which says where memory has no room; a page of a mapping that finds none ends the process.
            with data[start:end] as part:
                write_all(target, part, start)


def fill_from(image: Path, target: int) -> None:
    """Give the blank file `target` the contents of an image, sharing its blocks or leaving out its holes."""
    source = os.open(image, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
        for start, end in _extents(source):
            _copy_range(source, target, start, end)
    finally:
        os.close(source)


def _extents(descriptor: int, end: int = 0, until: int | None = None) -> Iterator[tuple[int, int]]:
    """Where a file has data, from and to, between `end` and `until`; all of it where the file system below cannot tell."""
    until = os.fstat(descriptor).st_size if until is None else until
    while end < until:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole from here on
                return
            if error.errno != errno.EINVAL:
                raise
            yield end, until
            return
        if start >= until:
            return
        end = min(until, os.lseek(descriptor, start, os.SEEK_HOLE))
        yield start, end


def _copy_range(file: int, target: int, start: int, end: int) -> None:
    while start < end:
        try:
            copied = os.copy_file_range(file, target, end - start, start, start)
        except OSError as error:
            if error.errno not in _CANNOT:
                raise
            copied = 0
        if not copied:  # some kernels refuse, and some copy nothing without a word
            chunk = os.pread(file, min(_FILL_BYTES, end - start), start)
            write_all(target, memoryview(chunk), start)
            copied = len(chunk)
        start += copied


_COPY_BYTES = 4 * MIB

# Left to the file system below, so that logs and the study do not run into a full disk.
_MARGIN_BYTES = 256 * MIB

_DETACH_PATIENCE_S = 10.0

# linux/fs.h: _IOR('f', 1, long), _IOW('f', 2, long), FS_NOCOW_FL
_FS_IOC_GETFLAGS = 0x80086601

_FS_IOC_SETFLAGS = 0x40086602
_FS_NOCOW_FL = 0x00800000


def image_reasons(path: Path, size_bytes: int, *, margin_bytes: int = _MARGIN_BYTES) -> tuple[str, ...]:
    """Why an image of that size cannot be written there; touches nothing."""
    reasons = []
    if size_bytes <= 0 or size_bytes % MIB:
        reasons.append(f"the image's size must be whole MiB, found {size_bytes} bytes")
    if not path.parent.is_dir():
        return (*reasons, f"the image's directory {path.parent} does not exist; create it")
    if path.is_symlink() or (path.exists() and not path.is_file()):
        reasons.append(f"{path} is there and is not a plain file; move it away")
    elif path.exists() and (strange := ledger.strangers(path, path.lstat())):
        reasons.append(strange)
    elif path.exists() and (devices := attached_to(path)):
        reasons.append(f"{path} is attached to /dev/{devices[0]}; `bedplate release` frees what was left")
    if not os.access(path.parent, os.W_OK):
        reasons.append(f"{path.parent} cannot be written to")
    room = os.statvfs(path.parent)
    free_bytes = room.f_bavail * room.f_frsize + _allocated_bytes(path)
    if free_bytes < size_bytes + margin_bytes:
        reasons.append(
            f"{path.parent} has {format_size(free_bytes)} free; the image needs {format_size(size_bytes)} "
            f"and {format_size(margin_bytes)} should stay free: use a smaller image or another directory, or free what the cache keeps (`bedplate release --cache`)"
        )
    return tuple(reasons)


def write_image(
    path: Path,
    size_bytes: int,
    *,
    progress: Callable[[int], None] | None = None,
    margin_bytes: int = _MARGIN_BYTES,
) -> None:
    """Write `size_bytes` of zeros, over an image that is there already or into a new one.

    `progress` is called with the bytes done so far. RequirementMissing if there is no room,
    VerifyFailed if the file system below stored less than was written (it compresses); nothing is
    left of the image in either case.
    """
    reasons = image_reasons(path, size_bytes, margin_bytes=margin_bytes)
    if reasons:
        raise RequirementMissing(*reasons)
    try:
        _write_zeros(path, size_bytes, progress)
        _require_allocated(path, size_bytes)
    except RequirementMissing:
        raise
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            raise RequirementMissing(
                f"{path}: the disk or quota was full before {format_size(size_bytes)} were written; "
                f"use a smaller image or another directory"
            ) from error
        raise


def attach_loop(
    image: Path,
    *,
    ledger: Holdings,
    commands: Commands,
    in_memory: bool = False,
    sector_bytes: int = KERNEL_SECTOR_BYTES,
) -> AttachedDevice:
    """Attach a free loop device with direct I/O and sectors of that size; VerifyFailed if it does not come up so.

    An image that is `in_memory` may do without direct I/O: its file is the page cache. losetup(8) is used rather
    than the ioctl: it tries again when another start takes the free device first, and it is a command
    that the report can show.
    """
    ledger.note(Holding("loop", str(image)))
    own_sectors = () if sector_bytes == KERNEL_SECTOR_BYTES else ("--sector-size", str(sector_bytes))
    name = losetup(image, commands, "--direct-io=on", *own_sectors)
    if not in_memory and not _has_direct_io(name):
        # A disk with 4 KiB sectors takes direct I/O only from a loop device that has them too.
        detach(image, commands)
        name = losetup(image, commands, "--direct-io=on", "--sector-size", "4096")
    ledger.note(Holding("loop", str(image), loop_detail(name)))
    size_bytes = int((Path("/sys/block") / name / "size").read_text()) * KERNEL_SECTOR_BYTES
    device = AttachedDevice(f"/dev/{name}", name, name, size_bytes, image)
    reasons = []
    if own_sectors and device.sector_bytes != sector_bytes:
        reasons.append(
            f"{device.path} was asked for sectors of {sector_bytes} bytes and has {device.sector_bytes}"
        )
    if _is_protected(name):
        reasons.append(f"{device.path} is write-protected, and `blockdev --setrw` does not change that")
    if not in_memory and not _has_direct_io(name):
        reasons.append(
            f"{device.path} over {image} does not do direct I/O, so the page cache below would be "
            f"measured; put the image on a file system that takes O_DIRECT (ext4, XFS)"
        )
    if size_bytes != image.stat().st_size:
        reasons.append(f"{device.path} has {size_bytes} bytes, {image} has {image.stat().st_size}")
    if reasons:
        detach_loop(device, ledger=ledger, commands=commands)
        raise VerifyFailed(*reasons)
    return device


def detach_loop(device: AttachedDevice, *, ledger: Holdings, commands: Commands) -> None:
    """Detach it and wait until it is; DeviceInUse if something holds it open. Safe to repeat."""
    if device.image is None:
        raise ValueError(f"{device.path} is no loop device of bedplate's own")
    detach(device.image, commands)
    ledger.settled(Holding("loop", str(device.image)))


def losetup(image: Path, commands: Commands, *options: str) -> str:
    """The name of the free loop device that is over the image now, and may be written. Of no ledger."""
    name = (
        commands.run(["losetup", "--find", "--show", *options, str(image)])
        .stdout.strip()
        .removeprefix("/dev/")
    )
    # The switch survives detaching: what its last user protected stays so for the next.
    if _is_protected(name):
        commands.run(["blockdev", "--setrw", f"/dev/{name}"])
    return name


def _is_protected(name: str) -> bool:
    return text_of(Path("/sys/block") / name / "ro") == "1"


def detach(image: Path, commands: Commands) -> None:
    """Every loop device over it; DeviceInUse if one stays. Of no ledger, for whoever keeps his own."""
    for name in attached_to(image):
        commands.run(["losetup", "--detach", f"/dev/{name}"])
    # With another opener (udev looks at every device that was written) the kernel detaches when that
    # one closes, without an event that could be waited for.
    if not wait_until(lambda: not attached_to(image), deadline_s=_DETACH_PATIENCE_S):
        raise DeviceInUse(f"a loop device over {image} is still held open by something; unmount it")


def _has_direct_io(name: str) -> bool:
    return text_of(Path("/sys/block") / name / "loop/dio") == "1"


def _allocated_bytes(path: Path) -> int:
    try:
        return path.lstat().st_blocks * 512  # st_blocks counts 512 bytes on Linux, whatever the block
    except OSError:
        return 0


def _require_allocated(path: Path, size_bytes: int) -> None:
    allocated = _allocated_bytes(path)
    if allocated < size_bytes:
        raise VerifyFailed(
            f"{path}: {format_size(size_bytes)} of zeros were written, {format_size(allocated)} are stored; "
            f"its file system compresses or leaves holes: put the image on another one"
        )


def _write_zeros(path: Path, size_bytes: int, progress: Callable[[int], None] | None) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        # Looked at again: in a folder of everybody's it may have come since.
        if strange := ledger.strangers(path, os.fstat(file)):
            raise RequirementMissing(strange)
        if os.fstat(file).st_size == 0:
            _switch_copy_on_write_off(file)
        os.ftruncate(file, size_bytes)
        # Direct I/O leaves the page cache alone: the database's machine should start with it empty.
        with contextlib.suppress(OSError):
            fcntl.fcntl(file, fcntl.F_SETFL, os.O_DIRECT)
        with mmap.mmap(-1, _COPY_BYTES) as zeros:  # page aligned, as O_DIRECT wants it
            done = 0
            while done < size_bytes:
                with memoryview(zeros) as whole, whole[: min(_COPY_BYTES, size_bytes - done)] as part:
                    done += os.pwrite(file, part, done)
                if progress is not None:
                    progress(done)
        os.fsync(file)
    finally:
        os.close(file)


def _switch_copy_on_write_off(file: int) -> None:
    """Where the file system below copies on write (btrfs), each overwrite would move and compress."""
    with contextlib.suppress(OSError):
        flags = struct.unpack("l", fcntl.ioctl(file, _FS_IOC_GETFLAGS, bytes(8)))[0]
        fcntl.ioctl(file, _FS_IOC_SETFLAGS, struct.pack("l", flags | _FS_NOCOW_FL))


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
    node = DeviceNode.find(scratch.device, tree)
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
    node = DeviceNode.find(scratch.device, tree)
    if node is None:
        raise DeviceRefused(*_nothing_there(scratch))
    with contextlib.ExitStack() as stack:
        stack.enter_context(node)
        reasons = _device_reasons(
            scratch, node, commands, tree=tree, expected=expected, apart_from=apart_from, keep_open=True
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
    return AttachedDevice(usable, node.name, tree.disk_of(node.name), tree.size_bytes(node.name), hold=node)


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
    keep_open: bool = False,
) -> tuple[str, ...]:
    """Every reason against this node; `keep_open` keeps the claim on it, so that nobody takes it after the last look."""
    device, name = str(scratch.device), node.name
    reasons = _unnamed(scratch)
    claim = node.claim(patience_s=_CLAIM_PATIENCE_S if keep_open else 0.0)
    if claim is None and not keep_open:
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
        reasons += _writer_reasons(
            device, name, tree, spared, patience_s=_CLAIM_PATIENCE_S if keep_open else 0.0
        )
    elif not in_use:
        reasons.append(_claim_reason(device, node, claim))
    return tuple(reasons)


def overlap_reasons(
    device: str, name: str, journal: str, journal_name: str, tree: BlockTree
) -> tuple[str, ...]:
    """Why a journal's device and the scratch device share bytes: they may be two partitions of a disk."""
    if name == journal_name:
        return (f"{device} is the scratch device itself; name another device for the journal",)
    if name in tree.partitions(journal_name) or journal_name in tree.partitions(name):
        return (f"{device} and {journal} overlap: one is a partition of the other; name another one",)
    if _is_on_same_bytes(name, journal_name, tree):
        return (f"{device} and {journal} are on the same bytes; name another one",)
    return ()


def _is_on_same_bytes(name: str, twin: str, tree: BlockTree) -> bool:
    """Whether loops lead from both to one device or file. Two volumes that are made of one device have their own parts of it."""
    above, below = ({of: True, **tree.stands_on(of)} for of in (name, twin))
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
        shared = (device, tree.disk_of(device), *(tree.partitions(device) if below.get(device, True) else ()))
        reasons += [
            f"{tree.node(part)} has its bytes in common with /dev/{loop}; `losetup --detach /dev/{loop}` if that may go"
            for part in dict.fromkeys(shared)
            for loop in tree.loops_beside(part)
            if loop not in below and loop != tree.disk_of(name)
        ]
    for device in (device for device, by_loop in below.items() if by_loop):
        if used := _use_reasons_below(device, tree):
            reasons.append(
                f"{tree.node(name)} is a loop device over {tree.node(device)}, which is in use: {'; '.join(used)}"
            )
    reasons += [
        f"/dev/{loop} is a loop device over a file that is swap; `swapoff` frees it"
        for loop in dict.fromkeys(map(tree.disk_of, (name, *below)))
        if tree.is_swap_file(loop)
    ]
    return list(dict.fromkeys(reasons))


def _use_reasons_below(name: str, tree: BlockTree) -> list[str]:
    parts = dict.fromkeys((name, tree.disk_of(name), *tree.partitions(name)))
    used = [sentence for part in parts for sentence in tree.users(part) or tree.mounted_elsewhere(part)]
    used += [f"{tree.node(part)} carries the running system" for part in parts if part in tree.under_root()]
    node = None if used else DeviceNode.find(f"/dev/{name}", tree)
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
    numbers = {tree.st_rdev(part) for part in (name, *tree.partitions(name), tree.disk_of(name))}
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


def _claim_reason(device: str, node: DeviceNode, claim_state: str) -> str:
    """The kernel's own word: what no table shows (another namespace's mount, an external journal)."""
    if claim_state != "busy":
        return f"{device} cannot be opened: {claim_state}"
    who = "; ".join(device_holders(node.path))
    told = f": {who}" if who else ""
    return f"{device} is held by something that no table shows (a journal, another namespace?); free it{told}"


# Where it stands if the request names no place.
MEMORY_DIRECTORY = Path("/dev/shm")  # noqa: S108 -- a file of its own is made in it

_MEMORY = "tmpfs"


def journal_refusal_reasons(
    journal: ScratchDevice,
    scratch: ScratchDevice,
    commands: Commands,
    *,
    directory: Path,
    tree: BlockTree | None = None,
) -> tuple[str, ...]:
    """Every reason why the journal cannot stand there; () if it can. Writes nothing.

    `directory` is where an image would stand if the request names none; it must be in memory.
    """
    if journal.device is None:
        return _memory_reasons(journal, Path(journal.image_directory or directory))
    tree = tree or BlockTree()
    return (
        *refusal_reasons(journal, commands, tree=tree),
        *shared_bytes_reasons(journal, scratch, tree=tree),
    )


def prepare_journal(
    journal: ScratchDevice,
    scratch: AttachedDevice | None,
    *,
    ledger: Ledger,
    commands: Commands,
    directory: Path,
    tree: BlockTree | None = None,
    expected: str | None = None,
) -> AttachedDevice:
    """Make it ready for mkfs: an image in memory is written and attached, a real device loses its signatures.

    DeviceRefused or RequirementMissing with every reason, asked again a moment before, of the device that
    is then erased. `expected` is the node whose lock is held, None for an image. `scratch` is the scratch device as it was taken, whatever its name means by now.
    """
    if journal.device is None:
        place = Path(journal.image_directory or directory)
        reasons = _memory_reasons(journal, place)
        if reasons:
            raise RequirementMissing(*reasons)
        path = _image_path(place)
        ledger.note(Holding("image", str(path)))
        # Written in full: memory that is only taken while a run is measured would be measured too.
        write_image(path, journal.image_bytes or 0)
        return attach_loop(path, ledger=ledger, commands=commands, in_memory=True)
    return prepare(
        journal,
        ledger=ledger,
        commands=commands,
        directory=directory,
        tree=tree,
        apart_from=scratch,
        expected=expected,
    )


def note_journal(
    journal: ScratchDevice, device: AttachedDevice, *, ledger: Ledger, commands: Commands
) -> None:
    """Write down what mkfs left on a real device, so that a later start knows it for ours and wipes it."""
    if journal.device is not None:
        ledger.note(Holding("journal_device", journal.device, fingerprint(device.path, commands)))


def release_journal(
    journal: ScratchDevice, device: AttachedDevice, *, ledger: Ledger, commands: Commands
) -> None:
    """Wipe a real device; detach and delete an image. Safe to repeat."""
    if journal.device is not None:
        erase_signatures(device.path, commands)
        ledger.settled(Holding("journal_device", journal.device))
        if device.hold is not None:
            device.hold.close()
        return
    if device.image is None:
        raise ValueError(f"{device.path} is no loop device of bedplate's own")
    detach_loop(device, ledger=ledger, commands=commands)
    device.image.unlink(missing_ok=True)
    ledger.settled(Holding("image", str(device.image)))


def _image_path(directory: Path) -> Path:
    # Several visits may run side by side, on scratch devices of their own.
    return directory / f"bedplate-journal-{os.getpid()}.img"


def _memory_reasons(journal: ScratchDevice, directory: Path) -> tuple[str, ...]:
    reasons = image_reasons(_image_path(directory), journal.image_bytes or 0)
    kind = type_below(directory) if directory.is_dir() else _MEMORY
    if kind == _MEMORY:
        return reasons
    where = f"a journal in memory cannot lie in {directory}, which is on {kind or 'an unknown file system'}"
    return (*reasons, f"{where}; name a directory on a tmpfs, such as /dev/shm")


def shared_bytes_reasons(
    journal: ScratchDevice, scratch: ScratchDevice, *, tree: BlockTree | None = None
) -> tuple[str, ...]:
    """Why the journal's device and the scratch device are no two, by their names alone; () where either is an image."""
    if journal.device is None or scratch.device is None:
        return ()
    tree = tree or BlockTree()
    name, other = tree.name_at(journal.device), tree.name_at(scratch.device)
    if name is None or other is None:
        return ()
    return overlap_reasons(journal.device, name, scratch.device, other, tree)


def journal_places(journal: ScratchDevice | None) -> tuple[ScratchDevice, ...]:
    """The journal in memory and the one on a device, where a plan has both."""
    if journal is None:
        return ()
    parts = []
    if journal.device is not None:
        parts.append(replace(journal, image_bytes=None))
    if journal.image_bytes is not None:
        parts.append(replace(journal, device=None))
    return tuple(parts)


_CONTROL = Path("/dev/loop-control")
_LOOP_CONFIGURE = 0x4C0A
_LOOP_CTL_GET_FREE = 0x4C82

# A mark of `blockdev --setro` outlives the file that was behind the device, and no recovery works on it.
_BLKROSET, _WRITABLE = 0x125D, struct.pack("i", 0)

_AUTOCLEAR = 4

# struct loop_config: fd, block_size, struct loop_info64 (232 bytes, lo_flags at byte 52 of it), 64 bytes reserved.
_CONFIG = struct.Struct("=II52xI176x64x")

_TRIES = 50


@contextlib.contextmanager
def passing_loop(image: Path, sector_bytes: int = KERNEL_SECTOR_BYTES) -> Iterator[AttachedDevice]:
    """A loop device over `image`, with sectors of that size; detached when the block ends and nothing is mounted on it any more.

    RequirementMissing where there is no free loop device or none can be made.
    """
    backing = os.open(image, os.O_RDWR | os.O_CLOEXEC)
    try:
        path, device = _attached(backing, image, sector_bytes)
    finally:
        os.close(backing)
    try:
        name = path.rpartition("/")[2]
        yield AttachedDevice(path, name, name, image.stat().st_size, image)
    finally:
        os.close(device)


def write_back(path: str) -> None:
    """Bring to the image what programs wrote through a device's cache.

    The kernel does that with the last close of a device, and `passing_loop` holds its own open; what reads past the
    cache, as JFS's kernel driver reads its log, would find what was there before.
    """
    device = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.fsync(device)
    finally:
        os.close(device)


def _attached(backing: int, image: Path, sector_bytes: int) -> tuple[str, int]:
    config = _CONFIG.pack(backing, sector_bytes, _AUTOCLEAR)
    try:
        control = os.open(_CONTROL, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise RequirementMissing(f"{_CONTROL}: {error.strerror}; run `modprobe loop`") from error
    try:
        for _ in range(_TRIES):
            path = f"/dev/loop{fcntl.ioctl(control, _LOOP_CTL_GET_FREE)}"
            _make_node(path)
            device = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.ioctl(device, _LOOP_CONFIGURE, config)
            except OSError as error:
                os.close(device)
                # Another process took the free one first.
                if error.errno != errno.EBUSY:
                    raise
            else:
                fcntl.ioctl(device, _BLKROSET, _WRITABLE)
                return path, _reopen_for_reading(path, device)
    except OSError as error:
        raise RequirementMissing(f"{image} gets no loop device: {error.strerror}") from error
    finally:
        os.close(control)
    raise RequirementMissing(f"{image} gets no loop device: others take every free one")


def _reopen_for_reading(path: str, device: int) -> int:
    """Open for reading alone instead: a kernel may mount no device that somebody has open for writing (CONFIG_BLK_DEV_WRITE_MOUNTED)."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(device)


def _make_node(path: str) -> None:
    """Where nobody makes device nodes by himself (a container, a guest), a new loop device has none."""
    if Path(path).exists():
        return
    number = (Path("/sys/block") / Path(path).name / "dev").read_text(encoding="ascii").strip()
    major, _, minor = number.partition(":")
    with contextlib.suppress(FileExistsError):
        os.mknod(path, 0o60600, os.makedev(int(major), int(minor)))
