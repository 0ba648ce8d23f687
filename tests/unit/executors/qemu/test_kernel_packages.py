from __future__ import annotations

import pytest

from bedplate.executors.qemu.kernels import default_series, full_releases, kernel_suites
from bedplate.host.apt import AptSystem, PackageArchive, parse_os_release

MAIN = PackageArchive("http://mirror.example/debian", "bookworm", ("main",))
UPDATES = PackageArchive("http://mirror.example/debian", "bookworm-updates", ("main",))
SECURITY = PackageArchive("http://mirror.example/debian-security", "bookworm-security", ("main",))
BOOKWORM = parse_os_release("ID=debian\nVERSION_CODENAME=bookworm\n")
TRIXIE = parse_os_release("ID=debian\nVERSION_CODENAME=trixie\n")
NOBLE = parse_os_release("ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n")


def groups(asked: str, system: AptSystem) -> list[tuple[str, ...]]:
    return [tuple(suite for _, suite in group) for group in kernel_suites(asked, system)]


def debian(release: dict[str, str]) -> AptSystem:
    code = release["VERSION_CODENAME"]
    archives = (
        PackageArchive(MAIN.uri, code, ("main",)),
        PackageArchive(MAIN.uri, f"{code}-updates", ("main",)),
        PackageArchive(SECURITY.uri, f"{code}-security", ("main",)),
    )
    return AptSystem(archives, release, "", None)


def test_the_full_flavour_is_told_from_clouds_debug_and_what_is_no_release() -> None:
    names = (
        "linux-image-6.1.0-56-amd64",
        "linux-image-6.1.0-56-cloud-amd64",
        "linux-image-6.1.0-56-rt-amd64",
        "linux-image-6.1.0-57-amd64-unsigned",
        "linux-image-6.1.0-56-amd64-dbg",
        "linux-image-7.3-amd64",
        "linux-image-6.12-amd64-signed-template",
        "linux-image-6.12.90+deb13.1-amd64",
        "linux-image-amd64",
        "linux-binary-unsigned-7.2.13+deb14-amd64",
        "linux-modules-7.3.0-1-amd64",
        "linux-headers-7.4.0-1-amd64",
        "linux-image-6.12.9+bpo-arm64",
    )
    assert full_releases(names, "x86_64") == (
        "6.1.0-56-amd64",
        "6.1.0-57-amd64",
        "6.12.90+deb13.1-amd64",
        "7.2.13+deb14-amd64",
        "7.3-amd64",
    )
    assert full_releases(names, "aarch64") == ("6.12.9+bpo-arm64",)


def test_ubuntus_flavours() -> None:
    names = (
        "linux-image-6.8.0-45-generic",
        "linux-image-unsigned-6.8.0-46-generic",
        "linux-image-6.8.0-1009-azure",
        "linux-image-6.8.0-45-lowlatency",
        "linux-image-generic-hwe-24.04",
    )
    assert full_releases(names, "x86_64") == ("6.8.0-45-generic", "6.8.0-46-generic")


def test_debian_reads_security_and_release_together_then_backports_then_later_ones() -> None:
    found = groups("7.2", debian(BOOKWORM))
    assert found[:2] == [("bookworm-security", "bookworm"), ("bookworm-backports",)]
    assert found[2:] == [("stable",), ("stable-backports",), ("testing",), ("unstable",), ("experimental",)]


def test_a_known_series_is_looked_for_where_it_is_kept_up_also_in_an_older_suite() -> None:
    assert groups("6.12.95+deb13-amd64", debian(BOOKWORM))[2] == ("trixie-security", "trixie")
    assert groups("6.1", debian(TRIXIE))[2] == ("bookworm-security", "bookworm")
    assert groups("6.12", debian(TRIXIE)).count(("trixie-security", "trixie")) == 1


def test_security_has_its_own_archive_and_is_left_out_where_apt_knows_none() -> None:
    ((first, _),) = (next(iter(kernel_suites("6.1", debian(BOOKWORM)))),)
    assert first == (PackageArchive(SECURITY.uri, "bookworm-security", ("main",)), "bookworm-security")
    without = AptSystem((MAIN, UPDATES), BOOKWORM, "", None)
    assert groups("6.1", without)[0] == ("bookworm",)


def test_ubuntu_has_its_updates_on_every_mirror() -> None:
    archive = PackageArchive("http://mirror.example/ubuntu", "noble", ("main",))
    found = groups("5.15", AptSystem((archive,), NOBLE, "", None))
    assert found[:2] == [
        ("noble-updates", "noble-security", "noble"),
        ("jammy-updates", "jammy-security", "jammy"),
    ]
    assert not [suite for group in found for suite in group if "backports" in suite]


def test_without_an_archive_of_its_own_there_is_nothing_to_read() -> None:
    assert groups("6.12", AptSystem((SECURITY,), BOOKWORM, "", None)) == []


@pytest.mark.parametrize(("release", "expected"), [(BOOKWORM, "6.12"), (NOBLE, "6.8"), ({}, "6.12")])
def test_the_default_is_a_series_that_the_distribution_has(release: dict[str, str], expected: str) -> None:
    assert default_series(release) == expected
