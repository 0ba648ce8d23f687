"""Refusals on real loop devices that play disks: their stable names live in a /dev of the test's own."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.tools.block_contents import array_member, write_pieces
from tests.support.tools.kernel_partition import kernel_partition
from tests.support.tools.scratch_disk import SIZE, Disk, looped

from bedplate.errors import DeviceRefused, RequirementMissing, VerifyFailed
from bedplate.host.block_tree import BlockTree, attached_to, backing_file, read_signatures
from bedplate.host.command import Commands
from bedplate.host.ledger import Ledger
from bedplate.host.scratch_device import (
    IMAGE_NAME,
    attach_loop,
    detach_loop,
    prepare,
    refusal_reasons,
    release_device,
    write_image,
)
from bedplate.host.tunables import queue_settings, restore_all
from bedplate.model.visit import ScratchDevice
from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.host.scratch_device import AttachedDevice

pytestmark = pytest.mark.host


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with looped(tmp_path) as node:
        yield Disk(tmp_path, node)


def _only(reasons: tuple[str, ...]) -> str:
    assert 1 == len(reasons), reasons
    return reasons[0]


def test_blank_disk_is_accepted_and_untouched(disk: Disk) -> None:
    assert () == disk.reasons()
    assert ("wipefs",) == tuple({argv[0] for argv in disk.commands.record})
    assert all("--no-act" in argv for argv in disk.commands.record)


def test_disk_must_be_named_again_to_be_erased(disk: Disk) -> None:
    assert f"--erase {disk.name}" in _only(disk.reasons(erase=False))


def test_kernel_name_is_refused_with_the_stable_one(disk: Disk) -> None:
    scratch = ScratchDevice(device=disk.node, erase=(disk.node,))
    reason = _only(refusal_reasons(scratch, disk.commands, tree=disk.tree))
    assert disk.node in reason
    assert f"write {disk.name}" in reason


def test_mounted_disk_is_refused_by_its_target(disk: Disk) -> None:
    target = disk.base / "mnt"
    target.mkdir()
    disk.commands.run(["mkfs.ext4", "-q", "-F", "-L", "bedplate", disk.node])
    disk.commands.run(["mount", disk.node, str(target)])
    try:
        assert f"mounted on {target}" in _only(disk.reasons(foreign=True))
    finally:
        disk.commands.run(["umount", str(target)])
    assert () == disk.reasons()


@pytest.mark.skipif(shutil.which("mkfs.btrfs") is None, reason="needs mkfs.btrfs")
def test_mounted_btrfs_is_seen_although_its_number_is_of_its_own_making(tmp_path: Path) -> None:
    with looped(tmp_path, size_bytes=256 * MIB) as node:
        disk = Disk(tmp_path, node)
        target = tmp_path / "mnt"
        target.mkdir()
        disk.commands.run(["mkfs.btrfs", "-q", "-K", "-L", "bedplate", node])
        disk.commands.run(["mount", node, str(target)])
        try:
            assert f"mounted on {target}" in _only(disk.reasons())
        finally:
            disk.commands.run(["umount", str(target)])


def test_mount_in_another_namespace_is_noticed_by_the_exclusive_open(disk: Disk) -> None:
    target = disk.base / "mnt"
    target.mkdir()
    disk.commands.run(["mkfs.ext4", "-q", "-F", "-L", "bedplate", disk.node])
    script = 'mount "$1" "$2" && echo mounted && exec cat'
    hidden = subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "_", disk.node, str(target)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert hidden.stdout is not None
        assert "mounted\n" == hidden.stdout.readline()
        assert "no table shows" in _only(disk.reasons())
    finally:
        hidden.communicate()


def test_a_partition_that_is_mounted_in_another_namespace_uses_the_queue_of_its_disk(disk: Disk) -> None:
    target = disk.base / "mnt"
    target.mkdir()
    with kernel_partition(disk.node, length_bytes=SIZE - MIB) as partition:
        disk.commands.run(["mkfs.ext4", "-q", "-F", "-L", "bedplate", partition])
        # No `exec`: its name would be the shell's or the program's, as it happens.
        script = 'mount "$1" "$2" && echo mounted && read -r _'
        hidden = subprocess.Popen(
            [
                "unshare",
                "--mount",
                "--propagation",
                "private",
                "sh",
                "-c",
                script,
                "_",
                partition,
                str(target),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert hidden.stdout is not None
            assert "mounted\n" == hidden.stdout.readline()
            where = f"{target} in the mount namespace of process {hidden.pid} (sh)"
            users = disk.tree.users_of_queue(Path(disk.node).name)
            assert (f"{partition} is mounted on {where}",) == users
        finally:
            hidden.communicate()


def test_swap_in_use_is_refused(disk: Disk) -> None:
    disk.commands.run(["mkswap", disk.node])
    disk.commands.run(["swapon", "--priority", "0", disk.node])
    try:
        reasons = disk.reasons(foreign=True)
        assert f"swapoff {disk.node}" in _only(reasons)
    finally:
        disk.commands.run(["swapoff", disk.node])
    assert "holds swap that bedplate did not make" in _only(disk.reasons())


def test_foreign_file_system_needs_its_own_permission(disk: Disk) -> None:
    disk.commands.run(["mkfs.ext4", "-q", "-F", "-L", "holiday photos", disk.node])
    reason = _only(disk.reasons())
    assert "ext4 labelled 'holiday photos'" in reason
    assert "--erase-foreign" in reason
    assert () == disk.reasons(foreign=True)


def test_own_file_system_needs_no_permission(disk: Disk) -> None:
    disk.commands.run(["mkfs.ext4", "-q", "-F", "-L", "bedplate", disk.node])
    assert () == disk.reasons()


def test_every_signature_is_looked_at_not_only_the_first(disk: Disk) -> None:
    disk.commands.run(["mkfs.ext4", "-q", "-F", "-L", "bedplate", disk.node])
    write_pieces(disk.node, array_member(), SIZE)
    types = {signature.type for signature in read_signatures(disk.node, disk.commands)}
    assert {"ext4", "linux_raid_member"} == types
    assert "linux_raid_member" in _only(disk.reasons(foreign=True))


def test_partition_table_is_foreign_and_a_mounted_partition_protects_its_disk(tmp_path: Path) -> None:
    with looped(tmp_path) as node:
        disk = Disk(tmp_path, node)
        entry = struct.pack("<B3sB3sII", 0, bytes(3), 0x83, bytes(3), 2048, SIZE // 512 - 2048)
        disk.write(446, entry + bytes(48) + b"\x55\xaa")
        # The kernel is told of the partition, since not every kernel reads tables on loop devices.
        with kernel_partition(node, start_bytes=MIB, length_bytes=SIZE - MIB) as partition:
            assert "holds dos" in _only(disk.reasons())
            target = tmp_path / "mnt"
            target.mkdir()
            disk.commands.run(["mkfs.ext4", "-q", "-F", "-L", "bedplate", partition])
            disk.commands.run(["mount", partition, str(target)])
            try:
                assert any(f"{partition} is mounted on {target}" in r for r in disk.reasons(foreign=True))
            finally:
                disk.commands.run(["umount", str(target)])
            assert () == disk.reasons(foreign=True)
            sibling = disk.link.with_name("test-part1")
            sibling.symlink_to(partition)
            scratch = ScratchDevice(device=str(sibling), erase=(str(sibling),))
            assert () == refusal_reasons(scratch, disk.commands, tree=disk.tree)
            with Ledger.open(tmp_path / "state", "table") as ledger:
                prepare(
                    disk.scratch(foreign=True),
                    ledger=ledger,
                    commands=disk.commands,
                    directory=tmp_path,
                    tree=disk.tree,
                )
            assert () == read_signatures(node, disk.commands)
            if Path(partition).exists():
                assert () == read_signatures(partition, disk.commands)


def test_disk_that_is_held_exclusively_is_refused(disk: Disk) -> None:
    holder = os.open(disk.node, os.O_RDONLY | os.O_EXCL)
    try:
        assert "no table shows" in _only(disk.reasons())
    finally:
        os.close(holder)


def test_write_protected_disk_is_refused(tmp_path: Path) -> None:
    with looped(tmp_path, "--read-only") as node:
        assert "write-protected" in _only(Disk(tmp_path, node).reasons())


def test_too_small_and_unnamed_are_told_together(disk: Disk) -> None:
    reasons = disk.reasons(erase=False, minimum_bytes=SIZE + 1)
    assert 2 == len(reasons)
    assert "64 MiB" in reasons[1]


def test_what_is_no_block_device_is_refused(tmp_path: Path) -> None:
    plain = tmp_path / "file"
    plain.touch()
    for path, word in ((plain, "is not a block device"), (tmp_path / "none", "does not exist")):
        scratch = ScratchDevice(device=str(path), erase=(str(path),))
        assert word in _only(refusal_reasons(scratch, Commands()))


def test_the_running_root_is_refused_whatever_is_permitted() -> None:
    """Only reads: `refusal_reasons` writes nothing."""
    under_root = BlockTree().under_root()
    if not under_root:
        pytest.skip("the root of this machine stands on no block device")
    for name in under_root:
        node = BlockTree().node(name)
        scratch = ScratchDevice(device=node, erase=(node,), erase_foreign=True)
        reasons = refusal_reasons(scratch, Commands())
        assert any("carries the running system" in reason for reason in reasons), reasons
        with Ledger.open(Path("/run/bedplate-test-root"), "root") as ledger:
            commands = Commands()
            with pytest.raises(DeviceRefused, match="carries the running system"):
                prepare(scratch, ledger=ledger, commands=commands, directory=Path("/nowhere"))
            assert all("--no-act" in argv for argv in commands.record)
        Path("/run/bedplate-test-root").rmdir()


def test_prepared_disk_has_lost_its_signatures(disk: Disk, tmp_path: Path) -> None:
    disk.commands.run(["mkfs.ext4", "-q", "-F", "-L", "other", disk.node])
    with Ledger.open(tmp_path / "state", "prepare") as ledger:
        arguments = {"ledger": ledger, "commands": disk.commands, "directory": tmp_path, "tree": disk.tree}
        with pytest.raises(DeviceRefused, match="labelled 'other'"):
            prepare(disk.scratch(), **arguments)  # type: ignore[arg-type]
        assert "ext4" == _only(tuple(s.type for s in read_signatures(disk.node, disk.commands)))
        device = prepare(disk.scratch(foreign=True), **arguments)  # type: ignore[arg-type]
        assert () == read_signatures(disk.node, disk.commands)
        assert (disk.node, None, SIZE) == (device.path, device.image, device.size_bytes)
        release_device(device, ledger=ledger, commands=disk.commands)
        assert backing_file(device.name) is not None


@pytest.fixture
def device(tmp_path: Path) -> Iterator[AttachedDevice]:
    with Ledger.open(tmp_path / "state", "image") as ledger:
        commands = Commands()
        yield prepare(
            ScratchDevice(image_bytes=16 * MIB), ledger=ledger, commands=commands, directory=tmp_path
        )
        assert () == ledger.release(commands)


def test_image_is_fully_written_and_attached_with_direct_io(device: AttachedDevice, tmp_path: Path) -> None:
    image = tmp_path / IMAGE_NAME
    assert image.stat().st_blocks * 512 >= 16 * MIB
    assert "1" == Path(f"/sys/block/{device.name}/loop/dio").read_text().strip()
    assert (f"/dev/{device.name}", 16 * MIB, image) == (device.path, device.size_bytes, device.image)


def test_attached_image_is_not_written_over(device: AttachedDevice) -> None:
    assert device.image is not None
    with pytest.raises(RequirementMissing, match="attached to"):
        write_image(device.image, 16 * MIB)
    assert device.image.exists()


def test_image_is_written_anew_in_full_after_a_hole_was_punched(tmp_path: Path) -> None:
    image = tmp_path / "x.img"
    write_image(image, 8 * MIB)
    with image.open("r+b") as file:
        file.write(b"data of an earlier visit")
        file.truncate(4 * MIB)
        file.truncate(12 * MIB)
    said: list[int] = []
    write_image(image, 8 * MIB, progress=said.append)
    assert [4 * MIB, 8 * MIB] == said
    assert bytes(8 * MIB) == image.read_bytes()
    assert image.stat().st_blocks * 512 >= 8 * MIB


def test_write_through_is_sticky_and_is_given_back(tmp_path: Path) -> None:
    """Left behind, the switch would take the barriers from the next user of the loop device."""
    commands = Commands()
    image = tmp_path / "x.img"
    write_image(image, 8 * MIB)
    asked = {"read_ahead_kb": 128, "scheduler": "none"}
    with Ledger.open(tmp_path / "state", "sticky") as ledger:
        device = attach_loop(image, ledger=ledger, commands=commands)
        switch = device.queue / "write_cache"
        comparisons = queue_settings(device, **asked, write_back=False, ledger=ledger)  # type: ignore[arg-type]
        found = {item.name: (item.asked, item.effective) for item in comparisons}
        assert ("write through", "write through") == found["device.write_cache"]
        assert (128, 128) == found["device.read_ahead_kb"]
        assert ("none", "none") == found["device.scheduler"]
        detach_loop(device, ledger=ledger, commands=commands)
        assert "write through" == switch.read_text().strip()
        assert () == restore_all(ledger)
        assert "write back" == switch.read_text().strip()
        assert () == ledger.holdings()


def test_explicit_write_back_wins_over_what_a_crash_left(tmp_path: Path) -> None:
    commands = Commands()
    image = tmp_path / "x.img"
    write_image(image, 8 * MIB)
    with Ledger.open(tmp_path / "state", "left") as ledger:
        device = attach_loop(image, ledger=ledger, commands=commands)
        (device.queue / "write_cache").write_text("write through")
        queue_settings(device, read_ahead_kb=None, scheduler=None, write_back=True, ledger=ledger)
        assert "write back" == (device.queue / "write_cache").read_text().strip()
        assert () == ledger.release(commands)


def test_unknown_scheduler_is_told_with_the_choice(device: AttachedDevice, tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "state", "scheduler") as ledger:
        with pytest.raises(VerifyFailed, match=r"does not take 'elevator'.*\[none\]"):
            queue_settings(device, read_ahead_kb=None, scheduler="elevator", write_back=True, ledger=ledger)
        ledger.release(Commands())


def test_full_disk_is_a_reason_and_leaves_nothing(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    commands = Commands()
    commands.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(small)])
    try:
        with pytest.raises(RequirementMissing, match="16 MiB free; the image needs 32 MiB"):
            write_image(small / "x.img", 32 * MIB)
        assert [] == list(small.iterdir())

        def someone_else_fills_it(_done: int) -> None:
            with (small / "other").open("ab") as file:
                file.write(bytes(6 * MIB))

        with pytest.raises(RequirementMissing, match=r"was full before 12 MiB were written"):
            write_image(small / "x.img", 12 * MIB, margin_bytes=0, progress=someone_else_fills_it)
        assert not (small / "x.img").exists()
    finally:
        commands.run(["umount", str(small)])


def test_two_starts_at_once_get_two_loop_devices(tmp_path: Path) -> None:
    source = Path(__file__).resolve().parents[2] / "src"
    script = (
        "import sys; from pathlib import Path\n"
        "from bedplate.host.command import Commands; from bedplate.host.ledger import Ledger\n"
        "from bedplate.host.scratch_device import attach_loop, detach_loop\n"
        "base, name = Path(sys.argv[1]), sys.argv[2]\n"
        "sys.stdin.read(1)\n"
        "with Ledger.open(base / 'state', name) as ledger:\n"
        "    for _ in range(8):\n"
        "        device = attach_loop(base / name, ledger=ledger, commands=Commands())\n"
        "        assert device.image.samefile(base / name)\n"
        "        detach_loop(device, ledger=ledger, commands=Commands())\n"
    )
    starts = []
    for name in ("a", "b", "c"):
        write_image(tmp_path / name, 1 * MIB)
        argv = ["python3", "-c", script, str(tmp_path), name]
        environment = {**os.environ, "PYTHONPATH": str(source)}
        starts.append(subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE))
    for start in starts:
        assert start.stdin is not None
        start.stdin.write(b"x")
        start.stdin.flush()
    said = [start.communicate()[1].decode() for start in starts]
    assert ["", "", ""] == said
    assert () == sum((attached_to(tmp_path / name) for name in "abc"), ())


def test_the_image_of_the_same_name_in_a_container_beside_is_left_alone(tmp_path: Path) -> None:
    """Both have their study at the same place, each in a file system of its own."""
    folder = tmp_path / "studies"
    folder.mkdir()
    image = folder / IMAGE_NAME
    script = (
        'mount -t tmpfs tmpfs "$1" && truncate --size 1M "$1/$2" && losetup --find --show "$1/$2" && cat'
        ' && losetup --detach "$(losetup --noheadings --output NAME --associated "$1/$2")"'
    )
    beside = subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "_", str(folder), IMAGE_NAME],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert beside.stdout is not None
    try:
        theirs = beside.stdout.readline().strip().removeprefix("/dev/")
        assert backing_file(theirs) == str(image)
        write_image(image, 1 * MIB)
        with Ledger.open(tmp_path / "state", "own") as ledger:
            device = attach_loop(image, ledger=ledger, commands=Commands())
            assert (device.name,) == attached_to(image)
            detach_loop(device, ledger=ledger, commands=Commands())
        assert backing_file(theirs) == str(image)
    finally:
        beside.communicate()
    assert 0 == beside.returncode
