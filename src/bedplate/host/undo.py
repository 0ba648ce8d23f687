"""How each kind of holding is given back.

Every undo looks first whether the thing is still there and still ours, so that it may be repeated,
and may come after someone else's hand. None of them raises: what cannot be done is a sentence.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import stat
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, DeviceInUse
from bedplate.host import process
from bedplate.host.devices.block_tree import BlockTree
from bedplate.host.devices.device_holders import device_holders
from bedplate.host.devices.device_node import DeviceNode
from bedplate.host.devices.loop_table import attached_to, files_below, moved_since
from bedplate.host.devices.signature import erase_signatures, fingerprint
from bedplate.host.devices.zpool import pool_name, release_pool
from bedplate.host.mount import find_mount, holders, read_mount_table, unmount
from bedplate.host.patience import wait_until
from bedplate.host.shared_memory import remove_orphaned_segments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bedplate.host.command import Commands
    from bedplate.host.ledger import Holding

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
    node = DeviceNode.at(holding.name, BlockTree()) if holding.detail else None
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
