"""A process without network that writes to a few folders only: for a server that runs what others wrote.

It keeps its process id and its folders under their names, by which others ask a server; a program that needs neither is shut in
further (`confinement.py`).
"""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import MachineUnfit
from bedplate.host.mount import read_mount_table

if TYPE_CHECKING:
    from collections.abc import Iterable

# linux/sched.h, linux/mount.h.
_CLONE_NEWNS, _CLONE_NEWNET = 0x00020000, 0x40000000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_SLAVE = 0x1, 0x20, 0x1000, 0x4000, 0x80000
_KEPT_FLAGS = {"nosuid": 0x2, "nodev": 0x4, "noexec": 0x8}
# Of memory only, or the kernel's own, where an account without rights changes nothing that lasts.
_NOT_ON_A_DISK = frozenset(
    [
        "tmpfs",
        "ramfs",
        "devtmpfs",
        "devpts",
        "proc",
        "sysfs",
        "cgroup",
        "cgroup2",
        "mqueue",
        "hugetlbfs",
        "securityfs",
        "debugfs",
        "tracefs",
        "bpf",
        "configfs",
        "pstore",
        "efivarfs",
        "fusectl",
        "binfmt_misc",
        "autofs",
        "rpc_pipefs",
        "nsfs",
    ]
)
_INTERFACES = Path("/sys/class/net")


def restrict(writable: Iterable[Path]) -> None:
    """Take the network away from this process and what it starts, and every right to write but to `writable` and memory.

    A socket of the Unix kind is reached by its path all the same. For a child before its program, with all rights:
    MachineUnfit where they are not there, or a mount cannot be made read-only.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) and not (ctypes.get_errno() == errno.EINVAL and _has_no_network()):
        raise _unfit("taken off the network", ctypes.get_errno())
    if libc.unshare(_CLONE_NEWNS):
        raise _unfit("given mounts of its own", ctypes.get_errno())
    # What is unmounted outside goes here too, and nothing that is mounted here is seen outside.
    _mount(libc, "none", "/", _MS_REC | _MS_SLAVE)
    for folder in writable:
        _mount(libc, str(folder), str(folder), _MS_BIND)
    kept = {os.path.realpath(folder) for folder in writable}
    for entry in read_mount_table():
        if entry.target in kept or entry.type in _NOT_ON_A_DISK or "ro" in entry.options:
            continue
        flags = _MS_REMOUNT | _MS_BIND | _MS_RDONLY
        for name, flag in _KEPT_FLAGS.items():
            flags |= flag if name in entry.options else 0
        # One that lies under another mount cannot be reached, by nobody.
        _mount(libc, "none", entry.target, flags, may_be_hidden=True)


def _mount(libc: ctypes.CDLL, source: str, target: str, flags: int, *, may_be_hidden: bool = False) -> None:
    done = libc.mount(os.fsencode(source), os.fsencode(target), None, ctypes.c_ulong(flags), None)
    if not done:
        return
    number = ctypes.get_errno()
    if not (may_be_hidden and number in (errno.ENOENT, errno.EINVAL, errno.ENOTDIR)):
        raise _unfit(f"kept from writing to {target}", number)


def _has_no_network() -> bool:
    """Whether a kernel without namespaces for networks, as a guest's may be, has none to take away."""
    try:
        return {path.name for path in _INTERFACES.iterdir()} <= {"lo"}
    except OSError:
        return True


def _unfit(what: str, number: int) -> MachineUnfit:
    return MachineUnfit(
        f"a server that runs what a dump says cannot be {what}: {os.strerror(number)}; it needs root outside of a container "
        "that lacks CAP_SYS_ADMIN"
    )
