"""What records say of PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping

from bedplate.model.cell import Cell, EngineModel
from bedplate.model.levels import Levels
from bedplate.units import KIB

# What a build may be given.
DATABASE_BLOCK_SIZES = tuple(kib * KIB for kib in (1, 2, 4, 8, 16, 32))


class PostgresqlModel(EngineModel):
    """Its block size is compiled in."""

    def block_bytes(self, cell: Cell) -> int | None:
        """That of the build, its default too."""
        return cell.build.block_size_bytes

    def waits(self, settings: Levels, in_force: Mapping[str, str]) -> bool:
        """By two settings of the server; sessions may have another."""
        names = ("fsync", "synchronous_commit")
        return "off" not in [in_force.get(f"setting {name}") or settings.get(name) for name in names]


MODEL = PostgresqlModel(
    "PostgreSQL",
    {"build.source_commit": "postgresql.source.commit", "build.": "postgresql.", "cluster.": "postgresql."},
    is_built=True,
    block_level="build.block_size_bytes",
    before_block="pg",
    configuration_words="own postgresql.conf",
)
