"""What cells are called, with and without a database block."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bedplate.analysis.labels import label_cells, level_rank, short_name
from bedplate.engines.lmdb import model
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
)
from bedplate.model.levels import Levels, Scalar


def cell(engine: str, kind: str = "ext4", **settings: Scalar) -> Cell:
    build = BuildLevels() if engine == "postgresql" else BuildLevels.unbuilt(engine)
    return Cell(
        DeviceLevels(),
        KernelLevels(),
        FilesystemLevels(kind, block_size_bytes=4096),
        build,
        ClusterLevels(settings=Levels(settings)),
    )


def full_names(*cells: Cell) -> list[str]:
    return [label.full for label in label_cells(cells, {}).values()]


def test_an_engine_without_blocks_has_no_database_block() -> None:
    (label,) = label_cells([cell("lmdb", sync="full")], {}).values()
    assert ("", None) == (label.database_block, label.database_block_bytes)
    assert ("ext4 · fs 4 KiB", "fs 4 KiB") == (label.full, label.blocks)
    (label,) = label_cells([cell("postgresql")], {}).values()
    assert ("8 KiB", 8192, "ext4 · fs 4 KiB · db 8 KiB") == (
        label.database_block,
        label.database_block_bytes,
        label.full,
    )


def test_a_block_size_that_is_chosen_when_the_data_are_made_is_a_column_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model, "MODEL", replace(model.MODEL, block_level="cluster.settings.page_bytes"))
    cells = [cell("lmdb", page_bytes=size) for size in (4096, 16384)]
    labels = [label_cells(cells, {})[each.id] for each in cells]
    assert [("ext4", "4 KiB", 4096), ("ext4", "16 KiB", 16384)] == [
        (label.panel, label.database_block, label.database_block_bytes) for label in labels
    ]
    assert "db block" == short_name("cluster.settings.page_bytes")


def test_what_varies_within_an_engine_names_its_cells_and_no_others() -> None:
    assert [
        "ext4 writemap · fs 4 KiB",
        "ext4 no writemap · fs 4 KiB",
        "ext4 default writemap · fs 4 KiB",
    ] == (full_names(cell("lmdb", writemap=True), cell("lmdb", writemap=False), cell("lmdb")))
    assert [
        "ext4 PostgreSQL · fs 4 KiB · db 8 KiB",
        "ext4 LMDB sync=full · fs 4 KiB",
        "ext4 LMDB sync=nosync · fs 4 KiB",
        "xfs no engine · fs 4 KiB",
    ] == full_names(
        cell("postgresql", shared_buffers="1GB"),
        cell("lmdb", sync="full"),
        cell("lmdb", sync="nosync"),
        cell("none", "xfs"),
    )


def test_one_factor_at_a_time_is_named_by_what_departs() -> None:
    usual: dict[str, Scalar] = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
    cells = [cell("postgresql", kind, **usual) for kind in ("ext4", "xfs", "btrfs")]
    cells += [cell("postgresql", "ext4", **{**usual, name: "off"}) for name in usual]
    assert [
        "ext4",
        "xfs",
        "btrfs",
        "ext4 fsync=off",
        "ext4 full_page_writes=off",
        "ext4 synchronous_commit=off",
    ] == [label.panel for label in label_cells(cells, {}).values()]


def test_crossed_factors_name_every_level() -> None:
    cells = [cell("postgresql", kind, fsync=level) for kind in ("ext4", "xfs") for level in ("on", "off")]
    assert ["ext4 fsync=on", "ext4 fsync=off", "xfs fsync=on", "xfs fsync=off"] == [
        label.panel for label in label_cells(cells, {}).values()
    ]


@pytest.mark.parametrize(
    ("name", "levels"),
    [
        ("build.block_size_bytes", [1024, 2048, 16384]),
        ("cluster.settings.shared_buffers", ["1MB", "2 MB", "16MB", "128MB", "1GB"]),
        ("cluster.settings.checkpoint_timeout", ["30s", "5min", "1h"]),
        ("cluster.settings.checkpoint_completion_target", ["0.25", "0.5", "0.9"]),
        ("kernel.release", ["5.15", "6.6", "6.9", "6.12", "6.18"]),
        ("kernel.release", ["6.9.2", "6.18.0-rc2", "6.18.0-rc10"]),
        ("filesystem.features.stripe", ["raid0", "raid1", "raid10"]),
        ("cluster.settings.sync", [1, 2, 10, "full", "off"]),
    ],
)
def test_levels_are_in_the_order_that_a_reader_counts_in(name: str, levels: list[Scalar]) -> None:
    turned = [*levels[1:], levels[0]]
    assert levels == sorted(turned, key=lambda level: level_rank(name, level))
