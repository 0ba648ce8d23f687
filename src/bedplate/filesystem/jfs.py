"""JFS. It has one block size and no barriers: no kernel's JFS was ever seen to flush a device.

Read back from the mount table and from `jfs_tune -l`, which prints the superblock of the file system
or of an external log.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from bedplate.errors import OutputNotUnderstood
from bedplate.filesystem.arguments import Argument, joined, parse_arguments, refuse, warnings_in
from bedplate.filesystem.comparison import MKFS_OPTION, compared, fact, not_verifiable
from bedplate.filesystem.journal import decoded_number, journal_comparisons, without_device
from bedplate.filesystem.options import OptionRules, plan_words
from bedplate.filesystem.protocol import LABEL, CheckResult, checked_by
from bedplate.host.mount import mount, mount_entry, unmount
from bedplate.host.requirement import Need
from bedplate.model.filesystem import TRAITS
from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from bedplate.host.command import Commands
    from bedplate.host.device import AttachedDevice
    from bedplate.host.mount import MountEntry
    from bedplate.model.cell import FilesystemLevels
    from bedplate.model.visit import Comparison

# getopt string of jfs_mkfs 1.1.15 (mkfs/mkfs.c).
_VALUED = "jJLs"
_OWN = (Argument("-L", LABEL),)

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


class Jfs:
    """JFS, with its log inside or on a device of its own."""

    traits = TRAITS["jfs"]
    probe_bytes = 64 * MIB
    needs = (
        Need("mkfs.jfs", "jfsutils", "makes jfs"),
        Need("jfs_tune", "jfsutils", "reads back jfs"),
        Need("fsck.jfs", "jfsutils", "checks jfs"),
    )

    def versions(self, *, commands: Commands) -> Mapping[str, str]:
        """As `mkfs.jfs -V` says."""
        said = commands.run(["mkfs.jfs", "-V"], check=False).output
        found = re.search(r"mkfs.jfs version ([^\s,]+)", said)
        if found is None:
            raise OutputNotUnderstood("mkfs.jfs -V", expected="a version", found=said)
        return {"jfsutils": found[1]}

    def mkfs(
        self,
        levels: FilesystemLevels,
        device_path: str,
        *,
        commands: Commands,
        journal_path: str | None = None,
    ) -> tuple[str, ...]:
        """An external log is made first: mkfs.jfs attaches only what is there."""
        refuse(levels, journal_path)
        own = list(_OWN)
        if journal_path is not None:
            commands.run(["mkfs.jfs", "-q", "-L", LABEL, "-J", "journal_dev", journal_path], timeout_s=3600)
            own.append(Argument("-J", f"device={journal_path}"))
        words = joined(own, parse_arguments(levels.mkfs_options, valued=_VALUED), lists=())
        return warnings_in(commands.run(["mkfs.jfs", "-q", *words, device_path], timeout_s=3600).output)

    def mount_options(self, levels: FilesystemLevels) -> tuple[str, ...]:
        """The plan's own words: JFS has no option for a factor."""
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
        """Plain: the superblock names the log's device."""
        del journal_path
        return mount(device_path, target, "jfs", self.mount_options(levels), commands=commands)

    def read_back(
        self,
        levels: FilesystemLevels,
        device: AttachedDevice,
        target: Path,
        *,
        commands: Commands,
        journal: AttachedDevice | None = None,
    ) -> tuple[Comparison, ...]:
        """From statvfs, the mount table, and the superblocks of file system and log."""
        entry = mount_entry(target)
        superblock = parse_superblock(commands.run(["jfs_tune", "-l", device.path]).stdout)
        shown = {*entry.options, *entry.super_options}
        asked = levels.block_size_bytes
        kind = "internal" if "JFS_INLINELOG" in superblock["JFS flags"].split() else "external"
        found = None
        if journal is not None:
            log = parse_superblock(commands.run(["jfs_tune", "-l", journal.path]).stdout)
            found = log_device_of(superblock, log)
        size = _number(superblock.get("Aggregate block size"))
        return (
            compared("filesystem.type", levels.type, entry.type, "mountinfo"),
            compared("filesystem.block_size_bytes", asked, os.statvfs(target).f_bsize, "statvfs"),
            compared("filesystem.superblock.block_size_bytes", asked, size, "jfs_tune"),
            *journal_comparisons(levels, kind, found, journal, "jfs_tune"),
            *_RULES.compare(plan_words(levels), shown, "mountinfo"),
            *_compare_mkfs(parse_arguments(levels.mkfs_options, valued=_VALUED), superblock),
            *_facts(superblock),
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
        """`fsck.jfs -n -f`: everything, opened read-only; status 0 is clean (jfs_fsck(8))."""
        del levels
        log = () if journal_path is None else ("-j", journal_path)
        done = commands.run(["fsck.jfs", "-n", "-f", *log, device_path], timeout_s=3600, check=False)
        return checked_by(done)


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


def log_device_of(superblock: Mapping[str, str], log: Mapping[str, str]) -> str | None:
    """`major:minor` of the external log, if the log that stands there is the file system's own."""
    code = superblock.get("Log device number", "0x0")
    same = superblock.get("External log UUID", "no") == log.get("Log device UUID")
    return decoded_number(int(code, 16)) if same and int(code, 16) else None


def _facts(superblock: Mapping[str, str]) -> Iterator[Comparison]:
    source = "jfs_tune"
    yield fact("filesystem.label", superblock.get("Volume label"), source)
    yield fact("filesystem.superblock.flags", " ".join(superblock["JFS flags"].split()), source)
    for name, key in (
        ("version", "JFS version"),
        ("aggregate_blocks", "Aggregate size"),
        ("physical_block_bytes", "Physical block size"),
        ("allocation_group_blocks", "Allocation group size"),
    ):
        yield fact(f"filesystem.superblock.{name}", _number(superblock.get(key)), source)


def _compare_mkfs(arguments: Collection[Argument], superblock: Mapping[str, str]) -> Iterator[Comparison]:
    for argument in arguments:
        name = f"{MKFS_OPTION}{argument.flag}"
        if argument.flag == "-O":
            folds = "JFS_OS2" in superblock["JFS flags"].split()
            yield compared(name, "-O", "-O" if folds else None, "jfs_tune")
        else:
            yield not_verifiable(name, argument.text, "the superblock does not show it")


def _number(text: str | None) -> int | None:
    found = re.match(r"(\d+)\b", text or "")
    return int(found[1]) if found else None
