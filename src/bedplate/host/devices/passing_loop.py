"""A loop device that goes with its last user (LO_FLAGS_AUTOCLEAR), so that a killed process leaves none behind.

losetup(8) cannot ask for that; the ioctls are those of linux/loop.h, LOOP_CONFIGURE being of Linux 5.8.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import RequirementMissing
from bedplate.host.devices.device import AttachedDevice
from bedplate.units import KERNEL_SECTOR_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONTROL = Path("/dev/loop-control")
_LOOP_CONFIGURE = 0x4C0A
_LOOP_CTL_GET_FREE = 0x4C82
_BLKROSET = 0x125D
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
                _make_writable(device)
                return path, _held(path, device)
    except OSError as error:
        raise RequirementMissing(f"{image} gets no loop device: {error.strerror}") from error
    finally:
        os.close(control)
    raise RequirementMissing(f"{image} gets no loop device: others take every free one")


def _held(path: str, device: int) -> int:
    """Open for reading alone instead: a kernel may mount no device that somebody has open for writing (CONFIG_BLK_DEV_WRITE_MOUNTED)."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(device)


def _make_writable(device: int) -> None:
    """A mark of `blockdev --setro` outlives the file that was behind the device, and no recovery works on it."""
    fcntl.ioctl(device, _BLKROSET, struct.pack("i", 0))


def _make_node(path: str) -> None:
    """Where nobody makes device nodes by himself (a container, a guest), a new loop device has none."""
    if Path(path).exists():
        return
    number = (Path("/sys/block") / Path(path).name / "dev").read_text(encoding="ascii").strip()
    major, _, minor = number.partition(":")
    with contextlib.suppress(FileExistsError):
        os.mknod(path, 0o60600, os.makedev(int(major), int(minor)))
