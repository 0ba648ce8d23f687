"""Tarballs of strangers: what is no plain file of one folder, or unpacks without end, is refused before it is written."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from bedplate.host import tarball
from bedplate.host.tarball import first_name, unpack
from bedplate.units import MIB

Compression = Literal["", "gz", "bz2", "xz"]


def _packed(path: Path, *members: tuple[tarfile.TarInfo, bytes], compression: Compression = "") -> Path:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=f"w:{compression}") as archive:  # type: ignore[call-overload]
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    path.write_bytes(buffer.getvalue())
    return path


def _member(name: str, kind: bytes = tarfile.REGTYPE, **more: object) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type = kind
    for key, value in more.items():
        setattr(found, key, value)
    return found


def _below(into: Path) -> list[str]:
    return sorted(str(path.relative_to(into)) for path in into.rglob("*"))


@pytest.mark.parametrize("compression", ["", "gz", "bz2", "xz"])
def test_files_are_unpacked_without_their_top_folder(tmp_path: Path, compression: Compression) -> None:
    members = (
        (_member("top", tarfile.DIRTYPE), b""),
        (_member("top/configure", mode=0o4755, mtime=1000), b"#!/bin/sh\n"),
        (_member("top/src/a.c", mode=0o600), b"int a;\n"),
    )
    path, into = _packed(tmp_path / "t", *members, compression=compression), tmp_path / "into"
    assert "top" == first_name(path)
    into.mkdir()
    unpack(path, into)
    assert ["configure", "src", "src/a.c"] == _below(into)
    assert b"int a;\n" == (into / "src/a.c").read_bytes()
    assert (0o755, 1000) == (
        (into / "configure").stat().st_mode & 0o7777,
        (into / "configure").stat().st_mtime,
    )
    assert 0o644 == (into / "src/a.c").stat().st_mode & 0o7777


@pytest.mark.parametrize(
    "member",
    [
        _member("/top/absolute"),
        _member("top/../../outside"),
        _member("../outside"),
        _member("other/file"),
        _member("top/link", tarfile.SYMTYPE, linkname="/etc/shadow"),
        _member("top/hard", tarfile.LNKTYPE, linkname="/etc/shadow"),
        _member("top/pipe", tarfile.FIFOTYPE),
        _member("top/device", tarfile.CHRTYPE, devmajor=1, devminor=5),
        _member("top/block", tarfile.BLKTYPE),
        _member("top/file"),
        _member("top/file/below"),
        _member(
            "top/sparse",
            pax_headers={
                "GNU.sparse.major": "1",
                "GNU.sparse.minor": "0",
                "GNU.sparse.realsize": str(1 << 60),
            },
        ),
    ],
    ids=lambda member: member.name,
)
def test_what_is_no_file_of_the_one_folder_is_refused(tmp_path: Path, member: tarfile.TarInfo) -> None:
    first = _member("top/file")
    path, into = _packed(tmp_path / "t", (first, b"x"), (member, b"")), tmp_path / "deep" / "into"
    into.mkdir(parents=True)
    with pytest.raises((ValueError, OSError)):
        unpack(path, into)
    assert ["file"] == _below(into)
    assert ["into"] == [path.name for path in into.parent.iterdir()]


def _zeros(path: Path) -> Path:
    return _packed(path, (_member("top/zeros"), bytes(8 * MIB)), compression="xz")


def _many(path: Path) -> Path:
    return _packed(path, *((_member(f"top/{number}"), b"") for number in range(20)), compression="gz")


def _described(path: Path) -> Path:
    return _packed(
        path, (_member("top/file", pax_headers={"comment": "x" * 3 * MIB}), b""), compression="bz2"
    )


def _long_name(path: Path) -> Path:
    long = tarfile.TarInfo("././@LongLink")
    long.type = tarfile.GNUTYPE_LONGNAME
    return _packed(path, (long, b"x" * 3 * MIB), (_member("top/file"), b""), compression="bz2")


def _cut(path: Path) -> Path:
    whole = _packed(path, (_member("top/file"), os.urandom(MIB)), compression="gz").read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    return path


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_zeros, "unpacked"),
        (_many, "more than 10 files"),
        (_described, "describes a file in more than"),
        (_long_name, "describes a file in more than"),
        (_cut, "cannot be read"),
    ],
)
def test_what_unpacks_without_end_or_is_cut_off_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], Path], said: str
) -> None:
    monkeypatch.setattr(tarball, "_BYTES_MOST", 6 * MIB)
    monkeypatch.setattr(tarball, "_MEMBERS_MOST", 10)
    (tmp_path / "into").mkdir()
    with pytest.raises(ValueError, match=said):
        unpack(make(tmp_path / "t"), tmp_path / "into")


@pytest.mark.parametrize(
    "content", [b"no tarball at all" * 100, b"BZh91AY&SYrotten" * 40, b"\x1f\x8bno gzip"]
)
def test_what_is_no_tarball_is_refused_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(ValueError, match="cannot be read as a tarball"):
        first_name(tmp_path / "t")


def test_an_empty_tarball_names_no_member(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(bytes(10240))
    assert first_name(tmp_path / "t") is None
