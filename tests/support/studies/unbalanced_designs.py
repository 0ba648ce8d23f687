"""Designs that are not complete, each with a truth that is known: five ways in which a mean over cells goes wrong.

Every cell's truth is a product of what its levels do. The differences are large, and lie so that an average over
cells that are not alike turns a ratio round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from tests.support.studies.synthetic_study import durability_of

from bedplate.analysis.labels import factor_levels, usual_factors
from bedplate.analysis.wording import durability_words
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
)
from bedplate.model.levels import Levels
from bedplate.statistics.design import DesignCell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.model.levels import Scalar

TYPE, BARRIER, DATA = "filesystem.type", "filesystem.barrier", "filesystem.data"
BLOCK, MOUNT, COMMIT = (
    "filesystem.block_size_bytes",
    "filesystem.mount_options",
    "cluster.settings.synchronous_commit",
)
DATABASE = "build.block_size_bytes"
XFS_BESIDE_EXT4 = 1.083
_SPEEDS = {"ext4": 1.0, "xfs": XFS_BESIDE_EXT4, "btrfs": 0.6}


@dataclass(frozen=True)
class Planted:
    """A design and what must be found in it.

    `ratios` are those within a durability class, by factor, level and baseline; each is planted in so many strata.
    `crossing` have cells of two classes alone, `unmatched` no cells that are alike. `lost` are visits by the number
    of the cell and the repetition.
    """

    name: str
    cells: tuple[Cell, ...]
    ratios: Mapping[tuple[str, Scalar, Scalar], tuple[float, int]]
    crossing: Mapping[tuple[str, Scalar, Scalar], float]
    unmatched: tuple[tuple[str, Scalar, Scalar], ...] = ()
    lost: tuple[tuple[int, int], ...] = ()


def truth(cell: Cell) -> float:
    """The speed of a cell beside ext4 as it is by itself."""
    filesystem = cell.filesystem
    speed = _SPEEDS[filesystem.type]
    speed *= 0.5 if filesystem.barrier is not False else 1.0
    speed *= 0.4 if filesystem.features.get("data") == "journal" else 1.0
    speed *= {1024: 0.3, 2048: 0.6}.get(filesystem.block_size_bytes or 4096, 1.0)
    speed *= 0.7 if "discard" in filesystem.mount_options else 1.0
    speed *= 3.0 if cell.cluster.settings.get("synchronous_commit") == "off" else 1.0
    return speed * (1.2 if cell.build.block_size_bytes == 2048 else 1.0)


def planted() -> tuple[Planted, ...]:
    """One design of each kind."""
    return (_nested(), _nested_in_one_class(), _missing(), _one_level(), _lost(), _confounded())


def design_cells(
    found: Planted, logs: Mapping[tuple[int, int], float], *, repetitions: int
) -> Mapping[str, Sequence[DesignCell]]:
    """The cells by durability class, with the truth times the scatter of each cell and repetition."""
    levels = factor_levels((cell, cell.filesystem.block_size_bytes or 4096) for cell in found.cells)
    classes: dict[str, list[DesignCell]] = {}
    for at, (cell, own) in enumerate(zip(found.cells, levels, strict=True)):
        values = {
            r: truth(cell) * math.exp(logs.get((at, r), 0.0))
            for r in range(1, repetitions + 1)
            if (at, r) not in found.lost
        }
        made = DesignCell(own, values, usual_factors(own))
        classes.setdefault(durability_words(durability_of(cell)), []).append(made)
    return classes


def _cell(kind: str, database: int = 8192, commit: str | None = None, **levels: object) -> Cell:
    settings = Levels({} if commit is None else {"synchronous_commit": commit})
    return Cell(
        DeviceLevels(),
        KernelLevels(),
        replace(FilesystemLevels(kind), **levels),  # type: ignore[arg-type]
        BuildLevels(block_size_bytes=database),
        ClusterLevels(settings=settings),
    )


def _nested() -> Planted:
    """Barriers on and off within ext4 alone, beside XFS and Btrfs: the design of plans/quick.toml."""
    cells = [
        _cell(kind, size, None, **barrier)
        for size in (2048, 8192)
        for kind, barrier in (
            ("ext4", {"barrier": True}),
            ("ext4", {"barrier": False}),
            ("xfs", {}),
            ("btrfs", {}),
        )
    ]
    return Planted(
        "a factor within one type, across classes",
        tuple(cells),
        {
            (TYPE, "xfs", "ext4"): (XFS_BESIDE_EXT4, 2),
            (TYPE, "btrfs", "ext4"): (0.6, 2),
            (DATABASE, 8192, 2048): (1 / 1.2, 3),
        },
        {(BARRIER, True, False): 0.5},
    )


def _nested_in_one_class() -> Planted:
    cells = [
        _cell(kind, size, None, **features)
        for size in (2048, 8192)
        for kind, features in (
            ("ext4", {"features": Levels(data="ordered")}),
            ("ext4", {"features": Levels(data="journal")}),
            ("xfs", {}),
        )
    ]
    return Planted(
        "a factor within one type",
        tuple(cells),
        {
            (TYPE, "xfs", "ext4"): (XFS_BESIDE_EXT4, 2),
            (DATA, "journal", "ordered"): (0.4, 2),
            (DATABASE, 8192, 2048): (1 / 1.2, 3),
        },
        {},
    )


def _missing() -> Planted:
    """Btrfs has one block size, as in life."""
    cells = [
        _cell(kind, block_size_bytes=size)
        for kind, size in product(("ext4", "xfs", "btrfs"), (1024, 2048, 4096))
        if kind != "btrfs" or size == 4096
    ]
    return Planted(
        "combinations that are missing",
        tuple(cells),
        {
            (TYPE, "xfs", "ext4"): (XFS_BESIDE_EXT4, 3),
            (TYPE, "btrfs", "ext4"): (0.6, 1),
            (BLOCK, 4096, 1024): (1 / 0.3, 2),
        },
        {},
    )


def _one_level() -> Planted:
    """`discard` on and off with ext4, off with XFS, on with Btrfs."""
    options = {"ext4": (("noatime",), ("noatime", "discard")), "xfs": (("noatime",),)}
    options["btrfs"] = (("noatime", "discard"),)
    cells = [_cell(kind, mount_options=each) for kind, found in options.items() for each in found]
    return Planted(
        "a factor at one level only in a type",
        tuple(cells),
        {
            (TYPE, "xfs", "ext4"): (XFS_BESIDE_EXT4, 1),
            (TYPE, "btrfs", "ext4"): (0.6, 1),
            (MOUNT, "noatime,discard", "noatime"): (0.7, 1),
        },
        {},
        unmatched=((TYPE, "btrfs", "xfs"),),
    )


def _lost() -> Planted:
    """Two cells lack a visit, and one all but two."""
    nested = _nested()
    return replace(nested, name="visits that are lost", lost=((0, 1), (2, 3), (7, 1), (7, 2), (7, 3)))


def _confounded() -> Planted:
    """Btrfs was only measured without waiting for commits, XFS only with it."""
    asked = {"ext4": ("on", "off"), "xfs": ("on",), "btrfs": ("off",)}
    cells = [
        _cell(kind, size, commit)
        for size in (2048, 8192)
        for kind, found in asked.items()
        for commit in found
    ]
    return Planted(
        "classes that go with a factor",
        tuple(cells),
        {
            (TYPE, "xfs", "ext4"): (XFS_BESIDE_EXT4, 2),
            (TYPE, "btrfs", "ext4"): (0.6, 2),
            (DATABASE, 8192, 2048): (1 / 1.2, 2),
        },
        {(COMMIT, "off", "on"): 3.0},
    )
