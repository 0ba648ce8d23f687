"""Mount options that a kernel is known to refuse, to ignore, or to let contradict one another.

Tried on kernel 6.18, and on 6.12 what 6.18 lacks (JFS, ReiserFS, NILFS2, F2FS, NTFS), where no other
source is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bedplate.model.cell import FilesystemLevels

_EXT = ("ext2", "ext3", "ext4")


@dataclass(frozen=True)
class RefusedOption:
    """An option (or, with a trailing `=`, any of its values) that a type does not take.

    `since` and `until` are the first and the last kernel of which that is known.
    """

    types: tuple[str, ...]
    options: tuple[str, ...]
    reason: str
    since: tuple[int, int] | None = None
    until: tuple[int, int] | None = None

    def holds_for(self, kernel: tuple[int, int] | None) -> bool:
        """Whether that kernel is one of them; of an unknown one only what holds for all is said."""
        if kernel is None:
            return self.since is None and self.until is None
        return (self.since or kernel) <= kernel <= (self.until or kernel)


REFUSED: tuple[RefusedOption, ...] = (
    # "xfs: remove deprecated barrier/nobarrier mount options", 4.19.
    RefusedOption(
        ("xfs",),
        ("barrier", "nobarrier"),
        "xfs refuses it since kernel 4.19; write barrier = true or false instead",
        (4, 19),
    ),
    RefusedOption(("btrfs",), ("barrier=",), "btrfs refuses it; write barrier = true or false instead"),
    RefusedOption(("jfs",), ("barrier", "nobarrier", "barrier="), "jfs has no such option and never flushes"),
    RefusedOption(("ext2",), ("data=",), "ext2 has no journal, and the ext4 driver refuses it"),
    RefusedOption(("ext2", "ext3"), ("delalloc",), "the ext4 driver refuses it for ext2 and ext3"),
    RefusedOption(
        ("reiserfs",),
        ("barrier", "nobarrier", "barrier=0", "barrier=1"),
        "reiserfs refuses it; write barrier = true or false instead",
    ),
    RefusedOption(
        ("nilfs2", "f2fs"), ("barrier=",), "the kernel refuses it; write barrier = true or false instead"
    ),
    # Tried: 6.1 refuses it, 6.12 takes it.
    RefusedOption(
        ("f2fs",),
        ("barrier",),
        "f2fs of this kernel knows nobarrier alone; write barrier = true instead",
        until=(6, 1),
    ),
    RefusedOption(
        ("ntfs3",),
        ("barrier", "nobarrier", "barrier="),
        "ntfs3 has no such option; write barrier = true or false instead",
    ),
    RefusedOption(
        ("ntfs-3g",),
        ("barrier", "nobarrier", "barrier="),
        "ntfs-3g ignores it silently; write barrier = true or false instead",
    ),
    RefusedOption(
        ("ntfs-3g",),
        ("uid=", "gid=", "umask=", "fmask=", "dmask=", "usermapping="),
        "it gives all files one owner or mode, and the server's account must own its directory",
    ),
    RefusedOption(("jfs", "nilfs2", "f2fs", "ntfs3"), ("data=",), "it has no data modes"),
    RefusedOption(("jfs", "nilfs2", "f2fs", "ntfs3"), ("commit=",), "the kernel refuses it"),
    RefusedOption(("reiserfs",), ("discard", "nodiscard"), "reiserfs refuses it: it never discards"),
    RefusedOption(("ntfs3",), ("nodiscard",), "ntfs3 refuses it: it discards only if asked"),
    RefusedOption(_EXT, ("xip",), "the kernel refuses it; execute in place became dax"),
    RefusedOption(_EXT, ("nobh", "bh"), "the kernel ignores it silently"),
)

_BARRIERS = {
    "barrier": True,
    "barrier=1": True,
    "barrier=flush": True,
    "nobarrier": False,
    "barrier=0": False,
    "barrier=none": False,
    "fsync_mode=nobarrier": False,  # f2fs
}


def refused_mount_options(filesystem: FilesystemLevels, kernel: tuple[int, int] | None) -> Iterator[str]:
    """Why the kernel will not take the asked mount options, as far as that is known without trying."""
    for refused in REFUSED:
        if filesystem.type in refused.types and refused.holds_for(kernel):
            for word in filesystem.mount_options:
                if _is_one_of(word, refused.options):
                    yield f"mount option {word}: {refused.reason}"
    if filesystem.type in ("ext3", "ext4"):
        yield from _ext_journal(filesystem)


def _is_one_of(word: str, options: tuple[str, ...]) -> bool:
    return any(word.startswith(option) if option.endswith("=") else word == option for option in options)


def _ext_journal(filesystem: FilesystemLevels) -> Iterator[str]:
    words = filesystem.mount_options
    asked = filesystem.features.text("data")
    by_option = next((word[5:] for word in words if word.startswith("data=")), None)
    if by_option and asked and by_option != asked:
        yield f"data = {asked} and mount option data={by_option} contradict each other"
    if by_option and filesystem.journal == "none":
        yield f"mount option data={by_option}: refused without a journal"
    mode = asked or by_option or "ordered"
    if "journal_async_commit" in words and mode == "ordered":
        yield "mount option journal_async_commit: the kernel refuses it with data = ordered"
    # "ext4: improve handling of conflicting mount options", 2011.
    for word in ("delalloc", "dioread_nolock"):
        if word in words and mode == "journal":
            yield f"mount option {word}: the kernel refuses it with data = journal"


def contradicting_mount_options(filesystem: FilesystemLevels) -> Iterator[str]:
    """Why the asked mount options cannot be in force beside one another and the plan's other keys."""
    words = filesystem.mount_options
    for word in words:
        if filesystem.barrier is not None and _BARRIERS.get(word, filesystem.barrier) != filesystem.barrier:
            yield f"barrier = {str(filesystem.barrier).lower()} and mount option {word} contradict each other"
    if filesystem.type == "btrfs":
        nodatacow = filesystem.features.flag("nodatacow")
        if nodatacow or "nodatacow" in words:
            for word in words:
                if word.startswith("compress") and word.partition("=")[2] not in ("no", "none"):
                    yield f"mount option {word}: compression and nodatacow switch each other off"
        if nodatacow is False and "nodatacow" in words:
            yield "nodatacow = false and mount option nodatacow contradict each other"
    if filesystem.type == "reiserfs":
        asked = filesystem.features.text("data")
        for word in words:
            if asked and word.startswith("data=") and word != f"data={asked}":
                yield f"data = {asked} and mount option {word} contradict each other"
    if len(set(words)) < len(words):
        yield "a mount option is listed twice"
