"""What stands at the top of a study, `study.json` and `schedule.json`, and beside each visit, `checksums.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bedplate.model.cell import Cell, Dataset, RunSpec
from bedplate.model.devices.identity import DeviceIdentity
from bedplate.model.plan import Pruned, ScheduledVisit

# Where the runs of a study come from. What others published was neither watched nor set up by bedplate.
MEASURED, IMPORTED = "measured", "imported"


@dataclass(frozen=True)
class HistoryEntry:
    """What was done to a study, and when."""

    when: str
    """ISO 8601, UTC"""
    what: str
    """a sentence: created, extended, gone on with under a new kernel"""


@dataclass(frozen=True)
class FileChecksum:
    """What a file was when its visit had ended, or when the study was made or extended."""

    size_bytes: int
    """its size when the visit had ended"""
    sha256: str
    """SHA-256 of its content, in hexadecimal"""


@dataclass(frozen=True)
class StudyFacts:
    """`study.json`: what a study is, and what was done to it."""

    format_version: int
    """2; 1 in older ones"""
    title: str
    """the plan's title"""
    created: str
    """ISO 8601, UTC"""
    bedplate: str
    """version that made the study"""
    plan_digest: str
    """digest of everything in the plan that decides a result"""
    machine_identity: str
    """digest of what must not change within a study"""
    kernel_release: str
    """kernel of the last start; a declared factor may change it"""
    history: tuple[HistoryEntry, ...]
    """what was done to the study, oldest first"""
    executor: str = "local"
    """who runs the visits: `local`, `qemu`, `slurm`; `imported` where others made them; where the plan says `auto`, the one that the study was begun with"""
    defaults: int = 1
    """version of the table of defaults that the plan is read with: 1, where it is missing, gives a client program
    two threads; 2 one for each client"""
    checksums: Mapping[str, FileChecksum] = field(default_factory=dict)
    """the other files at the top (`plan.toml`, `plan/`, `machine.json`, `schedule.json`), by their path, as they
    were when the study was made or last extended; empty in older studies"""
    origin: str = MEASURED
    """`measured`, or `imported` where `bedplate import` made it of runs that others published; missing in older studies"""
    devices: Mapping[str, DeviceIdentity] = field(default_factory=dict)
    """the devices that are erased, by their names in the plan, as they were when the study began; empty for images, on a
    fleet (`fleet/nodes/` has them) and in older studies until their next start"""

    @property
    def is_imported(self) -> bool:
        """Whether others made its runs."""
        return self.origin == IMPORTED


@dataclass(frozen=True)
class StudySchedule:
    """`schedule.json`: what there is to visit, and in which order."""

    format_version: int
    """2; 1 in older ones"""
    seed: int
    """what the order was drawn from"""
    repetitions: int
    """passes over all cells"""
    cells: Mapping[str, Cell]
    """cell id to cell"""
    datasets: Mapping[str, Dataset]
    """dataset id to dataset"""
    runs: Mapping[str, tuple[RunSpec, ...]]
    """dataset id to its runs, in order"""
    pruned: tuple[Pruned, ...]
    """cells that cannot exist here"""
    visits: tuple[ScheduledVisit, ...]
    """all visits in their order"""
    canary_runs: tuple[RunSpec, ...] = ()
    """the runs of a canary visit, which may share its dataset with a cell"""


@dataclass(frozen=True)
class Checksums:
    """`checksums.json` of a visit."""

    format_version: int
    """2; 1 in older ones"""
    files: Mapping[str, FileChecksum]
    """every file of the visit but this one, by its path below the visit's directory"""
