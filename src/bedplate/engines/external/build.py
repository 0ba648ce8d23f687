"""Folders made of folders: programs from the sources beside an engine.toml, and a writer with a planted fault."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bedplate.engines.external.prepare import (
    DIGITS,
    ENGINES_FOLDER,
    FILE,
    PLANTED_LIBRARY,
    BuildTable,
    EngineFolder,
    files_of,
    is_whole,
    read_folder,
)
from bedplate.errors import BuildFailed, CommandFailed, PlanError, RequirementMissing
from bedplate.host.account import server_account
from bedplate.host.cache import make_once, put_in_place
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory, open_to_all, places_without_room
from bedplate.host.git import give
from bedplate.host.native_driver import ensure_driver
from bedplate.host.requirement import find_tool
from bedplate.host.shut_in import SYSTEM_FOLDERS, build_command, own_alone
from bedplate.installation import shipped

_FETCH_LIMIT_S, _RUN_LIMIT_S = 300.0, 1800.0

# How a package manager finds what it fetches from, where the machine says so; nothing else of the caller's environment is handed on.
_OF_THE_NETWORK = (
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "GOPROXY", "GOSUMDB", "PIP_INDEX_URL"),
)
_RESOLVER = Path("/etc/resolv.conf")


@dataclass(frozen=True)
class _Fetcher:
    """A package manager: what fetches, who says which version it is and where its programs lie, and where it keeps what it has."""

    tool: str
    fetch: tuple[str, ...]
    version: tuple[str, ...]
    place: tuple[str, ...]
    environment: Mapping[str, str]


_FETCHERS = {
    "cargo": _Fetcher(
        "cargo",
        ("cargo", "fetch"),
        ("rustc", "--version"),
        ("rustc", "--print", "sysroot"),
        {"CARGO_HOME": "cargo"},
    ),
    "go": _Fetcher(
        "go",
        ("go", "mod", "download"),
        ("go", "version"),
        ("go", "env", "GOROOT"),
        {"GOPATH": "go", "GOCACHE": "go-cache"},
    ),
    # Wheels alone, of which nothing runs while they are installed.
    "pip": _Fetcher(
        "python3",
        (
            *(
                "python3",
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-deps",
                "--only-binary=:all:",
                "--no-compile",
            ),
            *("--target=packages", "--requirement=requirements.txt"),
        ),
        ("/usr/bin/python3", "--version"),
        (),
        {},
    ),
}

# A toolchain that is fetched by another toolchain would not be the one whose version is known.
_CONSTANT = {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -buildvcs=false"}


def runnable(folder: Path, *, plant: str | None, report: Callable[[str], None]) -> Path:
    """The folder of programs that `folder` is, or that is made of it now where the cache lacks it; `report` hears of what takes a while.

    PlanError for a folder that is none, or a writer that no plant reaches; RequirementMissing, BuildFailed where it cannot be built here.
    """
    folder = folder.resolve()
    engine = read_folder(folder, may_lack_all=True)
    if os.geteuid() != 0 and (plant is not None or engine.description.build is not None):
        raise RequirementMissing(
            f"{engine.description.name} is made ready as an account without rights, shut in, which only root can begin; run it with sudo"
        )
    if engine.description.build is not None:
        folder = _built(engine, engine.description.build, report)
    return folder if plant is None else _planted(read_folder(folder), plant)


def _built(engine_folder: EngineFolder, build_table: BuildTable, report: Callable[[str], None]) -> Path:
    fetcher = None if build_table.fetch is None else _FETCHERS[build_table.fetch]
    name, commands = engine_folder.description.name, Commands()
    version, toolchain = ("", None) if fetcher is None else _toolchain(name, fetcher, commands)
    key = hashlib.sha256(f"{engine_folder.digest} {version}".encode()).hexdigest()[:DIGITS]
    target = cache_directory() / ENGINES_FOLDER / f"{name}.built-{key}"

    def make(place: Path) -> Path:
        report(
            f"building {name} by its [build]{f', with {version}' if version else ''}; kept for the next time"
        )
        return _make(engine_folder, _Site(place, build_table, fetcher, toolchain, commands), target)

    found = make_once(target, lambda: target if is_whole(target) else None, make)
    # When it was used last.
    os.utime(found)
    return found


def _toolchain(name: str, fetcher: _Fetcher, commands: Commands) -> tuple[str, Path | None]:
    """Its version, and its folder; None for one that stands among the system's own. RequirementMissing without it."""
    found = find_tool(fetcher.tool)
    if found is None:
        raise RequirementMissing(
            f"{name} is built with {fetcher.tool}, which is not in the search path; install it, or put compiled programs into the folder"
        )
    try:
        # In no folder of anybody's, which could ask for another toolchain.
        version = commands.run(fetcher.version, directory=Path("/")).stdout.strip()
        place = (
            Path(commands.run(fetcher.place, directory=Path("/")).stdout.strip()) if fetcher.place else None
        )
    except CommandFailed as error:
        raise RequirementMissing(
            f"{name} is built with {fetcher.tool}, which does not work here: {error.reasons[0]}"
        ) from None
    return version, place


@dataclass(frozen=True)
class _Site:
    """Where and with what one folder is built."""

    place: Path
    build_table: BuildTable
    fetcher: _Fetcher | None
    toolchain: Path | None
    commands: Commands

    @property
    def work(self) -> Path:
        """The one folder that a command writes to."""
        return self.place / "made"

    @property
    def engine(self) -> Path:
        """The copy of the sources that commands work in."""
        return self.work / "engine"

    def run(self, argv: tuple[str, ...], *, has_network: bool = False) -> None:
        """One command, shut in as every build is; with a network only a fetcher's own."""
        outside = self.toolchain is not None and self.toolchain.resolve().parts[1] not in SYSTEM_FOLDERS
        read = (self.place / "sources", *([self.toolchain] if outside and self.toolchain else []))
        build_command(
            ("env", *self._environment(has_network=has_network), *argv),
            directory=self.engine,
            work=self.work,
            readable=(*read, _RESOLVER.resolve()) if has_network and _RESOLVER.exists() else read,
            account=server_account(),
            commands=self.commands,
            timeout_s=_FETCH_LIMIT_S if has_network else _RUN_LIMIT_S,
            has_network=has_network,
        )

    def _environment(self, *, has_network: bool) -> Iterator[str]:
        home = self.work / "home"
        path = os.environ.get("PATH", os.defpath)
        yield f"HOME={home}"
        yield f"PATH={path}" if self.toolchain is None else f"PATH={self.toolchain / 'bin'}:{path}"
        yield from (f"{name}={value}" for name, value in _CONSTANT.items())
        for name, folder in (self.fetcher.environment if self.fetcher else {}).items():
            yield f"{name}={home / folder}"
        if has_network:
            yield from (f"{name}={os.environ[name]}" for name in _OF_THE_NETWORK if name in os.environ)


def _make(engine_folder: EngineFolder, site: _Site, target: Path) -> Path:
    site.place.chmod(0o711)
    for folder in (site.place / "sources", site.engine, site.work / "home"):
        folder.mkdir(parents=True)
    for file in files_of(engine_folder.path):
        for top in (site.place / "sources", site.engine):
            _copy(file, top / file.relative_to(engine_folder.path))
    open_to_all(site.place / "sources")
    give(site.work, server_account())
    name, build_table = engine_folder.description.name, site.build_table
    argv: tuple[str, ...] = ()
    try:
        if site.fetcher is not None:
            argv = site.fetcher.fetch
            site.run(argv, has_network=True)
        for argv in build_table.run:
            site.run(argv)
    except CommandFailed as error:
        if full := places_without_room(error.output, target.parent):
            raise RequirementMissing(*full, f"{name} is built there, and was not") from None
        needs = f"; it needs the packages {', '.join(build_table.needs)}" if build_table.needs else ""
        raise BuildFailed(f"{name} cannot be built: {' '.join(argv)}: {_last_lines(error)}{needs}") from None
    own_alone(site.work, site.engine)
    fresh = site.place / "kept"
    fresh.mkdir()
    _copy(site.place / "sources" / FILE, fresh / FILE)
    for path in _products(engine_folder, build_table, site.engine):
        _copy(path, fresh / path.relative_to(site.engine.resolve()))
    open_to_all(fresh)
    read_folder(fresh)
    put_in_place(fresh, target)
    return target


def _last_lines(error: CommandFailed) -> str:
    lines = [line.strip() for line in error.output.splitlines() if line.strip()]
    return " / ".join(lines[-4:])[-600:] or error.reasons[0]


def _products(engine_folder: EngineFolder, build_table: BuildTable, folder: Path) -> Iterator[Path]:
    """Both programs and what is kept beside them, plain files alone; BuildFailed for one that was not made."""
    for name in (engine_folder.description.writer, engine_folder.description.checker, *build_table.keep):
        path = folder.resolve() / name
        # A link, on the way to it or itself, would name what the build was kept from.
        if path.is_dir() and path.resolve() == path:
            yield from files_of(path)
        elif path.is_file() and path.resolve() == path:
            yield path
        else:
            raise BuildFailed(
                f"{engine_folder.description.name}: its [build] ended well and made no file {name}"
            )


def _copy(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, target)
    target.chmod(0o755 if os.access(file, os.X_OK) else 0o644)


# Of a program that a dynamic loader starts (elf(5)): its header's magic and the type of the entry that names the loader.
_ELF, _INTERPRETER_ENTRY = b"\x7fELF", 3
# How a program of Go's begins what it says of its build (debug/buildinfo).
_GO = b"\xff Go buildinf:"


def _planted(engine: EngineFolder, plant: str) -> Path:
    """A copy whose writer has the fault."""
    name = engine.description.name
    if engine.description.plant is not None:
        raise PlanError(f"{name} has a plant already")
    _refuse_unreached(engine.path / engine.description.writer)
    library = ensure_driver(
        "planted_sync",
        source=shipped("drivers") / "planted_sync.c",
        cache_directory=cache_directory() / "drivers",
        commands=Commands(),
        is_preloaded=True,
    )
    key = hashlib.sha256(f"{engine.digest} {library.name} {plant}".encode()).hexdigest()[:DIGITS]
    target = cache_directory() / ENGINES_FOLDER / f"{name}.{plant}-{key}"

    def make(place: Path) -> Path:
        fresh = place / "kept"
        for file in files_of(engine.path):
            _copy(file, fresh / file.relative_to(engine.path))
        _copy(library, fresh / PLANTED_LIBRARY)
        # Before all tables, where a key of the document's own stands.
        (fresh / FILE).write_text(f"plant = {json.dumps(plant)}\n{engine.text}", encoding="utf-8")
        read_folder(fresh)
        put_in_place(fresh, target)
        return target

    return make_once(target, lambda: target if is_whole(target) else None, make)


def _refuse_unreached(writer: Path) -> None:
    """PlanError for a writer that starts without a dynamic loader, or makes its system calls itself."""
    content = writer.read_bytes()
    if not content.startswith(_ELF):
        return
    if _GO in content:
        why = "is a program of Go's, which makes its system calls itself"
    elif not _has_loader(content):
        why = "is linked statically"
    else:
        return
    raise PlanError(
        f"{writer.name} {why}, so that no preloaded library reaches its syncs; give engine.toml a setting that leaves them out, as "
        "examples/engines/shelf/bbolt has, and try that"
    )


def _has_loader(content: bytes) -> bool:
    """Whether one of its program headers is PT_INTERP."""
    order: Literal["little", "big"] = "little" if content[5] == 1 else "big"
    start, start_bytes, size_at = (32, 8, 54) if content[4] == 2 else (28, 4, 42)  # ELFCLASS64

    def number(offset: int, size: int) -> int:
        return int.from_bytes(content[offset : offset + size], order)

    first, size, count = number(start, start_bytes), number(size_at, 2), number(size_at + 2, 2)
    return any(number(first + each * size, 4) == _INTERPRETER_ENTRY for each in range(count))
