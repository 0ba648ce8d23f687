"""After a power cut: which images may stand beside their twins, and what repairs what."""

from __future__ import annotations

import pytest
from tests.scripted_commands import ScriptedCommands, completed

from bedplate.filesystem.after_cut import image_levels, repair, repairs_of, stands_beside_twins
from bedplate.filesystem.registry import FILESYSTEMS
from bedplate.model.cell import FilesystemLevels


@pytest.mark.parametrize(
    ("kernel", "expected"), [("6.1.0-18-amd64", False), ("6.6.9", False), ("6.7.0", True), ("6.18.4-x", True)]
)
def test_two_images_of_one_btrfs_need_a_kernel_that_tells_them_apart(kernel: str, *, expected: bool) -> None:
    assert stands_beside_twins(FilesystemLevels("btrfs"), kernel=kernel) is expected


def test_what_finds_its_parts_by_name_stands_alone() -> None:
    assert stands_beside_twins(FilesystemLevels("ext4", journal="external"))
    assert stands_beside_twins(FilesystemLevels("jfs"))
    assert not stands_beside_twins(FilesystemLevels("jfs", journal="external"))
    assert not stands_beside_twins(FilesystemLevels("zfs"))


def test_an_image_is_told_from_its_twin_and_finds_its_journal() -> None:
    assert image_levels(FilesystemLevels("xfs", mount_options=("noatime",)), None).mount_options == (
        "noatime",
        "nouuid",
    )
    assert image_levels(FilesystemLevels("ext4"), "/dev/loop7").mount_options == ("journal_path=/dev/loop7",)
    assert image_levels(FilesystemLevels("ext4"), None).mount_options == ()


def test_e2fsck_is_told_of_the_journal_and_a_corrected_file_system_may_be_mounted() -> None:
    commands = ScriptedCommands(answers={"e2fsck": lambda argv, _: completed(argv, "FIXED.", status=1)})
    levels = FilesystemLevels("ext4", journal="external")
    found = repair(levels, 0, "/dev/loop1", commands=commands, journal_path="/dev/loop2")
    assert commands.record == [("e2fsck", "-f", "-y", "-j", "/dev/loop2", "/dev/loop1")]
    assert found.done
    assert "FIXED." in found.text


def test_errors_that_are_left_are_no_repair() -> None:
    commands = ScriptedCommands(answers={"e2fsck": lambda argv, _: completed(argv, status=4)})
    assert not repair(FilesystemLevels("ext2"), 0, "/dev/loop1", commands=commands, journal_path=None).done
    assert commands.record == [("e2fsck", "-f", "-y", "/dev/loop1")]


def test_xfs_loses_its_log_only_as_the_last_resort() -> None:
    commands = ScriptedCommands(answers={"xfs_repair": lambda argv, _: completed(argv)})
    for attempt in range(repairs_of("xfs")):
        repair(FilesystemLevels("xfs"), attempt, "/dev/loop1", commands=commands, journal_path=None)
    assert [("-L" in argv) for argv in commands.record] == [False, True]


def test_every_type_but_those_without_a_repair_has_one() -> None:
    assert {type_ for type_ in FILESYSTEMS if repairs_of(type_) == 0} == {"nilfs2", "zfs"}
