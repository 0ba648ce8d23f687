"""`type = "bonnie"` in a plan: bonnie++ once for each combination of its levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from bedplate.model.cell import Cell, Dataset, RunSpec
from bedplate.model.engines import NO_ENGINE
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import Load, PlannedWorkload
from bedplate.plan import values
from bedplate.plan.estimate import WorkloadEstimate
from bedplate.plan.fields import Factor, Flag, within
from bedplate.plan.table import WorkloadTable
from bedplate.units import MIB
from bedplate.workloads.bonnie.model import WORKLOAD

ChunkSize: TypeAlias = Annotated[int, within(values.power_of_two, tuple(2**n for n in range(12, 21)))]


class BonnieTable(WorkloadTable):
    """`[[workload]]` of type bonnie: bonnie++ on one file and on many."""

    type: Literal["bonnie"] = Field(description="bonnie")
    file_size: Factor[Annotated[int | str, within(values.file_size)]] = ("2x memory",)
    """load | whole MiB, or a multiple of the memory, as with pgbench's `scale` | `"2x memory"` | `"4 GB"`"""
    direct: Factor[Flag] = (False,)
    """measure | `true`: O_DIRECT, which bonnie++ has only for the block writes | `false` | `{ vary = [false, true] }`"""
    chunk_size: Factor[ChunkSize] = (8192,)
    """measure | a power of two from 4 kB to 1 MB | `"8 kB"` | `"64 kB"`"""
    per_character: Annotated[int, within(values.per_character)] = 3 * MIB
    """measure | whole MiB that the per-character stages move, `0` for none; none with `direct`, which refuses single bytes | `"3
    MB"` | `0`"""
    files: Annotated[int, within(values.file_count)] = 16 * 1024
    """measure | files that are created, looked up and deleted: a multiple of 1024, `0` for none | `16384` | `0`"""

    dataset_key: ClassVar[str] = ".file_size"
    runs_on: ClassVar[tuple[str, ...]] = (NO_ENGINE,)

    def run_count(self) -> int:
        """One for each way of writing and size of a chunk."""
        return len(self.direct) * len(self.chunk_size)

    def dataset_factors(self) -> Mapping[str, tuple[Scalar, ...]]:
        """The size of the file."""
        return {"file_size": self.file_size}

    def planned(self, seed: int, defaults: int) -> PlannedWorkload:  # noqa: ARG002 -- its defaults have one version
        """A multiple of the memory becomes bytes where the memory of a cell is known."""
        specs = bonnie_runs(self.direct, self.chunk_size, per_character=self.per_character, files=self.files)
        return PlannedWorkload(self.type, (), specs, self.datasets())


def bonnie_runs(
    direct: Sequence[bool], chunk_size: Sequence[int], *, per_character: int, files: int
) -> tuple[RunSpec, ...]:
    """One run per combination; the per-character stages are left out under O_DIRECT, which refuses them."""
    found = []
    for is_direct, chunk in product(direct, chunk_size):
        name = "bonnie" + ("-direct" if is_direct else "")
        name += f"-{chunk}" if len(chunk_size) > 1 else ""
        levels = Levels(
            direct=is_direct,
            chunk_bytes=chunk,
            per_character_bytes=0 if is_direct else per_character,
            files=files,
        )
        found.append(RunSpec(name, WORKLOAD, levels))
    return tuple(found)


PLAN = BonnieTable

# What a local NVMe disk does through a file system.
_BYTES_PER_S = 400e6

_SEEKS_S = 20.0
_FILES_PER_S = 30_000.0


class BonnieEstimate(WorkloadEstimate):
    """One file, then many small ones."""

    def run_seconds(self, cell: Cell, load: Load, run: RunSpec, *, emulated: bool) -> float:  # noqa: ARG002 -- the disk's
        """Written, rewritten (read and written) and read."""
        file_s = 4 * self.dataset_bytes(cell, load) / _BYTES_PER_S
        return file_s + _SEEKS_S + 6 * (run.levels.integer("files") or 0) / _FILES_PER_S

    def dataset_bytes(self, cell: Cell, load: Load) -> float:  # noqa: ARG002 -- of others' role
        """The file."""
        return load.dataset.levels.integer("file_bytes") or 0


ESTIMATE = BonnieEstimate()

CANARY = Load(
    Dataset(WORKLOAD, Levels(file_bytes=256 * MIB)),
    (
        RunSpec(
            "canary",
            WORKLOAD,
            Levels(direct=False, chunk_bytes=8192, per_character_bytes=0, files=1024),
        ),
    ),
)
