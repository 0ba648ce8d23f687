"""JFS. It has one block size and no barriers: no kernel's JFS was ever seen to flush a device.

Read back from the mount table and from `jfs_tune -l`, which prints the superblock of the file system
or of an external log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bedplate.errors import OutputNotUnderstood
from bedplate.filesystem.adapter import (
    MKFS_OPTION,
    Argument,
    Filesystem,
    Mounted,
    OptionRules,
    Site,
    compared,
    decoded_number,
    fact,
    journal_comparisons,
)
from bedplate.filesystem.blocks import JFS_SUPERBLOCK_AT, Layout, jfs_layout
from bedplate.model.filesystem import LABEL, TRAITS
from bedplate.model.visit import ReadBack
from bedplate.units import MIB

_SUPERBLOCK_BYTES = 512

# fs/jfs/super.c, jfs_show_options: what is at its default is not shown.
_RULES = OptionRules(
    synonyms={"quota": "usrquota"},
    hidden={
        "nodiscard": ("discard=",),
        "errors=remount-ro": ("errors=continue", "errors=panic"),
        "noquota": ("usrquota", "grpquota"),
        "integrity": ("nointegrity",),
    },
)


class Jfs(Filesystem):
    """JFS, with its log inside or on a device of its own. It has no option for a factor."""

    traits = TRAITS["jfs"]
    probe_bytes = 64 * MIB
    package = "jfsutils"
    tools = (("mkfs.jfs", "makes"), ("jfs_tune", "reads back"), ("fsck.jfs", "checks"))
    version_argv = ("mkfs.jfs", "-V")
    version_pattern = r"mkfs.jfs version ([^\s,]+)"
    version_by_status = False
    mkfs_words = ("mkfs.jfs", "-q")
    # getopt string of jfs_mkfs 1.1.15 (mkfs/mkfs.c).
    valued = "jJLs"
    own = (Argument("-L", LABEL),)
    # A mount needs no option for the log's device: the superblock names it.
    # Everything, opened read-only; status 0 is clean (jfs_fsck(8)).
    fsck = ("fsck.jfs", "-n", "-f")
    fsck_journal_flag = "-j"
    rules = _RULES
    reader = "jfs_tune"
    block_size_key = "Aggregate block size"
    label_key = "Volume label"
    number_facts: Mapping[str, str] = {
        "version": "JFS version",
        "aggregate_blocks": "Aggregate size",
        "physical_block_bytes": "Physical block size",
        "allocation_group_blocks": "Allocation group size",
    }

    def layout(self, site: Site) -> Layout:
        """By the superblock: no tool prints where the log is."""
        with Path(site.device.path).open("rb") as device:
            device.seek(JFS_SUPERBLOCK_AT)
            return jfs_layout(device.read(_SUPERBLOCK_BYTES))

    def _before_mkfs(self, site: Site) -> Iterator[Sequence[str]]:
        """An external log is made first: mkfs.jfs attaches only what is there."""
        if site.journal is not None:
            yield ("mkfs.jfs", "-q", "-L", LABEL, "-J", "journal_dev", site.journal.path)

    def _mkfs_arguments(self, site: Site) -> Iterator[Argument]:
        if site.journal is not None:
            yield Argument("-J", f"device={site.journal.path}")

    def _superblock(self, site: Site) -> Mapping[str, str]:
        return _tuned(site, site.device.path)

    def _number(self, text: str | None) -> int | None:
        """It prints some with a unit behind them."""
        found = re.match(r"(\d+)\b", text or "")
        return int(found[1]) if found else None

    def _state(self, site: Site, mount: Mounted) -> Iterator[ReadBack]:
        kind = "internal" if "JFS_INLINELOG" in mount.superblock["JFS flags"].split() else "external"
        log = None
        if site.journal is not None:
            log = log_device_of(mount.superblock, _tuned(site, site.journal.path))
        yield from journal_comparisons(site.levels, kind, log, site.journal, "jfs_tune")

    def _compare_argument(self, argument: Argument, superblock: Mapping[str, str]) -> Iterator[ReadBack]:
        if argument.flag == "-O":
            folds = "JFS_OS2" in superblock["JFS flags"].split()
            yield compared(f"{MKFS_OPTION}-O", "-O", "-O" if folds else None, "jfs_tune")
        else:
            yield from super()._compare_argument(argument, superblock)

    def _facts(self, superblock: Mapping[str, str]) -> Iterator[ReadBack]:
        yield from super()._facts(superblock)
        flags = " ".join(superblock["JFS flags"].split())
        yield fact("filesystem.superblock.flags", flags, self.reader)


def _tuned(site: Site, path: str) -> Mapping[str, str]:
    return parse_superblock(site.commands.run(["jfs_tune", "-l", path]).stdout)


def parse_superblock(text: str) -> Mapping[str, str]:
    """`Key: value` lines of `jfs_tune -l`, of a file system or of a log; quotes and blanks are stripped.

    OutputNotUnderstood if it is neither.
    """
    pairs = (line.partition(":") for line in text.splitlines() if ":" in line)
    found = {key.strip(): value.strip().strip("'").strip() for key, _, value in pairs}
    if found.get("JFS magic number") != "JFS1" and "JFS log magic number" not in found:
        raise OutputNotUnderstood("jfs_tune -l", expected="a superblock of JFS or of its log", found=text)
    if "JFS flags" not in found and "Log flags" not in found:
        raise OutputNotUnderstood("jfs_tune -l", expected="its flags", found=text)
    return found


def log_device_of(superblock: Mapping[str, str], log_superblock: Mapping[str, str]) -> str | None:
    """`major:minor` of the external log, if the log that stands there is the file system's own."""
    code = superblock.get("Log device number", "0x0")
    same = superblock.get("External log UUID", "no") == log_superblock.get("Log device UUID")
    return decoded_number(int(code, 16)) if same and int(code, 16) else None
