"""What a plan's workload of type power_cut comes to: datasets that are recorded, and one run of cuts on each."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from bedplate.model.cell import RunSpec
from bedplate.model.levels import Levels, Scalar
from bedplate.model.power_cut import (
    ENGINE,
    JOURNAL_KEPT,
    JOURNAL_LOST,
    KEEP_ALL,
    KEEP_BAD,
    KEEP_SMALL,
    RAM_JOURNAL,
    SOUGHT_POINTS,
    WORKLOAD,
    Profile,
)

if TYPE_CHECKING:
    from bedplate.plan.workload_tables import PowerCutTable

RUN_NAME = "power-cut"
RAM_JOURNALS = (JOURNAL_LOST, JOURNAL_KEPT)
KEPT_LOGS = (KEEP_SMALL, KEEP_ALL, KEEP_BAD)
PROFILES = tuple(profile.value for profile in Profile)


def power_cut_factors(table: PowerCutTable) -> dict[str, tuple[Scalar, ...]]:
    """What tells its datasets apart: each is a recording of its own.

    Runs belong to a dataset, whatever the cell. So the number of points, in which workloads of a plan differ by cell, is
    part of what tells them apart.
    """
    return {
        ENGINE: table.engine,
        "image_bytes": table.image_size,
        "clients": table.clients,
        "duration_s": table.duration,
        RAM_JOURNAL: table.ram_journal,
        "points": (table.points,),
    }


def power_cut_datasets(table: PowerCutTable) -> tuple[Levels, ...]:
    """Every combination, by the names that the workload reads: sizes in bytes, times in seconds."""
    factors = power_cut_factors(table)
    found = (dict(zip(factors, levels, strict=True)) for levels in product(*factors.values()))
    return tuple(map(_without_default, found))


def power_cut_run(table: PowerCutTable, seed: int) -> RunSpec:
    """The cuts of one recording; `seed` is the plan's, where the table has none of its own."""
    levels: dict[str, Scalar] = {
        "points": table.points,
        "profiles": ",".join(table.profiles),
        "cache_bytes": table.cache_bytes,
        "seed": seed if table.seed is None else table.seed,
    }
    if table.keep_logs != KEEP_SMALL:
        levels["keep_logs"] = table.keep_logs
    # Runs of earlier plans keep their names.
    if table.sought != SOUGHT_POINTS:
        levels["sought"] = table.sought
    return RunSpec(RUN_NAME, WORKLOAD, Levels(levels))


def _without_default(levels: dict[str, Scalar]) -> Levels:
    """Without what only cells with such a journal have, where it says what holds anyway."""
    return Levels(
        {name: level for name, level in levels.items() if (name, level) != (RAM_JOURNAL, JOURNAL_LOST)}
    )
