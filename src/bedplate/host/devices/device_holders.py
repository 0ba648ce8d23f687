"""Who keeps a block device busy: told by every process's own mount table and open files.

A mount belongs to a namespace, and the tables of one show nothing of another. What is mounted in a copy that some
other program made (unshare(1), a container) keeps the device, and only /proc/PID/mountinfo of its processes says so.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import DeviceInUse
from bedplate.host.devices.loop_table import SYS_BLOCK, backing_file
from bedplate.host.mount import mount_namespaces, process_folders, titled
from bedplate.host.patience import wait_until
from bedplate.host.process import is_for_writing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from bedplate.host.mount import MountEntry, MountNamespace

PROC = Path("/proc")
# The kernel has no event for the end of an unmount, or of a look that udev(7) takes at a device.
_PATIENCE_S = 10.0


def demand_free(path: str, *, deadline_s: float = _PATIENCE_S) -> None:
    """Wait until the kernel gives the device to us alone; DeviceInUse names who has it at the deadline."""
    if wait_until(lambda: _is_free(path), deadline_s=deadline_s):
        return
    who = device_holders(path) or ("no process that can be seen has it: the kernel itself may",)
    raise DeviceInUse(f"{path} is still in use by something else", *who)


def device_holders(path: str, *, proc: Path = PROC, sys_block: Path = SYS_BLOCK) -> tuple[str, ...]:
    """One sentence for each process or device that has this block device, by pid and name.

    Of the processes of one mount namespace the first few that have it mounted.
    """
    try:
        number = os.stat(path).st_rdev  # noqa: PTH116 -- a name, as it was given
    except OSError:
        return ()
    wanted = f"{os.major(number)}:{os.minor(number)}"
    found = [
        f"{titled(folder)} has {path} open"
        for folder in process_folders(proc)
        if folder.name != str(os.getpid()) and _has_open(folder, path)
    ]
    for namespace in mount_namespaces(proc):
        entry = _mount_of(namespace, wanted, path)
        if entry is None:
            continue
        if namespace.is_own:
            found.append(f"{path} is mounted on {entry.target}")
            continue
        found.append(f"{namespace.who}: {path} is mounted on {entry.target} in another mount namespace")
    found += [
        f"/dev/{loop.name} lies on {path}"
        for loop in sorted(sys_block.glob("loop*"))
        if backing_file(loop.name, sys_block) == path
    ]
    return tuple(found)


def writers_of(
    numbers: Collection[int], *, spared: Collection[int] = (), proc: Path = PROC
) -> tuple[str, ...]:
    """One phrase for each process that has one of these devices open for writing, by its name and pid.

    `numbers` are st_rdev of the devices. A virtual machine opens its disk so, and the kernel lets others take it all
    the same. Who only reads, as udev(7) and blkid(8) do, harms nothing. This process and `spared` are left out, and
    whatever this user may not look at.
    """
    found = []
    for folder in sorted(proc.glob("[0-9]*"), key=lambda place: int(place.name)):
        pid = int(folder.name)
        if pid == os.getpid() or pid in spared:
            continue
        # By its number: in another namespace the node may have any name.
        held = next((link for link in _open_files(folder) if _number_at(link) in numbers), None)
        if held is not None:
            with contextlib.suppress(OSError):
                found.append(f"{titled(folder)} has {held.readlink()} open for writing")
    return tuple(found)


def _open_files(folder: Path) -> Iterator[Path]:
    """The links of a process's files that are open for writing and have a path."""
    with contextlib.suppress(OSError):
        # A busy server has ten thousands: by their texts that takes a fraction of a second.
        for name in os.listdir(folder / "fd"):  # noqa: PTH208 -- as above
            link = f"{folder}/fd/{name}"
            with contextlib.suppress(OSError):
                if os.readlink(link).startswith("/") and is_for_writing(Path(link)):  # noqa: PTH115 -- as above
                    yield Path(link)


def _number_at(link: Path) -> int | None:
    try:
        status = link.stat()
    except OSError:
        return None
    return status.st_rdev if stat.S_ISBLK(status.st_mode) else None


def _is_free(path: str) -> bool:
    try:
        file = os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.EBUSY:
            return False
        raise
    os.close(file)
    return True


def _mount_of(namespace: MountNamespace, number: str, path: str) -> MountEntry | None:
    """Btrfs shows a number of its own, so the source's name counts as well."""
    return next((entry for entry in namespace.mounts if entry.device == number or entry.source == path), None)


def _has_open(folder: Path, path: str) -> bool:
    with contextlib.suppress(OSError):
        for link in (folder / "fd").iterdir():
            with contextlib.suppress(OSError):
                if str(link.readlink()) == path:
                    return True
    return False
