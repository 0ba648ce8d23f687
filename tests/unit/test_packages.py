"""How packages are made, without the tools of distributions that make them: tests/host builds and starts them."""

from __future__ import annotations

import io
import json
import os
import sys
import tarfile
from pathlib import Path

import pytest
from distribution import debian, image
from distribution.sources import Sources

from bedplate.executors.qemu import guest_tools
from bedplate.host.apt.archives import own_archives, parse_deb822_sources, security_archives

SOURCES = Sources((), 1_700_000_000, "0.0")
# Writes what the real one writes, then runs what happens to apt's sources.
_MMDEBSTRAP = f"""#!{sys.executable}
import json, os, subprocess, sys, tarfile, tempfile
from pathlib import Path
Path(os.environ["ASKED"]).write_text(json.dumps(sys.argv[1:]))
with tempfile.TemporaryDirectory() as folder:
    parts = Path(folder) / "etc/apt/sources.list.d"
    parts.mkdir(parents=True)
    (parts.parent / "sources.list").write_text("deb http://mirror.example/debian trixie main")
    (parts / "0000trixie.list").write_text("deb http://mirror.example/debian trixie-updates main")
    for word in sys.argv:
        if word.startswith("--customize-hook=") and "/etc/apt" in word:
            subprocess.run(["sh", "-c", word.partition("=")[2], "sh", folder], check=True)
    with tarfile.open(sys.argv[-1], "w") as archive:
        archive.add(folder, ".")
"""


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    (folder / name).chmod(0o755)


def files_of_image(archive: Path) -> dict[str, str]:
    with tarfile.open(archive) as layout:

        def blob(digest: str) -> bytes:
            found = layout.extractfile(f"blobs/{digest.replace(':', '/')}")
            assert found is not None
            return found.read()

        index = layout.extractfile("index.json")
        assert index is not None
        manifest = json.loads(blob(json.load(index)["manifests"][0]["digest"]))
        layer = blob(manifest["layers"][0]["digest"])
    with tarfile.open(fileobj=io.BytesIO(layer)) as files:
        return {
            member.name: content.read().decode()
            for member in files
            if (content := files.extractfile(member)) is not None
        }


def test_an_image_has_debians_public_archives_and_what_guests_start_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin", "mmdebstrap", _MMDEBSTRAP)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    monkeypatch.setattr(debian, "build", lambda _sources, into: into / "bedplate.deb")
    files = files_of_image(image.build(SOURCES, tmp_path))
    assert ["./etc/apt/sources.list.d/debian.sources"] == list(files)
    archives = parse_deb822_sources(files.popitem()[1])
    (main,) = own_archives(archives, {"ID": "debian", "VERSION_CODENAME": "trixie"})
    (security,) = security_archives(archives)
    assert ("trixie", "trixie-security") == (main.suite, security.suite)
    assert not any("mirror.example" in archive.uri for archive in archives)
    (included,) = (
        word for word in json.loads((tmp_path / "asked").read_text()) if word.startswith("--include=")
    )
    assert {"busybox-static", "kmod", "zstd"} == set(guest_tools.PACKAGES) <= set(
        included.partition("=")[2].split(",")
    )
