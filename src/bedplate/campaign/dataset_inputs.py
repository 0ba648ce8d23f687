"""What is made for datasets before their visits, outside of the file system under test, and kept in the cache."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from bedplate import registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, Dataset
    from bedplate.model.visit import EngineBuild


# What is kept for the next start goes unused when nobody has asked for it for so many days.
UNUSED_DAYS = 30.0


@dataclass(frozen=True)
class Unused:
    """A folder of the cache that nothing uses any more, and why.

    `lock` is held by whoever makes such a folder, `mark` is the file that makes it count.
    """

    path: Path
    reason: str
    lock: Path
    mark: str


@dataclass(frozen=True)
class MadeAnyway:
    """What a start has beside its datasets: builds by their levels, cells, and where a plan's archives lie, by checksum."""

    builds: Mapping[BuildLevels, EngineBuild] = field(default_factory=dict)
    cells: Sequence[Cell] = ()
    archives: Mapping[str, str] = field(default_factory=dict)

    def build_of(self, engine: str) -> EngineBuild | None:
        """The first build of an engine, for who asks for any."""
        return next((build for levels, build in self.builds.items() if levels.engine == engine), None)

    def clusters(self, engine: str) -> Iterator[tuple[EngineBuild, ClusterLevels]]:
        """The different clusters of an engine, each with its build."""
        asked = dict.fromkeys(
            (cell.build, cell.cluster) for cell in self.cells if cell.build.engine == engine
        )
        return ((self.builds[levels], cluster) for levels, cluster in asked)


class DatasetInputs(Protocol):
    """The role `inputs` of a workload; one that makes nothing beforehand has no such file."""

    def make(
        self,
        dataset: Dataset,
        made: MadeAnyway,
        tell: Callable[[str, int, int], None],
    ) -> Mapping[str, str]:
        """What a dataset needs, by the name that the workload knows it by; made now where the cache lacks it.

        `tell` is given what is done, how far it is, and of how much.
        """
        ...

    def obstacle(self, dataset: Dataset, *, on_nodes: bool) -> str | None:  # noqa: ARG002 -- of those that need somebody's files
        """Why it cannot be made here for this dataset, or handed to the nodes of a fleet; None where it can. Changes nothing."""
        return None

    def unused(self, cache_directory: Path, days: float) -> Iterator[Unused]:  # noqa: ARG002 -- of those that keep folders of their own
        """What the cache holds of it that nothing uses any more, or that nobody has asked for in more than so many days. Changes nothing."""
        return iter(())


def inputs_by_workload() -> Mapping[str, DatasetInputs]:
    """Those of all workloads that have some."""
    return registry.parts("inputs")
