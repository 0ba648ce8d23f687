"""The levels of cells as factors: defaults written out, so that two cells are told apart by every one.

A level that was not asked for is a level where a cell of the same kind was asked for one: `default`, unless the
model knows what it is. A factor that a cell cannot have (ext4's `data` on XFS) is none of its levels.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields
from typing import TYPE_CHECKING

from bedplate.model.cell import BuildLevels, ClusterLevels
from bedplate.model.engine import database_block_levels, engine_model
from bedplate.model.filesystem import TRAITS
from bedplate.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bedplate.model.cell import Cell
    from bedplate.model.levels import Scalar

DEFAULT = "default"
TYPE = "filesystem.type"
ENGINE = "build.engine"
FILESYSTEM_BLOCK = "filesystem.block_size_bytes"
_SETTING = "cluster.settings."
_CONFIGURATION = "cluster.configuration"
_READ_AHEAD = "device.read_ahead_kb"
_UNITS = ("_bytes", "_kb")
# How a plan begins the names of levels, by how cells do; those of its engine are the engine's.
_PLAN_WORDS: Mapping[str, str] = {
    "device.memory": "machine.memory",
    "device.throttle.read_bytes_per_s": "scratch_device.throttle.read_bandwidth",
    "device.throttle.write_bytes_per_s": "scratch_device.throttle.write_bandwidth",
    "device.latency.bytes_per_s": "scratch_device.latency.bandwidth",
    "device.": "scratch_device.",
    "kernel.release": "machine.kernel",
}
# Layers whose factors only exist for one file system type, or for one engine.
_WITHIN = {"filesystem": TYPE, "build": ENGINE, "cluster": ENGINE}
# Defaults that are values and no word: those of a build, and switches that are off.
_KNOWN: Mapping[str, Scalar] = {
    f"{layer}.{entry.name}": entry.default
    for layer, record in (("build", BuildLevels), ("cluster", ClusterLevels))
    for entry in fields(record)
    if isinstance(entry.default, str | int | bool)
}


def factor_levels(cells: Iterable[tuple[Cell, int | None]]) -> tuple[dict[str, Scalar], ...]:
    """The levels of each cell by the factor's dotted name, in the order of the cells.

    Beside each cell stands its file system's block size as it was read back, None where it is not known: a
    default block of 4 KiB is one of 4 KiB.
    """
    found = [_own(cell, block) for cell, block in cells]
    names = dict.fromkeys(name for levels in found for name in levels)
    having: dict[str, set[Scalar | None]] = {
        name: {_kind(name, levels) for levels in found if name in levels} for name in names
    }
    return tuple(
        {
            name: levels[name] if name in levels else _KNOWN.get(name, DEFAULT)
            for name in names
            if name in levels or _kind(name, levels) in having[name]
        }
        for levels in found
    )


def usual_factors(levels: Mapping[str, Scalar]) -> frozenset[str]:
    """Of some levels those factors that are at what holds where nobody asks: `barrier = true`, `data = ordered`."""
    traits = TRAITS.get(str(levels.get(TYPE)))
    known = {} if traits is None else {f"filesystem.{name}": level for name, level in traits.usual.items()}
    return frozenset(
        name
        for name, level in levels.items()
        if level == DEFAULT or (name in known and known[name] == level) or _KNOWN.get(name) == level
    )


def short_name(name: str) -> str:
    """A factor in few letters, as a sentence has it: `barrier`, `fs block`, `db block`, `shared_buffers`."""
    blocks = {
        FILESYSTEM_BLOCK: "fs block",
        TYPE: "file system",
        **dict.fromkeys(database_block_levels(), "db block"),
    }
    if name in blocks:
        return blocks[name]
    if name == "kernel.release":
        return "kernel"
    if name.startswith(_SETTING):
        return name.removeprefix(_SETTING)
    return name.partition(".")[2] or name


def level_rank(level: Scalar) -> tuple[bool, float, str]:
    """Numbers by their size, before words by their letters."""
    return (False, float(level), "") if isinstance(level, int | float) else (True, 0.0, level)


def typed(level: Scalar) -> tuple[type, Scalar]:
    """`True` and 1 are two levels, whatever Python says."""
    return type(level), level


def level_text(name: str, level: Scalar) -> str:
    """A level as a person reads it: `4 KiB`, `yes`, `512MB`."""
    if isinstance(level, bool):
        return "yes" if level else "no"
    if isinstance(level, int) and (name.endswith("_bytes") or name in database_block_levels()):
        return format_size(level)
    return str(level)


def plan_levels(cells: Mapping[str, Cell]) -> Mapping[str, Mapping[str, Scalar]]:
    """What a plan asks for in each cell, by the plan's own keys: `filesystem.block_size`, `postgresql.settings.fsync`.

    Sizes are in bytes, which a plan takes too. A key of which a cell was asked nothing is none of its own.
    """
    found = factor_levels((cell, None) for cell in cells.values())
    return {
        name: {
            plan_key(level, cell.build.engine): f"{value} kB" if level == _READ_AHEAD else value
            for level, value in ({TYPE: levels[TYPE]} | levels).items()
            if value != DEFAULT
        }
        for (name, cell), levels in zip(cells.items(), found, strict=True)
    }


def plan_key(level: str, engine: str) -> str:
    """The key of a plan that a level of a cell of this engine stands for; `engine` is the workload's."""
    if level == ENGINE:
        return "engine"
    words = {**_PLAN_WORDS, **engine_model(engine).plan_words}
    begin = next((start for start in words if level.startswith(start)), "")
    rest = level.removeprefix(begin)
    # A setting of an engine has the engine's own name.
    unit = "" if level.startswith(_SETTING) else next((unit for unit in _UNITS if rest.endswith(unit)), "")
    return words.get(begin, "") + rest.removesuffix(unit)


def _own(cell: Cell, block: int | None) -> dict[str, Scalar]:
    levels = dict(cell.levels)
    if cell.build.is_built:
        levels |= {name: level for name, level in _KNOWN.items() if name.startswith("build.")} | levels
    if block is not None:
        levels[FILESYSTEM_BLOCK] = block
    if cell.cluster.configuration is not None:
        content = hashlib.sha256(cell.cluster.configuration.encode()).hexdigest()[:8]
        levels[_CONFIGURATION] = f"{engine_model(cell.build.engine).configuration_words} {content}"
    return levels


def _kind(name: str, levels: Mapping[str, Scalar]) -> Scalar | None:
    """Among which cells a factor exists: those of one type or engine, or all."""
    within = _WITHIN.get(name.partition(".")[0])
    return None if within is None else levels.get(within)
