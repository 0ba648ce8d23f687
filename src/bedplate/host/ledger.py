"""What is held of the machine, written down before it is taken.

After a SIGKILL the next start reads the ledger and gives everything back. A ledger is a directory
`<state directory>/<owner>/` with a file of JSON lines: a head that says who owns it, then `note` and
`settled` lines in the order of events. It appears whole, by a rename, so a head is never half
written; a half-written last line was never acted upon, since a line is written before the act.

The owner holds a lock on the file. A child that was forked and has not yet become its program does not
bear the mark yet, and shares the lock: who gives back takes the lock first, and so waits until every
child can be seen, or a mount under way would come after the unmount. `subprocess` closes what it has
inherited before the program begins, so the file is mapped as well: a lock of flock(2) ends with the last
reference to the open file, and a mapping is one. A child that shares the owner's memory until execve(2), as
those that mount and attach do (vfork(2)), keeps it so long. A copy of the memory has no such mapping, since
some live on without a program: what runs as an account is found by its group or its data directory.

Everything else in that directory (mount points, sockets) is temporary too and goes with it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import mmap
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, Self

from bedplate.errors import BedplateError, DeviceInUse, MachineUnfit, RequirementMissing
from bedplate.host import process
from bedplate.host.block_tree import (
    BlockTree,
    DeviceNode,
    attached_to,
    device_holders,
    erase_signatures,
    files_below,
    fingerprint,
    moved_since,
)
from bedplate.host.command import MARK, Commands
from bedplate.host.files import take_lock
from bedplate.host.mount import find_mount, holders, read_mount_table, unmount
from bedplate.host.process import wait_until
from bedplate.host.zpool import pool_name, release_pool

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 -- shm_open(3) has no other place

_NAMES = "PostgreSQL.*"

# src/backend/storage/ipc/dsm.c: PG_DYNSHMEM_CONTROL_MAGIC, with which such a table begins; a handle is of 32 bits.
_TABLE = (0x9A503D32).to_bytes(4, sys.byteorder)

_HANDLE_BYTES = 4


def remove_orphaned_segments(
    uid: int, since_s: float, *, directory: Path = SHARED_MEMORY
) -> tuple[Path, ...]:
    """Remove the segments of that account, made since then, that no server uses; which they were."""
    removed = []
    for path in unused_segments(directory):
        with contextlib.suppress(FileNotFoundError):
            status = path.lstat()
            if status.st_uid == uid and status.st_ctime >= since_s:
                path.unlink()
                removed.append(path)
    return tuple(removed)


def unused_segments(directory: Path = SHARED_MEMORY) -> tuple[Path, ...]:
    """Segments that nobody has open or mapped and no living server notes, in any namespace, by name."""
    handles = {path: _handle(path) for path in sorted(directory.glob(_NAMES))}
    used = {path for path in handles if is_in_use(path)}
    tables = [_table_in(path) for path in used]
    return tuple(
        path
        for path, handle in handles.items()
        if path not in used and handle is not None and not any(handle in table for table in tables)
    )


def is_in_use(path: Path) -> bool:
    """Whether somebody has this file open or mapped, as far as can be told; True for one that may not be asked about.

    The kernel grants a lease for writing only where nobody else holds the file (fcntl(2), F_SETLEASE). /proc would not
    do: a container that shares its host's /dev/shm does not see the host's processes.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        # Who opens it before the lease ends here makes the kernel say so: by a signal that ends nobody, unlike SIGIO.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _table_in(path: Path) -> bytes:
    """What a living server notes of all its segments; empty for a segment that holds something else."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        if file.read(len(_TABLE)) == _TABLE:
            return file.read()
    return b""


def _handle(path: Path) -> bytes | None:
    """As a table has it, somewhere; None for a name that is no server's."""
    number = path.name.partition(".")[2]
    is_one = number.isascii() and number.isdecimal() and int(number) < 2 ** (8 * _HANDLE_BYTES)
    return int(number).to_bytes(_HANDLE_BYTES, sys.byteorder) if is_one else None


# A new boot has forgotten everything but files.
SURVIVE_A_REBOOT = frozenset({"image", "directory", "log_directory", "journal_device"})

SYS_BLOCK = Path("/sys/block")

# The kernel has no event for "no longer busy": these are polled, within this time.
_PATIENCE_S = 10.0

# The last process of a mount namespace takes its mounts along; what is dirty then is written first.
_UNMOUNT_PATIENCE_S = 300.0


@dataclass(frozen=True)
class Undone:
    """`problem` is None if all went well; `done` says what was given back, None if nothing was left.

    `settled` is false where a later release should try again.
    """

    problem: str | None
    done: str | None = None
    settled: bool = True


_NOTHING_LEFT = Undone(None)


def give_back(holding: Holding, commands: Commands, *, directory: Path, sweep: Callable[[], None]) -> Undone:
    """Undo one holding of the ledger in `directory`; `sweep` ends the owner's own processes."""
    try:
        match holding.kind:
            case "mount":
                return _mount(holding, commands, directory, sweep)
            case "loop":
                return _loop(Path(holding.name), commands, holding.detail)
            case "loops":
                return _loops_below(Path(holding.name), commands)
            case "server":
                return _server(holding)
            case "shared_memory":
                return _shared_memory(holding)
            case "process":
                return _process(holding)
            case "cgroup":
                return _cgroup(Path(holding.name))
            case "tunable":
                return restore_file(Path(holding.name), holding.detail)
            case "write_cache":
                return restore_write_cache(holding.name, holding.detail)
            case "throttle":
                return restore_throttle(holding.name, holding.detail)
            case "image":
                return _image(Path(holding.name))
            case "journal_device":
                return _journal_device(holding, commands)
            case "directory":
                return _directory(Path(holding.name), directory)
            case "log_directory":
                return _log_directory(Path(holding.name))
            case _:
                return Undone(f"{holding.name}: this version does not know holdings of kind {holding.kind!r}")
    except (BedplateError, OSError, ValueError) as error:
        return Undone(f"{holding.kind} {holding.name} cannot be given back: {error}", settled=False)


def end_server(holding: Holding) -> int:
    """End every process of a PostgreSQL server; how many there were.

    SIGQUIT lets the postmaster end its children without a checkpoint, which nobody needs any more.
    """
    pids = process.servers_of(Path(holding.name), Path(holding.detail))
    if pids:
        process.end_process(pids[0], gently=signal.SIGQUIT)
        for pid in process.servers_of(Path(holding.name), Path(holding.detail)):
            process.end_process(pid)
        process.wait_until_gone(pids, deadline_s=_PATIENCE_S)
    return len(pids)


def restore_file(path: Path, text: str) -> Undone:
    """Write `text` to a file of /sys or /proc/sys unless it stands there already."""
    try:
        found = path.read_text().strip()
    except FileNotFoundError:
        return _NOTHING_LEFT  # its device or group is gone, and the setting with it
    if text in {found, selected(found)}:
        return _NOTHING_LEFT
    try:
        path.write_text(text)
    except OSError as error:
        return Undone(f"{path} cannot be set back to {text!r}: {error.strerror}", settled=False)
    return Undone(None, f"{path} set back to {text!r}")


def restore_write_cache(name: str, original: str) -> Undone:
    """Give a device its write-cache switch back; a loop device that is nobody's gets flushes again.

    The switch survives detach and attach: left off, the loop's next user would have no barriers.
    """
    return restore_file(SYS_BLOCK / name / "queue" / "write_cache", original)


def restore_throttle(name: str, line: str) -> Undone:
    """Give one device its limit in a file of the root group back; `name` is `<file> <major:minor>`.

    The file lists many devices, and a written line changes only its own.
    """
    file, _, device = name.rpartition(" ")
    path = Path(file)
    try:
        found = [text for text in path.read_text().splitlines() if text.startswith(f"{device} ")]
        if found == [line] or (not found and line == f"{device} 0"):
            return _NOTHING_LEFT
        path.write_text(line)
    except FileNotFoundError:
        return _NOTHING_LEFT
    except OSError as error:
        return Undone(f"{path} does not take {line!r}: {error.strerror}", settled=False)
    return Undone(None, f"limit of {device} in {path} lifted")


def empty_group(path: Path) -> None:
    """Kill whatever is inside a control group, until nothing is."""

    def empty() -> bool:
        for pid in _members(path):
            process.end_process(pid, grace_s=1.0)
        return not _members(path)

    if not wait_until(empty, deadline_s=_PATIENCE_S):
        raise DeviceInUse(f"{path} still holds process {_members(path)} after SIGKILL")


def remove_group(path: Path) -> None:
    """Kill whatever is inside a control group and its children, then remove them."""
    for folder, _, _ in os.walk(path, topdown=False):
        empty_group(Path(folder))
        # A member that was killed leaves the group a moment after it is gone.
        if not wait_until(partial(_rmdir, folder), deadline_s=_PATIENCE_S):
            raise DeviceInUse(f"control group {folder} stays busy although nothing is inside")


def _rmdir(folder: str) -> bool:
    try:
        Path(folder).rmdir()
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


def strangers(path: Path, status: os.stat_result) -> str:
    """Why a plain file with an image's name may be somebody else's; empty if it is as one of bedplate's own."""
    if status.st_nlink > 1:
        return (
            f"{path} has {status.st_nlink} names, and what is written to one is in all of them; move it away"
        )
    if path.parent.stat().st_mode & stat.S_IWOTH and status.st_uid not in {0, os.geteuid()}:
        return f"{path} is in a folder of everybody's and belongs to uid {status.st_uid}; move it away"
    return ""


def mounts_inside(directory: Path) -> tuple[str, ...]:
    """A sentence for each mount that keeps a directory from being removed."""
    inside = f"{os.path.realpath(directory)}/"
    return tuple(
        f"{directory} stays: {entry.target} is still mounted"
        for entry in read_mount_table()
        if entry.target.startswith(inside)
    )


def remove_tree(directory: Path) -> tuple[str, ...]:
    """Remove a ledger's own directory; never across a mount, never through a link. The problems."""
    if mounted := mounts_inside(directory):
        return mounted
    problems = []
    for folder, folders, files in os.walk(directory, topdown=False):
        for name in (*files, *folders):
            path = Path(folder, name)
            try:
                if path.is_dir() and not path.is_symlink():
                    path.rmdir()
                else:
                    path.unlink()
            except FileNotFoundError:
                continue
            except OSError as error:
                problems.append(f"{path} cannot be removed: {error.strerror}")
    with contextlib.suppress(FileNotFoundError):
        try:
            directory.rmdir()
        except OSError as error:
            problems.append(f"{directory} cannot be removed: {error.strerror}")
    return tuple(problems)


def _mount(holding: Holding, commands: Commands, directory: Path, sweep: Callable[[], None]) -> Undone:
    target = Path(holding.name)
    count = 0
    while (entry := find_mount(target)) is not None:
        ours = entry.target.startswith(f"{os.path.realpath(directory)}/")
        if not ours and holding.detail not in {entry.source, os.path.realpath(entry.source)}:
            return Undone(
                f"{entry.source} is mounted on {target}, where bedplate had {holding.detail or 'another'}; left alone"
            )
        try:
            unmount(target, commands=commands, deadline_s=1.0)
        except DeviceInUse:
            sweep()
            try:
                unmount(target, commands=commands, deadline_s=_PATIENCE_S)
            except DeviceInUse:
                return _unmount_lazily(target, commands)
        count += 1
    # A pool of ZFS stays imported, and holds its device, after its file system is unmounted.
    if holding.detail and release_pool(pool_name(holding.detail), commands):
        count += 1
    return Undone(None, f"{target} unmounted") if count else _NOTHING_LEFT


def _unmount_lazily(target: Path, commands: Commands) -> Undone:
    who = "; ".join(holders(target)) or "nobody that can be seen holds it"
    commands.run(["umount", "--lazy", str(target)])
    return Undone(
        f"{target} was busy and could only be detached lazily: {who}. Its device is free when they have ended"
    )


def _loop(image: Path, commands: Commands, detail: str = "") -> Undone:
    """`detail` is the device with the numbers of its file: those are known where the image has another place by now."""

    def attached() -> tuple[str, ...]:
        return attached_to(image) or moved_since(image, detail)

    devices, is_moved = attached(), not attached_to(image)
    for name in devices:
        release_pool(pool_name(f"/dev/{name}"), commands)
        commands.run(["losetup", "--detach", f"/dev/{name}"], check=False)
    if not _is_detached(attached):
        left = (attached() or devices)[0]
        who = "; ".join(device_holders(f"/dev/{left}")) or "nobody that can be seen"
        return Undone(
            f"/dev/{left} over {image} cannot be detached: {who} holds it; it goes when that ends",
            settled=False,
        )
    moved = f"; its folder was moved since: remove {image.name} there" if is_moved else ""
    told = f"/dev/{', /dev/'.join(devices)} detached from {image}{moved}"
    return Undone(None, told) if devices else _NOTHING_LEFT


def _loops_below(folder: Path, commands: Commands) -> Undone:
    """Those that a program of ours attached to files of a folder, whose names it drew by itself."""
    undone = [_loop(Path(file), commands) for file in files_below(folder)]
    problems = [each.problem for each in undone if each.problem is not None]
    done = [each.done for each in undone if each.done is not None]
    return Undone("; ".join(problems) or None, "; ".join(done) or None, settled=not problems)


def _is_detached(attached: Callable[[], Sequence[str]]) -> bool:
    """Once it is: the kernel detaches at the last close, and that of an unmount may have to wait for a slow disk."""
    if wait_until(lambda: not attached(), deadline_s=_PATIENCE_S):
        return True

    def has_gone_or_is_held() -> bool:
        left = attached()
        return not left or bool(device_holders(f"/dev/{left[0]}"))

    wait_until(has_gone_or_is_held, deadline_s=_UNMOUNT_PATIENCE_S)
    return not attached()


def _server(holding: Holding) -> Undone:
    count = end_server(holding)
    left = process.servers_of(Path(holding.name), Path(holding.detail))
    if left:
        return Undone(
            f"server process {', '.join(map(str, left))} on {holding.name} survives SIGKILL "
            f"(it waits for its device)",
            settled=False,
        )
    return Undone(None, f"server on {holding.name} ended") if count else _NOTHING_LEFT


def _shared_memory(holding: Holding) -> Undone:
    uid, _, since_s = holding.detail.partition(" ")
    removed = remove_orphaned_segments(int(uid), float(since_s))
    return Undone(None, f"{', '.join(map(str, removed))} removed") if removed else _NOTHING_LEFT


def _process(holding: Holding) -> Undone:
    pid = int(holding.name)
    if not process.is_running(pid, holding.detail):
        return _NOTHING_LEFT
    if not process.end_process(pid, gently=signal.SIGTERM):
        return Undone(f"process {pid} survives SIGKILL (it waits for its device)", settled=False)
    return Undone(None, f"process {pid} ended")


def _cgroup(path: Path) -> Undone:
    if not path.is_dir():
        return _NOTHING_LEFT
    if not (path / "cgroup.procs").is_file():
        return Undone(f"{path} is not a control group; left alone")
    remove_group(path)
    return Undone(None, f"control group {path} removed")


def _members(path: Path) -> tuple[int, ...]:
    try:
        return tuple(int(line) for line in (path / "cgroup.procs").read_text().split())
    except OSError:
        return ()


def _image(path: Path) -> Undone:
    if path.parent.is_symlink():
        return Undone(f"{path.parent} is a link by now, and nothing is deleted through it")
    try:
        status = path.lstat()
    except FileNotFoundError:
        return _NOTHING_LEFT
    if not stat.S_ISREG(status.st_mode):
        return Undone(f"{path} is not a plain file; left alone")
    if strange := strangers(path, status):
        return Undone(f"{strange}; left alone")
    if devices := attached_to(path):
        return Undone(f"{path} stays: it is attached to /dev/{devices[0]}", settled=False)
    path.unlink()
    return Undone(None, f"{path} deleted")


def _journal_device(holding: Holding, commands: Commands) -> Undone:
    """A journal without its file system is nothing, but would look like a stranger's to the next start."""
    node = DeviceNode.find(holding.name, BlockTree()) if holding.detail else None
    if node is None:
        return _NOTHING_LEFT
    with node:
        if fingerprint(node.path, commands) != holding.detail:
            return _NOTHING_LEFT  # somebody has used the device since, or the name is another's now
        if (problem := node.claim(patience_s=_PATIENCE_S)) is not None:
            return Undone(f"the journal on {holding.name} cannot be wiped: {problem}", settled=False)
        # Looked at again: nobody can write to it by a mount from here on.
        if fingerprint(node.path, commands) == holding.detail:
            erase_signatures(node.path, commands, claimed=True)
    return Undone(None, f"the journal on {holding.name} wiped")


def _directory(path: Path, ledger_directory: Path) -> Undone:
    if path.is_relative_to(ledger_directory):
        return _NOTHING_LEFT  # goes with the ledger
    try:
        path.rmdir()
    except FileNotFoundError:
        return _NOTHING_LEFT
    except OSError as error:
        return Undone(f"{path} stays: {error.strerror}")
    return Undone(None, f"{path} removed")


def _log_directory(path: Path) -> Undone:
    """Clients' logs in memory: the one thing outside the ledger's directory that goes with its content."""
    if not path.is_dir() or path.is_symlink():
        return _NOTHING_LEFT
    if path.lstat().st_uid != os.geteuid():
        # Made where everybody may, before ours: what is removed below a stranger's folder, the stranger decides.
        return Undone(f"{path} belongs to uid {path.lstat().st_uid}; left alone")
    if not path.name.startswith("bedplate-"):
        return Undone(f"{path} is not named as bedplate names its log directories; left alone")
    problems = remove_tree(path)
    return Undone("; ".join(problems)) if problems else Undone(None, f"{path} removed")


def selected(text: str) -> str:
    """The bracketed word of `[none] mq-deadline`, else the text."""
    if "[" in text and "]" in text:
        return text.partition("[")[2].partition("]")[0]
    return text


_FILE = "ledger.jsonl"

# Another start may be giving it back: it ends servers and waits for an unmount.
_LOCK_PATIENCE_S = 120.0

_SWEEPS_MAX = 20


@dataclass(frozen=True)
class Holding:
    """One thing that was taken of the machine; its `kind` says what `name` and `detail` are.

    mount (target; source), loop (image; device and the numbers of its file, once known), loops (folder of images), server (data directory; prefix),
    shared_memory (a server's data directory; its account and when it was started), process (pid; start time), cgroup (its directory), tunable (file; text that restores it),
    throttle (file and device number; line that restores it), write_cache (device name; original),
    image (file to delete), directory (to remove when empty), journal_device (its stable name; what
    blkid found on it after mkfs).
    """

    kind: str
    name: str
    detail: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What a later note or settlement of the same thing is known by."""
        return (self.kind, self.name)


@dataclass(frozen=True)
class ReleaseReport:
    """What was given back, what could not be, and the ledgers whose owner is still at work."""

    released: tuple[str, ...]
    problems: tuple[str, ...]
    alive: tuple[str, ...]


@dataclass(frozen=True)
class _Owner:
    pid: int
    start_time: str
    boot_id: str

    @property
    def same_boot(self) -> bool:
        return self.boot_id == process.boot_id()

    @property
    def alive(self) -> bool:
        return self.same_boot and process.is_running(self.pid, self.start_time)


class Holdings(Protocol):
    """What a taker needs of a ledger."""

    def note(self, holding: Holding) -> None:
        """Write down what will be taken."""

    def settled(self, holding: Holding) -> None:
        """Write down that it was given back."""


class KnownHoldings(Holdings, Protocol):
    """The same, and what is held can be asked."""

    def holdings(self) -> tuple[Holding, ...]:
        """What is held, in the order of taking."""


class NoLedger:
    """What is asked of a ledger where none is needed: in a namespace whose end gives all back, or for callers who do it themselves."""

    def note(self, holding: Holding) -> None:
        """Nobody else gives it back."""

    def settled(self, holding: Holding) -> None:
        """As above."""

    def holdings(self) -> tuple[Holding, ...]:
        """Nothing that anybody has to give back."""
        return ()


class Ledger:
    """The ledger of this process. `directory` is <state directory>/<owner>/."""

    def __init__(self, directory: Path, file: int, owner: _Owner, mapped: mmap.mmap | None = None) -> None:
        self.directory = directory
        self._file = file
        self._mapped = mapped
        self._owner = owner
        self._held: dict[tuple[str, str], Holding] = {}
        self._mark_before = os.environ.get(MARK)

    @classmethod
    def open(cls, state_directory: Path, name: str) -> Ledger:
        """A new ledger. `name` is a plain file name.

        DeviceInUse if one of that name is there: its owner is at work, or left something behind.
        """
        if not name or "/" in name or name.startswith(".") or "\0" in name:
            raise ValueError(f"the owner of a ledger is a plain file name, not {name!r}")
        _own_state_directory(state_directory)
        directory = state_directory / name
        pid = os.getpid()
        head = _Owner(pid, process.start_time(pid) or "", process.boot_id())
        hidden = state_directory / f".{name}.{pid}"
        text = json.dumps({"pid": head.pid, "start_time": head.start_time, "boot_id": head.boot_id})
        file = -1
        try:
            hidden.mkdir(mode=0o755)
            file = os.open(hidden / _FILE, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX)
            _write_whole(file, text.encode() + b"\n")
            mapped = mmap.mmap(file, 0, mmap.MAP_PRIVATE, mmap.PROT_READ)
            mapped.madvise(mmap.MADV_DONTFORK)
        except OSError as error:
            if file >= 0:
                os.close(file)
            remove_tree(hidden)
            raise _cannot_write(hidden, error) from error
        try:
            hidden.rename(directory)
        except OSError:
            mapped.close()
            os.close(file)
            remove_tree(hidden)
            raise DeviceInUse(
                f"{directory} is there already: {_owner_state(directory)}; `bedplate release` frees what was left"
            ) from None
        ledger = cls(directory, file, head, mapped)
        os.environ[MARK] = str(directory)
        return ledger

    def note(self, holding: Holding) -> None:
        """Write down what is about to be taken; a second note of it replaces the detail.

        MachineUnfit where it cannot be written: then it must not be taken.
        """
        try:
            self._write("note", holding)
        except OSError as error:
            raise _cannot_write(self.directory / _FILE, error) from error
        self._held[holding.key] = holding

    def settled(self, holding: Holding) -> None:
        """Write down that it was given back; the detail does not matter."""
        if holding.key in self._held:
            # Unwritten, it is looked for again by a later release, which finds nothing left of it.
            with contextlib.suppress(OSError):
                self._write("settled", holding)
            del self._held[holding.key]

    def holdings(self) -> tuple[Holding, ...]:
        """What is held, in the order of taking."""
        return tuple(self._held.values())

    def release(self, commands: Commands) -> tuple[str, ...]:
        """Give back everything still held, last taken first; the problems as sentences.

        What could not be given back stays in the ledger, for `release_orphans`.
        """
        _, problems = _give_back(self, commands, same_boot=True, orphan=False)
        return tuple(problem.text for problem in problems)

    def close(self) -> None:
        """End the ledger; its directory goes, unless something is still held."""
        if self._file < 0:
            return
        if self._mapped is not None:
            self._mapped.close()
        os.close(self._file)
        self._file = -1
        if self._mark_before is None:
            os.environ.pop(MARK, None)
        else:
            os.environ[MARK] = self._mark_before
        if not self._held:
            _remove(self.directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, event: str, holding: Holding) -> None:
        line = json.dumps([event, holding.kind, holding.name, holding.detail])
        _write_whole(self._file, line.encode() + b"\n")


def release_orphans(state_directory: Path, commands: Commands) -> ReleaseReport:
    """Give back what every dead owner left. Safe to repeat, and beside owners that are at work."""
    if not state_directory.is_dir():
        return ReleaseReport((), (), ())
    _own_state_directory(state_directory)
    released, problems = _release_each(state_directory, commands)
    if problems and released:
        # What two ledgers hold is free only once both have let go of it: judged after all of them.
        final = [problem.text for problem in problems if problem.settled]
        more, problems = _release_each(state_directory, commands)
        released += more
        problems = [*(_Problem(text, settled=True) for text in final), *problems]
    _remove_unborn(state_directory)
    alive = tuple(f"{path.name}: {_owner_state(path)}" for path in _ledgers(state_directory) if _alive(path))
    return ReleaseReport(tuple(released), tuple(problem.text for problem in problems), alive)


@dataclass(frozen=True)
class _Problem:
    """Why something could not be given back; `settled` where no later release will try again."""

    text: str
    settled: bool


def _release_each(state_directory: Path, commands: Commands) -> tuple[list[str], list[_Problem]]:
    """One attempt at every dead owner's ledger."""
    released: list[str] = []
    problems: list[_Problem] = []
    seen: set[Path] = set()
    while True:
        # A released ledger may have ended the owner of another one, which is then an orphan too.
        orphans = [path for path in _ledgers(state_directory) if path not in seen and not _alive(path)]
        if not orphans:
            return released, problems
        for directory in orphans:
            seen.add(directory)
            with _claimed(directory) as ledger:
                if ledger is None:
                    if directory.exists():
                        text = f"{directory} is being given back by another process"
                        problems.append(_Problem(text, settled=False))
                    continue
                same_boot = ledger._owner.same_boot  # noqa: SLF001 -- this module's own class
                done, failed = _give_back(ledger, commands, same_boot=same_boot, orphan=True)
                released += done
                problems += failed
                if not ledger.holdings():
                    problems += [_Problem(text, settled=False) for text in _remove(directory)]


def _give_back(
    ledger: Ledger, commands: Commands, *, same_boot: bool, orphan: bool
) -> tuple[list[str], list[_Problem]]:
    released: list[str] = []
    problems: list[_Problem] = []
    servers = tuple(item for item in ledger.holdings() if item.kind == "server")
    groups = tuple(Path(item.name) for item in ledger.holdings() if item.kind == "cgroup")

    def sweep() -> None:
        """End what the owner's tools and servers still do: they would hold the mount."""
        released.extend(f"server on {server.name} ended" for server in servers if end_server(server))
        for group in groups:
            empty_group(group)
        # Again and again, since one may have forked another meanwhile.
        for _ in range(_SWEEPS_MAX):
            pids = process.marked_with(MARK, str(ledger.directory))
            if not pids:
                break
            for pid in pids:
                # Gently: one of them may be a visit that gives its own things back.
                process.end_process(pid, gently=signal.SIGTERM)
                released.append(f"process {pid} ended")

    if same_boot and orphan:
        sweep()
    for holding in reversed(ledger.holdings()):
        if not same_boot and holding.kind not in SURVIVE_A_REBOOT:
            outcome = Undone(None)
        else:
            outcome = give_back(holding, commands, directory=ledger.directory, sweep=sweep)
        if outcome.problem is not None:
            problems.append(_Problem(outcome.problem, settled=outcome.settled))
        if outcome.done is not None:
            released.append(outcome.done)
        if outcome.settled:
            ledger.settled(holding)
    return released, problems


@contextlib.contextmanager
def _claimed(directory: Path) -> Iterator[Ledger | None]:
    """A dead owner's ledger, read from its file; None if someone else is giving it back right now."""
    try:
        file = os.open(directory / _FILE, os.O_RDWR | os.O_APPEND)
    except FileNotFoundError:
        yield None
        return
    try:
        # flock(2) can wait, but not for so long and no longer.
        if not wait_until(lambda: take_lock(file), deadline_s=_LOCK_PATIENCE_S):
            yield None
            return
        owner = _read_owner(directory)
        if owner is None:
            yield None
            return
        ledger = Ledger(directory, file, owner)
        text = os.pread(file, os.fstat(file).st_size, 0)
        if not text.endswith(b"\n"):
            # A full disk takes no line, and no half of one then.
            with contextlib.suppress(OSError):
                os.write(file, b"\n")
        ledger._held = replay(text)  # noqa: SLF001 -- this module's own class
        yield ledger
    finally:
        os.close(file)


def _write_whole(file: int, line: bytes) -> None:
    """One line in one write; OSError where it does not fit, and then nothing of it is there.

    A disk that fills up takes a part of it without a complaint, and the next line would be added to that.
    """
    size_bytes = os.fstat(file).st_size
    if os.write(file, line) == len(line):
        return
    os.ftruncate(file, size_bytes)
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def replay(data: bytes) -> dict[tuple[str, str], Holding]:
    """What is held after all lines of a ledger but its first; a line that is none is passed over."""
    held: dict[tuple[str, str], Holding] = {}
    for line in data.split(b"\n")[1:]:
        try:
            event, kind, name, detail = json.loads(line)
        except (ValueError, TypeError, RecursionError):
            continue
        holding = Holding(str(kind), str(name), str(detail))
        if event == "note":
            held[holding.key] = holding
        else:
            held.pop(holding.key, None)
    return held


def _cannot_write(path: Path, error: OSError) -> MachineUnfit:
    why = error.strerror or str(error)
    return MachineUnfit(
        f"{error.filename or path} cannot be written: {why}; free some room in the state directory, or name another "
        "with the variable BEDPLATE_STATE"
    )


def _own_state_directory(path: Path) -> None:
    """Whoever may write here could make root delete any file: so nobody else may."""
    try:
        path.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(path, error) from error
    status = path.stat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise RequirementMissing(
            f"{path} must belong to uid {os.geteuid()} and be writable by nobody else "
            f"(it belongs to {status.st_uid}, mode {status.st_mode & 0o7777:o}); "
            f"choose another state directory, or chown and chmod 755 it"
        )


def _ledgers(state_directory: Path) -> tuple[Path, ...]:
    return tuple(
        path
        for path in sorted(state_directory.iterdir())
        if not path.name.startswith(".") and (path / _FILE).is_file()
    )


def _read_owner(directory: Path) -> _Owner | None:
    try:
        with (directory / _FILE).open(encoding="utf-8", errors="replace") as file:
            head = json.loads(file.readline())
        return _Owner(int(head["pid"]), str(head["start_time"]), str(head["boot_id"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        # Not a head of ours (a damaged file after a power cut): nobody living wrote it.
        return _Owner(0, "", "")


def _alive(directory: Path) -> bool:
    owner = _read_owner(directory)
    return owner is not None and owner.alive


def _owner_state(directory: Path) -> str:
    owner = _read_owner(directory)
    if owner is None:
        return "it has no ledger"
    return f"process {owner.pid} {'is at work' if owner.alive else 'is gone'}"


def _remove(directory: Path) -> tuple[str, ...]:
    """Remove a ledger that holds nothing any more; the problems.

    By its name first: what a kill leaves of it is then known for one that is no ledger, as one that was never born.
    """
    hidden = directory.with_name(f".{directory.name}.{os.getpid()}")
    if problems := mounts_inside(directory):
        return problems
    try:
        directory.rename(hidden)
    except FileNotFoundError:
        return ()
    except OSError:
        hidden = directory
    return remove_tree(hidden)


def _remove_unborn(state_directory: Path) -> None:
    """Directories of ledgers whose owner died before the first rename, or after the last."""
    for path in state_directory.glob(".*.*"):
        pid = path.name.rpartition(".")[2]
        if path.is_dir() and pid.isdecimal() and process.start_time(int(pid)) is None:
            remove_tree(path)
