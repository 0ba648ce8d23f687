"""ReiserFS (version 3), in kernels up to 6.12.

Read back from the mount table, which hides what is at its default, and from the superblock as
`debugreiserfs` prints it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

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
from bedplate.model.filesystem import LABEL, TRAITS
from bedplate.model.visit import ReadBack
from bedplate.units import MIB

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


class Reiserfs(Filesystem):
    """ReiserFS, with its journal inside or on a device of its own."""

    traits = TRAITS["reiserfs"]
    probe_bytes = 128 * MIB
    package = "reiserfsprogs"
    tools = (("mkreiserfs", "makes"), ("debugreiserfs", "reads back"), ("reiserfsck", "checks"))
    version_argv = ("mkreiserfs", "-V")
    version_pattern = r"mkreiserfs (\d\S*)"
    version_by_status = False
    # Twice forced: it would ask otherwise.
    mkfs_words = ("mkreiserfs", "-q", "-f", "-f")
    # getopt string of mkreiserfs 3.6.27 (mkreiserfs/mkreiserfs.c).
    valued = "bBhjloOstu"
    own = (Argument("-l", LABEL),)
    block_size_option = ("-b", "{}")
    # The superblock's number of the journal's device may be stale.
    journal_option = "jdev"
    # Status 0 is clean (reiserfsck(8)); there is nothing left to replay.
    fsck = ("reiserfsck", "-q", "-y", "--check")
    fsck_journal_flag = "-j"
    rules = _RULES
    barrier_off_shown = frozenset({"barrier=none"})
    reader = "debugreiserfs"
    block_size_key = "Blocksize"
    label_key = "LABEL"
    text_facts: Mapping[str, str] = {"format": "format"}
    number_facts: Mapping[str, str] = {
        "blocks": "Count of blocks on the device",
        "journal_blocks": "Size",
        "transaction_blocks_max": "Max transaction length",
        "commit_age_s_max": "Max commit age",
    }
    number_flags: Mapping[str, str] = {
        **dict.fromkeys(("-b", "--block-size"), "Blocksize"),
        **dict.fromkeys(("-s", "--journal-size"), "Size"),
        **dict.fromkeys(("-t", "--transaction-max-size"), "Max transaction length"),
        "-o": "first journal block",
    }

    def _mkfs_arguments(self, site: Site) -> Iterator[Argument]:
        if site.journal is not None:
            yield Argument("-j", site.journal.path)

    def _superblock(self, site: Site) -> Mapping[str, str]:
        return parse_superblock(site.commands.run(["debugreiserfs", site.device.path]).stdout)

    def _state(self, site: Site, mount: Mounted) -> Iterator[ReadBack]:
        data = next((word.partition("=")[2] for word in mount.shown if word.startswith("data=")), "ordered")
        yield compared("filesystem.data", site.levels.features.get("data"), data, "mountinfo")
        code = int(mount.superblock["Device"], 16)
        named = any(word.startswith("jdev=") for word in mount.shown)
        on_device = decoded_number(code) if code and named else None
        kind, source = "external" if code else "internal", "debugreiserfs and mountinfo"
        yield from journal_comparisons(site.levels, kind, on_device, site.journal, source)

    def _compare_argument(self, argument: Argument, superblock: Mapping[str, str]) -> Iterator[ReadBack]:
        name, value = f"{MKFS_OPTION}{argument.flag}", argument.value
        if argument.flag in ("-h", "--hash"):
            yield compared(name, value, superblock.get(_HASH, "").strip('"'), "debugreiserfs")
        elif argument.flag == "--format":
            yield compared(name, value, superblock.get("format"), "debugreiserfs")
        else:
            yield from super()._compare_argument(argument, superblock)

    def _facts(self, superblock: Mapping[str, str]) -> Iterator[ReadBack]:
        yield from super()._facts(superblock)
        hash_function = superblock.get(_HASH, "").strip('"') or None
        yield fact("filesystem.superblock.hash", hash_function, self.reader)


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


_HASH = "Hash function used to sort names"
