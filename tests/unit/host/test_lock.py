"""The lock of a scratch device: who has it, and what to do about it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from tests.unit.host.devices.test_block_tree import Machine

from bedplate.errors import DeviceInUse
from bedplate.host import lock
from bedplate.host.block_tree import BlockTree, DeviceNode
from bedplate.host.lock import IMAGE_FILES, device_lock, study_lock, wait_for_last_visit


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        # There is no other place to choose.
        (IMAGE_FILES, "wait for it, or stop it: two at once would measure each other"),
        ("{place}/disk.img", "wait for it, stop it, or choose another"),
    ],
)
def test_who_comes_second_is_told_who_was_first_and_what_to_do(
    name: str, way_out: str, tmp_path: Path
) -> None:
    asked = name.format(place=tmp_path)
    with (
        device_lock(tmp_path, asked, study="first"),
        pytest.raises(DeviceInUse) as refused,
        device_lock(tmp_path, asked),
    ):
        pass
    holder = f"bedplate process {os.getpid()}, study first"
    assert f"{asked} is in use by {holder}; {way_out}" == str(refused.value)
    with device_lock(tmp_path, asked) as node:
        assert node is None


@pytest.mark.parametrize("lock_of", [device_lock, study_lock])
def test_those_that_time_nothing_share_the_place_of_images_and_nobody_who_does_has_it_meanwhile(
    tmp_path: Path, lock_of: Callable[..., AbstractContextManager[Any]]
) -> None:
    """Two `power-cut try` at once are two processes; the lock is of an open file, so that one process shows the same."""
    with (
        lock_of(tmp_path, IMAGE_FILES, study="first", is_timed=False),
        lock_of(tmp_path, IMAGE_FILES, study="second", is_timed=False),
    ):
        wait_for_last_visit(tmp_path, IMAGE_FILES, deadline_s=0.0, on_wait=lambda _: None, is_timed=False)
        with pytest.raises(DeviceInUse), lock_of(tmp_path, IMAGE_FILES, study="timed"):
            pass
    with (
        lock_of(tmp_path, IMAGE_FILES, study="timed"),
        pytest.raises(DeviceInUse),
        lock_of(tmp_path, IMAGE_FILES, study="third", is_timed=False),
    ):
        pass


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A disk of two partitions; the last part of a name is the kernel's."""
    machine = Machine(tmp_path)
    machine.disk("sda", "8:0")
    for number in (1, 2):
        machine.disk(f"sda{number}", f"8:{number}", parent="sda")

    def at(name: str, tree: BlockTree) -> DeviceNode:
        kernels = Path(name).name
        return DeviceNode(os.open("/dev/null", os.O_PATH), kernels, tree.st_rdev(kernels))

    monkeypatch.setattr(lock, "BlockTree", lambda: machine.tree)
    monkeypatch.setattr(DeviceNode, "find", at)
    monkeypatch.setattr(lock, "_machine_wide", lambda: tmp_path)
    return Path("/dev/disk/by-id")


@pytest.mark.parametrize("take", [device_lock, study_lock])
@pytest.mark.parametrize(("first", "second"), [("sda", "sda1"), ("sda1", "sda")])
def test_a_partition_and_its_whole_disk_lock_each_other_out(
    disk: Path, tmp_path: Path, first: str, second: str, take: Callable[..., AbstractContextManager[object]]
) -> None:
    held, wanted = str(disk / first), str(disk / second)
    with (
        take(tmp_path, held, study="winter"),
        pytest.raises(
            DeviceInUse, match=f"{second}.* is in use by bedplate process {os.getpid()}, study winter"
        ),
        take(tmp_path, wanted, study="summer"),
    ):
        pass
    with take(tmp_path, wanted, study="summer"):
        pass
    assert [] == list(tmp_path.glob("bedplate-*"))


def test_two_partitions_are_two_devices_and_the_disk_is_free_when_both_are(
    disk: Path, tmp_path: Path
) -> None:
    one, other, whole = (str(disk / name) for name in ("sda1", "sda2", "sda"))
    with device_lock(tmp_path, one, study="winter"):
        with device_lock(tmp_path, other, study="spring"):
            pass
        # Who has let go of the other one has not let go of the disk.
        with pytest.raises(DeviceInUse), device_lock(tmp_path, whole, study="summer"):
            pass
    with (
        device_lock(tmp_path, whole, study="summer"),
        pytest.raises(DeviceInUse, match="sda2 is a partition of /dev/sda, which is in use"),
    ):
        wait_for_last_visit(tmp_path, other, deadline_s=0.0, on_wait=lambda _: None)
    wait_for_last_visit(tmp_path, other, deadline_s=0.0, on_wait=lambda _: None)
