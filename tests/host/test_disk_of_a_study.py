"""A name that leads to another disk between two visits, or before a start goes on: nothing is erased there, with every permission."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from tests.host.test_study_refused import loop_device
from tests.support.studies.study_lab import Lab
from tests.support.tools.kernel_partition import kernel_partition
from tests.support.tools.patience import AT_MOST_S
from tests.support.tools.scratch_disk import Disk, looped

from bedplate.errors import DeviceInUse, DeviceRefused
from bedplate.host.command import Commands
from bedplate.host.ledger import Ledger
from bedplate.host.lock import device_lock, study_lock
from bedplate.host.scratch_device import device_identity, losetup, prepare
from bedplate.model.visit import ScratchDevice
from bedplate.units import MIB

pytestmark = pytest.mark.host

OTHER_DISK = "is another device than the one that this study began with"


def content(node: str) -> str:
    with Path(node).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def turn(link: Path, node: str) -> None:
    """The name leads there from now on, as when udev renames."""
    side = link.with_name(f"{link.name}.next")
    side.symlink_to(node)
    side.replace(link)


@contextmanager
def disk_with_letters(base: Path) -> Iterator[str]:
    with looped(base, size_bytes=512 * MIB, name="letters.image") as node:
        Commands().run(["mkfs.ext4", "-q", "-F", "-L", "letters", node])
        yield node


def test_a_disk_that_takes_the_name_of_a_studys_disk_is_never_erased(lab: Lab) -> None:
    with loop_device(lab) as (node, name), disk_with_letters(lab.base) as letters:
        before = content(letters)
        Commands().run(["mkfs.ext4", "-q", "-F", "-L", "old", node])
        device = f'device = "{name}"'
        plan = lab.plan(('image_size = "512 MB"', device), ("repetitions = 1", "repetitions = 2"))
        words = ("run", plan, "--study", lab.study, "--erase", name, "--erase-foreign")
        process = lab.start(*words)
        # The first visit has its disk, and goes on with it whatever the name does.
        lab.wait_for_step(lab.visit_process(), "server")
        turn(name, letters)
        said, _ = process.communicate(timeout=AT_MOST_S)
        assert 3 == process.returncode, said
        assert OTHER_DISK in said
        assert ["completed"] == [record.outcome.value for record in lab.visits().values()]
        # The same command again, as after a boot.
        assert OTHER_DISK in lab.call(*words, status=3)
        assert before == content(letters)
        turn(name, node)
        lab.call(*words)
        assert ["completed"] * 2 == [record.outcome.value for record in lab.visits().values()]
        assert before == content(letters)
    assert [] == lab.left_behind()


def test_a_disk_without_a_signature_does_not_join_a_study(lab: Lab) -> None:
    with (
        loop_device(lab) as (node, name),
        looped(lab.base, size_bytes=512 * MIB, name="blank.image") as blank,
    ):
        plan = lab.plan(('image_size = "512 MB"', f'device = "{name}"'))
        lab.run(plan, "--erase", name)
        turn(name, blank)
        more = ("run", lab.study, "--repetitions", "2", "--erase", name)
        assert OTHER_DISK in lab.call(*more, status=3)
        assert 1 == len(lab.visits())
        turn(name, node)
        lab.call(*more)
        assert 2 == len(lab.visits())


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with looped(tmp_path, size_bytes=80 * MIB) as node:
        yield Disk(tmp_path, node)


def test_what_is_erased_is_what_was_recorded(disk: Disk, tmp_path: Path) -> None:
    recorded = device_identity(disk.name, disk.tree)
    assert recorded is not None
    scratch = ScratchDevice(device=disk.name, erase=(disk.name,), erase_foreign=True, recorded=recorded)
    with disk_with_letters(tmp_path) as letters, Ledger.open(tmp_path / "state", "recorded") as ledger:
        before = content(letters)
        turn(disk.link, letters)
        with pytest.raises(DeviceRefused, match=OTHER_DISK):
            prepare(scratch, ledger=ledger, commands=disk.commands, directory=tmp_path, tree=disk.tree)
        assert before == content(letters)


def test_a_loop_device_over_the_same_file_is_the_same_disk(tmp_path: Path) -> None:
    with looped(tmp_path) as node:
        first = device_identity(node)
    commands = Commands()
    again = f"/dev/{losetup(tmp_path / 'disk.img', commands)}"
    try:
        second = device_identity(again)
    finally:
        commands.run(["losetup", "--detach", again])
    assert first is not None
    assert second is not None
    assert () == first.differences(second)
    with looped(tmp_path, name="other.img") as other:
        third = device_identity(other)
    assert third is not None
    assert first.differences(third)


@contextmanager
def opened(node: str, flags: str) -> Iterator[int]:
    """The pid of a process that has the node open as a virtual machine has its disk: without O_EXCL."""
    program = f"import os, sys; os.open(sys.argv[1], os.{flags}); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program, node], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "open\n" == process.stdout.readline()
        yield process.pid
        process.communicate()


@pytest.mark.parametrize("held", ["the disk", "its partition"])
@pytest.mark.parametrize("asked", ["the disk", "its partition"])
def test_a_disk_that_a_program_writes_to_is_refused_by_its_pid(disk: Disk, held: str, asked: str) -> None:
    with kernel_partition(
        disk.node, length_bytes=disk.tree.size_bytes(Path(disk.node).name) - MIB
    ) as partition:
        if asked == "its partition":
            turn(disk.link, partition)
        node = disk.node if held == "the disk" else partition
        with opened(node, "O_RDWR") as pid:
            (reason,) = disk.reasons(foreign=True)
            assert f"process {pid} (python" in reason
            assert f"has {node} open for writing" in reason
        with opened(node, "O_RDONLY"):
            assert () == disk.reasons(foreign=True)


@pytest.mark.parametrize("take", [device_lock, study_lock])
def test_a_partition_and_its_disk_lock_each_other_out(
    disk: Disk, tmp_path: Path, take: Callable[..., AbstractContextManager[object]]
) -> None:
    with kernel_partition(
        disk.node, length_bytes=disk.tree.size_bytes(Path(disk.node).name) - MIB
    ) as partition:
        for first, second in ((partition, disk.name), (disk.name, partition)):
            with (
                take(tmp_path / "first", first, study="winter"),
                pytest.raises(DeviceInUse, match="study winter"),
                take(tmp_path / "second", second, study="summer"),
            ):
                pass
