"""A process without network that writes to a few folders only: for a server that runs what others wrote, and for programs of others.

A namespace of networks has no say over a Unix socket with a path: whoever reaches the path speaks to the host's programs, as a
container engine or a database of the machine. So the folders where such sockets are made are hidden, and sockets elsewhere covered.
Shared memory is hidden alike: what other programs of the account keep in /dev/shm is theirs. What is left goes through a filter of system
calls (`system_call_filter.py`), and no setuid program gives rights back.

Processes of its account outside have the host's folders as their root, and may be traced; so it begins among processes of its own
(`own_processes`). It keeps its folders under their names, by which others ask a server; a program of an own engine has two names for its
own (`confinement.py`).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import MachineUnfit
from bedplate.host.mount import read_mount_table
from bedplate.host.shut_in.system_call_filter import refuse_calls

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# linux/sched.h, linux/mount.h.
_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWPID, _CLONE_NEWNET = 0x00020000, 0x08000000, 0x20000000, 0x40000000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_SLAVE = 0x1, 0x20, 0x1000, 0x4000, 0x80000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 0x2, 0x4, 0x8
_KEPT_FLAGS = {"nosuid": 0x2, "nodev": 0x4, "noexec": 0x8}
# The kernel's own, where an account without rights changes nothing that lasts.
_OF_THE_KERNEL = frozenset(
    [
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
# Where programs of the machine make their sockets, and what they share with each other; /var/run is a folder of its own on some machines.
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 -- hidden, not used
_HIDDEN = ("/run", "/var/run", "/tmp", "/var/tmp", _SHARED_MEMORY, "/dev/mqueue")  # noqa: S108 -- likewise
_SOCKETS = Path("/proc/net/unix")
# Sides of a pipe have no name; a name that begins with @ is none of a file.
_NAMED_SOCKET = re.compile(r"^(?:\S+ +){7}(/.*)$", re.MULTILINE)
_NOTHING = "/dev/null"
# A name takes memory too. A parallel query of PostgreSQL's, or a buffer that processes share, has as much as without restriction.
_MEMORY, _MEMORY_SHARED = b"size=256m,nr_inodes=65536,mode=1777", b"size=50%,nr_inodes=65536,mode=1777"
_PROCESSES = Path("/proc/self/ns/pid_for_children")


@contextlib.contextmanager
def own_processes() -> Iterator[None]:
    """The child that is begun within is the first process (1) of a namespace: it sees none but its own, and they end with it.

    Outside it has an id as any other. No thread can be begun within. MachineUnfit where the kernel or our rights do not allow it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open(_PROCESSES, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.unshare(_CLONE_NEWPID):
            raise _unfit("given processes of its own", ctypes.get_errno())
        try:
            yield
        finally:
            if libc.setns(before, _CLONE_NEWPID):
                raise _unfit("begun beside others", ctypes.get_errno())
    finally:
        os.close(before)


def restrict(writable: Iterable[Path], readable: Iterable[Path] = (), *, io_uring: bool = False) -> None:
    """Take the network away from this process and what it starts, and every right to write but to `writable` and memory of its own.

    No socket of the Unix kind that another program has is left to it either: /run, /var/run, /tmp, /var/tmp and /dev/shm are empty but for
    `writable` and `readable`, and a socket elsewhere leads to /dev/null. No program gives it privileges, and `system_call_filter.py` says which
    calls it has no more. For a child before its program, with all rights: MachineUnfit where they are not there, a folder cannot be hidden,
    or a mount cannot be made read-only.
    """
    take_places(writable, readable)
    refuse_calls(io_uring=io_uring)


def take_places(
    writable: Iterable[Path], readable: Iterable[Path] = (), *, also: Mapping[str, Path] | None = None
) -> None:
    """The first half of `restrict`, while there are rights to the other; `also` are more names of these folders, in what is hidden."""
    libc = ctypes.CDLL(None, use_errno=True)
    # Of the network that is left now.
    sockets = _named_sockets()
    if libc.unshare(_CLONE_NEWNET) and not (ctypes.get_errno() == errno.EINVAL and _has_no_network()):
        raise _unfit("taken off the network", ctypes.get_errno())
    if libc.unshare(_CLONE_NEWNS):
        raise _unfit("given mounts of its own", ctypes.get_errno())
    # A kernel without CONFIG_IPC_NS, as a guest's may be, says EINVAL.
    if libc.unshare(_CLONE_NEWIPC) and ctypes.get_errno() != errno.EINVAL:
        raise _unfit("given shared memory of its own", ctypes.get_errno())
    # What is unmounted outside goes here too, and nothing that is mounted here is seen outside.
    _mount(libc, "none", "/", _MS_REC | _MS_SLAVE)
    kept, read = ({os.path.realpath(folder) for folder in folders} for folders in (writable, readable))
    # Folders that are made on the way are for every account, whatever the caller's mask is.
    mask = os.umask(0o022)
    hidden = _hide(libc, kept, read)
    for folder in kept:
        _mount(libc, folder, folder, _MS_BIND)
    for socket in sockets:
        _cover(libc, socket, kept)
    for entry in read_mount_table():
        if entry.target in kept or entry.type in _OF_THE_KERNEL or "ro" in entry.options:
            continue
        if entry.target not in read and _is_in(entry.target, hidden):
            continue
        flags = _MS_REMOUNT | _MS_BIND | _MS_RDONLY
        for name, flag in _KEPT_FLAGS.items():
            flags |= flag if name in entry.options else 0
        # One that lies under another mount cannot be reached, by nobody.
        _mount(libc, "none", entry.target, flags, may_be_hidden=True)
    for more, known in (also or {}).items():
        Path(more).mkdir(parents=True)
        # Read-only where the other name is.
        _mount(libc, os.path.realpath(known), more, _MS_BIND)
    os.umask(mask)
    if os.getpid() == 1:
        _mount(libc, "proc", "/proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, kind=b"proc")


def _named_sockets() -> list[str]:
    """The paths of all sockets in use, as far as they are whole."""
    try:
        return _NAMED_SOCKET.findall(os.fsdecode(_SOCKETS.read_bytes()))
    except OSError:
        return []  # a guest's kernel may have none


def _hide(libc: ctypes.CDLL, writable: set[str], readable: set[str]) -> set[str]:
    """Put empty folders in memory over those of `_HIDDEN`, with what is kept of them in its place; their names."""
    hidden = {os.path.realpath(place) for place in _HIDDEN if Path(place).is_dir()}
    shared = os.path.realpath(_SHARED_MEMORY)
    for folder in writable | readable:
        is_above = folder in writable and any(_is_in(place, [folder.rstrip("/")]) for place in hidden)
        if folder in hidden or is_above:
            raise MachineUnfit(
                f"a program of others cannot work in {folder}, where the machine's sockets and shared memory are; put its folders "
                "below another one"
            )
    kept = sorted(folder for folder in writable | readable if _is_in(folder, hidden))
    # Opened first: their names lead elsewhere once their folders are hidden.
    opened = {folder: os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) for folder in kept}
    for place in sorted(hidden):
        options = _MEMORY_SHARED if place == shared else _MEMORY
        # It may have stood in another one of them.
        Path(place).mkdir(parents=True, exist_ok=True)
        _mount(libc, "tmpfs", place, _MS_NOSUID | _MS_NODEV, kind=b"tmpfs", options=options)
    for folder, descriptor in opened.items():
        Path(folder).mkdir(mode=0o755, parents=True, exist_ok=True)
        _mount(libc, f"/proc/self/fd/{descriptor}", folder, _MS_BIND)
        os.close(descriptor)
    return hidden


def _cover(libc: ctypes.CDLL, socket: str, kept: set[str]) -> None:
    """Put /dev/null over a socket that is still there to be seen, and no server's own from before its start."""
    try:
        is_there = stat.S_ISSOCK(os.lstat(socket).st_mode)
    except OSError:
        return
    if is_there and not _is_in(os.path.realpath(socket), kept):
        _mount(libc, _NOTHING, socket, _MS_BIND, may_be_hidden=True)


def _is_in(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def _mount(
    libc: ctypes.CDLL,
    source: str,
    target: str,
    flags: int,
    *,
    may_be_hidden: bool = False,
    kind: bytes | None = None,
    options: bytes | None = None,
) -> None:
    """Mount a folder elsewhere, or one of a `kind` with these options."""
    done = libc.mount(os.fsencode(source), os.fsencode(target), kind, ctypes.c_ulong(flags), options)
    if not done:
        return
    number = ctypes.get_errno()
    if not (may_be_hidden and number in (errno.ENOENT, errno.EINVAL, errno.ENOTDIR)):
        raise _unfit(f"kept from {target}" if kind is not None else f"kept from writing to {target}", number)


def _has_no_network() -> bool:
    """Whether a kernel without namespaces for networks, as a guest's may be, has none to take away."""
    try:
        return {path.name for path in _INTERFACES.iterdir()} <= {"lo"}
    except OSError:
        return True


def _unfit(what: str, number: int) -> MachineUnfit:
    return MachineUnfit(
        f"a program that runs what others wrote cannot be {what}: {os.strerror(number)}; it needs root outside of a container "
        "that lacks CAP_SYS_ADMIN"
    )
