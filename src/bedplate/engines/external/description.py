"""engine.toml: what an author says of an engine: its programs, its settings, and what it promises."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from bedplate.errors import PlanError
from bedplate.model.durability import BOUNDED_LOSS, DURABLE, UNSAFE
from bedplate.model.levels import Levels, Scalar, as_in_a_plan
from bedplate.near_names import unknown_name
from bedplate.units import parse_duration_s, parse_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

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
_KEYS = ("name", "writer", "checker", "check_limit", "settings", "promise")
_SETTING_KEYS = ("kind", "levels", "default")
_PROMISE_KEYS = ("when", "class", "transactions", "ms", "source")


@dataclass(frozen=True)
class Setting:
    """What the writer takes as `--NAME=VALUE`. `kind` is a key of `KINDS`; no `levels`: any value of the kind.

    `default` is the value that both programs get where a plan gives none; None: no option.
    """

    kind: str
    levels: tuple[Scalar, ...]
    default: Scalar | None

    def value(self, given: object) -> Scalar:
        """A level as cells have it (sizes in bytes); ValueError says what is allowed."""
        found = KINDS[self.kind](given)
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
class EngineDescription:
    """An engine.toml that was understood. `writer` and `checker` are paths in its folder."""

    name: str
    writer: str
    checker: str
    check_limit_s: float
    settings: Mapping[str, Setting]
    promises: tuple[EnginePromise, ...]

    def told(self, settings: Levels) -> Levels:
        """The options of both programs for the settings of a cell: those that were asked for, and defaults that are written down."""
        defaults = {name: each.default for name, each in self.settings.items() if each.default is not None}
        asked = {name: level for name, level in settings.items() if name in self.settings}
        return Levels({**defaults, **asked})

    def promise(self, settings: Levels) -> EnginePromise | None:
        """The first that is made for the settings of a cell; None without one."""
        told = self.told(settings)
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

    def __init__(self, found: Mapping[str, Any]) -> None:
        self.reasons: list[str] = [*_unknown(found, _KEYS, "")]
        name = found.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self._refuse(
                'name: allowed are small letters, digits, dots and hyphens, up to 40: name = "my-engine"'
            )
        settings = self._settings(found.get("settings", {}))
        self.description = EngineDescription(
            name=str(name),
            writer=self._program(found, "writer"),
            checker=self._program(found, "checker"),
            check_limit_s=self._limit(found.get("check_limit")),
            settings=settings,
            promises=tuple(self._promises(found.get("promise", []), settings)),
        )

    def _refuse(self, reason: str) -> None:
        self.reasons.append(reason)

    def _program(self, found: Mapping[str, Any], key: str) -> str:
        path = found.get(key, key)
        if not isinstance(path, str) or not path.isprintable() or not 0 < len(path) <= _LONGEST:
            self._refuse(f'{key}: allowed is the path of a program in the folder: {key} = "{key}"')
            return key
        if path.startswith("/") or ".." in path.split("/"):
            self._refuse(f"{key}: {path!r} lies outside of the folder; put the program into it")
        return path

    def _limit(self, given: object) -> float:
        if given is None:
            return _CHECK_LIMIT_S
        try:
            seconds = parse_duration_s(given) if isinstance(given, str) else 0.0
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

    def _setting(self, name: str, table: Mapping[str, Any], where: str) -> Setting:
        self.reasons += _unknown(table, _SETTING_KEYS, f"{where}.")
        kind = table.get("kind", "size" if name == PAGE_SIZE else "text")
        if kind not in KINDS or (name == PAGE_SIZE and kind != "size"):
            kinds = "size" if name == PAGE_SIZE else ", ".join(KINDS)
            self._refuse(f"{where}.kind: found {kind!r}; allowed: {kinds}")
            return Setting("text", (), None)
        levels = table.get("levels", [])
        if not isinstance(levels, list) or len(levels) > _MOST_LEVELS:
            self._refuse(f"{where}.levels: allowed is a list of up to {_MOST_LEVELS} values")
            levels = []
        known = tuple(self._values(Setting(kind, (), None), levels, f"{where}.levels"))
        default = table.get("default")
        given = (
            () if default is None else self._values(Setting(kind, known, None), [default], f"{where}.default")
        )
        return Setting(kind, known, next(iter(given), None))

    def _values(self, setting: Setting, given: list[Any], where: str) -> Iterator[Scalar]:
        for each in given:
            try:
                yield setting.value(each)
            except ValueError as error:
                self._refuse(f"{where}: found {each!r}; {error}")

    def _promises(self, tables: object, settings: Mapping[str, Setting]) -> Iterator[EnginePromise]:
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
                when=self._when(table.get("when", {}), settings, f"{where}.when"),
                durability=str(durability),
                transactions=self._bound(table, "transactions", where),
                ms=self._bound(table, "ms", where),
                source=str(source),
            )

    def _when(self, table: object, settings: Mapping[str, Setting], where: str) -> Levels:
        if not isinstance(table, dict):
            self._refuse(f'{where}: allowed is a table of settings: {{ sync = "on" }}')
            return Levels()
        found: dict[str, Scalar] = {}
        for name, level in table.items():
            if name not in settings:
                self._refuse(f"{where}: {unknown_name('setting', name, settings)}")
                continue
            for each in self._values(settings[name], [level], f"{where}.{name}"):
                found[name] = each
        return Levels(found)

    def _bound(self, table: Mapping[str, Any], key: str, where: str) -> int | None:
        bound = table.get(key)
        if bound is None:
            return None
        if isinstance(bound, bool) or not isinstance(bound, int) or not 0 < bound < 10**9:
            self._refuse(f"{where}.{key}: allowed is a whole number from 1")
            return None
        if table.get("class") != BOUNDED_LOSS:
            self._refuse(f'{where}.{key}: only of class = "{BOUNDED_LOSS}"')
        return bound


def _unknown(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> Iterator[str]:
    return (f"{where}{unknown_name('key', name, known)}" for name in table if name not in known)


def _text(given: object) -> str:
    if not isinstance(given, str) or not given.isprintable() or not 0 < len(given) <= _LONGEST:
        raise ValueError("allowed is a text on one line")
    return given


def _number(given: object) -> int | float:
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not abs(given) < 2**53:
        raise ValueError("allowed is a number")
    return given


def _size(given: object) -> int:
    allowed = 'allowed is a size in bytes, such as 4096 or "4 kB"'
    try:
        found = parse_size(given) if isinstance(given, str) else given
    except ValueError:
        raise ValueError(allowed) from None
    if isinstance(found, bool) or not isinstance(found, int) or not 0 < found < 2**53:
        raise ValueError(allowed)
    return found


def _switch(given: object) -> bool:
    if not isinstance(given, bool):
        raise ValueError("allowed is true or false")
    return given


KINDS: Mapping[str, Callable[[object], Scalar]] = {
    "text": _text,
    "number": _number,
    "size": _size,
    "switch": _switch,
}
