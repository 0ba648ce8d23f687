"""What an adapter finds in a source: runs that somebody published, in the words of a study."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, DeviceLevels, FilesystemLevels, KernelLevels
from bedplate.model.levels import Levels
from bedplate.model.machine import NOT_SAID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.imported.source import PublishedSource
    from bedplate.model.cell import RunSpec
    from bedplate.model.figure import Figure
    from bedplate.model.levels import Scalar
    from bedplate.model.reason import Reason

# What stands for a level that a source does not say. It is a level of its own: it equals no known one.
UNKNOWN = NOT_SAID


@dataclass(frozen=True)
class PublishedMachine:
    """Where runs were made, as far as a source says it; `name` tells machines of one source apart."""

    name: str
    cpu_model: str = UNKNOWN
    cpu_count: int | None = None
    memory_bytes: int | None = None
    distribution: str = UNKNOWN
    kernel_release: str = UNKNOWN
    disk: str | None = None


@dataclass(frozen=True)
class PublishedRun:
    """One run of a source.

    `series` is what of the source it belongs to where runs of one scale differ. `repetition` is None where the source
    numbers none: its runs of one kind are counted in their order. A run with `failure` has no figures; `doubts` make it
    suspect. `file` is where it was found, `text` what stands there. `surroundings` are keys of a visit's provenance.
    """

    machine: PublishedMachine
    cell: Cell
    series: str
    scale: int | None
    spec: RunSpec
    repetition: int | None
    file: str
    text: str
    figures: tuple[Figure, ...] = ()
    duration_s: float | None = None
    started_wall_s: float | None = None
    failure: Reason | None = None
    doubts: tuple[Reason, ...] = ()
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    surroundings: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Publication:
    """All that an adapter made of a source; a problem is what was left out, and why."""

    runs: tuple[PublishedRun, ...]
    problems: tuple[Reason, ...] = ()


class Adapter(Protocol):
    """A form of publication."""

    @property
    def name(self) -> str:
        """For the command line."""
        ...

    @property
    def words(self) -> str:
        """For people."""
        ...

    def recognises(self, source: PublishedSource) -> bool:
        """Whether a source looks like this form, by the names of its files and the heads of a few."""
        ...

    def read(self, source: PublishedSource) -> Publication:
        """Its runs. What is damaged is a problem each; nothing is raised for a source."""
        ...


def published_cell(
    engine: str,
    filesystem: str = UNKNOWN,
    *,
    features: Mapping[str, Scalar] | None = None,
    barrier: bool | None = None,
    kernel: str | None = None,
    version: str = UNKNOWN,
) -> Cell:
    """A cell of an engine; `features` is what the source varied besides, by its own names."""
    return Cell(
        DeviceLevels(),
        KernelLevels(kernel),
        FilesystemLevels(filesystem, barrier=barrier, features=Levels(features or {})),
        BuildLevels(engine, version=version),
        ClusterLevels(),
    )
