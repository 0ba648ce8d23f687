"""A kernel or a module as it is packed in its file, unpacked piece by piece: whoever made it, it never takes more memory than a piece and the limit.

gzip, xz, lzma and bzip2 are Python's own. zstd and lz4 are left to their programs (Python before 3.14 has neither), which are shut in.
"""

from __future__ import annotations

import bz2
import lzma
import tempfile
import zlib
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError
from bedplate.host.shut_in.building import to_read_alone
from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.executors.qemu.guest_tools import Tool
    from bedplate.host.command import Commands
    from bedplate.model.limits import FileLimit

GZIP, _BZIP2, _XZ, _LZMA = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x5d\0\0"
_ZSTD, _LZ4_OF_KERNELS, _LZ4, _ELF = b"\x28\xb5\x2f\xfd", b"\x02\x21\x4c\x18", b"\x04\x22\x4d\x18", b"\x7fELF"
_PIECE_BYTES = MIB
# A kernel's own way of packing it asks for 128 MiB at most.
_DICTIONARY_BYTES_MOST = 192 * MIB
_LIMIT_S = 300.0


class NotUnpacked(BedplateError):
    """It is packed in a way that is not known, damaged, or larger than anything of its kind."""

    code = "not-unpacked"


def unpack(packed: bytes, limit: FileLimit, commands: Commands, zstd: Tool | None) -> Iterator[bytes]:
    """What `packed` holds, in pieces; NotUnpacked, where `limit` is met as well. `zstd` is the program where it is not in the search path."""
    left = limit.most_bytes
    try:
        for piece in _pieces(packed, commands, zstd):
            left -= len(piece)
            if left < 0:
                break
            yield piece
    except NotUnpacked:
        raise
    except (OSError, EOFError, zlib.error, lzma.LZMAError, BedplateError) as error:
        raise NotUnpacked(str(error)) from error
    if left < 0:
        raise NotUnpacked(
            f"unpacked it has more than {limit.most_bytes:,} bytes; real ones have {limit.real}"
        )


def _pieces(packed: bytes, commands: Commands, zstd: Tool | None) -> Iterator[bytes]:
    if packed.startswith(_ELF):
        yield packed
    elif packed.startswith(GZIP):
        yield from _by_python(zlib.decompressobj(31), packed)
    elif packed.startswith((_XZ, _LZMA)):
        yield from _by_python(lzma.LZMADecompressor(memlimit=_DICTIONARY_BYTES_MOST), packed)
    elif packed.startswith(_BZIP2):
        yield from _by_python(bz2.BZ2Decompressor(), packed)
    elif packed.startswith(_ZSTD):
        yield from _by_program("zstd", packed, commands, zstd)
    elif packed.startswith((_LZ4, _LZ4_OF_KERNELS)):
        yield from _by_program("lz4", packed, commands, None)
    else:
        raise NotUnpacked(f"it is packed in a way that is not known (it begins with {packed[:4].hex()})")


def _by_python(
    decompressor: zlib._Decompress | lzma.LZMADecompressor | bz2.BZ2Decompressor, packed: bytes
) -> Iterator[bytes]:
    piece = decompressor.decompress(packed, _PIECE_BYTES)
    while piece:
        yield piece
        # zlib hands back what it has not read; the other two keep it.
        rest = getattr(decompressor, "unconsumed_tail", b"")
        piece = b"" if decompressor.eof else decompressor.decompress(rest, _PIECE_BYTES)
    if not decompressor.eof:
        raise EOFError("it is cut off")


def _by_program(name: str, packed: bytes, commands: Commands, tool: Tool | None) -> Iterator[bytes]:
    program = name if tool is None else str(tool.program)
    folders = () if tool is None or tool.root is None else (tool.root,)
    with tempfile.TemporaryFile() as source:
        source.write(packed)
        source.seek(0)
        yield from commands.stream(
            [program, "-q", "-d", "-c"],
            source,
            timeout_s=_LIMIT_S,
            extra_environment=None if tool is None else tool.environment,
            confinement=to_read_alone(*folders, is_own=False),
        )
