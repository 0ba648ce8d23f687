"""What a run of power cuts needs of its visit: a stand whose devices log, and workers that replay cuts of the log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bedplate.model.cell import FilesystemLevels  # noqa: TC001 -- the codec asks for the types of a record's fields
from bedplate.model.levels import Levels  # noqa: TC001 -- the codec asks for the types of a record's fields
from bedplate.model.power_cut import CutPoint  # noqa: TC001 -- the codec asks for the types of a record's fields
from bedplate.model.visit import EngineBuild  # noqa: TC001 -- the codec asks for the types of a record's fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from bedplate.engine.postgresql.cluster import Cluster
    from bedplate.host.foreign_syncs import CallCounter
    from bedplate.model.cell import Cell
    from bedplate.model.power_cut import PointRecord

# Where the engine's files are on a file system that was recorded, and then in every image of it.
DATA_DIRECTORY = "data"
# In the run's folder: the ReplayJob, from which any point can be built and asked again.
JOB_FILE = "job.json"


@dataclass(frozen=True)
class Subject:
    """Whose data stand on the recorded file system, and what its oracle has to know of them.

    `rows` are the accounts of a PostgreSQL, or the entries of an LMDB, that were there before the clients began.
    `drivers` are paths of built C drivers by name, `settings` the engine's. `oracle` is the kind of what the clients left to
    be asked for (`postgresql.ORACLE`); recordings without it are of the first.
    """

    engine: str
    rows: int
    settings: Levels
    drivers: Levels
    build: EngineBuild | None = None
    oracle: int = 1


@dataclass(frozen=True)
class ReplayJob:
    """Everything that decides what comes of the points of one log, but the log itself.

    `filesystem` are the levels that were recorded. Sizes in bytes; `journal_bytes` is None without an external
    journal, and `loses_journal` says that it stood in memory and is gone after each cut.
    """

    filesystem: FilesystemLevels
    subject: Subject
    points: tuple[CutPoint, ...]
    image_bytes: int
    window_bytes: int
    measured_from: int
    journal_bytes: int | None = None
    loses_journal: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        """Of the disk and, where there is one, of the journal."""
        return (self.image_bytes, *(() if self.journal_bytes is None else (self.journal_bytes,)))


class RecordedStand(Protocol):
    """A file system of the cell on devices that log, empty at first, with room for the engine's files.

    `log` is whole once `seal` has returned. `memory` is a folder on tmpfs, for what must not be logged. `neighbour` is a folder
    beside the engine's on the recorded file system, not yet made.
    """

    data_directory: Path
    neighbour: Path
    mark_file: Path
    log: Path
    memory: Path
    journal_bytes: int | None
    loses_journal: bool

    def cluster(self) -> Cluster:
        """A PostgreSQL of the cell's build in the data directory, not yet initialised."""
        ...

    def mark(self, text: str) -> None:
        """Write a mark of the workload's own into the log."""
        ...

    def settle(self) -> None:
        """Bring everything that was written so far to the medium."""
        ...

    def log_for_clients_bytes(self) -> int:
        """How large the log may be when the clients end in their own time."""
        ...

    def await_own_writeback(self, duration_s: float) -> None:
        """Wait where the file system writes its metadata back at a known time, so that a recording now has it in it."""
        ...

    def foreign_syncs(self) -> CallCounter:
        """A counter of what commits this file system beside it: sync(2) by anybody; CallsNotCounted without one."""
        ...

    def is_log_nearly_full(self) -> bool:
        """Whether the clients should end, so that what they have still to bring to the disk has room in the log."""
        ...

    def seal(self) -> None:
        """End the log here; BedplateError if it lacks anything."""
        ...


class PowerBench(Protocol):
    """Made by the visit, which knows the file system, the account and the ledger; `build` is the server's, if any."""

    @property
    def cell(self) -> Cell:
        """The cell under test."""
        ...

    @property
    def build(self) -> EngineBuild | None:
        """The PostgreSQL that was built for it."""
        ...

    def recorded(self, image_bytes: int) -> AbstractContextManager[RecordedStand]:
        """A stand until the block ends, its disk so large; BedplateError says why there can be none."""
        ...

    def replayed(self, log: Path, job: ReplayJob, told: Callable[[str], None]) -> Iterator[PointRecord]:
        """What came of each point, in the order in which it is done; BedplateError if a worker dies.

        `told` is given what the workers say on standard error.
        """
        ...
