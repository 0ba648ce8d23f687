"""A loop device that goes with its last user: what was written through its cache reaches the image, and twins stand beside each other."""

from __future__ import annotations

import fcntl
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bedplate.filesystem import after_cut
from bedplate.filesystem.adapter import Site
from bedplate.filesystem.after_cut import (
    mount_beside_twins,
    stands_beside_twins,
    unmount_beside_twins,
)
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.command import Commands
from bedplate.host.scratch_device import passing_loop, write_back
from bedplate.model.cell import FilesystemLevels

pytestmark = pytest.mark.host


def test_what_a_program_wrote_and_closed_is_in_the_image_once_written_back(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20))
    text = b"LOGREDONE".ljust(4096, b".")
    with passing_loop(image) as loop:
        assert (loop.path, loop.size_bytes) == (f"/dev/{loop.name}", 1 << 20)
        device = os.open(loop.path, os.O_RDWR)
        try:
            assert os.pwrite(device, text, 8192) == len(text)
        finally:
            os.close(device)
        write_back(loop.path)
        assert image.read_bytes()[8192 : 8192 + 4096] == text


def test_it_is_held_open_for_reading_alone(tmp_path: Path) -> None:
    """A kernel without CONFIG_BLK_DEV_WRITE_MOUNTED mounts no device that is open for writing."""
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20))
    with passing_loop(image) as loop:
        found = [
            fcntl.fcntl(int(each.name), fcntl.F_GETFL) & os.O_ACCMODE
            for each in Path("/proc/self/fd").iterdir()
            if each.is_symlink() and str(each.readlink()) == loop.path
        ]
    assert [os.O_RDONLY] == found


def test_a_mark_of_write_protection_that_another_left_behind_is_taken_off(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20))
    with passing_loop(image) as loop:
        first = loop.path
        subprocess.run(["blockdev", "--setro", first], check=True)
    try:
        # The kernel gives the lowest free device, which others may have taken meanwhile.
        for _ in range(20):
            with passing_loop(image) as loop:
                ended = subprocess.run(
                    ["blockdev", "--getro", loop.path], check=True, capture_output=True, text=True
                )
                assert ended.stdout.strip() == "0"
                if loop.path == first:
                    break
    finally:
        subprocess.run(["blockdev", "--setrw", first], check=False)


@pytest.mark.skipif(not stands_beside_twins(FilesystemLevels("btrfs")), reason="one at a time on this kernel")
def test_images_of_one_btrfs_are_mounted_at_once_each_on_its_own_device(tmp_path: Path) -> None:
    """Without the lock about every fourth of these mounts fails, or is that of another's image."""
    generations = _generations_of_one_btrfs(tmp_path, 3)

    def examine(number: int) -> list[str]:
        found, target = [], tmp_path / f"mount-{number}"
        target.mkdir()
        for _ in range(8):
            with passing_loop(generations[number]) as loop:
                site = Site(FilesystemLevels("btrfs"), loop, target, Commands())
                mount_beside_twins(filesystem_for("btrfs"), site)
                found.append((target / "generation").read_text())
                unmount_beside_twins(filesystem_for("btrfs"), site)
        return found

    with ThreadPoolExecutor(3) as threads:
        assert [[str(number)] * 8 for number in range(3)] == list(threads.map(examine, range(3)))


@pytest.mark.skipif(not stands_beside_twins(FilesystemLevels("btrfs")), reason="one at a time on this kernel")
def test_a_device_number_that_the_kernel_still_lists_for_another_btrfs_takes_an_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without being forgotten: superblock fsid doesn't match fsid of fs_devices."""
    monkeypatch.setattr(after_cut, "_TWIN_PAUSES_S", ())
    btrfs, stranger, target = filesystem_for("btrfs"), tmp_path / "stranger", tmp_path / "target"
    target.mkdir()
    (one,) = _generations_of_one_btrfs(tmp_path, 1)
    with stranger.open("wb") as file:
        file.truncate(one.stat().st_size)
    subprocess.run(["mkfs.btrfs", "-q", "-K", str(stranger)], check=True)
    with passing_loop(stranger) as loop, passing_loop(one) as twin:
        device = os.open(loop.path, os.O_RDWR | os.O_EXCL)
        try:
            assert subprocess.run(["mount", "-t", "btrfs", loop.path, str(target)], check=False).returncode
            with one.open("rb") as image:
                for start in range(0, loop.size_bytes, 1 << 20):
                    os.pwrite(device, image.read(1 << 20), start)
        finally:
            os.close(device)
        site = Site(FilesystemLevels("btrfs"), twin, tmp_path / "mount", Commands())
        beside = Site(FilesystemLevels("btrfs"), loop, target, Commands())
        mount_beside_twins(btrfs, site)
        try:
            mount_beside_twins(btrfs, beside)
            unmount_beside_twins(btrfs, beside)
        finally:
            unmount_beside_twins(btrfs, site)


def _generations_of_one_btrfs(folder: Path, count: int) -> list[Path]:
    image, target, found = folder / "btrfs", folder / "mount", []
    target.mkdir()
    with image.open("wb") as file:
        file.truncate(256 << 20)
    subprocess.run(["mkfs.btrfs", "-q", "-K", str(image)], check=True)
    for number in range(count):
        with passing_loop(image) as loop:
            subprocess.run(["mount", "-t", "btrfs", loop.path, str(target)], check=True)
            (target / "generation").write_text(str(number))
            subprocess.run(["umount", str(target)], check=True)
        found.append(folder / f"generation-{number}")
        subprocess.run(["cp", "--sparse=always", str(image), str(found[-1])], check=True)
    return found
