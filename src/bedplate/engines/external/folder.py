"""The folder of an own engine: what is in it, what is refused, and the digest that makes it part of a cell's identity."""

from __future__ import annotations

import hashlib
import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.engines.external.description import FILE, EngineDescription, read_description
from bedplate.errors import PlanError
from bedplate.host.plain_file import plain_bytes
from bedplate.text_encoding import decode_text
from bedplate.units import KIB, MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_FILES, _MOST_BYTES, _DEEPEST = 1000, 256 * MIB, 20
_MOST_TEXT_BYTES = 64 * KIB
_DIGITS = 16
# What a visit knows the folder of its copy by.
PROGRAMS_KEY = "own engine"
# Made by interpreters beside the programs, and no part of them.
_LEFT_OUT = frozenset({"__pycache__", ".git"})


@dataclass(frozen=True)
class EngineFolder:
    """A folder that was read. `digest` is of the paths, rights and contents of its files, engine.toml's too."""

    path: Path
    text: str
    description: EngineDescription
    digest: str


def read_folder(path: Path) -> EngineFolder:
    """Look at everything in it; PlanError has every reason why it is none to run."""
    if not path.is_dir():
        raise PlanError(f"{path} is no directory; name the folder that has {FILE} and the programs")
    try:
        content = plain_bytes(path / FILE, _MOST_TEXT_BYTES + 1)
        text = decode_text(content)
    except OSError as error:
        raise PlanError(
            f"{path / FILE} cannot be read: {error.strerror}; docs/ENGINES.md shows one"
        ) from None
    except ValueError as error:
        raise PlanError(f"{path / FILE} cannot be read: {error}") from None
    if len(content) > _MOST_TEXT_BYTES:
        raise PlanError(
            f"{path / FILE} has more than {format_size(_MOST_TEXT_BYTES)}; docs/ENGINES.md shows a short one"
        )
    description = read_description(text)
    files = files_of(path)
    reasons = [*_of_others(path, files), *_no_programs(path, description)]
    if reasons:
        raise PlanError(*reasons)
    return EngineFolder(path, text, description, digest_of(path, files))


def files_of(path: Path) -> tuple[Path, ...]:
    """Every file below a folder, by its path; PlanError for what cannot be kept: links, devices, too many or too large ones."""
    found: list[Path] = []
    size_bytes = 0
    for count, (place, folders, names) in enumerate(os.walk(path), start=1):
        folder = Path(place)
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
        links = [name for name in folders if (folder / name).is_symlink()]
        for name in (*names, *links):
            mode = (folder / name).lstat()
            if not stat.S_ISREG(mode.st_mode):
                raise PlanError(
                    f"{folder / name} is no regular file; put a copy in its place, so that the folder has all it needs"
                )
            found.append(folder / name)
            size_bytes += mode.st_size
        is_deep = len(folder.parts) - len(path.parts) > _DEEPEST
        if is_deep or max(len(found), count) > _MOST_FILES or size_bytes > _MOST_BYTES:
            raise PlanError(
                f"{path} has more than {_MOST_FILES} files or folders, {format_size(_MOST_BYTES)}, or folders more than {_DEEPEST} deep: name a folder that has the engine alone"
            )
    return tuple(sorted(found))


def digest_of(path: Path, files: tuple[Path, ...]) -> str:
    """The first digits of a SHA-256."""
    found = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        runs = b"x" if os.access(file, os.X_OK) else b"-"
        name = os.fsencode(file.relative_to(path))
        for part in (name, runs, content):
            found.update(len(part).to_bytes(8, "little") + part)
    return found.hexdigest()[:_DIGITS]


def _of_others(path: Path, files: tuple[Path, ...]) -> Iterator[str]:
    """What somebody else may change is not run by root, as little as it may do."""
    trusted = {0, os.geteuid(), int(os.environ.get("SUDO_UID", "0"))}
    for place in dict.fromkeys(
        (path, *(parent for file in files for parent in _between(file, path)), *files)
    ):
        found = place.stat()
        if found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and not _is_own_group(found)):
            yield f"others may write to {place}; take that right away: chmod -R go-w {path}"
            return
        if found.st_uid not in trusted:
            yield f"{place} belongs to another account (uid {found.st_uid}); copy the folder, so that it is yours"
            return


def _is_own_group(found: os.stat_result) -> bool:
    """Whether the group is the owner's own, as many systems make one for each account and let it write."""
    try:
        return pwd.getpwuid(found.st_uid).pw_gid == found.st_gid
    except KeyError:
        return False


def _between(file: Path, top: Path) -> Iterator[Path]:
    return (parent for parent in file.parents if parent != top and parent.is_relative_to(top))


def _no_programs(path: Path, description: EngineDescription) -> Iterator[str]:
    for key, name in (("writer", description.writer), ("checker", description.checker)):
        program = path / name
        if not program.is_file():
            yield f"{FILE}: {key}: there is no {program}"
        elif not os.access(program, os.X_OK):
            yield f"{FILE}: {key}: {program} may not be executed; chmod +x {program}"
