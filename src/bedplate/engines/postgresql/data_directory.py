"""A cluster's directory, read without a server: its version, its settings as the files and the last start have them, its places.

The order is the server's: postgresql.conf with what it includes, postgresql.auto.conf, the command line of the last start.
What a session, a role or a database sets otherwise stands in tables, and only a server tells it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.configuring.configuration import truth
from bedplate.engines.postgresql.configuring.server_settings import (
    CONTROLLED,
    INCLUDES,
    configuration_lines,
    refused_library,
)
from bedplate.engines.postgresql.configuring.settings import setting_name, setting_value
from bedplate.engines.postgresql.own_data.control_file import read_sizes
from bedplate.host.plain_file import plain_text
from bedplate.model.data_directory import DataDirectory, KnownFiles
from bedplate.model.durability import SESSION_SETTINGS
from bedplate.model.engines import POSTGRESQL
from bedplate.units import KIB, MIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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


# Where Debian and Ubuntu have the configuration of a cluster: in a folder of its version and name, outside of its data.
_ELSEWHERE = Path("/etc/postgresql")
_CONFIGURATION = "postgresql.conf"
_USUAL_BLOCK, _USUAL_SEGMENT = 8 * KIB, 16 * MIB
# Settings that a plan could have and a visit should not, by their names, and why.
_NOT_OF_A_VISIT = (
    (
        re.compile(
            r"archive_\w+|primary_\w+|recovery_\w+|promote_\w+|hot_standby\w*|synchron\w+_standby_\w+"
        ),
        "a visit has no archive and no standby",
    ),
    (
        re.compile(r"ssl\w*|krb_\w+|gss_\w+|tcp_\w+|pam_\w+|ldap\w*"),
        "nobody reaches a visit's server by a network",
    ),
    (re.compile(r"default_tablespace|temp_tablespaces"), "a visit has no tablespaces"),
    (
        re.compile(
            r"lc_\w+|datestyle|timezone|default_text_search_config|dynamic_shared_memory_type|cluster_name|stats_temp_directory"
        ),
        "initdb and the server set them for each cluster",
    ),
)


class _Reading:
    """The settings found so far, those that decide apart from the others; a later one wins."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.others: dict[str, str] = {}
        self.said_by: dict[str, str] = {}
        self.unread: list[str] = []
        self.files = 0

    def take(self, name: str, value: str, source: str) -> None:
        if name in SESSION_SETTINGS:
            meant = truth(value)
            # In synchronous_commit and full_page_writes any spelling of a truth; a method of syncing is a word.
            self.settings[name] = value if meant is None else "on" if meant else "off"
            self.said_by[name] = source
        else:
            self.others[name] = value

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
    named = dict(options).get("config_file")
    # The other way may begin with the directory already, which may be a relative one.
    reading.file(directory / named if named else _configuration_of(directory))
    reading.file(directory / "postgresql.auto.conf", may_lack=True)
    for name, value in options:
        reading.take(name, value, "its command line")
    more, left_out = _as_in_a_plan(reading.others)
    made_with, unmade = _made_with(directory)
    return DataDirectory(
        engine=POSTGRESQL,
        version=version,
        settings={**_DEFAULTS, **reading.settings},
        said_by=reading.said_by,
        places=_places(directory, reading),
        unread=tuple(reading.unread),
        knows_settings=not reading.unread,
        untold=(_UNTOLD,),
        made_with=made_with,
        more=more,
        left_out=(*left_out, *unmade),
    )


def _configuration_of(directory: Path) -> Path:
    """Its postgresql.conf, where the last start names none: in it, or where Debian has the one that names this directory."""
    inside = directory / _CONFIGURATION
    if inside.exists():
        return inside
    for file in sorted(_ELSEWHERE.glob(f"*/*/{_CONFIGURATION}")):
        try:
            places = [
                value for _, name, value in configuration_lines(plain_text(file)) if name == "data_directory"
            ]
            if places and Path(places[-1]).samefile(directory):
                return file
        except OSError:
            continue
    return inside


def _made_with(directory: Path) -> tuple[dict[str, str | bool], tuple[str, ...]]:
    """By its control file, as `[postgresql]` of a plan has it, or why that is not known; sizes that a cluster has unless it is asked are left out."""
    try:
        sizes = read_sizes(directory)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        return {}, (
            f"block sizes, data_checksums, wal_segment_size: global/pg_control cannot be read ({why})",
        )
    found: dict[str, str | bool] = {"data_checksums": sizes.data_checksums}
    for key, size_bytes, usual in (
        ("block_size", sizes.block_size_bytes, _USUAL_BLOCK),
        ("wal_block_size", sizes.wal_block_size_bytes, _USUAL_BLOCK),
        ("wal_segment_size", sizes.wal_segment_bytes, _USUAL_SEGMENT),
    ):
        if size_bytes != usual:
            found[key] = f"{size_bytes // MIB} MB" if size_bytes % MIB == 0 else f"{size_bytes // KIB} kB"
    return found, ()


def _as_in_a_plan(settings: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Those that `[postgresql.settings]` can have, and sentences about the others."""
    kept: dict[str, str] = {}
    others: defaultdict[str, list[str]] = defaultdict(list)
    for name, value in settings.items():
        why = _why_not_in_a_plan(name, value)
        if why is None:
            kept[name] = value
        elif name.isprintable():
            others[why].append(name)
    return kept, tuple(f"{', '.join(names)}: {why}" for why, names in others.items())


def _why_not_in_a_plan(name: str, value: str) -> str | None:
    why = next((why for names, why in _NOT_OF_A_VISIT if names.fullmatch(name)), None)
    if name in CONTROLLED or why is not None:
        return why or CONTROLLED[name]
    try:
        setting_name(name)
        setting_value(value)
    except ValueError as error:
        return str(error)
    refused = refused_library(name, value)
    return None if refused is None else refused.removeprefix(f"{name} ")


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
