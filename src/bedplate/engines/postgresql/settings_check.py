"""What is doubtful about a plan's settings, by the build's own word (`postgres --describe-config`), once there is a build.

That list leaves out developer options and those of extensions, and says no units and no words of an enumeration. So what is
said here is a doubt and no refusal: the server alone knows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.builds.build import find_build
from bedplate.engines.postgresql.builds.build_record import BuildSpec
from bedplate.errors import BedplateError
from bedplate.host.cache import cache_directory
from bedplate.host.command import Commands
from bedplate.host.git.checkout import builder_account
from bedplate.model.engines import POSTGRESQL
from bedplate.near_names import did_you_mean, near_names, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from bedplate.model.cell import BuildLevels, Cell

_COLUMNS_LEAST = 7
_BOOLEAN, _INTEGER, _REAL = "BOOLEAN", "INTEGER", "REAL"
# What guc.c takes: whole words and their beginnings.
_BOOLEANS = ("true", "false", "yes", "no", "on", "off")
_NUMBER = re.compile(r"\s*([+-]?(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+))\s*([A-Za-z]*)\s*")
# Of memory and of time, in this spelling.
_UNITS = ("B", "kB", "MB", "GB", "TB", "us", "ms", "s", "min", "h", "d")


@dataclass(frozen=True)
class Described:
    """A setting as the server describes it; `least` and `most` are in its own unit, None where it has no range."""

    kind: str
    least: float | None
    most: float | None


def described(text: str) -> Mapping[str, Described]:
    """The output of `postgres --describe-config`: a line for each setting, its fields apart by tabulators."""
    rows = (line.split("\t") for line in text.splitlines())
    return {
        row[0]: Described(row[3], _number(row[5]), _number(row[6]))
        for row in rows
        if len(row) >= _COLUMNS_LEAST
    }


def doubts(settings: Iterable[tuple[str, str]], known: Mapping[str, Described]) -> tuple[str, ...]:
    """A sentence for each setting that is none that is known and nearly one, or whose value is not of its kind."""
    found = (_doubt(name, value, known) for name, value in settings)
    return tuple(dict.fromkeys(words for words in found if words))


def _doubt(name: str, value: str, known: Mapping[str, Described]) -> str:
    shown = f"postgresql.settings.{name}"
    if name not in known:
        hint = did_you_mean(name, known) if near_names(name, known) else ""
        return f"{shown}: this build lists no such setting; {hint}" if hint and "." not in name else ""
    about = known[name]
    if about.kind == _BOOLEAN:
        word = value.strip().lower()
        whole = any(each.startswith(word) for each in _BOOLEANS) if word and word != "o" else False
        return "" if whole or word in ("1", "0") else f"{shown}: found {quoted(value)}; expected on or off"
    if about.kind not in (_INTEGER, _REAL):
        return ""
    parts = _NUMBER.fullmatch(value)
    if parts is None:
        return f"{shown}: found {quoted(value)}; expected a number"
    if parts[2]:
        if parts[2] in _UNITS:
            return ""
        hint = did_you_mean(parts[2], _UNITS, otherwise=f"known are {', '.join(_UNITS)}")
        return f"{shown}: the unit of {quoted(value)} is not known to PostgreSQL; {hint}"
    number = _number(parts[1])
    if number is None or about.least is None or about.most is None or about.least <= number <= about.most:
        return ""
    return f"{shown}: found {quoted(value)}; allowed is {about.least:.15g} to {about.most:.15g}, or a value with its unit"


def _number(text: str) -> float | None:
    try:
        return float(int(text, 16)) if "x" in text.lower() else float(text)
    except ValueError:
        return None


def settings_doubts(cells: Iterable[Cell]) -> tuple[str, ...]:
    """The doubts about the settings of cells whose build is in the cache; nothing of one that has yet to be made."""
    asked: dict[BuildLevels, dict[tuple[str, str], None]] = {}
    for cell in cells:
        if cell.build.engine == POSTGRESQL and cell.cluster.settings:
            pairs = ((name, str(value)) for name, value in cell.cluster.settings.items())
            asked.setdefault(cell.build, {}).update(dict.fromkeys(pairs))
    found = (doubts(settings, of_build) for levels, settings in asked.items() if (of_build := _of(levels)))
    return tuple(dict.fromkeys(words for own in found for words in own))


def _of(levels: BuildLevels) -> Mapping[str, Described]:
    """Empty where there is no build, or it does not answer: then nothing is known."""
    spec = BuildSpec.of(levels)
    commands = Commands()
    try:
        build = find_build(spec, cache_directory=cache_directory(), commands=commands)
        return {} if build is None else described(_said(build.program("postgres"), commands))
    except BedplateError:
        return {}


def _said(postgres: Path, commands: Commands) -> str:
    # It may be somebody's own.
    return commands.run([str(postgres), "--describe-config"], timeout_s=30, account=builder_account()).stdout


SETTINGS_CHECK = settings_doubts
