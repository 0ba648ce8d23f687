"""What the machine must have before the first command runs: tools, headers, their packages.

A room that needs a tool states a `Need`; `look` turns needs into `Requirement`s without root and
without changing anything; `install_command` says how the missing ones are had. All of them are
found at once, so that nobody meets them one after the other.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from bedplate.errors import RequirementMissing

_OS_RELEASE = (Path("/etc/os-release"), Path("/usr/lib/os-release"))

# The caller's PATH may lack sbin (a Debian user's does), where mkfs and its kin live.
_SYSTEM_DIRECTORIES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Debian's name -> Fedora's, only where they differ.
_FEDORA_NAMES = {
    "libc6-dev": "glibc-devel",
    "libicu-dev": "libicu-devel",
    "liblz4-dev": "lz4-devel",
    "libssl-dev": "openssl-devel",
    "liburing-dev": "liburing-devel",
    "libxml2-dev": "libxml2-devel",
    "libzstd-dev": "libzstd-devel",
    "mount": "util-linux",
    "pkg-config": "pkgconf-pkg-config",
    "uuid-dev": "libuuid-devel",
    "xz-utils": "xz",
    "zlib1g-dev": "zlib-devel",
}


@dataclass(frozen=True)
class Requirement:
    """One thing the machine should have: `package` is Debian's name, `reason` says what for."""

    name: str
    package: str
    reason: str
    found: bool

    @property
    def sentence(self) -> str:
        """`bison is missing (package bison): …`, for an error or a table."""
        state = "found" if self.found else "missing"
        verb = "are" if self.name.endswith(" headers") else "is"
        return f"{self.name} {verb} {state} (package {self.package}): {self.reason}"


@dataclass(frozen=True)
class Need:
    """A tool in the search path that something needs; the question, where `Requirement` is the answer.

    `alternatives` are other names of the tool that serve as well (`pkgconf` for `pkg-config`).
    """

    name: str
    package: str
    reason: str
    alternatives: tuple[str, ...] = ()


def find_tool(name: str) -> Path | None:
    """The program `name` in the caller's search path or in the system's own directories."""
    path = os.pathsep.join(part for part in (os.environ.get("PATH", ""), _SYSTEM_DIRECTORIES) if part)
    found = shutil.which(name, path=path)
    return Path(found) if found else None


def look(needs: Iterable[Need], *, find: Callable[[str], Path | None] = find_tool) -> tuple[Requirement, ...]:
    """Every need with its answer, in the given order. Needs no root, starts no program."""
    return tuple(
        Requirement(
            name=need.name,
            package=need.package,
            reason=need.reason,
            found=any(find(name) is not None for name in (need.name, *need.alternatives)),
        )
        for need in needs
    )


def missing(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    """Those that were not found, each once, in the given order."""
    return tuple(dict.fromkeys(item for item in requirements if not item.found))


def distribution_family(os_release: str) -> str | None:
    """`"debian"` (with Ubuntu and its kin), `"fedora"`, or None, from the text of os-release(5)."""
    fields = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    names = " ".join(fields.get(key, "") for key in ("ID", "ID_LIKE"))
    words = names.replace('"', " ").replace("'", " ").split()
    if "debian" in words or "ubuntu" in words:
        return "debian"
    if "fedora" in words or "rhel" in words:
        return "fedora"
    return None


def read_os_release() -> str:
    """The text of this machine's os-release(5); empty where there is none."""
    for path in _OS_RELEASE:
        try:
            return path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
    return ""


def fedora_names(packages: Iterable[str]) -> list[str]:
    """Fedora's packages of those that Debian's names say, sorted.

    A library's headers are asked for by its pkg-config file, which dnf takes for a name.
    """
    headers = {
        name: f"pkgconfig({name[3:-4]})" for name in packages if name[:3] == "lib" and name[-4:] == "-dev"
    }
    return sorted({_FEDORA_NAMES.get(name, headers.get(name, name)) for name in packages})


def install_command(requirements: Iterable[Requirement], *, os_release: str) -> tuple[str, ...] | None:
    """The command that installs what was not found.

    None when nothing is missing, or when the distribution is neither Debian's nor Fedora's kin.
    """
    packages = sorted({item.package for item in missing(requirements)})
    if not packages:
        return None
    family = distribution_family(os_release)
    if family == "debian":
        return ("apt-get", "install", "--yes", "--no-install-recommends", *packages)
    if family == "fedora":
        return (
            "dnf",
            "install",
            "--assumeyes",
            *fedora_names(packages),
        )
    return None


def demand(requirements: Iterable[Requirement], *, os_release: str | None = None) -> None:
    """Raise `RequirementMissing` with one reason per missing requirement and the way out last."""
    lacking = missing(requirements)
    if not lacking:
        return
    command = install_command(lacking, os_release=read_os_release() if os_release is None else os_release)
    if command is not None:
        way_out = f"install them: {' '.join(command)}"
    else:
        names = " ".join(sorted({item.package for item in lacking}))
        way_out = f"install them with this distribution's package tool (Debian calls them: {names})"
    raise RequirementMissing(*(item.sentence for item in lacking), way_out)
