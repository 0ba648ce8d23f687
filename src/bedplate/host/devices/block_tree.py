"""What the kernel says about block devices: who is part of whom, and who uses what."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.host.devices.loop_table import LoopFile, all_loops, backing_file, loop_file
from bedplate.host.files import text_of
from bedplate.host.mount import MountEntry, mount_namespaces, parse_mount_table
from bedplate.units import KERNEL_SECTOR_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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

    def whole(self, name: str) -> str:
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
            if self.whole(name) != name:
                waiting.append(self.whole(name))
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
                found = self.text(self.whole(name), "queue/physical_block_size")
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
        said += [f"{node} is swap; `swapoff {node}` frees it" for swap in self._swaps() if swap == name]
        said += [
            f"{node} is part of {self.node(holder)}; take that apart first" for holder in self.holders(name)
        ]
        return tuple(said)

    def loops_beside(self, name: str) -> tuple[str, ...]:
        """Loop devices over the same bytes: over this very device, or over the file that it is itself a loop over.

        The kernel lets each of them be claimed and mounted as if the others were not there.
        """
        own, own_name = self._loop_file(name), backing_file(name, self.sys / "block")

        def shares(other: str, file: str) -> bool:
            # Attached in another mount namespace, it goes by a name that means nothing here, or something else.
            found = self._loop_file(other)
            if found is not None and (own is not None or own_name is None):
                return (own is not None and own.is_same(found)) or self._at_number(found.block_device) == name
            return self.name_at(file) == name or (own_name is not None and _is_same_file(file, own_name))

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
        while (below := self.below_loop(self.whole(name))) is not None and below not in seen:
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
            below = self.below_loop(self.whole(at))
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
        whole = self.whole(name)
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
                    where = f"{entry.target} in the mount namespace of {namespace.who}"
                    return (f"{self.node(name)} is mounted on {where}",)
        return ()

    def _loop_file(self, name: str) -> LoopFile | None:
        """By the running kernel, if this is its /sys."""
        return loop_file(name) if self.sys == _SYS else None

    def _at_number(self, number: int) -> str | None:
        return self.name_of(f"{os.major(number)}:{os.minor(number)}") if number else None

    def _folder(self, name: str) -> Path:
        return self.sys / "class/block" / name

    def text(self, name: str, file: str) -> str:
        """What stands in a file of the device's folder; empty where there is none, or it may not be read."""
        return text_of(self._folder(name) / file)

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

    def _swaps(self) -> tuple[str | None, ...]:
        return tuple(map(self.name_at, self._swap_paths()))

    def _swap_paths(self) -> tuple[str, ...]:
        try:
            lines = (self.proc / "swaps").read_text().splitlines()[1:]
        except OSError:
            return ()
        # swapon(8) escapes a blank as \040, as the mount table does.
        return tuple(line.split()[0].replace("\\040", " ") for line in lines if line.strip())


def _is_same_file(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        return Path(one).samefile(other)
    except OSError:
        return False
