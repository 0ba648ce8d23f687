"""How packages are made, without the tools of distributions that make them: tests/host builds and starts them."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
from distribution import debian, image
from distribution.__main__ import _KINDS, main
from distribution.sources import Sources, lay_out, of_checkout

from bedplate.campaign.planning import read_plan
from bedplate.executors.qemu import kernels
from bedplate.host.apt import own_archives, parse_deb822_sources, security_archives

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
    # As apt's own package has it.
    example = Path(folder) / "usr/share/doc/apt/examples/debian.sources"
    example.parent.mkdir(parents=True)
    entries = (("debian", "trixie trixie-updates"), ("debian-security", "trixie-security"))
    example.write_text("\\n".join(
        f"Types: deb\\nURIs: http://public.example/{{name}}\\nSuites: {{suites}}\\nComponents: main\\n" for name, suites in entries
    ))
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
    (listed,) = (text for name, text in files.items() if name.startswith("./etc/apt/"))
    archives = parse_deb822_sources(listed)
    (main,) = own_archives(archives, {"ID": "debian", "VERSION_CODENAME": "trixie"})
    (security,) = security_archives(archives)
    assert ("trixie", "trixie-security") == (main.suite, security.suite)
    assert all("public.example" in archive.uri for archive in archives)
    (included,) = (
        word for word in json.loads((tmp_path / "asked").read_text()) if word.startswith("--include=")
    )
    assert (
        {"busybox-static", "kmod", "zstd"}
        == set(kernels.PACKAGES)
        <= set(included.partition("=")[2].split(","))
    )


def test_every_ready_plan_is_whole_where_a_distribution_puts_it(repository: Path, tmp_path: Path) -> None:
    lay_out(of_checkout(), tmp_path, zsh="vendor-completions")
    shipped = tmp_path / "usr/share/bedplate/src/bedplate/shipped"
    plans = sorted((shipped / "plans").glob("*.toml"))
    assert len(list((repository / "plans").glob("*.toml"))) == len(plans)
    for plan in plans:
        # PlanError where a folder, a script or a dump that it names is not there.
        assert read_plan(plan).plan.title
    wheel = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]
    included = wheel["build"]["targets"]["wheel"]["force-include"]
    assert {f"bedplate/shipped/{folder.name}" for folder in shipped.iterdir()} == set(included.values())
    packed = (tmp_path / "usr/share/man/man1/bedplate.1.gz").read_bytes()
    assert (b"\xff", (repository / "docs/bedplate.1").read_bytes()) == (packed[9:10], gzip.decompress(packed))


def test_a_checkout_with_changes_makes_no_package_that_passes_for_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    git = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@localhost")
    (tmp_path / "kept").write_text("one", encoding="utf-8")
    for words in (("init", "--quiet"), ("add", "kept"), ("commit", "--quiet", "-m", "one")):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setattr("distribution.sources.CHECKOUT", tmp_path)
    monkeypatch.setitem(_KINDS, "deb", (lambda _sources, into: into / "kept", ""))
    (tmp_path / "not-tracked").touch()
    asked = ["deb", "--into", str(tmp_path)]
    assert 0 == main(asked)
    (tmp_path / "kept").write_text("two", encoding="utf-8")
    assert 1 == main(asked)
    assert "the changes of 1 tracked files, the first kept; commit or stash" in capsys.readouterr().err
    assert 0 == main([*asked, "--with-changes"])


def test_a_kind_that_cannot_be_built_keeps_no_other_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(_sources: Sources, _into: Path) -> Path:
        raise OSError("it needs a tool")

    (tmp_path / "made").touch()
    for kind in _KINDS:
        monkeypatch.setitem(_KINDS, kind, (lambda _sources, into: into / "made", ""))
    monkeypatch.setitem(_KINDS, "rpm", (fails, ""))
    assert 1 == main(["--with-changes", "--into", str(tmp_path)])
    said = capsys.readouterr()
    assert len(_KINDS) - 1 == said.out.count(str(tmp_path / "made"))
    assert "package: rpm was not built: it needs a tool\n" == said.err


def script(name: str, *words: str, tools: Path) -> int:
    """The exit code of a script of Debian's package, where its tools are those of a folder first."""
    text = debian._SCRIPTS[name].replace("/var/cache/bedplate", str(tools / "cache"))
    program(tools, name, f"#!/bin/sh\nset -e\n{text}\n")
    path = f"{tools}:{os.environ['PATH']}"
    return subprocess.run([tools / name, *words], check=False, env={"PATH": path}).returncode


def test_debians_package_compiles_the_folder_that_its_modules_are_in(tmp_path: Path) -> None:
    lay_out(of_checkout(), tmp_path / "root", zsh="vendor-completions")
    program(tmp_path, "py3compile", f'#!/bin/sh\necho "$*" >{tmp_path}/compiled\n')
    assert 0 == script("postinst", "configure", tools=tmp_path)
    option, package, folder = (tmp_path / "compiled").read_text().split()
    assert ("-p", "bedplate") == (option, package)
    assert (tmp_path / "root" / folder.lstrip("/") / "src/bedplate/__main__.py").is_file()


@pytest.mark.parametrize(("left", "code"), [("", 0), ("of another file system", 1)])
def test_a_purge_empties_a_cache_whose_folder_is_a_mount_point(tmp_path: Path, left: str, code: int) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / (left or "kernels")).touch()
    # As rm(1) ends where the folder itself is busy.
    program(tmp_path, "rm", f"#!/bin/sh\nfind {tmp_path}/cache -name kernels -delete\nexit 1\n")
    assert code == script("postrm", "purge", tools=tmp_path)
