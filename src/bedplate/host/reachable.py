"""Makes sure that an unprivileged account can reach and read what root prepared for it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import RequirementMissing

if TYPE_CHECKING:
    from collections.abc import Iterable

_TRAVERSE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
_READ = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH


def open_to_all(tree: Path) -> None:
    """Like `chmod -R a+rX`: whatever the caller's umask was, every account may read and run `tree`.

    Symbolic links are left alone; nobody's right to write changes.
    """
    _add_mode(tree, _READ | _TRAVERSE)
    for folder, folders, files in os.walk(tree):
        for name in folders:
            _add_mode(Path(folder, name), _READ | _TRAVERSE)
        for name in files:
            path = Path(folder, name)
            runs = not path.is_symlink() and path.stat().st_mode & stat.S_IXUSR
            _add_mode(path, _READ | (_TRAVERSE if runs else 0))


def require_traversable(path: Path, *, own: Path) -> None:
    """Every folder from / to `path` must let any account through.

    Folders from `own` (inclusive) downwards are bedplate's and are opened; one above it is not
    ours to change: `RequirementMissing` names each that is closed. Judged by the mode bits for
    others, so a folder that lets the account in by an access control list only is refused too.
    """
    if own.resolve() != path.resolve() and own.resolve() not in path.resolve().parents:
        raise ValueError(f"{path} does not lie under {own}")
    ours = {own.absolute(), own.resolve()}
    closed = []
    for folder in _walked([path]):
        if folder in ours or ours & set(folder.parents):
            _add_mode(folder, _READ | _TRAVERSE)
        elif _is_closed(folder):
            closed.append(folder)
    if closed:
        raise RequirementMissing(
            *closed_sentences(closed, path),
            "set BEDPLATE_CACHE to a folder that every account can reach, or open the folders with chmod o+x",
        )


def closed_folders(*paths: Path) -> tuple[Path, ...]:
    """The folders from / to `paths` that are there and let no other account through, from the root down, each once."""
    return tuple(folder for folder in _walked(paths) if folder.is_dir() and _is_closed(folder))


def closed_sentences(folders: Iterable[Path], path: Path) -> tuple[str, ...]:
    """A sentence for each of these folders on the way to `path`."""
    return tuple(
        f"{folder} (mode {stat.S_IMODE(folder.stat().st_mode):04o}) lets no other account through, "
        f"and the server runs as an unprivileged account from {path}"
        for folder in folders
    )


def _walked(paths: Iterable[Path]) -> dict[Path, None]:
    """The ways as written and the real ones: through a symbolic link an account walks both."""
    return dict.fromkeys(
        folder
        for path in paths
        for way in (path.absolute(), path.resolve())
        for folder in (*reversed(way.parents), way)
    )


def _is_closed(folder: Path) -> bool:
    return not folder.stat().st_mode & stat.S_IXOTH


def _add_mode(path: Path, bits: int) -> None:
    if path.is_symlink():
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode | bits != mode:
        path.chmod(mode | bits)
