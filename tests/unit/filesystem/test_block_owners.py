"""Whose blocks are: by files' maps, by what tools print, by what was written."""

from __future__ import annotations

import struct

from bedplate.cuts.blame import WrittenPlace
from bedplate.filesystem.blocks import (
    BlockOwners,
    Layout,
    OwnBlocks,
    PlacedExtent,
    btrfs_layout,
    ext_layout,
    f2fs_layout,
    jfs_layout,
    nilfs2_layout,
    xfs_layout,
)
from bedplate.model.cell import FilesystemLevels

# As dumpe2fs 1.47, debugfs, xfs_db 6.1 and btrfs 6.2 print them.
GROUPS = """\
Group 0: (Blocks 0-32767) csum 0xd8d2 [ITABLE_ZEROED]
  Primary superblock at 0, Group descriptors at 1-1
  Reserved GDT blocks at 2-75
  Block bitmap at 76 (+76), csum 0x80a14799
  Inode table at 86-565 (+86)
  30276 free blocks, 7669 free inodes, 2 directories, 7669 unused inodes
  Free blocks: 2492-32767
"""
JOURNAL = "EXTENTS:\n(0-99):1000-1099, (100):2000\n"
SUPERBLOCK = (
    "logstart = 131078\nlogblocks = 16384\nagblocks = 38400\nagblklog = 16\nblocksize = 4096\nagcount = 4\n"
)
CHUNKS = """\
	item 1 key (FIRST_CHUNK_TREE CHUNK_ITEM 13631488) itemoff 16105 itemsize 80
		length 8388608 owner 2 stripe_len 65536 type DATA|single
		num_stripes 1 sub_stripes 1
			stripe 0 devid 1 offset 199631488
			dev_uuid 4a3c
	item 2 key (FIRST_CHUNK_TREE CHUNK_ITEM 30408704) itemoff 15881 itemsize 112
		length 33554432 owner 2 stripe_len 65536 type METADATA|DUP
		num_stripes 2 sub_stripes 1
			stripe 0 devid 1 offset 38797312
			stripe 1 devid 1 offset 72351744
"""

# The first bytes of a superblock that mkfs.jfs 1.1.15 made on 512 MiB, and what dump.f2fs 1.15 prints of another.
JFS = bytes.fromhex(
    "4a4653310100000048ee0f0000000000001000000c0003000002000009000000002000000009201000000000000000000400000027000000"
    "020000002500000000000000000000000002000000fe010037000000c9fd01003890096b00000000"
)
F2FS = {"log_blocksize": "12", "cp_blkaddr": "512", "sit_blkaddr": "1536", "nat_blkaddr": "2560"}
F2FS_MAIN = {
    "ssa_blkaddr": "3584",
    "main_blkaddr": "4096",
    "block_count": "131072",
    "segment_count_nat": "2",
    "log_blocks_per_seg": "9",
}


def words_of(
    owners: BlockOwners, offset: int, length: int = 4096, device: int = 0
) -> list[tuple[WrittenPlace, str]]:
    return [(owner.place, owner.words) for owner in owners.of(device, offset, memoryview(bytes(length)))]


def test_ext_by_its_groups_and_the_inode_of_the_journal() -> None:
    owners = BlockOwners(FilesystemLevels("ext4"), ext_layout(GROUPS, JOURNAL, 4096), [])
    assert [(WrittenPlace.METADATA, "primary superblock")] == words_of(owners, 0)
    assert [(WrittenPlace.METADATA, "block bitmap")] == words_of(owners, 76 * 4096)
    assert [(WrittenPlace.METADATA, "inode table")] == words_of(owners, 565 * 4096)
    assert [(WrittenPlace.JOURNAL, "the journal")] == words_of(owners, 1099 * 4096)
    assert [(WrittenPlace.JOURNAL, "the journal")] == words_of(owners, 2000 * 4096)
    assert [WrittenPlace.UNKNOWN] == [place for place, _ in words_of(owners, 2001 * 4096)]
    assert [(WrittenPlace.JOURNAL, "the external journal")] == words_of(owners, 0, device=1)


def test_a_block_of_the_log_of_xfs_is_numbered_by_its_group() -> None:
    owners = BlockOwners(FilesystemLevels("xfs"), xfs_layout(SUPERBLOCK), [])
    first = (2 * 38400 + 6) * 4096
    assert [(WrittenPlace.JOURNAL, "the log")] == words_of(owners, first)
    assert [(WrittenPlace.JOURNAL, "the log")] == words_of(owners, first + 16383 * 4096)
    assert [WrittenPlace.UNKNOWN] == [place for place, _ in words_of(owners, first + 16384 * 4096)]
    assert [(WrittenPlace.METADATA, "group headers")] == words_of(owners, 38400 * 4096)
    assert Layout() == xfs_layout("xfs_db: not a file system")
    # What no area has is known by its first bytes.
    inodes = memoryview(b"IN\x81\xa4\x03".ljust(512, b"\0"))
    assert ["inodes"] == [owner.words for owner in owners.of(0, first - 4096, inodes)]


def test_jfs_by_its_superblock() -> None:
    owners = BlockOwners(FilesystemLevels("jfs"), jfs_layout(JFS), [])
    assert [(WrittenPlace.JOURNAL, "the log")] == words_of(owners, 130560 * 4096)
    assert [(WrittenPlace.JOURNAL, "the log")] == words_of(owners, 131071 * 4096)
    assert [WrittenPlace.UNKNOWN] == [place for place, _ in words_of(owners, 130559 * 4096)]
    assert [(WrittenPlace.METADATA, "superblock")] == words_of(owners, 8 * 4096)
    assert [(WrittenPlace.METADATA, "aggregate's inodes, second copy")] == words_of(owners, 42 * 4096)
    # Without JFS_INLINELOG the log is on another device.
    outside = jfs_layout(JFS[:36] + bytes(4) + JFS[40:])
    assert WrittenPlace.JOURNAL not in {area.place for area in outside.areas}
    assert Layout() == jfs_layout(b"") == jfs_layout(bytes(512))


def test_what_stands_before_the_main_area_of_f2fs_is_its_own() -> None:
    found = f2fs_layout({**F2FS, **F2FS_MAIN})
    owners = BlockOwners(FilesystemLevels("f2fs"), found, [])
    assert [(WrittenPlace.METADATA, "superblock")] == words_of(owners, 4096)
    assert [(WrittenPlace.METADATA, "checkpoint")] == words_of(owners, 1535 * 4096)
    assert [(WrittenPlace.METADATA, "node address table")] == words_of(owners, 2560 * 4096)
    assert [(WrittenPlace.METADATA, "segment summaries")] == words_of(owners, 4095 * 4096)
    assert [WrittenPlace.UNKNOWN] == [place for place, _ in words_of(owners, 4096 * 4096)]
    assert Layout() == f2fs_layout(F2FS)


def test_a_node_of_f2fs_is_known_by_its_end() -> None:
    owners = BlockOwners(FilesystemLevels("f2fs"), f2fs_layout({**F2FS, **F2FS_MAIN}), [])

    def kind_of(*footer: int) -> str:
        block = bytes(4072) + struct.pack("<IIIQI", *footer)
        (owner,) = owners.of(0, 5000 * 4096, memoryview(block))
        return owner.words

    assert "inode 4" == kind_of(4, 4, 0, 9, 5001)
    assert "node 7 of inode 4" == kind_of(7, 4, 0, 9, 5001)
    unknown = "no file's and no known block at byte 20480000"
    # A next node before the main area, a number that the table has no place for, and no number.
    assert [unknown] * 3 == [kind_of(4, 4, 0, 9, 12), kind_of(1 << 30, 4, 0, 9, 5001), kind_of(0, 0, 0, 0, 0)]


def test_nilfs2_has_a_superblock_at_either_end() -> None:
    owners = BlockOwners(FilesystemLevels("nilfs2"), nilfs2_layout(512 << 20), [])
    assert [(WrittenPlace.METADATA, "superblock")] == words_of(owners, 1024, 1024)
    assert [(WrittenPlace.METADATA, "superblock")] == words_of(owners, (512 << 20) - 4096, 1024)
    assert [WrittenPlace.UNKNOWN] == [place for place, _ in words_of(owners, 8192)]
    summary = memoryview((bytes(8) + struct.pack("<I", 0x1EAFFA11)).ljust(4096, b"\0"))
    assert ["segment summary"] == [owner.words for owner in owners.of(0, 8192, summary)]


def test_btrfs_files_have_logical_addresses() -> None:
    file = PlacedExtent("data/base", 8192, 13631488 + 4096, 4096)
    owners = BlockOwners(FilesystemLevels("btrfs"), btrfs_layout(CHUNKS), [file])
    assert [(WrittenPlace.OTHER_FILE, "data/base, byte 8192")] == words_of(owners, 199631488 + 4096)
    assert [(WrittenPlace.METADATA, "trees")] == words_of(owners, 72351744 + 65536)
    assert [(WrittenPlace.METADATA, "superblock")] == words_of(owners, 65536)
    assert [WrittenPlace.UNKNOWN] == [place for place, _ in words_of(owners, 199631488)]


def test_a_write_over_two_files_names_both_and_files_come_before_areas() -> None:
    extents = [
        PlacedExtent("data/b", 0, 8192, 4096),
        PlacedExtent("data/a", 4096, 4096, 4096),
        PlacedExtent("data", 0, 16384, 4096, is_folder=True),
    ]
    layout = Layout((OwnBlocks(0, 65536, WrittenPlace.METADATA, "everything"),))
    owners = BlockOwners(FilesystemLevels("ext4"), layout, extents)
    found = owners.of(0, 6144, memoryview(bytes(4096)))
    assert [("data/a", 6144, 2048), ("data/b", 0, 2048)] == [
        (owner.path, owner.offset, owner.length) for owner in found
    ]
    assert [(WrittenPlace.METADATA, "directory data")] == words_of(owners, 16384)
    assert [(WrittenPlace.METADATA, "everything")] == words_of(owners, 0)


def test_an_inode_of_ext_is_in_its_groups_table_and_one_of_xfs_where_its_number_says() -> None:
    groups = (
        "Inodes per group:         8192\nInode size:\t          256\n  Inode table at 145-656 (bg #0 + 145)\n"
    )
    inodes = ext_layout(groups, "", 4096).inodes
    assert inodes is not None
    # debugfs's `imap <13>`: block 145, offset 0x0c00.
    assert 145 * 4096 + 0xC00 == inodes.place(13)
    assert inodes.place(8193) is None
    assert ext_layout(GROUPS, JOURNAL, 4096).inodes is None
    numbered = xfs_layout(
        "logstart = 131078\nlogblocks = 16384\nagblocks = 65536\nagblklog = 16\nblocksize = 4096\nagcount = 4\n"
        "inopblog = 3\ninodesize = 512\n"
    ).inodes
    assert numbered is not None
    # Of group 1, block 16, slot 5.
    assert (65536 + 16) * 4096 + 5 * 512 == numbered.place((1 << 19) + 16 * 8 + 5)
