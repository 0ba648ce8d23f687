"""What the image of a kernel says of itself: its release, and the configuration that it was built with.

Two forms are known: a bzImage (Documentation/arch/x86/boot.rst), whose kernel is packed, and a `vmlinux`, an ELF file. The configuration is
there where the kernel was built with CONFIG_IKCONFIG (kernel/configs.c): gzipped between two words.
"""

from __future__ import annotations

import bz2
import lzma
import mmap
import re
import struct
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, RequirementMissing
from bedplate.model.limits import read_at_most
from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Callable

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
# A kernel with everything in it and debugging symbols left out has some 100 MB.
_UNPACKED_BYTES_MOST = 512 * MIB
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
    return _configuration(key, lambda: _kernel_of(image, commands, zstd))


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
        found = _BANNER.search(content)
        return found[1].decode("ascii") if found else None


# An image is unpacked in half a second to two, and asked for several times in a start.
_KNOWN: dict[tuple[str, int, int], str | None] = {}


def _configuration(key: tuple[str, int, int], kernel: Callable[[], bytes]) -> str | None:
    if key not in _KNOWN:
        _KNOWN[key] = _configuration_in(kernel())
    return _KNOWN[key]


def _configuration_in(kernel: bytes) -> str | None:
    """The words stand in the code that looks for them as well: whatever is not gzip between two of them is passed over."""
    at = -1
    while (at := kernel.find(_BEGIN, at + 1)) >= 0:
        end = kernel.find(_END, at)
        if end < 0:
            return None
        try:
            packed = kernel[at + len(_BEGIN) : end]
            return zlib.decompressobj(31).decompress(packed, MIB).decode("utf-8", "replace")
        except (OSError, EOFError, zlib.error):
            continue
    return None


def _kernel_of(image: Path, commands: Commands, zstd: Tool | None) -> bytes:
    """The kernel itself, unpacked."""
    data = read_at_most(image, _UNPACKED_BYTES_MOST)
    if data.startswith(_ELF):
        return data
    header = data[:_HEADER_BYTES]
    if header[_MAGIC_AT : _MAGIC_AT + 4] != _MAGIC or len(header) < _HEADER_BYTES:
        raise ImageUnread(f"{image} is neither a bzImage nor a vmlinux")
    (protocol,) = struct.unpack_from("<H", header, _PROTOCOL_AT)
    offset, length = struct.unpack_from("<II", header, _PAYLOAD_AT)
    start = ((header[_SETUP_SECTORS_AT] or _USUAL_SETUP_SECTORS) + 1) * _SECTOR + offset
    packed = data[start : start + length]
    if protocol < _PROTOCOL_WITH_PAYLOAD or not length or len(packed) < length:
        raise ImageUnread(f"{image} does not say where its kernel lies, or is cut off")
    try:
        return _unpacked(packed, commands, zstd)
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, BedplateError) as error:
        raise ImageUnread(f"{image} cannot be unpacked: {error}") from error


def _unpacked(packed: bytes, commands: Commands, zstd: Tool | None) -> bytes:
    """Behind all forms but gzip stands the length of the kernel, four bytes that are none of the packer's (scripts/Makefile.lib)."""
    if packed.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(31).decompress(packed, _UNPACKED_BYTES_MOST)
    if packed.startswith((b"\xfd7zXZ\0", b"\x5d\0\0")):
        return lzma.LZMADecompressor().decompress(packed, _UNPACKED_BYTES_MOST)
    if packed.startswith(b"BZh"):
        return bz2.BZ2Decompressor().decompress(packed, _UNPACKED_BYTES_MOST)
    if packed.startswith(b"\x28\xb5\x2f\xfd"):
        program = "zstd" if zstd is None else str(zstd.program)
        return _by_program(
            [program, "-q", "-d"], packed[:-4], commands, None if zstd is None else dict(zstd.environment)
        )
    if packed.startswith(b"\x02\x21\x4c\x18"):
        return _by_program(["lz4", "-q", "-d"], packed[:-4], commands, None)
    if packed.startswith(b"\x7fELF"):
        return packed
    raise ValueError(f"it is packed in a way that is not known (it begins with {packed[:4].hex()})")


def _by_program(
    argv: list[str], packed: bytes, commands: Commands, environment: dict[str, str] | None
) -> bytes:
    with tempfile.TemporaryDirectory(prefix="bedplate-image-") as folder:
        source, target = Path(folder, "kernel.packed"), Path(folder, "kernel")
        source.write_bytes(packed)
        commands.run(
            [*argv, str(source), str(target)]
            if argv[0] == "lz4"
            else [*argv, "-o", str(target), "--", str(source)],
            extra_environment=environment,
        )
        if target.stat().st_size > _UNPACKED_BYTES_MOST:
            raise RequirementMissing("it is larger than any kernel")
        return target.read_bytes()
