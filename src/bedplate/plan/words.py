"""Words that reach mkfs, mount and the kernel: what a plan may hand on, and what it may not smuggle.

bedplate runs as root. A word that names another device would let a plan erase it (`mkfs.btrfs`
takes several devices, XFS a `logdev=`), so no word holds a path or a device's name, whatever tool
reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

_MOUNT_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:=+@%-]{0,199}")
_MKFS_WORD = re.compile(r"[A-Za-z0-9_.:=+@%,^-]{1,200}")

_NAMES_A_DEVICE = re.compile(
    r"(^|^--|,)(device|logdev|rtdev|jdev|journal_dev|journal_path|name|file|protofile)(=|,|$)", re.IGNORECASE
)

# What mount(8) itself acts upon, or what takes away the writing that a database needs.
_MOUNT_COMMANDS = frozenset(
    [
        "bind",
        "rbind",
        "move",
        "remount",
        "loop",
        "ro",
        "shared",
        "rshared",
        "private",
        "rprivate",
        "slave",
        "rslave",
        "unbindable",
        "runbindable",
        "user",
        "users",
        "owner",
        "group",
        "defaults",
        "_netdev",
        "nofail",
        "auto",
        "noauto",
    ]
)

_MOUNT_PREFIXES = (
    "x-",
    "X-",
    "loop=",
    "offset=",
    "sizelimit=",
    "helper=",
    "uhelper=",
    "encryption=",
    "verity.",
)

_BLOCK_SIZE = "write block_size instead"
_MAKES_NOTHING = "it makes no file system, or not all of it"
_READS_A_FILE = "it names a file or a directory"
_BAD_BLOCKS = "it reads the whole device for bad blocks"
_OTHER_DEVICES = "it names further devices"
_LABEL = "the label is how bedplate knows its own file systems again"

_EXT = {
    "-b": _BLOCK_SIZE,
    "-n": _MAKES_NOTHING,
    "-S": _MAKES_NOTHING,
    "-d": _READS_A_FILE,
    "-z": _READS_A_FILE,
    "-l": _READS_A_FILE,
    "-c": _BAD_BLOCKS,
}

_NTFS = {
    "-c": _BLOCK_SIZE,
    "--cluster-size": _BLOCK_SIZE,
    "-n": _MAKES_NOTHING,
    "--no-action": _MAKES_NOTHING,
    "-l": _MAKES_NOTHING,
    "--license": _MAKES_NOTHING,
}

# What each mkfs must not be told, by the option's first two characters or its long name.
_MKFS_REFUSED: Mapping[str, Mapping[str, str]] = {
    "ext2": _EXT,
    "ext3": _EXT,
    "ext4": _EXT,
    "xfs": {"-b": _BLOCK_SIZE, "-N": _MAKES_NOTHING, "-c": _READS_A_FILE, "-p": _READS_A_FILE},
    "btrfs": {
        "-s": _BLOCK_SIZE,
        "--sectorsize": _BLOCK_SIZE,
        "-r": _READS_A_FILE,
        "--rootdir": _READS_A_FILE,
    },
    "jfs": {"-c": _BAD_BLOCKS, "-j": _READS_A_FILE},
    "reiserfs": {"-b": _BLOCK_SIZE, "-j": _READS_A_FILE, "-l": _LABEL},
    "nilfs2": {"-b": _BLOCK_SIZE, "-n": _MAKES_NOTHING, "-c": _BAD_BLOCKS},
    "f2fs": {"-b": _BLOCK_SIZE, "-c": _OTHER_DEVICES, "-l": _LABEL},
    "ntfs3": _NTFS,
    "ntfs-3g": _NTFS,
    "zfs": {
        "-n": _MAKES_NOTHING,
        "-m": "bedplate decides where it is mounted",
        "-R": "bedplate decides where it is mounted",
        "-t": _LABEL,
    },
}

_MKFS_REFUSED_EVERYWHERE = {"-V": _MAKES_NOTHING, "--version": _MAKES_NOTHING, "--help": _MAKES_NOTHING}

SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")

_STABLE = re.compile(
    r"/dev/(disk/by-(id|path|partuuid|partlabel)/[^/]+|mapper/[^/]+|md/[^/]+|(?P<group>[A-Za-z0-9+_.-]+)/[^/]+)"
)

_OTHER_FOLDERS = frozenset(
    [
        "block",
        "bus",
        "char",
        "cpu",
        "disk",
        "dri",
        "fd",
        "input",
        "mapper",
        "md",
        "mqueue",
        "net",
        "pts",
        "shm",
        "snd",
        "usb",
        "vfio",
    ]
)


def mount_option(word: str) -> str:
    """One mount option; ValueError says why it is refused."""
    if "," in word:
        raise ValueError(f"{in_quotes(word)} has a comma; write each option as a text of its own")
    if _MOUNT_WORD.fullmatch(word) is None:
        raise ValueError(f"{in_quotes(word)} is not a mount option: no path, no blank, no leading dash")
    if word in _MOUNT_COMMANDS or word.startswith(_MOUNT_PREFIXES):
        raise ValueError(f"{in_quotes(word)} is not for the file system; bedplate itself says how to mount")
    if _NAMES_A_DEVICE.search(word):
        raise ValueError(f"{in_quotes(word)} names a device; scratch_device is the only one that is used")
    return word


def mkfs_options(words: list[str]) -> tuple[str, ...]:
    """Argument words for mkfs: options, each with at most one argument; ValueError has all reasons."""
    reasons: list[str] = []
    after_option = False
    for word in words:
        option = word.startswith("-")
        if _MKFS_WORD.fullmatch(word) is None or word in {"-", "--"}:
            reasons.append(f"{in_quotes(word)} is not an argument word: no path, no blank, no quote")
        elif _NAMES_A_DEVICE.search(word):
            reasons.append(f"{in_quotes(word)} names a device or a file; scratch_device is the only one used")
        elif option and not word.startswith("--") and len(word) > 2:
            # Told apart, an argument cannot hide in a longer word (`-Jdevice=…`).
            reasons.append(f"{in_quotes(word)}: write the option and its argument as two texts")
        elif not option and not after_option:
            reasons.append(
                f"{in_quotes(word)} has no option before it; mkfs would take it for a device or a size"
            )
        after_option = option
    if reasons:
        raise ValueError(joined(reasons))
    return tuple(words)


def refused_mkfs_options(filesystem: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """Why words that are options cannot be given to this type's mkfs; empty where they can."""
    refused = {**_MKFS_REFUSED_EVERYWHERE, **_MKFS_REFUSED.get(filesystem, {})}
    names = [word.split("=")[0] for word in words if word.startswith("-")]
    return tuple(
        f"mkfs option {name} is refused for {filesystem}: {refused[name]}"
        for name in names
        if name in refused
    )


def stable_device(path: str) -> str:
    """A device by a name that means the same disk after a reboot; ValueError says why it is refused."""
    if not path.startswith("/dev/") or not path.isprintable() or " " in path or ".." in path.split("/"):
        raise ValueError("a scratch device is named by a path such as /dev/disk/by-id/…")
    if re.match(r"/dev/disk/by-(uuid|label)/", path):
        raise ValueError("a UUID or label is the file system's, and mkfs erases it; use /dev/disk/by-id/…")
    found = _STABLE.fullmatch(path)
    if found is None or found["group"] in _OTHER_FOLDERS:
        raise ValueError(
            f"{in_quotes(path)} may be another disk after the next boot; use /dev/disk/by-id/… (ls -l /dev/disk/by-id), "
            "by-path, by-partuuid, by-partlabel, /dev/mapper/… or /dev/GROUP/VOLUME"
        )
    return path


def at_most(reasons: Sequence[str], limit: int) -> tuple[str, ...]:
    """The first reasons, and how many more there are."""
    if len(reasons) <= limit:
        return tuple(reasons)
    return (*reasons[:limit], f"and {len(reasons) - limit} more")


def joined(reasons: Iterable[str], *, most: int = 5) -> str:
    """Reasons of one value as one sentence: the first ones, and how many more there are."""
    return "; ".join(at_most(tuple(reasons), most))


def in_quotes(value: object) -> str:
    """What was found, in quotes, without control characters, at most 80 characters long."""
    try:
        text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    except (RecursionError, ValueError):  # nested by the thousand, or a number of 4300 digits
        return f"something too large to show ({type(value).__name__})"
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text)} characters)"
