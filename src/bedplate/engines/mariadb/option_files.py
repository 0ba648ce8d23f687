"""MariaDB's option files and command line, as far as some options are looked for (manual, "Configuring MariaDB with Option Files").

A later word wins. A name may be written with `-` or `_`, behind `loose-`, `skip-` and the like, and as short as it is unambiguous.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.host.plain_file import plain_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

# Where a server of the distribution looks first; then comes `.my.cnf` in its account's home.
USUAL_FILES = (Path("/etc/my.cnf"), Path("/etc/mysql/my.cnf"))
_GROUPS = ("mysqld", "server", "mariadb", "mariadbd", "client-server", "galera")
# mysqld.cc, load_default_groups: a version may stand behind these (`mariadb-11.4`), and behind no other.
_VERSIONED = ("mysqld", "mariadb", "mariadbd")
_OF_A_VERSION = re.compile(rf"({'|'.join(_VERSIONED)})-\d+\.\d+")
_OFF, _ON = ("skip_", "disable_"), "enable_"
# my_default.c: MAX_INCLUDE_DEPTH.
_DEPTH_MOST = 10
_FILES_MOST = 1000


def groups(version: str) -> frozenset[str]:
    """The groups that a server of a version (`10.11`, or empty) reads."""
    return frozenset({*_GROUPS, *(f"{name}-{version}" for name in _VERSIONED if version)})


def option(word: str) -> tuple[str, str]:
    """Name and value of a line or an argument without its `--`; one without a value is ON."""
    name, equals, value = word.partition("=")
    name = name.strip().lower().replace("-", "_").removeprefix("loose_")
    for begin in _OFF:
        if name.startswith(begin):
            return name.removeprefix(begin), "OFF"
    return name.removeprefix(_ON), _value(value.strip()) if equals else "ON"


def _value(text: str) -> str:
    """Without quotes, or without a comment behind it."""
    if text[:1] in {"'", '"'}:
        return text[1:].partition(text[0])[0]
    return text.partition("#")[0].strip()


class OptionReading:
    """What was found of the options `names` so far, by their names; `said_by` has where, `unread` what could not be read, `others` the other options.

    `version` is the server's (`10.11`), or empty where it is not known: whether it reads a group of one version is open then.
    """

    def __init__(self, names: Collection[str], version: str) -> None:
        self.values: dict[str, str] = {}
        self.said_by: dict[str, str] = {}
        self.others: dict[str, str] = {}
        self.unread: list[str] = []
        self._names, self._groups, self._version = names, groups(version), version
        self._files = 0

    def arguments(self, words: Iterable[str]) -> None:
        """Those of a command line; a value may be a word of its own."""
        every = list(words)
        for word, following in zip(every, [*every[1:], "--"], strict=True):
            if word.startswith("--"):
                is_apart = "=" not in word and not following.startswith("-") and following
                self._take(*option(f"{word[2:]}={following}" if is_apart else word[2:]), "its command line")

    def file(self, path: Path, *, may_lack: bool = False, depth: int = 0) -> None:
        """One file, with those that it includes."""
        self._files += 1
        if depth > _DEPTH_MOST or self._files > _FILES_MOST:
            self.unread.append(f"{path}: included too deeply, as the server would say")
            return
        try:
            text = plain_text(path)
        except OSError as error:
            if not (may_lack and isinstance(error, FileNotFoundError)):
                self.unread.append(f"{path}: {error.strerror or error}")
            return
        group = ""
        for line in map(str.strip, text.splitlines()):
            if line.startswith("["):
                group = line[1:].partition("]")[0].strip()
            elif line.startswith("!"):
                for included in self._included(line, path.parent):
                    self.file(included, depth=depth + 1)
            elif line and line[0] not in "#;" and group in self._groups:
                self._take(*option(line), str(path))
            elif line and line[0] not in "#;" and not self._version and _OF_A_VERSION.fullmatch(group):
                self.unread.extend(
                    f"{name} in [{group}] of {path}: the server's version is not known, and another one passes over that group"
                    for name in self._meant(option(line)[0])
                )

    def _included(self, line: str, base: Path) -> Iterator[Path]:
        what, _, target = line.partition(" ")
        if what == "!include":
            yield base / target.strip()
        elif what == "!includedir":
            try:
                found = sorted((base / target.strip()).iterdir())
            except OSError as error:
                self.unread.append(f"{base / target.strip()}: {error.strerror or error}")
                return
            yield from (path for path in found if path.suffix == ".cnf")

    def _take(self, name: str, value: str, source: str) -> None:
        meant = self._meant(name)
        if not meant:
            self.others[name] = value
        for each in meant:
            self.values[each] = value
            self.said_by[each] = source

    def _meant(self, name: str) -> list[str]:
        """The one option that a name, or the beginning of one, stands for."""
        meant = [name] if name in self._names else [each for each in self._names if each.startswith(name)]
        return meant if len(meant) == 1 else []
