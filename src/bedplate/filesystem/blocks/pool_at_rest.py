"""Where ZFS has the data of a file and its uberblocks, on a pool that is exported: by zdb(8).

ZFS answers neither FIEMAP nor FIBMAP. On a pool that is imported, zdb may read blocks that are given away meanwhile; and what an
fsync promised is in the intent log until the next transaction group. Exported, all of it is where its block pointers say.

The formats are those of OpenZFS 2.3 (cmd/zdb/zdb.c, module/zfs/spa_misc.c: `snprintf_blkptr`). What is printed otherwise is left out and said.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError
from bedplate.filesystem.blocks.resting import RestingBlocks
from bedplate.model.fault_order import ByteRange
from bedplate.model.filesystem import LABEL
from bedplate.units import KIB, MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from bedplate.host.command import Commands

_LIMIT_S = 600.0
# include/sys/vdev_impl.h: two labels and what is kept for boot blocks are in front, and offsets count from behind them.
_FRONT_BYTES = 4 * MIB
# Of a label, the ring of uberblocks; a slot is a sector of the pool's, at least 1 KiB and at most 8.
_RING_BYTES, _RING_AT = 128 * KIB, 128 * KIB
_SLOT_BITS_LEAST, _SLOT_BITS_MOST = 10, 13
# struct uberblock (include/sys/uberblock_impl.h): magic, version, transaction group.
_UBERBLOCK_HEAD = struct.Struct("=QQQ")
_UBERBLOCK_MAGIC = 0x00BAB10C
# The only vdev with data in a pool of bedplate's; a log device is another.
_DISK_VDEV, _FIRST_LABEL = 0, 0
# The object that holds the dnodes of all others (include/sys/dnode.h), a slot of which is an inode's number.
_DNODES, _DNODE_BYTES = 0, 512
_SAID_BYTES = 300
_NOT_UNDERSTOOD = "blocks with a pointer that is not understood"

_OBJECT = re.compile(r"^ +Object +lvl +iblk .*\n +(\d+) ", re.MULTILINE)
_POINTER = re.compile(r"^ *([0-9a-f]+) +L0 +(.*)$", re.MULTILINE)
_ADDRESS = re.compile(r"DVA\[\d\]=<(\d+):([0-9a-f]+):([0-9a-f]+)>")
_SIZE = re.compile(r" size=([0-9a-f]+)L/([0-9a-f]+)P ")
_ASHIFT = re.compile(r"^ +ashift: (\d+)$", re.MULTILINE)
_UBERBLOCK = re.compile(
    r"^ +Uberblock\[(\d+)\]\n.*?^\ttxg = (\d+)\n.*?^\ttimestamp = (\d+) .*?^ +labels = ([\d ]+)$",
    re.MULTILINE | re.DOTALL,
)


class PoolAtRest:
    """An exported pool on `images` of its disk, and of its log device where it has one."""

    def __init__(self, images: Sequence[Path], commands: Commands) -> None:
        self._images, self._commands = images, commands

    def files(self, numbers: Sequence[int], /) -> RestingBlocks:
        """The data of files, as long as it is on the disk: compressed, and each copy of `copies`."""
        return self._of_objects(numbers, data_blocks)

    def inodes(self, numbers: Sequence[int], /) -> RestingBlocks:
        """The blocks of dnodes, each of many that are compressed together; ZFS keeps copies of them."""
        return self._of_objects([_DNODES], lambda said: dnode_blocks(said, numbers))

    def _of_objects(self, numbers: Sequence[int], found: Callable[[str], RestingBlocks]) -> RestingBlocks:
        where = [word for image in self._images for word in ("-p", str(image))]
        # -L: it does not read the maps of free space. Six times -b: each pointer whole, as a gang block shows in no shorter form.
        words = ["zdb", "-e", *where, "-L", "-dddddd", "-bbbbbb", f"{LABEL}/", *map(str, numbers)]
        said, refusal = self._said(words)
        missing = {str(number) for number in numbers} - set(_OBJECT.findall(said))
        if missing:
            return RestingBlocks(
                left_out=(f"zdb shows no file of number {', '.join(sorted(missing))}: {refusal}",)
            )
        return found(said)

    def superblock(self) -> RestingBlocks:
        """The active uberblock in the first of four labels; its checksum is of the whole slot."""
        disk = self._images[0]
        said, refusal = self._said(["zdb", "-lu", str(disk)])
        found = active_uberblock(said)
        if found is None:
            return RestingBlocks(left_out=(f"zdb shows no uberblock in the first label: {refusal}",))
        slot, group = found
        with disk.open("rb") as file:
            file.seek(slot.start)
            magic, _, held = _UBERBLOCK_HEAD.unpack(file.read(_UBERBLOCK_HEAD.size))
        if (magic, held) != (_UBERBLOCK_MAGIC, group):
            return RestingBlocks(
                left_out=(
                    f"at byte {slot.start} there is no uberblock of transaction group {group}, as zdb says",
                )
            )
        return RestingBlocks((slot,))

    def _said(self, words: Sequence[str]) -> tuple[str, str]:
        """What zdb printed, and its last words; its status does not tell what it could not read."""
        try:
            done = self._commands.run(words, timeout_s=_LIMIT_S, check=False)
        except BedplateError as error:
            return "", str(error)
        return done.stdout, done.output[-_SAID_BYTES:] or "(it printed nothing)"


def data_blocks(said: str) -> RestingBlocks:
    """Of `zdb -dddddd -bbbbbb POOL/ NUMBER…`: the blocks of files. Those of indirect pointers are none of them."""
    return _placed(pointer for _, pointer in _POINTER.findall(said))


def dnode_blocks(said: str, numbers: Sequence[int]) -> RestingBlocks:
    """Of `zdb -dddddd -bbbbbb POOL/ 0`: the blocks that hold the dnodes of these numbers, each of which is a slot of 512 bytes."""
    offsets = [number * _DNODE_BYTES for number in numbers]

    def holds_one(start: int, pointer: str) -> bool:
        size = _SIZE.search(pointer)
        return size is not None and any(start <= each < start + int(size[1], 16) for each in offsets)

    return _placed(pointer for start, pointer in _POINTER.findall(said) if holds_one(int(start, 16), pointer))


def _placed(pointers: Iterable[str]) -> RestingBlocks:
    ranges: list[ByteRange] = []
    left_out: dict[str, int] = {}
    for pointer in pointers:
        found = tuple(_copies(pointer))
        ranges += (each for each in found if isinstance(each, ByteRange))
        for why in (each for each in found if isinstance(each, str)):
            left_out[why] = left_out.get(why, 0) + 1
    return RestingBlocks(tuple(ranges), tuple(f"{why}: {count}" for why, count in left_out.items()))


def _copies(pointer: str) -> Iterator[ByteRange | str]:
    """Each copy of a block, or why it is nowhere."""
    if pointer.startswith("EMBEDDED "):
        yield "blocks embedded in their pointers"
        return
    if pointer.startswith("HOLE "):
        return
    size, addresses = _SIZE.search(pointer), _ADDRESS.findall(pointer)
    if size is None or not addresses:
        yield _NOT_UNDERSTOOD
    elif " gang " in pointer:
        yield "blocks in pieces (gang blocks), whose places zdb does not print"
    elif " contiguous " not in pointer:
        yield _NOT_UNDERSTOOD
    else:
        length = int(size[2], 16)
        for vdev, offset, allocated in addresses:
            if int(vdev) != _DISK_VDEV:
                yield "blocks on another device than the disk"
            elif length > int(allocated, 16):
                yield _NOT_UNDERSTOOD
            else:
                yield ByteRange(_FRONT_BYTES + int(offset, 16), length)


def active_uberblock(said: str) -> tuple[ByteRange, int] | None:
    """Of `zdb -lu DEVICE`: the slot in the first label that a mount takes, with its transaction group; None where it shows none.

    ZFS takes the highest transaction group, and of two the later one (module/zfs/vdev_label.c: `vdev_uberblock_compare`).
    """
    ashift = _ASHIFT.search(said)
    shown = [
        (int(group), int(stamp), int(number))
        for number, group, stamp, labels in _UBERBLOCK.findall(said)
        if str(_FIRST_LABEL) in labels.split()
    ]
    if ashift is None or not shown:
        return None
    group, _, number = max(shown)
    slot_bytes = 1 << min(max(int(ashift[1]), _SLOT_BITS_LEAST), _SLOT_BITS_MOST)
    if number >= _RING_BYTES // slot_bytes:
        return None
    return ByteRange(_RING_AT + number * slot_bytes, slot_bytes), group
