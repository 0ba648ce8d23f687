"""ZFS: one pool on the device, its root dataset mounted. Read back by `zfs get`, `zpool get`, `zpool status`.

The dataset's mount point is `legacy`, so that mount(8) mounts it with the plan's words, and the pool
is exported whenever it is not mounted: a device that bedplate leaves is nobody's. `block_size` is the
recordsize. A log device takes what fsync promises, until the next transaction group has it in the pool.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bedplate.errors import OutputNotUnderstood, RequirementMissing
from bedplate.filesystem.arguments import Argument, joined, parse_arguments, refuse, warnings_in
from bedplate.filesystem.comparison import MKFS_OPTION, compared, fact
from bedplate.filesystem.journal import journal_comparisons
from bedplate.filesystem.options import OptionRules
from bedplate.filesystem.protocol import LABEL, CheckResult
from bedplate.host.mount import find_mount, mount, mount_entry, unmount
from bedplate.host.requirement import Need
from bedplate.host.whole_partition import disk_under, drop_partition_over, partition_over
from bedplate.host.zpool import MODULE, imported_pools, parse_status, pool_name, release_pool
from bedplate.model.filesystem import TRAITS, option_words
from bedplate.units import MIB, parse_size

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from bedplate.host.command import Commands
    from bedplate.host.device import AttachedDevice
    from bedplate.host.mount import MountEntry
    from bedplate.model.cell import FilesystemLevels
    from bedplate.model.levels import Scalar
    from bedplate.model.visit import Comparison

# zpool-create(8): the letters that take a value.
_VALUED = "oORmt"
_POOL, _DATASET = "-o", "-O"
# Sectors of 4 KiB: a device that says 512 would otherwise be written in its emulated sectors.
_ASHIFT = "ashift=12"
_FEATURES = ("compression", "logbias", "sync")

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


class Zfs:
    """One pool with its root dataset."""

    traits = TRAITS["zfs"]
    # zpool-create(8) refuses devices below 64 MiB.
    probe_bytes = 256 * MIB
    needs = (
        Need("zpool", "zfsutils-linux", "makes, imports and checks zfs"),
        Need("zfs", "zfsutils-linux", "reads back zfs"),
    )

    def versions(self, *, commands: Commands) -> Mapping[str, str]:
        """Of the tools and of the modules, as `zfs --version` says."""
        said = commands.run(["zfs", "--version"], check=False).output
        return parse_version(said)

    def mkfs(
        self,
        levels: FilesystemLevels,
        device_path: str,
        *,
        commands: Commands,
        journal_path: str | None = None,
    ) -> tuple[str, ...]:
        """Create the pool, with a log device if asked, and export it."""
        refuse(levels, journal_path)
        asked = parse_arguments(levels.mkfs_options, valued=_VALUED)
        _require_module()
        pool = pool_name(device_path)
        if pool in imported_pools(commands):
            # What a killed visit left between two steps; the device is ours to erase.
            commands.run(["zpool", "destroy", "-f", pool], timeout_s=600)
        words = joined([*_own(levels, asked)], asked, lists=())
        vdevs = [partition_over(device_path)]
        if journal_path is not None:
            vdevs += ["log", partition_over(journal_path)]
        argv = ["zpool", "create", "-f", "-t", pool, *words, LABEL, *vdevs]
        try:
            said = commands.run(argv, timeout_s=3600).output
        finally:
            _leave(pool, device_path, journal_path, commands)
        return warnings_in(said)

    def mount_options(self, levels: FilesystemLevels) -> tuple[str, ...]:
        """The plan's own words: what else there is are properties."""
        return option_words(levels.mount_options, separator=",")

    def mount(
        self,
        levels: FilesystemLevels,
        device_path: str,
        target: Path,
        *,
        commands: Commands,
        journal_path: str | None = None,
    ) -> MountEntry:
        """Import the pool with `target` as its alternate root, by which it is known again, and mount it."""
        pool = _import(device_path, journal_path, commands, root=target)
        try:
            return mount(pool, target, "zfs", self.mount_options(levels), commands=commands)
        except BaseException:
            _leave(pool, device_path, journal_path, commands)
            raise

    def read_back(
        self,
        levels: FilesystemLevels,
        device: AttachedDevice,
        target: Path,
        *,
        commands: Commands,
        journal: AttachedDevice | None = None,
    ) -> tuple[Comparison, ...]:
        """From the properties of dataset and pool, the pool's devices, and the mount table."""
        entry = mount_entry(target)
        pool = entry.source
        argv = ["get", "-H", "-p", "-o", "property,value", "all", pool]
        dataset = parse_properties(commands.run(["zfs", *argv]).stdout)
        whole = parse_properties(commands.run(["zpool", *argv]).stdout)
        status = parse_status(commands.run(["zpool", "status", "-P", "-p", pool]).stdout)
        log = next((disk_under(node) for node in status.logs), None)
        modules = _module_parameters()
        shown = {*entry.options, *entry.super_options}
        record = _number(dataset.get("recordsize"))
        cache = (device.queue / "write_cache").read_text(encoding="ascii").strip()
        flushes = cache == "write back" and modules.get("zfs_nocacheflush") == "0"
        return (
            compared("filesystem.type", levels.type, entry.type, "mountinfo"),
            compared("filesystem.block_size_bytes", levels.block_size_bytes, record, "zfs get recordsize"),
            fact("filesystem.statvfs_block_bytes", os.statvfs(target).f_bsize, "statvfs"),
            compared(
                "filesystem.barrier", levels.barrier, flushes, "the queue's write_cache and zfs_nocacheflush"
            ),
            *journal_comparisons(levels, "external" if log else "internal", log, journal, "zpool status"),
            *(
                compared(f"filesystem.{name}", levels.features.get(name), dataset.get(name), "zfs get")
                for name in _FEATURES
            ),
            *_RULES.compare(self.mount_options(levels), shown, "mountinfo"),
            *_compare_mkfs(parse_arguments(levels.mkfs_options, valued=_VALUED), dataset, whole),
            *_facts(dataset, "dataset", _DATASET_FACTS, "zfs get"),
            *_facts(whole, "pool", _POOL_FACTS, "zpool get"),
            *_facts(modules, "module", _MODULE_FACTS, str(MODULE / "parameters")),
            fact("filesystem.mount_options", ",".join(sorted(shown)), "mountinfo"),
        )

    def unmount(self, target: Path, *, commands: Commands, journal_path: str | None = None) -> bool:
        """Unmount, and export every pool that was imported for `target`; False if there was nothing."""
        del journal_path  # the pool itself says what its log stands on
        entry = find_mount(target)
        mounted = unmount(target, commands=commands)
        pools = {name for name, root in imported_pools(commands).items() if root == os.path.realpath(target)}
        if entry is not None and entry.type == "zfs":
            pools.add(entry.source)
        for pool in sorted(pools):
            release_pool(pool, commands)
        return mounted or bool(pools)

    def check(
        self,
        levels: FilesystemLevels,
        device_path: str,
        *,
        commands: Commands,
        journal_path: str | None = None,
    ) -> CheckResult:
        """Import without mounting, scrub, and export: ZFS has no check of a pool that is not imported.

        A scrub reads every block against its checksum and writes nothing but its own progress.
        """
        del levels
        pool = _import(device_path, journal_path, commands)
        try:
            commands.run(["zpool", "scrub", "-w", pool], timeout_s=3600)
            said = commands.run(["zpool", "status", "-P", "-p", pool]).stdout
        finally:
            _leave(pool, device_path, journal_path, commands)
        return CheckResult(parse_status(said).is_clean, said)


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


def _own(levels: FilesystemLevels, asked: Collection[Argument]) -> Iterator[Argument]:
    # The cache file would make the next boot of this machine import the pool.
    yield Argument(_POOL, "cachefile=none")
    if not any(item.flag == _POOL and (item.value or "").startswith("ashift=") for item in asked):
        yield Argument(_POOL, _ASHIFT)
    yield Argument(_DATASET, "mountpoint=legacy")
    if levels.block_size_bytes is not None:
        yield Argument(_DATASET, f"recordsize={levels.block_size_bytes}")
    for name in _FEATURES:
        if name in levels.features:
            yield Argument(_DATASET, f"{name}={levels.features[name]}")


def _require_module() -> None:
    if not MODULE.exists():
        raise RequirementMissing(
            "the zfs module is not loaded; `modprobe zfs` loads it where it is installed, and "
            "`bedplate setup --zfs` builds it for guests"
        )


def _import(
    device_path: str, journal_path: str | None, commands: Commands, *, root: Path | None = None
) -> str:
    """The name under which the pool is imported; nothing of it is mounted."""
    _require_module()
    pool = pool_name(device_path)
    # What a killed visit left between two steps.
    release_pool(pool, commands)
    where = ["-d", partition_over(device_path)]
    if journal_path is not None:
        where += ["-d", partition_over(journal_path)]
    at = ["-R", os.path.realpath(root)] if root is not None else ["-o", "cachefile=none"]
    try:
        commands.run(["zpool", "import", "-N", "-t", *at, *where, LABEL, pool], timeout_s=3600)
    except BaseException:
        _leave(pool, device_path, journal_path, commands)
        raise
    return pool


def _leave(pool: str, device_path: str, journal_path: str | None, commands: Commands) -> None:
    """Also where nothing was made or imported: the partitions must not stay."""
    release_pool(pool, commands)
    for path in (device_path, journal_path):
        if path is not None:
            drop_partition_over(path)


def _module_parameters() -> Mapping[str, str]:
    found = {}
    for name in _MODULE_FACTS:
        try:
            found[name] = (MODULE / "parameters" / name).read_text(encoding="ascii").strip()
        except OSError:
            continue  # it came and went with versions
    return found


def _facts(
    properties: Mapping[str, str], kind: str, names: Collection[str], source: str
) -> Iterator[Comparison]:
    for name in names:
        text = properties.get(name)
        number = _number(text)
        yield fact(f"filesystem.{kind}.{name}", text if number is None else number, source)


def _compare_mkfs(
    arguments: Collection[Argument], dataset: Mapping[str, str], pool: Mapping[str, str]
) -> Iterator[Comparison]:
    for argument in arguments:
        properties, source = (dataset, "zfs get") if argument.flag == _DATASET else (pool, "zpool get")
        for part, value in argument.parts:
            name = f"{MKFS_OPTION}{argument.flag}.{part}"
            effective = properties.get(part)
            # A feature that is in use already says so.
            is_active = value == "enabled" and effective == "active"
            if is_active or (effective is not None and effective == _SHOWN.get((part, value or ""))):
                effective = value
            yield compared(name, _size(value), _size(effective), source)


def _size(text: str | None) -> Scalar | None:
    try:
        return parse_size(text) if text is not None else None
    except ValueError:
        return text


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
