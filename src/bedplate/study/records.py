"""What stands at the top of a study, `study.json` and `schedule.json`, and beside each visit, `checksums.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bedplate.model.cell import Cell, Dataset, RunSpec
from bedplate.model.plan import Pruned, ScheduledVisit


@dataclass(frozen=True)
class HistoryEntry:
    """`when` is ISO 8601, UTC; `what` a sentence: created, extended, gone on with under a new kernel."""

    when: str
    what: str


@dataclass(frozen=True)
class StudyFacts:
    """`study.json`. `kernel_release` is that of the last start; a declared factor may change it.

    `executor` is the one that the study was begun with, and stays with, where its plan says `auto`.
    So is `defaults`, the version of the table of defaults that its plan is read with.
    """

    format_version: int
    title: str
    created: str
    bedplate: str
    plan_digest: str
    machine_identity: str
    kernel_release: str
    history: tuple[HistoryEntry, ...]
    executor: str = "local"
    defaults: int = 1


@dataclass(frozen=True)
class StudySchedule:
    """`schedule.json`: what there is to visit, and in which order.

    `runs` are by dataset. A canary's stand apart in `canary_runs`: a plan may load the same dataset.
    """

    format_version: int
    seed: int
    repetitions: int
    cells: Mapping[str, Cell]
    datasets: Mapping[str, Dataset]
    runs: Mapping[str, tuple[RunSpec, ...]]
    pruned: tuple[Pruned, ...]
    visits: tuple[ScheduledVisit, ...]
    canary_runs: tuple[RunSpec, ...] = ()


@dataclass(frozen=True)
class FileChecksum:
    """What a file was when its visit had ended."""

    size_bytes: int
    sha256: str


@dataclass(frozen=True)
class Checksums:
    """`checksums.json`: every other file of a visit, by its path below the visit's directory."""

    format_version: int
    files: Mapping[str, FileChecksum]
