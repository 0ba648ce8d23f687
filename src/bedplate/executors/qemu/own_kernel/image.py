"""What the image of a kernel says of itself: its release, and the configuration that it was built with.

Two forms are known: a bzImage (Documentation/arch/x86/boot.rst), whose kernel is packed, and a `vmlinux`, an ELF file. The configuration is
there where the kernel was built with CONFIG_IKCONFIG (kernel/configs.c): gzipped between two words.
"""

from __future__ import annotations

import contextlib
import itertools
import mmap
import re
import struct
import zlib
from typing import IO, TYPE_CHECKING

from bedplate.errors import BedplateError
from bedplate.executors.qemu.unpacking import GZIP, NotUnpacked, unpack
from bedplate.model.limits import KERNEL_LIMIT
from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bedplate.executors.qemu.guest_tools import Tool
    from bedplate.host.command import Commands

_ELF = b"\x7fELF"
_ELF64_LITTLE = b"\x7fELF\x02\x01"
# The setup header: its magic, the version of the protocol, where the release is named, how long the setup is, where the kernel lies.
_MAGIC_AT, _MAGIC = 0x202, b"HdrS"
_PROTOCOL_AT, _PROTOCOL_WITH_PAYLOAD = 0x206, 0x0208
_VERSION_POINTER_AT, _VERSION_BASE = 0x20E, 0x200
_SETUP_SECTORS_AT, _PAYLOAD_AT = 0x1F1, 0x248
_SECTOR = 512
_USUAL_SETUP_SECTORS = 4
_HEADER_BYTES = 0x260
# init/version.c: `Linux version 6.12.1 (who@where) …`
_BANNER = re.compile(rb"Linux version (\d[!-~]*) \(")
_BEGIN, _END = b"IKCFG_ST", b"IKCFG_ED"
# A kernel with everything in it takes some 100 MB.
_PACKED_BYTES_MOST = 256 * MIB
# One with everything has 100 KB, 300 KB when it is unpacked. The first of the two words stands in the code once or twice.
_CONFIGURATION_BYTES_MOST, _BEGINNINGS_MOST = MIB, 64
_PT_NOTE = 4
# include/xen/interface/elfnote.h: where a 32-bit entry is, by which QEMU begins a vmlinux (CONFIG_PVH).
_XEN, _PHYS32_ENTRY = b"Xen\0", 18


class ImageUnread(BedplateError):
    """The image is of a form that is not known, or damaged; its configuration cannot be looked at."""

    code = "kernel-image-unread"


def is_vmlinux(image: Path) -> bool:
    """Whether it is an ELF file, as the build's `vmlinux` is."""
    with image.open("rb") as file:
        return file.read(len(_ELF)) == _ELF


def release_in_image(image: Path) -> str | None:
    """The release that an image says it is; None for an image of another kind."""
    if is_vmlinux(image):
        return _release_in_vmlinux(image)
    with image.open("rb") as file:
        head = file.read(_VERSION_POINTER_AT + 2)
        if head[_MAGIC_AT : _MAGIC_AT + 4] != _MAGIC or len(head) < _VERSION_POINTER_AT + 2:
            return None
        (pointer,) = struct.unpack_from("<H", head, _VERSION_POINTER_AT)
        file.seek(_VERSION_BASE + pointer)
        words = file.read(256).partition(b"\0")[0].split()
    return words[0].decode("ascii", "replace") if words else None


def embedded_configuration(image: Path, *, commands: Commands, zstd: Tool | None = None) -> str | None:
    """The text of the configuration in an image; None where it holds none.

    ImageUnread where the image cannot be looked into: another form, damaged, packed by a program that is not here. `zstd` is that program
    where it is not in the search path.
    """
    status = image.stat()
    key = (str(image), status.st_size, status.st_mtime_ns)
    return _configuration(key, _kernel_in(image, commands, zstd))


def has_pvh_entry(image: Path) -> bool:
    """Whether QEMU can begin a `vmlinux` itself: it has the note that CONFIG_PVH makes."""
    with image.open("rb") as file:
        head = file.read(64)
        if not head.startswith(_ELF64_LITTLE) or len(head) < 64:
            return False
        (table_at,) = struct.unpack_from("<Q", head, 32)
        entry_size, entries = struct.unpack_from("<HH", head, 54)
        for number in range(entries):
            file.seek(table_at + number * entry_size)
            entry = file.read(56)
            if len(entry) < 56 or struct.unpack_from("<I", entry)[0] != _PT_NOTE:
                continue
            (offset,) = struct.unpack_from("<Q", entry, 8)
            (size,) = struct.unpack_from("<Q", entry, 32)
            file.seek(offset)
            if _notes_have_entry(file.read(min(size, MIB))):
                return True
    return False


def _notes_have_entry(notes: bytes) -> bool:
    at = 0
    while at + 12 <= len(notes):
        name_size, content_size, kind = struct.unpack_from("<III", notes, at)
        name = notes[at + 12 : at + 12 + name_size]
        if name == _XEN and kind == _PHYS32_ENTRY:
            return True
        at += 12 + (name_size + 3) // 4 * 4 + (content_size + 3) // 4 * 4
    return False


def _release_in_vmlinux(image: Path) -> str | None:
    if image.stat().st_size == 0:
        return None
    with image.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found = _BANNER.search(content, 0, KERNEL_LIMIT.most_bytes)
        return found[1].decode("ascii") if found else None


# An image is unpacked in half a second to two, and asked for several times in a start.
_KNOWN: dict[tuple[str, int, int], str | None] = {}


def _configuration(key: tuple[str, int, int], pieces: Iterator[bytes]) -> str | None:
    if key not in _KNOWN:
        _KNOWN[key] = _configuration_in(pieces)
    return _KNOWN[key]


def _configuration_in(pieces: Iterator[bytes]) -> str | None:
    """The words stand in the code that looks for them as well: whatever is not gzip between two of them is passed over."""
    kept, at, tried = b"", 0, 0
    for piece in pieces:
        kept, at = kept[at:] + piece, 0
        while (begin := kept.find(_BEGIN, at)) >= 0:
            end = kept.find(_END, begin)
            if end < 0 and len(kept) - begin < _CONFIGURATION_BYTES_MOST:
                break
            at = begin + len(_BEGIN)
            tried += 1
            if tried > _BEGINNINGS_MOST:
                return None
            if end < 0:
                continue
            with contextlib.suppress(zlib.error):
                text = zlib.decompressobj(31).decompress(kept[at:end], _CONFIGURATION_BYTES_MOST)
                return text.decode("utf-8", "replace")
        # A word may be in two pieces.
        at = max(at, len(kept) - len(_BEGIN)) if begin < 0 else begin
    return None


def _kernel_in(image: Path, commands: Commands, zstd: Tool | None) -> Iterator[bytes]:
    """The kernel itself, unpacked, as far as the caller takes it."""
    try:
        with image.open("rb") as file:
            header = file.read(_HEADER_BYTES)
            if header.startswith(_ELF):
                # What the configuration is in stands before all that debuggers need.
                file.seek(0)
                yield from itertools.islice(iter(lambda: file.read(MIB), b""), KERNEL_LIMIT.most_bytes // MIB)
                return
            packed = _payload(image, file, header)
        # Behind all forms but gzip stands the length of the kernel, four bytes that are none of the packer's (scripts/Makefile.lib).
        packed = packed if packed.startswith(GZIP) else packed[:-4]
        yield from unpack(packed, KERNEL_LIMIT, commands, zstd)
    except (OSError, NotUnpacked) as error:
        raise ImageUnread(f"{image} cannot be unpacked: {error}") from error


def _payload(image: Path, file: IO[bytes], header: bytes) -> bytes:
    """The packed kernel of a bzImage."""
    if header[_MAGIC_AT : _MAGIC_AT + 4] != _MAGIC or len(header) < _HEADER_BYTES:
        raise ImageUnread(f"{image} is neither a bzImage nor a vmlinux")
    (protocol,) = struct.unpack_from("<H", header, _PROTOCOL_AT)
    offset, length = struct.unpack_from("<II", header, _PAYLOAD_AT)
    if length > _PACKED_BYTES_MOST:
        raise ImageUnread(
            f"{image} says that its kernel has {length:,} packed bytes; at most {_PACKED_BYTES_MOST:,} are read"
        )
    file.seek(((header[_SETUP_SECTORS_AT] or _USUAL_SETUP_SECTORS) + 1) * _SECTOR + offset)
    packed = file.read(length)
    if protocol < _PROTOCOL_WITH_PAYLOAD or not length or len(packed) < length:
        raise ImageUnread(f"{image} does not say where its kernel lies, or is cut off")
    return packed
