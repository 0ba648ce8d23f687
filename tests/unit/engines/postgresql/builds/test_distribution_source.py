from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bedplate.engines.postgresql.builds import SourceUnavailable, fetch_source_package
from bedplate.engines.postgresql.versions import parse_version
from bedplate.host.apt import AptSystem, PackageArchive, parse_os_release
from bedplate.host.command import Completed

if TYPE_CHECKING:
    from tests.support.tools.scripted_commands import ScriptedCommands

SHA = "555610c24d53e4316da5b7d3fc25c279d96856d5e0e23ee308c328c5fa881d9f"
SHOWN = f"""\
Package: postgresql-18
Version: 18.6-3
Checksums-Sha256:
 a4254c4548ebeea683832de193460ee8a9f1271418e884803b44ded1aead1776 4752 postgresql-18_18.6-3.dsc
 {SHA} 22632314 postgresql-18_18.6.orig.tar.bz2
 aaaa54c4548ebeea683832de193460ee8a9f1271418e884803b44ded1aead1776 228 postgresql-18_18.6.orig.tar.bz2.asc
 5efd00aa59930757931d13e3b2a343b5ac983fdf646a54a3b96caa30cb40512b 34488 postgresql-18_18.6-3.debian.tar.xz
Homepage: http://project.example/

Package: postgresql-18-extra
Version: 18.9-1
Checksums-Sha256:
 {SHA} 1 postgresql-18-extra_18.9.orig.tar.bz2
"""
ARCHIVE = PackageArchive("http://mirror.example/debian", "bookworm", ("main",), "/own.gpg")


def system(*, keyring: Path | None = None, archives: tuple[PackageArchive, ...] = (ARCHIVE,)) -> AptSystem:
    return AptSystem(archives, parse_os_release("ID=debian\nVERSION_CODENAME=bookworm"), "", keyring)


class FakeApt:
    """An apt whose suites have the given text of `showsrc`; a suite that is absent fails to update."""

    def __init__(self, suites: dict[str, str]) -> None:
        self.suites = suites

    def _lines(self, argv: tuple[str, ...]) -> list[str]:
        configuration = Path(argv[argv.index("-c") + 1])
        return configuration.with_name("sources.list").read_text(encoding="utf-8").splitlines()

    def get(self, argv: tuple[str, ...], directory: Path | None) -> Completed:
        if "update" in argv:
            for line in self._lines(argv):
                suite = line.split()[-2]
                if suite not in self.suites:
                    error = f"E: The repository '{suite}' does not have a Release file."
                    return Completed(argv, 100, "Ign: 1", error, 0.0)
            return Completed(argv, 0, "", "", 0.0)
        assert directory is not None
        (directory / "postgresql-18_18.6.orig.tar.bz2").write_bytes(b"tarball")
        return Completed(argv, 0, "", "", 0.0)

    def cache(self, argv: tuple[str, ...], directory: Path | None) -> Completed:
        del directory
        shown = "\n\n".join(self.suites[line.split()[-2]] for line in self._lines(argv))
        return Completed(argv, 0, shown, "", 0.0)


def script(commands: ScriptedCommands, apt: FakeApt) -> None:
    commands.answers |= {"apt-get": apt.get, "apt-cache": apt.cache}


def ignore(text: str) -> None:
    del text


def test_newer_suite_is_read_only_when_the_own_one_lacks_the_release(
    scripted: ScriptedCommands, tmp_path: Path
) -> None:
    script(scripted, FakeApt({"bookworm": "", "stable": "", "testing": SHOWN, "unstable": SHOWN}))
    fetched = fetch_source_package(
        parse_version("18"), system=system(), directory=tmp_path, commands=scripted, progress=ignore
    )
    assert (fetched.version, fetched.promised_sha256) == ("18.6", SHA)
    assert fetched.detail == "postgresql-18 18.6-3 (testing)"
    assert fetched.tarball.read_bytes() == b"tarball"
    assert sum("update" in words for words in scripted.record) == 3
    assert scripted.record[-1][-1] == "postgresql-18=18.6-3"


def test_suite_that_the_mirror_lacks_does_not_end_the_search(
    scripted: ScriptedCommands, tmp_path: Path
) -> None:
    script(scripted, FakeApt({"bookworm": "", "testing": SHOWN}))
    fetched = fetch_source_package(
        parse_version("18.6"), system=system(), directory=tmp_path, commands=scripted, progress=ignore
    )
    assert fetched.version == "18.6"


def test_every_suite_says_what_it_had_instead(scripted: ScriptedCommands, tmp_path: Path) -> None:
    script(scripted, FakeApt({"bookworm": "", "testing": SHOWN, "unstable": SHOWN}))
    with pytest.raises(SourceUnavailable) as raised:
        fetch_source_package(
            parse_version("18.7"), system=system(), directory=tmp_path, commands=scripted, progress=ignore
        )
    message = str(raised.value)
    assert "bookworm has nothing of that name" in message
    assert "stable: The repository 'stable' does not have a Release file." in message
    assert "testing has 18.6-3" in message


def test_mirror_out_of_reach_is_asked_once(scripted: ScriptedCommands, tmp_path: Path) -> None:
    said = "E: Failed to fetch http://mirror.example/debian/InRelease  Temporary failure resolving 'mirror.example'"
    scripted.answers["apt-get"] = lambda argv, _: Completed(
        argv, 100, "Err:1 http://mirror.example", said, 0.0
    )
    with pytest.raises(SourceUnavailable, match=r"^bookworm: Failed to fetch .* Temporary failure resolving"):
        fetch_source_package(
            parse_version("18"), system=system(), directory=tmp_path, commands=scripted, progress=ignore
        )
    assert ["apt-get"] == scripted.programs()


def test_no_archive_of_its_own_is_a_reason_without_any_command(
    scripted: ScriptedCommands, tmp_path: Path
) -> None:
    with pytest.raises(SourceUnavailable, match="no archive"):
        fetch_source_package(
            parse_version("18"),
            system=system(archives=()),
            directory=tmp_path,
            commands=scripted,
            progress=ignore,
        )
    assert scripted.record == []
