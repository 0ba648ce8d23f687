from __future__ import annotations

from dataclasses import replace

from bedplate.analysis.labels import factor_levels, level_text, short_name
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
    database_block_levels,
)
from bedplate.model.levels import Levels

EXT4 = Cell(DeviceLevels(), KernelLevels(), FilesystemLevels("ext4"), BuildLevels(), ClusterLevels())
XFS = replace(EXT4, filesystem=FilesystemLevels("xfs"))


def test_a_default_that_another_cell_varies_is_a_level() -> None:
    barrier = replace(EXT4, filesystem=FilesystemLevels("ext4", barrier=False))
    levels = factor_levels([(EXT4, None), (barrier, None), (XFS, None)])
    assert ["default", False, None] == [found.get("filesystem.barrier") for found in levels]


def test_the_default_block_size_of_the_database_is_a_number() -> None:
    small = replace(EXT4, build=BuildLevels(block_size_bytes=2048))
    assert [8192, 2048] == [
        found["build.block_size_bytes"] for found in factor_levels([(EXT4, None), (small, None)])
    ]


def test_a_block_size_that_was_read_back_is_its_level() -> None:
    asked = replace(EXT4, filesystem=FilesystemLevels("ext4", block_size_bytes=4096))
    levels = factor_levels([(EXT4, 4096), (asked, 4096), (XFS, None)])
    assert [4096, 4096, None] == [found.get("filesystem.block_size_bytes") for found in levels]


def test_a_switch_that_is_off_is_a_level() -> None:
    scaled = replace(EXT4, cluster=ClusterLevels(scaled_page_costs=True))
    assert [False, True] == [
        found["cluster.scaled_page_costs"] for found in factor_levels([(EXT4, None), (scaled, None)])
    ]


def test_kernels_and_settings_are_factors_of_every_type() -> None:
    newer = replace(XFS, kernel=KernelLevels("6.12"), cluster=ClusterLevels(settings=Levels(work_mem="64MB")))
    first, second = factor_levels([(EXT4, None), (newer, None)])
    assert ("default", "default") == (first["kernel.release"], first["cluster.settings.work_mem"])
    assert ("6.12", "64MB") == (second["kernel.release"], second["cluster.settings.work_mem"])


def test_an_engine_without_blocks_has_none_of_postgresql_s_factors() -> None:
    lmdb = replace(EXT4, build=BuildLevels.unbuilt("lmdb"))
    levels = factor_levels([(EXT4, None), (lmdb, None)])
    assert {"build.engine"} == {name for name in levels[1] if name.startswith("build.")}
    assert ["postgresql", "lmdb"] == [found["build.engine"] for found in levels]


def test_two_own_configurations_are_two_levels_and_not_pages_of_text() -> None:
    own = [replace(EXT4, cluster=ClusterLevels(configuration=f"work_mem = {n}MB\n" * 100)) for n in (1, 2)]
    found = [levels["cluster.configuration"] for levels in factor_levels([(cell, None) for cell in own])]
    assert found[0] != found[1]
    assert all(len(str(text)) < 40 for text in found)


def test_names_and_levels_are_words() -> None:
    assert [
        "file system",
        "db block",
        "fs block",
        "kernel",
        "barrier",
        "shared_buffers",
        "auto_explain.log",
    ] == [
        short_name(name)
        for name in (
            "filesystem.type",
            "build.block_size_bytes",
            "filesystem.block_size_bytes",
            "kernel.release",
            "filesystem.barrier",
            "cluster.settings.shared_buffers",
            "cluster.settings.auto_explain.log",
        )
    ]
    assert ["4 KiB", "yes", "512MB"] == [
        level_text("filesystem.block_size_bytes", 4096),
        level_text("x", True),
        level_text("x", "512MB"),
    ]


def test_a_database_block_is_a_size_by_whatever_name_its_engine_has() -> None:
    for name in database_block_levels():
        assert "64 KiB" == level_text(name, 65536)
    assert "65536" == level_text("cluster.settings.cache_spill", 65536)
