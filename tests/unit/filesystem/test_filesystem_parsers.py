from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bedplate.errors import OutputNotUnderstood
from bedplate.filesystem import btrfs, ext, xfs
from bedplate.filesystem.arguments import warnings_in
from bedplate.units import MIB

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def golden(repository: Path) -> Path:
    return repository / "tests/golden/filesystem"


def test_dumpe2fs_shows_block_size_journal_and_features(golden: Path) -> None:
    found = ext.parse_superblock((golden / "dumpe2fs-ext4.txt").read_text())
    assert (
        found["Block size"],
        found["Inode size"],
        found["Filesystem volume name"],
    ) == ("1024", "256", "bedplate")
    assert ext.journal_of(found) == "internal"
    facts = {item.name: item.effective for item in ext._facts(found)}
    assert facts["filesystem.superblock.journal_bytes"] == 8 * MIB
    assert "metadata_csum" in str(facts["filesystem.superblock.features"])
    # Absent is not zero: this one has no stride.
    assert facts["filesystem.superblock.stride_blocks"] is None


def test_dumpe2fs_without_a_journal_has_no_journal_size(golden: Path) -> None:
    found = ext.parse_superblock((golden / "dumpe2fs-ext4-without-journal.txt").read_text())
    assert ext.journal_of(found) == "none"
    facts = {item.name: item.effective for item in ext._facts(found)}
    assert facts["filesystem.superblock.journal_bytes"] is None


def test_a_journal_elsewhere_is_external() -> None:
    assert ext.journal_of({"Filesystem features": "has_journal", "Journal device": "0x701"}) == "external"


def test_live_options_of_ext4_hold_defaults_too(tmp_path: Path, golden: Path) -> None:
    (tmp_path / "loop0").mkdir()
    (tmp_path / "loop0/options").write_bytes((golden / "ext4-options.txt").read_bytes())
    shown = ext.read_live_options("loop0", proc=tmp_path)
    assert shown is not None
    assert {"barrier", "data=ordered", "commit=5", "delalloc", "nodiscard"} <= set(shown)


def test_a_kernel_without_the_list_gives_none_not_empty(tmp_path: Path) -> None:
    assert ext.read_live_options("loop0", proc=tmp_path) is None


def test_xfs_info_is_read_by_section(golden: Path) -> None:
    found = xfs.parse_geometry((golden / "xfs_info-1024.txt").read_text())
    assert (
        found["data.bsize"],
        found["naming.bsize"],
        found["meta-data.isize"],
        found["meta-data.crc"],
    ) == ("1024", "4096", "512", "1")
    assert (found["log"], found["log.version"], found["naming.version"]) == ("internal log", "2", "2")


def test_sizes_of_xfs_are_in_bytes_whatever_unit_the_tool_counts(golden: Path) -> None:
    found = xfs._derived(xfs.parse_geometry((golden / "xfs_info-stripe.txt").read_text()))
    assert (
        found["log.blocks_bytes"],
        found["data.sunit_bytes"],
        found["data.swidth_bytes"],
        found["data.sunit_sectors"],
    ) == (64 * MIB, 65536, 131072, 128)


def test_an_external_log_is_not_called_internal(golden: Path) -> None:
    text = (golden / "xfs_info-1024.txt").read_text().replace("internal log ", "/dev/loop1   ")
    assert xfs.parse_geometry(text)["log"] == "/dev/loop1"


def test_dump_super_is_read_with_the_names_of_its_flags(golden: Path) -> None:
    found = btrfs.parse_superblock((golden / "dump-super.txt").read_text())
    assert (found["sectorsize"], found["nodesize"], found["label"]) == ("4096", "16384", "bedplate")
    assert btrfs._checksum(found) == "crc32c"
    assert "NO_HOLES" in found["incompat_flags.names"].split()
    assert "FREE_SPACE_TREE" in found["compat_ro_flags.names"].split()


def test_profiles_are_the_folders_of_sysfs(tmp_path: Path) -> None:
    for folder in ("data/single", "metadata/dup", "metadata/single"):
        (tmp_path / "id/allocation" / folder).mkdir(parents=True)
    (tmp_path / "id/allocation/data/bytes_used").touch()
    assert btrfs.read_profiles("id", sysfs=tmp_path) == {"data": "single", "metadata": "dup single"}
    assert btrfs.read_profiles("other", sysfs=tmp_path) == {}


@pytest.mark.parametrize("parse", [ext.parse_superblock, xfs.parse_geometry, btrfs.parse_superblock])
@pytest.mark.parametrize("text", ["", "nonsense", "key: value", "magic\t\tnone"])
def test_anything_else_is_not_understood(parse: object, text: str) -> None:
    assert callable(parse)
    with pytest.raises(OutputNotUnderstood):
        parse(text)


def test_warnings_of_a_mkfs_that_ended_well_are_noticed(golden: Path) -> None:
    assert len(warnings_in((golden / "mke2fs-8192-warning.txt").read_text())) == 2
    (warning,) = warnings_in((golden / "mkfs.btrfs-8192-warning.txt").read_text())
    assert "sectorsize 8192 doesn't match page size 4096" in warning
    assert warnings_in("NOTE: several default settings have changed\nmke2fs 1.47.0\n") == ()
