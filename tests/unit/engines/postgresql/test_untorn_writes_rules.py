from __future__ import annotations

import pytest

from bedplate.engines.postgresql.plan import untorn_writes
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
)
from bedplate.model.levels import Levels
from bedplate.model.visit import ScratchDevice
from bedplate.plan.rules import CellContext

KB = 1024


def reasons(
    level: str = "on",
    *,
    filesystem: FilesystemLevels | None = None,
    version: str = "18",
    direct: str | None = "data",
    kernel: str | None = "6.18",
) -> list[str]:
    settings = Levels({} if direct is None else {"debug_io_direct": direct})
    cell = Cell(
        DeviceLevels(),
        KernelLevels(kernel),
        filesystem or FilesystemLevels("xfs"),
        BuildLevels(version=version),
        ClusterLevels(settings=settings, untorn_writes=level),
    )
    return list(untorn_writes(cell, CellContext(None, ScratchDevice())))


def test_xfs_takes_an_untorn_write_since_6_16() -> None:
    assert [] == reasons()
    assert [] == reasons(kernel=None)
    assert [] == reasons(filesystem=FilesystemLevels("xfs", block_size_bytes=8 * KB))
    (why,) = reasons(kernel="6.12")
    assert "under kernel 6.12 XFS needs a device" in why


@pytest.mark.parametrize("level", ["on", "count"])
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": "15"}, "PostgreSQL 15 has no debug_io_direct; it came with 16"),
        ({"direct": None}, 'set debug_io_direct = "data"'),
        ({"direct": "wal_init"}, 'set debug_io_direct = "data"'),
        ({"direct": "data, wal"}, "without wal and wal_init"),
    ],
)
def test_pages_are_known_by_direct_io_alone(level: str, changes: dict[str, str], words: str) -> None:
    found = reasons(level, **changes)  # type: ignore[arg-type]
    assert any(words in why for why in found)
    assert all(why.startswith(f"untorn_writes = {level}: ") for why in found)


@pytest.mark.parametrize(
    ("filesystem", "words"),
    [
        (FilesystemLevels("btrfs"), "btrfs takes no untorn write; xfs and ext4 can"),
        (FilesystemLevels("xfs", block_size_bytes=16 * KB), "8 KiB is less than a block of 16 KiB"),
    ],
)
def test_a_file_system_that_takes_none_can_be_counted_only(filesystem: FilesystemLevels, words: str) -> None:
    (why,) = reasons("on", filesystem=filesystem)
    assert words in why
    assert [] == reasons("count", filesystem=filesystem)


def test_without_it_nothing_is_asked() -> None:
    assert [] == reasons("off", version="15", direct=None, filesystem=FilesystemLevels("btrfs"))
