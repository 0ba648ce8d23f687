"""F2FS. Read back from the mount table, which shows nearly every option, and from the superblock (dump.f2fs).

It would discard by itself on every device that can, a loop device among them: bedplate turns that off
unless asked. It has blocks of one size, the page's.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.errors import OutputNotUnderstood
from bedplate.filesystem.arguments import Argument, joined, parse_arguments, refuse, warnings_in
from bedplate.filesystem.comparison import MKFS_OPTION, compared, fact, not_verifiable
from bedplate.filesystem.options import OptionRules, factor_words, plan_words
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

# getopt string of mkfs.f2fs 1.15 (mkfs/f2fs_format_main.c).
_VALUED = "acCdeEglooORstTUwz"
_OWN = (Argument("-t", "0"), Argument("-f", None), Argument("-l", LABEL))

# fs/f2fs/super.c, f2fs_show_options: kernels differ in which defaults they show.
_RULES = OptionRules(
    hidden={
        "barrier": ("nobarrier",),
        "nodiscard": ("discard",),
        "noflush_merge": ("flush_merge",),
        "nofastboot": ("fastboot",),
        "nodata_flush": ("data_flush",),
        "mode=adaptive": ("mode=",),
        "fsync_mode=posix": ("fsync_mode=",),
        "background_gc=on": ("background_gc=",),
    },
)


class F2fs:
    """F2FS on one device."""

    traits = TRAITS["f2fs"]
    probe_bytes = 128 * MIB
    needs = (
        Need("mkfs.f2fs", "f2fs-tools", "makes f2fs"),
        Need("dump.f2fs", "f2fs-tools", "reads back f2fs"),
        Need("fsck.f2fs", "f2fs-tools", "checks f2fs"),
    )

    def versions(self, *, commands: Commands) -> Mapping[str, str]:
        """As `mkfs.f2fs -V` says."""
        said = commands.run(["mkfs.f2fs", "-V"], check=False).output
        found = re.search(r"mkfs\.f2fs (\S+)", said)
        if found is None:
            raise OutputNotUnderstood("mkfs.f2fs -V", expected="a version", found=said)
        return {"f2fs-tools": found[1]}

    def mkfs(
        self,
        levels: FilesystemLevels,
        device_path: str,
        *,
        commands: Commands,
        journal_path: str | None = None,
    ) -> tuple[str, ...]:
        """Without discarding."""
        refuse(levels, journal_path)
        words = joined(_OWN, parse_arguments(levels.mkfs_options, valued=_VALUED), lists=())
        return warnings_in(commands.run(["mkfs.f2fs", "-q", *words, device_path], timeout_s=3600).output)

    def mount_options(self, levels: FilesystemLevels) -> tuple[str, ...]:
        """No discard of its own, the barrier, then the plan's own words."""
        asked = plan_words(levels)
        discards = any(word in ("discard", "nodiscard") for word in asked)
        return (*(() if discards else ("nodiscard",)), *factor_words(levels), *asked)

    def mount(
        self,
        levels: FilesystemLevels,
        device_path: str,
        target: Path,
        *,
        commands: Commands,
        journal_path: str | None = None,
    ) -> MountEntry:
        """Plain."""
        del journal_path
        return mount(device_path, target, "f2fs", self.mount_options(levels), commands=commands)

    def read_back(
        self,
        levels: FilesystemLevels,
        device: AttachedDevice,
        target: Path,
        *,
        commands: Commands,
        journal: AttachedDevice | None = None,
    ) -> tuple[Comparison, ...]:
        """From statvfs, the mount table and the superblock."""
        del journal
        entry = mount_entry(target)
        superblock = parse_superblock(commands.run(["dump.f2fs", "-d", "1", device.path]).stdout)
        shown = {*entry.options, *entry.super_options}
        asked = levels.block_size_bytes
        # Its other option for the same.
        flushes = not {"nobarrier", "fsync_mode=nobarrier"} & shown
        own = [word for word in self.mount_options(levels) if word == "nodiscard"]
        words = dict.fromkeys((*own, *plan_words(levels)))
        return (
            compared("filesystem.type", levels.type, entry.type, "mountinfo"),
            compared("filesystem.block_size_bytes", asked, os.statvfs(target).f_bsize, "statvfs"),
            compared(
                "filesystem.superblock.block_size_bytes",
                asked,
                _power(superblock, "log_blocksize"),
                "dump.f2fs",
            ),
            compared("filesystem.barrier", levels.barrier, flushes, "mountinfo"),
            *_RULES.compare(words, shown, "mountinfo"),
            *_compare_mkfs(parse_arguments(levels.mkfs_options, valued=_VALUED), superblock),
            *_facts(superblock),
            fact("filesystem.mount_options", ",".join(sorted(shown)), "mountinfo"),
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
        """`fsck.f2fs --dry-run -f`: status 0 is clean; with damage it asks, and nobody answers."""
        del levels, journal_path
        argv = ["fsck.f2fs", "--dry-run", "-f", device_path]
        done = commands.run(argv, timeout_s=3600, check=False)
        found = checked_by(done)
        return replace(found, clean=found.clean and "[Fail]" not in done.stdout)


def parse_superblock(text: str) -> Mapping[str, str]:
    """The fields of the superblock as `dump.f2fs -d 1` prints them: decimal numbers and texts.

    OutputNotUnderstood if its magic is not there.
    """
    found = dict(re.findall(r"^(\w+)\s+\[0x\s*[0-9a-f]+ : (\d+)\]", text, re.MULTILINE))
    label = re.search(r"^volum_name\s+\[(.*)\]$", text, re.MULTILINE)
    if label:
        found["label"] = label[1]
    features = re.search(r"superblock features = [0-9a-f]+ : ?(.*)", text)
    if features:
        found["features"] = features[1].strip()
    # include/f2fs_fs.h, F2FS_SUPER_MAGIC
    if found.get("magic") != str(0xF2F52010):
        raise OutputNotUnderstood("dump.f2fs", expected="a superblock with magic 0xf2f52010", found=text)
    return found


def _facts(superblock: Mapping[str, str]) -> Iterator[Comparison]:
    source = "dump.f2fs"
    yield fact("filesystem.label", superblock.get("label"), source)
    yield fact("filesystem.superblock.features", superblock.get("features"), source)
    yield fact("filesystem.superblock.sector_bytes", _power(superblock, "log_sectorsize"), source)
    for name, key in (
        ("blocks", "block_count"),
        ("segments_per_section", "segs_per_sec"),
        ("sections_per_zone", "secs_per_zone"),
        ("overprovisioned_segments", "overprov_segment_count"),
    ):
        yield fact(f"filesystem.superblock.{name}", _number(superblock.get(key)), source)


def _compare_mkfs(arguments: Collection[Argument], superblock: Mapping[str, str]) -> Iterator[Comparison]:
    numbers = {"-s": "segs_per_sec", "-z": "secs_per_zone"}
    for argument in arguments:
        name, value = f"{MKFS_OPTION}{argument.flag}", argument.value
        if argument.flag in numbers and value is not None:
            asked = int(value) if value.isdigit() else value
            yield compared(name, asked, _number(superblock.get(numbers[argument.flag])), "dump.f2fs")
        elif argument.flag == "-w" and value is not None:
            asked = int(value) if value.isdigit() else value
            yield compared(name, asked, _power(superblock, "log_sectorsize"), "dump.f2fs")
        elif argument.flag == "-O":
            features = superblock.get("features", "").split()
            for part, _ in argument.parts:
                yield compared(f"{name}.{part}", part, part if part in features else None, "dump.f2fs")
        else:
            yield not_verifiable(name, argument.text, "the superblock does not show it")


def _power(superblock: Mapping[str, str], key: str) -> int | None:
    exponent = _number(superblock.get(key))
    return None if exponent is None else 1 << exponent


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
