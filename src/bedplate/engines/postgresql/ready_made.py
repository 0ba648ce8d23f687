"""A PostgreSQL that somebody else compiled: the distribution's packages, unpacked in the cache, or a server that is installed.

Both have 8 kB blocks. Nothing of an installed server is touched: not its data, its configuration, its users or its service.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import stat
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.versions import SUPPORTED_MAJORS, parse_version, release_key
from bedplate.errors import RequirementMissing
from bedplate.host.apt import (
    PackageTree,
    code_name,
    ensure_package_tree,
    find_package_tree,
    parse_os_release,
)
from bedplate.host.cache import make_once, put_in_place
from bedplate.host.command import Commands
from bedplate.host.files import require_traversable, sha256_of
from bedplate.host.native_driver import BuildProgress
from bedplate.host.requirement import Need, read_os_release
from bedplate.host.shut_in import to_read_alone
from bedplate.model import codec
from bedplate.model.cell import BUILT, PACKAGED, BuildLevels
from bedplate.model.visit import EngineBuild

if TYPE_CHECKING:
    from bedplate.campaign.preparation import ServerChoice

# Where Debian and Ubuntu have the server of each major version.
INSTALLED = Path("/usr/lib/postgresql")

# What a visit starts.
PROGRAMS = ("postgres", "initdb", "pgbench", "psql", "pg_controldata")

TOOLS = (
    Need("apt-get", "apt", "fetches PostgreSQL's packages, which stay in the cache of bedplate"),
    Need("dpkg-deb", "dpkg", "unpacks PostgreSQL's packages"),
)

# Some 20 MB of packages, and 40 MB more where the machine lacks LLVM.
UNPACKED_S = 30.0

# The major version that each suite has, as packages.debian.org and packages.ubuntu.com list them.
_OF_SUITE = {"bookworm": "15", "trixie": "17", "noble": "16", "plucky": "17", "questing": "17"}

_RECORD = "server.json"
_SHOWN = re.compile(r"postgres \(PostgreSQL\) (\d+\.\d+)")


def packaged_version(os_release: str) -> str | None:
    """The major version that a distribution's packages have, by its os-release; None where that is not known, or bedplate does not run it."""
    version = _OF_SUITE.get(code_name(parse_os_release(os_release)) or "")
    return version if version is not None and int(version) in SUPPORTED_MAJORS else None


def installed_servers() -> tuple[tuple[str, Path], ...]:
    """The installed servers that a visit can run, each with its major version, the newest first. Starts nothing."""
    majors = sorted(SUPPORTED_MAJORS, reverse=True)
    places = [(str(major), INSTALLED / str(major)) for major in majors]
    return tuple(
        (version, place)
        for version, place in places
        if all(os.access(place / "bin" / name, os.X_OK) for name in PROGRAMS)
    )


class PostgresqlChoice:
    """The server that the reader runs, else the one that the reader would install, else a build."""

    def levels(self, server: str | None) -> BuildLevels:
        """An installed server, else the distribution's packages, else a build; or the one that is named."""
        usual = BuildLevels()
        if server == BUILT:
            return usual
        if server is None or server.startswith("/"):
            for version, place in installed_servers():
                if server in {None, str(place)}:
                    return replace(usual, version=version, server=str(place))
        packaged = packaged_version(read_os_release())
        if packaged is not None and server in {None, PACKAGED}:
            return replace(usual, version=packaged, server=PACKAGED)
        if server is None:
            return usual
        if server == PACKAGED:
            raise RequirementMissing(
                "which PostgreSQL this distribution's packages have is not known here",
                f'write it into a plan: server = "{PACKAGED}", version = "17"; or have one compiled: --server {BUILT}',
            )
        return self._in_a_folder(server)

    def words(self, build_levels: BuildLevels) -> str:
        """`PostgreSQL 17 as installed in /usr/lib/postgresql/17`."""
        if build_levels.server == BUILT:
            return f"PostgreSQL {build_levels.version}, compiled here"
        return words(build_levels)

    def _in_a_folder(self, server: str) -> BuildLevels:
        place = Path(server)
        _refuse_unfit(place)
        version = _read_programs(place, place=place).version.partition(".")[0]
        return replace(BuildLevels(), version=version, server=str(place))


SERVER_CHOICE: ServerChoice = PostgresqlChoice()


def words(build_levels: BuildLevels) -> str:
    """`PostgreSQL 17 of the distribution's packages`, `PostgreSQL 17 as installed in /usr/lib/postgresql/17`."""
    where = (
        "of the distribution's packages"
        if build_levels.server == PACKAGED
        else f"as installed in {build_levels.server}"
    )
    return f"PostgreSQL {build_levels.version} {where}"


def find_server(build_levels: BuildLevels, cache_directory: Path) -> EngineBuild | None:
    """What `ensure_server` would answer with at once; None where packages have yet to be fetched. BedplateError as there."""
    if build_levels.server != PACKAGED:
        return _installed(Path(build_levels.server), build_levels.version)
    tree = find_package_tree(_packages(build_levels.version), cache_directory=cache_directory)
    return None if tree is None else _read(_folder(tree, build_levels.version, cache_directory))


def is_there(build_levels: BuildLevels, cache_directory: Path) -> bool:
    """Whether nothing has to be fetched."""
    return build_levels.server != PACKAGED or find_server(build_levels, cache_directory) is not None


def ensure_server(
    build_levels: BuildLevels, cache_directory: Path, progress: Callable[[BuildProgress], None]
) -> EngineBuild:
    """The server of these levels, fetched now where the cache lacks its packages.

    RequirementMissing where the distribution has no such packages or cannot be reached, and where no such server is installed.
    """
    if build_levels.server != PACKAGED:
        return _installed(Path(build_levels.server), build_levels.version)
    version = build_levels.version
    try:
        tree = ensure_package_tree(
            _packages(version),
            cache_directory=cache_directory,
            commands=Commands(),
            progress=lambda text: progress(BuildProgress(text)),
        )
    except RequirementMissing as error:
        raise RequirementMissing(*error.reasons, *_way_out(version)) from error
    folder = _folder(tree, version, cache_directory)
    folder.parent.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        # Only root's servers run as somebody else.
        require_traversable(folder.parent, base=cache_directory)
    return make_once(folder, lambda: _read(folder), lambda work: _make(tree, version, folder, work))


def shared_files(prefix: Path) -> Path:
    """Where a server's files lie that are no programs, its extensions' among them."""
    # Debian has /usr/share/postgresql/17 for the programs of /usr/lib/postgresql/17.
    apart = prefix.parents[2] / "share" / "postgresql" / prefix.name if len(prefix.parts) > 3 else prefix
    places = (prefix / "share", prefix / "share" / "postgresql", apart)
    return next((place for place in places if (place / "extension").is_dir()), places[0])


def _way_out(version: str) -> tuple[str, ...]:
    here = packaged_version(read_os_release())
    other = (
        [] if here in {None, version} else [f'this distribution has PostgreSQL {here}: version = "{here}"']
    )
    return (*other, f'or have it compiled, which takes minutes: server = "{BUILT}" in [postgresql]')


def _packages(version: str) -> tuple[str, ...]:
    # psql and pgbench lie with the client on some suites and with the server on others.
    return (f"postgresql-{version}", f"postgresql-client-{version}")


def _folder(package_tree: PackageTree, version: str, cache_directory: Path) -> Path:
    return cache_directory / "servers" / f"postgresql-{version}-{package_tree.digest[:12]}"


def _make(package_tree: PackageTree, version: str, folder: Path, work: Path) -> EngineBuild:
    """Programs by which the unpacked ones are started with the libraries that came with them, in a folder that looks like a build's.

    The packages' files have two names from then on, so that they take no more room: a visit sees this folder and no other of the cache.
    """
    fresh = work / folder.name
    shutil.copytree(package_tree.root, fresh / "root", symlinks=True, copy_function=_second_name)
    own = Path("root/usr/lib/postgresql", version)
    lacking = [name for name in PROGRAMS if not (fresh / own / "bin" / name).is_file()]
    if lacking:
        packages = ", ".join(_packages(version))
        raise RequirementMissing(f"the packages {packages} were unpacked and lack {', '.join(lacking)}")
    (fresh / "share").symlink_to(Path("root/usr/share/postgresql", version))
    libraries = [folder / "root" / path.relative_to(package_tree.root) for path in package_tree.library_path]
    (fresh / "bin").mkdir(mode=0o755)
    for program in sorted((fresh / own / "bin").iterdir()):
        starter = fresh / "bin" / program.name
        starter.write_text(_starter(folder / own / "bin" / program.name, libraries), encoding="utf-8")
        starter.chmod(0o755)
    put_in_place(fresh, folder)
    build = replace(
        _read_programs(folder, place=folder / own),
        source_sha256=package_tree.digest,
        source_origin=f"the distribution's packages {package_tree.name_versions(_packages(version))}",
        digest=package_tree.digest[:16],
    )
    # Last: without it the folder does not count, and is made again.
    codec.write(folder / _RECORD, build)
    return build


def _second_name(source: str, target: str) -> str:
    os.link(source, target, follow_symlinks=False)
    return target


def _starter(executable: Path, libraries: list[Path]) -> str:
    """A shell's program that becomes the unpacked one: that finds its own files from the path by which it was started."""
    path = ":".join(map(str, libraries))
    exported = [f"LD_LIBRARY_PATH={shlex.quote(path)}; export LD_LIBRARY_PATH"] if libraries else []
    return "\n".join(["#!/bin/sh", *exported, f'exec {shlex.quote(str(executable))} "$@"', ""])


def _read(folder: Path) -> EngineBuild | None:
    """The server that was put there; None without its record, or where the cache was moved, as paths stand in it."""
    if not (folder / _RECORD).is_file():
        return None
    build = codec.read(EngineBuild, folder / _RECORD)
    return build if build.prefix == str(folder) else None


def _installed(place: Path, version: str) -> EngineBuild:
    """The server in a folder; RequirementMissing where it is none, another than asked for, or may be changed by others than root."""
    _refuse_unfit(place)
    build = _read_programs(place, place=place)
    if not parse_version(version).accepts(build.version):
        raise RequirementMissing(
            f'{place} is PostgreSQL {build.version}, and the plan asks for {version}: version = "{build.version.partition(".")[0]}" fits it'
        )
    content = hashlib.sha256()
    for name in PROGRAMS:
        content.update(sha256_of(place / "bin" / name).encode())
    return replace(
        build,
        source_sha256=content.hexdigest(),
        source_origin=f"installed in {place}",
        digest=content.hexdigest()[:16],
    )


def _refuse_unfit(place: Path) -> None:
    problems = [
        *(
            f"it has no program bin/{name}"
            for name in PROGRAMS
            if not os.access(place / "bin" / name, os.X_OK)
        ),
        *_changed_by_others([place / "bin" / name for name in (*PROGRAMS, "pg_config")]),
    ]
    if problems:
        known = ", ".join(str(folder) for _, folder in installed_servers()) or "none"
        raise RequirementMissing(
            *(f"no PostgreSQL to be run from {place}: {problem}" for problem in problems),
            f'installed servers here: {known}; server = "{PACKAGED}" takes the distribution\'s, and "{BUILT}" compiles one',
        )


def _changed_by_others(executables: Iterable[Path]) -> list[str]:
    """Folders and programs on the way that others than root may change: what they put there would be measured, by root's leave."""
    if os.geteuid() != 0:
        return []
    # Each program's own way: one of them may be a link to elsewhere.
    real = [executable.resolve() for executable in executables if executable.exists()]
    found = []
    for path in dict.fromkeys(path for executable in real for path in (executable, *executable.parents)):
        status = path.stat()
        sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
        if status.st_uid != 0 or (status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not sticky):
            found.append(f"others than root may change {path}")
    return found


def _read_programs(prefix: Path, *, place: Path) -> EngineBuild:
    """What the programs say of themselves; its origin and digest are the caller's to add."""
    shown = _output_of(prefix, "postgres", "--version")
    found = _SHOWN.match(shown)
    if found is None or release_key(found[1]) is None:
        raise RequirementMissing(
            f"{place}/bin/postgres says {shown.strip()!r:.200} and no version that bedplate runs"
        )
    options = (
        _output_of(prefix, "pg_config", "--configure") if (prefix / "bin" / "pg_config").exists() else ""
    )
    return EngineBuild(
        prefix=str(prefix),
        version=found[1],
        block_size_bytes=BuildLevels().block_size_bytes,
        wal_block_size_bytes=BuildLevels().wal_block_size_bytes,
        source_sha256="",
        source_origin="",
        compiler="the distribution's",
        configure_options=tuple(shlex.split(options)),
        digest="",
    )


def _output_of(prefix: Path, name: str, option: str) -> str:
    argv = [str(prefix / "bin" / name), option]
    return Commands().run(argv, timeout_s=30, confinement=to_read_alone(prefix, is_own=False)).stdout
