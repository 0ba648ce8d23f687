"""NILFS2, with its cleaner: a log that is only ever written to the end needs one that makes room.

mount(8)'s helper would start the cleaner with whatever configuration the machine has, and hide its
process. So the kernel is asked without the helper (`mount -i`), and the cleaner is started here, seen
in the read back, and ended before the unmount. The helper's own words `nogc` and `pp=` are kept.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

from bedplate.errors import OutputNotUnderstood, VerifyFailed
from bedplate.filesystem.adapter import (
    MKFS_OPTION,
    MOUNT_OPTION,
    Argument,
    CheckResult,
    Filesystem,
    Mounted,
    OptionRules,
    Site,
    compared,
    fact,
    factor_words,
    plan_words,
)
from bedplate.filesystem.blocks import Layout, Nilfs2AtRest, newest_superblock, nilfs2_layout
from bedplate.host.mount import MountEntry, find_mount
from bedplate.host.process import end_process, pids_running, wait_until
from bedplate.model.cell import FilesystemLevels
from bedplate.model.filesystem import LABEL, TRAITS
from bedplate.model.visit import ReadBack
from bedplate.units import MIB

CLEANER = "nilfs_cleanerd"
_CONFIGURATION = Path(__file__).with_name("nilfs_cleanerd.conf")
_START_PATIENCE_S = 10.0
_VALID = 1
_NO_CLEANER = "nogc"
_PROTECTION = "pp="

# fs/nilfs2/super.c, nilfs_show_options: what is at its default is not shown.
_RULES = OptionRules(
    hidden={
        "barrier": ("nobarrier",),
        "nodiscard": ("discard",),
        "order=relaxed": ("order=",),
        "errors=remount-ro": ("errors=",),
    },
)


class Nilfs2(Filesystem):
    """NILFS2 and its cleaner daemon."""

    traits = TRAITS["nilfs2"]
    # A device needs some hundred MiB for its reserve, whatever the block size.
    probe_bytes = 256 * MIB
    package = "nilfs-tools"
    tools = (("mkfs.nilfs2", "makes"), ("nilfs-tune", "reads back"), (CLEANER, "makes room on"))
    version_argv = ("mkfs.nilfs2", "-V")
    version_pattern = r"nilfs-utils (\d[^)\s]*)"
    version_by_status = False
    mkfs_words = ("mkfs.nilfs2", "-q")
    # getopt string of mkfs.nilfs2 2.2.9 (sbin/mkfs/mkfs.c).
    valued = "BbLmOP"
    # Without discarding.
    own = (Argument("-K", None), Argument("-f", None), Argument("-L", LABEL))
    block_size_option = ("-b", "{}")
    mount_program = ("mount", "-i", "-t", "nilfs2")
    metadata_at_rest = Nilfs2AtRest
    rules = _RULES
    reader = "nilfs-tune"
    block_size_key = "Block size"
    text_facts: Mapping[str, str] = {"revision": "Filesystem revision #", "features": "Filesystem features"}
    number_facts: Mapping[str, str] = {
        "inode_bytes": "Inode size",
        "segments": "Number of segments",
        "blocks_per_segment": "# of blocks per segment",
        "reserved_segments_percent": "Reserved segments %",
        "commit_interval_s": "Commit interval",
    }
    number_flags: Mapping[str, str] = {
        "-b": "Block size",
        "-B": "# of blocks per segment",
        "-m": "Reserved segments %",
    }

    def mount_options(self, levels: FilesystemLevels) -> tuple[str, ...]:
        """The barrier, then the plan's own words, the cleaner's left out."""
        return (*factor_words(levels), *(word for word in plan_words(levels) if not _is_cleaners(word)))

    def mount(self, site: Site) -> MountEntry:
        """The file system first, then the cleaner on it."""
        entry = super().mount(site)
        if _NO_CLEANER not in plan_words(site.levels):
            _start_cleaner(site)
        return entry

    def layout(self, site: Site) -> Layout:
        """Its superblocks, whose places follow from the device's size."""
        with Path(site.device.path).open("rb") as device:
            return nilfs2_layout(device.seek(0, os.SEEK_END))

    def _superblock(self, site: Site) -> Mapping[str, str]:
        return parse_superblock(site.commands.run(["nilfs-tune", "-l", site.device.path]).stdout)

    def _state(self, site: Site, _mount: Mounted) -> Iterator[ReadBack]:
        cleaning = bool(cleaners_of(site.target))
        yield compared("filesystem.cleaner", _NO_CLEANER not in plan_words(site.levels), cleaning, "/proc")
        protection_s = _protection_s(site.levels) if cleaning else None
        yield fact("filesystem.cleaner.protection_s", protection_s, CLEANER)

    def _option_comparisons(self, site: Site, mount: Mounted) -> Iterator[ReadBack]:
        words = plan_words(site.levels)
        others = (word for word in words if not _is_cleaners(word))
        yield from mount.rules.compare(others, mount.shown, mount.source)
        yield from (_compare_cleaners(word, site.target) for word in words if _is_cleaners(word))

    def unmount(self, site: Site) -> bool:
        """The cleaner first: it holds the mount point."""
        if find_mount(site.target) is not None:
            for pid in cleaners_of(site.target):
                end_process(pid, gently=signal.SIGTERM)
        return super().unmount(site)

    def check(self, site: Site) -> CheckResult:
        """There is no fsck: the newest superblock must be whole and say that it was left in order.

        Of its two, the kernel makes only that one valid at an unmount (fs/nilfs2/super.c,
        nilfs_cleanup_super), and nilfs-tune may show the other.
        """
        newest = newest_superblock(Path(site.device.path))
        if newest is None:
            return CheckResult(clean=False, text="neither superblock of nilfs2 is whole")
        said = f"its newest superblock, of checkpoint {newest.checkpoint}, has state {newest.state}"
        return CheckResult(newest.state == _VALID, f"nilfs2 has no fsck; {said}")

    def _compare_argument(self, argument: Argument, superblock: Mapping[str, str]) -> Iterator[ReadBack]:
        if argument.flag != "-O":
            yield from super()._compare_argument(argument, superblock)
            return
        features = superblock.get("Filesystem features", "").split()
        for part, _ in argument.parts:
            plain = part.lstrip("^")
            effective = plain if plain in features else f"^{plain}"
            yield compared(f"{MKFS_OPTION}-O.{plain}", part, effective, "nilfs-tune")


def cleaners_of(target: Path) -> tuple[int, ...]:
    """The cleaners that work on this mount point."""
    return pids_running(CLEANER, os.path.realpath(target))


def parse_superblock(text: str) -> Mapping[str, str]:
    """`Key: value` lines of `nilfs-tune -l`; OutputNotUnderstood if it is not one."""
    pairs = (line.partition(":") for line in text.splitlines() if ":" in line)
    found = {key.strip(): value.strip() for key, _, value in pairs}
    if found.get("Filesystem magic number") != "0x3434":
        raise OutputNotUnderstood("nilfs-tune -l", expected="a superblock with magic 0x3434", found=text)
    return found


def _start_cleaner(site: Site) -> None:
    """It becomes a daemon at once and says on the system's log alone why it cannot go on."""
    period = ("-p", str(_protection_s(site.levels)))
    # Real paths, as the daemon shows none of its own: it is known again by its mount point.
    argv = [CLEANER, "-c", str(_CONFIGURATION), *period, site.device.path, os.path.realpath(site.target)]
    site.commands.run(argv)
    if not wait_until(lambda: bool(cleaners_of(site.target)), deadline_s=_START_PATIENCE_S):
        raise VerifyFailed(
            f"{CLEANER} did not stay on {site.target}; `{' '.join(argv)}` and the system's log say why"
        )


def _protection_s(levels: FilesystemLevels) -> int:
    """What the plan asks for, else what stands in the configuration."""
    asked = [word for word in plan_words(levels) if word.startswith(_PROTECTION)]
    if asked and asked[-1].removeprefix(_PROTECTION).isdigit():
        return int(asked[-1].removeprefix(_PROTECTION))
    found = re.search(r"^protection_period\s+(\d+)", _CONFIGURATION.read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None  # noqa: S101 -- bedplate's own file
    return int(found[1])


def _is_cleaners(word: str) -> bool:
    return word == _NO_CLEANER or word.startswith(_PROTECTION)


def _compare_cleaners(word: str, target: Path) -> ReadBack:
    """Whether the running cleaner was started as the word asks."""
    name = f"{MOUNT_OPTION}{word.partition('=')[0]}"
    if word == _NO_CLEANER:
        return compared(name, word, None if cleaners_of(target) else word, "/proc")
    periods = [_period_of(pid) for pid in cleaners_of(target)]
    return compared(name, word, f"{_PROTECTION}{periods[0]}" if periods else None, "/proc")


def _period_of(pid: int) -> str | None:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    return words[words.index("-p") + 1] if "-p" in words else None
