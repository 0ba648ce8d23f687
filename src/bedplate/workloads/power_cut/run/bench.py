"""What a log of a recording is replayed with: whose data it has, and where it is cut."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bedplate import registry
from bedplate.model.cell import UNTORN_OFF, FilesystemLevels
from bedplate.model.fault_order import ByteRange  # noqa: TC001 -- the codec asks for the types of a record's fields
from bedplate.model.levels import Levels
from bedplate.model.power_cut import USUAL_SECTOR_BYTES, CutPoint, Placement, Profile
from bedplate.model.visit import EMULATED
from bedplate.visit.cut_engine import Subject
from bedplate.workloads.power_cut.run.recut import Recut  # noqa: TC001 -- the codec asks for the types of a record's fields

_DRAWN = (Placement.UNIFORM, Placement.WEIGHTED)

if TYPE_CHECKING:
    from bedplate.visit.cut_engine import CutEngine
    from bedplate.visit.workload import VisitContext

# Where the engine's files are on a file system that was recorded, and then in every image of it.
DATA_DIRECTORY = "data"
# In the run's folder: the ReplayJob, from which any point can be built and asked again.
JOB_FILE = "job.json"


@dataclass(frozen=True)
class ReplayJob:
    """Everything that decides what comes of the points of one log, but the log itself.

    `filesystem` are the levels that were recorded. Sizes in bytes; `journal_bytes` is None without an external
    journal, and `loses_journal` says that it stood in memory and is gone after each cut. `recuts` are the recoveries to be cut again,
    whose own points are known once they are recorded; while they are, writes are answered up to `late_us` late, as when the log was.
    The devices have sectors of `sector_bytes`. Where it `listens`, the records have what the file system says of each image.
    What is `unreadable` of the disk, or of an external journal's device, gives an error to whoever reads it, until it is written.
    The server of a recovery that is recorded writes its pages by the cell's level `untorn_writes`. They have `page_bytes` where they are
    looked at, else None.
    """

    filesystem: FilesystemLevels
    subject: Subject
    points: tuple[CutPoint, ...]
    image_bytes: int
    window_bytes: int
    measured_from: int
    journal_bytes: int | None = None
    loses_journal: bool = False
    recuts: tuple[Recut, ...] = ()
    late_us: int = 0
    sector_bytes: int = USUAL_SECTOR_BYTES
    listens: bool = False
    unreadable: tuple[ByteRange, ...] = ()
    unreadable_on_journal: bool = False
    untorn_writes: str = UNTORN_OFF
    page_bytes: int | None = None

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """Those that are drawn in turns, as the plan has them: of controls, and of cuts that were sought or enumerated, none."""
        drawn = (point for point in self.points if not point.control and point.placement in _DRAWN)
        return tuple(dict.fromkeys(point.profile for point in drawn))

    @property
    def most_records(self) -> int:
        """How many there are if each recovery is cut again: of each point, each cut in recovery, and each recovery as a whole."""
        return len(self.points) + sum(recut.cuts + 1 for recut in self.recuts)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Of the disk and, where there is one, of the journal."""
        return (self.image_bytes, *(() if self.journal_bytes is None else (self.journal_bytes,)))

    def uncut(self, settled: int) -> ReplayJob:
        """The same of a positive control: the log up to the entry `settled`, after which the power stayed, as a journal in memory did."""
        point = CutPoint(0, settled, Profile.ORDERED, Placement.UNIFORM, seed=0)
        return replace(self, points=(point,), recuts=(), loses_journal=False)


def cut_engine(name: str) -> CutEngine:
    """What an engine has for power cuts; PlanError lists the known ones."""
    engine: CutEngine = registry.engine_part(name, "power_cut")
    return engine


def subject_of(context: VisitContext, name: str, engine: CutEngine) -> Subject:
    """The data that a visit records, of the engine of that name."""
    return Subject(
        engine=name,
        rows=engine.rows,
        settings=context.engine_settings,
        drivers=Levels(context.native_drivers),
        build=context.request.build,
        oracle=engine.oracle,
        emulated=context.request.provenance.get("accelerator") == EMULATED,
        account=context.account,
        configuration=context.request.cell.cluster.configuration,
    )
