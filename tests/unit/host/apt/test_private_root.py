from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bedplate.errors import CommandFailed, RequirementMissing
from bedplate.host.apt import (
    AptSystem,
    BinaryPackage,
    PackageArchive,
    PrivateRoot,
    parse_os_release,
    read_apt_system,
    source_line,
)
from bedplate.host.command import Completed

if TYPE_CHECKING:
    from tests.support.tools.scripted_commands import ScriptedCommands

ARCHIVE = PackageArchive("http://mirror.example/debian", "bookworm", ("main",), "/own.gpg")
DEBIAN = "ID=debian\nVERSION_CODENAME=bookworm"


def system(*, keyring: Path | None = None, os_release: str = DEBIAN) -> AptSystem:
    return AptSystem((ARCHIVE,), parse_os_release(os_release), "", keyring)


def test_machine_without_apt_is_a_reason(scripted: ScriptedCommands) -> None:
    with pytest.raises(RequirementMissing, match="no apt"):
        read_apt_system(scripted)


def test_sources_come_from_where_apt_is_configured_to_look(
    scripted: ScriptedCommands, tmp_path: Path
) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    (tmp_path / "sources.list").write_text("deb http://one.example/debian trixie main\n", encoding="utf-8")
    (parts / "more.sources").write_text(
        "Types: deb\nURIs: http://two.example/debian\nSuites: sid\nComponents: main\n", encoding="utf-8"
    )
    (parts / "old.list.save").write_text("deb http://no.example/debian trixie main\n", encoding="utf-8")
    scripted.answers["apt-config"] = lambda argv, _: Completed(
        argv, 0, f"LIST='{tmp_path}/sources.list'\nPARTS='{parts}/'\n", "", 0.0
    )
    assert [item.uri for item in read_apt_system(scripted).archives] == [
        "http://one.example/debian",
        "http://two.example/debian",
    ]


def test_distributions_keyring_comes_before_the_key_of_the_entry() -> None:
    line = source_line(ARCHIVE, "testing", system(keyring=Path("/k/debian.gpg")), kind="deb-src")
    assert line == "deb-src [signed-by=/k/debian.gpg] http://mirror.example/debian testing main"
    line = source_line(ARCHIVE, "testing", system(), kind="deb-src")
    assert line == "deb-src [signed-by=/own.gpg] http://mirror.example/debian testing main"


def test_what_the_owner_allowed_for_the_mirror_holds_for_its_sources() -> None:
    archive = PackageArchive(
        "http://mirror.example/d", "bookworm", ("main",), None, trusted=True, check_valid_until=False
    )
    line = source_line(archive, "bookworm", system(), kind="deb-src")
    assert line == "deb-src [trusted=yes check-valid-until=no] http://mirror.example/d bookworm main"


def test_components_are_asked_of_debian_and_are_ubuntus_own_there() -> None:
    line = source_line(ARCHIVE, "trixie", system(), kind="deb", components=("main", "contrib"))
    assert line.endswith("trixie main contrib")
    ubuntu = system(os_release="ID=ubuntu\nVERSION_CODENAME=noble")
    assert source_line(ARCHIVE, "noble", ubuntu, kind="deb").endswith("noble main universe")


def test_a_suite_that_fails_is_forgotten_and_the_others_stay(
    scripted: ScriptedCommands, tmp_path: Path
) -> None:
    statuses = iter((0, 100, 0))
    scripted.answers["apt-get"] = lambda argv, _: Completed(argv, next(statuses), "", "E: no", 0.0)
    root = PrivateRoot(tmp_path, scripted)
    root.add("deb http://mirror.example bookworm main")
    with pytest.raises(CommandFailed):
        root.add("deb http://mirror.example nowhere main", "deb http://mirror.example sid main")
    root.add("deb http://mirror.example trixie main")
    suites = [line.split()[2] for line in (tmp_path / "sources.list").read_text().splitlines()]
    assert ["bookworm", "trixie"] == suites


def test_a_root_without_the_machines_packages_has_a_status_of_its_own(
    scripted: ScriptedCommands, tmp_path: Path
) -> None:
    PrivateRoot(tmp_path / "own", scripted, status_file=None)
    PrivateRoot(tmp_path / "machines", scripted)
    assert f'status "{tmp_path}/own/status"' in (tmp_path / "own/apt.conf").read_text()
    assert (tmp_path / "own/status").read_bytes() == b""
    assert 'status "/var/lib/dpkg/status"' in (tmp_path / "machines/apt.conf").read_text()


def test_no_names_are_no_question(scripted: ScriptedCommands, tmp_path: Path) -> None:
    assert PrivateRoot(tmp_path, scripted).binary_packages(()) == ()
    assert scripted.record == []


def test_a_download_names_version_and_architecture(scripted: ScriptedCommands, tmp_path: Path) -> None:
    scripted.answers["apt-get"] = lambda argv, _: Completed(argv, 0, "", "", 0.0)
    packages = (BinaryPackage("kmod", "30-1", "amd64", "0"), BinaryPackage("tzdata", "2025", "all", "0"))
    files = PrivateRoot(tmp_path, scripted).download(packages, tmp_path)
    assert files == (tmp_path / "kmod_30-1_amd64.deb", tmp_path / "tzdata_2025_all.deb")
    assert scripted.record[-1][-3:] == ("--", "kmod:amd64=30-1", "tzdata=2025")
