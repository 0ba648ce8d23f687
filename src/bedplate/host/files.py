"""What stands in a file: its text, where it is small and may be gone, and the checksum that records keep; and the folders of others."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath

from bedplate.errors import RequirementMissing
from bedplate.units import MIB, format_size


def sha256_of(path: Path) -> str:
    """The checksum that package indexes promise, in lower-case hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_of(path: Path) -> str:
    """The text without blanks around it; empty where there is no such file, or it may not be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def folders_below(top: Path) -> Iterator[tuple[str, tuple[os.DirEntry[str], ...]]]:
    """`top` and each folder below it, with what is in it but folders; links are not followed.

    However deep: os.walk (before Python 3.12) and Path.rglob call themselves for each folder, and a program of others may make thousands,
    one in the other. A folder that is gone meanwhile, or has too long a path, is left out.
    """
    folders = [os.fspath(top)]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as found:
                entries = {entry: entry.is_dir(follow_symlinks=False) for entry in found}
        except OSError:
            continue
        yield folder, tuple(entry for entry, is_folder in entries.items() if not is_folder)
        folders += (entry.path for entry, is_folder in entries.items() if is_folder)


# Whoever may read a file may lock it: a program of others, as an account without rights, would hold up everybody.
_MODE = 0o600


@contextmanager
def file_lock(
    path: Path, *, on_wait: Callable[[], None] | None = None, of_system: bool = False
) -> Iterator[None]:
    """Hold `path` exclusively; waits for another holder after calling `on_wait` once.

    The file stays behind, empty: removing it would let a third start lock another file of the
    same name. A holder that is killed holds nothing. The mode of a file that is the system's is left as it is.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
    try:
        if not of_system and os.fstat(descriptor).st_uid == os.geteuid():
            os.fchmod(descriptor, _MODE)
        if not take_lock(descriptor):
            if on_wait is not None:
                on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def file_lock_if_free(path: Path) -> Iterator[bool]:
    """Hold `path` if nobody does; yields whether it is held. Never waits, never makes the file."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield False
        return
    try:
        yield take_lock(descriptor)
    finally:
        os.close(descriptor)


def take_lock(file: int, *, shared: bool = False) -> bool:
    """Lock an open file exclusively, or `shared` with others of that kind, for as long as it is open; False if somebody else holds it.

    One that was taken so can be taken anew as the other kind; where that fails it may be lost (flock(2)).
    """
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


_TEXT_BYTES_MOST = MIB


def plain_bytes(path: Path, most: int, *, offset: int = 0) -> bytes:
    """At most so many bytes of a regular file, from `offset`; OSError, of anything else too."""
    return _content(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), most, offset)


def bytes_below(top: Path, name: str, most: int) -> bytes:
    """A regular file of at most so many bytes below `top`, on a way of plain folders; OSError, of a link and of a larger one too.

    For root, where others decide what a name leads to: a link would have it read for them what they may not.
    """
    *folders, last = PurePath(name).parts
    place = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
            os.close(place)
            place = below
        file = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
        content = _content(file, most + 1)
    except OSError as error:
        raise OSError(
            error.errno, error.strerror if error.errno != errno.ELOOP else "it is a link", str(top / name)
        ) from None
    finally:
        os.close(place)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {format_size(most)}", str(top / name))
    return content


def _content(descriptor: int, most: int, offset: int = 0) -> bytes:
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is no file")
        return os.pread(descriptor, most, offset)
    finally:
        os.close(descriptor)


def plain_text(path: Path) -> str:
    """The text of a regular file, of its first MiB; what is no UTF-8 is replaced. OSError as above."""
    return plain_bytes(path, _TEXT_BYTES_MOST).decode(errors="replace")


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


def require_traversable(path: Path, *, base: Path) -> None:
    """Every folder from / to `path` must let any account through.

    Folders from `base` (inclusive) downwards are bedplate's and are opened; one above it is not
    ours to change: `RequirementMissing` names each that is closed. Judged by the mode bits for
    others, so a folder that lets the account in by an access control list only is refused too.
    """
    if base.resolve() != path.resolve() and base.resolve() not in path.resolve().parents:
        raise ValueError(f"{path} does not lie under {base}")
    ours = {base.absolute(), base.resolve()}
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


# What no record fits in any more. An error without a name of a file (of write(2)) says no more than "full".
_FULL_BYTES = MIB

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


def full_places(*places: Path) -> tuple[str, ...]:
    """A sentence for each of these folders that is there and whose file system has no room left."""
    found = []
    for place in places:
        try:
            room = os.statvfs(place)
        except OSError:
            continue
        free_bytes = room.f_bavail * room.f_frsize
        if free_bytes < _FULL_BYTES:
            found.append(
                f"{place}: {os.strerror(errno.ENOSPC)} ({format_size(free_bytes)} free); free some room there"
            )
        elif room.f_files and not room.f_favail:
            found.append(f"{place}: {os.strerror(errno.ENOSPC)} (no inode is free); remove some files there")
    return tuple(dict.fromkeys(found))


def places_without_room(output: str, *places: Path) -> tuple[str, ...]:
    """The same after a program failed; it may have removed what it wrote, so what it said of a full disk counts too."""
    full = full_places(*places)
    if full or os.strerror(errno.ENOSPC) not in output:
        return full
    named = " or ".join(dict.fromkeys(map(str, places)))
    return (f"{named}: {os.strerror(errno.ENOSPC)}, as a program said that wrote there; free some room",)


def sync_directory(path: Path) -> None:
    """Bring the names in it to the medium. Not os.sync: that would wait for every other file system of the machine."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def state_directory() -> Path:
    """$BEDPLATE_STATE, else /run/bedplate for root, else the user's runtime directory."""
    given = os.environ.get("BEDPLATE_STATE")
    if given:
        return Path(given)
    if os.geteuid() == 0:
        return Path("/run/bedplate")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime) / "bedplate"
    # In a folder of everybody's a stranger may have been first: what he owns he can move away with all in it.
    return own_directory(Path(f"/tmp/bedplate-{os.getuid()}")) / "bedplate"  # noqa: S108 -- looked at first


def own_directory(path: Path) -> Path:
    """The directory, made if need be; RequirementMissing if it is a link, another's, or open to others."""
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise RequirementMissing(
            f"{path} is not a directory of this user's alone (owner {status.st_uid}, mode "
            f"{stat.S_IMODE(status.st_mode):04o}); remove it, or set BEDPLATE_STATE or XDG_RUNTIME_DIR"
        )
    return path


# Root's, which everybody may read.
SYSTEM_CACHE = Path("/var/cache/bedplate")


def cache_directory() -> Path:
    """`$BEDPLATE_CACHE`; else /var/cache/bedplate for root, else the XDG cache of the user.

    Nothing is created here. A server runs from the cache as an unprivileged account, which is
    why root's default is not root's home.
    """
    asked = os.environ.get("BEDPLATE_CACHE")
    if asked:
        return Path(asked).absolute()
    if os.geteuid() == 0:
        return SYSTEM_CACHE
    # The XDG base directory specification: a relative path is invalid and to be ignored.
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(xdg) if xdg.startswith("/") else Path.home() / ".cache"
    return base / "bedplate"
