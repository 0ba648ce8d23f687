"""`type = "faulty_disk"` in a plan: engines whose disk fails, and one run of faults on each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from bedplate import registry
from bedplate.cuts.faults import CONTROLS, DEFAULT_FAULTS, FAULTS
from bedplate.cuts.records import IMAGE_BYTES
from bedplate.model.cell import Cell, RunSpec
from bedplate.model.engines import ENGINE, POSTGRESQL
from bedplate.model.filesystem import TRAITS
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import Load, PlannedWorkload
from bedplate.plan import values
from bedplate.plan.estimate import FILESYSTEM_OVERHEAD_BYTES, WorkloadEstimate
from bedplate.plan.fields import ChosenCells, Count, Departures, Duration, Factor, Seed, within
from bedplate.plan.table import WorkloadTable
from bedplate.units import GIB
from bedplate.workloads.faulty_disk.model import DURATION_S, FAULTS_LEVEL, TRIES, WORKLOAD

RUN_NAME = "faulty-disk"

# Those that have a writer and an oracle.
FAULT_ENGINES = registry.engines_with(WORKLOAD)

FaultyImage: TypeAlias = Annotated[int, within(values.size, values.SMALLEST_CUT_IMAGE_BYTES, 16 * GIB)]


class FaultyDiskTable(WorkloadTable):
    """`[[workload]]` of type faulty_disk: faults of the disk, each while clients write to an engine of its own."""

    type: Literal["faulty_disk"] = Field(description="faulty_disk")
    engine: Factor[Annotated[str, within(values.one_of, FAULT_ENGINES)]] = (POSTGRESQL,)
    """load | `postgresql`, `lmdb`, `sqlite`, `mariadb`, `own-engine`: set up as for power cuts | `"postgresql"` | `{ vary =
    ["postgresql", "sqlite"] }`"""
    faults: Annotated[tuple[str, ...], within(values.some_of, tuple(FAULTS))] = DEFAULT_FAULTS
    """measure | a list of faults, each tried on its own disk (below) | the five of the example |
    `["write-once-log", "write-once-data", "write-once-anywhere", "write-on-anywhere", "flush-once"]`"""
    tries: Annotated[int, within(values.whole_number, 1, 1000)] = 1
    """measure | 1 to 1000: how often each fault is tried, with other seeds | `1` | `6`"""
    seed: Seed | None = None
    """measure | a whole number: draws what clients write, when the fault comes, and what rots | the plan's | `7`"""
    duration: Factor[Duration] = (DURATION_S,)
    """load | how long clients write at most; the fault comes at a moment that the seed draws, after 25 to 55 % of it, and some ten transactions | `"4 s"` | `"10 s"`"""
    clients: Factor[Count] = (2,)
    """load | sessions at once | `2` | `4`"""
    image_size: Factor[FaultyImage] = (IMAGE_BYTES,)
    """load | 128 MB to 16 GB: size of the disk that fails. It is sparse, in memory | `"4 GB"` | `"1 GB"`"""
    cells: ChosenCells = ()
    """– | the cells that it runs in, as of power cuts | every cell of its engines | `[{ filesystem.type = "xfs" }]`"""

    dataset_key: ClassVar[str] = ".engine"

    def run_count(self) -> int:
        """One."""
        return 1

    def engines(self) -> tuple[str, ...]:
        """Those whose disk fails."""
        return self.engine

    def planned(self, seed: int, defaults: int) -> PlannedWorkload:  # noqa: ARG002 -- its defaults have one version
        """Every combination of its factors is a dataset."""
        return PlannedWorkload(self.type, (), (fault_run(self, seed),), self.datasets())

    def cells_named(self) -> tuple[Departures, ...]:
        """Its `cells`."""
        return self.cells

    def dataset_factors(self) -> Mapping[str, tuple[Scalar, ...]]:
        """What tells its datasets apart; how often each fault is tried too, in which workloads of a plan differ by cell."""
        return {
            ENGINE: self.engine,
            "image_bytes": self.image_size,
            "clients": self.clients,
            "duration_s": self.duration,
            TRIES: (self.tries,),
        }


def fault_run(table: FaultyDiskTable, seed: int) -> RunSpec:
    """The faults of one engine; `seed` is the plan's, where the table has none of its own."""
    levels: dict[str, Scalar] = {
        FAULTS_LEVEL: ",".join(table.faults),
        TRIES: table.tries,
        "seed": seed if table.seed is None else table.seed,
    }
    return RunSpec(RUN_NAME, WORKLOAD, Levels(levels))


PLAN = FaultyDiskTable

# Beside the clients' time: mkfs, the engine made anew, its end, and the oracle.
_SERVER_OVERHEAD_S, _LIBRARY_OVERHEAD_S = 8.0, 4.0

_EMULATED_TIMES = 5.0


class FaultyDiskEstimate(WorkloadEstimate):
    """The disk that fails is in memory; on the device is no more than the new cluster that shows the settings."""

    def run_seconds(self, cell: Cell, load: Load, run: RunSpec, *, emulated: bool) -> float:
        """Each fault as often as it is tried, and the controls."""
        names = (run.levels.text(FAULTS_LEVEL) or "").split(",")
        tries = len(names) * (run.levels.integer(TRIES) or 1) + len(CONTROLS)
        overhead_s = _SERVER_OVERHEAD_S if _has_server(cell) else _LIBRARY_OVERHEAD_S
        overhead_s += TRAITS[cell.filesystem.type].recovery_s
        duration_s = load.dataset.levels.number("duration_s") or 0.0
        return tries * (duration_s + overhead_s * (_EMULATED_TIMES if emulated else 1.0))

    def dataset_bytes(self, cell: Cell, load: Load) -> float:  # noqa: ARG002 -- in memory
        """Nothing."""
        return 0.0

    def device_bytes(self, cell: Cell, load: Load) -> int:  # noqa: ARG002 -- in memory
        """Without a server nothing but the file system."""
        return (2 if _has_server(cell) else 1) * FILESYSTEM_OVERHEAD_BYTES


def _has_server(cell: Cell) -> bool:
    return cell.build.engine in registry.engines_with("server")


ESTIMATE = FaultyDiskEstimate()
