"""Which file is behind which loop device, from sysfs; where its name is in doubt, from the device itself.

The name that sysfs shows is the kernel's idea of it by now. Of a file that was attached in a mount namespace it shows
the place that the file has there; when that namespace has ended, only what is below the mount that the file was in.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import struct
from dataclasses import dataclass
from pathlib import Path

from bedplate.host.files import text_of

SYS_BLOCK = Path("/sys/block")
_DEV = Path("/dev")
# The kernel appends it when the file has no name any more.
_DELETED = " (deleted)"
# linux/loop.h: LOOP_GET_STATUS64 and the beginning of struct loop_info64, whose name is cut and ends with a zero.
_LOOP_GET_STATUS64 = 0x4C05
_INFO = struct.Struct("=QQQ32x64s112x")
_NAME_BYTES = 63


@dataclass(frozen=True)
class LoopFile:
    """What a loop device stands on, by numbers that no namespace changes.

    `device` and `inode` are those of stat(2), `block_device` is 0 for a file, `given` the name at the time, cut.
    """

    device: int
    inode: int
    block_device: int
    given: bytes

    def is_same(self, other: LoopFile) -> bool:
        """Whether both are on the same bytes."""
        if self.block_device or other.block_device:
            return self.block_device == other.block_device
        return (self.device, self.inode) == (other.device, other.inode)


def backing_file(name: str, sys_block: Path | None = None) -> str | None:
    """The file behind `loop3`; None if nothing is attached."""
    try:
        text = os.fsdecode(((sys_block or SYS_BLOCK) / name / "loop/backing_file").read_bytes())
    except OSError:
        return None
    return text.removesuffix("\n").removesuffix(_DELETED)


def is_deleted(name: str) -> bool:
    """Whether the file behind `loop3` has been deleted since."""
    return text_of(SYS_BLOCK / name / "loop/backing_file").endswith(_DELETED)


def loop_file(name: str) -> LoopFile | None:
    """What `loop3` stands on; None if nothing is attached, or if the device may not be read."""
    if backing_file(name) is None:
        return None  # also a partition of one, of which the kernel would say the same
    info = bytearray(_INFO.size)
    with contextlib.suppress(OSError):
        file = os.open(_DEV / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            fcntl.ioctl(file, _LOOP_GET_STATUS64, info)
            device, inode, block_device, given = _INFO.unpack(info)
            return LoopFile(device, inode, block_device, given.partition(b"\0")[0])
        finally:
            os.close(file)
    return None


def all_loops(sys_block: Path | None = None) -> tuple[tuple[str, str], ...]:
    """Every loop device that has a file, with that file, by number."""
    names = [entry.name for entry in (sys_block or SYS_BLOCK).iterdir() if entry.name.startswith("loop")]
    files = [
        (name, backing_file(name, sys_block)) for name in sorted(names, key=lambda name: (len(name), name))
    ]
    return tuple((name, file) for name, file in files if file is not None)


def attached_to(image: Path) -> tuple[str, ...]:
    """The names of all loop devices over this file, by number.

    Where both can be asked, by the numbers of the file: a container beside this one may have a file of the same name.
    """
    wanted = os.path.realpath(image)
    try:
        status = image.stat()
    except OSError:
        status = None
    return tuple(name for name, file in all_loops() if _is_over(name, file, wanted, status))


def loop_detail(name: str) -> str:
    """The device `name` and the numbers of its file, as a ledger keeps them; the device alone where it may not be read."""
    found = loop_file(name)
    return f"/dev/{name}" if found is None else f"/dev/{name} {found.device}:{found.inode}"


def moved_since(image: Path, detail: str) -> tuple[str, ...]:
    """The loop device that was attached to `image` and stands in `detail`, if it is over the same file still; the folder may have been moved."""
    name = detail.partition(" ")[0].removeprefix("/dev/")
    found = loop_file(name) if name else None
    if found is None or found.given != os.fsencode(image)[:_NAME_BYTES] or loop_detail(name) != detail:
        return ()
    return (name,)


def files_below(folder: Path) -> tuple[str, ...]:
    """The files of a folder that a loop device is over, by the names that `attached_to` knows them by."""
    wanted = Path(os.path.realpath(folder))
    return tuple(
        dict.fromkeys(
            file
            for name, file in all_loops()
            if Path(file).is_relative_to(wanted) or _was_below(wanted, name)
        )
    )


def _was_below(folder: Path, name: str) -> bool:
    """By the name that it was attached by: that of a mount that is gone begins at its top."""
    found = loop_file(name)
    start = os.fsencode(folder) + b"/"
    return found is not None and len(start) < _NAME_BYTES and found.given.startswith(start)


def _is_over(name: str, file: str, wanted: str, status: os.stat_result | None) -> bool:
    """Whether the loop device `name`, which the kernel shows over `file`, is over `wanted`; `status` where that is there.

    A name from the top of a mount that is gone counts if it was this one when it was attached.
    """
    if not wanted.endswith(file):
        return False
    found = loop_file(name)
    if found is None:
        return file == wanted
    if status is not None and not is_deleted(name):
        block_device = status.st_rdev if stat.S_ISBLK(status.st_mode) else 0
        return found.is_same(LoopFile(status.st_dev, status.st_ino, block_device, b""))
    return file == wanted or found.given == os.fsencode(wanted)[:_NAME_BYTES]
