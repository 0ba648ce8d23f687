"""Studies whose design nobody would plan: cells missing, visits lost, runs suspect, scatter unequal, order reversed."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.support.studies.known_study import change_records, known_study
from tests.support.studies.synthetic_study import Recipe, cells_of

from bedplate.model.levels import Levels

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.studies.known_study import Place

    from bedplate.model.visit import VisitRecord

RUN = "read-write"


@dataclass(frozen=True)
class RandomStudy:
    """What was drawn from a seed: `recipe`, and for each file system how fast it is by database block, and how it scatters.

    `zeros` are runs that came to nothing, by cell and repetition. `same` are pairs of cells that are effectively the same.
    """

    seed: int
    recipe: Recipe
    speeds: dict[tuple[str, int], float]
    scatter: dict[str, float]
    drift: float
    zeros: frozenset[tuple[str, int]] = frozenset()
    same: tuple[frozenset[str], ...] = ()

    def tps(self, place: Place) -> float:
        """The truth, a drift over the repetitions, and a run's own scatter."""
        if (place.cell.id, place.repetition) in self.zeros:
            return 0.0
        kind, block = place.cell.filesystem.type, place.cell.build.block_size_bytes
        own = random.Random(f"{self.seed} {place.cell.id} {place.repetition} {place.canary}")
        speed = self.speeds[kind, block] * (0.8 if "discard" in place.cell.filesystem.mount_options else 1.0)
        speed *= 1.3 if place.cell.filesystem.barrier is False else 1.0
        drift = self.drift * place.repetition / self.recipe.repetitions
        return 1000 * speed * math.exp(own.gauss(0, self.scatter[kind]) - drift)


def random_study(seed: int) -> RandomStudy:
    """Three file systems of 2 to 4 block sizes; options that one or two of them were asked for; gaps of every kind."""
    draw = random.Random(seed)
    blocks = tuple(sorted(draw.sample((1024, 2048, 4096, 8192, 16384, 32768), draw.randint(2, 4))))
    filesystem_blocks = draw.choice(((4096,), (2048, 4096)))
    recipe = Recipe(filesystem_blocks=filesystem_blocks, database_blocks=blocks, runs=(RUN,))
    plain = [
        replace(cell, filesystem=replace(cell.filesystem, features=Levels())) for cell in cells_of(recipe)
    ]
    if draw.random() < 0.5:
        plain = [cell for cell in plain if cell.filesystem.barrier is not False]
    asked = draw.sample(("ext4", "xfs", "btrfs"), draw.randint(0, 2))
    cells = plain + [
        replace(cell, filesystem=replace(cell.filesystem, mount_options=("discard",)))
        for cell in plain
        if cell.filesystem.type in asked
    ]
    missing_cells = draw.randint(0, len(cells) // 6)
    cells = [cell for cell in cells if cell not in draw.sample(cells, missing_cells)]
    repetitions = draw.choice((3, 4, 5, 8))
    visits = [(at, repetition) for at in range(len(cells)) for repetition in range(1, repetitions + 1)]
    gaps = draw.sample(visits, min(len(visits) // 8, draw.choice((0, 1, 2, 4))))
    lost, suspect = gaps[::2], gaps[1::2]
    if draw.random() < 0.3:
        # All but two runs of one cell.
        at = draw.randrange(len(cells))
        lost = [*lost, *((at, repetition) for repetition in range(3, repetitions + 1))]
    kinds = ("ext4", "xfs", "btrfs")
    speeds = {(kind, block): math.exp(draw.gauss(0, 0.1)) for kind in kinds for block in blocks}
    if draw.random() < 0.3:
        speeds["xfs", blocks[-1]] *= 0.5
    recipe = replace(
        recipe,
        cells=tuple(cells),
        repetitions=repetitions,
        course_s=2,
        canaries=0,
        missing=tuple(lost),
        suspect=tuple(suspect),
        seed=seed,
    )
    scatter = {kind: draw.choice((0.01, 0.04, 0.15)) for kind in kinds}
    drift = draw.choice((0.0, 0.15))
    zeros = frozenset(
        (cells[at].id, repetition) for at, repetition in draw.sample(visits, draw.choice((0, 0, 1, 2)))
    )
    same = [
        frozenset({cell.id, other.id})
        for cell in cells
        for other in cells
        if other.filesystem == replace(cell.filesystem, mount_options=("discard",))
        and other.build == cell.build
        and cell != other
    ]
    return RandomStudy(
        seed,
        recipe,
        speeds,
        scatter,
        drift,
        zeros,
        tuple(draw.sample(same, min(len(same), draw.choice((0, 0, 2))))),
    )


def write_random_study(directory: Path, seed: int) -> Path:
    """Write the study of a seed into `directory`, which is made; the directory."""
    study = random_study(seed)
    known_study(directory, study.tps, study.recipe)

    def change(record: VisitRecord) -> VisitRecord:
        alike = next((cells for cells in study.same if record.key.cell in cells), None)
        return record if alike is None else replace(record, effective_digest=f"like {min(alike)}")

    if study.same:
        change_records(directory, change)
    return directory
