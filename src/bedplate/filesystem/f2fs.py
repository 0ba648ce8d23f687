"""F2FS. Read back from the mount table, which shows nearly every option, and from the superblock (dump.f2fs).

It would discard by itself on every device that can, a loop device among them: bedplate turns that off
unless asked. It has blocks of one size, the page's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from bedplate.errors import OutputNotUnderstood
from bedplate.filesystem.adapter import (
    MKFS_OPTION,
    Argument,
    CheckResult,
    Filesystem,
    OptionRules,
    Site,
    checked_by,
    compared,
    fact,
    number,
    number_or_text,
)
from bedplate.filesystem.blocks import Layout, f2fs_layout
from bedplate.model.filesystem import LABEL, TRAITS
from bedplate.model.visit import ReadBack
from bedplate.units import MIB

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


_LOOK_LIMIT_S = 120.0


class F2fs(Filesystem):
    """F2FS on one device."""

    traits = TRAITS["f2fs"]
    probe_bytes = 128 * MIB
    package = "f2fs-tools"
    tools = (("mkfs.f2fs", "makes"), ("dump.f2fs", "reads back"), ("fsck.f2fs", "checks"))
    version_argv = ("mkfs.f2fs", "-V")
    version_pattern = r"mkfs\.f2fs (\S+)"
    version_by_status = False
    mkfs_words = ("mkfs.f2fs", "-q")
    # getopt string of mkfs.f2fs 1.15 (mkfs/f2fs_format_main.c).
    valued = "acCdeEglooORstTUwz"
    # Without discarding.
    own = (Argument("-t", "0"), Argument("-f", None), Argument("-l", LABEL))
    discards_by_itself = True
    fsck = ("fsck.f2fs", "--dry-run", "-f")
    rules = _RULES
    # Its other option for the same.
    barrier_off_shown = frozenset({"nobarrier", "fsync_mode=nobarrier"})
    reader = "dump.f2fs"
    label_key = "label"
    text_facts: Mapping[str, str] = {"features": "features"}
    number_facts: Mapping[str, str] = {
        "blocks": "block_count",
        "segments_per_section": "segs_per_sec",
        "sections_per_zone": "secs_per_zone",
        "overprovisioned_segments": "overprov_segment_count",
    }
    number_flags: Mapping[str, str] = {"-s": "segs_per_sec", "-z": "secs_per_zone"}

    def check(self, site: Site) -> CheckResult:
        """Status 0 is clean; with damage it asks, and nobody answers."""
        done = self._run_fsck(site)
        found = checked_by(done)
        return replace(found, clean=found.clean and "[Fail]" not in done.stdout)

    def layout(self, site: Site) -> Layout:
        """By dump.f2fs; empty where its superblock is none."""
        found = site.commands.run(
            ["dump.f2fs", "-d", "1", site.device.path], timeout_s=_LOOK_LIMIT_S, check=False
        )
        return f2fs_layout(_numbers_in(found.stdout))

    def _superblock(self, site: Site) -> Mapping[str, str]:
        return parse_superblock(site.commands.run(["dump.f2fs", "-d", "1", site.device.path]).stdout)

    def _block_bytes(self, superblock: Mapping[str, str]) -> int | None:
        return power(superblock.get("log_blocksize"))

    def _compare_argument(self, argument: Argument, superblock: Mapping[str, str]) -> Iterator[ReadBack]:
        name, value = f"{MKFS_OPTION}{argument.flag}", argument.value
        if argument.flag == "-w" and value is not None:
            sector_bytes = power(superblock.get("log_sectorsize"))
            yield compared(name, number_or_text(value), sector_bytes, "dump.f2fs")
        elif argument.flag == "-O":
            features = superblock.get("features", "").split()
            for part, _ in argument.parts:
                yield compared(f"{name}.{part}", part, part if part in features else None, "dump.f2fs")
        else:
            yield from super()._compare_argument(argument, superblock)

    def _facts(self, superblock: Mapping[str, str]) -> Iterator[ReadBack]:
        yield from super()._facts(superblock)
        sector_bytes = power(superblock.get("log_sectorsize"))
        yield fact("filesystem.superblock.sector_bytes", sector_bytes, self.reader)


def parse_superblock(text: str) -> Mapping[str, str]:
    """The fields of the superblock as `dump.f2fs -d 1` prints them: decimal numbers and texts.

    OutputNotUnderstood if its magic is not there.
    """
    found = _numbers_in(text)
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


def _numbers_in(text: str) -> dict[str, str]:
    return dict(re.findall(r"^(\w+)\s+\[0x\s*[0-9a-f]+ : (\d+)\]", text, re.MULTILINE))


def power(text: str | None) -> int | None:
    """Two to the power of a number, which is how the superblock keeps sizes."""
    exponent = number(text)
    return None if exponent is None else 1 << exponent
