"""Builds bedplate's own drivers, written in C, once for each source and compiler.

A driver is compiled on the machine that runs it, as its kernel headers and its processor are what
counts. The cache is keyed by everything that decides the result; a finished file is renamed into
place, so that a driver in the cache is always a whole one.
"""

from __future__ import annotations

import fcntl
import hashlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import CommandFailed, RequirementMissing

if TYPE_CHECKING:
    from bedplate.host.command import Commands

COMPILER = "cc"
# -pthread is a matter of the C library's age; newer ones have threads built in and ignore it.
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-pthread")
_COMPILE_LIMIT_S = 120.0


def ensure_driver(
    name: str,
    *,
    source: Path,
    cache_directory: Path,
    commands: Commands,
    libraries: tuple[str, ...] = (),
) -> Path:
    """The path of the driver `name`, compiled from `source` unless the cache has it already.

    A folder beside `source` with its name (`lmdb.c`, `lmdb/`) belongs to it: all C files in it are
    compiled too. `libraries` are linker words (`-llmdb`). Two processes may ask at once: one compiles, the other
    waits for it. Raises `RequirementMissing` where there is no C compiler, no source, or where the
    compiler refuses the source, with what it said.
    """
    files = (source, *sorted(source.with_suffix("").glob("*.[ch]")))
    try:
        parts = [part for file in files for part in (file.name.encode(), file.read_bytes())]
    except OSError as error:
        raise RequirementMissing(
            f"the source of the driver {name} cannot be read: {error.filename}: {error.strerror}; "
            f"bedplate has to run from its own folder"
        ) from error
    parts += [_compiler_version(commands, name).encode(), " ".join((*FLAGS, *libraries)).encode()]
    key = hashlib.sha256()
    for part in parts:
        key.update(len(part).to_bytes(8, "little") + part)
    driver = cache_directory / f"{name}-{key.hexdigest()[:16]}"
    if driver.exists():
        return driver
    cache_directory.mkdir(parents=True, exist_ok=True)
    with (cache_directory / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not driver.exists():
            _compile(driver, name=name, files=files, libraries=libraries, commands=commands)
    return driver


def _compiler_version(commands: Commands, name: str) -> str:
    try:
        return commands.run([COMPILER, "--version"]).stdout
    except CommandFailed as error:
        raise RequirementMissing(
            f"no working C compiler ({COMPILER}) to build the driver {name}: {error.reasons[0]}; "
            f"install the packages gcc and libc6-dev"
        ) from error


def _compile(
    driver: Path, *, name: str, files: tuple[Path, ...], libraries: tuple[str, ...], commands: Commands
) -> None:
    """Compile in a folder beside the target: a rename is atomic only within one file system."""
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=driver.parent) as temporary:
        built = Path(temporary) / name
        sources = [str(file.resolve()) for file in files if file.suffix == ".c"]
        argv = [COMPILER, *FLAGS, "-o", str(built), *sources, *libraries]
        try:
            commands.run(argv, timeout_s=_COMPILE_LIMIT_S)
        except CommandFailed as error:
            raise RequirementMissing(
                f"the driver {name} cannot be built: {error.reasons[0]}; "
                f"are libc6-dev and the libraries' -dev packages installed?"
            ) from error
        built.chmod(0o755)
        built.replace(driver)
