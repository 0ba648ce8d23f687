from __future__ import annotations

import pytest

from bedplate.model.cell import FilesystemLevels
from bedplate.model.filesystem import TRAITS, contradictions, option_words, unsafe_options
from bedplate.model.levels import Levels


def _mkfs(*words: str) -> tuple[str, ...]:
    return unsafe_options(FilesystemLevels("ext4", mkfs_options=words))


def _mount(*words: str) -> tuple[str, ...]:
    return unsafe_options(FilesystemLevels("ext4", mount_options=words))


@pytest.mark.parametrize(
    "word",
    [
        "/dev/sda",
        "dev/sda",
        "-J device=/dev/sdb",
        "-Jdevice=UUID=1",
        "-l logdev=sdb",
        "-r rtdev=x",
        "-d name=x",
        *("-d /etc", "--rootdir=/etc", "-l size=64m,logdev=x", "-L mine", "-Lmine", "--label=mine"),
    ],
)
def test_a_mkfs_option_may_not_lead_elsewhere(word: str) -> None:
    assert len(_mkfs(word)) == 1


@pytest.mark.parametrize(
    "word",
    ["loop", "offset=512", "device=x", "subvol=/a", "logdev=b", "noatime,remount", "ro", "X-mount.mkdir"],
)
def test_a_mount_option_may_not_lead_elsewhere(word: str) -> None:
    assert len(_mount(word)) == 1


@pytest.mark.parametrize("type_", ["f2fs", "reiserfs"])
def test_a_label_is_bedplates_own_whatever_flag_it_has(type_: str) -> None:
    assert 1 == len(unsafe_options(FilesystemLevels(type_, mkfs_options=("-l mine",))))
    assert () == unsafe_options(FilesystemLevels("xfs", mkfs_options=("-l size=64m",)))


def test_ordinary_options_are_safe() -> None:
    assert (
        _mkfs("-I 512", "-E stride=16,stripe_width=32", "-O", "^has_journal", "-J size=64", "--csum=crc32c")
        == ()
    )
    assert _mount("noatime,commit=5", "barrier=0", "errors=remount-ro", "data=journal") == ()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("-R", "root"), "only `-o name=value`"),
        (("-f",), "only `-o name=value`"),
        (("ashift=9",), "only `-o name=value`"),
        (("-m", "ashift=9"), "only `-o name=value`"),
        (("-Omountpoint=legacy",), "how the pool is mounted"),
        (("-o cachefile=none",), "how the pool is mounted"),
        (("-O", "readonly=on"), "how the pool is mounted"),
        (("-O compression=lz4",), "as a key"),
        (("-O", "recordsize=8k"), "as a key"),
    ],
)
def test_a_pool_takes_properties_and_nothing_else(words: tuple[str, ...], reason: str) -> None:
    reasons = unsafe_options(FilesystemLevels("zfs", mkfs_options=words))
    assert reasons
    assert reason in reasons[-1]


def test_ordinary_properties_of_a_pool_are_safe() -> None:
    words = (
        "-o ashift=9",
        "-Oatime=off",
        "-O",
        "primarycache=metadata",
        "-o",
        "feature@zstd_compress=disabled",
    )
    assert unsafe_options(FilesystemLevels("zfs", mkfs_options=words)) == ()


def test_every_unsafe_option_is_named_at_once() -> None:
    assert len(_mkfs("/dev/a", "-L x", "/dev/b")) == 3


def test_words_are_the_same_however_they_are_grouped() -> None:
    assert option_words(("-I 512", "-m", " 0 ")) == ("-I", "512", "-m", "0")
    assert option_words(("noatime,commit=5,", "nodev"), separator=",") == ("noatime", "commit=5", "nodev")


@pytest.mark.parametrize(
    ("levels", "word"),
    [
        (FilesystemLevels("ext4", 512), "512 B"),
        (FilesystemLevels("ext2", journal="none"), "journal"),
        (FilesystemLevels("btrfs", journal="internal"), "journal"),
        (FilesystemLevels("jfs", barrier=True), "never flushes"),
        (FilesystemLevels("ext4", journal_device="ram"), "journal = 'external'"),
        (FilesystemLevels("f2fs", journal="external"), "no choice"),
        (FilesystemLevels("ext2", features=Levels(data="ordered")), "data"),
        (FilesystemLevels("ext4", features=Levels(data="odd")), "ordered, writeback, journal"),
        (FilesystemLevels("xfs", features=Levels(nodatacow=True)), "nodatacow"),
        (FilesystemLevels("ext4", journal="none", features=Levels(data="ordered")), "without a journal"),
        (FilesystemLevels("befs"), "known are"),
        (FilesystemLevels("zfs", journal="none"), "internal, external"),
        (FilesystemLevels("zfs", features=Levels(compression="on")), "lz4"),
        (FilesystemLevels("zfs", barrier=True, features=Levels(sync="disabled")), "flushes nothing"),
    ],
)
def test_what_a_type_cannot_be_is_said(levels: FilesystemLevels, word: str) -> None:
    (reason,) = contradictions(levels)
    assert word in reason


def test_every_type_can_be_had_plain() -> None:
    assert dict.fromkeys(TRAITS, ()) == {type_: contradictions(FilesystemLevels(type_)) for type_ in TRAITS}


def test_a_journal_saves_fsck_and_its_absence_does_not() -> None:
    ext4, ext2 = TRAITS["ext4"], TRAITS["ext2"]
    assert tuple(ext4.checked_by_fsck(journal) for journal in (None, "internal", "none")) == (
        False,
        False,
        True,
    )
    assert ext2.checked_by_fsck(None)
    without = {name for name, traits in TRAITS.items() if traits.checked_by_fsck(None)}
    assert without == {"ext2", "ntfs3", "ntfs-3g"}
