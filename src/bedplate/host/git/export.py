"""The files of a commit, written into a folder: out of git's object store, so that no attribute and no filter changes them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, NamedTuple

from bedplate.errors import BedplateError, CommandFailed, PlanError
from bedplate.host.command import environment
from bedplate.host.git.own_repository import Repository, borrow
from bedplate.host.git.repository import is_full_hash
from bedplate.host.interruption import held
from bedplate.near_names import quoted
from bedplate.units import GIB, MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

_FILE, _PROGRAM, _LINK, _MODULE = "100644", "100755", "120000", "160000"
# What old trees have besides, which git reads as a plain file.
_FILES = (_FILE, _PROGRAM, "100664")
# In a manifest, the object of a file that may hold anything.
_UNKNOWN = "-"
_PIECE_BYTES = 1 << 20
_SAID_BYTES = 4000
# Linux has 90,000 files in 7 MB of names and 1.5 GB; a commit's objects may be many times that, and take nothing in the repository.
_LISTING_BYTES_MOST, _BYTES_MOST = 256 * MIB, 16 * GIB
# A link's own path on most file systems, a name on nearly all; the folder that it is written to is not counted.
_PATH_BYTES_MOST, _NAME_BYTES_MOST = 3000, 255


class _Entry(NamedTuple):
    mode: str
    name: str
    path: str


def export(tree: Path, commit: str, into: Path) -> None:
    """Write the files of a commit, named by its hash, into the folder `into`, which is made. Submodules are empty folders.

    PlanError where a path or a symbolic link of the commit leads out of the folder, or is no UTF-8; CommandFailed with git's own
    words where objects are missing; OSError where it cannot be written.
    """
    with borrow(tree) as repository:
        entries = _entries(repository, commit)
        into.mkdir()
        _write_entries(repository, commit, entries, into)


def refresh(tree: Path, commit: str, into: Path, manifest: Path) -> tuple[str, ...]:
    """Make the folder `into` the files of a commit, and write only what differs from what it holds: the paths that changed.

    What it holds stands in `manifest`, a file beside it that only this function writes; without one all is written. So what is made of the
    files by their times, as make(1) does, is made anew only where a file changed. Errors are those of `export`; after any of them, and after
    a kill, the next call mends the folder. `forget` says which files somebody else changed.
    """
    with borrow(tree) as repository:
        entries = _entries(repository, commit)
        known = _read_manifest(manifest) if into.is_dir() else {}
        gone = sorted(known.keys() - {entry.path for entry in entries})
        changed = [entry for entry in entries if known.get(entry.path) != (entry.mode, entry.name)]
        # First: what is killed from here on is written again, or taken away, by the next call.
        under_way = dict.fromkeys((*gone, *(entry.path for entry in changed)), (_FILE, _UNKNOWN))
        _write_manifest(manifest, {**known, **under_way})
        into.mkdir(exist_ok=True)
        for path in (*gone, *(entry.path for entry in changed)):
            _clear(into, path)
        _write_entries(repository, commit, changed, into)
    _write_manifest(manifest, {entry.path: (entry.mode, entry.name) for entry in entries})
    return tuple(sorted((*gone, *(entry.path for entry in changed))))


def forget(manifest: Path, paths: Iterable[str]) -> None:
    """Files below a refreshed folder that somebody else writes from now on: the next `refresh` writes them again, or takes them away."""
    _write_manifest(manifest, {**_read_manifest(manifest), **dict.fromkeys(paths, (_FILE, _UNKNOWN))})


def _write_entries(repository: Repository, commit: str, entries: Iterable[_Entry], into: Path) -> None:
    entries = tuple(entries)
    for folder in dict.fromkeys(PurePosixPath(entry.path).parent for entry in entries):
        (into / folder).mkdir(parents=True, exist_ok=True)
    for entry in entries:
        if entry.mode == _MODULE:
            (into / entry.path).mkdir(exist_ok=True)
    # Links last: nothing is ever written through one.
    files = [entry for entry in entries if entry.mode in _FILES]
    links = [entry for entry in entries if entry.mode == _LINK]
    left = _BYTES_MOST
    with contextlib.closing(_contents(repository, [entry.name for entry in (*files, *links)])) as contents:
        for entry in files:
            size, pieces = next(contents)
            left -= size
            if left < 0:
                raise PlanError(
                    f"{repository.tree} at {commit[:12]} has more than {format_size(_BYTES_MOST)} of files, and is not written"
                )
            _write(into / entry.path, pieces, mode=0o755 if entry.mode == _PROGRAM else 0o644)
        for entry in links:
            size, pieces = next(contents)
            target = b"".join(pieces).decode("utf-8", "surrogateescape") if size <= _PATH_BYTES_MOST else ""
            if leads_out(entry.path, target):
                raise PlanError(
                    f"{repository.tree} at {commit[:12]}: the symbolic link {entry.path!r} leads out of the tree, "
                    f"to {target[:200]!r}"
                )
            (into / entry.path).symlink_to(target)


def _read_manifest(manifest: Path) -> dict[str, tuple[str, str]]:
    try:
        lines = manifest.read_text(encoding="utf-8").split("\0")
    except FileNotFoundError:
        return {}
    found = {}
    for line in lines[:-1]:
        mode, name, path = line.split(" ", 2)
        found[path] = (mode, name)
    return found


def _write_manifest(manifest: Path, held_by_path: Mapping[str, tuple[str, str]]) -> None:
    fresh = manifest.with_name(f".{manifest.name}")
    text = "".join(f"{mode} {name} {path}\0" for path, (mode, name) in held_by_path.items())
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(manifest)


def _clear(into: Path, path: str) -> None:
    """Take away what stands in the place of a file, and folders that are empty then; a link among its folders is none of ours."""
    place = into / path
    parents = [into / parent for parent in PurePosixPath(path).parents][:-1]
    for parent in reversed(parents):
        if parent.is_symlink() or (parent.exists() and not parent.is_dir()):
            parent.unlink()
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    for parent in parents:
        with contextlib.suppress(OSError):
            parent.rmdir()


def _entries(repository: Repository, commit: str) -> Sequence[_Entry]:
    """All files of a commit; PlanError where some cannot be written below a folder."""
    where = f"{repository.tree} at {commit[:12]}"
    if not is_full_hash(commit):
        raise PlanError(f"{quoted(commit)} is no hash of a commit of {repository.tree}")
    with _started(repository, "ls-tree", "-r", "-z", "--full-tree", commit) as listing:
        assert listing.stdout is not None  # noqa: S101 -- Popen was given a pipe
        # A tree of a few hundred bytes may name more files than a disk can hold.
        listed = listing.stdout.read(_LISTING_BYTES_MOST + 1)
        if len(listed) > _LISTING_BYTES_MOST:
            raise PlanError(
                f"{where} has more files than {format_size(_LISTING_BYTES_MOST)} can name, and is not written"
            )
    found = []
    for line in listed.split(b"\0")[:-1]:
        about, _, path = line.partition(b"\t")
        mode, _, name = about.decode("ascii").split(" ")
        found.append(_Entry(mode, name, path.decode("utf-8", "surrogateescape")))
    reasons = [reason for entry in found if (reason := _misplaced(entry))]
    if reasons:
        raise PlanError(*(f"{where}: {reason}" for reason in reasons[:10]))
    return found


def _misplaced(entry: _Entry) -> str | None:
    parts = entry.path.split("/")
    try:
        entry.path.encode("utf-8")
    except UnicodeEncodeError:
        return f"the path {entry.path.encode('utf-8', 'surrogateescape')!r} is no UTF-8"
    if any(part in ("", ".", "..") or part.lower() == ".git" for part in parts):
        return f"the path {entry.path[:200]!r} leads out of the tree"
    if len(os.fsencode(entry.path)) > _PATH_BYTES_MOST or any(
        len(os.fsencode(part)) > _NAME_BYTES_MOST for part in parts
    ):
        return f"the path {entry.path[:80]!r}… is longer than a file system takes"
    if entry.mode not in (*_FILES, _LINK, _MODULE):
        return f"{entry.path[:200]!r} is of the unknown mode {entry.mode}"
    return None


def leads_out(path: str, target: str) -> bool:
    """Whether the target of a symbolic link at `path` is no place of the folder that the path begins in."""
    where = os.path.normpath(f"{PurePosixPath(path).parent}/{target}")
    return target.startswith("/") or where == ".." or where.startswith("../") or not target


def _write(path: Path, pieces: Iterator[bytes], *, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        for piece in pieces:
            file.write(piece)
        # Whatever the caller's umask is.
        os.fchmod(descriptor, mode)


def _contents(
    repository: Repository, names: Sequence[str]
) -> Generator[tuple[int, Iterator[bytes]], None, None]:
    """The size and the content of each object in order, in pieces; each is to be read to its end before the next."""
    with _started(repository, "cat-file", "--batch", "--buffer", asks=True) as reader:
        assert reader.stdin is not None  # noqa: S101 -- Popen was given pipes
        assert reader.stdout is not None  # noqa: S101
        asking = threading.Thread(target=_ask, args=(reader.stdin, names), name="asks git", daemon=True)
        asking.start()
        for name in names:
            head = reader.stdout.readline().split()
            if len(head) != 3 or head[1] != b"blob":
                raise BedplateError(
                    f"{repository.tree}: the object {name} cannot be read ({b' '.join(head).decode('ascii', 'replace') or 'git ended'}); "
                    "is the clone whole? `git fsck` says what it lacks"
                )
            yield int(head[2]), _pieces(reader.stdout, int(head[2]))
            reader.stdout.read(1)
        asking.join()


def _ask(stdin: IO[bytes], names: Sequence[str]) -> None:
    # A reader that ended is found by what it did not answer.
    with contextlib.suppress(OSError), stdin:
        for name in names:
            stdin.write(f"{name}\n".encode("ascii"))


def _pieces(stdout: IO[bytes], size: int) -> Iterator[bytes]:
    left = size
    while left:
        piece = stdout.read(min(left, _PIECE_BYTES))
        if not piece:
            raise BedplateError("git ended within an object")
        left -= len(piece)
        yield piece


@contextlib.contextmanager
def _started(repository: Repository, *words: str, asks: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    """A git whose output is bytes, to its end; CommandFailed with its own words where it failed."""
    argv = repository.argv(*words)
    process: subprocess.Popen[bytes] | None = None
    try:
        with held():
            process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE if asks else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd="/",
                env=environment(),
                start_new_session=True,
            )
        yield process
        assert process.stderr is not None  # noqa: S101 -- Popen was given a pipe
        said = process.stderr.read(_SAID_BYTES).decode("utf-8", "replace").strip()
        if process.wait() != 0:
            raise CommandFailed(
                f"git {words[0]} of {repository.tree} ended with status {process.returncode}: {said}",
                argv=argv,
                status=process.returncode,
                output=said,
            )
    finally:
        if process is not None:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
