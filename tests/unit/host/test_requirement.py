from __future__ import annotations

from pathlib import Path

import pytest

from bedplate.errors import RequirementMissing
from bedplate.host.requirement import (
    Need,
    Requirement,
    demand,
    distribution_family,
    fedora_names,
    find_tool,
    install_command,
    look,
    missing,
)

DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\n'
UBUNTU = 'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\n'
MINT = 'ID=linuxmint\nID_LIKE="ubuntu debian"\n'
FEDORA = "ID=fedora\n"
ROCKY = 'ID="rocky"\nID_LIKE="rhel centos fedora"\n'

XFS = Requirement("mkfs.xfs", "xfsprogs", "makes XFS", found=False)
URING = Requirement("liburing", "liburing-dev", "io_uring", found=False)
MAKE = Requirement("make", "make", "builds", found=True)


@pytest.mark.parametrize(
    ("text", "family"),
    [(DEBIAN, "debian"), (UBUNTU, "debian"), (MINT, "debian"), (FEDORA, "fedora"), (ROCKY, "fedora")],
)
def test_family_is_found_for_relatives_too(text: str, family: str) -> None:
    assert family == distribution_family(text)


@pytest.mark.parametrize("text", ["", "ID=arch\n", "nonsense", "# ID=debian\n", "ID=debianish\n"])
def test_unknown_distribution_has_no_family(text: str) -> None:
    assert distribution_family(text) is None


def test_command_names_only_what_is_missing_each_package_once() -> None:
    twice = Requirement("xfs_info", "xfsprogs", "reads XFS", found=False)
    expected = ("apt-get", "install", "--yes", "--no-install-recommends", "liburing-dev", "xfsprogs")
    assert expected == install_command([XFS, URING, MAKE, twice], os_release=UBUNTU)


def test_fedora_has_its_own_package_names() -> None:
    expected = ("dnf", "install", "--assumeyes", "liburing-devel", "xfsprogs")
    assert expected == install_command([XFS, URING], os_release=FEDORA)


def test_a_librarys_headers_go_by_their_pkg_config_file_on_fedora() -> None:
    assert ["glibc-devel", "pkgconfig(fuse3)", "util-linux", "zlib-devel"] == fedora_names(
        ["zlib1g-dev", "libfuse3-dev", "libc6-dev", "mount", "util-linux"]
    )


def test_no_command_when_nothing_is_missing_or_the_distribution_is_unknown() -> None:
    assert install_command([MAKE], os_release=DEBIAN) is None
    assert install_command([XFS], os_release="ID=arch") is None


def test_demand_tells_all_reasons_at_once_and_the_way_out_last() -> None:
    with pytest.raises(RequirementMissing) as raised:
        demand([XFS, MAKE, URING], os_release=DEBIAN)
    reasons = raised.value.reasons
    assert (XFS.sentence, URING.sentence) == reasons[:2]
    assert reasons[2:] == (
        "install them: apt-get install --yes --no-install-recommends liburing-dev xfsprogs",
    )


def test_demand_names_packages_where_the_distribution_is_unknown() -> None:
    with pytest.raises(RequirementMissing, match="Debian calls them: liburing-dev xfsprogs"):
        demand([URING, XFS], os_release="ID=arch")


def test_what_is_there_is_not_demanded() -> None:
    demand([MAKE], os_release="")
    with pytest.raises(RequirementMissing) as raised:
        demand([MAKE, XFS], os_release=DEBIAN)
    assert [] == [reason for reason in raised.value.reasons if MAKE.sentence in reason]


def test_look_keeps_order_and_accepts_an_alternative_name() -> None:
    needs = (
        Need("pkg-config", "pkg-config", "finds libraries", alternatives=("pkgconf",)),
        Need("flex", "flex", "scanners"),
    )

    def find(name: str) -> Path | None:
        return Path("/usr/bin/pkgconf") if name == "pkgconf" else None

    answers = look(needs, find=find)
    assert [(item.name, item.found) for item in answers] == [("pkg-config", True), ("flex", False)]
    assert tuple(item.name for item in missing(answers)) == ("flex",)


def test_tools_of_the_system_are_found_with_an_empty_search_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    assert find_tool("sh") is not None
    assert find_tool("no-such-tool-anywhere") is None
