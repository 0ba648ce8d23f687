"""ZFS: one pool on the device, its root dataset mounted. Read back by `zfs get`, `zpool get`, `zpool status`.

The dataset's mount point is `legacy`, so that mount(8) mounts it with the plan's words, and the pool
is exported whenever it is not mounted: a device that bedplate leaves is nobody's. `block_size` is the
recordsize. A log device takes what fsync promises, until the next transaction group has it in the pool.
It counts errors where `zpool status` shows them, and not in the kernel's log.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import OutputNotUnderstood, RequirementMissing
from bedplate.filesystem.adapter import (
    MKFS_OPTION,
    Argument,
    CheckResult,
    Filesystem,
    Mounted,
    OptionRules,
    Site,
    compared,
    fact,
    joined,
    journal_comparisons,
    number,
    refuse,
    size_or_text,
    warnings_in,
)
from bedplate.filesystem.blocks import PoolAtRest
from bedplate.host.mount import MountEntry, find_mount, mount, mount_entry
from bedplate.host.zpool import (
    MODULE,
    disk_under,
    drop_partition_over,
    imported_pools,
    is_imported,
    is_suspended,
    parse_status,
    partition_over,
    pool_name,
    release_pool,
)
from bedplate.model.filesystem import LABEL, TRAITS
from bedplate.model.levels import Scalar
from bedplate.model.visit import ReadBack
from bedplate.units import MIB

if TYPE_CHECKING:
    from bedplate.host.command import Commands

_POOL, _DATASET = "-o", "-O"
# Sectors of 4 KiB: a device that says 512 would otherwise be written in its emulated sectors.
_ASHIFT = "ashift=12"
_FEATURES = ("compression", "logbias", "sync")
# What tells zpool not to look for a device's names by udev, and not to wait for them: it looks several times at an import, for three
# seconds each where no udev runs, as in a guest (zutil_import_os.c). Only ZFS's event daemon uses such names.
_WITHOUT_UDEV = {"ZFS_VDEV_DEVID_OPT_OUT": "YES", "ZPOOL_IMPORT_UDEV_TIMEOUT_MS": "0"}

# zfsprops(7) and zpoolprops(7): what tells two pools apart.
_DATASET_FACTS = (
    *("recordsize", "compression", "checksum", "atime", "relatime", "xattr", "dnodesize", "logbias"),
    *("sync", "primarycache", "secondarycache", "redundant_metadata", "copies", "dedup", "prefetch"),
    "direct",
)
# What is shown for an asked value, where it is not the value: since 2.3 `on` is what `sa` was before.
_SHOWN = {("xattr", "sa"): "on"}
_POOL_FACTS = ("ashift", "autotrim", "size", "failmode")
_MODULE_FACTS = ("zfs_txg_timeout", "zfs_nocacheflush", "zfs_arc_max", "zil_slog_bulk")

_RULES = OptionRules(
    hidden={"nodevices": ("dev",), "devices": ("nodev",)},
    # Of mount.zfs(8), which is not always there.
    unseen=frozenset({"zfsutil"}),
)


class Zfs(Filesystem):
    """One pool with its root dataset. What else there is than mount options are properties."""

    traits = TRAITS["zfs"]
    # zpool-create(8) refuses devices below 64 MiB.
    probe_bytes = 256 * MIB
    package = "zfsutils-linux"
    tools = (("zpool", "makes, imports and checks"), ("zfs", "reads back"))
    # zpool-create(8): the letters that take a value.
    valued = "oORmt"
    rules = _RULES
    at_rest = PoolAtRest

    def versions(self, *, commands: Commands) -> Mapping[str, str]:
        """Of the tools and of the modules, as `zfs --version` says."""
        said = commands.run(["zfs", "--version"], check=False).output
        return parse_version(said)

    def mkfs(self, site: Site) -> tuple[str, ...]:
        """Create the pool, with a log device if asked, and export it."""
        refuse(site.levels, site.journal_path)
        asked = self.mkfs_arguments(site.levels)
        _require_module()
        pool = pool_name(site.device.path)
        if is_imported(pool, site.commands):
            # What a killed visit left between two steps; the device is ours to erase.
            site.commands.run(["zpool", "destroy", "-f", pool], timeout_s=600)
        words = joined(self._mkfs_arguments(site), asked, lists=())
        vdevs = [partition_over(site.device.path)]
        if site.journal is not None:
            vdevs += ["log", partition_over(site.journal.path)]
        argv = ["zpool", "create", "-f", "-t", pool, *words, LABEL, *vdevs]
        try:
            said = site.commands.run(argv, timeout_s=3600, extra_environment=_WITHOUT_UDEV).output
        finally:
            _leave(pool, site)
        return warnings_in(said)

    def mount(self, site: Site) -> MountEntry:
        """Import the pool with `target` as its alternate root, by which it is known again, and mount it."""
        pool = _import(site, root=site.target)
        try:
            return mount(pool, site.target, "zfs", self.mount_options(site.levels), commands=site.commands)
        except BaseException:
            _leave(pool, site)
            raise

    def unmount(self, site: Site) -> bool:
        """Unmount, and export the pool, or every one that was imported for the target; False if there was nothing."""
        entry = find_mount(site.target)
        mounted = super().unmount(site)
        if entry is not None and entry.type == "zfs":
            pools = [entry.source]
        else:
            root = os.path.realpath(site.target)
            pools = sorted(name for name, at in imported_pools(site.commands).items() if at == root)
        own = pool_name(site.device.path)
        for pool in pools:
            release_pool(pool, site.commands, disks=_disks(site) if pool == own else None)
        return mounted or bool(pools)

    def check(self, site: Site) -> CheckResult:
        """Import without mounting, scrub, and export: ZFS has no check of a pool that is not imported.

        A scrub reads every block against its checksum. It writes its own progress, and a block anew of which another copy is whole.
        """
        pool = _import(site)
        try:
            site.commands.run(["zpool", "scrub", "-w", pool], timeout_s=3600)
            said = site.commands.run(["zpool", "status", "-P", "-p", pool]).stdout
        finally:
            _leave(pool, site)
        status = parse_status(said)
        # What it found comes before ZFS' general advice.
        found = () if status.is_clean else (f"zpool scrub: {status.scan}", *status.complaints)
        return CheckResult(status.is_clean, "\n".join((*found, said)), mended=status.is_mended)

    def resume(self, site: Site, repaired: Callable[[], object]) -> bool:
        """A pool whose only device fails is suspended (zpoolprops(7), `failmode=wait`), until `zpool clear`."""
        pool = pool_name(site.device.path)
        if not is_suspended(pool):
            return False
        repaired()
        site.commands.run(["zpool", "clear", pool], timeout_s=600)
        return True

    def complaints(self, site: Site) -> tuple[str, ...]:
        """By `zpool status`; an export forgets what its table counts."""
        argv = ["zpool", "status", "-P", "-p", mount_entry(site.target).source]
        return parse_status(site.commands.run(argv, timeout_s=600).stdout).complaints

    def _mkfs_arguments(self, site: Site) -> Iterator[Argument]:
        # The cache file would make the next boot of this machine import the pool.
        yield Argument(_POOL, "cachefile=none")
        asked = self.mkfs_arguments(site.levels)
        if not any(item.flag == _POOL and (item.value or "").startswith("ashift=") for item in asked):
            yield Argument(_POOL, _ASHIFT)
        yield Argument(_DATASET, "mountpoint=legacy")
        if site.levels.block_size_bytes is not None:
            yield Argument(_DATASET, f"recordsize={site.levels.block_size_bytes}")
        for name in _FEATURES:
            if name in site.levels.features:
                yield Argument(_DATASET, f"{name}={site.levels.features[name]}")

    def _superblock(self, site: Site) -> Mapping[str, str]:
        argv = ["get", "-H", "-p", "-o", "property,value", "all", mount_entry(site.target).source]
        dataset = parse_properties(site.commands.run(["zfs", *argv]).stdout)
        pool = parse_properties(site.commands.run(["zpool", *argv]).stdout)
        return {
            **prefix_names("dataset", dataset),
            **prefix_names("pool", pool),
            **prefix_names("module", _module_parameters()),
        }

    def _block_sizes(self, site: Site, mount: Mounted) -> Iterator[ReadBack]:
        record, source = number(mount.superblock.get("dataset.recordsize")), "zfs get recordsize"
        yield compared("filesystem.block_size_bytes", site.levels.block_size_bytes, record, source)
        yield fact("filesystem.statvfs_block_bytes", os.statvfs(site.target).f_bsize, "statvfs")

    def _barrier(self, site: Site, mount: Mounted) -> Iterator[ReadBack]:
        (switch,) = super()._barrier(site, mount)
        flushes = bool(switch.effective) and mount.superblock.get("module.zfs_nocacheflush") == "0"
        yield compared(switch.name, switch.asked, flushes, f"{switch.source} and zfs_nocacheflush")

    def _state(self, site: Site, mount: Mounted) -> Iterator[ReadBack]:
        argv = ["zpool", "status", "-P", "-p", mount.entry.source]
        status = parse_status(site.commands.run(argv).stdout)
        log = next((disk_under(node) for node in status.logs), None)
        kind = "external" if log else "internal"
        yield from journal_comparisons(site.levels, kind, log, site.journal, "zpool status")
        for name in _FEATURES:
            effective = mount.superblock.get(f"dataset.{name}")
            yield compared(f"filesystem.{name}", site.levels.features.get(name), effective, "zfs get")

    def _compare_argument(self, argument: Argument, properties: Mapping[str, str]) -> Iterator[ReadBack]:
        kind, source = ("dataset", "zfs get") if argument.flag == _DATASET else ("pool", "zpool get")
        for part, value in argument.parts:
            effective = properties.get(f"{kind}.{part}")
            # A feature that is in use already says so.
            is_active = value == "enabled" and effective == "active"
            if is_active or (effective is not None and effective == _SHOWN.get((part, value or ""))):
                effective = value
            yield compared(f"{MKFS_OPTION}{argument.flag}.{part}", _size(value), _size(effective), source)

    def _facts(self, properties: Mapping[str, str]) -> Iterator[ReadBack]:
        for kind, names, source in (
            ("dataset", _DATASET_FACTS, "zfs get"),
            ("pool", _POOL_FACTS, "zpool get"),
            ("module", _MODULE_FACTS, str(MODULE / "parameters")),
        ):
            for name in names:
                text = properties.get(f"{kind}.{name}")
                counted = number(text)
                yield fact(f"filesystem.{kind}.{name}", text if counted is None else counted, source)


def prefix_names(kind: str, properties: Mapping[str, str]) -> Mapping[str, str]:
    """Properties under names that tell those of the dataset, of the pool and of the modules apart."""
    return {f"{kind}.{name}": value for name, value in properties.items()}


def parse_properties(text: str) -> Mapping[str, str]:
    """`property<TAB>value` lines of `zfs get -H` and `zpool get -H`; OutputNotUnderstood if there are none."""
    rows = [line.split("\t") for line in text.splitlines() if line]
    if not rows or any(len(row) != 2 for row in rows):
        raise OutputNotUnderstood("zfs get -H", expected="a property and a value on each line", found=text)
    return {name: value for name, value in rows}  # noqa: C416 -- rows are lists


def parse_version(text: str) -> Mapping[str, str]:
    """`zfs-2.3.2-2` and `zfs-kmod-2.3.2-2`, each on its line; the second is missing without modules."""
    found = {}
    for line in text.splitlines():
        for name in ("zfs-kmod", "zfs"):
            if line.startswith(f"{name}-") and line[len(name) + 1 : len(name) + 2].isdigit():
                found[name] = line.removeprefix(f"{name}-").strip()
    if "zfs" not in found:
        raise OutputNotUnderstood("zfs --version", expected="zfs-<version>", found=text)
    return found


def _require_module() -> None:
    if not MODULE.exists():
        raise RequirementMissing(
            "the zfs module is not loaded; `modprobe zfs` loads it where it is installed, and "
            "`bedplate doctor --install --zfs` builds it for guests"
        )


def _import(site: Site, *, root: Path | None = None) -> str:
    """The name under which the pool is imported; nothing of it is mounted."""
    _require_module()
    pool = pool_name(site.device.path)
    # What a killed visit left between two steps.
    release_pool(pool, site.commands, disks=_disks(site))
    where = ["-d", partition_over(site.device.path)]
    if site.journal is not None:
        where += ["-d", partition_over(site.journal.path)]
    at = ["-R", os.path.realpath(root)] if root is not None else ["-o", "cachefile=none"]
    try:
        argv = ["zpool", "import", "-N", "-t", *at, *where, LABEL, pool]
        site.commands.run(argv, timeout_s=3600, extra_environment=_WITHOUT_UDEV)
    except BaseException:
        _leave(pool, site)
        raise
    return pool


def _leave(pool: str, site: Site) -> None:
    """Also where nothing was made or imported: the partitions must not stay."""
    disks = _disks(site)
    release_pool(pool, site.commands, disks=disks)
    for disk in disks:
        drop_partition_over(disk)


def _disks(site: Site) -> tuple[str, ...]:
    return tuple(path for path in (site.device.path, site.journal_path) if path is not None)


def _module_parameters() -> Mapping[str, str]:
    found = {}
    for name in _MODULE_FACTS:
        try:
            found[name] = (MODULE / "parameters" / name).read_text(encoding="ascii").strip()
        except OSError:
            continue  # it came and went with versions
    return found


def _size(text: str | None) -> Scalar | None:
    return None if text is None else size_or_text(text)
