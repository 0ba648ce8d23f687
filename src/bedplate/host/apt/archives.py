"""Reads where this machine gets its packages from: sources.list(5), one-line and deb822 style.

No name of a host stands in bedplate's code: the distribution's packages come from the very mirror
that the machine's owner chose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NO = frozenset({"no", "false", "without", "off", "disable", "0"})
_YES = frozenset({"yes", "true", "with", "on", "enable", "1"})

# Every Debian mirror carries these names beside the code names. Stable releases come first: they
# move least.
_DEBIAN_SUITES = ("stable", "testing", "unstable")
# Ubuntu carries no such names but `devel`; the series are those known when this was written, used
# where the distribution's own list (distro-info-data) is not installed.
_UBUNTU_NEWER_SERIES = ("questing", "resolute")
_UBUNTU_LAST_RESORT = "devel"


@dataclass(frozen=True)
class PackageArchive:
    """One suite of one archive as configured; `signed_by` is a key file, None for apt's own."""

    uri: str
    suite: str
    components: tuple[str, ...]
    signed_by: str | None = None
    trusted: bool = False
    check_valid_until: bool = True


def parse_one_line_sources(text: str) -> tuple[PackageArchive, ...]:
    """The archives of a `.list` file: `deb [signed-by=/key.gpg] http://mirror.example/debian suite main`.

    CD-ROMs, flat repositories and lines that apt itself would refuse are left out.
    """
    archives = []
    for raw in text.splitlines():
        line = raw.split("#", 1)[0].strip()
        kind, _, rest = line.partition(" ")
        if kind not in ("deb", "deb-src"):
            continue
        rest = rest.strip()
        options: dict[str, str] = {}
        if rest.startswith("["):
            inside, closing, rest = rest[1:].partition("]")
            if not closing:
                continue
            options = dict(word.split("=", 1) for word in inside.split() if "=" in word)
        words = rest.split()
        if len(words) < 3 or words[0].startswith("cdrom:") or words[1].endswith("/"):
            continue
        archives.append(
            _archive(
                words[0],
                words[1],
                words[2:],
                {key.rstrip("+-").lower(): value for key, value in options.items()},
            )
        )
    return tuple(archives)


def parse_deb822_sources(text: str) -> tuple[PackageArchive, ...]:
    """The archives of a `.sources` file, one for each URI and suite of every enabled stanza."""
    archives = []
    for stanza in deb822_stanzas(text):
        if stanza.get("enabled", "yes").strip().lower() in _NO:
            continue
        if not {"deb", "deb-src"} & set(stanza.get("types", "").split()):
            continue
        components = stanza.get("components", "").split()
        archives += [
            _archive(uri, suite, components, stanza)
            for uri in stanza.get("uris", "").split()
            for suite in stanza.get("suites", "").split()
            if components and not suite.endswith("/") and not uri.startswith("cdrom:")
        ]
    return tuple(archives)


def deb822_stanzas(text: str) -> Iterator[dict[str, str]]:
    """Stanzas of `Field: value`, field names in lower case, continued lines joined by newlines."""
    stanza: dict[str, str] = {}
    field = ""
    for line in (*text.splitlines(), ""):
        if line.startswith("#"):
            continue
        if not line.strip():
            if stanza:
                yield stanza
            stanza, field = {}, ""
        elif line[0] in " \t":
            if field:
                stanza[field] += "\n" + line.strip()
        else:
            name, colon, value = line.partition(":")
            field = name.strip().lower() if colon else ""
            if field:
                stanza[field] = value.strip()


def _archive(uri: str, suite: str, components: Iterable[str], options: dict[str, str]) -> PackageArchive:
    key = options.get("signed-by", "").strip()
    return PackageArchive(
        uri=uri,
        suite=suite,
        components=tuple(components),
        # A key that is written into the file itself, or named by its fingerprint, is not a file.
        signed_by=key if key.startswith("/") and "\n" not in key and "," not in key else None,
        trusted=options.get("trusted", "").strip().lower() in _YES,
        check_valid_until=options.get("check-valid-until", "").strip().lower() not in _NO,
    )


def parse_os_release(text: str) -> dict[str, str]:
    """Fields of os-release(5) without their quotes."""
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {key.strip(): value.strip().strip("\"'") for key, value in pairs}


def code_name(release: dict[str, str]) -> str | None:
    """The suite that the machine runs; of a distribution made from Ubuntu, Ubuntu's."""
    return release.get("UBUNTU_CODENAME") or release.get("VERSION_CODENAME") or None


def own_archives(archives: Iterable[PackageArchive], release: dict[str, str]) -> tuple[PackageArchive, ...]:
    """The distribution's own archives for the running suite, the likeliest first.

    Others may name their suites alike (`bookworm main`); what tells the distribution's mirror is
    that it carries `-updates` as well. The signature decides in the end.
    """
    known = tuple(archives)
    suite = code_name(release)
    names = {suite} if is_ubuntu(release) else {suite, "oldstable", "sid", *_DEBIAN_SUITES}
    with_updates = {item.uri for item in known if item.suite.endswith("-updates")}
    own = [item for item in known if item.suite in names and "main" in item.components]
    unique = {item.uri: item for item in reversed(own)}
    return tuple(sorted(unique.values(), key=lambda item: (item.uri not in with_updates, own.index(item))))


def security_archives(archives: Iterable[PackageArchive]) -> tuple[PackageArchive, ...]:
    """Where the distribution's security updates come from, each address once.

    Debian has an archive of its own for them, Ubuntu the suite `-security` on every mirror.
    """
    found = [item for item in archives if item.suite.endswith("-security") and "main" in item.components]
    return tuple({item.uri: item for item in reversed(found)}.values())


def is_ubuntu(release: dict[str, str]) -> bool:
    """Whether the archive's layout is Ubuntu's (also Mint and its like)."""
    return "ubuntu" in (release.get("ID", ""), *release.get("ID_LIKE", "").split())


def suites_to_try(release: dict[str, str], *, distro_info: str = "") -> tuple[str, ...]:
    """The machine's own suite, then those that are likely to have newer packages.

    `distro_info` is the text of Ubuntu's own list of series (distro-info-data's ubuntu.csv).
    """
    own = code_name(release)
    if not is_ubuntu(release):
        return tuple(dict.fromkeys(suite for suite in (own, *_DEBIAN_SUITES) if suite))
    newer = _series_after(own, distro_info) or _UBUNTU_NEWER_SERIES
    own_suites = (f"{own}-updates", own) if own else ()
    return tuple(dict.fromkeys((*own_suites, *newer, _UBUNTU_LAST_RESORT)))


def _series_after(own: str | None, distro_info: str) -> tuple[str, ...]:
    rows = [line.split(",") for line in distro_info.splitlines()[1:]]
    series = [row[2] for row in rows if len(row) > 2]
    return tuple(series[series.index(own) + 1 :]) if own in series else ()
