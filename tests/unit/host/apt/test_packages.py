from __future__ import annotations

import pytest

from bedplate.host.apt import BinaryPackage, parse_binary_packages, parse_installation, parse_source_packages

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


def test_tarball_and_its_checksum_are_taken_not_the_signature_beside_it() -> None:
    (package,) = parse_source_packages(SHOWN, "postgresql-18")
    assert (
        package.version,
        package.tarball_name,
        package.tarball_sha256,
    ) == ("18.6-3", "postgresql-18_18.6.orig.tar.bz2", SHA)
    assert package.upstream == "18.6"


@pytest.mark.parametrize(
    ("version", "upstream"),
    [("17.11-0+deb13u1", "17.11"), ("1:18.3-0ubuntu0.26.04.1", "18.3"), ("19~rc1-1", "19~rc1")],
)
def test_upstream_version_has_neither_epoch_nor_revision(version: str, upstream: str) -> None:
    text = SHOWN.replace("Version: 18.6-3", f"Version: {version}")
    assert upstream == parse_source_packages(text, "postgresql-18")[0].upstream


SHOWN_BINARIES = f"""\
Package: kmod
Version: 30+20221128-1
Architecture: amd64
Depends: libc6 (>= 2.34)
Filename: pool/main/k/kmod/kmod_30+20221128-1_amd64.deb
SHA256: {SHA}

Package: busybox-static
Status: install ok installed
Version: 1:1.30
Architecture: amd64

Package: tzdata
Version: 2025b-0+deb12u1
Architecture: all
Filename: pool/main/t/tzdata/tzdata_2025b-0+deb12u1_all.deb
SHA256: {SHA}
"""


def test_what_no_index_has_cannot_be_fetched_and_is_left_out() -> None:
    assert (
        BinaryPackage("kmod", "30+20221128-1", "amd64", SHA),
        BinaryPackage("tzdata", "2025b-0+deb12u1", "all", SHA),
    ) == parse_binary_packages(SHOWN_BINARIES)


def test_the_same_version_of_two_suites_is_one_package() -> None:
    assert len(parse_binary_packages(f"{SHOWN_BINARIES}\n{SHOWN_BINARIES}")) == 2


def test_an_epoch_is_escaped_in_the_name_of_the_file() -> None:
    package = BinaryPackage("busybox-static", "1:1.35.0-4+b1", "amd64", SHA)
    assert package.downloaded_name == "busybox-static_1%3a1.35.0-4+b1_amd64.deb"


def test_an_installation_has_new_and_newer_packages_but_none_that_go() -> None:
    shown = (
        "Reading package lists...\n"
        "Remv libold [1.0-1]\n"
        "Inst libnew [1.0-1] (2.0-1 Debian:12.11/stable, Debian-Security:12 [amd64]) []\n"
        "Inst tool (1:3.0-1 Debian:12.11/stable [all])\n"
        "Conf tool (1:3.0-1 Debian:12.11/stable [all])\n"
    )
    assert parse_installation(shown) == (("libnew", "2.0-1"), ("tool", "1:3.0-1"))


def test_nothing_to_install_is_nothing() -> None:
    assert parse_installation("kmod is already the newest version (30).\n") == ()
