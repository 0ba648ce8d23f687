from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.tools.scripted_commands import ScriptedCommands, completed

from bedplate.host.command import Completed


def unpack(argv: tuple[str, ...], directory: Path | None) -> Completed:
    """What `tar -xf FILE -C DIRECTORY --strip-components=1` does, as far as a build is concerned."""
    del directory
    target = Path(argv[argv.index("-C") + 1])
    (target / "configure").write_text("#!/bin/sh\n", encoding="utf-8")
    return completed(argv)


@pytest.fixture
def scripted() -> ScriptedCommands:
    return ScriptedCommands()


def _make_tarball(path: Path, version: str, *, content: str = "") -> Path:
    with tarfile.open(path, "w:bz2") as archive:
        for name, text in ((f"postgresql-{version}", None), (f"postgresql-{version}/configure", content)):
            member = tarfile.TarInfo(name)
            if text is None:
                member.type = tarfile.DIRTYPE
                archive.addfile(member)
            else:
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
    return path


@pytest.fixture
def make_tarball(tmp_path: Path) -> Callable[..., Path]:
    def make(version: str, *, name: str | None = None, content: str = "") -> Path:
        return _make_tarball(tmp_path / (name or f"given-{version}.tar.bz2"), version, content=content)

    return make
