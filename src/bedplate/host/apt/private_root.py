"""An apt beside the machine's own: it reads the same mirrors and changes nothing of the machine.

A private apt root (lists, cache, sources) lies in a folder of our own, so nothing of the machine's
package state is read for writing or changed, and no root is needed. The mirror, its key and the
proxy settings are the machine's. apt checks the signature of an index, and the checksum of what it
downloads against it.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bedplate.errors import CommandFailed, RequirementMissing
from bedplate.host.apt.archives import (
    PackageArchive,
    is_ubuntu,
    parse_deb822_sources,
    parse_one_line_sources,
    parse_os_release,
)
from bedplate.host.apt.packages import (
    BinaryPackage,
    SourcePackage,
    parse_binary_packages,
    parse_installation,
    parse_source_packages,
)
from bedplate.host.requirement import read_os_release

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bedplate.host.command import Commands

_KEYRINGS = {
    False: Path("/usr/share/keyrings/debian-archive-keyring.gpg"),
    True: Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg"),
}
_UBUNTU_SERIES = Path("/usr/share/distro-info/ubuntu.csv")
_TIMEOUT_S = 600.0
# How apt says that a mirror cannot be reached at all (apt-pkg and its http method).
_UNREACHABLE = (
    *("Could not resolve", "Temporary failure resolving", "Could not connect", "Unable to connect"),
    *("Cannot initiate the connection", "Connection timed out", "Connection failed", "Something wicked"),
)
# Indexes for desktops, which other packages of the machine ask apt to fetch as well.
_OTHER_INDEXES = ("DEP-11", "DEP-11-icons", "DEP-11-icons-small", "DEP-11-icons-hidpi", "CNF", "Contents-deb")


@dataclass(frozen=True)
class AptSystem:
    """What the machine's apt is configured with, as found; a test writes its own."""

    archives: tuple[PackageArchive, ...]
    os_release: dict[str, str]
    distro_info: str
    keyring: Path | None


def read_apt_system(commands: Commands) -> AptSystem:
    """The machine's own configuration of apt; RequirementMissing where there is no apt."""
    try:
        shown = commands.run(
            ["apt-config", "shell", "LIST", "Dir::Etc::sourcelist/f", "PARTS", "Dir::Etc::sourceparts/d"]
        )
    except CommandFailed as error:
        raise RequirementMissing("this machine has no apt") from error
    words = dict(word.split("=", 1) for word in shlex.split(shown.stdout) if "=" in word)
    files = [Path(words.get("LIST", "/etc/apt/sources.list"))]
    files += sorted(Path(words.get("PARTS", "/etc/apt/sources.list.d")).glob("*"))
    archives: list[PackageArchive] = []
    for path in files:
        # apt reads these two endings only; `.save` and `.distUpgrade` are left-overs.
        if path.suffix in (".list", ".sources") and path.is_file():
            parse = parse_deb822_sources if path.suffix == ".sources" else parse_one_line_sources
            archives += parse(path.read_text(encoding="utf-8", errors="replace"))
    release = parse_os_release(read_os_release())
    keyring = _KEYRINGS[is_ubuntu(release)]
    series = _UBUNTU_SERIES.read_text(encoding="utf-8") if _UBUNTU_SERIES.is_file() else ""
    return AptSystem(tuple(archives), release, series, keyring if keyring.is_file() else None)


def source_line(
    archive: PackageArchive,
    suite: str,
    system: AptSystem,
    *,
    kind: Literal["deb", "deb-src"],
    components: Sequence[str] = ("main",),
) -> str:
    """The one-line entry of `suite` on `archive`.

    The distribution's own keyring comes before the key that the entry names: a stable suite's
    entry may name a key that does not sign the newer suites. `components` are Debian's names;
    Ubuntu has all of what is free in `main universe`.
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
    words = "main universe" if is_ubuntu(system.os_release) else " ".join(components)
    return f"{kind} {bracket}{archive.uri} {suite} {words}"


class PrivateRoot:
    """An apt that knows only what it is told, in a folder of its own.

    `status` is the list of installed packages that dependencies are weighed against: the machine's,
    or None for a machine that has nothing.
    """

    def __init__(
        self, directory: Path, commands: Commands, *, status: Path | None = Path("/var/lib/dpkg/status")
    ) -> None:
        self._commands = commands
        self._lines: list[str] = []
        self._sources = directory / "sources.list"
        self._configuration = directory / "apt.conf"
        for part in ("state/lists/partial", "cache/archives/partial"):
            (directory / part).mkdir(parents=True, exist_ok=True)
        if status is None:
            status = directory / "status"
            status.touch()
        self._configuration.write_text(_configuration(directory, self._sources, status), encoding="utf-8")

    def add(self, *lines: str) -> None:
        """Read the index of one more suite, or of several at once; those that fail are forgotten again."""
        self._write([*self._lines, *lines])
        try:
            # Without the last option a mirror that cannot be reached is only a warning.
            self._run("apt-get", "update", "-o", "APT::Update::Error-Mode=any")
        except CommandFailed:
            self._write(self._lines)
            raise
        self._lines += lines

    def source_packages(self, name: str) -> tuple[SourcePackage, ...]:
        """All versions of the source package in the suites added so far."""
        shown = self._run("apt-cache", "showsrc", "--only-source", name, check=False)
        return parse_source_packages(shown, name)

    def download_source(self, name: str, package: SourcePackage, directory: Path) -> Path:
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

    def names(self, beginning: str) -> tuple[str, ...]:
        """Names of packages that begin so; some may be named by others only, and not be there."""
        return tuple(sorted(self._run("apt-cache", "pkgnames", beginning).split()))

    def binary_packages(
        self, names: Sequence[str], *, preferred_suite: str | None = None
    ) -> tuple[BinaryPackage, ...]:
        """Those of `names` (or `name=version`) that are there, in the version that apt would install."""
        if not names:
            return ()
        shown = self._run(
            "apt-cache", *_preferring(preferred_suite), "show", "--no-all-versions", "--", *names, check=False
        )
        return parse_binary_packages(shown)

    def installation(
        self, names: Sequence[str], *, preferred_suite: str | None = None
    ) -> tuple[BinaryPackage, ...]:
        """What an installation of `names` would unpack on this machine: they, and what they lack.

        CommandFailed where apt finds no way, with its own words.
        """
        argv = ("apt-get", *_preferring(preferred_suite), "--simulate", "--no-install-recommends")
        # A package that is asked for is unpacked, installed or not.
        shown = self._run(*argv, "--allow-downgrades", "--reinstall", "install", "--", *names)
        return self.binary_packages([f"{name}={version}" for name, version in parse_installation(shown)])

    def download(self, packages: Sequence[BinaryPackage], directory: Path) -> tuple[Path, ...]:
        """Fetch exactly these into `directory`, which is empty; apt verifies their checksums."""
        words = [f"{item.name}:{item.architecture}={item.version}" for item in packages]
        words = [word.replace(":all=", "=") for word in words]
        self._run("apt-get", "download", "--", *words, directory=directory)
        return tuple(directory / item.downloaded_name for item in packages)

    def _write(self, lines: Iterable[str]) -> None:
        self._sources.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def _run(self, tool: str, *words: str, check: bool = True, directory: Path | None = None) -> str:
        argv = [tool, "-q", "-c", str(self._configuration), *words]
        return self._commands.run(argv, timeout_s=_TIMEOUT_S, check=check, directory=directory).stdout


def is_unreachable(error: CommandFailed) -> bool:
    """Whether apt could not reach the mirror at all, so that its other suites need not be tried."""
    return any(words in error.output for words in _UNREACHABLE)


def apt_reason(error: CommandFailed) -> str:
    """What apt said in its first error line, without the command and the progress around it."""
    lines = [line.strip() for line in error.output.splitlines()]
    said = [line for line in lines if line.startswith("E:")] or [line for line in lines if "Err:" in line]
    return said[0].removeprefix("E:").strip() if said else error.reasons[0].splitlines()[0]


def _preferring(suite: str | None) -> tuple[str, ...]:
    return () if suite is None else ("-o", f"APT::Default-Release={suite}")


def _configuration(directory: Path, sources: Path, status: Path) -> str:
    """apt.conf(5) for the private root, read after the machine's own.

    The hooks of the machine's apt are cleared, as they act on the machine; pins too, as they are
    meant for what is installed. Root fetches as root: apt's own account cannot write here.
    """
    return "\n".join(
        (
            "#clear APT::Update::Pre-Invoke;",
            "#clear APT::Update::Post-Invoke;",
            "#clear APT::Update::Post-Invoke-Success;",
            "#clear APT::Default-Release;",
            f'Dir::Etc::sourcelist "{sources}";',
            'Dir::Etc::sourceparts "-";',
            'Dir::Etc::preferences "-";',
            'Dir::Etc::preferencesparts "-";',
            f'Dir::State "{directory}/state";',
            f'Dir::State::lists "{directory}/state/lists";',
            f'Dir::State::status "{status}";',
            f'Dir::Cache "{directory}/cache";',
            'APT::Sandbox::User "root";',
            'Acquire::Languages "none";',
            *(f'Acquire::IndexTargets::deb::{name}::DefaultEnabled "false";' for name in _OTHER_INDEXES),
            'Acquire::Retries "1";',
            'Acquire::http::Timeout "30";',
            'Acquire::https::Timeout "30";',
            "",
        )
    )
