"""What is built of an engine before its first visit, and kept in the cache: the role `preparation` of its folder.

An engine that is used as the system has it, or that is made anew in each visit, has no such file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bedplate import registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from bedplate.campaign.dataset_inputs import Unused
    from bedplate.host.build_progress import BuildProgress
    from bedplate.host.command import Commands
    from bedplate.host.native_driver import Library
    from bedplate.host.requirement import Requirement
    from bedplate.model.cell import BuildLevels
    from bedplate.model.plan import EngineSetup
    from bedplate.model.source_commit import PlanSources, SourceTree
    from bedplate.model.visit import EngineBuild


class EnginePreparation(Protocol):
    """Builds of one engine, each made once."""

    def words(self, levels: BuildLevels) -> str:
        """What a person calls a build."""
        ...

    def is_there(self, levels: BuildLevels) -> bool:
        """Whether the cache has it."""
        ...

    def seconds(self, levels: BuildLevels) -> float:
        """What making it takes: as long as former ones did here, else as on two idle cores."""
        ...

    def requirements(self, levels: Iterable[BuildLevels]) -> tuple[Requirement, ...]:
        """What making these needs of the system, found or not."""
        ...

    def ensure(
        self,
        levels: BuildLevels,
        progress: Callable[[BuildProgress], None],
        *,
        tarball: Path | None,
        sources: PlanSources | None = None,
    ) -> EngineBuild:
        """Made now where the cache lacks it; `tarball` is an own source, `sources` are the plan's trees and patches.

        BuildFailed where somebody's own source cannot be built: the cells of other builds can still be measured.
        """
        ...

    def unused(self, cache: Path, commands: Commands) -> Iterator[Unused]:
        """Builds of it in the cache that nothing uses any more. Changes nothing."""
        ...


@dataclass(frozen=True)
class NamedEngine:
    """An engine in a folder of somebody's: what it is called, and `table` as a plan names it, with settings."""

    name: str
    table: str


class OwnPrograms(Protocol):
    """The role `own_programs`: of an engine whose programs somebody names in a plan."""

    def named(self, folder: Path, settings: Mapping[str, Sequence[str]]) -> NamedEngine:
        """The engine in a folder; PlanError where it is none, or has no such setting or value."""
        ...

    def keep(self, setup: EngineSetup) -> Mapping[str, str]:
        """Where visits find them, by the name that they know; copied now where the cache lacks them."""
        ...

    def unused(self, cache: Path, days: float) -> Iterator[Unused]:
        """Programs in the cache that nothing uses any more. Changes nothing."""
        ...


class OwnLibrary(Protocol):
    """The role `own_library`: of an engine that is a library, whose source somebody may name in a plan.

    `settings` are those of cells that say which, of which a cell has one at most; cells without take the distribution's.
    """

    settings: tuple[str, ...]

    def ensure(self, level: str, path: str | None, tree: SourceTree | None = None) -> Library:
        """What drivers are linked with, compiled now where the cache lacks it; `path` or `tree` is where the source lies, if that is known.

        BuildFailed where somebody's own source cannot be built: the cells of other libraries can still be measured.
        """
        ...


def preparations() -> Mapping[str, EnginePreparation]:
    """Those of all engines that have one, by the engine's name."""
    return registry.engine_parts("preparation")
