"""A loop device is known by the file that it stands on, also when the kernel has lost most of the file's name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bedplate.host import block_tree
from bedplate.host.block_tree import LoopFile, attached_to, files_below, loop_file

LONG = "/srv/" + "x" * 70 + "/a/bedplate-scratch.img"


def named(shown: str, given: str) -> LoopFile | None:
    return LoopFile(1, 2, 0, os.fsencode(given)[:63]) if given else None


@pytest.mark.parametrize(
    ("image", "shown", "given", "expected"),
    [
        ("/srv/a/x.img", "/srv/a/x.img", "", True),
        # The mount of /srv has gone, with a namespace; what is left is the rest.
        ("/srv/a/x.img", "/a/x.img", "/srv/a/x.img", True),
        ("/srv/a/x.img", "/x.img", "/srv/a/x.img", True),
        ("/srv/a/x.img", "/a/x.img", "/mnt/a/x.img", False),
        # A name that is only the end of a word of ours.
        ("/srv/a/x.img", "/b/x.img", "/srv/b/x.img", False),
        # Nobody may look.
        ("/srv/a/x.img", "/a/x.img", "", False),
        # The kernel keeps 63 bytes of what was given.
        (LONG, "/a/bedplate-scratch.img", LONG, True),
        (LONG, "/b/bedplate-scratch.img", LONG.replace("/a/", "/b/"), False),
    ],
)
def test_by_its_whole_name_or_by_what_is_left_of_it(
    monkeypatch: pytest.MonkeyPatch, image: str, shown: str, given: str, expected: bool
) -> None:
    monkeypatch.setattr(block_tree, "all_loops", lambda: (("loop7", shown),))
    monkeypatch.setattr(block_tree, "loop_file", lambda _name: named(shown, given))
    assert expected == (("loop7",) == attached_to(Path(image)))


@pytest.mark.parametrize(
    ("inode", "deleted", "expected"),
    [
        (0, False, True),
        # A container beside this one has a file of the same name.
        (1, False, False),
        # The file was deleted with its device attached, and written again.
        (1, True, True),
    ],
)
def test_a_file_that_is_there_is_known_by_its_number(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, inode: int, deleted: bool, expected: bool
) -> None:
    image = tmp_path / "x.img"
    image.touch()
    status = image.stat()
    found = LoopFile(status.st_dev, status.st_ino + inode, 0, os.fsencode(image)[:63])
    monkeypatch.setattr(block_tree, "all_loops", lambda: (("loop7", str(image)),))
    monkeypatch.setattr(block_tree, "loop_file", lambda _name: found)
    monkeypatch.setattr(block_tree, "is_deleted", lambda _name: deleted)
    assert expected == (("loop7",) == attached_to(image))


def test_the_same_bytes_are_the_same_by_number() -> None:
    file, again = LoopFile(8, 77, 0, b"/a"), LoopFile(8, 77, 0, b"/b")
    device, node = LoopFile(6, 5, 2048, b"/dev/sda"), LoopFile(9, 4, 2048, b"/x/sda")
    assert file.is_same(again)
    assert device.is_same(node)
    assert not file.is_same(device)
    assert not file.is_same(LoopFile(9, 77, 0, b"/a"))


def test_what_is_no_loop_device_is_none() -> None:
    assert loop_file("null") is None
    assert loop_file("no-such-loop") is None


def test_loops_over_files_of_a_folder_are_found_when_its_mount_has_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = {"loop1": "/dev/shm/own/tried/a/disk", "loop2": "/own/tried/b/disk", "loop3": "/own/tried/c/disk"}
    given = {"loop2": "/dev/shm/own/tried/b/disk", "loop3": "/mnt/own/tried/c/disk"}
    monkeypatch.setattr(block_tree, "all_loops", lambda: tuple(shown.items()))
    monkeypatch.setattr(block_tree, "loop_file", lambda name: named("", given.get(name, "")))
    assert ("/dev/shm/own/tried/a/disk", "/own/tried/b/disk") == files_below(Path("/dev/shm/own/tried"))
    assert () == files_below(Path("/dev/shm/own/trie"))
