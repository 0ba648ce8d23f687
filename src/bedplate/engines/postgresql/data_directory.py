"""A cluster's directory, read without a server: its version, its settings as the files and the last start have them, its places.

The order is the server's: postgresql.conf with what it includes, postgresql.auto.conf, the command line of the last start.
What a session, a role or a database sets otherwise stands in tables, and only a server tells it.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.configuring.configuration import truth
from bedplate.engines.postgresql.configuring.server_settings import INCLUDES, configuration_lines
from bedplate.host.plain_file import plain_text
from bedplate.model.data_directory import DataDirectory, KnownFiles
from bedplate.model.durability import SESSION_SETTINGS
from bedplate.model.engines import POSTGRESQL

if TYPE_CHECKING:
    from collections.abc import Iterator

# Of PostgreSQL on Linux (guc_tables.c).
_DEFAULTS = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "wal_sync_method": "fdatasync",
}
# guc-file.l: CONF_FILE_MAX_DEPTH.
_DEPTH_MOST = 10
_FILES_MOST = 1000
_UNTOLD = (
    "settings of roles and databases (ALTER ROLE … SET, ALTER DATABASE … SET) are in tables, which cannot be read from files; "
    "a session can set synchronous_commit as well"
)


class _Reading:
    """The settings found so far; a later one wins."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.said_by: dict[str, str] = {}
        self.unread: list[str] = []
        self.files = 0

    def take(self, name: str, value: str, source: str) -> None:
        if name in SESSION_SETTINGS:
            meant = truth(value)
            # In synchronous_commit and full_page_writes any spelling of a truth; a method of syncing is a word.
            self.settings[name] = value if meant is None else "on" if meant else "off"
            self.said_by[name] = source

    def file(self, path: Path, depth: int = 0, *, may_lack: bool = False) -> None:
        self.files += 1
        if depth > _DEPTH_MOST or self.files > _FILES_MOST:
            self.unread.append(f"{path}: included too deeply, as the server would say")
            return
        try:
            text = plain_text(path)
        except FileNotFoundError:
            if not may_lack:
                self.unread.append(f"{path}: it is not there")
            return
        except OSError as error:
            self.unread.append(f"{path}: {error.strerror or error}")
            return
        for _, name, value in configuration_lines(text):
            if name in INCLUDES:
                self._included(path.parent / value, name, depth)
            else:
                self.take(name, value, str(path))

    def _included(self, path: Path, how: str, depth: int) -> None:
        if how != "include_dir":
            self.file(path, depth + 1, may_lack=how == "include_if_exists")
            return
        try:
            names = sorted(os.listdir(path))  # noqa: PTH208 -- in the order of the server: by bytes
        except OSError as error:
            self.unread.append(f"{path}: {error.strerror or error}")
            return
        for name in names:
            if name.endswith(".conf") and not name.startswith("."):
                self.file(path / name, depth + 1)


def _started_with(directory: Path, reading: _Reading) -> list[tuple[str, str]]:
    """The settings on the command line of the last start, or of the one that runs; none before the first."""
    try:
        words = shlex.split(plain_text(directory / "postmaster.opts"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        reading.unread.append(f"{directory / 'postmaster.opts'}: {error}")
        return []
    return list(_options(words))


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    """`-c name=value`, `--name=value` and `-F` (postgres(1))."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        pair = following if word == "-c" else word[2:] if word.startswith(("-c", "--")) else ""
        name, equals, value = pair.partition("=")
        if equals:
            yield name.lower().replace("-", "_"), value
        elif word == "-F":
            yield "fsync", "off"


def recognise(directory: Path) -> DataDirectory | None:
    """The cluster in a directory; None where there is none. Where that cannot be told, one with what could not be read."""
    try:
        version = plain_text(directory / "PG_VERSION").strip()[:20]
    except PermissionError:
        # The directory is its owner's alone. That it is a cluster's is known by its lock file, or not at all.
        return None
    except (FileNotFoundError, NotADirectoryError):
        return None
    reading = _Reading()
    options = _started_with(directory, reading)
    configuration = Path(dict(options).get("config_file", directory / "postgresql.conf"))
    reading.file(directory / configuration)
    reading.file(directory / "postgresql.auto.conf", may_lack=True)
    for name, value in options:
        reading.take(name, value, "its command line")
    return DataDirectory(
        engine=POSTGRESQL,
        version=version,
        settings={**_DEFAULTS, **reading.settings},
        said_by=reading.said_by,
        places=_places(directory, reading),
        unread=tuple(reading.unread),
        knows_settings=not reading.unread,
        untold=(_UNTOLD,),
    )


def _places(directory: Path, reading: _Reading) -> dict[str, str]:
    """The directory, and where its WAL and its tablespaces are elsewhere."""
    found = {"data": str(directory)}
    links = {"WAL": directory / "pg_wal"}
    try:
        links |= {f"tablespace {each.name}": each for each in sorted((directory / "pg_tblspc").iterdir())}
    except OSError as error:
        reading.unread.append(f"{directory / 'pg_tblspc'}: {error.strerror or error}")
    for what, link in links.items():
        if link.is_symlink():
            found[what] = str(link.resolve())
    return found


DATA_DIRECTORY = KnownFiles(recognise, frozenset({"postgres", "postmaster"}))
