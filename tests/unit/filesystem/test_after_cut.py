"""After a power cut: which images may stand beside their twins, and what repairs what."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.support.tools.filesystem_site import site_on
from tests.support.tools.scripted_commands import ScriptedCommands, completed

from bedplate.filesystem import after_cut
from bedplate.filesystem.after_cut import (
    complaints_of,
    image_levels,
    leaves_journal_to_repair,
    mount_beside_twins,
    repair,
    repairs_of,
    stands_beside_twins,
    unmount_beside_twins,
)
from bedplate.filesystem.registry import FILESYSTEMS
from bedplate.host.files import file_lock_if_free
from bedplate.host.kernel_log import KernelLog
from bedplate.host.mount import MountRefused
from bedplate.model.cell import FilesystemLevels

if TYPE_CHECKING:
    from bedplate.filesystem.adapter import Filesystem, Site

GOLDEN = Path(__file__).parents[2] / "golden" / "filesystem"


@pytest.mark.parametrize(
    ("kernel", "expected"), [("6.1.0-18-amd64", False), ("6.6.9", False), ("6.7.0", True), ("6.18.4-x", True)]
)
def test_two_images_of_one_btrfs_need_a_kernel_that_tells_them_apart(kernel: str, *, expected: bool) -> None:
    assert stands_beside_twins(FilesystemLevels("btrfs"), kernel_release=kernel) is expected


class Watched:
    """A file system that notes whether somebody has the lock while it is mounted and unmounted."""

    def __init__(self, lock: Path, refusals: list[str]) -> None:
        self.lock = lock
        self.refusals = refusals
        self.was_free: list[bool] = []

    def mount(self, _: Site) -> None:
        self._note()
        if self.refusals:
            said = self.refusals.pop()
            raise MountRefused(said, output=said)

    def unmount(self, _: Site) -> None:
        self._note()

    def _note(self) -> None:
        with file_lock_if_free(self.lock) as is_free:
            self.was_free.append(is_free)


@pytest.mark.parametrize(("type_", "is_free"), [("btrfs", False), ("xfs", True)])
def test_twins_of_btrfs_are_mounted_and_unmounted_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, type_: str, *, is_free: bool
) -> None:
    monkeypatch.setattr(after_cut, "_BTRFS_CONTROL", tmp_path / "control")
    (tmp_path / "control").touch()
    watched = Watched(tmp_path / "control", [])
    filesystem = cast("Filesystem", watched)
    site = site_on(FilesystemLevels(type_), "/dev/loop1", ScriptedCommands())
    mount_beside_twins(filesystem, site)
    unmount_beside_twins(filesystem, site)
    assert [is_free, is_free] == watched.was_free


WITHOUT_RIGHTS = ("nosuid", "nodev", "noexec")


def test_a_twin_that_somebody_else_mounts_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(after_cut, "_TWIN_PAUSES_S", (0.0, 0.0))
    met = "BTRFS error: device /dev/loop2 already registered with a higher generation, found 7 expect 18"
    watched = Watched(Path("/nowhere"), [met, met])
    site = site_on(FilesystemLevels("btrfs"), "/dev/loop2", ScriptedCommands())
    mount_beside_twins(cast("Filesystem", watched), site)
    watched.refusals = ["open_ctree failed"]
    with pytest.raises(MountRefused, match="open_ctree"):
        mount_beside_twins(cast("Filesystem", watched), site)


def test_what_finds_its_parts_by_name_stands_alone() -> None:
    assert stands_beside_twins(FilesystemLevels("ext4", journal="external"))
    assert stands_beside_twins(FilesystemLevels("jfs"))
    assert not stands_beside_twins(FilesystemLevels("jfs", journal="external"))
    assert not stands_beside_twins(FilesystemLevels("zfs"))


def test_an_image_is_told_from_its_twin_and_finds_its_journal() -> None:
    assert image_levels(FilesystemLevels("xfs", mount_options=("noatime",)), None).mount_options == (
        *("noatime", "nouuid"),
        *WITHOUT_RIGHTS,
    )
    found = image_levels(FilesystemLevels("ext4"), "/dev/loop7").mount_options
    assert ("journal_path=/dev/loop7", *WITHOUT_RIGHTS) == found
    assert () == image_levels(FilesystemLevels("zfs"), None).mount_options


def test_an_image_has_no_rights_here_whatever_its_study_asks_for() -> None:
    levels = FilesystemLevels("ext4", mount_options=("suid", "dev", "exec"))
    assert WITHOUT_RIGHTS == image_levels(levels, None).mount_options[-3:]


def test_e2fsck_is_told_of_the_journal_and_a_corrected_file_system_may_be_mounted() -> None:
    commands = ScriptedCommands(answers={"e2fsck": lambda argv, _: completed(argv, "FIXED.", status=1)})
    levels = FilesystemLevels("ext4", journal="external")
    found = repair(site_on(levels, "/dev/loop1", commands, journal="/dev/loop2"), 0)
    assert commands.record == [("e2fsck", "-f", "-y", "-j", "/dev/loop2", "/dev/loop1")]
    assert found.done
    assert "e2fsck -f -y: FIXED." == found.text


def test_errors_that_are_left_are_no_repair() -> None:
    commands = ScriptedCommands(answers={"e2fsck": lambda argv, _: completed(argv, status=4)})
    found = repair(site_on(FilesystemLevels("ext2"), "/dev/loop1", commands), 0)
    assert (False, "e2fsck -f -y: ended with status 4 and said no more") == (found.done, found.text)
    assert commands.record == [("e2fsck", "-f", "-y", "/dev/loop1")]


def test_xfs_loses_its_log_only_as_the_last_resort() -> None:
    commands = ScriptedCommands(answers={"xfs_repair": lambda argv, _: completed(argv)})
    for attempt in range(repairs_of("xfs")):
        repair(site_on(FilesystemLevels("xfs"), "/dev/loop1", commands), attempt)
    assert [("-L" in argv) for argv in commands.record] == [False, True]


@pytest.mark.parametrize(("status", "is_done"), [(0, False), (1, False), (2, True), (3, False), (4, False)])
def test_a_torn_superblock_of_btrfs_is_taken_from_a_copy_before_anything_else(
    status: int, *, is_done: bool
) -> None:
    commands = ScriptedCommands(answers={"btrfs": lambda argv, _: completed(argv, status=status)})
    found = repair(site_on(FilesystemLevels("btrfs"), "/dev/loop1", commands), 0)
    assert commands.record == [("btrfs", "rescue", "super-recover", "-y", "/dev/loop1")]
    assert is_done == found.done


@pytest.mark.parametrize(("said", "expected"), [("unreplayed", True), ("replayed", False)])
def test_a_log_that_could_not_be_replayed_is_told_though_the_status_says_nothing(
    said: str, *, expected: bool
) -> None:
    # Both of the image of one cut: Debian's jfsutils 1.1.15-5, and the same version as its authors published it.
    output = (GOLDEN / f"fsck.jfs-{said}.txt").read_text(encoding="utf-8")
    commands = ScriptedCommands(answers={"fsck.jfs": lambda argv, _: completed(argv, output)})
    found = repair(site_on(FilesystemLevels("jfs"), "/dev/loop1", commands), 0)
    assert (True, expected) == (found.done, found.replay_failed)


@pytest.mark.parametrize(("status", "attached"), [(0, True), (1, True), (4, False)])
def test_jfs_is_told_where_its_log_is_once_it_is_repaired(status: int, *, attached: bool) -> None:
    commands = ScriptedCommands(
        answers={
            "fsck.jfs": lambda argv, _: completed(argv, status=status),
            "jfs_tune": lambda argv, _: completed(argv),
        }
    )
    levels = FilesystemLevels("jfs", journal="external")
    repair(site_on(levels, "/dev/loop1", commands, journal="/dev/loop2"), 0)
    assert commands.record[0] == ("fsck.jfs", "-f", "-p", "-j", "/dev/loop2", "/dev/loop1")
    told = ("jfs_tune", "-J", "device=/dev/loop2", "/dev/loop1")
    assert commands.record[1:] == ([told] if attached else [])


@pytest.mark.parametrize(
    ("said", "expected"),
    [("unreplayed", "fsck.jfs -f -p: logredo failed (rc=-274).  fsck continuing."), ("replayed", None)],
)
def test_what_a_repair_says_of_every_image_is_left_out(said: str, expected: str | None) -> None:
    output = (GOLDEN / f"fsck.jfs-{said}.txt").read_text(encoding="utf-8")
    commands = ScriptedCommands(answers={"fsck.jfs": lambda argv, _: completed(argv, output)})
    assert expected == repair(site_on(FilesystemLevels("jfs"), "/dev/loop1", commands), 0).text


def test_what_is_no_replay_cannot_fail_at_it() -> None:
    said = "logredo failed"
    commands = ScriptedCommands(answers={"e2fsck": lambda argv, _: completed(argv, said, status=4)})
    found = repair(site_on(FilesystemLevels("ext4"), "/dev/loop1", commands), 0)
    assert not found.replay_failed


def test_every_type_but_those_without_a_repair_has_one() -> None:
    assert {type_ for type_ in FILESYSTEMS if repairs_of(type_) == 0} == {"nilfs2", "zfs"}


def test_only_what_a_file_system_says_of_trouble_on_that_device_is_heard() -> None:
    heard = (
        "EXT4-fs (loop3): mounted filesystem 1 r/w with ordered data mode",
        "EXT4-fs warning (device loop3): ext4_end_bio:368: I/O error 10",
        "EXT4-fs warning (device loop3): ext4_end_bio:368: I/O error 10",
        "EXT4-fs warning (device loop33): ext4_end_bio:368: I/O error 10",
        "Buffer I/O error on dev loop3, logical block 5, lost async page write",
        "XFS (loop3): Filesystem has been shut down due to log error (0x2).",
        "loop3: writeback error on inode 131, offset 0, sector 2048",
        "NILFS (loop3): mounting unchecked fs",
        "NILFS (loop3): broken superblock, retrying with spare superblock (blocksize = 1024)",
        "F2FS-fs (loop3): Can't find valid F2FS filesystem in 1th superblock",
        "ERROR: (device loop3): dbAllocBits: bad map",
    )
    kernel = cast("Any", SimpleNamespace(messages=lambda about: heard, lost_count=0))
    assert (heard[1], *heard[5:7], *heard[8:]) == complaints_of(kernel, "loop3")
    # A log that cannot be read is no silence.
    assert complaints_of(cast("Any", SimpleNamespace(messages=lambda about: None)), "loop3") is None


@pytest.mark.parametrize(
    ("complaint", "expected"),
    [(False, None), (True, ("EXT4-fs error (device loop3): bad block",))],
)
def test_lost_messages_are_no_silence(
    tmp_path: Path, complaint: bool, expected: tuple[str, ...] | None
) -> None:
    (file := tmp_path / "kmsg").touch()
    with KernelLog(file) as kernel, file.open("a", buffering=1) as log:
        log.write("3,1,9,-;EXT4-fs error (device loop3): another's\n")
        kernel.forget()
        log.write("6,2,9,-;usb 1-1: new device\n")
        assert () == complaints_of(kernel, "loop3")
        log.write("6,20,9,-;usb 1-1: new device\n")
        log.write("3,21,9,-;EXT4-fs error (device loop3): bad block\n" if complaint else "")
        assert expected == complaints_of(kernel, "loop3")


def test_the_kernel_leaves_the_journal_of_jfs_alone_to_the_repair() -> None:
    types = ("ext4", "xfs", "btrfs", "f2fs", "zfs", "nilfs2", "jfs")
    assert ["jfs"] == [each for each in types if leaves_journal_to_repair(each)]
