"""A mount namespace of our own, and letting go of other people's mounts in it.

What is mounted in the machine's own namespace, any program may take a copy of (unshare(1), a container), and the copy
keeps the file system alive after its unmount. What is mounted in ours, nobody copies, and it goes with its last process.

A new namespace holds a copy of every mount there was, and a copy keeps a device busy: what others unmount and detach
meanwhile would stay attached. Where mounts are shared (as systemd has them) our copies follow: what is unmounted outside
goes here too. Where they are not, what is not needed is let go of.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import MachineUnfit
from bedplate.host.mount import read_mount_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from bedplate.host.mount import MountEntry

# Programs, their libraries and their configuration, and what a package tool writes to.
_WHOLE = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/boot")
_SYSTEM = (*_WHOLE, "/var", "/opt", "/root")
# linux/sched.h, linux/mount.h; os.unshare is there from Python 3.12 on.
_CLONE_NEWNS, _CLONE_NEWIPC = 0x00020000, 0x08000000
_MS_REC, _MS_SLAVE = 0x4000, 0x80000
_MS_NODEV, _MS_REMOUNT, _MS_NOSYMFOLLOW, _MS_BIND = 0x4, 0x20, 0x100, 0x1000
# What a mount has already it keeps; statvfs(3) and mount(2) have other numbers for one of them.
_KEPT_FLAGS = {
    os.ST_RDONLY: 0x1,
    os.ST_NOSUID: 0x2,
    os.ST_NOEXEC: 0x8,
    os.ST_NOATIME: 0x400,
    os.ST_NODIRATIME: 0x800,
    os.ST_RELATIME: 0x200000,
}
_MNT_DETACH = 2


def enter_own_namespaces() -> None:
    """Move this process, and whatever it starts from now on, to mounts and System V shared memory of its own.

    Mounts made here are seen nowhere else; what is unmounted outside still goes here (MS_SLAVE), so that nobody's disk
    is kept busy behind his back. A killed server's segments of shared memory end with the namespace.
    MachineUnfit where the kernel does not allow it. Only from the main thread, whose table /proc/self shows.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.unshare(_CLONE_NEWNS | _CLONE_NEWIPC)
    if failed and ctypes.get_errno() == errno.EINVAL:
        # A kernel without CONFIG_IPC_NS, as a guest's may be.
        failed = libc.unshare(_CLONE_NEWNS)
    if not failed:
        failed = libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_SLAVE), None)
    if failed:
        raise MachineUnfit(
            f"a mount namespace of its own cannot be made: {os.strerror(ctypes.get_errno())}; mounting needs the same "
            "right (CAP_SYS_ADMIN): run bedplate as root, outside of a container that lacks it"
        )


def follow_no_links_below(directory: Path) -> None:
    """From here on no link below a directory is followed, and no device opened, by whoever sees the mounts of this process: a bind mount of it says so.

    Its files are written by their paths as root, while it may belong to a user, or lie where others write. Best effort: a kernel before 5.10
    knows no such mount, and a container may not make one. Only in namespaces of its own.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        folder = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise MachineUnfit(f"{directory} is a link, or no folder, by now: {error.strerror}") from error
    try:
        target, source = os.fsencode(directory), f"/proc/self/fd/{folder}".encode()
        if libc.mount(source, target, None, ctypes.c_ulong(_MS_BIND | _MS_REC), None) == 0:
            kept = sum(mount for shown, mount in _KEPT_FLAGS.items() if os.statvfs(directory).f_flag & shown)
            flags = _MS_BIND | _MS_REMOUNT | _MS_NOSYMFOLLOW | _MS_NODEV | kept
            libc.mount(None, target, None, ctypes.c_ulong(flags), None)
    finally:
        os.close(folder)


def let_go_of_foreign_mounts(needed: Iterable[Path]) -> None:
    """Unmount what stands on a device or is served from user space, but for what holds a path of `needed` or the system.

    By the system call: each umount(8) would keep the devices of all that come after it busy for as long as it takes.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    system = [*_SYSTEM, *os.get_exec_path(), sys.prefix, sys.base_prefix, str(Path(__file__).resolve())]
    system += [tempfile.gettempdir(), str(Path.cwd())]
    paths = [path.resolve() for path in (*needed, *map(Path, system))]
    for entry in reversed(foreign_mounts(read_mount_table(), paths)):
        # A parent that went before took it along, which is an error of no interest.
        libc.umount2(os.fsencode(entry.target), _MNT_DETACH)


def foreign_mounts(table: Sequence[MountEntry], needed: Sequence[Path]) -> list[MountEntry]:
    """The entries that keep a device or a server in user space busy and hold none of the paths, in the table's order.

    None that goes by itself when the original goes, and none within the system's own folders (a container's
    /etc/resolv.conf is a mount).
    """
    return [
        entry
        for entry in table
        if (entry.source.startswith("/dev/") or entry.type.startswith("fuse"))
        and not entry.follows
        and not any(path.is_relative_to(entry.target) for path in needed)
        and not any(Path(entry.target).is_relative_to(place) for place in _WHOLE)
    ]


def paths_in(document: object) -> Iterator[Path]:
    """Every absolute path that a document of JSON names: programs, drivers, folders."""
    if isinstance(document, str) and document.startswith("/"):
        yield Path(document)
    elif isinstance(document, dict):
        for value in document.values():
            yield from paths_in(value)
    elif isinstance(document, list):
        for value in document:
            yield from paths_in(value)
