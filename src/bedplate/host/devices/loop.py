"""Image files of bedplate's own, and the loop devices over them.

An image is written in full with zeros for each visit: a sparse one would measure the allocation of
blocks in the file system below, and a discard would make it sparse again. The loop uses direct I/O:
without it the host's page cache holds the data a second time, outside every memory limit.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import DeviceInUse, RequirementMissing, VerifyFailed
from bedplate.host import undo
from bedplate.host.devices.device import AttachedDevice
from bedplate.host.devices.loop_table import attached_to, loop_detail
from bedplate.host.files import text_of
from bedplate.host.ledger import Holding
from bedplate.host.patience import wait_until
from bedplate.units import KERNEL_SECTOR_BYTES, MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from bedplate.host.command import Commands
    from bedplate.host.ledger import Holdings

_CHUNK_BYTES = 4 * MIB
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
    elif path.exists() and (strange := undo.strangers(path, path.lstat())):
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
    name = _losetup(image, commands, *own_sectors)
    if not in_memory and not _has_direct_io(name):
        # A disk with 4 KiB sectors takes direct I/O only from a loop device that has them too.
        detach(image, commands)
        name = _losetup(image, commands, "--sector-size", "4096")
    ledger.note(Holding("loop", str(image), loop_detail(name)))
    size_bytes = int((Path("/sys/block") / name / "size").read_text()) * KERNEL_SECTOR_BYTES
    device = AttachedDevice(f"/dev/{name}", name, name, size_bytes, image)
    reasons = []
    if own_sectors and device.sector_bytes != sector_bytes:
        reasons.append(
            f"{device.path} was asked for sectors of {sector_bytes} bytes and has {device.sector_bytes}"
        )
    # The switch survives detaching: what its last user protected stays so for the next.
    protected = Path("/sys/block") / name / "ro"
    if protected.read_text().strip() != "0":
        commands.run(["blockdev", "--setrw", device.path])
        if protected.read_text().strip() != "0":
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


def _losetup(image: Path, commands: Commands, *options: str) -> str:
    argv = ["losetup", "--find", "--show", "--direct-io=on", *options, str(image)]
    return commands.run(argv).stdout.strip().removeprefix("/dev/")


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
        if strange := undo.strangers(path, os.fstat(file)):
            raise RequirementMissing(strange)
        if os.fstat(file).st_size == 0:
            _switch_copy_on_write_off(file)
        os.ftruncate(file, size_bytes)
        # Direct I/O leaves the page cache alone: the database's machine should start with it empty.
        with contextlib.suppress(OSError):
            fcntl.fcntl(file, fcntl.F_SETFL, os.O_DIRECT)
        with mmap.mmap(-1, _CHUNK_BYTES) as zeros:  # page aligned, as O_DIRECT wants it
            done = 0
            while done < size_bytes:
                with memoryview(zeros) as whole, whole[: min(_CHUNK_BYTES, size_bytes - done)] as part:
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
