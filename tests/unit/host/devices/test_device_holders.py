"""Who keeps a device busy, by the tables of pretended processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bedplate.host.devices.device_holders import device_holders

OWN, OTHER, THIRD = "mnt:[1]", "mnt:[2]", "mnt:[3]"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    folder = tmp_path / "proc"
    folder.mkdir()
    (tmp_path / "block").mkdir()
    return folder


def process(
    proc: Path, pid: str, name: str, namespace: str, mounts: str = "", *, opened: tuple[str, ...] = ()
) -> None:
    folder = proc / pid
    (folder / "ns").mkdir(parents=True)
    (folder / "ns/mnt").symlink_to(namespace)
    (folder / "comm").write_text(f"{name}\n")
    (folder / "mountinfo").write_text(mounts)
    (folder / "fd").mkdir()
    for number, path in enumerate(opened):
        (folder / "fd" / str(number)).symlink_to(path)


def line(device: str, target: str, source: str) -> str:
    return f"42 27 {device} / {target} rw - ext4 {source} rw\n"


def test_a_copy_of_the_mount_in_another_namespace_is_named_with_its_processes(proc: Path) -> None:
    device = "/dev/null"
    number = os.stat(device).st_rdev  # noqa: PTH116 -- a name
    here = line(f"{os.major(number)}:{os.minor(number)}", "/mnt/x", device)
    process(proc, "self", "python3", OWN)
    process(proc, "10", "python3", OWN)
    process(proc, "20", "sleep", OTHER, here)
    process(proc, "21", "bash", OTHER, here)
    process(proc, "30", "udevd", THIRD, opened=("/dev/zero", device))
    assert (
        "process 30 (udevd) has /dev/null open",
        "process 20 (sleep), process 21 (bash): /dev/null is mounted on /mnt/x in another mount namespace",
    ) == device_holders(device, proc=proc, sys_block=proc.parent / "block")


def test_a_mount_of_btrfs_is_known_by_its_source(proc: Path) -> None:
    process(proc, "self", "python3", OWN)
    process(proc, "20", "sleep", OWN, line("0:39", "/mnt/x", "/dev/null"))
    assert ("/dev/null is mounted on /mnt/x",) == device_holders(
        "/dev/null", proc=proc, sys_block=proc.parent / "block"
    )


def test_nobody_is_invented(proc: Path) -> None:
    process(proc, "self", "python3", OWN, line("8:1", "/", "/dev/sda1"))
    process(proc, "20", "gone", OTHER, "no table\n")
    assert () == device_holders("/dev/null", proc=proc, sys_block=proc.parent / "block")
    assert () == device_holders("/dev/there-is-none", proc=proc, sys_block=proc.parent / "block")
