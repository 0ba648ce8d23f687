"""A tarball of somebody's, unpacked by its reader: folders and files alone, below one folder, up to a size.

tar(1) makes what an archive says: links that lead elsewhere, devices, files without end. Decompressors take a megabyte for terabytes.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Any

from bedplate.units import GIB, MIB, format_size

# Of a source with its documentation; PostgreSQL 18 has 150 MiB in 8,000 files.
_BYTES_MOST = 2 * GIB

_MEMBERS_MOST = 100_000

# What describes a member behind its name: tarfile takes all of it into memory.
_DESCRIPTION_BYTES_MOST = MIB

_DESCRIPTIONS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)

_DAMAGE = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError)

_OPENERS: Mapping[bytes, Callable[[IO[bytes]], Any]] = {
    b"BZh": bz2.BZ2File,
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"\xfd7zXZ": lzma.LZMAFile,
}


class _Member(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Member:
        """As tarfile has it; HeaderError for a description that is larger than any."""
        found = super().frombuf(buf, encoding, errors)
        if found.type in _DESCRIPTIONS and found.size > _DESCRIPTION_BYTES_MOST:
            raise tarfile.ReadError(
                f"it describes a file in more than {format_size(_DESCRIPTION_BYTES_MOST)}"
            )
        return found


class _Bounded:
    """What is read of a decompressor, up to a size."""

    def __init__(self, stream: IO[bytes]) -> None:
        """From where the file is."""
        self._file = stream
        self._left = _BYTES_MOST

    def read(self, size: int) -> bytes:
        """As of a file; ReadError beyond the most that is taken."""
        piece = self._file.read(size)
        self._left -= len(piece)
        if self._left < 0:
            raise tarfile.ReadError(f"it has more than {format_size(_BYTES_MOST)} unpacked")
        return piece


def first_name(path: Path) -> str | None:
    """The name of the first member, None where there is none; ValueError in a sentence where it is no tarball, OSError."""
    with _opened(path) as archive:
        return next((member.name for member in archive), None)


def unpack(path: Path, into: Path) -> None:
    """Write what lies in the one top folder of the tarball into the folder `into`; ValueError names what is refused, OSError.

    Modes are those of everybody's files: to be read by all, to be run where the owner may run it.
    """
    tops = set()
    with _opened(path) as archive:
        for number, member in enumerate(archive):
            if number >= _MEMBERS_MOST:
                raise ValueError(f"it has more than {_MEMBERS_MOST:,} files")
            top, *parts = PurePosixPath(member.name).parts or ("",)
            tops.add(top)
            if member.name.startswith("/") or ".." in (top, *parts) or len(tops) > 1:
                raise ValueError(f"{member.name!r:.200} does not lie in one folder of the archive's own")
            target = into.joinpath(*parts)
            if member.isdir():
                target.mkdir(mode=0o755, parents=True, exist_ok=True)
            elif member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse():
                _write(archive, member, target)
            else:
                raise ValueError(f"{member.name!r:.200} is a link or no regular file")


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    content = tar.extractfile(member)
    assert content is not None  # noqa: S101 -- of a regular file
    with target.open("xb") as file:
        shutil.copyfileobj(content, file, MIB)
    target.chmod(0o755 if member.mode & 0o100 else 0o644)
    # make goes by it; where it is no time, the archive's author has to do with that.
    with contextlib.suppress(ValueError, OverflowError):
        os.utime(target, (member.mtime, member.mtime))


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tarfile.TarFile]:
    """For the block; ValueError where what it reads is damaged, or no tarball."""
    try:
        with path.open("rb") as packed:
            start = packed.read(6)
            packed.seek(0)
            opener = next((way for magic, way in _OPENERS.items() if start.startswith(magic)), None)
            file = packed if opener is None else opener(packed)
            with tarfile.open(fileobj=_Bounded(file), mode="r|", tarinfo=_Member) as archive:  # type: ignore[call-overload]
                yield archive
    except (*_DAMAGE, OSError) as error:
        # bz2 and gzip say so of damage; an error of the machine has a number.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(f"it cannot be read as a tarball: {error}") from None
