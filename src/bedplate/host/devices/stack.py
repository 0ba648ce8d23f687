"""What a block device is made of, down to the disks, and what each disk says of its cache. Read without root, from sysfs alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.host.devices.block_tree import BlockTree

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    whole = tree.whole(name)
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


def _kind(name: str, whole: str, file: str | None, tree: BlockTree) -> str:
    if whole != name:
        return f"partition of {whole}"
    if file is not None:
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
