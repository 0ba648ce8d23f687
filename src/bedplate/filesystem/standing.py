"""What a file or a device stands on: the mounted file system with its options in force, and the devices below it.

Read from the kernel's tables alone: nothing is written, mounted or started, and an ordinary user reads the same.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bedplate.filesystem.ext import read_live_options
from bedplate.host.block_tree import BlockTree, StackedDevice, device_stack
from bedplate.host.mount import MountEntry, read_mount_table
from bedplate.model.filesystem import TRAITS

_EXT = ("ext2", "ext3", "ext4")
# However a driver shows that it sends no flushes.
_WITHOUT_BARRIERS = frozenset(
    {"nobarrier", "barrier=0", "barrier=none", "journal_flush_disabled", "fsync_mode=nobarrier"}
)
_MEMORY = ("tmpfs", "ramfs", "devtmpfs")


@dataclass(frozen=True)
class MountedPlace:
    """`options` are those in force, as far as the kernel shows them; `shown` those of them that the mount table has.

    `target` is None, and the type empty, of a device that nothing is mounted of. `flushes` says whether the file system sends a flush for an fsync, None where nothing tells. `journal` is `internal`, `external`
    or `none`, `data` the journal's mode, each None where there is none or nothing tells. `layers` are the devices, the one that is
    mounted first; a Btrfs of several devices has a stack of each.
    """

    path: str
    target: str | None
    type: str
    options: tuple[str, ...]
    shown: tuple[str, ...]
    block_bytes: int | None
    flushes: bool | None
    journal: str | None
    data: str | None
    layers: tuple[StackedDevice, ...]

    @property
    def in_memory(self) -> bool:
        """Whether the file system is the memory itself."""
        return self.type in _MEMORY


def standing_of(
    path: Path, *, virtualisation: str | None = None, tree: BlockTree | None = None
) -> MountedPlace:
    """Of a file, a directory, or the node of a block device. OSError where it is not there or may not be looked at."""
    tree = tree or BlockTree()
    device = tree.name_at(path)
    real = path.resolve(strict=True)
    mounts = read_mount_table()
    if device is None:
        above = [entry for entry in mounts if real.is_relative_to(entry.target)]
        # Of several on one place the last hides the others.
        entry = max(reversed(above), key=lambda each: len(each.target))
    else:
        here = [
            entry
            for entry in mounts
            if entry.device == tree.number(device)
            or (entry.source.startswith("/") and tree.name_at(entry.source) == device)
        ]
        if not here:
            return MountedPlace(
                str(path), None, "", (), (), None, None, None, None, _layers(device, tree, virtualisation)
            )
        entry = here[0]
    name = device or tree.device_of_file(real) or tree.name_at(entry.source)
    return _mounted_place(path, entry, name, tree, virtualisation)


def _layers(name: str | None, tree: BlockTree, virtualisation: str | None) -> tuple[StackedDevice, ...]:
    return () if name is None else device_stack(name, tree, virtualisation=virtualisation)


def _members(kind: str, name: str | None, tree: BlockTree) -> tuple[str | None, ...]:
    """The device that is mounted, and of Btrfs the others that it spreads over."""
    if kind != "btrfs" or name is None:
        return (name,)
    # fs/btrfs/sysfs.c: a link to each device.
    links = {
        each.name for one in tree.sys.glob(f"fs/btrfs/*/devices/{name}") for each in one.parent.iterdir()
    }
    return (name, *sorted(links - {name}))


def _mounted_place(
    path: Path, entry: MountEntry, name: str | None, tree: BlockTree, virtualisation: str | None
) -> MountedPlace:
    shown = tuple(dict.fromkeys((*entry.options, *entry.super_options)))
    live = read_live_options(name) if name is not None and entry.type in _EXT else None
    options = shown if live is None else tuple(dict.fromkeys((*entry.options, *live)))
    block_bytes = None
    with contextlib.suppress(OSError):
        block_bytes = os.statvfs(entry.target).f_bsize
    return MountedPlace(
        path=str(path),
        target=entry.target,
        type=entry.type,
        options=options,
        shown=shown,
        block_bytes=block_bytes,
        flushes=_flushes(entry.type, options, name),
        journal=_journal(entry.type, options, name, tree),
        data=next((word.partition("=")[2] for word in options if word.startswith("data=")), None),
        layers=tuple(
            layer
            for member in _members(entry.type, name, tree)
            for layer in _layers(member, tree, virtualisation)
        ),
    )


def _flushes(kind: str, options: Sequence[str], name: str | None) -> bool | None:
    traits = TRAITS.get(kind)
    if traits is None or name is None:
        return None
    return traits.barrier_by is not None and not _WITHOUT_BARRIERS & set(options)


def _journal(kind: str, options: Sequence[str], name: str | None, tree: BlockTree) -> str | None:
    traits = TRAITS.get(kind)
    if traits is None or name is None or not traits.journals:
        return None
    if kind not in _EXT:
        return "external" if any(word.startswith(("logdev=", "jdev=")) for word in options) else "internal"
    with contextlib.suppress(OSError):
        # Documentation/ABI/testing/sysfs-fs-ext4: the journal's thread.
        if (tree.sys / "fs/ext4" / name / "journal_task").read_text().strip() == "<none>":
            return "none"
    # jbd2 calls its statistics `sda1-8` after a file system with its journal inside, and else after the journal's device.
    statistics = tree.proc / "fs/jbd2"
    if not statistics.is_dir():
        return None
    return "internal" if any(statistics.glob(f"{name}-*")) else "external"
