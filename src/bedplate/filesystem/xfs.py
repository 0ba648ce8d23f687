"""XFS. Its barriers cannot be switched by a mount option (since Linux 4.19): the device's switch does it.

Read back from the mount table and from xfs_info, which asks the mounted file system itself
(XFS_IOC_FSGEOMETRY).
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from bedplate.errors import CommandFailed, OutputNotUnderstood
from bedplate.filesystem.adapter import (
    MKFS_OPTION,
    Argument,
    Filesystem,
    Mounted,
    OptionRules,
    Site,
    compared,
    fact,
    journal_comparisons,
    not_verifiable,
    number,
)
from bedplate.filesystem.blocks import XFS_FIELDS, Layout, xfs_layout
from bedplate.model.cell import FilesystemLevels
from bedplate.model.filesystem import COW_HINT, COW_HINTS, LABEL, TRAITS
from bedplate.model.levels import Scalar
from bedplate.model.visit import ReadBack
from bedplate.units import MIB, parse_size

# include/uapi/linux/fs.h: FS_IOC_FSGETXATTR and struct fsxattr.
_FSGETXATTR = 0x801C581F
_FSXATTR = struct.Struct("=IIIII8x")
_BLOCK_BYTES = 4096
_LOOK_LIMIT_S = 120.0
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


class Xfs(Filesystem):
    """XFS. It flushes always, and has no mount option for a factor."""

    traits = TRAITS["xfs"]
    # xfsprogs 6.13 wants a log of 124 MiB for blocks of 64 KiB, and a disk of more than 400 MiB for that.
    probe_bytes = 512 * MIB
    package = "xfsprogs"
    tools = (("mkfs.xfs", "makes"), ("xfs_info", "reads back"), ("xfs_repair", "checks"))
    version_argv = ("mkfs.xfs", "-V")
    version_pattern = r"version (\S+)"
    mkfs_words = ("mkfs.xfs", "-q")
    # getopt string of mkfs.xfs 6.1 (mkfs/xfs_mkfs.c).
    valued = "bcdilLmnprs"
    own = (Argument("-K", None), Argument("-f", None), Argument("-L", LABEL))
    block_size_option = ("-b", "size={}")
    # The superblock does not name the log's device.
    journal_option = "logdev"
    # Status 0 is clean, 1 is damaged, 2 a log that was not replayed (xfs_repair(8)).
    fsck = ("xfs_repair", "-n")
    fsck_journal_flag = "-l"
    rules = _RULES
    reader = "xfs_info"
    block_size_key = "data.bsize"
    not_shown = "xfs_info does not show it"

    def mkfs(self, site: Site) -> tuple[str, ...]:
        """Its usage, twenty lines long, follows the reason of a refusal, and is left out."""
        try:
            return super().mkfs(site)
        except CommandFailed as failed:
            if failed.status is None:
                raise
            why = failed.output.partition("Usage:")[0].strip() or f"status {failed.status}"
            reason = f"{' '.join(failed.argv)} refuses: {why}"
            raise CommandFailed(
                reason, argv=failed.argv, status=failed.status, output=failed.output
            ) from None

    def layout(self, site: Site) -> Layout:
        """By xfs_db."""
        words = ["xfs_db", "-r", "-c", "sb 0", "-c", f"p {XFS_FIELDS}", site.device.path]
        return xfs_layout(site.commands.run(words, timeout_s=_LOOK_LIMIT_S, check=False).stdout)

    def _mkfs_arguments(self, site: Site) -> Iterator[Argument]:
        """512-byte blocks need the old format, without checksums, for as long as tools and kernels have it."""
        asked = self.mkfs_arguments(site.levels)
        if site.journal is not None:
            yield Argument("-l", _log_words(site.levels, asked, site.journal.path))
        hint_bytes = COW_HINTS.get(site.levels.features.text(COW_HINT) or "")
        if hint_bytes is not None:
            # Of the root directory; what is made below inherits it.
            yield Argument("-d", f"cowextsize={hint_bytes // (site.levels.block_size_bytes or _BLOCK_BYTES)}")
        if site.levels.block_size_bytes == 512 and not any(item.flag == "-m" for item in asked):
            yield Argument("-m", "crc=0")

    def _superblock(self, site: Site) -> Mapping[str, str]:
        return parse_geometry(site.commands.run(["xfs_info", str(site.target)]).stdout)

    def _state(self, site: Site, mount: Mounted) -> Iterator[ReadBack]:
        kind = "internal" if mount.superblock.get("log", "").startswith("internal") else "external"
        logdev = next((word.partition("=")[2] for word in mount.shown if word.startswith("logdev=")), None)
        source = "xfs_info and mountinfo"
        yield from journal_comparisons(site.levels, kind, logdev, site.journal, source)
        asked = site.levels.features.text(COW_HINT)
        if asked is not None:
            shown = _cow_hint_bytes(site.target)
            yield compared("filesystem.cowextsize", COW_HINTS.get(asked), shown, "FS_IOC_FSGETXATTR")

    def _compare_argument(self, argument: Argument, geometry: Mapping[str, str]) -> Iterator[ReadBack]:
        if argument.value is None:
            yield not_verifiable(f"{MKFS_OPTION}{argument.flag}", argument.text, self.not_shown)
        shown = sizes_in(geometry)
        for part, value in argument.parts:
            name = f"{MKFS_OPTION}{argument.flag}.{part}"
            place = _SHOWN_AT.get((argument.flag, part))
            wanted = _asked_size(value, shown.get("data.bsize"), shown.get("meta-data.sectsz"))
            if place is None or wanted is None:
                text = part if value is None else f"{part}={value}"
                yield not_verifiable(name, text, self.not_shown)
            else:
                yield compared(name, wanted, shown.get(place), "xfs_info")

    def _facts(self, geometry: Mapping[str, str]) -> Iterator[ReadBack]:
        log_bytes = sizes_in(geometry).get("log.blocks_bytes")
        yield fact("filesystem.superblock.log_bytes", log_bytes, "xfs_info")
        for key, value in sorted(geometry.items()):
            if "." in key:
                counted = number(value)
                yield fact(f"filesystem.superblock.{key}", value if counted is None else counted, "xfs_info")


def _cow_hint_bytes(directory: Path) -> int:
    """The hint that new files in a directory get, 0 where it has none."""
    place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        found = fcntl.ioctl(place, _FSGETXATTR, bytes(_FSXATTR.size))
    finally:
        os.close(place)
    return int(_FSXATTR.unpack(found)[4])


def _log_words(levels: FilesystemLevels, arguments: Collection[Argument], path: str) -> str:
    """The log's device, and a size where the whole device would be more than a log can be.

    mkfs.xfs takes the whole device and then refuses it (XFS_MAX_LOG_BYTES and XFS_MAX_LOG_BLOCKS in
    libxfs/xfs_fs.h).
    """
    if any(part == "size" for item in arguments if item.flag == "-l" for part, _ in item.parts):
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


def sizes_in(geometry: Mapping[str, str]) -> Mapping[str, Scalar]:
    """The same as numbers, with sizes in bytes where xfs_info counts blocks."""
    numbers: dict[str, Scalar] = {
        key: value for key, text in geometry.items() if "." in key and (value := number(text)) is not None
    }
    block = number(geometry.get("data.bsize"))
    for counted in ("log.blocks", "meta-data.agsize", "data.sunit", "data.swidth", "log.sunit"):
        blocks = number(geometry.get(counted))
        if block is not None and blocks is not None:
            numbers[f"{counted}_bytes"] = blocks * block
            numbers[f"{counted}_sectors"] = blocks * block // 512
    return numbers


def _asked_size(value: str | None, block_size: Scalar | None, sector: Scalar | None) -> int | None:
    """A number as mkfs.xfs(8) writes it: `64m`, `100b` file system blocks, `8s` sectors; None if it is not one."""
    units = {"b": block_size, "s": sector}
    if value and value[-1] in units and value[:-1].isdigit():
        unit = units[value[-1]]
        return int(value[:-1]) * unit if isinstance(unit, int) else None
    try:
        return parse_size(value) if value else None
    except ValueError:
        return None
