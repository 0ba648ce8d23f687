"""Programs, servers and data of others: what they are kept from, and how."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import errno
import os
import re
import resource
import select
import signal
import socket
import stat
import struct
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from bedplate.errors import MachineUnfit, RequirementMissing, VerifyFailed
from bedplate.host.account import server_account
from bedplate.host.command import Account, Commands, Completed, bare_environment
from bedplate.host.mount import read_mount_table
from bedplate.host.process import PROC
from bedplate.host.requirement import find_tool
from bedplate.units import GIB, MIB


def own_alone(top: Path, place: Path) -> None:
    """Give everything below `top` to root, and take away the right to run as its owner; `place` below it is to be there itself.

    VerifyFailed where one of the folders on the way to `place` is a link, or something in it is neither file, folder nor link: what
    is moved or opened next would be something else. The caller has made sure that nobody can write there any more.
    """
    for folder in (*reversed([each for each in place.parents if top in (each, *each.parents)]), place):
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            raise VerifyFailed(f"{folder} is no folder after the build, which was to write below it")
    os.chown(top, 0, 0)
    for where, folders, names in os.walk(top):
        for name in (*folders, *names):
            path = Path(where, name)
            mode = os.lstat(path).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
                raise VerifyFailed(
                    f"{path} is neither a file nor a folder; a build has none of these to install"
                )
            os.chown(path, 0, 0, follow_symlinks=False)
            if mode & (stat.S_ISUID | stat.S_ISGID):
                path.chmod(stat.S_IMODE(mode) & 0o777)


# linux/prctl.h, linux/seccomp.h, linux/sched.h.
_PR_SET_NO_NEW_PRIVS, _SECCOMP_SET_MODE_FILTER = 38, 1

# Without it a kernel before 5.16 takes speculation from whoever has a filter, and what is measured would be slower by that. A kernel
# before 4.17 does not know it.
_SPECULATES = 1 << 2

_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_CLONE_NEWUSER = 0x10000000

# Classic BPF (linux/filter.h): load a word, compare it, test its bits, return.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06

# struct seccomp_data: the lower half of an argument stands first.
_NUMBER, _ARCHITECTURE, _ARGUMENT = 0, 4, 16

# Numbers from here on are of x32, and would be another way to each call.
_X32 = 0x40000000

_X86_64 = {
    "seccomp": 317,
    "socket": 41,
    "socketpair": 53,
    "clone": 56,
    "unshare": 272,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
}

# Of asm-generic/unistd.h, by which all newer processors go.
_GENERIC = {
    "seccomp": 277,
    "socket": 198,
    "socketpair": 199,
    "clone": 220,
    "unshare": 97,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
}

# The same everywhere.
_SINCE_5 = {"io_uring_setup": 425, "clone3": 435}

# By the machine's name: what linux/audit.h calls its system calls, and their numbers.
_MACHINES = {
    "x86_64": (0xC000003E, _X86_64),
    "aarch64": (0xC00000B7, _GENERIC),
    "riscv64": (0xC00000F3, _GENERIC),
}

_Step = tuple[int, int, int, int]


def refuse_calls(*, io_uring: bool, has_network: bool = False) -> None:
    """No new privileges and no such calls for this process and what it starts; whether `io_uring` and the network stay is the caller's to say.

    For a child before its program. On processors of other kinds, and under a kernel that has no such filter, privileges alone are refused.
    MachineUnfit where the kernel does not do that.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise MachineUnfit(
            f"the kernel does not keep programs from new privileges: {os.strerror(ctypes.get_errno())}; "
            "programs and data of others are not run under it"
        )
    machine = _MACHINES.get(os.uname().machine)
    if machine is None:
        return
    steps = b"".join(
        struct.pack("=HBBI", *step) for step in _steps(*machine, io_uring=io_uring, has_network=has_network)
    )
    code = ctypes.create_string_buffer(steps, len(steps))
    program = struct.pack("@HP", len(steps) // 8, ctypes.addressof(code))
    for flags in (_SPECULATES, 0):
        if not libc.syscall(
            *map(ctypes.c_long, (machine[1]["seccomp"], _SECCOMP_SET_MODE_FILTER, flags)), program
        ):
            return
        number = ctypes.get_errno()
        if number not in (errno.EINVAL, errno.ENOSYS):
            raise MachineUnfit(
                f"system calls cannot be refused to a program of others: {os.strerror(number)}"
            )


def _steps(architecture: int, numbers: dict[str, int], *, io_uring: bool, has_network: bool) -> list[_Step]:
    number = {**numbers, **_SINCE_5}
    only_unix = _unless_argument(_EQUAL, socket.AF_UNIX, errno.EAFNOSUPPORT, refused_if=False)
    no_users = _unless_argument(_ANY_BIT, _CLONE_NEWUSER, errno.EPERM, refused_if=True)
    # Its flags stand in memory, which no filter reads; a C library goes on with clone.
    missing = _refuse(errno.ENOSYS)
    # Of what a server does all the time, reads and writes above all, most is below the first of these.
    first = min(value for name, value in number.items() if name != "seccomp")
    return [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        *missing,
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 1, 0, first),
        (_RETURN, 0, 0, _ALLOW),
        *(_if(_AT_LEAST, _X32, missing) if architecture == _MACHINES["x86_64"][0] else ()),
        *(
            step
            for name in (() if has_network else ("socket", "socketpair"))
            for step in _if(_EQUAL, number[name], only_unix)
        ),
        *(step for name in ("clone", "unshare") for step in _if(_EQUAL, number[name], no_users)),
        *(
            step
            for name in ("clone3", "add_key", "request_key", "keyctl")
            for step in _if(_EQUAL, number[name], missing)
        ),
        *(() if io_uring else _if(_EQUAL, number["io_uring_setup"], missing)),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _if(comparison: int, value: int, then: list[_Step]) -> list[_Step]:
    """Where what was loaded compares so, what ends in a return; else what comes behind."""
    return [(comparison, 0, len(then), value), *then]


def _unless_argument(comparison: int, value: int, number: int, *, refused_if: bool) -> list[_Step]:
    """By the first argument: refused where the comparison comes out so, else allowed."""
    allowed, refused = [(_RETURN, 0, 0, _ALLOW)], _refuse(number)
    return [
        (_LOAD, 0, 0, _ARGUMENT),
        (comparison, 0, 1, value),
        *(refused + allowed if refused_if else allowed + refused),
    ]


def _refuse(number: int) -> list[_Step]:
    return [(_RETURN, 0, 0, _REFUSE | number)]


# linux/sched.h, linux/mount.h.
_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWPID, _CLONE_NEWNET = 0x00020000, 0x08000000, 0x20000000, 0x40000000

_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_SLAVE = 0x1, 0x20, 0x1000, 0x4000, 0x80000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MNT_DETACH = 0x2, 0x4, 0x8, 2
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

# Of /, what a compiler works with. Everything else is somebody's data: homes, state of services, caches, other file systems.
SYSTEM_FOLDERS = (
    "bin",
    "dev",
    "etc",
    "gnu",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "nix",
    "opt",
    "proc",
    "sbin",
    "sys",
    "usr",
)

_SOCKETS = Path("/proc/net/unix")

# Sides of a pipe have no name; a name that begins with @ is none of a file.
_NAMED_SOCKET = re.compile(r"^(?:\S+ +){7}(/.*)$", re.MULTILINE)

_NOTHING = "/dev/null"

# A name takes memory too. A parallel query of PostgreSQL's, or a buffer that processes share, has as much as without restriction.
_MEMORY, _MEMORY_SHARED = b"size=256m,nr_inodes=65536,mode=1777", b"size=50%,nr_inodes=65536,mode=1777"

# More than one number: it is of a namespace below that of this folder of processes.
_STATUS, _OF_A_NAMESPACE = Path("/proc/self/status"), re.compile(r"^NSpid:\t\d+\t", re.MULTILINE)

# How long the kernel may take to end what is left in a namespace.
_END_S = 10.0

# Above the highest number that a file can have.
FILES_MOST = 2**31 - 1

# Of the thread: a client of its own session may begin in any.
_PROCESSES = Path("/proc/thread-self/ns/pid_for_children")


@dataclass(frozen=True)
class Restriction:
    """All that is left to a program that runs as `account`.

    These are files and folders to write to, others to read, folders with the `sockets` that it may ask, and `io_uring` or not. What lies neither below a folder that is hidden nor is written to need not be named. For root; of anybody else, who could not do it, nothing
    is taken.
    """

    account: Account
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    sockets: tuple[Path, ...] = ()
    io_uring: bool = False

    @contextlib.contextmanager
    def child(self) -> Iterator[Callable[[], None]]:
        """Within it a child is begun with what it gives as its `preexec_fn`; MachineUnfit where the child could not be restricted."""
        if os.geteuid() != 0:
            yield _stay
            return
        heard, said = os.pipe()
        with os.fdopen(heard, "rb") as hearing, os.fdopen(said, "wb", buffering=0) as saying:

            def become() -> None:
                try:
                    self._become()
                except (MachineUnfit, OSError) as error:
                    # Of what is raised here the starter hears only that it was.
                    saying.write(str(error).encode())
                    raise

            try:
                with _processes.joined():
                    yield become
            except subprocess.SubprocessError as error:
                saying.close()
                words = hearing.read().decode(errors="replace")
                raise MachineUnfit(words or f"a program could not be restricted: {error}") from error

    def _become(self) -> None:
        here = Path.cwd()
        restrict(self.writable, self.readable, self.sockets, io_uring=self.io_uring)
        # Anew by its name: what was entered may lie below what is hidden, and lead out from there.
        os.chdir(here if here.is_dir() else "/")
        os.setgroups([])
        os.setgid(self.account.gid)
        os.setuid(self.account.uid)


def _stay() -> None:
    """In place of what only root can do."""


@contextlib.contextmanager
def own_processes(namespace: int | None = None) -> Iterator[None]:
    """The child that is begun within sees no processes but its own: it joins a `namespace`, or is the first process (1) of a new one.

    A namespace ends with its first process. Outside it has an id as any other. No thread can be begun within. MachineUnfit where the kernel
    or our rights do not allow it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open(_PROCESSES, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.unshare(_CLONE_NEWPID) if namespace is None else libc.setns(namespace, _CLONE_NEWPID):
            raise _unfit("given processes of its own", ctypes.get_errno())
        try:
            yield
        finally:
            if libc.setns(before, _CLONE_NEWPID):
                raise _unfit("begun beside others", ctypes.get_errno())
    finally:
        os.close(before)


class _OwnProcesses:
    """One namespace for all restricted children of this process, which end with it; made when the first one begins.

    None of them is its first process, of whom much differs: it hears no signal without a handler, and does not end by abort(3).
    """

    def __init__(self) -> None:
        # Whose it is. Descriptors: a pipe that ends with that process, the namespace, and its first process.
        self._owner, self._end, self._namespace, self._first = 0, -1, -1, -1

    @contextlib.contextmanager
    def joined(self) -> Iterator[None]:
        """The child that is begun within joins it. No thread can be begun within. MachineUnfit as of `own_processes`."""
        if self._owner != os.getpid() or _has_ended(self._first):
            self._begin()
        with own_processes(self._namespace):
            yield

    def _begin(self) -> None:
        """Anew where the first process of an earlier one was killed. It is nobody's child here, whom a wait for any would meet."""
        if self._owner == os.getpid():
            for descriptor in (self._end, self._namespace, self._first):
                os.close(descriptor)
            self._owner = 0
        heard, self._end = os.pipe()
        told, telling = os.pipe()
        between = os.fork()
        if not between:
            _begin_first(heard, telling)
        os.close(heard)
        os.close(telling)
        with os.fdopen(told) as words:
            said = words.read()
        os.waitpid(between, 0)
        if not said.isdecimal():
            os.close(self._end)
            raise MachineUnfit(said)
        self._namespace = os.open(f"/proc/{said}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self._first, self._owner = os.pidfd_open(int(said)), os.getpid()

    def leave(self) -> None:
        """At the end of this process: wait until nothing of it is there, as it would end by itself a moment later."""
        if self._owner == os.getpid():
            os.close(self._end)
            self._owner = 0
            _has_ended(self._first, wait_s=_END_S)


def _has_ended(pid: int, *, wait_s: float = 0.0) -> bool:
    poller = select.poll()
    poller.register(pid, select.POLLIN)
    return bool(poller.poll(wait_s * 1000))


def _begin_first(pipe: int, telling: int) -> NoReturn:
    """Of a process that ends at once: begin the first one of a namespace, and tell its number, or why there is none."""
    try:
        with own_processes():
            first = os.fork()
            if not first:
                _bury(pipe)
        os.write(telling, str(first).encode())
    except (MachineUnfit, OSError) as error:
        os.write(telling, str(error).encode())
    finally:
        os._exit(0)


def _bury(pipe: int) -> NoReturn:
    """The first process of a namespace: whoever ends in it is gone, until the pipe ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    os.dup2(pipe, 0)
    os.closerange(1, FILES_MOST)
    os.read(0, 1)
    os._exit(0)


_processes = _OwnProcesses()

atexit.register(_processes.leave)


def restrict(
    writable: Iterable[Path],
    readable: Iterable[Path] = (),
    sockets: Iterable[Path] = (),
    *,
    io_uring: bool = False,
) -> None:
    """Take the network away from this process and what it starts, and every right to write but to `writable` and memory of its own.

    No socket of the Unix kind that another program has is left to it either: /run, /var/run, /tmp, /var/tmp and /dev/shm are empty but for
    these, and a socket that is neither in a writable folder nor in one of `sockets` leads to /dev/null. No program gives it privileges, and the filter of system calls says which
    calls it has no more. For a child before its program, with all rights: MachineUnfit where they are not there, a folder cannot be hidden,
    or a mount cannot be made read-only.
    """
    take_places(writable, readable, sockets)
    refuse_calls(io_uring=io_uring)


def take_places(
    writable: Iterable[Path],
    readable: Iterable[Path] = (),
    sockets: Iterable[Path] = (),
    *,
    also: Mapping[str, Path] | None = None,
    system_alone: bool = False,
    has_network: bool = False,
) -> None:
    """The first half of `restrict`, while there are rights to the other; `also` are more names of these folders, in what is hidden.

    With `system_alone` all folders of / are empty but for those that hold the system's programs and their configuration.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    # Of the network that is left now.
    named = _named_sockets()
    if (
        not has_network
        and libc.unshare(_CLONE_NEWNET)
        and not (ctypes.get_errno() == errno.EINVAL and _has_no_network())
    ):
        raise _unfit("taken off the network", ctypes.get_errno())
    if libc.unshare(_CLONE_NEWNS):
        raise _unfit("given mounts of its own", ctypes.get_errno())
    # A kernel without CONFIG_IPC_NS says EINVAL. A guest's is asked for it before, where its configuration is known.
    if libc.unshare(_CLONE_NEWIPC) and ctypes.get_errno() != errno.EINVAL:
        raise _unfit("given shared memory of its own", ctypes.get_errno())
    # What is unmounted outside goes here too, and nothing that is mounted here is seen outside.
    _mount(libc, "none", "/", _MS_REC | _MS_SLAVE)
    # What is not there its program misses by itself, as one does on what a cut left.
    kept, read, asked = (
        {os.path.realpath(path) for path in paths if path.exists()} for paths in (writable, readable, sockets)
    )
    read |= asked
    # Folders that are made on the way are for every account, whatever the caller's mask is.
    mask = os.umask(0o022)
    hidden = _hide(libc, kept, read, _others_data() if system_alone else set())
    for folder in kept:
        _mount(libc, folder, folder, _MS_BIND)
    for path in named:
        _cover(libc, path, kept | asked)
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
    # From here on the numbers of processes are those that it sees.
    if _OF_A_NAMESPACE.search(_STATUS.read_text()):
        _mount(libc, "proc", "/proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, type_name=b"proc")


def _named_sockets() -> list[str]:
    """The paths of all sockets in use, as far as they are whole."""
    try:
        return _NAMED_SOCKET.findall(os.fsdecode(_SOCKETS.read_bytes()))
    except OSError:
        return []  # a guest's kernel may have none


def _others_data() -> set[str]:
    """The folders of / that hold nothing of the system's programs."""
    return {
        entry.path
        for entry in os.scandir("/")
        if entry.name not in SYSTEM_FOLDERS and entry.is_dir(follow_symlinks=False)
    }


def _hide(libc: ctypes.CDLL, writable: set[str], readable: set[str], hidden_folders: set[str]) -> set[str]:
    """Put empty folders in memory over those of `_HIDDEN` and of `hidden_folders`, with what is kept of them in its place; their names.

    What else is mounted in them goes: nobody sees it any more, and a copy would keep its device busy for as long as this process lives.
    """
    usual = {os.path.realpath(place) for place in _HIDDEN if Path(place).is_dir()}
    hidden = usual | hidden_folders
    shared = os.path.realpath(_SHARED_MEMORY)
    for folder in writable | readable:
        is_above = folder in writable and any(_is_in(place, [folder.rstrip("/")]) for place in hidden)
        if folder in hidden or is_above:
            raise MachineUnfit(
                f"a program of others cannot work in {folder}, where the machine's sockets and shared memory are; put its folders "
                "below another one"
            )
    kept = sorted(folder for folder in writable | readable if _is_in(folder, hidden))
    for entry in reversed(read_mount_table()):
        if (
            entry.target not in hidden
            and _is_in(entry.target, hidden)
            and not any(_is_in(path, [entry.target]) for path in kept)
        ):
            # One that went with its parent, or lies under another, is an error of no interest.
            libc.umount2(os.fsencode(entry.target), _MNT_DETACH)
    # Opened first: their names lead elsewhere once their folders are hidden.
    opened = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in kept}
    for place in sorted(hidden):
        options = _MEMORY_SHARED if place == shared else _MEMORY
        # It may have stood in another one of them.
        Path(place).mkdir(parents=True, exist_ok=True)
        _mount(libc, "tmpfs", place, _MS_NOSUID | _MS_NODEV, type_name=b"tmpfs", mount_data=options)
    for path, descriptor in opened.items():
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            Path(path).mkdir(mode=0o755, parents=True, exist_ok=True)
        else:
            Path(path).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            Path(path).touch()
        _mount(libc, f"/proc/self/fd/{descriptor}", path, _MS_BIND)
        os.close(descriptor)
    for place in hidden_folders - usual:
        _mount(libc, "none", place, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)
    return hidden


def _cover(libc: ctypes.CDLL, socket: str, sockets: set[str]) -> None:
    """Put /dev/null over a socket that is still there to be seen, and no server's own from before its start."""
    try:
        is_there = stat.S_ISSOCK(os.lstat(socket).st_mode)
    except OSError:
        return
    if is_there and not _is_in(os.path.realpath(socket), sockets):
        _mount(libc, _NOTHING, socket, _MS_BIND, may_be_hidden=True)


def _is_in(path: str, directories: Iterable[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in directories)


def _mount(
    libc: ctypes.CDLL,
    source: str,
    target: str,
    flags: int,
    *,
    may_be_hidden: bool = False,
    type_name: bytes | None = None,
    mount_data: bytes | None = None,
) -> None:
    """Mount a folder elsewhere, or one of a `type_name` with these options."""
    done = libc.mount(os.fsencode(source), os.fsencode(target), type_name, ctypes.c_ulong(flags), mount_data)
    if not done:
        return
    number = ctypes.get_errno()
    if not (may_be_hidden and number in (errno.ENOENT, errno.EINVAL, errno.ENOTDIR)):
        raise _unfit(
            f"kept from {target}" if type_name is not None else f"kept from writing to {target}", number
        )


def _has_no_network() -> bool:
    """Whether a kernel without namespaces for networks, as a guest's may be, has none to take away."""
    try:
        return {path.name for path in _INTERFACES.iterdir()} <= {"lo"}
    except OSError:
        return True


def _unfit(restriction: str, number: int) -> MachineUnfit:
    return MachineUnfit(
        f"a program that runs what others wrote cannot be {restriction}: {os.strerror(number)}; it needs root outside of a container "
        "that lacks CAP_SYS_ADMIN"
    )


# Where the program finds its two folders, whatever they are called outside.
DATA, PROGRAMS = "/tmp/data", "/tmp/engine"  # noqa: S108 -- of a mount namespace of its own

# Exit statuses of a shell above this are a signal's (POSIX, "Exit Status for Commands").
SIGNALS_FROM = 128

# As env(1) ends: it is not begun, it may not be executed, it or its interpreter is not there.
_NOT_BEGUN, _NO_PROGRAM, _NOT_THERE = 125, 126, 127

_PR_SET_PDEATHSIG = 1

# A program that forks without end takes the account's processes, and not the machine's.
_PROCESSES_MOST = 4096

# A compiler takes a line for as many bytes as the line says; an object of a kernel with all its symbols has less.
_FILE_BYTES_MOST = 4 * GIB


@dataclass(frozen=True)
class Confinement:
    """A program of `programs` that works in `data`: `argv` names both as it sees them, and is looked for in the search path. For root.

    `readable` are more folders that it sees under their own names. With `sees_system_alone` everything of the machine that is no program,
    library, header, device or configuration of the system is hidden from it, and no file becomes larger than 4 GiB. It begins in `directory`. Its exit status is the program's;
    a signal that ended it is `SIGNALS_FROM` and its number. `has_network` is for a package manager that fetches what a build needs, and for nothing else.
    """

    argv: tuple[str, ...]
    data: Path
    programs: Path
    account: Account
    readable: tuple[Path, ...] = ()
    sees_system_alone: bool = False
    directory: str = DATA
    has_network: bool = False

    @property
    def environment(self) -> Mapping[str, str]:
        """All that is set."""
        return {"HOME": "/tmp", **bare_environment()}  # noqa: S108 -- of a mount namespace of its own

    @contextlib.contextmanager
    def child(self) -> Iterator[Callable[[], NoReturn]]:
        """Within it the child is begun, with what it gives as its `preexec_fn`."""
        with own_processes():
            yield self._become

    def _become(self) -> NoReturn:
        """As the first process of its namespace it waits for the program, which is a child of its own."""
        try:
            self._shut_in()
            program = os.fork()
            if program:
                _await(program)
            self._give_up_rights()
        except (MachineUnfit, OSError) as error:
            os.write(2, f"{self.argv[0]} is not begun: {error}\n".encode())
            os._exit(_NOT_BEGUN)
        # Of the starter's, which hears by it that the program has begun.
        os.closerange(3, FILES_MOST)
        try:
            os.execvpe(self.argv[0], self.argv, self.environment)  # noqa: S606 -- no shell
        except OSError as error:
            os.write(2, f"{self.argv[0]}: {error.strerror}\n".encode())
            os._exit(_NOT_THERE if error.errno == errno.ENOENT else _NO_PROGRAM)

    def _give_up_rights(self) -> None:
        # An engine may do its I/O by io_uring.
        refuse_calls(io_uring=True, has_network=self.has_network)
        os.setgroups([])
        os.setgid(self.account.gid)
        os.setuid(self.account.uid)
        os.chdir(self.directory)

    def _shut_in(self) -> None:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        take_places(
            (self.data,),
            (self.programs, *self.readable),
            also={DATA: self.data, PROGRAMS: self.programs},
            system_alone=self.sees_system_alone,
            has_network=self.has_network,
        )
        most = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        if most == resource.RLIM_INFINITY or most > _PROCESSES_MOST:
            resource.setrlimit(resource.RLIMIT_NPROC, (_PROCESSES_MOST, _PROCESSES_MOST))
        if self.sees_system_alone:
            resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES_MOST, _FILE_BYTES_MOST))


def _await(pid: int) -> NoReturn:
    """As the first process: wait for the end of the program, bury all others meanwhile, and end like it."""
    # Handlers are the starter's, and without one this process ignores what is for the program.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    # Whoever reads a pipe of the program's hears of its end; Popen hears that it has begun.
    os.closerange(0, FILES_MOST)
    while True:
        ended, status = os.wait()
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            os._exit(SIGNALS_FROM - code if code < 0 else code)


# What it says goes into a log; a compiler's warnings about all of Linux are less.
SAID_BYTES_MOST = 64 * MIB

_COMPILERS = ("cc", "gcc")

# linux/capability.h: the right to mount and to make namespaces.
_CAP_SYS_ADMIN = 21


def builder_account(*, is_own: bool = True) -> Account | None:
    """Who compiles: an account without rights where bedplate is root, else the caller.

    A container may keep root from shutting anything in. Then what is somebody's own is refused at its first command, and what is
    bedplate's, or came with a signature or a checksum that is known, is compiled by the caller: the container is its wall.
    """
    return server_account() if os.geteuid() == 0 and (is_own or _may_shut_in()) else None


def to_read_alone(*folders: Path, is_own: bool = True) -> Restriction | None:
    """What is left to a program that answers a question and writes nothing, beside what every account may read; None as of `builder_account`."""
    account = builder_account(is_own=is_own)
    return None if account is None else Restriction(account, readable=folders)


def build_command(
    argv: Sequence[str],
    *,
    directory: Path,
    work: Path,
    readable: Sequence[Path],
    account: Account | None,
    commands: Commands,
    timeout_s: float,
    has_network: bool = False,
) -> Completed:
    """Run it in `directory`; it writes nowhere but below `work`, and `readable` are there for it. CommandFailed with its whole output.

    Without an `account` it is the caller's own, and runs as any command.
    """
    if account is None:
        return commands.run(argv, timeout_s=timeout_s, directory=directory)
    _demand_compilers_seen()
    confined = Confinement(
        tuple(argv),
        data=work,
        programs=readable[0],
        account=account,
        readable=tuple(readable[1:]),
        sees_system_alone=True,
        directory=str(directory),
        has_network=has_network,
    )
    return commands.run(
        argv, timeout_s=timeout_s, directory=directory, most_bytes=SAID_BYTES_MOST, confinement=confined
    )


def _demand_compilers_seen() -> None:
    """The compiler whose version is recorded is the one that a build finds; RequirementMissing where that is hidden from it."""
    for name in _COMPILERS:
        found = find_tool(name)
        if found is not None and not all(
            path.parts[1] in SYSTEM_FOLDERS for path in (found, found.resolve())
        ):
            raise RequirementMissing(
                f"{found} is the compiler in the search path, and a build, which sees the system's own folders alone, does not see it; "
                "take its folder out of PATH, or install it below /opt or /usr/local"
            )


def _may_shut_in() -> bool:
    """Whether this process has the right to mount, which a container may have taken from root."""
    status = (PROC / "self/status").read_text(encoding="ascii", errors="replace")
    (rights,) = (line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(rights, 16) >> _CAP_SYS_ADMIN & 1)
