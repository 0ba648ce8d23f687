"""Who keeps a device busy, by the tables of pretended processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bedplate.host import block_tree as device_holders_module
from bedplate.host.block_tree import device_holders, writers_of

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


DISK = 2048


def files(proc: Path, pid: str, **flags: str) -> None:
    """Open files of a process, the first of each name's path by its flags (fdinfo)."""
    process(proc, pid, "qemu", OTHER, opened=tuple(f"/{name}" for name in flags))
    (proc / pid / "fdinfo").mkdir()
    for number, text in enumerate(flags.values()):
        (proc / pid / "fdinfo" / str(number)).write_text(f"pos:\t0\nflags:\t{text}\nmnt_id:\t9\n")


def test_who_writes_to_a_disk_is_named_whatever_its_node_is_called_there(
    proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = {"/sdb": DISK, "/xvdb": DISK, "/sdc": 1}
    monkeypatch.setattr(device_holders_module, "_number_at", lambda link: numbers.get(str(link.readlink())))
    reading, writing, both = "0100000", "02100001", "0140002"
    files(proc, "10", sdb=reading, log=writing)
    files(proc, "20", sdc=both, xvdb=both)
    files(proc, "30", sdb=writing)
    files(proc, str(os.getpid()), sdb=writing)
    assert (
        "process 20 (qemu) has /xvdb open for writing",
        "process 30 (qemu) has /sdb open for writing",
    ) == writers_of({DISK}, proc=proc)
    assert ("process 20 (qemu) has /xvdb open for writing",) == writers_of({DISK}, spared=(30,), proc=proc)
