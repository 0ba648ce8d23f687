"""Identities: stable where nothing was asked, different where something was."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    Dataset,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
    RunSpec,
    Throttle,
)
from bedplate.model.levels import Levels

PLAIN = Cell(DeviceLevels(), KernelLevels(), FilesystemLevels("ext4"), BuildLevels(), ClusterLevels())


def test_only_what_was_asked_is_in_the_identity() -> None:
    assert {"filesystem.type": "ext4"} == dict(PLAIN.levels)


def test_the_identity_of_a_plain_cell_does_not_change_between_releases() -> None:
    # A changed hash here means that every study on every disk has lost its cells: raise
    # IDENTITY_VERSION on purpose, or find out what changed.
    assert "ext4-pg8k-750879ed" == PLAIN.id


def test_each_level_makes_another_cell() -> None:
    others = [
        replace(PLAIN, device=DeviceLevels(memory_bytes=2**31)),
        replace(PLAIN, device=DeviceLevels(throttle=Throttle("hdd-7200", read_iops=75))),
        replace(PLAIN, device=DeviceLevels(throttle=Throttle("hdd-7200", read_iops=80))),
        replace(PLAIN, filesystem=FilesystemLevels("ext4", barrier=True)),
        replace(PLAIN, filesystem=FilesystemLevels("ext4", barrier=False)),
        replace(PLAIN, filesystem=FilesystemLevels("ext4", features=Levels(data="journal"))),
        replace(PLAIN, filesystem=FilesystemLevels("ext4", mount_options=("noatime",))),
        replace(PLAIN, filesystem=FilesystemLevels("ext4", mkfs_options=("noatime",))),
        replace(PLAIN, build=BuildLevels(block_size_bytes=4096)),
        replace(PLAIN, cluster=ClusterLevels(settings=Levels(fsync="off"))),
        replace(PLAIN, cluster=ClusterLevels(data_checksums=False)),
    ]
    assert len(others) + 1 == len({PLAIN.id, *(cell.id for cell in others)})


@given(st.text(max_size=300))
def test_any_name_gives_a_file_name_that_needs_no_quoting(name: str) -> None:
    for identity in (RunSpec(name, "pgbench").id, Dataset("pgbench", Levels(note=name)).id):
        assert all(
            character.isascii() and (character.isalnum() or character in ".-") for character in identity
        )
        assert 0 < len(identity) <= 80
        assert not identity.startswith((".", "-"))


def test_two_long_names_that_are_cut_alike_stay_apart() -> None:
    first, second = (Dataset("pgbench", Levels(note="x" * 200 + end)) for end in "ab")
    assert first.id != second.id


def test_a_dataset_is_told_in_words_and_a_switch_as_a_plan_has_it() -> None:
    assert "fio" == Dataset("fio").words
    levels = Levels(entries=1_000_000, map_bytes=2**30, value_bytes=100)
    assert "lmdb entries 1000000 map 1 GiB value 100 B" == Dataset("lmdb", levels).words
    asked = Levels(file_bytes=2**31, file_size_asked="8x memory")
    assert "bonnie file 2 GiB" == Dataset("bonnie", asked).words
    assert "tpch foreign_keys" == Dataset("tpch", Levels(foreign_keys=True)).words
    assert "tpch foreign_keys false" == Dataset("tpch", Levels(foreign_keys=False)).words
