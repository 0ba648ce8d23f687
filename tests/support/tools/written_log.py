"""Write logs made by hand, and what they must come to, said in the plainest way there is."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bedplate.cuts.records import CutPoint, Profile

FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8
_BLOCK_BYTES = {
    Profile.SUBSET_512: 512,
    Profile.SUBSET_4K: 4096,
    Profile.SUBSET_8K: 8192,
    Profile.SUBSET_16K: 16384,
    Profile.UNTORN_8K: 4096,
    Profile.UNTORN_16K: 4096,
}
_COVERED_BYTES = {
    Profile.UNTORN_8K: (512, 1024, 2048, 4096, 8192),
    Profile.UNTORN_16K: (512, 1024, 2048, 4096, 8192, 16384),
}


@dataclass(frozen=True)
class Written:
    """One entry of a log to be: sectors of 512 bytes, or a mark's text."""

    device: int = 0
    sector: int = 0
    data: bytes = b""
    flags: int = 0
    discarded_sectors: int = 0
    text: bytes = b""
    time_ns: int = 0
    # So many entries before it were written since it was issued.
    late: int = 0

    @property
    def length(self) -> int:
        return self.discarded_sectors * 512 if self.flags & DISCARD else len(self.data)


def written_log(path: Path, entries: Sequence[Written], *, count: int | None = None) -> Path:
    """The log of these entries; `count` is what its superblock says, else the truth."""
    parts = [
        struct.pack("<QQQI", 0x6A736677736872, 1, len(entries) if count is None else count, 512).ljust(
            512, b"\0"
        )
    ]
    for entry in entries:
        head = struct.pack("<QQQQ", entry.sector, entry.length // 512, entry.flags, len(entry.text))
        addition = struct.pack("<QI", entry.time_ns, entry.device)
        if entry.flags & MARK:
            parts.append((head + entry.text).ljust(500, b"\0") + addition)
        else:
            late = struct.pack("<I", entry.late)
            parts += [(head + addition + late).ljust(512, b"\0"), entry.data]
    path.write_bytes(b"".join(parts))
    return path


def drawn_bits(seed: int) -> list[bool]:
    """The first bits of a seed's stream."""
    stream = hashlib.shake_256(str(seed).encode()).digest(4096)
    return [bool(byte & (128 >> bit)) for byte in stream for bit in range(8)]


def medium(
    entries: Sequence[Written],
    point: CutPoint,
    sizes: Sequence[int],
    *,
    window_bytes: int,
    measured_from: int,
) -> list[bytes]:
    """What the devices hold after a cut: each entry in turn, each block by itself."""
    disks = [bytearray(size) for size in sizes]
    caches: list[list[tuple[int, Written]]] = [[] for _ in sizes]

    def write_back(device: int, count: int) -> None:
        for _, entry in caches[device][:count]:
            start = entry.sector * 512
            disks[device][start : start + entry.length] = entry.data or bytes(entry.length)
        del caches[device][:count]

    for number, entry in enumerate(entries[: point.position]):
        if number == measured_from:
            for device in range(len(sizes)):
                write_back(device, len(caches[device]))
        if entry.flags & FLUSH and not point.control:
            write_back(entry.device, len(caches[entry.device]))
        if not entry.flags & MARK and entry.length:
            caches[entry.device].append((number, entry))
        cache = caches[entry.device]
        while sum(len(held.data) for _, held in cache) > window_bytes:
            write_back(entry.device, 1)
    if point.position <= measured_from:
        for device in range(len(sizes)):
            write_back(device, len(caches[device]))

    for number, entry in enumerate(entries):
        if number - entry.late < point.position <= number and entry.length and not entry.flags & MARK:
            caches[entry.device].append((number, entry))
    bits = iter(drawn_bits(point.seed))
    for number, entry in sorted((held for cache in caches for held in cache), key=lambda held: held[0]):
        _keep(disks[entry.device], entry, point, bits, was_complete=number < point.position)
    return [bytes(disk) for disk in disks]


def _keep(disk: bytearray, entry: Written, point: CutPoint, bits: object, *, was_complete: bool) -> None:
    start, profile = entry.sector * 512, point.profile
    ordered = profile is Profile.ORDERED and was_complete
    # What a protected cache had not answered yet is there or not.
    is_whole = profile is Profile.WHOLE or (profile is Profile.ORDERED and not was_complete)
    if entry.flags & DISCARD:
        if ordered or ((profile not in (Profile.LOST, Profile.ORDERED) or is_whole) and next(bits)):  # type: ignore[call-overload]
            disk[start : start + entry.length] = bytes(entry.length)
        return
    always = ordered or bool(entry.flags & FUA and was_complete and not point.control)
    block_bytes = _BLOCK_BYTES.get(profile)
    is_covered = entry.length in _COVERED_BYTES.get(profile, ()) and start % entry.length == 0
    if is_covered:
        block_bytes = None
    whole = next(bits) if is_whole or is_covered else False  # type: ignore[call-overload]
    block, keep = None, whole
    for at in range(start, start + entry.length, 512):
        if block_bytes is not None and at // block_bytes != block:
            block, keep = at // block_bytes, next(bits)  # type: ignore[call-overload]
        if keep or always:
            disk[at : at + 512] = entry.data[at - start : at - start + 512]
