"""Mounts, unmounts, and reads back what is mounted, always from the kernel's own table.

`mount` raises with the kernel's words where it can have them: mount(8) before util-linux 2.39 only
says "wrong fs type, bad option, …", the reason goes to the kernel's log. The log is rate limited, so
an empty answer from it means nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, DeviceInUse, MachineUnfit, VerifyFailed
from bedplate.host.files import text_of
from bedplate.host.kernel_log import KernelLog
from bedplate.model.course import first_of
from bedplate.model.filesystem import ROUTINE_KERNEL_MESSAGE

if TYPE_CHECKING:
    from bedplate.host.command import Commands

MOUNT_TABLE = Path("/proc/self/mountinfo")

_PROC = Path("/proc")
_NAMED_MOST = 4

# `XFS (loop9): `, `BTRFS error (device loop9 state C): `; other devices have more names than one.
_OF_A_LOOP = re.compile(r"[\w-]+(?: \w+)? \((?:device )?loop\d+\b")


class MountRefused(BedplateError):
    """mount(8) failed; the reasons hold what it and the kernel said, and `said` that alone."""

    code = "mount-refused"

    def __init__(self, *reasons: str, output: str = "") -> None:
        super().__init__(*reasons)
        self.said = output


@dataclass(frozen=True)
class MountEntry:
    """One line of /proc/self/mountinfo (proc_pid_mountinfo(5)).

    `options` belong to this mount (`rw`, `noatime`), `super_options` to the file system (`rw`,
    `data=ordered`), each in the kernel's order and unescaped. `device` is `major:minor`. `follows`: it is a copy
    that is unmounted with its original in another namespace (`master:` in mountinfo).
    """

    mount_id: int
    parent_id: int
    device: str
    root: str
    target: str
    type: str
    source: str
    options: tuple[str, ...]
    super_options: tuple[str, ...]
    follows: bool = False

    @property
    def read_only(self) -> bool:
        """True if either this mount or the file system itself takes no writes."""
        return "ro" in self.options or "ro" in self.super_options


@dataclass(frozen=True)
class MountNamespace:
    """What is mounted in a namespace, and the folders of the processes that see it so; `is_own` where this one is among them."""

    mounts: tuple[MountEntry, ...]
    processes: tuple[Path, ...]
    is_own: bool

    @property
    def process_names(self) -> str:
        """The first few of its processes, by pid and name."""
        return first_of([titled(folder) for folder in self.processes], _NAMED_MOST)


def parse_mount_table(text: str) -> tuple[MountEntry, ...]:
    """Every entry of a mountinfo text, in its order; ValueError quotes a line that is not one."""
    return tuple(_parse_line(line) for line in text.split("\n") if line)


def read_mount_table(path: Path = MOUNT_TABLE) -> tuple[MountEntry, ...]:
    """The mounts that this process sees. Names are bytes to Linux: they survive as os.fsdecode does."""
    return parse_mount_table(os.fsdecode(path.read_bytes()))


def mount_namespaces(proc: Path = _PROC) -> tuple[MountNamespace, ...]:
    """Those of all processes that can be seen, by their lowest pids: the table of one shows nothing of another."""
    own = _namespace(proc / "self")
    processes: dict[str, list[Path]] = {}
    mounts: dict[str, tuple[MountEntry, ...]] = {}
    for folder in process_folders(proc):
        namespace = _namespace(folder)
        if namespace is None:
            continue
        processes.setdefault(namespace, []).append(folder)
        # A process that has ended meanwhile has no table; the next one's is the same.
        if namespace not in mounts:
            with contextlib.suppress(OSError, ValueError):
                text = os.fsdecode((folder / "mountinfo").read_bytes())
                mounts[namespace] = parse_mount_table(text)
    return tuple(
        MountNamespace(mounts[namespace], tuple(folders), namespace == own)
        for namespace, folders in processes.items()
        if namespace in mounts
    )


def process_folders(proc: Path = _PROC) -> list[Path]:
    """Of every process that can be seen, by pid."""
    return sorted(proc.glob("[0-9]*"), key=lambda folder: int(folder.name))


def titled(folder: Path) -> str:
    """The process of a folder below /proc, by pid and name."""
    return f"process {folder.name} ({text_of(folder / 'comm') or '?'})"


def find_mount(target: Path | str) -> MountEntry | None:
    """The topmost mount on exactly `target`, None if nothing is mounted there."""
    wanted = os.path.realpath(target)
    here = [entry for entry in read_mount_table() if entry.target == wanted]
    return here[-1] if here else None


def mount_entry(target: Path | str) -> MountEntry:
    """The topmost mount on exactly `target`; MountRefused if nothing is mounted there."""
    entry = find_mount(target)
    if entry is None:
        raise MountRefused(f"nothing is mounted on {target}; it should have been mounted by now")
    return entry


def mount(
    device_path: str,
    target: Path,
    type: str,  # noqa: A002 - the word of mount(8)
    options: Sequence[str],
    *,
    commands: Commands,
    timeout_s: float = 300.0,
    program: Sequence[str] | None = None,
    shown_as: str | None = None,
) -> MountEntry:
    """Mount a device and return what the kernel then lists.

    `program` mounts in place of `mount -t type`, with the same words after it; `shown_as` is the
    type that the kernel shows, where that is another. MountRefused quotes the program and the kernel.
    VerifyFailed if something else came to lie there, or if it is read-only without having been asked
    for: mount(8) falls back to that with status 0.
    """
    words = ("-o", ",".join(options)) if options else ()
    argv = [*(program or ("mount", "-t", type)), *words, device_path, str(target)]
    with KernelLog() as log:
        done = commands.run(argv, timeout_s=timeout_s, check=False)
        if done.status != 0:
            name = device_path.rpartition("/")[2]
            # Where the kernel gave its reason, mount(8)'s list of guesses only hides it.
            because = _about(log.messages() or (), name=name, type=type) or (
                done.output or f"status {done.status}",
            )
            what = f"{type} on {device_path} with {','.join(options) or 'no options'} cannot be mounted"
            raise MountRefused(*(f"{what}: {reason}" for reason in because), output="\n".join(because))
    entry = mount_entry(target)
    reasons = []
    if entry.type != (shown_as or type):
        reasons.append(f"{target}: asked for {shown_as or type}, mounted is {entry.type}")
    if not _same_device(entry.source, device_path):
        reasons.append(f"{target}: asked for {device_path}, mounted is {entry.source}")
    if entry.read_only and "ro" not in options:
        reasons.append(f"{target} came up read-only; is {device_path} write-protected or damaged?")
    if reasons:
        commands.run(["umount", str(target)], check=False)
        raise VerifyFailed(*reasons)
    return entry


def unmount(
    target: Path,
    *,
    commands: Commands,
    deadline_s: float = 30.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Unmount the topmost mount on `target`; False if nothing was mounted there.

    A busy target is tried again until the deadline, since the kernel has no event for "no longer
    busy"; then DeviceInUse names who holds it.
    """
    before = find_mount(target)
    if before is None:
        return False
    give_up = clock() + deadline_s
    pause_s = 0.02
    while True:
        done = commands.run(["umount", str(target)], timeout_s=600, check=False)
        # The kernel gives the number of a mount that went to the next one that comes, whoever mounts it.
        if all(
            (entry.mount_id, entry.target) != (before.mount_id, before.target) for entry in read_mount_table()
        ):
            return True
        if "busy" not in done.output or clock() >= give_up:
            break
        sleep(pause_s)
        pause_s = min(pause_s * 2, 0.5)
    who = holders(target) or (f"nobody that can be seen holds it; umount says: {done.output}",)
    raise DeviceInUse(f"{target} cannot be unmounted after {deadline_s:g} s", *who)


def type_below(path: Path) -> str | None:
    """The type of the file system that holds `path` (`tmpfs`, `ext4`); None if no mount is known for it."""
    status = path.stat()
    number = f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
    return next((entry.type for entry in read_mount_table() if entry.device == number), None)


def holders(target: Path | str, *, proc: Path = _PROC) -> tuple[str, ...]:
    """One sentence for each process, mount and loop device that holds something under `target`.

    Where a file system is mounted on it, what holds its copies in other mount namespaces does too, and a copy that
    does not go with it keeps its device. One that goes by itself is named where nothing else explains it.
    """
    top = os.path.realpath(target)
    elsewhere = _copies_elsewhere(find_mount(top), proc)
    also = {folder: entry.target for namespace, entry in elsewhere for folder in namespace.processes}
    found = [
        f"{titled(folder)} holds {held}"
        for folder in process_folders(proc)
        if (held := _held_by(folder, {top, also.get(folder, top)})) is not None
    ]
    found += [
        f"{entry.source} is mounted on {entry.target}"
        for entry in read_mount_table()
        if _is_under(entry.target, top) and entry.target != top
    ]
    for backing in sorted(Path("/sys/block").glob("loop*/loop/backing_file")):
        image = text_of(backing)
        if _is_under(image, top):
            found.append(f"/dev/{backing.parts[-3]} lies on {image}")
    copies = [
        (
            f"{namespace.process_names}: {entry.source} is mounted on {entry.target} in another mount namespace",
            entry,
        )
        for namespace, entry in elsewhere
    ]
    found += [words for words, entry in copies if not entry.follows]
    return tuple(found or (words for words, _ in copies))


def _copies_elsewhere(original: MountEntry | None, proc: Path) -> list[tuple[MountNamespace, MountEntry]]:
    """Every namespace of others that has the same file system mounted, and where the first time."""
    if original is None:
        return []
    found = []
    for namespace in mount_namespaces(proc):
        same = (entry for entry in namespace.mounts if entry.device == original.device)
        entry = None if namespace.is_own else next(same, None)
        if entry is not None:
            found.append((namespace, entry))
    return found


def _namespace(folder: Path) -> str | None:
    try:
        return str((folder / "ns/mnt").readlink())
    except OSError:
        return None


def _parse_line(line: str) -> MountEntry:
    fields = line.split(" ")
    try:
        # Optional fields (`shared:2`) stand between the sixth and a lone hyphen.
        hyphen = fields.index("-", 6)
        mount_id, parent_id, device, root, target, options = fields[:6]
        filesystem, source, super_options = fields[hyphen + 1 : hyphen + 4]
        return MountEntry(
            mount_id=int(mount_id),
            parent_id=int(parent_id),
            device=device,
            root=_unescape(root),
            target=_unescape(target),
            type=_unescape(filesystem),
            source=_unescape(source),
            options=_words(options),
            super_options=_words(super_options),
            follows=any(field.startswith("master:") for field in fields[6:hyphen]),
        )
    except ValueError as error:
        raise ValueError(f"not a line of mountinfo: {line!r}") from error


def _words(options: str) -> tuple[str, ...]:
    # Split first: a comma within a value is itself escaped.
    return tuple(_unescape(word) for word in options.split(",") if word)


def _unescape(field: str) -> str:
    """Octal escapes are bytes of the name, so they go back through the name's encoding."""
    if "\\" not in field:
        return field
    raw = re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8) & 0xFF]), os.fsencode(field))
    return os.fsdecode(raw)


def _held_by(folder: Path, tops: Collection[str]) -> str | None:
    links = [folder / "cwd", folder / "root", folder / "exe"]
    with contextlib.suppress(OSError):
        links += list((folder / "fd").iterdir())
    for link in links:
        with contextlib.suppress(OSError):
            held = str(link.readlink())
            if any(_is_under(held, top) for top in tops):
                return held
    for line in text_of(folder / "maps").splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and any(_is_under(fields[5], top) for top in tops):
            return fields[5]
    return None


def _same_device(first: str, second: str) -> bool:
    """By number: mount(8) turns /dev/dm-0 into /dev/mapper/NAME, and a stable name is a link."""
    if first == second:
        return True
    try:
        return os.stat(first).st_rdev == os.stat(second).st_rdev != 0  # noqa: PTH116 - names, not paths
    except OSError:
        return False


def _is_under(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _about(messages: Sequence[str], *, name: str, type: str) -> tuple[str, ...]:  # noqa: A002
    """Those about this device or this driver; ext4's driver mounts ext2 and ext3 too.

    What a driver says of another loop device at the same time is none of them. What it says of every mount comes last.
    """
    drivers = {type.lower(), "ext4"} if type.startswith("ext") else {type.lower()}
    device = re.compile(rf"\b{re.escape(name)}\b")
    about = (
        message
        for message in messages
        if device.search(message)
        or (any(word in message.lower() for word in drivers) and not _OF_A_LOOP.match(message))
    )
    return tuple(
        sorted(dict.fromkeys(about), key=lambda message: bool(ROUTINE_KERNEL_MESSAGE.search(message)))
    )


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


def let_go_of_foreign_mounts(needed_paths: Iterable[Path]) -> None:
    """Unmount what stands on a device or is served from user space, but for what holds a path of `needed_paths` or the system.

    By the system call: each umount(8) would keep the devices of all that come after it busy for as long as it takes.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    system = [*_SYSTEM, *os.get_exec_path(), sys.prefix, sys.base_prefix, str(Path(__file__).resolve())]
    system += [tempfile.gettempdir(), str(Path.cwd())]
    paths = [path.resolve() for path in (*needed_paths, *map(Path, system))]
    for entry in reversed(foreign_mounts(read_mount_table(), paths)):
        # A parent that went before took it along, which is an error of no interest.
        libc.umount2(os.fsencode(entry.target), _MNT_DETACH)


def foreign_mounts(mounts: Sequence[MountEntry], needed_paths: Sequence[Path]) -> list[MountEntry]:
    """The entries that keep a device or a server in user space busy and hold none of the paths, in the table's order.

    None that goes by itself when the original goes, and none within the system's own folders (a container's
    /etc/resolv.conf is a mount).
    """
    return [
        entry
        for entry in mounts
        if (entry.source.startswith("/dev/") or entry.type.startswith("fuse"))
        and not entry.follows
        and not any(path.is_relative_to(entry.target) for path in needed_paths)
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
