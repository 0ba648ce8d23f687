"""The distribution's archives, read and fetched from beside the machine's own apt, which is never changed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bedplate.errors import CommandFailed, OutputNotUnderstood, RequirementMissing, VerifyFailed
from bedplate.host.cache import make_once, put_in_place
from bedplate.host.files import sha256_of
from bedplate.host.requirement import read_os_release

if TYPE_CHECKING:
    from bedplate.host.command import Commands

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


def _series_after(codename: str | None, distro_info: str) -> tuple[str, ...]:
    rows = [line.split(",") for line in distro_info.splitlines()[1:]]
    series = [row[2] for row in rows if len(row) > 2]
    return tuple(series[series.index(codename) + 1 :]) if codename in series else ()


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


def parse_source_packages(output: str, name: str) -> tuple[SourcePackage, ...]:
    """The stanzas of `apt-cache showsrc` that have an upstream tarball with a SHA-256 checksum."""
    packages = []
    for stanza in deb822_stanzas(output):
        if stanza.get("package") != name:
            continue
        for line in stanza.get("checksums-sha256", "").splitlines():
            words = line.split()
            if len(words) == 3 and ".orig.tar." in words[2] and not words[2].endswith(".asc"):
                packages.append(SourcePackage(stanza.get("version", ""), words[2], words[0]))
    return tuple(packages)


def parse_binary_packages(output: str) -> tuple[BinaryPackage, ...]:
    """The stanzas of `apt-cache show` that can be fetched, each name and version once.

    A stanza of the machine's own state has no file name: that version is in no index.
    """
    packages = []
    for stanza in deb822_stanzas(output):
        fields = [stanza.get(field, "") for field in ("package", "version", "architecture", "sha256")]
        if all(fields) and stanza.get("filename"):
            packages.append(BinaryPackage(*fields))
    return tuple(dict.fromkeys(packages))


def parse_installation(output: str) -> tuple[tuple[str, str], ...]:
    """Name and version of all that `apt-get --simulate install` would unpack, in its order."""
    return tuple(dict.fromkeys((found[1], found[2]) for found in _INSTALLED.finditer(output)))


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
    repository: PackageArchive,
    suite: str,
    system: AptSystem,
    *,
    kind: Literal["deb", "deb-src"],
    components: Sequence[str] = ("main",),
) -> str:
    """The one-line entry of `suite` on `repository`.

    The distribution's own keyring comes before the key that the entry names: a stable suite's
    entry may name a key that does not sign the newer suites. `components` are Debian's names;
    Ubuntu has all of what is free in `main universe`.
    """
    options = []
    key = str(system.keyring) if system.keyring is not None else repository.signed_by
    if key is not None:
        options.append(f"signed-by={key}")
    if repository.trusted:
        options.append("trusted=yes")
    if not repository.check_valid_until:
        options.append("check-valid-until=no")
    bracket = f"[{' '.join(options)}] " if options else ""
    words = "main universe" if is_ubuntu(system.os_release) else " ".join(components)
    return f"{kind} {bracket}{repository.uri} {suite} {words}"


class PrivateRoot:
    """An apt that knows only what it is told, in a folder of its own.

    `status` is the list of installed packages that dependencies are weighed against: the machine's,
    or None for a machine that has nothing.
    """

    def __init__(
        self, directory: Path, commands: Commands, *, status_file: Path | None = Path("/var/lib/dpkg/status")
    ) -> None:
        self._commands = commands
        self._lines: list[str] = []
        self._sources = directory / "sources.list"
        self._configuration = directory / "apt.conf"
        for part in ("state/lists/partial", "cache/archives/partial"):
            (directory / part).mkdir(parents=True, exist_ok=True)
        if status_file is None:
            status_file = directory / "status"
            status_file.touch()
        self._configuration.write_text(
            _configuration(directory, self._sources, status_file), encoding="utf-8"
        )

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


def _configuration(directory: Path, sources: Path, status_file: Path) -> str:
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
            f'Dir::State::status "{status_file}";',
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


_RECORD = "tree.json"

# Part of a tree's name: what is made of the same packages.
_FORM_VERSION = 1

_UNPACK_TIMEOUT_S = 600.0

# Folders of programs, those for root first, as in the system's own search path.
_PROGRAM_FOLDERS = ("usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin", "sbin", "bin")

_LIBRARY_FOLDERS = ("usr/lib", "lib")

# A program that is started with another C library than its own loader's crashes at once.
_C_LIBRARY = "libc6"


@dataclass(frozen=True)
class PackageTree:
    """Unpacked packages; `packages` maps each name to its version, `checksums` to its SHA-256."""

    root: Path
    packages: Mapping[str, str]
    checksums: Mapping[str, str]

    @property
    def digest(self) -> str:
        """SHA-256 over the checksums of all its packages, as hexadecimal."""
        content = "\n".join(f"{name} {self.checksums[name]}" for name in sorted(self.packages))
        return hashlib.sha256(content.encode()).hexdigest()

    def name_versions(self, names: Sequence[str]) -> str:
        """Those of its packages that have these names, with their versions: `postgresql-17 17.6-0+deb13u1`."""
        return ", ".join(f"{name} {self.packages[name]}" for name in names if name in self.packages)

    @property
    def path(self) -> tuple[Path, ...]:
        """Entries for the front of PATH: those folders of programs that the tree has."""
        return tuple(
            folder
            for name in _PROGRAM_FOLDERS
            if (folder := self.root / name).is_dir() and any(folder.iterdir())
        )

    @property
    def library_path(self) -> tuple[Path, ...]:
        """Entries for LD_LIBRARY_PATH: the folders of the loader's that hold shared libraries here."""
        tops = [self.root / name for name in _LIBRARY_FOLDERS]
        # usr/lib/x86_64-linux-gnu, where Debian has its libraries; programs know deeper folders themselves.
        folders = [folder for top in tops for folder in (top, *sorted(top.glob("*-linux-gnu*")))]
        return tuple(folder for folder in folders if any(folder.glob("*.so*")))

    @property
    def environment(self) -> Mapping[str, str]:
        """PATH (before the caller's own) and LD_LIBRARY_PATH, for `Commands.run(extra_environment=)`."""
        found = {"PATH": os.pathsep.join([*map(str, self.path), os.environ.get("PATH", os.defpath)])}
        if self.library_path:
            found["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, self.library_path))
        return found

    def program(self, name: str) -> Path | None:
        """The program `name` of the tree."""
        found = shutil.which(name, path=os.pathsep.join(map(str, self.path))) if self.path else None
        return Path(found) if found else None

    def demand_program(self, name: str) -> Path:
        """The program `name` of the tree; RequirementMissing where its packages have none."""
        found = self.program(name)
        if found is None:
            names = ", ".join(self.packages)
            raise RequirementMissing(f"the packages {names} were unpacked and have no program {name}")
        return found


@dataclass(frozen=True)
class _PackageRequest:
    """What decides a tree; its digest names it."""

    packages: tuple[str, ...]
    suite: str | None
    components: tuple[str, ...]
    with_dependencies: bool
    distribution: str
    architecture: str

    def folder(self, cache_directory: Path) -> Path:
        asked = json.dumps([_FORM_VERSION, asdict(self)], sort_keys=True)
        digest = hashlib.sha256(asked.encode()).hexdigest()
        return packages_directory(cache_directory) / f"{self.packages[0].partition('=')[0]}-{digest[:12]}"


def packages_directory(cache_directory: Path) -> Path:
    """Where the trees lie in a cache."""
    return cache_directory / "packages"


def find_package_tree(
    packages: Sequence[str],
    *,
    cache_directory: Path,
    suite: str | None = None,
    components: Sequence[str] = ("main",),
    with_dependencies: bool = True,
) -> PackageTree | None:
    """The tree that `ensure_package_tree` would answer with at once; needs no network."""
    asked = _package_request(packages, suite, components, with_dependencies=with_dependencies)
    return _read(asked.folder(cache_directory))


def ensure_package_tree(
    packages: Sequence[str],
    *,
    cache_directory: Path,
    commands: Commands,
    progress: Callable[[str], None],
    suite: str | None = None,
    components: Sequence[str] = ("main",),
    with_dependencies: bool = True,
) -> PackageTree:
    """These binary packages (`name` or `name=version`) unpacked in the cache, made now if it lacks them.

    They come from the machine's own suite with its updates, or, where `suite` names one more
    (`bookworm-backports`), from that one first. `components` are `main`, `contrib`, …
    `with_dependencies` adds what the machine lacks of their dependencies, as apt would install it.
    RequirementMissing says what apt said, and the way out.
    """
    asked = _package_request(packages, suite, components, with_dependencies=with_dependencies)
    folder = asked.folder(cache_directory)
    try:
        return make_once(
            folder,
            lambda: _read(folder),
            lambda place: _make(asked, folder, place, commands=commands, progress=progress),
            on_wait=lambda: progress("waits for another start of bedplate"),
        )
    except CommandFailed as error:
        raise _unavailable(asked, apt_reason(error)) from error


def unpack_packages(
    root: PrivateRoot, packages: Sequence[BinaryPackage], *, work: Path, target: Path, commands: Commands
) -> None:
    """Download into a folder of `work`, hold every checksum against the index, unpack into `target`.

    CommandFailed with the tool's words; VerifyFailed for a file that is not what the index promises.
    """
    downloads = work / "downloads"
    downloads.mkdir()
    target.mkdir(exist_ok=True)
    files = root.download(packages, downloads)
    for package, file in zip(packages, files, strict=True):
        found = sha256_of(file)
        if found != package.sha256:
            raise VerifyFailed(f"{file.name} has the checksum {found}, the index promises {package.sha256}")
        commands.run(["dpkg-deb", "--extract", str(file), str(target)], timeout_s=_UNPACK_TIMEOUT_S)
        file.unlink()
    _keep_links_inside(target)


def _keep_links_inside(root: Path) -> None:
    """Make absolute links relative where their target is in the tree: /sbin/depmod names /bin/kmod."""
    for folder, folders, files in os.walk(root):
        for link in (Path(folder, name) for name in (*folders, *files)):
            if not link.is_symlink() or not link.readlink().is_absolute():
                continue
            inside = root / link.readlink().relative_to("/")
            if inside.exists() or inside.is_symlink():
                link.unlink()
                link.symlink_to(os.path.relpath(inside, link.parent))


def _package_request(
    packages: Sequence[str], suite: str | None, components: Sequence[str], *, with_dependencies: bool
) -> _PackageRequest:
    if not packages or any(not name or name.startswith("-") for name in packages):
        raise ValueError(f"not a list of packages: {packages!r}")
    release = parse_os_release(read_os_release())
    return _PackageRequest(
        packages=tuple(sorted(packages)),
        suite=suite,
        components=tuple(components),
        with_dependencies=with_dependencies,
        distribution=f"{release.get('ID', '')} {code_name(release) or release.get('VERSION_ID', '')}",
        architecture=os.uname().machine,
    )


def _make(
    package_request: _PackageRequest,
    folder: Path,
    place: Path,
    *,
    commands: Commands,
    progress: Callable[[str], None],
) -> PackageTree:
    names = " ".join(package_request.packages)
    # A name of its own: an apt that outlived a killed start finds its folder gone, and not this one.
    work = Path(tempfile.mkdtemp(dir=place))
    root = PrivateRoot(work / "apt", commands)
    _add_suites(root, package_request, read_apt_system(commands), progress)
    if package_request.with_dependencies:
        packages = root.installation(package_request.packages, preferred_suite=package_request.suite)
    else:
        packages = root.binary_packages(package_request.packages, preferred_suite=package_request.suite)
    there = {name for item in packages for name in (item.name, f"{item.name}={item.version}")}
    lacking = [name for name in package_request.packages if name not in there]
    if lacking:
        raise _unavailable(package_request, f"the archive has no package {', '.join(lacking)}")
    if any(item.name == _C_LIBRARY for item in packages):
        raise _unavailable(
            package_request, f"they need a newer C library ({_C_LIBRARY}) than this machine has"
        )
    progress(f"fetches {names}: {len(packages)} packages")
    fresh = work / "tree"
    fresh.mkdir(mode=0o755)
    unpack_packages(root, packages, work=work, target=fresh / "root", commands=commands)
    versions = {item.name: item.version for item in packages}
    checksums = {item.name: item.sha256 for item in packages}
    record = {"asked": asdict(package_request), "packages": versions, "checksums": checksums}
    (fresh / _RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    put_in_place(fresh, folder)
    return PackageTree(folder / "root", versions, checksums)


def _add_suites(
    root: PrivateRoot, package_request: _PackageRequest, system: AptSystem, progress: Callable[[str], None]
) -> None:
    """Everything that the machine itself would install from, and the suite that was asked for."""
    archives = own_archives(system.archives, system.os_release)
    own = code_name(system.os_release)
    if not archives:
        raise _unavailable(package_request, "apt's sources name no archive of this distribution's own suite")
    main, reasons = archives[0], []
    security = security_archives(system.archives)
    wanted = [(main, own or main.suite, True), (main, f"{own}-updates", False)]
    wanted += [(item, f"{own}-security", False) for item in security]
    if package_request.suite is not None:
        is_security = package_request.suite.endswith("-security") and security
        wanted.append((security[0] if is_security else main, package_request.suite, True))
    lines = {
        suite: source_line(archive, suite, system, kind="deb", components=package_request.components)
        for archive, suite, _ in wanted
    }
    progress(f"reads the distribution's {', '.join(lines)}")
    with contextlib.suppress(CommandFailed):
        root.add(*lines.values())
        return
    # One of them is not there: not every distribution has every suite.
    for _, suite, needed in wanted:
        try:
            root.add(lines[suite])
        except CommandFailed as error:
            reasons.append(f"{suite}: {apt_reason(error)}")
            if needed or is_unreachable(error):
                raise _unavailable(package_request, *reasons) from error


def _unavailable(package_request: _PackageRequest, *reasons: str) -> RequirementMissing:
    names = " ".join(package_request.packages)
    return RequirementMissing(
        *(f"{names}: {reason}" for reason in reasons),
        f"install them by hand ({names}), or start bedplate where the distribution's mirror can be reached",
    )


def _read(folder: Path) -> PackageTree | None:
    try:
        text = (folder / _RECORD).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        fields = json.loads(text)
        return PackageTree(folder / "root", dict(fields["packages"]), dict(fields["checksums"]))
    except (ValueError, TypeError, KeyError) as error:
        raise OutputNotUnderstood(
            str(folder / _RECORD),
            expected="the record of a tree (remove its folder to fetch it again)",
            found=text,
        ) from error
