from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.tools.filesystem_site import site_on

from bedplate.errors import OutputNotUnderstood
from bedplate.filesystem import adapter, bcachefs, btrfs, ext, f2fs, jfs, nilfs2, ntfs, reiserfs, xfs
from bedplate.filesystem.adapter import MKFS_OPTION, warnings_in
from bedplate.filesystem.blocks import Superblock, decode_superblock
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.command import Commands
from bedplate.host.scratch_device import AttachedDevice
from bedplate.model.cell import FilesystemLevels
from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bedplate.model.levels import Scalar


@pytest.fixture
def golden(repository: Path) -> Path:
    return repository / "tests/golden/filesystem"


def _facts(type_: str, superblock: Mapping[str, str]) -> Mapping[str, Scalar | None]:
    found = filesystem_for(type_).superblock_comparisons(FilesystemLevels(type_), superblock)
    return {item.name: item.effective for item in found}


def _matches(type_: str, mkfs_options: tuple[str, ...], superblock: Mapping[str, str]) -> list[bool | None]:
    levels = FilesystemLevels(type_, mkfs_options=mkfs_options)
    found = filesystem_for(type_).superblock_comparisons(levels, superblock)
    return [item.matches for item in found if item.name.startswith(MKFS_OPTION)]


def test_dumpe2fs_shows_block_size_journal_and_features(golden: Path) -> None:
    found = ext.parse_superblock((golden / "dumpe2fs-ext4.txt").read_text())
    assert (
        found["Block size"],
        found["Inode size"],
        found["Filesystem volume name"],
    ) == ("1024", "256", "bedplate")
    assert ext.journal_of(found) == "internal"
    facts = _facts("ext4", found)
    assert facts["filesystem.superblock.journal_bytes"] == 8 * MIB
    assert "metadata_csum" in str(facts["filesystem.superblock.features"])
    # Absent is not zero: this one has no stride.
    assert facts["filesystem.superblock.stride_blocks"] is None


def test_dumpe2fs_without_a_journal_has_no_journal_size(golden: Path) -> None:
    found = ext.parse_superblock((golden / "dumpe2fs-ext4-without-journal.txt").read_text())
    assert ext.journal_of(found) == "none"
    facts = _facts("ext4", found)
    assert facts["filesystem.superblock.journal_bytes"] is None


def test_the_journals_device_counts_only_if_the_kernel_has_its_journal_there(tmp_path: Path) -> None:
    superblock = {"Filesystem features": "has_journal", "Journal device": "0x0701"}
    device = AttachedDevice("/dev/loop1", "loop1", "loop1", 0)
    assert ext.journal_device_of(superblock, device, jbd2=tmp_path) is None
    (tmp_path / "loop1-8").mkdir()  # an internal journal of that device
    assert ext.journal_device_of(superblock, device, jbd2=tmp_path) is None
    (tmp_path / "loop1").mkdir()
    assert "7:1" == ext.journal_device_of(superblock, device, jbd2=tmp_path)
    assert ext.journal_device_of({}, device, jbd2=tmp_path) is None


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
    found = xfs.sizes_in(xfs.parse_geometry((golden / "xfs_info-stripe.txt").read_text()))
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
    assert _facts("btrfs", found)["filesystem.superblock.checksum"] == "crc32c"
    assert "NO_HOLES" in found["incompat_flags.names"].split()
    assert "FREE_SPACE_TREE" in found["compat_ro_flags.names"].split()


def test_profiles_are_the_folders_of_sysfs(tmp_path: Path) -> None:
    for folder in ("data/single", "metadata/dup", "metadata/single"):
        (tmp_path / "id/allocation" / folder).mkdir(parents=True)
    (tmp_path / "id/allocation/data/bytes_used").touch()
    assert btrfs.read_profiles("id", sysfs=tmp_path) == {"data": "single", "metadata": "dup single"}
    assert btrfs.read_profiles("other", sysfs=tmp_path) == {}


def test_an_external_log_of_jfs_belongs_to_the_file_system_with_its_uuid(golden: Path) -> None:
    inside = jfs.parse_superblock((golden / "jfs_tune.txt").read_text())
    outside = jfs.parse_superblock((golden / "jfs_tune-external.txt").read_text())
    log = jfs.parse_superblock((golden / "jfs_tune-log.txt").read_text())
    assert "JFS_INLINELOG" in inside["JFS flags"].split()
    assert "JFS_INLINELOG" not in outside["JFS flags"].split()
    # Major 7 is a loop device's.
    assert "7:2" == jfs.log_device_of(outside, log)
    assert jfs.log_device_of(inside, log) is None
    assert jfs.log_device_of(outside, {**log, "Log device UUID": "another"}) is None
    facts = _facts("jfs", inside)
    assert ("bedplate", 512) == (
        facts["filesystem.label"],
        facts["filesystem.superblock.physical_block_bytes"],
    )


def test_debugreiserfs_shows_blocks_hash_and_the_journals_device(golden: Path) -> None:
    inside = reiserfs.parse_superblock((golden / "debugreiserfs.txt").read_text())
    outside = reiserfs.parse_superblock((golden / "debugreiserfs-external.txt").read_text())
    assert ("3.6", "4096", "0x0", "8193", "1024") == tuple(
        inside[key] for key in ("format", "Blocksize", "Device", "Size", "Max transaction length")
    )
    assert ("1024", "0x702", "4096", '"tea"') == tuple(
        outside[key] for key in ("Blocksize", "Device", "Size", "Hash function used to sort names")
    )
    assert "7:2" == adapter.decoded_number(int(outside["Device"], 16))
    assert [True, True, False] == _matches("reiserfs", ("-h tea", "-s 4096", "--format=3.5"), outside)


def test_nilfs_tune_shows_block_size_reserve_and_state(golden: Path) -> None:
    found = nilfs2.parse_superblock((golden / "nilfs-tune.txt").read_text())
    assert ("2048", "valid", "bedplate") == tuple(
        found[key] for key in ("Block size", "Filesystem state", "Filesystem volume name")
    )
    assert [True, False, False] == _matches("nilfs2", ("-m 7", "-B 1024", "-O block_count"), found)


def test_a_superblock_of_nilfs2_counts_only_if_its_checksum_is_right(golden: Path) -> None:
    raw = bytes.fromhex((golden / "nilfs2-superblock.hex").read_text().replace("\n", ""))
    assert Superblock(1, 1, 1024, 64, 4) == decode_superblock(raw)
    # One bit of the label is another, then the magic number, then the length reaches beyond the block.
    label = raw.index(b"bedplate")
    assert decode_superblock(raw[:label] + b"c" + raw[label + 1 :]) is None
    assert decode_superblock(raw[:6] + b"\0\0" + raw[8:]) is None
    assert decode_superblock(raw[:8] + b"\xff\xff" + raw[10:]) is None
    assert decode_superblock(bytes(1024)) is None
    assert decode_superblock(raw[:100]) is None


def test_of_two_superblocks_the_newer_decides(golden: Path, tmp_path: Path) -> None:
    raw = bytes.fromhex((golden / "nilfs2-superblock.hex").read_text().replace("\n", ""))
    device = tmp_path / "device"
    device.write_bytes(bytes(1024) + raw + bytes(64 * 1024 - 2048))
    site = site_on(FilesystemLevels("nilfs2"), str(device), Commands())
    checked = filesystem_for("nilfs2").check(site)
    assert checked.clean
    assert "checkpoint 1" in checked.text
    device.write_bytes(bytes(64 * 1024))
    assert not filesystem_for("nilfs2").check(site).clean


def test_ntfsinfo_shows_the_cluster_and_not_the_blocks_of_an_index(golden: Path) -> None:
    found = ntfs.parse_volume((golden / "ntfsinfo.txt").read_text())
    levels = FilesystemLevels("ntfs3", 1024, mkfs_options=("-s 512", "-C"))
    compared = {item.name: item for item in filesystem_for("ntfs3").superblock_comparisons(levels, found)}
    assert compared["filesystem.superblock.block_size_bytes"].matches is True
    assert compared["filesystem.mkfs_options.-s"].matches is True
    assert compared["filesystem.mkfs_options.-C"].matches is None
    assert ("bedplate", 4096) == (
        compared["filesystem.label"].effective,
        compared["filesystem.superblock.index_block_bytes"].effective,
    )


def test_dump_f2fs_shows_the_superblock_in_decimal(golden: Path) -> None:
    found = f2fs.parse_superblock((golden / "dump.f2fs.txt").read_text())
    assert ("bedplate", "131072", "") == (found["label"], found["block_count"], found["features"])
    assert (4096, 512) == (f2fs.power(found["log_blocksize"]), f2fs.power(found["log_sectorsize"]))
    assert [True, False, False, None] == _matches("f2fs", ("-s 1", "-z 2", "-O extra_attr", "-o 5"), found)


@pytest.mark.parametrize(
    ("code", "number"),
    [(0x0701, "7:1"), (0xFE10, "254:16"), (0x1000FE01, "254:65537"), (0x10300, "259:0")],
)
def test_a_device_number_is_decoded_as_the_kernel_does(code: int, number: str) -> None:
    # include/linux/kdev_t.h: twelve bits of major between the low and the high bits of minor.
    assert number == adapter.decoded_number(code)


@pytest.mark.parametrize(
    "parse",
    [
        ext.parse_superblock,
        xfs.parse_geometry,
        btrfs.parse_superblock,
        jfs.parse_superblock,
        reiserfs.parse_superblock,
        nilfs2.parse_superblock,
        ntfs.parse_volume,
        f2fs.parse_superblock,
        bcachefs.parse_superblock,
    ],
)
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
