from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.tools.scripted_commands import ScriptedCommands

from bedplate.engines.postgresql import builds


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
def make_tarball(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    # A toy has a release's name, and not its checksum.
    monkeypatch.setattr(builds, "_KNOWN_SHA256", {})

    def make(version: str, *, name: str | None = None, content: str = "") -> Path:
        return _make_tarball(tmp_path / (name or f"given-{version}.tar.bz2"), version, content=content)

    return make
