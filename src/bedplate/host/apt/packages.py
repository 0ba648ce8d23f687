"""Packages as an index describes them: parsed from what apt-cache(8) and apt-get(8) print."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bedplate.host.apt.archives import deb822_stanzas

# `Inst name [installed version] (version origin [architecture])`, as apt-get --simulate prints it.
_INSTALLED = re.compile(r"^Inst (\S+) (?:\[\S+\] )?\((\S+) ", re.MULTILINE)


@dataclass(frozen=True)
class SourcePackage:
    """One version of a source package in the index, with its tarball's name and checksum."""

    version: str
    tarball_name: str
    tarball_sha256: str

    @property
    def upstream(self) -> str:
        """`18.6` of `18.6-3` and of `1:18.6-0ubuntu1`."""
        return self.version.split(":", 1)[-1].rsplit("-", 1)[0]


@dataclass(frozen=True)
class BinaryPackage:
    """One version of a binary package in the index; `sha256` is what the signed index promises."""

    name: str
    version: str
    architecture: str
    sha256: str

    @property
    def downloaded_name(self) -> str:
        """The file that `apt-get download` writes: the epoch's colon is escaped in it."""
        return f"{self.name}_{self.version.replace(':', '%3a')}_{self.architecture}.deb"


def parse_source_packages(shown: str, name: str) -> tuple[SourcePackage, ...]:
    """The stanzas of `apt-cache showsrc` that have an upstream tarball with a SHA-256 checksum."""
    packages = []
    for stanza in deb822_stanzas(shown):
        if stanza.get("package") != name:
            continue
        for line in stanza.get("checksums-sha256", "").splitlines():
            words = line.split()
            if len(words) == 3 and ".orig.tar." in words[2] and not words[2].endswith(".asc"):
                packages.append(SourcePackage(stanza.get("version", ""), words[2], words[0]))
    return tuple(packages)


def parse_binary_packages(shown: str) -> tuple[BinaryPackage, ...]:
    """The stanzas of `apt-cache show` that can be fetched, each name and version once.

    A stanza of the machine's own state has no file name: that version is in no index.
    """
    packages = []
    for stanza in deb822_stanzas(shown):
        fields = [stanza.get(field, "") for field in ("package", "version", "architecture", "sha256")]
        if all(fields) and stanza.get("filename"):
            packages.append(BinaryPackage(*fields))
    return tuple(dict.fromkeys(packages))


def parse_installation(shown: str) -> tuple[tuple[str, str], ...]:
    """Name and version of all that `apt-get --simulate install` would unpack, in its order."""
    return tuple(dict.fromkeys((found[1], found[2]) for found in _INSTALLED.finditer(shown)))
