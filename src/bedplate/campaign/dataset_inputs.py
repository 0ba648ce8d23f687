"""What is made for datasets before their visits, outside of the file system under test, and kept in the cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bedplate import registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from bedplate.model.cell import Dataset
    from bedplate.model.visit import EngineBuild


@dataclass(frozen=True)
class Unused:
    """A folder of the cache that nothing uses any more, and why.

    `lock` is held by whoever makes such a folder, `mark` is the file that makes it count.
    """

    path: Path
    reason: str
    lock: Path
    mark: str


class DatasetInputs(Protocol):
    """The role `inputs` of a workload; one that makes nothing beforehand has no such file."""

    def make(
        self,
        dataset: Dataset,
        builds: Mapping[str, EngineBuild],
        tell: Callable[[str, int, int], None],
    ) -> Mapping[str, str]:
        """What a dataset needs, by the name that the workload knows it by; made now where the cache lacks it.

        `builds` has one of each engine that the study makes anyway. `tell` is given what is done, how far it is, and of how much.
        """
        ...

    def unused(self, cache_directory: Path) -> Iterator[Unused]:
        """What the cache holds of it that nothing uses any more. Changes nothing."""
        ...


def inputs_by_workload() -> Mapping[str, DatasetInputs]:
    """Those of all workloads that have some."""
    return registry.parts("inputs")
