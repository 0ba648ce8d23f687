"""Fetches PostgreSQL's tarball as the distribution's source package, beside the machine's own apt.

A private apt root (lists, cache, sources) lies in a folder of our own, so nothing of the machine's
package state is read for writing or changed, and no root is needed. The mirror, its key and the
proxy settings are the machine's. apt checks the signature of the index and the checksum of the
tarball against it; the checksum is handed on.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.engine.postgresql.apt_archives import (
    Archive,
    deb822_stanzas,
    is_ubuntu,
    own_archives,
    parse_deb822_sources,
    parse_one_line_sources,
    parse_os_release,
    suites_to_try,
)
from bedplate.engine.postgresql.origin import Fetched, SourceUnavailable
from bedplate.engine.postgresql.version import release_key
from bedplate.errors import CommandFailed
from bedplate.host.requirement import read_os_release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bedplate.engine.postgresql.version import AskedVersion
    from bedplate.host.command import Commands

_KEYRINGS = {
    False: Path("/usr/share/keyrings/debian-archive-keyring.gpg"),
    True: Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg"),
}
_UBUNTU_SERIES = Path("/usr/share/distro-info/ubuntu.csv")
_TIMEOUT_S = 300.0
# How apt says that a mirror cannot be reached at all (apt-pkg and its http method).
_UNREACHABLE = (
    *("Could not resolve", "Temporary failure resolving", "Could not connect", "Unable to connect"),
    *("Cannot initiate the connection", "Connection timed out", "Connection failed", "Something wicked"),
)


@dataclass(frozen=True)
class AptSystem:
    """What the machine's apt is configured with, as found; a test writes its own."""

    archives: tuple[Archive, ...]
    os_release: dict[str, str]
    distro_info: str
    keyring: Path | None


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


def read_apt_system(commands: Commands) -> AptSystem:
    """The machine's own configuration of apt; `SourceUnavailable` where there is no apt."""
    try:
        shown = commands.run(
            ["apt-config", "shell", "LIST", "Dir::Etc::sourcelist/f", "PARTS", "Dir::Etc::sourceparts/d"]
        )
    except CommandFailed as error:
        raise SourceUnavailable("this machine has no apt") from error
    words = dict(word.split("=", 1) for word in shlex.split(shown.stdout) if "=" in word)
    files = [Path(words.get("LIST", "/etc/apt/sources.list"))]
    files += sorted(Path(words.get("PARTS", "/etc/apt/sources.list.d")).glob("*"))
    archives: list[Archive] = []
    for path in files:
        # apt reads these two endings only; `.save` and `.distUpgrade` are left-overs.
        if path.suffix in (".list", ".sources") and path.is_file():
            parse = parse_deb822_sources if path.suffix == ".sources" else parse_one_line_sources
            archives += parse(path.read_text(encoding="utf-8", errors="replace"))
    release = parse_os_release(read_os_release())
    keyring = _KEYRINGS[is_ubuntu(release)]
    series = _UBUNTU_SERIES.read_text(encoding="utf-8") if _UBUNTU_SERIES.is_file() else ""
    return AptSystem(tuple(archives), release, series, keyring if keyring.is_file() else None)


def fetch_source_package(
    asked: AskedVersion,
    *,
    system: AptSystem,
    directory: Path,
    commands: Commands,
    progress: Callable[[str], None],
) -> Fetched:
    """Download the tarball of the source package `postgresql-<major>` into `directory`.

    Suites are added one at a time, as each costs the download of its index (about 10 MB).
    `SourceUnavailable` says what every suite had instead.
    """
    reasons: list[str] = []
    name = f"postgresql-{asked.major}"
    archives = own_archives(system.archives, system.os_release)
    if not archives:
        raise SourceUnavailable("apt's sources name no archive of this distribution's own suite")
    for number, archive in enumerate(archives):
        root = PrivateRoot(directory / f"root{number}", commands)
        for suite in suites_to_try(system.os_release, distro_info=system.distro_info):
            progress(f"looks for {name} in the distribution's {suite}")
            try:
                root.add(source_line(archive, suite, system))
                packages = root.packages(name)
                fitting = [item for item in packages if asked.accepts(item.upstream)]
                if not fitting:
                    has = ", ".join(item.version for item in packages) or "nothing of that name"
                    reasons.append(f"{suite} has {has}")
                    continue
                best = max(fitting, key=lambda item: release_key(item.upstream) or (0, 0))
                progress(f"fetches {name} {best.version} from the distribution's {suite}")
                tarball = root.download(name, best, directory)
            except CommandFailed as error:
                reasons.append(f"{suite}: {_apt_reason(error)}")
                if any(words in error.output for words in _UNREACHABLE):
                    # Its other suites are no nearer, and each would be waited for.
                    break
                continue
            return Fetched(tarball, best.upstream, f"{name} {best.version} ({suite})", best.tarball_sha256)
    raise SourceUnavailable("; ".join(dict.fromkeys(reasons)))


def source_line(archive: Archive, suite: str, system: AptSystem) -> str:
    """The one-line entry of `suite` on `archive`, for sources only.

    The distribution's own keyring comes before the key that the entry names: a stable suite's
    entry may name a key that does not sign the newer suites.
    """
    options = []
    key = str(system.keyring) if system.keyring is not None else archive.signed_by
    if key is not None:
        options.append(f"signed-by={key}")
    if archive.trusted:
        options.append("trusted=yes")
    if not archive.check_valid_until:
        options.append("check-valid-until=no")
    bracket = f"[{' '.join(options)}] " if options else ""
    components = "main universe" if is_ubuntu(system.os_release) else "main"
    return f"deb-src {bracket}{archive.uri} {suite} {components}"


class PrivateRoot:
    """An apt that knows only what it is told, in a folder of its own."""

    def __init__(self, directory: Path, commands: Commands) -> None:
        self._commands = commands
        self._lines: list[str] = []
        self._sources = directory / "sources.list"
        self._configuration = directory / "apt.conf"
        for part in ("state/lists/partial", "cache/archives/partial"):
            (directory / part).mkdir(parents=True, exist_ok=True)
        self._configuration.write_text(_configuration(directory, self._sources), encoding="utf-8")

    def add(self, line: str) -> None:
        """Read the index of one more suite; one that fails is forgotten again."""
        self._write([*self._lines, line])
        try:
            # Without the last option a mirror that cannot be reached is only a warning.
            self._run("apt-get", "update", "-o", "APT::Update::Error-Mode=any")
        except CommandFailed:
            self._write(self._lines)
            raise
        self._lines.append(line)

    def packages(self, name: str) -> tuple[SourcePackage, ...]:
        """All versions of the source package in the suites added so far."""
        shown = self._run("apt-cache", "showsrc", "--only-source", name, check=False)
        return parse_source_packages(shown, name)

    def download(self, name: str, package: SourcePackage, directory: Path) -> Path:
        """Fetch the tarball of exactly this version into `directory`; apt verifies its checksum."""
        self._run(
            "apt-get",
            "source",
            "--download-only",
            "--tar-only",
            f"{name}={package.version}",
            directory=directory,
        )
        return directory / package.tarball_name

    def _write(self, lines: Iterable[str]) -> None:
        self._sources.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def _run(self, tool: str, *words: str, check: bool = True, directory: Path | None = None) -> str:
        argv = [tool, "-q", "-c", str(self._configuration), *words]
        return self._commands.run(argv, timeout_s=_TIMEOUT_S, check=check, directory=directory).stdout


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


def _configuration(directory: Path, sources: Path) -> str:
    """apt.conf(5) for the private root, read after the machine's own.

    The hooks of the machine's apt are cleared, as they act on the machine; pins too, as they are
    meant for what is installed. Root fetches as root: apt's own account cannot write here.
    """
    return "\n".join(
        (
            "#clear APT::Update::Pre-Invoke;",
            "#clear APT::Update::Post-Invoke;",
            "#clear APT::Update::Post-Invoke-Success;",
            f'Dir::Etc::sourcelist "{sources}";',
            'Dir::Etc::sourceparts "-";',
            'Dir::Etc::preferences "-";',
            'Dir::Etc::preferencesparts "-";',
            f'Dir::State "{directory}/state";',
            f'Dir::State::lists "{directory}/state/lists";',
            'Dir::State::status "/var/lib/dpkg/status";',
            f'Dir::Cache "{directory}/cache";',
            'APT::Sandbox::User "root";',
            'Acquire::Languages "none";',
            'Acquire::Retries "1";',
            'Acquire::http::Timeout "30";',
            'Acquire::https::Timeout "30";',
            "",
        )
    )


def _apt_reason(error: CommandFailed) -> str:
    """What apt said in its first error line, without the command and the progress around it."""
    lines = [line.strip() for line in error.output.splitlines()]
    said = [line for line in lines if line.startswith("E:")] or [line for line in lines if "Err:" in line]
    return said[0].removeprefix("E:").strip() if said else error.reasons[0].splitlines()[0]
