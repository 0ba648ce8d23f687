"""XFS. Its barriers cannot be switched by a mount option (since Linux 4.19): the device's switch does it.

Read back from the mount table and from xfs_info, which asks the mounted file system itself
(XFS_IOC_FSGEOMETRY).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import CommandFailed, OutputNotUnderstood
from bedplate.filesystem.arguments import Argument, joined, parse_arguments, refuse, warnings_in
from bedplate.filesystem.comparison import MKFS_OPTION, compared, fact, not_verifiable
from bedplate.filesystem.journal import journal_comparisons, without_device
from bedplate.filesystem.options import OptionRules, plan_words
from bedplate.filesystem.protocol import LABEL, CheckResult, checked_by
from bedplate.host.mount import mount, mount_entry, unmount
from bedplate.host.requirement import Need
from bedplate.model.filesystem import TRAITS
from bedplate.units import MIB, parse_size

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from bedplate.host.command import Commands
    from bedplate.host.device import AttachedDevice
    from bedplate.host.mount import MountEntry
    from bedplate.model.cell import FilesystemLevels
    from bedplate.model.levels import Scalar
    from bedplate.model.visit import Comparison

# getopt string of mkfs.xfs 6.1 (mkfs/xfs_mkfs.c).
_VALUED = "bcdilLmnprs"
_OWN = (Argument("-K", None), Argument("-f", None), Argument("-L", LABEL))

_LOG_BYTES_MAX = 2**31 - 10 * MIB
_LOG_BLOCKS_MAX = 2**20

# fs/xfs/xfs_super.c, xfs_fs_show_options.
_RULES = OptionRules(
    synonyms={
        "bsdgroups": "grpid",
        "sysvgroups": "nogrpid",
        "dax": "dax=always",
        "quota": "usrquota",
        "uquota": "usrquota",
        "gquota": "grpquota",
        "pquota": "prjquota",
    },
    hidden={
        "nodiscard": ("discard",),
        "nolargeio": ("largeio",),
        "noikeep": ("ikeep",),
        "nogrpid": ("grpid",),
        "noquota": ("usrquota", "grpquota", "prjquota", "uqnoenforce", "gqnoenforce", "pqnoenforce"),
        "dax=inode": ("dax=",),
    },
)
# mkfs.xfs(8)'s sub-options and where xfs_info shows them; all are plain numbers or sizes.
_SHOWN_AT = {
    ("-b", "size"): "data.bsize",
    ("-s", "size"): "meta-data.sectsz",
    ("-i", "size"): "meta-data.isize",
    ("-i", "sparse"): "meta-data.sparse",
    ("-i", "attr"): "meta-data.attr",
    ("-i", "projid32bit"): "meta-data.projid32bit",
    ("-i", "nrext64"): "meta-data.nrext64",
    ("-i", "maxpct"): "data.imaxpct",
    ("-i", "exchange"): "meta-data.exchange",
    ("-d", "agcount"): "meta-data.agcount",
    ("-d", "agsize"): "meta-data.agsize_bytes",
    ("-d", "su"): "data.sunit_bytes",
    ("-d", "sunit"): "data.sunit_sectors",
    ("-d", "swidth"): "data.swidth_sectors",
    ("-l", "size"): "log.blocks_bytes",
    ("-l", "version"): "log.version",
    ("-l", "lazy-count"): "log.lazy-count",
    ("-l", "sectsize"): "log.sectsz",
    ("-l", "su"): "log.sunit_bytes",
    ("-l", "sunit"): "log.sunit_sectors",
    ("-n", "size"): "naming.bsize",
    ("-n", "version"): "naming.version",
    ("-n", "ftype"): "naming.ftype",
    **{
        ("-m", name): f"meta-data.{name}"
        for name in ("crc", "finobt", "reflink", "rmapbt", "bigtime", "inobtcount")
    },
}


class Xfs:
    """XFS."""

    traits = TRAITS["xfs"]
    # mkfs.xfs refuses less than 300 MB.
    probe_bytes = 304 * MIB
    needs = (
        Need("mkfs.xfs", "xfsprogs", "makes xfs"),
        Need("xfs_info", "xfsprogs", "reads back xfs"),
        Need("xfs_repair", "xfsprogs", "checks xfs"),
    )

    def versions(self, *, commands: Commands) -> Mapping[str, str]:
        """As `mkfs.xfs -V` says."""
        said = commands.run(["mkfs.xfs", "-V"]).output
        found = re.search(r"version (\S+)", said)
        if found is None:
            raise OutputNotUnderstood("mkfs.xfs -V", expected="a version", found=said)
        return {"xfsprogs": found[1]}

    def mkfs(
        self,
        levels: FilesystemLevels,
        device_path: str,
        *,
        commands: Commands,
        journal_path: str | None = None,
    ) -> tuple[str, ...]:
        """512-byte blocks need the old format, without checksums, for as long as tools and kernels have it."""
        refuse(levels, journal_path)
        own = list(_OWN)
        if levels.block_size_bytes is not None:
            own.append(Argument("-b", f"size={levels.block_size_bytes}"))
        asked = parse_arguments(levels.mkfs_options, valued=_VALUED)
        if journal_path is not None:
            own.append(Argument("-l", _log_words(levels, asked, journal_path)))
        if levels.block_size_bytes == 512 and not any(item.flag == "-m" for item in asked):
            own.append(Argument("-m", "crc=0"))
        argv = ["mkfs.xfs", "-q", *joined(own, asked, lists=()), device_path]
        done = commands.run(argv, timeout_s=3600, check=False)
        if done.status != 0:
            # Its usage, twenty lines long, follows the reason.
            why = done.output.partition("Usage:")[0].strip() or f"status {done.status}"
            reason = f"{' '.join(argv)} refuses: {why}"
            raise CommandFailed(reason, argv=argv, status=done.status, output=done.output)
        return warnings_in(done.output)

    def mount_options(self, levels: FilesystemLevels) -> tuple[str, ...]:
        """The plan's own words: XFS has no option for a factor."""
        return plan_words(levels)

    def mount(
        self,
        levels: FilesystemLevels,
        device_path: str,
        target: Path,
        *,
        commands: Commands,
        journal_path: str | None = None,
    ) -> MountEntry:
        """With the log's device, if it has one of its own: the superblock does not name it."""
        log = () if journal_path is None else (f"logdev={journal_path}",)
        return mount(device_path, target, "xfs", (*self.mount_options(levels), *log), commands=commands)

    def read_back(
        self,
        levels: FilesystemLevels,
        device: AttachedDevice,
        target: Path,
        *,
        commands: Commands,
        journal: AttachedDevice | None = None,
    ) -> tuple[Comparison, ...]:
        """From statvfs, the mount table, xfs_info and the device's write-cache switch."""
        entry = mount_entry(target)
        geometry = parse_geometry(commands.run(["xfs_info", str(target)]).stdout)
        shown = {*entry.options, *entry.super_options}
        size = os.statvfs(target).f_bsize
        tool_size = _number(geometry.get("data.bsize"))
        asked = levels.block_size_bytes
        kind = "internal" if geometry.get("log", "").startswith("internal") else "external"
        logdev = next((word.partition("=")[2] for word in shown if word.startswith("logdev=")), None)
        # xfs flushes always; whether a flush reaches the device, the switch decides.
        cache = (device.queue / "write_cache").read_text(encoding="ascii").strip()
        return (
            compared("filesystem.type", levels.type, entry.type, "mountinfo"),
            compared("filesystem.block_size_bytes", asked, size, "statvfs"),
            compared("filesystem.superblock.block_size_bytes", asked, tool_size, "xfs_info"),
            compared("filesystem.barrier", levels.barrier, cache == "write back", "the queue's write_cache"),
            *journal_comparisons(levels, kind, logdev, journal, "xfs_info and mountinfo"),
            *_RULES.compare(self.mount_options(levels), shown, "mountinfo"),
            *_compare_mkfs(parse_arguments(levels.mkfs_options, valued=_VALUED), geometry),
            *_facts(geometry),
            fact("filesystem.mount_options", ",".join(without_device(shown)), "mountinfo"),
        )

    def unmount(self, target: Path, *, commands: Commands, journal_path: str | None = None) -> bool:
        """Plain."""
        del journal_path
        return unmount(target, commands=commands)

    def check(
        self,
        levels: FilesystemLevels,
        device_path: str,
        *,
        commands: Commands,
        journal_path: str | None = None,
    ) -> CheckResult:
        """`xfs_repair -n`: status 0 is clean, 1 is damaged, 2 a log that was not replayed (xfs_repair(8))."""
        del levels
        log = () if journal_path is None else ("-l", journal_path)
        done = commands.run(["xfs_repair", "-n", *log, device_path], timeout_s=3600, check=False)
        return checked_by(done)


def _log_words(levels: FilesystemLevels, asked: Collection[Argument], path: str) -> str:
    """The log's device, and a size where the whole device would be more than a log can be.

    mkfs.xfs takes the whole device and then refuses it (XFS_MAX_LOG_BYTES and XFS_MAX_LOG_BLOCKS in
    libxfs/xfs_fs.h).
    """
    if any(part == "size" for item in asked if item.flag == "-l" for part, _ in item.parts):
        return f"logdev={path}"
    with Path(path).open("rb") as device:
        size_bytes = device.seek(0, os.SEEK_END)
    most_bytes = min(_LOG_BYTES_MAX, _LOG_BLOCKS_MAX * (levels.block_size_bytes or 4096))
    return f"logdev={path}" if size_bytes <= most_bytes else f"logdev={path},size={most_bytes}"


def parse_geometry(text: str) -> Mapping[str, str]:
    """xfs_info's table as `section.key`, plus each section's own word (`log`: `internal log`).

    OutputNotUnderstood without the sections meta-data, data and log.
    """
    found: dict[str, str] = {}
    section = ""
    for line in text.splitlines():
        head, equals, rest = line.partition("=")
        if not equals:
            continue
        if head.strip():
            section = head.strip()
            found[section] = re.split(r"\s{2,}|\S+=", rest.strip())[0].strip()
        for key, value in re.findall(r"([a-z][a-z0-9-]*)=([^\s,]+)", rest):
            found[f"{section}.{key}"] = value
        version = re.match(r"version (\d+)", rest.strip())
        if version:
            found[f"{section}.version"] = version[1]
    if not {"meta-data", "data.bsize", "log"} <= found.keys():
        raise OutputNotUnderstood("xfs_info", expected="sections meta-data, data and log", found=text)
    return found


def _derived(geometry: Mapping[str, str]) -> Mapping[str, Scalar]:
    """The same as numbers, with sizes in bytes where xfs_info counts blocks."""
    numbers: dict[str, Scalar] = {
        key: value for key, text in geometry.items() if "." in key and (value := _number(text)) is not None
    }
    block = _number(geometry.get("data.bsize"))
    for counted in ("log.blocks", "meta-data.agsize", "data.sunit", "data.swidth", "log.sunit"):
        blocks = _number(geometry.get(counted))
        if block is not None and blocks is not None:
            numbers[f"{counted}_bytes"] = blocks * block
            numbers[f"{counted}_sectors"] = blocks * block // 512
    return numbers


def _facts(geometry: Mapping[str, str]) -> Iterator[Comparison]:
    yield fact("filesystem.superblock.log_bytes", _derived(geometry).get("log.blocks_bytes"), "xfs_info")
    for key, value in sorted(geometry.items()):
        if "." in key:
            number = _number(value)
            yield fact(f"filesystem.superblock.{key}", value if number is None else number, "xfs_info")


def _compare_mkfs(arguments: Collection[Argument], geometry: Mapping[str, str]) -> Iterator[Comparison]:
    shown = _derived(geometry)
    for argument in arguments:
        if argument.value is None:
            yield not_verifiable(f"{MKFS_OPTION}{argument.flag}", argument.text, "xfs_info does not show it")
            continue
        for part, value in argument.parts:
            name = f"{MKFS_OPTION}{argument.flag}.{part}"
            place = _SHOWN_AT.get((argument.flag, part))
            wanted = _asked_size(value, shown.get("data.bsize"), shown.get("meta-data.sectsz"))
            if place is None or wanted is None:
                text = part if value is None else f"{part}={value}"
                yield not_verifiable(name, text, "xfs_info does not show it")
            else:
                yield compared(name, wanted, shown.get(place), "xfs_info")


def _asked_size(value: str | None, block: Scalar | None, sector: Scalar | None) -> int | None:
    """A number as mkfs.xfs(8) writes it: `64m`, `100b` file system blocks, `8s` sectors; None if it is not one."""
    units = {"b": block, "s": sector}
    if value and value[-1] in units and value[:-1].isdigit():
        unit = units[value[-1]]
        return int(value[:-1]) * unit if isinstance(unit, int) else None
    try:
        return parse_size(value) if value else None
    except ValueError:
        return None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
