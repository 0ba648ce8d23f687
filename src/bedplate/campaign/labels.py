"""What a visit is called where its study is the context: what it has in common with all others is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.engine import database_block_levels, engine_model
from bedplate.model.levels import as_in_a_plan
from bedplate.units import format_size

if TYPE_CHECKING:
    from bedplate.model.cell import Cell
    from bedplate.model.levels import Scalar
    from bedplate.model.plan import Expansion, Load, ScheduledVisit

_WORDS = {"kernel.release": "kernel"}
# The variant names the file system, the rest is named apart.
_IN_VARIANT = "filesystem."
_SIZES = {
    "filesystem.block_size_bytes": "fs block",
    **dict.fromkeys(database_block_levels(), "db block"),
    "build.wal_block_size_bytes": "WAL block",
    "device.memory_bytes": "memory",
}


class Labels:
    """Names of the visits of one expansion."""

    def __init__(self, expansion: Expansion) -> None:
        engines = dict.fromkeys(planned.cell.build.engine for planned in expansion.cells)
        # What one engine is told says nothing of another's cells.
        self._varied = {
            engine: _varied([p.cell for p in expansion.cells if p.cell.build.engine == engine])
            for engine in engines
        }
        self._engines = {engine: engine_model(engine).label for engine in engines} if len(engines) > 1 else {}
        self._several_loads = len({load.dataset for planned in expansion.cells for load in planned.loads}) > 1

    def of(self, cell: Cell, load: Load, visit: ScheduledVisit) -> str:
        """`ext4 nobarrier · db block 4 kB · repetition 2`; the engine too where there are several."""
        if visit.canary:
            return f"canary {visit.repetition}"
        engine, levels = cell.build.engine, _all_levels(cell)
        named = [self._engines[engine]] if self._engines else []
        parts = [cell.variant, *named, *(_level(name, levels.get(name)) for name in self._varied[engine])]
        if self._several_loads:
            parts.append(load.dataset.words)
        return " · ".join([*parts, f"repetition {visit.repetition}"])


def _varied(cells: list[Cell]) -> tuple[str, ...]:
    levels = [_all_levels(cell) for cell in cells]
    names = dict.fromkeys(name for found in levels for name in found)
    return tuple(
        name
        for name in names
        # A throttle is called by its name, not by its limits, and a device with latency not by its times.
        if (name in _SIZES or not name.startswith((_IN_VARIANT, "device.throttle.", "device.latency.")))
        and len({found.get(name) for found in levels}) > 1
    )


def _all_levels(cell: Cell) -> dict[str, Scalar]:
    """Asked levels, and the block sizes of the build, which are left out of `levels` where they are 8 kB."""
    build = cell.build
    if not build.is_built:
        return dict(cell.levels)
    return {
        **cell.levels,
        "build.version": build.version,
        "build.block_size_bytes": build.block_size_bytes,
        "build.wal_block_size_bytes": build.wal_block_size_bytes,
    }


def _level(name: str, value: Scalar | None) -> str:
    short = _SIZES.get(name) or _WORDS.get(name) or name.rpartition(".")[2]
    if value is None:
        return f"default {short}"
    return f"{short} {format_size(int(value)) if name in _SIZES else as_in_a_plan(value)}"
