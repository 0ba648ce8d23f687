"""One block device, its name resolved once: what is looked at is what is erased.

A stable name is a link, and udev turns it to another device at any moment (two disks with one label, a clone). So
the name is followed one single time, and everything after that goes by the kernel's own number of what was found.
While the device is open, its number and its kernel name cannot come to mean another one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from typing import TYPE_CHECKING, Self

from bedplate.host.patience import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.host.devices.block_tree import BlockTree

_BLKRRPART = 0x125F  # _IO(0x12, 95)


class DeviceNode:
    """The device behind a name, whatever the name comes to mean; `number` is its st_rdev. To be closed."""

    def __init__(self, file: int, name: str, number: int) -> None:
        self.name = name
        self._file = file
        self.number = number
        self._pin: int | None = None
        self._claim: int | None = None

    @classmethod
    def at(cls, device: Path | str, tree: BlockTree) -> DeviceNode | None:
        """Follow the name, once; None if no block device is there. Nothing is opened that is none."""
        try:
            file = os.open(device, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return None
        status = os.fstat(file)
        name = _name_of(status.st_rdev, tree) if stat.S_ISBLK(status.st_mode) else None
        if name is None:
            os.close(file)
            return None
        return cls(file, name, status.st_rdev)

    @property
    def path(self) -> str:
        """A path to this very device, for tools: its kernel's name in /dev, unless that is something else."""
        named = f"/dev/{self.name}"
        return named if self.is_at(named) else f"/proc/{os.getpid()}/fd/{self._file}"

    def is_at(self, path: Path | str) -> bool:
        """Whether that path leads to this device now."""
        try:
            status = os.stat(path)  # noqa: PTH116 -- the node itself, however it is named
        except OSError:
            return False
        return stat.S_ISBLK(status.st_mode) and status.st_rdev == self.number

    def is_named(self, tree: BlockTree) -> bool:
        """Whether its number is still that name's: until it is open, a device may go and another get its number."""
        return _name_of(self.number, tree) == self.name

    def claim(self, *, patience_s: float = 0.0) -> str | None:
        """Take it for this process alone, as mounts and arrays do; why that fails, None if it did not."""
        problem: OSError | None = None

        def taken() -> bool:
            nonlocal problem
            try:
                self._claim = os.open(self._opened, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC)
            except OSError as error:
                problem = error
                return error.errno != errno.EBUSY  # another error will not go away
            problem = None
            return True

        # A prober may have it open for a moment after a good unmount.
        wait_until(taken, deadline_s=patience_s)
        if problem is None:
            return None
        return "busy" if problem.errno == errno.EBUSY else str(problem.strerror)

    def read_partitions(self) -> None:
        """Have the kernel read the partition table again, under the claim; what has no partitions refuses it."""
        if self._claim is not None:
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._claim, _BLKRRPART)

    def pin(self) -> None:
        """Keep it open, which hinders nobody: its number cannot come to mean another device. OSError where it may not be read, or is gone."""
        if self._pin is None:
            self._pin = os.open(self._opened, os.O_RDONLY | os.O_CLOEXEC)

    def unclaim(self) -> None:
        """Let others take it, mkfs and the mount first, and keep it open: it stays the device that it is."""
        if self._claim is not None:
            self.pin()
            os.close(self._claim)
            self._claim = None

    def close(self) -> None:
        """Let go of it; safe to repeat."""
        for file in (self._claim, self._pin, self._file):
            if file is not None and file >= 0:
                os.close(file)
        self._claim = self._pin = None
        self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _opened(self) -> str:
        return f"/proc/self/fd/{self._file}"


def _name_of(number: int, tree: BlockTree) -> str | None:
    return tree.name_of(f"{os.major(number)}:{os.minor(number)}")
