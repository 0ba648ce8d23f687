"""The programs of an own engine as visits run them: a copy in the cache, named by its digest, that nobody changes any more."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import re
import shutil
import stat
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bedplate.campaign.preparation import NamedEngine, OwnPrograms
from bedplate.errors import PlanError, RequirementMissing
from bedplate.host.cache import Unused, days_since, lock_of, make_once, put_in_place
from bedplate.host.files import cache_directory, plain_bytes
from bedplate.model.durability import BOUNDED_LOSS, DURABLE, UNSAFE
from bedplate.model.levels import Levels, Scalar, as_in_a_plan
from bedplate.model.plan import EngineSetup
from bedplate.near_names import unknown_name
from bedplate.text_encoding import decode_text
from bedplate.units import KIB, MIB, format_size, parse_duration_s, parse_size

FILE = "engine.toml"
PROMISED_CLASSES = (DURABLE, BOUNDED_LOSS, UNSAFE)

# Levels of a cell beside the author's settings: what the engine is called, and the digest of its folder.
NAME, DIGEST = "name", "programs"

# The setting that is the page size: what a cut can tear, and an axis of heat maps.
PAGE_SIZE = "page_size"

# Options of the writer's beside the settings.
_RESERVED = (NAME, DIGEST, "clients", "seed", "duration")

_CHECK_LIMIT_S, _CHECK_LIMIT_MOST_S = 30.0, 600.0
_MOST_SETTINGS, _MOST_LEVELS, _LONGEST = 50, 100, 300
_NAME = re.compile(r"[a-z][a-z0-9.-]{0,39}")
_SETTING = re.compile(r"[a-z][a-z0-9_]{0,39}")
_KEYS = ("name", "writer", "checker", "check_limit", "settings", "promise", "build", "plant")
_SETTING_KEYS = ("kind", "levels", "default")
_PROMISE_KEYS = ("when", "class", "transactions", "ms", "source")
_BUILD_KEYS = ("fetch", "run", "needs", "keep")

# The package managers whose sources a build may have, by the programs that fetch them (`build.py`).
FETCHERS = ("cargo", "go", "pip")

# What the library of `drivers/planted_sync.c` does to a writer, and what it is called in the folder of one that has it.
PLANTS = ("drop-fsync", "drop-third-fsync", "drop-directory-fsync")
PLANTED_LIBRARY = "planted_sync.so"


@dataclass(frozen=True)
class Setting:
    """What the writer takes as `--NAME=VALUE`. `kind` is a key of `KINDS`; no `levels`: any value of the kind.

    `default` is the value that both programs get where a plan gives none; None: no option.
    """

    kind: str
    levels: tuple[Scalar, ...]
    default: Scalar | None

    def value(self, level: object) -> Scalar:
        """A level as cells have it (sizes in bytes); ValueError says what is allowed."""
        found = KINDS[self.kind](level)
        if self.levels and found not in self.levels:
            raise ValueError(f"allowed is one of {', '.join(map(as_in_a_plan, self.levels))}")
        return found


@dataclass(frozen=True)
class EnginePromise:
    """The class of commits under settings, and who says so. What a bounded loss may take at most: `transactions`, `ms`."""

    when: Levels
    durability: str
    transactions: int | None
    ms: float | None
    source: str


@dataclass(frozen=True)
class BuildTable:
    """How the programs of a folder of sources are made: argument lists, called in the folder without a network.

    `fetch` is one of `FETCHERS`. `needs` names packages for whoever reads that a build failed; `keep` is what the programs need beside them.
    """

    fetch: str | None
    run: tuple[tuple[str, ...], ...]
    needs: tuple[str, ...]
    keep: tuple[str, ...]


@dataclass(frozen=True)
class EngineDescription:
    """An engine.toml that was understood. `writer` and `checker` are paths in its folder, `plant` is one of `PLANTS`."""

    name: str
    writer: str
    checker: str
    check_limit_s: float
    settings: Mapping[str, Setting]
    promises: tuple[EnginePromise, ...]
    build: BuildTable | None
    plant: str | None

    def options_for(self, settings: Levels) -> Levels:
        """The options of both programs for the settings of a cell: those that were asked for, and defaults that are written down."""
        defaults = {name: each.default for name, each in self.settings.items() if each.default is not None}
        asked = {name: level for name, level in settings.items() if name in self.settings}
        return Levels({**defaults, **asked})

    def promise(self, settings: Levels) -> EnginePromise | None:
        """The first that is made for the settings of a cell; None without one."""
        told = self.options_for(settings)
        return next(
            (each for each in self.promises if each.when.items() <= told.items()),
            None,
        )


@cache
def read_description(text: str) -> EngineDescription:
    """An engine.toml; PlanError has every reason."""
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PlanError(f"{FILE} is no TOML: {error}") from None
    reader = _Reader(found)
    if reader.reasons:
        raise PlanError(*(f"{FILE}: {reason}" for reason in reader.reasons))
    return reader.description


class _Reader:
    """Reads key by key; what is wrong becomes a reason, and the next key is read."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.reasons: list[str] = [*_unknown(document, _KEYS, "")]
        name = document.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self._refuse(
                'name: allowed are small letters, digits, dots and hyphens, up to 40: name = "my-engine"'
            )
        settings = self._settings(document.get("settings", {}))
        plant = document.get("plant")
        if plant is not None and plant not in PLANTS:
            self._refuse(f"plant: found {plant!r}; allowed: {', '.join(PLANTS)}")
        self.description = EngineDescription(
            name=f"{name}.{plant}" if plant else str(name),
            writer=self._program(document, "writer"),
            checker=self._program(document, "checker"),
            check_limit_s=self._limit(document.get("check_limit")),
            settings=settings,
            promises=tuple(self._promises(document.get("promise", []), settings)),
            build=self._build(document["build"]) if "build" in document else None,
            plant=plant,
        )

    def _refuse(self, reason: str) -> None:
        self.reasons.append(reason)

    def _program(self, document: Mapping[str, Any], key: str) -> str:
        path = document.get(key, key)
        if not _is_text(path):
            self._refuse(f'{key}: allowed is the path of a program in the folder: {key} = "{key}"')
            return key
        return self._inside(key, path)

    def _inside(self, key: str, path: str) -> str:
        if path.startswith("/") or ".." in path.split("/"):
            self._refuse(f"{key}: {path!r} lies outside of the folder; put it in there")
        return path

    def _build(self, table: object) -> BuildTable | None:
        if not isinstance(table, dict):
            self._refuse('build: allowed is a table: [build], run = [["make"]]')
            return None
        self.reasons += _unknown(table, _BUILD_KEYS, "build.")
        fetch = table.get("fetch")
        if fetch is not None and fetch not in FETCHERS:
            self._refuse(f"build.fetch: found {fetch!r}; allowed: {', '.join(FETCHERS)}")
        commands = table.get("run", [])
        if not isinstance(commands, list) or not all(_is_words(words) and words for words in commands):
            self._refuse(
                'build.run: allowed are lists of a program and its words: run = [["make", "writer"]]'
            )
            commands = []
        lists = {}
        for key in ("needs", "keep"):
            lists[key] = table.get(key, [])
            if not _is_words(lists[key]):
                self._refuse(f'build.{key}: allowed is a list of names: {key} = ["a"]')
                lists[key] = []
        keep = tuple(self._inside("build.keep", path) for path in lists["keep"])
        return BuildTable(fetch, tuple(map(tuple, commands)), tuple(lists["needs"]), keep)

    def _limit(self, value: object) -> float:
        if value is None:
            return _CHECK_LIMIT_S
        try:
            seconds = parse_duration_s(value) if isinstance(value, str) else 0.0
        except ValueError:
            seconds = 0.0
        if not 1 <= seconds <= _CHECK_LIMIT_MOST_S:
            self._refuse('check_limit: allowed is a time from 1 s to 10 min, such as "30 s"')
        return seconds

    def _settings(self, tables: object) -> dict[str, Setting]:
        if not isinstance(tables, dict) or len(tables) > _MOST_SETTINGS:
            self._refuse(f"settings: allowed are up to {_MOST_SETTINGS} tables such as [settings.sync]")
            return {}
        found = {}
        for name, table in tables.items():
            where = f"settings.{name}"
            if not _SETTING.fullmatch(name) or name in _RESERVED:
                self._refuse(
                    f"{where}: a name has small letters, digits and underscores, and is none of {', '.join(_RESERVED)}"
                )
            elif not isinstance(table, dict):
                self._refuse(f'{where}: allowed is a table, such as {{ levels = ["on", "off"] }}')
            else:
                found[name] = self._setting(name, table, where)
        return found

    def _setting(self, name: str, table: Mapping[str, Any], prefix: str) -> Setting:
        self.reasons += _unknown(table, _SETTING_KEYS, f"{prefix}.")
        kind = table.get("kind", "size" if name == PAGE_SIZE else "text")
        if kind not in KINDS or (name == PAGE_SIZE and kind != "size"):
            kinds = "size" if name == PAGE_SIZE else ", ".join(KINDS)
            self._refuse(f"{prefix}.kind: found {kind!r}; allowed: {kinds}")
            return Setting("text", (), None)
        levels = table.get("levels", [])
        if not isinstance(levels, list) or len(levels) > _MOST_LEVELS:
            self._refuse(f"{prefix}.levels: allowed is a list of up to {_MOST_LEVELS} values")
            levels = []
        known = tuple(self._values(Setting(kind, (), None), levels, f"{prefix}.levels"))
        default = table.get("default")
        given = (
            ()
            if default is None
            else self._values(Setting(kind, known, None), [default], f"{prefix}.default")
        )
        return Setting(kind, known, next(iter(given), None))

    def _values(self, setting: Setting, values: list[Any], prefix: str) -> Iterator[Scalar]:
        for each in values:
            try:
                yield setting.value(each)
            except ValueError as error:
                self._refuse(f"{prefix}: found {each!r}; {error}")

    def _promises(self, tables: object, definitions: Mapping[str, Setting]) -> Iterator[EnginePromise]:
        if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
            self._refuse("promise: allowed are tables [[promise]]")
            return
        for number, table in enumerate(tables):
            where = f"promise[{number}]"
            self.reasons += _unknown(table, _PROMISE_KEYS, f"{where}.")
            durability, source = table.get("class"), table.get("source")
            if durability not in PROMISED_CLASSES:
                self._refuse(f"{where}.class: found {durability!r}; allowed: {', '.join(PROMISED_CLASSES)}")
            if not isinstance(source, str) or not source.isprintable() or not 0 < len(source) <= _LONGEST:
                self._refuse(
                    f"{where}.source: missing: where the promise is written down, a page or a sentence"
                )
            yield EnginePromise(
                when=self._condition(table.get("when", {}), definitions, f"{where}.when"),
                durability=str(durability),
                transactions=self._bound(table, "transactions", where),
                ms=self._bound(table, "ms", where),
                source=str(source),
            )

    def _condition(self, table: object, definitions: Mapping[str, Setting], prefix: str) -> Levels:
        if not isinstance(table, dict):
            self._refuse(f'{prefix}: allowed is a table of settings: {{ sync = "on" }}')
            return Levels()
        found: dict[str, Scalar] = {}
        for name, level in table.items():
            if name not in definitions:
                self._refuse(f"{prefix}: {unknown_name('setting', name, definitions)}")
                continue
            for each in self._values(definitions[name], [level], f"{prefix}.{name}"):
                found[name] = each
        return Levels(found)

    def _bound(self, table: Mapping[str, Any], key: str, prefix: str) -> int | None:
        bound = table.get(key)
        if bound is None:
            return None
        if isinstance(bound, bool) or not isinstance(bound, int) or not 0 < bound < 10**9:
            self._refuse(f"{prefix}.{key}: allowed is a whole number from 1")
            return None
        if table.get("class") != BOUNDED_LOSS:
            self._refuse(f'{prefix}.{key}: only of class = "{BOUNDED_LOSS}"')
        return bound


def _unknown(table: Mapping[str, Any], names: tuple[str, ...], prefix: str) -> Iterator[str]:
    return (f"{prefix}{unknown_name('key', name, names)}" for name in table if name not in names)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.isprintable() and 0 < len(value) <= _LONGEST


def _is_words(value: object) -> bool:
    return isinstance(value, list) and len(value) <= _MOST_LEVELS and all(map(_is_text, value))


def _text(value: object) -> str:
    if not _is_text(value):
        raise ValueError("allowed is a text on one line")
    return str(value)


def _number(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 2**53:
        raise ValueError("allowed is a number")
    return value


def _size(value: object) -> int:
    allowed = 'allowed is a size in bytes, such as 4096 or "4 kB"'
    try:
        found = parse_size(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError(allowed) from None
    if isinstance(found, bool) or not isinstance(found, int) or not 0 < found < 2**53:
        raise ValueError(allowed)
    return found


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("allowed is true or false")
    return value


KINDS: Mapping[str, Callable[[object], Scalar]] = {
    "text": _text,
    "number": _number,
    "size": _size,
    "switch": _switch,
}

_MOST_FILES, _MOST_BYTES, _DEEPEST = 1000, 256 * MIB, 20
_MOST_TEXT_BYTES = 64 * KIB
DIGITS = 16

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


def read_folder(path: Path, *, may_lack_checker: bool = False, may_lack_all: bool = False) -> EngineFolder:
    """Look at everything in it; PlanError has every reason why it is none to run, or, with `may_lack_all`, to build."""
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
    reasons = [*_of_others(path, files)]
    if not may_lack_all:
        missing = _no_programs(path, _programs(description, may_lack_checker))
        reasons += missing if description.build is None else _not_built(path, missing)
        if description.plant is not None and not (path / PLANTED_LIBRARY).is_file():
            reasons.append(f"{FILE}: plant: `power-cut try --plant` writes this key; take it out")
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
    return found.hexdigest()[:DIGITS]


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


def _is_own_group(status: os.stat_result) -> bool:
    """Whether the group is the owner's own, as many systems make one for each account and let it write."""
    try:
        return pwd.getpwuid(status.st_uid).pw_gid == status.st_gid
    except KeyError:
        return False


def _between(file: Path, top: Path) -> Iterator[Path]:
    return (parent for parent in file.parents if parent != top and parent.is_relative_to(top))


def _programs(description: EngineDescription, may_lack_checker: bool) -> Mapping[str, str]:  # noqa: FBT001 -- handed on
    """The programs that are to run, by their keys."""
    checker = {} if may_lack_checker else {"checker": description.checker}
    return {"writer": description.writer, **checker}


def _no_programs(path: Path, program_names: Mapping[str, str]) -> Iterator[str]:
    for key, name in program_names.items():
        program = path / name
        sources = sorted(each.name for each in path.glob(f"{name}.*") if each.suffix in _SOURCES)
        if not program.is_file() and sources:
            yield f"{FILE}: {key}: there is no {program} yet; compile it first, of {', '.join(sources)}"
        elif not program.is_file():
            yield f"{FILE}: {key}: there is no {program}"
        elif not os.access(program, os.X_OK):
            yield f"{FILE}: {key}: {program} may not be executed; chmod +x {program}"


def _not_built(path: Path, reasons: Iterator[str]) -> Iterator[str]:
    return (
        f"{reason}; `power-cut try {path}` builds it, and the plan that it writes names what it built"
        for reason in reasons
    )


_INTERPRETER = b"#!"
_SOURCES = (".c", ".cc", ".cpp", ".go", ".rs", ".zig")
_ENV = "env"
ENGINES_FOLDER = "engines"

# The copy of an engine and the digest of its programs, as `keep` calls it.
_COPY = re.compile(r"(.+)-[0-9a-f]{16}")


class ExternalPrograms:
    """Copied once; a later change of the folder is another engine."""

    def engine_in(self, folder: Path, settings: Mapping[str, Sequence[str]]) -> NamedEngine:
        """The table has the digest of the programs, so that changed ones are another plan."""
        found = read_folder(folder.resolve())
        varied = {
            name: [_toml(value) for value in values]
            for name, values in engine_values(found.description, settings).items()
        }
        lines = [
            f"# {DIGEST} {found.digest}",
            "[engine]",
            f"path = {json.dumps(str(found.path), ensure_ascii=False)}",
        ]
        if varied:
            lines.append("[engine.settings]")
            lines += (f"{name} = {{ vary = [{', '.join(values)}] }}" for name, values in varied.items())
        return NamedEngine(found.description.name, "\n".join(("", *lines, "")))

    def keep(self, engine_setup: EngineSetup) -> Mapping[str, str]:
        """The folder of the copy; RequirementMissing where the programs are gone, or could not be started here."""
        cluster = engine_setup.clusters[0]
        digest, name = cluster.settings.text(DIGEST) or "", cluster.settings.text(NAME) or ""
        description = read_description(cluster.configuration or "")
        kept = _place_of_copy(name, digest)
        if engine_setup.folder is None and not is_whole(kept):
            raise RequirementMissing(
                f"the programs of {name} are not in {kept} any more; run the plan that names their folder"
            )
        return {PROGRAMS_KEY: str(keep_copy(Path(engine_setup.folder or kept), description, digest))}

    def unused(self, cache: Path, days: float) -> Iterator[Unused]:
        """Copies of programs that were changed since, or that nobody started in more than so many days, and those half made.

        A study that stands on one asks for its folder when it goes on.
        """
        copies: dict[str, list[Path]] = defaultdict(list)
        for path in sorted((cache / ENGINES_FOLDER).glob("*")):
            named = _COPY.fullmatch(path.name)
            if named is None or not path.is_dir() or path.is_symlink():
                continue
            if not is_whole(path) or path.name.startswith("."):
                yield Unused(path, "half made, or half removed", lock_of(path), FILE)
            else:
                copies[named[1]].append(path)
        for name, found in copies.items():
            newest, *older = sorted(found, key=days_since)
            for path in older:
                yield Unused(path, f"the programs of {name} were changed since", lock_of(path), FILE)
            if (unused_days := days_since(newest)) > days:
                yield Unused(newest, f"not used for {unused_days:.0f} days", lock_of(newest), FILE)


def engine_values(
    description: EngineDescription, settings: Mapping[str, Sequence[str]]
) -> Mapping[str, tuple[Scalar, ...]]:
    """The values of settings from words of a command line; PlanError for what the engine does not have."""
    values: dict[str, tuple[Scalar, ...]] = {}
    for name, words in settings.items():
        setting = description.settings.get(name)
        if setting is None:
            raise PlanError(unknown_name("setting", name, description.settings))
        try:
            values[name] = tuple(setting.value(_read(word, setting.kind)) for word in words)
        except ValueError as error:
            raise PlanError(f"{name}={','.join(words)}: {error}") from None
    return values


def keep_copy(
    folder: Path, description: EngineDescription, digest: str, *, may_lack_checker: bool = False
) -> Path:
    """The copy of a folder's programs, made where the cache lacks it; RequirementMissing where they could not be started here."""
    kept = _place_of_copy(description.name, digest)
    make_once(
        kept,
        lambda: kept if is_whole(kept) else None,
        lambda fresh: _copy(folder, kept, fresh, digest),
    )
    reasons = tuple(_cannot_start(kept, _programs(description, may_lack_checker)))
    if reasons:
        raise RequirementMissing(*reasons)
    # When it was used last (`unused`).
    os.utime(kept)
    return kept


def _place_of_copy(name: str, digest: str) -> Path:
    return cache_directory() / ENGINES_FOLDER / f"{name}-{digest}"


def _read(word: str, kind: str) -> Scalar:
    """A word as a plan would have it; what is none of its kind is that setting's to refuse."""
    if kind == "switch":
        return {"true": True, "false": False}.get(word, word)
    try:
        return json.loads(word) if kind == "number" else word
    except ValueError:
        return word


def _toml(level: Scalar) -> str:
    return json.dumps(level, ensure_ascii=False)


def is_whole(folder: Path) -> bool:
    """Whether a folder of the cache was finished."""
    return (folder / FILE).is_file()


def _copy(folder: Path, target: Path, fresh: Path, digest: str) -> Path:
    for file in files_of(folder):
        copied = fresh / file.relative_to(folder)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copied)
        copied.chmod(0o755 if os.access(file, os.X_OK) else 0o644)
    if digest_of(fresh, files_of(fresh)) != digest:
        raise RequirementMissing(f"{folder} was changed while the plan was read; start again")
    put_in_place(fresh, target)
    return target


def _cannot_start(folder: Path, program_names: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each script whose interpreter is not there."""
    for name in program_names.values():
        with (folder / name).open("rb") as file:
            first = file.readline(512)
        if not first.startswith(_INTERPRETER):
            continue
        words = os.fsdecode(first[len(_INTERPRETER) :]).split()
        program = words[0] if words else ""
        if Path(program).name == _ENV:
            program = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")
        begins = f"{name} begins with {first.decode(errors='replace').strip()!r}"
        # In the order of the search path, in which what may not be read is passed over.
        places = (
            [Path(program)] if "/" in program else [Path(folder) / program for folder in os.get_exec_path()]
        )
        places = [place for place in places if program and os.access(place, os.X_OK)]
        closed = [_closed_to_others(place) for place in places]
        if not places:
            yield f"{begins}, and there is no such interpreter here"
        elif all(closed):
            yield (
                f"{begins}, and both programs run as an account without rights, which may not read {closed[0]}; name an interpreter that "
                "every account may read, as those in /usr/bin"
            )


def _closed_to_others(interpreter: Path) -> Path | None:
    """The first folder on the way to a program, or itself, that an account without rights may not enter or read; None where it may all."""
    resolved = interpreter.resolve()
    for place in (*reversed(interpreter.absolute().parents), *reversed(resolved.parents), resolved):
        needed = stat.S_IXOTH if place.is_dir() else stat.S_IXOTH | stat.S_IROTH
        if place.stat().st_mode & needed != needed:
            return place
    return None


OWN_PROGRAMS: OwnPrograms = ExternalPrograms()
