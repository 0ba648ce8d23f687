"""Where ZFS has the data of files and its uberblock, as zdb 2.3.2 said it of pools that a guest had made and exported.

The pool of `zdb-files.txt` and `zdb-labels.txt`: its files were written with known bytes, which lay in the image where `RANDOM` says.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from tests.support.tools.scripted_commands import ScriptedCommands, completed

from bedplate.cuts.faults import ByteRange
from bedplate.filesystem.blocks import PoolAtRest, RestingBlocks, active_uberblock, data_blocks, dnode_blocks
from bedplate.filesystem.registry import FILESYSTEMS

FRONT = 4 * 2**20
RECORD = 0x20000
# Five records that lz4 left as they are, the last of which is cut off by the zeros behind the file's end.
RANDOM = (
    *(ByteRange(FRONT + 0x4A000 + each * RECORD, RECORD) for each in range(4)),
    ByteRange(FRONT + 0xCA000, 0x13000),
)
NEWEST = ByteRange(0x20000 + 29 * 4096, 4096)
# What the exported pool of a disk of its own is asked for by one command.
ASKED = ("zdb", "-e", "-p", "/pool", "-L", "-dddddd", "-bbbbbb", "bedplate/")


@pytest.fixture
def golden(repository: Path) -> Path:
    return repository / "tests/golden/zfs"


@pytest.fixture
def files(golden: Path) -> dict[str, str]:
    """What zdb says of each file of the pool, by its name."""
    said = (golden / "zdb-files.txt").read_text()
    sections = ["    Object  lvl" + part for part in said.split("    Object  lvl")[1:]]
    return {part.partition("\tpath\t/")[2].partition("\n")[0]: part for part in sections}


def test_the_data_of_a_file_lies_behind_the_two_front_labels(files: dict[str, str]) -> None:
    assert RestingBlocks(RANDOM) == data_blocks(files["random"])


def test_of_a_compressed_record_only_what_was_written_is_data(files: dict[str, str]) -> None:
    found = data_blocks(files["text"])
    assert RestingBlocks(tuple(ByteRange(FRONT + 0x43000 + each * 4096, 4096) for each in range(5))) == found
    # 5,000 bytes that do not compress: 0x1400 of the 0x2000 that were allocated.
    assert RestingBlocks((ByteRange(FRONT + 0x28000, 0x1400),)) == data_blocks(files["small"])


def test_each_copy_is_a_place(files: dict[str, str]) -> None:
    found = data_blocks(files["twice"])
    assert [FRONT + 0x157000, FRONT + 0x107F000, FRONT + 0x177000, FRONT + 0x109F000] == [
        each.start for each in found.ranges
    ]
    assert () == found.left_out


def test_holes_and_indirect_blocks_are_no_data(files: dict[str, str], golden: Path) -> None:
    sparse = data_blocks(files["holes"])
    assert RestingBlocks((ByteRange(FRONT + 0x19000, 0x2000), ByteRange(FRONT + 0x1C000, 0x2000))) == sparse
    punched = data_blocks((golden / "zdb-holes.txt").read_text())
    assert [FRONT + 0x3F000, FRONT + 0x9F000, FRONT + 0xBF000] == [each.start for each in punched.ranges]
    assert () == punched.left_out
    assert RestingBlocks() == data_blocks(files["empty"])


def test_what_is_embedded_or_in_pieces_is_said_and_not_placed(files: dict[str, str]) -> None:
    assert RestingBlocks(left_out=("blocks embedded in their pointers: 1",)) == data_blocks(files["tiny"])
    gang = "blocks in pieces (gang blocks), whose places zdb does not print: 3"
    assert RestingBlocks(left_out=(gang,)) == data_blocks(files["gang"])
    both = data_blocks(files["gang"] + files["random"])
    assert RestingBlocks(RANDOM, (gang,)) == both


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("DVA[0]=<0:28000:2000>", "DVA[0]=<1:28000:2000>", "blocks on another device than the disk: 1"),
        (" contiguous ", " striped ", "blocks with a pointer that is not understood: 1"),
        (" size=1400L/1400P ", " ", "blocks with a pointer that is not understood: 1"),
        ("/1400P", "/4000P", "blocks with a pointer that is not understood: 1"),
        ("DVA[0]=", "DVA=", "blocks with a pointer that is not understood: 1"),
    ],
)
def test_a_pointer_that_says_something_else_is_not_guessed(
    files: dict[str, str], old: str, new: str, why: str
) -> None:
    assert old in files["small"]
    assert RestingBlocks(left_out=(why,)) == data_blocks(files["small"].replace(old, new))


def test_the_pool_is_asked_for_all_files_at_once(golden: Path) -> None:
    said = (golden / "zdb-files.txt").read_text()
    commands = ScriptedCommands(answers={"zdb": lambda argv, _: completed(argv, said)})
    found = PoolAtRest([Path("/pool")], commands).files([2, 3, 5])
    assert [(*ASKED, "2", "3", "5")] == commands.record
    assert set(RANDOM) <= set(found.ranges)
    PoolAtRest([Path("/pool"), Path("/log")], commands).files([2])
    assert (*ASKED[:4], "-p", "/log", *ASKED[4:], "2") == commands.record[-1]


def test_a_dnode_lies_in_the_compressed_block_of_its_number_in_each_copy(golden: Path) -> None:
    said = (golden / "zdb-dnodes.txt").read_text()
    first = tuple(ByteRange(FRONT + at, 4096) for at in (0x18A000, 0x10B2000, 0x2047000))
    second = tuple(ByteRange(FRONT + at, 4096) for at in (0x19C000, 0x10C4000, 0x2059000))
    # 16 KiB of dnodes: numbers from 0 to 31, and from 32 to 63.
    for numbers, ranges in (
        ([2], first),
        ([31], first),
        ([32], second),
        ([2, 34], (*first, *second)),
        ([64], ()),
    ):
        assert RestingBlocks(ranges) == dnode_blocks(said, numbers)
    commands = ScriptedCommands(answers={"zdb": lambda argv, _: completed(argv, said)})
    assert RestingBlocks(first) == PoolAtRest([Path("/pool")], commands).inodes([2, 3])
    assert [(*ASKED, "0")] == commands.record


def test_a_file_that_zdb_does_not_show_ends_the_search_with_its_words(files: dict[str, str]) -> None:
    refused = "zdb: can't open 'bedplate': No such file or directory"
    commands = ScriptedCommands(answers={"zdb": lambda argv, _: completed(argv, refused, status=1)})
    found = PoolAtRest([Path("/pool")], commands).files([7])
    assert RestingBlocks(left_out=(f"zdb shows no file of number 7: {refused}",)) == found
    commands = ScriptedCommands(answers={"zdb": lambda argv, _: completed(argv, files["random"])})
    assert () == PoolAtRest([Path("/pool")], commands).files([2, 9]).ranges
    without = PoolAtRest([Path("/pool")], ScriptedCommands())
    assert RestingBlocks(left_out=("zdb shows no file of number 2: zdb cannot be started",)) == without.files(
        [2]
    )
    assert (
        "zdb shows no uberblock in the first label: zdb cannot be started",
    ) == without.superblock().left_out


def test_the_active_uberblock_is_that_of_the_newest_transaction_group(golden: Path) -> None:
    said = (golden / "zdb-labels.txt").read_text()
    assert (NEWEST, 29) == active_uberblock(said)
    # The ring began anew, and an older slot has the newest group.
    assert (ByteRange(0x20000 + 5 * 4096, 4096), 37) == active_uberblock(
        said.replace("\ttxg = 5\n", "\ttxg = 37\n")
    )
    # A slot is a sector, of 1 KiB at least.
    assert (ByteRange(0x20000 + 29 * 1024, 1024), 29) == active_uberblock(
        said.replace("ashift: 12", "ashift: 9")
    )


def test_an_uberblock_that_the_first_label_lacks_is_not_taken(golden: Path) -> None:
    said = (golden / "zdb-labels.txt").read_text()
    head, newest, rest = said.partition("    Uberblock[29]\n")
    older = active_uberblock(head + newest + rest.replace("labels = 0 1 2 3", "labels = 1 2 3"))
    assert (ByteRange(0x20000 + 20 * 4096, 4096), 20) == older
    assert active_uberblock(said.replace("labels = 0 1 2 3", "labels = 1")) is None
    assert active_uberblock(said.replace("ashift", "shift")) is None
    assert active_uberblock("failed to unpack label 0\n") is None


@pytest.mark.parametrize(
    ("head", "found"),
    [
        ((0x00BAB10C, 5000, 29), RestingBlocks((NEWEST,))),
        (
            (0x00BAB10C, 5000, 28),
            RestingBlocks(
                left_out=(
                    f"at byte {NEWEST.start} there is no uberblock of transaction group 29, as zdb says",
                )
            ),
        ),
        (
            (0, 5000, 29),
            RestingBlocks(
                left_out=(
                    f"at byte {NEWEST.start} there is no uberblock of transaction group 29, as zdb says",
                )
            ),
        ),
    ],
)
def test_an_uberblock_is_there_where_zdb_says_or_it_is_none(
    golden: Path, tmp_path: Path, head: tuple[int, int, int], found: RestingBlocks
) -> None:
    said = (golden / "zdb-labels.txt").read_text()
    commands = ScriptedCommands(answers={"zdb": lambda argv, _: completed(argv, said)})
    disk = tmp_path / "disk"
    disk.write_bytes(bytes(NEWEST.start) + struct.pack("=QQQ", *head) + bytes(4096))
    assert found == PoolAtRest([disk], commands).superblock()
    assert [("zdb", "-lu", str(disk))] == commands.record


def test_zfs_alone_is_looked_at_at_rest() -> None:
    assert {"zfs": PoolAtRest} == {
        name: each.at_rest for name, each in FILESYSTEMS.items() if each.at_rest is not None
    }
