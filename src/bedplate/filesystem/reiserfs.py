"""ReiserFS (version 3), in kernels up to 6.12.

Read back from the mount table, which hides what is at its default, and from the superblock as
`debugreiserfs` prints it.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from bedplate.errors import OutputNotUnderstood
from bedplate.filesystem.arguments import Argument, joined, parse_arguments, refuse, warnings_in
from bedplate.filesystem.comparison import MKFS_OPTION, compared, fact, not_verifiable
from bedplate.filesystem.journal import decoded_number, journal_comparisons, without_device
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

# getopt string of mkreiserfs 3.6.27 (mkreiserfs/mkreiserfs.c).
_VALUED = "bBhjloOstu"
_OWN = (Argument("-l", LABEL),)
_LONG = {
    "--block-size": "-b",
    "--journal-size": "-s",
    "--transaction-max-size": "-t",
    "--hash": "-h",
}

# fs/reiserfs/super.c, reiserfs_show_options: what is at its default is not shown.
_RULES = OptionRules(
    synonyms={"tails=off": "notail", "tails=on": "tails=on"},
    hidden={
        "barrier=flush": ("barrier=none",),
        "data=ordered": ("data=",),
        "tails=small": ("tails=on", "notail"),
        "errors=ro-remount": ("errors=",),
        "nouser_xattr": ("user_xattr",),
        "noacl": ("acl",),
        "noattrs": ("attrs",),
        "commit=30": ("commit=",),
    },
    unseen=frozenset({"conv", "nolog", "replayonly", "block-allocator=", "alloc=", "resize="}),
)


class Reiserfs:
    """ReiserFS, with its journal inside or on a device of its own."""

    traits = TRAITS["reiserfs"]
    probe_bytes = 128 * MIB
    needs = (
        Need("mkreiserfs", "reiserfsprogs", "makes reiserfs"),
        Need("debugreiserfs", "reiserfsprogs", "reads back reiserfs"),
        Need("reiserfsck", "reiserfsprogs", "checks reiserfs"),
    )

    def versions(self, *, commands: Commands) -> Mapping[str, str]:
        """As `mkreiserfs -V` says."""
        said = commands.run(["mkreiserfs", "-V"], check=False).output
        found = re.search(r"mkreiserfs (\d\S*)", said)
        if found is None:
            raise OutputNotUnderstood("mkreiserfs -V", expected="a version", found=said)
        return {"reiserfsprogs": found[1]}

    def mkfs(
        self,
        levels: FilesystemLevels,
        device_path: str,
        *,
        commands: Commands,
        journal_path: str | None = None,
    ) -> tuple[str, ...]:
        """Twice forced: it would ask otherwise."""
        refuse(levels, journal_path)
        own = list(_OWN)
        if levels.block_size_bytes is not None:
            own.append(Argument("-b", str(levels.block_size_bytes)))
        if journal_path is not None:
            own.append(Argument("-j", journal_path))
        words = joined(own, parse_arguments(levels.mkfs_options, valued=_VALUED), lists=())
        done = commands.run(["mkreiserfs", "-q", "-f", "-f", *words, device_path], timeout_s=3600)
        return warnings_in(done.output)

    def mount_options(self, levels: FilesystemLevels) -> tuple[str, ...]:
        """Barrier and data mode, then the plan's own words."""
        return (*factor_words(levels), *plan_words(levels))

    def mount(
        self,
        levels: FilesystemLevels,
        device_path: str,
        target: Path,
        *,
        commands: Commands,
        journal_path: str | None = None,
    ) -> MountEntry:
        """With the journal's device, if it has one of its own: the superblock's number alone may be stale."""
        journal = () if journal_path is None else (f"jdev={journal_path}",)
        words = (*self.mount_options(levels), *journal)
        return mount(device_path, target, "reiserfs", words, commands=commands)

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
        entry = mount_entry(target)
        superblock = parse_superblock(commands.run(["debugreiserfs", device.path]).stdout)
        shown = {*entry.options, *entry.super_options}
        asked = levels.block_size_bytes
        data = next((word.partition("=")[2] for word in shown if word.startswith("data=")), "ordered")
        code = int(superblock["Device"], 16)
        named = any(word.startswith("jdev=") for word in shown)
        on_device = decoded_number(code) if code and named else None
        kind = "external" if code else "internal"
        size = _number(superblock.get("Blocksize"))
        return (
            compared("filesystem.type", levels.type, entry.type, "mountinfo"),
            compared("filesystem.block_size_bytes", asked, os.statvfs(target).f_bsize, "statvfs"),
            compared("filesystem.superblock.block_size_bytes", asked, size, "debugreiserfs"),
            compared("filesystem.barrier", levels.barrier, "barrier=none" not in shown, "mountinfo"),
            compared("filesystem.data", levels.features.get("data"), data, "mountinfo"),
            *journal_comparisons(levels, kind, on_device, journal, "debugreiserfs and mountinfo"),
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
        """`reiserfsck --check`: status 0 is clean (reiserfsck(8)); there is nothing left to replay."""
        del levels
        journal = () if journal_path is None else ("-j", journal_path)
        argv = ["reiserfsck", "-q", "-y", "--check", *journal, device_path]
        done = commands.run(argv, timeout_s=3600, check=False)
        return checked_by(done)


def parse_superblock(text: str) -> Mapping[str, str]:
    """Lines of `debugreiserfs` as `key`, `format` among them; OutputNotUnderstood if it is none.

    Most lines are `Key: value`; the parameters of the journal are `Key value` below their own heading.
    """
    found: dict[str, str] = {}
    head = re.search(r"Reiserfs super block in block \d+ on \S+ of format (\S+) with (\S+) journal", text)
    if head:
        found["format"], found["journal"] = head[1], head[2]
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and not line.startswith("\t"):
            found[key.strip()] = value.strip()
        elif inner := re.match(r"\t(Device|Magic|Size|Max [a-z ]+?) \[?(0x[0-9a-f]+|\d+)\b", line):
            found[inner[1]] = inner[2]
        if block := re.search(r"\(first block (\d+)\)", line):
            found["first journal block"] = block[1]
    if not {"format", "Blocksize", "Device"} <= found.keys():
        raise OutputNotUnderstood("debugreiserfs", expected="a superblock of ReiserFS", found=text)
    return found


def _facts(superblock: Mapping[str, str]) -> Iterator[Comparison]:
    source = "debugreiserfs"
    yield fact("filesystem.label", superblock.get("LABEL"), source)
    yield fact("filesystem.superblock.format", superblock.get("format"), source)
    yield fact("filesystem.superblock.hash", superblock.get(_HASH, "").strip('"') or None, source)
    for name, key in (
        ("blocks", "Count of blocks on the device"),
        ("journal_blocks", "Size"),
        ("transaction_blocks_max", "Max transaction length"),
        ("commit_age_s_max", "Max commit age"),
    ):
        yield fact(f"filesystem.superblock.{name}", _number(superblock.get(key)), source)


_HASH = "Hash function used to sort names"


def _compare_mkfs(arguments: Collection[Argument], superblock: Mapping[str, str]) -> Iterator[Comparison]:
    numbers = {"-b": "Blocksize", "-s": "Size", "-t": "Max transaction length", "-o": "first journal block"}
    for argument in arguments:
        flag, value = _LONG.get(argument.flag, argument.flag), argument.value
        name = f"{MKFS_OPTION}{argument.flag}"
        if flag in numbers and value is not None:
            asked = int(value) if value.isdigit() else value
            yield compared(name, asked, _number(superblock.get(numbers[flag])), "debugreiserfs")
        elif flag == "-h":
            yield compared(name, value, superblock.get(_HASH, "").strip('"'), "debugreiserfs")
        elif flag == "--format":
            yield compared(name, value, superblock.get("format"), "debugreiserfs")
        else:
            yield not_verifiable(name, argument.text, "the superblock does not show it")


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
