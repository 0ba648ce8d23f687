"""The partition that only the kernel knows, on a real loop device."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.tools.kernel_partition import kernel_partition
from tests.support.tools.scratch_disk import looped

from bedplate.errors import DeviceInUse
from bedplate.host.zpool import disk_under, drop_partition_over, find_partition_over, partition_over
from bedplate.units import MIB

pytestmark = pytest.mark.host


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[str]:
    with looped(tmp_path, size_bytes=16 * MIB, name="image") as path:
        try:
            yield path
        finally:
            drop_partition_over(path)


def test_it_covers_the_whole_disk_and_writes_nothing(loop: str, tmp_path: Path) -> None:
    assert find_partition_over(loop) is None
    node = partition_over(loop)
    assert node == f"{loop}p1" == find_partition_over(loop)
    Path(node).write_bytes(b"first")
    with Path(loop).open("rb") as disk:
        os.posix_fadvise(disk.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        assert disk.read(5) == b"first"
    assert (tmp_path / "image").read_bytes().strip(b"\0") == b"first"


def test_it_is_made_once_and_goes_without_a_trace(loop: str) -> None:
    assert partition_over(loop) == partition_over(loop)
    assert disk_under(f"{loop}p1") == loop
    drop_partition_over(loop)
    drop_partition_over(loop)
    assert find_partition_over(loop) is None
    assert disk_under(loop) == loop


def test_a_partition_is_taken_as_it_is(loop: str) -> None:
    node = partition_over(loop)
    assert partition_over(node) == node


def test_one_that_is_held_is_named(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bedplate.host.zpool._PARTITION_PATIENCE_S", 0.0)
    with (
        Path(partition_over(loop)).open("rb"),
        pytest.raises(DeviceInUse, match="stays busy"),
    ):
        drop_partition_over(loop)


def test_a_disk_with_partitions_of_its_own_is_refused(loop: str) -> None:
    # Half of the disk, as a partition table could have it.
    with kernel_partition(loop, start_bytes=0, length_bytes=8 * MIB) as node:
        assert find_partition_over(loop) is None
        assert disk_under(node) == node
        with pytest.raises(DeviceInUse, match="does it have others"):
            partition_over(loop)
        drop_partition_over(loop)
        assert Path(node).exists()
