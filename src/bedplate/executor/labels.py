"""What a visit is called where its study is the context: what it has in common with all others is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    "build.block_size_bytes": "db block",
    "build.wal_block_size_bytes": "WAL block",
    "device.memory_bytes": "memory",
}


class Labels:
    """Names of the visits of one expansion."""

    def __init__(self, expansion: Expansion) -> None:
        levels = [_all_levels(planned.cell) for planned in expansion.cells]
        names = dict.fromkeys(name for found in levels for name in found)
        self._varied = tuple(
            name
            for name in names
            # A throttle is called by its name, not by its limits.
            if (name in _SIZES or not name.startswith((_IN_VARIANT, "device.throttle.")))
            and len({found.get(name) for found in levels}) > 1
        )
        self._several_loads = any(len(planned.loads) > 1 for planned in expansion.cells)

    def of(self, cell: Cell, load: Load, visit: ScheduledVisit) -> str:
        """`ext4 nobarrier · db block 4 kB · repetition 2`."""
        if visit.canary:
            return f"canary {visit.repetition}"
        levels = _all_levels(cell)
        parts = [cell.variant, *(_level(name, levels.get(name)) for name in self._varied)]
        if self._several_loads:
            parts.append(
                " ".join([load.dataset.workload, *(f"{k} {v}" for k, v in load.dataset.levels.items())])
            )
        return " · ".join([*parts, f"repetition {visit.repetition}"])


def _all_levels(cell: Cell) -> dict[str, Scalar]:
    """Asked levels, and the block sizes of the build, which are left out of `levels` where they are 8 kB."""
    build = cell.build
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
    return f"{short} {format_size(int(value)) if name in _SIZES else value}"
