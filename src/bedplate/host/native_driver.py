"""Builds bedplate's own drivers, written in C, once for each source, compiler and library.

A driver is compiled on the machine that runs it, as its kernel headers and its processor are what
counts. The cache is keyed by everything that decides the result; a finished file is renamed into
place, so that a driver in the cache is always a whole one. A library is the distribution's, linked
when the driver starts: an upgrade changes what is measured, and so its version is part of the key too.

A compiler copies what a source names, by `#include` or `.incbin`: where bedplate is root, it runs shut in, as an account without rights, and
sees the sources alone (`host/shut_in.py`).
"""

from __future__ import annotations

import hashlib
import os
import re
import resource
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from bedplate.errors import BuildFailed, CommandFailed, RequirementMissing, VerifyFailed
from bedplate.host.cache import make_once, put_in_place
from bedplate.host.command import Commands, Completed
from bedplate.host.files import open_to_all, places_without_room
from bedplate.host.git import give
from bedplate.host.requirement import Need, Requirement, look
from bedplate.host.shut_in import build_command, builder_account, own_alone

COMPILER = "cc"

# -pthread is a matter of the C library's age; newer ones have threads built in and ignore it.
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-pthread")

_SHARED_FLAGS = ("-shared", "-fPIC")
_COMPILE_LIMIT_S = 120.0

# A quarter of a million lines in one file, on a busy machine.
_COMPILE_LIBRARY_LIMIT_S = 1800.0

_C_HEADER = Path("/usr/include/stdio.h")


@dataclass(frozen=True)
class Library:
    """A library of the distribution that a driver is linked with.

    `package` is Debian's name of what brings the header and the linker's name of the library.
    `version_macros` are the header's numbers, the greatest first, or its text; `linker_words` as cc takes them, and
    `header_words` what the header wants to be told before it says anything.
    """

    name: str
    header: str
    package: str
    linker_words: tuple[str, ...]
    version_macros: tuple[str, ...]
    header_words: tuple[str, ...] = ()
    # Of one that was compiled from somebody's own source: where its header and objects are.
    folder: Path | None = None


LIBFUSE3 = Library(
    name="libfuse3",
    header="fuse3/fuse_lowlevel.h",
    package="libfuse3-dev",
    # What a device with latency draws is made of logarithms.
    linker_words=("-lfuse3", "-lm"),
    version_macros=("FUSE_MAJOR_VERSION", "FUSE_MINOR_VERSION"),
    # Without the version of the interface that is wanted the header is an error.
    header_words=("-DFUSE_USE_VERSION=34",),
)


def ensure_driver(
    name: str,
    *,
    source: Path,
    variant: str = "",
    cache_directory: Path,
    commands: Commands,
    libraries: tuple[Library, ...] = (),
    is_preloaded: bool = False,
) -> Path:
    """The path of the driver `name`, compiled from `source` unless the cache has it already.

    One that `is_preloaded` is no program but a shared object, which another program is started with (LD_PRELOAD).

    A folder beside `source` with its name (`bench.c`, `bench/`) belongs to it: all C files in it are
    compiled too, and those of the folder `variant` in it. Headers beside `source` are every driver's. Two processes may ask at once: one compiles, the other waits for it. Raises
    `RequirementMissing` where there is no C compiler, no source or no header of a library, or where the
    compiler refuses the source, with what it said.
    """
    shared = sorted(source.parent.glob("*.h"))
    folder = source.with_suffix("")
    own = sorted((*folder.glob("*.[ch]"), *((folder / variant).glob("*.[ch]") if variant else ())))
    files = (source, *own, *shared)
    try:
        parts = [part for file in files for part in (file.name.encode(), file.read_bytes())]
    except OSError as error:
        raise RequirementMissing(
            f"the source of the driver {name} cannot be read: {error.filename}: {error.strerror}; "
            f"bedplate has to run from its own folder"
        ) from error
    words = (
        *(_SHARED_FLAGS if is_preloaded else ()),
        *(word for library in libraries for word in library.linker_words),
    )
    parts += [_compiler_version(commands, name).encode(), " ".join((*FLAGS, *words)).encode()]
    parts += [_demand_version(library, name, commands).encode() for library in libraries]
    key = hashlib.sha256()
    for part in parts:
        key.update(len(part).to_bytes(8, "little") + part)
    driver = cache_directory / f"{name}-{key.hexdigest()[:16]}"
    work = _DriverWork(driver, name, source.parent, files, words, libraries)
    return make_once(
        driver, lambda: driver if driver.exists() else None, lambda place: _compile(work, place, commands)
    )


def compiled_library(
    library: Library,
    *,
    name: str,
    read_files: Callable[[], Mapping[str, bytes]],
    linker_words: tuple[str, ...],
    cache_directory: Path,
    commands: Commands,
) -> Library:
    """`library` from its own C files in place of the distribution's, compiled at -O2 unless the cache has it already.

    `name` says which source it is, and `read_files` reads it, headers too, where it is needed. Drivers are linked with the objects, so that what
    was compiled is what runs. Raises `BuildFailed` where it does not compile, `RequirementMissing` as `ensure_driver` does.
    """
    key = hashlib.sha256(f"{_compiler_version(commands, name)} {FLAGS}".encode()).hexdigest()[:8]
    folder = cache_directory / f"{name}-{key}"
    make_once(
        folder,
        lambda: folder if folder.is_dir() else None,
        lambda place: _compile_library(folder, place, name=name, contents=read_files(), commands=commands),
    )
    objects = sorted(str(path) for path in folder.glob("*.o"))
    place = f"-I{folder}"
    return replace(
        library, linker_words=(place, *objects, *linker_words), header_words=(place,), folder=folder
    )


def library_version(library: Library, *, commands: Commands) -> str | None:
    """The version in the library's header (`"0.9.24"`), None where the compiler finds no such header.

    Raises `RequirementMissing` without a compiler: nobody else knows where it looks.
    """
    argv = [COMPILER, "-E", "-dM", *library.header_words, "-include", library.header, "-x", "c", "/dev/null"]
    try:
        if library.folder is None:
            text = commands.run(argv, check=False).stdout
        else:
            with tempfile.TemporaryDirectory() as temporary:
                sources, made = _places(Path(temporary))
                text = _builder(sources, made, (library,), commands)(argv, _COMPILE_LIMIT_S).stdout
    except CommandFailed as error:
        if error.status is not None:
            return None
        raise _no_compiler(f"to look for {library.header}", error) from error
    macros = dict(re.findall(r"^#define (\w+) (\S+)$", text, re.MULTILINE))
    numbers = [macros.get(macro) for macro in library.version_macros]
    # A text stands in quotes.
    return ".".join(number.strip('"') for number in numbers if number is not None) if all(numbers) else None


def library_requirement(library: Library, *, reason: str, commands: Commands) -> Requirement:
    """Whether the library can be compiled with; `reason` says what for. Needs no root.

    Without a compiler nobody knows, and it is missing: `compiler_requirements` has the compiler.
    """
    try:
        found = library_version(library, commands=commands) is not None
    except RequirementMissing:
        found = False
    return Requirement(name=library.header, package=library.package, reason=reason, found=found)


def compiler_requirements(reason: str) -> tuple[Requirement, ...]:
    """What C is compiled with, found or not; `reason` says what is. Needs no root, starts no program."""
    headers = Requirement("C library headers", "libc6-dev", reason, found=_C_HEADER.is_file())
    return (*look((Need(COMPILER, "gcc", reason),)), headers)


def _demand_version(library: Library, name: str, commands: Commands) -> str:
    version = library_version(library, commands=commands)
    if version is None:
        raise RequirementMissing(
            f"the driver {name} cannot be built: the compiler finds no {library.header} with a version in it; "
            f"install the package {library.package}"
        )
    return f"{library.name} {version}"


def _no_compiler(what_for: str, error: CommandFailed) -> RequirementMissing:
    return RequirementMissing(
        f"no working C compiler ({COMPILER}) {what_for}: {error.reasons[0]}; "
        f"install the packages gcc and libc6-dev"
    )


def _compiler_version(commands: Commands, name: str) -> str:
    try:
        return commands.run([COMPILER, "--version"]).stdout
    except CommandFailed as error:
        raise _no_compiler(f"to build the driver {name}", error) from error


@dataclass(frozen=True)
class _DriverWork:
    """A driver to be compiled: `files` lie below `top`, and what they include is named from there."""

    driver: Path
    name: str
    top: Path
    files: tuple[Path, ...]
    linker_words: tuple[str, ...]
    libraries: tuple[Library, ...]


def _places(work: Path) -> tuple[Path, Path]:
    """A folder for sources, which is root's, and one in which a compiler writes."""
    sources, made = work / "sources", work / "made"
    work.chmod(0o711)
    for folder in (sources, made):
        folder.mkdir()
    return sources, made


def _builder(
    sources: Path, output_folder: Path, libraries: tuple[Library, ...], commands: Commands
) -> Callable[[list[str], float], Completed]:
    """What runs a compiler that reads `sources` and libraries of somebody's own, and writes to `output_folder` alone."""
    folders = tuple(library.folder for library in libraries if library.folder is not None)
    account = builder_account(is_own=bool(folders))
    open_to_all(sources)
    give(output_folder, account)

    def run(argv: list[str], limit_s: float) -> Completed:
        return build_command(
            argv,
            directory=output_folder,
            work=output_folder,
            readable=(sources, *folders),
            account=account,
            commands=commands,
            timeout_s=limit_s,
        )

    return run


def _compile_library(
    folder: Path, place: Path, *, name: str, contents: Mapping[str, bytes], commands: Commands
) -> Path:
    sources, made = _places(place)
    for file, content in contents.items():
        (sources / file).write_bytes(content)
    compiler = _builder(sources, made, (Library(name, "", "", (), (), folder=sources),), commands)
    try:
        for source in sorted(sources.glob("*.c")):
            made_object = made / f"{source.stem}.o"
            argv = [COMPILER, *FLAGS, "-w", "-c", "-o", str(made_object), str(source)]
            compiler(argv, _COMPILE_LIBRARY_LIMIT_S)
    except CommandFailed as error:
        full = places_without_room(error.output, folder.parent, Path(tempfile.gettempdir()))
        said = f"{name} cannot be compiled: {error.reasons[0]}"
        raise (RequirementMissing(*full, said) if full else BuildFailed(said)) from error
    for path in _products(made, [f"{Path(file).stem}.o" for file in contents if file.endswith(".c")]):
        path.rename(sources / path.name)
    put_in_place(sources, folder)
    return folder


def _compile(driver_work: _DriverWork, place: Path, commands: Commands) -> Path:
    sources, made = _places(place)
    for file in driver_work.files:
        copy = sources / file.relative_to(driver_work.top)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    texts = [
        str(sources / file.relative_to(driver_work.top)) for file in driver_work.files if file.suffix == ".c"
    ]
    argv = [COMPILER, *FLAGS, "-o", str(made / driver_work.name), *texts, *driver_work.linker_words]
    try:
        _builder(sources, made, driver_work.libraries, commands)(argv, _COMPILE_LIMIT_S)
    except CommandFailed as error:
        if full := places_without_room(error.output, driver_work.driver.parent, Path(tempfile.gettempdir())):
            raise RequirementMissing(
                *full, f"the driver {driver_work.name} is compiled there, and was not: {error.reasons[0]}"
            ) from error
        raise RequirementMissing(
            f"the driver {driver_work.name} cannot be built: {error.reasons[0]}; "
            f"are libc6-dev and the libraries' -dev packages installed?"
        ) from error
    (built,) = _products(made, [driver_work.name])
    built.chmod(0o755)
    put_in_place(built, driver_work.driver)
    return driver_work.driver


def _products(output_folder: Path, names: Iterable[str]) -> tuple[Path, ...]:
    """What a compiler was to write, now the caller's; VerifyFailed where something else is there."""
    if os.geteuid() == 0:
        own_alone(output_folder, output_folder)
    paths = tuple(output_folder / name for name in names)
    for path in paths:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise VerifyFailed(f"{path} is no file, and the compiler was to write one")
    return paths


_INTERVAL_S = 1.0


def build_clock() -> Callable[[], Mapping[str, float]]:
    """From now on: what a build has cost so far, `build_seconds` of wall time and `build_cpu_seconds` of its processes."""
    started, cpu_started = time.monotonic(), _children_cpu_seconds()
    return lambda: {
        "build_seconds": round(time.monotonic() - started, 1),
        "build_cpu_seconds": round(_children_cpu_seconds() - cpu_started, 1),
    }


def _children_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def build_failure(
    error: CommandFailed, product: str, log: Path, place: Path
) -> RequirementMissing | CommandFailed:
    """What a start says of a build of `product` in `place` that failed; its whole output goes into the log.

    Called before what was half built is removed, which makes room again.
    """
    full = places_without_room(error.output, place)
    with suppress(OSError):
        log.write_text(f"{' '.join(error.argv)}\n\n{error.output}\n", encoding="utf-8")
    if full:
        return RequirementMissing(*full, f"{product} is built there, and was not: {error.reasons[0]}")
    return CommandFailed(
        f"building {product} failed; the whole output is in {log}: {error.reasons[0]}",
        argv=error.argv,
        status=error.status,
        output=error.output,
    )


@dataclass(frozen=True)
class BuildProgress:
    """Where a build stands: `done` of `total` within `step`, both None where that is not known."""

    step: str
    done: int | None = None
    total: int | None = None


def count_objects(directory: Path, *, since_ns: int | None = None) -> int:
    """Object files below `directory`, of those that were written `since_ns` where that is given; one that vanishes meanwhile does no harm."""
    if since_ns is None:
        return sum(name.endswith(".o") for _, _, names in os.walk(directory) for name in names)
    return sum(
        _was_written(os.path.join(folder, name), since_ns)  # noqa: PTH118 -- a thousand of them each second
        for folder, _, names in os.walk(directory)
        for name in names
        if name.endswith(".o")
    )


def _was_written(path: str, since_ns: int) -> bool:
    try:
        return os.lstat(path).st_mtime_ns >= since_ns
    except OSError:
        return False


@contextmanager
def watched(
    count: Callable[[], int], report: Callable[[int], None], *, interval_s: float = _INTERVAL_S
) -> Iterator[None]:
    """Call `report` with the count about once a second from another thread, until the block ends.

    A compiler says to nobody when an object is done, so that its folder is looked at: `count_objects` takes about
    10 ms of CPU. `report` is never called after the block.
    """
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(interval_s):
            report(count())

    thread = threading.Thread(target=watch, name="count of progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
