from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.host.apt import (
    PackageArchive,
    own_archives,
    parse_deb822_sources,
    parse_one_line_sources,
    parse_os_release,
    suites_to_try,
)

KEY = "/usr/share/keyrings/debian-archive-keyring.gpg"
BOOKWORM = parse_os_release('ID=debian\nVERSION_CODENAME=bookworm\nNAME="Debian"\n')
NOBLE = parse_os_release("ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\nUBUNTU_CODENAME=noble\n")
MINT = parse_os_release(
    'ID=linuxmint\nID_LIKE="ubuntu debian"\nVERSION_CODENAME=wilma\nUBUNTU_CODENAME=noble\n'
)
SERIES = (
    "version,codename,series,created,release,eol\n"
    "24.04 LTS,Noble Numbat,noble,2023-10-12,2024-04-25,2029-05-31\n"
    "25.04,Plucky Puffin,plucky,2024-10-10,2025-04-17,2026-01-15\n"
    "25.10,Questing Quokka,questing,2025-04-17,2025-10-09,2026-07-09\n"
)

DEBIAN_DEB822 = f"""\
# a comment before
Types: deb
# http://snapshot.example/archive
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: {KEY}

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
Signed-By: {KEY}
"""

UBUNTU_DEB822 = """\
Types: deb
URIs: http://ubuntu.mirror.example/ubuntu/
Suites: noble noble-updates noble-backports
Components: main universe restricted multiverse
Signed-By: /usr/share/keyrings/ubuntu-archive-keyring.gpg

Enabled: no
Types: deb
URIs: http://off.example/ubuntu/
Suites: noble
Components: main
"""

DEBIAN_ONE_LINE = """\
# deb http://comment.example/debian bookworm main
deb http://mirror.example/debian bookworm main non-free # a trailing remark
deb-src [ signed-by=/k.gpg arch=amd64 trusted=yes check-valid-until=no ] http://mirror.example/debian bookworm main
deb cdrom:[Debian GNU/Linux 12]/ bookworm main
deb http://flat.example/packages ./
deb [arch=amd64 http://broken.example/debian bookworm main
deb http://short.example/debian bookworm
"""


def test_deb822_gives_one_archive_for_each_suite() -> None:
    archives = parse_deb822_sources(DEBIAN_DEB822)
    assert [item.suite for item in archives] == ["bookworm", "bookworm-updates", "bookworm-security"]
    expected = PackageArchive("http://mirror.example/debian", "bookworm", ("main", "contrib"), KEY)
    assert expected == archives[0]


def test_deb822_leaves_out_what_is_disabled() -> None:
    assert {"http://ubuntu.mirror.example/ubuntu/"} == {
        item.uri for item in parse_deb822_sources(UBUNTU_DEB822)
    }


def test_deb822_key_written_into_the_file_is_not_taken_for_a_path() -> None:
    text = (
        "Types: deb\nURIs: http://mirror.example/d\nSuites: trixie\nComponents: main\n"
        "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mDMEY865UxYJ\n -----END PGP PUBLIC KEY BLOCK-----\n"
    )
    (archive,) = parse_deb822_sources(text)
    assert archive.signed_by is None
    assert archive.suite == "trixie"


def test_one_line_reads_options_and_leaves_out_what_has_no_suite() -> None:
    assert (
        PackageArchive("http://mirror.example/debian", "bookworm", ("main", "non-free")),
        PackageArchive(
            "http://mirror.example/debian",
            "bookworm",
            ("main",),
            "/k.gpg",
            trusted=True,
            check_valid_until=False,
        ),
    ) == parse_one_line_sources(DEBIAN_ONE_LINE)


@given(st.text())
def test_no_text_breaks_the_parsers(text: str) -> None:
    for archive in (*parse_one_line_sources(text), *parse_deb822_sources(text)):
        assert archive.components
        assert not archive.suite.endswith("/")


def test_own_archive_is_the_one_with_updates_whoever_else_names_the_suite() -> None:
    stranger = parse_one_line_sources("deb https://stranger.example bookworm main\n")
    own = own_archives((*stranger, *parse_deb822_sources(DEBIAN_DEB822)), BOOKWORM)
    assert [item.uri for item in own] == ["http://mirror.example/debian", "https://stranger.example"]


def test_security_archive_alone_is_not_the_distribution() -> None:
    security = parse_one_line_sources("deb http://mirror.example/debian-security bookworm-security main\n")
    assert own_archives(security, BOOKWORM) == ()


def test_own_archive_of_a_relative_is_ubuntus() -> None:
    own = own_archives(parse_deb822_sources(UBUNTU_DEB822), MINT)
    assert [item.suite for item in own] == ["noble"]


def test_debian_named_by_its_role_is_found() -> None:
    archives = parse_one_line_sources("deb http://mirror.example/debian stable main\n")
    assert archives == own_archives(archives, BOOKWORM)


def test_debian_tries_its_own_suite_first_then_ever_newer_ones() -> None:
    assert suites_to_try(BOOKWORM) == ("bookworm", "stable", "testing", "unstable")


def test_debian_without_a_code_name_still_has_suites() -> None:
    assert suites_to_try({"ID": "debian"}) == ("stable", "testing", "unstable")


def test_ubuntu_takes_newer_series_from_the_distributions_own_list() -> None:
    expected = ("noble-updates", "noble", "plucky", "questing", "devel")
    assert expected == suites_to_try(NOBLE, distro_info=SERIES)


@pytest.mark.parametrize("info", ["", "version,codename,series\n", "garbage"])
def test_ubuntu_without_that_list_knows_some_series(info: str) -> None:
    suites = suites_to_try(NOBLE, distro_info=info)
    assert suites[:2] == ("noble-updates", "noble")
    assert suites[-1] == "devel"
    assert len(suites) > 3
