"""Files of a data directory that come from elsewhere, copied into a server's own: nothing but data comes along."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.host.command import Account
    from bedplate.model.visit import EngineBuild

# What decides how a server starts and who may ask it. The taker's own stay; others' are left where they are.
CONFIGURATION = frozenset(("postgresql.conf", "postgresql.auto.conf", "pg_hba.conf", "pg_ident.conf"))
# Of a server that ran: not data.
_LEFT = CONFIGURATION | {"postmaster.pid", "postmaster.opts", "log", "pg_log", "current_logfiles"}
# A slot would keep WAL for nobody.
_EMPTIED = frozenset(("pg_replslot", "pg_stat_tmp", "pg_notify", "pg_dynshmem"))
# Folder of links, and what a server makes those links of when it recovers from a backup.
_TABLESPACES, _TABLESPACE_MAP = "pg_tblspc", "tablespace_map"
_WAL = "pg_wal"
# On top of what an account of its own would have: a copy is the server's alone.
_FILE_MODE, _FOLDER_MODE = 0o600, 0o700
# A server's own folders are three deep at most (pg_logical/snapshots, pg_wal/archive_status).
_DEEPEST = 8


@dataclass(frozen=True)
class ClusterLayout:
    """What tells two restored copies of a database apart: the build, and what initdb was asked."""

    build: EngineBuild
    data_checksums: bool | None

    @property
    def key(self) -> str:
        """What a visit knows the copy by that it needs."""
        return f"restored {self.build.digest[:16]} {self.data_checksums}"


def copy_data(source: Path, target: Path, account: Account) -> int:
    """Replace the data in `target` by a copy of those in `source`, and give it to `account`; the bytes copied.

    The configuration of `target` stays. Links, special files, files of another owner than the directory's and
    tablespaces are refused, each before it is opened.
    """
    for entry in target.iterdir():
        if entry.name in CONFIGURATION:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    copied = 0
    for path, file in _files(source, target, account):
        with os.fdopen(file, "rb") as opened, path.open("xb") as fresh:
            shutil.copyfileobj(opened, fresh, 1 << 20)
            copied += fresh.tell()
        path.chmod(_FILE_MODE)
        os.chown(path, account.uid, account.gid)
    return copied


def size_of(data: Path) -> int:
    """The bytes of its files; OSError where one of its folders cannot be read, or lies too deep for a data directory."""
    return sum(Path(place, name).lstat().st_size for place, _, _, names in _walk(data) for name in names)


def state_of(data: Path) -> str:
    """A digest of what would be copied: each file's name, size and time of its last change. OSError as above."""
    digest = hashlib.sha256()
    for place, below, folders, names in _walk(data):
        _leave_out(below, folders, names)
        folders.sort()
        for name in sorted(names):
            found = Path(place, name).lstat()
            digest.update(os.fsencode(f"{below}/{name}\0{found.st_size} {found.st_mtime_ns}\n"))
    return digest.hexdigest()


def obstacles_to_copy(data: Path) -> Iterator[str]:
    """Why `copy_data` would refuse these files, each with the way out: said where a plan names them, before anything is built. OSError as above."""
    owner = data.stat().st_uid
    for place, below, folders, names in _walk(data):
        _leave_out(below, folders, names)
        tablespaces = _tablespaces(below, folders, names)
        if tablespaces:
            # Its links are told by that.
            folders.clear()
            names.clear()
            yield tablespaces
        for name in (*folders, *names):
            why = _why_not_copied(Path(place, name).lstat(), below, name, owner)
            if why is not None:
                yield why


def _walk(data: Path) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """Each folder, its path below `data`, and what is in it, as os.walk has that."""

    def refuse(error: OSError) -> None:
        raise error

    for place, folders, names in os.walk(data, onerror=refuse):
        below = os.path.relpath(place, data)
        if below.count(os.sep) >= _DEEPEST:
            raise OSError(
                errno.ELOOP,
                f"folders lie more than {_DEEPEST} deep, and a data directory has none there",
                place,
            )
        yield place, below, folders, names


def _files(source: Path, target: Path, account: Account) -> Iterator[tuple[Path, int]]:
    """Each file as its place in `target` and a descriptor to be closed; folders are made on the way."""
    owner = source.stat().st_uid
    for place, folders, names, at in os.fwalk(source, follow_symlinks=False):
        below = os.path.relpath(place, source)
        if below.count(os.sep) >= _DEEPEST:
            raise BedplateError(
                f"{source} has folders more than {_DEEPEST} deep, and a data directory has none there"
            )
        _leave_out(below, folders, names)
        here = target / below
        tablespaces = _tablespaces(below, folders, names)
        if tablespaces:
            raise BedplateError(f"{source}: {tablespaces}")
        for name in folders:
            _demand(os.stat(name, dir_fd=at, follow_symlinks=False), source, below, name, owner)
            (here / name).mkdir(mode=_FOLDER_MODE)
            os.chown(here / name, account.uid, account.gid)
        for name in names:
            _demand(os.stat(name, dir_fd=at, follow_symlinks=False), source, below, name, owner)
            # Of what was opened once more: its owner may have put something else there meanwhile.
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
            try:
                _demand(os.fstat(file), source, below, name, owner)
            except BedplateError:
                os.close(file)
                raise
            yield here / name, file


def _leave_out(below: str, folders: list[str], names: list[str]) -> None:
    """Take what is no data out of what a walk has of a folder."""
    if below in _EMPTIED:
        folders.clear()
        names.clear()
    if below == ".":
        for entries in (folders, names):
            entries[:] = [name for name in entries if name not in _LEFT and not name.endswith(".signal")]


def _tablespaces(below: str, folders: list[str], names: list[str]) -> str | None:
    links = [*folders, *names] if below == _TABLESPACES else []
    if not links and not (below == "." and _TABLESPACE_MAP in names):
        return None
    which = f" ({', '.join(sorted(links))})" if links else ""
    return (
        f"it has tablespaces{which}, whose files lie elsewhere; move its tables into pg_default "
        "(ALTER TABLE ALL IN TABLESPACE … SET TABLESPACE pg_default) and drop them (DROP TABLESPACE)"
    )


def _demand(found: os.stat_result, source: Path, below: str, name: str, owner: int) -> None:
    why = _why_not_copied(found, below, name, owner)
    if why is not None:
        raise BedplateError(f"{source}: {why}")


def _why_not_copied(found: os.stat_result, below: str, name: str, owner: int) -> str | None:
    """Of an entry as it is itself, no link followed."""
    shown = name if below == "." else f"{below}/{name}"
    if shown == _WAL and stat.S_ISLNK(found.st_mode):
        return (
            f"its {shown} is a link (initdb --waldir), and no link is followed; "
            "`pg_basebackup --pgdata=COPY --checkpoint=fast` makes a copy of a running server without one"
        )
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        return f"its {shown} is a link or no regular file, and is not copied; put what it leads to in its place, or take it away"
    if found.st_uid != owner:
        return f"its {shown} belongs to account {found.st_uid}, the data directory to {owner}, and is not copied; give it to that account"
    return None
