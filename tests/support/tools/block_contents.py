"""What may stand on a disk, byte by byte, where the tools that write it are not at hand."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

KIB, MIB = 1024, 1 << 20

# The place of each piece; a negative one counts from the end.
Pieces = tuple[tuple[int, bytes], ...]


def _lvm_checksum(content: bytes) -> int:
    """CRC-32 with LVM's own start value and no final inversion (lib/misc/crc.c)."""
    crc = 0xF597A6CF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0xEDB88320 if crc & 1 else 0)
    return crc


def volume_group_member() -> Pieces:
    """A physical volume's label in the second sector (lib/format_text/layout.h of LVM2)."""
    body = struct.pack("<I8s", 32, b"LVM2 001") + b"A" * 32 + bytes(512 - 20 - 44)
    return ((512, b"LABELONE" + struct.pack("<QI", 1, _lvm_checksum(body)) + body),)


def array_member(at: int = 4 * KIB) -> Pieces:
    """An md superblock of version 1.x (struct mdp_superblock_1), which says itself where it stands."""
    block = bytearray(256)
    struct.pack_into("<II", block, 0, 0xA92B4EFC, 1)
    block[16:32] = bytes(range(16))
    struct.pack_into("<Q", block, 144, at // 512)
    total = sum(struct.unpack("<64I", block))
    struct.pack_into("<I", block, 216, ((total & 0xFFFFFFFF) + (total >> 32)) & 0xFFFFFFFF)
    return ((at, bytes(block)),)


def pool_member(name: str = "") -> Pieces:
    """The first label of a ZFS pool's device: its list of facts (nvpair.h, in XDR) and its uberblocks (uberblock_impl.h).

    libblkid knows a member by its uberblocks up to version 2.40, and by the list since.
    """
    numbers = {
        "version": 5000,
        "state": 0,
        "txg": 4,
        "pool_guid": 0x1122334455667788,
        "guid": 0x99AABBCCDDEEFF,
    }
    facts = b"".join(_named_value(word, struct.pack(">IIQ", 8, 1, value)) for word, value in numbers.items())
    if name:
        text = name.encode()
        facts += _named_value("name", struct.pack(">III", 9, 1, len(text)) + text + bytes(-len(text) % 4))
    header = struct.pack("BBxx", 1, 1) + struct.pack(">II", 0, 1)
    uberblocks = tuple(
        (128 * KIB + place * KIB, struct.pack("<5Q", 0x00BAB10C, 5000, 8, 0, 1)) for place in range(8)
    )
    return (*uberblocks, (16 * KIB, header + facts + bytes(8)))


def _named_value(name: str, value: bytes) -> bytes:
    key = struct.pack(">I", len(name)) + name.encode() + bytes(-len(name) % 4)
    size = 8 + len(key) + len(value)
    return struct.pack(">II", size, size) + key + value


def btrfs_of(devices: int, *, flags: int = 0, label: str = "") -> Pieces:
    """The superblock of a Btrfs (struct btrfs_super_block), as far as libblkid and bedplate read it."""
    block = bytearray(4096)
    block[32:48] = bytes(range(16))
    struct.pack_into("<QQ8sQ", block, 48, 65536, flags, b"_BHRfS_M", 7)
    struct.pack_into("<QQQ", block, 112, 64 * MIB, MIB, 6)
    struct.pack_into("<QIIII", block, 136, devices, 4096, 16384, 16384, 97)
    block[299 : 299 + len(label)] = label.encode()
    struct.pack_into("<I", block, 0, _crc32c(bytes(block[32:])))
    return ((65536, bytes(block)),)


def _crc32c(content: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def _luks(version: int) -> Pieces:
    head = bytearray(4096)
    struct.pack_into(">6sH", head, 0, b"LUKS\xba\xbe", version)
    struct.pack_into(">Q", head, 8, 16384)
    head[168:204] = b"01234567-89ab-cdef-0123-456789abcdef"
    return ((0, bytes(head)),)


def _drbd() -> Pieces:
    """Version 8 stands in the last 4 KiB (drbd_int.h: struct meta_data_on_disk)."""
    block = bytearray(4096)
    struct.pack_into(">Q4QQ", block, 0, 8192, 1, 2, 3, 4, 0)
    struct.pack_into(">IIIIIII", block, 56, 0, 0x8374026B, 8, 7, 127, 8, 4096)
    return ((-4096, bytes(block)),)


def _bcache() -> Pieces:
    """A backing device's superblock (uapi/linux/bcache.h); its checksum is the CRC-64 of ECMA-182."""
    magic = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")
    block = struct.pack("<QQ", 8, 1) + magic + bytes(range(16)) + bytes(16) + bytes(32) + bytes(16)
    block = block.ljust(208 - 8, b"\0")
    crc = (1 << 64) - 1
    for byte in block:
        crc ^= byte << 56
        for _ in range(8):
            crc = ((crc << 1) ^ (0x42F0E1EBA9EA3693 if crc >> 63 else 0)) & ((1 << 64) - 1)
    return ((4096, struct.pack("<Q", crc ^ ((1 << 64) - 1)) + block),)


def bcachefs_of(devices: int) -> Pieces:
    """A superblock of bcachefs (struct bch_sb), with a CRC-32C of everything behind its checksum."""
    block = bytearray(752)
    struct.pack_into("<HH", block, 16, 13, 13)
    block[24:40] = bytes.fromhex("c68573f666ce90a9d96a60cf803df7ef")
    block[40:72] = bytes(range(32))
    struct.pack_into("<QQHBBI", block, 104, 8, 1, 8, 0, devices, 0)
    struct.pack_into("<Q", block, 144, 1 << 12 | 1)
    struct.pack_into("<I", block, 0, _crc32c(bytes(block[16:])))
    return ((4096, bytes(block)),)


def guid_table() -> Pieces:
    """A GUID partition table without partitions, with its protective table."""
    entries = bytes(128 * 128)
    disk = bytes(range(16))

    def header(this: int, other: int, entries_at: int, last: int) -> bytes:
        fields = (b"EFI PART", 0x10000, 92, 0, 0, this, other, 34, last - 34, disk, entries_at, 128, 128)
        packed = struct.pack("<8sIIIIQQQQ16sQIII", *fields, zlib.crc32(entries))
        return packed[:16] + struct.pack("<I", zlib.crc32(packed)) + packed[20:]

    last = 64 * MIB // 512 - 1
    protective = struct.pack("<B3sB3sII", 0, b"\0\2\0", 0xEE, b"\xff\xff\xff", 1, last)
    return (
        (446, protective + bytes(48) + b"\x55\xaa"),
        (512, header(1, last, 2, last)),
        (1024, entries),
        (-512, header(last, 1, last - 32, last)),
    )


# What no permission lets erase: parts of something, and what is closed.
MEMBERS: Mapping[str, Pieces] = {
    "LVM2_member": volume_group_member(),
    "linux_raid_member at 4 KiB": array_member(),
    "linux_raid_member at 0": array_member(0),
    "zfs_member": pool_member(),
    "btrfs half": btrfs_of(2),
    "btrfs half labelled as bedplate's": btrfs_of(2, label="bedplate"),
    "btrfs of nine": btrfs_of(9, label="pool"),
    "btrfs that others grow from": btrfs_of(1, flags=1 << 32),
    "bcache": _bcache(),
    "drbd": _drbd(),
    "drbdproxy_datalog": ((0, b"DRBDdlh*" + bytes(range(64))),),
    "ceph_bluestore": ((0, b"bluestore block device\n01234567-89ab-cdef-0123-456789abcdef\n"),),
    "vdo": ((0, b"dmvdo001" + struct.pack("<IIIQ", 5, 67, 0, 0) + bytes(range(64))),),
    "DM_snapshot_cow": ((0, b"SnAp" + struct.pack("<III", 1, 1, 8)),),
    "isw_raid_member": ((-1024, b"Intel Raid ISM Cfg Sig. 1.2.00"),),
    "VMFS_volume_member": ((MIB, b"\x0d\xd0\x01\xc0" + struct.pack("<I", 5) + bytes(range(200))),),
}
ENCRYPTED: Mapping[str, Pieces] = {
    "crypto_LUKS 1": _luks(1),
    "crypto_LUKS 2": _luks(2),
    "DM_integrity": ((0, b"integrt\0" + struct.pack("<BBHI", 1, 3, 4, 0) + bytes(100)),),
    "DM_verity_hash": ((0, b"verity\0\0" + struct.pack("<II", 1, 1) + bytes(range(16)) + b"sha256"),),
}
# What --erase-foreign allows, and nothing else does.
FOREIGN: Mapping[str, Pieces] = {
    "btrfs alone": btrfs_of(1, label="photos"),
    "swap": ((1024, struct.pack("<III", 1, 1000, 0) + bytes(range(16))), (4086, b"SWAPSPACE2")),
    "gpt": guid_table(),
    "iso9660": ((32 * KIB, b"\1CD001\1\0" + b" " * 32 + b"A DISC".ljust(32)),),
    "squashfs": ((0, b"hsqs" + bytes(24) + struct.pack("<HH", 4, 0) + bytes(64)),),
}


def write_pieces(path: str | Path, pieces: Pieces, size_bytes: int) -> None:
    """Write them to a file or a device of that size."""
    with Path(path).open("r+b", buffering=0) as file:
        for place, content in pieces:
            file.seek(place if place >= 0 else size_bytes + place)
            file.write(content)
