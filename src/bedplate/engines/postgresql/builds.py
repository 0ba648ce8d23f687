"""PostgreSQL's sources and its builds, one for each block size: found, unpacked, compiled, kept in the cache and recorded."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from bedplate.engines.postgresql.versions import (
    DEFAULT_VERSION,
    AskedVersion,
    libraries,
    major_of,
    parse_version,
    release_key,
)
from bedplate.errors import (
    BedplateError,
    BuildFailed,
    CommandFailed,
    OutputNotUnderstood,
    PlanError,
    RequirementMissing,
    VerifyFailed,
)
from bedplate.host.apt import (
    AptSystem,
    PrivateRoot,
    apt_reason,
    is_unreachable,
    own_archives,
    read_apt_system,
    source_line,
    suites_to_try,
)
from bedplate.host.cache import make_once, put_in_place
from bedplate.host.command import Account, Commands, Completed
from bedplate.host.files import bytes_below, open_to_all, require_traversable, sha256_of
from bedplate.host.git import apply_named, give, write_tree
from bedplate.host.native_driver import (
    BuildProgress,
    build_clock,
    build_failure,
    compiler_requirements,
    count_objects,
    watched,
)
from bedplate.host.requirement import Need, Requirement, demand, find_tool, look, missing
from bedplate.host.shut_in import build_command, builder_account, own_alone
from bedplate.host.tarball import first_name, unpack
from bedplate.model.cell import BuildLevels, PlanSources, SourceTree, commit_digits, patch_digits
from bedplate.model.visit import EngineBuild
from bedplate.units import KIB, MIB, format_size


class SourceUnavailable(Exception):
    """One way did not lead to the source; the message is the reason, collected with the others'."""


@dataclass(frozen=True)
class Fetched:
    """A tarball that was found: `promised_sha256` is what its origin says, None if it says nothing."""

    tarball: Path
    version: str
    detail: str
    promised_sha256: str | None


BLOCK_SIZES_BYTES = tuple(KIB << power for power in range(6))
WAL_BLOCK_SIZES_BYTES = tuple(KIB << power for power in range(7))
STAMP = "build.json"

_STAMP_FORMAT = 1


@dataclass(frozen=True)
class BuildSpec:
    """What is asked for. `version` may leave the minor open ("18"); `tarball` is an own source.

    `source_commit` is the level of a commit, whose version `version` is then; `patches` are levels of patches, in order.

    `PlanError` names every size that PostgreSQL cannot be compiled with. The segment size stays
    PostgreSQL's 1 GiB.
    """

    version: str = DEFAULT_VERSION
    block_size_bytes: int = 8 * KIB
    wal_block_size_bytes: int = 8 * KIB
    tarball: Path | None = None
    source_commit: str | None = None
    patches: tuple[str, ...] = ()

    @classmethod
    def of(cls, build_levels: BuildLevels, tarball: Path | None = None) -> BuildSpec:
        """What a cell asks for."""
        return cls(
            version=build_levels.version,
            block_size_bytes=build_levels.block_size_bytes,
            wal_block_size_bytes=build_levels.wal_block_size_bytes,
            tarball=tarball,
            source_commit=build_levels.source_commit,
            patches=build_levels.patches,
        )

    @property
    def is_own(self) -> bool:
        """Whether somebody's own source is built, in part or whole."""
        return self.source_commit is not None or bool(self.patches)

    @property
    def words(self) -> str:
        """`PostgreSQL 19devel, commit 0123456789ab Faster, with v3-0001-x.patch 89abcdef0123`."""
        commit = [] if self.source_commit is None else [f"commit {self.source_commit}"]
        patches = [f"with {' and '.join(self.patches)}"] if self.patches else []
        return ", ".join([f"PostgreSQL {self.version}", *commit, *patches])

    def __post_init__(self) -> None:
        reasons: list[str] = []
        try:
            if self.source_commit is None:
                parse_version(self.version)
        except PlanError as error:
            reasons += error.reasons
        for name, size_bytes, allowed in (
            ("block size", self.block_size_bytes, BLOCK_SIZES_BYTES),
            ("WAL block size", self.wal_block_size_bytes, WAL_BLOCK_SIZES_BYTES),
        ):
            if size_bytes not in allowed:
                reasons.append(
                    f"a {name} of {size_bytes} bytes cannot be compiled into PostgreSQL; allowed are "
                    + ", ".join(format_size(item) for item in allowed)
                )
        if reasons:
            raise PlanError(*reasons)


@dataclass(frozen=True)
class BuildIdentity:
    """Everything that decides what comes out of the compiler; its digest is the key of the cache."""

    version: str
    block_size_bytes: int
    wal_block_size_bytes: int
    tarball_sha256: str
    compiler: str
    machine: str
    configure_options: tuple[str, ...]
    recipe_version: int
    commit_digits: str = ""
    patch_digits: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 over all fields, as hexadecimal; the place of the build is no part of it."""
        # Of a release it is what it was before there were commits.
        own = (
            {}
            if self.commit_digits or self.patch_digits
            else dict.fromkeys(("commit_digits", "patch_digits"))
        )
        text = json.dumps(
            {name: value for name, value in asdict(self).items() if name not in own}, sort_keys=True
        )
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def folder_name(self) -> str:
        """`postgresql-18.6-block8k-wal8k-0123456789ab`.

        The name holds "postgres" on purpose: where the prefix does not, PostgreSQL's configure
        appends another folder to share, lib and include.
        """
        block, wal = self.block_size_bytes // KIB, self.wal_block_size_bytes // KIB
        commit = f"-{self.commit_digits}" if self.commit_digits else ""
        return f"postgresql-{self.version}{commit}-block{block}k-wal{wal}k-{self.digest[:12]}"


@dataclass(frozen=True)
class Build:
    """A finished build: programs in `prefix`/bin, readable by every account.

    `compiler` is the first line of `cc --version`; `build_seconds` is wall time of configure,
    compile and install, `build_cpu_seconds` the CPU time of their processes. `commit` is the full hash of one that was built, and
    `patches` are the levels of what was applied.
    """

    prefix: Path
    version: str
    block_size_bytes: int
    wal_block_size_bytes: int
    tarball_sha256: str
    source_origin: str
    compiler: str
    machine: str
    configure_options: tuple[str, ...]
    digest: str
    build_seconds: float
    build_cpu_seconds: float
    commit: str | None = None
    commit_digits: str = ""
    patches: tuple[str, ...] = ()

    def program(self, name: str) -> Path:
        """The path of `postgres`, `initdb`, `pgbench` and the others."""
        return self.prefix / "bin" / name

    @property
    def for_visit(self) -> EngineBuild:
        """The part of it that a visit is handed."""
        return EngineBuild(
            prefix=str(self.prefix),
            version=self.version,
            block_size_bytes=self.block_size_bytes,
            wal_block_size_bytes=self.wal_block_size_bytes,
            source_sha256=self.tarball_sha256,
            source_origin=self.source_origin,
            compiler=self.compiler,
            configure_options=self.configure_options,
            digest=self.digest,
            commit=self.commit,
            patches=self.patches,
        )


def stamp_text(build: Build) -> str:
    """The text of the stamp of a finished build."""
    fields = {"format": _STAMP_FORMAT, **asdict(build), "prefix": str(build.prefix)}
    return json.dumps(fields, indent=1) + "\n"


def read_build(prefix: Path) -> Build | None:
    """The finished build at `prefix`; None when there is none, or one that is not whole.

    A build that was moved is not finished either: its libraries are found by absolute paths.
    """
    try:
        fields = json.loads((prefix / STAMP).read_text(encoding="utf-8"))
        if fields.pop("format") != _STAMP_FORMAT or fields["prefix"] != str(prefix):
            return None
        lists = {name: tuple(fields[name]) for name in ("configure_options", "patches") if name in fields}
        build = Build(**{**fields, "prefix": prefix, **lists})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return build if build.program("postgres").is_file() else None


Origin = Literal["given tarball", "cache", "distribution", "official"]

_RECORD = "source.json"

# Of postgresql-X.Y.tar.bz2, as www.postgresql.org publishes them beside the tarballs.
_KNOWN_SHA256 = {
    "15.18": "11df0df97fe3ea4ba9a791faaf39cee1d2fe571e78885b5b55d8517d27c323b4",
    "16.15": "c1575341fa7bd40f5274ea465b34390f4dc64cdd0770af327005caaeb9f6b7ed",
    "17.11": "dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979",
    "18.3": "d95663fbbf3a80f81a9d98d895266bdcb74ba274bcc04ef6d76630a72dee016f",
    "18.6": "555610c24d53e4316da5b7d3fc25c279d96856d5e0e23ee308c328c5fa881d9f",
}


@dataclass(frozen=True)
class Source:
    """One release's tarball in the cache.

    `version` is exact ("18.6"); `origin_detail` is a file, a package with its version, or a URL;
    of the origin "cache" it says where the tarball had come from.
    """

    version: str
    tarball: Path
    tarball_sha256: str
    origin: Origin
    origin_detail: str

    @property
    def first_origin(self) -> str:
        """Where the tarball came from before it was in the cache: `distribution: postgresql-18 18.6-3 …`."""
        return self.origin_detail if self.origin == "cache" else f"{self.origin}: {self.origin_detail}"

    @property
    def is_strangers(self) -> bool:
        """Whether nobody vouches for it: a person gave the tarball, and its checksum is not known."""
        return self.first_origin.startswith("given tarball") and self.version not in _KNOWN_SHA256

    @property
    def refusal(self) -> str | None:
        """Why it is not the release that it says it is; None for one whose checksum is right, or not known."""
        known = _KNOWN_SHA256.get(self.version)
        if known in (None, self.tarball_sha256):
            return None
        return (
            f"{self.tarball} is not PostgreSQL {self.version} as it was released: its SHA-256 is {self.tarball_sha256}, and that of "
            f"postgresql-{self.version}.tar.bz2 is {known}"
        )


def sources_directory(cache_directory: Path) -> Path:
    """Where the sources lie in a cache."""
    return cache_directory / "sources"


def keep(release: Source, cache_directory: Path) -> Source:
    """Copy the tarball, whose checksum the caller has verified, into the cache; the answer names the copy."""
    name = f"postgresql-{release.version}"
    folder = sources_directory(cache_directory) / f"{name}-{release.tarball_sha256[:12]}"
    suffix = "".join(part for part in release.tarball.suffixes if part in (".tar", ".bz2", ".gz", ".xz"))
    kept = replace(release, tarball=folder / f"{name}{suffix}")

    def make(work: Path) -> Source:
        shutil.copyfile(release.tarball, work / kept.tarball.name)
        record = {**asdict(kept), "tarball": kept.tarball.name}
        (work / _RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        put_in_place(work, folder)
        return kept

    return make_once(folder, lambda: kept if (folder / _RECORD).exists() else None, make)


def find(release: AskedVersion, cache_directory: Path) -> Source | None:
    """The newest fitting source in the cache, origin "cache".

    Between tarballs of the same release one that a person gave stands last: it may be patched, and
    whoever gave it can give it again.
    """
    found = []
    for record in sorted(sources_directory(cache_directory).glob(f"postgresql-{release.major}.*/{_RECORD}")):
        source = _read(record)
        if release.accepts(source.version) and source.tarball.is_file() and source.refusal is None:
            found.append(source)
    if not found:
        return None
    best = max(found, key=lambda item: (release_key(item.version) or (0, 0), item.origin != "given tarball"))
    return replace(best, origin="cache", origin_detail=best.first_origin)


def _read(path: Path) -> Source:
    text = path.read_text(encoding="utf-8")
    try:
        fields = json.loads(text)
        return Source(**{**fields, "tarball": path.parent / fields["tarball"]})
    except (ValueError, TypeError, KeyError) as error:
        raise OutputNotUnderstood(
            str(path), expected="the record of a source (remove its folder to fetch it again)", found=text
        ) from error


def unpacked_tree(release: Source, *, progress: Callable[[str], None]) -> Path:
    """The folder of the unpacked source; unpacks it once, after checking the tarball again.

    Builds never write here: PostgreSQL builds out of tree.
    """
    tree = release.tarball.parent / "tree"

    def make(fresh: Path) -> Path:
        found = sha256_of(release.tarball)
        if found != release.tarball_sha256:
            raise OutputNotUnderstood(
                str(release.tarball),
                expected=f"SHA-256 {release.tarball_sha256}",
                found=f"{found}; remove its folder",
            )
        progress(f"unpacks {release.tarball.name}")
        try:
            unpack(release.tarball, fresh)
        except (OSError, ValueError) as error:
            raise BuildFailed(f"{release.tarball} is not unpacked: {error}") from None
        open_to_all(fresh)
        put_in_place(fresh, tree)
        return tree

    return make_once(
        tree,
        lambda: tree if tree.is_dir() else None,
        make,
        on_wait=lambda: progress("waits for another start of bedplate"),
    )


OFFICIAL_SITE = "https://ftp.postgresql.org/pub/source"

_TIMEOUT_S = 60.0
_RELEASE_FOLDER = re.compile(r"""href=["']?(?:[^"'>]*/)?v(\d+)\.(\d+)/""")
_SHA256 = re.compile(r"\b([0-9a-f]{64})\b")
_PIECE_BYTES = 1 << 20


def fetch_official_tarball(
    release: AskedVersion, *, directory: Path, progress: Callable[[str], None], base_url: str = OFFICIAL_SITE
) -> Fetched:
    """Download `postgresql-X.Y.tar.bz2` into `directory`; `SourceUnavailable` says why not.

    For a major version the site's list of releases is read first and its newest minor taken.
    """
    try:
        version = str(release)
        if release.minor is None:
            progress(f"asks {base_url} for the newest {release.major}")
            version = newest_release(_text(f"{base_url}/"), release)
        url = f"{base_url}/v{version}/postgresql-{version}.tar.bz2"
        promised = _SHA256.search(_text(f"{url}.sha256"))
        if promised is None:
            raise SourceUnavailable(f"{url}.sha256 holds no checksum")
        progress(f"fetches {url}")
        tarball = directory / f"postgresql-{version}.tar.bz2"
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer, tarball.open("wb") as file:  # noqa: S310
            while piece := answer.read(_PIECE_BYTES):
                file.write(piece)
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise SourceUnavailable(f"{base_url}: {reason}") from error
    return Fetched(tarball, version, url, promised[1])


def newest_release(listing: str, release: AskedVersion) -> str:
    """The newest minor of `asked.major` in the site's directory listing (HTML)."""
    minors = [int(found[2]) for found in _RELEASE_FOLDER.finditer(listing) if int(found[1]) == release.major]
    if not minors:
        raise SourceUnavailable(f"the list of releases has no {release.major}")
    return f"{release.major}.{max(minors)}"


def _text(url: str) -> str:
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - a fixed https address
        body: bytes = answer.read()
    return body.decode("utf-8", "replace")


_COPY_TIMEOUT_S = 600.0


def write_source(
    folder: Path,
    spec: BuildSpec,
    sources: PlanSources,
    *,
    base_tree: Path | None,
    account: Account | None,
    commands: Commands,
) -> None:
    """Write the source of `spec` into `folder`, which is made: its commit, else the unpacked `base_tree`, and its patches.

    BuildFailed names the patch that does not apply, with git's own words, or what of the tree cannot be read. RequirementMissing
    where the plan does not say where its tree is.
    """
    if spec.source_commit is not None:
        tree = sources.trees.get(spec.source_commit)
        if tree is None:
            raise RequirementMissing(f"the plan does not say where commit {spec.source_commit} is")
        write_tree(folder, tree, account=account, commands=commands)
    else:
        assert base_tree is not None  # noqa: S101 -- the caller unpacked it
        commands.run(["cp", "-a", "--reflink=auto", str(base_tree), str(folder)], timeout_s=_COPY_TIMEOUT_S)
        give(folder, account)
    for level in spec.patches:
        if level not in sources.patches:
            raise RequirementMissing(f"the plan does not have the patch {level}")
        apply_named(f"patch {level}", sources.patches[level], folder, account=account, commands=commands)


def fetch_source_package(
    release: AskedVersion,
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
    name = f"postgresql-{release.major}"
    archives = own_archives(system.archives, system.os_release)
    if not archives:
        raise SourceUnavailable("apt's sources name no archive of this distribution's own suite")
    for number, archive in enumerate(archives):
        root = PrivateRoot(directory / f"root{number}", commands)
        for suite in suites_to_try(system.os_release, distro_info=system.distro_info):
            progress(f"looks for {name} in the distribution's {suite}")
            try:
                root.add(source_line(archive, suite, system, kind="deb-src"))
                packages = root.source_packages(name)
                fitting = [item for item in packages if release.accepts(item.upstream)]
                if not fitting:
                    has = ", ".join(item.version for item in packages) or "nothing of that name"
                    reasons.append(f"{suite} has {has}")
                    continue
                best = max(fitting, key=lambda item: release_key(item.upstream) or (0, 0))
                progress(f"fetches {name} {best.version} from the distribution's {suite}")
                tarball = root.download_source(name, best, directory)
            except CommandFailed as error:
                reasons.append(f"{suite}: {apt_reason(error)}")
                if is_unreachable(error):
                    # Its other suites are no nearer, and each would be waited for.
                    break
                continue
            return Fetched(tarball, best.upstream, f"{name} {best.version} ({suite})", best.tarball_sha256)
    raise SourceUnavailable("; ".join(dict.fromkeys(reasons)))


# Whoever fetches one holds the lock of this name: which release it comes to is known only when it is there.
_FETCHED = "fetched"

_TOP_FOLDER = re.compile(r"(?:\./)?postgresql-(\d+\.\d+)(?:/|$)")


def ensure_source(
    version: str,
    *,
    cache_directory: Path,
    commands: Commands,
    tarball: Path | None = None,
    progress: Callable[[str], None],
) -> Source:
    """The source of `version` ("18" or "18.6"), in the cache afterwards.

    Tried in this order: `tarball`, the cache, the distribution's source package, the official
    tarball. "18" is content with whatever 18 the cache has, so that a study begun stays on its
    release; ask for an exact release to change it. `RequirementMissing` lists every way tried.
    """
    asked = parse_version(version)
    if tarball is not None:
        return keep(given_source(tarball, asked), cache_directory)

    def make(place: Path) -> Source:
        # A name of its own: an apt that outlived a killed start finds its folder gone, and not this one.
        directory = Path(tempfile.mkdtemp(dir=place))
        return keep(_fetch(asked, directory=directory, commands=commands, progress=progress), cache_directory)

    return make_once(
        sources_directory(cache_directory) / _FETCHED,
        lambda: find(asked, cache_directory),
        make,
        on_wait=lambda: progress("waits for another start of bedplate"),
    )


def _fetch(
    release: AskedVersion, *, directory: Path, commands: Commands, progress: Callable[[str], None]
) -> Source:
    def from_distribution() -> Fetched:
        try:
            system = read_apt_system(commands)
        except RequirementMissing as error:
            raise SourceUnavailable(error.reasons[0]) from error
        return fetch_source_package(
            release, system=system, directory=directory, commands=commands, progress=progress
        )

    def from_official_site() -> Fetched:
        return fetch_official_tarball(release, directory=directory, progress=progress)

    ways: tuple[tuple[Origin, Callable[[], Fetched]], ...] = (
        ("distribution", from_distribution),
        ("official", from_official_site),
    )
    reasons = [f"no source of PostgreSQL {release} was given, and the cache has none"]
    for origin, way in ways:
        try:
            return _verified(way(), origin)
        except SourceUnavailable as error:
            reasons.append(f"{_NAMES[origin]}: {error}")
    raise RequirementMissing(
        *reasons,
        f"give a tarball: fetch postgresql-{release if release.minor is not None else f'{release}.x'}.tar.bz2 from "
        f"www.postgresql.org/ftp/source on a machine with a network and name the file (--tarball FILE)",
    )


_NAMES: dict[Origin, str] = {
    "distribution": "the distribution's source package",
    "official": "the official tarball",
}


def _verified(fetched: Fetched, origin: Origin) -> Source:
    found = sha256_of(fetched.tarball)
    if fetched.promised_sha256 not in (None, found):
        raise SourceUnavailable(
            f"{fetched.detail} has the checksum {found}, its origin promises {fetched.promised_sha256}"
        )
    source = Source(fetched.version, fetched.tarball, found, origin, fetched.detail)
    if source.refusal is not None:
        raise SourceUnavailable(source.refusal)
    return source


def given_source(tarball: Path, release: AskedVersion) -> Source:
    """A tarball from the call: what release it holds is read from its first folder, not its name."""
    try:
        first = first_name(tarball)
    except (OSError, ValueError) as error:
        raise PlanError(f"{tarball} cannot be read as a tarball of PostgreSQL: {error}") from error
    found = _TOP_FOLDER.match(first) if first is not None else None
    if found is None:
        inside = "nothing" if first is None else first
        raise PlanError(
            f"{tarball} is no release of PostgreSQL: it begins with {inside}, not postgresql-X.Y/"
        )
    if not release.accepts(found[1]):
        raise PlanError(f"{tarball} holds PostgreSQL {found[1]}, but {release} was asked for")
    source = Source(found[1], tarball, sha256_of(tarball), "given tarball", str(tarball.absolute()))
    if source.refusal is not None:
        raise PlanError(
            source.refusal,
            f"fetch postgresql-{source.version}.tar.bz2 again from www.postgresql.org/ftp/source; a source of your own is named in the plan: "
            "source = { tree = …, commit = … }, or patches = […], in [postgresql]",
        )
    return source


_TOOLS = (Need("make", "make", "runs PostgreSQL's build"),)

# Release tarballs up to 16 carry the generated parsers, later ones do not.
_PARSER_TOOLS = (
    Need("bison", "bison", "generates the parsers of PostgreSQL 17 and later"),
    Need("flex", "flex", "generates the scanners of PostgreSQL 17 and later"),
)

_GIT = Need("git", "git", "reads source trees and applies patches")
_PKG_CONFIG = Need("pkg-config", "pkg-config", "finds PostgreSQL's libraries", alternatives=("pkgconf",))

# Debian's perl-base has the interpreter only; PostgreSQL's generators use these modules.
_PERL_MODULES = ("-MFile::Compare", "-MFile::Basename", "-MGetopt::Long", "-MData::Dumper")


def build_requirements(spec: BuildSpec, *, commands: Commands | None = None) -> tuple[Requirement, ...]:
    """Everything that a build needs, found or not."""
    major = major_of(spec.version)
    runner = Commands() if commands is None else commands
    # No tree of git's carries the generated parsers, and a patch may change what they are made of.
    found = [
        *compiler_requirements("compiles PostgreSQL once per block size"),
        *look((*_TOOLS, *(_PARSER_TOOLS if major >= 17 or spec.is_own else ()))),
        *look([_PKG_CONFIG, *([_GIT] if spec.is_own else [])]),
    ]
    found.append(
        Requirement(
            "perl with its modules",
            "perl",
            "generates PostgreSQL's catalogue",
            found=_succeeds(runner, ["perl", *_PERL_MODULES, "-e", "1"]),
        )
    )
    found += [
        Requirement(
            library.name,
            library.package,
            library.reason,
            found=_succeeds(runner, ["pkg-config", "--exists", library.pkg_config]),
        )
        for library in libraries(major)
    ]
    return tuple(found)


def missing_requirements(spec: BuildSpec, *, commands: Commands | None = None) -> tuple[Requirement, ...]:
    """Those of `build_requirements` that were not found; empty when a build can begin."""
    return missing(build_requirements(spec, commands=commands))


def _succeeds(commands: Commands, argv: Sequence[str]) -> bool:
    try:
        return commands.run(argv, check=False).status == 0
    except CommandFailed:
        return False


# The name within the build folder: relative, as it ends up in `pg_config --configure`.
CACHE_FILE = "config.cache"

_BYTES_MOST = 16 * MIB
_PACKAGE_STATES = (Path("/var/lib/dpkg/status"), Path("/var/lib/rpm/rpmdb.sqlite"))
_LOCAL_FOLDERS = (Path("/usr/local/include"), Path("/usr/local/lib"), Path("/usr/local/bin"))
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class ConfigureCache:
    """The remembered answers at `path`; None where nothing may be remembered."""

    path: Path | None

    def lend(self, work: Path, account: Account | None = None) -> None:
        """Put a copy into the build folder, for the account that builds; configure writes to its own copy only."""
        if self.path is not None and self.path.is_file():
            shutil.copyfile(self.path, work / CACHE_FILE)
            give(work / CACHE_FILE, account)

    def keep(self, work: Path) -> None:
        """Remember the answers of a configure that succeeded. OSError where they are no plain file."""
        if self.path is not None and not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            partial = self.path.with_suffix(f".{os.getpid()}")
            partial.write_bytes(bytes_below(work, CACHE_FILE, _BYTES_MOST))
            partial.rename(self.path)


def configure_cache(
    identity: BuildIdentity,
    directory: Path,
    *,
    package_states: tuple[Path, ...] = _PACKAGE_STATES,
) -> ConfigureCache:
    """The cache for builds that differ from `identity` in their block sizes only."""
    states = [_state(path) for path in package_states if path.exists()]
    if not states:
        return ConfigureCache(None)
    options = [item for item in identity.configure_options if "blocksize=" not in item]
    known = {
        "source": identity.tarball_sha256,
        "compiler": identity.compiler,
        "machine": identity.machine,
        "options": options,
        "recipe": identity.recipe_version,
        "packages": states,
        "local": [_state(path) for path in _LOCAL_FOLDERS if path.exists()],
        "path": os.environ.get("PATH", ""),
        "boot": _BOOT_ID.read_text(encoding="ascii").strip(),
    }
    digest = hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()
    return ConfigureCache(directory / f"{digest[:16]}.cache")


def _state(path: Path) -> list[object]:
    seen = path.stat()
    return [str(path), seen.st_mtime_ns, seen.st_size]


RECIPE_VERSION = 3
COMPILER = "cc"

_MAKEFILE = Path(__file__).with_name("recipe.mk")
_CONFIGURE_TIMEOUT_S = 1200.0
_COMPILE_TIMEOUT_S = 4 * 3600.0
_INSTALL_TIMEOUT_S = 1200.0

# Counted while each was built; only the progress display depends on them, and shows no total of another.
_OBJECTS = {15: 1259, 18: 1357}

# What a user's shell or distribution may set and what would silently become part of the build. They
# are removed, not emptied: to gcc an empty CPATH is the current folder.
_UNWANTED = (
    *("CC", "CPP", "CFLAGS", "CPPFLAGS", "LDFLAGS", "LDFLAGS_EX", "LDFLAGS_SL", "LIBS", "COPT", "PROFILE"),
    *("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "GNUMAKEFLAGS", "MAKEFILES", "DESTDIR"),
    *("CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "LD_RUN_PATH", "GCC_EXEC_PREFIX"),
)

_CLEANED = ("env", *(f"--unset={name}" for name in _UNWANTED), "CONFIG_SITE=/dev/null")


@dataclass(frozen=True)
class RecipeWork:
    """One build to be made: out of `tree`, in `work` (empty), staged so that it fits `prefix`.

    The finished tree is expected at `staged_prefix`. With an `account` root builds it shut in: as that account, without network, writing
    nowhere but below `work` (`host/shut_in/`).
    """

    identity: BuildIdentity
    tree: Path
    work: Path
    prefix: Path
    configure_cache: ConfigureCache
    commands: Commands
    progress: Callable[[BuildProgress], None]
    account: Account | None = None

    def run(self, argv: Sequence[str], *, directory: Path, timeout_s: float) -> Completed:
        """One command of the build; CommandFailed with its whole output."""
        return build_command(
            argv,
            directory=directory,
            work=self.work,
            readable=(self.tree,),
            account=self.account,
            commands=self.commands,
            timeout_s=timeout_s,
        )

    def made_folder(self, path: Path) -> Path:
        """A folder below `work` that the build may write to. None of its processes is left that could put a link in its way."""
        path.mkdir()
        if self.account is not None:
            os.chown(path, self.account.uid, self.account.gid)
        return path

    @property
    def makefile(self) -> Path:
        """Where the recipe's own makefile lies."""
        return self.work / _MAKEFILE.name

    @property
    def stage(self) -> Path:
        """The folder that stands for / while installing."""
        return self.work / "stage"

    @property
    def staged_prefix(self) -> Path:
        """Where the prefix lies until it is renamed into place."""
        return self.stage / self.prefix.relative_to("/")


def configure_options(major: int, block_size_bytes: int, wal_block_size_bytes: int) -> tuple[str, ...]:
    """The options that decide the build: the libraries that a distribution's server has, where data and settings may need them.

    What is left out serves logins (GSSAPI, LDAP, PAM), messages (NLS), a terminal (readline) and procedural languages. There is no JIT:
    a distribution has it in a package of its own.

    `-O2` without `-g` is what configure itself would choose without debugging symbols. Checked
    against the notes of `docs/decisions/0002-postgresql-builds.md`.
    """
    return (
        f"--with-blocksize={block_size_bytes // KIB}",
        f"--with-wal-blocksize={wal_block_size_bytes // KIB}",
        *(option for library in libraries(major) if (option := library.option)),
        "--without-readline",
        f"CC={COMPILER}",
        "CFLAGS=-O2",
    )


def compile_postgresql(work: RecipeWork) -> None:
    """Configure, compile and install into the stage; `CommandFailed` carries a tool's whole output."""
    objects = work.made_folder(work.work / "objects")
    _copy_makefile(work)
    _configure(work, objects)
    _verify_configured(objects, work.identity)
    _compile(work, objects)
    _install(work, objects)


def _copy_makefile(work: RecipeWork) -> None:
    """Where every account can read it: bedplate itself may stand in somebody's home."""
    shutil.copyfile(_MAKEFILE, work.makefile)
    work.makefile.chmod(0o644)


def _configure(work: RecipeWork, objects: Path) -> None:
    work.progress(BuildProgress("configure"))
    work.configure_cache.lend(objects, work.account)
    argv = [str(work.tree / "configure"), "-q", f"--cache-file={CACHE_FILE}", f"--prefix={work.prefix}"]
    work.run(
        [*_CLEANED, *argv, *work.identity.configure_options],
        timeout_s=_CONFIGURE_TIMEOUT_S,
        directory=objects,
    )
    work.configure_cache.keep(objects)


def _verify_configured(objects: Path, identity: BuildIdentity) -> None:
    """Configure wrote what was asked: an option it does not know is only a warning to it.

    A commit may be older than a library's option. Then its header does not name the library at all, and it is built without.
    """
    try:
        header = bytes_below(objects, "src/include/pg_config.h", MIB).decode("utf-8", "replace")
    except OSError as error:
        raise VerifyFailed(f"configure wrote no {error.filename}: {error.strerror}") from None
    defined = dict(re.findall(r"^#define (\w+) (\S+)$", header, re.MULTILINE))
    wanted = {"BLCKSZ": str(identity.block_size_bytes), "XLOG_BLCKSZ": str(identity.wal_block_size_bytes)}
    for library in libraries(major_of(identity.version)):
        if not identity.commit_digits or re.search(rf"\b{library.macro}\b", header):
            wanted[library.macro] = "1"
    reasons = [
        f"PostgreSQL was configured with {name} {defined.get(name, 'undefined')}, not {value}"
        for name, value in wanted.items()
        if defined.get(name) != value
    ]
    if reasons:
        raise VerifyFailed(*reasons)


def _compile(work: RecipeWork, objects: Path) -> None:
    total = _OBJECTS.get(major_of(work.identity.version))

    def report(count: int) -> None:
        work.progress(BuildProgress("compile", min(count, total) if total else count, total))

    report(0)
    with watched(lambda: count_objects(objects), report):
        _run_make(work, objects, "all", timeout_s=_COMPILE_TIMEOUT_S)


def _install(work: RecipeWork, objects: Path) -> None:
    work.progress(BuildProgress("install"))
    extra = []
    work.made_folder(work.stage)
    if (work.tree / "src/include/catalog/Makefile").is_file():
        # Since 17 the bootstrap catalogue belongs to the headers, whose folder it does not make itself.
        catalogue = work.staged_prefix / "include/server/catalog"
        for folder in (*reversed(catalogue.parents), catalogue):
            if work.stage in folder.parents:
                work.made_folder(folder)
        extra = ["EXTRA_INSTALLED=src/include/catalog"]
    _run_make(work, objects, "install", f"DESTDIR={work.stage}", *extra, timeout_s=_INSTALL_TIMEOUT_S)
    if work.account is not None:
        own_alone(work.stage, work.staged_prefix)
    shutil.rmtree(work.staged_prefix / "include", ignore_errors=True)
    open_to_all(work.staged_prefix)


def _run_make(work: RecipeWork, objects: Path, *words: str, timeout_s: float) -> None:
    jobs = len(os.sched_getaffinity(0))
    argv = [
        *_CLEANED,
        "make",
        "--no-print-directory",
        "-s",
        "-j",
        str(jobs),
        "-f",
        str(work.makefile),
        *words,
    ]
    work.run(argv, timeout_s=timeout_s, directory=objects)


_VERSION_TIMEOUT_S = 60.0
_SAID_LINES = 12


def builds_directory(cache_directory: Path) -> Path:
    """Where the builds lie in a cache."""
    return cache_directory / "builds"


def find_build(spec: BuildSpec, *, cache_directory: Path, commands: Commands) -> Build | None:
    """The finished build that `ensure_build` would answer with at once; None when it has to work.

    Fetches and changes nothing. Without a compiler or without the source in the cache the answer
    is None, as what the build would be made of is not known then.
    """
    if find_tool(COMPILER) is None:
        return None
    source: Source | None = None
    if spec.source_commit is None:
        asked = parse_version(spec.version)
        if spec.tarball is not None:
            source = given_source(spec.tarball, asked)
        else:
            source = find(asked, cache_directory)
        if source is None:
            return None
    return _finished(builds_directory(cache_directory), _identity(spec, source, commands))


def is_current(build: Build, *, commands: Commands) -> bool:
    """Whether this bedplate would answer with this build where its source is asked for.

    False where the compiler, the options or the recipe have changed since: nothing asks for it any more.
    True where there is no compiler to compare with.
    """
    if find_tool(COMPILER) is None:
        return True
    return (
        build.digest
        == _identity_of(build, build.version, build.tarball_sha256, commands, build.commit_digits).digest
    )


def ensure_build(
    spec: BuildSpec,
    *,
    cache_directory: Path,
    commands: Commands,
    progress: Callable[[BuildProgress], None],
    recipe: Callable[[RecipeWork], None] = compile_postgresql,
    sources: PlanSources | None = None,
) -> Build:
    """The build of `spec`, made now if the cache lacks it; `sources` are where its commit lies, and the texts of its patches.

    Raises `BuildFailed` where somebody's own source cannot be built, `RequirementMissing` (everything that is missing, before the first command of the
    build; or a cache that the server's account cannot reach), `PlanError` for a wrong tarball,
    `CommandFailed` when a tool fails: its whole output is kept beside the builds.
    """
    directory = builds_directory(cache_directory)
    directory.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        # Only root's servers run as somebody else.
        require_traversable(directory, base=cache_directory)
    kept = find_build(spec, cache_directory=cache_directory, commands=commands)
    if kept is not None:
        return kept
    demand(missing_requirements(spec, commands=commands))
    source = None
    if spec.source_commit is None:
        source = ensure_source(
            spec.version,
            cache_directory=cache_directory,
            commands=commands,
            tarball=spec.tarball,
            progress=lambda text: progress(BuildProgress(f"source: {text}")),
        )
    identity = _identity(spec, source, commands)
    waiting = BuildProgress("waits for another start of bedplate that makes this build")

    def make(place: Path) -> Build:
        release = None
        if source is not None:
            release = unpacked_tree(source, progress=lambda text: progress(BuildProgress(f"source: {text}")))
        making = _Making(spec, identity, source, release, sources or PlanSources())
        return _make(making, place, directory=directory, commands=commands, progress=progress, recipe=recipe)

    return make_once(
        directory / identity.folder_name,
        lambda: _finished(directory, identity),
        make,
        on_wait=lambda: progress(waiting),
    )


@dataclass(frozen=True)
class _Making:
    """A build to be made: of a release's tree (`source`, unpacked as `release`), or of what `sources` have of a commit; with patches."""

    spec: BuildSpec
    identity: BuildIdentity
    source: Source | None
    release: Path | None
    sources: PlanSources

    @property
    def commit(self) -> SourceTree | None:
        level = self.spec.source_commit
        return None if level is None else self.sources.trees.get(level)

    @property
    def origin(self) -> str:
        """Where the source came from, in words."""
        if self.source is not None:
            return self.source.first_origin
        tree = self.commit
        if tree is None:
            return "git"
        described = f" ({tree.commit.describe})" if tree.commit.describe else ""
        return f"git: {tree.tree}, {tree.revision}: {tree.commit.hash}{described}"


def _make(
    making: _Making,
    place: Path,
    *,
    directory: Path,
    commands: Commands,
    progress: Callable[[BuildProgress], None],
    recipe: Callable[[RecipeWork], None],
) -> Build:
    """Build in the work folder and rename into place."""
    identity, spec = making.identity, making.spec
    prefix = directory / identity.folder_name
    work = _work_of(making, prefix, place, commands, progress)
    place.chmod(0o711)
    log = directory / f"failed-{identity.folder_name}.log"
    log.unlink(missing_ok=True)
    cost = build_clock()
    try:
        if spec.is_own:
            progress(BuildProgress("source"))
            write_source(
                work.tree,
                spec,
                making.sources,
                base_tree=making.release,
                account=work.account,
                commands=commands,
            )
        recipe(work)
        _verify_version(work)
        build = Build(
            prefix=prefix,
            version=identity.version,
            block_size_bytes=identity.block_size_bytes,
            wal_block_size_bytes=identity.wal_block_size_bytes,
            tarball_sha256=identity.tarball_sha256,
            source_origin=making.origin,
            compiler=identity.compiler,
            machine=identity.machine,
            configure_options=identity.configure_options,
            digest=identity.digest,
            **cost(),
            commit=None if making.commit is None else making.commit.commit.hash,
            commit_digits=identity.commit_digits,
            patches=spec.patches,
        )
        _put_in_place(build, work.staged_prefix)
    except CommandFailed as error:
        raise _build_error(error, spec, log) from error
    except VerifyFailed as error:
        if spec.is_own:
            raise BuildFailed(*(f"{spec.words}: {reason}" for reason in error.reasons)) from error
        raise
    return build


def _work_of(
    making: _Making,
    prefix: Path,
    work: Path,
    commands: Commands,
    progress: Callable[[BuildProgress], None],
) -> RecipeWork:
    # What a stranger's configure answers is not believed, and not read.
    is_strangers = making.spec.is_own or making.source is None or making.source.is_strangers
    cache = None if is_strangers else configure_cache(making.identity, prefix.parent / ".configure")
    tree = work / "source" if making.spec.is_own else making.release
    assert tree is not None  # noqa: S101 -- a release was unpacked
    return RecipeWork(
        identity=making.identity,
        tree=tree,
        work=work,
        prefix=prefix,
        configure_cache=cache or ConfigureCache(None),
        commands=commands,
        progress=progress,
        account=builder_account(is_own=is_strangers),
    )


def _build_error(error: CommandFailed, spec: BuildSpec, log: Path) -> BedplateError:
    """What a start says of a build that failed; its whole output goes into the log."""
    failure = build_failure(error, spec.words, log, log.parent)
    if isinstance(failure, CommandFailed) and spec.is_own:
        # What was called stands in the log; what it said last is why.
        end = "\n".join(error.output.strip().splitlines()[-_SAID_LINES:])
        return BuildFailed(
            f"building {spec.words} failed; the whole output is in {log}: {end or error.reasons[0]}"
        )
    return failure


def _put_in_place(build: Build, staged_prefix: Path) -> None:
    """The stamp last, then the rename: a power cut leaves a whole build or none."""
    stamp = staged_prefix / STAMP
    stamp.write_text(stamp_text(build), encoding="utf-8")
    stamp.chmod(0o644)
    put_in_place(staged_prefix, build.prefix)


def _verify_version(work: RecipeWork) -> None:
    server = [str(work.staged_prefix / "bin" / "postgres"), "--version"]
    shown = work.run(server, directory=work.work, timeout_s=_VERSION_TIMEOUT_S).stdout.strip()
    expected = f"postgres (PostgreSQL) {work.identity.version}"
    if shown != expected and not shown.startswith(f"{expected} "):
        raise VerifyFailed(f"the server that was built says {shown!r}, expected {expected!r}")


def _finished(directory: Path, identity: BuildIdentity) -> Build | None:
    build = read_build(directory / identity.folder_name)
    return build if build is not None and build.digest == identity.digest else None


def _identity(spec: BuildSpec, release: Source | None, commands: Commands) -> BuildIdentity:
    if release is not None:
        return _identity_of(spec, release.version, release.tarball_sha256, commands)
    return _identity_of(spec, spec.version, "", commands, commit_digits(spec.source_commit or ""))


def _identity_of(
    sizes: BuildSpec | Build, version: str, tarball_sha256: str, commands: Commands, commit: str = ""
) -> BuildIdentity:
    major = major_of(version)
    compiler = commands.run([COMPILER, "--version"]).stdout.strip().splitlines()
    return BuildIdentity(
        version=version,
        block_size_bytes=sizes.block_size_bytes,
        wal_block_size_bytes=sizes.wal_block_size_bytes,
        tarball_sha256=tarball_sha256,
        compiler=compiler[0] if compiler else "unknown",
        machine=os.uname().machine,
        configure_options=configure_options(major, sizes.block_size_bytes, sizes.wal_block_size_bytes),
        recipe_version=RECIPE_VERSION,
        commit_digits=commit,
        patch_digits=tuple(map(patch_digits, sizes.patches)),
    )
