"""What a log of a recording is replayed with: whose data it has, and where it is cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate import registry
from bedplate.model.cell import FilesystemLevels  # noqa: TC001 -- the codec asks for the types of a record's fields
from bedplate.model.power_cut import CutPoint  # noqa: TC001 -- the codec asks for the types of a record's fields
from bedplate.visit.cut_engine import Subject  # noqa: TC001 -- the codec asks for the types of a record's fields

if TYPE_CHECKING:
    from bedplate.visit.cut_engine import CutEngine

# Where the engine's files are on a file system that was recorded, and then in every image of it.
DATA_DIRECTORY = "data"
# In the run's folder: the ReplayJob, from which any point can be built and asked again.
JOB_FILE = "job.json"


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


def cut_engine(name: str) -> CutEngine:
    """What an engine has for power cuts; PlanError lists the known ones."""
    engine: CutEngine = registry.engine_part(name, "power_cut")
    return engine
