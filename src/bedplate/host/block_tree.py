"""Block devices: what they are, who holds them, how one is taken for a visit and given back.

Here: nodes and their tree, holders, signatures, loop devices, the scratch and the journal device, ZFS's pools and partitions.
Not here: what is mounted on them (`host/mount.py`), how a queue is tuned (`host/tunables.py`).
May import: `model`; the standard library.
Must not import: `filesystem`, `engines`, `plan`, `study`, `workloads`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Self

from bedplate.errors import BedplateError, DeviceInUse, OutputNotUnderstood
from bedplate.host.files import text_of
from bedplate.host.mount import (
    MountEntry,
    MountNamespace,
    mount_namespaces,
    parse_mount_table,
    process_folders,
    titled,
)
from bedplate.host.process import is_for_writing, wait_until
from bedplate.model.filesystem import LABEL
from bedplate.units import KERNEL_SECTOR_BYTES, format_size

if TYPE_CHECKING:
    from bedplate.host.command import Commands

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
    def find(cls, path: Path | str, tree: BlockTree) -> DeviceNode | None:
        """Follow the name, once; None if no block device is there. Nothing is opened that is none."""
        try:
            file = os.open(path, os.O_PATH | os.O_CLOEXEC)
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

        def claim() -> bool:
            nonlocal problem
            try:
                self._claim = os.open(self._opened, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC)
            except OSError as error:
                problem = error
                return error.errno != errno.EBUSY  # another error will not go away
            problem = None
            return True

        # A prober may have it open for a moment after a good unmount.
        wait_until(claim, deadline_s=patience_s)
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


SYS_BLOCK = Path("/sys/block")

_DEV = Path("/dev")

# The kernel appends it when the file has no name any more.
_DELETED = " (deleted)"

# linux/loop.h: LOOP_GET_STATUS64 and the beginning of struct loop_info64, whose name is cut and ends with a zero.
_LOOP_GET_STATUS64 = 0x4C05

_INFO = struct.Struct("=QQQ32x64s112x")
_NAME_BYTES = 63


@dataclass(frozen=True)
class LoopFile:
    """What a loop device stands on, by numbers that no namespace changes.

    `device` and `inode` are those of stat(2), `block_device` is 0 for a file, `given` the name at the time, cut.
    """

    device: int
    inode: int
    block_device: int
    given: bytes

    def is_same(self, loop_file: LoopFile) -> bool:
        """Whether both are on the same bytes."""
        if self.block_device or loop_file.block_device:
            return self.block_device == loop_file.block_device
        return (self.device, self.inode) == (loop_file.device, loop_file.inode)


def backing_file(name: str, sys_block: Path | None = None) -> str | None:
    """The file behind `loop3`; None if nothing is attached."""
    try:
        text = os.fsdecode(((sys_block or SYS_BLOCK) / name / "loop/backing_file").read_bytes())
    except OSError:
        return None
    return text.removesuffix("\n").removesuffix(_DELETED)


def is_deleted(name: str) -> bool:
    """Whether the file behind `loop3` has been deleted since."""
    return text_of(SYS_BLOCK / name / "loop/backing_file").endswith(_DELETED)


def loop_file(name: str) -> LoopFile | None:
    """What `loop3` stands on; None if nothing is attached, or if the device may not be read."""
    if backing_file(name) is None:
        return None  # also a partition of one, of which the kernel would say the same
    info = bytearray(_INFO.size)
    with contextlib.suppress(OSError):
        file = os.open(_DEV / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            fcntl.ioctl(file, _LOOP_GET_STATUS64, info)
            device, inode, block_device, given = _INFO.unpack(info)
            return LoopFile(device, inode, block_device, given.partition(b"\0")[0])
        finally:
            os.close(file)
    return None


def all_loops(sys_block: Path | None = None) -> tuple[tuple[str, str], ...]:
    """Every loop device that has a file, with that file, by number."""
    names = [entry.name for entry in (sys_block or SYS_BLOCK).iterdir() if entry.name.startswith("loop")]
    files = [
        (name, backing_file(name, sys_block)) for name in sorted(names, key=lambda name: (len(name), name))
    ]
    return tuple((name, file) for name, file in files if file is not None)


def attached_to(image: Path) -> tuple[str, ...]:
    """The names of all loop devices over this file, by number.

    Where both can be asked, by the numbers of the file: a container beside this one may have a file of the same name.
    """
    wanted = os.path.realpath(image)
    try:
        status = image.stat()
    except OSError:
        status = None
    return tuple(name for name, file in all_loops() if _is_over(name, file, wanted, status))


def loop_detail(name: str) -> str:
    """The device `name` and the numbers of its file, as a ledger keeps them; the device alone where it may not be read."""
    found = loop_file(name)
    return f"/dev/{name}" if found is None else f"/dev/{name} {found.device}:{found.inode}"


def moved_since(image: Path, detail: str) -> tuple[str, ...]:
    """The loop device that was attached to `image` and stands in `detail`, if it is over the same file still; the folder may have been moved."""
    name = detail.partition(" ")[0].removeprefix("/dev/")
    found = loop_file(name) if name else None
    if found is None or found.given != os.fsencode(image)[:_NAME_BYTES] or loop_detail(name) != detail:
        return ()
    return (name,)


def files_below(folder: Path) -> tuple[str, ...]:
    """The files of a folder that a loop device is over, by the names that `attached_to` knows them by."""
    wanted = Path(os.path.realpath(folder))
    return tuple(
        dict.fromkeys(
            file
            for name, file in all_loops()
            if Path(file).is_relative_to(wanted) or _was_below(wanted, name)
        )
    )


def _was_below(folder: Path, name: str) -> bool:
    """By the name that it was attached by: that of a mount that is gone begins at its top."""
    found = loop_file(name)
    start = os.fsencode(folder) + b"/"
    return found is not None and len(start) < _NAME_BYTES and found.given.startswith(start)


def _is_over(name: str, shown_path: str, backing_file: str, status: os.stat_result | None) -> bool:
    """Whether the loop device `name`, which the kernel shows over `shown_path`, is over `backing_file`; `status` where that is there.

    A name from the top of a mount that is gone counts if it was this one when it was attached.
    """
    if not backing_file.endswith(shown_path):
        return False
    found = loop_file(name)
    if found is None:
        return shown_path == backing_file
    if status is not None and not is_deleted(name):
        block_device = status.st_rdev if stat.S_ISBLK(status.st_mode) else 0
        return found.is_same(LoopFile(status.st_dev, status.st_ino, block_device, b""))
    return shown_path == backing_file or found.given == os.fsencode(backing_file)[:_NAME_BYTES]


# Places in a line of `stat` (Documentation/block/stat.rst).
_READS, _WRITES = 0, 4

_SYS = Path("/sys")
_STACKED_LOOPS_MOST = 8


@dataclass(frozen=True)
class BlockTree:
    """The block devices as /sys, /proc and /dev show them; names are the kernel's (`sda3`, `dm-0`)."""

    sys: Path = _SYS
    proc: Path = Path("/proc")
    dev: Path = Path("/dev")

    def name_at(self, path: Path | str) -> str | None:
        """The kernel's name of the device behind a node, through links; None if it is no block device."""
        try:
            status = Path(path).stat()
        except OSError:
            return None
        if not stat.S_ISBLK(status.st_mode):
            return None
        return self._at_number(status.st_rdev)

    def name_of(self, number: str) -> str | None:
        """The kernel's name of the device with this `major:minor`; None if there is none."""
        try:
            return (self.sys / "dev/block" / number).readlink().name
        except OSError:
            return None

    def number(self, name: str) -> str:
        """`major:minor`, as control groups and mountinfo write it."""
        return self.text(name, "dev")

    def st_rdev(self, name: str) -> int:
        """The same as stat(2) has it; 0 if there is no such device."""
        major, _, minor = self.number(name).partition(":")
        return os.makedev(int(major), int(minor)) if minor else 0

    def size_bytes(self, name: str) -> int:
        """The size; 0 for a loop device without a file."""
        return int(self.text(name, "size") or 0) * KERNEL_SECTOR_BYTES

    def model(self, name: str) -> str:
        """Vendor and model of a disk, as it tells them."""
        words = (self.text(name, f"device/{word}") for word in ("vendor", "model"))
        # A virtio disk's vendor is a number.
        return " ".join(word for word in words if word and not word.startswith("0x"))

    def is_read_only(self, name: str) -> bool:
        """The kernel's own write protection of the device."""
        return self.text(name, "ro") == "1"

    def disk_of(self, name: str) -> str:
        """The disk of a partition; the device itself if it is none."""
        folder = self._folder(name)
        return folder.resolve().parent.name if (folder / "partition").exists() else name

    def node(self, name: str) -> str:
        """The node that mount(8) and the tools show: `/dev/mapper/x` for a mapped device."""
        mapped = self.text(name, "dm/name")
        return f"/dev/mapper/{mapped}" if mapped else f"/dev/{name}"

    def partitions(self, name: str) -> tuple[str, ...]:
        """The partitions of a whole device."""
        found = self._folder(name).glob("*/partition")
        return tuple(sorted(path.parent.name for path in found))

    def holders(self, name: str) -> tuple[str, ...]:
        """Devices made on top of it: mapped devices, arrays, bcache."""
        return self.listed(name, "holders")

    def slaves(self, name: str) -> tuple[str, ...]:
        """The devices that it is made of."""
        return self.listed(name, "slaves")

    def under_root(self) -> frozenset[str]:
        """Every device that the running root stands on, down to the disks."""
        return self._down_from(
            name
            for entry in self._mounts()
            if entry.target in {"/", "/boot", "/boot/efi", "/usr"}
            and (name := self._mounted_device(entry)) is not None
        )

    def under(self, *paths: Path) -> frozenset[str]:
        """Every device that these files stand on, down to the disks; none where the kernel does not tell."""
        mounts = {entry.device: self._mounted_device(entry) for entry in self._mounts()}
        numbers = []
        for path in paths:
            with contextlib.suppress(OSError):
                device = path.stat().st_dev
                numbers.append(f"{os.major(device)}:{os.minor(device)}")
        return self._down_from(name for number in numbers if (name := mounts.get(number)) is not None)

    def names(self) -> tuple[str, ...]:
        """Every device and partition that the kernel knows."""
        return tuple(sorted(path.name for path in (self.sys / "class/block").iterdir()))

    def io_counts(self) -> dict[str, int]:
        """How many reads and writes each whole device has done so far (Documentation/block/stat.rst)."""
        counts = {}
        for folder in (self.sys / "block").iterdir():
            fields = self.text(folder.name, "stat").split()
            if len(fields) > _WRITES:
                counts[folder.name] = int(fields[_READS]) + int(fields[_WRITES])
        return counts

    def _down_from(self, names: Iterable[str]) -> frozenset[str]:
        found: set[str] = set()
        waiting = [*names]
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            found.add(name)
            waiting += self.slaves(name)
            file = backing_file(name, self.sys / "block")
            under = None if file is None else self.below_loop(name) or self.device_of_file(Path(file))
            waiting += () if under is None else (under,)
            if self.disk_of(name) != name:
                waiting.append(self.disk_of(name))
        return frozenset(found)

    def sectors_at(self, path: Path) -> int | None:
        """The same of what a path leads to: a device's node, or a file on some disk."""
        name = self.name_at(path) or self.device_of_file(path)
        return None if name is None else self.sectors_under(name)

    def sectors_under(self, name: str) -> int | None:
        """Physical sectors in bytes of a device, of a loop device those of the disk under its file; None if none tells.

        The kernel stacks those of mapped devices and arrays itself. A file on a network, in memory or on an overlay has no disk here.
        """
        # A file on a loop device lies on a disk in the end, if on any.
        for _ in range(_STACKED_LOOPS_MOST):
            backing = self.text(name, "loop/backing_file")
            if not backing:
                found = self.text(self.disk_of(name), "queue/physical_block_size")
                is_disk = found.isdigit() and not name.startswith(("loop", "ram", "zram"))
                return int(found) if is_disk else None
            under = self.device_of_file(Path(backing))
            if under is None:
                return None
            name = under
        return None

    def users(self, name: str) -> tuple[str, ...]:
        """One sentence per user of this very device, its partitions left out."""
        node = self.node(name)
        said = [
            f"{node} is mounted on {entry.target}"
            for entry in self._mounts()
            if self._mounted_device(entry) == name
        ]
        said += [
            f"{node} belongs to the btrfs file system {path.parents[1].name}, which is mounted"
            for path in sorted((self.sys / "fs/btrfs").glob(f"*/devices/{name}"))
            if not said
        ]
        said += [
            f"{node} is swap; `swapoff {node}` frees it"
            for path in self._swap_paths()
            if self.name_at(path) == name
        ]
        said += [
            f"{node} is part of {self.node(holder)}; take that apart first" for holder in self.holders(name)
        ]
        return tuple(said)

    def loops_beside(self, name: str) -> tuple[str, ...]:
        """Loop devices over the same bytes: over this very device, or over the file that it is itself a loop over.

        The kernel lets each of them be claimed and mounted as if the others were not there.
        """
        own, own_name = self._loop_file(name), backing_file(name, self.sys / "block")

        def shares(loop: str, path: str) -> bool:
            # Attached in another mount namespace, it goes by a name that means nothing here, or something else.
            found = self._loop_file(loop)
            if found is not None and (own is not None or own_name is None):
                return (own is not None and own.is_same(found)) or self._at_number(found.block_device) == name
            return self.name_at(path) == name or (own_name is not None and _is_same_file(path, own_name))

        return tuple(
            other for other, file in all_loops(self.sys / "block") if other != name and shares(other, file)
        )

    def below_loop(self, name: str) -> str | None:
        """The device that this loop device is a loop over; None for a file, and for what is no loop."""
        found, file = self._loop_file(name), backing_file(name, self.sys / "block")
        if found is not None and found.block_device:
            return self._at_number(found.block_device)
        return None if file is None else self.name_at(file)

    def below_all_loops(self, name: str) -> str:
        """The device that a loop device, or a partition of one, is over in the end; of a file, the last loop device over it."""
        seen = {name}
        while (below := self.below_loop(self.disk_of(name))) is not None and below not in seen:
            seen.add(below)
            name = below
        return name

    def stands_on(self, name: str) -> Mapping[str, bool]:
        """Every device that keeps bytes of this one, down to the disks, and whether a loop leads there: it has the very same bytes then.

        Other devices keep theirs on what a mapped device or an array is made of, too.
        """
        found: dict[str, bool] = {}
        waiting = [name]
        while waiting:
            at = waiting.pop()
            below = self.below_loop(self.disk_of(at))
            steps = dict.fromkeys(self.slaves(at), False) | ({} if below is None else {below: True})
            for step, by_loop in steps.items():
                if step not in found and step != name:
                    waiting.append(step)
                found[step] = by_loop or found.get(step, False)
        found.pop(name, None)
        return found

    def is_swap_file(self, name: str) -> bool:
        """Whether this is a loop device over a file that is swap."""
        own, file = self._loop_file(name), backing_file(name, self.sys / "block")
        for path in self._swap_paths() if file is not None else ():
            with contextlib.suppress(OSError):
                status = Path(path).stat()
                numbers = (status.st_dev, status.st_ino)
                if numbers == (own.device, own.inode) if own is not None else _is_same_file(path, str(file)):
                    return True
        return False

    def users_of_queue(self, name: str) -> tuple[str, ...]:
        """One sentence per user of anything else on the same whole device, whatever mount namespace he is in.

        A visit's own namespace has let go of what others have mounted, and they need their flushes all the same.
        """
        whole = self.disk_of(name)
        others = [other for other in (whole, *self.partitions(whole)) if other != name]
        return tuple(
            sentence for other in others for sentence in self.users(other) or self.mounted_elsewhere(other)
        )

    def device_of_file(self, path: Path) -> str | None:
        """The device of the file system that holds a file, where the kernel names one."""
        try:
            number = path.stat().st_dev
        except OSError:
            return None
        named = self.name_of(f"{os.major(number)}:{os.minor(number)}")
        if named is not None:
            return named
        # Btrfs gives its files numbers of its own making; where it is mounted, a device is named.
        above = [entry for entry in self._mounts() if path.is_relative_to(entry.target)]
        nearest = max(above, key=lambda entry: len(entry.target), default=None)
        return None if nearest is None else self._mounted_device(nearest)

    def mounted_elsewhere(self, name: str) -> tuple[str, ...]:
        """One sentence where another mount namespace has it, by that of the lowest pid: copies of one mount may be in many."""
        for namespace in mount_namespaces(self.proc):
            for entry in namespace.mounts:
                if not namespace.is_own and self._mounted_device(entry) == name:
                    where = f"{entry.target} in the mount namespace of {namespace.process_names}"
                    return (f"{self.node(name)} is mounted on {where}",)
        return ()

    def _loop_file(self, name: str) -> LoopFile | None:
        """By the running kernel, if this is its /sys."""
        return loop_file(name) if self.sys == _SYS else None

    def _at_number(self, number: int) -> str | None:
        return self.name_of(f"{os.major(number)}:{os.minor(number)}") if number else None

    def _folder(self, name: str) -> Path:
        return self.sys / "class/block" / name

    def text(self, name: str, attribute: str) -> str:
        """What stands in a file of the device's folder; empty where there is none, or it may not be read."""
        return text_of(self._folder(name) / attribute)

    def listed(self, name: str, folder: str) -> tuple[str, ...]:
        """The names in a folder of the device's; none where there is no such folder."""
        try:
            return tuple(sorted(path.name for path in (self._folder(name) / folder).iterdir()))
        except OSError:
            return ()

    def _mounts(self) -> tuple[MountEntry, ...]:
        return parse_mount_table(os.fsdecode((self.proc / "self/mountinfo").read_bytes()))

    def _mounted_device(self, entry: MountEntry) -> str | None:
        """Some types (btrfs) show a number of their own making; then the source names the device."""
        by_number = self.name_of(entry.device)
        if by_number is not None:
            return by_number
        return self.name_at(entry.source) if entry.source.startswith("/") else None

    def _swap_paths(self) -> tuple[str, ...]:
        try:
            lines = (self.proc / "swaps").read_text().splitlines()[1:]
        except OSError:
            return ()
        # swapon(8) escapes a blank as \040, as the mount table does.
        return tuple(line.split()[0].replace("\\040", " ") for line in lines if line.strip())


def _is_same_file(first: str, second: str) -> bool:
    if first == second:
        return True
    try:
        return Path(first).samefile(second)
    except OSError:
        return False


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
        found.append(
            f"{namespace.process_names}: {path} is mounted on {entry.target} in another mount namespace"
        )
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


# What libblkid does not call a member although it is a part of something, or may be.
_MEMBERS = frozenset(
    {
        "DM_snapshot_cow",
        "bcache",
        "ceph_bluestore",
        "drbd",
        "drbdproxy_datalog",
        "mpool",
        "scoutfs_data",
        "scoutfs_meta",
        "stratis",
        "vdo",
    }
)

_POOL_MEMBER = "zfs_member"

# Where a file system that may span devices says how many they are: the magic, its place, the count, its place.
_COUNTS = {
    "btrfs": (b"_BHRfS_M", 65536 + 64, "<Q", 65536 + 136),
    "bcachefs": (bytes.fromhex("c68573f6"), 4096 + 24, "<B", 4096 + 123),
}

# A Btrfs that others are grown from (btrfstune -S) is a part of each of them.
_BTRFS_FLAGS, _BTRFS_SEEDING = 65536 + 56, 1 << 32


@dataclass(frozen=True)
class Signature:
    """One signature: `usage` is libblkid's class of it (`filesystem`, `raid`, `crypto`, `other`)."""

    type: str
    usage: str
    label: str
    uuid: str
    spans: bool = False

    @property
    def is_own(self) -> bool:
        """True for a file system, or an external journal of ext3 or ext4, that bedplate made."""
        return not self.spans and (self.usage == "filesystem" or self.type == "jbd") and self.label == LABEL

    @property
    def is_member(self) -> bool:
        """True if the device is part of an array, a volume group or a pool, even a stopped one.

        A file system over several devices is such a pool; ZFS of bedplate's own stands on one.
        """
        if self.type == _POOL_MEMBER:
            return self.label != LABEL
        return self.spans or self.usage == "raid" or self.type in _MEMBERS

    @property
    def is_encrypted(self) -> bool:
        """True for an encrypted volume, of whose content nobody can say anything."""
        return self.usage == "crypto"

    def __str__(self) -> str:
        label = f" labelled {self.label!r}" if self.label else ""
        return f"{self.type or 'unknown'}{label}"


def read_signatures(device_path: str, commands: Commands) -> tuple[Signature, ...]:
    """Every signature on the device, however many lie over each other; nothing is written."""
    argv = ["wipefs", "--no-act", "--json", "--output", "TYPE,USAGE,LABEL,UUID", device_path]
    text = commands.run(argv).stdout
    if not text.strip():
        return ()
    try:
        found = [
            Signature(type_ or "", usage or "", label or "", uuid or "")
            for entry in json.loads(text)["signatures"]
            for type_, usage, label, uuid in [map(entry.get, ("type", "usage", "label", "uuid"))]
        ]
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise OutputNotUnderstood("wipefs --json", expected="a list of signatures", found=text) from error
    found = [
        replace(entry, spans=_spans(device_path, entry.type)) if entry.type in _COUNTS else entry
        for entry in found
    ]
    # The boot sector of NTFS ends as a partition table does, and leaves no room for one.
    if any(signature.type == "ntfs" and signature.is_own for signature in found):
        found = [signature for signature in found if signature.type != "dos"]
    # A GUID partition table has two copies and a protective table: one is enough to say.
    return tuple(dict.fromkeys(found))


def _spans(device_path: str, kind: str) -> bool:
    """Whether a file system stands on more devices than this one; True where it cannot be read."""
    magic, magic_at, layout, count_at = _COUNTS[kind]
    try:
        file = os.open(device_path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        if os.pread(file, len(magic), magic_at) != magic:
            return True  # a copy of the superblock is there without the first one: damaged, and not ours
        (count,) = struct.unpack(layout, os.pread(file, struct.calcsize(layout), count_at))
        if kind == "btrfs":
            (flags,) = struct.unpack("<Q", os.pread(file, 8, _BTRFS_FLAGS))
            return bool(count != 1 or flags & _BTRFS_SEEDING)
        return bool(count != 1)
    except (OSError, struct.error):
        return True
    finally:
        os.close(file)


def fingerprint(device_path: str, commands: Commands) -> str:
    """Everything that blkid(8) finds on the device, UUIDs included; empty where it finds nothing."""
    done = commands.run(["blkid", "--probe", "--output", "export", device_path], check=False)
    lines = sorted(line for line in done.stdout.splitlines() if not line.startswith("DEVNAME="))
    return " ".join(lines)


def erase_signatures(
    device_path: str, commands: Commands, *, claimed: bool = False, deadline_s: float = _PATIENCE_S
) -> None:
    """Erase every signature. wipefs may find a device busy a moment after a good unmount: tried again.

    `claimed`: the caller holds the device exclusively itself, and so wipefs cannot.
    """
    argv = ["wipefs", "--all", "--quiet", *(("--force",) if claimed else ()), device_path]
    said: list[str] = []

    def erased() -> bool:
        done = commands.run(argv, check=False)
        said.append(done.output)
        if "busy" not in done.output.lower():
            done.require_success()
        return done.status == 0

    if not wait_until(erased, deadline_s=deadline_s, pause_s=0.05):
        raise DeviceInUse(f"{device_path} stays busy: {said[-1]}")


# Of the superblock of ext2, ext3 and ext4, from the start of the device (ext4's ext4.h, `struct ext4_super_block`).
_SUPERBLOCK, _SUPERBLOCK_BYTES = 1024, 1024

_MOUNTED_AT, _WRITTEN_AT, _MAGIC_AT, _LAST_PLACE_AT, _PLACE_BYTES = 0x2C, 0x30, 0x38, 0x88, 64
_MAGIC = 0xEF53


@dataclass(frozen=True)
class FoundOn:
    """What is on a device or a partition: `signatures` in words, None where they cannot be read; the last use that it tells of."""

    path: str
    size_bytes: int
    signatures: tuple[str, ...] | None
    last_use: str | None

    @property
    def words(self) -> str:
        """`/dev/sdb1, 10 GiB: ext4 labelled 'data', last written 2026-11-20, last mounted on /srv`."""
        held = "not readable" if self.signatures is None else ", ".join(self.signatures) or "no signature"
        used = f", {self.last_use}" if self.last_use else ""
        return f"{self.path}, {format_size(self.size_bytes)}: {held}{used}"


@dataclass(frozen=True)
class DeviceContents:
    """A device with what is on it and its partitions."""

    model: str
    found: tuple[FoundOn, ...]


def device_contents(
    device_path: Path | str, commands: Commands, tree: BlockTree | None = None
) -> DeviceContents | None:
    """What is on a device and its partitions; None where no such device is there. To read signatures needs root."""
    tree = tree or BlockTree()
    name = tree.name_at(device_path)
    if name is None:
        return None
    found = []
    for part in (name, *tree.partitions(name)):
        path = tree.node(part)
        try:
            signatures: tuple[str, ...] | None = tuple(map(str, read_signatures(path, commands)))
        except BedplateError:
            signatures = None
        found.append(FoundOn(path, tree.size_bytes(part), signatures, last_use(path)))
    return DeviceContents(tree.model(tree.disk_of(name)), tuple(found))


def last_use(path: Path | str) -> str | None:
    """When an ext file system was last written and where it was mounted; None for others, which do not tell."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        block = os.pread(file, _SUPERBLOCK_BYTES, _SUPERBLOCK)
    except OSError:
        return None
    finally:
        os.close(file)
    if len(block) < _SUPERBLOCK_BYTES or struct.unpack_from("<H", block, _MAGIC_AT) != (_MAGIC,):
        return None
    mounted, written = (struct.unpack_from("<I", block, at)[0] for at in (_MOUNTED_AT, _WRITTEN_AT))
    said = [f"last written {_day(written)}"] if written else []
    place = block[_LAST_PLACE_AT : _LAST_PLACE_AT + _PLACE_BYTES].split(b"\0")[0]
    if mounted and place:
        shown = "".join(char if char.isprintable() else "?" for char in place.decode(errors="replace"))
        said.append(f"last mounted {_day(mounted)} on {shown}")
    return ", ".join(said) or None


def _day(seconds: int) -> str:
    with contextlib.suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    return "at an unknown time"


_WRITE_BACK = "write back"
_WRITE_THROUGH = "write through"
_MEMORY = ("ram", "zram")
_DEPTH_MOST = 16

# How device-mapper's users begin the uuid of what they make (`dmsetup info`).
_MAPPED = {"LVM": "LVM volume", "CRYPT": "encrypted volume", "mpath": "multipath device"}


class CacheKind(StrEnum):
    """What a power cut does to a disk's cache, as far as the disk says."""

    VOLATILE = "volatile"
    PROTECTED = "protected"
    UNKNOWN = "unknown"
    # All of the disk, and not the cache alone.
    MEMORY = "memory"


@dataclass(frozen=True)
class DeclaredCache:
    """The kind of cache, and why it is taken for that."""

    kind: CacheKind
    why: str


@dataclass(frozen=True)
class StackedDevice:
    """One layer: `depth` 0 is what is mounted. `file` is a loop device's, None of any other and where it cannot be seen.

    `write_cache` is the queue's word, None where there is no such file. `cache` is of disks alone.
    """

    name: str
    depth: int
    kind: str
    write_cache: str | None
    size_bytes: int
    model: str = ""
    sector_bytes: int | None = None
    file: str | None = None
    cache: DeclaredCache | None = None


def device_stack(
    name: str, tree: BlockTree | None = None, *, virtualisation: str | None = None
) -> tuple[StackedDevice, ...]:
    """The device, and all that it stands on. `virtualisation` is the hypervisor whose disks are of its making."""
    return tuple(_layers(name, tree or BlockTree(), virtualisation, 0))


def worst_cache(layers: tuple[StackedDevice, ...]) -> DeclaredCache:
    """Of several disks the one of which least is promised."""
    order = (CacheKind.PROTECTED, CacheKind.VOLATILE, CacheKind.UNKNOWN, CacheKind.MEMORY)
    caches = [layer.cache for layer in layers if layer.cache is not None]
    if not caches:
        return DeclaredCache(CacheKind.UNKNOWN, "no disk below it can be seen")
    return max(caches, key=lambda cache: order.index(cache.kind))


def gets_flushes(layers: tuple[StackedDevice, ...]) -> bool | None:
    """Whether the kernel sends a flush of what is mounted down to it; None where no queue tells.

    A queue that is write through ends every flush above it (Documentation/block/writeback_cache_control.rst). Of several stacks
    the flush has to reach each.
    """
    words: list[str] = []
    is_sought = True
    for layer in layers:
        is_sought = is_sought or layer.depth == 0
        if is_sought and layer.write_cache is not None:
            words.append(layer.write_cache)
            is_sought = False
    return all(word == _WRITE_BACK for word in words) if words else None


def _layers(name: str, tree: BlockTree, virtualisation: str | None, depth: int) -> Iterator[StackedDevice]:
    whole = tree.disk_of(name)
    file = tree.text(name, "loop/backing_file") or None
    below = list(tree.slaves(name)) if whole == name else [whole]
    if file is not None:
        under = tree.device_of_file(Path(file))
        below += [under] if under is not None and under != name else []
    is_disk = whole == name and not below and file is None
    write_cache = tree.text(whole, "queue/write_cache") or None
    yield StackedDevice(
        name=name,
        depth=depth,
        kind=_kind(name, whole, file, tree),
        write_cache=write_cache,
        size_bytes=tree.size_bytes(name),
        model=tree.model(whole) if is_disk else "",
        sector_bytes=tree.sectors_under(name) if is_disk else None,
        file=file,
        cache=_cache(whole, write_cache, tree, virtualisation) if is_disk else None,
    )
    if depth < _DEPTH_MOST:
        for each in below:
            yield from _layers(each, tree, virtualisation, depth + 1)


def _kind(name: str, disk: str, backing_file: str | None, tree: BlockTree) -> str:
    if disk != name:
        return f"partition of {disk}"
    if backing_file is not None:
        return "loop device"
    if level := tree.text(name, "md/level"):
        return f"array {level}"
    if name.startswith("dm-"):
        made_by = tree.text(name, "dm/uuid").partition("-")[0]
        return f"{_MAPPED.get(made_by, 'mapped device')} {tree.text(name, 'dm/name')}".rstrip()
    if name.startswith(_MEMORY):
        return "memory"
    if name.startswith("vd"):
        return "virtio disk"
    return "NVMe disk" if name.startswith("nvme") else "disk"


def _cache(name: str, write_cache: str | None, tree: BlockTree, virtualisation: str | None) -> DeclaredCache:
    if name.startswith(_MEMORY):
        return DeclaredCache(CacheKind.MEMORY, "it is in memory, and a power cut takes all of it")
    if write_cache is None:
        return DeclaredCache(CacheKind.UNKNOWN, "the kernel does not say how it caches")
    if name.startswith("vd") or virtualisation is not None:
        known = virtualisation is not None and not virtualisation.startswith("unknown")
        host = virtualisation if known else "a hypervisor"
        return DeclaredCache(
            CacheKind.UNKNOWN,
            f"it says {write_cache}, and {host} makes it: what lies below, and whether a flush reaches that, only the host knows",
        )
    own = next(
        (
            tree.text(name, f"device/scsi_disk/{each}/cache_type")
            for each in tree.listed(name, "device/scsi_disk")
        ),
        "",
    )
    if write_cache == _WRITE_THROUGH and own.startswith(_WRITE_BACK):
        return DeclaredCache(
            CacheKind.UNKNOWN,
            "its queue was switched to write through, and the disk itself says write back: no flush reaches it",
        )
    if write_cache == _WRITE_THROUGH:
        return DeclaredCache(
            CacheKind.PROTECTED,
            "it says write through: it has no cache that a power cut empties, or a controller's with a battery",
        )
    return DeclaredCache(
        CacheKind.VOLATILE,
        "it says write back: a cache that only a flush empties; whether capacitors protect it, nothing tells",
    )
